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

/* What is offered to the transport next: what was gathered, or what it was sealed to. */
struct offer {
	struct iovec *v, sealed[RV_FILTER_IOV];
	int n;
	size_t left; /* there may be more than in v */
};

static bool
raw(const struct reeve_conn *c)
{
	return c->gather != NULL && !rv_gather_empty(c->gather) && c->gather_raw;
}

static void
prepare(struct reeve_conn *c, struct offer *o)
{
	struct rv_gather *g = c->gather;

	if (raw(c)) {
		o->v = g->iov + g->iov_at;
		o->n = g->niov - g->iov_at;
		o->left = g->bytes - g->done;
	} else {
		o->v = o->sealed;
		o->n = rv_filter_iov(c->filter, o->sealed);
		o->left = c->filter->out_left;
	}
}

/* The transport took n bytes of the offer. */
static void
taken(struct reeve_conn *c, size_t n)
{
	if (raw(c))
		rv_gather_sent(c->engine, c->gather, n);
	else
		rv_filter_sent(c->filter, n);
}

static void
arm_stall(struct reeve_conn *c)
{
	if (c->cfg.write_ms != REEVE_OFF)
		c->stall_deadline = c->w->now + (uint64_t)c->cfg.write_ms * 1000;
}

/* Offer what there is.  Bytes taken; 0: the transport takes no more now, or the connection has ended. */
static size_t
write_some(struct reeve_conn *c)
{
	size_t offered = 0;
	struct offer o;
	reeve_ssize n;

	prepare(c, &o);
	n = c->transport->ops->writev(c->transport, o.v, o.n);
	rvq_counter_add(&c->writes, 1);
	if (n == REEVE_EAGAIN) {
		on_stall(c);
		if (c->stall_deadline == UINT64_MAX)
			arm_stall(c);
		return 0;
	}
	if (n < 0 && n >= INT32_MIN) {
		on_write_error(c, (int)n);
		return 0;
	}
	for (int i = 0; i < o.n; i++)
		offered += o.v[i].iov_len;
	if (n <= 0 || (size_t)n > offered) {
		/* A transport that lies about what it took leaves nothing to trust: no further call is made. */
		rva_conn_end(c, REEVE_EPROTO, REEVE_BY_TRANSPORT, "REEVE-CONN-0009");
		return 0;
	}
	c->stall_deadline = UINT64_MAX;
	taken(c, (size_t)n);
	if ((size_t)n == o.left)
		on_gather_sent(c);
	if ((size_t)n < offered && c->transport->short_is_drained) {
		on_stall(c);
		arm_stall(c);
		return 0;
	}
	return (size_t)n;
}

/* Seal what is gathered.  Its streams are told that it left: nobody needs their bytes any more, and nothing else is gathered
 * until the transport has taken it.  False: not now, or the connection has ended. */
static bool
seal(struct reeve_conn *c)
{
	struct rv_gather *g = c->gather;
	int rc = c->filter->ops->seal(c->filter, c->w->pool, g);

	if (rc == REEVE_ENOMEM) {
		c->starved = true;
		return false;
	}
	if (rc < 0) {
		rva_conn_end(c, rc, REEVE_BY_US, c->filter->id);
		return false;
	}
	rv_gather_sent(c->engine, g, g->bytes);
	return true;
}

/* An empty gather, filled.  False: nothing to send, or no memory (tried again later). */
static bool
fill_gather(struct reeve_conn *c)
{
	struct rv_gather *g;

	if (!c->engine->ops->has_output(c->engine))
		return false;
	if (c->gather == NULL && (c->gather = rva_gather_get(c->w)) == NULL) {
		c->starved = true;
		return false;
	}
	g = c->gather;
	rv_gather_reset(g);
	g->limit = c->gather_limit;
	g->turn = c->gather_limit < RV_GATHER_BYTES ? RV_TURN : RV_TURN_FAST;
	c->gather_at = c->w->now;
	c->gather_stalled = false;
	c->gather_raw = c->filter == NULL;
	if (!c->gather_raw) {
		g->message = c->filter->message;
		if (g->limit > RVA_SEAL_BYTES)
			g->limit = RVA_SEAL_BYTES;
	}
	if (c->engine->ops->drain(c->engine, g, c->w->now) == 0)
		return false;
	rva_conn_secure(c);
	return true;
}

/* Is there something to offer?  Fills and seals a gather if nothing waits.  False: nothing, no memory, or the connection has
 * ended. */
static bool
next_output(struct reeve_conn *c)
{
	if (raw(c) || (c->filter != NULL && c->filter->out_left > 0))
		return true;
	if ((c->gather == NULL || rv_gather_empty(c->gather)) && !fill_gather(c))
		return false;
	return c->gather_raw || seal(c);
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
	uint64_t sent = 0;
	size_t n;

	c->starved = false;
	while (
	    c->state < RVA_CONN_LINGERING && c->writable && c->write_error == 0 && next_output(c)) {
		if (sent >= WRITE_BUDGET) {
			rva_conn_dirty(c);
			break;
		}
		n = write_some(c);
		if (n == 0)
			break;
		sent += n;
	}
	if (c->state != RVA_CONN_ENDED)
		gather_back(c);
}

void
rva_conn_last_words(struct reeve_conn *c)
{
	struct offer o;
	reeve_ssize n;

	/* What was begun, then the GO_AWAY; errors do not matter any more. */
	for (int i = 0; i < 2 && c->writable && next_output(c); i++) {
		prepare(c, &o);
		n = c->transport->ops->writev(c->transport, o.v, o.n);
		if (n <= 0 || (size_t)n > o.left)
			return;
		taken(c, (size_t)n);
	}
}

/* Everything was handed over: is it time for the next step of the end? */
static void
step(struct reeve_conn *c)
{
	struct rv_engine *e = c->engine;
	bool idle = rva_conn_all_sent(c) && !e->ops->has_output(e);

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
