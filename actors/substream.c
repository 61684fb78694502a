/* substream.c - the substream actor: what happens to a stream, seen from the application's side.
 *
 * Owner: the connection's worker.  Events of the connection arrive as direct calls of rva_stream_on when the worker
 * drains the ring; calls of other threads arrive as bell bits and operations in the mailbox. */
#include <config.h>

#include "actors/substream.h"

#include "actors/negotiate.h"
#include "actors/port.h"
#include "lib/alloc.h"
#include "lib/check.h"

/* --- messages to the connection --- */

static void
up(struct reeve_stream *s, enum rva_up_kind kind, uint32_t n)
{
	struct rva_up m = {.s = s, .n = n, .kind = kind};

	if (!s->gone)
		rva_conn_up(s->conn, &m);
}

void
rva_stream_send(struct reeve_stream *s, reeve_buf_t *b)
{
	struct rva_up m = {.s = s, .buf = b, .kind = RVA_UP_SEND};

	if (rva_nego_talk(s) != NULL)
		rva_nego_flush(s);
	if (s->gone)
		rv_buf_unref(b);
	else
		rva_conn_up(s->conn, &m);
}

void
rva_stream_put(struct reeve_stream *s, reeve_buf_t *b)
{
	s->queued += b->len;
	rva_stream_send(s, b);
}

static void
tell_tap(struct reeve_stream *s, enum rva_tap_event ev, uint32_t n)
{
	if (s->tap != NULL)
		s->tap->on(s->tap, ev, n);
}

/* Tell what was consumed since the last time: at the end of whatever consumed it. */
void
rva_stream_settle(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);

	if (p != NULL)
		s->consumed += rva_port_collect(p);
	if (s->consumed != 0) {
		up(s, RVA_UP_CONSUMED, s->consumed);
		s->consumed = 0;
	}
}

/* --- answers --- */

/* Set a sticky answer, once. */
static bool
answer(struct rvq_cell32 *cell, int rc)
{
	return rvq_cell32_cas(cell, (uint32_t)RVA_RC_OPEN, (uint32_t)rc);
}

static void
wake_all(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);

	if (p != NULL)
		rva_port_wake(p);
}

/* No more bytes come in: publish the answer once everything before it was handed on. */
static void
publish_in(struct reeve_stream *s)
{
	if (s->in_rc == RVA_RC_OPEN || s->in.head != NULL)
		return;
	if (answer(&s->rd_rc, s->in_rc))
		wake_all(s);
	rvq_cell32_put(&s->async_reads, 0);
	if (s->waiting != NULL)
		rva_oplist_fail(&s->waiting->reads, rva_rc(&s->rd_rc));
}

static void
end_in(struct reeve_stream *s, int rc)
{
	if (s->in_rc == RVA_RC_OPEN)
		s->in_rc = rc;
	rva_stream_pump_in(s);
}

/* Writes that were never accepted let go of their buffers. */
static void
fail_writes(struct reeve_stream *s, int rc)
{
	for (reeve_op_t *op = s->waiting->writes.head; op != NULL; op = rva_op(op)->next) {
		rv_buf_unref(rva_op(op)->buf);
		rva_op(op)->buf = NULL;
	}
	rva_oplist_fail(&s->waiting->writes, rc);
}

/* What the transport has not taken it will not take any more. */
static void
fail_sent(struct reeve_stream *s, int rc)
{
	if (s->waiting != NULL)
		rva_oplist_fail(&s->waiting->sent, rc);
}

static void
end_out(struct reeve_stream *s, int rc)
{
	(void)answer(&s->wr_rc, rc);
	if (s->waiting != NULL)
		fail_writes(s, rva_rc(&s->wr_rc));
	wake_all(s);
	tell_tap(s, RVA_TAP_ENDED, 0);
}

/* --- bytes in --- */

