/* test_mplex_floods.c - a peer that opens, resets and announces too much; a sink without room. */
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

/* --- floods */

START_TEST(streams_beyond_the_bound_are_refused)
{
	for (unsigned i = 0; i < 128; i++)
		(void)rvt_mp_inbound(&r, i);
	rvt_mp_put(&r.in, RVT_MP_OPEN, 128, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 128, 1000, 0); /* skipped */
	rvt_mp_put(&r.in, RVT_MP_CLOSE_I, 128, 0);
	rvt_mp_feed(&r);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_mp_want(&r, RVT_MP_RESET_R, 128, 0);
	rvt_mp_want_none(&r);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.refused), 1);
	/* a place is free again when one has ended both ways */
	rvt_mp_put(&r.in, RVT_MP_RESET_I, 3, 0);
	rvt_mp_feed(&r);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_RST, rvt_mp_key(3, false));
	(void)rvt_event(&r, RV_EV_GONE, rvt_mp_key(3, false));
	(void)rvt_mp_inbound(&r, 129);
}
END_TEST

START_TEST(refusals_that_the_peer_does_not_read_end_the_connection)
{
	size_t bytes;
	int rc = 0;
	unsigned i;

	for (i = 0; i < 128; i++)
		(void)rvt_mp_inbound(&r, i);
	rvt_mp_put(&r.in, RVT_MP_OPEN, i++, 0);
	rvt_mp_feed(&r);
	bytes = rv_arena_bytes(r.ar);
	for (; rc == 0 && i < 100000; i++) {
		rvt_mp_put(&r.in, RVT_MP_OPEN, i, 0);
		rc = rvt_feed(&r, 0);
	}
	ck_assert_int_eq(rc, REEVE_ELIMIT);
	ck_assert_uint_eq(i, 128 + RV_REFUSALS_MAX + 1);
	rvt_mp_want_reason(&r, REEVE_ELIMIT, "REEVE-MPLEX-0005");
	ck_assert_uint_lt(rv_arena_bytes(r.ar), bytes + 16384);
	ck_assert(!r.e->ops->has_output(r.e));
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
}
END_TEST

START_TEST(peer_that_reads_its_refusals_may_go_on)
{
	size_t bytes;

	for (unsigned i = 0; i < 128; i++)
		(void)rvt_mp_inbound(&r, i);
	bytes = rv_arena_bytes(r.ar);
	for (unsigned i = 128; i < 20000; i++) {
		rvt_mp_put(&r.in, RVT_MP_OPEN, i, 0);
		rvt_mp_feed(&r);
		if (i % 1000 == 0)
			rvt_drain(&r, 0);
	}
	rvt_drain(&r, 0);
	for (unsigned i = 128; i < 20000; i++)
		rvt_mp_want(&r, RVT_MP_RESET_R, i, 0);
	rvt_mp_want_none(&r);
	/* one block of the pool may have come beside */
	ck_assert_uint_lt(rv_arena_bytes(r.ar), bytes + RV_REFUSALS_MAX * sizeof(uint64_t));
}
END_TEST

START_TEST(opening_and_resetting_has_a_rate)
{
	int rc = 0;
	unsigned i;

	for (i = 0; rc == 0 && i < 5000; i++) {
		rvt_mp_put(&r.in, RVT_MP_OPEN, i, 0);
		rvt_mp_put(&r.in, RVT_MP_RESET_I, i, 0);
		rc = rvt_feed(&r, 0);
		if (rc == 0)
			rvt_notify(&r);
	}
	ck_assert_int_eq(rc, REEVE_ELIMIT);
	ck_assert_uint_eq(i, 1001);
	rvt_mp_want_reason(&r, REEVE_ELIMIT, "REEVE-MPLEX-0007");
}
END_TEST

/* Accepted streams are work that was wanted. */
START_TEST(churn_of_accepted_streams_is_free)
{
	for (unsigned i = 0; i < 5000; i++) {
		(void)rvt_mp_inbound(&r, i);
		rvt_mp_put(&r.in, RVT_MP_RESET_I, i, 0);
		rvt_mp_feed(&r);
		rvt_notify(&r);
		(void)rvt_event(&r, RV_EV_RST, rvt_mp_key(i, false));
		(void)rvt_event(&r, RV_EV_GONE, rvt_mp_key(i, false));
	}
	ck_assert_uint_lt(r.e->nstreams, 1);
}
END_TEST

START_TEST(a_million_empty_frames_cost_nothing)
{
	size_t bytes;

	(void)rvt_mp_inbound(&r, 0);
	bytes = rv_arena_bytes(r.ar);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 10000; k++)
			rvt_mp_put(&r.in, RVT_MP_DATA_I, k % 2, 0); /* known and unknown */
		rvt_mp_feed(&r);
	}
	ck_assert_uint_le(rv_arena_bytes(r.ar), bytes + 65536 + 4096); /* the rig's block */
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.frames_in), 1000001);
	rvt_no_event(&r);
	ck_assert(!r.e->ops->has_output(r.e));
}
END_TEST

/* Whatever a header announces, nothing is reserved for it. */
START_TEST(announced_bodies_take_no_memory)
{
	size_t bytes;

	for (unsigned i = 0; i < 100; i++)
		(void)rvt_mp_inbound(&r, i);
	rvt_mp_put(&r.in, RVT_MP_DATA_I, 0, 1);
	*rvt_bytes_more(&r.in, 1) = rvt_byte(2, 0);
	rvt_mp_feed(&r);
	bytes = rv_arena_bytes(r.ar);
	rvt_mp_put(&r.in, RVT_MP_DATA_I, 1, RV_MP_BODY_MAX);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rv_arena_bytes(r.ar), bytes);
}
END_TEST

/* The sink has little room: nothing is lost or emitted too much. */
START_TEST(sink_without_room_is_waited_for)
{
	rvt_mp_put(&r.in, RVT_MP_OPEN, 0, 0);
	for (unsigned i = 0; i < 20; i++)
		rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 10, 10 * i);
	rvt_mp_put(&r.in, RVT_MP_CLOSE_I, 0, 0);
	for (unsigned i = 0; r.in.n > r.in.at || i == 0; i++) {
		ck_assert_uint_lt(i, 1000);
		r.room = i % 6;
		ck_assert_int_eq(rvt_feed(&r, (size_t)_i), 0);
	}
	r.room = UINT32_MAX;
	ck_assert_uint_eq(rvt_seen(&r, 2)->got, 200);
	(void)rvt_event(&r, RV_EV_OPEN, 2);
	(void)rvt_event(&r, RV_EV_FIN, 2);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_floods");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, streams_beyond_the_bound_are_refused);
	tcase_add_test(t, refusals_that_the_peer_does_not_read_end_the_connection);
	tcase_add_test(t, peer_that_reads_its_refusals_may_go_on);
	tcase_add_test(t, opening_and_resetting_has_a_rate);
	tcase_add_test(t, churn_of_accepted_streams_is_free);
	tcase_add_test(t, a_million_empty_frames_cost_nothing);
	tcase_add_test(t, announced_bodies_take_no_memory);
	tcase_add_loop_test(t, sink_without_room_is_waited_for, 0, 4);
	return rvt_run_tcase("mplex_floods", t);
}
