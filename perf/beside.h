/* beside.h - a ping-pong beside bulk on one connection, whoever drives it. */
#ifndef REEVE_PERF_BESIDE_H
#define REEVE_PERF_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/nodes.h"
#include "queues/cell.h"
#include "queues/counter.h"

#define RVP_BESIDE_PING 64u
#define RVP_BESIDE_BULK 65536u /* of one write */

/* One measurement. */
struct rvp_beside {
	struct rvp_nodes nodes;
	unsigned bulk;      /* streams */
	double bytes_per_s; /* of all of them; 0: full speed */
	struct rvq_cell32 measuring, stop;
	unsigned trips;                                         /* whoever makes them */
	struct rvq_gauge received __attribute__((aligned(64))); /* bytes of bulk */
};

struct rvp_beside_kind {
	const char *name;
	unsigned
	    shared; /* workers of one runtime for both ends; 0: a runtime of one worker an end */
	/* Opens the streams over b->nodes and begins; what it returns is the run. */
	void *(*start)(struct rvp_beside *b);
	/* After b->stop: ends everything, closes the nodes. */
	void (*stop)(void *run);
};

extern const struct rvp_beside_kind rvp_beside_threads, rvp_beside_calls, rvp_beside_one;

/* A trip that took so long; false: no more of them. */
bool rvp_beside_sample(struct rvp_beside *b, uint64_t ns);
/* Waits until one of the paced streams may send on; began: nanoseconds, sent: its bytes so far. */
void rvp_beside_pace(const struct rvp_beside *b, uint64_t began, uint64_t sent);

#endif