static void
take_data(struct reeve_stream *s, const struct rv_event *ev)
{
	struct reeve_conn *c = s->conn;
	struct rva_talk *talk = rva_nego_talk(s);
	bool early = talk != NULL && !talk->begun; /* kept for it */
	struct rv_slab *slab = ev->slab;
	uint32_t off = ev->off, len = ev->len;
	int rc;

	if (talk != NULL && talk->begun && !(talk->lazy && s->stopped)) {
		uint32_t used = (uint32_t)rva_nego_feed(s, slab->data + off, len);

		s->consumed += used;
		off += used;
		len -= used;
	}
	if (s->closed || len == 0 || (s->stopped && !early))
		return; /* discarded; the engine withholds the credit */
	if (ev->n < RVA_COPY_BELOW || (ev->n < RVA_COPY_PINNED && rva_conn_pinned_hard(c))) {
		rc = rv_chain_copy(&s->in, c->w->pool, c->budget, slab->data + off, len);
		rvq_counter_add(&c->copied_in, len);
	} else {
		if (slab->budget == NULL)
			rv_slab_charge(slab, c->budget);
		rc = rv_chain_cut(&s->in, slab, off, len);
	}
	if (rc < 0) { /* a byte that cannot be kept must not be lost silently */
		up(s, RVA_UP_RESET, 0);
		end_in(s, rc);
		end_out(s, rc);
	}
}

void
rva_stream_pump_in(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);
	bool held = rva_nego_talk(s) != NULL; /* what comes is for the negotiation */
	reeve_op_t *op;
	uint32_t any;

	while (!held && s->in.head != NULL && s->waiting != NULL &&
	    (op = s->waiting->reads.head) != NULL) {
		(void)rva_oplist_pop(&s->waiting->reads);
		if (s->waiting->reads.head == NULL)
			rvq_cell32_put(&s->async_reads, 0);
		if (!rva_op_claim(op))
			continue;
		op->buf = rv_chain_pop(&s->in);
		s->consumed += op->buf->len;
		rva_op_finish(op, (reeve_ssize)op->buf->len);
	}
	if (!held && p != NULL && s->in.head != NULL)
		rva_port_fill(s, p);
	if (!held)
		publish_in(s);
	/* Threads stay away while operations wait to read. */
	any = s->waiting != NULL && s->waiting->reads.head != NULL;
	if (rvq_cell32_get_relaxed(&s->async_reads) != any)
		rvq_cell32_put(&s->async_reads, any);
}

static void
freshen(struct reeve_stream *s)
{
	if (s->fresh)
		return;
	s->fresh = true;
	s->fresh_next = s->conn->fresh;
	s->conn->fresh = s;
}

/* The record may be freed before the delivery is over. */
static void
unfreshen(struct reeve_stream *s)
{
	struct reeve_stream **p = &s->conn->fresh;

	if (!s->fresh)
		return;
	while (*p != s)
		p = &(*p)->fresh_next;
	*p = s->fresh_next;
	s->fresh = false;
}

void
rva_stream_pump_fresh(struct reeve_conn *c)
{
	struct reeve_stream *s;

	while ((s = c->fresh) != NULL) {
		c->fresh = s->fresh_next;
		s->fresh = false;
		rva_stream_pump_in(s);
		rva_stream_settle(s);
	}
}

/* --- bytes out --- */

/* Everything that was accepted is with the connection: now what ends the direction.  A close may follow a shut. */
static void
finish_out(struct reeve_stream *s)
{
	if (s->shut_wanted)
		rva_nego_flush(s);
	if (s->closed)
		return;
	s->shut = true;
	if (s->close_wanted) {
		s->closed = true;
		up(s, RVA_UP_CLOSE, s->unread);
		end_out(s, REEVE_ECLOSED);
	} else {
		up(s, RVA_UP_SHUT, 0);
		end_out(s, REEVE_ESHUT);
	}
}

