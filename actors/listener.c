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

enum { MSG_OFFER = 1000 };

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

/* The next transport, or an error; REEVE_EAGAIN: nobody is there. */
static int
next_transport(struct reeve_listener *l, struct rv_transport **t)
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
		rv_free(o->arena, o, sizeof(*o));
		return 0;
	}
	do
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && only_that_one(errno));
	if (fd < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? REEVE_EAGAIN
							       : REEVE_ESYS_BASE - errno;
	rc = rv_fd_transport(t, l->arena, fd);
	if (rc < 0)
		close(fd);
	return rc;
}

static void
serve_accepts(struct reeve_listener *l)
{
	struct rva_upgrade up = {.rt = l->rt, .role = REEVE_LISTENER, .cfg = &l->cfg};
	reeve_op_t *op;
	reeve_conn_t *c;
	int rc;

	while (!l->ended && (op = l->accepts.head) != NULL) {
		rc = next_transport(l, &up.transport);
		if (rc == REEVE_EAGAIN)
			return;
		if (rc == 0) {
			rc = rva_upgrade(&c, &up);
			if (rc < 0)
				up.transport->ops->close(up.transport);
		}
		while ((op = rva_oplist_pop(&l->accepts)) != NULL && !rva_op_claim(op))
			;
		if (op == NULL) { /* all who waited have left: nobody owns it */
			if (rc == 0) {
				(void)reeve_abort(&c->ctl, REEVE_ECLOSED);
				reeve_conn_release(c);
			}
			return;
		}
		op->conn = rc == 0 ? c : NULL;
		rva_op_finish(op, rc);
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
		} else if (m->kind == RVA_MSG_CANCEL) {
			(void)rva_oplist_remove(&l->accepts, rva_op_of_cancel(n));
			rva_op_finish(rva_op_of_cancel(n), REEVE_ECANCELED);
		} else {
			on_accept(l, rva_op_of_msg(n));
		}
		return;
	}
	bits = rvq_bell_answer(&l->bell);
	if ((bits & RVA_L_START) && l->fd >= 0 &&
	    rva_poller_add(&l->w->poller, l->fd, &l->source) < 0)
		bits |= RVA_L_STOP;
	if (bits & RVA_L_STOP)
		end(l);
	else if (bits & RVA_L_READY)
		serve_accepts(l);
	if (bits & RVA_L_FREE)
		a->dead = true;
}

static void
listener_free(struct rva_actor *a)
{
	struct reeve_listener *l = rva_container(a, struct reeve_listener, actor);

	rv_free(l->arena, l, sizeof(*l));
}

static const struct rva_actor_ops listener_ops = {listener_on, listener_free};

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
	rc = rv_cfg_resolve(&l->cfg, cfg);
	if (rc == 0)
		rc = resolve(&l->addr, addr);
	if (rc == 0 && l->addr.kind != RV_ADDR_MEM) {
		l->fd = bind_socket(&l->addr);
		rc = l->fd < 0 ? l->fd : 0;
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
		rv_free(rt->arena, l, sizeof(*l));
		return rc;
	}
	*out = l;
	rva_ring(&l->actor, &l->bell, RVA_L_START);
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
rva_listener_offer(struct reeve_listener *l, struct rv_transport *t)
{
	struct rva_offer *o;

	if (rvq_cell32_get(&l->stopping) != 0 || rvq_gauge_get(&l->backlog) >= MEM_BACKLOG)
		return REEVE_ESYS_BASE - ECONNREFUSED;
	o = rv_zalloc(l->arena, sizeof(*o));
	REEVE_REQUIRE(o != NULL, REEVE_ENOMEM);
	o->msg.kind = MSG_OFFER;
	o->transport = t;
	o->arena = l->arena;
	rvq_gauge_add(&l->backlog, 1);
	rvq_ref_get(&l->refs);
	rva_post(&l->actor, &o->msg.node);
	return 0;
}
