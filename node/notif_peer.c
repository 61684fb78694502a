/* notif_peer.c - a peer of a notification protocol: steps of the machine, and the actor that carries them out.
 *
 * A step is taken under the protocol's lock by whoever has an event; all it does there is to move pointers and to queue what
 * has to be done.  The actor does that in order, so the events that the application sees of one peer have an order. */
#include <config.h>

#include "node/notif_session.h"

#include "lib/check.h"

reeve_reason_t
rvn_reason(int rc, uint32_t by)
{
	reeve_reason_t why = {.size = sizeof(why), .rc = rc, .by = by, .id = ""};

	return why;
}

uint32_t
rvn_by(int rc)
{
	switch (rc) {
	case REEVE_ENOPROTO:
	case REEVE_EREFUSED:
	case REEVE_ERESET:
	case REEVE_EPROTO:
	case REEVE_EIDENTITY:
		return REEVE_BY_PEER;
	case REEVE_ELOST:
	case REEVE_EDIAL:
		return REEVE_BY_TRANSPORT;
	default:
		return REEVE_BY_US;
	}
}

/* --- under the lock --- */

static void
todo(struct rvn_npeer *r, struct rvn_todo *t, enum rvn_ndo kind, void *what)
{
	t->next = NULL;
	t->kind = kind;
	t->what = what;
	*r->todo_tail = t;
	r->todo_tail = &t->next;
}

static void
say(struct rvn_npeer *r, struct rvn_nev *ev)
{
	ev->peer = r;
	rvn_npeer_hold(r);
	todo(r, &ev->say, RVN_ND_SAY, ev);
}

static void
say_failed(struct rvn_npeer *r, const struct rvn_narg *arg)
{
	struct rvn_nev *ev = r->owed;

	r->owed = NULL;
	ev->type = REEVE_NOTIF_FAILED;
	ev->dir = r->asked ? REEVE_DIALER : REEVE_LISTENER;
	ev->reason = arg->reason != NULL ? *arg->reason : rvn_reason(REEVE_ECANCELED, REEVE_BY_US);
	ev->step = arg->step;
	say(r, ev);
}

static void
say_validate(struct rvn_npeer *r)
{
	struct rvn_npeer **at = &r->p->asking[r->mach.ticket % RVN_NBUCKETS];
	struct rvn_nhalf *h = r->in;
	struct rvn_nev *ev = h->ask;

	r->tnext = *at;
	*at = r;
	h->ask = NULL;
	ev->type = REEVE_NOTIF_VALIDATE;
	ev->name = h->name;
	ev->dir = rvn_nstate_asked(r->mach.state) ? REEVE_DIALER : REEVE_LISTENER;
	ev->data = h->hs != NULL ? reeve_buf_ref(h->hs) : NULL;
	ev->ticket = r->mach.ticket;
	say(r, ev);
}

static void
forget_ticket(struct rvn_npeer *r, uint64_t ticket)
{
	struct rvn_npeer **at = &r->p->asking[ticket % RVN_NBUCKETS];

	while (*at != NULL && *at != r)
		at = &(*at)->tnext;
	if (*at != NULL)
		*at = r->tnext;
}

static void
join(struct rvn_npeer *r, struct rvn_narg *arg)
{
	struct reeve_sink *k = arg->session;
	struct rvn_nev *ev = r->owed != NULL ? r->owed : k->opened;

	arg->session = NULL;
	if (ev == k->opened)
		k->opened = NULL;
	r->owed = NULL;
	r->session = k;
	k->hin = r->in;
	k->hout = r->out;
	k->dir = r->asked ? REEVE_DIALER : REEVE_LISTENER;
	r->in = r->out = NULL;
	ev->type = REEVE_NOTIF_OPENED;
	ev->name = k->hin->name;
	ev->dir = k->dir;
	ev->data = k->hin->hs != NULL ? reeve_buf_ref(k->hin->hs) : NULL;
	ev->sink = reeve_sink_ref(k);
	ev->peer = r;
	rvn_npeer_hold(r);
	rvn_nev_free(k->opened);
	k->opened = ev;
	todo(r, &k->join, RVN_ND_JOIN, k);
}

