/* open.c - a substream for a protocol: found a link or a dial, opened, negotiated; and its cancellation at any time.
 *
 * An open belongs to one owner at a time: the list of a peer that is being dialed (under the lock), a link or the clerk
 * (actors, by its start message).  Its state decides between completion and cancellation as that of an operation does:
 * who completes it claims it, who cancels it posts its stop message to the owner, and then only that completes it. */
#include <config.h>

#include "node/open.h"

#include "actors/connection.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "node/dial.h"
#include "node/link.h"

#define AGAIN 4

enum { PENDING = 0, DONE = 1, CANCELLING = 2 };

static struct rvn_open *
of_start(struct rva_msg *m)
{
	return rva_container(m, struct rvn_open, start);
}

static struct rvn_open *
of_stop(struct rva_msg *m)
{
	return rva_container(m, struct rvn_open, stop);
}

/* --- the end: the clerk's or the link's worker --- */

static void
call(struct rvn_open *o)
{
	reeve_node_t *n = o->node;
	struct rvn_link *l = o->link;

	rvq_gauge_sub(&n->opening, 1);
	o->fn(o);
	if (l != NULL)
		rvn_link_unref(l);
	rvn_drop(n);
}

static void
complete(struct rvn_open *o)
{
	o->stage = RVN_AT_DONE;
	if (o->cancelled || rvq_cell32_cas(&o->state, PENDING, DONE))
		call(o);
	else
		o->finished = true; /* its stop message is on the way */
}

/* To the clerk, who completes it.  Whoever has it. */
static void
clerk(struct rvn_open *o)
{
	rva_post(&o->node->actor, &o->start.node);
}

static void
fail(struct rvn_open *o, int rc, int step)
{
	o->rc = rc;
	o->step = step;
	clerk(o);
}

/* --- on a link: owner --- */

static void
enlist(struct rvn_open **list, struct rvn_open *o)
{
	o->next = *list;
	o->pprev = list;
	if (o->next != NULL)
		o->next->pprev = &o->next;
	*list = o;
}

static void
delist(struct rvn_open *o)
{
	*o->pprev = o->next;
	if (o->next != NULL)
		o->next->pprev = o->pprev;
}

static int64_t
ms_left(uint64_t deadline)
{
	uint64_t now = rv_clock_us();

	if (deadline == UINT64_MAX)
		return -1;
	return deadline <= now ? 0 : (int64_t)((deadline - now + 999) / 1000);
}

/* The link closes in good order, and on this stream nothing was said that the peer's protocol could have heard. */
static bool
unheard(const struct rvn_open *o, int rc)
{
	const struct rvn_link *l = o->link;

	if (o->stage == RVN_AT_OPEN)
		return rc == REEVE_EGOAWAY || rc == REEVE_ECLOSED || rc == REEVE_EEND;
	if (o->flags & RVN_LAZY)
		return false;
	return rc == REEVE_EEND ||
	    ((rc == REEVE_EREFUSED || rc == REEVE_ERESET) && (l->leaving || l->c->peer_leaves));
}

/* Then another link may do: a few times, for a peer might close each. */
static bool
once_more(struct rvn_open *o, int rc)
{
	struct rvn_link *l = o->link;
	reeve_node_t *n = o->node;
	bool again;

	if (o->again == AGAIN || o->cancelled || rvn_closing(n) || !unheard(o, rc))
		return false;
	rvn_link_leave(l, RVN_LEAVE_MS);
	rvn_lock(n);
	again = rvq_cell32_get(&o->state) == PENDING;
	if (again) {
		o->again++;
		o->link = NULL;
		o->stage = RVN_AT_NONE;
	}
	rvn_unlock(n);
	if (!again)
		return false;
	reeve_close(o->stream);
	o->stream = NULL;
	rvn_open_route(o);
	rvn_link_unref(l);
	return true;
}

static int
why(struct rvn_open *o, int rc)
{
	reeve_reason_t r = {.size = sizeof(r)};

	if (rc == REEVE_ENOMEM || rc == REEVE_ECANCELED ||
	    (rc == REEVE_ETIMEDOUT && rv_clock_us() >= o->limit))
		return rc;
	if (rvn_closing(o->node) && rc == REEVE_ECLOSED)
		return rc;
	if (o->stream != NULL)
		return rvn_error(o->stream, rc);
	(void)reeve_ctl_reason(o->link->k, &r);
	return r.by != REEVE_BY_NONE || rc == REEVE_EGOAWAY || rc == REEVE_ECLOSED ? REEVE_ELOST
										   : rc;
}

static void
finish(struct rvn_open *o, int rc)
{
	struct rvn_link *l = o->link;

	l->nopens--;
	l->used = l->actor.home->now;
	if (rc < 0 && once_more(o, rc))
		return;
	o->step = o->stage == RVN_AT_NEGOTIATE ? REEVE_STEP_NEGOTIATE : REEVE_STEP_OPEN;
	o->rc = rc < 0 ? why(o, rc) : 0;
	if (rc < 0 && o->stream != NULL) {
		reeve_close(o->stream);
		o->stream = NULL;
	}
	complete(o);
}

