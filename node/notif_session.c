/* notif_session.c - the actor of an open stream: how it begins, goes on and ends.
 *
 * RUN until somebody ends it.  DRAIN: we do; what was accepted is sent until a deadline, and what comes is still delivered.
 * DELIVER: the peer or the connection does; what came is delivered, nothing is sent any more.  Then both substreams are
 * closed and it is counted what did not leave (SETTLE); CLOSED is said by the peer's actor, once. */
#include <config.h>

#include "node/notif_session.h"

#include "actors/worker.h"
#include "lib/check.h"

void
rvn_session_ring(struct reeve_sink *k, uint32_t bits)
{
	rva_ring(&k->actor, &k->bell, bits);
}

reeve_sink_t *
reeve_sink_ref(reeve_sink_t *k)
{
	if (k != NULL)
		rvq_ref_get(&k->refs);
	return k;
}

void
reeve_sink_unref(reeve_sink_t *k)
{
	if (k != NULL && rvq_ref_put(&k->refs))
		rvn_session_ring(k, RVN_K_LAST);
}

/* What is queued, to the gauge. */
static void
tell_queued(struct reeve_sink *k)
{
	if (k->popped > k->told_queued)
		rvq_gauge_add(&k->gauges->queued, k->popped - k->told_queued);
	else if (k->popped < k->told_queued)
		rvq_gauge_sub(&k->gauges->queued, k->told_queued - k->popped);
	k->told_queued = k->popped;
}

/* --- ends --- */

/* No sends from now on: they answer rc.  Any thread. */
static void
no_more_sends(struct reeve_sink *k, int rc)
{
	(void)rvq_cell32_cas(&k->rc, (uint32_t)RVA_RC_OPEN, (uint32_t)rc);
	(void)rvq_cell64_or(&k->queued, RVN_K_CLOSED);
	(void)rvq_parker_wake(&k->room);
}

static void
close_sends(struct reeve_sink *k, int rc)
{
	no_more_sends(k, rc);
	rvn_send_take(k);
	rvn_send_refuse(k);
}

static void
set_reason(struct reeve_sink *k, const reeve_reason_t *why)
{
	if (k->reasoned)
		return;
	k->reasoned = true;
	k->reason = *why;
	k->reason.size = sizeof(k->reason);
}

void
rvn_session_fail(struct reeve_sink *k, const reeve_reason_t *why)
{
	set_reason(k, why);
	if (k->phase == RVN_KP_RUN) {
		k->phase = RVN_KP_DELIVER;
		k->idle_at = k->actor.home->now + RVN_K_IDLE_US;
		close_sends(k, why->rc < 0 ? why->rc : REEVE_EEND);
	}
	rvn_session_ring(k, RVN_K_LOOK);
}

/* A direction of s ended with rc (0: FIN). */
static void
fail_by(struct reeve_sink *k, reeve_stream_t *s, int rc)
{
	reeve_reason_t why = {.size = sizeof(why)};

	(void)reeve_stream_reason(s, &why);
	why.rc = rc < 0 ? rvn_error(s, rc) : 0;
	if (why.by == REEVE_BY_NONE || rc == 0)
		why.by = REEVE_BY_PEER;
	if (why.id == NULL)
		why.id = "";
	rvn_session_fail(k, &why);
}

static void
drain(struct reeve_sink *k, int rc, uint64_t deadline)
{
	reeve_reason_t why = rvn_reason(rc, REEVE_BY_US);

	if (k->phase == RVN_KP_RUN) {
		set_reason(k, &why);
		k->phase = RVN_KP_DRAIN;
		k->deadline = deadline;
		close_sends(k, REEVE_ECLOSED);
	} else if (k->phase == RVN_KP_DRAIN && deadline < k->deadline) {
		k->deadline = deadline;
	} else if (k->phase == RVN_KP_DELIVER) {
		k->broken = true; /* who closes does not want the rest */
	}
}

static void
finish(struct reeve_sink *k)
{
	bool unsent = k->pushed > 0;

	k->phase = RVN_KP_SETTLE;
	rva_timer_clear(&k->actor.home->wheel, &k->timer);
	rvn_send_take(k);
	rvn_send_drop(k);
	tell_queued(k);
	rvn_recv_drop(k);
	if (k->tapped)
		k->out->tap = NULL;
	k->tapped = false;
	/* What is counted as lost is not sent all the same. */
	if (unsent && !k->out_dead)
		(void)reeve_reset(k->out, 0);
	reeve_close(k->out);
	reeve_close(k->in);
	k->out = k->in = NULL;
}

/* The peer's direction has ended inside a message: that was not its clean end. */
static void
check_truncation(struct reeve_sink *k)
{
	if (k->in_rc == 0 && !k->broken && (k->msg != NULL || k->got.bytes > 0) &&
	    k->reason.rc == 0 && k->reason.by == REEVE_BY_PEER)
		k->reason.rc = REEVE_ETRUNC;
}

static bool
drained(const struct reeve_sink *k, uint64_t now)
{
	return k->out_dead || now >= k->deadline ||
	    (k->out_shut ? k->pushed == 0 : (rvq_cell64_get(&k->queued) & ~RVN_K_CLOSED) == 0);
}

