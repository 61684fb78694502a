/* nodes.c - see nodes.h. */
#include <config.h>

#include "perf/nodes.h"

#include <sched.h>
#include <string.h>

#include "actors/runtime.h"
#include "lib/alloc.h"
#include "perf/kit.h"

/* Workers inherit where their maker may run. */
static reeve_rt_t *
runtime(unsigned workers, int cpu)
{
	reeve_rt_cfg_t cfg;
	cpu_set_t before;
	reeve_rt_t *rt;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = workers;
	if (cpu >= 0) {
		rvp_check(sched_getaffinity(0, sizeof(before), &before) == 0, "affinity");
		rvp_pin((unsigned)cpu);
	}
	rvp_must(reeve_rt_create(&rt, &cfg), "runtime");
	if (cpu >= 0)
		(void)sched_setaffinity(0, sizeof(before), &before);
	return rt;
}

static void
open_nodes(
    struct rvp_nodes *n, enum rvp_transport t, const reeve_cfg_t *cfg, bool pin, unsigned workers)
{
	int fd[2], i;

	*n = (struct rvp_nodes){{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
	if (t == RVP_MEMORY) {
		n->rt[0] = runtime(2 * workers, RVP_ANY_CPU);
		rvp_must(reeve_conn_pair(n->conn, n->rt[0], cfg), "pair");
	} else {
		rvp_sockets(t, fd);
		for (i = 0; i < 2; i++) {
			n->rt[i] = runtime(workers, pin ? i : RVP_ANY_CPU);
			rvp_must(reeve_conn_open_fd(&n->conn[i], n->rt[i], fd[i],
				     i == 0 ? REEVE_DIALER : REEVE_LISTENER, cfg),
			    "connection");
		}
	}
	for (i = 0; i < 2; i++)
		n->ctl[i] = reeve_conn_ctl(n->conn[i]);
}

void
rvp_nodes_open(struct rvp_nodes *n, enum rvp_transport t, const reeve_cfg_t *cfg, bool pin)
{
	open_nodes(n, t, cfg, pin, 1);
}

void
rvp_nodes_open_shared(struct rvp_nodes *n, unsigned workers)
{
	int fd[2];

	*n = (struct rvp_nodes){{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
	rvp_sockets(RVP_TCP, fd);
	n->rt[0] = runtime(workers, RVP_ANY_CPU);
	for (int i = 0; i < 2; i++) {
		rvp_must(reeve_conn_open_fd(&n->conn[i], n->rt[0], fd[i],
			     i == 0 ? REEVE_DIALER : REEVE_LISTENER, NULL),
		    "connection");
		n->ctl[i] = reeve_conn_ctl(n->conn[i]);
	}
}

void
rvp_nodes_open_load(struct rvp_nodes *n, const struct rvp_load *l)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_window = l->window;
	cfg.send_budget = l->budget;
	cfg.proto = l->proto;
	open_nodes(n, l->transport, &cfg, l->pin, l->workers > 0 ? l->workers : 1);
}

void
rvp_nodes_abort(struct rvp_nodes *n)
{
	(void)reeve_abort(n->ctl[0], 0);
	(void)reeve_abort(n->ctl[1], 0);
}

void
rvp_nodes_close(struct rvp_nodes *n)
{
	rvp_nodes_abort(n);
	reeve_conn_destroy(n->conn[0]);
	reeve_conn_destroy(n->conn[1]);
	reeve_rt_destroy(n->rt[0]);
	reeve_rt_destroy(n->rt[1]);
}

void
rvp_nodes_totals(struct rvp_nodes *n, struct rvp_totals *t)
{
	reeve_stats_t tx = {.size = sizeof(tx)}, rx = {.size = sizeof(rx)};

	rvp_must(reeve_ctl_stats(n->ctl[0], &tx), "stats");
	rvp_must(reeve_ctl_stats(n->ctl[1], &rx), "stats");
	*t = (struct rvp_totals){
	    .copied = tx.bytes_copied_out + tx.bytes_copied_in + rx.bytes_copied_in +
		rx.bytes_copied_out,
	    .frames_out = tx.frames_out,
	    .writes = tx.writes,
	    .frames_in = rx.frames_in,
	    .reads = rx.reads,
	    .window_max = rx.window_max,
	};
}

uint64_t
rvp_heap(reeve_rt_t *rt)
{
	return rv_arena_bytes(rt->arena);
}
