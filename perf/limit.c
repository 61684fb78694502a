/*
 * limit.c - how near is the limit?
 *
 * The library (worker: callbacks, threads: blocking calls) beside what the machine does without it: the transport alone
 * (plain: 64 KiB writes, strong: 1 MiB, same: the row's size), and for the memory pipe a copy of memory and a handover of
 * blocks through a ring.  By transport, number of streams and size of write; perf/latency has the ping-pong.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/kit.h"
#include "perf/rows.h"

#define ROUNDS   11 /* of one stream of 64 KiB writes over TCP */
#define FEWER(n) (((n) + 2) / 3)

static const struct rvp_flow *const sockets[] = {
    &rvp_raw_plain, &rvp_raw_strong, &rvp_raw_same, &rvp_worker_flow, &rvp_threads_flow};
static const struct rvp_flow *const memory[] = {
    &rvp_copy_flow, &rvp_ring_flow, &rvp_worker_flow, &rvp_threads_flow};

static const struct rvp_pair pairs[] = {{"worker", "plain"}, {"worker", "strong"},
    {"worker", "same"}, {"threads", "plain"}, {"threads", "strong"}, {"threads", "same"},
    {"worker", "copy"}, {"worker", "ring"}, {"threads", "copy"}, {"threads", "ring"}, {NULL, NULL}};

static const char *const transports[] = {"tcp", "unix", "memory"};

static const struct shape {
	enum rvp_transport transport;
	unsigned streams;
	size_t write;
} shapes[] = {
    {RVP_TCP, 1, 65536},
    {RVP_TCP, 1, 64},
    {RVP_TCP, 1, 1024},
    {RVP_TCP, 1, 16384},
    {RVP_TCP, 1, 1u << 20},
    {RVP_TCP, 100, 1024},
    {RVP_TCP, 100, 16384},
    {RVP_TCP, 1000, 16384},
    {RVP_UNIX, 1, 64},
    {RVP_UNIX, 1, 1024},
    {RVP_UNIX, 1, 65536},
    {RVP_UNIX, 1, 1u << 20},
    {RVP_UNIX, 100, 16384},
    {RVP_MEMORY, 1, 64},
    {RVP_MEMORY, 1, 1024},
    {RVP_MEMORY, 1, 16384},
    {RVP_MEMORY, 1, 65536},
    {RVP_MEMORY, 1, 1u << 20},
    {RVP_MEMORY, 100, 16384},
};

static struct rvp_row_options options;

static const char usage[] =
    "usage: limit [--quick] [--pin] [--one] [--rounds=N] [--seconds=S] [--streams=N] [--write=N]\n"
    "       [--transport=tcp|unix|memory] [--case=NAME[,NAME]]\n"
    "names: plain strong same copy ring worker threads\n";

static bool
wanted(const struct shape *s)
{
	if (options.transport != NULL && strcmp(options.transport, transports[s->transport]) != 0)
		return false;
	if ((options.streams != 0 && options.streams != s->streams) ||
	    (options.write != 0 && options.write != s->write))
		return false;
	/* A check that it runs: one stream, and a hundred. */
	return !options.quick ||
	    (s->write == (s->streams == 1 ? 65536u : 16384u) && s->streams <= 100);
}

static void
run(const struct shape *s, unsigned rounds)
{
	struct rvp_rows rows = {
	    .bench = "limit", .copies = true, .pairs = pairs, .cases = options.cases};
	struct rvp_load load = {.transport = s->transport,
	    .streams = s->streams,
	    .write = s->write,
	    .seconds = options.seconds,
	    .warm_up = options.quick ? 0.02
		: s->streams >= 1000 ? 0.3
				     : 0.1,
	    .pin = options.pin};
	char name[96];

	rows.flows = s->transport == RVP_MEMORY ? memory : sockets;
	rows.n = s->transport == RVP_MEMORY ? sizeof(memory) / sizeof(memory[0])
					    : sizeof(sockets) / sizeof(sockets[0]);
	snprintf(name, sizeof(name), "%s%s %u x %s", options.one, transports[s->transport],
	    s->streams, rvp_size(s->write));
	rvp_row(&rows, name, (double)s->write, &load, rounds);
}

int
main(int argc, char **argv)
{
	size_t i;

	rvp_row_options(&options, argc, argv, ROUNDS, usage);
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (wanted(&shapes[i]))
			run(&shapes[i], i == 0 ? options.rounds : FEWER(options.rounds));
	return EXIT_SUCCESS;
}
