/* dial.c - dials: one actor for each peer that is being dialed, however many wait for it; an attempt for each address,
 * under one deadline.
 *
 * The first attempt gets a head start before the next one begins (as RFC 8305 does): peers that answer are mostly asked
 * once, and silent addresses hold up nobody for long.  What the peer has opened to us meanwhile answers those who wait, but
 * attempts that have begun go on: two nodes that dial each other and each drop their own attempt would drop both. */
#include <config.h>

#include "node/dial.h"

#include <string.h>

#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "node/link.h"
#include "node/open.h"

#define HEAD_START_US UINT64_C(250000)

#define LOOK 1u
#define FREE 2u
#define STOP 4u

struct rvn_attempt {
	struct rva_msg msg; /* done */
	reeve_op_t op;
	struct rvn_dial *d;
	bool running;             /* owner */
	reeve_reason_t why;       /* the dialer's until op is done */
	char addr[RVN_ADDR_TEXT]; /* immutable once it is one of naddrs */
};

struct rvn_dial {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct rvq_ref refs; /* itself, attempts, waiting operations, whoever looks */
	reeve_node_t *node;
	/* under the lock */
	struct rvn_dial *next, **pprev;
	struct rvn_peer *peer; /* NULL: anybody, or it is over */
	unsigned naddrs, nwait;
	uint64_t deadline;
	bool over, told;
	/* immutable */
	bool known;
	char text[REEVE_PEER_TEXT]; /* who is expected */
	/* owner */
	unsigned started, running;
	int rc;         /* the worst of the attempts; then the outcome */
	const char *id; /* of the reason */
	bool won, met;  /* the connection is in the table; it was one too many */
	bool served;    /* by a connection of the peer's own */
	uint64_t next_at;
	struct rva_oplist waiters;
	struct rva_timer timer;
	struct rvn_attempt at[RVN_ADDRS];
	/* before a waiter is answered */
	char who[REEVE_PEER_TEXT];
};

void
rvn_dial_ref(struct rvn_dial *d)
{
	rvq_ref_get(&d->refs);
}

void
rvn_dial_unref(struct rvn_dial *d)
{
	if (rvq_ref_put(&d->refs))
		rva_ring(&d->actor, &d->bell, FREE);
}

void
rvn_dial_look(struct rvn_dial *d)
{
	rva_ring(&d->actor, &d->bell, LOOK);
}

/* --- attempts: owner --- */

static void
on_dialed(reeve_op_t *op)
{
	struct rvn_attempt *at = op->arg;

	rva_post(&at->d->actor, &at->msg.node);
}

static void
start_attempt(struct rvn_dial *d)
{
	struct rvn_attempt *at = &d->at[d->started++];
	reeve_node_t *n = d->node;
	reeve_upgrade_t up = n->upgrade.up;
	reeve_cfg_t cfg = n->conn;

	at->running = true;
	d->running++;
	rvn_dial_ref(d);
	rvq_gauge_add(&n->dials, 1);
	at->why = (reeve_reason_t){.size = sizeof(at->why), .id = ""};
	up.expect = d->known ? d->text : NULL;
	up.why = &at->why;
	cfg.upgrade = &up;
	reeve_op_init(&at->op, on_dialed, at);
	reeve_dial_async(n->rt, at->addr, &cfg, &at->op);
}

static void
cancel_attempts(struct rvn_dial *d)
{
	for (unsigned i = 0; i < d->started; i++)
		if (d->at[i].running)
			reeve_op_cancel(&d->at[i].op);
}

/* What a dial answers when its attempts failed in different ways: what says most. */
static void
blame(struct rvn_dial *d, int rc, const char *id)
{
	static const int first[] = {REEVE_EIDENTITY, REEVE_ELIMIT, REEVE_ENOMEM, REEVE_ECLOSED};

	for (unsigned i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		if (d->rc == first[i])
			return;
		if (rc == first[i])
			break;
		if (i + 1 == sizeof(first) / sizeof(first[0]))
			rc = REEVE_EDIAL;
	}
	d->rc = rc;
	d->id = id;
}

static void
discard(reeve_conn_t *c)
{
	(void)reeve_abort(reeve_conn_ctl(c), REEVE_ECANCELED);
	reeve_conn_release(c);
}

/* --- the end: owner --- */

static void
forget(struct rvn_dial *d, struct rvn_open **opens)
{
	reeve_node_t *n = d->node;
	struct rvn_peer *p = d->peer;
	uint64_t next;

	d->over = true;
	*d->pprev = d->next;
	if (d->next != NULL)
		d->next->pprev = d->pprev;
	if (!d->won)
		n->slots--;
	if (p == NULL)
		return;
	d->peer = NULL;
	p->dial = NULL;
	*opens = rvn_open_take(p, 0, true, &next);
	rvn_peer_settle(n, p);
}

