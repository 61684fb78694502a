/* test_engine_open.c - opening, accepting, acknowledging: ids, SYN, ACK. */
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

/* Another configuration than the default. */
static void
again(int role, const reeve_cfg_t *cfg)
{
	rvt_rig_fini(&r);
	rvt_rig_init(&r, role, cfg, NULL);
}

static struct rv_stream *
syn(uint32_t id)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, id, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	return rvt_event(&r, RV_EV_OPEN, id).st;
}

/* --- SYN and ids */

START_TEST(open_without_data_sends_syn_at_the_next_drain)
{
	(void)rvt_open(&r);
	ck_assert(r.e->ops->has_output(r.e));
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_SYN, 1, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(open_with_data_sends_syn_on_it)
{
	struct rv_stream *st = rvt_open(&r);

	rvt_send(&r, st, 10);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, RVT_SYN, 1, 10);
	rvt_send(&r, st, 10);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 10);
	rvt_want_none(&r);
}
END_TEST

/* FIN is never on a frame with a body: some peers lose the body then. */
START_TEST(open_send_shut_is_two_frames)
{
	struct rv_stream *st = rvt_open(&r);

	rvt_send(&r, st, 10);
	r.e->ops->shut(r.e, st);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, RVT_SYN, 1, 10);
	rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(open_shut_is_one_frame)
{
	r.e->ops->shut(r.e, rvt_open(&r));
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_SYN | RVT_FIN, 1, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(dialer_counts_odd_and_listener_even)
{
	for (uint32_t id = 1; id < 9; id += 2)
		ck_assert_uint_eq(rvt_open(&r)->id, id);
	again(REEVE_LISTENER, NULL);
	for (uint32_t id = 2; id < 10; id += 2)
		ck_assert_uint_eq(rvt_open(&r)->id, id);
}
END_TEST

START_TEST(ids_used_up_fail_opens_and_nothing_else)
{
	int role = _i == 0 ? REEVE_DIALER : REEVE_LISTENER;
	uint32_t last = _i == 0 ? UINT32_MAX : UINT32_MAX - 1;
	struct rv_stream *st, *other;

	again(role, NULL);
	rv_yamux_set_next_id(r.e, last - 4);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(rvt_open(&r)->id, last - 4 + 2 * i);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EEXHAUSTED);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EEXHAUSTED);
	ck_assert_uint_eq(r.e->nunacked, 3);
	/* Inbound: the largest ids, and ids lower than before. */
	other = syn(_i == 0 ? UINT32_MAX - 1 : UINT32_MAX);
	ck_assert_uint_eq(syn(_i == 0 ? 2 : 1)->id, _i == 0 ? 2 : 1);
	rvt_send(&r, other, 5);
	rvt_send(&r, rvt_seen(&r, last)->st, 5);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_SYN, last - 4, 0);
	rvt_want(&r, RVT_WU, RVT_SYN, last - 2, 0);
	rvt_want(&r, RVT_DATA, RVT_ACK, other->id, 5);
	rvt_want(&r, RVT_DATA, RVT_SYN, last, 5);
	rvt_want_none(&r);
}
END_TEST

START_TEST(first_update_is_a_delta_on_256_kib)
{
	/* A peer that announces 256 KiB more gets exactly 512 KiB, then a stop, then a byte for
	 * a byte. */
	static const uint32_t delta[] = {262144, 0};
	struct rv_stream *st;
	struct rvt_frame f;
	uint64_t got = 0;

	again(REEVE_LISTENER, NULL);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 1, delta[_i]);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	st = rvt_event(&r, RV_EV_OPEN, 1).st;
	rvt_send(&r, st, 600 * 1024);
	rvt_drain(&r, 0);
	while (rvt_next(&r.out, &f))
		got += f.len;
	ck_assert_uint_eq(got, RV_WINDOW0 + delta[_i]);
	ck_assert(!r.e->ops->has_output(r.e));
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.stalls_window), 1);
	rvt_put(&r.in, RVT_WU, 0, 1, 1);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	ck_assert(rvt_next(&r.out, &f) && f.len == 1);
	rvt_want_none(&r);
}
END_TEST

/* --- ACK */

