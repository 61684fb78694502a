/* Scenarios 106 to 113: negotiation of a stream's protocol, and of a connection's.  See README.md. */
#include <config.h>

#include "tests/kit/alloc.h"
#include "tests/kit/flow.h"
#include "tests/kit/mplex_peer.h"
#include "tests/kit/node.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HEADER "\x13/multistream/1.0.0\n"
#define ECHO   "\x08/echo/1\n"
#define NA     "\x03na\n"
#define LAZY   (REEVE_DIALER | REEVE_LAZY)

static const char *const names[] = {"/echo/1", "/other"};
static struct rvt_raw r;
static bool mplex;
static uint8_t hundred[100];

static void
open_raw(int role)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = mplex ? REEVE_MPLEX : REEVE_YAMUX;
	rvt_raw_open(&r, role, &cfg);
	memset(hundred, 'x', sizeof(hundred));
}

static reeve_stream_t *
outbound(void)
{
	return mplex ? rvt_mpp_outbound(&r) : rvt_raw_outbound(&r);
}

/* The peer says something on a stream that we have opened, and ends its direction. */
static void
tell(reeve_stream_t *s, const char *text, size_t n, bool fin)
{
	uint64_t id = reeve_stream_id(s);
	struct rvt_bytes *b = &r.p.out;

	if (mplex)
		rvt_mp_put(b, RVT_MP_DATA_R, id, n);
	else
		rvt_put(b, RVT_DATA, 0, (uint32_t)id, (uint32_t)n);
	memcpy(rvt_bytes_more(b, n), text, n);
	if (fin && mplex)
		rvt_mp_put(b, RVT_MP_CLOSE_R, id, 0);
	else if (fin)
		rvt_put(b, RVT_WU, RVT_FIN, (uint32_t)id, 0);
	rvt_peer_send(&r.p);
}
#define TELL(s, text, fin) tell(s, text, sizeof(text) - 1, fin)

/* The next frame is one of data with exactly this. */
static void
hear(reeve_stream_t *s, const void *text, size_t n)
{
	struct rvt_mp_frame m;
	struct rvt_frame f;

	if (mplex) {
		ck_assert(rvt_mpp_next(&r, &m));
		ck_assert_uint_eq(m.flag, RVT_MP_DATA_I);
		ck_assert_uint_eq(m.len, n);
		ck_assert_mem_eq(m.body, text, n);
	} else {
		ck_assert(rvt_peer_next(&r.p, &f));
		ck_assert_uint_eq(f.type, RVT_DATA);
		ck_assert_uint_eq(f.id, reeve_stream_id(s));
		ck_assert_uint_eq(f.len, n);
		ck_assert_mem_eq(f.body, text, n);
	}
}

static void
hear_end(reeve_stream_t *s, bool reset)
{
	uint32_t id = (uint32_t)reeve_stream_id(s);

	if (mplex)
		rvt_mpp_want(&r, reset ? RVT_MP_RESET_I : RVT_MP_CLOSE_I, id);
	else
		rvt_peer_want(&r.p, RVT_WU, reset ? RVT_RST : RVT_FIN, id, 0);
}

static void
want_answer(reeve_stream_t *s, const char *text)
{
	char p[64];
	size_t at = 0;
	reeve_ssize k;

	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
	while ((k = reeve_read(s, p + at, sizeof(p) - at)) > 0)
		at += (size_t)k;
	ck_assert_int_eq(k, 0);
	ck_assert_uint_eq(at, strlen(text));
	ck_assert_mem_eq(p, text, at);
}

