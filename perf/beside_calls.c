/*
 * beside_calls.c - a ping-pong beside bulk by callbacks on the workers.
 *
 * Bulk keeps WRITES writes of 64 KiB pending on each stream.  Paced bulk is written by a thread for each stream, one write
 * at a time, since a callback cannot wait for a moment.
 */
#include <config.h>

#include "perf/beside.h"

#include <stdlib.h>
#include <string.h>

#include "perf/kit.h"
#include "queues/latch.h"

#define BULK_MAX 64u
#define WRITES   2
#define READS    4

struct rig;

struct lane {
	struct rig *rig;
	reeve_stream_t *out, *in;
	reeve_op_t writes[WRITES], reads[READS];
	pthread_t pacer;
};

struct rig {
	struct rvp_beside *b;
	reeve_stream_t *client, *server;
	reeve_op_t ask, asked, hear, answered[RVP_BESIDE_PING];
	unsigned pieces;
	size_t got;
	uint64_t from;
	struct rvq_latch done;
	struct lane lanes[BULK_MAX];
};

static reeve_buf_t *
filled(struct rig *r, size_t n)
{
	reeve_buf_t *b = reeve_buf_alloc(r->b->nodes.rt[0], n);

	rvp_check(b != NULL, "memory");
	memset(reeve_buf_mut(b), 1, n);
	return b;
}

/* --- ping-pong --- */

static void
written(reeve_op_t *op)
{
	(void)op; /* whoever reads notices an end */
}

static void
send_ping(struct rig *r)
{
	r->got = 0;
	r->from = rvp_now_ns();
	reeve_write_async(r->client, filled(r, RVP_BESIDE_PING), &r->asked);
}

static void
on_answer(reeve_op_t *op)
{
	struct rig *r = op->arg;

	if (op->res <= 0)
		return;
	r->got += (size_t)op->res;
	rvp_check(*reeve_buf_data(op->buf) == 1, "answer");
	reeve_buf_unref(op->buf);
	if (r->got == RVP_BESIDE_PING) {
		if (!rvp_beside_sample(r->b, rvp_now_ns() - r->from)) {
			rvq_latch_set(&r->done);
			return;
		}
		send_ping(r);
	}
	reeve_read_async(r->client, op);
}

/* A ping may come in pieces (it crosses the end of a block): each is answered by an operation of its own, and there is no
 * other ping before all of them have gone. */
static void
on_ping(reeve_op_t *op)
{
	struct rig *r = op->arg;

	if (op->res <= 0)
		return;
	reeve_write_async(r->server, op->buf, &r->answered[r->pieces++ % RVP_BESIDE_PING]);
	reeve_read_async(r->server, op);
}

/* --- bulk --- */

static void
on_written(reeve_op_t *op)
{
	struct lane *l = op->arg;

	if (op->res > 0)
		reeve_write_async(l->out, filled(l->rig, RVP_BESIDE_BULK), op);
}

static void
on_bulk(reeve_op_t *op)
{
	struct lane *l = op->arg;

	if (op->res <= 0)
		return;
	rvp_check(*reeve_buf_data(op->buf) == 1, "bulk");
	(void)rvq_gauge_add(&l->rig->b->received, (uint64_t)op->res);
	reeve_buf_unref(op->buf);
	reeve_read_async(l->in, op);
}

static void *
pace_main(void *arg)
{
	struct lane *l = arg;
	uint64_t began = rvp_now_ns(), sent = 0;

	while (reeve_write_buf(l->out, filled(l->rig, RVP_BESIDE_BULK)) ==
	    (reeve_ssize)RVP_BESIDE_BULK) {
		sent += RVP_BESIDE_BULK;
		rvp_beside_pace(l->rig->b, began, sent);
	}
	return NULL;
}

static void
pair(struct rig *r, reeve_stream_t **out, reeve_stream_t **in)
{
	rvp_must(reeve_open(r->b->nodes.ctl[0], out, -1), "open");
	rvp_must(reeve_accept(r->b->nodes.ctl[1], in, -1), "accept");
}

static void
start_lane(struct rig *r, struct lane *l)
{
	l->rig = r;
	pair(r, &l->out, &l->in);
	for (unsigned i = 0; i < READS; i++) {
		reeve_op_init(&l->reads[i], on_bulk, l);
		reeve_read_async(l->in, &l->reads[i]);
	}
	if (r->b->bytes_per_s > 0)
		rvp_thread(&l->pacer, pace_main, l, RVP_ANY_CPU);
	for (unsigned i = 0; i < WRITES && r->b->bytes_per_s == 0; i++) {
		reeve_op_init(&l->writes[i], on_written, l);
		reeve_write_async(l->out, filled(r, RVP_BESIDE_BULK), &l->writes[i]);
	}
}

static void *
calls_start(struct rvp_beside *b)
{
	struct rig *r = calloc(1, sizeof(*r));

	rvp_check(r != NULL && b->bulk <= BULK_MAX, "memory");
	r->b = b;
	rvq_latch_init(&r->done);
	pair(r, &r->client, &r->server);
	for (unsigned i = 0; i < b->bulk; i++)
		start_lane(r, &r->lanes[i]);
	reeve_op_init(&r->ask, on_answer, r);
	reeve_op_init(&r->asked, written, r);
	reeve_op_init(&r->hear, on_ping, r);
	for (unsigned i = 0; i < RVP_BESIDE_PING; i++)
		reeve_op_init(&r->answered[i], written, r);
	reeve_read_async(r->server, &r->hear);
	reeve_read_async(r->client, &r->ask);
	send_ping(r);
	return r;
}

static void
calls_stop(void *run)
{
	struct rig *r = run;

	(void)rvq_latch_wait(&r->done, UINT64_MAX);
	rvp_nodes_abort(&r->b->nodes);
	for (unsigned i = 0; i < r->b->bulk && r->b->bytes_per_s > 0; i++)
		pthread_join(r->lanes[i].pacer, NULL);
	rvp_nodes_close(&r->b->nodes); /* completes every operation */
	for (unsigned i = 0; i < r->b->bulk; i++) {
		reeve_stream_unref(r->lanes[i].out);
		reeve_stream_unref(r->lanes[i].in);
	}
	reeve_stream_unref(r->client);
	reeve_stream_unref(r->server);
	free(r);
}

const struct rvp_beside_kind rvp_beside_calls = {"worker", 0, calls_start, calls_stop};
const struct rvp_beside_kind rvp_beside_one = {"one-worker", 1, calls_start, calls_stop};
