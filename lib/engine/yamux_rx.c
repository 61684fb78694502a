/* yamux_rx.c - the yamux engine: bytes in, events out.
 *
 * A header is judged completely before anything is allocated or changed; bodies are never
 * collected, each part is handed on as it comes.  What breaks the protocol ends the connection
 * (rv_yamux_fail); what only comes late is drained. */
#include <config.h>

#include "lib/engine/yamux_session.h"
#include "lib/check.h"
#include "lib/config.h"

#include <string.h>

static void
emit(struct rv_yamux *y, const struct rv_event *ev)
{
	if (y->room > 0)
		y->room--;
	y->e.cfg.sink.emit(y->e.cfg.sink.ctx, ev);
}

/* At least n emits are possible? */
static inline bool
room_for(struct rv_yamux *y, unsigned n)
{
	if (y->room < n)
		y->room = y->e.cfg.sink.room(y->e.cfg.sink.ctx);
	return y->room >= n;
}

static void
emit_stream(
    struct rv_yamux *y, struct rv_stream *st, enum rv_ev_kind kind, uint32_t n, unsigned flags)
{
	struct rv_event ev = {.st = st, .n = n, .kind = (uint16_t)kind, .flags = (uint16_t)flags};

	emit(y, &ev);
}

/* --- streams */

static int
refuse(struct rv_yamux *y, uint32_t id)
{
	int rc = rv_refusals_push(&y->refusals, y->e.cfg.arena, id);

	rvq_counter_add(&y->e.stats.refused, 1);
	if (rc == 0) {
		y->e.pressed = rv_refusals_count(&y->refusals) == RV_REFUSALS_MAX / 2;
		return 0;
	}
	return rv_yamux_fail(y, rc == REEVE_ELIMIT ? RV_YMSG_REFUSALS : RV_YMSG_REFUSE_MEM);
}

/* A new stream: judge, then make it (*out) or refuse it (*out NULL). */
static int
rx_syn(struct rv_yamux *y, const struct rv_yhdr *h, struct rv_stream **out)
{
	struct rv_engine *e = &y->e;
	const reeve_cfg_t *c = &e->cfg.user;
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
	if (e->refusing || y->nin >= c->max_in || y->undead >= c->max_in ||
	    e->nunaccepted >= c->accept_backlog || rv_yamux_budget(y) >= 2)
		return refuse(y, h->id);
	*out = rv_yamux_new(y, h->id, RV_ST_NEED_ACK | RV_ST_UNACCEPTED);
	if (*out == NULL)
		return refuse(y, h->id);
	emit_stream(y, *out, RV_EV_OPEN, 0, 0);
	return 0;
}

static int
rx_rst(struct rv_yamux *y, struct rv_stream *st, uint32_t code)
{
	unsigned flags = st->flags & RV_ST_UNACKED ? RV_EVF_REFUSED : 0;
	bool early = (st->flags & RV_ST_UNACCEPTED) != 0;

	rvq_counter_add(&y->e.stats.resets_in, 1);
	if (rv_tx_step(st, RV_TXE_RST) == RV_CLEAR)
		rv_yamux_drop_queue(y, st);
	if (rv_rx_step(st, RV_RXE_RST) == RV_TELL && !(st->flags & RV_ST_CLOSED))
		emit_stream(y, st, RV_EV_RST, code, flags);
	if (st->flags & RV_ST_TABLED)
		rv_yamux_end_stream(y, st);
	if (early && !rv_bucket_take(&y->churn, y->now))
		return rv_yamux_fail(y, RV_YMSG_CHURN);
	return 0;
}

static void
rx_fin(struct rv_yamux *y, struct rv_stream *st)
{
	if (rv_rx_step(st, RV_RXE_FIN) == RV_TELL && !(st->flags & RV_ST_CLOSED))
		emit_stream(y, st, RV_EV_FIN, 0, 0);
	/* Credit is of no use to a peer that sends no more; a closed stream goes on lingering
	 * for our own bytes. */
	if (!(st->flags & RV_ST_CLOSED))
		rv_yamux_wait_del(y, st);
	st->owed = 0;
	rv_yamux_check_end(y, st);
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
	return rx_rst(y, st, h->type == RV_Y_WINDOW ? h->len : 0);
}

/* What DATA and WINDOW have in common: *out is the stream, or NULL when the frame is to be
 * drained. */
static inline int
rx_flags(struct rv_yamux *y, const struct rv_yhdr *h, struct rv_stream **out)
{
	int rc;

	if (h->id == 0)
		return rv_yamux_fail(y, RV_YMSG_ID0);
	*out = rv_yamux_find(y, h->id);
	if (h->flags & (RV_YF_SYN | RV_YF_RST)) {
		rc = rx_begin_end(y, h, out);
		if (rc != 0)
			return rc;
	}
	if (*out != NULL && ((*out)->flags & RV_ST_UNACKED))
		rv_yamux_answered(y, *out);
	return 0;
}

static int
rx_data(struct rv_yamux *y, const struct rv_yhdr *h)
{
	struct rv_stream *st = NULL;
	int rc = rx_flags(y, h, &st);

	y->body_left = y->body_len = h->len;
	y->body_st = NULL;
	if (rc != 0 || st == NULL)
		return rc;
	if (!rv_window_charge(st, h->len))
		return rv_yamux_fail(y, RV_YMSG_OVERRUN);
	y->body_fin = (h->flags & RV_YF_FIN) != 0;
	if (h->len > 0)
		y->body_st = st;
	else if (y->body_fin)
		rx_fin(y, st);
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
	if (rv_yamux_sendable(st)) {
		st->flags &= ~RV_ST_STALLED;
		rv_yamux_ready_add(y, st);
	}
	if (h->flags & RV_YF_FIN)
		rx_fin(y, st);
	return 0;
}

