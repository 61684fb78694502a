/* mplex_session.c - the mplex engine: its own requests, receive bounds, time.  See mplex_session.h. */
#include <config.h>

#include "lib/engine/mplex_session.h"

#define UNBLOCK 4u /* parsing goes on when one part in so many of a bound is free */

static struct rv_mplex *
mplex(struct rv_engine *e)
{
	return (struct rv_mplex *)e;
}

const struct rv_mpmsg_text rv_mpmsg_text[RV_MPMSG_COUNT] = {
#define X(name, id, rc, text) {"REEVE-MPLEX-" id, text, REEVE_##rc},
    RV_MPMSG_MAP(X)
#undef X
};

int
rv_mplex_fail(struct rv_mplex *x, enum rv_mpmsg msg)
{
	const struct rv_mpmsg_text *t = &rv_mpmsg_text[msg];
	reeve_reason_t *r = &x->m.e.reason;

	if (r->rc == 0) {
		r->rc = t->rc;
		r->by = msg == RV_MPMSG_TRUNCATED ? REEVE_BY_TRANSPORT : REEVE_BY_US;
		r->wire_code = 0;
		r->id = t->id;
		x->m.e.why = t->text;
	}
	x->m.dead = true;
	x->m.e.refusing = true;
	return t->rc;
}

static int
mplex_fail(struct rv_mux *m, enum rv_mux_why why)
{
	static const enum rv_mpmsg msg[] = {
	    [RV_WHY_REFUSALS] = RV_MPMSG_REFUSALS,
	    [RV_WHY_REFUSE_MEM] = RV_MPMSG_REFUSE_MEM,
	    [RV_WHY_CHURN] = RV_MPMSG_CHURN,
	    [RV_WHY_TRUNCATED] = RV_MPMSG_TRUNCATED,
	};

	return rv_mplex_fail((struct rv_mplex *)m, msg[why]);
}

static void
mplex_begin(struct rv_mux *m, struct rv_stream *st)
{
	(void)m;
	st->send_credit = UINT32_MAX; /* there is no credit: never used up */
}

static void
mplex_over(struct rv_mux *m, struct rv_stream *st)
{
	(void)st;
	rv_mplex_recheck((struct rv_mplex *)m);
}

/* --- receive bounds */

/* Bytes unread of streams that may still receive: those of an ended direction do not grow, and to reset their stream
 * would free nothing.  The sum is only made where it decides. */
static uint64_t
growing(const struct rv_mplex *x, int level)
{
	uint64_t all = rvq_counter_get(&x->m.e.stats.unread), sum = 0,
		 max = x->m.e.cfg.user.max_recv;
	const struct rv_stream *st;

	if (all <= max - max / UNBLOCK && level < 3)
		return all;
	for (uint32_t i = 0; i < x->m.tab.cap; i++) {
		st = x->m.tab.v[i].st;
		if (st != NULL && st->rx == RV_RX_OPEN)
			sum += st->unread;
	}
	return sum;
}

/* At a bound of held memory a stream may go on when nothing is waiting to be read: so a connection lives on behind
 * handles that the application forgot. */
uint32_t
rv_mplex_room(const struct rv_mplex *x, const struct rv_stream *st, int level)
{
	const reeve_cfg_t *c = &x->m.e.cfg.user;
	uint64_t sum = growing(x, level), room;

	if (sum >= c->max_recv || st->unread >= c->max_window || (sum > 0 && level >= 3))
		return 0;
	room = c->max_recv - sum;
	return room < c->max_window - st->unread ? (uint32_t)room : c->max_window - st->unread;
}

enum rv_mp_bound
rv_mplex_bound(const struct rv_mplex *x)
{
	if (x->m.body_st->unread >= x->m.e.cfg.user.max_window)
		return RV_MP_STREAM;
	return growing(x, rv_mux_budget(&x->m)) >= x->m.e.cfg.user.max_recv ? RV_MP_CONN
									    : RV_MP_MEMORY;
}

