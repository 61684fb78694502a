/*
 * growth_load.c - more threads than processors, larger messages, and what each of several streams gets.
 *
 * Threads: each has a stream of its own in blocking calls over one TCP connection, in writes of 4 KiB, and there is another
 * one that reads it.  Size: callbacks, one stream over TCP; the cost of a message is a + b times its bytes, fitted by relative error.  Share:
 * callbacks, bytes that each of 8 streams got in a second.
 */
#include <config.h>

#include "perf/growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf/nodes.h"

#define WINDOWS 64
#define STREAMS 8

static void
nap(double s)
{
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

	(void)nanosleep(&t, NULL);
}

/* --- threads --- */

/* GB/s; *worst: the slowest window of 100 ms by the median one. */
static double
threads_rate(unsigned n, double *worst)
{
	struct rvp_load l = {.transport = RVP_TCP, .streams = n, .write = 4096};
	unsigned windows = rvp_growth.quick ? 3 : 20;
	double v[WINDOWS], window = rvp_growth.quick ? 0.02 : 0.1, sum = 0;
	void *run = rvp_threads_flow.start(&l);
	uint64_t bytes, from, now, at;

	nap(3 * window);
	bytes = rvp_threads_flow.received(run);
	from = rvp_now_ns();
	for (unsigned i = 0; i < windows; i++) {
		nap(window);
		now = rvp_now_ns();
		at = rvp_threads_flow.received(run);
		v[i] = (double)(at - bytes) / (double)(now - from);
		sum += v[i];
		bytes = at;
		from = now;
	}
	rvp_threads_flow.stop(run);
	*worst = rvp_quantile(v, windows, 0) / rvp_quantile(v, windows, 0.5);
	return sum / windows;
}

void
rvp_growth_threads(void)
{
	static double rate[4][RVP_ROUNDS_MAX], worst[4][RVP_ROUNDS_MAX];
	static const unsigned times[] = {1, 2, 4, 16};
	unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), rounds = rvp_growth.rounds;
	double ratio[RVP_ROUNDS_MAX];
	char row[48];

	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < 4; i++) {
			unsigned k = (i + r) % 4;

			rate[k][r] = threads_rate(times[k] * cores, &worst[k][r]);
		}
	for (unsigned k = 0; k < 4; k++) {
		struct rvp_cell c = {"growth", row, "threads", "rate", "GB/s", times[k] * cores};

		snprintf(row, sizeof(row), "threads %u x cores", times[k]);
		rvp_cell_print(&c, rate[k], rounds);
		c.what = "slowest 100 ms by the median";
		c.unit = "ratio";
		rvp_cell_print(&c, worst[k], rounds);
		for (unsigned r = 0; r < rounds; r++)
			ratio[r] = rate[k][r] / rate[0][r];
		c.contender = "threads/as many as cores";
		c.what = "rate";
		if (k > 0)
			rvp_cell_print(&c, ratio, rounds);
	}
}

/* --- size --- */

void
rvp_growth_size(void)
{
	static const size_t sizes[] = {1, 8, 64, 512, 4096, 32768, 262144, 2097152, 16777216};
	double w, n = 0, x = 0, xx = 0, y = 0, xy = 0, a, b;
	struct rvp_cell c = {"growth", "message size", "fixed", "time", "ns", 0};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rvp_load l = {.transport = RVP_TCP,
		    .streams = 1,
		    .write = sizes[i],
		    .seconds = rvp_growth.quick ? 0.02 : 0.3,
		    .warm_up = rvp_growth.quick ? 0.02 : 0.5};
		double ns[RVP_ROUNDS_MAX], size = (double)sizes[i], mid;
		struct rvp_figure f;

		for (unsigned r = 0; r < rvp_growth.rounds; r++) {
			rvp_flow_measure(&rvp_worker_flow, &l, &f);
			ns[r] = size / f.gbps;
		}
		mid = rvp_quantile(ns, rvp_growth.rounds, 0.5);
		rvp_grown(RVP_GROWN("message size", "worker", "time", "ns", size), mid, NULL);
		w = 1 / (mid * mid);
		n += w;
		x += w * size;
		xx += w * size * size;
		y += w * mid;
		xy += w * size * mid;
	}
	b = (n * xy - x * y) / (n * xx - x * x);
	a = (y - b * x) / n;
	rvp_cell_print(&c, &a, 1);
	c.contender = "per KiB more";
	b *= 1024;
	rvp_cell_print(&c, &b, 1);
}

