/* test_node_core.c - nodes that listen, dial and open substreams to each other over every kind of address and muxer. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/net.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

static struct rvt_net t;

/* Without OpenSSL there are no keys. */
#ifdef HAVE_NOISE
#define KINDS 12
#else
#define KINDS 6
#endif

/* Loop: address kinds, then the same with mplex, then all of it with noise. */
static struct rvt_net_cfg
kind(int i)
{
	static const enum rvt_via vias[] = {RVT_MEMORY, RVT_UNIX, RVT_TCP};
	struct rvt_net_cfg cfg = {
	    .via = vias[i % 3], .muxer = i % 6 < 3 ? REEVE_YAMUX : REEVE_MPLEX, .noise = i >= 6};

	return cfg;
}

START_TEST(two_nodes_connect_and_open_both_ways)
{
	struct rvt_net_cfg cfg = kind(_i);
	struct rvt_opening o[2];
	char peers[4][REEVE_PEER_TEXT];

	rvt_net_start(&t, &cfg);
	rvt_net_connect(&t, 0, 1);
	ck_assert_uint_eq(reeve_node_peers(t.node[0].n, peers, 4), 1);
	ck_assert_str_eq(peers[0], t.node[1].id);
	RVT_UNTIL(rvt_net_stats(&t, 1).peers == 1);
	for (unsigned i = 0; i < 2; i++) {
		rvt_opening_init(&o[i], RVN_NO_DIAL, 5000);
		rvt_open(&t, i, 1 - i, &o[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rvt_opening_wait(&o[i]), 0);
		ck_assert_uint_eq(o[i].o.name, 0);
	}
	for (unsigned i = 0; i < 2; i++)
		RVT_UNTIL(rvt_fake_inbound(&t.node[i]) == 1);
	rvt_net_end(&t);
}
END_TEST

START_TEST(an_open_dials_and_opens_that_wait_for_the_dial_go_out_once)
{
	struct rvt_net_cfg cfg = kind(_i);
	static struct rvt_opening o[50];

	rvt_net_start(&t, &cfg);
	rvt_net_introduce(&t, 0, 1);
	for (unsigned i = 0; i < 50; i++) {
		rvt_opening_init(&o[i], 0, 5000);
		rvt_open(&t, 0, 1, &o[i]);
	}
	for (unsigned i = 0; i < 50; i++)
		ck_assert_int_eq(rvt_opening_wait(&o[i]), 0);
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == 50);
	ck_assert_uint_eq(rvt_net_stats(&t, 1).conns_total, 1);
	rvt_net_end(&t);
}
END_TEST

RVT_MAIN_TABLE("node_core", {&two_nodes_connect_and_open_both_ways, KINDS},
    {&an_open_dials_and_opens_that_wait_for_the_dial_go_out_once, KINDS})