/* Parsing waits for a part of the bound that stopped it, so that a slow reader does not cost a turn for every byte. */
void
rv_mplex_recheck(struct rv_mplex *x)
{
	const struct rv_stream *st = x->m.body_st;
	const reeve_cfg_t *c = &x->m.e.cfg.user;

	if (!x->m.e.blocked)
		return;
	if (st != NULL && st->rx == RV_RX_OPEN &&
	    (rv_mplex_room(x, st, rv_mux_budget(&x->m)) == 0 ||
		(x->bound == RV_MP_STREAM &&
		    st->unread > c->max_window - c->max_window / UNBLOCK) ||
		(x->bound == RV_MP_CONN &&
		    growing(x, rv_mux_budget(&x->m)) > c->max_recv - c->max_recv / UNBLOCK)))
		return;
	x->m.e.blocked = false;
}

void
rv_mplex_slow(struct rv_mplex *x, struct rv_stream *st)
{
	struct rv_mux *m = &x->m;

	rv_mux_reset(&m->e, st, 0);
	st->events |= 1u << RV_EV_SLOW;
	rv_mux_note(m, st);
	/* It has held up the others long enough: any room will do. */
	if (m->body_st == NULL || m->body_st->rx != RV_RX_OPEN ||
	    rv_mplex_room(x, m->body_st, rv_mux_budget(m)) > 0)
		m->e.blocked = false;
}

/* The stream at its own bound, else the one with the most unread bytes.  Memory that is short may be somebody else's
 * fault: then only a stream that has much of it. */
struct rv_stream *
rv_mplex_slowest(const struct rv_mplex *x, enum rv_mp_bound bound)
{
	uint32_t least = bound == RV_MP_CONN ? 1 : x->m.e.cfg.user.max_window / UNBLOCK;
	struct rv_stream *st, *worst = NULL;

	if (bound == RV_MP_STREAM)
		return x->m.body_st;
	for (uint32_t i = 0; i < x->m.tab.cap; i++) {
		st = x->m.tab.v[i].st;
		if (st != NULL && st->rx == RV_RX_OPEN && st->unread >= least &&
		    (worst == NULL || st->unread > worst->unread))
			worst = st;
	}
	return worst;
}

/* --- requests */

static int
mplex_open(struct rv_engine *e, struct rv_stream **out, uint64_t now)
{
	struct rv_mplex *x = mplex(e);
	struct rv_mux *m = &x->m;
	struct rv_stream *st;

	m->now = now;
	if (e->ended || m->dead)
		return REEVE_ECLOSED;
	if (e->refusing)
		return REEVE_EGOAWAY;
	if (m->next_id > RV_MP_ID_LAST)
		return REEVE_EEXHAUSTED;
	if (m->nout >= e->cfg.user.max_out)
		return REEVE_ELIMIT;
	st = rv_mux_new(m, rv_mp_key(m->next_id, true), RV_ST_OUTBOUND | RV_ST_SYN);
	if (st == NULL)
		return REEVE_ENOMEM;
	m->next_id++;
	rv_mux_ctl_add(m, st);
	*out = st;
	return 0;
}

static void
mplex_consumed(struct rv_engine *e, struct rv_stream *st, uint32_t n, uint64_t now)
{
	rv_mux_consumed(rv_mux_of(e), st, n, now);
	rv_mplex_recheck(mplex(e));
}

static void
mplex_stop(struct rv_engine *e, struct rv_stream *st)
{
	rv_mux_stop(e, st);
	if (st->rx == RV_RX_STOPPED) /* what nobody will read holds up nobody */
		rv_mux_forget_unread(rv_mux_of(e), st);
	rv_mplex_recheck(mplex(e));
}

static void
mplex_reset(struct rv_engine *e, struct rv_stream *st, uint32_t code)
{
	rv_mux_reset(e, st, code);
	rv_mplex_recheck(mplex(e));
}

static void
mplex_close(struct rv_engine *e, struct rv_stream *st, bool unread, uint64_t now)
{
	rv_mux_close(e, st, unread, now);
	rv_mplex_recheck(mplex(e));
}

