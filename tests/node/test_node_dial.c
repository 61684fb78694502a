/* test_node_dial.c - dials of a node: who answers, who does not, who joins, and that each ends once. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/net.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

static struct rvt_net t;
static const struct rvt_net_cfg tcp = {.via = RVT_TCP};

static int
dial(const char *peer, const char *addr, int64_t ms)
{
	return reeve_node_dial(t.node[0].n, peer, addr, NULL, ms);
}

START_TEST(whoever_answers_is_named)
{
	char who[REEVE_PEER_TEXT] = "";

	rvt_net_start(&t, &tcp);
	ck_assert_int_eq(reeve_node_dial(t.node[0].n, NULL, t.node[1].addr, who, 5000), 0);
	ck_assert_str_eq(who, t.node[1].id);
	/* Connected: nothing is dialed, whatever the address. */
	who[0] = '\0';
	ck_assert_int_eq(reeve_node_dial(t.node[0].n, who[0] != '\0' ? who : t.node[1].id,
			     "tcp://127.0.0.1:1", who, 0),
	    0);
	ck_assert_str_eq(who, t.node[1].id);
	/* And a dial without a name makes the second connection, not a third. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_node_dial(t.node[0].n, NULL, t.node[1].addr, who, 5000), 0);
		ck_assert_str_eq(who, t.node[1].id);
	}
	ck_assert_uint_eq(rvt_net_stats(&t, 0).conns, 2);
	ck_assert_uint_eq(rvt_net_stats(&t, 0).peers, 1);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_CONNECTED), 1);
	rvt_net_end(&t);
}
END_TEST

START_TEST(what_is_wrong_is_told_before)
{
	rvt_net_start(&t, &tcp);
	ck_assert_int_eq(dial(t.node[0].id, t.node[1].addr, 5000), REEVE_EINVAL);
	ck_assert_int_eq(dial(NULL, NULL, 5000), REEVE_EINVAL);
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), REEVE_EINVAL);
	ck_assert_int_eq(dial("nobody", t.node[1].addr, 5000), REEVE_EINVAL);
	ck_assert_int_eq(dial(t.node[1].id, "nowhere", 5000), REEVE_EINVAL);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_DIAL_FAILED), 0);
	rvt_net_end(&t);
}
END_TEST

START_TEST(ourselves_and_somebody_else_are_no_peer)
{
	rvt_net_start(&t, &tcp);
	ck_assert_int_eq(dial(NULL, t.node[0].addr, 5000), REEVE_EIDENTITY);
	ck_assert_int_eq(t.node[0].why.rc, REEVE_EIDENTITY);
	ck_assert_int_eq(
	    reeve_node_add_address(t.node[0].n, t.node[0].id, t.node[0].addr), REEVE_EINVAL);
	rvt_net_introduce(&t, 1, 0);
	/* An id that nobody here has, at the address of node 1. */
	ck_assert_int_eq(reeve_node_dial(t.node[1].n, t.node[0].id, t.node[1].addr, NULL, 5000),
	    REEVE_EIDENTITY);
	ck_assert_uint_eq(rvt_net_events(&t.node[1], REEVE_PEER_DIAL_FAILED), 1);
	ck_assert_str_eq(t.node[1].last, t.node[0].id);
	ck_assert_uint_eq(rvt_net_stats(&t, 1).dials_failed, 1);
	RVT_UNTIL(rvt_net_stats(&t, 0).conns + rvt_net_stats(&t, 1).conns == 0);
	rvt_net_end(&t);
}
END_TEST

START_TEST(nobody_there_and_nobody_who_speaks)
{
	struct rvt_silent deaf, mute, nobody;
	uint64_t begin;

	rvt_silent_start(&deaf, RVT_DEAF);
	rvt_silent_start(&mute, RVT_MUTE);
	rvt_silent_start(&nobody, RVT_NOBODY);
	rvt_net_start(&t, &tcp);
	ck_assert_int_eq(dial(NULL, nobody.addr, 5000), REEVE_EDIAL);
	begin = rvt_ms();
	ck_assert_int_eq(dial(NULL, deaf.addr, 100), REEVE_ETIMEDOUT);
	ck_assert_int_eq(dial(t.node[1].id, mute.addr, 100), REEVE_ETIMEDOUT);
	ck_assert_uint_lt(rvt_ms() - begin, (uint64_t)rvt_slow(1000));
	RVT_UNTIL(rvt_net_events(&t.node[0], REEVE_PEER_DIAL_FAILED) == 3);
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 0);
	rvt_net_end(&t);
	rvt_silent_end(&nobody);
	rvt_silent_end(&deaf);
	rvt_silent_end(&mute);
}
END_TEST

