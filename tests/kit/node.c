/* node.c - see node.h. */
#include <config.h>

#include "tests/kit/node.h"
#include "tests/kit/flow.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/sock.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const rvt_via_name[RVT_VIAS] = {
    "pair", "memory", "unix", "tcp", "socketpair", "rechunk", "rechunk with a thread"};

/* --- scratch addresses */

static char folder[64];
static unsigned serial;

void
rvt_scratch(enum rvt_via via, char *out, size_t n)
{
	const char *tmp = getenv("TMPDIR");

	serial++;
	if (via == RVT_TCP) {
		snprintf(out, n, "tcp://127.0.0.1:0");
	} else if (via == RVT_MEMORY) {
		snprintf(out, n, "mem://test-%ld-%u", (long)getpid(), serial);
	} else {
		if (folder[0] == '\0') {
			if (tmp == NULL || strlen(tmp) > 32)
				tmp = "/tmp";
			snprintf(folder, sizeof(folder), "%s/reeve-XXXXXX", tmp);
			ck_assert_ptr_nonnull(mkdtemp(folder));
		}
		snprintf(out, n, "unix://%s/s%u", folder, serial);
	}
}

void
rvt_scratch_end(void)
{
	if (folder[0] != '\0')
		rmdir(folder);
	folder[0] = '\0';
}

/* --- joining */

static reeve_rt_t *
runtime(unsigned workers)
{
	reeve_rt_t *rt = NULL;
	reeve_rt_cfg_t cfg;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = workers != 0 ? workers : 1;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), 0);
	return rt;
}

/* A line to a TCP address: addr becomes the line's. */
static void
through_line(struct rvt_nodes *n, const struct rvt_wedding *w, char *addr, size_t size)
{
	struct rvt_line_cfg cfg = *w->line;

	ck_assert_int_eq(w->via, RVT_TCP);
	cfg.to = addr + strlen("tcp://");
	n->line = rvt_line_start(&cfg);
	ck_assert_ptr_nonnull(n->line);
	snprintf(addr, size, "tcp://%s", rvt_line_addr(n->line));
}