static void
mplex_drop(struct rv_engine *e, struct rv_stream *st)
{
	rv_mux_drop(e, st);
	rv_mplex_recheck(mplex(e));
}

static void
mplex_goaway(struct rv_engine *e, uint32_t code)
{
	(void)code; /* the protocol has no way to say it */
	e->refusing = true;
}

static void
mplex_end(struct rv_engine *e)
{
	e->blocked = false;
	rv_mux_end(e);
}

/* --- time */

static uint64_t
slow_deadline(const struct rv_mplex *x)
{
	uint32_t ms = x->m.e.cfg.user.slow_ms;

	if (!x->m.e.blocked || ms == REEVE_OFF)
		return UINT64_MAX;
	return x->blocked_at + (uint64_t)ms * RV_MS_US;
}

static int
mplex_tick(struct rv_engine *e, uint64_t now)
{
	struct rv_mplex *x = mplex(e);
	struct rv_stream *st;

	if (e->ended || x->m.dead)
		return x->m.dead ? e->reason.rc : 0;
	x->m.now = now;
	rv_mux_linger(&x->m, now);
	rv_mplex_recheck(x); /* a budget that others share may have room again */
	if (now < slow_deadline(x))
		return 0;
	st = rv_mplex_slowest(x, x->bound);
	if (st != NULL)
		rv_mplex_slow(x, st);
	x->blocked_at = now;
	return 0;
}

/* Silence is no reason to end: the protocol has nothing to ask with. */
static void
mplex_alive(struct rv_engine *e, uint64_t now)
{
	(void)e;
	(void)now;
}

static uint64_t
mplex_next_deadline(const struct rv_engine *e)
{
	const struct rv_mplex *x = (const struct rv_mplex *)e;
	uint64_t at;

	if (e->ended || x->m.dead)
		return UINT64_MAX;
	at = slow_deadline(x);
	if (x->m.lingering.head != NULL && x->m.lingering.head->updated < at)
		at = x->m.lingering.head->updated;
	return at;
}

static void
mplex_destroy(struct rv_engine *e)
{
	struct rv_mplex *x = mplex(e);

	rv_mux_fini(&x->m);
	rv_free(e->cfg.arena, x, sizeof(*x));
}

void
rv_mplex_set_next_id(struct rv_engine *e, uint64_t id)
{
	mplex(e)->m.next_id = id;
}

static const struct rv_engine_ops mplex_ops = {
    .feed = rv_mplex_feed,
    .feed_end = rv_mplex_feed_end,
    .drain = rv_mplex_drain,
    .has_output = rv_mplex_has_output,
    .notify = rv_mplex_notify,
    .open = mplex_open,
    .accept = rv_mux_accept,
    .send = rv_mux_send,
    .consumed = mplex_consumed,
    .shut = rv_mux_shut,
    .stop = mplex_stop,
    .reset = mplex_reset,
    .close = mplex_close,
    .drop = mplex_drop,
    .ping = NULL,
    .goaway = mplex_goaway,
    .closing = rv_mux_closing,
    .end = mplex_end,
    .tick = mplex_tick,
    .alive = mplex_alive,
    .next_deadline = mplex_next_deadline,
    .destroy = mplex_destroy,
};

static const struct rv_mux_ops mplex_mux = {
    .fail = mplex_fail,
    .begin = mplex_begin,
    .over = mplex_over,
    .owed = rv_mplex_owed,
    .frame = rv_mplex_frame,
};

int
rv_mplex_create(struct rv_engine **out, const struct rv_engine_cfg *cfg)
{
	struct rv_mplex *x;
	int rc;

	REEVE_REQUIRE(cfg->arena != NULL, REEVE_EINVAL);
	x = rv_zalloc(cfg->arena, sizeof(*x));
	REEVE_REQUIRE(x != NULL, REEVE_ENOMEM);
	rc = rv_mux_init(&x->m, cfg, &mplex_mux);
	if (rc < 0) {
		rv_free(cfg->arena, x, sizeof(*x));
		return rc;
	}
	x->m.e.ops = &mplex_ops;
	x->m.e.bounds = true;
	*out = &x->m.e;
	return 0;
}