/* Part of a body: n bytes at off. */
static void
rx_body(struct rv_yamux *y, struct rv_slab *slab, uint32_t off, uint32_t n)
{
	struct rv_stream *st = y->body_st;
	struct rv_engine_stats *s = &y->e.stats;
	struct rv_event ev;

	rvq_counter_add(&s->bytes_in, n);
	y->body_left -= n;
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
		    .n = y->body_len,
		    .kind = RV_EV_DATA};
		emit(y, &ev);
		break;
	case RV_OWE_RST:
		st->flags |= RV_ST_RST;
		rv_yamux_ctl_add(y, st);
		break;
	default:
		break;
	}
	if (y->body_left > 0)
		return;
	/* Asked again: the emit may have ended the stream. */
	st = y->body_st;
	y->body_st = NULL;
	if (st != NULL && y->body_fin)
		rx_fin(y, st);
}

/* --- the session */

static void
rx_ping(struct rv_yamux *y, const struct rv_yhdr *h)
{
	uint32_t us;

	if (h->flags & RV_YF_SYN) {
		if (rv_pongs_push(&y->pongs, h->len))
			rvq_counter_add(&y->e.stats.pings_in, 1);
		else
			rvq_counter_add(&y->e.stats.pongs_dropped, 1);
		return;
	}
	if (!(h->flags & RV_YF_ACK))
		return;
	us = rv_rtt_pong(&y->rtt, h->len, y->now, rv_yamux_moved(y));
	if (us == 0)
		return;
	rvq_counter_set(&y->e.stats.rtt_us, rv_rtt_min(&y->rtt));
	y->rtt_due = y->now + RV_RTT_INTERVAL_US;
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
	reeve_reason_t *r = &y->e.reason;

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
	y->e.why = rv_ymsg_text[RV_YMSG_GOAWAY].text;
}

static int
rx_header(struct rv_yamux *y, const uint8_t *p)
{
	struct rv_yhdr h;

	rv_yhdr_get(&h, p);
	if (h.version != 0)
		return rv_yamux_fail(y, RV_YMSG_VERSION);
	rvq_counter_add(&y->e.stats.frames_in, 1);
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
	y->now = y->last_rx = now;
	if (now < y->rtt_due || y->rtt.inflight || y->e.cfg.user.keepalive_ms == REEVE_OFF)
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

	if (y->dead || e->ended)
		return y->dead ? e->reason.rc : REEVE_ECLOSED;
	if (len > 0)
		rx_alive(y, now);
	y->room = 0;
	e->pressed = false;
	(void)rv_yamux_notify(e);
	while (pos < len && !e->pressed) {
		if (y->body_left > 0) {
			if (y->body_st != NULL && !room_for(y, 2))
				break;
			n = len - pos < y->body_left ? len - pos : y->body_left;
			rx_body(y, slab, off + pos, n);
			pos += n;
			continue;
		}
		if (!room_for(y, RV_EV_PER_FRAME))
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

	if (y->dead || (y->hdr_have == 0 && y->body_left == 0))
		return 0;
	return rv_yamux_fail(y, RV_YMSG_TRUNCATED);
}

/* --- pending events */

static bool
notify_session(struct rv_yamux *y)
{
	if (y->pong_due) {
		if (!room_for(y, 1))
			return false;
		y->pong_due = false;
		emit_stream(y, NULL, RV_EV_PONG, y->pong_us, 0);
	}
	if (y->away_due) {
		if (!room_for(y, 1))
			return false;
		y->away_due = false;
		emit_stream(y, NULL, RV_EV_GOAWAY, y->away_code, 0);
	}
	if (y->slot_due) {
		if (!room_for(y, 1))
			return false;
		y->slot_due = false;
		emit_stream(y, NULL, RV_EV_SLOT, 0, 0);
	}
	return true;
}

/* The first of the list has nothing pending any more: off the list, and gone if it is time. */
static void
notify_done(struct rv_yamux *y, struct rv_stream *st)
{
	y->notify.head = st->notify_next;
	if (y->notify.head == NULL)
		y->notify.tail = NULL;
	st->flags &= ~RV_ST_IN_NOTIFY;
	if ((st->flags & (RV_ST_TABLED | RV_ST_IN_READY | RV_ST_IN_CTL)) != 0 || st->inflight > 0)
		return;
	REEVE_ASSERT(!(st->flags & (RV_ST_GONE | RV_ST_WAITING)) && st->out.bytes == 0);
	st->flags |= RV_ST_GONE;
	rv_yamux_forget_unread(y, st);
	y->undead--;
	emit_stream(y, st, RV_EV_GONE, 0, y->e.ended ? RV_EVF_ENDED : 0);
}

bool
rv_yamux_notify(struct rv_engine *e)
{
	struct rv_yamux *y = (struct rv_yamux *)e;
	struct rv_stream *st;
	uint32_t n;

	y->room = 0;
	if (!notify_session(y))
		return false;
	while ((st = y->notify.head) != NULL) {
		if (!room_for(y, 1))
			return false;
		if (e->ended)
			st->taken = st->events = 0;
		if (st->taken > 0) {
			n = st->taken;
			st->taken = 0;
			emit_stream(y, st, RV_EV_TAKEN, n, st->send_credit == 0 ? RV_EVF_DRY : 0);
		} else if (st->events & 1u << RV_EV_CLOSING) {
			st->events = 0;
			emit_stream(y, st, RV_EV_CLOSING, 0, 0);
		} else {
			notify_done(y, st);
		}
	}
	return true;
}
