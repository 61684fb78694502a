/* test_mplex_limits.c - the bound of all that is unread of a connection: what counts, and who is to blame. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <string.h>

#define WINDOW (256u << 10)
#define RECV   (1u << 20)

static struct rvt_rig r;
static reeve_cfg_t cfg;

static void
setup(void)
{
	rvt_mp_cfg(&cfg);
}

static void
start(void)
{
	rvt_mp_init(&r, &cfg, NULL);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* --- the bound of the connection */

/* Streams 0 to n - 1 have so many unread each; together less than RECV. */
static void
fill(unsigned n, uint32_t each)
{
	for (unsigned i = 0; i < n; i++) {
		(void)rvt_mp_inbound(&r, i);
		rvt_mp_feed_data(&r, i, each, 0);
	}
	ck_assert(!r.e->blocked);
}

/* _i / 2: which of them that is. */
START_TEST(bound_of_the_connection_resets_the_one_with_most_unread)
{
	unsigned most = (unsigned)_i / 2;

	cfg.max_recv = RECV;
	cfg.flags = _i % 2 ? REEVE_CFG_SLOW_RESET : 0;
	start();
	fill(5, 200000);
	rvt_mp_feed_data(&r, most, 10000, 200000);
	(void)rvt_mp_inbound(&r, 5);
	rvt_mp_feed_data(&r, 5, 100000, 0);
	if (_i % 2 == 0) {
		ck_assert(r.e->blocked);
		ck_assert_uint_eq(rvt_mp_unread(&r), RECV);
		rvt_mp_tick(&r, 5000);
	}
	ck_assert(!r.e->blocked); /* one reset is enough, and at once */
	rvt_mp_go_on(&r);
	(void)rvt_event(&r, RV_EV_SLOW, rvt_mp_key(most, false));
	rvt_no_event(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 5), 100000);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_RESET_R, most, 0);
	rvt_mp_want_none(&r);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_mp_unread(&r), 4 * 200000 + 100000);
}
END_TEST

START_TEST(bound_of_the_connection_waits_for_a_quarter)
{
	struct rv_stream *st;

	cfg.max_recv = RECV;
	start();
	st = rvt_mp_inbound(&r, 100);
	rvt_mp_feed_data(&r, 100, 200000, 0);
	fill(4, 200000);
	rvt_mp_feed_data(&r, 3, 50000, 200000);
	ck_assert(r.e->blocked);
	r.e->ops->consumed(r.e, st, 200000, r.now);
	ck_assert(r.e->blocked);
	r.e->ops->consumed(
	    r.e, rvt_seen(&r, rvt_mp_key(0, false))->st, RECV / 4 - 200000 - 1, r.now);
	ck_assert(r.e->blocked);
	r.e->ops->consumed(r.e, rvt_seen(&r, rvt_mp_key(0, false))->st, 1, r.now);
	ck_assert(!r.e->blocked);
}
END_TEST

/* Many streams with little each, of which some is read, but not a quarter: somebody is to blame all the same. */
START_TEST(bound_of_the_connection_by_many_small_streams)
{
	cfg.max_recv = RECV;
	start();
	fill(104, 10000);
	(void)rvt_mp_inbound(&r, 110);
	rvt_mp_feed_data(&r, 110, 20000, 0);
	ck_assert(r.e->blocked);
	r.e->ops->consumed(r.e, rvt_seen(&r, 2)->st, 10000, r.now);
	ck_assert(r.e->blocked);
	rvt_mp_tick(&r, 5000);
	ck_assert(!r.e->blocked);
	rvt_mp_go_on(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 110), 20000);
}
END_TEST

/* Bodies that nobody will read pass a connection at its bound. */
START_TEST(stopped_stream_passes_a_full_connection)
{
	struct rv_stream *st;

	cfg.max_recv = RECV;
	start();
	st = rvt_mp_inbound(&r, 100);
	rvt_mp_feed_data(&r, 100, 1000, 0);
	r.e->ops->stop(r.e, st);
	fill(5, 200000);
	rvt_mp_feed_data(&r, 4, RECV - 1000000, 200000);
	ck_assert_uint_eq(rvt_mp_unread(&r), RECV);
	rvt_mp_feed_data(&r, 100, 50000, 1000);
	ck_assert(!r.e->blocked);
	ck_assert_uint_eq(r.in.n, 0);
}
END_TEST

