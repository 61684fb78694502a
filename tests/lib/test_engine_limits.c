/* test_engine_limits.c - bounds: backlog, unacknowledged opens, pongs, refusals, churn, a sink
 * without room, a hostile peer. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_rig r;
static reeve_cfg_t cfg;

static void
setup(void)
{
	rvt_cfg(&cfg);
	memset(&r, 0, sizeof(r));
}

static void
start(int role)
{
	rvt_rig_init(&r, role, &cfg, NULL);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* --- opening */

START_TEST(opens_wait_for_the_first_answer)
{
	struct rv_stream *st;

	start(REEVE_DIALER);
	for (int i = 0; i < 256; i++)
		rvt_send(&r, rvt_open(&r), 10);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EAGAIN);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EAGAIN);
	rvt_notify(&r);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	for (uint32_t i = 0; i < 256; i++)
		rvt_want(&r, RVT_DATA, RVT_SYN, 2 * i + 1, 10); /* no round trip needed */
	rvt_put(&r.in, RVT_WU, RVT_ACK, 7, 0);
	rvt_put(&r.in, RVT_WU, RVT_ACK, 7, 0); /* twice: one slot */
	rvt_put(&r.in, RVT_WU, RVT_ACK, 2, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_SLOT, 0);
	rvt_no_event(&r);
	(void)rvt_open(&r);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EAGAIN);
}
END_TEST

/* No permit leaks on any path: resets, ACK after close, FIN without ACK, our resets, drops. */
START_TEST(unacknowledged_count_returns_on_every_path)
{
	cfg.max_unacked = 4;
	start(REEVE_DIALER);
	for (int i = 0; i < 2000; i++) {
		struct rv_stream *st = rvt_open(&r);
		uint32_t id = st->id;

		if (i % 3 != 0)
			rvt_drain(&r, 0);
		switch (i % 7) {
		case 0:
			rvt_put(&r.in, RVT_WU, RVT_RST, id, 0);
			break;
		case 1:
			r.e->ops->close(r.e, st, false, r.now);
			rvt_put(&r.in, RVT_WU, RVT_ACK | RVT_FIN, id, 0);
			break;
		case 2:
			rvt_put(&r.in, RVT_WU, RVT_FIN, id, 0);
			break;
		case 3:
			r.e->ops->reset(r.e, st, 0);
			break;
		case 4:
			r.e->ops->drop(r.e, st);
			break;
		case 5:
			rvt_send(&r, st, 10);
			r.e->ops->drop(r.e, st);
			break;
		default:
			r.e->ops->close(r.e, st, true, r.now);
			break;
		}
		rvt_drain(&r, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		if (i % 7 == 2)
			r.e->ops->close(r.e, st, false, r.now);
		rvt_drain(&r, 0);
		rvt_notify(&r);
		r.at = r.nev;
	}
	ck_assert_uint_eq(r.e->nunacked, 0);
	ck_assert_uint_eq(r.e->nstreams, 0);
}
END_TEST

START_TEST(max_out_is_an_error_of_open_only)
{
	struct rv_stream *a, *st;

	cfg.max_out = 2;
	start(REEVE_DIALER);
	a = rvt_outbound(&r);
	(void)rvt_outbound(&r);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_ELIMIT);
	r.e->ops->reset(r.e, a, 0);
	rvt_drain(&r, 0);
	(void)rvt_open(&r);
}
END_TEST

/* --- inbound */

START_TEST(backlog_refuses_what_nobody_accepted)
{
	start(REEVE_LISTENER);
	for (uint32_t i = 0; i < 257; i++)
		rvt_put_data(&r.in, RVT_SYN, 2 * i + 1, 1024, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(r.nev, 256);
	ck_assert_uint_eq(r.e->nunaccepted, 256);
	for (uint32_t i = 0; i < 256; i++)
		ck_assert_uint_eq(rvt_seen(&r, 2 * i + 1)->got, 1024);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 513, 0);
	rvt_want_none(&r);
	r.at = r.nev;
	r.e->ops->accept(r.e, rvt_seen(&r, 1)->st);
	r.e->ops->drop(r.e, rvt_seen(&r, 3)->st);
	r.e->ops->reset(r.e, rvt_seen(&r, 5)->st, 0);
	r.e->ops->close(r.e, rvt_seen(&r, 7)->st, true, r.now);
	rvt_put(&r.in, RVT_WU, RVT_RST, 9, 0);
	for (uint32_t i = 0; i < 6; i++)
		rvt_put(&r.in, RVT_WU, RVT_SYN, 515 + 2 * i, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(r.e->nunaccepted, 256);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.refused), 2);
}
END_TEST

