/*
 * wan.c - flow control over distance: what rate a path's flow reaches, how soon, and what memory that takes.
 *
 * A row is a round trip, a rate and a number of streams.  Each contender has its two ends in processes of their
 * own with a line (tests/kit/line.h) in this one between them; contenders take turns in every round.  Rates are
 * counted by the line, so that no contender says anything about itself.
 */
#include <config.h>

#include "perf/wan.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "perf/flow.h"
#include "perf/kit.h"
#include "tests/kit/line.h"

#define KINDS  8
#define BINS   6000
#define ROUNDS 3

/* One flow of one contender.  Bytes and seconds; times the bandwidth-delay product: bdp. */
struct figure {
	double rate;   /* MB/s over the last part of the flow */
	double ramp;   /* s, from its first byte to 0.9 of the line's rate, see ramp() */
	double queued; /* bdp, waiting at the line, mean over the last part */
	double rss[2]; /* bdp, peak less idle, of the sender and of the receiver */
	double held, unsent,
	    memory;    /* bdp, ours: peaks at the receiver and at the sender, and their sum */
	double window; /* bdp, ours: the largest */
	double rtt[2],
	    rtt_max[2]; /* ours: the estimate at the end and the largest, by the true one */
};

static struct rvp_wan_kind kinds[KINDS] = {
    {.name = "raw", .raw = 1}, {.name = "ours"}, {.name = "fixed", .max_window = 262144}};
static size_t nkinds = 3;

static struct {
	bool quick;
	unsigned rounds, rtt_ms, streams;
	uint64_t mbit;
	double seconds;
	const char *cases;
} options;

static struct figure figures[KINDS][RVP_ROUNDS_MAX];
static char prefix[64];

static void
nap(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	while (nanosleep(&t, &t) != 0)
		;
}

/* The sum of n bins from one on. */
static double
sum(const uint32_t *bins, size_t from, size_t n)
{
	double s = 0;

	while (n-- > 0)
		s += bins[from++];
	return s;
}

/* From the first byte until the flow, over 100 ms or a round trip (whichever is longer: less would call the burst of the
 * first windows a rate), has 0.9 of the line's rate.  Never: the whole time. */
static double
ramp(const uint32_t *bins, size_t n, unsigned rtt_ms, double line)
{
	size_t width = (rtt_ms > 100 ? rtt_ms : 100) / RVT_LINE_BIN_MS, first = 0, i;

	while (first < n && bins[first] == 0)
		first++;
	for (i = first; i + width <= n; i++)
		if (sum(bins, i, width) >= 0.9 * line * (double)width * RVT_LINE_BIN_MS / 1000)
			return (double)(i - first) * RVT_LINE_BIN_MS / 1000;
	return (double)(n - first) * RVT_LINE_BIN_MS / 1000;
}

static double
seen(const struct rvq_counter *c)
{
	return (double)rvq_counter_get(c);
}

