/* core.c - making and ending a node, its listeners and protocols, what can be asked of it. */
#include <config.h>

#include "node/inner.h"
#include "node/link.h"
#include "node/open.h"

#include <string.h>

#include "actors/connection.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "lib/config.h"

#define RETRY_US   UINT64_C(100000) /* accepting again after running out of something */
#define NAME_BYTES 1023
#define NAMES      1024 /* what one negotiation takes */

/* --- what is waited for --- */

void
rvn_thing_put(reeve_node_t *n)
{
	if (--n->things == 0)
		(void)rvq_parker_wake(&n->idle);
}

void
rvn_work_get(reeve_node_t *n)
{
	(void)rvq_cell64_add(&n->work, 2);
}

bool
rvn_hold(reeve_node_t *n)
{
	if (!(rvq_cell64_add(&n->work, 2) & RVN_CLOSING))
		return true;
	rvn_drop(n);
	return false;
}

/* Once the node closes it may be gone as soon as nothing is held: then only under the lock. */
void
rvn_drop(reeve_node_t *n)
{
	uint64_t w;

	do {
		w = rvq_cell64_get(&n->work);
		if (w & RVN_CLOSING) {
			rvn_lock(n);
			if (rvq_cell64_add(&n->work, UINT64_MAX - 1) == (RVN_CLOSING | 2))
				(void)rvq_parker_wake(&n->idle);
			rvn_unlock(n);
			return;
		}
	} while (!rvq_cell64_cas(&n->work, w, w - 2));
}

reeve_rt_t *
rvn_rt(reeve_node_t *n)
{
	return n->rt;
}

struct rvn_gauges *
rvn_gauges(reeve_node_t *n)
{
	return &n->gauges;
}

void
rvn_log(reeve_node_t *n, const char *id, const char *what, int rc)
{
	rv_log(&n->rt->log, REEVE_LOG_INFO, id, "%s: %s", what, reeve_errname(rc));
}

/* --- the clerk --- */

static void
retry_guests(reeve_node_t *n)
{
	struct rvn_guest *g;

	while ((g = n->parked) != NULL) {
		n->parked = g->next;
		reeve_listener_accept_async(g->l->l, &g->op);
	}
}

static void
on_retry(struct rva_timer *t, uint64_t now)
{
	(void)now;
	retry_guests(rva_container(t, struct reeve_node, timer));
}

static void
clerk_on(struct rva_actor *a, struct rvq_node *node)
{
	reeve_node_t *n = rva_container(a, struct reeve_node, actor);
	struct rva_msg *m = (struct rva_msg *)(void *)node;
	uint32_t bits;

	if (node == &n->bell.node) {
		bits = rvq_bell_answer(&n->bell);
		if (bits & RVN_CLERK_RETRY) {
			rva_timer_clear(&a->home->wheel, &n->timer);
			retry_guests(n);
		}
		if (bits & RVN_CLERK_FREE)
			a->dead = true;
	} else if (m->kind == RVN_MSG_GUEST) {
		struct rvn_guest *g = rva_container(m, struct rvn_guest, msg);

		g->next = n->parked;
		n->parked = g;
		if (rvn_closing(n))
			retry_guests(n);
		else if (!rva_timer_armed(&n->timer))
			rva_timer_set(&a->home->wheel, &n->timer, rv_clock_us() + RETRY_US);
	} else {
		rvn_open_on(n, NULL, m);
	}
}

static void
clerk_free(struct rva_actor *a)
{
	rvq_latch_set(rva_container(a, struct reeve_node, actor)->freed);
}

static const struct rva_actor_ops clerk_ops = {.on = clerk_on, .free = clerk_free};

void
rvn_clerk_init(reeve_node_t *n)
{
	rva_actor_init(&n->actor, rva_rt_place(n->rt), &clerk_ops);
	rvq_bell_init(&n->bell);
	n->timer.fn = on_retry;
}

void
rvn_clerk_retry(reeve_node_t *n)
{
	rva_ring(&n->actor, &n->bell, RVN_CLERK_RETRY);
}

void
rvn_clerk_free(reeve_node_t *n, struct rvq_latch *freed)
{
	n->freed = freed;
	rva_ring(&n->actor, &n->bell, RVN_CLERK_FREE);
}

/* --- listening --- */

static void
on_guest(reeve_op_t *op)
{
	struct rvn_guest *g = op->arg;
	reeve_node_t *n = g->l->node;
	struct rvn_arrival a = {.c = op->conn};

	if (op->res == 0) {
		(void)rvn_link_new(n, &a);
		reeve_listener_accept_async(g->l->l, op);
	} else if (op->res == REEVE_ECLOSED || op->res == REEVE_EFORKED) {
		rvn_lock(n);
		rvn_thing_put(n);
		rvn_unlock(n);
	} else { /* out of descriptors or memory: it comes again at once */
		rvn_log(n, "REEVE-NODE-0003", "accept", (int)op->res);
		rva_post(&n->actor, &g->msg.node);
	}
}

