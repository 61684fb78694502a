/*
 * parker.h - going to sleep without losing a wake-up: threads on a futex, workers in epoll on an
 * eventfd.
 *
 * Sleeper:  loop { take what is there, else arm; look again: there -> disarm, else wait }
 * Waker:    publish; wake
 * wake costs a fence and a load while nobody is armed; the system call is made once per arming.
 * The protocol and its proof are in park.h.
 */
#ifndef REEVE_QUEUES_PARKER_H
#define REEVE_QUEUES_PARKER_H

#include "queues/loan.h"
#include "queues/park.h"

#define RVQ_FOREVER UINT64_MAX

/* A word on which threads sleep; several may share one, and all of them wake and look again. */
struct rvq_parker {
	struct rvq_park park;
};

/* The word of one worker, which sleeps in epoll_wait with fd among its descriptors. */
struct rvq_waker {
	struct rvq_loan loan;
	int fd; /* immutable: eventfd, non-blocking, close-on-exec */
};

/* Before it is shared. */
void rvq_parker_init(struct rvq_parker *p);

/* Any thread: announces that it is about to sleep on p; it must now look again at its condition.
 * A thread is armed on one parker at a time, the last one. */
void rvq_parker_arm(struct rvq_parker *p);

/* The armed thread, when it does not want to sleep after all.  The word stays armed, for it may be
 * shared: that costs the next waker one system call and nobody a wake-up. */
void rvq_parker_disarm(struct rvq_parker *p);

/* The armed thread: sleeps until somebody wakes p, or until deadline_us (microseconds of
 * CLOCK_MONOTONIC, absolute; RVQ_FOREVER none).  0: woken, perhaps for nothing: look again, and
 * arm again before the next wait.  REEVE_ETIMEDOUT: the deadline has passed.  A signal does not
 * end it. */
int rvq_parker_wait(struct rvq_parker *p, uint64_t deadline_us);

/* Any thread, after publishing: wakes every thread that armed p since the last wake.  True: there
 * was one. It touches p after what it published can be seen, so the caller holds something that
 * keeps p (latch.h is for when nobody does). */
bool rvq_parker_wake(struct rvq_parker *p);

/* Before it is shared.  0, or REEVE_ESYS_BASE - errno and w holds nothing. */
int rvq_waker_init(struct rvq_waker *w);
void rvq_waker_fini(struct rvq_waker *w);

/* The worker: announces that it is about to sleep; it must now look again at its inbox and then
 * sleep. */
void rvq_waker_arm(struct rvq_waker *w);

/* The worker, armed: has somebody its turn now? */
bool rvq_waker_lent(const struct rvq_waker *w);

/* The worker, back from epoll_wait or not gone there: waits while its turn is lent. */
void rvq_waker_disarm(struct rvq_waker *w);

/* Any thread, after publishing: an edge on fd if the worker is armed.  True: it was.  The worker watches
 * edges (EPOLLET) and need not read fd. */
bool rvq_waker_wake(struct rvq_waker *w);

/* Any thread, after publishing: true: the worker is armed and the caller has its turn now, until one of the next two. */
bool rvq_waker_borrow(struct rvq_waker *w);
/* The borrower has left nothing undone.  True: look at what others publish once more; false: the worker is awake. */
bool rvq_waker_give(struct rvq_waker *w);
/* The borrower leaves something to the worker, and wakes it. */
void rvq_waker_hand(struct rvq_waker *w);
/* The borrower is about to sleep in epoll_wait as the worker does: true: look at what others publish once more, and then
 * sleep; false: hand the turn over. */
bool rvq_waker_lead(struct rvq_waker *w);
/* It is back.  False: hand the turn over. */
bool rvq_waker_led(struct rvq_waker *w);
/* Any thread, after publishing what a leader waits for: an edge if there is one. */
void rvq_waker_poke(struct rvq_waker *w);

#endif