static void
by_address(struct rvt_nodes *n, const struct rvt_wedding *w)
{
	reeve_listener_t *l = NULL;
	char addr[128];

	rvt_scratch(w->via, addr, sizeof(addr));
	ck_assert_int_eq(reeve_listen(&l, n->rt[1], addr, w->cfg[1]), 0);
	ck_assert_int_gt(reeve_listener_addr(l, addr, sizeof(addr)), 0);
	if (w->line != NULL)
		through_line(n, w, addr, sizeof(addr));
	ck_assert_int_eq(reeve_dial(&n->c[0], n->rt[0], addr, w->cfg[0], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_listener_accept(l, &n->c[1], rvt_slow(RVT_WAIT_MS)), 0);
	reeve_listener_destroy(l);
	rvt_scratch_end();
}

static void
by_socketpair(struct rvt_nodes *n, const struct rvt_wedding *w)
{
	reeve_transport_t t;
	int v[2], role;

	rvt_unix_pair(v);
	n->rechunked = w->via != RVT_SOCKETPAIR;
	for (int i = 0; i < 2; i++) {
		role = i == 0 ? REEVE_DIALER : REEVE_LISTENER;
		if (!n->rechunked) {
			ck_assert_int_eq(
			    reeve_conn_open_fd(&n->c[i], n->rt[i], v[i], role, w->cfg[i]), 0);
			continue;
		}
		n->re[i].fd = v[i];
		n->re[i].n = w->chunk != 0 ? w->chunk : 7;
		n->re[i].own_thread = w->via == RVT_RECHUNK_THREAD;
		n->re[i].seed = w->seed + (uint32_t)i;
		rvt_rechunk_init(&n->re[i], &t);
		ck_assert_int_eq(reeve_conn_open(&n->c[i], n->rt[i], &t, role, w->cfg[i]), 0);
	}
}

/* With REEVE_TEST_NOISE in the environment: the same configurations, and Noise. */
struct veil {
	struct rvt_wedding w;
	reeve_cfg_t cfg[2];
	reeve_upgrade_t up[2];
	reeve_key_t *key;
};

static bool
veiled(struct veil *v, const struct rvt_wedding *w)
{
	uint32_t proto[2];
	int i;

	v->w = *w;
	v->key = NULL;
	for (i = 0; i < 2; i++)
		if (w->cfg[i] != NULL && w->cfg[i]->upgrade != NULL)
			return false;
	if (getenv("REEVE_TEST_NOISE") == NULL || reeve_key_generate(&v->key) < 0)
		return false;
	for (i = 0; i < 2; i++) {
		reeve_cfg_init(&v->cfg[i]);
		if (w->cfg[i] != NULL)
			v->cfg[i] = *w->cfg[i];
		proto[i] = v->cfg[i].proto != 0 ? v->cfg[i].proto : REEVE_YAMUX;
		v->up[i] = (reeve_upgrade_t){.size = sizeof(v->up[i]),
		    .security = REEVE_NOISE,
		    .muxers = {proto[i]},
		    .identity = v->key};
		v->cfg[i].upgrade = &v->up[i];
		v->w.cfg[i] = &v->cfg[i];
	}
	return true;
}

void
rvt_marry(struct rvt_nodes *n, const struct rvt_wedding *given)
{
	struct veil v;
	bool wait = veiled(&v, given);
	const struct rvt_wedding *w = &v.w;

	memset(n, 0, sizeof(*n));
	n->base = rvt_base();
	n->rt[0] = runtime(w->workers);
	n->rt[1] = w->one_rt || w->via == RVT_PAIR ? n->rt[0] : runtime(w->workers);
	if (w->via == RVT_PAIR)
		ck_assert_int_eq(reeve_conn_pair(n->c, n->rt[0], w->cfg[0]), 0);
	else if (w->via <= RVT_TCP)
		by_address(n, w);
	else
		by_socketpair(n, w);
	for (int i = 0; i < 2; i++)
		n->k[i] = reeve_conn_ctl(n->c[i]);
	for (int i = 0; wait && i < 2; i++)
		ck_assert_int_eq(reeve_ready(n->k[i], rvt_slow(RVT_WAIT_MS)), 0);
	reeve_key_free(v.key);
}

void
rvt_divorce(struct rvt_nodes *n)
{
	reeve_conn_destroy(n->c[0]);
	reeve_conn_destroy(n->c[1]);
	if (n->rt[1] != n->rt[0])
		reeve_rt_destroy(n->rt[1]);
	reeve_rt_destroy(n->rt[0]);
	rvt_line_stop(n->line);
	for (int i = 0; i < 2 && n->rechunked; i++) {
		ck_assert(n->re[i].closed);
		rvt_rechunk_fini(&n->re[i]);
	}
	rvt_base_check(&n->base);
}

void
rvt_part(struct rvt_nodes *n)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .c = n->c[1], .timeout_ms = rvt_slow(5000)};

	rvt_call_start(&c);
	ck_assert_int_eq(reeve_conn_close(n->c[0], rvt_slow(5000)), 0);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_divorce(n);
}

void
rvt_stream_pair(struct rvt_nodes *n, int end, reeve_stream_t *s[2])
{
	int ms = rvt_slow(RVT_WAIT_MS);

	ck_assert_int_eq(reeve_open(n->k[end], &s[end], ms), 0);
	ck_assert_int_eq(reeve_accept(n->k[1 - end], &s[1 - end], ms), 0);
	ck_assert_uint_eq(reeve_stream_id(s[0]), reeve_stream_id(s[1]));
}

void
rvt_close_both(reeve_stream_t *s[2])
{
	reeve_close(s[0]);
	reeve_close(s[1]);
}

void
rvt_settled(struct rvt_nodes *n)
{
	rvt_no_streams(n->k[0]);
	rvt_no_streams(n->k[1]);
}

void
rvt_settled_clean(struct rvt_nodes *n)
{
	rvt_settled(n);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(rvt_stats(n->k[i]).resets_out, 0);
}

void
rvt_ask_and_answer(struct rvt_nodes *n, uint32_t size)
{
	struct rvt_flow w = {.kind = RVT_FLOW_WRITE, .total = size, .seed = 1};
	reeve_stream_t *s[2];
	uint8_t byte = 0;

	rvt_stream_pair(n, 0, s);
	rvt_want_write(s[0], 1000, 0);
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	ck_assert_int_eq(reeve_write(s[0], &byte, 1), REEVE_ESHUT);
	rvt_want_read(s[1], 1000, 0);
	rvt_want_rc(s[1], 0);
	w.s = s[1];
	w.key = (uint32_t)reeve_stream_id(s[1]);
	rvt_flow_start(&w);
	rvt_want_read(s[0], size, 0);
	rvt_want_rc(s[0], 0);
	rvt_flow_end(&w);
	rvt_close_both(s);
	rvt_settled_clean(n);
}
