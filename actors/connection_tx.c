/* connection_tx.c - the sending side: messages in, frames out, and what follows from having sent everything.
 *
 * A flush runs once per pass of the worker for every connection that got a message: whatever came together leaves
 * together, in as few system calls as the transport allows. */
#include <config.h>

#include "actors/connection.h"

#include "lib/check.h"

#define WRITE_BUDGET (1024u * 1024) /* bytes of one turn */
#define LINGER_US    1000000        /* wait for the peer's end after our last byte */
#define ROUNDS       64             /* exchanges with the controller in one turn */
#define GATHER_US    5000           /* what is gathered should leave within this */
#define GATHER_MIN   16384u

/* Nothing more can be sent, but what the peer sent before may still be there to read: the end comes behind it. */
static void
on_write_error(struct reeve_conn *c, int rc)
{
	c->write_error = rc;
	c->writable = false;
	c->stall_deadline = UINT64_MAX;
	c->hup = c->readable = true;
	rva_conn_want_read(c);
}

/* The transport takes no more. */
static void
on_stall(struct reeve_conn *c)
{
	c->writable = false;
	c->gather_stalled = true;
	rvq_counter_add(&c->stalls, 1);
}

/* All of the gather has left.  Pings, answers and credit wait behind what was gathered before them, so that is only as
 * much as the transport takes in a few milliseconds. */
static void
on_gather_sent(struct reeve_conn *c)
{
	uint64_t took = c->w->now - c->gather_at;

	if (c->gather_stalled && took > GATHER_US)
		c->gather_limit /= 2;
	else if (took < GATHER_US / 4)
		c->gather_limit *= 2;
	if (c->gather_limit < GATHER_MIN)
		c->gather_limit = GATHER_MIN;
	else if (c->gather_limit > RV_GATHER_BYTES)
		c->gather_limit = RV_GATHER_BYTES;
}

/* Offer what is in the gather.  False: the transport takes no more now, or the connection has ended. */
static bool
write_some(struct reeve_conn *c)
{
	struct rv_gather *g = c->gather;
	size_t left = g->bytes - g->done;
	reeve_ssize n;

	n = c->transport->ops->writev(c->transport, g->iov + g->iov_at, g->niov - g->iov_at);
	rvq_counter_add(&c->writes, 1);
	if (n == REEVE_EAGAIN) {
		on_stall(c);
		if (c->stall_deadline == UINT64_MAX && c->cfg.write_ms != REEVE_OFF)
			c->stall_deadline = c->w->now + (uint64_t)c->cfg.write_ms * 1000;
		return false;
	}
	if (n < 0 && n >= INT32_MIN) {
		on_write_error(c, (int)n);
		return false;
	}
	if (n <= 0 || (size_t)n > left) {
		/* A transport that lies about what it took leaves nothing to trust: no further call is made. */
		rva_conn_end(c, REEVE_EPROTO, REEVE_BY_TRANSPORT, "REEVE-CONN-0009");
		return false;
	}
	c->stall_deadline = UINT64_MAX;
	rv_gather_sent(c->engine, g, (size_t)n);
	if ((size_t)n == left)
		on_gather_sent(c);
	if ((size_t)n < left && c->transport->short_is_drained) {
		on_stall(c);
		if (c->cfg.write_ms != REEVE_OFF)
			c->stall_deadline = c->w->now + (uint64_t)c->cfg.write_ms * 1000;
		return false;
	}
	return true;
}

/* Fill a gather if there is none with bytes in it.  False: nothing to send, or no memory (tried again later). */
static bool
next_gather(struct reeve_conn *c)
{
	if (c->gather != NULL && !rv_gather_empty(c->gather))
		return true;
	if (!c->engine->ops->has_output(c->engine))
		return false;
	if (c->gather == NULL && (c->gather = rva_gather_get(c->w)) == NULL) {
		c->starved = true;
		return false;
	}
	rv_gather_reset(c->gather);
	c->gather->limit = c->gather_limit;
	c->gather->turn = c->gather_limit < RV_GATHER_BYTES ? RV_TURN : RV_TURN_FAST;
	c->gather_at = c->w->now;
	c->gather_stalled = false;
	return c->engine->ops->drain(c->engine, c->gather, c->w->now) > 0;
}

