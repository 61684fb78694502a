/*
 * rows.h - rows of contenders (flow.h) as cells: what isolation.c and limit.c share.
 *
 * A row's contenders take turns in every round, each round beginning with another one.  Ratios are of the same round.
 */
#ifndef REEVE_PERF_ROWS_H
#define REEVE_PERF_ROWS_H

#include "perf/flow.h"

#define RVP_FLOWS_MAX 10

struct rvp_pair {
	const char *a, *b;
};

struct rvp_rows {
	const char *bench;
	const struct rvp_flow *const *flows;
	size_t n;                     /* at most RVP_FLOWS_MAX */
	const struct rvp_pair *pairs; /* ratios to print where both ran; a == NULL ends them */
	const char *cases;            /* NAME[,NAME]; NULL: all */
	bool calls;                   /* system calls too, in a round of their own */
	bool copies;                  /* copies in user space per byte too, both ends */
};

/* Is name in a list NAME[,NAME]?  NULL is all of them. */
bool rvp_named(const char *list, const char *name);

/* What the programs of rows are asked for. */
struct rvp_row_options {
	bool quick, pin, items; /* items: nothing else */
	unsigned rounds, streams;
	size_t write;
	double seconds;
	const char *transport, *cases; /* NULL: all */
	const char *
	    one; /* what rows begin with: "", or with --one, which binds the process to a processor, what says so */
};
/* Reads them; rounds: of a full run.  Anything else ends the program with usage on standard error. */
void rvp_row_options(
    struct rvp_row_options *o, int argc, char **argv, unsigned rounds, const char *usage);

/* Measures and prints: rate (GB/s and, for writes below 1 KiB, Mmsg/s), cpu (s/GB), switches.  x: the number behind the row. */
void rvp_row(
    const struct rvp_rows *r, const char *row, double x, const struct rvp_load *l, unsigned rounds);
/* p50, p99, p999 (us) of n items at RVP_ITEMS_RATE. */
void rvp_row_items(const struct rvp_rows *r, const char *row, const struct rvp_load *l, unsigned n,
    unsigned rounds);

/* "64 B", "16 KiB", "1 MiB": to a buffer of its own that the next call but three uses again. */
const char *rvp_size(size_t n);

#endif
