/* yamux_session.c - the yamux engine: requests of the application, lives of streams, time.  See
 * yamux_session.h. */
#include <config.h>

#include "lib/engine/yamux_session.h"
#include "lib/check.h"
#include "lib/config.h"

#include <string.h>

#define COALESCE_BELOW 1024u /* bytes of a buffer that is copied behind others that wait */
#define MS_US          1000u

static struct rv_yamux *
yamux(struct rv_engine *e)
{
	return (struct rv_yamux *)e;
}

const struct rv_ymsg_text rv_ymsg_text[RV_YMSG_COUNT] = {
#define X(name, id, rc, code, text) {"REEVE-YAMUX-" id, text, REEVE_##rc, code},
    RV_YMSG_MAP(X)
#undef X
};

static void
queue_goaway(struct rv_yamux *y, uint32_t code)
{
	y->e.refusing = true;
	if (y->goaway_owed || y->goaway_sent)
		return;
	y->goaway_owed = true;
	y->goaway_code = code;
}

int
rv_yamux_fail(struct rv_yamux *y, enum rv_ymsg msg)
{
	const struct rv_ymsg_text *m = &rv_ymsg_text[msg];
	reeve_reason_t *r = &y->e.reason;

	if (r->rc == 0) {
		r->size = sizeof(*r);
		r->rc = m->rc;
		r->by = msg == RV_YMSG_TRUNCATED ? REEVE_BY_TRANSPORT : REEVE_BY_US;
		r->wire_code = 0;
		r->id = m->id;
		y->e.why = m->text;
	}
	y->dead = true;
	y->e.refusing = true;
	if (m->code >= 0)
		queue_goaway(y, (uint32_t)m->code);
	return m->rc;
}

int
rv_yamux_budget(const struct rv_yamux *y)
{
	return y->e.cfg.budget == NULL ? 0 : rv_budget_level(y->e.cfg.budget);
}

/* --- requests */

static int
yamux_open(struct rv_engine *e, struct rv_stream **out, uint64_t now)
{
	struct rv_yamux *y = yamux(e);
	struct rv_stream *st;

	y->now = now;
	if (e->ended || y->dead)
		return REEVE_ECLOSED;
	if (e->refusing || y->away)
		return REEVE_EGOAWAY;
	if (y->next_id > UINT32_MAX)
		return REEVE_EEXHAUSTED;
	if (y->nout >= e->cfg.user.max_out)
		return REEVE_ELIMIT;
	if (e->nunacked >= e->cfg.user.max_unacked) {
		y->slot_wanted = true;
		return REEVE_EAGAIN;
	}
	st = rv_yamux_new(y, (uint32_t)y->next_id, RV_ST_OUTBOUND | RV_ST_SYN | RV_ST_UNACKED);
	if (st == NULL)
		return REEVE_ENOMEM;
	y->next_id += 2;
	rv_yamux_ctl_add(y, st);
	*out = st;
	return 0;
}

static void
yamux_accept(struct rv_engine *e, struct rv_stream *st)
{
	struct rv_yamux *y = yamux(e);

	rv_yamux_accepted(y, st);
	if (!(st->flags & RV_ST_NEED_ACK) || (e->cfg.user.flags & REEVE_CFG_LAZY_ACK))
		return;
	st->flags |= RV_ST_ACK;
	rv_yamux_ctl_add(y, st);
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

static void
yamux_send(struct rv_engine *e, struct rv_stream *st, reeve_buf_t *b)
{
	struct rv_yamux *y = yamux(e);
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
		e->ops->reset(e, st, RV_YGO_INTERNAL);
		return;
	}
	if (st->send_credit > 0) {
		rv_yamux_ready_add(y, st);
	} else if (!(st->flags & RV_ST_STALLED)) {
		st->flags |= RV_ST_STALLED;
		rvq_counter_add(&e->stats.stalls_window, 1);
	}
}

