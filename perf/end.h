/*
 * end.h - one end of a connection without runtime: engine, transport, pool, gather and an epoll set.
 *
 * What the contenders share that drive the engine themselves (inline.c: one thread calls everything; mutex.c: threads call
 * in under a lock).  The parts are those of a connection of the library, with its budgets.  Nothing here locks: read,
 * write and wait touch only the transport and the flags, and belong to one thread at a time.
 */
#ifndef REEVE_PERF_END_H
#define REEVE_PERF_END_H

#include "lib/engine/engine.h"
#include "lib/engine/gather.h"
#include "perf/flow.h"

/* As a connection has them. */
#define RVP_READ_BUDGET  (256u * 1024)
#define RVP_WRITE_BUDGET (1024u * 1024)

struct rvp_end_cfg {
	int fd;                  /* the end's from now on */
	int role;                /* REEVE_DIALER, REEVE_LISTENER */
	uint32_t window, budget; /* max_window, send_budget; 0: the defaults */
	size_t record;           /* bytes of a stream's record */
	/* Called by the engine; there is always room for events. */
	void (*emit)(void *ctx, const struct rv_event *ev);
	void *ctx;
};

struct rvp_end {
	int role, poll, bell, timer; /* timer: -1 unless rvp_end_tick */
	struct rv_arena *arena;
	struct rv_engine *engine;
	struct rv_transport *transport;
	struct rv_pool *pool;
	struct rv_slab *slab; /* filled by reads */
	struct rv_gather *gather;
	uint64_t now; /* us */
	bool readable, writable, hup, over, ticked;
	struct rvq_counter reads, writes __attribute__((aligned(64)));
};

void rvp_end_open(struct rvp_end *e, const struct rvp_end_cfg *cfg);
/* Ends the connection: every stream's record is let go by RV_EV_GONE.  By the thread that drove it last. */
void rvp_end_finish(struct rvp_end *e);
/* Frees; nobody uses it any more. */
void rvp_end_close(struct rvp_end *e);

/* From now on rvp_end_wait sets ticked so many times a second. */
void rvp_end_tick(struct rvp_end *e, unsigned rate);
/* Any thread: rvp_end_wait returns. */
void rvp_end_ring(struct rvp_end *e);

/* One read of the transport.  Bytes, which are at slab->data + *at; 0: none now (readable is false), or over. */
uint32_t rvp_end_read(struct rvp_end *e, uint32_t *at);
/* Is there something to write?  Fills the gather if it is empty. */
bool rvp_end_gather(struct rvp_end *e);
/* One write of what was gathered.  Bytes that the transport took, of which the engine is to be told; 0: none now. */
size_t rvp_end_write(struct rvp_end *e);
/* Has it something to do without an event? */
bool rvp_end_busy(const struct rvp_end *e);
/* Microseconds from now until the engine's timers; UINT64_MAX: none. */
uint64_t rvp_end_due(const struct rvp_end *e);
/* Looks at the events, and sleeps until there are some or for so many us (0: does not sleep).  Returns the EPOLLIN,
 * EPOLLOUT and EPOLLHUP of the transport: rvp_end_see takes them over to the flags. */
uint32_t rvp_end_wait(struct rvp_end *e, uint64_t us);
void rvp_end_see(struct rvp_end *e, uint32_t events);

/* Adds the end's counters; any thread. */
void rvp_end_totals(const struct rvp_end *e, struct rvp_totals *t);

#endif
