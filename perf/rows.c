/* rows.c - see rows.h. */
#include <config.h>

#include "perf/rows.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/items.h"
#include "perf/kit.h"

/* One figure of every contender in every round. */
struct table {
	const struct rvp_rows *rows;
	const char *row;
	double x;
	unsigned rounds;
	const bool *ran;
	double v[RVP_FLOWS_MAX][RVP_ROUNDS_MAX];
};

bool
rvp_named(const char *list, const char *name)
{
	const char *at = list;
	size_t n = strlen(name);
	bool named = list == NULL;

	while (!named && (at = strstr(at, name)) != NULL) {
		named = (at == list || at[-1] == ',') && (at[n] == '\0' || at[n] == ',');
		at += n;
	}
	return named;
}

const char *
rvp_size(size_t n)
{
	static char text[4][24];
	static unsigned turn;
	char *s = text[turn++ % 4];

	if (n >= 1048576 && n % 1048576 == 0)
		snprintf(s, sizeof(text[0]), "%zu MiB", n / 1048576);
	else if (n >= 1024 && n % 1024 == 0)
		snprintf(s, sizeof(text[0]), "%zu KiB", n / 1024);
	else
		snprintf(s, sizeof(text[0]), "%zu B", n);
	return s;
}

static void
print(const struct table *t, const char *what, const char *unit)
{
	struct rvp_cell c = {t->rows->bench, t->row, NULL, what, unit, t->x};
	size_t i;

	for (i = 0; i < t->rows->n; i++) {
		c.contender = t->rows->flows[i]->name;
		if (t->ran[i])
			rvp_cell_print(&c, t->v[i], t->rounds);
	}
}

static bool
find(const struct table *t, const char *name, size_t *i)
{
	for (*i = 0; *i < t->rows->n; ++*i)
		if (t->ran[*i] && strcmp(t->rows->flows[*i]->name, name) == 0)
			return true;
	return false;
}

static void
print_ratios(const struct table *t, const char *what)
{
	struct rvp_cell c = {t->rows->bench, t->row, NULL, what, "ratio", t->x};
	const struct rvp_pair *p;
	double v[RVP_ROUNDS_MAX];
	unsigned i, n;
	char name[64];
	size_t a, b;

	for (p = t->rows->pairs; p->a != NULL; p++) {
		if (!find(t, p->a, &a) || !find(t, p->b, &b))
			continue;
		for (i = n = 0; i < t->rounds; i++)
			if (t->v[b][i] > 0)
				v[n++] = t->v[a][i] / t->v[b][i];
		snprintf(name, sizeof(name), "%s/%s", p->a, p->b);
		c.contender = name;
		if (n > 0)
			rvp_cell_print(&c, v, n);
	}
}

static void
choose(const struct rvp_rows *r, bool *ran)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		ran[i] = rvp_named(r->cases, r->flows[i]->name);
}

/* System calls, in one round of its own. */
static void
count_calls(struct table *t, const struct rvp_load *l)
{
	struct rvp_load counted = *l;
	struct rvp_figure f = {.calls = -1};
	size_t i;

	counted.calls = true;
	for (i = 0; i < t->rows->n; i++) {
		if (t->ran[i])
			rvp_flow_measure(t->rows->flows[i], &counted, &f);
		if (t->ran[i] && f.calls < 0)
			return;
		t->v[i][0] = f.calls;
	}
	t->rounds = 1;
	print(t, "calls", "/MiB");
}

static void
fill(struct table *t, struct rvp_figure f[][RVP_ROUNDS_MAX], size_t at, double factor)
{
	unsigned k;
	size_t i;

	for (i = 0; i < t->rows->n; i++)
		for (k = 0; t->ran[i] && k < t->rounds; k++)
			t->v[i][k] = factor *
			    *(const double *)(const void *)((const char *)&f[i][k] + at);
}

