/* test_noise.c - two nodes of ours that speak Noise: who they believe, what they carry, what it costs. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

static struct rvt_nodes n;
static reeve_key_t *key[2];
static char id[2][80];

static void
keys(void)
{
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_key_generate(&key[i]), 0);
		ck_assert_int_gt(reeve_key_peer_id(key[i], id[i], 80), 0);
	}
}

static void
keys_away(void)
{
	reeve_key_free(key[0]);
	reeve_key_free(key[1]);
}

static reeve_upgrade_t
noise(int i, uint32_t muxer)
{
	return (reeve_upgrade_t){.size = sizeof(reeve_upgrade_t),
	    .security = REEVE_NOISE,
	    .muxers = {muxer},
	    .identity = key[i]};
}

/* Married; the keys are gone: the connections have what they need. */
static void
marry(enum rvt_via via, uint32_t muxer, unsigned chunk)
{
	struct rvt_wedding w = {.via = via, .chunk = chunk, .seed = rvt_seed()};
	reeve_upgrade_t up[2];
	reeve_cfg_t cfg[2];

	keys();
	for (int i = 0; i < 2; i++) {
		reeve_cfg_init(&cfg[i]);
		up[i] = noise(i, muxer);
		up[i].expect = via == RVT_PAIR ? NULL : id[1 - i];
		cfg[i].upgrade = &up[i];
		w.cfg[i] = &cfg[i];
	}
	rvt_marry(&n, &w);
	keys_away();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_ready(n.k[i], rvt_slow(RVT_WAIT_MS)), 0);
}

START_TEST(each_end_knows_the_other_on_every_transport)
{
	enum rvt_via via = (enum rvt_via)(_i / 2);
	uint32_t muxer = _i % 2 ? REEVE_MPLEX : REEVE_YAMUX;
	char text[80];

	marry(via, muxer, 1);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_proto(n.k[i]), (int)muxer);
		ck_assert_int_gt(reeve_peer_id(n.k[i], text, sizeof(text)), 0);
		ck_assert_str_eq(text, id[via == RVT_PAIR ? 0 : 1 - i]);
	}
	rvt_ask_and_answer(&n, via >= RVT_RECHUNK ? 5000 : 300000);
	rvt_part(&n);
}
END_TEST

/* Both ways at once, several streams, calls of all sizes. */
START_TEST(bulk_goes_both_ways)
{
	enum { STREAMS = 4 };
	enum rvt_via via = (enum rvt_via)(_i / 4);
	uint32_t muxer = _i % 4 < 2 ? REEVE_YAMUX : REEVE_MPLEX, seed = rvt_seed();
	reeve_stream_t *s[STREAMS][2];
	struct rvt_flow f[STREAMS][4];

	marry(via, muxer, 3000);
	memset(f, 0, sizeof(f));
	for (unsigned i = 0; i < STREAMS; i++) {
		rvt_stream_pair(&n, i % 2, s[i]);
		for (unsigned k = 0; k < 4; k++)
			f[i][k] = (struct rvt_flow){.kind = k % 2 ? RVT_FLOW_READ : RVT_FLOW_WRITE,
			    .s = s[i][(k + k / 2) % 2],
			    .total = via >= RVT_RECHUNK ? 200000 : 3000000,
			    .key = i * 2 + k / 2,
			    .seed = seed + i,
			    .max = i == 0 ? 100 : 200000,
			    .rt = _i % 2 ? n.rt[(k + k / 2) % 2] : NULL};
		if (f[i][0].max == 100)
			for (unsigned k = 0; k < 4; k++)
				f[i][k].total = 20000;
		for (unsigned k = 0; k < 4; k++)
			rvt_flow_start(&f[i][k]);
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		for (unsigned k = 0; k < 4; k++)
			rvt_flow_end(&f[i][k]);
		rvt_close_both(s[i]);
	}
	rvt_settled_clean(&n);
	rvt_part(&n);
}
END_TEST

