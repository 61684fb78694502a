/* test_engine_matrix.c - how the yamux engine reacts to each input a peer can make: one test a
 * row. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_rig r;

/* A listener with inbound stream 1 accepted. */
static void
setup(void)
{
	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	(void)rvt_inbound(&r, 1);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* What is in r.in breaks the protocol: GO_AWAY(1), the named reason, nothing else ever. */
static void
violation(const char *id)
{
	struct rv_slab *s = rv_slab_get(r.pool, 16);

	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_EPROTO);
	ck_assert_int_eq(r.e->reason.rc, REEVE_EPROTO);
	ck_assert_uint_eq(r.e->reason.by, REEVE_BY_US);
	ck_assert_str_eq(r.e->reason.id, id);
	ck_assert(r.e->ops->has_output(r.e));
	rvt_drain(&r, 5);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 1);
	rvt_want_none(&r);
	ck_assert(!r.e->ops->has_output(r.e));
	/* Never called again, and if it is: the same answer. */
	ck_assert_int_eq(r.e->ops->feed(r.e, s, 0, 12, r.now), REEVE_EPROTO);
	rv_slab_unref(s);
}

/* What is in r.in changes nothing and is answered by nothing; the session goes on. */
static void
ignored(void)
{
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_notify(&r);
	rvt_no_event(&r);
	rvt_put(&r.in, RVT_PING, RVT_SYN, 0, 77);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 77);
}

START_TEST(version_not_0_is_violation)
{
	rvt_put_raw(&r.in, 0x100 | RVT_PING, RVT_SYN, 0, 0);
	violation("REEVE-YAMUX-0001");
}
END_TEST

START_TEST(type_above_3_is_violation)
{
	rvt_put(&r.in, 4, 0, 0, 0);
	violation("REEVE-YAMUX-0002");
}
END_TEST

START_TEST(unknown_flag_bits_are_ignored)
{
	rvt_put(&r.in, RVT_WU, 0xfff0, 1, 0);
	rvt_put(&r.in, RVT_PING, 0x8010, 0, 5);
	ignored();
}
END_TEST

START_TEST(syn_with_own_parity_is_violation)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, 2, 0);
	violation("REEVE-YAMUX-0004");
}
END_TEST

START_TEST(syn_rst_with_own_parity_is_violation)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN | RVT_RST, 2, 0);
	violation("REEVE-YAMUX-0004");
}
END_TEST

START_TEST(syn_on_id_0_is_violation)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, 0, 0);
	violation("REEVE-YAMUX-0003");
}
END_TEST

START_TEST(duplicate_syn_is_violation)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, 1, 0);
	violation("REEVE-YAMUX-0005");
}
END_TEST

START_TEST(syn_after_local_goaway_is_refused)
{
	r.e->ops->goaway(r.e, 0);
	rvt_put_data(&r.in, RVT_SYN, 3, 100, 0);
	rvt_put_data(&r.in, 0, 3, 100, 100);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 3, 0);
	rvt_want_none(&r);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.refused), 1);
}
END_TEST

START_TEST(body_above_1_mib_within_the_window_is_accepted)
{
	struct rv_stream *st = rvt_seen(&r, 1)->st;

	/* The window of 3 MiB came about as it would: by growth. */
	st->window = st->recv_credit = 3u << 20;
	((struct rv_yamux *)r.e)->win.grown += (3u << 20) - RV_WINDOW0;
	rvt_put_data(&r.in, 0, 1, (2u << 20) + 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, (2u << 20) + 1);
}
END_TEST

START_TEST(body_above_the_window_is_violation_before_its_body)
{
	rvt_put(&r.in, RVT_DATA, 0, 1, RV_WINDOW0 + 1);
	violation("REEVE-YAMUX-0007");
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 0);
}
END_TEST

START_TEST(body_above_what_is_left_is_violation)
{
	rvt_put_data(&r.in, 0, 1, RV_WINDOW0 - 10, 0);
	rvt_put(&r.in, RVT_DATA, 0, 1, 11);
	violation("REEVE-YAMUX-0007");
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, RV_WINDOW0 - 10);
}
END_TEST

