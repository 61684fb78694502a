/* yamux_session.c - the yamux engine: its own requests, windows, pings, time.  See yamux_session.h. */
#include <config.h>

#include "lib/engine/yamux_session.h"
#include "lib/config.h"

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
	y->m.e.refusing = true;
	if (y->goaway_owed || y->goaway_sent)
		return;
	y->goaway_owed = true;
	y->goaway_code = code;
}

int
rv_yamux_fail(struct rv_yamux *y, enum rv_ymsg msg)
{
	const struct rv_ymsg_text *m = &rv_ymsg_text[msg];
	reeve_reason_t *r = &y->m.e.reason;

	if (r->rc == 0) {
		r->size = sizeof(*r);
		r->rc = m->rc;
		r->by = msg == RV_YMSG_TRUNCATED ? REEVE_BY_TRANSPORT : REEVE_BY_US;
		r->wire_code = 0;
		r->id = m->id;
		y->m.e.why = m->text;
	}
	y->m.dead = true;
	y->m.e.refusing = true;
	if (m->code >= 0)
		queue_goaway(y, (uint32_t)m->code);
	return m->rc;
}

static int
yamux_fail(struct rv_mux *m, enum rv_mux_why why)
{
	static const enum rv_ymsg msg[] = {
	    [RV_WHY_REFUSALS] = RV_YMSG_REFUSALS,
	    [RV_WHY_REFUSE_MEM] = RV_YMSG_REFUSE_MEM,
	    [RV_WHY_CHURN] = RV_YMSG_CHURN,
	    [RV_WHY_TRUNCATED] = RV_YMSG_TRUNCATED,
	};

	return rv_yamux_fail((struct rv_yamux *)m, msg[why]);
}

static void
yamux_begin(struct rv_mux *m, struct rv_stream *st)
{
	rv_window_init(st, m->now);
}

static void
yamux_over(struct rv_mux *m, struct rv_stream *st)
{
	rv_window_release(&((struct rv_yamux *)m)->win, st);
}

/* --- requests */

static int
yamux_open(struct rv_engine *e, struct rv_stream **out, uint64_t now)
{
	struct rv_yamux *y = yamux(e);
	struct rv_stream *st;

	y->m.now = now;
	if (e->ended || y->m.dead)
		return REEVE_ECLOSED;
	if (e->refusing || y->away)
		return REEVE_EGOAWAY;
	if (y->m.next_id > UINT32_MAX)
		return REEVE_EEXHAUSTED;
	if (y->m.nout >= e->cfg.user.max_out)
		return REEVE_ELIMIT;
	if (e->nunacked >= e->cfg.user.max_unacked) {
		y->m.slot_wanted = true;
		return REEVE_EAGAIN;
	}
	st = rv_mux_new(&y->m, (uint32_t)y->m.next_id, RV_ST_OUTBOUND | RV_ST_SYN | RV_ST_UNACKED);
	if (st == NULL)
		return REEVE_ENOMEM;
	y->m.next_id += 2;
	rv_mux_ctl_add(&y->m, st);
	*out = st;
	return 0;
}

/* Credit that is due is announced, or withheld while too many bytes are held. */
static void
evaluate(struct rv_yamux *y, struct rv_stream *st)
{
	int level = rv_mux_budget(&y->m);
	uint32_t delta;

	if (level >= 2) {
		if (!(st->flags & RV_ST_WAITING)) {
			rv_mux_wait_add(&y->m.withheld, st);
			y->held_at = y->m.now;
		}
		return;
	}
	rv_mux_wait_del(&y->m, st);
	delta = rv_window_update(
	    &y->win, st, rv_rtt_least(&y->rtt, y->m.now), y->m.now, level == 0);
	if (delta == 0)
		return;
	rvq_counter_max(&y->m.e.stats.window_max, st->window);
	if (y->rtt.n > 0 && y->rtt.next < RV_RTT_BURST && !y->rtt.inflight &&
	    y->m.e.cfg.user.keepalive_ms != REEVE_OFF)
		y->ping_owed = true;
	st->owed += delta;
	rv_mux_ctl_add(&y->m, st);
}

static void
yamux_consumed(struct rv_engine *e, struct rv_stream *st, uint32_t n, uint64_t now)
{
	struct rv_yamux *y = yamux(e);

	rv_mux_consumed(&y->m, st, n, now);
	if (st->rx == RV_RX_OPEN && rv_window_look(st) && (st->flags & RV_ST_TABLED))
		evaluate(y, st);
}