static void
measure(size_t k, unsigned rtt_ms, uint64_t mbit, unsigned streams, struct figure *out)
{
	static uint32_t bins[BINS];
	const double line_rate = (double)mbit * 125000, bdp = line_rate * rtt_ms / 1000;
	struct rvt_line_cfg cfg = {.delay_us = (uint64_t)rtt_ms * 500, .mbit = mbit};
	struct rvp_wan_flow f = {.kind = &kinds[k], .streams = streams};
	double idle, queued = 0;
	struct rvt_line *line;
	size_t n, from;
	unsigned looks = 0;
	char addr[64];
	pid_t pid[2];

	f.seen = mmap(
	    NULL, sizeof(*f.seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	rvp_check(f.seen != MAP_FAILED, "memory");
	pid[1] = rvp_wan_serve(&f, addr, sizeof(addr));
	idle = (double)rvp_wan_rss(pid[1], 0);
	cfg.to = addr;
	line = rvt_line_start(&cfg);
	rvp_check(line != NULL, "line");
	pid[0] = rvp_wan_dial(&f, rvt_line_addr(line));
	nap((options.quick ? 0.3 : 1) + (options.quick ? 0.012 : 0.016) * rtt_ms);
	from = rvt_line_bin(line) + 1;
	while (rvt_line_bin(line) < from + (size_t)(options.seconds * 1000 / RVT_LINE_BIN_MS)) {
		nap(0.01);
		queued += (double)rvt_line_queued(line, RVT_UP);
		looks++;
	}
	memset(bins, 0, sizeof(bins));
	n = rvt_line_bin(line);
	if (n > BINS)
		n = BINS;
	(void)rvt_line_bins(line, RVT_UP, bins, n);
	*out = (struct figure){
	    .rate = sum(bins, from, n - from) / (double)(n - from) * 1e-6 *
		(1000 / RVT_LINE_BIN_MS),
	    .ramp = ramp(bins, n, rtt_ms, line_rate),
	    .queued = queued / looks / bdp,
	    .held = seen(&f.seen->held) / bdp,
	    .unsent = seen(&f.seen->unsent) / bdp,
	    .memory = (seen(&f.seen->held) + seen(&f.seen->unsent)) / bdp,
	    .window = seen(&f.seen->window) / bdp,
	};
	for (int i = 0; i < 2; i++) {
		out->rss[i] = ((double)rvp_wan_rss(pid[i], 1) - idle) / bdp;
		out->rtt[i] = seen(&f.seen->rtt[i]) / 1000 / rtt_ms;
		out->rtt_max[i] = seen(&f.seen->rtt_max[i]) / 1000 / rtt_ms;
		rvp_wan_kill(pid[i]);
	}
	rvt_line_stop(line);
	munmap(f.seen, sizeof(*f.seen));
}

static double
median(size_t a, size_t at, const size_t *b)
{
	double v[RVP_ROUNDS_MAX];
	unsigned i;

	for (i = 0; i < options.rounds; i++) {
		v[i] = *(const double *)(const void *)((const char *)&figures[a][i] + at);
		if (b != NULL)
			v[i] /= *(const double *)(const void *)((const char *)&figures[*b][i] + at);
	}
	return rvp_quantile(v, options.rounds, 0.5);
}

static void
line_of(const char *name, const char *what, const char *unit, double value)
{
	char text[160];

	snprintf(text, sizeof(text), "%s %s%s%s", prefix, name, *what != '\0' ? " " : "", what);
	rvp_print("wan", text, unit, value, options.rounds);
}

static bool
wanted(size_t k)
{
	const char *at = options.cases;
	size_t n = strlen(kinds[k].name);

	if (at == NULL)
		return true;
	while ((at = strstr(at, kinds[k].name)) != NULL) {
		if ((at == options.cases || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
			return true;
		at += n;
	}
	return false;
}

static void
report(size_t k)
{
	static const struct {
		const char *what, *unit;
		size_t at;
		bool ours;
	} fields[] = {{"", "MB/s", offsetof(struct figure, rate), false},
	    {"to 0.9 of the line", "s", offsetof(struct figure, ramp), false},
	    {"queued at the line", "bdp", offsetof(struct figure, queued), false},
	    {"rss sender", "bdp", offsetof(struct figure, rss[0]), false},
	    {"rss receiver", "bdp", offsetof(struct figure, rss[1]), false},
	    {"unsent", "bdp", offsetof(struct figure, unsent), true},
	    {"held", "bdp", offsetof(struct figure, held), true},
	    {"unsent + held", "bdp", offsetof(struct figure, memory), true},
	    {"largest window", "bdp", offsetof(struct figure, window), true},
	    {"rtt sender", "true rtt", offsetof(struct figure, rtt[0]), true},
	    {"rtt receiver", "true rtt", offsetof(struct figure, rtt[1]), true},
	    {"largest rtt receiver", "true rtt", offsetof(struct figure, rtt_max[1]), true}};
	const size_t raw = 0;
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!fields[i].ours || (kinds[k].program == NULL && !kinds[k].raw))
			line_of(kinds[k].name, fields[i].what, fields[i].unit,
			    median(k, fields[i].at, NULL));
	if (k != raw && wanted(raw))
		line_of(
		    kinds[k].name, "/raw", "ratio", median(k, offsetof(struct figure, rate), &raw));
}

static void
row(unsigned rtt_ms, uint64_t mbit, unsigned streams)
{
	unsigned round;
	size_t i, k;

	snprintf(prefix, sizeof(prefix), "%u ms %u Mbit/s x %u", rtt_ms, (unsigned)mbit, streams);
	for (round = 0; round < options.rounds; round++) {
		for (i = 0; i < nkinds; i++) {
			k = (i + round) % nkinds;
			if (wanted(k))
				measure(k, rtt_ms, mbit, streams, &figures[k][round]);
		}
	}
	for (k = 0; k < nkinds; k++)
		if (wanted(k))
			report(k);
}

static void
usage(const char *program)
{
	fprintf(stderr,
	    "usage: %s [--quick] [--rounds=N] [--seconds S] [--rtt MS --mbit N] [--streams N]\n"
	    "       [--peer NAME=PROGRAM]... [--case NAME[,NAME]]   names: raw ours fixed, and "
	    "peers\n",
	    program);
	exit(EXIT_FAILURE);
}

static void
peer(const char *program, char *text)
{
	char *equals = strchr(text, '=');

	if (equals == NULL || nkinds == KINDS)
		usage(program);
	*equals = '\0';
	kinds[nkinds++] = (struct rvp_wan_kind){.name = text, .program = equals + 1};
}

static void
parse(int argc, char **argv)
{
	static const struct option known[] = {{"quick", 0, NULL, 'q'}, {"pin", 0, NULL, 'i'},
	    {"rounds", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'}, {"rtt", 1, NULL, 't'},
	    {"mbit", 1, NULL, 'm'}, {"streams", 1, NULL, 'n'}, {"peer", 1, NULL, 'p'},
	    {"case", 1, NULL, 'c'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'q')
			options.quick = true;
		else if (c == 'r')
			options.rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 's')
			options.seconds = strtod(optarg, NULL);
		else if (c == 't')
			options.rtt_ms = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'm')
			options.mbit = strtoull(optarg, NULL, 10);
		else if (c == 'n')
			options.streams = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'c')
			options.cases = optarg;
		else if (c == 'p')
			peer(argv[0], optarg);
		else if (c != 'i') /* there is nothing to pin: the line needs a processor too */
			usage(argv[0]);
	}
	if (optind != argc || (options.rtt_ms == 0) != (options.mbit == 0))
		usage(argv[0]);
	if (options.rounds == 0)
		options.rounds = options.quick ? 1 : ROUNDS;
	if (options.rounds > RVP_ROUNDS_MAX)
		options.rounds = RVP_ROUNDS_MAX;
	if (options.seconds <= 0)
		options.seconds = options.quick ? 0.5 : 1.5;
}

int
main(int argc, char **argv)
{
	static const struct {
		unsigned rtt_ms;
		uint64_t mbit;
	} paths[] = {{20, 100}, {100, 100}, {300, 100}, {100, 1000}};
	static const unsigned streams[] = {1, 8};
	size_t i, j;

	parse(argc, argv);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		for (j = 0; j < 2; j++) {
			bool given = options.rtt_ms != 0;

			if ((given || options.quick) && i > 0)
				continue;
			if (options.streams != 0 && j > 0)
				continue;
			row(given ? options.rtt_ms : paths[i].rtt_ms,
			    given ? options.mbit : paths[i].mbit,
			    options.streams != 0 ? options.streams : streams[j]);
		}
	}
	return EXIT_SUCCESS;
}
