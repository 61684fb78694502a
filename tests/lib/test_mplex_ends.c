/* test_mplex_ends.c - late and doubled frames of mplex, our own ends of streams, the session. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <string.h>

static struct rvt_rig r;

static void
setup(void)
{
	rvt_mp_init(&r, NULL, NULL);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* --- late and doubled frames: no harm and no answer */

START_TEST(late_and_doubled_frames_are_ignored)
{
	static const unsigned first[] = {
	    RVT_MP_CLOSE_I, RVT_MP_CLOSE_I, RVT_MP_RESET_I, RVT_MP_RESET_I, RVT_MP_RESET_I};
	static const unsigned then[] = {
	    RVT_MP_CLOSE_I, RVT_MP_DATA_I, RVT_MP_CLOSE_I, RVT_MP_DATA_I, RVT_MP_RESET_I};

	(void)rvt_mp_inbound(&r, 1);
	(void)rvt_mp_inbound(&r, 2);
	rvt_mp_say(&r, first[_i], 1);
	rvt_notify(&r);
	r.at = r.nev;
	for (unsigned i = 0; i < 100; i++) {
		rvt_mp_put(&r.in, then[_i], 1, then[_i] == RVT_MP_DATA_I ? 3 : 0);
		if (then[_i] == RVT_MP_DATA_I)
			memcpy(rvt_bytes_more(&r.in, 3), "abc", 3);
	}
	rvt_mp_feed(&r);
	rvt_mp_flush(&r);
	rvt_no_event(&r);
	rvt_mp_want_none(&r);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 2, 10, 0);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(2, false))->got, 10);
}
END_TEST

START_TEST(frames_of_streams_that_never_were_are_ignored)
{
	for (unsigned flag = RVT_MP_DATA_R; flag <= RVT_MP_RESET_I; flag++) {
		rvt_mp_put(&r.in, flag, 1000, 4);
		memcpy(rvt_bytes_more(&r.in, 4), "\xff\xff\xff\xff", 4);
	}
	ck_assert_int_eq(rvt_feed(&r, 1), 0);
	rvt_no_event(&r);
	rvt_mp_flush(&r);
	rvt_mp_want_none(&r);
}
END_TEST

/* A reset behind both closes finds nothing; one behind ours, of a stream whose peer still writes, is a reset. */
START_TEST(reset_after_the_peers_close_is_sent_once)
{
	struct rv_stream *st = rvt_mp_inbound(&r, 3);

	rvt_mp_say(&r, RVT_MP_CLOSE_I, 3);
	r.e->ops->reset(r.e, st, 0);
	r.e->ops->reset(r.e, st, 0);
	rvt_drain(&r, 0);
	rvt_mp_want_raw(&r, "1d 00");
	rvt_notify(&r);
	ck_assert(rvt_seen(&r, rvt_mp_key(3, false))->gone);
}
END_TEST

START_TEST(bytes_before_a_reset_are_delivered_before_it)
{
	(void)rvt_mp_inbound(&r, 3);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 3, 1000, 0);
	rvt_mp_put(&r.in, RVT_MP_RESET_I, 3, 0);
	ck_assert_int_eq(rvt_feed(&r, 1), 0);
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(3, false))->got, 1000);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_RST, rvt_mp_key(3, false)).n, 0);
}
END_TEST

/* --- our own ends */

START_TEST(bytes_before_close_drop_and_shut_leave_before_it)
{
	struct rv_stream *st = rvt_mp_inbound(&r, 3);

	rvt_send(&r, st, 100);
	if (_i == 0)
		r.e->ops->shut(r.e, st);
	else if (_i == 1)
		r.e->ops->close(r.e, st, false, r.now);
	else
		r.e->ops->drop(r.e, st);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_DATA_R, 3, 100);
	rvt_mp_want(&r, _i == 2 ? RVT_MP_RESET_R : RVT_MP_CLOSE_R, 3, 0);
	rvt_mp_want_none(&r);
}
END_TEST

START_TEST(stream_let_go_before_its_opening_left_is_never_heard_of)
{
	struct rv_stream *st = rvt_open(&r);

	if (_i == 0)
		r.e->ops->drop(r.e, st);
	else
		r.e->ops->reset(r.e, st, 0);
	rvt_mp_flush(&r);
	rvt_mp_want_none(&r);
	ck_assert(rvt_seen(&r, rvt_mp_key(0, true))->gone);
	ck_assert_uint_eq(rv_mp_id(rvt_open(&r)->id), 1); /* its id is gone too */
}
END_TEST

/* Opening, bytes and close of a stream leave in this order in one drain. */
START_TEST(opening_travels_with_the_first_bytes)
{
	struct rv_stream *st = rvt_open(&r);

	rvt_send(&r, st, 2);
	r.e->ops->close(r.e, st, false, r.now);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_int_eq(r.g->niov, 1);
	ck_assert(!r.e->ops->has_output(r.e));
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_OPEN, 0, 0);
	rvt_mp_want(&r, RVT_MP_DATA_I, 0, 2);
	rvt_mp_want(&r, RVT_MP_CLOSE_I, 0, 0);
}
END_TEST

