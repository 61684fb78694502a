/* test_node_open.c - opens for a protocol: what each step can answer, silence and cancellation at every step. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/net.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

static struct rvt_net t;
static const struct rvt_net_cfg tcp = {.via = RVT_TCP};
static const char *const other[] = {"/other/1"};

static void
open_to(const char *peer, struct rvt_opening *o)
{
	o->starter = pthread_self();
	rvn_open(t.node[0].n, peer, &o->o);
}

START_TEST(what_cannot_begin_is_answered_once)
{
	struct rvt_opening o;

	rvt_net_start(&t, &tcp);
	rvt_opening_init(&o, 0, 5000);
	open_to("not an id", &o);
	ck_assert_int_eq(rvt_opening_wait(&o), REEVE_EINVAL);
	rvt_opening_init(&o, RVN_NO_DIAL, 5000);
	open_to(t.node[1].id, &o);
	ck_assert_int_eq(rvt_opening_wait(&o), REEVE_ENOTCONN);
	rvt_opening_init(&o, 0, 5000);
	open_to(t.node[1].id, &o); /* no address */
	ck_assert_int_eq(rvt_opening_wait(&o), REEVE_EDIAL);
	ck_assert_int_eq(o.o.step, REEVE_STEP_DIAL);
	rvt_opening_init(&o, 0, 5000);
	open_to(t.node[0].id, &o); /* ourselves */
	ck_assert_int_eq(rvt_opening_wait(&o), REEVE_EDIAL);
	ck_assert_int_eq(reeve_node_close(t.node[0].n, 0), 0);
	rvt_opening_init(&o, 0, 5000);
	open_to(t.node[1].id, &o);
	ck_assert_int_eq(rvt_opening_wait(&o), REEVE_ECLOSED);
	rvt_net_end(&t);
}
END_TEST

START_TEST(a_protocol_that_the_peer_does_not_have)
{
	struct rvt_opening o;

	rvt_net_start(&t, &tcp);
	rvt_net_connect(&t, 0, 1);
	rvt_opening_init(&o, 0, 5000);
	o.o.names = other;
	o.o.nnames = 1;
	open_to(t.node[1].id, &o);
	ck_assert_int_eq(rvt_opening_wait(&o), REEVE_ENOPROTO);
	ck_assert_int_eq(o.o.step, REEVE_STEP_NEGOTIATE);
	ck_assert_uint_eq(rvt_fake_inbound(&t.node[1]), 0);
	/* The connection has not noticed. */
	rvt_opening_init(&o, 0, 5000);
	open_to(t.node[1].id, &o);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	RVT_UNTIL(rvt_net_stats(&t, 1).negotiating == 0);
	rvt_net_end(&t);
}
END_TEST

START_TEST(fallback_names_and_lazy_opens)
{
	static const char *const names[] = {"/other/1", "/fake/1"};
	struct rvt_opening o;

	rvt_net_start(&t, &tcp);
	rvt_net_connect(&t, 0, 1);
	rvt_opening_init(&o, 0, 5000);
	o.o.names = names;
	open_to(t.node[1].id, &o);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	ck_assert_uint_eq(o.o.name, 1);
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == 1);
	ck_assert_uint_eq(t.node[1].fake.names[1], 1);
	rvt_opening_init(&o, RVN_LAZY, 5000);
	o.o.nnames = 1;
	open_to(t.node[1].id, &o);
	RVT_UNTIL(rvt_opening_done(&o));
	ck_assert_int_eq(o.o.rc, 0);
	ck_assert_int_eq(reeve_write(o.o.stream, "x", 1), 1); /* with it the words leave */
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == 2);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	rvt_net_end(&t);
}
END_TEST

