/* dialer.c - one actor per attempt: a non-blocking connect on a worker, then the handshake if one is configured, under
 * the operation's deadline.  A cancelled attempt stays until its connection has told that it is gone. */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/listener.h"
#include "actors/memory.h"
#include "actors/upgrader.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "lib/config.h"
#include "lib/upgrade/handshake.h"

#define READY         1u
#define MAX_ADDRESSES 8

struct rva_dial {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct rva_source source;
	struct rva_timer timer;
	reeve_rt_t *rt;
	struct rva_worker *w;
	struct rv_addr addr;
	reeve_cfg_t cfg;
	struct rv_upgrade_copy upgrade;
	bool has_cfg;
	reeve_op_t *op; /* NULL: answered */
	int fd;
	bool polled;
	reeve_conn_t *c; /* in its handshake, which ready waits for */
	reeve_op_t ready;
	struct rvq_cell32 told;         /* ready has completed */
	struct rva_dial *next, **pprev; /* the worker's list, while connecting */
};

/* The one answer; the actor ends with it. */
static void
finish(struct rva_dial *d, int rc, reeve_conn_t *c)
{
	reeve_op_t *op = d->op;

	d->op = NULL;
	if (d->pprev != NULL) {
		if (d->next != NULL)
			d->next->pprev = d->pprev;
		*d->pprev = d->next;
		d->pprev = NULL;
	}
	rva_timer_clear(&d->w->wheel, &d->timer);
	if (d->fd >= 0) {
		if (d->polled)
			rva_poller_remove(&d->w->poller, d->fd);
		close(d->fd);
		d->fd = -1;
	}
	d->actor.dead = d->c == NULL; /* whoever could post has been answered */
	op->conn = c;
	rva_op_finish(op, rc);
}

/* The handshake has ended, one way or the other. */
static void
on_told(reeve_op_t *ready)
{
	struct rva_dial *d = ready->arg;

	rvq_cell32_put(&d->told, 1);
	rva_ring(&d->actor, &d->bell, READY);
}

/* Nobody wants the connection any more. */
static void
give_up(struct rva_dial *d)
{
	if (d->c != NULL)
		(void)reeve_abort(reeve_conn_ctl(d->c), REEVE_ECANCELED);
}

static void
handshake_over(struct rva_dial *d)
{
	reeve_conn_t *c = d->c;
	int rc = (int)d->ready.res;

	d->c = NULL;
	if (d->op == NULL || !rva_op_claim(d->op)) {
		/* Answered already, or its cancel message ends the attempt. */
		(void)reeve_abort(reeve_conn_ctl(c), REEVE_ECANCELED);
		reeve_conn_release(c);
		d->actor.dead = d->op == NULL;
		return;
	}
	if (rc < 0) {
		if (d->upgrade.up.why != NULL) {
			d->upgrade.up.why->size = sizeof(reeve_reason_t);
			(void)reeve_ctl_reason(reeve_conn_ctl(c), d->upgrade.up.why);
		}
		reeve_conn_release(c);
		c = NULL;
	}
	finish(d, rc, c);
}

/* There is a connection: it is the answer, at once or when its handshake is over. */
static void
connected(struct rva_dial *d, reeve_conn_t *c)
{
	if (d->cfg.upgrade == NULL) {
		finish(d, 0, c);
		return;
	}
	d->c = c;
	reeve_op_init(&d->ready, on_told, d);
	rva_op_ours(&d->ready);
	reeve_ready_async(reeve_conn_ctl(c), &d->ready);
	if (rva_op(d->op)->deadline != UINT64_MAX)
		rva_timer_set(&d->w->wheel, &d->timer, rva_op(d->op)->deadline);
}

static void
fail(struct rva_dial *d, int rc)
{
	if (d->op != NULL && rva_op_claim(d->op))
		finish(d, rc, NULL);
}

/* Without an upgrade the operation is claimed already. */
static void
over(struct rva_dial *d, int rc, reeve_conn_t *c)
{
	if (rc == 0)
		connected(d, c);
	else if (d->cfg.upgrade == NULL || rva_op_claim(d->op))
		finish(d, rc, NULL);
}

static void
established(struct rva_dial *d)
{
	struct rva_upgrade up = {
	    .rt = d->rt, .home = d->w, .role = REEVE_DIALER, .cfg = d->has_cfg ? &d->cfg : NULL};
	reeve_conn_t *c = NULL;
	int rc;

	if (d->cfg.upgrade == NULL && !rva_op_claim(d->op))
		return; /* being cancelled: its message ends the attempt */
	if (d->polled)
		rva_poller_remove(&d->w->poller, d->fd);
	d->polled = false;
	rc = rv_fd_transport_ours(&up.transport, d->rt->arena, d->fd, d->addr.kind == RV_ADDR_TCP);
	if (rc == 0) {
		rc = rva_upgrade(&c, &up);
		if (rc < 0)
			rv_fd_transport_forget(up.transport);
		else
			d->fd = -1;
	}
	over(d, rc, c);
}

