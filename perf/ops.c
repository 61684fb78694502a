/*
 * ops.c - contenders that use the library's asynchronous operations: completed by callbacks on the worker,
 * or by messages to user actors beside the connections.
 *
 * The sender of each stream keeps several writes pending, each of a buffer of its own; its receiver several
 * reads.  A completed operation is started anew at once, in the callback.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "perf/nodes.h"

#define READS 4

struct rig;

/* An operation and what to do when it completes; fn and actor are set once. */
struct job {
	reeve_op_t op;
	void (*done)(struct job *j);
	struct rig *rig;
	reeve_stream_t *s;
};

struct rig {
	struct rvp_nodes nodes;
	struct rvp_load load;
	unsigned pending; /* writes of a stream */
	reeve_actor_t *actors[2];
	reeve_stream_t **tx, **rx; /* one handle of each */
	struct job *writes, *reads, accept;
	unsigned accepted;                                        /* the receiving worker's */
	struct rvq_counter received __attribute__((aligned(64))); /* the receiving worker's */
};

static void
on_op(reeve_op_t *op)
{
	struct job *j = op->arg;

	j->done(j);
}

static void
on_msg(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)arg;
	if (msg != NULL)
		on_op(reeve_msg_op(msg));
}

static void
job_init(struct job *j, struct rig *r, int side, void (*done)(struct job *j))
{
	reeve_op_init(&j->op, r->actors[side] == NULL ? on_op : NULL, j);
	j->op.actor = r->actors[side];
	j->done = done;
	j->rig = r;
}

static void
write_next(struct job *j)
{
	reeve_buf_t *b = reeve_buf_alloc(j->rig->nodes.rt[0], j->rig->load.write);

	rvp_check(b != NULL, "memory");
	*reeve_buf_mut(b) = 1;
	reeve_write_async(j->s, b, &j->op);
}

static void
wrote(struct job *j)
{
	if (j->op.res > 0)
		write_next(j);
}

static void
got(struct job *j)
{
	if (j->op.res <= 0)
		return;
	(void)*(const volatile uint8_t *)reeve_buf_data(j->op.buf);
	rvq_counter_add(&j->rig->received, (uint64_t)j->op.res);
	reeve_buf_unref(j->op.buf);
	reeve_read_async(j->s, &j->op);
}

static void
accepted(struct job *j)
{
	struct rig *r = j->rig;
	struct job *reads;
	unsigned i;

	if (j->op.res < 0)
		return;
	reads = &r->reads[(size_t)r->accepted * READS];
	r->rx[r->accepted++] = j->op.stream;
	for (i = 0; i < READS; i++) {
		job_init(&reads[i], r, 1, got);
		reads[i].s = j->op.stream;
		reeve_read_async(reads[i].s, &reads[i].op);
	}
	if (r->accepted < r->load.streams)
		reeve_accept_async(r->nodes.ctl[1], &j->op);
}

static void
start_stream(struct rig *r, unsigned n)
{
	struct job *writes = &r->writes[(size_t)n * r->pending];
	unsigned i;

	rvp_must(reeve_open(r->nodes.ctl[0], &r->tx[n], -1), "open");
	for (i = 0; i < r->pending; i++) {
		job_init(&writes[i], r, 0, wrote);
		writes[i].s = r->tx[n];
		write_next(&writes[i]);
	}
}

static void *
start(const struct rvp_load *l, bool actors)
{
	struct rig *r = aligned_alloc(64, (sizeof(*r) + 63) & ~(size_t)63);
	reeve_rt_t *rt;
	unsigned i;

	rvp_check(r != NULL, "memory");
	memset(r, 0, sizeof(*r));
	r->load = *l;
	/* Two at least, and enough small ones to fill a frame. */
	r->pending = l->write >= 32768 ? 2 : l->write >= 1024 ? 65536 / (unsigned)l->write : 64;
	r->tx = calloc(l->streams, sizeof(*r->tx));
	r->rx = calloc(l->streams, sizeof(*r->rx));
	r->writes = calloc((size_t)l->streams * r->pending, sizeof(*r->writes));
	r->reads = calloc((size_t)l->streams * READS, sizeof(*r->reads));
	rvp_check(
	    r->tx != NULL && r->rx != NULL && r->writes != NULL && r->reads != NULL, "memory");
	rvp_nodes_open_load(&r->nodes, l);
	for (i = 0; i < 2 && actors; i++) {
		rt = r->nodes.rt[i] != NULL ? r->nodes.rt[i] : r->nodes.rt[0];
		rvp_must(
		    reeve_actor_spawn(&r->actors[i], rt, on_msg, NULL, r->nodes.ctl[i]), "actor");
	}
	job_init(&r->accept, r, 1, accepted);
	reeve_accept_async(r->nodes.ctl[1], &r->accept.op);
	for (i = 0; i < l->streams; i++)
		start_stream(r, i);
	return r;
}

static void *
worker_start(const struct rvp_load *l)
{
	return start(l, false);
}

static void *
actors_start(const struct rvp_load *l)
{
	return start(l, true);
}

static uint64_t
received(void *run)
{
	return rvq_counter_get(&((struct rig *)run)->received);
}

static void
totals(void *run, struct rvp_totals *t)
{
	rvp_nodes_totals(&((struct rig *)run)->nodes, t);
}

static void
stop(void *run)
{
	struct rig *r = run;
	unsigned i;

	rvp_nodes_close(&r->nodes); /* completes every operation */
	for (i = 0; i < r->load.streams; i++) {
		reeve_stream_unref(r->tx[i]);
		reeve_stream_unref(r->rx[i]);
	}
	reeve_actor_unref(r->actors[0]);
	reeve_actor_unref(r->actors[1]);
	free(r->tx);
	free(r->rx);
	free(r->writes);
	free(r->reads);
	free(r);
}

const struct rvp_flow rvp_worker_flow = {"worker", worker_start, received, totals, stop};
const struct rvp_flow rvp_actors_flow = {"actors", actors_start, received, totals, stop};