/* Credit that is due is announced, or withheld while too many bytes are held. */
static void
evaluate(struct rv_yamux *y, struct rv_stream *st)
{
	int level = rv_yamux_budget(y);
	uint32_t delta;

	if (level >= 2) {
		if (!(st->flags & RV_ST_WAITING)) {
			rv_yamux_wait_add(&y->withheld, st);
			y->held_at = y->now;
		}
		return;
	}
	rv_yamux_wait_del(y, st);
	delta = rv_window_update(&y->win, st, rv_rtt_least(&y->rtt, y->now), y->now, level == 0);
	if (delta == 0)
		return;
	rvq_counter_max(&y->e.stats.window_max, st->window);
	if (y->rtt.n > 0 && y->rtt.next < RV_RTT_BURST && !y->rtt.inflight &&
	    y->e.cfg.user.keepalive_ms != REEVE_OFF)
		y->ping_owed = true;
	st->owed += delta;
	rv_yamux_ctl_add(y, st);
}

static void
yamux_consumed(struct rv_engine *e, struct rv_stream *st, uint32_t n, uint64_t now)
{
	struct rv_yamux *y = yamux(e);
	struct rvq_counter *unread = &e->stats.unread;

	if (n > st->unread)
		n = st->unread;
	st->unread -= n;
	st->consumed += n;
	rvq_counter_set(unread, rvq_counter_get(unread) - n);
	y->now = now;
	if (st->rx == RV_RX_OPEN && rv_window_look(st) && (st->flags & RV_ST_TABLED))
		evaluate(y, st);
}

static void
yamux_shut(struct rv_engine *e, struct rv_stream *st)
{
	if (rv_tx_step(st, RV_TXE_SHUT) == RV_OWE_FIN && st->out.bytes == 0)
		rv_yamux_ctl_add(yamux(e), st);
}

static void
yamux_stop(struct rv_engine *e, struct rv_stream *st)
{
	struct rv_yamux *y = yamux(e);

	(void)rv_rx_step(st, RV_RXE_STOP);
	if (st->rx != RV_RX_STOPPED)
		return;
	rv_yamux_wait_del(y, st);
	st->owed = 0;
}

static void
yamux_reset(struct rv_engine *e, struct rv_stream *st, uint32_t code)
{
	struct rv_yamux *y = yamux(e);

	if (!(st->flags & RV_ST_TABLED))
		return;
	if (rv_tx_step(st, RV_TXE_RESET) == RV_CLEAR)
		rv_yamux_drop_queue(y, st);
	(void)rv_rx_step(st, RV_RXE_RESET);
	rv_yamux_accepted(y, st);
	rv_yamux_wait_del(y, st);
	st->owed = 0;
	if (st->flags & RV_ST_SYN) {
		rv_yamux_end_stream(y, st); /* the peer has never heard of it */
		return;
	}
	st->flags |= RV_ST_RST;
	st->rst_code = code;
	rv_yamux_ctl_add(y, st);
}

/* Nobody reads or writes any more: no events, and a timer so that a peer that never ends does
 * not keep the record. */
static void
let_go(struct rv_yamux *y, struct rv_stream *st)
{
	uint32_t ms = y->e.cfg.user.linger_ms;

	rv_yamux_wait_del(y, st);
	st->flags |= RV_ST_CLOSED;
	st->events = 0;
	st->owed = 0;
	rv_yamux_forget_unread(y, st);
	rv_yamux_accepted(y, st);
	(void)rv_rx_step(st, RV_RXE_CLOSE);
	if (!(st->flags & RV_ST_TABLED) || ms == REEVE_OFF)
		return;
	st->updated = y->now + (uint64_t)ms * MS_US;
	rv_yamux_wait_add(&y->lingering, st);
}

static void
yamux_close(struct rv_engine *e, struct rv_stream *st, bool unread, uint64_t now)
{
	struct rv_yamux *y = yamux(e);

	y->now = now;
	if (st->flags & RV_ST_CLOSED)
		return;
	yamux_shut(e, st);
	let_go(y, st);
	if (unread && st->rx == RV_RX_LINGER && (st->flags & RV_ST_TABLED)) {
		st->flags |= RV_ST_RST;
		rv_yamux_ctl_add(y, st);
	}
}