static bool
is_connected(const struct rva_dial *d)
{
	struct sockaddr_storage sa;
	socklen_t salen = sizeof(sa);

	return getpeername(d->fd, (struct sockaddr *)&sa, &salen) == 0;
}

static void
check(struct rva_dial *d)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err != 0)
		fail(d, REEVE_ESYS_BASE - err);
	else if (is_connected(d))
		established(d);
	/* else: not connected yet, another edge will come */
}

struct offer {
	struct rva_dial *d;
	struct rv_transport *t;
};

static int
offer(struct reeve_listener *l, void *arg)
{
	struct offer *o = arg;

	return rva_listener_offer(l, o->t, l->rt == o->d->rt ? o->d->w : NULL);
}

static void
dial_memory(struct rva_dial *d)
{
	struct rva_upgrade up = {
	    .rt = d->rt, .home = d->w, .role = REEVE_DIALER, .cfg = d->has_cfg ? &d->cfg : NULL};
	struct rv_transport *t[2];
	struct offer o = {.d = d};
	reeve_conn_t *c = NULL;
	int rc;

	if (d->cfg.upgrade == NULL && !rva_op_claim(d->op))
		return;
	rc = rva_memory_pipe(t, d->rt->arena, RVA_MEMORY_BYTES);
	if (rc == 0) {
		o.t = t[1];
		rc = rva_memory_find(d->addr.name, offer, &o);
		if (rc < 0) {
			t[1]->ops->close(t[1]);
		} else {
			up.transport = t[0];
			rc = rva_upgrade(&c, &up);
		}
		if (rc < 0)
			t[0]->ops->close(t[0]);
	}
	over(d, rc, c);
}

static void
begin(struct rva_dial *d)
{
	int rc;

	if (d->addr.kind == RV_ADDR_MEM) {
		dial_memory(d);
		return;
	}
	d->fd = socket(d->addr.u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0) {
		fail(d, REEVE_ESYS_BASE - errno);
		return;
	}
	rc = connect(d->fd, &d->addr.u.sa, d->addr.salen);
	if (rc < 0 && errno != EINPROGRESS && errno != EINTR) {
		fail(d, REEVE_ESYS_BASE - errno);
		return;
	}
	/* Within one machine a connection is there when connect returns, though it says that it is not. */
	if (rc == 0 || is_connected(d)) {
		established(d);
		return;
	}
	d->next = d->w->dials;
	d->pprev = &d->w->dials;
	if (d->next != NULL)
		d->next->pprev = &d->next;
	d->w->dials = d;
	d->actor.watched = true;
	rc = rva_poller_add(&d->w->poller, d->fd, &d->source);
	d->polled = rc == 0;
	if (rc < 0)
		fail(d, rc);
	else if (rva_op(d->op)->deadline != UINT64_MAX)
		rva_timer_set(&d->w->wheel, &d->timer, rva_op(d->op)->deadline);
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct rva_dial *d = rva_container(t, struct rva_dial, timer);

	(void)now;
	fail(d, REEVE_ETIMEDOUT);
	give_up(d);
	rva_ring(&d->actor, &d->bell, READY); /* a turn, so that the actor ends */
}

static void
on_ready(struct rva_source *s, int events)
{
	struct rva_dial *d = rva_container(s, struct rva_dial, source);

	(void)events;
	rva_ring(&d->actor, &d->bell, READY);
}

void
rva_dials_end(struct rva_worker *w)
{
	struct rva_dial *d;

	while ((d = w->dials) != NULL) {
		w->dials = d->next;
		if (d->next != NULL)
			d->next->pprev = &w->dials;
		d->pprev = NULL;
		fail(d, REEVE_ECLOSED);
		give_up(d);
		rva_ring(&d->actor, &d->bell, READY);
	}
}

static void
dial_on(struct rva_actor *a, struct rvq_node *n)
{
	struct rva_dial *d = rva_container(a, struct rva_dial, actor);
	struct rva_msg *m = (struct rva_msg *)(void *)n;

	if (n == &d->bell.node) {
		(void)rvq_bell_answer(&d->bell);
		if (d->c != NULL && rvq_cell32_get(&d->told) != 0)
			handshake_over(d);
		else if (d->c == NULL && d->op != NULL)
			check(d);
	} else if (m->kind == RVA_MSG_CANCEL) {
		give_up(d);
		if (d->op != NULL)
			finish(d, REEVE_ECANCELED, NULL);
	} else if (rvq_cell32_get(&d->w->stop) != 0 || rva_worker_gone(d->w)) {
		fail(d, REEVE_ECLOSED);
	} else {
		begin(d);
	}
}

