/*
 * stream.c - how many bytes one connection carries, and what they cost.
 *
 * For each transport, number of streams and size of write every contender (flow.h) takes its turn in every
 * round, each round beginning with another one.  Lines per contender: medians over the rounds.  Lines per
 * ratio: the median of the ratios within a round with their quartiles, and the ratio of the medians.
 */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reeve/conn.h>

#include "perf/flow.h"
#include "perf/kit.h"
#include "perf/rows.h"

#define CASES        8
#define ROUNDS       11
#define ROUNDS_NOISY 31 /* of gates whose quartiles are more than 0.2 apart */

static const struct rvp_flow *const contenders[CASES] = {&rvp_raw_plain, &rvp_raw_strong,
    &rvp_raw_bare, &rvp_inline_flow, &rvp_worker_flow, &rvp_actors_flow, &rvp_threads_flow,
    &rvp_raw_same};
static const char *const transports[] = {"tcp", "unix", "memory"};

/* Ratios to print where both contenders ran.  target: of a gate, at one stream of 64 KiB writes over TCP; 0:
 * none. */
static const struct ratio {
	const char *a, *b;
	double target;
} ratios[] = {
    {"worker", "inline", 0.97}, /* the gate called actor/inline */
    {"worker", "plain", 1.2},
    {"worker", "strong", 0.95},
    {"threads", "plain", 1.1},
    {"threads", "strong", 0.9},
    {"actors", "worker", 0},
    {"actors", "inline", 0},
    {"inline", "strong", 0},
    {"strong", "bare", 0},
};

static struct {
	bool quick, pin, gates, total;
	unsigned rounds, streams;
	size_t write;
	uint32_t window, budget, proto;
	double seconds;
	int transport; /* -1: all */
	const char *cases;
} options = {.transport = -1, .cases = "plain,strong,inline,worker,actors,threads"};

static struct rvp_figure figures[CASES][RVP_ROUNDS_MAX];
static bool ran[CASES];
static char prefix[64];

static bool
wanted(const struct rvp_flow *f, enum rvp_transport t)
{
	/* The memory pipe is the library's: nothing carries bytes over it without actors. */
	return rvp_named(options.cases, f->name) &&
	    (t != RVP_MEMORY || f == &rvp_worker_flow || f == &rvp_actors_flow ||
		f == &rvp_threads_flow);
}

static double
field(const struct rvp_figure *f, size_t at)
{
	return *(const double *)(const void *)((const char *)f + at);
}

/* The q-quantile over the rounds of a field of a contender's figures, divided by another's if b is one. */
static double
quantile(size_t a, const size_t *b, size_t at, double q)
{
	double v[RVP_ROUNDS_MAX];
	unsigned i;

	for (i = 0; i < options.rounds; i++)
		v[i] = field(&figures[a][i], at) / (b == NULL ? 1 : field(&figures[*b][i], at));
	return rvp_quantile(v, options.rounds, q);
}

static void
line(const char *what, const char *unit, double value)
{
	char name[160];

	snprintf(name, sizeof(name), "%s %s", prefix, what);
	rvp_print("stream", name, unit, value, options.rounds);
}

static void
report_case(size_t c)
{
	static const struct {
		const char *unit;
		size_t at;
	} fields[] = {{"GB/s", offsetof(struct rvp_figure, gbps)},
	    {"cpu ns/KiB", offsetof(struct rvp_figure, cpu)},
	    {"window bytes", offsetof(struct rvp_figure, window)},
	    {"copies/byte", offsetof(struct rvp_figure, copies)},
	    {"frames/write", offsetof(struct rvp_figure, out_frames)},
	    {"frames/read", offsetof(struct rvp_figure, in_frames)}};
	size_t i, n = contenders[c]->totals == NULL ? 2 : sizeof(fields) / sizeof(fields[0]);

	for (i = 0; i < n; i++)
		line(contenders[c]->name, fields[i].unit, quantile(c, NULL, fields[i].at, 0.5));
	if (options.total)
		line(contenders[c]->name, "bytes",
		    quantile(c, NULL, offsetof(struct rvp_figure, total), 0.5));
}

