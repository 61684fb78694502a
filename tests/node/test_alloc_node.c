/* test_alloc_node.c - two nodes' life in which allocation number n fails, for every n, alone or with all behind it: each
 * call works or answers what follows from it, everything completes once, and nothing stays. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/net.h"
#include "tests/kit/run.h"

#define MS 2000

static struct rvt_net t;
static unsigned bad; /* calls that failed */

static int
ok(int rc, int line)
{
	ck_assert_msg(rc >= 0 || rc == REEVE_ENOMEM || rc == REEVE_EDIAL || rc == REEVE_ETIMEDOUT ||
		rc == REEVE_ELOST || rc == REEVE_ENOTCONN || rc == REEVE_ERESET ||
		rc == REEVE_EREFUSED || rc == REEVE_ENOPROTO || rc == REEVE_ECLOSED,
	    "line %d: %s", line, reeve_errname(rc));
	bad += rc < 0;
	return rc >= 0;
}
#define OK(rc) ok((rc), __LINE__)

static void
talk(void)
{
	struct rvt_opening o[3];

	OK(reeve_node_add_address(t.node[0].n, t.node[1].id, t.node[1].addr));
	for (unsigned i = 0; i < 3; i++) {
		rvt_opening_init(&o[i], 0, MS);
		rvt_open(&t, 0, 1, &o[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		OK(rvt_opening_wait(&o[i]));
	OK(reeve_node_dial(t.node[1].n, NULL, t.node[0].addr, NULL, MS));
	rvt_opening_init(&o[0], 0, MS);
	rvt_open(&t, 1, 0, &o[0]);
	OK(rvt_opening_wait(&o[0]));
	OK(reeve_node_disconnect(t.node[0].n, t.node[1].id));
}

static void
end_node(unsigned i)
{
	struct rvt_net_node *m = &t.node[i];

	if (m->n == NULL)
		return;
	(void)reeve_node_close(m->n, MS);
	ck_assert_uint_eq(rvt_net_stats(&t, i).conns + rvt_net_stats(&t, i).opening, 0);
	ck_assert_uint_eq(m->connected, m->disconnected);
	ck_assert(!m->fake.disorder);
	rvt_fake_let_go(&m->fake);
	reeve_node_destroy(m->n);
}

/* False: it was over before allocation n. */
static bool
live(int kind, uint64_t n, bool rest)
{
	struct rvt_net_cfg cfg = {
	    .via = kind ? RVT_TCP : RVT_MEMORY, .muxer = kind ? REEVE_MPLEX : REEVE_YAMUX};
	reeve_rt_cfg_t rt;
	bool failed;
	int rc = 0;

	memset(&t, 0, sizeof(t));
	rvt_alloc_init(&t.alloc);
	reeve_rt_cfg_init(&rt);
	rt.workers = 1;
	rt.alloc = t.alloc.a;
	ck_assert_int_eq(reeve_rt_create(&t.node[0].rt, &rt), 0);
	t.node[1].rt = t.node[0].rt;
	rvt_alloc_fail(&t.alloc, n, rest);
	for (unsigned i = 0; i < 2 && rc == 0; i++)
		if ((rc = rvt_net_node(&t, i, &cfg, i + 1)) < 0)
			OK(rc);
	t.node[0].fake.drop = t.node[1].fake.drop = true;
	if (rc == 0)
		talk();
	failed = rvt_alloc_failed(&t.alloc);
	ck_assert(failed || bad == 0);
	bad = 0;
	for (unsigned i = 0; i < 2; i++)
		end_node(i);
	reeve_rt_destroy(t.node[0].rt);
	rvt_alloc_check(&t.alloc);
	return failed;
}

START_TEST(nodes_survive_any_single_failure)
{
	uint64_t n = 1;

	while (live(_i, n, false))
		n++;
	ck_assert_uint_gt(n, 50);
}
END_TEST

START_TEST(nodes_survive_the_end_of_all_memory)
{
	uint64_t n = 1;

	while (live(_i, n, true))
		n++;
	ck_assert_uint_gt(n, 50);
}
END_TEST

RVT_MAIN_TABLE(
    "alloc_node", {&nodes_survive_any_single_failure, 2}, {&nodes_survive_the_end_of_all_memory, 2})
