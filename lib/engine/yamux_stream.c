/* yamux_stream.c - the yamux engine: the lists that streams are in, and their lives from the
 * first frame to the last account. See yamux_session.h. */
#include <config.h>

#include "lib/engine/yamux_session.h"
#include "lib/check.h"
#include "lib/config.h"

/* --- lists */

void
rv_yamux_note(struct rv_yamux *y, struct rv_stream *st)
{
	if (st->flags & RV_ST_IN_NOTIFY)
		return;
	st->flags |= RV_ST_IN_NOTIFY;
	st->notify_next = NULL;
	if (y->notify.tail == NULL)
		y->notify.head = st;
	else
		y->notify.tail->notify_next = st;
	y->notify.tail = st;
}

void
rv_yamux_ctl_add(struct rv_yamux *y, struct rv_stream *st)
{
	if (st->flags & RV_ST_IN_CTL)
		return;
	st->flags |= RV_ST_IN_CTL;
	st->ctl_next = NULL;
	if (y->ctl.tail == NULL)
		y->ctl.head = st;
	else
		y->ctl.tail->ctl_next = st;
	y->ctl.tail = st;
}

void
rv_yamux_ready_add(struct rv_yamux *y, struct rv_stream *st)
{
	if (st->flags & RV_ST_IN_READY)
		return;
	st->flags |= RV_ST_IN_READY;
	st->ready_next = NULL;
	if (y->ready.tail == NULL)
		y->ready.head = st;
	else
		y->ready.tail->ready_next = st;
	y->ready.tail = st;
}

void
rv_yamux_wait_add(struct rv_ylist *l, struct rv_stream *st)
{
	st->flags |= RV_ST_WAITING;
	st->wait_next = NULL;
	st->wait_prev = l->tail;
	if (l->tail == NULL)
		l->head = st;
	else
		l->tail->wait_next = st;
	l->tail = st;
}

void
rv_yamux_wait_del(struct rv_yamux *y, struct rv_stream *st)
{
	/* Closed streams linger, others are withheld credit. */
	struct rv_ylist *l = st->flags & RV_ST_CLOSED ? &y->lingering : &y->withheld;

	if (!(st->flags & RV_ST_WAITING))
		return;
	st->flags &= ~RV_ST_WAITING;
	if (st->wait_prev == NULL)
		l->head = st->wait_next;
	else
		st->wait_prev->wait_next = st->wait_next;
	if (st->wait_next == NULL)
		l->tail = st->wait_prev;
	else
		st->wait_next->wait_prev = st->wait_prev;
}

/* --- lives */

struct rv_stream *
rv_yamux_new(struct rv_yamux *y, uint32_t id, uint32_t flags)
{
	struct rv_engine *e = &y->e;
	struct rv_stream *st;

	if (rv_idtab_reserve(&y->tab, e->cfg.arena) != 0)
		return NULL;
	st = rv_zalloc(e->cfg.arena, e->cfg.record_size);
	if (st == NULL)
		return NULL;
	st->id = id;
	st->flags = flags | RV_ST_TABLED;
	rv_window_init(st, y->now);
	rv_chain_init(&st->out);
	rv_idtab_put(&y->tab, id, st);
	if (flags & RV_ST_OUTBOUND) {
		y->nout++;
		e->nunacked++;
		rvq_counter_add(&e->stats.opened, 1);
	} else {
		y->nin++;
		e->nunaccepted++;
		rvq_counter_add(&e->stats.accepted, 1);
	}
	rvq_counter_set(&e->stats.streams_open, ++e->nstreams);
	return st;
}

void
rv_yamux_answered(struct rv_yamux *y, struct rv_stream *st)
{
	if (!(st->flags & RV_ST_UNACKED))
		return;
	st->flags &= ~RV_ST_UNACKED;
	y->e.nunacked--;
	if (y->slot_wanted) {
		y->slot_wanted = false;
		y->slot_due = true;
	}
}

void
rv_yamux_accepted(struct rv_yamux *y, struct rv_stream *st)
{
	if (!(st->flags & RV_ST_UNACCEPTED))
		return;
	st->flags &= ~RV_ST_UNACCEPTED;
	y->e.nunaccepted--;
}

void
rv_yamux_forget_unread(struct rv_yamux *y, struct rv_stream *st)
{
	struct rvq_counter *c = &y->e.stats.unread;

	rvq_counter_set(c, rvq_counter_get(c) - st->unread);
	st->unread = 0;
}

void
rv_yamux_drop_queue(struct rv_yamux *y, struct rv_stream *st)
{
	reeve_buf_t *head = NULL;

	if (st->out.bytes == 0)
		return;
	st->taken += (uint32_t)st->out.bytes;
	/* A gather still refers to the first buffer: it goes when the last account is settled. */
	if ((st->flags & RV_ST_PART) && st->inflight > 0)
		head = rv_chain_pop(&st->out);
	rv_chain_clear(&st->out);
	if (head != NULL)
		rv_chain_unpop(&st->out, head);
	rv_yamux_note(y, st);
}

void
rv_yamux_end_stream(struct rv_yamux *y, struct rv_stream *st)
{
	struct rv_engine *e = &y->e;

	REEVE_ASSERT(st->flags & RV_ST_TABLED);
	rv_yamux_answered(y, st);
	rv_yamux_accepted(y, st);
	rv_yamux_wait_del(y, st);
	st->flags &= ~(
	    RV_ST_TABLED | RV_ST_SYN | RV_ST_NEED_ACK | RV_ST_ACK | RV_ST_RST | RV_ST_DRY);
	st->owed = 0;
	rv_window_release(&y->win, st);
	if (y->last == st)
		y->last = NULL;
	if (y->body_st == st)
		y->body_st = NULL;
	if (!e->ended)
		rv_idtab_del(&y->tab, e->cfg.arena, st->id);
	if (st->flags & RV_ST_OUTBOUND)
		y->nout--;
	else
		y->nin--;
	y->undead++;
	rvq_counter_set(&e->stats.streams_open, --e->nstreams);
	rv_yamux_note(y, st);
}

void
rv_yamux_check_end(struct rv_yamux *y, struct rv_stream *st)
{
	if (st->tx >= RV_TX_FIN && st->rx >= RV_RX_FIN && !(st->flags & RV_ST_RST) &&
	    (st->flags & RV_ST_TABLED))
		rv_yamux_end_stream(y, st);
}

void
rv_engine_settle(struct rv_engine *e, struct rv_stream *st, uint32_t n)
{
	st->taken += n;
	/* What drop_queue had to leave, and nobody refers to any more. */
	if (st->tx == RV_TX_RESET && st->inflight == 0 && st->out.bytes > 0)
		rv_chain_clear(&st->out);
	rv_yamux_note((struct rv_yamux *)e, st);
}
