/*
 * latch.h - a word that is set once; threads sleep on it until it is.
 *
 * The setter's last access to the latch is the exchange that sets it (a futex wake names only the
 * address), so a waiter that has seen it set may free it at once, awake or asleep.
 */
#ifndef REEVE_QUEUES_LATCH_H
#define REEVE_QUEUES_LATCH_H

#include "queues/atomic.h"

struct rvq_latch {
	RVQ_ATOMIC(uint32_t) word; /* 0 unset, 1 unset and somebody sleeps, 2 set */
};

/* Before it is shared: unset. */
static inline void
rvq_latch_init(struct rvq_latch *l)
{
	rvq_store_rlx(&l->word, UINT32_C(0));
}

/* Any thread: is it set?  Acquires what was done before it was set. */
static inline bool
rvq_latch_isset(const struct rvq_latch *l)
{
	return rvq_load_acq(&l->word) == 2; /* pairs with rvq_latch_set */
}

/* Any one thread, once: sets it and wakes every sleeper. */
void rvq_latch_set(struct rvq_latch *l);

/* Any thread: sleeps until it is set (0), or until deadline_us of CLOCK_MONOTONIC
 * (REEVE_ETIMEDOUT). */
int rvq_latch_wait(struct rvq_latch *l, uint64_t deadline_us);

#endif
