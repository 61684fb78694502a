/*
 * beside.c - what a small message suffers beside bulk on the same connection.
 *
 * A ping-pong of 64 bytes on one stream, one after the other, while 0, 1 or 8 other streams carry bulk the way of the
 * pings, at full speed or at so many bytes a second in all.  Both directions of the ping-pong share the connection with
 * it.  The rate of the bulk is told too, so that nobody wins latency by starving it.
 *
 * threads: blocking calls, a thread for each end of each stream.  worker: callbacks (beside_calls.c).  one-worker: the
 * same with both ends on one runtime of one worker, which has nobody to wake.
 */
#include <config.h>

#include "perf/beside.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf/kit.h"

#define ROUNDS     5
#define WARM_UP_NS UINT64_C(100000000)
#define SAMPLES    400000u

static const struct rvp_beside_kind *const kinds[] = {
    &rvp_beside_threads, &rvp_beside_calls, &rvp_beside_one};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct row {
	const char *name;
	unsigned bulk;
	double mbps; /* 0: full speed */
} rows[] = {{"alone", 0, 0}, {"1 bulk stream, full speed", 1, 0},
    {"8 bulk streams, full speed", 8, 0}, {"1 bulk stream, 200 MB/s", 1, 200},
    {"8 bulk streams, 200 MB/s", 8, 200}};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct {
	bool quick, pin;
	unsigned rounds;
	double seconds;
	const char *kind; /* NULL: all */
	int bulk;         /* -1: all rows */
	double mbps;
} options = {.bulk = -1, .seconds = 1};

/* Of one row and contender, by round. */
struct figures {
	double p50[RVP_ROUNDS_MAX], p99[RVP_ROUNDS_MAX], p999[RVP_ROUNDS_MAX], rate[RVP_ROUNDS_MAX];
};

static struct figures figures[ROWS][KINDS];
static uint64_t samples[SAMPLES];

bool
rvp_beside_sample(struct rvp_beside *b, uint64_t ns)
{
	if (!rvq_cell32_get(&b->measuring))
		return rvq_cell32_get(&b->stop) == 0;
	if (b->trips < SAMPLES)
		samples[b->trips++] = ns;
	return rvq_cell32_get(&b->stop) == 0;
}