START_TEST(max_in_refuses_and_recovers)
{
	cfg.max_in = 2;
	start(REEVE_LISTENER);
	(void)rvt_inbound(&r, 1);
	(void)rvt_inbound(&r, 3);
	rvt_put_data(&r.in, RVT_SYN, 5, 100, 0);
	ck_assert_int_eq(rvt_feed(&r, 13), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 5, 0);
	/* One ends and a new one comes in the same bytes. */
	r.e->ops->close(r.e, rvt_seen(&r, 1)->st, false, r.now);
	rvt_drain(&r, 0);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 7, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_OPEN, 7);
	rvt_drain(&r, 0);
}
END_TEST

START_TEST(refusals_are_bounded)
{
	start(REEVE_LISTENER);
	r.e->ops->closing(r.e);
	for (uint32_t i = 0; i < RV_REFUSALS_MAX; i++)
		rvt_put(&r.in, RVT_WU, RVT_SYN, 2 * i + 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 9999, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_ELIMIT);
	ck_assert_str_eq(r.e->reason.id, "REEVE-YAMUX-0009");
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 2);
	rvt_want_none(&r);
}
END_TEST

START_TEST(refusals_that_leave_are_not_counted)
{
	start(REEVE_LISTENER);
	r.e->ops->closing(r.e);
	for (uint32_t i = 0; i < 5000; i++) {
		rvt_put(&r.in, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		if (i % 1000 == 999) {
			ck_assert_int_eq(rvt_feed(&r, 0), 0);
			rvt_drain(&r, 0);
			for (uint32_t k = i - 999; k <= i; k++)
				rvt_want(&r, RVT_WU, RVT_RST, 2 * k + 1, 0);
		}
	}
	rvt_want_none(&r);
}
END_TEST

START_TEST(pongs_are_bounded_and_in_order)
{
	start(REEVE_LISTENER);
	for (uint32_t i = 0; i < 100; i++)
		rvt_put(&r.in, RVT_PING, RVT_SYN, 0, i);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	for (uint32_t i = 0; i < 32; i++)
		rvt_want(&r, RVT_PING, RVT_ACK, 0, i);
	rvt_want_none(&r);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.pongs_dropped), 68);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.pings_in), 32);
}
END_TEST

START_TEST(churn_above_burst_and_rate_ends_the_connection)
{
	cfg.churn_burst = 10;
	cfg.churn_per_s = 10;
	start(REEVE_LISTENER);
	for (uint32_t i = 0; i < 15; i++) {
		rvt_put(&r.in, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		rvt_put(&r.in, RVT_WU, RVT_RST, 2 * i + 1, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), i < 10 || _i == 1 ? 0 : REEVE_ELIMIT);
		if (i == 10 && _i == 0)
			break;
		rvt_drain(&r, 0);
		r.now += _i == 1 ? 100000 : 0; /* at the rate: for ever */
	}
	if (_i == 0)
		ck_assert_str_eq(r.e->reason.id, "REEVE-YAMUX-0011");
}
END_TEST

