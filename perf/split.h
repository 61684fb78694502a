/*
 * split.h - the parts of split_send_size: what one iteration is asked for, the contenders, and what both use.
 *
 * Two threads: the main thread sends, the standing thread of a task receives, as an executor's would.
 */
#ifndef REEVE_PERF_SPLIT_H
#define REEVE_PERF_SPLIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf/flow.h"

#define RVP_SPLIT_PAYLOAD (1u << 20)
#define RVP_SPLIT_READ    8192u /* bytes of one read call */
#define RVP_SPLIT_ADDR    64

struct rvp_split_load {
	enum rvp_transport transport; /* RVP_TCP or RVP_MEMORY */
	size_t split;                 /* bytes of the largest body that is sent */
	size_t bytes;                 /* to carry in one iteration, at most RVP_SPLIT_PAYLOAD */
	const uint8_t *payload;
	unsigned turn;    /* another one each time: addresses are made of it */
	bool check;       /* compare what was received with the payload */
	unsigned workers; /* of our runtime; 0: its default */
	bool pin;
};

struct rvp_split_kind {
	const char *name;
	void *(*open)(const struct rvp_split_load *l); /* what there is before the timer starts */
	/* From listening to the end of everything it began. */
	void (*once)(void *run, const struct rvp_split_load *l);
	/* A connection and a stream that stay until close. */
	void (*keep)(void *run, const struct rvp_split_load *l);
	void (*carry)(void *run, const struct rvp_split_load *l, unsigned mib); /* over them */
	void (*close)(void *run);
};

extern const struct rvp_split_kind rvp_split_ours; /* split_ours.c */
extern const struct rvp_split_kind rvp_split_bare; /* split_bare.c */

/* A thread that runs one function after the other. */
struct rvp_split_task {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*fn)(void *arg); /* NULL: idle */
	void *arg;
	bool leave;
};

void rvp_split_task_start(struct rvp_split_task *t, bool pin);
void rvp_split_task_run(struct rvp_split_task *t, void (*fn)(void *arg), void *arg);
void rvp_split_task_wait(struct rvp_split_task *t);
void rvp_split_task_stop(struct rvp_split_task *t);

/* A message of one address from a thread to another. */
struct rvp_split_box {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool full;
	char addr[RVP_SPLIT_ADDR];
};

void rvp_split_box_init(struct rvp_split_box *b);
void rvp_split_box_fini(struct rvp_split_box *b);
void rvp_split_box_put(struct rvp_split_box *b, const char *addr);
void rvp_split_box_take(struct rvp_split_box *b, char addr[RVP_SPLIT_ADDR]);

/* 127.0.0.2 and so on: what was closed keeps its ports for a minute. */
unsigned rvp_split_host(const struct rvp_split_load *l);

/* Ends the program when the bytes are not those of the payload. */
void rvp_split_same(const uint8_t *got, const struct rvp_split_load *l);

#endif
