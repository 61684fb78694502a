/* yamux_rx.c - the yamux engine: bytes in, events out.
 *
 * A header is judged completely before anything is allocated or changed; bodies are never
 * collected, each part is handed on as it comes.  What breaks the protocol ends the connection
 * (rv_yamux_fail); what only comes late is drained. */
#include <config.h>

#include "lib/engine/yamux_session.h"
#include "lib/config.h"

#include <string.h>

/* --- streams */

/* A new stream: judge, then make it (*out) or refuse it (*out NULL). */
static int
rx_syn(struct rv_yamux *y, const struct rv_yhdr *h, struct rv_stream **out)
{
	struct rv_engine *e = &y->m.e;
	uint32_t theirs = e->cfg.role == REEVE_DIALER ? 0 : 1;

	if ((h->id & 1) != theirs)
		return rv_yamux_fail(y, RV_YMSG_PARITY);
	if (h->flags & RV_YF_RST)
		return 0; /* the reset wins */
	if (*out != NULL)
		return rv_yamux_fail(y, RV_YMSG_DUPLICATE);
	if (h->type == RV_Y_DATA && h->len > RV_WINDOW0)
		return rv_yamux_fail(y, RV_YMSG_BODY0);
	if (h->type == RV_Y_WINDOW && h->len > UINT32_MAX - RV_WINDOW0)
		return rv_yamux_fail(y, RV_YMSG_CREDIT);
	return rv_mux_rx_open(&y->m, h->id, RV_ST_NEED_ACK | RV_ST_UNACCEPTED, out);
}

/* A frame with SYN or RST: *out becomes the new stream, stays, or NULL when the rest of the frame
 * is to be drained. */
static int
rx_begin_end(struct rv_yamux *y, const struct rv_yhdr *h, struct rv_stream **out)
{
	struct rv_stream *st;
	int rc = h->flags & RV_YF_SYN ? rx_syn(y, h, out) : 0;

	if (rc != 0 || *out == NULL || !(h->flags & RV_YF_RST))
		return rc;
	st = *out;
	*out = NULL;
	return rv_mux_rx_rst(&y->m, st, h->type == RV_Y_WINDOW ? h->len : 0);
}

/* What DATA and WINDOW have in common: *out is the stream, or NULL when the frame is to be
 * drained. */
static inline int
rx_flags(struct rv_yamux *y, const struct rv_yhdr *h, struct rv_stream **out)
{
	int rc;

	if (h->id == 0)
		return rv_yamux_fail(y, RV_YMSG_ID0);
	*out = rv_mux_find(&y->m, h->id);
	if (h->flags & (RV_YF_SYN | RV_YF_RST)) {
		rc = rx_begin_end(y, h, out);
		if (rc != 0)
			return rc;
	}
	if (*out != NULL && ((*out)->flags & RV_ST_UNACKED))
		rv_mux_answered(&y->m, *out);
	return 0;
}

static int
rx_data(struct rv_yamux *y, const struct rv_yhdr *h)
{
	struct rv_stream *st = NULL;
	int rc = rx_flags(y, h, &st);

	y->m.body_left = y->m.body_len = h->len;
	y->m.body_st = NULL;
	if (rc != 0 || st == NULL)
		return rc;
	if (!rv_window_charge(st, h->len))
		return rv_yamux_fail(y, RV_YMSG_OVERRUN);
	y->m.body_fin = (h->flags & RV_YF_FIN) != 0;
	if (h->len > 0)
		y->m.body_st = st;
	else if (y->m.body_fin)
		rv_mux_rx_fin(&y->m, st);
	return 0;
}

static int
rx_window(struct rv_yamux *y, const struct rv_yhdr *h)
{
	struct rv_stream *st = NULL;
	int rc = rx_flags(y, h, &st);

	if (rc != 0 || st == NULL)
		return rc;
	if (!rv_window_credit(st, h->len))
		return rv_yamux_fail(y, RV_YMSG_CREDIT);
	if (rv_mux_sendable(st)) {
		st->flags &= ~RV_ST_STALLED;
		rv_mux_ready_add(&y->m, st);
	}
	if (h->flags & RV_YF_FIN)
		rv_mux_rx_fin(&y->m, st);
	return 0;
}

/* --- the session */

static void
rx_ping(struct rv_yamux *y, const struct rv_yhdr *h)
{
	uint32_t us;

	if (h->flags & RV_YF_SYN) {
		if (rv_pongs_push(&y->pongs, h->len))
			rvq_counter_add(&y->m.e.stats.pings_in, 1);
		else
			rvq_counter_add(&y->m.e.stats.pongs_dropped, 1);
		return;
	}
	if (!(h->flags & RV_YF_ACK))
		return;
	us = rv_rtt_pong(&y->rtt, h->len, y->m.now, rv_yamux_moved(y));
	if (us == 0)
		return;
	rvq_counter_set(&y->m.e.stats.rtt_us, rv_rtt_min(&y->rtt));
	y->rtt_due = y->m.now + RV_RTT_INTERVAL_US;
	if (y->ping_asked) {
		y->ping_asked = false;
		y->pong_due = true;
		y->pong_us = us;
	}
	if (y->ping_again) {
		y->ping_again = false;
		y->ping_asked = y->ping_owed = true;
	}
}