static bool
delivered(const struct reeve_sink *k, uint64_t now)
{
	if (k->broken)
		return true;
	if (k->holding || k->stuck)
		return false;
	return (k->in_rc != 1 && k->rd_out == 0) || now >= k->idle_at;
}

static void
look(struct reeve_sink *k)
{
	uint64_t now = k->actor.home->now;

	if (k->phase == RVN_KP_DRAIN && drained(k, now)) {
		finish(k);
	} else if (k->phase == RVN_KP_DELIVER && delivered(k, now)) {
		check_truncation(k);
		finish(k);
	}
	if (k->phase == RVN_KP_SETTLE && k->rd_out == 0 && !k->watching &&
	    (rvq_cell64_get(&k->queued) & ~RVN_K_CLOSED) == 0) {
		k->phase = RVN_KP_OVER;
		rva_ring(&k->peer->actor, &k->peer->bell.bell, RVN_P_OVER);
	}
}

/* --- the substream that is ours --- */

/* Called by it, on this worker, between turns. */
static void
on_tap(struct rva_tap *t, enum rva_tap_event ev, uint32_t n)
{
	struct reeve_sink *k = rva_container(t, struct reeve_sink, tap);
	int rc;

	switch (ev) {
	case RVA_TAP_TAKEN:
		if (k->out_dead)
			return;
		rvn_send_taken(k, n);
		rvn_send_push(k, false);
		tell_queued(k);
		if (k->phase == RVN_KP_DRAIN)
			rvn_session_ring(k, RVN_K_LOOK);
		break;
	case RVA_TAP_CLOSING:
		drain(k, REEVE_ECLOSED, UINT64_MAX); /* the connection has a deadline */
		rvn_send_push(k, true);
		break;
	case RVA_TAP_ENDED:
		rc = rva_rc(&k->out->wr_rc);
		k->out_shut = true;
		if (!k->out->gone && (rc == REEVE_ESHUT || rc == REEVE_ECLOSED)) {
			rvn_session_ring(k, RVN_K_LOOK);
			return; /* what was put is still taken */
		}
		k->out_dead = true;
		fail_by(k, k->out, rc);
		break;
	}
}

static void
on_watched(reeve_op_t *op)
{
	rvn_session_ring(op->arg, RVN_K_WATCH);
}

/* Nobody has anything to say there, but it shows when the peer leaves. */
static void
watch(struct reeve_sink *k)
{
	k->watching = true;
	reeve_read_async(k->out, &k->watch);
}

static void
on_watch_bit(struct reeve_sink *k)
{
	k->watching = false;
	if (k->watch.res > 0) {
		rv_buf_unref(k->watch.buf);
		if (k->phase < RVN_KP_SETTLE)
			watch(k);
		return;
	}
	if (k->phase >= RVN_KP_SETTLE)
		return;
	k->watch_rc = (int)k->watch.res;
	if (k->phase == RVN_KP_DRAIN) /* it does not read what we still send */
		k->out_dead = true;
	fail_by(k, k->out, k->watch_rc);
}

/* --- turns --- */

static void
begin(struct reeve_sink *k)
{
	int rc = rva_rc(&k->out->wr_rc);

	k->phase = RVN_KP_RUN;
	rvn_recv_begin(k);
	reeve_op_init(&k->watch, on_watched, k);
	rva_op_ours(&k->watch);
	if (rc == RVA_RC_OPEN && !k->out->gone && !k->out->shut) {
		k->out->tap = &k->tap;
		k->tapped = true;
	} else {
		k->out_shut = k->out_dead = true;
		fail_by(k, k->out, rc == RVA_RC_OPEN ? REEVE_ECLOSED : rc);
	}
	if (k->watch_rc == 1)
		watch(k);
	else
		fail_by(k, k->out, k->watch_rc);
	if (k->in_rc != 1)
		fail_by(k, k->in, k->in_rc);
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	(void)now;
	rvn_session_ring(rva_container(t, struct reeve_sink, timer), RVN_K_TIME);
}

static void
rearm(struct reeve_sink *k)
{
	uint64_t at = UINT64_MAX;

	if (k->phase == RVN_KP_DRAIN)
		at = k->deadline;
	else if (k->phase == RVN_KP_DELIVER && !k->holding && !k->stuck)
		at = k->idle_at;
	if (k->waiting > 0 && k->op_due < at)
		at = k->op_due;
	if (at != UINT64_MAX || rva_timer_armed(&k->timer))
		rva_timer_set(&k->actor.home->wheel, &k->timer, at);
}

static void
receive(struct reeve_sink *k)
{
	bool went_on = k->in_rc == 1;

	rvn_recv_take(k);
	rvn_recv_deliver(k);
	if (k->phase >= RVN_KP_SETTLE)
		return;
	if (k->phase == RVN_KP_DELIVER)
		k->idle_at = k->actor.home->now + RVN_K_IDLE_US;
	if (went_on && k->in_rc != 1)
		fail_by(k, k->in, k->in_rc);
}

