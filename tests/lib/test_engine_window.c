/* test_engine_window.c - receive windows: the update rule, our own rules of growth, budgets.  The rule of the Rust crate
 * and its worked example are in tests/ported/test_changelog.c. */
#include <config.h>

#include "tests/kit/window.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define RTT_MS 50u

static struct rvt_rig r;

START_TEST(unread_bytes_are_not_granted_again)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	rvt_win_round_trip(&r, RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	r.now += RTT_MS * 1000;
	rvt_win_arrive(&r, 1, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 384); /* M = 512 */
	r.now += 1000000;                                    /* slow from here */
	rvt_win_arrive(&r, 1, 340);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 255), 0);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 1), 256);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 84), 0); /* the rest waits for the next half */
	ck_assert_uint_eq(st->recv_credit, (512 - 340 + 256) * RVT_KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(update_leaves_with_the_read_that_completes_half)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 128);
	r.e->ops->consumed(r.e, st, 128 * RVT_KIB - 1, r.now);
	ck_assert(!r.e->ops->has_output(r.e));
	r.e->ops->consumed(r.e, st, 1, r.now);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, 0, 1, 128 * RVT_KIB); /* no round trip known: no growth */
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(updates_not_yet_sent_are_one)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 128);
	r.e->ops->consumed(r.e, st, 128 * RVT_KIB, r.now);
	rvt_win_arrive(&r, 1, 128);
	r.e->ops->consumed(r.e, st, 128 * RVT_KIB, r.now);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, 0, 1, 256 * RVT_KIB);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(window_stops_at_its_ceiling)
{
	struct rv_stream *st;

	rvt_win_start(&r, 300 * RVT_KIB, 0);
	rvt_win_round_trip(&r, RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 128 + 44);
	rvt_win_arrive(&r, 1, 150);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 37), 0);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 113), 150); /* in eighths from then on */
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(young_window_goes_where_its_rate_shows)
{
	/* What halves took, in ms of 50, and then M: fourfold at most, above 512 KiB double. */
	static const uint32_t ms[2][3] = {{40, 5, 49}, {5, 5, 5}};
	static const uint32_t m[2][3] = {{640, 1280, 2560}, {1024, 2048, 4096}};
	struct rv_stream *st;
	uint32_t half;

	rvt_win_start(&r, 0, 0);
	rvt_win_round_trip(&r, RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	for (int i = 0; i < 3; i++) {
		half = st->window / 2 / RVT_KIB;
		r.now += ms[_i][i] * 1000;
		rvt_win_arrive(&r, 1, half);
		(void)rvt_win_let_go(&r, st, half);
		ck_assert_uint_eq(st->window, m[_i][i] * RVT_KIB);
	}
	/* A reader that is behind: no growth. */
	half = m[_i][2] / 2;
	rvt_win_arrive(&r, 1, 2 * half);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, half), half);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(first_credit_frames_do_not_grow)
{
	/* Streams that carry no data, and one with a byte now and then, keep 256 KiB. */
	rvt_win_start(&r, 0, 0);
	rvt_win_round_trip(&r, 100);
	for (uint32_t id = 1; id < 400; id += 2) {
		r.e->ops->reset(r.e, rvt_inbound(&r, id), 0);
		rvt_drain(&r, 0);
		rvt_want(&r, RVT_WU, RVT_RST, id, 0);
		rvt_notify(&r);
		(void)rvt_event(&r, RV_EV_GONE, id);
	}
	(void)rvt_inbound(&r, 401);
	r.consume = true;
	for (uint32_t i = 0; i < 300; i++) {
		r.now += 100000;
		rvt_put_data(&r.in, 0, 401, 1, i);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
	}
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.window_max), 256 * RVT_KIB);
	ck_assert_uint_eq(rvt_win_grown(&r), 0);
	rvt_rig_fini(&r);
}
END_TEST

