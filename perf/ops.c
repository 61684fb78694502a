/*
 * ops.c - contenders that use the library's asynchronous operations: completed by callbacks on the worker,
 * by messages to user actors on the connection's worker, or on another one.
 *
 * The sender of each stream keeps several writes pending, each of a buffer of its own; its receiver several
 * reads.  A completed operation is started anew at once, in the callback.  Items are written by an actor where the
 * sender's operations complete, one for each message from a thread that keeps the pace.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "actors/connection.h"
#include "actors/user.h"
#include "perf/items.h"
#include "perf/kit.h"
#include "perf/nodes.h"

#define READS 4

enum where {
	ON_WORKER, /* callbacks */
	AT_HOME,   /* actors on the connection's worker */
	APART,     /* actors on another one */
};

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
	enum where where;
	unsigned pending; /* writes of a stream */
	reeve_actor_t *actors[2];
	reeve_stream_t **tx, **rx; /* one handle of each */
	struct job *writes, *reads, accept;
	unsigned accepted;                                        /* the receiving worker's */
	struct rvq_counter received __attribute__((aligned(64))); /* the receiving worker's */
	/* of items */
	pthread_t pace;
	reeve_actor_t *source;
	reeve_msg_t *ticks;
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
	if (j->rig->load.items != NULL)
		rvp_items_take(j->rig->load.items, reeve_buf_data(j->op.buf), (size_t)j->op.res);
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

/* --- items --- */

static void
item_sent(struct job *j)
{
	rvp_must(j->op.res, "write");
}

/* A tick: the next item. */
static void
on_tick(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct rig *r = arg;
	struct rvp_items *it = r->load.items;
	struct job *j = &r->writes[it->sent];
	reeve_buf_t *b;

	(void)self;
	if (msg == NULL)
		return;
	if (reeve_msg_op(msg) != NULL) {
		on_op(reeve_msg_op(msg));
		return;
	}
	b = reeve_buf_alloc(r->nodes.rt[0], RVP_ITEM);
	rvp_check(b != NULL, "memory");
	job_init(j, r, 0, item_sent);
	j->s = r->tx[0];
	rvp_items_make(it, reeve_buf_mut(b));
	reeve_write_async(j->s, b, &j->op);
}

static void *
pace_main(void *arg)
{
	struct rig *r = arg;
	const struct rvp_items *it = r->load.items;
	uint64_t began = rvp_now_ns();
	unsigned i;

	for (i = 0; i < it->n + it->warm_up; i++) {
		rvp_items_sleep(began, i);
		reeve_actor_post(r->source, &r->ticks[i]);
	}
	return NULL;
}

/* --- begin and end --- */

static void
spawn(struct rig *r, int side, reeve_actor_fn fn, reeve_actor_t **out)
{
	reeve_rt_t *rt = r->nodes.rt[side] != NULL ? r->nodes.rt[side] : r->nodes.rt[0];
	reeve_ctl_t *ctl = r->nodes.ctl[side];

	/* Without a neighbour it goes to the worker with the fewest connections. */
	rvp_must(reeve_actor_spawn(out, rt, fn, r, r->where == APART ? NULL : ctl), "actor");
	errno = 0;
	rvp_check(((*out)->actor.home == ctl->conn->w) == (r->where != APART), "actor's worker");
}

static void
start_items(struct rig *r)
{
	if (r->where == APART)
		r->source = reeve_actor_ref(r->actors[0]);
	else
		spawn(r, 0, on_tick, &r->source);
	rvp_must(reeve_open(r->nodes.ctl[0], &r->tx[0], -1), "open");
	rvp_thread(&r->pace, pace_main, r, RVP_ANY_CPU);
}

static void *
start(const struct rvp_load *l, enum where where)
{
	struct rig *r = aligned_alloc(64, (sizeof(*r) + 63) & ~(size_t)63);
	size_t items = l->items != NULL ? l->items->n + l->items->warm_up : 0;
	unsigned i;

	rvp_check(r != NULL, "memory");
	memset(r, 0, sizeof(*r));
	r->load = *l;
	r->load.workers = where == APART ? 2 : 1;
	r->where = where;
	/* Two at least, and enough small ones to fill a frame. */
	r->pending = l->write >= 32768 ? 2 : l->write >= 1024 ? 65536 / (unsigned)l->write : 64;
	r->tx = calloc(l->streams, sizeof(*r->tx));
	r->rx = calloc(l->streams, sizeof(*r->rx));
	r->writes = calloc((size_t)l->streams * r->pending + items, sizeof(*r->writes));
	r->ticks = calloc(items + 1, sizeof(*r->ticks));
	r->reads = calloc((size_t)l->streams * READS, sizeof(*r->reads));
	rvp_check(r->tx != NULL && r->rx != NULL && r->writes != NULL && r->reads != NULL &&
		r->ticks != NULL,
	    "memory");
	rvp_nodes_open_load(&r->nodes, &r->load);
	for (i = 0; i < 2 && where != ON_WORKER; i++)
		spawn(r, (int)i, i == 0 && items > 0 ? on_tick : on_msg, &r->actors[i]);
	job_init(&r->accept, r, 1, accepted);
	reeve_accept_async(r->nodes.ctl[1], &r->accept.op);
	for (i = 0; i < l->streams && items == 0; i++)
		start_stream(r, i);
	if (items > 0)
		start_items(r);
	return r;
}

static void *
worker_start(const struct rvp_load *l)
{
	return start(l, ON_WORKER);
}

static void *
actors_start(const struct rvp_load *l)
{
	return start(l, AT_HOME);
}

static void *
spread_start(const struct rvp_load *l)
{
	return start(l, APART);
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

	if (r->load.items != NULL)
		pthread_join(r->pace, NULL);
	rvp_nodes_close(&r->nodes); /* completes every operation */
	for (i = 0; i < r->load.streams; i++) {
		reeve_stream_unref(r->tx[i]);
		reeve_stream_unref(r->rx[i]);
	}
	reeve_actor_unref(r->actors[0]);
	reeve_actor_unref(r->actors[1]);
	reeve_actor_unref(r->source);
	free(r->tx);
	free(r->rx);
	free(r->writes);
	free(r->reads);
	free(r->ticks);
	free(r);
}

const struct rvp_flow rvp_worker_flow = {"worker", worker_start, received, totals, stop};
const struct rvp_flow rvp_actors_flow = {"actors", actors_start, received, totals, stop};
const struct rvp_flow rvp_spread_flow = {"spread", spread_start, received, totals, stop};
