/* kit.c - see kit.h. */
#include <config.h>

#include "perf/kit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void
rvp_options(struct rvp_options *o, int argc, char **argv)
{
	int i;

	*o = (struct rvp_options){.rounds = 0};
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			o->quick = true;
		} else if (strcmp(argv[i], "--pin") == 0) {
			o->pin = true;
		} else if (strncmp(argv[i], "--rounds=", 9) == 0) {
			o->rounds = (unsigned)strtoul(argv[i] + 9, NULL, 10);
		} else {
			fprintf(stderr, "usage: %s [--quick] [--pin] [--rounds=N]\n", argv[0]);
			exit(EXIT_FAILURE);
		}
	}
	if (o->rounds == 0)
		o->rounds = o->quick ? 3 : 11;
	if (o->rounds > RVP_ROUNDS_MAX)
		o->rounds = RVP_ROUNDS_MAX;
}

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t
rvp_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t
rvp_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void
rvp_pin(unsigned n)
{
	static cpu_set_t usable;
	cpu_set_t one;
	int cpu;

	/* The first call sees the processors that the process was started with. */
	if (CPU_COUNT(&usable) == 0 && sched_getaffinity(0, sizeof(usable), &usable) != 0)
		return;
	n %= (unsigned)CPU_COUNT(&usable);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &usable) && n-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

int
rvp_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
rvp_quantile(const double *values, size_t n, double q)
{
	double sorted[RVP_ROUNDS_MAX], at = q * (double)(n - 1);
	size_t low = (size_t)at;

	memcpy(sorted, values, n * sizeof(values[0]));
	qsort(sorted, n, sizeof(sorted[0]), rvp_compare);
	if (low + 1 == n)
		return sorted[low];
	return sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]);
}

void
rvp_rounds(struct rvp_case *cases, size_t n, unsigned rounds)
{
	struct rvp_case *c;
	unsigned round;
	size_t i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < n; i++) {
			c = &cases[(i + round) % n];
			c->values[round] = c->run(c->arg);
		}
	}
}

double
rvp_ratio(const struct rvp_case *a, const struct rvp_case *b, unsigned rounds)
{
	double ratios[RVP_ROUNDS_MAX];
	unsigned i;

	for (i = 0; i < rounds; i++)
		ratios[i] = a->values[i] / b->values[i];
	return rvp_quantile(ratios, rounds, 0.5);
}

void
rvp_cell_print(const struct rvp_cell *c, const double *values, size_t n)
{
	printf("{\"bench\":\"%s\",\"row\":\"%s\",\"contender\":\"%s\",\"what\":\"%s\",\"unit\":\"%"
	       "s\",",
	    c->bench, c->row, c->contender, c->what, c->unit);
	printf("\"x\":%.6g,\"value\":%.4g,\"q1\":%.4g,\"q3\":%.4g,\"n\":%zu}\n", c->x,
	    rvp_quantile(values, n, 0.5), rvp_quantile(values, n, 0.25),
	    rvp_quantile(values, n, 0.75), n);
	fflush(stdout);
}

void
rvp_print(const char *bench, const char *name, const char *unit, double value, unsigned n)
{
	printf("{\"bench\":\"%s\",\"case\":\"%s\",\"unit\":\"%s\",\"value\":%.4g,\"n\":%u}\n",
	    bench, name, unit, value, n);
	fflush(stdout);
}

void
rvp_report(const char *bench, const struct rvp_case *cases, size_t n, unsigned rounds)
{
	size_t i;

	for (i = 0; i < n; i++)
		rvp_print(bench, cases[i].name, cases[i].unit,
		    rvp_quantile(cases[i].values, rounds, 0.5), rounds);
}