/* Operations and the port's ring go to the connection in the order in which they were called. */
void
rva_stream_pump_out(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);
	reeve_op_t *op;
	size_t n;

	if (rva_nego_mute(s))
		return;
	while (s->waiting != NULL && (op = s->waiting->writes.head) != NULL) {
		if (rva_op(op)->msg.kind == RVA_MSG_REFUSED) {
			(void)rva_op_answer(rva_oplist_pop(&s->waiting->writes), op->res);
			continue;
		}
		if (p != NULL && !rva_port_drain(s, p, rva_op(op)->pos))
			return;
		if (s->shut || (rva_stream_budget(s) == 0 && !s->close_wanted))
			return;
		(void)rva_oplist_pop(&s->waiting->writes);
		if (rva_op(op)->msg.kind == RVA_MSG_WRITE_SENT)
			rva_oplist_push(&s->waiting->sent, op);
		else if (!rva_op_claim(op))
			continue; /* its cancel message lets go of the buffer */
		n = rva_op(op)->buf->len;
		s->queued += (uint32_t)n;
		if (n > 0)
			rva_stream_send(s, rva_op(op)->buf);
		else
			rv_buf_unref(rva_op(op)->buf);
		rva_op(op)->buf = NULL;
		if (rva_op(op)->msg.kind != RVA_MSG_WRITE_SENT)
			rva_op_finish(op, (reeve_ssize)n);
	}
	if (p != NULL) {
		/* Bytes written behind an operation that is still on its way wait for it: its message comes here again. */
		uint64_t all = rvq_cell64_get(&p->accepted);

		if (rvq_cell32_get(&s->posted) == 0 && !rva_nego_mute(s))
			(void)rva_port_drain(s, p, all);
	}
	if (((s->shut_wanted && !s->shut) || (s->close_wanted && !s->closed)) &&
	    rvq_cell32_get(&s->posted) == 0 && (p == NULL || rva_port_seal(s, p)))
		finish_out(s);
}

static void
on_taken(struct reeve_stream *s, uint32_t n, bool dry)
{
	struct rva_port *p = rva_port_peek(s);
	uint32_t threads = 0;

	/* Both kinds of writers share one stream in order; threads' bytes are settled first. */
	if (p != NULL) {
		uint64_t out = p->drained - rvq_cell64_get_relaxed(&p->taken);

		threads = n < out ? n : (uint32_t)out;
		if (threads > 0)
			rva_port_taken(s, p, threads, dry);
	}
	s->queued -= n - threads;
	if (s->waiting != NULL && s->queued == 0)
		rva_oplist_fail(&s->waiting->sent, 0);
	tell_tap(s, RVA_TAP_TAKEN, n - threads);
	if (s->waiting != NULL && s->waiting->writes.head != NULL)
		rva_stream_pump_out(s);
}

/* --- ends --- */

static void
drop_in(struct reeve_stream *s)
{
	if (rva_port_peek(s) != NULL)
		rva_port_discard(rva_port_peek(s));
	rv_chain_clear(&s->in);
}

static void
stop(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);

	if (s->stopped)
		return;
	s->stopped = true;
	rva_stream_settle(s);
	if (rva_nego_talk(s) == NULL) { /* else they are for the negotiation */
		s->unread = s->in.head != NULL || (p != NULL && rva_port_unread(p));
		drop_in(s);
	}
	(void)answer(&s->rd_rc, REEVE_ECLOSED);
	s->in_rc = rva_rc(&s->rd_rc);
	publish_in(s);
	wake_all(s);
}

static void
on_reset_by_us(struct reeve_stream *s)
{
	if (s->closed)
		return;
	s->closed = s->shut = true;
	up(s, RVA_UP_RESET, rvq_cell32_get(&s->rst_code));
	stop(s);
	end_out(s, REEVE_ECLOSED);
	fail_sent(s, REEVE_ECLOSED);
	rva_nego_over(s, REEVE_ECLOSED);
}

void
rva_stream_fail(struct reeve_stream *s, int rc, bool fin)
{
	if (!s->closed)
		up(s, fin ? RVA_UP_CLOSE : RVA_UP_RESET, 0);
	s->closed = s->shut = s->stopped = true;
	rv_chain_clear(&s->in);
	s->in_rc = rc; /* the peer's end, if it was there, is no clean one */
	end_out(s, rc);
	fail_sent(s, rc);
	end_in(s, rc);
}

