/* lease.h - buffer pools for application threads: a thread that writes or allocates gets a pool of its own, kept in
 * thread-local storage, given back when the thread exits. */
#ifndef REEVE_ACTORS_LEASE_H
#define REEVE_ACTORS_LEASE_H

#include "lib/buf/pool.h"

struct rva_leases;

/* NULL: out of memory. */
struct rva_leases *rva_leases_create(struct rv_arena *ar);
/* The calling thread's pool, leased now if it has none.  NULL: out of memory or closed. */
struct rv_pool *rva_lease(struct rva_leases *l);
/* The calling thread needs its pool no more (it is about to exit, and somebody waits for that). */
void rva_lease_give_back(void);
/* The calling thread gives its pool back now, if it has one, instead of when it exits. */
void rva_lease_drop(void);
/* The runtime ends: pools that nobody leases are closed, so is the calling thread's; those of other threads when these
 * exit or lease elsewhere.  Lets go of l. */
void rva_leases_close(struct rva_leases *l);

#endif
