/* listener.c - listeners. */
#include <config.h>

#include "actors/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/connection.h"
#include "actors/memory.h"
#include "actors/upgrader.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/config.h"

#define BACKLOG     1024
#define MEM_BACKLOG 256

enum { MSG_OFFER = 1000, MSG_GUEST };

/* A connection in its handshake. */
struct rva_guest {
	struct rva_msg msg;
	reeve_op_t ready;
	reeve_conn_t *c;
	struct reeve_listener *l;
	struct rva_guest *next, **pprev; /* NULL: the listener has ended */
};

static void
listener_put(struct reeve_listener *l)
{
	if (rvq_ref_put(&l->refs))
		rva_ring(&l->actor, &l->bell, RVA_L_FREE);
}

static void
unref_listener(void *l)
{
	listener_put(l);
}

/* --- accepting: owner --- */

/* The error is of the connection that was first in line, which is gone: accept(2) of Linux hands over what the network
 * had to say of it. */
static bool
only_that_one(int err)
{
	switch (err) {
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case EPERM: /* a firewall's */
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

/* The next transport, or an error; REEVE_EAGAIN: nobody is there.  *home: where its connection has to live, or as it
 * was. */
static int
next_transport(struct reeve_listener *l, struct rv_transport **t, struct rva_worker **home)
{
	struct rva_offer *o = l->offers;
	int fd, rc;

	if (l->fd < 0) {
		if (o == NULL)
			return REEVE_EAGAIN;
		l->offers = o->next;
		if (l->offers == NULL)
			l->offers_tail = &l->offers;
		rvq_gauge_sub(&l->backlog, 1);
		*t = o->transport;
		*home = o->home;
		rv_free(o->arena, o, sizeof(*o));
		return 0;
	}
	if (l->drained)
		return REEVE_EAGAIN;
	do
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && only_that_one(errno));
	l->drained = fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
	if (fd < 0)
		return l->drained ? REEVE_EAGAIN : REEVE_ESYS_BASE - errno;
	rc = rv_fd_transport_ours(t, l->arena, fd, l->addr.kind == RV_ADDR_TCP);
	if (rc < 0)
		close(fd);
	return rc;
}

static int
next_connection(struct reeve_listener *l, reeve_conn_t **c)
{
	struct rva_upgrade up = {.rt = l->rt, .role = REEVE_LISTENER, .cfg = &l->cfg};
	int rc = next_transport(l, &up.transport, &up.home);

	if (rc < 0)
		return rc;
	rc = rva_upgrade(c, &up);
	if (rc < 0)
		up.transport->ops->close(up.transport);
	return rc;
}

static void
discard(reeve_conn_t *c)
{
	(void)reeve_abort(&c->ctl, REEVE_ECLOSED);
	reeve_conn_release(c);
}

/* To the first who still waits.  False: nobody does. */
static bool
give_out(struct reeve_listener *l, int rc, reeve_conn_t *c)
{
	reeve_op_t *op;

	while ((op = rva_oplist_pop(&l->accepts)) != NULL && !rva_op_claim(op))
		;
	if (op == NULL)
		return false;
	op->conn = rc == 0 ? c : NULL;
	rva_op_finish(op, rc);
	return true;
}

/* --- connections with a handshake --- */

static void
on_told(reeve_op_t *ready)
{
	struct rva_guest *g = ready->arg;

	rva_post(&g->l->actor, &g->msg.node);
}

static void
give_out_ready(struct reeve_listener *l)
{
	while (l->nready > 0 && give_out(l, 0, l->ready[l->ready_at])) {
		l->ready_at = (l->ready_at + 1) % RVA_GUESTS;
		l->nready--;
	}
}

/* The handshake has ended, one way or the other. */
static void
on_guest(struct reeve_listener *l, struct rva_guest *g)
{
	if (g->pprev != NULL) {
		*g->pprev = g->next;
		if (g->next != NULL)
			g->next->pprev = g->pprev;
		l->nguests--;
	}
	if (g->ready.res < 0 || l->ended) {
		discard(g->c);
	} else {
		l->ready[(l->ready_at + l->nready++) % RVA_GUESTS] = g->c;
		give_out_ready(l);
	}
	rv_free(l->arena, g, sizeof(*g));
}

/* Begin a handshake with the next who comes: also while nobody waits for it, since its dialer does. */
static int
take_guest(struct reeve_listener *l)
{
	struct rva_guest *g;
	reeve_conn_t *c;
	int rc;

	if (l->nguests + l->nready >= RVA_GUESTS)
		return REEVE_EAGAIN;
	rc = next_connection(l, &c);
	REEVE_REQUIRE(rc == 0, rc);
	g = rv_zalloc(l->arena, sizeof(*g));
	if (g == NULL) {
		discard(c);
		return REEVE_ENOMEM;
	}
	g->msg.kind = MSG_GUEST;
	g->c = c;
	g->l = l;
	g->next = l->guests;
	g->pprev = &l->guests;
	if (g->next != NULL)
		g->next->pprev = &g->next;
	l->guests = g;
	l->nguests++;
	rvq_ref_get(&l->refs);
	reeve_op_init(&g->ready, on_told, g);
	rva_op_ours(&g->ready);
	reeve_ready_async(&c->ctl, &g->ready);
	return 0;
}

static void
drop_guests(struct reeve_listener *l)
{
	struct rva_guest *g;

	for (; l->nready > 0; l->nready--, l->ready_at = (l->ready_at + 1) % RVA_GUESTS)
		discard(l->ready[l->ready_at]);
	while ((g = l->guests) != NULL) {
		l->guests = g->next;
		g->pprev = NULL;
		(void)reeve_abort(&g->c->ctl, REEVE_ECLOSED);
	}
}

static void
serve_guests(struct reeve_listener *l)
{
	int rc = 0;

	give_out_ready(l);
	while (!l->ended && rc == 0)
		rc = take_guest(l);
	if (rc < 0 && rc != REEVE_EAGAIN)
		(void)give_out(l, rc, NULL);
}

static void
serve_accepts(struct reeve_listener *l)
{
	reeve_conn_t *c = NULL;
	int rc;

	if (l->cfg.upgrade != NULL) {
		serve_guests(l);
		return;
	}
	while (!l->ended && l->accepts.head != NULL) {
		rc = next_connection(l, &c);
		if (rc == REEVE_EAGAIN)
			return;
		if (!give_out(l, rc, c)) { /* all who waited have left: nobody owns it */
			if (rc == 0)
				discard(c);
			return;
		}
	}
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct reeve_listener *l = rva_container(t, struct reeve_listener, timer);

	rva_timer_set(&l->w->wheel, t, rva_oplist_expire(&l->accepts, now));
}

static void
on_accept(struct reeve_listener *l, reeve_op_t *op)
{
	uint64_t deadline = rva_op(op)->deadline;

	if (l->ended) {
		(void)rva_op_answer(op, REEVE_ECLOSED);
		return;
	}
	rva_oplist_push(&l->accepts, op);
	if (deadline != UINT64_MAX && (!rva_timer_armed(&l->timer) || deadline < l->timer.when))
		rva_timer_set(&l->w->wheel, &l->timer, deadline);
	serve_accepts(l);
}

static void
drop_offers(struct reeve_listener *l)
{
	struct rva_offer *o;

	while ((o = l->offers) != NULL) {
		l->offers = o->next;
		rvq_gauge_sub(&l->backlog, 1);
		o->transport->ops->close(o->transport);
		rv_free(o->arena, o, sizeof(*o));
	}
	l->offers_tail = &l->offers;
}

static void
end(struct reeve_listener *l)
{
	if (l->ended)
		return;
	l->ended = true;
	if (l->fd >= 0) {
		rva_poller_remove(&l->w->poller, l->fd);
		close(l->fd);
		if (l->addr.kind == RV_ADDR_UNIX)
			(void)unlink(l->addr.name);
	} else {
		rva_memory_unbind(l);
	}
	drop_offers(l);
	drop_guests(l);
	rva_timer_clear(&l->w->wheel, &l->timer);
	rva_oplist_fail(&l->accepts, REEVE_ECLOSED);
	rva_rt_remove_listener(l->rt, l);
	listener_put(l); /* the register's */
}

static void
on_ready(struct rva_source *s, int events)
{
	struct reeve_listener *l = rva_container(s, struct reeve_listener, source);

	(void)events;
	rva_ring(&l->actor, &l->bell, RVA_L_READY);
}

static void
on_offer(struct reeve_listener *l, struct rva_offer *o)
{
	o->next = NULL;
	*l->offers_tail = o;
	l->offers_tail = &o->next;
	if (l->ended)
		drop_offers(l);
	else
		serve_accepts(l);
	listener_put(l);
}

static void
listener_on(struct rva_actor *a, struct rvq_node *n)
{
	struct reeve_listener *l = rva_container(a, struct reeve_listener, actor);
	struct rva_msg *m = (struct rva_msg *)(void *)n;
	uint32_t bits;

	if (n != &l->bell.node) {
		if (m->kind == MSG_OFFER) {
			on_offer(l, (struct rva_offer *)(void *)m);
		} else if (m->kind == MSG_GUEST) {
			on_guest(l, (struct rva_guest *)(void *)m);
			if (!l->ended)
				serve_accepts(l);
			listener_put(l);
		} else if (m->kind == RVA_MSG_CANCEL) {
			(void)rva_oplist_remove(&l->accepts, rva_op_of_cancel(n));
			rva_op_finish(rva_op_of_cancel(n), REEVE_ECANCELED);
		} else {
			on_accept(l, rva_op_of_msg(n));
		}
		return;
	}
	bits = rvq_bell_answer(&l->bell);
	if (bits & RVA_L_STOP)
		end(l);
	else if (bits & RVA_L_READY) {
		l->drained = false;
		serve_accepts(l);
	}
	if (bits & RVA_L_FREE)
		a->dead = true;
}

static void
listener_free(struct rva_actor *a)
{
	struct reeve_listener *l = rva_container(a, struct reeve_listener, actor);

	rv_upgrade_release(&l->upgrade);
	rv_free(l->arena, l, sizeof(*l));
}

static const struct rva_actor_ops listener_ops = {listener_on, listener_free, false};

/* --- making one --- */

/* A socket file that nobody listens on any more is in the way of a new listener. */
static void
remove_stale(const struct rv_addr *a)
{
	struct stat st;
	int fd;

	if (lstat(a->name, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, &a->u.sa, a->salen) < 0 && errno == ECONNREFUSED)
		(void)unlink(a->name);
	close(fd);
}

static int
bind_socket(struct rv_addr *a)
{
	int on = 1, rc,
	    fd = socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(a->u);
	bool bound;

	if (fd < 0)
		return REEVE_ESYS_BASE - errno;
	if (a->kind == RV_ADDR_TCP)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	else
		remove_stale(a);
	bound = bind(fd, &a->u.sa, a->salen) == 0;
	if (!bound || listen(fd, BACKLOG) < 0 || getsockname(fd, &a->u.sa, &len) < 0) {
		rc = REEVE_ESYS_BASE - errno;
		if (bound && a->kind == RV_ADDR_UNIX)
			(void)unlink(a->name);
		close(fd);
		return rc;
	}
	if (a->kind == RV_ADDR_TCP) {
		a->salen = len;
		a->port = ntohs(
		    a->u.sa.sa_family == AF_INET6 ? a->u.in6.sin6_port : a->u.in.sin_port);
	}
	return fd;
}

static int
resolve(struct rv_addr *a, const char *text)
{
	struct rv_addr parsed;
	int rc = rv_addr_parse(&parsed, text);

	REEVE_REQUIRE(rc == 0, rc);
	if (parsed.kind == RV_ADDR_TCP && !parsed.numeric) {
		rc = rv_addr_resolve(&parsed, a, 1);
		return rc < 0 ? rc : 0;
	}
	*a = parsed;
	return 0;
}

int
reeve_listen(reeve_listener_t **out, reeve_rt_t *rt, const char *addr, const reeve_cfg_t *cfg)
{
	struct reeve_listener *l;
	reeve_cfg_t resolved;
	int rc;

	REEVE_REQUIRE(out != NULL && rt != NULL && addr != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(rt);
	REEVE_REQUIRE(rc == 0, rc);
	l = rv_zalloc(rt->arena, sizeof(*l));
	REEVE_REQUIRE(l != NULL, REEVE_ENOMEM);
	l->rt = rt;
	l->arena = rt->arena;
	l->w = rva_rt_place(rt);
	l->fd = -1;
	rva_actor_init(&l->actor, l->w, &listener_ops);
	rvq_bell_init(&l->bell);
	rvq_ref_init(&l->refs, 2); /* the handle's and the register's */
	rvq_parker_init(&l->stopped);
	rva_oplist_init(&l->accepts);
	l->offers_tail = &l->offers;
	l->timer.fn = on_timer;
	l->source.ready = on_ready;
	rc = rv_cfg_resolve(&resolved, cfg);
	if (rc == 0 && cfg != NULL) {
		memcpy(&l->cfg, cfg, cfg->size < sizeof(l->cfg) ? cfg->size : sizeof(l->cfg));
		l->cfg.size = sizeof(l->cfg);
		rv_upgrade_copy(&l->upgrade, &l->cfg);
	} else {
		reeve_cfg_init(&l->cfg);
	}
	if (rc == 0)
		rc = resolve(&l->addr, addr);
	if (rc == 0 && l->addr.kind != RV_ADDR_MEM) {
		l->fd = bind_socket(&l->addr);
		rc = l->fd < 0 ? l->fd : 0;
		l->actor.watched = true;
	}
	if (rc == 0)
		rc = rva_rt_add_listener(rt, l);
	if (rc == 0 && l->addr.kind == RV_ADDR_MEM && (rc = rva_memory_bind(l->addr.name, l)) < 0)
		rva_rt_remove_listener(rt, l);
	if (rc < 0) {
		if (l->fd >= 0)
			close(l->fd);
		if (l->fd >= 0 && l->addr.kind == RV_ADDR_UNIX)
			(void)unlink(l->addr.name);
		rv_upgrade_release(&l->upgrade);
		rv_free(rt->arena, l, sizeof(*l));
		return rc;
	}
	*out = l;
	return 0;
}

int
reeve_listener_addr(reeve_listener_t *l, char *out, size_t n)
{
	REEVE_REQUIRE(l != NULL && out != NULL, REEVE_EINVAL);
	return rv_addr_format(&l->addr, out, n);
}

int
reeve_listener_accept(reeve_listener_t *l, reeve_conn_t **c, int64_t timeout_ms)
{
	struct rva_ask *a;
	reeve_op_t out;
	int rc;

	REEVE_REQUIRE(l != NULL && c != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(l->rt);
	REEVE_REQUIRE(rc == 0, rc);
	a = rva_ask_new(l->arena, timeout_ms);
	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	rvq_ref_get(&l->refs);
	rva_op_start(&a->op, &l->actor, RVA_MSG_LISTEN_ACCEPT, l, unref_listener);
	rc = (int)rva_ask_wait(a, &out);
	if (rc == 0)
		*c = out.conn;
	return rc;
}

void
reeve_listener_accept_async(reeve_listener_t *l, reeve_op_t *op)
{
	int rc;

	if (op == NULL)
		return;
	rc = l == NULL ? REEVE_EINVAL : op->cq != NULL ? REEVE_ENOTSUP : rva_rt_alive(l->rt);
	if (rc < 0) {
		rva_op_refuse(l == NULL ? NULL : l->rt, op, rc);
		return;
	}
	op->conn = NULL;
	rvq_ref_get(&l->refs);
	rva_op_start(op, &l->actor, RVA_MSG_LISTEN_ACCEPT, l, unref_listener);
}

void
reeve_listener_stop(reeve_listener_t *l)
{
	if (l == NULL || rva_rt_alive(l->rt) < 0)
		return;
	rvq_cell32_put(&l->stopping, 1);
	if (rvq_bell_ring_mpsc(
		&l->bell, &l->actor.mailbox, RVA_L_STOP)) /* perhaps in a signal handler */
		rva_schedule_inbox(&l->actor);
	(void)rvq_parker_wake(&l->stopped);
}

void
reeve_listener_destroy(reeve_listener_t *l)
{
	reeve_conn_t *c;

	if (l == NULL)
		return;
	reeve_listener_stop(l);
	/* The address is free when this returns: an accept is answered once the stop was. */
	while (rva_rt_may_wait(l->rt) && reeve_listener_accept(l, &c, -1) == 0)
		reeve_conn_destroy(c);
	listener_put(l);
}

int
rva_listener_offer(struct reeve_listener *l, struct rv_transport *t, struct rva_worker *home)
{
	struct rva_offer *o;

	if (rvq_cell32_get(&l->stopping) != 0 || rvq_gauge_get(&l->backlog) >= MEM_BACKLOG)
		return REEVE_ESYS_BASE - ECONNREFUSED;
	o = rv_zalloc(l->arena, sizeof(*o));
	REEVE_REQUIRE(o != NULL, REEVE_ENOMEM);
	o->msg.kind = MSG_OFFER;
	o->transport = t;
	o->home = home;
	o->arena = l->arena;
	rvq_gauge_add(&l->backlog, 1);
	rvq_ref_get(&l->refs);
	rva_post(&l->actor, &o->msg.node);
	return 0;
}