void
rva_stream_resume(struct reeve_stream *s)
{
	/* Not heeded before: it would have ended the negotiation's bytes too. */
	if (s->stopped && rva_nego_talk(s) == NULL) {
		s->unread = s->in.head != NULL;
		drop_in(s);
	}
	if (s->stopped && !s->closed && !s->close_wanted)
		up(s, RVA_UP_STOP, 0);
	rva_stream_pump_in(s);
	rva_stream_pump_out(s);
}

/* By the peer, or by the engine because nobody read: then the bytes are given up when memory is short. */
static void
on_rst(struct reeve_stream *s, const struct rv_event *ev)
{
	int rc = ev->flags & RV_EVF_REFUSED ? REEVE_EREFUSED : REEVE_ERESET;

	if (ev->kind == RV_EV_SLOW) {
		rc = REEVE_ELIMIT;
		if (ev->n != 0 && s->in_rc == RVA_RC_OPEN)
			drop_in(s);
	} else {
		rvq_cell32_put(&s->peer_code, ev->n);
	}
	rva_nego_over(s, rc);
	s->shut = true;
	end_out(s, rc);
	fail_sent(s, rc);
	end_in(s, rc);
}

static void
stream_free(struct rva_actor *a)
{
	struct reeve_stream *s = rva_container(a, struct reeve_stream, actor);
	struct reeve_conn *c = s->conn;
	struct rva_port *p = rva_port_peek(s);

	rv_chain_clear(&s->in);
	if (p != NULL)
		rva_port_free(p, c->arena);
	rva_nego_free(s);
	rv_free(c->arena, s->waiting, sizeof(*s->waiting));
	rv_free(c->arena, s, sizeof(*s));
	rva_conn_unref(c);
}

static void
on_gone(struct reeve_stream *s, const struct rv_event *ev)
{
	int rc = s->conn->reason.rc != 0 ? s->conn->reason.rc : REEVE_ECLOSED;

	s->gone = s->shut = true;
	unfreshen(s);
	rva_conn_absorb(s->conn); /* nothing in the ring may name a record that is freed */
	if (s->waiting != NULL)
		rva_timer_clear(&s->conn->w->wheel, &s->waiting->timer);
	rva_nego_over(s, rc);
	if (ev->flags & RV_EVF_ENDED) {
		end_out(s, rc);
		end_in(s, rc);
	} else if (s->in_rc ==
	    RVA_RC_OPEN) { /* neither end did that: the engine had no memory for its bytes */
		end_out(s, REEVE_ENOMEM);
		end_in(s, REEVE_ENOMEM);
	}
	fail_sent(s, rc);
	if (s->refused)
		stream_free(&s->actor);
	else if (s->dropped)
		rva_ring(&s->actor, &s->bell, RVA_S_FREE);
}

void
rva_stream_on(struct reeve_stream *s, const struct rv_event *ev)
{
	switch (ev->kind) {
	case RV_EV_DATA:
		take_data(s, ev);
		freshen(s);
		break;
	case RV_EV_FIN:
		rva_nego_end(s);
		end_in(s, 0);
		rva_stream_settle(s);
		break;
	case RV_EV_RST:
	case RV_EV_SLOW:
		on_rst(s, ev);
		break;
	case RV_EV_TAKEN:
		on_taken(s, ev->n, ev->flags & RV_EVF_DRY);
		break;
	case RV_EV_CLOSING:
		tell_tap(s, RVA_TAP_CLOSING, 0);
		(void)answer(&s->wr_rc, REEVE_ECLOSED);
		wake_all(s);
		s->shut_wanted = true;
		rva_stream_pump_out(s);
		break;
	case RV_EV_GONE:
		on_gone(s, ev);
		break;
	default:
		break;
	}
}

/* --- mailbox --- */