static bool
find(const char *name, size_t *c)
{
	for (*c = 0; *c < CASES; ++*c)
		if (ran[*c] && strcmp(contenders[*c]->name, name) == 0)
			return true;
	return false;
}

/* The ratio of a gate as the other programs print theirs. */
static void
gate_cell(const struct ratio *r, size_t a, size_t b)
{
	double v[RVP_ROUNDS_MAX];
	char name[64];
	unsigned i;

	for (i = 0; i < options.rounds; i++)
		v[i] = figures[a][i].gbps / figures[b][i].gbps;
	snprintf(name, sizeof(name), "%s/%s", r->a, r->b);
	rvp_cell_print(&(struct rvp_cell){.bench = "stream",
			   .row = "tcp 1 x 64 KiB",
			   .contender = name,
			   .what = "rate",
			   .unit = "ratio"},
	    v, options.rounds);
}

static void
report_ratio(const struct ratio *r)
{
	const size_t gbps = offsetof(struct rvp_figure, gbps),
		     cpu = offsetof(struct rvp_figure, cpu);
	double mid, low, high, medians, cost;
	char what[64];
	size_t a, b;

	if (!find(r->a, &a) || !find(r->b, &b))
		return;
	mid = quantile(a, &b, gbps, 0.5);
	low = quantile(a, &b, gbps, 0.25);
	high = quantile(a, &b, gbps, 0.75);
	medians = quantile(a, NULL, gbps, 0.5) / quantile(b, NULL, gbps, 0.5);
	cost = quantile(a, &b, cpu, 0.5);
	if (options.gates) {
		if (r->target > 0) {
			gate_cell(r, a, b);
			fprintf(stderr,
			    "gate %s/%s: %.3f [%.3f %.3f] of medians %.3f, processor time %.3f, "
			    "target %.2f: %s (n=%u)\n",
			    r->a, r->b, mid, low, high, medians, cost, r->target,
			    mid >= r->target ? "met" : "missed", options.rounds);
		}
		return;
	}
	snprintf(what, sizeof(what), "%s/%s", r->a, r->b);
	line(what, "ratio", mid);
	snprintf(what, sizeof(what), "%s/%s lower quartile", r->a, r->b);
	line(what, "ratio", low);
	snprintf(what, sizeof(what), "%s/%s upper quartile", r->a, r->b);
	line(what, "ratio", high);
	snprintf(what, sizeof(what), "%s/%s of medians", r->a, r->b);
	line(what, "ratio", medians);
	snprintf(what, sizeof(what), "%s/%s processor time", r->a, r->b);
	line(what, "ratio", cost);
}

/* Are the quartiles of a gate too far apart to judge by so few rounds? */
static bool
noisy(void)
{
	const size_t gbps = offsetof(struct rvp_figure, gbps);
	size_t i, a, b;

	for (i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++)
		if (ratios[i].target > 0 && find(ratios[i].a, &a) && find(ratios[i].b, &b) &&
		    quantile(a, &b, gbps, 0.75) - quantile(a, &b, gbps, 0.25) > 0.2)
			return true;
	return false;
}

static void
run(enum rvp_transport t, unsigned streams, size_t write)
{
	struct rvp_load load = {.transport = t,
	    .streams = streams,
	    .write = write,
	    .seconds = options.seconds,
	    .window = options.window,
	    .budget = options.budget,
	    .proto = options.proto,
	    .pin = options.pin};
	unsigned round;
	size_t i, c;

	snprintf(prefix, sizeof(prefix), "%s %u x %zu", transports[t], streams, write);
	for (c = 0; c < CASES; c++)
		ran[c] = wanted(contenders[c], t);
	for (round = 0; round < options.rounds; round++) {
		for (i = 0; i < CASES; i++) {
			c = (i + round) % CASES;
			if (ran[c])
				rvp_flow_measure(contenders[c], &load, &figures[c][round]);
		}
		if (options.gates && !options.quick && round + 1 == ROUNDS &&
		    options.rounds == ROUNDS && noisy())
			options.rounds = ROUNDS_NOISY;
	}
	for (c = 0; c < CASES && !options.gates; c++)
		if (ran[c])
			report_case(c);
	for (i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++)
		report_ratio(&ratios[i]);
}

