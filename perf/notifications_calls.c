/*
 * notifications_calls.c - our carrier without threads of the program's: both nodes on one runtime, as the two nodes of a
 * Rust contender share one, and everything from callbacks on its workers.
 *
 * What has come is looked at in the callback of its event.  Serial: the next one is sent right there.  Back-pressure: a
 * send that was accepted starts another one, with PENDING of them under way.
 */
#include <config.h>

#include "perf/notifications.h"

#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"
#include "queues/latch.h"

#define PENDING 4

struct calls {
	struct rvp_node end[2];
	reeve_sink_t *sink;
	struct rvq_latch opened[2];
	/* of one run */
	struct rvq_latch done;
	bool serial;
	size_t size;
	unsigned n;
	unsigned sent
	    __attribute__((aligned(64))); /* the sending connection's worker, from the first on */
	reeve_op_t ops[PENDING];
	unsigned received __attribute__((aligned(64))); /* the receiving connection's worker */
	reeve_op_t next[PENDING];                       /* serial: likewise, in turn */
};

static void
on_serial(reeve_op_t *op)
{
	rvp_must(op->res, "send");
}

static reeve_buf_t *
zeros(struct calls *c)
{
	reeve_buf_t *b = reeve_buf_alloc(c->end[0].rt, c->size);

	rvp_check(b != NULL, "memory");
	memset(reeve_buf_mut(b), 0, c->size);
	return b;
}

/* Asynchronous, since the queue may still count the one before, which has come.  That has been accepted for certain when
 * PENDING more have come. */
static void
send_serial(struct calls *c)
{
	reeve_op_t *op = &c->next[c->received % PENDING];

	reeve_op_init(op, on_serial, c);
	reeve_sink_send_async(c->sink, zeros(c), op);
}

static void
on_received(struct calls *c, reeve_buf_t *b)
{
	const uint8_t *bytes = b != NULL ? reeve_buf_data(b) : NULL;

	rvp_check(bytes != NULL && reeve_buf_len(b) == c->size && bytes[0] == 0 &&
		bytes[c->size - 1] == 0,
	    "notification");
	if (++c->received == c->n)
		rvq_latch_set(&c->done);
	else if (c->serial)
		send_serial(c);
}

static int
on_sender_event(reeve_notif_t *p, const reeve_notif_event_t *ev, void *arg)
{
	struct calls *c = arg;

	(void)p;
	if (ev->type != REEVE_NOTIF_OPENED)
		return 0;
	c->sink = reeve_sink_ref(ev->sink);
	rvq_latch_set(&c->opened[0]);
	return 0;
}

static int
on_receiver_event(reeve_notif_t *p, const reeve_notif_event_t *ev, void *arg)
{
	struct calls *c = arg;

	(void)p;
	if (ev->type == REEVE_NOTIF_RECEIVED)
		on_received(c, ev->data);
	else if (ev->type == REEVE_NOTIF_OPENED)
		rvq_latch_set(&c->opened[1]);
	return 0;
}

static void
send_next(struct calls *c, reeve_op_t *op)
{
	if (c->sent == c->n)
		return;
	c->sent++;
	reeve_sink_send_async(c->sink, zeros(c), op);
}

static void
on_sent(reeve_op_t *op)
{
	struct calls *c = op->arg;

	rvp_must(op->res, "send");
	if (c->serial)
		return;
	/* The first one, from outside, is alone: afterwards everything is this worker's. */
	for (unsigned i = 1; op == &c->ops[0] && c->sent == i && i < PENDING; i++)
		send_next(c, &c->ops[i]);
	send_next(c, op);
}

static void
calls_flow(void *run, bool serial, size_t size, unsigned n)
{
	struct calls *c = run;

	rvq_latch_init(&c->done);
	c->serial = serial;
	c->size = size;
	c->n = n;
	c->sent = 0;
	c->received = 0;
	for (unsigned i = 0; i < PENDING; i++)
		reeve_op_init(&c->ops[i], on_sent, c);
	send_next(c, &c->ops[0]);
	(void)rvq_latch_wait(&c->done, UINT64_MAX);
}

static void
calls_install(void *run, int i)
{
	struct calls *c = run;

	rvp_nodes_install(&c->end[i], i == 0 ? on_sender_event : on_receiver_event, c);
}

static void *
calls_open(const struct rvp_wanted *w)
{
	struct calls *c = aligned_alloc(64, (sizeof(*c) + 63) / 64 * 64);

	rvp_check(c != NULL && !w->requests, "callbacks are for notifications");
	memset(c, 0, sizeof(*c));
	for (int i = 0; i < 2; i++)
		rvq_latch_init(&c->opened[i]);
	rvp_nodes_start(c->end, w, calls_install, c);
	rvp_must(reeve_notif_open(c->end[0].notes, c->end[1].id), "open");
	for (int i = 0; i < 2; i++)
		(void)rvq_latch_wait(&c->opened[i], UINT64_MAX);
	return c;
}

static void
calls_close(void *run)
{
	struct calls *c = run;

	for (int i = 0; i < 2; i++)
		(void)reeve_node_close(c->end[i].node, 0);
	reeve_sink_unref(c->sink);
	rvp_nodes_stop(c->end);
	free(c);
}

const struct rvp_carrier rvp_carrier_calls = {
    calls_open, NULL, NULL, NULL, NULL, calls_close, calls_flow};
