/* yamux_tx.c - the yamux engine: frames out.
 *
 * Order in one drain: pongs, our ping, go-away, refusals, what streams owe, then bodies.  SYN and ACK ride on whatever frame of their
 * stream leaves first.  FIN is a frame of its own behind the last byte, never on a frame with a
 * body: hashicorp/yamux 0.1.2 looks at the flags before it stores the body, so a reader that FIN
 * wakes in between sees the end and the bytes are lost (seen in tests/interop).  A reset goes
 * behind the stream's own bytes and FIN. */
#include <config.h>

#include "lib/engine/yamux_session.h"
#include "lib/check.h"

#include <string.h>

static void
put(struct rv_yamux *y, struct rv_gather *g, struct rv_yhdr h)
{
	(void)rv_gather_fit(g, RV_YHDR, 0);
	rv_yhdr_put(rv_gather_reserve(g, RV_YHDR), &h);
	rvq_counter_add(&y->m.e.stats.frames_out, 1);
}

/* The flags that the next frame of st carries anyway; they are no longer owed. */
static uint16_t
take_flags(struct rv_stream *st)
{
	uint16_t f = 0;

	if (st->flags & RV_ST_SYN)
		f = RV_YF_SYN;
	else if (st->flags & RV_ST_NEED_ACK)
		f = RV_YF_ACK;
	st->flags &= ~(RV_ST_SYN | RV_ST_NEED_ACK | RV_ST_ACK);
	return f;
}

static void
put_window(
    struct rv_yamux *y, struct rv_gather *g, struct rv_stream *st, unsigned flags, uint32_t len)
{
	struct rv_yhdr h = {.type = RV_Y_WINDOW, .id = (uint32_t)st->id, .len = len};

	h.flags = (uint16_t)(take_flags(st) | flags);
	put(y, g, h);
}

/* --- what the session owes */

static void
tx_goaway(struct rv_yamux *y, struct rv_gather *g)
{
	if (!y->goaway_owed || !rv_gather_room(g))
		return;
	y->goaway_owed = false;
	y->goaway_sent = true;
	put(y, g, (struct rv_yhdr){.type = RV_Y_GOAWAY, .len = y->goaway_code});
}

static void
tx_session(struct rv_yamux *y, struct rv_gather *g)
{
	struct rv_yhdr h = {.type = RV_Y_PING, .flags = RV_YF_ACK};
	uint32_t k = 0;

	for (; k < y->pongs.n && rv_gather_room(g); k++) {
		h.len = y->pongs.v[k];
		put(y, g, h);
	}
	if (k > 0)
		rv_pongs_drop(&y->pongs, k);
	if (y->ping_owed && !y->rtt.inflight && rv_gather_room(g)) {
		y->ping_owed = false;
		h.flags = RV_YF_SYN;
		h.len = rv_rtt_sent(&y->rtt, y->m.now, rv_yamux_moved(y));
		put(y, g, h);
	}
	tx_goaway(y, g);
	h.type = RV_Y_WINDOW;
	h.flags = RV_YF_RST;
	h.len = 0;
	while (rv_refusals_any(&y->m.refusals) && rv_gather_room(g)) {
		h.id = (uint32_t)rv_refusals_pop(&y->m.refusals, y->m.e.cfg.arena);
		put(y, g, h);
		rvq_counter_add(&y->m.e.stats.resets_out, 1);
	}
	if (y->m.refusals.n > 0 && !rv_refusals_any(&y->m.refusals))
		(void)rv_refusals_pop(&y->m.refusals, y->m.e.cfg.arena);
}

/* --- what a stream owes */

static void
tx_rst(struct rv_yamux *y, struct rv_gather *g, struct rv_stream *st)
{
	put(y, g,
	    (struct rv_yhdr){.type = RV_Y_WINDOW,
		.flags = RV_YF_RST,
		.id = (uint32_t)st->id,
		.len = st->rst_code});
	rvq_counter_add(&y->m.e.stats.resets_out, 1);
	(void)rv_tx_step(st, RV_TXE_SENT_RST);
	(void)rv_rx_step(st, RV_RXE_RESET);
	st->flags &= ~RV_ST_RST;
	rv_mux_end_stream(&y->m, st);
}

/* At most three frames, so one look at the gather's room is enough. */
void
rv_yamux_owed(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st)
{
	struct rv_yamux *y = (struct rv_yamux *)m;
	uint32_t credit = st->owed;

	if (st->tx != RV_TX_RESET) {
		if (credit > 0) {
			st->owed = 0;
			put_window(y, g, st, 0, credit);
		}
		if (st->tx == RV_TX_SHUT && st->out.bytes == 0) {
			put_window(y, g, st, RV_YF_FIN, 0);
			(void)rv_tx_step(st, RV_TXE_SENT_FIN);
			rv_mux_check_end(&y->m, st);
		} else if ((st->flags & (RV_ST_SYN | RV_ST_ACK)) && !rv_mux_sendable(st)) {
			put_window(y, g, st, 0, 0);
		}
	}
	if ((st->flags & RV_ST_RST) &&
	    (st->tx >= RV_TX_FIN || (st->tx == RV_TX_KILL && st->out.bytes == 0)))
		tx_rst(y, g, st);
}

/* --- bodies */

/* One DATA frame of at most max bytes.  Returns its body's length. */
uint32_t
rv_yamux_frame(
    struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t max, uint32_t turn)
{
	uint32_t want = max < st->send_credit ? max : st->send_credit;
	struct rv_yhdr h = {.type = RV_Y_DATA, .id = (uint32_t)st->id};
	uint8_t *p;

	(void)turn;
	if (want > st->out.bytes)
		want = (uint32_t)st->out.bytes;
	want = rv_gather_fit(g, RV_YHDR, want);
	p = rv_gather_reserve(g, RV_YHDR);
	h.len = rv_mux_tx_body(m, g, st, want);
	REEVE_ASSERT(h.len > 0);
	st->send_credit -= h.len;
	h.flags = take_flags(st);
	rv_yhdr_put(p, &h);
	rvq_counter_add(&m->e.stats.frames_out, 1);
	rvq_counter_add(&m->e.stats.bytes_out, h.len);
	return h.len;
}

size_t
rv_yamux_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now)
{
	struct rv_yamux *y = (struct rv_yamux *)e;
	size_t before = g->bytes;
	uint32_t max = e->cfg.user.split;

	y->m.now = now;
	if (e->ended)
		return 0;
	if (y->m.dead) {
		tx_goaway(y, g);
		return g->bytes - before;
	}
	tx_session(y, g);
	rv_mux_tx_control(&y->m, g);
	if (max == 0)
		max = y->m.ready.head == y->m.ready.tail ? RV_Y_ALONE : g->turn;
	rv_mux_tx_data(&y->m, g, max);
	if (y->m.ctl.head != NULL)
		rv_mux_tx_control(&y->m, g); /* FINs and resets behind bodies that left just now */
	return g->bytes - before;
}

bool
rv_yamux_has_output(const struct rv_engine *e)
{
	const struct rv_yamux *y = (const struct rv_yamux *)e;

	if (e->ended)
		return false;
	if (y->m.dead)
		return y->goaway_owed;
	return y->m.ready.head != NULL || y->m.ctl.head != NULL || y->pongs.n > 0 ||
	    y->goaway_owed || (y->ping_owed && !y->rtt.inflight) || rv_refusals_any(&y->m.refusals);
}
