/* mux_request.c - what engines have in common: requests of the application.  See mux.h and engine.h. */
#include <config.h>

#include "lib/engine/mux.h"

#define COALESCE_BELOW 1024u /* bytes of a buffer that is copied behind others that wait */
#define RST_INTERNAL   2u    /* code of a reset that is our own fault: no memory */

void
rv_mux_accept(struct rv_engine *e, struct rv_stream *st)
{
	struct rv_mux *m = rv_mux_of(e);

	rv_mux_accepted(m, st);
	if (!(st->flags & RV_ST_NEED_ACK) || (e->cfg.user.flags & REEVE_CFG_LAZY_ACK))
		return;
	st->flags |= RV_ST_ACK;
	rv_mux_ctl_add(m, st);
}

/* Small buffers that have to wait are copied together and let go: a block and a descriptor each
 * cost more than the copy, and frames are staged from fewer pieces. */
static int
queue_bytes(struct rv_engine *e, struct rv_stream *st, reeve_buf_t *b)
{
	struct rv_pool *p = rv_pool_current();
	int rc;

	if (b->len >= COALESCE_BELOW || st->out.tail == NULL || p == NULL)
		return rv_chain_push(&st->out, b);
	rc = rv_chain_copy(&st->out, p, NULL, rv_buf_data(b), b->len);
	rvq_counter_add(&e->stats.copied_out, b->len);
	rv_buf_unref(b);
	return rc;
}

void
rv_mux_send(struct rv_engine *e, struct rv_stream *st, reeve_buf_t *b)
{
	struct rv_mux *m = rv_mux_of(e);
	uint32_t n = b->len;

	if (n == 0 || rv_tx_step(st, RV_TXE_SEND) != RV_QUEUE || e->ended) {
		rv_buf_unref(b);
		if (n > 0 && !(st->flags & RV_ST_GONE))
			rv_engine_settle(e, st, n);
		return;
	}
	if (queue_bytes(e, st, b) != 0) {
		/* Bytes are missing: nothing behind them may be taken for the stream's. */
		rv_engine_settle(e, st, n);
		e->ops->reset(e, st, RST_INTERNAL);
		return;
	}
	if (st->send_credit > 0) {
		rv_mux_ready_add(m, st);
	} else if (!(st->flags & RV_ST_STALLED)) {
		st->flags |= RV_ST_STALLED;
		rvq_counter_add(&e->stats.stalls_window, 1);
	}
}

void
rv_mux_shut(struct rv_engine *e, struct rv_stream *st)
{
	if (rv_tx_step(st, RV_TXE_SHUT) == RV_OWE_FIN && st->out.bytes == 0)
		rv_mux_ctl_add(rv_mux_of(e), st);
}

void
rv_mux_stop(struct rv_engine *e, struct rv_stream *st)
{
	struct rv_mux *m = rv_mux_of(e);

	(void)rv_rx_step(st, RV_RXE_STOP);
	if (st->rx != RV_RX_STOPPED)
		return;
	rv_mux_wait_del(m, st);
	st->owed = 0;
}

void
rv_mux_reset(struct rv_engine *e, struct rv_stream *st, uint32_t code)
{
	struct rv_mux *m = rv_mux_of(e);

	if (!(st->flags & RV_ST_TABLED))
		return;
	if (rv_tx_step(st, RV_TXE_RESET) == RV_CLEAR)
		rv_mux_drop_queue(m, st);
	(void)rv_rx_step(st, RV_RXE_RESET);
	rv_mux_accepted(m, st);
	rv_mux_wait_del(m, st);
	st->owed = 0;
	if (st->flags & RV_ST_SYN) {
		rv_mux_end_stream(m, st); /* the peer has never heard of it */
		return;
	}
	st->flags |= RV_ST_RST;
	st->rst_code = code;
	rv_mux_ctl_add(m, st);
}

/* Nobody reads or writes any more: no events, and a timer so that a peer that never ends does
 * not keep the record. */
