/*
 * nodes.h - two nodes of the library with one connection between them.
 *
 * Over sockets each node is a runtime with one worker.  Over memory both are one runtime with two workers,
 * since a memory pipe joins two connections of one runtime; its ends live on different workers.
 */
#ifndef REEVE_PERF_NODES_H
#define REEVE_PERF_NODES_H

#include <reeve/reeve.h>

#include "perf/flow.h"

struct rvp_nodes {
	reeve_rt_t *rt[2]; /* [1] is NULL where both have one */
	reeve_conn_t *conn[2];
	reeve_ctl_t *ctl[2]; /* [0] dials, [1] listens; borrowed */
};

/* cfg of both connections; NULL: the defaults. */
void rvp_nodes_open(struct rvp_nodes *n, enum rvp_transport t, const reeve_cfg_t *cfg, bool pin);
/* Over TCP, both on one runtime with this many workers. */
void rvp_nodes_open_shared(struct rvp_nodes *n, unsigned workers);
/* The same as a load says it. */
void rvp_nodes_open_load(struct rvp_nodes *n, const struct rvp_load *l);
/* Every operation that is pending, and every call that waits, ends. */
void rvp_nodes_abort(struct rvp_nodes *n);
/* Aborts and frees; afterwards nothing of the library runs. */
void rvp_nodes_close(struct rvp_nodes *n);
/* [0] as the sender, [1] as the receiver. */
void rvp_nodes_totals(struct rvp_nodes *n, struct rvp_totals *t);

/* Bytes that the runtime has from the allocator. */
uint64_t rvp_heap(reeve_rt_t *rt);

#endif
