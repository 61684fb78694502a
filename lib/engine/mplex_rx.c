/* mplex_rx.c - the mplex engine: bytes in, events out.
 *
 * A header is judged completely before anything is allocated or changed; bodies are never collected, each part is handed
 * on as it comes, names are skipped.  Late frames are drained: peers send a second close, and data for streams that were
 * reset (rust-libp2p's mplex 0.23.1 took back that they are violations). */
#include <config.h>

#include "lib/engine/mplex_session.h"

#include <string.h>

static int
rx_open(struct rv_mplex *x, const struct rv_mphdr *h)
{
	struct rv_stream *st;

	if (rv_mux_find(&x->m, h->key) != NULL)
		return rv_mplex_fail(x, RV_MPMSG_DUPLICATE);
	return rv_mux_rx_open(&x->m, h->key, RV_ST_UNACCEPTED, &st);
}

static int
rx_header(struct rv_mplex *x, const struct rv_mphdr *h)
{
	struct rv_mux *m = &x->m;
	struct rv_stream *st;
	int rc = 0;

	rvq_counter_add(&m->e.stats.frames_in, 1);
	m->body_st = NULL;
	m->body_fin = false;
	switch (h->kind) {
	case RV_MP_OPEN:
		rc = rx_open(x, h);
		break;
	case RV_MP_DATA:
		if (h->len > 0)
			m->body_st = rv_mux_find(m, h->key);
		break;
	case RV_MP_CLOSE:
		st = rv_mux_find(m, h->key);
		if (st != NULL)
			rv_mux_rx_fin(m, st);
		break;
	case RV_MP_RESET:
		st = rv_mux_find(m, h->key);
		if (st != NULL)
			rc = rv_mux_rx_rst(m, st, 0);
		break;
	default:
		return rv_mplex_fail(x, RV_MPMSG_FLAG);
	}
	m->body_left = m->body_len = h->len;
	return rc;
}

/* The next header, from the bytes or completed in the scratch.  1: *h is one; 0: not all of it is there; or an error.
 * *pos moves on. */
static int
next_header(struct rv_mplex *x, struct rv_mphdr *h, const uint8_t *p, uint32_t *pos, uint32_t len)
{
	uint32_t n = len - *pos;
	int rc;

	if (x->hdr_have == 0) {
		rc = rv_mphdr_get(h, p + *pos, n);
		if (rc == REEVE_EAGAIN) {
			memcpy(x->hdr, p + *pos,
			    n); /* fewer than RV_MP_HDR_MAX, or it would be decided */
			x->hdr_have = n;
			*pos = len;
			return 0;
		}
		*pos += rc > 0 ? (uint32_t)rc : 0;
	} else {
		for (rc = REEVE_EAGAIN; rc == REEVE_EAGAIN && *pos < len;) {
			x->hdr[x->hdr_have++] = p[(*pos)++];
			rc = rv_mphdr_get(h, x->hdr, x->hdr_have);
		}
		if (rc == REEVE_EAGAIN)
			return 0;
		x->hdr_have = 0;
	}
	if (rc < 0)
		return rv_mplex_fail(x, rc == REEVE_ELIMIT ? RV_MPMSG_LENGTH : RV_MPMSG_VARINT);
	return 1;
}

/* How many of n bytes of the body at hand may be handed on; 0: parsing stops here. */
static uint32_t
allowed(struct rv_mplex *x, uint32_t n)
{
	struct rv_mux *m = &x->m;
	struct rv_stream *st = m->body_st, *worst;
	uint32_t room;

	if (st == NULL || st->rx != RV_RX_OPEN)
		return n;
	while ((room = rv_mplex_room(x, st, x->level)) == 0 &&
	    (m->e.cfg.user.flags & REEVE_CFG_SLOW_RESET) &&
	    (worst = rv_mplex_slowest(x, rv_mplex_bound(x))) != NULL) {
		rv_mplex_slow(x, worst);
		if (worst == st)
			return n;
	}
	if (room > 0)
		return n < room ? n : room;
	m->e.blocked = true;
	x->bound = rv_mplex_bound(x);
	x->blocked_at = m->now;
	return 0;
}

reeve_ssize
rv_mplex_feed(struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now)
{
	struct rv_mplex *x = (struct rv_mplex *)e;
	struct rv_mux *m = &x->m;
	const uint8_t *base = slab->data + off;
	struct rv_mphdr h = {0};
	uint32_t pos = 0, n;
	int rc;

	if (m->dead || e->ended)
		return m->dead ? e->reason.rc : REEVE_ECLOSED;
	m->now = now;
	x->level = rv_mux_budget(m);
	e->pressed = false;
	(void)rv_mplex_notify(e);
	while (pos < len && !e->blocked && !e->pressed) {
		if (m->body_left > 0) {
			if (m->body_st != NULL && !rv_mux_room(m, 2))
				break;
			n = allowed(x, len - pos < m->body_left ? len - pos : m->body_left);
			if (n == 0)
				break;
			rv_mux_rx_body(m, slab, off + pos, n);
			pos += n;
			continue;
		}
		if (!rv_mux_room(m, RV_EV_PER_FRAME))
			break;
		rc = next_header(x, &h, base, &pos, len);
		if (rc > 0)
			rc = rx_header(x, &h);
		if (rc < 0)
			return rc;
	}
	return pos;
}

int
rv_mplex_feed_end(struct rv_engine *e)
{
	struct rv_mplex *x = (struct rv_mplex *)e;

	if (x->m.dead || (x->hdr_have == 0 && x->m.body_left == 0))
		return 0;
	return rv_mplex_fail(x, RV_MPMSG_TRUNCATED);
}

bool
rv_mplex_notify(struct rv_engine *e)
{
	struct rv_mux *m = rv_mux_of(e);

	m->room = 0;
	return rv_mux_notify(m);
}