static void
gather_back(struct reeve_conn *c)
{
	if (c->gather != NULL && rv_gather_empty(c->gather)) {
		rva_gather_put(c->w, c->gather);
		c->gather = NULL;
	}
}

/* Write until there is nothing left, the transport is full or the budget is used up (then: once more later). */
static void
write_all(struct reeve_conn *c)
{
	size_t start;
	uint64_t sent = 0;

	c->starved = false;
	while (
	    c->state < RVA_CONN_LINGERING && c->writable && c->write_error == 0 && next_gather(c)) {
		if (sent >= WRITE_BUDGET) {
			rva_conn_dirty(c);
			break;
		}
		start = c->gather->done;
		if (!write_some(c))
			break;
		sent += c->gather->done - start;
	}
	if (c->state != RVA_CONN_ENDED)
		gather_back(c);
}

void
rva_conn_last_words(struct reeve_conn *c)
{
	struct rv_gather *g;
	reeve_ssize n;

	/* What was begun, then the GO_AWAY; errors do not matter any more. */
	for (int i = 0; i < 2 && c->writable && next_gather(c); i++) {
		g = c->gather;
		n = c->transport->ops->writev(
		    c->transport, g->iov + g->iov_at, g->niov - g->iov_at);
		if (n <= 0 || (size_t)n > g->bytes - g->done)
			return;
		rv_gather_sent(c->engine, g, (size_t)n);
	}
}

/* Everything was handed over: is it time for the next step of the end? */
static void
step(struct reeve_conn *c)
{
	struct rv_engine *e = c->engine;
	bool idle = c->gather == NULL && !e->ops->has_output(e);

	if (c->hard_goaway) {
		rva_conn_end(c, REEVE_EGOAWAY, REEVE_BY_PEER, e->reason.id);
		return;
	}
	if (c->peer_leaves && c->state == RVA_CONN_OPEN && e->nstreams == 0)
		rva_conn_begin_close(c, UINT64_MAX);
	if (c->state == RVA_CONN_CLOSING && idle && e->nstreams == 0 &&
	    rvq_ring_count(&c->up) == 0) {
		c->state = RVA_CONN_LEAVING;
		e->ops->goaway(e, 0);
		rva_conn_dirty(c);
	} else if (c->state == RVA_CONN_LEAVING && idle) {
		if (c->transport->ops->shut == NULL || c->transport->ops->shut(c->transport) < 0) {
			rva_conn_end(c, 0, REEVE_BY_US, "REEVE-CONN-0010");
			return;
		}
		c->state = RVA_CONN_LINGERING;
		c->linger_deadline = c->w->now + LINGER_US;
	}
}

void
rva_conn_flush(struct reeve_conn *c)
{
	unsigned rounds = 0;

	if (c->state == RVA_CONN_ENDED) {
		rva_conn_off_list(c);
		return;
	}
	do {
		rva_conn_absorb(c);
		(void)c->engine->ops->notify(c->engine);
		rva_conn_deliver(c);
		if (c->state == RVA_CONN_ENDED)
			return;
		/* What follows from an answer is heard before anything is sent: a stream that nobody wants any more
		 * has no SYN on the wire. */
	} while ((rvq_ring_count(&c->from_ctl) != 0 || rvq_ring_count(&c->up) != 0) &&
	    ++rounds < ROUNDS);
	write_all(c);
	if (c->state == RVA_CONN_ENDED)
		return;
	if (c->engine->over && !c->engine->ops->has_output(c->engine)) {
		if (!rva_conn_upgraded(c))
			return;
		rva_conn_dirty(c);
	}
	if (!c->engine->ops->notify(c->engine))
		rva_conn_dirty(c);
	rva_conn_deliver(c);
	if (c->state == RVA_CONN_ENDED)
		return;
	if (c->held != NULL && !c->engine->blocked)
		rva_conn_want_read(c);
	step(c);
	if (c->state != RVA_CONN_ENDED)
		rva_conn_rearm(c);
}
