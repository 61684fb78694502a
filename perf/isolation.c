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

static struct rvp_row_options options;

static const char usage[] = "usage: isolation [--quick] [--pin] [--one] [--items] [--rounds=N] "
			    "[--seconds=S] [--streams=N]\n"
			    "       [--write=N] [--case=NAME[,NAME]]\n"
			    "names: inline mutex mutex-copy worker spread threads\n";

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

	rvp_row_options(&options, argc, argv, ROUNDS, usage);
	rows.cases = options.cases;
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
