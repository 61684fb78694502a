/*
 * kit.h - what the perf programs share: time, options, medians, alternating rounds, JSON lines.
 *
 * Machines are noisy and drift, so contenders take turns round by round in one process and only
 * medians and ratios within a run are worth comparing.  One thread uses the kit.
 */
#ifndef REEVE_PERF_KIT_H
#define REEVE_PERF_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVP_ROUNDS_MAX 64

struct rvp_options {
	bool quick;      /* --quick: a fraction of the work, for a check that it runs */
	bool pin;        /* --pin: threads are bound to processors */
	unsigned rounds; /* --rounds=N: 11, with --quick 3 */
};

/* A contender: run does the work once and returns its figure. */
struct rvp_case {
	const char *name;
	const char *unit;
	double (*run)(void *arg);
	void *arg;
	double values[RVP_ROUNDS_MAX]; /* one per round, in the order of rounds */
};

/* Reads the options above; anything else ends the program with a message on standard error. */
void rvp_options(struct rvp_options *o, int argc, char **argv);

/* Nanoseconds of the monotonic clock, and of processor time used by the process. */
uint64_t rvp_now_ns(void);
uint64_t rvp_cpu_ns(void);

/* Binds the calling thread to the n-th processor it may use, counted round. */
void rvp_pin(unsigned n);

/* For qsort of doubles. */
int rvp_compare(const void *a, const void *b);
/* The q-quantile (0 to 1, 0.5 is the median) of n > 0 values. */
double rvp_quantile(const double *values, size_t n, double q);

/* Runs every case once a round, each round starting with another one. */
void rvp_rounds(struct rvp_case *cases, size_t n, unsigned rounds);

/* The median over rounds of a's figure divided by b's in the same round. */
double rvp_ratio(const struct rvp_case *a, const struct rvp_case *b, unsigned rounds);

/*
 * A figure: whose answer it is to which question, so that reports can make tables and plots of it.  The strings
 * need no escaping and live as long as the call.
 */
struct rvp_cell {
	const char *bench;     /* the question: "messages", "isolation", ... */
	const char *row;       /* what is varied: "8 x 64 KiB hot" */
	const char *contender; /* "worker", "plain", "rust"; "a/b": a ratio */
	const char *what;      /* "rate", "p50", "p99", "cpu", "switches", "calls" */
	const char *unit;      /* "GB/s", "us", "s/GB", "/MiB", "ratio" */
	double x;              /* the number behind the row, for plots; 0: none */
};

/* One line {"bench","row","contender","what","unit","x","value","q1","q3","n"}: the median and the quartiles of n
 * values, 0 < n <= RVP_ROUNDS_MAX. */
void rvp_cell_print(const struct rvp_cell *c, const double *values, size_t n);

/* One line {"bench","case","unit","value","n"} on standard output; the strings need no escaping. */
void rvp_print(const char *bench, const char *name, const char *unit, double value, unsigned n);

/* The median of every case, one line each. */
void rvp_report(const char *bench, const struct rvp_case *cases, size_t n, unsigned rounds);

#endif