int
reeve_node_listen(reeve_node_t *n, const char *addr)
{
	struct rvn_listener *l;
	bool closing;
	int rc;

	REEVE_REQUIRE(n != NULL && addr != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(n->rt);
	REEVE_REQUIRE(rc == 0, rc);
	l = rv_zalloc(n->arena, sizeof(*l));
	REEVE_REQUIRE(l != NULL, REEVE_ENOMEM);
	rc = reeve_listen(&l->l, n->rt, addr, &n->conn);
	if (rc < 0) {
		rv_free(n->arena, l, sizeof(*l));
		return rc;
	}
	l->node = n;
	rvn_lock(n);
	closing = rvn_closing(n);
	if (!closing) {
		struct rvn_listener **at = &n->listeners;

		while (*at != NULL)
			at = &(*at)->next;
		*at = l;
		n->things += RVN_GUESTS;
	}
	rvn_unlock(n);
	if (closing) {
		reeve_listener_destroy(l->l);
		rv_free(n->arena, l, sizeof(*l));
		return REEVE_ECLOSED;
	}
	for (unsigned i = 0; i < RVN_GUESTS; i++) {
		l->guest[i].l = l;
		l->guest[i].msg.kind = RVN_MSG_GUEST;
		reeve_op_init(&l->guest[i].op, on_guest, &l->guest[i]);
		reeve_listener_accept_async(l->l, &l->guest[i].op);
	}
	return 0;
}

int
reeve_node_addr(reeve_node_t *n, unsigned i, char *out, size_t size)
{
	struct rvn_listener *l;
	int rc;

	REEVE_REQUIRE(n != NULL && out != NULL, REEVE_EINVAL);
	rvn_lock(n);
	for (l = n->listeners; l != NULL && i > 0; i--)
		l = l->next;
	rc = l == NULL ? REEVE_EINVAL : reeve_listener_addr(l->l, out, size);
	rvn_unlock(n);
	return rc;
}

/* --- protocols --- */

static int
check_names(const struct rvn_names *old, const char *const *names, unsigned nnames)
{
	REEVE_REQUIRE(names != NULL && nnames > 0, REEVE_EINVAL);
	for (unsigned i = 0; i < nnames; i++) {
		REEVE_REQUIRE(names[i] != NULL && names[i][0] == '/', REEVE_EINVAL);
		REEVE_REQUIRE(
		    strlen(names[i]) <= NAME_BYTES && strchr(names[i], '\n') == NULL, REEVE_EINVAL);
		for (unsigned j = 0; j < i; j++)
			REEVE_REQUIRE(strcmp(names[i], names[j]) != 0, REEVE_EINVAL);
		for (unsigned j = 0; old != NULL && j < old->n; j++)
			REEVE_REQUIRE(strcmp(names[i], old->names[j]) != 0, REEVE_EBUSY);
	}
	REEVE_REQUIRE((old != NULL ? old->n : 0) + nnames <= NAMES, REEVE_ELIMIT);
	return 0;
}

/* A table with the names of p behind those of old; the new ones are copied into it. */
static struct rvn_names *
make_names(reeve_node_t *n, struct rvn_names *old, struct rvn_proto *p, unsigned nnames)
{
	unsigned had = old != NULL ? old->n : 0, all = had + nnames;
	size_t text = 0, size;
	struct rvn_names *t;
	char *at;

	for (unsigned i = 0; i < nnames; i++)
		text += strlen(p->names[i]) + 1;
	size = sizeof(*t) + all * (sizeof(struct rvn_slot) + sizeof(char *)) + text;
	t = rv_zalloc(n->arena, size);
	if (t == NULL)
		return NULL;
	t->older = old;
	t->size = size;
	t->n = all;
	t->names = (const char **)(void *)&t->slot[all];
	at = (char *)(t->names + all);
	for (unsigned i = 0; i < had; i++) {
		t->names[i] = old->names[i];
		t->slot[i] = old->slot[i];
	}
	for (unsigned i = 0; i < nnames; i++) {
		size_t len = strlen(p->names[i]) + 1;

		memcpy(at, p->names[i], len);
		t->names[had + i] = at;
		at += len;
		t->slot[had + i].p = p;
		t->slot[had + i].index = i;
	}
	p->names = t->names + had;
	p->nnames = nnames;
	return t;
}

int
rvn_proto_install(reeve_node_t *n, struct rvn_proto *p, const char *const *names, unsigned nnames)
{
	struct rvn_names *old, *t;
	int rc;

	rvn_lock(n);
	old = rvq_cellptr_get(&n->names);
	rc = rvn_closing(n) ? REEVE_ECLOSED : check_names(old, names, nnames);
	if (rc == 0) {
		p->names = names;
		t = make_names(n, old, p, nnames);
		rc = t == NULL ? REEVE_ENOMEM : 0;
	}
	if (rc == 0) {
		p->node = n;
		p->next = n->protos;
		n->protos = p;
		rvq_cellptr_put(&n->names, t);
	}
	rvn_unlock(n);
	return rc;
}

/* --- what can be asked --- */

int
reeve_node_id(reeve_node_t *n, char *out, size_t size)
{
	size_t len;

	REEVE_REQUIRE(n != NULL && out != NULL, REEVE_EINVAL);
	len = strlen(n->text);
	REEVE_REQUIRE(len < size, REEVE_EINVAL);
	memcpy(out, n->text, len + 1);
	return (int)len;
}

unsigned
reeve_node_peers(reeve_node_t *n, char (*out)[REEVE_PEER_TEXT], unsigned max)
{
	unsigned i = 0, all;

	REEVE_REQUIRE(n != NULL, 0);
	rvn_lock(n);
	all = n->nup;
	for (struct rvn_peer *p = n->ups; p != NULL && out != NULL && i < max; p = p->up)
		memcpy(out[i++], p->text, sizeof(p->text));
	rvn_unlock(n);
	return all;
}

reeve_ctl_t *
reeve_node_ctl(reeve_node_t *n, const char *peer)
{
	struct rv_peer_id id;
	struct rvn_peer *p;
	reeve_ctl_t *k = NULL;

	REEVE_REQUIRE(n != NULL && peer != NULL && rv_peer_id_parse(&id, peer) == 0, NULL);
	rvn_lock(n);
	p = rvn_peer_find(n, &id);
	if (p != NULL && p->use[0] != NULL)
		k = reeve_ctl_ref(p->use[0]->k);
	rvn_unlock(n);
	return k;
}

int
reeve_node_disconnect(reeve_node_t *n, const char *peer)
{
	struct rvn_link *l[RVN_PER_PEER] = {NULL};
	struct rv_peer_id id;
	struct rvn_peer *p;

	REEVE_REQUIRE(n != NULL && peer != NULL && rv_peer_id_parse(&id, peer) == 0, REEVE_EINVAL);
	rvn_lock(n);
	p = rvn_peer_find(n, &id);
	for (unsigned i = 0; p != NULL && i < RVN_PER_PEER; i++)
		if ((l[i] = p->use[i]) != NULL)
			rvn_link_ref(l[i]);
	rvn_unlock(n);
	REEVE_REQUIRE(l[0] != NULL, REEVE_ENOTCONN);
	for (unsigned i = 0; i < RVN_PER_PEER; i++)
		if (l[i] != NULL) {
			rvn_link_leave(l[i], RVN_LEAVE_MS);
			rvn_link_unref(l[i]);
		}
	return 0;
}

int
reeve_node_stats(reeve_node_t *n, reeve_node_stats_t *out)
{
	reeve_node_stats_t st = {0};
	const struct rvn_gauges *g;
	uint32_t size;

	REEVE_REQUIRE(n != NULL && out != NULL && out->size >= 2 * sizeof(uint32_t) &&
		out->size <= RV_CFG_SIZE_MAX,
	    REEVE_EINVAL);
	g = &n->gauges;
	rvn_lock(n);
	st.peers = n->nup;
	st.conns = n->nlinks;
	rvn_unlock(n);
	st.dials = rvq_gauge_get(&n->dials);
	st.negotiating = rvq_gauge_get(&n->negotiating);
	st.opening = rvq_gauge_get(&n->opening);
	st.streams = rvq_gauge_get(&g->streams);
	st.requests_in = rvq_gauge_get(&g->requests_in);
	st.requests_out = rvq_gauge_get(&g->requests_out);
	st.queued = rvq_gauge_get(&g->queued);
	st.held = rvq_gauge_get(&g->held);
	st.conns_total = rvq_gauge_get(&n->conns_total);
	st.dials_failed = rvq_gauge_get(&n->dials_failed);
	st.refused = rvq_gauge_get(&n->refused);
	st.notif_sent = rvq_gauge_get(&g->notif_sent);
	st.notif_received = rvq_gauge_get(&g->notif_received);
	st.notif_lost = rvq_gauge_get(&g->notif_lost);
	st.notif_clogged = rvq_gauge_get(&g->notif_clogged);
	st.requests_ok = rvq_gauge_get(&g->requests_ok);
	st.requests_failed = rvq_gauge_get(&g->requests_failed);
	st.requests_served = rvq_gauge_get(&g->requests_served);
	st.requests_refused = rvq_gauge_get(&g->requests_refused);
	size = out->size;
	memset(out, 0, size);
	memcpy(out, &st, size < sizeof(st) ? size : sizeof(st));
	out->size = size;
	return 0;
}
