/* Scenarios 121 and 127: nodes.  See README.md. */
#include <config.h>

#include <sched.h>

#include "tests/kit/duo.h"
#include "tests/kit/flow.h"
#include "tests/kit/net.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

static struct rvt_net t;

/* --- 121 */

/* Connect, open, write 4 KiB, and the connection dies within 2 ms.  With mplex and yamux. */
START_TEST(scenario_121_opens_end_with_the_connection_that_dies_under_them)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP, .muxer = _i ? REEVE_MPLEX : REEVE_YAMUX};
	uint32_t seed = rvt_seed();
	uint64_t rss = 0, until, bytes = 0;
	unsigned rounds = 250 * rvt_scale();
	static const char kib4[4096];
	struct rvt_opening o[4];
	reeve_ctl_t *k;

	rvt_net_start(&t, &cfg);
	t.node[1].fake.drop = true;
	rvt_net_introduce(&t, 0, 1);
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < 4; i++) {
			rvt_opening_init(&o[i], 0, 5000);
			rvt_open(&t, 0, 1, &o[i]);
		}
		seed = seed * 1664525 + 1013904223;
		for (until = rv_clock_us() + (seed >> 8) % 2000; rv_clock_us() < until;)
			sched_yield();
		if ((k = reeve_node_ctl(t.node[seed >> 31].n, t.node[1 - (seed >> 31)].id)) !=
		    NULL) {
			(void)reeve_abort(k, 0);
			reeve_ctl_unref(k);
		}
		for (unsigned i = 0; i < 4; i++) {
			RVT_UNTIL(rvt_opening_done(&o[i]));
			if (o[i].o.rc == 0)
				(void)reeve_write(o[i].o.stream, kib4, sizeof(kib4));
			(void)rvt_opening_wait(&o[i]);
		}
		if (r == rounds / 2) {
			rss = rvt_rss();
			bytes = rvq_gauge_get(&t.alloc.bytes);
		}
	}
	(void)reeve_node_disconnect(t.node[0].n, t.node[1].id);
	for (unsigned i = 0; i < 2; i++)
		RVT_UNTIL(rvt_net_stats(&t, i).conns == 0);
	ck_assert_uint_eq(rvt_net_stats(&t, 0).opening, 0);
	ck_assert_uint_le(rvq_gauge_get(&t.alloc.bytes), bytes + (4u << 20));
	if (!RVT_SANITIZED)
		ck_assert_uint_le(rvt_rss(), rss + (8u << 20));
	rvt_net_end(&t);
}
END_TEST

/* --- 127 */

struct caller {
	pthread_t thread;
	const char *addr;
	int rc;
};

static void *
dial(void *arg)
{
	struct caller *c = arg;

	c->rc = reeve_node_dial(t.node[0].n, t.node[1].id, c->addr, NULL, rvt_slow(5000));
	return NULL;
}

/* Three threads dial one peer, each another address of his and the first a black hole, while he dials us, and opens wait
 * for it. */
START_TEST(scenario_127_dials_to_one_peer_do_not_overwrite_each_other)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	unsigned rounds = 3 * rvt_scale(), i, n = 0;
	char second[256];
	struct rvt_opening o[20];
	struct rvt_silent hole;
	struct caller c[3];
	struct rvt_done back;

	rvt_silent_start(&hole, RVT_DEAF);
	rvt_net_start(&t, &cfg);
	ck_assert_int_eq(reeve_node_listen(t.node[1].n, "tcp://127.0.0.1:0"), 0);
	ck_assert_int_gt(reeve_node_addr(t.node[1].n, 1, second, sizeof(second)), 0);
	ck_assert_int_eq(reeve_node_add_address(t.node[0].n, t.node[1].id, hole.addr), 0);
	for (unsigned r = 0; r < rounds; r++) {
		c[0].addr = hole.addr;
		c[1].addr = t.node[1].addr;
		c[2].addr = second;
		for (i = 0; i < 20; i++) {
			rvt_opening_init(&o[i], 0, rvt_slow(5000));
			rvt_open(&t, 0, 1, &o[i]);
		}
		for (i = 0; i < 3; i++)
			ck_assert_int_eq(pthread_create(&c[i].thread, NULL, dial, &c[i]), 0);
		rvt_done_init(&back, rvt_slow(5000));
		if (r % 3 != 0)
			reeve_node_dial_async(t.node[1].n, t.node[0].id, t.node[0].addr, &back.op);
		for (i = 0; i < 3; i++) {
			ck_assert_int_eq(pthread_join(c[i].thread, NULL), 0);
			ck_assert_msg(c[i].rc == 0, "dial %u: %s", i, reeve_errname(c[i].rc));
		}
		if (r % 3 != 0)
			ck_assert_int_eq(rvt_done_wait(&back), 0);
		for (i = 0; i < 20; i++)
			ck_assert_int_eq(rvt_opening_wait(&o[i]), 0);
		n += 20;
		RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == n); /* each once */
		ck_assert_uint_eq(rvt_net_stats(&t, 0).peers, 1);
		RVT_UNTIL(rvt_net_stats(&t, 0).dials + rvt_net_stats(&t, 1).dials == 0);
		rvt_fake_let_go(&t.node[1].fake);
		(void)reeve_node_disconnect(t.node[0].n, t.node[1].id);
		(void)reeve_node_disconnect(t.node[1].n, t.node[0].id);
		for (i = 0; i < 2; i++)
			RVT_UNTIL(rvt_net_stats(&t, i).conns == 0);
	}
	rvt_net_end(&t);
	rvt_silent_end(&hole);
}
END_TEST

RVT_MAIN_TABLE("scenario_node",
    {&scenario_121_opens_end_with_the_connection_that_dies_under_them, 2},
    {&scenario_127_dials_to_one_peer_do_not_overwrite_each_other, 0})