START_TEST(scenario_106_the_end_leaves_with_the_first_bytes)
{
	uint8_t all[200];
	reeve_stream_t *s;
	bool empty = _i & 2;

	mplex = _i & 1;
	open_raw(mplex ? REEVE_LISTENER : REEVE_DIALER);
	s = outbound();
	memcpy(all, HEADER ECHO, 29);
	memcpy(all + 29, hundred, 100);
	ck_assert_int_eq(reeve_negotiate(s, LAZY, names, 1, -1), 0);
	if (!empty)
		ck_assert_int_eq(reeve_write(s, hundred, 100), 100);
	ck_assert_int_eq(reeve_shut(s), 0);
	hear(s, all, empty ? 29 : 129);
	hear_end(s, false);
	TELL(s, HEADER ECHO "answer", true);
	want_answer(s, "answer");
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- a node that serves */

struct server {
	pthread_t thread;
	reeve_ctl_t *k;
	bool greets;
	int rc;
};

/* Asks nothing of the one who calls before it has greeted; then answers all that came with "pong". */
static void *
server(void *arg)
{
	struct server *v = arg;
	int64_t ms = rvt_slow(RVT_WAIT_MS);
	reeve_stream_t *s = NULL;
	reeve_ssize k;
	char p[256];

	v->rc = reeve_accept(v->k, &s, ms);
	if (v->rc == 0)
		v->rc = reeve_negotiate(s, REEVE_LISTENER, names, 2, ms);
	if (v->rc == 0)
		(void)reeve_deadline(s, REEVE_RD | REEVE_WR, ms);
	if (v->rc == 0 && v->greets)
		v->rc = reeve_write(s, "hello", 5) == 5 ? 0 : REEVE_EAGAIN;
	while (v->rc == 0 && (k = reeve_read(s, p, sizeof(p))) != 0)
		if (k < 0)
			v->rc = (int)k;
	if (v->rc == 0 && reeve_write(s, "pong", 4) != 4)
		v->rc = REEVE_EAGAIN;
	reeve_close(s);
	return NULL;
}

#define RTT_MS 200

/* Request and answer over a distance: the lazy way saves a round trip. */
START_TEST(scenario_106_a_lazy_request_takes_one_round_trip)
{
	struct rvt_line_cfg line = {.delay_us = RTT_MS * 1000 / 2};
	struct rvt_wedding w = {.via = RVT_TCP, .line = &line};
	reeve_cfg_t cfg;
	struct server v = {0};
	struct rvt_nodes n;
	reeve_stream_t *s;
	uint64_t start;

	reeve_cfg_init(&cfg);
	cfg.proto = _i ? REEVE_MPLEX : REEVE_YAMUX;
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
	v.k = n.k[1];
	ck_assert_int_eq(pthread_create(&v.thread, NULL, server, &v), 0);
	start = rvt_now_ms();
	ck_assert_int_eq(reeve_open(n.k[0], &s, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_negotiate(s, LAZY, names, 1, -1), 0);
	ck_assert_int_eq(reeve_write(s, hundred, 100), 100);
	ck_assert_int_eq(reeve_shut(s), 0);
	want_answer(s, "pong");
	start = rvt_now_ms() - start;
	ck_assert_uint_ge(start, RTT_MS);
	ck_assert_uint_lt(start, RTT_MS + (uint64_t)rvt_slow(RTT_MS - 10));
	reeve_close(s);
	pthread_join(v.thread, NULL);
	ck_assert_int_eq(v.rc, 0);
	rvt_divorce(&n);
}
END_TEST

/* Who opens, lazy or not, near or over a distance: the other end speaks first, so what is owed has to leave although
 * nothing is written. */
START_TEST(scenario_107_nothing_of_a_negotiation_stays_behind)
{
	struct rvt_line_cfg line = {.delay_us = 50000};
	struct rvt_wedding w = {.via = _i & 4 ? RVT_TCP : RVT_MEMORY};
	uint64_t rtt = _i & 4 ? 100 : 0, start;
	struct server v = {.greets = true};
	int end = _i & 1, how = _i & 2 ? LAZY : REEVE_DIALER;
	reeve_cfg_t cfg;
	struct rvt_nodes n;
	reeve_stream_t *s;
	char p[5];

	reeve_cfg_init(&cfg);
	cfg.proto = _i & 8 ? REEVE_MPLEX : REEVE_YAMUX;
	w.cfg[0] = w.cfg[1] = &cfg;
	w.line = _i & 4 ? &line : NULL;
	rvt_marry(&n, &w);
	v.k = n.k[1 - end];
	ck_assert_int_eq(pthread_create(&v.thread, NULL, server, &v), 0);
	ck_assert_int_eq(reeve_open(n.k[end], &s, rvt_slow(RVT_WAIT_MS)), 0);
	start = rvt_now_ms();
	ck_assert_int_eq(reeve_negotiate(s, how, names, 1, -1), 0);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
	for (size_t at = 0; at < 5;) {
		reeve_ssize k = reeve_read(s, p + at, 5 - at);

		ck_assert_int_gt(k, 0);
		at += (size_t)k;
	}
	ck_assert_mem_eq(p, "hello", 5);
	ck_assert_uint_lt(rvt_now_ms() - start, 3 * rtt + (uint64_t)rvt_slow(500));
	ck_assert_int_eq(reeve_write(s, "ping", 4), 4);
	ck_assert_int_eq(reeve_shut(s), 0);
	want_answer(s, "pong");
	reeve_close(s);
	pthread_join(v.thread, NULL);
	ck_assert_int_eq(v.rc, 0);
	rvt_divorce(&n);
}
END_TEST

/* What the peer answers, how that ends and the reason's id. */
static const struct {
	const char *said;
	size_t n;
	bool fin;
	int rc, lazy;
	const char *id;
} answers[] = {
#define ROW(text, fin, rc, lazy, id)                      \
	{                                                 \
		text, sizeof(text) - 1, fin, rc, lazy, id \
	}
    ROW(HEADER HEADER ECHO, false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0003"),
    ROW(ECHO, false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0005"),
    ROW(HEADER, true, REEVE_ENOPROTO, REEVE_ETRUNC, "REEVE-MS-0007"),
    ROW(HEADER NA NA NA NA NA NA, false, REEVE_ENOPROTO, REEVE_ENOPROTO, "REEVE-MS-0001"),
    ROW(NA NA NA NA NA NA NA, false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0005"),
    ROW("\x13/multistream/2.0.0\n" ECHO, false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0005"),
    ROW(HEADER "\x07/other\n", false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0003"),
    ROW(HEADER "\x08/echo/1 ", false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0004"),
    ROW(HEADER "\xff\xff\x03", false, REEVE_EPROTO, REEVE_EPROTO, "REEVE-MS-0006"),
};
#define ANSWERS (int)(sizeof(answers) / sizeof(answers[0]))

START_TEST(scenario_109_each_wrong_answer_has_its_reason)
{
	reeve_reason_t why = {.size = sizeof(why)};
	bool lazy = _i / ANSWERS;
	reeve_stream_t *s;
	reeve_ssize rc;
	reeve_op_t op;
	char c;

	mplex = _i & 1;
	_i %= ANSWERS;
	open_raw(mplex ? REEVE_LISTENER : REEVE_DIALER);
	s = outbound();
	reeve_op_init(&op, NULL, NULL);
	op.timeout_ms = rvt_slow(RVT_WAIT_MS);
	reeve_negotiate_async(s, lazy ? LAZY : REEVE_DIALER, names, 1, &op);
	if (lazy) {
		ck_assert_int_eq(reeve_op_wait(&op), 0);
		ck_assert_str_eq(reeve_stream_proto(s), "/echo/1");
		ck_assert_int_eq(reeve_write(s, hundred, 1), 1);
		hear(s, HEADER ECHO "x", 30);
	} else {
		hear(s, HEADER ECHO, 29);
	}
	tell(s, answers[_i].said, answers[_i].n, answers[_i].fin);
	rc = lazy ? reeve_read(s, &c, 1) : reeve_op_wait(&op);
	ck_assert_int_eq(rc, lazy ? answers[_i].lazy : answers[_i].rc);
	ck_assert_int_eq(reeve_read(s, &c, 1), rc);
	ck_assert_int_eq(reeve_write(s, &c, 1), rc);
	ck_assert_int_eq(reeve_stream_reason(s, &why), 0);
	ck_assert_int_eq(why.rc, rc);
	ck_assert_str_eq(why.id, answers[_i].id);
	ck_assert_ptr_null(reeve_stream_proto(s));
	hear_end(s, lazy || rc != REEVE_ENOPROTO);
	if (!lazy && rc == REEVE_ENOPROTO && !answers[_i].fin) {
		TELL(s, NA NA, false); /* for ever: who goes on is cut off */
		hear_end(s, true);
	}
	reeve_close(s);
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 111 */

#define GUESTS 200

static const struct {
	const char *said;
	size_t n;
} stalls[] = {
    {"", 0}, {HEADER, 9}, {HEADER, 20}, {HEADER "\x08/echo/1", 28}, {HEADER "\x07/never\n", 28}};

static void
guests(uint32_t first)
{
	static reeve_stream_t *s[GUESTS];
	static reeve_op_t op[GUESTS];
	uint32_t id;

	for (uint32_t i = 0; i < GUESTS; i++) {
		id = first + 2 * i;
		rvt_put(&r.p.out, RVT_DATA, RVT_SYN, id, (uint32_t)stalls[i % 5].n);
		memcpy(
		    rvt_bytes_more(&r.p.out, stalls[i % 5].n), stalls[i % 5].said, stalls[i % 5].n);
	}
	rvt_peer_send(&r.p);
	for (uint32_t i = 0; i < GUESTS; i++) {
		ck_assert_int_eq(reeve_accept(r.k, &s[i], rvt_slow(RVT_WAIT_MS)), 0);
		rvt_peer_receive(&r.p);
		reeve_op_init(&op[i], NULL, NULL);
		op[i].timeout_ms = rvt_scale() >= 100 ? -1 : 100; /* the default is 10 s */
		reeve_negotiate_async(s[i], REEVE_LISTENER, names, 1, &op[i]);
	}
	for (uint32_t i = 0; i < GUESTS; i++) {
		ck_assert_int_eq(reeve_op_wait(&op[i]), REEVE_ETIMEDOUT);
		reeve_close(s[i]);
	}
	/* The peer reads: a socket has room for a few hundred small writes only. */
	while (rvt_stats(r.k).streams_open != 0)
		rvt_peer_receive(&r.p);
	rvt_peer_barrier(&r.p);
	r.p.in.at = r.p.in.n;
}

/* Streams whose negotiation never ends are reset at its timeout, and hold nothing afterwards: the third crowd finds as
 * much as the second. */
START_TEST(scenario_111_what_never_ends_is_reset_and_holds_nothing)
{
	struct rvt_alloc alloc;
	uint64_t held[3], resets;
	reeve_rt_cfg_t cfg;
	int v[2];

	memset(&r, 0, sizeof(r));
	mplex = false;
	rvt_alloc_init(&alloc);
	rvt_unix_pair(v);
	reeve_rt_cfg_init(&cfg);
	cfg.workers = 1;
	cfg.alloc = alloc.a;
	ck_assert_int_eq(reeve_rt_create(&r.rt, &cfg), 0);
	rvt_peer_init(&r.p, v[1]);
	ck_assert_int_eq(reeve_conn_open_fd(&r.c, r.rt, v[0], REEVE_LISTENER, NULL), 0);
	r.k = reeve_conn_ctl(r.c);
	for (uint32_t i = 0; i < 3; i++) {
		resets = rvt_stats(r.k).resets_out;
		guests(1 + 2 * GUESTS * i);
		ck_assert_uint_eq(rvt_stats(r.k).resets_out - resets, GUESTS);
		held[i] = (uint64_t)rvq_gauge_get(&alloc.bytes);
	}
	ck_assert_uint_lt(held[2], held[1] + 65536); /* blocks come and go */
	rvt_raw_fini(&r);
	rvt_alloc_check(&alloc);
}
END_TEST

/* A socket that takes connections and is silent: a dial says that it was the negotiation, and which step. */
START_TEST(scenario_111_a_dial_of_a_silent_peer_says_so)
{
	static const uint8_t key[32] = {1};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_upgrade_t u = {.size = sizeof(u), .timeout_ms = 50, .why = &why};
	struct rvt_base base = rvt_base();
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char addr[150];
	reeve_conn_t *c;
	reeve_cfg_t cfg;
	reeve_rt_t *rt;

	if (_i) {
		u.security = REEVE_PLAINTEXT;
		u.key = key;
	}
	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/reeve-nego-%d", (int)getpid());
	snprintf(addr, sizeof(addr), "unix://%s", un.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_dial(&c, rt, addr, &cfg, -1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(why.rc, REEVE_ETIMEDOUT);
	ck_assert_str_eq(why.id, _i ? "REEVE-UP-SECURITY" : "REEVE-UP-MUXER");
	reeve_rt_destroy(rt);
	close(fd);
	unlink(un.sun_path);
	rvt_base_check(&base);
}
END_TEST

/* --- 113 */

/* A good message of the peer, with one byte of it changed (at 0: none); expect: somebody else was dialed. */
static const struct {
	unsigned at, to;
	bool expect;
	int rc;
} lies[] = {
    {0, 0, false, 0}, {0, 0, true, REEVE_EIDENTITY}, /* honest, but another one */
    {10, 9, false, REEVE_EIDENTITY},                 /* the id is not the key's */
    {50, 9, false, REEVE_EIDENTITY},                 /* the key is not the id's */
    {1, 0x12, false, REEVE_EPROTO},                  /* no id */
    {41, 0x1a, false, REEVE_EPROTO},                 /* no key: an unknown field */
    {44, 0x00, false, REEVE_ENOTSUP},                /* RSA */
    {44, 0x03, false, REEVE_ENOTSUP},                /* ECDSA */
    {44, 0x09, false, REEVE_ENOTSUP},                /* nobody knows */
    {3, 0x12, false, REEVE_EPROTO},                  /* a hash of a wrong length */
    {200, 0, false, REEVE_EPROTO},                   /* length 0 */
    {201, 0, false, REEVE_EPROTO},                   /* length 10 MB */
};

START_TEST(scenario_113_wrong_and_malformed_identities_are_told_apart)
{
	static const uint8_t own[32] = {1};
	uint8_t m[38 + 79] = "\x13/multistream/1.0.0\n\x11/plaintext/2.0.0\n", *x = m + 38;
	reeve_upgrade_t u = {
	    .size = sizeof(u), .security = REEVE_PLAINTEXT, .key = own, .timeout_ms = 200};
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_base base = rvt_base();
	reeve_conn_t *c;
	reeve_cfg_t cfg;
	reeve_rt_t *rt;
	int v[2];

	memcpy(x, "\x4e\x0a\x26\x00\x24\x08\x01\x12\x20", 9);
	memset(x + 9, 7, 70);
	memcpy(x + 41, "\x12\x24\x08\x01\x12\x20", 6);
	if (lies[_i].at == 200)
		x[0] = 0;
	else if (lies[_i].at == 201)
		memcpy(x, "\x80\xad\xe2\x04", 4);
	else if (lies[_i].at != 0)
		x[lies[_i].at] = (uint8_t)lies[_i].to;
	if (lies[_i].expect)
		u.expect = "12D3KooWA1bJVdQgJmK8iA5jJkDaYGxAvU6ESd7NCJYHJq3R9w2s";
	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	rvt_unix_pair(v);
	ck_assert_int_eq(write(v[1], m, sizeof(m)), sizeof(m));
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&c, rt, v[0], REEVE_DIALER, &cfg), 0);
	/* a good one goes on to the next step, which is silent here */
	ck_assert_int_eq(reeve_ready(reeve_conn_ctl(c), rvt_slow(RVT_WAIT_MS)),
	    lies[_i].rc == 0 ? REEVE_ETIMEDOUT : lies[_i].rc);
	ck_assert_int_eq(reeve_ctl_reason(reeve_conn_ctl(c), &why), 0);
	ck_assert_str_eq(why.id, lies[_i].rc == 0 ? "REEVE-UP-MUXER" : "REEVE-UP-IDENTITY");
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	close(v[1]);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios_negotiation", {&scenario_106_the_end_leaves_with_the_first_bytes, 4},
    {&scenario_106_a_lazy_request_takes_one_round_trip, 2},
    {&scenario_107_nothing_of_a_negotiation_stays_behind, 16},
    {&scenario_109_each_wrong_answer_has_its_reason, 2 * ANSWERS},
    {&scenario_111_what_never_ends_is_reset_and_holds_nothing, 0},
    {&scenario_111_a_dial_of_a_silent_peer_says_so, 2},
    {&scenario_113_wrong_and_malformed_identities_are_told_apart,
	(int)(sizeof(lies) / sizeof(lies[0]))})
