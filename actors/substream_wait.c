/* substream_wait.c - operations of a substream that wait: for bytes, for budget, until a deadline.
 *
 * Owner: the connection's worker.  At most one timer a stream, set while something waits. */
#include <config.h>

#include "actors/substream.h"

#include "actors/negotiate.h"
#include "actors/port.h"
#include "lib/alloc.h"
#include "lib/check.h"

/* Answer the operations whose own deadline or whose stream's has come; returns when the next one has to be. */
static uint64_t
expire(struct rva_oplist *l, uint64_t stream_deadline, uint64_t now)
{
	uint64_t next;

	if (stream_deadline != 0 && stream_deadline <= now) {
		rva_oplist_fail(l, REEVE_ETIMEDOUT);
		return UINT64_MAX;
	}
	next = rva_oplist_expire(l, now);
	return l->head != NULL && stream_deadline != 0 && stream_deadline < next ? stream_deadline
										 : next;
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct rva_waiting *w = rva_container(t, struct rva_waiting, timer);
	struct reeve_stream *s = w->s;
	uint64_t rd = rvq_cell64_get(&s->rd_deadline), wr = rvq_cell64_get(&s->wr_deadline), a, b,
		 c;
	bool stays = false;

	for (reeve_op_t *op = w->writes.head; op != NULL; op = rva_op(op)->next) {
		if (rva_op(op)->deadline <= now || (wr != 0 && wr <= now)) {
			rv_buf_unref(rva_op(op)->buf);
			rva_op(op)->buf = NULL;
		}
	}
	for (reeve_op_t *op = w->reads.head; op != NULL; op = rva_op(op)->next)
		stays = stays || (rva_op(op)->deadline > now && (rd == 0 || rd > now));
	rvq_cell32_put(&s->async_reads, stays);
	a = expire(&w->reads, rd, now);
	b = expire(&w->writes, wr, now);
	c = rva_oplist_expire(&w->sent, now);
	b = b < c ? b : c;
	rva_timer_set(&s->conn->w->wheel, t, a < b ? a : b);
	rva_stream_pump_out(s); /* what waited for those */
}

static struct rva_waiting *
waiting(struct reeve_stream *s)
{
	struct rva_waiting *w = s->waiting;

	if (w != NULL)
		return w;
	w = rv_zalloc(s->conn->arena, sizeof(*w));
	if (w == NULL)
		return NULL;
	rva_oplist_init(&w->reads);
	rva_oplist_init(&w->writes);
	rva_oplist_init(&w->sent);
	w->timer.fn = on_timer;
	w->s = s;
	s->waiting = w;
	return w;
}

/* Look at op again at the earlier of its own deadline and the stream's (which may be moved meanwhile). */
static void
wait_until(struct reeve_stream *s, reeve_op_t *op, uint64_t stream_deadline)
{
	uint64_t at = rva_op(op)->deadline;

	if (stream_deadline != 0 && stream_deadline < at)
		at = stream_deadline;
	if (at == UINT64_MAX || s->gone)
		return;
	if (!rva_timer_armed(&s->waiting->timer) || at < s->waiting->timer.when)
		rva_timer_set(&s->conn->w->wheel, &s->waiting->timer, at);
}

void
rva_stream_read_op(struct reeve_stream *s, reeve_op_t *op)
{
	struct rva_waiting *w = waiting(s);
	struct rva_port *p = rva_port_peek(s);

	s->used = true;
	if (rvq_cell32_get(&s->app) & (RVA_APP_STOP | RVA_APP_CLOSE | RVA_APP_RESET)) {
		(void)rva_op_answer(op, REEVE_ECLOSED);
		return;
	}
	if (w == NULL || (p != NULL && !rva_port_pull_back(s, p))) {
		(void)rva_op_answer(op, w == NULL ? REEVE_ENOMEM : rva_port_busy(s, p));
		return;
	}
	rva_oplist_push(&w->reads, op);
	if (s->in.head == NULL || rva_nego_talk(s) != NULL)
		wait_until(s, op, rvq_cell64_get(&s->rd_deadline));
	rva_nego_flush(s);
	rva_stream_pump_in(s);
	rva_stream_settle(s);
}

void
rva_stream_write_op(struct reeve_stream *s, reeve_op_t *op)
{
	struct rva_waiting *w = waiting(s);

	s->used = true;
	(void)rvq_cell32_add(&s->posted, UINT32_MAX);
	if (w == NULL || s->shut) {
		rv_buf_unref(rva_op(op)->buf);
		rva_op(op)->buf = NULL;
		(void)rva_op_answer(op, w == NULL ? REEVE_ENOMEM : rva_rc(&s->wr_rc));
	} else {
		if (w->writes.head != NULL || rva_stream_budget(s) == 0 || rva_nego_mute(s) ||
		    rva_op(op)->msg.kind == RVA_MSG_WRITE_SENT)
			wait_until(s, op, rvq_cell64_get(&s->wr_deadline));
		rva_oplist_push(&w->writes, op);
	}
	rva_stream_pump_out(s);
}

/* Its answer is known, and comes behind those of the writes that wait. */
void
rva_stream_refused_op(struct reeve_stream *s, reeve_op_t *op)
{
	if (s->waiting != NULL && s->waiting->writes.head != NULL)
		rva_oplist_push(&s->waiting->writes, op);
	else
		(void)rva_op_answer(op, op->res);
}

void
rva_stream_cancel_op(struct reeve_stream *s, reeve_op_t *op)
{
	if (s->waiting != NULL && !rva_oplist_remove(&s->waiting->reads, op) &&
	    !rva_oplist_remove(&s->waiting->writes, op))
		(void)rva_oplist_remove(&s->waiting->sent, op);
	rvq_cell32_put(&s->async_reads, s->waiting != NULL && s->waiting->reads.head != NULL);
	if ((rva_op(op)->msg.kind == RVA_MSG_WRITE || rva_op(op)->msg.kind == RVA_MSG_WRITE_SENT) &&
	    rva_op(op)->buf != NULL)
		rv_buf_unref(rva_op(op)->buf);
	if (rva_op(op)->msg.kind == RVA_MSG_NEGOTIATE)
		rva_nego_cancel(s, op);
	rva_op_finish(op, REEVE_ECANCELED);
	rva_stream_pump_out(s); /* what waited for it */
}

/* A deadline was set: operations that wait get it too. */
void
rva_stream_retime(struct reeve_stream *s)
{
	struct rva_waiting *w = s->waiting;

	if (w == NULL)
		return;
	for (reeve_op_t *op = w->reads.head; op != NULL; op = rva_op(op)->next)
		wait_until(s, op, rvq_cell64_get(&s->rd_deadline));
	for (reeve_op_t *op = w->writes.head; op != NULL; op = rva_op(op)->next)
		wait_until(s, op, rvq_cell64_get(&s->wr_deadline));
}

reeve_buf_t *
rva_stream_next(struct reeve_stream *s)
{
	reeve_buf_t *b = rv_chain_pop(&s->in);

	if (b != NULL)
		s->consumed += b->len;
	return b;
}
