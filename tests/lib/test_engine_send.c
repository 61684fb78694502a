/* test_engine_send.c - frames out: coalescing, staging, splitting, fairness, partial writes,
 * priorities. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <reeve/buf.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_rig r;

static void
setup(void)
{
	rvt_rig_init(&r, REEVE_DIALER, NULL, NULL);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

static uint64_t
copied(void)
{
	return rvq_counter_get(&r.e->stats.copied_out);
}

START_TEST(many_small_writes_are_one_frame)
{
	struct rv_stream *st = rvt_outbound(&r);
	uint64_t frames = rvq_counter_get(&r.e->stats.frames_out);

	for (int i = 0; i < 500; i++)
		rvt_send(&r, st, 64);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 500 * 64);
	rvt_want_none(&r);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.frames_out) - frames, 1);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.bytes_out), 500 * 64);
	ck_assert_uint_eq(copied(), 500 * 64);
}
END_TEST

START_TEST(pieces_are_copied_below_2_kib_and_referenced_above)
{
	struct rv_stream *st = rvt_outbound(&r);

	rvt_send(&r, st, RV_STAGE_MAX - 1);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_int_eq(r.g->niov, 1);
	ck_assert_uint_eq(copied(), RV_STAGE_MAX - 1);
	rvt_drain(&r, 0);
	rvt_send(&r, st, RV_STAGE_MAX);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_int_eq(r.g->niov, 2);
	ck_assert_uint_eq(copied(), RV_STAGE_MAX - 1);
	rvt_drain(&r, 0);
	/* mixed in one frame: header + small, large, small */
	rvt_send(&r, st, 100);
	rvt_send(&r, st, 10000);
	rvt_send(&r, st, 100);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_int_eq(r.g->niov, 3);
	ck_assert_uint_eq(r.g->nacct, 2);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, RV_STAGE_MAX - 1);
	rvt_want(&r, RVT_DATA, 0, 1, RV_STAGE_MAX);
	rvt_want(&r, RVT_DATA, 0, 1, 10200);
	rvt_want_none(&r);
}
END_TEST

START_TEST(alone_64_kib_among_others_16_kib)
{
	struct rv_stream *a = rvt_outbound(&r), *b;

	rvt_send(&r, a, 100000);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 65536);
	rvt_want(&r, RVT_DATA, 0, 1, 100000 - 65536);
	b = rvt_outbound(&r);
	rvt_send(&r, a, 20000);
	rvt_send(&r, b, 40000);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 16384);
	rvt_want(&r, RVT_DATA, 0, 3, 16384);
	rvt_want(&r, RVT_DATA, 0, 1, 20000 - 16384);
	rvt_want(&r, RVT_DATA, 0, 3, 16384);
	rvt_want(&r, RVT_DATA, 0, 3, 40000 - 2 * 16384);
	rvt_want_none(&r);
}
END_TEST

START_TEST(split_is_the_largest_body)
{
	static const uint32_t split[] = {1000, 30000, 131072};
	reeve_cfg_t cfg;
	struct rv_stream *a, *b;
	struct rvt_frame f;
	uint64_t sum[2] = {0, 0};

	rvt_rig_fini(&r);
	rvt_cfg(&cfg);
	cfg.split = split[_i];
	rvt_rig_init(&r, REEVE_DIALER, &cfg, NULL);
	a = rvt_outbound(&r);
	b = rvt_outbound(&r);
	for (int k = 0; k < 2; k++) {
		rvt_send(&r, a, 120000);
		if (k == 1)
			rvt_send(&r, b, 120000);
		rvt_drain(&r, 0);
		while (rvt_next(&r.out, &f)) {
			ck_assert_uint_le(f.len, split[_i]);
			sum[f.id / 2] += f.len;
		}
	}
	ck_assert_uint_eq(sum[0], 240000);
	ck_assert_uint_eq(sum[1], 120000);
}
END_TEST

START_TEST(sender_uses_whatever_credit_there_is)
{
	struct rv_stream *st = rvt_outbound(&r);
	struct rvt_frame f;
	uint64_t sum = 0;

	rvt_send(&r, st, RV_WINDOW0);
	rvt_send(&r, st, 50000);
	rvt_drain(&r, 0);
	while (rvt_next(&r.out, &f))
		sum += f.len;
	ck_assert_uint_eq(sum, RV_WINDOW0);
	for (uint32_t k = 1; k < 50; k++) {
		rvt_put(&r.in, RVT_WU, 0, 1, k);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		rvt_drain(&r, 0);
		ck_assert(rvt_next(&r.out, &f));
		ck_assert_uint_eq(f.len, k);
	}
}
END_TEST

/* Bytes of n streams after the first total bytes of bodies. */
static void
shares(unsigned n, uint64_t total, uint64_t *share)
{
	struct rvt_frame f;
	uint64_t sum = 0;

	memset(share, 0, n * sizeof(*share));
	while (sum < total && rvt_next(&r.out, &f)) {
		share[f.id / 2] += f.len;
		sum += f.len;
	}
	ck_assert_uint_ge(sum, total);
}