START_TEST(resets_of_accepted_streams_are_no_churn)
{
	cfg.churn_burst = 1;
	start(REEVE_LISTENER);
	for (uint32_t i = 0; i < 500; i++) {
		(void)rvt_inbound(&r, 2 * i + 1);
		rvt_put(&r.in, RVT_WU, RVT_RST, 2 * i + 1, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		r.at = r.nev;
		rvt_notify(&r);
		r.at = r.nev;
	}
}
END_TEST

/* A peer that reads nothing: ended records wait for a drain, and their number is bounded too. */
START_TEST(ended_records_are_bounded_without_a_drain)
{
	cfg.max_in = 8;
	cfg.churn_burst = REEVE_OFF;
	start(REEVE_LISTENER);
	for (uint32_t i = 0; i < 100; i++) {
		rvt_put(&r.in, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		if (rvt_seen(&r, 2 * i + 1) != NULL)
			rvt_send(&r, rvt_seen(&r, 2 * i + 1)->st, 10);
		rvt_put(&r.in, RVT_WU, RVT_RST, 2 * i + 1, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		rvt_notify(&r);
		r.at = r.nev;
	}
	ck_assert_uint_eq(r.nseen, 8);
	rvt_drain(&r, 0);
	rvt_notify(&r);
	for (unsigned i = 1; i <= r.nseen; i++)
		ck_assert(r.seen[i].gone);
}
END_TEST

START_TEST(nothing_is_allocated_for_what_is_not_a_stream)
{
	unsigned before;

	start(REEVE_LISTENER);
	for (int k = 0; k < 3; k++) {
		before = r.allocs;
		for (uint32_t i = 0; i < 5000; i++) {
			rvt_put_data(&r.in, 0, 2 * i + 1001, 10, 0);
			rvt_put(&r.in, RVT_WU, RVT_SYN | RVT_RST, 2 * i + 1001, 0);
			rvt_put(&r.in, RVT_PING, RVT_ACK, 0, i + 1);
			rvt_put(&r.in, RVT_PING, RVT_SYN, 0, i);
		}
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
	}
	ck_assert_uint_eq(r.allocs, before); /* slabs come from the pool by now */
	rvt_drain(&r, 0);
	r.out.at = r.out.n;
}
END_TEST

/* --- the sink */

START_TEST(parsing_waits_for_room)
{
	start(REEVE_LISTENER);
	(void)rvt_inbound(&r, 1);
	for (uint32_t i = 1; i < 20; i++)
		rvt_put_data(&r.in, RVT_SYN | RVT_FIN, 2 * i + 1, 100, 0);
	rvt_put_data(&r.in, RVT_FIN, 1, 1000, 0);
	r.room = 0;
	while (r.in.n > 0) {
		ck_assert_int_eq(rvt_feed(&r, (size_t)_i), 0);
		r.room = (r.room + 1) % 7;
	}
	r.room = UINT32_MAX;
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 1000);
	ck_assert(rvt_seen(&r, 1)->fin);
	for (uint32_t i = 1; i < 20; i++) {
		ck_assert_uint_eq(rvt_seen(&r, 2 * i + 1)->got, 100);
		ck_assert(rvt_seen(&r, 2 * i + 1)->fin);
	}
}
END_TEST

START_TEST(pending_events_wait_for_room)
{
	unsigned calls = 0;
	bool done;

	start(REEVE_LISTENER);
	for (uint32_t i = 0; i < 10; i++)
		(void)rvt_inbound(&r, 2 * i + 1);
	for (uint32_t i = 0; i < 10; i++) {
		rvt_send(&r, rvt_seen(&r, 2 * i + 1)->st, 10);
		r.e->ops->drop(r.e, rvt_seen(&r, 2 * i + 1)->st);
	}
	rvt_drain(&r, 0);
	r.room = 0;
	ck_assert(!r.e->ops->notify(r.e));
	do {
		r.room = 1;
		done = r.e->ops->notify(r.e);
		calls++;
	} while (!done);
	ck_assert_uint_eq(calls, 20); /* taken and gone, ten times */
	ck_assert(r.e->ops->notify(r.e));
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_limits");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, opens_wait_for_the_first_answer);
	tcase_add_test(t, unacknowledged_count_returns_on_every_path);
	tcase_add_test(t, max_out_is_an_error_of_open_only);
	tcase_add_test(t, backlog_refuses_what_nobody_accepted);
	tcase_add_test(t, max_in_refuses_and_recovers);
	tcase_add_test(t, refusals_are_bounded);
	tcase_add_test(t, refusals_that_leave_are_not_counted);
	tcase_add_test(t, pongs_are_bounded_and_in_order);
	tcase_add_loop_test(t, churn_above_burst_and_rate_ends_the_connection, 0, 2);
	tcase_add_test(t, resets_of_accepted_streams_are_no_churn);
	tcase_add_test(t, ended_records_are_bounded_without_a_drain);
	tcase_add_test(t, nothing_is_allocated_for_what_is_not_a_stream);
	tcase_add_loop_test(t, parsing_waits_for_room, 0, 14);
	tcase_add_test(t, pending_events_wait_for_room);
	return rvt_run_tcase("engine_limits", t);
}