static void
on_negotiated(reeve_op_t *op)
{
	struct rvn_open *o = op->arg;

	if (op->res >= 0)
		o->name = (unsigned)op->res;
	finish(o, op->res < 0 ? (int)op->res : 0);
}

static void
on_opened(reeve_op_t *op)
{
	struct rvn_open *o = op->arg;
	int how = REEVE_DIALER | ((o->flags & RVN_LAZY) && o->nnames == 1 ? REEVE_LAZY : 0);

	if (op->res < 0) {
		finish(o, (int)op->res);
		return;
	}
	o->stream = op->stream;
	if (o->cancelled) {
		(void)reeve_reset(o->stream, 0);
		finish(o, REEVE_ECANCELED);
		return;
	}
	o->stage = RVN_AT_NEGOTIATE;
	op->fn = on_negotiated;
	op->timeout_ms = ms_left(o->limit);
	if (op->timeout_ms < 0)
		op->timeout_ms = INT32_MAX; /* -1 is 10 s there */
	reeve_negotiate_async(o->stream, how, o->names, o->nnames, op);
}

static void
begin(struct rvn_link *l, struct rvn_open *o)
{
	uint32_t ms = o->node->negotiate_ms;

	o->limit = o->deadline;
	if (ms != REEVE_OFF && rv_deadline_us(rv_clock_us(), ms) < o->limit)
		o->limit = rv_deadline_us(rv_clock_us(), ms);
	o->stage = RVN_AT_OPEN;
	l->nopens++;
	reeve_op_init(&o->op, on_opened, o);
	o->op.timeout_ms = ms_left(o->limit);
	reeve_open_async(l->k, &o->op);
}

static void
on_start(reeve_node_t *n, struct rvn_link *l, struct rvn_open *o)
{
	(void)n;
	if (o->cancelled) {
		o->rc = REEVE_ECANCELED;
		complete(o);
	} else if (l == NULL) {
		complete(o);
	} else if (!l->going) {
		o->stage = RVN_AT_HELD;
		enlist(&l->held, o);
	} else {
		begin(l, o);
	}
}

static void
on_stop(struct rvn_open *o)
{
	o->cancelled = true;
	if (o->finished) {
		call(o);
	} else if (o->stage == RVN_AT_HELD) {
		delist(o);
		o->rc = REEVE_ECANCELED;
		complete(o);
	} else if (o->stage != RVN_AT_NONE) { /* else its start message is still to come */
		reeve_op_cancel(&o->op);
	}
}

void
rvn_open_on(reeve_node_t *n, struct rvn_link *l, struct rva_msg *m)
{
	if (m->kind == RVN_MSG_OPEN)
		on_start(n, l, of_start(m));
	else
		on_stop(of_stop(m));
}

void
rvn_open_go(struct rvn_link *l)
{
	struct rvn_open *o;

	while ((o = l->held) != NULL) {
		delist(o);
		begin(l, o);
	}
}

/* --- waiting for a dial --- */

struct rvn_open *
rvn_open_move(struct rvn_peer *p, struct rvn_link *l)
{
	struct rvn_open *list = p->opens;

	p->opens = NULL;
	p->opens_end = &p->opens;
	for (struct rvn_open *o = list; o != NULL; o = o->next) {
		o->waiting = false;
		o->link = l;
		rvn_link_ref(l);
	}
	return list;
}

void
rvn_open_start_list(struct rvn_open *list)
{
	struct rvn_open *o;

	while ((o = list) != NULL) {
		list = o->next;
		rva_post(&o->link->actor, &o->start.node);
	}
}

/* Under the lock. */
static void
unwait(struct rvn_peer *p, struct rvn_open *o)
{
	*o->pprev = o->next;
	if (o->next != NULL)
		o->next->pprev = o->pprev;
	else
		p->opens_end = o->pprev;
	o->waiting = false;
}

struct rvn_open *
rvn_open_take(struct rvn_peer *p, uint64_t now, bool all, uint64_t *next)
{
	struct rvn_open *list = NULL, **end = &list, *o, *after;

	*next = UINT64_MAX;
	for (o = p->opens; o != NULL; o = after) {
		after = o->next;
		if (!all && o->deadline > now) {
			*next = o->deadline < *next ? o->deadline : *next;
			continue;
		}
		unwait(p, o);
		o->next = NULL;
		*end = o;
		end = &o->next;
	}
	return list;
}

void
rvn_open_fail_list(struct rvn_open *list, int rc)
{
	struct rvn_open *o;

	while ((o = list) != NULL) {
		list = o->next;
		fail(o, rc, REEVE_STEP_DIAL);
	}
}

/* --- any thread --- */

