/* test_mplex_slow.c - a stream at its bound: parsing stops, what lets it go on, and the time that a slow reader has. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <string.h>

#define WINDOW (256u << 10)

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

/* Nobody reads stream 0, whose n bytes stop at its bound. */
static struct rv_stream *
block(uint32_t n)
{
	struct rv_stream *st = rvt_mp_inbound(&r, 0);

	rvt_mp_feed_data(&r, 0, n, 0);
	ck_assert(r.e->blocked);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), cfg.max_window == 0 ? WINDOW : cfg.max_window);
	return st;
}

START_TEST(stream_at_its_bound_stops_parsing_until_a_quarter_is_free)
{
	struct rv_stream *st;

	start();
	st = block(WINDOW + 1000);
	rvt_mp_put(&r.in, RVT_MP_OPEN, 1, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 1, 10, 0);
	rvt_mp_feed(&r);
	rvt_no_event(&r);
	r.e->ops->consumed(r.e, st, WINDOW / 4 - 1, r.now);
	ck_assert(r.e->blocked);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), WINDOW);
	r.e->ops->consumed(r.e, st, 1, r.now);
	ck_assert(!r.e->blocked);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), WINDOW + 1000);
	(void)rvt_event(&r, RV_EV_OPEN, rvt_mp_key(1, false));
	ck_assert_uint_eq(rvt_mp_got(&r, 1), 10);
	ck_assert_uint_eq(rvt_mp_unread(&r), WINDOW + 1000 - WINDOW / 4 + 10);
}
END_TEST

START_TEST(exactly_the_bound_blocks_nobody)
{
	start();
	(void)rvt_mp_inbound(&r, 0);
	rvt_mp_feed_data(&r, 0, WINDOW, 0);
	ck_assert(!r.e->blocked);
	(void)rvt_mp_inbound(&r, 1);
	rvt_mp_feed_data(&r, 1, WINDOW, 0);
	rvt_mp_put(&r.in, RVT_MP_CLOSE_I, 0, 0);
	rvt_mp_put(&r.in, RVT_MP_CLOSE_I, 1, 0);
	rvt_mp_feed(&r);
	ck_assert(!r.e->blocked);
	(void)rvt_event(&r, RV_EV_FIN, rvt_mp_key(0, false));
	(void)rvt_event(&r, RV_EV_FIN, rvt_mp_key(1, false));
}
END_TEST

/* Every byte alone, at the bound too. */
START_TEST(bound_is_exact_for_single_bytes)
{
	cfg.max_window = 16384;
	start();
	(void)rvt_mp_inbound(&r, 0);
	for (uint32_t at = 0; at < 16384; at += 4096)
		rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 4096, at);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 100, 16384);
	ck_assert_int_eq(rvt_feed(&r, 1), 0);
	ck_assert(r.e->blocked);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), 16384);
	ck_assert_uint_eq(r.in.n - r.in.at, 100);
}
END_TEST

/* --- whatever takes the reason away lets the others go on */

START_TEST(end_of_the_blocking_stream_unblocks)
{
	struct rv_stream *st;

	start();
	st = block(WINDOW + 5000);
	rvt_mp_put(&r.in, RVT_MP_OPEN, 1, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 1, 777, 0);
	rvt_mp_feed(&r);
	rvt_mp_unblock(&r, _i, st);
	ck_assert(!r.e->blocked);
	rvt_drain(&r, 0);
	rvt_mp_go_on(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 1), 777);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), _i == RVT_BY_CONSUMED ? WINDOW + 5000 : WINDOW);
	ck_assert_uint_eq(rvt_mp_unread(&r), 777 + (_i == RVT_BY_CONSUMED ? 5000 : 0));
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e),
	    _i <= RVT_BY_DROP && (rvt_seen(&r, 2)->st != NULL) ? r.now + UINT64_C(300000000)
							       : UINT64_MAX);
}
END_TEST

START_TEST(end_of_the_connection_while_blocked)
{
	start();
	(void)block(WINDOW + 1);
	r.e->ops->end(r.e);
	ck_assert(!r.e->blocked);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now + 10000000), 0);
}
END_TEST

START_TEST(pipe_that_ends_behind_a_blocked_body_is_cut)
{
	start();
	(void)block(WINDOW + 1);
	ck_assert_int_eq(r.e->ops->feed_end(r.e), REEVE_ETRUNC);
	rvt_mp_want_reason(&r, REEVE_ETRUNC, "REEVE-MPLEX-0008");
}
END_TEST

