/*
 * inline.h - the same engine driven by one thread and one epoll set per end: no runtime, no actors, no rings.
 *
 * This is the direct call that actors are compared with: engine, buffers, pool, gather, transport and
 * budgets are those of a connection, and an event is a function call on the spot.  Received bytes are
 * consumed where they lie; credit goes back after each read.
 */
#ifndef REEVE_PERF_INLINE_H
#define REEVE_PERF_INLINE_H

#include "perf/flow.h"

struct rvp_inline;

struct rvp_inline_cfg {
	int fd;                  /* the end's from now on */
	int role;                /* REEVE_DIALER, REEVE_LISTENER */
	unsigned streams;        /* opened at once; each keeps its send budget full */
	size_t write;            /* with buffers of so many bytes */
	uint32_t window, budget; /* max_window, send_budget; 0: the defaults */
	int cpu;                 /* or RVP_ANY_CPU */
};

/* Starts the end's thread. */
struct rvp_inline *rvp_inline_start(const struct rvp_inline_cfg *cfg);
/* Payload bytes consumed; any thread. */
uint64_t rvp_inline_received(const struct rvp_inline *in);
/* Adds the end's counters; any thread. */
void rvp_inline_totals(const struct rvp_inline *in, struct rvp_totals *t);
/* Ends the thread and frees everything. */
void rvp_inline_stop(struct rvp_inline *in);

#endif
