/* mux_stream.c - what engines have in common: the lists that streams are in, and their lives from the
 * first frame to the last account.  See mux.h. */
#include <config.h>

#include "lib/engine/mux.h"

#include <string.h>

/* --- lists */

void
rv_mux_note(struct rv_mux *m, struct rv_stream *st)
{
	if (st->flags & RV_ST_IN_NOTIFY)
		return;
	st->flags |= RV_ST_IN_NOTIFY;
	st->notify_next = NULL;
	if (m->notify.tail == NULL)
		m->notify.head = st;
	else
		m->notify.tail->notify_next = st;
	m->notify.tail = st;
}

void
rv_mux_ctl_add(struct rv_mux *m, struct rv_stream *st)
{
	if (st->flags & RV_ST_IN_CTL)
		return;
	st->flags |= RV_ST_IN_CTL;
	st->ctl_next = NULL;
	if (m->ctl.tail == NULL)
		m->ctl.head = st;
	else
		m->ctl.tail->ctl_next = st;
	m->ctl.tail = st;
}

void
rv_mux_ready_add(struct rv_mux *m, struct rv_stream *st)
{
	if (st->flags & RV_ST_IN_READY)
		return;
	st->flags |= RV_ST_IN_READY;
	st->ready_next = NULL;
	if (m->ready.tail == NULL)
		m->ready.head = st;
	else
		m->ready.tail->ready_next = st;
	m->ready.tail = st;
}

void
rv_mux_wait_add(struct rv_list *l, struct rv_stream *st)
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
rv_mux_wait_del(struct rv_mux *m, struct rv_stream *st)
{
	/* Closed streams linger, others are withheld credit. */
	struct rv_list *l = st->flags & RV_ST_CLOSED ? &m->lingering : &m->withheld;

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

int
rv_mux_init(struct rv_mux *m, const struct rv_engine_cfg *cfg, const struct rv_mux_ops *proto)
{
	REEVE_REQUIRE(cfg->role == REEVE_DIALER || cfg->role == REEVE_LISTENER, REEVE_EINVAL);
	REEVE_REQUIRE(cfg->record_size >= sizeof(struct rv_stream), REEVE_EINVAL);
	REEVE_REQUIRE(
	    cfg->arena != NULL && cfg->sink.emit != NULL && cfg->sink.room != NULL, REEVE_EINVAL);
	m->proto = proto;
	m->e.cfg = *cfg;
	m->e.reason.size = sizeof(m->e.reason);
	m->e.reason.id = "";
	m->now = cfg->now;
	rv_idtab_init(&m->tab, cfg->now);
	rv_refusals_init(&m->refusals);
	rv_bucket_init(&m->churn, cfg->user.churn_burst, cfg->user.churn_per_s, cfg->now);
	return 0;
}

void
rv_mux_fini(struct rv_mux *m)
{
	rv_idtab_fini(&m->tab, m->e.cfg.arena);
	rv_refusals_fini(&m->refusals, m->e.cfg.arena);
}

int
rv_mux_budget(const struct rv_mux *m)
{
	return m->e.cfg.budget == NULL ? 0 : rv_budget_level(m->e.cfg.budget);
}

struct rv_stream *
rv_mux_new(struct rv_mux *m, uint64_t id, uint32_t flags)
{
	struct rv_engine *e = &m->e;
	struct rv_stream *st;

	if (rv_idtab_reserve(&m->tab, e->cfg.arena) != 0)
		return NULL;
	st = rv_zalloc(e->cfg.arena, e->cfg.record_size);
	if (st == NULL)
		return NULL;
	st->id = id;
	st->flags = flags | RV_ST_TABLED;
	rv_chain_init(&st->out);
	m->proto->begin(m, st);
	rv_idtab_put(&m->tab, id, st);
	if (flags & RV_ST_OUTBOUND) {
		m->nout++;
		e->nunacked += (flags & RV_ST_UNACKED) != 0;
		rvq_counter_add(&e->stats.opened, 1);
	} else {
		m->nin++;
		e->nunaccepted++;
		rvq_counter_add(&e->stats.accepted, 1);
	}
	rvq_counter_set(&e->stats.streams_open, ++e->nstreams);
	return st;
}

void
rv_mux_answered(struct rv_mux *m, struct rv_stream *st)
{
	if (!(st->flags & RV_ST_UNACKED))
		return;
	st->flags &= ~RV_ST_UNACKED;
	m->e.nunacked--;
	if (m->slot_wanted) {
		m->slot_wanted = false;
		m->slot_due = true;
	}
}

void
rv_mux_accepted(struct rv_mux *m, struct rv_stream *st)
{
	if (!(st->flags & RV_ST_UNACCEPTED))
		return;
	st->flags &= ~RV_ST_UNACCEPTED;
	m->e.nunaccepted--;
}

void
rv_mux_forget_unread(struct rv_mux *m, struct rv_stream *st)
{
	struct rvq_counter *c = &m->e.stats.unread;

	rvq_counter_set(c, rvq_counter_get(c) - st->unread);
	st->unread = 0;
}

void
rv_mux_drop_queue(struct rv_mux *m, struct rv_stream *st)
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
	rv_mux_note(m, st);
}

void
rv_mux_end_stream(struct rv_mux *m, struct rv_stream *st)
{
	struct rv_engine *e = &m->e;

	REEVE_ASSERT(st->flags & RV_ST_TABLED);
	rv_mux_answered(m, st);
	rv_mux_accepted(m, st);
	rv_mux_wait_del(m, st);
	st->flags &= ~(
	    RV_ST_TABLED | RV_ST_SYN | RV_ST_NEED_ACK | RV_ST_ACK | RV_ST_RST | RV_ST_DRY);
	st->owed = 0;
	m->proto->over(m, st);
	if (m->last == st)
		m->last = NULL;
	if (m->body_st == st)
		m->body_st = NULL;
	if (!e->ended)
		rv_idtab_del(&m->tab, e->cfg.arena, st->id);
	if (st->flags & RV_ST_OUTBOUND)
		m->nout--;
	else
		m->nin--;
	m->undead++;
	rvq_counter_set(&e->stats.streams_open, --e->nstreams);
	rv_mux_note(m, st);
}

void
rv_mux_check_end(struct rv_mux *m, struct rv_stream *st)
{
	if (st->tx >= RV_TX_FIN && st->rx >= RV_RX_FIN && !(st->flags & RV_ST_RST) &&
	    (st->flags & RV_ST_TABLED))
		rv_mux_end_stream(m, st);
}

void
rv_engine_settle(struct rv_engine *e, struct rv_stream *st, uint32_t n)
{
	st->taken += n;
	/* What drop_queue had to leave, and nobody refers to any more. */
	if (st->tx == RV_TX_RESET && st->inflight == 0 && st->out.bytes > 0)
		rv_chain_clear(&st->out);
	rv_mux_note(rv_mux_of(e), st);
}
