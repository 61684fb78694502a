/* test_engine_stream.c - how streams end: the order of FIN and RST, what the application is
 * told. */
#include <config.h>

#include "tests/kit/engine_rig.h"

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

static struct rv_stream *
syn(uint32_t id)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, id, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	return rvt_event(&r, RV_EV_OPEN, id).st;
}

/* --- order of ends */

START_TEST(fin_is_sent_once)
{
	struct rv_stream *st = rvt_outbound(&r);

	r.e->ops->shut(r.e, st);
	r.e->ops->shut(r.e, st);
	rvt_drain(&r, 0);
	r.e->ops->shut(r.e, st);
	r.e->ops->close(r.e, st, false, r.now);
	r.e->ops->close(r.e, st, false, r.now);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(fin_waits_for_bytes_without_credit)
{
	struct rv_stream *st = rvt_outbound(&r);
	struct rvt_frame f;

	rvt_send(&r, st, RV_WINDOW0 + 10);
	r.e->ops->shut(r.e, st);
	rvt_drain(&r, 0);
	while (rvt_next(&r.out, &f))
		ck_assert_uint_eq(f.flags, 0);
	for (int i = 0; i < 10; i++) {
		rvt_put(&r.in, RVT_WU, 0, 1, 1);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		rvt_drain(&r, 0);
		ck_assert(rvt_next(&r.out, &f));
		ck_assert_uint_eq(f.len, 1);
		ck_assert_uint_eq(f.flags, 0);
		if (i == 9)
			rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
		rvt_want_none(&r);
	}
}
END_TEST

START_TEST(bytes_after_shut_are_dropped_and_reported)
{
	struct rv_stream *st = rvt_outbound(&r);

	r.e->ops->shut(r.e, st);
	rvt_send(&r, st, 100);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 100);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(stream_is_gone_after_both_fins_and_all_taken)
{
	struct rv_stream *st = rvt_outbound(&r);

	rvt_send(&r, st, 5000);
	r.e->ops->shut(r.e, st);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_FIN, 1);
	ck_assert_uint_eq(r.e->nstreams, 1);
	/* In the gather but not taken: ended on the wire, not gone. */
	ck_assert_uint_gt(r.e->ops->drain(r.e, r.g, r.now), 0);
	ck_assert_uint_eq(r.e->nstreams, 0);
	rvt_notify(&r);
	rvt_no_event(&r);
	rv_gather_sent(r.e, r.g, r.g->bytes - 13); /* all but a byte and the frame with FIN */
	rvt_notify(&r);
	rvt_no_event(&r);
	rv_gather_sent(r.e, r.g, 13);
	rv_gather_reset(r.g);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 5000);
}
END_TEST

START_TEST(late_calls_on_an_ended_stream_are_harmless)
{
	struct rv_stream *st = rvt_outbound(&r);

	rvt_put(&r.in, RVT_WU, RVT_RST, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_RST, 1);
	rvt_send(&r, st, 10);
	r.e->ops->accept(r.e, st);
	r.e->ops->shut(r.e, st);
	r.e->ops->stop(r.e, st);
	r.e->ops->consumed(r.e, st, 5, r.now);
	r.e->ops->reset(r.e, st, 5);
	r.e->ops->close(r.e, st, true, r.now);
	r.e->ops->drop(r.e, st);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
}
END_TEST

START_TEST(crossing_fins_leave_nothing)
{
	for (uint32_t i = 0; i < 100; i++) {
		struct rv_stream *st = rvt_outbound(&r);
		uint32_t id = st->id;

		r.e->ops->close(r.e, st, false, r.now);
		rvt_put(&r.in, RVT_WU, RVT_FIN, id, 0);
		if (i % 2 == 0)
			rvt_drain(&r, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		rvt_drain(&r, 0);
		rvt_want(&r, RVT_WU, RVT_FIN, id, 0);
		rvt_want_none(&r);
		rvt_notify(&r);
		(void)rvt_event(&r, RV_EV_GONE, id);
	}
	ck_assert_uint_eq(r.e->nstreams, 0);
}
END_TEST

/* A late update for a stream that was closed must not cancel what is queued (rust-yamux 110). */
START_TEST(credit_after_close_lets_the_rest_out)
{
	struct rv_stream *st = rvt_outbound(&r);
	struct rvt_frame f;
	uint64_t got = 0;
	unsigned fins = 0;

	rvt_send(&r, st, 300000);
	r.e->ops->close(r.e, st, false, r.now);
	rvt_put(&r.in, RVT_WU, 0, 1, 50000);
	rvt_put(&r.in, RVT_WU, 0, 1, 50000);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 1000);
	while (rvt_next(&r.out, &f)) {
		ck_assert_uint_eq(f.flags & RVT_RST, 0);
		ck_assert_uint_eq(fins, 0);
		fins += (f.flags & RVT_FIN) != 0;
		got += f.len;
	}
	ck_assert_uint_eq(got, 300000);
	ck_assert_uint_eq(fins, 1);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.in, RVT_WU, 0, 1, 50000);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
}
END_TEST

