/* lend.h - a thread of the application runs the turn of a worker that sleeps, instead of waking it.
 *
 * Waking a thread costs microseconds on both sides, hundreds of messages' worth.  So a blocking call that has something
 * for its worker to do, and is about to wait or has just handed over much, borrows the worker's turn if that sleeps
 * (queues/loan.h), runs what is in the inbox, and gives the turn back.  Bounded; what is left wakes the worker.
 *
 * Only actors that never call the application run so (rva_actor_ops.lend): no function of the application ever runs on a
 * thread that the library did not make.  Completions wait for the worker (rva_op_finish), actors of the application stay on
 * the run list, a worker with a transport of the application does not lend.  The worker sleeps in the poller all the while,
 * and may hold an event of it while the turn is lent: nothing that the poller names is freed meanwhile (rva_actor_turn).
 *
 * A thread that waits may lead: sleep in the poller too.  The kernel wakes who came last (epoll queues exclusive waiters at
 * the front), so what the thread waits for wakes it and nobody else.  Timers stay the worker's. */
#ifndef REEVE_ACTORS_LEND_H
#define REEVE_ACTORS_LEND_H

#include "actors/worker.h"

/* The calling thread, holding no lock: what rva_post wakes until rva_lend_end is run by it there, if it may. */
void rva_lend_begin(void);
void rva_lend_end(void);

/* The calling thread has to wait until done(arg) or deadline (us): it leads: sleeps in the poller of w and does what comes
 * up there, as long as that is only what may be lent.  True: it did, and looks again at what it waits for; false: it has
 * to sleep by itself.  done is called with the turn or without; what makes it true is followed by a message to an actor of
 * w, or by rvq_waker_poke. */
bool rva_lend_lead(struct rva_worker *w, bool (*done)(void *arg), void *arg, uint64_t deadline);

/* Instead of rva_worker_wake, by rva_schedule. */
void rva_lend_wake(struct rva_worker *w);

#endif
