/* mux_rx.c - what engines have in common: events of streams, bodies as they come.  See mux.h. */
#include <config.h>

#include "lib/engine/mux.h"

static void
emit(struct rv_mux *m, const struct rv_event *ev)
{
	if (m->room > 0)
		m->room--;
	m->e.cfg.sink.emit(m->e.cfg.sink.ctx, ev);
}

void
rv_mux_emit(
    struct rv_mux *m, struct rv_stream *st, enum rv_ev_kind kind, uint32_t n, unsigned flags)
{
	struct rv_event ev = {.st = st, .n = n, .kind = (uint16_t)kind, .flags = (uint16_t)flags};

	emit(m, &ev);
}

static int
refuse(struct rv_mux *m, uint64_t id)
{
	int rc = rv_refusals_push(&m->refusals, m->e.cfg.arena, id);

	rvq_counter_add(&m->e.stats.refused, 1);
	if (rc == 0) {
		m->e.pressed = rv_refusals_count(&m->refusals) == RV_REFUSALS_MAX / 2;
		return 0;
	}
	return m->proto->fail(m, rc == REEVE_ELIMIT ? RV_WHY_REFUSALS : RV_WHY_REFUSE_MEM);
}

int
rv_mux_rx_open(struct rv_mux *m, uint64_t id, uint32_t flags, struct rv_stream **out)
{
	struct rv_engine *e = &m->e;
	const reeve_cfg_t *c = &e->cfg.user;

	if (e->refusing || m->nin >= c->max_in || m->undead >= c->max_in ||
	    e->nunaccepted >= c->accept_backlog || rv_mux_budget(m) >= 2)
		return refuse(m, id);
	*out = rv_mux_new(m, id, flags);
	if (*out == NULL)
		return refuse(m, id);
	rv_mux_emit(m, *out, RV_EV_OPEN, 0, 0);
	return 0;
}

int
rv_mux_rx_rst(struct rv_mux *m, struct rv_stream *st, uint32_t code)
{
	unsigned flags = st->flags & RV_ST_UNACKED ? RV_EVF_REFUSED : 0;
	bool early = (st->flags & RV_ST_UNACCEPTED) != 0;

	rvq_counter_add(&m->e.stats.resets_in, 1);
	if (rv_tx_step(st, RV_TXE_RST) == RV_CLEAR)
		rv_mux_drop_queue(m, st);
	if (rv_rx_step(st, RV_RXE_RST) == RV_TELL && !(st->flags & RV_ST_CLOSED))
		rv_mux_emit(m, st, RV_EV_RST, code, flags);
	if (st->flags & RV_ST_TABLED)
		rv_mux_end_stream(m, st);
	if (early && !rv_bucket_take(&m->churn, m->now))
		return m->proto->fail(m, RV_WHY_CHURN);
	return 0;
}

void
rv_mux_rx_fin(struct rv_mux *m, struct rv_stream *st)
{
	if (rv_rx_step(st, RV_RXE_FIN) == RV_TELL && !(st->flags & RV_ST_CLOSED))
		rv_mux_emit(m, st, RV_EV_FIN, 0, 0);
	/* Credit is of no use to a peer that sends no more; a closed stream goes on lingering
	 * for our own bytes. */
	if (!(st->flags & RV_ST_CLOSED))
		rv_mux_wait_del(m, st);
	st->owed = 0;
	rv_mux_check_end(m, st);
}

/* Part of a body: n bytes at off. */
void
rv_mux_rx_body(struct rv_mux *m, struct rv_slab *slab, uint32_t off, uint32_t n)
{
	struct rv_stream *st = m->body_st;
	struct rv_engine_stats *s = &m->e.stats;
	struct rv_event ev;

	rvq_counter_add(&s->bytes_in, n);
	m->body_left -= n;
	if (st == NULL)
		return;
	switch (rv_rx_step(st, RV_RXE_DATA)) {
	case RV_DELIVER:
		st->unread += n;
		rvq_counter_add(&s->unread, n);
		ev = (struct rv_event){.st = st,
		    .slab = slab,
		    .off = off,
		    .len = n,
		    .n = m->body_len,
		    .kind = RV_EV_DATA};
		emit(m, &ev);
		break;
	case RV_OWE_RST:
		st->flags |= RV_ST_RST;
		rv_mux_ctl_add(m, st);
		break;
	default:
		break;
	}
	if (m->body_left > 0)
		return;
	/* Asked again: the emit may have ended the stream. */
	st = m->body_st;
	m->body_st = NULL;
	if (st != NULL && m->body_fin)
		rv_mux_rx_fin(m, st);
}

/* The first of the list has nothing pending any more: off the list, and gone if it is time. */
static void
notify_done(struct rv_mux *m, struct rv_stream *st)
{
	m->notify.head = st->notify_next;
	if (m->notify.head == NULL)
		m->notify.tail = NULL;
	st->flags &= ~RV_ST_IN_NOTIFY;
	if ((st->flags & (RV_ST_TABLED | RV_ST_IN_READY | RV_ST_IN_CTL)) != 0 || st->inflight > 0)
		return;
	REEVE_ASSERT(!(st->flags & (RV_ST_GONE | RV_ST_WAITING)) && st->out.bytes == 0);
	st->flags |= RV_ST_GONE;
	rv_mux_forget_unread(m, st);
	m->undead--;
	rv_mux_emit(m, st, RV_EV_GONE, 0, m->e.ended ? RV_EVF_ENDED : 0);
}

bool
rv_mux_notify(struct rv_mux *m)
{
	struct rv_stream *st;
	uint32_t n;

	while ((st = m->notify.head) != NULL) {
		if (!rv_mux_room(m, 1))
			return false;
		if (m->e.ended)
			st->taken = st->events = 0;
		if (st->taken > 0) {
			n = st->taken;
			st->taken = 0;
			rv_mux_emit(m, st, RV_EV_TAKEN, n, st->send_credit == 0 ? RV_EVF_DRY : 0);
		} else if (st->events & 1u << RV_EV_CLOSING) {
			st->events &= (uint16_t) ~(1u << RV_EV_CLOSING);
			rv_mux_emit(m, st, RV_EV_CLOSING, 0, 0);
		} else if (st->events & 1u << RV_EV_SLOW) {
			st->events = 0;
			rv_mux_emit(m, st, RV_EV_SLOW, rv_mux_budget(m) >= 1, 0);
		} else {
			notify_done(m, st);
		}
	}
	return true;
}