static void
report(struct rvn_dial *d)
{
	reeve_node_t *n = d->node;
	reeve_reason_t why = {.size = sizeof(why), .rc = d->rc, .by = REEVE_BY_TRANSPORT};

	if (d->rc == REEVE_EIDENTITY)
		why.by = REEVE_BY_PEER;
	else if (d->rc != REEVE_EDIAL && d->rc != REEVE_ETIMEDOUT)
		why.by = REEVE_BY_US;
	why.id = d->id != NULL ? d->id : "";
	rvq_gauge_add(&n->dials_failed, 1);
	if (n->fn != NULL)
		n->fn(n->arg, REEVE_PEER_DIAL_FAILED, d->known ? d->text : NULL,
		    d->started == 1 ? d->at[0].addr : NULL, &why);
}

/* Under the lock before, not any more afterwards. */
static void
end(struct rvn_dial *d, int rc)
{
	reeve_node_t *n = d->node;
	struct rvn_open *opens = NULL, *o;

	d->rc = rc;
	forget(d, &opens);
	rvn_unlock(n);
	rva_timer_clear(&d->actor.home->wheel, &d->timer);
	cancel_attempts(d);
	if (rc < 0)
		report(d);
	rva_oplist_fail(&d->waiters, rc);
	if (rc < 0) {
		rvn_open_fail_list(opens, rc);
	} else {
		/* They came when the connection had gone already. */
		while ((o = opens) != NULL) {
			opens = o->next;
			rvn_open_route(o);
		}
	}
	rvn_dial_unref(d);
}

/* --- what to do next: owner --- */

static void
rearm(struct rvn_dial *d, uint64_t at, bool more)
{
	if (more && d->next_at < at)
		at = d->next_at;
	rva_timer_set(&d->actor.home->wheel, &d->timer, at);
}

/* How it ends: 0 connected, an error; 1: it goes on.  Under the lock. */
static int
outcome(struct rvn_dial *d, bool connected, uint64_t now)
{
	bool wanted = d->nwait > 0 || (d->peer != NULL && d->peer->opens != NULL);

	if (d->won || d->met)
		return 0;
	if (rvn_closing(d->node))
		return REEVE_ECLOSED;
	if (connected || (d->served && !wanted))
		return connected && d->running > 0 && now < d->deadline ? 1 : 0;
	if (now >= d->deadline)
		return d->rc == REEVE_EIDENTITY ? REEVE_EIDENTITY : REEVE_ETIMEDOUT;
	if (d->running == 0 && d->started == d->naddrs)
		return d->rc;
	return wanted ? 1 : REEVE_ECANCELED;
}

static void
look(struct rvn_dial *d)
{
	reeve_node_t *n = d->node;
	uint64_t now = rv_clock_us(), at, next = UINT64_MAX;
	struct rvn_open *late = NULL;
	bool connected;
	unsigned naddrs;
	int rc;

	at = rva_oplist_expire(&d->waiters, now);
	rvn_lock(n);
	if (d->over) {
		rvn_unlock(n);
		return;
	}
	if (d->peer != NULL)
		late = rvn_open_take(d->peer, now, false, &next);
	connected = d->peer != NULL && d->peer->use[0] != NULL;
	rc = outcome(d, connected, now);
	if (rc <= 0) {
		end(d, rc);
		rvn_open_fail_list(late, REEVE_ETIMEDOUT);
		return;
	}
	naddrs = connected ? 0 : d->naddrs;
	at = d->deadline < at ? d->deadline : at;
	at = next < at ? next : at;
	rvn_unlock(n);
	rvn_open_fail_list(late, REEVE_ETIMEDOUT);
	if (connected) {
		d->served = true;
		rva_oplist_fail(&d->waiters, 0);
	}
	if (d->started < naddrs && (d->running == 0 || now >= d->next_at)) {
		d->next_at = now + HEAD_START_US;
		start_attempt(d);
	}
	rearm(d, at, d->started < naddrs);
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	(void)now;
	look(rva_container(t, struct rvn_dial, timer));
}

static void
on_attempt(struct rvn_dial *d, struct rvn_attempt *at)
{
	struct rvn_arrival a = {.c = at->op.conn, .addr = at->addr, .slot = true};
	int rc = (int)at->op.res;
	bool over;

	at->running = false;
	d->running--;
	rvq_gauge_sub(&d->node->dials, 1);
	rvn_lock(d->node);
	over = d->over;
	rvn_unlock(d->node);
	if (rc == 0 && over) {
		discard(a.c);
	} else if (rc == 0) {
		rc = rvn_link_new(d->node, &a);
		if (rc == 0 || rc == REEVE_EBUSY)
			memcpy(d->who, a.who, sizeof(d->who));
		d->won = rc == 0;
		d->met = rc == REEVE_EBUSY;
	}
	if (!over) {
		if (rc < 0) {
			rvn_log(d->node, "REEVE-NODE-0001", at->addr, rc);
			blame(d, rc, at->why.id);
		}
		look(d);
	}
	rvn_dial_unref(d);
}

static void
on_waiter(struct rvn_dial *d, reeve_op_t *op)
{
	bool over;

	rvn_lock(d->node);
	over = d->over;
	rvn_unlock(d->node);
	if (over) {
		(void)rva_op_answer(op, d->rc);
		return;
	}
	rva_oplist_push(&d->waiters, op);
	look(d);
}