/* Under the lock: a place for o.  1: in the list of a dial, which has to look; 0: o->link has it. */
static int
place(struct rvn_open *o, struct rvn_dial **d)
{
	reeve_node_t *n = o->node;
	struct rvn_peer *p = rvn_peer_find(n, &o->id);
	uint64_t want = rv_deadline_us(
	    rv_clock_us(), n->dial_ms == REEVE_OFF ? -1 : (int64_t)n->dial_ms);
	int rc;

	/* Between two links a stop message has gone to the clerk. */
	REEVE_REQUIRE(rvq_cell32_get(&o->state) == PENDING, REEVE_ECANCELED);
	REEVE_REQUIRE(!rvn_closing(n), REEVE_ECLOSED);
	if (p != NULL && p->use[0] != NULL) {
		o->link = p->use[0];
		rvn_link_ref(o->link);
		return 0;
	}
	REEVE_REQUIRE(!(o->flags & RVN_NO_DIAL), REEVE_ENOTCONN);
	REEVE_REQUIRE(p != NULL, REEVE_EDIAL); /* no address either */
	rc = rvn_dial_join(d, n, p, NULL, o->deadline < want ? o->deadline : want);
	if (rc < 0)
		return rc == REEVE_EINVAL ? REEVE_EDIAL : rc;
	o->waiting = true;
	o->next = NULL;
	o->pprev = p->opens_end;
	*p->opens_end = o;
	p->opens_end = &o->next;
	return 1;
}

void
rvn_open_route(struct rvn_open *o)
{
	reeve_node_t *n = o->node;
	struct rvn_dial *d = NULL;
	struct rvn_link *l;
	int rc;

	rvn_lock(n);
	rc = place(o, &d);
	l = o->link;
	rvn_unlock(n);
	if (rc < 0) {
		fail(o, rc, rc == REEVE_ECLOSED ? REEVE_STEP_NONE : REEVE_STEP_DIAL);
	} else if (rc > 0) { /* o may be gone */
		rvn_dial_look(d);
		rvn_dial_unref(d);
	} else {
		rva_post(&l->actor, &o->start.node);
	}
}

void
rvn_open(reeve_node_t *n, const char *peer, struct rvn_open *o)
{
	rvn_work_get(n);
	rvq_gauge_add(&n->opening, 1);
	o->rc = 0;
	o->step = REEVE_STEP_NONE;
	o->stream = NULL;
	o->name = 0;
	o->start.kind = RVN_MSG_OPEN;
	o->stop.kind = RVN_MSG_CANCEL;
	o->node = n;
	o->link = NULL;
	o->stage = RVN_AT_NONE;
	o->waiting = o->cancelled = o->finished = false;
	o->again = 0;
	rvq_cell32_put(&o->state, PENDING);
	if (peer == NULL || rv_peer_id_parse(&o->id, peer) < 0)
		fail(o, REEVE_EINVAL, REEVE_STEP_NONE);
	else
		rvn_open_route(o);
}

void
rvn_open_cancel(struct rvn_open *o)
{
	reeve_node_t *n = o->node;
	struct rvn_link *l;
	struct rvn_dial *d = NULL;
	struct rvn_peer *p;
	bool mine, was_waiting;

	rvn_lock(n);
	mine = rvq_cell32_cas(&o->state, PENDING, CANCELLING);
	l = o->link;
	was_waiting = mine && o->waiting;
	if (was_waiting) {
		p = rvn_peer_find(n, &o->id);
		unwait(p, o);
		o->cancelled = true;
		d = p->dial;
		if (d != NULL)
			rvn_dial_ref(d);
		rvn_peer_settle(n, p);
	}
	rvn_unlock(n);
	if (was_waiting)
		fail(o, REEVE_ECANCELED, REEVE_STEP_DIAL);
	else if (mine)
		rva_post(l != NULL ? &l->actor : &n->actor, &o->stop.node);
	if (d != NULL) {
		rvn_dial_look(d);
		rvn_dial_unref(d);
	}
}

int
rvn_error(reeve_stream_t *s, int rc)
{
	reeve_reason_t r = {.size = sizeof(r)};

	switch (rc) {
	case REEVE_ENOMEM:
	case REEVE_ECANCELED:
	case REEVE_ENOPROTO:
	case REEVE_ERESET:
	case REEVE_EREFUSED:
		return rc;
	case REEVE_EEND:
	case REEVE_EDEAD:
	case REEVE_EGOAWAY:
		return REEVE_ELOST;
	default:
		break;
	}
	if (rc >= 0 || s == NULL)
		return rc;
	if (rc <= REEVE_ESYS_BASE)
		return REEVE_ELOST;
	(void)reeve_ctl_reason(reeve_stream_ctl(s), &r);
	if (r.by == REEVE_BY_NONE)
		return rc;
	return rc == r.rc || rc == REEVE_ECLOSED ? REEVE_ELOST : rc;
}
