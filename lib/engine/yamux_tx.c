/* yamux_tx.c - the yamux engine: frames out.
 *
 * Order in one drain: pongs, our ping, go-away, refusals, what streams owe, then bodies by
 * deficit round robin.  Bodies can be cut anywhere, so a round is exactly a quantum and the
 * deficit is only what a full gather left over.  SYN and ACK ride on whatever frame of their
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
	rv_yhdr_put(rv_gather_reserve(g, RV_YHDR), &h);
	rvq_counter_add(&y->e.stats.frames_out, 1);
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
	struct rv_yhdr h = {.type = RV_Y_WINDOW, .id = st->id, .len = len};

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
	uint32_t k = 0, id;

	for (; k < y->pongs.n && rv_gather_room(g); k++) {
		h.len = y->pongs.v[k];
		put(y, g, h);
	}
	if (k > 0)
		rv_pongs_drop(&y->pongs, k);
	if (y->ping_owed && !y->rtt.inflight && rv_gather_room(g)) {
		y->ping_owed = false;
		h.flags = RV_YF_SYN;
		h.len = rv_rtt_sent(&y->rtt, y->now, rv_yamux_moved(y));
		put(y, g, h);
	}
	tx_goaway(y, g);
	h.type = RV_Y_WINDOW;
	h.flags = RV_YF_RST;
	h.len = 0;
	while (rv_refusals_any(&y->refusals) && rv_gather_room(g)) {
		id = rv_refusals_pop(&y->refusals, y->e.cfg.arena);
		h.id = id;
		put(y, g, h);
		rvq_counter_add(&y->e.stats.resets_out, 1);
	}
	if (y->refusals.n > 0 && !rv_refusals_any(&y->refusals))
		(void)rv_refusals_pop(&y->refusals, y->e.cfg.arena);
}

/* --- what a stream owes */

static void
tx_rst(struct rv_yamux *y, struct rv_gather *g, struct rv_stream *st)
{
	put(y, g,
	    (struct rv_yhdr){
		.type = RV_Y_WINDOW, .flags = RV_YF_RST, .id = st->id, .len = st->rst_code});
	rvq_counter_add(&y->e.stats.resets_out, 1);
	(void)rv_tx_step(st, RV_TXE_SENT_RST);
	(void)rv_rx_step(st, RV_RXE_RESET);
	st->flags &= ~RV_ST_RST;
	rv_yamux_end_stream(y, st);
}

/* At most three frames, so one look at the gather's room is enough. */
static void
tx_owed(struct rv_yamux *y, struct rv_gather *g, struct rv_stream *st)
{
	uint32_t credit = st->owed;

	if (st->tx != RV_TX_RESET) {
		if (credit > 0) {
			st->owed = 0;
			put_window(y, g, st, 0, credit);
		}
		if (st->tx == RV_TX_SHUT && st->out.bytes == 0) {
			put_window(y, g, st, RV_YF_FIN, 0);
			(void)rv_tx_step(st, RV_TXE_SENT_FIN);
			rv_yamux_check_end(y, st);
		} else if ((st->flags & (RV_ST_SYN | RV_ST_ACK)) && !rv_yamux_sendable(st)) {
			put_window(y, g, st, 0, 0);
		}
	}
	if ((st->flags & RV_ST_RST) &&
	    (st->tx >= RV_TX_FIN || (st->tx == RV_TX_KILL && st->out.bytes == 0)))
		tx_rst(y, g, st);
}

static void
tx_control(struct rv_yamux *y, struct rv_gather *g)
{
	struct rv_stream *st;

	while ((st = y->ctl.head) != NULL && rv_gather_room(g)) {
		y->ctl.head = st->ctl_next;
		if (y->ctl.head == NULL)
			y->ctl.tail = NULL;
		st->flags &= ~RV_ST_IN_CTL;
		if (st->flags & RV_ST_TABLED)
			tx_owed(y, g, st);
		else
			rv_yamux_note(y, st);
	}
}

/* --- bodies */

/* The first n bytes of the first buffer of st are copied; held: bytes copied since the last
 * account. */
static void
tx_copy(struct rv_gather *g, struct rv_stream *st, uint32_t n, uint32_t *held)
{
	reeve_buf_t *b = st->out.head;

	rv_gather_stage(g, rv_buf_data(b), n);
	*held += n;
	if (n < b->len) {
		rv_chain_skip(&st->out, n);
		return;
	}
	(void)rv_chain_pop(&st->out);
	if (st->flags & RV_ST_PART) {
		/* An earlier part was referenced and may still be on its way. */
		st->flags &= ~RV_ST_PART;
		rv_gather_account(g, st, *held, b);
		*held = 0;
	} else {
		rv_buf_unref(b);
	}
}

static void
tx_ref(struct rv_gather *g, struct rv_stream *st, uint32_t n, uint32_t *held)
{
	reeve_buf_t *b = st->out.head;

	rv_gather_ref(g, rv_buf_data(b), n);
	if (n < b->len) {
		rv_chain_skip(&st->out, n);
		st->flags |= RV_ST_PART;
		b = NULL;
	} else {
		(void)rv_chain_pop(&st->out);
		st->flags &= ~RV_ST_PART;
	}
	rv_gather_account(g, st, *held + n, b);
	*held = 0;
}