/* Dropping a handle right after writing: the reset is behind the bytes (rust-yamux 117). */
START_TEST(drop_after_writes_sends_them_first)
{
	struct rv_stream *st = rvt_outbound(&r);

	for (int i = 0; i < 3; i++)
		rvt_send(&r, st, 11);
	r.e->ops->drop(r.e, st);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 33);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(goaway_and_fatal_errors_end_opens)
{
	struct rv_stream *st;

	r.e->ops->goaway(r.e, 7);
	r.e->ops->goaway(r.e, 8);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EGOAWAY);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 7);
	rvt_want_none(&r);
	rvt_put_raw(&r.in, 0x900, 0, 0, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_EPROTO);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_ECLOSED);
	rvt_drain(&r, 0);
	rvt_want_none(&r); /* one go-away a connection */
}
END_TEST

START_TEST(closing_tells_every_stream_once)
{
	struct rv_stream *a = rvt_outbound(&r), *b = rvt_outbound(&r), *st;

	r.e->ops->close(r.e, b, false, r.now);
	(void)syn(2);
	r.e->ops->closing(r.e);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EGOAWAY);
	rvt_notify(&r);
	ck_assert(
	    rvt_seen(&r, 1)->closing && rvt_seen(&r, 2)->closing && !rvt_seen(&r, 3)->closing);
	ck_assert_uint_eq(r.nev - r.at, 2);
	r.at = r.nev;
	r.e->ops->shut(r.e, a);
	r.e->ops->reset(r.e, rvt_seen(&r, 2)->st, 0);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 3, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(r.e->nstreams, 3);
	rvt_drain(&r, 0);
	ck_assert_uint_eq(r.e->nstreams, 0);
}
END_TEST

START_TEST(end_lets_go_of_everything)
{
	struct rv_stream *a = rvt_outbound(&r), *b = rvt_outbound(&r);

	rvt_send(&r, a, 100000); /* partly in a gather */
	rvt_send(&r, b, RV_WINDOW0 + 1);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	(void)rvt_open(&r);
	(void)syn(2);
	r.e->ops->end(r.e);
	r.e->ops->end(r.e);
	ck_assert(!r.e->ops->has_output(r.e));
	rvt_notify(&r);
	ck_assert(!rvt_seen(&r, 1)->gone); /* still in the gather */
	rv_gather_abort(r.e, r.g);
	rvt_notify(&r);
	for (unsigned i = 1; i <= r.nseen; i++)
		ck_assert(r.seen[i].gone && r.seen[i].ended);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_stream");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, fin_is_sent_once);
	tcase_add_test(t, fin_waits_for_bytes_without_credit);
	tcase_add_test(t, bytes_after_shut_are_dropped_and_reported);
	tcase_add_test(t, stream_is_gone_after_both_fins_and_all_taken);
	tcase_add_test(t, late_calls_on_an_ended_stream_are_harmless);
	tcase_add_test(t, crossing_fins_leave_nothing);
	tcase_add_test(t, credit_after_close_lets_the_rest_out);
	tcase_add_test(t, drop_after_writes_sends_them_first);
	tcase_add_test(t, goaway_and_fatal_errors_end_opens);
	tcase_add_test(t, closing_tells_every_stream_once);
	tcase_add_test(t, end_lets_go_of_everything);
	return rvt_run_tcase("engine_stream", t);
}