START_TEST(data_syn_body_of_a_window_is_accepted)
{
	rvt_put_data(&r.in, RVT_SYN, 3, RV_WINDOW0, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_seen(&r, 3)->got, RV_WINDOW0);
}
END_TEST

START_TEST(data_syn_body_above_a_window_is_violation_without_state)
{
	unsigned before = r.allocs;

	rvt_put(&r.in, RVT_DATA, RVT_SYN, 3, RV_WINDOW0 + 1);
	violation("REEVE-YAMUX-0006");
	ck_assert_ptr_null(rvt_seen(&r, 3));
	ck_assert_uint_eq(r.e->nstreams, 1);
	ck_assert_uint_le(r.allocs, before + 2); /* the slabs of feed and of violation */
}
END_TEST

START_TEST(credit_above_32_bits_is_violation)
{
	rvt_put(&r.in, RVT_WU, 0, 1, UINT32_MAX - RV_WINDOW0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_seen(&r, 1)->st->send_credit, UINT32_MAX);
	rvt_put(&r.in, RVT_WU, 0, 1, 1);
	violation("REEVE-YAMUX-0008");
}
END_TEST

START_TEST(credit_in_steps_is_violation_at_the_step_that_exceeds)
{
	unsigned n = (UINT32_MAX - RV_WINDOW0) / 0x100000;

	for (unsigned i = 0; i < n; i++)
		rvt_put(&r.in, RVT_WU, 0, 1, 0x100000);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_put(&r.in, RVT_WU, 0, 1, 0x100000);
	violation("REEVE-YAMUX-0008");
}
END_TEST

START_TEST(syn_credit_above_32_bits_is_violation_without_state)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, 3, UINT32_MAX - RV_WINDOW0 + 1);
	violation("REEVE-YAMUX-0008");
	ck_assert_ptr_null(rvt_seen(&r, 3));
}
END_TEST

START_TEST(syn_credit_up_to_32_bits_is_a_delta)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN, 3, UINT32_MAX - RV_WINDOW0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_OPEN, 3).st->send_credit, UINT32_MAX);
}
END_TEST

START_TEST(frames_of_unknown_streams_are_drained)
{
	rvt_put_data(&r.in, 0, 999, 100000, 0);
	rvt_put(&r.in, RVT_WU, 0, 999, 5);
	rvt_put_data(&r.in, RVT_FIN, 4, 1000, 0);
	rvt_put_data(&r.in, RVT_RST, 6, 10, 0);
	rvt_put(&r.in, RVT_WU, RVT_ACK, 8, UINT32_MAX);
	ignored();
}
END_TEST

START_TEST(data_on_id_0_is_violation)
{
	rvt_put(&r.in, RVT_DATA, 0, 0, 5);
	violation("REEVE-YAMUX-0003");
}
END_TEST

START_TEST(window_update_on_id_0_is_violation)
{
	rvt_put(&r.in, RVT_WU, 0, 0, 5);
	violation("REEVE-YAMUX-0003");
}
END_TEST

START_TEST(ping_with_an_id_is_answered_with_id_0)
{
	rvt_put(&r.in, RVT_PING, RVT_SYN, 5, 9);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 9);
	rvt_want_none(&r);
}
END_TEST

START_TEST(ping_without_flags_is_ignored)
{
	rvt_put(&r.in, RVT_PING, 0, 0, 9);
	ignored();
}
END_TEST

START_TEST(ping_with_syn_and_ack_is_answered)
{
	rvt_put(&r.in, RVT_PING, RVT_SYN | RVT_ACK, 0, 9);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 9);
	rvt_want_none(&r);
}
END_TEST

START_TEST(pong_that_nobody_asked_for_is_ignored)
{
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, 1);
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, UINT32_MAX);
	ignored();
	rvt_round_trips(&r, 5);
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, RV_RTT_BURST - 1); /* a second time */
	ignored();
}
END_TEST

