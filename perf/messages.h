/*
 * messages.h - what a message costs: channels between threads, and the runs that all of them go through.
 *
 * A channel carries words one way; there are two of each, way 0 there and way 1 back.  Its put and its take move up to
 * n words and say how many; they block or they say 0.  messages_loops.h makes everything else of those two, inlined,
 * so that a channel that takes three nanoseconds is not measured through two calls of functions.  Words count from 1
 * up, for each producer; what a receiver got is checked by number and sum.  0 is a producer's last word where there is
 * no number (flood).
 */
#ifndef REEVE_PERF_MESSAGES_H
#define REEVE_PERF_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/kit.h"
#include "queues/cell.h"

#define RVP_PRODUCERS 4
#define RVP_QUEUE     1024 /* words that a bounded channel holds, about */
#define RVP_MANY      16   /* words of a batch */
#define RVP_DEPTH     64   /* of the rows that fill a channel before they empty it */

struct rvp_channel {
	unsigned ns;         /* what a word takes, roughly: how many are sent */
	void (*begin)(void); /* nobody uses the channel: makes both ways empty */
	/* n is a multiple of batch, which is 1 or RVP_MANY. */
	void (*produce)(unsigned id, unsigned n, unsigned batch);
	uint64_t (*consume)(unsigned n, unsigned batch); /* the sum of n words */
	uint64_t (*alone)(
	    unsigned n, unsigned depth); /* n times depth words, then the sum of as many */
	void (*echo)(unsigned n);        /* takes n words of way 0 and puts each on way 1 */
	uint64_t (*call)(uintptr_t word,
	    unsigned n); /* n words from word on, there and back: the sum of those back */
	/* Until stop; the sum of what was put.  Then the last word. */
	uint64_t (*flood)(unsigned id, const struct rvq_cell32 *stop);
	/* Until every producer's last word; counts in seen. */
	uint64_t (*drain)(unsigned producers, struct rvq_cell64 *seen);
};

/* messages_ours.c: a ring, a ring with a bell in a mailbox, the mailbox, the mailbox whose reader sleeps, the take-all
 * stack. */
extern const struct rvp_channel rvp_spsc, rvp_bell, rvp_mailbox, rvp_near, rvp_parked, rvp_stack;
/* messages_usual.c.  locked: mutex and two condition variables; spun: a pthread spin lock; event: a ring, an eventfd
 * that counts; slot: one word, slept on with a futex; line: one word, looked at until it changes. */
extern const struct rvp_channel rvp_locked, rvp_spun, rvp_pipe, rvp_event, rvp_socket, rvp_slot,
    rvp_line;

struct rvp_messages {
	bool quick, pin;
};
extern struct rvp_messages rvp_messages;

/* One measurement; part of a table that messages.c has. */
struct rvp_row {
	const char *row, *contender;
	const char *what, *unit;
	double x;
	double (*run)(void *arg);
	void *arg;
};

/* The runs: nanoseconds per word, or per round trip. */
struct rvp_stream {
	const struct rvp_channel *channel;
	unsigned producers, batch;
};
double rvp_run_stream(void *stream); /* messages_run.c; threads to the calling one */
struct rvp_alone {
	const struct rvp_channel *channel;
	unsigned depth;
};
double rvp_run_alone(void *alone); /* one thread; there and back out */
struct rvp_trip {
	const struct rvp_channel *channel;
	int cpu[2];     /* both threads are bound */
	unsigned trips; /* of one measurement */
};
double rvp_run_trip(void *trip);
/* Posts of *depth messages and an actor's turns that handle them. */
double rvp_run_turns(void *depth);
/* A call of a function, of a function by pointer; an atomic exchange. */
double rvp_run_direct(void *ignored);
double rvp_run_callback(void *ignored);
double rvp_run_exchange(void *ignored);

/* Actors (messages_actor.c).  Across workers: a way of 1, on one: 0. */
struct rvp_actors {
	unsigned there; /* 0: both actors on one worker; 1: on two */
	unsigned carry; /* words of a message, 1 or RVP_MANY */
	bool bound;     /* the workers are bound to two processors */
};
void rvp_actors_open(void);
void rvp_actors_close(void);
double rvp_run_actor_trip(void *actors); /* a message there and back */
double rvp_run_actor_way(void *actors);
double rvp_run_actor_wakes(void *actors); /* of sleeping workers, per 1000 messages of such a way */
double rvp_run_actor_threads(void *producers);
/* Many actors: prints its cells. */
void rvp_report_crowd(unsigned rounds);

/* To a receiver that sleeps (messages_wake.c).  channel NULL: an actor's. */
#define RVP_WAKES 200
struct rvp_wake {
	const struct rvp_channel *channel;
	double sender[2][RVP_ROUNDS_MAX],
	    until[2][RVP_ROUNDS_MAX]; /* p50 and p99 by round, microseconds */
	unsigned round;
};
double rvp_run_wake(void *wake);
/* The actor's: what to call to post once, and when it ran (0: not yet). */
void rvp_actor_wake_begin(struct rvq_cell64 *ran);
void rvp_actor_wake_post(void);
void rvp_actor_wake_end(void);

/* Producers that run freely (messages_free.c).  channel NULL: threads that post to an actor. */
struct rvp_free {
	const struct rvp_channel *channel;
	const char *contender;
};
void rvp_report_free(const struct rvp_free *f, unsigned windows);
void rvp_actor_flood_begin(unsigned producers, struct rvq_cell64 *seen);
uint64_t rvp_actor_flood(unsigned id, const struct rvq_cell32 *stop);
uint64_t rvp_actor_flood_end(void); /* the sum of what came */

/* Ends the program unless number and sum are right. */
void rvp_expect(uint64_t sum, unsigned producers, unsigned each);
/* Waits a moment: spins while that can help, gives the processor away when it does not. */
void rvp_relax(unsigned *tries);

#endif