/* The rest of what a step leads to, behind what is said of it. */
static void
apply_halves(struct rvn_npeer *r, unsigned act, struct rvn_narg *arg)
{
	if (act & RVN_NA_OUT_END) {
		todo(r, &r->out->end, RVN_ND_END, r->out);
		r->out = NULL;
	}
	if (act & RVN_NA_OUT_START) {
		r->out = arg->half;
		arg->half = NULL;
		todo(r, &r->out->start, RVN_ND_START, r->out);
	}
	if (act & RVN_NA_REPLY)
		todo(r, &r->in->reply, RVN_ND_REPLY, r->in);
	if (act & RVN_NA_IN_END) {
		todo(r, &r->in->end, RVN_ND_END, r->in);
		r->in = NULL;
	}
	if (act & RVN_NA_NEW_END) {
		todo(r, &arg->half->end, RVN_ND_END, arg->half);
		arg->half = NULL;
	}
	if (act & RVN_NA_IN_START) {
		r->in = arg->half;
		arg->half = NULL;
		todo(r, &r->in->start, RVN_ND_START, r->in);
	}
	if (act & RVN_NA_IN_AGAIN)
		todo(r, &r->in->again, RVN_ND_AGAIN, r->in);
}

int
rvn_npeer_step(struct rvn_npeer *r, enum rvn_ne_event ev, struct rvn_narg *arg)
{
	uint64_t old = r->mach.ticket, ticket = arg->ticket;
	unsigned act;
	int rc;

	if (r->p->closing && (ev == RVN_NE_OPEN || ev == RVN_NE_ACCEPT || ev == RVN_NE_INBOUND))
		return REEVE_ECLOSED;
	if (ev == RVN_NE_IN_HS)
		ticket = ++r->p->tickets;
	rc = rvn_nmach_step(&r->mach, ev, ticket, &act);
	if (rc != 0)
		return rc;
	if (ev == RVN_NE_OPEN) {
		r->owed = arg->ev;
		arg->ev = NULL;
	} else if (ev == RVN_NE_ACCEPT && r->owed == NULL) {
		r->owed = r->in->result;
		r->in->result = NULL;
	}
	if (act & RVN_NA_FAIL)
		say_failed(r, arg);
	r->asked = rvn_nstate_asked(r->mach.state) || (r->asked && (act & RVN_NA_JOIN));
	if (old != 0 && old != r->mach.ticket)
		forget_ticket(r, old);
	if (act & RVN_NA_OVER) {
		todo(r, &r->session->over, RVN_ND_OVER, r->session);
		r->session = NULL;
	}
	if (act & RVN_NA_ASK)
		say_validate(r);
	apply_halves(r, act, arg);
	if (act & RVN_NA_JOIN)
		join(r, arg);
	if (act & RVN_NA_PART)
		rvn_session_close(r->session, arg->deadline);
	return 0;
}

/* --- any thread --- */

void
rvn_npeer_kick(struct rvn_npeer *r)
{
	rva_ring(&r->actor, &r->bell.bell, RVN_P_TODO);
}

int
rvn_npeer_feed(struct rvn_npeer *r, enum rvn_ne_event ev, struct rvn_narg *arg)
{
	int rc;

	rvn_nlock(r->p);
	rc = rvn_npeer_step(r, ev, arg);
	rvn_nunlock(r->p);
	rvn_npeer_kick(r);
	return rc;
}

/* --- the actor --- */