static void
yamux_drop(struct rv_engine *e, struct rv_stream *st)
{
	struct rv_yamux *y = yamux(e);

	if (st->flags & RV_ST_CLOSED)
		return;
	let_go(y, st);
	if (!(st->flags & RV_ST_TABLED))
		return;
	if ((st->flags & RV_ST_SYN) && st->out.bytes == 0) {
		st->tx = RV_TX_RESET;
		st->rx = RV_RX_RESET;
		rv_yamux_end_stream(y, st); /* the peer has never heard of it */
	} else if (st->rx == RV_RX_FIN) {
		yamux_shut(e, st);
	} else if (rv_tx_step(st, RV_TXE_DROP) == RV_OWE_RST) {
		st->flags |= RV_ST_RST;
		rv_yamux_ctl_add(y, st);
	}
}

static bool
yamux_ping(struct rv_engine *e, uint64_t now)
{
	struct rv_yamux *y = yamux(e);

	y->now = now;
	if (y->rtt.inflight) {
		y->ping_again = true;
		return false;
	}
	y->ping_asked = true;
	y->ping_owed = true;
	return true;
}

static void
yamux_goaway(struct rv_engine *e, uint32_t code)
{
	queue_goaway(yamux(e), code);
}

static void
yamux_closing(struct rv_engine *e)
{
	struct rv_yamux *y = yamux(e);
	struct rv_stream *st;

	e->refusing = true;
	for (uint32_t i = 0; i < y->tab.cap; i++) {
		st = y->tab.v[i].st;
		if (st == NULL || (st->flags & RV_ST_CLOSED))
			continue;
		st->events |= 1u << RV_EV_CLOSING;
		rv_yamux_note(y, st);
	}
}

static void
yamux_end(struct rv_engine *e)
{
	struct rv_yamux *y = yamux(e);
	struct rv_stream *st;

	if (e->ended)
		return;
	e->ended = e->refusing = true;
	for (; (st = y->ready.head) != NULL; rv_yamux_note(y, st)) {
		y->ready.head = st->ready_next;
		st->flags &= ~RV_ST_IN_READY;
	}
	for (; (st = y->ctl.head) != NULL; rv_yamux_note(y, st)) {
		y->ctl.head = st->ctl_next;
		st->flags &= ~RV_ST_IN_CTL;
	}
	y->ready.tail = y->ctl.tail = NULL;
	for (uint32_t i = 0; i < y->tab.cap; i++) {
		st = y->tab.v[i].st;
		if (st == NULL)
			continue;
		if (st->tx <= RV_TX_KILL)
			rv_yamux_drop_queue(y, st);
		st->tx = RV_TX_RESET;
		st->rx = RV_RX_RESET;
		rv_yamux_end_stream(y, st);
	}
	rv_idtab_fini(&y->tab, e->cfg.arena);
	y->slot_due = false;
}

/* --- time */

static uint64_t
ping_patience(const struct rv_yamux *y)
{
	uint32_t ms = y->e.cfg.user.keepalive_timeout_ms;

	return ms == REEVE_OFF ? RV_Y_PING_DROP_US : (uint64_t)ms * MS_US;
}

/* When silence has lasted long enough for a ping, and for the end; UINT64_MAX: never. */
static void
silence(const struct rv_yamux *y, uint64_t *ping, uint64_t *dead)
{
	const reeve_cfg_t *c = &y->e.cfg.user;

	*ping = *dead = UINT64_MAX;
	if (c->keepalive_ms == REEVE_OFF)
		return;
	*ping = y->last_rx + (uint64_t)c->keepalive_ms * MS_US;
	if (c->keepalive_timeout_ms != REEVE_OFF)
		*dead = *ping + (uint64_t)c->keepalive_timeout_ms * MS_US;
}

