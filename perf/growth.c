/*
 * growth.c - how it grows: what one stream, connection, message, actor costs where there are very many, and what more
 * workers, more threads and larger messages do.
 *
 * usage: growth [--quick] [--rounds=N] [--part=NAME]
 *
 * Each figure of a part is measured once, on what it says is there; exponents are least squares of log cost over log n for
 * n >= 100: 0 is flat, 1 grows in proportion.  Up to 0.15 is the memory hierarchy: what is touched no longer fits a cache.
 */
#include <config.h>

#include "perf/growth.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"

#define FROM 100

struct rvp_growth rvp_growth;

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {{"idle", rvp_growth_idle}, {"active", rvp_growth_active},
    {"connections", rvp_growth_connections}, {"workers", rvp_growth_workers},
    {"threads", rvp_growth_threads}, {"size", rvp_growth_size}, {"share", rvp_growth_share},
    {"actors", rvp_growth_actors}};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

void
rvp_grown(const struct rvp_cell *c, double value, struct rvp_curve *curve)
{
	char name[96];
	struct rvp_cell cell = *c;

	snprintf(name, sizeof(name), "%s %.0f", c->row, c->x);
	cell.row = name;
	rvp_cell_print(&cell, &value, 1);
	if (curve == NULL)
		return;
	rvp_check(curve->n < sizeof(curve->x) / sizeof(curve->x[0]) && value > 0, "a curve");
	curve->x[curve->n] = c->x;
	curve->cost[curve->n++] = value;
}

void
rvp_grown_exponent(const char *row, const char *contender, const struct rvp_curve *c)
{
	struct rvp_cell cell = {"growth", row, contender, "exponent", "", 0};
	double n = 0, x = 0, y = 0, xx = 0, xy = 0, slope;

	for (unsigned i = 0; i < c->n; i++) {
		if (c->x[i] < FROM)
			continue;
		n++;
		x += log(c->x[i]);
		y += log(c->cost[i]);
		xx += log(c->x[i]) * log(c->x[i]);
		xy += log(c->x[i]) * log(c->cost[i]);
	}
	if (n < 2)
		return;
	slope = (n * xy - x * y) / (n * xx - x * x);
	rvp_cell_print(&cell, &slope, 1);
}

static int
usage(void)
{
	fputs("usage: growth [--quick] [--rounds=N] "
	      "[--part=idle|active|connections|workers|threads|size|share|actors]\n",
	    stderr);
	return 2;
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {{"quick", 0, NULL, 'q'}, {"pin", 0, NULL, 'i'},
	    {"rounds", 1, NULL, 'r'}, {"part", 1, NULL, 'p'}, {NULL, 0, NULL, 0}};
	const char *part = NULL;
	bool ran = false;
	int o;

	rvp_growth.rounds = 5;
	while ((o = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (o == 'q')
			rvp_growth.quick = true;
		else if (o == 'r')
			rvp_growth.rounds = (unsigned)atoi(optarg);
		else if (o == 'p')
			part = optarg;
		else if (o != 'i')
			return usage();
	}
	if (optind != argc || rvp_growth.rounds == 0 || rvp_growth.rounds > RVP_ROUNDS_MAX)
		return usage();
	if (rvp_growth.quick)
		rvp_growth.rounds = 1;
	for (size_t i = 0; i < PARTS; i++) {
		if (part != NULL && strcmp(part, parts[i].name) != 0)
			continue;
		parts[i].run();
		ran = true;
	}
	return ran ? EXIT_SUCCESS : usage();
}