START_TEST(thousands_of_streams_are_carried)
{
	enum { STREAMS = 2000 };
	static reeve_stream_t *s[STREAMS][2];
	uint8_t b[4];

	marry(RVT_TCP, REEVE_YAMUX, 0);
	for (unsigned i = 0; i < STREAMS; i++) {
		rvt_stream_pair(&n, 0, s[i]);
		ck_assert_int_eq(reeve_write(s[i][0], &i, sizeof(i)), sizeof(i));
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		ck_assert_int_eq(reeve_read(s[i][1], b, 4), 4);
		ck_assert_mem_eq(b, &i, 4);
		ck_assert_int_eq(reeve_write(s[i][1], b, 4), 4);
		ck_assert_int_eq(reeve_read(s[i][0], b, 4), 4);
		ck_assert_mem_eq(b, &i, 4);
		rvt_close_both(s[i]);
	}
	rvt_settled_clean(&n);
	rvt_part(&n);
}
END_TEST

/* --- who is refused */

static int
dial(reeve_upgrade_t *a, reeve_upgrade_t *b, reeve_reason_t *why)
{
	reeve_listener_t *l;
	reeve_conn_t *c = NULL;
	reeve_cfg_t cfg[2];
	char addr[128];
	reeve_rt_t *rt;
	int rc;

	for (int i = 0; i < 2; i++)
		reeve_cfg_init(&cfg[i]);
	cfg[0].upgrade = a;
	cfg[1].upgrade = b;
	a->why = why;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_listen(&l, rt, "tcp://127.0.0.1:0", &cfg[1]), 0);
	ck_assert_int_gt(reeve_listener_addr(l, addr, sizeof(addr)), 0);
	rc = reeve_dial(&c, rt, addr, &cfg[0], rvt_slow(RVT_WAIT_MS));
	ck_assert_int_eq(c != NULL, rc == 0);
	if (rc == 0)
		reeve_conn_destroy(c);
	reeve_listener_destroy(l);
	reeve_rt_destroy(rt);
	return rc;
}