static void
dial_free(struct rva_actor *a)
{
	struct rva_dial *d = rva_container(a, struct rva_dial, actor);

	rvq_gauge_sub(&d->w->connections, 1);
	rv_upgrade_release(&d->upgrade);
	rv_free(d->rt->arena, d, sizeof(*d));
}

static const struct rva_actor_ops dial_ops = {dial_on, dial_free, false};

static int
near_listener(struct reeve_listener *l, void *arg)
{
	struct rva_dial *d = arg;

	if (l->rt == d->rt &&
	    rvq_gauge_get(&l->w->connections) <= rvq_gauge_get(&d->w->connections))
		d->w = l->w;
	return 0;
}

/* Where there is room; a memory pipe where its listener is if there is as much: what its ends say to each other then
 * wakes nobody. */
static void
place(struct rva_dial *d)
{
	d->w = rva_rt_place(d->rt);
	if (d->addr.kind == RV_ADDR_MEM)
		(void)rva_memory_find(d->addr.name, near_listener, d);
	rvq_gauge_add(&d->w->connections, 1);
}

static void
start_dial(reeve_rt_t *rt, const struct rv_addr *addr, const reeve_cfg_t *cfg, reeve_op_t *op)
{
	struct rva_dial *d = rv_zalloc(rt->arena, sizeof(*d));

	if (d == NULL) {
		rva_op_refuse(rt, op, REEVE_ENOMEM);
		return;
	}
	d->rt = rt;
	d->addr = *addr;
	place(d);
	d->fd = -1;
	d->op = op;
	if (cfg != NULL) {
		memcpy(&d->cfg, cfg, cfg->size < sizeof(d->cfg) ? cfg->size : sizeof(d->cfg));
		d->cfg.size = cfg->size < sizeof(d->cfg) ? cfg->size : (uint32_t)sizeof(d->cfg);
		d->has_cfg = true;
		rv_upgrade_copy(&d->upgrade, &d->cfg);
	}
	d->timer.fn = on_timer;
	d->source.ready = on_ready;
	rva_actor_init(&d->actor, d->w, &dial_ops);
	rvq_bell_init(&d->bell);
	op->conn = NULL;
	rva_op_start(op, &d->actor, RVA_MSG_DIAL, NULL, NULL);
}

/* What can be told about a configuration before anything is dialed. */
static int
check_cfg(const reeve_cfg_t *cfg)
{
	reeve_cfg_t resolved;

	return rv_cfg_resolve(&resolved, cfg);
}

void
reeve_dial_async(reeve_rt_t *rt, const char *text, const reeve_cfg_t *cfg, reeve_op_t *op)
{
	struct rv_addr addr;
	int rc;

	if (op == NULL)
		return;
	rc = rt == NULL || text == NULL ? REEVE_EINVAL
	    : op->cq != NULL            ? REEVE_ENOTSUP
					: rva_rt_alive(rt);
	if (rc == 0)
		rc = rv_addr_parse(&addr, text);
	if (rc == 0 && addr.kind == RV_ADDR_TCP && !addr.numeric)
		rc = REEVE_EINVAL;
	if (rc == 0)
		rc = check_cfg(cfg);
	if (rc < 0)
		rva_op_refuse(rt, op, rc);
	else
		start_dial(rt, &addr, cfg, op);
}

static int
dial_one(reeve_conn_t **c, reeve_rt_t *rt, const struct rv_addr *addr, const reeve_cfg_t *cfg,
    int64_t timeout_ms)
{
	struct rva_ask *a = rva_ask_new(rt->arena, timeout_ms);
	reeve_op_t out;
	int rc;

	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	start_dial(rt, addr, cfg, &a->op);
	rc = (int)rva_ask_wait(a, &out);
	if (rc == 0)
		*c = out.conn;
	return rc;
}

int
reeve_dial(
    reeve_conn_t **c, reeve_rt_t *rt, const char *text, const reeve_cfg_t *cfg, int64_t timeout_ms)
{
	struct rv_addr addr, found[MAX_ADDRESSES];
	uint64_t deadline, now;
	int rc, n = 1;

	REEVE_REQUIRE(c != NULL && rt != NULL && text != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(rt);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rv_addr_parse(&addr, text);
	REEVE_REQUIRE(rc == 0, rc);
	rc = check_cfg(cfg);
	REEVE_REQUIRE(rc == 0, rc);
	deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
	found[0] = addr;
	if (addr.kind == RV_ADDR_TCP && !addr.numeric)
		n = rv_addr_resolve(&addr, found, MAX_ADDRESSES);
	rc = n;
	for (int i = 0; i < n; i++) {
		now = rv_clock_us();
		if (deadline != UINT64_MAX)
			timeout_ms = now >= deadline ? 0 : (int64_t)((deadline - now + 999) / 1000);
		rc = dial_one(c, rt, &found[i], cfg, timeout_ms);
		if (rc == 0 || rc == REEVE_ETIMEDOUT || rc == REEVE_EWORKER)
			break;
	}
	return rc;
}
