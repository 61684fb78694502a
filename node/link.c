/* link.c - one connection of a node: its place in the table, the streams that its peer opens, its idle end.
 *
 * Owner: the connection's worker, where all its operations complete too; so what they share needs no lock. */
#include <config.h>

#include "node/link.h"

#include <string.h>

#include "actors/connection.h"
#include "actors/substream.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "node/dial.h"
#include "node/open.h"

/* A stream of the peer's that is being negotiated.  Owner. */
struct rvn_inbound {
	reeve_op_t op;
	struct rvn_link *l;
	reeve_stream_t *s;
	const struct rvn_names *names;
	struct rvn_inbound *next, **pprev;
};

void
rvn_link_ref(struct rvn_link *l)
{
	rvq_ref_get(&l->refs);
}

void
rvn_link_unref(struct rvn_link *l)
{
	if (rvq_ref_put(&l->refs))
		rva_ring(&l->actor, &l->bell, RVN_LINK_FREE);
}

/* --- inbound streams: owner --- */

static void
refuse(struct rvn_link *l, reeve_stream_t *s)
{
	rvq_gauge_add(&l->node->refused, 1);
	(void)reeve_reset(s, 0);
	reeve_close(s);
}

void
rvn_turn_away(reeve_stream_t *s)
{
	if (s->queued == 0)
		(void)reeve_reset(s, 0);
}

/* The peer and we have agreed. */
static void
dispatch(struct rvn_link *l, reeve_stream_t *s, const struct rvn_slot *slot)
{
	reeve_node_t *n = l->node;

	if (l->ended || !rvn_hold(n)) {
		rvn_turn_away(s);
		reeve_stream_unref(s);
		return;
	}
	slot->p->ops->inbound(slot->p, l->text, s, slot->index);
	rvn_drop(n);
}

static void
on_agreed(reeve_op_t *op)
{
	struct rvn_inbound *in = op->arg;
	const struct rvn_names *names = in->names;
	struct rvn_link *l = in->l;
	reeve_stream_t *s = in->s;
	int rc = (int)op->res;

	*in->pprev = in->next;
	if (in->next != NULL)
		in->next->pprev = in->pprev;
	rv_free(l->node->arena, in, sizeof(*in));
	l->ninbound--;
	rvq_gauge_sub(&l->node->negotiating, 1);
	if (rc >= 0)
		dispatch(l, s, &names->slot[rc]);
	else
		reeve_close(s);
	rvn_link_unref(l);
}

static void
take_in(struct rvn_link *l, reeve_stream_t *s)
{
	reeve_node_t *n = l->node;
	const struct rvn_names *names = rvq_cellptr_get(&n->names);
	struct rvn_inbound *in;

	if (names == NULL || l->leaving || l->ninbound >= n->max_negotiating || rvn_closing(n) ||
	    (in = rv_zalloc(n->arena, sizeof(*in))) == NULL) {
		refuse(l, s);
		return;
	}
	in->l = l;
	in->s = s;
	in->names = names;
	in->next = l->inbounds;
	in->pprev = &l->inbounds;
	if (in->next != NULL)
		in->next->pprev = &in->next;
	l->inbounds = in;
	l->ninbound++;
	rvq_gauge_add(&n->negotiating, 1);
	rvn_link_ref(l);
	reeve_op_init(&in->op, on_agreed, in);
	in->op.timeout_ms = n->negotiate_ms == REEVE_OFF ? INT32_MAX : (int64_t)n->negotiate_ms;
	reeve_negotiate_async(s, REEVE_LISTENER, names->names, names->n, &in->op);
}

static void
on_accepted(reeve_op_t *op)
{
	struct rvn_accept *a = op->arg;

	if (op->res < 0) {
		rvn_link_unref(a->l);
		return;
	}
	take_in(a->l, op->stream);
	reeve_accept_async(a->l->k, op);
}

/* --- idle: owner --- */

static void
idle_rearm(struct rvn_link *l, uint64_t from)
{
	rva_timer_set(&l->actor.home->wheel, &l->timer, from + l->node->idle_ms * UINT64_C(1000));
}