/* --- share --- */

#define WRITES_MAX 64
#define READS      2

struct lane {
	struct rvp_nodes *nodes;
	reeve_stream_t *out, *in;
	size_t size;
	unsigned pending;
	reeve_op_t writes[WRITES_MAX], reads[READS];
	struct rvq_counter received __attribute__((aligned(64)));
};

static void
send_one(struct lane *l, reeve_op_t *op)
{
	reeve_buf_t *b = reeve_buf_alloc(l->nodes->rt[0], l->size);

	rvp_check(b != NULL, "memory");
	*reeve_buf_mut(b) = 1;
	reeve_write_async(l->out, b, op);
}

static void
on_written(reeve_op_t *op)
{
	if (op->res > 0)
		send_one(op->arg, op);
}

static void
on_read(reeve_op_t *op)
{
	struct lane *l = op->arg;

	if (op->res <= 0)
		return;
	rvq_counter_add(&l->received, (uint64_t)op->res);
	reeve_buf_unref(op->buf);
	reeve_read_async(l->in, op);
}

/* The least and the largest part of 8 streams, by the mean. */
static void
shares(bool mixed, double *least, double *largest)
{
	struct lane *lanes = aligned_alloc(64, STREAMS * sizeof(*lanes));
	uint64_t before[STREAMS], bytes, sum = 0;
	struct rvp_nodes nodes;
	double part;

	rvp_check(lanes != NULL, "memory");
	memset(lanes, 0, STREAMS * sizeof(*lanes));
	rvp_nodes_open(&nodes, RVP_TCP, NULL, false);
	for (unsigned i = 0; i < STREAMS; i++) {
		struct lane *l = &lanes[i];

		l->nodes = &nodes;
		l->size = mixed && i % 2 == 1 ? 1024 : 65536;
		l->pending = l->size == 1024 ? WRITES_MAX : 2;
		rvp_must(reeve_open(nodes.ctl[0], &l->out, -1), "open");
		rvp_must(reeve_accept(nodes.ctl[1], &l->in, -1), "accept");
		for (unsigned k = 0; k < READS; k++) {
			reeve_op_init(&l->reads[k], on_read, l);
			reeve_read_async(l->in, &l->reads[k]);
		}
	}
	for (unsigned i = 0; i < STREAMS; i++)
		for (unsigned k = 0; k < lanes[i].pending; k++) {
			reeve_op_init(&lanes[i].writes[k], on_written, &lanes[i]);
			send_one(&lanes[i], &lanes[i].writes[k]);
		}
	nap(rvp_growth.quick ? 0.02 : 0.3);
	for (unsigned i = 0; i < STREAMS; i++)
		before[i] = rvq_counter_get(&lanes[i].received);
	nap(rvp_growth.quick ? 0.05 : 1);
	for (unsigned i = 0; i < STREAMS; i++) {
		before[i] = rvq_counter_get(&lanes[i].received) - before[i];
		sum += before[i];
	}
	*least = STREAMS;
	*largest = 0;
	for (unsigned i = 0; i < STREAMS; i++) {
		bytes = before[i];
		part = (double)bytes * STREAMS / (double)sum;
		*least = part < *least ? part : *least;
		*largest = part > *largest ? part : *largest;
	}
	rvp_nodes_close(&nodes);
	for (unsigned i = 0; i < STREAMS; i++) {
		reeve_stream_unref(lanes[i].out);
		reeve_stream_unref(lanes[i].in);
	}
	free(lanes);
}

void
rvp_growth_share(void)
{
	static const char *const rows[] = {
	    "share, equal streams", "share, mixed 64 KiB and 1 KiB writes"};
	double least[RVP_ROUNDS_MAX], largest[RVP_ROUNDS_MAX], ratio[RVP_ROUNDS_MAX];

	for (unsigned mixed = 0; mixed < 2; mixed++) {
		struct rvp_cell c = {"growth", rows[mixed], "least", "share", "ratio", STREAMS};

		for (unsigned r = 0; r < rvp_growth.rounds; r++) {
			shares(mixed != 0, &least[r], &largest[r]);
			ratio[r] = largest[r] / (least[r] > 0 ? least[r] : 1e-9);
		}
		rvp_cell_print(&c, least, rvp_growth.rounds);
		c.contender = "largest";
		rvp_cell_print(&c, largest, rvp_growth.rounds);
		c.contender = "largest/least";
		rvp_cell_print(&c, ratio, rvp_growth.rounds);
	}
}