void
rvp_beside_pace(const struct rvp_beside *b, uint64_t began, uint64_t sent)
{
	uint64_t due;
	struct timespec at;

	if (b->bytes_per_s == 0)
		return;
	due = began + (uint64_t)((double)sent * 1e9 / (b->bytes_per_s / b->bulk));
	at.tv_sec = (time_t)(due / UINT64_C(1000000000));
	at.tv_nsec = (long)(due % UINT64_C(1000000000));
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void
nap(double s)
{
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

	(void)nanosleep(&t, NULL);
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double
sample_us(unsigned n, double q)
{
	return (double)samples[(unsigned)((double)(n - 1) * q)] / 1e3;
}

static void
measure(
    const struct row *row, const struct rvp_beside_kind *kind, struct figures *f, unsigned round)
{
	struct rvp_beside b = {.bulk = row->bulk, .bytes_per_s = row->mbps * 1e6};
	uint64_t from, bytes;
	void *run;

	if (kind->shared > 0)
		rvp_nodes_open_shared(&b.nodes, kind->shared);
	else
		rvp_nodes_open(&b.nodes, RVP_TCP, NULL, options.pin);
	run = kind->start(&b);
	nap((double)WARM_UP_NS / 1e9);
	from = rvp_now_ns();
	bytes = rvq_gauge_get(&b.received);
	rvq_cell32_put(&b.measuring, 1);
	nap(options.seconds);
	bytes = rvq_gauge_get(&b.received) - bytes;
	from = rvp_now_ns() - from;
	rvq_cell32_put(&b.stop, 1);
	kind->stop(run);
	rvp_check(b.trips > 0, "no trip was made");
	rvp_check(row->bulk == 0 || bytes > 0, "no bulk was carried");
	qsort(samples, b.trips, sizeof(samples[0]), compare);
	f->p50[round] = sample_us(b.trips, 0.5);
	f->p99[round] = sample_us(b.trips, 0.99);
	f->p999[round] = sample_us(b.trips, 0.999);
	f->rate[round] = (double)bytes / (double)from * 1e3;
}

static void
ratio(const struct row *row, const char *kind, const struct figures *f, const struct figures *alone)
{
	struct rvp_cell c = {"beside", row->name, kind, "p99 beside/alone", "ratio", row->bulk};
	double v[RVP_ROUNDS_MAX];

	for (unsigned i = 0; i < options.rounds; i++)
		v[i] = f->p99[i] / alone->p99[i];
	rvp_cell_print(&c, v, options.rounds);
}

static void
report(
    const struct row *row, const char *kind, const struct figures *f, const struct figures *alone)
{
	const struct {
		const char *what, *unit;
		const double *v;
	} of[] = {{"p50", "us", f->p50}, {"p99", "us", f->p99}, {"p999", "us", f->p999},
	    {"rate", "MB/s", f->rate}};

	for (unsigned i = 0; i < 4; i++) {
		struct rvp_cell c = {"beside", row->name, kind, of[i].what, of[i].unit, row->bulk};

		if (i < 3 || row->bulk > 0)
			rvp_cell_print(&c, of[i].v, options.rounds);
	}
	if (alone != NULL && row->bulk > 0)
		ratio(row, kind, f, alone);
}

static void
rounds_of(const struct row *chosen, size_t n)
{
	const bool whole = n == ROWS;

	for (unsigned round = 0; round < options.rounds; round++)
		for (size_t i = 0; i < n * KINDS; i++) {
			size_t at = (i + round) % (n * KINDS);
			const struct rvp_beside_kind *kind = kinds[at % KINDS];

			if (options.kind == NULL || strcmp(options.kind, kind->name) == 0)
				measure(&chosen[at / KINDS], kind, &figures[at / KINDS][at % KINDS],
				    round);
		}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < KINDS; k++)
			if (options.kind == NULL || strcmp(options.kind, kinds[k]->name) == 0)
				report(&chosen[i], kinds[k]->name, &figures[i][k],
				    whole ? &figures[0][k] : NULL);
}

static int
usage(void)
{
	fputs("usage: beside [--quick] [--pin] [--rounds=N] [--seconds=S] "
	      "[--case=threads|worker|one-worker]\n"
	      "              [--bulk=STREAMS [--rate=MB/s]]    one row, with this many bulk "
	      "streams\n",
	    stderr);
	return 2;
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {{"quick", 0, NULL, 'q'}, {"pin", 0, NULL, 'p'},
	    {"rounds", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'}, {"case", 1, NULL, 'c'},
	    {"bulk", 1, NULL, 'b'}, {"rate", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
	struct row one = {"chosen", 0, 0};
	int o;

	while ((o = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (o) {
		case 'q':
			options.quick = true;
			break;
		case 'p':
			options.pin = true;
			break;
		case 'r':
			options.rounds = (unsigned)atoi(optarg);
			break;
		case 's':
			options.seconds = atof(optarg);
			break;
		case 'c':
			options.kind = optarg;
			break;
		case 'b':
			options.bulk = atoi(optarg);
			break;
		case 'm':
			options.mbps = atof(optarg);
			break;
		default:
			return usage();
		}
	}
	if (options.rounds == 0)
		options.rounds = options.quick ? 1 : ROUNDS;
	if (options.rounds > RVP_ROUNDS_MAX || options.seconds <= 0 || optind != argc)
		return usage();
	if (options.quick)
		options.seconds = 0.05;
	one.bulk = options.bulk < 0 ? 0 : (unsigned)options.bulk;
	one.mbps = options.mbps;
	rounds_of(options.bulk < 0 ? rows : &one, options.bulk < 0 ? ROWS : 1);
	return EXIT_SUCCESS;
}
