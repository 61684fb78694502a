/* bench.h - reeve-bench: what its files share.
 *
 * Two nodes in one process, each with a runtime of its own, joined by one connection.  Streams carry bytes one way;
 * the same writes go over a bare socket in turn with them, so that both meet the same machine. */
#ifndef REEVE_TOOLS_BENCH_H
#define REEVE_TOOLS_BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <reeve/reeve.h>

#include "tools/mux.h"

#define BENCH_ROUNDS  5
#define BENCH_STREAMS 4096 /* most streams of a row */
#define BENCH_ROWS    4

enum bench_transport { BENCH_TCP, BENCH_UNIX, BENCH_MEMORY };

struct bench_options {
	enum bench_transport transport;
	bool callbacks, json;
	unsigned workers; /* of each node; 0: the library's choice */
	unsigned streams; /* 0: the default rows */
	size_t size;      /* bytes of a write; 0: the default rows */
	double seconds;   /* for everything */
	struct mux mux;
	reeve_cfg_t cfg; /* of both ends of the connection */
};

/* Bytes that have arrived: counted by one reader, awaited by main. */
struct bench_tally {
	pthread_mutex_t lock;
	pthread_cond_t reached;
	uint64_t n, target; /* under lock */
	char apart[64];     /* two readers' tallies do not share a cache line */
};

struct bench_round {
	uint64_t bytes;
	double seconds, cpu_s;
};

/* What one row found out. */
struct bench_row {
	unsigned streams;
	int proto; /* enum reeve_proto, what was agreed */
	size_t size;
	double ours, raw;         /* bytes a second, medians */
	double cpu_ours, cpu_raw; /* processor seconds for 1e9 bytes, all threads */
	double copies;            /* copies of a payload byte besides the kernel's */
	double frames_per_write, frames_per_read, frames_per_call;
	double actor_messages, wakes; /* a second, both nodes */
	uint64_t window;              /* bytes, the largest receive window; mplex has none: 0 */
};

struct bench_link; /* two nodes and their streams */
struct bench_raw;  /* a bare socket with a reader */

/* All of these end the program with one line on standard error when something fails. */
void bench_die(const char *what, int rc);

void bench_tally_init(struct bench_tally *t);
void bench_tally_add(struct bench_tally *t, uint64_t n);
void bench_tally_wait(struct bench_tally *t, uint64_t target);

/* How many writes of a size there are between two looks at the clock. */
unsigned bench_batch(size_t size);

struct bench_link *bench_link_open(const struct bench_options *o, unsigned streams, size_t size);
void bench_link_round(struct bench_link *l, double seconds, struct bench_round *out);
/* The part of the row that comes from counters: over everything since bench_link_mark. */
void bench_link_mark(struct bench_link *l);
void bench_link_counters(struct bench_link *l, struct bench_row *row);
/* Nanoseconds from one actor to another near it, and the number of workers is not changed by it. */
double bench_link_message_ns(struct bench_link *l, double seconds);
void bench_link_close(struct bench_link *l);

struct bench_raw *bench_raw_open(enum bench_transport t, size_t size);
void bench_raw_round(struct bench_raw *r, double seconds, struct bench_round *out);
void bench_raw_close(struct bench_raw *r);

void bench_report_table(
    const struct bench_options *o, const struct bench_row *rows, int n, double message_ns);
void bench_report_json(
    const struct bench_options *o, const struct bench_row *rows, int n, double message_ns);

#endif
