/* test_node_stress.c - many nodes, many threads, everything at once: each open has one answer, each CONNECTED works, and
 * nothing stays. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/flow.h"
#include "tests/kit/net.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

#define THREADS 4

static struct rvt_net t;
static struct rvq_gauge opens_ok, opens_failed;

static uint32_t
rnd(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Everybody with everybody. */
START_TEST(twenty_nodes)
{
	struct rvt_net_cfg cfg = {.nodes = 20, .workers = 1, .muxer = _i ? REEVE_MPLEX : 0};
	static struct rvt_opening o[20][20];
	unsigned i, j;

	rvt_net_start(&t, &cfg);
	for (i = 0; i < 20; i++)
		for (j = 0; j < 20; j++)
			if (i != j)
				rvt_net_introduce(&t, i, j);
	for (i = 0; i < 20; i++)
		for (j = 0; j < 20; j++)
			if (i != j) {
				rvt_opening_init(&o[i][j], 0, 20000);
				rvt_open(&t, i, j, &o[i][j]);
			}
	for (i = 0; i < 20; i++)
		for (j = 0; j < 20; j++)
			if (i != j)
				ck_assert_int_eq(rvt_opening_wait(&o[i][j]), 0);
	for (i = 0; i < 20; i++) {
		RVT_UNTIL(rvt_fake_inbound(&t.node[i]) == 19);
		ck_assert_uint_eq(rvt_net_stats(&t, i).peers, 19);
	}
	for (i = 0; i < 20; i++)
		rvt_fake_let_go(&t.node[i].fake);
	rvt_net_end(&t);
}
END_TEST

/* --- an open at once after CONNECTED, from within the event, at both ends */

struct at_once {
	struct rvn_open o;
	struct rvt_net_node *m;
};

static void
on_at_once(struct rvn_open *open)
{
	struct at_once *a = (struct at_once *)(void *)open;

	if (a->o.rc == 0) {
		rvq_gauge_add(&opens_ok, 1);
		reeve_close(a->o.stream);
	} else {
		rvq_gauge_add(&opens_failed, 1);
	}
	free(a);
}

static void
open_at_once(struct rvt_net_node *m, int event, const char *peer)
{
	struct at_once *a;

	if (event != REEVE_PEER_CONNECTED)
		return;
	a = calloc(1, sizeof(*a));
	a->m = m;
	a->o.fn = on_at_once;
	a->o.names = rvt_fake_names;
	a->o.nnames = 2;
	a->o.flags = RVN_NO_DIAL;
	a->o.deadline = UINT64_MAX;
	rvn_open(m->n, peer, &a->o);
}

START_TEST(an_open_right_after_connected_always_works)
{
	struct rvt_net_cfg cfg = {.via = _i ? RVT_TCP : RVT_MEMORY};
	unsigned n = RVT_SANITIZED ? 300 : _i ? 2000 : 10000;

	rvt_net_start(&t, &cfg);
	t.node[0].fake.drop = t.node[1].fake.drop = true;
	rvt_net_introduce(&t, 0, 1);
	t.node[0].hook = t.node[1].hook = open_at_once;
	for (unsigned i = 0; i < n; i++) {
		struct rvt_opening o;

		ck_assert_int_eq(reeve_node_dial(t.node[0].n, t.node[1].id, NULL, NULL, 5000), 0);
		rvt_opening_init(&o, RVN_NO_DIAL, 5000);
		rvt_open(&t, 0, 1, &o);
		ck_assert_int_eq(rvt_opening_wait(&o), 0);
		RVT_UNTIL(rvq_gauge_get(&opens_ok) + rvq_gauge_get(&opens_failed) == 2 * (i + 1));
		ck_assert_uint_eq(rvq_gauge_get(&opens_failed), 0);
		(void)reeve_node_disconnect(t.node[0].n, t.node[1].id);
		RVT_UNTIL(rvt_net_stats(&t, 0).conns + rvt_net_stats(&t, 1).conns == 0);
	}
	rvt_net_end(&t);
}
END_TEST

/* --- threads that do everything */

