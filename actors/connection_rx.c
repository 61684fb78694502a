/* connection_rx.c - the receiving side: one budgeted turn of reading, parsing and delivering.
 *
 * Bytes are read into a slab borrowed from the worker, parsed in place and handed on as slices of it; a body that is
 * split over two slabs is two slices.  The slab goes back when nothing more is to be read.  Reading never waits for
 * writing; it stops only when the connection holds as many received bytes as it may.
 *
 * With a filter they are read into a slab that is nobody's for longer, opened from there into those of the filter, and
 * what that has proven is parsed. */
#include <config.h>

#include "actors/connection.h"

#include <errno.h>
#include <string.h>

#include "actors/substream.h"
#include "lib/upgrade/handshake.h"

static bool receive(struct reeve_conn *c, struct rv_slab *s, uint32_t off, uint32_t len);

#define READ_BUDGET \
	(256u * 1024)  /* bytes of one turn: a heavy connection does not starve a light one */
#define SLAB_MIN 16384 /* a slab with less room left is not filled any further */

void
rva_conn_secure(struct reeve_conn *c)
{
	if (rva_conn_handshaking(c) && c->filter == NULL)
		c->filter = rv_handshake_filter(c->handshake);
}

/* Parse bytes [off, off + len) of s, delivering whenever the rings are full; readers are told when all is parsed.
 * False: the connection has ended. */
static bool
parse(struct reeve_conn *c, struct rv_slab *s, uint32_t off, uint32_t len)
{
	reeve_ssize n;

	while (len > 0) {
		n = c->engine->ops->feed(c->engine, s, off, len, c->w->now);
		rva_conn_hand_on(c);
		if (c->state == RVA_CONN_ENDED)
			return false;
		if (n < 0) {
			rva_conn_last_words(c);
			/* The first reason: a GO_AWAY may have been before it. */
			rva_conn_end(c, c->engine->reason.rc, REEVE_BY_PEER, c->engine->reason.id);
			return false;
		}
		off += (uint32_t)n;
		len -= (uint32_t)n;
		if (c->filter == NULL) {
			rva_conn_secure(c);
			if (c->filter != NULL)
				return receive(c, s, off, len);
		}
		/* Answers that the peer reads are no offence, however many frames of one read ask for them. */
		if (c->engine->pressed)
			rva_conn_flush(c);
		if (c->state == RVA_CONN_ENDED)
			return false;
		if (c->engine->over && !c->engine->ops->has_output(c->engine) &&
		    !rva_conn_upgraded(c))
			return false;
		if (c->engine->blocked && len > 0) {
			rv_slab_ref(s);
			c->held = s;
			c->held_off = off;
			c->held_len = len;
			c->held_raw = c->filter == NULL;
			break;
		}
	}
	rva_stream_pump_fresh(c);
	return true;
}

/* What the filter has proven, as far as the engine takes it. */
static bool
parse_proven(struct reeve_conn *c)
{
	struct rv_part part;
	bool alive = true;

	while (alive && c->held == NULL && rv_filter_pop(c->filter, &part)) {
		alive = parse(c, part.slab, part.off, part.len);
		rv_slab_unref(part.slab);
	}
	return alive;
}

/* Bytes of the transport.  False: the connection has ended. */
static bool
receive(struct reeve_conn *c, struct rv_slab *s, uint32_t off, uint32_t len)
{
	int rc;

	if (c->filter == NULL)
		return parse(c, s, off, len);
	rc = c->filter->ops->open(c->filter, c->w->pool, s->data + off, len);
	if (!parse_proven(c))
		return false;
	if (rc == 0)
		return true;
	rva_conn_end(c, rc, rc == REEVE_ENOMEM ? REEVE_BY_US : REEVE_BY_PEER, c->filter->id);
	return false;
}