static void
dial_on(struct rva_actor *a, struct rvq_node *node)
{
	struct rvn_dial *d = rva_container(a, struct rvn_dial, actor);
	struct rva_msg *m = (struct rva_msg *)(void *)node;
	uint32_t bits;

	if (node == &d->bell.node) {
		bits = rvq_bell_answer(&d->bell);
		if (bits & LOOK)
			look(d);
		if (bits & FREE)
			a->dead = true;
	} else if (m->kind == RVN_MSG_ATTEMPT) {
		on_attempt(d, rva_container(m, struct rvn_attempt, msg));
	} else if (m->kind == RVA_MSG_CANCEL) {
		(void)rva_oplist_remove(&d->waiters, rva_op_of_cancel(node));
		rva_op_finish(rva_op_of_cancel(node), REEVE_ECANCELED);
	} else {
		on_waiter(d, rva_op_of_msg(node));
	}
}

static void
dial_free(struct rva_actor *a)
{
	struct rvn_dial *d = rva_container(a, struct rvn_dial, actor);
	reeve_node_t *n = d->node;

	rv_free(n->arena, d, sizeof(*d));
	rvn_lock(n);
	rvn_thing_put(n);
	rvn_unlock(n);
}

static const struct rva_actor_ops dial_ops = {.on = dial_on, .free = dial_free};

/* --- any thread --- */

/* Under the lock. */
static void
add_address(struct rvn_dial *d, const char *addr)
{
	for (unsigned i = 0; i < d->naddrs; i++)
		if (strcmp(d->at[i].addr, addr) == 0)
			return;
	if (d->naddrs == RVN_ADDRS)
		return;
	d->at[d->naddrs].d = d;
	d->at[d->naddrs].msg.kind = RVN_MSG_ATTEMPT;
	strncpy(d->at[d->naddrs].addr, addr, RVN_ADDR_TEXT - 1);
	d->naddrs++;
}

static int
begin(struct rvn_dial **out, reeve_node_t *n, struct rvn_peer *p, const char *addr)
{
	struct rvn_dial *d;

	REEVE_REQUIRE(addr != NULL || (p != NULL && p->naddrs > 0), REEVE_EINVAL);
	REEVE_REQUIRE(n->slots < n->max_conns, REEVE_ELIMIT);
	d = rv_zalloc(n->arena, sizeof(*d));
	REEVE_REQUIRE(d != NULL, REEVE_ENOMEM);
	rva_actor_init(&d->actor, rva_rt_place(n->rt), &dial_ops);
	rvq_bell_init(&d->bell);
	rvq_ref_init(&d->refs, 1);
	rva_oplist_init(&d->waiters);
	d->timer.fn = on_timer;
	d->node = n;
	d->rc = REEVE_EDIAL;
	n->slots++;
	n->things++;
	d->next = n->all_dials;
	d->pprev = &n->all_dials;
	if (d->next != NULL)
		d->next->pprev = &d->next;
	n->all_dials = d;
	if (p != NULL) {
		d->peer = p;
		d->known = true;
		memcpy(d->text, p->text, sizeof(d->text));
		memcpy(d->who, p->text, sizeof(d->who));
		p->dial = d;
	}
	if (addr != NULL)
		add_address(d, addr);
	else
		for (unsigned i = 0; i < p->naddrs; i++)
			add_address(d, p->addr[i]);
	*out = d;
	return 0;
}

int
rvn_dial_join(
    struct rvn_dial **out, reeve_node_t *n, struct rvn_peer *p, const char *addr, uint64_t want)
{
	struct rvn_dial *d = p != NULL ? p->dial : NULL;
	int rc;

	if (d == NULL) {
		rc = begin(&d, n, p, addr);
		REEVE_REQUIRE(rc == 0, rc);
	} else if (addr != NULL) {
		add_address(d, addr);
	}
	if (want > d->deadline)
		d->deadline = want;
	rvn_dial_ref(d);
	*out = d;
	return 0;
}

void
rvn_dial_expect(struct rvn_dial *d)
{
	d->nwait++;
}

static void
waiter_left(void *arg)
{
	struct rvn_dial *d = arg;

	rvn_lock(d->node);
	d->nwait--;
	rvn_unlock(d->node);
	rvn_dial_look(d);
	rvn_dial_unref(d);
}

void
rvn_dial_wait(struct rvn_dial *d, reeve_op_t *op)
{
	rvn_dial_ref(d);
	rva_op_start(op, &d->actor, RVA_MSG_DIAL, d, waiter_left);
}

const char *
rvn_dial_who(const struct rvn_dial *d)
{
	return d->who;
}

void
rvn_dials_end(reeve_node_t *n)
{
	struct rvn_dial *d;

	for (;;) {
		rvn_lock(n);
		for (d = n->all_dials; d != NULL && d->told; d = d->next)
			;
		if (d != NULL) {
			d->told = true;
			rvn_dial_ref(d);
		}
		rvn_unlock(n);
		if (d == NULL)
			return;
		rvn_dial_look(d);
		rvn_dial_unref(d);
	}
}