static void
usage(const char *program)
{
	fprintf(stderr,
	    "usage: %s [--quick] [--gates] [--pin] [--rounds N] [--seconds S] [--streams N] "
	    "[--write N]\n"
	    "       [--transport tcp|unix|memory] [--case NAME[,NAME]] [--window BYTES] [--budget "
	    "BYTES] [--total] [--mux yamux|mplex]\n"
	    "names: plain same strong bare inline worker actors threads\n",
	    program);
	exit(EXIT_FAILURE);
}

static int
transport_of(const char *name)
{
	int i;

	for (i = 0; i < 3; i++)
		if (strcmp(transports[i], name) == 0)
			return i;
	return -1;
}

static void
parse(int argc, char **argv)
{
	static const struct option known[] = {{"quick", 0, NULL, 'q'}, {"gates", 0, NULL, 'g'},
	    {"pin", 0, NULL, 'p'}, {"total", 0, NULL, 'T'}, {"rounds", 1, NULL, 'r'},
	    {"seconds", 1, NULL, 's'}, {"streams", 1, NULL, 'n'}, {"write", 1, NULL, 'w'},
	    {"transport", 1, NULL, 't'}, {"case", 1, NULL, 'c'}, {"window", 1, NULL, 'm'},
	    {"budget", 1, NULL, 'b'}, {"mux", 1, NULL, 'x'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'q':
			options.quick = true;
			break;
		case 'g':
			options.gates = true;
			break;
		case 'p':
			options.pin = true;
			break;
		case 'T':
			options.total = true;
			break;
		case 'r':
			options.rounds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			options.seconds = strtod(optarg, NULL);
			break;
		case 'n':
			options.streams = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'w':
			options.write = strtoul(optarg, NULL, 10);
			break;
		case 'c':
			options.cases = optarg;
			break;
		case 'm':
			options.window = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'b':
			options.budget = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 't':
			options.transport = transport_of(optarg);
			if (options.transport >= 0)
				break;
			usage(argv[0]);
			break;
		case 'x':
			if (strcmp(optarg, "mplex") == 0)
				options.proto = REEVE_MPLEX;
			else if (strcmp(optarg, "yamux") != 0)
				usage(argv[0]);
			break;
		default:
			usage(argv[0]);
		}
	}
	if (optind != argc)
		usage(argv[0]);
}

static void
defaults(void)
{
	if (options.gates) {
		options.transport = RVP_TCP;
		options.streams = 1;
		options.write = 65536;
		options.cases = "plain,strong,inline,worker,threads";
	}
	if (options.rounds == 0)
		options.rounds = options.quick ? 3 : ROUNDS;
	if (options.rounds > RVP_ROUNDS_MAX)
		options.rounds = RVP_ROUNDS_MAX;
	if (options.seconds <= 0)
		options.seconds = options.quick ? 0.1 : 0.3;
}

int
main(int argc, char **argv)
{
	static const unsigned streams[] = {1, 8, 64};
	static const size_t writes[] = {64, 1024, 65536, 1u << 20};
	size_t t, s, w;

	parse(argc, argv);
	defaults();
	for (t = 0; t < 3; t++) {
		for (s = 0; s < 3; s++) {
			for (w = 0; w < 4; w++) {
				bool some = options.quick && options.streams == 0 &&
				    options.write == 0;

				if (options.transport >= 0 ? t != (size_t)options.transport
							   : some && t == RVP_UNIX)
					continue;
				/* A check that it runs: the middle sizes, one stream, and 8 of 64 KiB. */
				if (some && (s > 1 || w == 0 || w == 3 || (s == 1 && w == 1)))
					continue;
				if ((options.streams != 0 && s != 0) ||
				    (options.write != 0 && w != 0))
					continue;
				run((enum rvp_transport)t,
				    options.streams != 0 ? options.streams : streams[s],
				    options.write != 0 ? options.write : writes[w]);
			}
		}
	}
	return EXIT_SUCCESS;
}