/* Up to want bytes of st into g, as many as it has room for.  Returns how many. */
static uint32_t
tx_body(struct rv_yamux *y, struct rv_gather *g, struct rv_stream *st, uint32_t want)
{
	uint32_t done = 0, held = 0, n;

	while (done < want && st->out.head != NULL) {
		n = st->out.head->len < want - done ? st->out.head->len : want - done;
		/* The header took one of the three that rv_gather_room saw: a first piece always
		 * fits. */
		if (g->niov + 2 > RV_IOV_MAX || g->nacct + 2 > RV_ACCT_MAX)
			break;
		if (n >= RV_STAGE_MAX) {
			tx_ref(g, st, n, &held);
		} else {
			if (g->stage_used + n > RV_STAGE_SIZE)
				break;
			tx_copy(g, st, n, &held);
			rvq_counter_add(&y->e.stats.copied_out, n);
		}
		done += n;
	}
	if (held > 0)
		rv_gather_account(g, st, held, NULL);
	return done;
}

/* One DATA frame of at most max bytes.  Returns its body's length. */
static uint32_t
tx_frame(struct rv_yamux *y, struct rv_gather *g, struct rv_stream *st, uint32_t max)
{
	uint32_t want = max < st->send_credit ? max : st->send_credit;
	struct rv_yhdr h = {.type = RV_Y_DATA, .id = st->id};
	uint8_t *p = rv_gather_reserve(g, RV_YHDR);

	h.len = tx_body(y, g, st, want);
	REEVE_ASSERT(h.len > 0);
	st->send_credit -= h.len;
	h.flags = take_flags(st);
	rv_yhdr_put(p, &h);
	rvq_counter_add(&y->e.stats.frames_out, 1);
	rvq_counter_add(&y->e.stats.bytes_out, h.len);
	return h.len;
}

/* The first of the ready list has nothing more to send, or may not. */
static void
tx_unready(struct rv_yamux *y, struct rv_stream *st)
{
	y->ready.head = st->ready_next;
	if (y->ready.head == NULL)
		y->ready.tail = NULL;
	st->flags &= ~RV_ST_IN_READY;
	st->deficit = 0;
	if (!(st->flags & RV_ST_TABLED)) {
		rv_yamux_note(y, st);
		return;
	}
	if (st->out.bytes > 0 && st->send_credit == 0 && !(st->flags & RV_ST_STALLED)) {
		st->flags |= RV_ST_STALLED;
		rvq_counter_add(&y->e.stats.stalls_window, 1);
	}
	if ((st->flags & RV_ST_RST) || (st->tx == RV_TX_SHUT && st->out.bytes == 0))
		rv_yamux_ctl_add(y, st);
	rv_yamux_check_end(y, st);
}

static void
tx_rotate(struct rv_yamux *y, struct rv_stream *st)
{
	if (st->ready_next == NULL)
		return;
	y->ready.head = st->ready_next;
	y->ready.tail->ready_next = st;
	y->ready.tail = st;
	st->ready_next = NULL;
}

/* Deficit round robin: M. Shreedhar, G. Varghese, "Efficient fair queueing using deficit round
 * robin" (1995). */
static void
tx_data(struct rv_yamux *y, struct rv_gather *g)
{
	uint32_t max = y->e.cfg.user.split, quantum, n;
	struct rv_stream *st;

	if (max == 0)
		max = y->ready.head == y->ready.tail ? RV_Y_ALONE : g->turn;
	quantum = max > g->turn ? max : g->turn;
	while ((st = y->ready.head) != NULL && rv_gather_room(g)) {
		if (!rv_yamux_sendable(st)) {
			tx_unready(y, st);
			continue;
		}
		if (st->deficit == 0 || st->deficit > quantum)
			st->deficit = quantum;
		n = tx_frame(y, g, st, st->deficit < max ? st->deficit : max);
		st->deficit -= n;
		if (!rv_yamux_sendable(st))
			tx_unready(y, st);
		else if (st->deficit == 0)
			tx_rotate(y, st);
	}
}

size_t
rv_yamux_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now)
{
	struct rv_yamux *y = (struct rv_yamux *)e;
	size_t before = g->bytes;

	y->now = now;
	if (e->ended)
		return 0;
	if (y->dead) {
		tx_goaway(y, g);
		return g->bytes - before;
	}
	tx_session(y, g);
	tx_control(y, g);
	tx_data(y, g);
	if (y->ctl.head != NULL)
		tx_control(y, g); /* FINs and resets behind bodies that left just now */
	return g->bytes - before;
}

bool
rv_yamux_has_output(const struct rv_engine *e)
{
	const struct rv_yamux *y = (const struct rv_yamux *)e;

	if (e->ended)
		return false;
	if (y->dead)
		return y->goaway_owed;
	return y->ready.head != NULL || y->ctl.head != NULL || y->pongs.n > 0 || y->goaway_owed ||
	    (y->ping_owed && !y->rtt.inflight) || rv_refusals_any(&y->refusals);
}