/* What a blocked engine left. */
static bool
parse_held(struct reeve_conn *c)
{
	struct rv_slab *s = c->held;
	bool alive;

	c->held = NULL;
	alive = c->held_raw ? receive(c, s, c->held_off, c->held_len)
			    : parse(c, s, c->held_off, c->held_len);
	rv_slab_unref(s);
	return alive && c->filter != NULL ? parse_proven(c) : alive;
}

static bool
slab_ready(struct reeve_conn *c)
{
	if (c->slab != NULL && c->slab->cap - c->slab->used >= SLAB_MIN)
		return true;
	if (c->slab != NULL)
		rv_slab_unref(c->slab);
	c->slab = rv_slab_get(c->w->pool, 65536);
	return c->slab != NULL;
}

static void
slab_back(struct reeve_conn *c)
{
	if (c->filter != NULL)
		c->filter->ops->rest(c->filter, c->w->pool);
	if (c->slab != NULL && rvq_ref_single(&c->slab->refs)) {
		rv_slab_unref(c->slab);
		c->slab = NULL;
	}
}

static void
on_end(struct reeve_conn *c, int rc)
{
	int cut;

	/* A GO_AWAY with a code came before it, in this turn: that is why the transport ends. */
	if (c->engine->reason.rc == REEVE_EGOAWAY) {
		rva_conn_end(c, REEVE_EGOAWAY, REEVE_BY_PEER, c->engine->reason.id);
		return;
	}
	/* A pipe that broke under our writes because the peer has closed ended by that: what could not be sent any
	 * more is told by the streams that have not ended. */
	if (rc == 0 && c->write_error != 0 && c->write_error != REEVE_ESYS_BASE - EPIPE &&
	    c->write_error != REEVE_ESYS_BASE - ECONNRESET)
		rc = c->write_error;
	cut = c->engine->ops->feed_end(c->engine);
	if (c->filter != NULL && c->filter->ops->inside(c->filter))
		cut = REEVE_ETRUNC;
	if (rva_conn_handshaking(c)) {
		rva_conn_last_words(c);
		rva_conn_end(c, rc == 0 ? cut : rc, rc == 0 ? REEVE_BY_PEER : REEVE_BY_TRANSPORT,
		    c->engine->reason.id);
		return;
	}
	if (rc == 0 && cut < 0) {
		rva_conn_end(c, REEVE_ETRUNC, REEVE_BY_TRANSPORT, "REEVE-CONN-0006");
	} else if (rc == 0) {
		/* We were leaving and so was the peer: a clean end on both sides. */
		bool both = c->state == RVA_CONN_LEAVING || c->state == RVA_CONN_LINGERING ||
		    (c->state == RVA_CONN_CLOSING && c->engine->nstreams == 0);

		bool ours = both || rvq_cell32_get(&c->rt->stopping) != 0;

		rva_conn_end(c,
		    both       ? 0
			: ours ? REEVE_ECLOSED
			       : REEVE_EEND,
		    ours ? REEVE_BY_US : REEVE_BY_PEER, "REEVE-CONN-0005");
	} else {
		rva_conn_end(c, rc, REEVE_BY_TRANSPORT, "REEVE-CONN-0007");
	}
}

/* A transport that hands over its own blocks. */
static int
take_some(struct reeve_conn *c)
{
	struct rv_slab *s;
	uint32_t off;
	reeve_ssize n = c->transport->ops->take(c->transport, &s, &off);
	bool alive;

	rvq_counter_add(&c->reads, 1);
	if (n == REEVE_EAGAIN) {
		c->readable = false;
		return 0;
	}
	if (n <= 0) {
		on_end(c, (int)n);
		return -1;
	}
	alive = receive(c, s, off, (uint32_t)n);
	rv_slab_unref(s);
	return alive ? (int)n : -1;
}