/* Streams come and go without touching the timer: it looks when the last one that it knows of would be old enough. */
static void
on_idle(struct rva_timer *t, uint64_t now)
{
	struct rvn_link *l = rva_container(t, struct rvn_link, timer);
	uint64_t quiet = l->c->quiet_at > l->used ? l->c->quiet_at : l->used;
	reeve_stats_t st = {.size = sizeof(st)};

	(void)reeve_ctl_stats(l->k, &st);
	if (l->nopens > 0 || st.streams_open > 0)
		idle_rearm(l, now);
	else if (now - quiet < l->node->idle_ms * UINT64_C(1000))
		idle_rearm(l, quiet);
	else {
		/* Streams that the peer opens meanwhile are refused behind it: he knows that they were not heard. */
		(void)reeve_goaway(l->k, 0);
		rvn_link_leave(l, RVN_LEAVE_MS);
	}
}

/* --- its life: owner --- */

static void
go(struct rvn_link *l)
{
	l->going = true;
	for (unsigned i = 0; i < RVN_ACCEPTS && !l->ended; i++) {
		rvn_link_ref(l);
		l->accept[i].l = l;
		reeve_op_init(&l->accept[i].op, on_accepted, &l->accept[i]);
		reeve_accept_async(l->k, &l->accept[i].op);
	}
	l->used = l->actor.home->now;
	if (l->node->idle_ms != REEVE_OFF && !l->ended)
		idle_rearm(l, l->used);
	rvn_open_go(l);
}

/* What is being negotiated would hold up a graceful end. */
static void
leave(struct rvn_link *l)
{
	struct rvn_inbound *in, *next;

	l->leaving = true;
	for (in = l->inbounds; in != NULL; in = next) {
		next = in->next;
		reeve_op_cancel(&in->op);
	}
}

/* Under the lock: nothing new is opened on it.  The other one is in use then, if there is one. */
static void
unuse(struct rvn_link *l)
{
	struct rvn_peer *p = l->peer;

	if (p->use[0] == l) {
		p->use[0] = p->use[1];
		p->use[1] = NULL;
	} else if (p->use[1] == l) {
		p->use[1] = NULL;
	}
}

static void
on_closed(reeve_op_t *op)
{
	struct rvn_link *l = op->arg;
	reeve_node_t *n = l->node;
	struct rvn_peer *p = l->peer;
	bool mine = false;

	l->ended = true;
	rva_timer_clear(&l->actor.home->wheel, &l->timer);
	l->down.why.size = sizeof(l->down.why);
	(void)reeve_ctl_reason(l->k, &l->down.why);
	rvn_lock(n);
	unuse(l);
	*l->pprev = l->next;
	if (l->next != NULL)
		l->next->pprev = l->pprev;
	l->pprev = NULL;
	n->nlinks--;
	n->slots--;
	if (l->down.why.rc == REEVE_ETIMEDOUT && l->down.why.by == REEVE_BY_US)
		n->cut = true;
	if (--p->nlinks == 0) {
		*p->upp = p->up;
		if (p->up != NULL)
			p->up->upp = p->upp;
		n->nup--;
		p->announced = false;
		l->down.link = l;
		l->down.kind = RVN_EV_DOWN;
		rvn_link_ref(l);
		mine = rvn_peer_tell(n, p, &l->down);
	}
	rvn_unlock(n);
	if (mine)
		rvn_deliver(n, p);
	rvn_link_unref(l);
}

void
rvn_link_leave(struct rvn_link *l, int64_t timeout_ms)
{
	reeve_node_t *n = l->node;

	rvn_lock(n);
	if (l->pprev != NULL)
		unuse(l);
	rvn_unlock(n);
	rva_conn_close(l->c, timeout_ms);
	rva_ring(&l->actor, &l->bell, RVN_LINK_LEAVE);
}

static void
link_on(struct rva_actor *a, struct rvq_node *node)
{
	struct rvn_link *l = rva_container(a, struct rvn_link, actor);
	uint32_t bits;

	if (node != &l->bell.node) {
		rvn_open_on(l->node, l, (struct rva_msg *)(void *)node);
		return;
	}
	bits = rvq_bell_answer(&l->bell);
	if (bits & RVN_LINK_GO)
		go(l);
	if (bits & RVN_LINK_LEAVE)
		leave(l);
	if (bits & RVN_LINK_FREE)
		a->dead = true;
}

static void
link_free(struct rva_actor *a)
{
	struct rvn_link *l = rva_container(a, struct rvn_link, actor);
	reeve_node_t *n = l->node;

	reeve_conn_release(l->c);
	rv_free(n->arena, l, sizeof(*l));
	rvn_lock(n);
	rvn_thing_put(n);
	rvn_unlock(n);
}