static void
let_go(struct rv_mux *m, struct rv_stream *st)
{
	uint32_t ms = m->e.cfg.user.linger_ms;

	rv_mux_wait_del(m, st);
	st->flags |= RV_ST_CLOSED;
	st->events = 0;
	st->owed = 0;
	rv_mux_forget_unread(m, st);
	rv_mux_accepted(m, st);
	(void)rv_rx_step(st, RV_RXE_CLOSE);
	if (!(st->flags & RV_ST_TABLED) || ms == REEVE_OFF)
		return;
	st->updated = m->now + (uint64_t)ms * RV_MS_US;
	rv_mux_wait_add(&m->lingering, st);
}

void
rv_mux_close(struct rv_engine *e, struct rv_stream *st, bool unread, uint64_t now)
{
	struct rv_mux *m = rv_mux_of(e);

	m->now = now;
	if (st->flags & RV_ST_CLOSED)
		return;
	rv_mux_shut(e, st);
	let_go(m, st);
	if (unread && st->rx == RV_RX_LINGER && (st->flags & RV_ST_TABLED)) {
		st->flags |= RV_ST_RST;
		rv_mux_ctl_add(m, st);
	}
}

void
rv_mux_drop(struct rv_engine *e, struct rv_stream *st)
{
	struct rv_mux *m = rv_mux_of(e);

	if (st->flags & RV_ST_CLOSED)
		return;
	let_go(m, st);
	if (!(st->flags & RV_ST_TABLED))
		return;
	if ((st->flags & RV_ST_SYN) && st->out.bytes == 0) {
		st->tx = RV_TX_RESET;
		st->rx = RV_RX_RESET;
		rv_mux_end_stream(m, st); /* the peer has never heard of it */
	} else if (st->rx == RV_RX_FIN) {
		rv_mux_shut(e, st);
	} else if (rv_tx_step(st, RV_TXE_DROP) == RV_OWE_RST) {
		st->flags |= RV_ST_RST;
		rv_mux_ctl_add(m, st);
	}
}

void
rv_mux_closing(struct rv_engine *e)
{
	struct rv_mux *m = rv_mux_of(e);
	struct rv_stream *st;

	e->refusing = true;
	for (uint32_t i = 0; i < m->tab.cap; i++) {
		st = m->tab.v[i].st;
		if (st == NULL || (st->flags & RV_ST_CLOSED))
			continue;
		st->events |= 1u << RV_EV_CLOSING;
		rv_mux_note(m, st);
	}
}

void
rv_mux_end(struct rv_engine *e)
{
	struct rv_mux *m = rv_mux_of(e);
	struct rv_stream *st;

	if (e->ended)
		return;
	e->ended = e->refusing = true;
	for (; (st = m->ready.head) != NULL; rv_mux_note(m, st)) {
		m->ready.head = st->ready_next;
		st->flags &= ~RV_ST_IN_READY;
	}
	for (; (st = m->ctl.head) != NULL; rv_mux_note(m, st)) {
		m->ctl.head = st->ctl_next;
		st->flags &= ~RV_ST_IN_CTL;
	}
	m->ready.tail = m->ctl.tail = NULL;
	for (uint32_t i = 0; i < m->tab.cap; i++) {
		st = m->tab.v[i].st;
		if (st == NULL)
			continue;
		if (st->tx <= RV_TX_KILL)
			rv_mux_drop_queue(m, st);
		st->tx = RV_TX_RESET;
		st->rx = RV_RX_RESET;
		rv_mux_end_stream(m, st);
	}
	rv_idtab_fini(&m->tab, e->cfg.arena);
	m->slot_due = false;
}

/* --- time */

void
rv_mux_consumed(struct rv_mux *m, struct rv_stream *st, uint32_t n, uint64_t now)
{
	struct rvq_counter *unread = &m->e.stats.unread;

	if (n > st->unread)
		n = st->unread;
	st->unread -= n;
	st->consumed += n;
	rvq_counter_set(unread, rvq_counter_get(unread) - n);
	m->now = now;
}

void
rv_mux_linger(struct rv_mux *m, uint64_t now)
{
	struct rv_stream *st;

	while ((st = m->lingering.head) != NULL && now >= st->updated)
		rv_mux_reset(&m->e, st, 0);
}