START_TEST(goaway_0_stops_opens_and_keeps_streams)
{
	struct rv_stream *st;

	rvt_put(&r.in, RVT_GOAWAY, 0, 0, 0);
	rvt_put(&r.in, RVT_GOAWAY, 0, 0, 0);
	rvt_put_data(&r.in, 0, 1, 10, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_GOAWAY, 0).n, 0);
	rvt_no_event(&r);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EGOAWAY);
	ck_assert_int_eq(r.e->reason.rc, 0);
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 10);
	rvt_send(&r, rvt_seen(&r, 1)->st, 10);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_DATA, 0, 1, 10);
	rvt_want_none(&r);
}
END_TEST

START_TEST(goaway_with_a_code_is_surfaced)
{
	static const uint32_t code[] = {1, 2, 99, UINT32_MAX};
	struct rv_stream *st;

	rvt_put(&r.in, RVT_GOAWAY, 0, 0, code[_i]);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_GOAWAY, 0).n, code[_i]);
	ck_assert_int_eq(r.e->reason.rc, REEVE_EGOAWAY);
	ck_assert_uint_eq(r.e->reason.by, REEVE_BY_PEER);
	ck_assert_uint_eq(r.e->reason.wire_code, code[_i]);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EGOAWAY);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
}
END_TEST

START_TEST(goaway_with_a_stream_id_is_accepted)
{
	rvt_put(&r.in, RVT_GOAWAY, 0, 5, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GOAWAY, 0);
}
END_TEST

START_TEST(goaway_with_a_code_after_0_is_news)
{
	rvt_put(&r.in, RVT_GOAWAY, 0, 0, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GOAWAY, 0);
	rvt_put(&r.in, RVT_GOAWAY, 0, 0, 2);
	rvt_put(&r.in, RVT_GOAWAY, 0, 0, 3);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_GOAWAY, 0).n, 2);
	rvt_no_event(&r);
	ck_assert_uint_eq(r.e->reason.wire_code, 2);
}
END_TEST

START_TEST(duplicate_fin_is_ignored)
{
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_FIN, 1);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.in, RVT_DATA, RVT_FIN, 1, 0);
	ignored();
}
END_TEST

START_TEST(data_after_fin_is_discarded_and_charged)
{
	rvt_put_data(&r.in, RVT_FIN, 1, 10, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_FIN, 1);
	rvt_put_data(&r.in, 0, 1, 100, 10);
	ignored();
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 10);
	ck_assert_uint_eq(rvt_seen(&r, 1)->st->recv_credit, RV_WINDOW0 - 110);
	rvt_put(&r.in, RVT_DATA, 0, 1, RV_WINDOW0 - 109);
	violation("REEVE-YAMUX-0007");
}
END_TEST

START_TEST(data_after_rst_is_drained)
{
	rvt_put(&r.in, RVT_WU, RVT_RST, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_RST, 1);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
	rvt_put_data(&r.in, 0, 1, 100, 0);
	ignored();
}
END_TEST

START_TEST(syn_with_rst_on_a_new_id_is_ignored)
{
	rvt_put(&r.in, RVT_WU, RVT_SYN | RVT_RST, 3, 0);
	rvt_put_data(&r.in, RVT_SYN | RVT_RST, 5, 50, 0);
	ignored();
	ck_assert_ptr_null(rvt_seen(&r, 3));
}
END_TEST

START_TEST(syn_with_fin_and_data_is_accepted)
{
	rvt_put_data(&r.in, RVT_SYN | RVT_FIN, 3, 50, 0);
	ck_assert_int_eq(rvt_feed(&r, 7), 0);
	(void)rvt_event(&r, RV_EV_OPEN, 3);
	(void)rvt_event(&r, RV_EV_FIN, 3);
	rvt_no_event(&r);
	ck_assert_uint_eq(rvt_seen(&r, 3)->got, 50);
}
END_TEST

START_TEST(fin_on_window_update_counts_its_credit)
{
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 1000);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_FIN, 1);
	ck_assert_uint_eq(rvt_seen(&r, 1)->st->send_credit, RV_WINDOW0 + 1000);
}
END_TEST

START_TEST(rst_on_window_update_carries_a_code)
{
	rvt_put(&r.in, RVT_WU, RVT_RST, 1, 77);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_RST, 1).n, 77);
}
END_TEST

START_TEST(rst_on_data_carries_no_code_and_its_body_is_drained)
{
	rvt_put_data(&r.in, RVT_RST, 1, RV_WINDOW0 + 5, 0);
	rvt_put(&r.in, RVT_PING, RVT_SYN, 0, 3);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_RST, 1).n, 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 3);
}
END_TEST

