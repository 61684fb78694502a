/* test_mplex_send.c - frames of mplex out: split sizes to the byte, headers of every length, fairness, partial writes. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <string.h>

static struct rvt_rig r;

static void
start(uint32_t split)
{
	reeve_cfg_t cfg;

	rvt_mp_cfg(&cfg);
	cfg.split = split;
	rvt_mp_init(&r, &cfg, NULL);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* One megabyte in one run: frames are full, the bytes of all headers are known. */
START_TEST(a_megabyte_is_cut_exactly)
{
	static const struct {
		uint32_t split, frames, header;
	} t[] = {{256, 4096, 3}, {512, 2048, 3}, {1024, 1024, 3}, {0, 128, 3}, {8192, 128, 3},
	    {16384, 64, 4}, {65536, 16, 4}, {262144, 4, 4}, {1048576, 1, 4}};
	uint32_t split = t[_i].split == 0 ? 8192 : t[_i].split;
	struct rv_stream *st;
	uint64_t before;

	start(t[_i].split);
	st = rvt_mp_outbound(&r);
	before = r.out.n;
	rvt_send(&r, st, 1u << 20);
	rvt_drain(&r, 0);
	ck_assert_uint_eq(r.out.n - before, (1u << 20) + t[_i].frames * t[_i].header);
	for (uint32_t i = 0; i < t[_i].frames; i++)
		rvt_mp_want(&r, RVT_MP_DATA_I, 0, split);
	rvt_mp_want_none(&r);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.frames_out), 1 + t[_i].frames);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.bytes_out), 1u << 20);
}
END_TEST

START_TEST(the_last_frame_is_short)
{
	static const uint32_t n[] = {1, 255, 256, 257, 511, 512, 513};
	struct rv_stream *st;
	uint32_t left = n[_i];

	start(256);
	st = rvt_mp_outbound(&r);
	rvt_send(&r, st, n[_i]);
	rvt_drain(&r, 0);
	for (; left > 0; left -= left < 256 ? left : 256)
		rvt_mp_want(&r, RVT_MP_DATA_I, 0, left < 256 ? left : 256);
	rvt_mp_want_none(&r);
}
END_TEST

START_TEST(frames_of_one_byte)
{
	struct rv_stream *st, *b;

	start(1);
	st = rvt_mp_outbound(&r);
	b = rvt_mp_inbound(&r, 0);
	rvt_send(&r, st, 40000);
	rvt_send(&r, b, 10);
	r.e->ops->shut(r.e, st);
	rvt_drain(&r, 0);
	for (uint32_t i = 0; i < RV_TURN; i++)
		rvt_mp_want(&r, RVT_MP_DATA_I, 0, 1);
	for (uint32_t i = 0; i < 10; i++)
		rvt_mp_want(&r, RVT_MP_DATA_R, 0, 1);
	for (uint32_t i = RV_TURN; i < 40000; i++)
		rvt_mp_want(&r, RVT_MP_DATA_I, 0, 1);
	rvt_mp_want(&r, RVT_MP_CLOSE_I, 0, 0);
	rvt_mp_want_none(&r);
}
END_TEST

/* Headers of 2 to 12 bytes: each byte of id and length more. */
START_TEST(headers_of_every_length)
{
	static const uint32_t len[] = {1, 128, 16384};
	struct rvt_mp_frame f;
	uint64_t id = 0;

	start(1u << 20);
	for (unsigned bytes = 1; bytes <= 9; bytes++) {
		for (unsigned k = 0; k < 3; k++) {
			struct rv_stream *st;

			rv_mplex_set_next_id(r.e, id + k);
			st = rvt_mp_outbound(&r);
			rvt_send(&r, st, len[k]);
			r.e->ops->shut(r.e, st);
			rvt_drain(&r, 7);
			ck_assert(rvt_mp_next(&r.out, &f));
			ck_assert_uint_eq(f.header, bytes + k + 1);
			ck_assert_uint_eq(f.len, len[k]);
			r.out.at -= f.header + f.len;
			rvt_mp_want(&r, RVT_MP_DATA_I, id + k, len[k]);
			rvt_mp_want(&r, RVT_MP_CLOSE_I, id + k, 0);
		}
		id = UINT64_C(1) << (7 * bytes - 3); /* the first whose header is longer */
	}
}
END_TEST