START_TEST(equal_streams_get_equal_shares)
{
	uint64_t share[10];

	for (int i = 0; i < 10; i++)
		(void)rvt_outbound(&r);
	for (int i = 0; i < 10; i++)
		for (int k = 0; k < 4; k++)
			rvt_send(&r, rvt_seen(&r, (uint32_t)i * 2 + 1)->st, 60000);
	rvt_drain(&r, 0);
	shares(10, 1600000, share);
	for (int i = 0; i < 10; i++) {
		ck_assert_uint_ge(share[i], 160000 - 16384);
		ck_assert_uint_le(share[i], 160000 + 16384);
	}
}
END_TEST

START_TEST(writes_of_mixed_sizes_get_equal_shares)
{
	static const uint32_t size[] = {64, 1000, 3000, 16384, 65536};
	uint64_t share[5];

	for (int i = 0; i < 5; i++)
		(void)rvt_outbound(&r);
	for (unsigned i = 0; i < 5; i++)
		for (uint32_t k = 0; k < 200000 / size[i]; k++)
			rvt_send(&r, rvt_seen(&r, i * 2 + 1)->st, size[i]);
	rvt_drain(&r, 0);
	shares(5, 600000, share);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_ge(share[i], 120000 - 16384);
		ck_assert_uint_le(share[i], 120000 + 16384);
	}
}
END_TEST

/* However frames fill the iovecs of a gather, the last one that fits has a body: _i shifts where it ends. */
START_TEST(gather_full_of_iovecs_ends_behind_a_frame)
{
	struct rv_stream *a = rvt_outbound(&r), *b = rvt_outbound(&r);
	struct rvt_frame f;
	size_t got = 0;

	for (int i = 0; i < _i; i++)
		rvt_send(&r, a, 100);
	for (int i = 0; i < 100; i++)
		rvt_send(&r, i % 2 ? a : b, RV_STAGE_MAX + 16);
	rvt_drain(&r, 0);
	while (rvt_next(&r.out, &f)) {
		ck_assert_uint_gt(f.len, 0);
		got += f.len;
	}
	ck_assert_uint_eq(got, 100 * (RV_STAGE_MAX + 16) + 100 * (size_t)_i);
}
END_TEST

START_TEST(round_robin_goes_on_where_a_full_gather_stopped)
{
	uint64_t share[40];
	unsigned left = 0;

	for (int i = 0; i < 40; i++)
		(void)rvt_outbound(&r);
	for (uint32_t i = 0; i < 40; i++)
		rvt_send(&r, rvt_seen(&r, 2 * i + 1)->st, 100000);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_uint_ge(r.g->bytes, RV_GATHER_BYTES); /* not even one round */
	rvt_drain(&r, 0);
	shares(40, 40 * 32768, share);
	for (int i = 0; i < 40; i++)
		left += share[i] != 32768;
	ck_assert_uint_le(left, 1);
}
END_TEST

START_TEST(partial_writes_change_nothing)
{
	static const size_t max[] = {1, 2, 7, 11, 12, 13, 4095, 0};
	struct rv_stream *a = rvt_outbound(&r), *b = rvt_outbound(&r);

	for (int i = 0; i < 20; i++) {
		rvt_send(&r, a, 700);
		rvt_send(&r, b, 2100);
	}
	rvt_drain(&r, max[_i]);
	rvt_want(&r, RVT_DATA, 0, 1, 14000);
	rvt_want(&r, RVT_DATA, 0, 3, 16384);
	rvt_want(&r, RVT_DATA, 0, 3, 16384);
	rvt_want(&r, RVT_DATA, 0, 3, 42000 - 2 * 16384);
	rvt_want_none(&r);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 14000);
	ck_assert_uint_eq(rvt_seen(&r, 3)->taken, 42000);
}
END_TEST

START_TEST(taken_is_reported_as_far_as_the_transport_got)
{
	struct rv_stream *st = rvt_outbound(&r);

	rvt_send(&r, st, 10000);
	rvt_send(&r, st, 10000);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	rv_gather_sent(r.e, r.g, 12 + 9999);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 0);
	rv_gather_sent(r.e, r.g, 1);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 10000);
	rv_gather_sent(r.e, r.g, 10000);
	rv_gather_reset(r.g);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 20000);
}
END_TEST

START_TEST(one_large_buffer_is_sent_in_frames_and_freed_once)
{
	struct rv_stream *st = rvt_outbound(&r);

	rvt_send(&r, st, 200001);
	rvt_drain(&r, 50000);
	rvt_want(&r, RVT_DATA, 0, 1, 65536);
	rvt_want(&r, RVT_DATA, 0, 1, 65536);
	rvt_want(&r, RVT_DATA, 0, 1, 65536);
	rvt_want(&r, RVT_DATA, 0, 1, 200001 - 3 * 65536); /* the rest is copied */
	rvt_want_none(&r);
}
END_TEST