/* A good address, behind ones where nothing happens and where nobody is. */
START_TEST(one_good_address_among_bad_ones_is_found)
{
	struct rvt_silent deaf, mute, nobody;
	uint64_t begin, first;
	int rc;

	rvt_silent_start(&deaf, RVT_DEAF);
	rvt_silent_start(&mute, RVT_MUTE);
	rvt_silent_start(&nobody, RVT_NOBODY);
	rvt_net_start(&t, &tcp);
	rc = reeve_node_add_address(t.node[0].n, t.node[1].id, deaf.addr);
	ck_assert_int_eq(rc, 0);
	rc = reeve_node_add_address(t.node[0].n, t.node[1].id, mute.addr);
	ck_assert_int_eq(rc, 0);
	rc = reeve_node_add_address(t.node[0].n, t.node[1].id, nobody.addr);
	ck_assert_int_eq(rc, 0);
	rvt_net_introduce(&t, 0, 1);
	begin = rvt_ms();
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), 0);
	first = rvt_ms() - begin;
	ck_assert_uint_lt(first, (uint64_t)rvt_slow(2000));
	ck_assert_uint_ge(first, 400); /* two head starts */
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 0);
	ck_assert_int_eq(reeve_node_disconnect(t.node[0].n, t.node[1].id), 0);
	RVT_UNTIL(rvt_net_stats(&t, 0).conns == 0);
	/* The address that worked is the first now. */
	begin = rvt_ms();
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), 0);
	ck_assert_uint_lt(rvt_ms() - begin, (uint64_t)rvt_slow(200));
	rvt_net_end(&t);
	rvt_silent_end(&nobody);
	rvt_silent_end(&deaf);
	rvt_silent_end(&mute);
}
END_TEST

START_TEST(dials_to_one_peer_join_and_a_better_address_helps_all)
{
	struct rvt_silent mute;
	struct rvt_done d[8];
	int rc;

	rvt_silent_start(&mute, RVT_MUTE);
	rvt_net_start(&t, &tcp);
	rc = reeve_node_add_address(t.node[0].n, t.node[1].id, mute.addr);
	ck_assert_int_eq(rc, 0);
	for (int i = 0; i < 8; i++) {
		rvt_done_init(&d[i], 5000);
		reeve_node_dial_async(
		    t.node[0].n, t.node[1].id, i == 5 ? t.node[1].addr : NULL, &d[i].op);
	}
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(rvt_done_wait(&d[i]), 0);
	ck_assert_uint_eq(rvt_net_stats(&t, 0).conns_total, 1);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_CONNECTED), 1);
	rvt_net_end(&t);
	rvt_silent_end(&mute);
}
END_TEST

START_TEST(dials_end_when_nobody_waits_any_more)
{
	struct rvt_silent mute;
	struct rvt_done d[3];

	rvt_silent_start(&mute, RVT_MUTE);
	rvt_net_start(&t, &tcp);
	for (int i = 0; i < 3; i++) {
		rvt_done_init(&d[i], i == 1 ? 50 : -1);
		reeve_node_dial_async(t.node[0].n, t.node[1].id, mute.addr, &d[i].op);
	}
	ck_assert_int_eq(rvt_done_wait(&d[1]), REEVE_ETIMEDOUT);
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 1);
	reeve_op_cancel(&d[0].op);
	ck_assert_int_eq(rvt_done_wait(&d[0]), REEVE_ECANCELED);
	ck_assert(!rvt_done_is(&d[2]));
	ck_assert_uint_eq(rvt_net_stats(&t, 0).dials, 1);
	reeve_op_cancel(&d[2].op);
	ck_assert_int_eq(rvt_done_wait(&d[2]), REEVE_ECANCELED);
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 0);
	RVT_UNTIL(rvt_net_events(&t.node[0], REEVE_PEER_DIAL_FAILED) == 1);
	rvt_net_end(&t);
	rvt_silent_end(&mute);
}
END_TEST

/* Both get the connections of both, whoever was first, and both can use them. */
START_TEST(two_nodes_that_dial_each_other_at_once_are_connected)
{
	struct rvt_net_cfg cfg = {.via = _i % 2 ? RVT_TCP : RVT_MEMORY};
	struct rvt_done d[2];
	struct rvt_opening o;

	rvt_net_start(&t, &cfg);
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 2; i++) {
			rvt_done_init(&d[i], 5000);
			reeve_node_dial_async(
			    t.node[i].n, t.node[1 - i].id, t.node[1 - i].addr, &d[i].op);
		}
		for (unsigned i = 0; i < 2; i++)
			ck_assert_int_eq(rvt_done_wait(&d[i]), 0);
		for (unsigned i = 0; i < 2; i++) {
			RVT_UNTIL(rvt_net_stats(&t, i).dials == 0);
			ck_assert_uint_eq(rvt_net_stats(&t, i).peers, 1);
			rvt_opening_init(&o, RVN_NO_DIAL, 5000);
			rvt_open(&t, i, 1 - i, &o);
			ck_assert_int_eq(rvt_opening_wait(&o), 0);
		}
		for (unsigned i = 0; i < 2; i++)
			rvt_fake_let_go(&t.node[i].fake);
		(void)reeve_node_disconnect(t.node[0].n, t.node[1].id);
		(void)reeve_node_disconnect(t.node[1].n, t.node[0].id);
		for (unsigned i = 0; i < 2; i++)
			RVT_UNTIL(rvt_net_stats(&t, i).conns == 0);
	}
	rvt_net_end(&t);
}
END_TEST