static void
rx_goaway(struct rv_yamux *y, const struct rv_yhdr *h)
{
	reeve_reason_t *r = &y->m.e.reason;

	/* News only: the first, and the first with a code. */
	if (y->away && (h->len == 0 || y->away_code != 0))
		return;
	y->away = y->away_due = true;
	y->away_code = h->len;
	if (h->len == 0 || r->rc != 0)
		return;
	r->rc = REEVE_EGOAWAY;
	r->by = REEVE_BY_PEER;
	r->wire_code = h->len;
	r->id = rv_ymsg_text[RV_YMSG_GOAWAY].id;
	y->m.e.why = rv_ymsg_text[RV_YMSG_GOAWAY].text;
}

static int
rx_header(struct rv_yamux *y, const uint8_t *p)
{
	struct rv_yhdr h;

	rv_yhdr_get(&h, p);
	if (h.version != 0)
		return rv_yamux_fail(y, RV_YMSG_VERSION);
	rvq_counter_add(&y->m.e.stats.frames_in, 1);
	switch (h.type) {
	case RV_Y_DATA:
		return rx_data(y, &h);
	case RV_Y_WINDOW:
		return rx_window(y, &h);
	case RV_Y_PING:
		rx_ping(y, &h);
		return 0;
	case RV_Y_GOAWAY:
		rx_goaway(y, &h);
		return 0;
	default:
		return rv_yamux_fail(y, RV_YMSG_TYPE);
	}
}

/* The next header, whole or completed in the scratch; NULL: not all of it is there.  *pos moves
 * on. */
static const uint8_t *
next_header(struct rv_yamux *y, const uint8_t *p, uint32_t *pos, uint32_t len)
{
	uint32_t n = len - *pos;

	if (y->hdr_have == 0 && n >= RV_YHDR) {
		p += *pos;
		*pos += RV_YHDR;
		return p;
	}
	if (n > RV_YHDR - y->hdr_have)
		n = RV_YHDR - y->hdr_have;
	memcpy(y->hdr + y->hdr_have, p + *pos, n);
	y->hdr_have += n;
	*pos += n;
	if (y->hdr_have < RV_YHDR)
		return NULL;
	y->hdr_have = 0;
	return y->hdr;
}

/* Activity is what the round trip is measured for: an idle connection is left alone. */
static void
rx_alive(struct rv_yamux *y, uint64_t now)
{
	y->m.now = y->last_rx = now;
	if (now < y->rtt_due || y->rtt.inflight || y->m.e.cfg.user.keepalive_ms == REEVE_OFF)
		return;
	y->ping_owed = true;
	y->rtt_due = now + RV_RTT_INTERVAL_US;
}

void
rv_yamux_alive(struct rv_engine *e, uint64_t now)
{
	struct rv_yamux *y = (struct rv_yamux *)e;

	y->last_rx = now;
}

reeve_ssize
rv_yamux_feed(struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now)
{
	struct rv_yamux *y = (struct rv_yamux *)e;
	const uint8_t *base = slab->data + off, *h;
	uint32_t pos = 0, n;
	int rc;

	if (y->m.dead || e->ended)
		return y->m.dead ? e->reason.rc : REEVE_ECLOSED;
	if (len > 0)
		rx_alive(y, now);
	y->m.room = 0;
	e->pressed = false;
	(void)rv_yamux_notify(e);
	while (pos < len && !e->pressed) {
		if (y->m.body_left > 0) {
			if (y->m.body_st != NULL && !rv_mux_room(&y->m, 2))
				break;
			n = len - pos < y->m.body_left ? len - pos : y->m.body_left;
			rv_mux_rx_body(&y->m, slab, off + pos, n);
			pos += n;
			continue;
		}
		if (!rv_mux_room(&y->m, RV_EV_PER_FRAME))
			break;
		h = next_header(y, base, &pos, len);
		rc = h == NULL ? 0 : rx_header(y, h);
		if (rc != 0)
			return rc;
	}
	return pos;
}

int
rv_yamux_feed_end(struct rv_engine *e)
{
	struct rv_yamux *y = (struct rv_yamux *)e;

	if (y->m.dead || (y->hdr_have == 0 && y->m.body_left == 0))
		return 0;
	return rv_yamux_fail(y, RV_YMSG_TRUNCATED);
}

/* --- pending events */

static bool
notify_session(struct rv_yamux *y)
{
	if (y->pong_due) {
		if (!rv_mux_room(&y->m, 1))
			return false;
		y->pong_due = false;
		rv_mux_emit(&y->m, NULL, RV_EV_PONG, y->pong_us, 0);
	}
	if (y->away_due) {
		if (!rv_mux_room(&y->m, 1))
			return false;
		y->away_due = false;
		rv_mux_emit(&y->m, NULL, RV_EV_GOAWAY, y->away_code, 0);
	}
	if (y->m.slot_due) {
		if (!rv_mux_room(&y->m, 1))
			return false;
		y->m.slot_due = false;
		rv_mux_emit(&y->m, NULL, RV_EV_SLOT, 0, 0);
	}
	return true;
}

bool
rv_yamux_notify(struct rv_engine *e)
{
	struct rv_yamux *y = (struct rv_yamux *)e;

	y->m.room = 0;
	return notify_session(y) && rv_mux_notify(&y->m);
}