static void
turn(struct reeve_sink *k, uint32_t bits)
{
	if (k->phase == RVN_KP_NEW && !(bits & RVN_K_START))
		return; /* it is looked at when it begins */
	if (bits & RVN_K_START) {
		begin(k);
		bits |= RVN_K_SEND | RVN_K_READ | RVN_K_CLOSE;
	}
	if (bits & RVN_K_WATCH)
		on_watch_bit(k);
	if (bits & RVN_K_SEND) {
		rvn_send_take(k);
		if (k->phase == RVN_KP_SETTLE)
			rvn_send_drop(k);
		else if (k->phase < RVN_KP_SETTLE)
			rvn_send_push(k, false);
	}
	if (bits & RVN_K_RESUME)
		k->resumed = k->holding;
	if (bits & (RVN_K_READ | RVN_K_RESUME | RVN_K_ROOM))
		receive(k);
	if ((bits & RVN_K_CLOSE) && rvq_cell64_get(&k->close_at) != 0)
		drain(k, 0, rvq_cell64_get(&k->close_at) - 1);
	if ((bits & RVN_K_TIME) && k->waiting > 0)
		k->op_due = rvn_send_expire(k, k->actor.home->now);
	if (k->phase < RVN_KP_SETTLE) {
		tell_queued(k);
		rearm(k);
	}
	look(k);
}

static void
session_on(struct rva_actor *a, struct rvq_node *n)
{
	struct reeve_sink *k = rva_container(a, struct reeve_sink, actor);
	uint32_t bits;

	if (n != &k->bell.node) {
		rvn_send_cancel(k, rva_op_of_cancel(n));
		bits = RVN_K_SEND;
	} else {
		bits = rvq_bell_answer(&k->bell);
		k->owning |= (bits & RVN_K_SEND) != 0;
	}
	if (bits & RVN_K_LAST) {
		a->dead = true;
		return;
	}
	turn(k, bits);
}

static void
session_free(struct rva_actor *a)
{
	struct reeve_sink *k = rva_container(a, struct reeve_sink, actor);

	rv_free(k->arena, k, sizeof(*k));
}

/* Without a callback nothing of the application is called: threads that send and take may run it. */
static const struct rva_actor_ops session_ops[2] = {{.on = session_on, .free = session_free},
    {.on = session_on, .free = session_free, .lend = true}};

/* --- life --- */

struct reeve_sink *
rvn_session_new(struct rvn_npeer *r, reeve_stream_t *out, int *rc)
{
	struct reeve_notif *p = r->p;
	struct reeve_sink *k = rv_alloc(p->arena, sizeof(*k), 64);
	struct rvn_nev *opened = rvn_nev_new(p->arena), *closed = rvn_nev_new(p->arena);

	*rc = REEVE_ENOMEM;
	if (k == NULL || opened == NULL || closed == NULL ||
	    (!rvn_nlive(p) && (*rc = REEVE_ECLOSED))) {
		rvn_nev_free(opened);
		rvn_nev_free(closed);
		rv_free(p->arena, k, sizeof(*k));
		return NULL;
	}
	*rc = 0;
	memset(k, 0, sizeof(*k));
	rva_actor_init(&k->actor, out->conn->w, &session_ops[p->cfg.fn == NULL]);
	rvq_bell_init(&k->bell);
	rvq_ref_init(&k->refs, 1);
	k->arena = p->arena;
	k->rt = p->rt;
	k->max_size = p->cfg.max_size;
	k->limit = p->cfg.send_queue;
	memcpy(k->name, r->name, sizeof(k->name));
	k->p = p;
	k->peer = r;
	k->gauges = p->gauges;
	k->opened = opened;
	k->closed = closed;
	rvq_mailbox_init(&k->sendq);
	rvq_cell32_put(&k->rc, (uint32_t)RVA_RC_OPEN);
	rvq_parker_init(&k->room);
	k->fifo_tail = &k->fifo;
	k->tap.on = on_tap;
	k->timer.fn = on_timer;
	k->deadline = k->idle_at = k->op_due = UINT64_MAX;
	k->in_rc = k->watch_rc = 1;
	rv_chain_init(&k->got);
	rvn_nlock(p);
	rvn_npeer_hold(r);
	rvn_nunlock(p);
	return k;
}

void
rvn_session_discard(struct reeve_sink *k)
{
	struct reeve_notif *p;

	if (k == NULL)
		return;
	p = k->p;
	rvn_nev_free(k->opened);
	rvn_nev_free(k->closed);
	rvn_npeer_drop(k->peer);
	reeve_sink_unref(k);
	rvn_nover(p);
}

void
rvn_session_begin(struct reeve_sink *k)
{
	rvn_session_ring(k, RVN_K_START);
}

void
rvn_session_close(struct reeve_sink *k, uint64_t deadline)
{
	uint64_t at = deadline == UINT64_MAX ? deadline : deadline + 1, was;

	do {
		was = rvq_cell64_get(&k->close_at);
		if (was != 0 && was <= at)
			break;
	} while (!rvq_cell64_cas(&k->close_at, was, at));
	no_more_sends(k, REEVE_ECLOSED);
	rvn_session_ring(k, RVN_K_CLOSE);
}