/* Who dropped a stream while it blocked has not broken the parsing of the rest of its body: any split. */
START_TEST(rest_of_the_body_of_a_dropped_stream_is_skipped)
{
	struct rv_stream *st;

	start();
	st = rvt_mp_inbound(&r, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, WINDOW + 300, 0);
	rvt_mp_put(&r.in, RVT_MP_OPEN, 1, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 1, 5, 0);
	rvt_mp_feed(&r);
	ck_assert(r.e->blocked);
	r.e->ops->drop(r.e, st);
	rvt_drain(&r, 0); /* the record goes while its body is at hand */
	rvt_mp_want(&r, RVT_MP_RESET_R, 0, 0);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 2);
	ck_assert_int_eq(rvt_feed(&r, 1), 0);
	ck_assert_uint_eq(rvt_mp_got(&r, 1), 5);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), WINDOW);
}
END_TEST

/* --- time */

START_TEST(slow_reader_is_reset_after_its_time)
{
	static const uint32_t ms[] = {0, 1, 60000};
	uint64_t limit = ms[_i] == 0 ? 5000 : ms[_i];
	struct rvt_seen *s;

	cfg.slow_ms = ms[_i];
	start();
	(void)block(WINDOW + 20000);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + limit * 1000);
	rvt_mp_tick(&r, limit - 1);
	ck_assert(r.e->blocked);
	rvt_no_event(&r);
	rvt_mp_tick(&r, 1);
	ck_assert(!r.e->blocked);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_SLOW, 2).n, 0); /* its bytes may be read */
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_RESET_R, 0, 0);
	rvt_mp_want_none(&r);
	rvt_mp_go_on(&r);
	s = rvt_seen(&r, 2);
	ck_assert(s->slow && s->gone && !s->rst && !s->fin);
	ck_assert_uint_eq(s->got, WINDOW);
	ck_assert_uint_eq(r.in.n, 0);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
}
END_TEST

START_TEST(slow_ms_off_waits_for_ever)
{
	cfg.slow_ms = REEVE_OFF;
	start();
	(void)block(WINDOW + 1);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
	rvt_mp_tick(&r, 86400000);
	ck_assert(r.e->blocked);
	rvt_no_event(&r);
}
END_TEST

/* The time is that of one stop: a reader that catches up in between has a new one. */
START_TEST(time_begins_anew_with_every_stop)
{
	struct rv_stream *st;

	start();
	st = block(3 * WINDOW);
	for (unsigned i = 0; i < 8; i++) {
		rvt_mp_tick(&r, 4999);
		ck_assert(r.e->blocked);
		r.e->ops->consumed(r.e, st, WINDOW / 4, r.now);
		ck_assert(!r.e->blocked);
		rvt_mp_go_on(&r);
		ck_assert_int_eq(r.e->blocked, i < 7);
	}
	rvt_no_event(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), 3 * WINDOW);
}
END_TEST

START_TEST(slow_reset_asks_nobody)
{
	cfg.flags = REEVE_CFG_SLOW_RESET;
	start();
	(void)rvt_mp_inbound(&r, 0);
	(void)rvt_mp_inbound(&r, 1);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, WINDOW + 1, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 100000, WINDOW + 1);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 1, 100, 0);
	rvt_mp_feed(&r);
	ck_assert(!r.e->blocked);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), WINDOW);
	ck_assert_uint_eq(rvt_mp_got(&r, 1), 100);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_SLOW, 2);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_RESET_R, 0, 0); /* once */
	rvt_mp_want_none(&r);
}
END_TEST

/* A stream that the application has let go of is told to nobody. */
START_TEST(slow_stream_then_closed_gives_one_reset)
{
	struct rv_stream *st;

	start();
	st = block(WINDOW + 1);
	rvt_mp_tick(&r, 5000);
	r.e->ops->close(r.e, st, true, r.now);
	rvt_notify(&r);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_RESET_R, 0, 0);
	rvt_mp_want_none(&r);
	rvt_mp_tick(&r, 400000);
	rvt_mp_go_on(&r);
	(void)rvt_event(&r, RV_EV_GONE, 2);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_slow");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, stream_at_its_bound_stops_parsing_until_a_quarter_is_free);
	tcase_add_test(t, exactly_the_bound_blocks_nobody);
	tcase_add_test(t, bound_is_exact_for_single_bytes);
	tcase_add_loop_test(t, end_of_the_blocking_stream_unblocks, 0, RVT_BYS);
	tcase_add_test(t, end_of_the_connection_while_blocked);
	tcase_add_test(t, pipe_that_ends_behind_a_blocked_body_is_cut);
	tcase_add_test(t, rest_of_the_body_of_a_dropped_stream_is_skipped);
	tcase_add_loop_test(t, slow_reader_is_reset_after_its_time, 0, 3);
	tcase_add_test(t, slow_ms_off_waits_for_ever);
	tcase_add_test(t, time_begins_anew_with_every_stop);
	tcase_add_test(t, slow_reset_asks_nobody);
	tcase_add_test(t, slow_stream_then_closed_gives_one_reset);
	return rvt_run_tcase("mplex_slow", t);
}
