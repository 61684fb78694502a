/* worker.h - a worker: the loop that runs actors, connections, timers and the poller of one thread.
 *
 * drain inbox -> up to 64 turns -> flush dirty connections -> timers -> poll (no wait while work is left).
 * In external mode the same loop is run by the application (reeve_rt_run). */
#ifndef REEVE_ACTORS_WORKER_H
#define REEVE_ACTORS_WORKER_H

#include <pthread.h>

#include <reeve/conn.h>

#include "actors/actor.h"
#include "actors/poller.h"
#include "actors/spin.h"
#include "actors/timer.h"
#include "lib/buf/pool.h"
#include "lib/engine/gather.h"
#include "queues/cell.h"
#include "queues/counter.h"
#include "queues/parker.h"

struct rva_worker {
	/* immutable */
	reeve_rt_t *rt;
	struct rv_arena *arena;
	unsigned index;
	pthread_t thread;
	struct rv_pool *pool;
	/* any thread */
	struct rvq_stack inbox __attribute__((aligned(64))); /* actors that others made runnable */
	struct rvq_waker waker;
	struct rvq_cell32 stop;       /* leave the loop */
	struct rvq_cell32 gone;       /* the loop has been left for good */
	struct rvq_gauge connections; /* and attempts to make one */
	struct rvq_gauge listeners;
	struct rvq_gauge wakes;
	struct rvq_cell32 shy;   /* waits that do not lead: lend.c */
	struct rvq_gauge custom; /* connections over transports of the application */
	/* owner */
	struct rvq_link *run_head __attribute__((aligned(64)));
	struct rvq_link **run_tail;
	struct rvq_link *dead; /* ended in a lent turn: freed in the worker's own */
	struct reeve_conn *dirty_head, **dirty_tail; /* to be flushed */
	struct reeve_conn *read_head, **read_tail;   /* readable */
	struct rva_dial *dials;                      /* connecting */
	struct rva_poller poller;
	struct rva_wheel wheel;
	uint64_t now; /* us, refreshed once a loop */
	struct rv_gather *gathers;
	unsigned ngathers;
	struct rva_source wake_source;
	struct rva_source
	    timer_source; /* external mode: timers make the poller's descriptor readable */
	int timer_fd;
	struct rva_spin spin, lead; /* before the worker sleeps; before a leader does */
	uint64_t sleep_until;       /* us: when the poller's wait ends by itself */
	bool lent;                  /* a thread of the application runs the turn: lend.c */
	unsigned bounced; /* completions on their way to clerk, which others may not overtake */
	struct rva_actor clerk; /* calls back what a thread of the application completed */
	bool polled;            /* since the pass before began its wait */
	bool warm;              /* ran something since the pool was last trimmed */
	struct rvq_counter messages, loops;
};

int rva_worker_init(struct rva_worker *w, reeve_rt_t *rt, unsigned index);
/* Close the inbox, answer what is in it, free.  The loop is not running. */
void rva_worker_fini(struct rva_worker *w);
void *rva_worker_main(void *w);
/* One pass; waits at most until deadline (us) when there is nothing to do.  Returns turns and events run. */
unsigned rva_worker_pass(struct rva_worker *w, uint64_t deadline);
/* What a pass does but timers and the poller: what others posted, reads, at most as many turns as a pass has, writes. */
unsigned rva_worker_work(struct rva_worker *w);
/* Would a pass run something without waiting? */
bool rva_worker_busy(const struct rva_worker *w);

/* External mode: watch a descriptor for timers too; and, when the application leaves the loop, see that the poller's
 * descriptor becomes readable as soon as there is work. */
int rva_worker_external(struct rva_worker *w);
void rva_worker_announce(struct rva_worker *w);

static inline void
rva_worker_wake(struct rva_worker *w)
{
	if (rvq_waker_wake(&w->waker))
		rvq_gauge_add(&w->wakes, 1);
}

static inline bool
rva_worker_gone(struct rva_worker *w)
{
	return rvq_cell32_get(&w->gone) != 0;
}

static inline void
rva_run_push(struct rva_worker *w, struct rva_actor *a)
{
	a->link.next = NULL;
	*w->run_tail = &a->link;
	w->run_tail = &a->link.next;
}

/* dialer.c: the worker leaves its loop: answer every attempt that is still connecting.  Owner. */
void rva_dials_end(struct rva_worker *w);

/* A gather with nothing in it, and back.  NULL: out of memory. */
struct rv_gather *rva_gather_get(struct rva_worker *w);
void rva_gather_put(struct rva_worker *w, struct rv_gather *g);

#endif