/* Small pieces are one frame as far as the split goes; large ones are referenced. */
START_TEST(small_pieces_are_one_frame)
{
	struct rv_stream *st;

	start(8192);
	st = rvt_mp_outbound(&r);
	for (unsigned i = 0; i < 500; i++)
		rvt_send(&r, st, 64);
	rvt_drain(&r, 0);
	for (unsigned i = 0; i < 3; i++)
		rvt_mp_want(&r, RVT_MP_DATA_I, 0, 8192);
	rvt_mp_want(&r, RVT_MP_DATA_I, 0, 500 * 64 - 3 * 8192);
	rvt_mp_want_none(&r);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.copied_out), 500 * 64);
	rvt_send(&r, st, 100);
	rvt_send(&r, st, 5000);
	rvt_send(&r, st, 100);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_int_eq(r.g->niov, 3);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_DATA_I, 0, 5200);
	/* the last was also copied behind what waited */
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.copied_out), 500 * 64 + 300);
}
END_TEST

/* A frame's pieces that do not all fit one gather: the frame is as long as its header says. */
START_TEST(more_pieces_than_a_gather_holds)
{
	struct rv_stream *st;
	struct rvt_mp_frame f;
	uint64_t sum = 0;

	start(1u << 20);
	st = rvt_mp_outbound(&r);
	for (unsigned i = 0; i < 300; i++)
		rvt_send(&r, st,
		    i % 2 ? RV_STAGE_MAX + i : 1024 + i); /* alternately referenced and copied */
	rvt_drain(&r, 1000);
	while (rvt_mp_next(&r.out, &f)) {
		ck_assert_uint_gt(f.len, 0);
		for (uint32_t i = 0; i < f.len; i++)
			RVT_CHECK(f.body[i] == rvt_byte(3, sum + i));
		sum += f.len;
	}
	ck_assert_uint_eq(sum, rvt_seen(&r, 3)->queued);
	rvt_mp_want_none(&r);
}
END_TEST

START_TEST(partial_writes_of_any_size)
{
	static const size_t max[] = {1, 2, 3, 13, 255, 4096};
	struct rv_stream *st[3];

	start(700);
	for (unsigned i = 0; i < 3; i++)
		st[i] = rvt_mp_outbound(&r);
	for (unsigned i = 0; i < 3; i++) {
		rvt_send(&r, st[i], 5000 * i + 1);
		rvt_send(&r, st[i], 30);
		r.e->ops->shut(r.e, st[i]);
	}
	rvt_drain(&r, max[_i]);
	rvt_mp_want(&r, RVT_MP_DATA_I, 0, 31);
	for (uint32_t left = 5031; left > 0; left -= left < 700 ? left : 700)
		rvt_mp_want(&r, RVT_MP_DATA_I, 1, left < 700 ? left : 700);
	for (uint32_t left = 10031; left > 0; left -= left < 700 ? left : 700)
		rvt_mp_want(&r, RVT_MP_DATA_I, 2, left < 700 ? left : 700);
	for (unsigned i = 0; i < 3; i++)
		rvt_mp_want(&r, RVT_MP_CLOSE_I, i, 0);
	rvt_mp_want_none(&r);
	rvt_notify(&r);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(i, true))->taken, 5000 * i + 31);
}
END_TEST