START_TEST(copied_rest_of_a_referenced_buffer_keeps_it_alive)
{
	struct rv_stream *st = rvt_outbound(&r);
	struct rv_arena *ar = r.ar;
	uint64_t before = rv_arena_bytes(ar);

	rvt_send(&r, st, 65536 + 100); /* a block of its own: it shows in the arena */
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_uint_ge(rv_arena_bytes(ar), before + 65536);
	rvt_drain(&r, 0);
	ck_assert_uint_eq(rv_arena_bytes(ar), before);
	rvt_want(&r, RVT_DATA, 0, 1, 65536);
	rvt_want(&r, RVT_DATA, 0, 1, 100);
}
END_TEST

START_TEST(shared_buffer_is_sent_and_the_other_holder_keeps_it)
{
	struct rv_stream *st = rvt_outbound(&r);
	reeve_buf_t *b = rv_buf_alloc(r.pool, 5000);

	memset(b->slab->data + b->off, 0x5a, 5000);
	(void)reeve_buf_ref(b);
	r.e->ops->send(r.e, st, b);
	rvt_seen(&r, 1)->queued += 5000;
	rvt_drain(&r, 0);
	ck_assert_uint_eq(reeve_buf_len(b), 5000);
	ck_assert_uint_eq(reeve_buf_data(b)[4999], 0x5a);
	reeve_buf_unref(b);
}
END_TEST

START_TEST(control_leaves_before_data)
{
	struct rv_stream *a = rvt_outbound(&r), *b = rvt_outbound(&r);

	rvt_send(&r, a, 10);
	r.e->ops->shut(r.e, b);
	(void)rvt_open(&r);
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, 0);
	rvt_put(&r.in, RVT_PING, RVT_SYN, 0, 4);
	rvt_put(&r.in, RVT_PING, RVT_SYN, 0, 5);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert(r.e->ops->ping(r.e, r.now));
	r.e->ops->goaway(r.e, 0);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 2, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 4);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 5);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 1);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 2, 0);
	rvt_want(&r, RVT_WU, RVT_FIN, 3, 0);
	rvt_want(&r, RVT_WU, RVT_SYN, 5, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 10);
	rvt_want_none(&r);
}
END_TEST

START_TEST(violation_behind_a_partial_gather_keeps_it_whole)
{
	struct rv_stream *st = rvt_outbound(&r);

	rvt_send(&r, st, 5000);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	rv_gather_sent(r.e, r.g, 100);
	rvt_send(&r, st, 5000); /* never leaves */
	rvt_put(&r.in, 7, 0, 0, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_EPROTO);
	rvt_bytes_pack(&r.out);
	rvt_put_data(&r.out, 0, 1, 5000, 0);
	r.out.n = 100;
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 5000);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 1);
	rvt_want_none(&r);
}
END_TEST

/* 25 frames of a header and four pieces leave room for exactly one more frame of one piece. */
START_TEST(frame_begun_in_the_last_room_of_a_gather_has_a_body)
{
	struct rv_stream *a = rvt_outbound(&r), *b = rvt_outbound(&r);

	for (int i = 0; i < 64; i++) {
		rvt_send(&r, a, 4096);
		rvt_send(&r, b, 4096);
	}
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_int_gt(r.g->niov, 125);
	rvt_drain(&r, 0);
	for (int i = 0; i < 25; i++)
		rvt_want(&r, RVT_DATA, 0, i % 2 == 0 ? 1 : 3, 16384);
	rvt_want(&r, RVT_DATA, 0, 3, 4096);
}
END_TEST

START_TEST(empty_buffer_sends_nothing)
{
	struct rv_stream *st = rvt_outbound(&r);
	reeve_buf_t *b = rv_buf_alloc(r.pool, 5), *none = rv_buf_slice(b, 2, 0);

	rv_buf_unref(b);
	r.e->ops->send(r.e, st, none);
	ck_assert(!r.e->ops->has_output(r.e));
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_send");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, many_small_writes_are_one_frame);
	tcase_add_test(t, pieces_are_copied_below_2_kib_and_referenced_above);
	tcase_add_test(t, alone_64_kib_among_others_16_kib);
	tcase_add_loop_test(t, split_is_the_largest_body, 0, 3);
	tcase_add_test(t, sender_uses_whatever_credit_there_is);
	tcase_add_test(t, equal_streams_get_equal_shares);
	tcase_add_test(t, writes_of_mixed_sizes_get_equal_shares);
	tcase_add_loop_test(t, gather_full_of_iovecs_ends_behind_a_frame, 0, 4);
	tcase_add_test(t, round_robin_goes_on_where_a_full_gather_stopped);
	tcase_add_loop_test(t, partial_writes_change_nothing, 0, 8);
	tcase_add_test(t, taken_is_reported_as_far_as_the_transport_got);
	tcase_add_test(t, one_large_buffer_is_sent_in_frames_and_freed_once);
	tcase_add_test(t, copied_rest_of_a_referenced_buffer_keeps_it_alive);
	tcase_add_test(t, shared_buffer_is_sent_and_the_other_holder_keeps_it);
	tcase_add_test(t, control_leaves_before_data);
	tcase_add_test(t, violation_behind_a_partial_gather_keeps_it_whole);
	tcase_add_test(t, frame_begun_in_the_last_room_of_a_gather_has_a_body);
	tcase_add_test(t, empty_buffer_sends_nothing);
	return rvt_run_tcase("engine_send", t);
}