/* One read of the transport to slab, behind what it has.  Bytes, 0 for "no more now", or -1: the connection has ended. */
static int
read_into(struct reeve_conn *c, struct rv_slab *s)
{
	struct iovec v = {s->data + s->used, s->cap - s->used};
	reeve_ssize n = c->transport->ops->readv(c->transport, &v, 1);

	rvq_counter_add(&c->reads, 1);
	if (n == REEVE_EAGAIN) {
		c->readable = false;
		return 0;
	}
	if (n <= 0 || (size_t)n > v.iov_len) {
		on_end(c, n > 0 || n < INT32_MIN ? REEVE_EPROTO : (int)n);
		return -1;
	}
	s->used += (uint32_t)n;
	if ((size_t)n < v.iov_len && c->transport->short_is_drained && !c->hup)
		c->readable = false;
	return receive(c, s, s->used - (uint32_t)n, (uint32_t)n) ? (int)n : -1;
}

static void
no_memory(struct reeve_conn *c)
{
	rva_conn_end(c, REEVE_ENOMEM, REEVE_BY_US, "REEVE-CONN-0008");
}

static int
read_some(struct reeve_conn *c)
{
	struct rv_slab *s;
	int n = -1;

	if (c->filter == NULL) {
		if (slab_ready(c))
			return read_into(c, c->slab);
		no_memory(c);
		return -1;
	}
	if (c->slab != NULL)
		rv_slab_unref(c->slab); /* of the handshake */
	c->slab = NULL;
	s = rv_slab_get(c->w->pool, RV_FILTER_BLOCK);
	if (s == NULL) {
		no_memory(c);
	} else {
		n = read_into(c, s);
		rv_slab_unref(s);
	}
	return n;
}

/* Bytes that were read before the connection was started (an upgrade's read-ahead). */
static bool
read_ahead(struct reeve_conn *c)
{
	bool alive = true;
	struct rv_slab *s;
	reeve_buf_t *b;
	uint32_t n;

	while (alive && c->held == NULL && (b = c->unread.head) != NULL) {
		/* Copied: cutting slices needs the block's owner, and this block is somebody else's. */
		n = b->len < RV_FILTER_BLOCK ? b->len : RV_FILTER_BLOCK;
		s = rv_slab_get(c->w->pool, n);
		if (s == NULL) {
			no_memory(c);
			return false;
		}
		memcpy(s->data, rv_buf_data(b), n);
		s->used = n;
		rv_chain_skip(&c->unread, n);
		alive = receive(c, s, 0, n);
		rv_slab_unref(s);
	}
	return alive;
}

static bool
full(struct reeve_conn *c)
{
	int level = rv_budget_level(c->budget);

	if (c->engine->bounds) /* it stops by itself, and then knows whom to reset */
		return false;
	/* From the bound down to three quarters of it nothing is read: see the numbers in doc/protocol-yamux.md. */
	c->paused = c->paused ? level >= 2 : level >= 3;
	return c->paused;
}

void
rva_conn_read(struct reeve_conn *c)
{
	uint32_t got = 0;
	int n = 0;

	if (c->state == RVA_CONN_ENDED) {
		rva_conn_off_list(c);
		return;
	}
	if (c->held != NULL && !c->engine->blocked && !parse_held(c))
		return;
	if (c->held == NULL && c->unread.head != NULL && !read_ahead(c))
		return;
	while (c->readable && got < READ_BUDGET && !full(c) && c->held == NULL) {
		n = c->transport->ops->take != NULL ? take_some(c) : read_some(c);
		if (n < 0)
			return;
		got += (uint32_t)n;
	}
	if (c->held != NULL) {
		if (!c->engine->blocked)
			rva_conn_want_read(c);
	} else if (c->readable && !c->paused) {
		rva_conn_want_read(c);
	} else if (c->write_error != 0 && !c->readable) {
		rva_conn_end(c, c->write_error, REEVE_BY_TRANSPORT, "REEVE-CONN-0011");
		return;
	} else {
		slab_back(c);
	}
	rva_conn_dirty(c); /* credit, pongs, timers */
}