/* What ends the life of any stream that fills the bound lets the others go on, though another one met it. */
START_TEST(bound_of_the_connection_ends_with_any_of_its_streams)
{
	struct rv_stream *st;

	cfg.max_recv = RECV;
	start();
	st = rvt_mp_inbound(&r, 100);
	rvt_mp_feed_data(&r, 100, WINDOW, 0);
	fill(3, 220000);
	(void)rvt_mp_inbound(&r, 5);
	rvt_mp_feed_data(&r, 5, 200000, 0);
	ck_assert(r.e->blocked);
	rvt_mp_unblock(&r, _i, st);
	ck_assert_msg(!r.e->blocked, "%d", _i);
	rvt_mp_go_on(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 5), 200000);
}
END_TEST

/* Stopped streams hold up nobody, however much they have been sent. */
START_TEST(stopped_streams_do_not_count)
{
	struct rv_stream *st;

	cfg.max_recv = RECV;
	start();
	for (unsigned i = 0; i < 20; i++) {
		st = rvt_mp_inbound(&r, i);
		rvt_mp_feed_data(&r, i, 250000, 0);
		r.e->ops->stop(r.e, st);
		rvt_mp_feed_data(&r, i, 500000, 250000);
		ck_assert_uint_eq(rvt_mp_got(&r, i), 250000);
		r.e->ops->consumed(r.e, st, 100, r.now); /* late */
	}
	ck_assert(!r.e->blocked);
	ck_assert_uint_eq(rvt_mp_unread(&r), 0);
	(void)rvt_mp_inbound(&r, 50);
	rvt_mp_feed_data(&r, 50, WINDOW, 0);
	ck_assert_uint_eq(rvt_mp_got(&r, 50), WINDOW);
}
END_TEST

/* The peer has ended its direction: the bytes are complete, and their stream is not to blame. */
START_TEST(complete_streams_are_left_alone)
{
	cfg.max_recv = RECV;
	start();
	for (unsigned i = 0; i < 20; i++) {
		(void)rvt_mp_inbound(&r, i);
		rvt_mp_feed_data(&r, i, 100000, 0);
		rvt_mp_put(&r.in, RVT_MP_CLOSE_I, i, 0);
		rvt_mp_feed(&r);
		(void)rvt_event(&r, RV_EV_FIN, rvt_mp_key(i, false));
	}
	ck_assert(!r.e->blocked);
	ck_assert_uint_eq(rvt_mp_unread(&r), 2000000);
	(void)rvt_mp_inbound(&r, 50);
	rvt_mp_feed_data(&r, 50, WINDOW + 1, 0);
	ck_assert(r.e->blocked);
	rvt_mp_tick(&r, 5000);
	rvt_mp_go_on(&r);
	(void)rvt_event(&r, RV_EV_SLOW, rvt_mp_key(50, false));
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_mp_unread(&r), 2000000);
}
END_TEST

START_TEST(complete_stream_with_most_unread_is_left_alone)
{
	cfg.max_recv = RECV;
	start();
	(void)rvt_mp_inbound(&r, 100);
	rvt_mp_feed_data(&r, 100, 250000, 0);
	rvt_mp_put(&r.in, RVT_MP_CLOSE_I, 100, 0);
	rvt_mp_feed(&r);
	(void)rvt_event(&r, RV_EV_FIN, rvt_mp_key(100, false));
	fill(5, 200000);
	rvt_mp_feed_data(&r, 3, 40000, 200000);
	rvt_mp_feed_data(&r, 2, 10000, 200000);
	ck_assert(r.e->blocked);
	rvt_mp_tick(&r, 5000);
	rvt_mp_go_on(&r);
	(void)rvt_event(&r, RV_EV_SLOW, rvt_mp_key(3, false));
	rvt_no_event(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_limits");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, bound_of_the_connection_resets_the_one_with_most_unread, 0, 10);
	tcase_add_test(t, bound_of_the_connection_waits_for_a_quarter);
	tcase_add_test(t, bound_of_the_connection_by_many_small_streams);
	tcase_add_test(t, stopped_stream_passes_a_full_connection);
	tcase_add_loop_test(t, bound_of_the_connection_ends_with_any_of_its_streams, 0, RVT_BYS);
	tcase_add_test(t, stopped_streams_do_not_count);
	tcase_add_test(t, complete_streams_are_left_alone);
	tcase_add_test(t, complete_stream_with_most_unread_is_left_alone);
	return rvt_run_tcase("mplex_limits", t);
}
