/* test_mplex.c - connections of mplex against a scripted peer: readers that hold up the others, ends, what the protocol
 * does not have. */
#include <config.h>

#include "tests/kit/alloc.h"
#include "actors/connection.h"
#include "tests/kit/mplex_peer.h"
#include "tests/kit/node.h"
#include "tests/kit/run.h"

#include <sched.h>
#include <stdlib.h>

#define WINDOW (256u << 10)

static struct rvt_raw r;
static reeve_cfg_t cfg;

static reeve_reason_t
why(reeve_stream_t *s)
{
	reeve_reason_t out = {.size = sizeof(out)};

	ck_assert_int_eq(reeve_stream_reason(s, &out), 0);
	return out;
}

static void
parsed(uint64_t n)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (rvt_stats(r.k).bytes_in < n) {
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		sched_yield();
	}
}

static void
ended(void)
{
	reeve_op_t op;

	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(r.k, &op);
	(void)reeve_op_wait(&op);
}

/* --- slow readers */

/* Its stream is reset, with a reason of its own behind the bytes; the others go on. */
START_TEST(slow_reader_is_told_and_the_others_go_on)
{
	uint64_t start = rvt_now_ms();
	reeve_stream_t *a, *b;
	uint8_t byte = 0;

	rvt_mpp_cfg(&cfg);
	cfg.slow_ms = 200;
	cfg.flags = _i ? REEVE_CFG_SLOW_RESET : 0;
	rvt_mpp_open(&r, &cfg);
	a = rvt_mpp_inbound(&r, 0);
	b = rvt_mpp_inbound(&r, 1);
	rvt_mpp_queue(&r, RVT_MP_DATA_I, 0, WINDOW + 100000, 0);
	rvt_mpp_queue(&r, RVT_MP_DATA_I, 1, 1000, 0);
	rvt_peer_send(&r.p);
	rvt_want_read(b, 1000, 0);
	if (!_i)
		ck_assert_uint_ge(rvt_now_ms() - start, 199);
	rvt_mpp_want(&r, RVT_MP_RESET_R, 0);
	ck_assert_int_eq(reeve_write(a, &byte, 1), REEVE_ELIMIT);
	rvt_want_read(a, WINDOW, 0);
	rvt_want_rc(a, REEVE_ELIMIT);
	ck_assert_int_eq(why(a).rc, REEVE_ELIMIT);
	ck_assert_uint_eq(why(a).by, REEVE_BY_US);
	ck_assert_str_eq(why(a).id, "REEVE-MPLEX-0009");
	reeve_close(a);
	rvt_mpp_data(&r, RVT_MP_DATA_I, 0, 5000, 0); /* late: skipped */
	rvt_want_write(b, 3000, 0);
	rvt_mpp_want_bytes(&r, RVT_MP_DATA_R, 1, 3000, 0);
	rvt_mpp_data(&r, RVT_MP_DATA_I, 1, 1000, 1000);
	rvt_want_read(b, 1000, 1000);
	ck_assert_uint_eq(rvt_stats(r.k).resets_out, 1);
	reeve_close(b);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(reader_that_keeps_up_loses_nothing)
{
	struct rvt_call c = {.kind = RVT_CALL_READ};
	uint8_t *p = malloc(4u << 20);
	reeve_stream_t *s;

	rvt_mpp_cfg(&cfg);
	cfg.flags = _i ? 0 : REEVE_CFG_SLOW_RESET;
	cfg.max_window = _i ? 16384 : 0;
	rvt_mpp_open(&r, &cfg);
	s = rvt_mpp_inbound(&r, 0);
	for (uint32_t at = 0; at < 4u << 20; at += 128u << 10) {
		c.s = s;
		c.p = p;
		c.n = 1;
		rvt_call_start(&c);
		rvt_mpp_data(&r, RVT_MP_DATA_I, 0, 128u << 10, at);
		ck_assert_int_eq(rvt_call_end(&c), 1);
		rvt_want_read(s, (128u << 10) - 1, at + 1);
	}
	ck_assert_uint_eq(rvt_stats(r.k).resets_out, 0);
	reeve_close(s);
	free(p);
	rvt_raw_fini(&r);
}
END_TEST

enum { BY_READ, BY_CLOSE, BY_STOP, BY_RESET, BY_DROP, BY_ASYNC, BYS };

START_TEST(end_of_the_slow_stream_lets_the_others_go_on)
{
	reeve_stream_t *a, *b;
	reeve_op_t op;

	rvt_mpp_cfg(&cfg);
	cfg.slow_ms = REEVE_OFF;
	rvt_mpp_open(&r, &cfg);
	a = rvt_mpp_inbound(&r, 0);
	b = rvt_mpp_inbound(&r, 1);
	rvt_mpp_queue(&r, RVT_MP_DATA_I, 0, WINDOW + 50000, 0);
	rvt_mpp_queue(&r, RVT_MP_DATA_I, 1, 1000, 0);
	rvt_peer_send(&r.p);
	parsed(WINDOW);
	ck_assert_int_eq(reeve_deadline(b, REEVE_RD, 20), 0);
	rvt_want_rc(b, REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_deadline(b, REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
	switch (_i) {
	case BY_READ:
		rvt_want_read(a, WINDOW, 0);
		break;
	case BY_STOP:
		ck_assert_int_eq(reeve_stop(a), 0);
		break;
	case BY_RESET:
		ck_assert_int_eq(reeve_reset(a, 0), 0);
		break;
	case BY_ASYNC:
		for (uint32_t got = 0; got < WINDOW; reeve_buf_unref(op.buf)) {
			reeve_op_init(&op, NULL, NULL);
			reeve_read_async(a, &op);
			ck_assert_int_gt(reeve_op_wait(&op), 0);
			got += (uint32_t)op.res;
		}
		break;
	case BY_CLOSE:
		reeve_close(a);
		break;
	default:
		reeve_stream_unref(a);
		break;
	}
	rvt_want_read(b, 1000, 0);
	if (_i == BY_READ)
		rvt_want_read(a, 50000, WINDOW);
	if (_i != BY_CLOSE && _i != BY_DROP)
		reeve_close(a);
	reeve_close(b);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(bound_of_the_connection_does_not_stop_it_for_ever)
{
	uint32_t frame = _i ? 100 : 65536;
	reeve_stream_t *s[40], *b;

	rvt_mpp_cfg(&cfg);
	cfg.slow_ms = 20;
	cfg.max_recv = 1u << 20;
	rvt_mpp_open(&r, &cfg);
	for (unsigned i = 0; i < 40; i++) {
		s[i] = rvt_mpp_inbound(&r, i);
		for (uint32_t at = 0, n; at < 130000; at += n) {
			n = 130000 - at < frame ? 130000 - at : frame;
			rvt_mpp_queue(&r, RVT_MP_DATA_I, i, n, at);
		}
		rvt_peer_send(&r.p);
	}
	b = rvt_mpp_inbound(&r, 100);
	rvt_mpp_data(&r, RVT_MP_DATA_I, 100, 100000, 0);
	rvt_want_read(b, 100000, 0);
	ck_assert_uint_gt(rvt_stats(r.k).resets_out, 20);
	ck_assert_uint_le(rvt_stats(r.k).unread, 1u << 20);
	for (unsigned i = 0; i < 40; i++)
		reeve_close(s[i]);
	rvt_mpp_data(&r, RVT_MP_DATA_I, 100, 100000, 100000);
	rvt_want_read(b, 100000, 100000);
	reeve_close(b);
	rvt_raw_fini(&r);
}
END_TEST

/* Streams that were reset as slow are never read nor closed: the memory that they hold has an end. */
START_TEST(forgotten_handles_hold_bounded_memory)
{
	static reeve_stream_t *s[100];
	uint64_t held = 0;
	reeve_stream_t *b;
	reeve_ssize got;
	uint8_t *p = malloc(65536);

	rvt_mpp_cfg(&cfg);
	cfg.flags = REEVE_CFG_SLOW_RESET;
	cfg.max_recv = 1u << 20;
	rvt_mpp_open(&r, &cfg);
	b = rvt_mpp_inbound(&r, 1000);
	for (unsigned i = 0; i < 100; i++) {
		s[i] = rvt_mpp_inbound(&r, i);
		rvt_mpp_data(&r, RVT_MP_DATA_I, i, WINDOW + 1, 0);
		rvt_mpp_want(&r, RVT_MP_RESET_R, i);
	}
	for (unsigned i = 0; i < 20; i++) { /* who reads goes on */
		rvt_mpp_data(&r, RVT_MP_DATA_I, 1000, 10000, 10000 * i);
		rvt_want_read(b, 10000, 10000 * i);
	}
	for (unsigned i = 0; i < 100; i++) {
		for (; (got = reeve_read(s[i], p, 65536)) > 0; held += (uint64_t)got)
			continue;
		ck_assert_int_eq(got, REEVE_ELIMIT);
		reeve_close(s[i]);
	}
	ck_assert_uint_le(held, 4u << 20);
	ck_assert_uint_ge(held, 1u << 20);
	reeve_close(b);
	free(p);
	rvt_raw_fini(&r);
}
END_TEST

/* --- memory that a runtime's connections share */

struct pair {
	reeve_conn_t *c[2];
	reeve_stream_t *s[2];
};

static void
pair_begin(struct pair *p, reeve_rt_t *rt, const reeve_cfg_t *c)
{
	ck_assert_int_eq(reeve_conn_pair(p->c, rt, c), 0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(p->c[0]), &p->s[0], -1), 0);
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(p->c[1]), &p->s[1], -1), 0);
	ck_assert_int_eq(reeve_deadline(p->s[0], REEVE_WR, 100), 0);
	ck_assert_int_eq(reeve_deadline(p->s[1], REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
}

static void
pair_end(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		reeve_close(p->s[i]);
		reeve_conn_destroy(p->c[i]);
	}
}

static void
write_all(reeve_stream_t *s)
{
	static uint8_t big[65536];

	while (reeve_write(s, big, sizeof(big)) > 0)
		continue;
}

/* A connection of another protocol holds all the memory. */
static reeve_rt_t *
short_of_memory(struct pair *ours, struct pair *theirs, uint32_t slow_ms)
{
	reeve_rt_cfg_t rc;
	reeve_rt_t *rt;

	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	rc.max_buffered = 256u << 10;
	ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
	rvt_mpp_cfg(&cfg);
	cfg.slow_ms = slow_ms;
	pair_begin(ours, rt, &cfg);
	pair_begin(theirs, rt, NULL);
	write_all(theirs->s[0]);
	return rt;
}

START_TEST(memory_of_others_is_waited_for)
{
	struct pair ours, theirs;
	reeve_rt_t *rt = short_of_memory(&ours, &theirs, _i ? REEVE_OFF : 10);
	uint8_t text[6];

	ck_assert_int_eq(reeve_deadline(ours.s[0], REEVE_WR, rvt_slow(RVT_WAIT_MS)), 0);
	for (unsigned i = 0; i < 20; i++) { /* who reads goes on */
		ck_assert_int_eq(reeve_write(ours.s[0], "before", 6), 6);
		ck_assert_int_eq(reeve_read(ours.s[1], text, 6), 6);
		ck_assert_mem_eq(text, "before", 6);
	}
	for (uint64_t at = 0; at < 10000; at += 1000) /* who does not waits, unharmed */
		rvt_want_write(ours.s[0], 1000, at);
	ck_assert_int_eq(reeve_deadline(ours.s[0], REEVE_RD, 100), 0);
	rvt_want_rc(ours.s[0], REEVE_ETIMEDOUT);
	ck_assert_uint_lt(rvt_stats(reeve_conn_ctl(ours.c[1])).unread, 10000);
	ck_assert_int_eq(reeve_stop(theirs.s[1]), 0);
	while (rvt_stats(reeve_conn_ctl(ours.c[1])).unread != 10000) /* goes on by itself */
		sched_yield();
	rvt_want_read(ours.s[1], 10000, 0);
	ck_assert_uint_eq(rvt_stats(reeve_conn_ctl(ours.c[1])).resets_out, 0);
	pair_end(&ours);
	pair_end(&theirs);
	reeve_rt_destroy(rt);
}
END_TEST

/* --- ends */

/* The peer is gone while its bytes wait: all of them come, and then the end. */
START_TEST(end_behind_bytes_that_wait)
{
	reeve_stream_t *s;

	rvt_mpp_cfg(&cfg);
	cfg.slow_ms = REEVE_OFF;
	rvt_mpp_open(&r, &cfg);
	s = rvt_mpp_inbound(&r, 0);
	rvt_mpp_data(&r, RVT_MP_DATA_I, 0, WINDOW + 60000, 0);
	if (_i)
		rvt_mpp_put(&r, RVT_MP_CLOSE_I, 0, 0);
	parsed(WINDOW);
	rvt_peer_shut(&r.p);
	rvt_want_read(s, WINDOW + 60000, 0);
	rvt_want_rc(s, _i ? 0 : REEVE_EEND);
	rvt_mpp_want_end(&r);
	rvt_raw_want_reason(&r, REEVE_EEND, REEVE_BY_PEER);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(what_breaks_the_protocol_ends_the_connection)
{
	static const struct {
		const char *id;
		uint8_t n, bytes[4];
	} t[] = {{"REEVE-MPLEX-0002", 2, {0x07, 0x00}}, {"REEVE-MPLEX-0001", 2, {0x82, 0x00}},
	    {"REEVE-MPLEX-0004", 4, {0x02, 0x81, 0x80, 0x40}},
	    {"REEVE-MPLEX-0003", 2, {0x00, 0x00}}};
	reeve_reason_t out = {.size = sizeof(out)};
	reeve_stream_t *s;

	rvt_mpp_open(&r, NULL);
	s = rvt_mpp_inbound(&r, 0);
	rvt_mpp_queue(&r, RVT_MP_DATA_I, 0, 1000, 0);
	memcpy(rvt_bytes_more(&r.p.out, t[_i].n), t[_i].bytes, t[_i].n);
	(void)rvt_peer_try_send(&r.p);
	ended();
	ck_assert_int_eq(reeve_ctl_reason(r.k, &out), 0);
	ck_assert_int_eq(out.rc, REEVE_EPROTO);
	ck_assert_str_eq(out.id, t[_i].id);
	rvt_want_read(s, 1000, 0); /* what came before it counts */
	rvt_want_rc(s, REEVE_EPROTO);
	rvt_mpp_want_end(&r);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(end_of_the_pipe_is_clean_between_frames_only)
{
	rvt_mpp_open(&r, NULL);
	rvt_mp_put(&r.p.out, RVT_MP_DATA_I, 500, _i == 2 ? 1 : 0);
	if (_i == 1)
		r.p.out.n = 1;
	rvt_peer_send(&r.p);
	rvt_peer_shut(&r.p);
	rvt_raw_want_reason(
	    &r, _i ? REEVE_ETRUNC : REEVE_EEND, _i ? REEVE_BY_TRANSPORT : REEVE_BY_PEER);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(graceful_close_loses_nothing)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = rvt_slow(5000)};
	uint32_t n = 200000;
	reeve_stream_t *s;

	rvt_mpp_open(&r, NULL);
	s = _i ? rvt_mpp_inbound(&r, 7) : rvt_mpp_outbound(&r);
	rvt_want_write(s, n, 0);
	reeve_close(s);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_mpp_want_bytes(&r, _i ? RVT_MP_DATA_R : RVT_MP_DATA_I, _i ? 7 : 0, n, 0);
	rvt_mpp_want(&r, _i ? RVT_MP_CLOSE_R : RVT_MP_CLOSE_I, _i ? 7 : 0);
	ck_assert(!rvt_call_done(&c)); /* the peer has not ended the stream */
	rvt_mpp_put(&r, RVT_MP_OPEN, 9, 0);
	rvt_mpp_want(&r, RVT_MP_RESET_R, 9);
	rvt_mpp_put(&r, _i ? RVT_MP_CLOSE_I : RVT_MP_CLOSE_R, _i ? 7 : 0, 0);
	rvt_mpp_want_end(&r);
	rvt_peer_shut(&r.p);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(abort_while_bytes_wait_gives_everything_back)
{
	struct rvt_alloc alloc;
	reeve_rt_cfg_t rc;
	reeve_rt_t *rt;
	struct pair p;

	rvt_alloc_init(&alloc);
	reeve_rt_cfg_init(&rc);
	rc.alloc = alloc.a;
	ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
	rvt_mpp_cfg(&cfg);
	cfg.slow_ms = REEVE_OFF;
	pair_begin(&p, rt, &cfg);
	write_all(p.s[0]);
	ck_assert_uint_eq(rvt_stats(reeve_conn_ctl(p.c[1])).unread, WINDOW);
	if (_i)
		ck_assert_int_eq(reeve_abort(reeve_conn_ctl(p.c[1]), 0), 0);
	pair_end(&p);
	reeve_rt_destroy(rt);
	rvt_alloc_check(&alloc);
}
END_TEST

/* --- what there is not */

START_TEST(ping_is_not_supported_and_goaway_says_nothing)
{
	reeve_stream_t *s, *t = NULL;
	uint64_t us = 77;

	rvt_mpp_open(&r, NULL);
	ck_assert_int_eq(reeve_ping(r.k, rvt_slow(RVT_WAIT_MS), &us), REEVE_ENOTSUP);
	ck_assert_uint_eq(us, 77);
	s = rvt_mpp_inbound(&r, 0);
	ck_assert_int_eq(reeve_goaway(r.k, 3), 0);
	while (reeve_open(r.k, &t, rvt_slow(RVT_WAIT_MS)) == 0)
		reeve_close(t);
	ck_assert_int_eq(reeve_open(r.k, &t, rvt_slow(RVT_WAIT_MS)), REEVE_EGOAWAY);
	rvt_mpp_put(&r, RVT_MP_OPEN, 1, 0);
	for (;;) {
		struct rvt_mp_frame f;

		ck_assert(rvt_mpp_next(&r, &f));
		if (f.flag == RVT_MP_RESET_R && f.id == 1)
			break;
		ck_assert(f.flag == RVT_MP_OPEN || f.flag == RVT_MP_CLOSE_I);
	}
	rvt_mpp_data(&r, RVT_MP_DATA_I, 0, 1000, 0);
	rvt_want_read(s, 1000, 0);
	rvt_want_write(s, 1000, 0);
	rvt_mpp_want_bytes(&r, RVT_MP_DATA_R, 0, 1000, 0);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(chosen_protocol_has_its_own_bounds)
{
	reeve_upgrade_t up[2] = {
	    {.size = sizeof(up[0]), .muxers = {_i ? REEVE_MPLEX : REEVE_YAMUX}},
	    {.size = sizeof(up[0]), .muxers = {_i ? REEVE_YAMUX : REEVE_MPLEX}}};
	reeve_cfg_t both[2];
	struct rvt_wedding w = {.via = RVT_MEMORY, .cfg = {&both[0], &both[1]}};
	struct rvt_nodes n;

	for (int i = 0; i < 2; i++) {
		reeve_cfg_init(&both[i]);
		both[i].upgrade = &up[i];
	}
	up[1].muxers[1] = up[0].muxers[0];
	rvt_marry(&n, &w);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_ready(n.k[i], rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(reeve_proto(n.k[i]), _i ? REEVE_MPLEX : REEVE_YAMUX);
		ck_assert_uint_eq(n.c[i]->budget->limit, _i ? 16u << 20 : 256u << 20);
	}
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("mplex", {&slow_reader_is_told_and_the_others_go_on, 2},
    {&reader_that_keeps_up_loses_nothing, 2}, {&end_of_the_slow_stream_lets_the_others_go_on, BYS},
    {&bound_of_the_connection_does_not_stop_it_for_ever, 2},
    {&forgotten_handles_hold_bounded_memory, 0}, {&memory_of_others_is_waited_for, 2},
    {&end_behind_bytes_that_wait, 2}, {&what_breaks_the_protocol_ends_the_connection, 4},
    {&end_of_the_pipe_is_clean_between_frames_only, 3}, {&graceful_close_loses_nothing, 2},
    {&abort_while_bytes_wait_gives_everything_back, 2},
    {&ping_is_not_supported_and_goaway_says_nothing, 0}, {&chosen_protocol_has_its_own_bounds, 2})
