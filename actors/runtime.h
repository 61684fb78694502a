/* runtime.h - what belongs to a whole runtime: workers, the arena, budgets, the register of what lives on it.
 *
 * The register (lock) is cold: touched when a connection, listener or actor begins or ends, never by data. */
#ifndef REEVE_ACTORS_RUNTIME_H
#define REEVE_ACTORS_RUNTIME_H

#include <pthread.h>

#include <reeve/stats.h>

#include "actors/actor.h"
#include "actors/lease.h"
#include "actors/worker.h"
#include "lib/log.h"
#include "queues/parker.h"

struct reeve_listener;
struct reeve_actor;

struct reeve_rt {
	/* immutable */
	struct rv_arena *arena;
	struct rv_log log;
	struct rv_budget *budget; /* received bytes held by all connections */
	unsigned nworkers;
	uint32_t max_handlers;
	uint32_t spin_us; /* spin.h */
	bool external;
	uint32_t generation; /* of the process that made it: see fork */
	struct rva_worker *workers;
	struct rva_leases *leases;
	char name[10];
	/* any thread */
	struct rvq_cell32 stopping; /* no new connections, listeners, actors */
	struct rvq_cell32 cut; /* a connection was still open when the shutdown's time was over */
	struct rvq_cell32 running; /* external mode: somebody is in reeve_rt_run */
	struct rvq_cell64 runner;  /* external mode: pthread_t of the last one who was */
	struct rvq_gauge nconns;
	struct rvq_parker idle; /* woken when something was taken out of the register */
	/* under lock */
	pthread_mutex_t lock;
	struct reeve_conn *conns;
	struct reeve_listener *listeners;
	struct reeve_actor *actors;
	reeve_stats_t past; /* sums over connections that ended */
};

/* May the calling thread make a blocking call on rt?  0, REEVE_EWORKER, REEVE_EFORKED. */
int rva_rt_may_block(reeve_rt_t *rt);
/* May it also wait for an actor's turn: will somebody run it?  (An external runtime may never have been run.) */
bool rva_rt_may_wait(reeve_rt_t *rt);
/* 0, REEVE_EFORKED. */
int rva_rt_alive(reeve_rt_t *rt);
/* A worker for something new: the least loaded. */
struct rva_worker *rva_rt_place(reeve_rt_t *rt);
/* The pool that the calling thread may take blocks from: its worker's, or one leased to the thread.  NULL: out of memory. */
struct rv_pool *rva_rt_pool(reeve_rt_t *rt);

/* The register.  add: REEVE_ECLOSED once the runtime is stopping. */
int rva_rt_add_conn(reeve_rt_t *rt, struct reeve_conn *c);
void rva_rt_remove_conn(reeve_rt_t *rt, struct reeve_conn *c);
int rva_rt_add_listener(reeve_rt_t *rt, struct reeve_listener *l);
void rva_rt_remove_listener(reeve_rt_t *rt, struct reeve_listener *l);
int rva_rt_add_actor(reeve_rt_t *rt, struct reeve_actor *a);
void rva_rt_remove_actor(reeve_rt_t *rt, struct reeve_actor *a);

#endif