/* A closed stream whose peer goes on sending is reset, once. */
START_TEST(data_for_a_closed_stream_is_answered_once)
{
	struct rv_stream *st = rvt_mp_inbound(&r, 3);

	r.e->ops->close(r.e, st, false, r.now);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_CLOSE_R, 3, 0);
	for (unsigned i = 0; i < 5; i++)
		rvt_mp_data(&r.in, RVT_MP_DATA_I, 3, 10, 10 * i);
	rvt_mp_feed(&r);
	rvt_mp_flush(&r);
	rvt_mp_want(&r, RVT_MP_RESET_R, 3, 0);
	rvt_mp_want_none(&r);
	ck_assert(rvt_seen(&r, rvt_mp_key(3, false))->gone);
}
END_TEST

START_TEST(closed_stream_that_the_peer_never_ends_is_reset)
{
	struct rv_stream *st = rvt_mp_inbound(&r, 3);

	r.e->ops->close(r.e, st, false, r.now);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_CLOSE_R, 3, 0);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + UINT64_C(300000000));
	r.now += UINT64_C(300000000);
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_mp_flush(&r);
	rvt_mp_want(&r, RVT_MP_RESET_R, 3, 0);
	ck_assert(rvt_seen(&r, rvt_mp_key(3, false))->gone);
}
END_TEST

/* --- the session */

START_TEST(there_is_no_ping_and_no_goaway_on_the_wire)
{
	struct rv_stream *st = NULL;

	ck_assert_ptr_null(r.e->ops->ping);
	(void)rvt_mp_inbound(&r, 0);
	r.e->ops->goaway(r.e, 7);
	rvt_mp_flush(&r);
	rvt_mp_want_none(&r);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EGOAWAY);
	rvt_mp_say(&r, RVT_MP_OPEN, 1); /* refused; streams that are go on */
	rvt_mp_flush(&r);
	rvt_mp_want(&r, RVT_MP_RESET_R, 1, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 10, 0);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_seen(&r, 2)->got, 10);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX); /* no keepalive */
}
END_TEST

START_TEST(opens_have_a_limit_of_their_own)
{
	struct rv_stream *st = NULL;
	reeve_cfg_t cfg;

	rvt_rig_fini(&r);
	rvt_mp_cfg(&cfg);
	cfg.max_out = 3;
	rvt_mp_init(&r, &cfg, NULL);
	for (unsigned i = 0; i < 3; i++)
		(void)rvt_mp_outbound(&r);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_ELIMIT);
	rvt_mp_say(&r, RVT_MP_RESET_R, 1);
	(void)rvt_event(&r, RV_EV_RST, rvt_mp_key(1, true));
	(void)rvt_mp_outbound(&r);
}
END_TEST

START_TEST(many_streams_come_and_go)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct rv_stream *st = i % 2 ? rvt_mp_outbound(&r) : rvt_mp_inbound(&r, i / 2);
		uint64_t id = i / 2;

		rvt_send(&r, st, 10);
		r.e->ops->shut(r.e, st);
		rvt_drain(&r, 0);
		rvt_mp_want(&r, i % 2 ? RVT_MP_DATA_I : RVT_MP_DATA_R, id, 10);
		rvt_mp_want(&r, i % 2 ? RVT_MP_CLOSE_I : RVT_MP_CLOSE_R, id, 0);
		rvt_mp_say(&r, i % 2 ? RVT_MP_CLOSE_R : RVT_MP_CLOSE_I, id);
		rvt_notify(&r);
		r.at = r.nev;
		if (i == 1000)
			bytes = rv_arena_bytes(r.ar);
	}
	ck_assert_uint_eq(r.e->nstreams, 0);
	ck_assert_uint_eq(rv_arena_bytes(r.ar), bytes);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_ends");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, late_and_doubled_frames_are_ignored, 0, 5);
	tcase_add_test(t, frames_of_streams_that_never_were_are_ignored);
	tcase_add_test(t, reset_after_the_peers_close_is_sent_once);
	tcase_add_test(t, bytes_before_a_reset_are_delivered_before_it);
	tcase_add_loop_test(t, bytes_before_close_drop_and_shut_leave_before_it, 0, 3);
	tcase_add_loop_test(t, stream_let_go_before_its_opening_left_is_never_heard_of, 0, 2);
	tcase_add_test(t, opening_travels_with_the_first_bytes);
	tcase_add_test(t, data_for_a_closed_stream_is_answered_once);
	tcase_add_test(t, closed_stream_that_the_peer_never_ends_is_reset);
	tcase_add_test(t, there_is_no_ping_and_no_goaway_on_the_wire);
	tcase_add_test(t, opens_have_a_limit_of_their_own);
	tcase_add_test(t, many_streams_come_and_go);
	return rvt_run_tcase("mplex_ends", t);
}