struct worker {
	pthread_t thread;
	uint32_t seed;
	unsigned rounds, lost;
};

static void
do_something(struct worker *w, unsigned i, unsigned j)
{
	reeve_ctl_t *k;
	struct rvt_opening o;
	struct rvt_done d;
	char who[REEVE_PEER_TEXT];

	switch (rnd(&w->seed) % 8) {
	case 0:
		(void)reeve_node_disconnect(t.node[i].n, t.node[j].id);
		break;
	case 1:
		if ((k = reeve_node_ctl(t.node[i].n, t.node[j].id)) != NULL) {
			(void)reeve_abort(k, 0);
			reeve_ctl_unref(k);
		}
		break;
	case 2:
		(void)reeve_node_dial(t.node[i].n, NULL, t.node[j].addr, who, 2000);
		break;
	case 3:
		rvt_done_init(&d, rnd(&w->seed) % 2 ? -1 : 1);
		reeve_node_dial_async(t.node[i].n, t.node[j].id, t.node[j].addr, &d.op);
		if (rnd(&w->seed) % 2)
			reeve_op_cancel(&d.op);
		(void)rvt_done_wait(&d);
		break;
	default:
		rvt_opening_init(&o, rnd(&w->seed) % 4 == 0 ? RVN_NO_DIAL : 0,
		    rnd(&w->seed) % 4 == 0 ? rnd(&w->seed) % 3 : 5000);
		rvt_open(&t, i, j, &o);
		(void)rvt_opening_wait(&o);
		break;
	}
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	for (unsigned r = 0; r < w->rounds; r++) {
		unsigned i = rnd(&w->seed) % 4, j = rnd(&w->seed) % 4;

		if (i != j)
			do_something(w, i, j);
	}
	return NULL;
}

START_TEST(everything_at_once)
{
	struct rvt_net_cfg cfg = {
	    .nodes = 4, .via = _i ? RVT_TCP : RVT_MEMORY, .node = {.idle_ms = 5}};
	struct worker w[THREADS];
	uint32_t seed = rvt_seed();

	rvt_net_start(&t, &cfg);
	for (unsigned i = 0; i < 4; i++) {
		t.node[i].fake.drop = true;
		for (unsigned j = 0; j < 4; j++)
			if (i != j)
				rvt_net_introduce(&t, i, j);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.seed = seed + i, .rounds = RVT_SANITIZED ? 150 : 500};
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(w[i].thread, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		RVT_UNTIL(rvt_net_stats(&t, i).conns == 0);
	rvt_net_end(&t);
}
END_TEST

/* --- a close under load */

static void *
open_until_closed(void *arg)
{
	struct worker *w = arg;
	struct rvt_opening o;
	int rc;

	do {
		unsigned i = rnd(&w->seed) % 2;

		rvt_opening_init(&o, 0, 5000);
		rvt_open(&t, i, 1 - i, &o);
		rc = rvt_opening_wait(&o);
		if (i == 1 && rc != 0) { /* node 0 has gone */
			w->lost++;
			rc = 0;
		}
	} while (rc != REEVE_ECLOSED && w->lost < 10);
	return NULL;
}

START_TEST(a_close_under_load)
{
	struct rvt_net_cfg cfg = {.via = _i % 2 ? RVT_TCP : RVT_MEMORY};
	struct worker w[THREADS];
	uint32_t seed = rvt_seed();

	rvt_net_start(&t, &cfg);
	t.node[0].fake.drop = t.node[1].fake.drop = true;
	rvt_net_introduce(&t, 0, 1);
	rvt_net_introduce(&t, 1, 0);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.seed = seed + i};
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, open_until_closed, &w[i]), 0);
	}
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) > 50);
	(void)reeve_node_close(t.node[0].n, _i < 2 ? 0 : 500);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(w[i].thread, NULL), 0);
	rvt_net_end(&t);
}
END_TEST

RVT_MAIN_TABLE("node_stress", {&twenty_nodes, 2}, {&an_open_right_after_connected_always_works, 2},
    {&everything_at_once, 2}, {&a_close_under_load, 4})