START_TEST(each_failure_names_its_step)
{
	reeve_reason_t why = {0};
	reeve_upgrade_t a, b, plain, none;

	keys();
	a = noise(0, 0);
	b = noise(1, 0);
	plain = b;
	plain.security = REEVE_PLAINTEXT; /* with identity's public half */
	none = b;
	none.security = REEVE_SECURITY_NONE;
	ck_assert_int_eq(dial(&a, &b, &why), 0);
	ck_assert_int_eq(dial(&plain, &plain, &why), 0);
	ck_assert_int_eq(dial(&a, &plain, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-SECURITY");
	ck_assert_int_eq(dial(&plain, &a, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-SECURITY");
	ck_assert_int_eq(dial(&a, &none, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-SECURITY");
	b.muxers[0] = REEVE_YAMUX;
	a.muxers[0] = REEVE_MPLEX;
	ck_assert_int_eq(dial(&a, &b, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-MUXER");
	a.muxers[0] = REEVE_YAMUX;
	a.expect = id[0];
	ck_assert_int_eq(dial(&a, &b, &why), REEVE_EIDENTITY);
	ck_assert_str_eq(why.id, "REEVE-UP-IDENTITY");
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	a.expect = id[1];
	ck_assert_int_eq(dial(&a, &b, &why), 0);
	/* The listener expects somebody else: it is gone when the dialer's muxer is due. */
	b.expect = id[1];
	ck_assert_int_lt(dial(&a, &b, &why), 0);
	ck_assert_str_eq(why.id, "REEVE-UP-MUXER");
	keys_away();
}
END_TEST

START_TEST(what_is_asked_for_is_judged_at_once)
{
	reeve_upgrade_t u[4];
	reeve_conn_t *pair[2];
	reeve_cfg_t cfg;
	reeve_rt_t *rt;

	keys();
	for (int i = 0; i < 4; i++)
		u[i] = noise(0, 0);
	u[0].identity = NULL;
	u[1].security = 3;
	u[2].expect = "nobody";
	/* A caller whose header ended before identity. */
	u[3].size = offsetof(reeve_upgrade_t, identity);
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	reeve_cfg_init(&cfg);
	for (int i = 0; i < 4; i++) {
		cfg.upgrade = &u[i];
		ck_assert_int_eq(reeve_conn_pair(pair, rt, &cfg), REEVE_EINVAL);
	}
	u[3].security = REEVE_PLAINTEXT;
	u[3].key = reeve_key_public(key[0]);
	ck_assert_int_eq(reeve_conn_pair(pair, rt, &cfg), 0);
	reeve_conn_destroy(pair[0]);
	reeve_conn_destroy(pair[1]);
	reeve_rt_destroy(rt);
	keys_away();
}
END_TEST

/* --- what it costs */

/* Bodies of 2 KiB and more are decrypted where their reader finds them; of a buffer that is larger than a message at most
 * the little piece behind the message's end is copied on its way out. */
START_TEST(large_bodies_are_not_copied)
{
	enum { PIECE = 65536, PIECES = 100 };
	reeve_stream_t *s[2];
	struct rvt_flow r = {.kind = RVT_FLOW_READ, .total = (uint64_t)PIECES * PIECE};
	reeve_stats_t st[2];
	reeve_buf_t *b;

	marry(_i ? RVT_TCP : RVT_UNIX, REEVE_YAMUX, 0);
	rvt_stream_pair(&n, 0, s);
	r.s = s[1];
	r.rt = n.rt[1];
	rvt_flow_start(&r);
	for (uint64_t i = 0; i < PIECES; i++) {
		b = reeve_buf_alloc(n.rt[0], PIECE);
		for (uint64_t k = 0; k < PIECE; k++)
			((uint8_t *)reeve_buf_mut(b))[k] = rvt_byte(0, i * PIECE + k);
		ck_assert_int_eq(reeve_write_buf(s[0], b), PIECE);
	}
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	rvt_flow_end(&r);
	for (int i = 0; i < 2; i++)
		st[i] = rvt_stats(n.k[i]);
	ck_assert_uint_lt(st[0].bytes_copied_out, r.total / 50);
	ck_assert_uint_lt(st[1].bytes_copied_in, r.total / 50);
	rvt_close_both(s);
	rvt_part(&n);
}
END_TEST

START_TEST(idle_connections_hold_little)
{
	reeve_stats_t a = {.size = sizeof(a)};
	reeve_stream_t *s[2];

	marry(RVT_TCP, REEVE_YAMUX, 0);
	rvt_stream_pair(&n, 0, s);
	rvt_want_write(s[0], 100000, 0);
	rvt_want_read(s[1], 100000, 0);
	ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), 0);
	ck_assert_uint_eq(rvt_stats(n.k[1]).held, 0);
	ck_assert_int_eq(reeve_rt_stats(n.rt[1], &a), 0);
	ck_assert_uint_eq(a.held, 0);
	rvt_close_both(s);
	rvt_part(&n);
}
END_TEST

START_TEST(an_abort_in_the_middle_leaves_nothing)
{
	reeve_stream_t *s[2];
	struct rvt_flow f = {.kind = RVT_FLOW_WRITE, .total = 1u << 30};

	marry((enum rvt_via)_i, REEVE_YAMUX, 3000);
	rvt_stream_pair(&n, 0, s);
	f.s = s[0];
	rvt_flow_start(&f);
	rvt_want_read(s[1], 100000, 0);
	reeve_conn_destroy(n.c[_i % 2]);
	n.c[_i % 2] = NULL;
	rvt_flow_join(&f);
	ck_assert_int_lt(f.rc, 0);
	rvt_close_both(s);
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("noise", {&each_end_knows_the_other_on_every_transport, 2 * RVT_VIAS},
    {&bulk_goes_both_ways, 4 * RVT_VIAS}, {&thousands_of_streams_are_carried, 0},
    {&each_failure_names_its_step, 0}, {&what_is_asked_for_is_judged_at_once, 0},
    {&large_bodies_are_not_copied, 2}, {&idle_connections_hold_little, 0},
    {&an_abort_in_the_middle_leaves_nothing, RVT_VIAS})