static void
on_drop(struct reeve_stream *s)
{
	s->dropped = true;
	if (!s->closed) {
		stop(s);
		rva_stream_pump_out(s); /* no operation is waiting: they hold handles */
		s->closed = s->shut = true;
		up(s, RVA_UP_DROP, 0);
	}
	rva_ctl_unkeep(&s->conn->ctl);
	if (s->gone)
		rva_ring(&s->actor, &s->bell, RVA_S_FREE);
}

static void
on_bell(struct reeve_stream *s, uint32_t bits)
{
	if (bits & RVA_S_FREE) {
		s->actor.dead = true;
		return;
	}
	if (bits & (RVA_S_READ | RVA_S_PORT))
		rva_stream_pump_in(s);
	if (bits & RVA_S_WRITE)
		rva_stream_pump_out(s);
	if (bits & RVA_S_READ) {
		rva_nego_flush(s);
		rva_stream_settle(s);
	}
	if (bits & RVA_S_TIME)
		rva_stream_retime(s);
	if (bits & RVA_S_RESET)
		on_reset_by_us(s);
	if ((bits & RVA_S_STOP) && !s->stopped) {
		stop(s);
		if (!rva_nego_mute(s))
			up(s, RVA_UP_STOP, 0);
	}
	if (bits & RVA_S_SHUT)
		s->shut_wanted = true;
	if (bits & RVA_S_CLOSE) {
		stop(s);
		s->close_wanted = true;
	}
	if (bits & (RVA_S_SHUT | RVA_S_CLOSE))
		rva_stream_pump_out(s);
	if (bits & RVA_S_DROP)
		on_drop(s);
}

static void
stream_on(struct rva_actor *a, struct rvq_node *n)
{
	struct reeve_stream *s = rva_container(a, struct reeve_stream, actor);
	struct rva_msg *m = (struct rva_msg *)(void *)n;

	if (n == &s->bell.node)
		on_bell(s, rvq_bell_answer(&s->bell));
	else if (m->kind == RVA_MSG_READ)
		rva_stream_read_op(s, rva_op_of_msg(n));
	else if (m->kind == RVA_MSG_WRITE || m->kind == RVA_MSG_WRITE_SENT)
		rva_stream_write_op(s, rva_op_of_msg(n));
	else if (m->kind == RVA_MSG_REFUSED)
		rva_stream_refused_op(s, rva_op_of_msg(n));
	else if (m->kind == RVA_MSG_NEGOTIATE)
		rva_nego_begin(s, rva_op_of_msg(n));
	else
		rva_stream_cancel_op(s, rva_op_of_cancel(n));
}

static const struct rva_actor_ops stream_ops = {stream_on, stream_free, true};

void
rva_stream_begin(struct reeve_stream *s, struct reeve_conn *c, bool inbound)
{
	rva_actor_init(&s->actor, c->w, &stream_ops);
	rvq_bell_init(&s->bell);
	s->conn = c;
	s->inbound = inbound;
	s->in_rc = RVA_RC_OPEN;
	rvq_cell32_put(&s->rd_rc, (uint32_t)RVA_RC_OPEN);
	rvq_cell32_put(&s->wr_rc, (uint32_t)RVA_RC_OPEN);
	rva_conn_ref(c);
}

void
rva_stream_hand_out(struct reeve_stream *s)
{
	rvq_ref_init(&s->handles, 1);
	rva_ctl_keep(&s->conn->ctl);
}

void
rva_stream_refuse(struct reeve_stream *s)
{
	s->dropped = s->refused = true;
	if (!s->closed) {
		s->closed = s->stopped = true;
		rv_chain_clear(&s->in);
		/* An inbound stream is reset; one of ours was never SYNed, and dropping it sends nothing. */
		up(s, s->inbound ? RVA_UP_RESET : RVA_UP_DROP, 0);
	}
	/* At once and not in a turn: a peer may make more of these than the worker has turns. */
	if (s->gone)
		stream_free(&s->actor);
}