static bool
yamux_ping(struct rv_engine *e, uint64_t now)
{
	struct rv_yamux *y = yamux(e);

	y->m.now = now;
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

/* --- time */

static uint64_t
ping_patience(const struct rv_yamux *y)
{
	uint32_t ms = y->m.e.cfg.user.keepalive_timeout_ms;

	return ms == REEVE_OFF ? RV_Y_PING_DROP_US : (uint64_t)ms * RV_MS_US;
}

/* When silence has lasted long enough for a ping, and for the end; UINT64_MAX: never. */
static void
silence(const struct rv_yamux *y, uint64_t *ping, uint64_t *dead)
{
	const reeve_cfg_t *c = &y->m.e.cfg.user;

	*ping = *dead = UINT64_MAX;
	if (c->keepalive_ms == REEVE_OFF)
		return;
	*ping = y->last_rx + (uint64_t)c->keepalive_ms * RV_MS_US;
	if (c->keepalive_timeout_ms != REEVE_OFF)
		*dead = *ping + (uint64_t)c->keepalive_timeout_ms * RV_MS_US;
}

static int
yamux_tick(struct rv_engine *e, uint64_t now)
{
	struct rv_yamux *y = yamux(e);
	struct rv_stream *st, *next;
	uint64_t ping, dead;

	if (e->ended || y->m.dead)
		return y->m.dead ? e->reason.rc : 0;
	y->m.now = now;
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
	rv_mux_linger(&y->m, now);
	if (y->m.withheld.head != NULL && rv_mux_budget(&y->m) < 2)
		for (st = y->m.withheld.head; st != NULL; st = next) {
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

	if (e->ended || y->m.dead)
		return UINT64_MAX;
	silence(y, &ping, &dead);
	at = y->rtt.inflight || y->ping_owed ? dead : ping;
	if (y->rtt.inflight && y->rtt.sent + ping_patience(y) < at)
		at = y->rtt.sent + ping_patience(y);
	if (y->m.lingering.head != NULL && y->m.lingering.head->updated < at)
		at = y->m.lingering.head->updated;
	if (y->m.withheld.head != NULL && y->held_at + RV_Y_HELD_US < at)
		at = y->held_at + RV_Y_HELD_US;
	return at;
}

static void
yamux_destroy(struct rv_engine *e)
{
	struct rv_yamux *y = yamux(e);

	rv_mux_fini(&y->m);
	rv_free(e->cfg.arena, y, sizeof(*y));
}

void
rv_yamux_set_next_id(struct rv_engine *e, uint64_t id)
{
	yamux(e)->m.next_id = id;
}

static const struct rv_engine_ops yamux_ops = {
    .feed = rv_yamux_feed,
    .feed_end = rv_yamux_feed_end,
    .drain = rv_yamux_drain,
    .has_output = rv_yamux_has_output,
    .notify = rv_yamux_notify,
    .open = yamux_open,
    .accept = rv_mux_accept,
    .send = rv_mux_send,
    .consumed = yamux_consumed,
    .shut = rv_mux_shut,
    .stop = rv_mux_stop,
    .reset = rv_mux_reset,
    .close = rv_mux_close,
    .drop = rv_mux_drop,
    .ping = yamux_ping,
    .goaway = yamux_goaway,
    .closing = rv_mux_closing,
    .end = rv_mux_end,
    .tick = yamux_tick,
    .alive = rv_yamux_alive,
    .next_deadline = yamux_next_deadline,
    .destroy = yamux_destroy,
};

static const struct rv_mux_ops yamux_mux = {
    .fail = yamux_fail,
    .begin = yamux_begin,
    .over = yamux_over,
    .owed = rv_yamux_owed,
    .frame = rv_yamux_frame,
};

int
rv_yamux_create(struct rv_engine **out, const struct rv_engine_cfg *cfg)
{
	struct rv_yamux *y;
	int rc;

	REEVE_REQUIRE(cfg->arena != NULL, REEVE_EINVAL);
	y = rv_zalloc(cfg->arena, sizeof(*y));
	REEVE_REQUIRE(y != NULL, REEVE_ENOMEM);
	rc = rv_mux_init(&y->m, cfg, &yamux_mux);
	if (rc < 0) {
		rv_free(cfg->arena, y, sizeof(*y));
		return rc;
	}
	y->m.e.ops = &yamux_ops;
	y->last_rx = cfg->now;
	y->m.next_id = cfg->role == REEVE_DIALER ? 1 : 2;
	y->win.grow = cfg->user.grow;
	y->win.max = cfg->user.max_window;
	rvq_counter_set(&y->m.e.stats.window_max, RV_WINDOW0);
	y->ping_owed = true; /* the first round trip */
	*out = &y->m.e;
	return 0;
}
