/* growth.h - what things cost when there are more of them. */
#ifndef REEVE_PERF_GROWTH_H
#define REEVE_PERF_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/kit.h"

extern struct rvp_growth {
	bool quick;
	unsigned rounds;
} rvp_growth;

/* The cost of one at n, for the exponents: several contenders of one row by n. */
struct rvp_curve {
	unsigned n;
	double x[16], cost[16];
};

/* The figure of c->x things: a cell whose row is c's and that number, and a point of the curve, which may be NULL. */
void rvp_grown(const struct rvp_cell *c, double value, struct rvp_curve *curve);
#define RVP_GROWN(row, contender, what, unit, x) \
	(&(const struct rvp_cell){"growth", (row), (contender), (what), (unit), (double)(x)})
/* The exponent of a curve over x >= 100: 0 is flat. */
void rvp_grown_exponent(const char *row, const char *contender, const struct rvp_curve *c);

/* growth_field.c: idle and active streams, connections, workers */
void rvp_growth_idle(void);
void rvp_growth_active(void);
void rvp_growth_connections(void);
void rvp_growth_workers(void);
/* growth_load.c: threads, message size, shares */
void rvp_growth_threads(void);
void rvp_growth_size(void);
void rvp_growth_share(void);
/* growth_actors.c */
void rvp_growth_actors(void);

#endif
