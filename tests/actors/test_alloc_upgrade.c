/* test_alloc_upgrade.c - an mplex session, a handshake and negotiations on streams in which allocation number n fails, for
 * every n, alone or with all behind it; each call works, or answers REEVE_ENOMEM or what follows from it, and nothing
 * stays. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

#define MS 30 /* for a call that fails because its peer is gone */

static const char *const ab[] = {"/a/1", "/b/1"};
static const char *const cb[] = {"/c/1", "/b/1"};
static const uint8_t key[2][32] = {{1, 2, 3}, {4, 5, 6}};
static reeve_key_t *identity[2]; /* NULL without Noise */
static struct rvt_duo d;
static uint8_t bytes[40000];
static reeve_stream_t *all[8]; /* every stream of a life */
static unsigned nall;

static int
good(reeve_ssize rc)
{
	return rc >= 0 || rc == REEVE_ENOMEM || rc == REEVE_ECLOSED || rc == REEVE_EEND ||
	    rc == REEVE_ERESET || rc == REEVE_EREFUSED || rc == REEVE_ETIMEDOUT ||
	    rc == REEVE_ECANCELED || rc == REEVE_ETRUNC || rc == REEVE_ENOPROTO ||
	    rc == REEVE_ESYS_BASE - 32 /* EPIPE */ || rc == REEVE_ESYS_BASE - 104 /* ECONNRESET */;
}

static int
ok(reeve_ssize rc, int line)
{
	ck_assert_msg(good(rc), "line %d: %s", line, reeve_errname((int)rc));
	return rc >= 0;
}
#define OK(rc) ok((rc), __LINE__)

static void
keys(void)
{
	for (int i = 0; i < 2; i++)
		if (reeve_key_generate(&identity[i]) < 0)
			identity[i] = NULL;
}

static void
keys_away(void)
{
	for (int i = 0; i < 2; i++)
		reeve_key_free(identity[i]);
}

/* --- what is done with a connection */

/* A stream in all[]: [0] opened, [1] accepted.  False: none. */
static int
pair(reeve_stream_t *s[2])
{
	if (!OK(reeve_open(d.k[0], &s[0], MS)))
		return 0;
	all[nall++] = s[0];
	if (!OK(reeve_accept(d.k[1], &s[1], MS)))
		return 0;
	all[nall++] = s[1];
	for (int i = 0; i < 2; i++)
		OK(reeve_deadline(s[i], REEVE_RD | REEVE_WR, MS));
	return 1;
}

static void
bytes_and_ends(void)
{
	struct rvt_done rd, wr;
	reeve_stream_t *s[2];
	reeve_buf_t *b;

	if (!pair(s))
		return;
	if (OK(reeve_write(s[0], bytes, sizeof(bytes))))
		OK(reeve_read(s[1], bytes, 100));
	b = reeve_buf_alloc(d.rt, 3000);
	if (b != NULL) {
		rvt_done_init(&rd, MS);
		rvt_done_init(&wr, MS);
		reeve_read_async(s[0], &rd.op);
		reeve_write_async(s[1], b, &wr.op);
		OK(rvt_done_wait(&wr));
		(void)rvt_done_wait(&rd);
		if (rd.op.res > 0)
			reeve_buf_unref(rd.op.buf);
	}
	OK(reeve_shut(s[0]));
	while (reeve_read(s[1], bytes, sizeof(bytes)) > 0)
		continue;
	if (pair(s)) { /* with bytes on their way */
		OK(reeve_write(s[0], bytes, sizeof(bytes)));
		OK(reeve_reset(s[1], 3));
		OK(reeve_read(s[0], bytes, 1));
	}
}

/* False: there is no stream to do it on. */
static int
negotiate(int how, const char *const *names, unsigned n)
{
	reeve_stream_t *s[2];
	struct rvt_done l;

	if (!pair(s))
		return 0;
	rvt_done_init(&l, MS);
	reeve_negotiate_async(s[1], REEVE_LISTENER, ab, 2, &l.op);
	if (OK(reeve_negotiate(s[0], how, names, n, MS))) {
		OK(reeve_write(s[0], bytes, 5000));
		OK(reeve_shut(s[0]));
	}
	if (OK(rvt_done_wait(&l))) {
		ck_assert_str_eq(reeve_stream_proto(s[1]), "/b/1");
		while (OK(reeve_read(s[1], bytes, sizeof(bytes))) && bytes[0] != 0)
			continue;
		OK(reeve_write(s[1], bytes, 100));
		OK(reeve_read(s[0], bytes, 100));
	}
	return 1;
}

/* --- lives */