START_TEST(accept_acknowledges_once)
{
	struct rv_stream *st = syn(2);

	rvt_drain(&r, 0);
	rvt_want_none(&r); /* not before it is accepted */
	ck_assert_uint_eq(r.e->nunaccepted, 1);
	r.e->ops->accept(r.e, st);
	r.e->ops->accept(r.e, st);
	ck_assert_uint_eq(r.e->nunaccepted, 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_ACK, 2, 0);
	r.e->ops->accept(r.e, st);
	rvt_send(&r, st, 3);
	r.e->ops->shut(r.e, st);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 2, 3);
	rvt_want(&r, RVT_WU, RVT_FIN, 2, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(ack_rides_on_what_leaves_anyway)
{
	struct rv_stream *st = syn(2);

	/* 0: data, 1: FIN, 2: data before accept, 3: credit */
	if (_i != 2)
		r.e->ops->accept(r.e, st);
	if (_i == 0 || _i == 2)
		rvt_send(&r, st, 9);
	if (_i == 1)
		r.e->ops->shut(r.e, st);
	if (_i == 3) {
		rvt_put_data(&r.in, 0, 2, RV_WINDOW0 / 2, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		r.e->ops->consumed(r.e, st, RV_WINDOW0 / 2, r.now);
	}
	rvt_drain(&r, 0);
	switch (_i) {
	case 1:
		rvt_want(&r, RVT_WU, RVT_ACK | RVT_FIN, 2, 0);
		break;
	case 3:
		rvt_want(&r, RVT_WU, RVT_ACK, 2, RV_WINDOW0 / 2);
		break;
	default:
		rvt_want(&r, RVT_DATA, RVT_ACK, 2, 9);
		break;
	}
	if (_i == 2)
		r.e->ops->accept(r.e, st);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(lazy_ack_waits_for_an_own_frame)
{
	reeve_cfg_t cfg;
	struct rv_stream *st;

	rvt_cfg(&cfg);
	cfg.flags = REEVE_CFG_LAZY_ACK;
	again(REEVE_DIALER, &cfg);
	st = syn(2);
	r.e->ops->accept(r.e, st);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_send(&r, st, 1);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, RVT_ACK, 2, 1);
}
END_TEST

START_TEST(ack_goes_to_a_stream_that_has_ended_its_direction)
{
	struct rv_stream *st;

	rvt_put(&r.in, RVT_WU, RVT_SYN | RVT_FIN, 2, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	st = rvt_event(&r, RV_EV_OPEN, 2).st;
	(void)rvt_event(&r, RV_EV_FIN, 2);
	r.e->ops->accept(r.e, st);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_ACK, 2, 0);
}
END_TEST

START_TEST(own_streams_never_carry_ack)
{
	struct rv_stream *st = rvt_outbound(&r);

	r.e->ops->accept(r.e, st);
	rvt_send(&r, st, 1);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 1);
	rvt_want_none(&r);
}
END_TEST

START_TEST(any_frame_of_the_peer_is_an_answer)
{
	struct rv_stream *st = rvt_open(&r);

	rvt_send(&r, st, 1);
	rvt_drain(&r, 0);
	ck_assert_uint_eq(r.e->nunacked, 1);
	switch (_i) {
	case 0:
		rvt_put(&r.in, RVT_WU, RVT_ACK, 1, 0);
		break;
	case 1:
		rvt_put_data(&r.in, 0, 1, 1, 0); /* as some peers do after an early FIN */
		break;
	case 2:
		rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
		break;
	case 3:
		rvt_put(&r.in, RVT_WU, RVT_RST, 1, 0);
		break;
	default:
		rvt_put(&r.in, RVT_WU, 0, 1, 100);
		break;
	}
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(r.e->nunacked, 0);
	if (_i == 3)
		ck_assert_uint_eq(rvt_event(&r, RV_EV_RST, 1).flags, RV_EVF_REFUSED);
}
END_TEST

START_TEST(reset_after_an_answer_is_no_refusal)
{
	(void)rvt_outbound(&r);
	rvt_put(&r.in, RVT_WU, RVT_RST, 1, 4);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_RST, 1).flags, 0);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_open");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, open_without_data_sends_syn_at_the_next_drain);
	tcase_add_test(t, open_with_data_sends_syn_on_it);
	tcase_add_test(t, open_send_shut_is_two_frames);
	tcase_add_test(t, open_shut_is_one_frame);
	tcase_add_test(t, dialer_counts_odd_and_listener_even);
	tcase_add_loop_test(t, ids_used_up_fail_opens_and_nothing_else, 0, 2);
	tcase_add_loop_test(t, first_update_is_a_delta_on_256_kib, 0, 2);
	tcase_add_test(t, accept_acknowledges_once);
	tcase_add_loop_test(t, ack_rides_on_what_leaves_anyway, 0, 4);
	tcase_add_test(t, lazy_ack_waits_for_an_own_frame);
	tcase_add_test(t, ack_goes_to_a_stream_that_has_ended_its_direction);
	tcase_add_test(t, own_streams_never_carry_ack);
	tcase_add_loop_test(t, any_frame_of_the_peer_is_an_answer, 0, 5);
	tcase_add_test(t, reset_after_an_answer_is_no_refusal);
	return rvt_run_tcase("engine_open", t);
}