static int
yamux_tick(struct rv_engine *e, uint64_t now)
{
	struct rv_yamux *y = yamux(e);
	struct rv_stream *st, *next;
	uint64_t ping, dead;

	if (e->ended || y->dead)
		return y->dead ? e->reason.rc : 0;
	y->now = now;
	silence(y, &ping, &dead);
	if (now >= dead)
		return rv_yamux_fail(y, RV_YMSG_DEAD);
	if (y->rtt.inflight && now >= y->rtt.sent + ping_patience(y)) {
		rv_rtt_forget(&y->rtt);
		y->ping_asked |= y->ping_again;
		y->ping_again = false;
		y->ping_owed |= y->ping_asked;
	}
	if (now >= ping && !y->rtt.inflight)
		y->ping_owed = true;
	while ((st = y->lingering.head) != NULL && now >= st->updated)
		yamux_reset(e, st, 0);
	if (y->withheld.head != NULL && rv_yamux_budget(y) < 2)
		for (st = y->withheld.head; st != NULL; st = next) {
			next = st->wait_next;
			evaluate(y, st);
		}
	y->held_at = now;
	return 0;
}

static uint64_t
yamux_next_deadline(const struct rv_engine *e)
{
	const struct rv_yamux *y = (const struct rv_yamux *)e;
	uint64_t ping, dead, at;

	if (e->ended || y->dead)
		return UINT64_MAX;
	silence(y, &ping, &dead);
	at = y->rtt.inflight || y->ping_owed ? dead : ping;
	if (y->rtt.inflight && y->rtt.sent + ping_patience(y) < at)
		at = y->rtt.sent + ping_patience(y);
	if (y->lingering.head != NULL && y->lingering.head->updated < at)
		at = y->lingering.head->updated;
	if (y->withheld.head != NULL && y->held_at + RV_Y_HELD_US < at)
		at = y->held_at + RV_Y_HELD_US;
	return at;
}

static void
yamux_destroy(struct rv_engine *e)
{
	struct rv_yamux *y = yamux(e);
	struct rv_arena *ar = e->cfg.arena;

	rv_idtab_fini(&y->tab, ar);
	rv_refusals_fini(&y->refusals, ar);
	rv_free(ar, y, sizeof(*y));
}

void
rv_yamux_set_next_id(struct rv_engine *e, uint64_t id)
{
	yamux(e)->next_id = id;
}

static const struct rv_engine_ops yamux_ops = {
    .feed = rv_yamux_feed,
    .feed_end = rv_yamux_feed_end,
    .drain = rv_yamux_drain,
    .has_output = rv_yamux_has_output,
    .notify = rv_yamux_notify,
    .open = yamux_open,
    .accept = yamux_accept,
    .send = yamux_send,
    .consumed = yamux_consumed,
    .shut = yamux_shut,
    .stop = yamux_stop,
    .reset = yamux_reset,
    .close = yamux_close,
    .drop = yamux_drop,
    .ping = yamux_ping,
    .goaway = yamux_goaway,
    .closing = yamux_closing,
    .end = yamux_end,
    .tick = yamux_tick,
    .alive = rv_yamux_alive,
    .next_deadline = yamux_next_deadline,
    .destroy = yamux_destroy,
};

int
rv_yamux_create(struct rv_engine **out, const struct rv_engine_cfg *cfg)
{
	struct rv_yamux *y;

	REEVE_REQUIRE(cfg->role == REEVE_DIALER || cfg->role == REEVE_LISTENER, REEVE_EINVAL);
	REEVE_REQUIRE(cfg->record_size >= sizeof(struct rv_stream), REEVE_EINVAL);
	REEVE_REQUIRE(
	    cfg->arena != NULL && cfg->sink.emit != NULL && cfg->sink.room != NULL, REEVE_EINVAL);
	y = rv_zalloc(cfg->arena, sizeof(*y));
	if (y == NULL)
		return REEVE_ENOMEM;
	y->e.ops = &yamux_ops;
	y->e.cfg = *cfg;
	y->e.reason.size = sizeof(y->e.reason);
	y->e.reason.id = "";
	y->now = y->last_rx = cfg->now;
	y->next_id = cfg->role == REEVE_DIALER ? 1 : 2;
	y->win.grow = cfg->user.grow;
	y->win.max = cfg->user.max_window;
	rv_idtab_init(&y->tab, cfg->now);
	rv_refusals_init(&y->refusals);
	rv_bucket_init(&y->churn, cfg->user.churn_burst, cfg->user.churn_per_s, cfg->now);
	rvq_counter_set(&y->e.stats.window_max, RV_WINDOW0);
	y->ping_owed = true; /* the first round trip */
	*out = &y->e;
	return 0;
}