void
rvp_row(
    const struct rvp_rows *r, const char *row, double x, const struct rvp_load *l, unsigned rounds)
{
	static struct rvp_figure figures[RVP_FLOWS_MAX][RVP_ROUNDS_MAX];
	static struct table t;
	bool ran[RVP_FLOWS_MAX];
	unsigned round;
	size_t i, c;

	choose(r, ran);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < r->n; i++) {
			c = (i + round) % r->n;
			if (ran[c])
				rvp_flow_measure(r->flows[c], l, &figures[c][round]);
		}
	}
	t = (struct table){.rows = r, .row = row, .x = x, .rounds = rounds, .ran = ran};
	fill(&t, figures, offsetof(struct rvp_figure, gbps), 1);
	print(&t, "rate", "GB/s");
	print_ratios(&t, "rate");
	if (l->write < 1024) {
		fill(&t, figures, offsetof(struct rvp_figure, gbps), 1000 / (double)l->write);
		print(&t, "writes", "Mmsg/s");
	}
	fill(&t, figures, offsetof(struct rvp_figure, cpu), 1 / 1024.0);
	print(&t, "cpu", "s/GB");
	print_ratios(&t, "cpu");
	fill(&t, figures, offsetof(struct rvp_figure, switches), 1);
	print(&t, "switches", "/MiB");
	if (r->copies) {
		fill(&t, figures, offsetof(struct rvp_figure, copies), 1);
		print(&t, "copies", "/byte");
	}
	if (r->calls)
		count_calls(&t, l);
}

void
rvp_row_items(const struct rvp_rows *r, const char *row, const struct rvp_load *l, unsigned n,
    unsigned rounds)
{
	static const struct {
		const char *what;
		double q;
	} quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};
	static struct table t[3];
	struct rvp_load load = *l;
	struct rvp_items items;
	bool ran[RVP_FLOWS_MAX];
	unsigned round, k;
	size_t i, c;
	void *run;

	choose(r, ran);
	load.items = &items;
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < r->n; i++) {
			c = (i + round) % r->n;
			if (!ran[c])
				continue;
			rvp_items_init(&items, n);
			run = r->flows[c]->start(&load);
			rvp_items_wait(&items);
			r->flows[c]->stop(run);
			for (k = 0; k < 3; k++)
				t[k].v[c][round] = rvp_items_us(&items, quantiles[k].q);
			rvp_items_free(&items);
		}
	}
	for (k = 0; k < 3; k++) {
		t[k].rows = r;
		t[k].row = row;
		t[k].x = 0;
		t[k].rounds = rounds;
		t[k].ran = ran;
		print(&t[k], quantiles[k].what, "us");
		print_ratios(&t[k], quantiles[k].what);
	}
}

static void
row_option(struct rvp_row_options *o, int c, const char *usage)
{
	switch (c) {
	case 'q':
		o->quick = true;
		return;
	case 'p':
		o->pin = true;
		return;
	case 'o':
		o->one = "one processor, ";
		return;
	case 'i':
		o->items = true;
		return;
	case 'r':
		o->rounds = (unsigned)strtoul(optarg, NULL, 10);
		return;
	case 's':
		o->seconds = strtod(optarg, NULL);
		return;
	case 'n':
		o->streams = (unsigned)strtoul(optarg, NULL, 10);
		return;
	case 'w':
		o->write = strtoul(optarg, NULL, 10);
		return;
	case 't':
		o->transport = optarg;
		return;
	case 'c':
		o->cases = optarg;
		return;
	default:
		fputs(usage, stderr);
		exit(EXIT_FAILURE);
	}
}

void
rvp_row_options(
    struct rvp_row_options *o, int argc, char **argv, unsigned rounds, const char *usage)
{
	static const struct option known[] = {{"quick", 0, NULL, 'q'}, {"pin", 0, NULL, 'p'},
	    {"one", 0, NULL, 'o'}, {"items", 0, NULL, 'i'}, {"rounds", 1, NULL, 'r'},
	    {"seconds", 1, NULL, 's'}, {"streams", 1, NULL, 'n'}, {"write", 1, NULL, 'w'},
	    {"transport", 1, NULL, 't'}, {"case", 1, NULL, 'c'}, {NULL, 0, NULL, 0}};
	int c;

	*o = (struct rvp_row_options){.one = ""};
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
		row_option(o, c, usage);
	if (optind != argc)
		row_option(o, '?', usage);
	if (o->rounds == 0)
		o->rounds = o->quick ? 1 : rounds;
	if (o->rounds > RVP_ROUNDS_MAX)
		o->rounds = RVP_ROUNDS_MAX;
	if (o->seconds <= 0)
		o->seconds = o->quick ? 0.02 : 0.15;
	if (o->one[0] != '\0')
		rvp_pin(0); /* and whatever is started from here on */
}
