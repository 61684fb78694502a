/*
 * wan.h - the ends of a flow over distance, each in a process of its own.
 *
 * The measuring process knows of an end what /proc tells, and for our own library what the end's sampling
 * thread leaves in a shared record.
 */
#ifndef REEVE_PERF_WAN_H
#define REEVE_PERF_WAN_H

#include <stdint.h>
#include <sys/types.h>

#include "queues/cell.h"
#include "queues/counter.h"

/* Shared between processes; every field has one writer.  Bytes, microseconds. */
struct rvp_wan_seen {
	struct rvq_counter held;   /* peak of what the receiving connection keeps alive */
	struct rvq_counter unsent; /* peak of what was accepted and not given to the transport */
	struct rvq_counter window; /* largest receive window */
	struct rvq_counter rtt[2]; /* the estimate now, of the sender and of the receiver */
	struct rvq_counter rtt_max[2];
};

struct rvp_wan_kind {
	const char *name;
	const char *program; /* of an interop peer; NULL: forked from this process */
	int raw;             /* one stream of TCP */
	uint32_t max_window; /* of ours; 0: the default */
};

struct rvp_wan_flow {
	const struct rvp_wan_kind *kind;
	unsigned streams;
	struct rvp_wan_seen *seen; /* zeroed, shared */
};

/* Starts the receiving end; addr: HOST:PORT where it listens. */
pid_t rvp_wan_serve(const struct rvp_wan_flow *f, char *addr, size_t n);
/* Starts the sending end: connects to HOST:PORT and sends until it is killed. */
pid_t rvp_wan_dial(const struct rvp_wan_flow *f, const char *addr);
/* Kills an end and waits for it. */
void rvp_wan_kill(pid_t pid);
/* Bytes resident now, or at the most so far. */
uint64_t rvp_wan_rss(pid_t pid, int peak);

#endif