/* _i: 0 a round trip of 50 us, 1 of 500 us, 2 of 1 ms; everything is always used up at once. */
START_TEST(near_path_stops_where_its_rate_is_served)
{
	static const uint32_t rtt[] = {50, 500, 1000}, end[] = {512, 2000, 16384};
	struct rv_stream *st;
	uint32_t m;

	rvt_win_start(&r, 0, 0);
	rvt_win_round_trip(&r, rtt[_i]);
	st = rvt_inbound(&r, 1);
	for (int i = 0; i < 12; i++) {
		m = st->window / RVT_KIB;
		rvt_win_arrive(&r, 1, m / 2);
		r.now += 10;
		(void)rvt_win_let_go(&r, st, m / 2);
	}
	ck_assert_uint_eq(st->window / RVT_KIB, end[_i]);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(dry_peer_with_a_quick_reader_grows_without_round_trip)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 256);
	ck_assert_uint_eq(st->recv_credit, 0);
	r.now += 100;
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 128); /* half is unread: a plain update */
	r.now += 100;
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 32), 0);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 32), 64 + 256); /* a quarter: kept up */
	ck_assert_uint_eq(st->window, 512 * RVT_KIB);
	ck_assert_uint_eq(st->recv_credit, 448 * RVT_KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(dry_peer_with_a_slow_reader_does_not_grow)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	rvt_win_round_trip(&r, 100);
	st = rvt_inbound(&r, 1);
	for (int i = 0; i < 20; i++) {
		rvt_win_arrive(&r, 1, st->recv_credit / RVT_KIB);
		ck_assert_uint_eq(st->recv_credit, 0);
		for (int k = 0; k < 4; k++) {
			r.now += RV_DRY_US;
			(void)rvt_win_let_go(&r, st, 32);
		}
	}
	/* The end of a burst, read slowly, is no reason either. */
	while (st->unread > 0) {
		r.now += RV_DRY_US;
		(void)rvt_win_let_go(&r, st, 16);
	}
	ck_assert_uint_eq(st->window, 256 * RVT_KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(having_been_dry_is_forgotten_with_the_next_credit)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	rvt_win_round_trip(&r, 100);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 256);
	r.now += RV_DRY_US;
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 128); /* dry until now */
	r.now += RV_DRY_US;
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 128); /* and not since */
	rvt_win_arrive(&r, 1, 16);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 16), 0); /* quick, but no sign of a dry peer */
	ck_assert_uint_eq(st->window, 256 * RVT_KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(credit_is_withheld_from_a_stream_that_is_not_read)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 100);
	r.e->ops->stop(r.e, st);
	r.e->ops->consumed(r.e, st, 100 * RVT_KIB, r.now);
	rvt_win_arrive(&r, 1, 156); /* discarded */
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 100 * RVT_KIB);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(no_credit_after_the_peers_fin)
{
	struct rv_stream *st;

	rvt_win_start(&r, 0, 0);
	st = rvt_inbound(&r, 1);
	rvt_win_arrive(&r, 1, 128);
	r.e->ops->consumed(r.e, st, 128 * RVT_KIB, r.now); /* owed, not sent yet */
	rvt_win_arrive(&r, 1, 128);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	r.e->ops->consumed(r.e, st, 128 * RVT_KIB, r.now);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

/* --- budget */

static struct rv_slab *
hold(struct rv_budget *bud, size_t n)
{
	struct rv_slab *s = rv_slab_get(r.pool, n);

	rv_slab_charge(s, bud);
	return s;
}

START_TEST(budget_stops_growth_then_credit_then_streams)
{
	struct rv_budget *bud;
	struct rv_slab *half, *more;
	struct rv_stream *st;

	rvt_rig_prepare(&r);
	bud = rv_budget_create(r.ar, 16 * 65536, NULL);
	ck_assert_int_eq(rvt_rig_start(&r, REEVE_LISTENER, NULL, bud), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 0);
	rvt_win_round_trip(&r, RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	half = hold(bud, 9 * 65536);
	ck_assert_int_eq(rv_budget_level(bud), 1);
	rvt_win_arrive(&r, 1, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 128); /* fast, but no growth */
	more = hold(bud, 4 * 65536);
	ck_assert_int_eq(rv_budget_level(bud), 2);
	rvt_win_arrive(&r, 1, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 0); /* withheld */
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + RV_Y_HELD_US);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 3, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 3, 0);
	r.now += RV_Y_HELD_US;
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + RV_Y_HELD_US);
	rv_slab_unref(more);
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, 0, 1, 128 * RVT_KIB);
	rv_slab_unref(half);
	rv_budget_unref(bud);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(withheld_stream_may_end)
{
	struct rv_budget *bud;
	struct rv_slab *s;
	struct rv_stream *st;

	rvt_rig_prepare(&r);
	bud = rv_budget_create(r.ar, 65536, NULL);
	ck_assert_int_eq(rvt_rig_start(&r, REEVE_LISTENER, NULL, bud), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 0);
	for (uint32_t id = 1; id <= 9; id += 2) {
		st = rvt_inbound(&r, id);
		rvt_win_arrive(&r, id, 128);
		s = hold(bud, 65536);
		ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 0);
		ck_assert(st->flags & RV_ST_WAITING);
		rv_slab_unref(s);
	}
	/* from the middle, the head, the tail; by the peer, by us, by the end */
	rvt_put(&r.in, RVT_WU, RVT_RST, 5, 0);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	r.e->ops->close(r.e, rvt_seen(&r, 9)->st, true, r.now);
	r.e->ops->stop(r.e, rvt_seen(&r, 3)->st);
	ck_assert_ptr_eq(((struct rv_yamux *)r.e)->m.withheld.head, rvt_seen(&r, 7)->st);
	ck_assert_ptr_eq(((struct rv_yamux *)r.e)->m.withheld.tail, rvt_seen(&r, 7)->st);
	rv_budget_unref(bud);
	rvt_rig_fini(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_window");

	tcase_add_test(t, unread_bytes_are_not_granted_again);
	tcase_add_test(t, update_leaves_with_the_read_that_completes_half);
	tcase_add_test(t, updates_not_yet_sent_are_one);
	tcase_add_test(t, window_stops_at_its_ceiling);
	tcase_add_loop_test(t, young_window_goes_where_its_rate_shows, 0, 2);
	tcase_add_test(t, first_credit_frames_do_not_grow);
	tcase_add_loop_test(t, near_path_stops_where_its_rate_is_served, 0, 3);
	tcase_add_test(t, dry_peer_with_a_quick_reader_grows_without_round_trip);
	tcase_add_test(t, dry_peer_with_a_slow_reader_does_not_grow);
	tcase_add_test(t, having_been_dry_is_forgotten_with_the_next_credit);
	tcase_add_test(t, credit_is_withheld_from_a_stream_that_is_not_read);
	tcase_add_test(t, no_credit_after_the_peers_fin);
	tcase_add_test(t, budget_stops_growth_then_credit_then_streams);
	tcase_add_test(t, withheld_stream_may_end);
	return rvt_run_tcase("engine_window", t);
}