static void
pair_life(const reeve_cfg_t *cfg, int talks)
{
	int rc = reeve_conn_pair(d.c, d.rt, cfg);

	if (!OK(rc)) {
		d.c[0] = d.c[1] = NULL;
		return;
	}
	for (int i = 0; i < 2; i++)
		d.k[i] = reeve_conn_ctl(d.c[i]);
	if (talks) {
		(void)(negotiate(REEVE_DIALER, cb, 2) &&
		    negotiate(REEVE_DIALER | REEVE_LAZY, cb + 1, 1) &&
		    negotiate(REEVE_DIALER, cb, 1)); /* nothing in common */
	} else {
		bytes_and_ends();
	}
	while (nall > 0)
		reeve_close(all[--nall]);
	OK(reeve_conn_close(d.c[0], MS));
}

static void
handshake_life(const char *at, uint32_t muxer, uint32_t security)
{
	reeve_upgrade_t u[2];
	reeve_cfg_t cfg[2];
	reeve_listener_t *l;
	reeve_op_t accept;
	char text[80];

	for (int i = 0; i < 2; i++) {
		u[i] = (reeve_upgrade_t){.size = sizeof(u[i]),
		    .security = security,
		    .muxers = {muxer},
		    .key = security == REEVE_PLAINTEXT ? key[i] : NULL,
		    .identity = identity[i],
		    .timeout_ms = 5 * MS};
		reeve_cfg_init(&cfg[i]);
		cfg[i].upgrade = &u[i];
	}
	if (!OK(reeve_listen(&l, d.rt, at, &cfg[1])))
		return;
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	reeve_op_init(&accept, NULL, NULL);
	accept.timeout_ms = MS;
	reeve_listener_accept_async(l, &accept);
	if (OK(reeve_dial(&d.c[0], d.rt, text, &cfg[0], MS))) {
		d.k[0] = reeve_conn_ctl(d.c[0]);
		ck_assert_int_eq(reeve_proto(d.k[0]), (int)muxer);
		ck_assert_int_gt(reeve_peer_id(d.k[0], text, sizeof(text)), 0);
	} else {
		d.c[0] = NULL;
	}
	if (OK(reeve_op_wait(&accept))) {
		d.c[1] = accept.conn;
		d.k[1] = reeve_conn_ctl(d.c[1]);
		if (d.c[0] != NULL)
			bytes_and_ends();
	}
	while (nall > 0)
		reeve_close(all[--nall]);
	reeve_listener_destroy(l);
}

#ifdef HAVE_NOISE
#define LIVES 8
#else
#define LIVES 6
#endif

/* One life in which allocation n fails (and, with rest, all behind it).  False: it was over before. */
static bool
live(int kind, uint64_t n, bool rest)
{
	reeve_cfg_t cfg;
	reeve_rt_cfg_t rt;
	bool failed;
	int rc;

	memset(&d, 0, sizeof(d));
	nall = 0;
	rvt_alloc_init(&d.alloc);
	reeve_rt_cfg_init(&rt);
	reeve_cfg_init(&cfg);
	rt.workers = 1;
	rt.alloc = d.alloc.a;
	rvt_alloc_fail(&d.alloc, n, rest);
	rc = reeve_rt_create(&d.rt, &rt);
	ck_assert(rc == 0 || rc == REEVE_ENOMEM);
	cfg.proto = kind % 2 ? REEVE_MPLEX : REEVE_YAMUX;
	if (rc < 0)
		d.rt = NULL;
	else if (kind < 2)
		pair_life(&cfg, 1);
	else if (kind == 2 || kind == 3)
		handshake_life("tcp://127.0.0.1:0", cfg.proto, REEVE_PLAINTEXT);
	else if (kind == 4)
		handshake_life("mem://upgrade", REEVE_MPLEX, REEVE_PLAINTEXT);
	else if (kind == 5)
		pair_life(&cfg, 0);
	else if (kind == 6)
		handshake_life("tcp://127.0.0.1:0", REEVE_MPLEX, REEVE_NOISE);
	else
		handshake_life("mem://upgrade", REEVE_YAMUX, REEVE_NOISE);
	failed = rvt_alloc_failed(&d.alloc);
	rvt_duo_end(&d);
	return failed;
}

START_TEST(a_life_survives_any_single_failure)
{
	uint64_t n = 1;

	keys();
	while (live(_i, n, false))
		n++;
	ck_assert_uint_gt(n, 10);
	keys_away();
}
END_TEST

START_TEST(a_life_survives_the_end_of_all_memory)
{
	uint64_t n = 1;

	keys();
	while (live(_i, n, true))
		n++;
	ck_assert_uint_gt(n, 10);
	keys_away();
}
END_TEST

RVT_MAIN_TABLE("alloc_upgrade", {&a_life_survives_any_single_failure, LIVES},
    {&a_life_survives_the_end_of_all_memory, LIVES})