/* Both halves are joined: as soon as nothing of them is under way the session begins. */
void
rvn_npeer_joined(struct rvn_npeer *r)
{
	struct reeve_sink *k = r->joining;
	struct rvn_nhalf *in = k->hin, *out = k->hout;
	struct rvn_nev *ev;
	bool quiet = rvn_nhalf_yield(in);

	if (!rvn_nhalf_yield(out) || !quiet)
		return;
	r->joining = NULL;
	k->in = in->s;
	k->out = out->s;
	k->in_rc = in->end_rc;
	k->watch_rc = out->end_rc;
	k->got = in->got;
	rv_chain_init(&in->got);
	in->s = out->s = NULL;
	rvn_nhalf_free(in);
	rvn_nhalf_free(out);
	k->hin = k->hout = NULL;
	ev = k->opened;
	k->opened = NULL;
	rvq_gauge_add(&r->p->gauges->streams, 1);
	rvn_nev_say(r, ev);
	rvn_session_begin(k);
}

/* The session is over and CLOSED may be said. */
static void
say_closed(struct rvn_npeer *r, struct reeve_sink *k)
{
	struct reeve_notif *p = r->p;
	struct rvn_nev *ev = k->closed;

	k->closed = NULL;
	ev->type = REEVE_NOTIF_CLOSED;
	ev->dir = k->dir;
	ev->reason = k->reason;
	ev->lost = k->lost;
	ev->lost_bytes = k->lost_bytes;
	rvn_nlock(p);
	ev->peer = r;
	rvn_npeer_hold(r);
	rvn_nunlock(p);
	rvq_gauge_sub(&p->gauges->streams, 1);
	rvq_gauge_add(&p->gauges->notif_lost, k->lost);
	rvn_nev_say(r, ev);
	rvn_npeer_drop(r); /* the session's */
	reeve_sink_unref(k);
	rvn_nover(p);
}

static void
perform(struct rvn_npeer *r, struct rvn_todo *t)
{
	switch ((enum rvn_ndo)t->kind) {
	case RVN_ND_START:
		rvn_nhalf_start(t->what);
		break;
	case RVN_ND_END:
		rvn_nhalf_end(t->what);
		break;
	case RVN_ND_REPLY:
		rvn_nhalf_reply(t->what);
		break;
	case RVN_ND_AGAIN:
		rvn_nhalf_again(t->what);
		break;
	case RVN_ND_SAY:
		rvn_nev_say(r, t->what);
		break;
	case RVN_ND_JOIN:
		r->joining = t->what;
		rvn_npeer_joined(r);
		break;
	case RVN_ND_OVER:
		say_closed(r, t->what);
		break;
	}
}

/* A bell may be left over when the node has gone: then there is nothing to do, and the lock is still there. */
static void
do_all(struct rvn_npeer *r)
{
	struct reeve_notif *p = r->p;
	struct rvn_todo *t;

	for (;;) {
		rvn_nlock(p);
		t = r->todo;
		if (t != NULL && (r->todo = t->next) == NULL)
			r->todo_tail = &r->todo;
		rvn_nunlock(p);
		if (t == NULL)
			return;
		perform(r, t);
	}
}

static void
peer_on(struct rva_actor *a, struct rvq_node *n)
{
	struct rvn_npeer *r = rva_container(a, struct rvn_npeer, actor);
	struct rvq_bell *bell = rvq_bell_of(n);
	struct rvn_nbell *b = rva_container(bell, struct rvn_nbell, bell);
	uint32_t bits = rvq_bell_answer(bell);
	struct rvn_narg arg = {.step = 0};

	if (b->kind == RVN_NB_HALF) {
		rvn_nhalf_on(rva_container(b, struct rvn_nhalf, bell), bits);
		return;
	}
	if (bits & RVN_P_OVER)
		(void)rvn_npeer_feed(r, RVN_NE_ENDED, &arg);
	if (bits & RVN_P_FREE)
		a->dead = true;
	else if (bits & (RVN_P_TODO | RVN_P_OVER))
		do_all(r);
}

static void
peer_free(struct rva_actor *a)
{
	struct rvn_npeer *r = rva_container(a, struct rvn_npeer, actor);

	rvn_notif_unref(r->p);
	rv_free(r->arena, r, sizeof(*r));
}

const struct rva_actor_ops rvn_npeer_ops = {.on = peer_on, .free = peer_free};
