/* spin.h - looking around for a moment before sleeping in the poller, while that pays.
 *
 * A thread that sleeps is woken by an interrupt of another processor: 5 us where that processor is awake, 50 to 100 where it
 * sleeps, paid by both ends, and while two ends take turns at sleeping neither works.  So a sleeper first asks the poller
 * again and again, without waiting, for at most `us` microseconds, and gives way to other threads of its processor after
 * each look (sched_yield).
 *
 * It pays only where news come that fast.  After a look in vain the next sleeps go without one: 1, 3, 7 ... 255 of
 * them, and only sleeps that were short count, so who waits for something rare learns it and stays asleep; a look that found
 * something halves that.  (Exponential back-off; the choice between spinning and blocking by what happened last is
 * A. Karlin, K. Li, M. Manasse, S. Owicki, "Empirical studies of competitive spinning for a shared-memory multiprocessor",
 * SOSP 1991.)
 *
 * Owner: who has the worker's turn; threads that wait on a parker have a record each. */
#ifndef REEVE_ACTORS_SPIN_H
#define REEVE_ACTORS_SPIN_H

#include "actors/poller.h"
#include "queues/parker.h"

#define RVA_SPIN_US     50   /* by default */
#define RVA_SPIN_US_MAX 1000 /* at most */

struct rva_spin {
	uint32_t us;    /* immutable: the longest look; 0: none */
	uint8_t skip;   /* short sleeps until the next look */
	uint8_t misses; /* the next failure adds as many and one */
};

/* The longest look of a runtime whose configuration says `wanted` (reeve_rt_cfg_t.spin_us), microseconds.  On one processor
 * nothing can come while a thread looks: by default it does not. */
uint32_t rva_spin_us(uint32_t wanted);
void rva_spin_init(struct rva_spin *s, uint32_t us);

/* As rva_poller_wait, until deadline (us).  waker: the armed worker's; when its turn is lent the look ends, in vain, for who
 * has the turn looks.  NULL: the caller is a leader. */
unsigned rva_spin_wait(struct rva_spin *s, struct rva_poller *p, struct rva_events *e,
    struct rvq_waker *waker, uint64_t deadline);

/* Any thread of the application: waits until done(arg), a look at atomics only, or until deadline (us): REEVE_ETIMEDOUT.  0:
 * look again.  Who makes it true wakes p afterwards.  us: the longest look, by which the thread's own record of looks and
 * sleeps is kept. */
int rva_spin_park(
    struct rvq_parker *p, bool (*done)(void *arg), void *arg, uint32_t us, uint64_t deadline);

#endif
