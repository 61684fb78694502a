/*
 * mutex.h - one end behind a lock: what its I/O thread (mutex_io.c) and the calls of the application (mutex.c) share.
 */
#ifndef REEVE_PERF_MUTEX_H
#define REEVE_PERF_MUTEX_H

#include "perf/end.h"

#define RVP_SMALL \
	2048u /* copied on the way in and put together on the way out, as the library does it */

struct rvp_mx;

/* Under the lock unless it says otherwise. */
struct rvp_lane {
	struct rv_stream wire; /* first */
	struct rvp_mx *mx;     /* immutable */
	pthread_cond_t come, room;
	bool reading, writing;     /* somebody waits */
	bool touched, dirty;       /* is in the list */
	uint32_t queued;           /* of the budget */
	struct rv_chain in, small; /* not read; not given to the engine */
	struct rvp_lane *next_all, *next_fresh, *next_touched, *next_dirty;
	struct rvp_lane *next_wake; /* the I/O thread's */
	unsigned wakes;             /* the I/O thread's */
	struct rv_pool *pool;       /* the writing thread's */
};

struct rvp_mx {
	struct rvp_end
	    end;   /* engine under the lock; transport, slab, gather, flags the I/O thread's */
	bool copy; /* immutable */
	pthread_t thread;
	pthread_mutex_t lock __attribute__((aligned(64)));
	pthread_cond_t fresh_come;
	struct rvp_lane *all, *fresh, *fresh_last, *touched, *dirty;
	struct rv_pool *smalls;
	bool asleep; /* the I/O thread is, or is about to be */
	bool stuck;  /* the transport takes nothing now: an event will tell */
	bool lent;   /* a caller does the I/O thread's writing, which waits for it */
	bool over;
	uint64_t lent_at; /* us: the last time */
	pthread_cond_t back;
	struct rvp_lane *wake; /* of who does the I/O: to be signalled without the lock */
};

/* Starts the end and its I/O thread. */
struct rvp_mx *rvp_mx_start(const struct rvp_load *l, bool copy, int fd, int role);
/* The thread has been told to end. */
void rvp_mx_free(struct rvp_mx *m);

/* With the lock: a stream that was opened here. */
void rvp_mx_lane(struct rvp_mx *m, struct rvp_lane *l);
/* With the lock: the stream's small writes to the engine. */
void rvp_mx_give_small(struct rvp_mx *m, struct rvp_lane *l);
/* With the lock, which it lets go of and takes again: writes what there is.  By the I/O thread, or while it sleeps. */
void rvp_mx_write_turn(struct rvp_mx *m);
/* Unlocks and wakes who is to be woken; as above. */
void rvp_mx_unlock(struct rvp_mx *m);
/* With the lock: it is over; everybody looks again. */
void rvp_mx_over(struct rvp_mx *m);

#endif
