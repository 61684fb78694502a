/* test_engine_time.c - pings, round trips, keepalive and the deadlines that the owner has to
 * keep. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000000u

static struct rvt_rig r;

static void
start(uint32_t keepalive_ms, uint32_t timeout_ms)
{
	reeve_cfg_t cfg;

	rvt_cfg(&cfg);
	cfg.keepalive_ms = keepalive_ms;
	cfg.keepalive_timeout_ms = timeout_ms;
	rvt_rig_init(&r, REEVE_DIALER, &cfg, NULL);
}

static void
pong(uint32_t value)
{
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, value);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
}

static void
tick_drain(void)
{
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_drain(&r, 0);
}

static void
bytes_in(void)
{
	rvt_put(&r.in, RVT_WU, 0, 99, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
}

START_TEST(first_round_trip_is_measured_at_the_start)
{
	start(0, 0);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.rtt_us), 0);
	r.now += 1234;
	pong(0);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.rtt_us), 1234);
	rvt_notify(&r);
	rvt_no_event(&r); /* nobody asked */
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(active_connection_measures_every_10_s)
{
	start(0, 0);
	rvt_round_trips(&r, 0);
	for (uint32_t i = RV_RTT_BURST; i < RV_RTT_BURST + 4; i++) {
		r.now += 10 * SEC - 1;
		bytes_in();
		rvt_drain(&r, 0);
		rvt_want_none(&r);
		r.now += 1;
		bytes_in();
		bytes_in();
		rvt_drain(&r, 0);
		rvt_want(&r, RVT_PING, RVT_SYN, 0, i);
		rvt_want_none(&r);
		pong(i);
	}
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(silence_is_probed_and_ends_the_connection)
{
	uint64_t t0;

	start(3000, 2000);
	rvt_round_trips(&r, 10);
	t0 = r.now;
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), t0 + 3 * SEC);
	r.now = t0 + 3 * SEC - 1;
	tick_drain();
	rvt_want_none(&r);
	r.now = t0 + 3 * SEC;
	tick_drain();
	rvt_want(&r, RVT_PING, RVT_SYN, 0, RV_RTT_BURST);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), t0 + 5 * SEC);
	r.now = t0 + 5 * SEC - 1;
	tick_drain();
	rvt_want_none(&r);
	r.now = t0 + 5 * SEC;
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), REEVE_EDEAD);
	ck_assert_int_eq(r.e->reason.rc, REEVE_EDEAD);
	ck_assert_str_eq(r.e->reason.id, "REEVE-YAMUX-0012");
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), REEVE_EDEAD);
	ck_assert(!r.e->ops->has_output(r.e));
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(any_byte_is_a_sign_of_life)
{
	/* Pings are never answered, but bytes arrive: one at a time, not even whole frames. */
	start(3000, 2000);
	rvt_put_data(&r.in, 0, 98, 100, 0);
	for (int i = 0; i < 100; i++) {
		struct rvt_bytes rest = r.in;

		r.now += 4 * SEC;
		ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
		r.in.n = r.in.at + 1;
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		r.in = rest;
		r.in.at++;
		rvt_drain(&r, 0);
	}
	r.in.n = r.in.at = 0;
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(black_hole_is_found_with_the_output_stuck)
{
	start(3000, 2000);
	rvt_round_trips(&r, 0);
	r.now += 3 * SEC;
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	/* the ping cannot leave: nobody drains */
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + 2 * SEC);
	r.now += 2 * SEC;
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), REEVE_EDEAD);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(keepalive_off_sends_only_what_is_asked_for)
{
	start(REEVE_OFF, 0);
	pong(0);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
	for (int i = 0; i < 100; i++) {
		r.now += 60 * SEC;
		tick_drain();
		bytes_in();
		rvt_drain(&r, 0);
		rvt_want_none(&r);
	}
	ck_assert(r.e->ops->ping(r.e, r.now));
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 1);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(keepalive_without_timeout_never_ends)
{
	start(3000, REEVE_OFF);
	for (int i = 0; i < 100; i++) {
		r.now += 60 * SEC;
		tick_drain();
		ck_assert_uint_gt(r.e->ops->next_deadline(r.e), r.now);
		ck_assert_uint_lt(r.e->ops->next_deadline(r.e), r.now + 61 * SEC);
	}
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(asked_ping_is_answered_once_by_its_own_pong)
{
	start(0, 0);
	pong(0);
	ck_assert(r.e->ops->ping(r.e, r.now));
	ck_assert(r.e->ops->ping(r.e, r.now)); /* not sent yet: the same one */
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 1);
	rvt_want_none(&r);
	ck_assert(!r.e->ops->ping(r.e, r.now)); /* in flight: ask again after it */
	r.now += 777;
	pong(5);
	rvt_notify(&r);
	rvt_no_event(&r);
	pong(1);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_PONG, 0).n, 777);
	rvt_no_event(&r);
	ck_assert(r.e->ops->ping(r.e, r.now));
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 2);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(asking_while_a_ping_is_in_flight_gets_the_next_pong)
{
	start(0, 0);
	ck_assert(!r.e->ops->ping(r.e, r.now));
	r.now += 50;
	pong(0); /* it left before anybody asked: what was queued meanwhile may be behind it */
	rvt_notify(&r);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 1);
	r.now += 60;
	pong(1);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_PONG, 0).n, 60);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(lost_pong_drops_the_sample_and_asks_again)
{
	start(0, 2000);
	ck_assert(!r.e->ops->ping(r.e, r.now));
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + 2 * SEC);
	r.now += SEC;
	bytes_in();
	r.now += SEC;
	tick_drain();
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 1);
	pong(0); /* too late */
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.rtt_us), 0);
	r.now += 40;
	pong(1);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.rtt_us), 40);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_PONG, 0);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(clock_that_stands_still_is_no_trouble)
{
	start(0, 0);
	rvt_round_trips(&r, 0);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.rtt_us), 1);
	for (int i = 0; i < 10; i++)
		tick_drain();
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_time");

	tcase_add_test(t, first_round_trip_is_measured_at_the_start);
	tcase_add_test(t, active_connection_measures_every_10_s);
	tcase_add_test(t, silence_is_probed_and_ends_the_connection);
	tcase_add_test(t, any_byte_is_a_sign_of_life);
	tcase_add_test(t, black_hole_is_found_with_the_output_stuck);
	tcase_add_test(t, keepalive_off_sends_only_what_is_asked_for);
	tcase_add_test(t, keepalive_without_timeout_never_ends);
	tcase_add_test(t, asked_ping_is_answered_once_by_its_own_pong);
	tcase_add_test(t, asking_while_a_ping_is_in_flight_gets_the_next_pong);
	tcase_add_test(t, lost_pong_drops_the_sample_and_asks_again);
	tcase_add_test(t, clock_that_stands_still_is_no_trouble);
	return rvt_run_tcase("engine_time", t);
}