/* Who is silent at which step: one completion, at the deadline, with the step. */
START_TEST(silence_at_every_step_ends_at_the_deadline)
{
	static const int step[] = {
	    REEVE_STEP_DIAL, REEVE_STEP_DIAL, REEVE_STEP_OPEN, REEVE_STEP_NEGOTIATE};
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	reeve_cfg_t conn;
	struct rvt_silent mute;
	struct rvt_stranger s;
	struct rvt_opening o[2];
	uint64_t begin;
	unsigned last = _i == 2 ? 1 : 0;

	reeve_cfg_init(&conn);
	conn.max_unacked = 1;
	cfg.conn = &conn;
	rvt_net_start(&t, &cfg);
	rvt_silent_start(&mute, _i == 0 ? RVT_DEAF : RVT_MUTE);
	rvt_stranger_start(&s, t.node[1].rt, 99);
	ck_assert_int_eq(reeve_node_add_address(t.node[0].n, s.id, _i < 2 ? mute.addr : s.addr), 0);
	if (_i >= 2) {
		ck_assert_int_eq(reeve_node_dial(t.node[0].n, s.id, NULL, NULL, 5000), 0);
		rvt_stranger_accept(&s);
	}
	begin = rvt_ms();
	for (unsigned i = 0; i <= last; i++) {
		rvt_opening_init(&o[i], 0, 200);
		open_to(s.id, &o[i]);
	}
	for (unsigned i = 0; i <= last; i++)
		ck_assert_int_eq(rvt_opening_wait(&o[i]), REEVE_ETIMEDOUT);
	ck_assert_int_eq(o[last].o.step, step[_i]);
	ck_assert_uint_ge(o[last].ms - begin, 199);
	ck_assert_uint_lt(o[last].ms - begin, (uint64_t)rvt_slow(400));
	rvt_stranger_end(&s);
	rvt_silent_end(&mute);
	rvt_net_end(&t);
}
END_TEST

START_TEST(cancellation_at_every_step_ends_at_once)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	reeve_cfg_t conn;
	struct rvt_silent mute;
	struct rvt_stranger s;
	struct rvt_opening o[2];
	reeve_stream_t *in = NULL;
	unsigned last = _i == 2 ? 1 : 0;

	reeve_cfg_init(&conn);
	conn.max_unacked = 1;
	cfg.conn = &conn;
	rvt_net_start(&t, &cfg);
	rvt_silent_start(&mute, _i == 0 ? RVT_DEAF : RVT_MUTE);
	rvt_stranger_start(&s, t.node[1].rt, 99);
	ck_assert_int_eq(reeve_node_add_address(t.node[0].n, s.id, _i < 2 ? mute.addr : s.addr), 0);
	if (_i >= 2) {
		ck_assert_int_eq(reeve_node_dial(t.node[0].n, s.id, NULL, NULL, 5000), 0);
		rvt_stranger_accept(&s);
	}
	for (unsigned i = 0; i <= last; i++) {
		rvt_opening_init(&o[i], 0, -1);
		open_to(s.id, &o[i]);
	}
	if (_i == 3) { /* it is being negotiated for sure */
		ck_assert_int_eq(reeve_accept(s.k, &in, 5000), 0);
		ck_assert_int_eq(reeve_deadline(in, REEVE_RD, 5000), 0);
		ck_assert_int_gt(reeve_read(in, &(char){0}, 1), 0);
	} else if (_i < 2) {
		RVT_UNTIL(rvt_net_stats(&t, 0).dials == 1);
	}
	rvn_open_cancel(&o[last].o);
	rvn_open_cancel(&o[last].o); /* twice is once; the stop of it cannot have come */
	ck_assert_int_eq(rvt_opening_wait(&o[last]), REEVE_ECANCELED);
	if (last > 0) {
		rvn_open_cancel(&o[0].o);
		ck_assert_int_eq(rvt_opening_wait(&o[0]), REEVE_ECANCELED);
	}
	RVT_UNTIL(rvt_net_stats(&t, 0).opening == 0 && rvt_net_stats(&t, 0).dials == 0);
	reeve_close(in);
	rvt_stranger_end(&s);
	rvt_silent_end(&mute);
	rvt_net_end(&t);
}
END_TEST

START_TEST(opens_that_wait_for_a_dial_all_fail_with_it)
{
	struct rvt_opening o[20];
	struct rvt_silent mute;
	unsigned i;

	rvt_silent_start(&mute, RVT_MUTE);
	rvt_net_start(&t, &tcp);
	ck_assert_int_eq(reeve_node_add_address(t.node[0].n, t.node[1].id, mute.addr), 0);
	for (i = 0; i < 20; i++) {
		rvt_opening_init(&o[i], 0, i % 2 ? 300 : 100);
		open_to(t.node[1].id, &o[i]);
	}
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(rvt_opening_wait(&o[i]), REEVE_ETIMEDOUT);
		ck_assert_int_eq(o[i].o.step, REEVE_STEP_DIAL);
	}
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 0);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_DIAL_FAILED), 1);
	rvt_net_end(&t);
	rvt_silent_end(&mute);
}
END_TEST