/* A dial that hangs is answered by the connection that the peer makes, and is gone at its own deadline. */
START_TEST(a_peer_that_dials_us_answers_a_dial)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP, .node = {.dial_ms = 300}};
	struct rvt_silent deaf;
	struct rvt_done d;

	rvt_silent_start(&deaf, RVT_DEAF);
	rvt_net_start(&t, &cfg);
	rvt_done_init(&d, -1);
	reeve_node_dial_async(t.node[0].n, t.node[1].id, deaf.addr, &d.op);
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 1);
	rvt_net_connect(&t, 1, 0);
	ck_assert_int_eq(rvt_done_wait(&d), 0);
	if (_i == 1) { /* the connection ends before the attempt */
		ck_assert_int_eq(reeve_node_disconnect(t.node[1].n, t.node[0].id), 0);
		RVT_UNTIL(rvt_net_stats(&t, 0).conns == 0);
	}
	RVT_UNTIL(rvt_net_stats(&t, 0).dials == 0);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_DIAL_FAILED), 0);
	rvt_net_end(&t);
	rvt_silent_end(&deaf);
}
END_TEST

START_TEST(a_peer_that_comes_back_as_somebody_else_is_told_apart)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	char before[REEVE_PEER_TEXT];

	rvt_net_start(&t, &cfg);
	rvt_net_introduce(&t, 0, 1);
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), 0);
	memcpy(before, t.node[1].id, sizeof(before));
	rvt_net_stop(&t, 1, 1000);
	RVT_UNTIL(rvt_net_stats(&t, 0).conns == 0);
	ck_assert_int_eq(rvt_net_node(&t, 1, &cfg, 77), 0);
	ck_assert_str_ne(before, t.node[1].id);
	ck_assert_int_eq(dial(before, NULL, 5000), REEVE_EIDENTITY);
	rvt_net_connect(&t, 0, 1);
	rvt_net_end(&t);
}
END_TEST

START_TEST(the_address_book_keeps_those_used_last_and_the_connected)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP, .node = {.max_peers = 10}};
	struct rvt_stranger s;
	struct rvt_silent nobody;
	char id[100][REEVE_PEER_TEXT];
	int rc;

	rvt_net_start(&t, &cfg);
	rvt_net_introduce(&t, 0, 1);
	rvt_net_connect(&t, 0, 1);
	rvt_silent_start(&nobody, RVT_NOBODY);
	for (unsigned i = 0; i < 100; i++) {
		rvt_stranger_start(&s, t.node[1].rt, 100 + i);
		memcpy(id[i], s.id, sizeof(s.id));
		rvt_stranger_end(&s);
		ck_assert_int_eq(reeve_node_add_address(t.node[0].n, id[i], nobody.addr), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		rc = dial(id[i], NULL, 5000);
		ck_assert_int_eq(rc, i < 91 ? REEVE_EINVAL : REEVE_EDIAL);
	}
	ck_assert_int_eq(reeve_node_disconnect(t.node[0].n, t.node[1].id), 0);
	RVT_UNTIL(rvt_net_stats(&t, 0).conns == 0);
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), 0);
	rvt_silent_end(&nobody);
	rvt_net_end(&t);
}
END_TEST

START_TEST(at_most_eight_addresses_of_a_peer_are_kept)
{
	char addr[64];
	int rc;

	rvt_net_start(&t, &tcp);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(addr, sizeof(addr), "mem://nobody-%u", i);
		rc = reeve_node_add_address(t.node[0].n, t.node[1].id, addr);
		ck_assert_int_eq(rc, 0);
	}
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), REEVE_EDIAL);
	rvt_net_introduce(&t, 0, 1);
	ck_assert_int_eq(dial(t.node[1].id, NULL, 5000), 0);
	rvt_net_end(&t);
}
END_TEST

RVT_MAIN_TABLE("node_dial", {&whoever_answers_is_named, 0}, {&what_is_wrong_is_told_before, 0},
    {&ourselves_and_somebody_else_are_no_peer, 0}, {&nobody_there_and_nobody_who_speaks, 0},
    {&one_good_address_among_bad_ones_is_found, 0},
    {&dials_to_one_peer_join_and_a_better_address_helps_all, 0},
    {&dials_end_when_nobody_waits_any_more, 0},
    {&two_nodes_that_dial_each_other_at_once_are_connected, 2},
    {&a_peer_that_dials_us_answers_a_dial, 2},
    {&a_peer_that_comes_back_as_somebody_else_is_told_apart, 0},
    {&the_address_book_keeps_those_used_last_and_the_connected, 0},
    {&at_most_eight_addresses_of_a_peer_are_kept, 0})