/* Rounds of a quantum each; a frame larger than the quantum is a round of its own. */
START_TEST(streams_take_turns)
{
	static const uint32_t split[] = {8192, 65536, 256};
	static const uint32_t in_a_round[] = {2, 1, 64};
	struct rv_stream *st[3];
	uint32_t frames = in_a_round[_i];

	start(split[_i]);
	for (unsigned i = 0; i < 3; i++)
		st[i] = rvt_mp_outbound(&r);
	for (unsigned i = 0; i < 3; i++)
		rvt_send(&r, st[i], 2 * frames * split[_i]);
	rvt_drain(&r, 0);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 3; i++)
			for (uint32_t k = 0; k < frames; k++)
				rvt_mp_want(&r, RVT_MP_DATA_I, i, split[_i]);
	rvt_mp_want_none(&r);
}
END_TEST

/* Openings, closes and refusals do not wait behind bodies. */
START_TEST(control_goes_before_bodies)
{
	struct rv_stream *a, *b;

	start(8192);
	a = rvt_mp_outbound(&r);
	b = rvt_mp_inbound(&r, 0);
	rvt_send(&r, a, 100000);
	r.e->ops->shut(r.e, b);
	(void)rvt_open(&r);
	r.e->refusing = true;
	rvt_mp_put(&r.in, RVT_MP_OPEN, 9, 0);
	rvt_mp_feed(&r);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_RESET_R, 9, 0);
	rvt_mp_want(&r, RVT_MP_CLOSE_R, 0, 0);
	rvt_mp_want(&r, RVT_MP_OPEN, 1, 0);
	rvt_mp_want(&r, RVT_MP_DATA_I, 0, 8192);
}
END_TEST

/* A reset drops what is queued: only what a write has begun still leaves. */
START_TEST(reset_drops_what_is_queued)
{
	struct rv_stream *st;
	struct rvt_mp_frame f;
	uint64_t sum = 0;

	start(65536);
	st = rvt_mp_outbound(&r);
	for (unsigned i = 0; i < 40; i++)
		rvt_send(&r, st, 65536);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	r.e->ops->reset(r.e, st, 0);
	rvt_drain(&r, 5000);
	while (rvt_mp_next(&r.out, &f) && f.flag == RVT_MP_DATA_I)
		sum += f.len;
	ck_assert_uint_lt(sum, 40 * 65536);
	ck_assert_uint_eq(f.flag, RVT_MP_RESET_I);
	rvt_mp_want_none(&r);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 3)->taken, 40 * 65536); /* all of it is answered */
	ck_assert(rvt_seen(&r, 3)->gone);
}
END_TEST

/* The peer reads nothing: closes and resets only wait. */
START_TEST(closes_and_resets_wait_for_a_stalled_pipe)
{
	static struct rv_stream *st[128];

	start(8192);
	for (unsigned i = 0; i < 128; i++)
		st[i] = rvt_mp_inbound(&r, i);
	for (unsigned i = 0; i < 128; i++) {
		if (i % 2)
			r.e->ops->close(r.e, st[i], false, r.now);
		else
			r.e->ops->reset(r.e, st[i], 0);
	}
	rvt_drain(&r, 1);
	for (unsigned i = 0; i < 128; i++)
		rvt_mp_want(&r, i % 2 ? RVT_MP_CLOSE_R : RVT_MP_RESET_R, i, 0);
	rvt_mp_want_none(&r);
	rvt_notify(&r);
	ck_assert_uint_eq(r.e->nstreams, 64);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_send");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, a_megabyte_is_cut_exactly, 0, 9);
	tcase_add_loop_test(t, the_last_frame_is_short, 0, 7);
	tcase_add_test(t, frames_of_one_byte);
	tcase_add_test(t, headers_of_every_length);
	tcase_add_test(t, small_pieces_are_one_frame);
	tcase_add_test(t, more_pieces_than_a_gather_holds);
	tcase_add_loop_test(t, partial_writes_of_any_size, 0, 6);
	tcase_add_loop_test(t, streams_take_turns, 0, 3);
	tcase_add_test(t, control_goes_before_bodies);
	tcase_add_test(t, reset_drops_what_is_queued);
	tcase_add_test(t, closes_and_resets_wait_for_a_stalled_pipe);
	return rvt_run_tcase("mplex_send", t);
}