START_TEST(a_connection_that_is_lost_under_opens)
{
	struct rvt_stranger s;
	struct rvt_opening o[100];

	rvt_net_start(&t, &tcp);
	rvt_stranger_start(&s, t.node[1].rt, 99);
	ck_assert_int_eq(reeve_node_dial(t.node[0].n, s.id, s.addr, NULL, 5000), 0);
	rvt_stranger_accept(&s);
	for (unsigned i = 0; i < 100; i++) {
		rvt_opening_init(&o[i], RVN_NO_DIAL, 5000);
		open_to(s.id, &o[i]);
	}
	ck_assert_int_eq(reeve_abort(s.k, 0), 0);
	for (unsigned i = 0; i < 100; i++) {
		int rc = rvt_opening_wait(&o[i]);

		ck_assert_msg(rc == REEVE_ELOST || rc == REEVE_ENOTCONN, "%s", reeve_errname(rc));
	}
	RVT_UNTIL(rvt_net_events(&t.node[0], REEVE_PEER_DISCONNECTED) == 1);
	rvt_stranger_end(&s);
	rvt_net_end(&t);
}
END_TEST

/* More inbound streams than may be negotiated at once: the surplus is reset. */
START_TEST(inbound_streams_that_say_nothing_are_bounded_and_end)
{
	struct rvt_net_cfg cfg = {
	    .via = RVT_TCP, .node = {.max_negotiating = 10, .negotiate_ms = 300}};
	reeve_stream_t *in[30];
	struct rvt_stranger s;

	rvt_net_start(&t, &cfg);
	rvt_stranger_start(&s, t.node[1].rt, 99);
	ck_assert_int_eq(rvt_stranger_dial(&s, t.node[1].rt, t.node[0].addr), 0);
	for (unsigned i = 0; i < 30; i++) {
		ck_assert_int_eq(reeve_open(s.k, &in[i], 5000), 0);
		(void)reeve_write(in[i], "\x13/", 2); /* perhaps it is refused already */
	}
	RVT_UNTIL(rvt_net_stats(&t, 0).refused == 20);
	ck_assert_uint_le(rvt_net_stats(&t, 0).negotiating, 10);
	RVT_UNTIL(rvt_net_stats(&t, 0).negotiating == 0);
	for (unsigned i = 0; i < 30; i++) {
		ck_assert_int_eq(reeve_deadline(in[i], REEVE_RD, 5000), 0);
		while (reeve_read(in[i], &(char){0}, 1) > 0)
			continue;
		reeve_close(in[i]);
	}
	ck_assert_uint_eq(rvt_net_stats(&t, 0).peers, 1);
	rvt_stranger_end(&s);
	rvt_net_end(&t);
}
END_TEST

/* A peer that speaks of what nobody here has. */
START_TEST(an_unknown_protocol_is_told_and_the_stream_ends)
{
	static const char *const two[] = {"/other/1", "/other/2"};
	struct rvt_stranger s;
	reeve_stream_t *out;

	rvt_net_start(&t, &tcp);
	rvt_stranger_start(&s, t.node[1].rt, 99);
	ck_assert_int_eq(rvt_stranger_dial(&s, t.node[1].rt, t.node[0].addr), 0);
	ck_assert_int_eq(reeve_open(s.k, &out, 5000), 0);
	ck_assert_int_eq(reeve_negotiate(out, REEVE_DIALER, two, 2, 5000), REEVE_ENOPROTO);
	reeve_close(out);
	RVT_UNTIL(rvt_net_stats(&t, 0).negotiating == 0);
	RVT_UNTIL(rvt_stats(s.k).streams_open == 0);
	rvt_stranger_end(&s);
	rvt_net_end(&t);
}
END_TEST

RVT_MAIN_TABLE("node_open", {&what_cannot_begin_is_answered_once, 0},
    {&a_protocol_that_the_peer_does_not_have, 0}, {&fallback_names_and_lazy_opens, 0},
    {&silence_at_every_step_ends_at_the_deadline, 4}, {&cancellation_at_every_step_ends_at_once, 4},
    {&opens_that_wait_for_a_dial_all_fail_with_it, 0}, {&a_connection_that_is_lost_under_opens, 0},
    {&inbound_streams_that_say_nothing_are_bounded_and_end, 0},
    {&an_unknown_protocol_is_told_and_the_stream_ends, 0})
