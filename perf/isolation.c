/*
 * isolation.c - what does isolation cost a stream?
 *
 * The same engine, buffers and transport, by how those who use a stream are kept apart from it: not at all (inline), by a
 * lock (mutex, mutex-copy), by an actor that calls back on its worker (worker), by messages to actors on another worker
 * (spread), by blocking calls of a thread per stream (threads).  First rows of streams and sizes of write, over TCP: rate,
 * processor time, switches of context, system calls.  Then 64 B items at a modest pace on one stream: from the call that
 * writes one until its bytes were read.
 */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf/kit.h"
#include "perf/rows.h"

#define ROUNDS   11 /* of one stream of 64 KiB writes, and of the items */
#define FEWER(n) (((n) + 2) / 3)
#define ITEMS    3000

static const struct rvp_flow *const contenders[] = {&rvp_inline_flow, &rvp_mutex_flow,
    &rvp_mutex_copy_flow, &rvp_worker_flow, &rvp_spread_flow, &rvp_threads_flow};

static const struct rvp_pair pairs[] = {{"mutex", "inline"}, {"mutex-copy", "inline"},
    {"worker", "inline"}, {"spread", "inline"}, {"threads", "inline"}, {"worker", "mutex"},
    {"threads", "mutex-copy"}, {NULL, NULL}};

static struct rvp_rows rows = {.bench = "isolation",
    .flows = contenders,
    .n = sizeof(contenders) / sizeof(contenders[0]),
    .pairs = pairs,
    .calls = true};

static struct {
	bool quick, pin, items; /* items: nothing else */
	unsigned rounds, streams;
	size_t write;
	double seconds;
	const char *one; /* what rows begin with */
} options;

static void
usage(const char *program)
{
	fprintf(stderr,
	    "usage: %s [--quick] [--pin] [--one] [--items] [--rounds=N] [--seconds=S] "
	    "[--streams=N] "
	    "[--write=N] "
	    "[--case=NAME[,NAME]]\n"
	    "names: inline mutex mutex-copy worker spread threads\n",
	    program);
	exit(EXIT_FAILURE);
}

static void
parse(int argc, char **argv)
{
	static const struct option known[] = {{"quick", 0, NULL, 'q'}, {"pin", 0, NULL, 'p'},
	    {"one", 0, NULL, 'o'}, {"items", 0, NULL, 'i'}, {"rounds", 1, NULL, 'r'},
	    {"seconds", 1, NULL, 's'}, {"streams", 1, NULL, 'n'}, {"write", 1, NULL, 'w'},
	    {"case", 1, NULL, 'c'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'q':
			options.quick = true;
			break;
		case 'p':
			options.pin = true;
			break;
		case 'i':
			options.items = true;
			break;
		case 'o':
			options.one = "one processor, ";
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
			rows.cases = optarg;
			break;
		default:
			usage(argv[0]);
		}
	}
	if (optind != argc)
		usage(argv[0]);
	if (options.rounds == 0)
		options.rounds = options.quick ? 1 : ROUNDS;
	if (options.rounds > RVP_ROUNDS_MAX)
		options.rounds = RVP_ROUNDS_MAX;
	if (options.seconds <= 0)
		options.seconds = options.quick ? 0.02 : 0.15;
}

static void
row(unsigned streams, size_t write, unsigned rounds)
{
	struct rvp_load load = {.transport = RVP_TCP,
	    .streams = streams,
	    .write = write,
	    .seconds = options.seconds,
	    .warm_up = options.quick ? 0.02 : 0.1,
	    .pin = options.pin};
	char name[96];

	snprintf(name, sizeof(name), "%s%u x %s", options.one, streams, rvp_size(write));
	rvp_row(&rows, name, (double)streams, &load, rounds);
}

int
main(int argc, char **argv)
{
	static const unsigned streams[] = {1, 8, 64};
	static const size_t writes[] = {65536, 1024, 64};
	struct rvp_load load = {.transport = RVP_TCP, .streams = 1, .write = 64};
	size_t s, w;

	options.one = "";
	parse(argc, argv);
	if (options.one[0] != '\0')
		rvp_pin(0); /* and whatever is started from here on */
	load.pin = options.pin;
	for (w = 0; w < 3 && !options.items; w++) {
		for (s = 0; s < 3; s++) {
			if ((options.streams != 0 && s != 0) || (options.write != 0 && w != 0))
				continue;
			/* A check that it runs: one stream, and many. */
			if (options.quick && options.streams == 0 && options.write == 0 && s != w)
				continue;
			row(options.streams != 0 ? options.streams : streams[s],
			    options.write != 0 ? options.write : writes[w],
			    s == 0 && w == 0 ? options.rounds : FEWER(options.rounds));
		}
	}
	if (options.streams == 0 && options.write == 0 && options.one[0] == '\0')
		rvp_row_items(&rows, "64 B at 10000/s", &load, options.quick ? ITEMS / 10 : ITEMS,
		    options.rounds);
	return EXIT_SUCCESS;
}