static const struct rva_actor_ops link_ops = {.on = link_on, .free = link_free};

/* --- a new one: any worker --- */

static struct rvn_link *
make(reeve_node_t *n, const struct rvn_arrival *a)
{
	struct rvn_link *l = rv_zalloc(n->arena, sizeof(*l));

	if (l == NULL)
		return NULL;
	rva_actor_init(&l->actor, a->c->w, &link_ops);
	rvq_bell_init(&l->bell);
	rvq_ref_init(&l->refs, 2); /* until it has ended; the first event's */
	l->node = n;
	l->c = a->c;
	l->k = reeve_conn_ctl(a->c);
	memcpy(l->text, a->who, sizeof(l->text));
	if (a->addr != NULL)
		strncpy(l->addr, a->addr, sizeof(l->addr) - 1);
	l->timer.fn = on_idle;
	reeve_op_init(&l->closed, on_closed, l);
	return l;
}

/* Under the lock: into the table and every list. */
static int
enter(reeve_node_t *n, struct rvn_link *l, struct rvn_peer *p, bool slot)
{
	unsigned at = p->use[0] != NULL ? 1 : 0;

	REEVE_REQUIRE(!rvn_closing(n), REEVE_ECLOSED);
	REEVE_REQUIRE(p->use[at] == NULL, REEVE_EBUSY);
	REEVE_REQUIRE(slot || n->slots < n->max_conns, REEVE_ELIMIT);
	if (!slot)
		n->slots++;
	n->nlinks++;
	n->things++;
	p->use[at] = l;
	l->peer = p;
	l->next = n->links;
	l->pprev = &n->links;
	if (l->next != NULL)
		l->next->pprev = &l->next;
	n->links = l;
	if (p->nlinks++ == 0) {
		p->up = n->ups;
		p->upp = &n->ups;
		if (p->up != NULL)
			p->up->upp = &p->up;
		n->ups = p;
		n->nup++;
	}
	if (l->addr[0] != '\0')
		(void)rvn_peer_address(n, p, l->addr, true);
	l->up.link = l;
	l->up.kind = p->announced ? RVN_EV_GO : RVN_EV_UP;
	p->announced = true;
	return 0;
}

static int
settle_in(reeve_node_t *n, struct rvn_link *l, struct rv_peer_id *id, bool slot)
{
	struct rvn_open *opens = NULL;
	struct rvn_dial *d = NULL;
	struct rvn_peer *p;
	bool mine = false;
	int rc;

	rvn_lock(n);
	p = rvn_peer_get(n, id);
	rc = p == NULL ? REEVE_ENOMEM : enter(n, l, p, slot);
	if (rc == 0) {
		opens = rvn_open_move(p, l);
		d = p->dial;
		if (d != NULL)
			rvn_dial_ref(d);
		mine = rvn_peer_tell(n, p, &l->up);
	}
	if (p != NULL)
		rvn_peer_settle(n, p);
	rvn_unlock(n);
	if (rc < 0)
		return rc;
	rvq_gauge_add(&n->conns_total, 1);
	reeve_closed_async(l->k, &l->closed);
	rvn_open_start_list(opens);
	if (d != NULL) {
		rvn_dial_look(d);
		rvn_dial_unref(d);
	}
	if (mine)
		rvn_deliver(n, p);
	return 0;
}

int
rvn_link_new(reeve_node_t *n, struct rvn_arrival *a)
{
	reeve_ctl_t *k = reeve_conn_ctl(a->c);
	struct rvn_link *l = NULL;
	struct rv_peer_id id;
	int rc = reeve_peer_id(k, a->who, sizeof(a->who));

	if (rc < 0)
		a->who[0] = '\0';
	else
		rc = rv_peer_id_parse(&id, a->who);
	if (rc == 0 && rv_peer_id_same(&id, &n->id))
		rc = REEVE_EIDENTITY;
	if (rc == 0 && (l = make(n, a)) == NULL)
		rc = REEVE_ENOMEM;
	if (rc == 0)
		rc = settle_in(n, l, &id, a->slot);
	if (rc == 0)
		return 0;
	rvn_log(n, "REEVE-NODE-0002", a->who, rc);
	rvq_gauge_add(&n->refused, 1);
	if (l != NULL)
		rv_free(n->arena, l, sizeof(*l));
	(void)reeve_abort(k, REEVE_ELIMIT);
	reeve_conn_release(a->c);
	return rc;
}