START_TEST(zero_updates_and_empty_data_are_no_ops)
{
	for (int i = 0; i < 100; i++)
		rvt_put(&r.in, RVT_WU, 0, 1, 0);
	rvt_put(&r.in, RVT_DATA, 0, 1, 0);
	ignored();
	ck_assert_uint_eq(rvt_seen(&r, 1)->st->send_credit, RV_WINDOW0);
}
END_TEST

START_TEST(end_inside_a_frame_is_truncated)
{
	/* 0: inside a header, 1: inside a body, 2: at a boundary */
	rvt_put_data(&r.in, 0, 1, 10, 0);
	r.in.n = _i == 0 ? 11 : _i == 1 ? 21 : 22;
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_int_eq(r.e->ops->feed_end(r.e), _i == 2 ? 0 : REEVE_ETRUNC);
	ck_assert_int_eq(r.e->reason.rc, _i == 2 ? 0 : REEVE_ETRUNC);
	ck_assert_uint_eq(r.e->reason.by, _i == 2 ? REEVE_BY_NONE : REEVE_BY_TRANSPORT);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_matrix");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, version_not_0_is_violation);
	tcase_add_test(t, type_above_3_is_violation);
	tcase_add_test(t, unknown_flag_bits_are_ignored);
	tcase_add_test(t, syn_with_own_parity_is_violation);
	tcase_add_test(t, syn_rst_with_own_parity_is_violation);
	tcase_add_test(t, syn_on_id_0_is_violation);
	tcase_add_test(t, duplicate_syn_is_violation);
	tcase_add_test(t, syn_after_local_goaway_is_refused);
	tcase_add_test(t, body_above_1_mib_within_the_window_is_accepted);
	tcase_add_test(t, body_above_the_window_is_violation_before_its_body);
	tcase_add_test(t, body_above_what_is_left_is_violation);
	tcase_add_test(t, data_syn_body_of_a_window_is_accepted);
	tcase_add_test(t, data_syn_body_above_a_window_is_violation_without_state);
	tcase_add_test(t, credit_above_32_bits_is_violation);
	tcase_add_test(t, credit_in_steps_is_violation_at_the_step_that_exceeds);
	tcase_add_test(t, syn_credit_above_32_bits_is_violation_without_state);
	tcase_add_test(t, syn_credit_up_to_32_bits_is_a_delta);
	tcase_add_test(t, frames_of_unknown_streams_are_drained);
	tcase_add_test(t, data_on_id_0_is_violation);
	tcase_add_test(t, window_update_on_id_0_is_violation);
	tcase_add_test(t, ping_with_an_id_is_answered_with_id_0);
	tcase_add_test(t, ping_without_flags_is_ignored);
	tcase_add_test(t, ping_with_syn_and_ack_is_answered);
	tcase_add_test(t, pong_that_nobody_asked_for_is_ignored);
	tcase_add_test(t, goaway_0_stops_opens_and_keeps_streams);
	tcase_add_loop_test(t, goaway_with_a_code_is_surfaced, 0, 4);
	tcase_add_test(t, goaway_with_a_stream_id_is_accepted);
	tcase_add_test(t, goaway_with_a_code_after_0_is_news);
	tcase_add_test(t, duplicate_fin_is_ignored);
	tcase_add_test(t, data_after_fin_is_discarded_and_charged);
	tcase_add_test(t, data_after_rst_is_drained);
	tcase_add_test(t, syn_with_rst_on_a_new_id_is_ignored);
	tcase_add_test(t, syn_with_fin_and_data_is_accepted);
	tcase_add_test(t, fin_on_window_update_counts_its_credit);
	tcase_add_test(t, rst_on_window_update_carries_a_code);
	tcase_add_test(t, rst_on_data_carries_no_code_and_its_body_is_drained);
	tcase_add_test(t, zero_updates_and_empty_data_are_no_ops);
	tcase_add_loop_test(t, end_inside_a_frame_is_truncated, 0, 3);
	return rvt_run_tcase("engine_matrix", t);
}
