/* lend.h - a thread of the application runs the turn of a worker that sleeps, instead of waking it.
 *
 * Waking a thread costs microseconds on both sides, hundreds of messages' worth.  So a blocking call that has something
 * for its worker to do, and is about to wait or has just handed over much, borrows the worker's turn if that sleeps
 * (queues/loan.h), runs what is in the inbox, and gives the turn back.  Bounded; what is left wakes the worker.
 *
 * Only actors that never call the application run so (rva_actor_ops.lend): no function of the application ever runs on a
 * thread that the library did not make.  Completions wait for the worker (rva_op_finish), actors of the application stay on
 * the run list, a worker with a transport of the application does not lend.  The poller stays the worker's, which may hold an
 * event of it while the turn is lent: nothing that the poller names is freed meanwhile (rva_actor_turn). */
#ifndef REEVE_ACTORS_LEND_H
#define REEVE_ACTORS_LEND_H

#include "actors/worker.h"

/* The calling thread, holding no lock: what rva_post wakes until rva_lend_end is run by it there, if it may. */
void rva_lend_begin(void);
void rva_lend_end(void);

/* Instead of rva_worker_wake, by rva_schedule. */
void rva_lend_wake(struct rva_worker *w);

#endif
