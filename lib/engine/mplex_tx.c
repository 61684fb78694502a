/* mplex_tx.c - the mplex engine: frames out.
 *
 * Order in one drain: refusals, what streams owe (their opening first of all), then bodies.  A reset goes behind the
 * stream's own bytes and close. */
#include <config.h>

#include "lib/engine/mplex_session.h"

#include <string.h>

static void
put(struct rv_mplex *x, struct rv_gather *g, uint64_t key, enum rv_mp_kind kind)
{
	uint8_t h[RV_MP_HDR_MAX];

	(void)rv_gather_fit(g, RV_MP_HDR_MAX, 0);
	rv_gather_stage(g, h, rv_mphdr_put(h, key, kind, 0));
	rvq_counter_add(&x->m.e.stats.frames_out, 1);
	if (kind == RV_MP_RESET)
		rvq_counter_add(&x->m.e.stats.resets_out, 1);
}

static void
tx_refusals(struct rv_mplex *x, struct rv_gather *g)
{
	struct rv_refusals *r = &x->m.refusals;
	struct rv_arena *ar = x->m.e.cfg.arena;

	while (rv_refusals_any(r) && rv_gather_room(g))
		put(x, g, rv_refusals_pop(r, ar), RV_MP_RESET);
	if (r->n > 0 && !rv_refusals_any(r))
		(void)rv_refusals_pop(r, ar);
}

void
rv_mplex_owed(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st)
{
	struct rv_mplex *x = (struct rv_mplex *)m;

	if (st->flags & RV_ST_SYN) {
		st->flags &= ~RV_ST_SYN;
		put(x, g, st->id, RV_MP_OPEN);
	}
	if (st->tx == RV_TX_SHUT && st->out.bytes == 0) {
		put(x, g, st->id, RV_MP_CLOSE);
		(void)rv_tx_step(st, RV_TXE_SENT_FIN);
		rv_mux_check_end(m, st);
	}
	if ((st->flags & RV_ST_RST) &&
	    (st->tx >= RV_TX_FIN || (st->tx == RV_TX_KILL && st->out.bytes == 0))) {
		put(x, g, st->id, RV_MP_RESET);
		(void)rv_tx_step(st, RV_TXE_SENT_RST);
		(void)rv_rx_step(st, RV_RXE_RESET);
		st->flags &= ~RV_ST_RST;
		rv_mux_end_stream(m, st);
	}
}

/* Small bodies out of a larger buffer, copied with their headers: frames of n bytes, no more than turn together. */
static uint32_t
copy_frames(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t n, uint32_t turn)
{
	const uint8_t *from = rv_buf_data(st->out.head);
	uint32_t sent = 0, some = turn < st->out.head->len ? turn : st->out.head->len - 1;
	uint8_t h[RV_MP_HDR_MAX], *to;
	unsigned k = rv_mphdr_put(h, st->id, RV_MP_DATA, n), frames = 0;

	do {
		(void)rv_gather_fit(g, k, n);
		to = rv_gather_reserve(g, k + n);
		memcpy(to, h, k);
		memcpy(to + k, from + sent, n);
		sent += n;
		frames++;
	} while (n <= some - sent && g->bytes < g->limit &&
	    g->stage_used + RV_MP_HDR_MAX + n <= RV_STAGE_SIZE);
	rv_chain_skip(&st->out, sent);
	rv_gather_account(g, st, sent, NULL);
	rvq_counter_add(&m->e.stats.copied_out, sent);
	rvq_counter_add(&m->e.stats.frames_out, frames);
	rvq_counter_add(&m->e.stats.bytes_out, sent);
	return sent;
}

uint32_t
rv_mplex_frame(
    struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t max, uint32_t turn)
{
	uint8_t h[RV_MP_HDR_MAX];
	uint32_t n, done;

	if (max < RV_STAGE_MAX && max < st->out.head->len &&
	    g->stage_used + RV_MP_HDR_MAX + max <= RV_STAGE_SIZE)
		return copy_frames(m, g, st, max, turn);
	if (max > st->out.bytes)
		max = (uint32_t)st->out.bytes;
	n = rv_mux_tx_fit(g, st, rv_gather_fit(g, RV_MP_HDR_MAX, max), RV_MP_HDR_MAX);
	REEVE_ASSERT(!(st->flags & RV_ST_SYN) && n > 0);
	rv_gather_stage(g, h, rv_mphdr_put(h, st->id, RV_MP_DATA, n));
	done = rv_mux_tx_body(m, g, st, n);
	REEVE_ASSERT(done == n);
	(void)done;
	rvq_counter_add(&m->e.stats.frames_out, 1);
	rvq_counter_add(&m->e.stats.bytes_out, n);
	return n;
}

size_t
rv_mplex_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now)
{
	struct rv_mplex *x = (struct rv_mplex *)e;
	size_t before = g->bytes;

	x->m.now = now;
	if (e->ended || x->m.dead)
		return 0;
	tx_refusals(x, g);
	rv_mux_tx_control(&x->m, g);
	rv_mux_tx_data(&x->m, g, e->cfg.user.split);
	if (x->m.ctl.head != NULL)
		rv_mux_tx_control(
		    &x->m, g); /* closes and resets behind bodies that left just now */
	return g->bytes - before;
}

bool
rv_mplex_has_output(const struct rv_engine *e)
{
	const struct rv_mplex *x = (const struct rv_mplex *)e;

	return !e->ended && !x->m.dead &&
	    (x->m.ready.head != NULL || x->m.ctl.head != NULL || rv_refusals_any(&x->m.refusals));
}
