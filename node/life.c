/* life.c - the beginning and the end of a node. */
#include <config.h>

#include "node/inner.h"
#include "node/dial.h"
#include "node/link.h"

#include <stddef.h>
#include <string.h>

#include "actors/connection.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "lib/config.h"

#define PUMP_MS 10

/* --- the beginning --- */

void
reeve_node_cfg_init_sized(reeve_node_cfg_t *cfg, size_t size)
{
	if (cfg == NULL || size < sizeof(cfg->size) || size > RV_CFG_SIZE_MAX)
		return;
	memset(cfg, 0, size);
	cfg->size = (uint32_t)size;
}

static uint32_t
or_default(uint32_t value, uint32_t def)
{
	return value != 0 ? value : def;
}

/* What an older or newer caller gave, as far as we know it. */
static int
copy_cfg(reeve_node_cfg_t *to, const reeve_node_cfg_t *from)
{
	memset(to, 0, sizeof(*to));
	REEVE_REQUIRE(from != NULL && from->size <= RV_CFG_SIZE_MAX, REEVE_EINVAL);
	REEVE_REQUIRE(
	    from->size >= offsetof(reeve_node_cfg_t, conn) + sizeof(from->conn), REEVE_EINVAL);
	for (size_t i = sizeof(*to); i < from->size; i++)
		REEVE_REQUIRE(((const char *)from)[i] == 0, REEVE_EINVAL);
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	REEVE_REQUIRE(to->flags == 0, REEVE_EINVAL);
	to->idle_ms = or_default(to->idle_ms, 10000);
	to->dial_ms = or_default(to->dial_ms, 10000);
	to->negotiate_ms = or_default(to->negotiate_ms, 10000);
	to->max_conns = or_default(to->max_conns, 1000);
	to->max_negotiating = or_default(to->max_negotiating, 256);
	to->max_peers = or_default(to->max_peers, 10000);
	return 0;
}

/* The configuration of every connection, and who we are by it. */
static int
copy_conn(reeve_node_t *n, const reeve_cfg_t *conn)
{
	struct rv_upgrade_cfg up;
	reeve_cfg_t resolved;
	int rc;

	REEVE_REQUIRE(conn != NULL, REEVE_EINVAL);
	rc = rv_cfg_resolve(&resolved, conn);
	REEVE_REQUIRE(rc == 0, rc);
	reeve_cfg_init(&n->conn);
	memcpy(&n->conn, conn, conn->size < sizeof(n->conn) ? conn->size : sizeof(n->conn));
	n->conn.size = sizeof(n->conn);
	REEVE_REQUIRE(n->conn.upgrade != NULL && n->conn.upgrade->expect == NULL, REEVE_EINVAL);
	rv_upgrade_copy(&n->upgrade, &n->conn);
	n->upgrade.up.why = NULL;
	rc = rv_upgrade_resolve(&up, &n->upgrade.up);
	REEVE_REQUIRE(rc == 0, rc);
	REEVE_REQUIRE(up.security != REEVE_SECURITY_NONE, REEVE_EINVAL);
	rv_peer_id_of(&n->id, &up.key);
	(void)rv_peer_id_text(&n->id, n->text);
	return 0;
}

int
reeve_node_create(reeve_node_t **out, reeve_rt_t *rt, const reeve_node_cfg_t *ucfg)
{
	reeve_node_cfg_t cfg;
	reeve_node_t *n;
	int rc;

	REEVE_REQUIRE(out != NULL && rt != NULL, REEVE_EINVAL);
	rc = copy_cfg(&cfg, ucfg);
	if (rc == 0)
		rc = rva_rt_alive(rt);
	if (rc == 0 && rvq_cell32_get(&rt->stopping) != 0)
		rc = REEVE_ECLOSED;
	REEVE_REQUIRE(rc == 0, rc);
	n = rv_zalloc(rt->arena, sizeof(*n));
	REEVE_REQUIRE(n != NULL, REEVE_ENOMEM);
	rc = copy_conn(n, cfg.conn);
	if (rc < 0) {
		rv_upgrade_release(&n->upgrade);
		rv_free(rt->arena, n, sizeof(*n));
		return rc;
	}
	n->rt = rt;
	n->arena = rt->arena;
	n->idle_ms = cfg.idle_ms;
	n->dial_ms = cfg.dial_ms;
	n->negotiate_ms = cfg.negotiate_ms;
	n->max_conns = cfg.max_conns;
	n->max_negotiating = cfg.max_negotiating;
	n->max_peers = cfg.max_peers;
	n->fn = cfg.fn;
	n->arg = cfg.arg;
	n->seed = rvn_seed(n);
	rvq_parker_init(&n->idle);
	pthread_mutex_init(&n->lock, NULL);
	rvn_clerk_init(n);
	*out = n;
	return 0;
}

/* --- the end --- */

static bool
no_work(reeve_node_t *n)
{
	return rvq_cell64_get(&n->work) == RVN_CLOSING;
}

static bool
no_things(reeve_node_t *n)
{
	return n->things == 0;
}

static bool
is_closed(reeve_node_t *n)
{
	return n->closed;
}

/* Is there nobody who could do anything any more?  (The runtime was destroyed before the node.) */
static bool
deserted(const reeve_node_t *n)
{
	return rva_worker_gone(&n->rt->workers[0]);
}

static bool
check(reeve_node_t *n, bool (*done)(reeve_node_t *))
{
	bool yes;

	rvn_lock(n);
	yes = done(n);
	rvn_unlock(n);
	return yes;
}

/* An external runtime is run meanwhile, unless another thread does. */
static int
wait_for(reeve_node_t *n, bool (*done)(reeve_node_t *), uint64_t deadline)
{
	uint64_t until;

	while (!check(n, done)) {
		if (deserted(n) || rv_clock_us() >= deadline)
			return REEVE_ETIMEDOUT;
		if (n->rt->external && reeve_rt_run(n->rt, 1) >= 0)
			continue;
		until = n->rt->external ? rv_deadline_us(rv_clock_us(), PUMP_MS) : deadline;
		rvq_parker_arm(&n->idle);
		if (check(n, done)) {
			rvq_parker_disarm(&n->idle);
			break;
		}
		(void)rvq_parker_wait(&n->idle, until < deadline ? until : deadline);
	}
	return 0;
}

/* Every connection, once: at most timeout_ms, 0: now. */
static void
leave_all(reeve_node_t *n, int64_t timeout_ms)
{
	struct rvn_link *l;

	rvn_lock(n);
	for (l = n->links; l != NULL; l = l->next)
		l->told = false;
	for (;;) {
		for (l = n->links; l != NULL && l->told; l = l->next)
			;
		if (l == NULL)
			break;
		l->told = true;
		rvn_link_ref(l);
		rvn_unlock(n);
		rvn_link_leave(l, timeout_ms);
		rvn_link_unref(l);
		rvn_lock(n);
	}
	rvn_unlock(n);
}

static int64_t
ms_left(uint64_t deadline)
{
	uint64_t now = rv_clock_us();

	if (deadline == UINT64_MAX)
		return -1;
	return deadline <= now ? 0 : (int64_t)((deadline - now + 999) / 1000);
}

/* What the protocols have ends by them; at the deadline it is cut. */
static void
end_protocols(reeve_node_t *n, uint64_t deadline)
{
	for (struct rvn_proto *p = n->protos; p != NULL; p = p->next)
		p->ops->close(p);
	if (wait_for(n, no_work, deadline) == 0)
		return;
	rvn_lock(n);
	n->cut = true;
	rvn_unlock(n);
	leave_all(n, 0);
	(void)wait_for(n, no_work, UINT64_MAX);
}

static void
end_connections(reeve_node_t *n, uint64_t deadline)
{
	leave_all(n, ms_left(deadline));
	if (deadline != UINT64_MAX)
		deadline += RVA_HELD_UP_MS * UINT64_C(1000);
	if (wait_for(n, no_things, deadline) == 0)
		return;
	leave_all(n, 0);
	(void)wait_for(n, no_things, UINT64_MAX);
}

static void
end_listeners(reeve_node_t *n)
{
	struct rvn_listener *l, *next;

	rvn_lock(n);
	l = n->listeners;
	n->listeners = NULL;
	rvn_unlock(n);
	for (; l != NULL; l = next) {
		next = l->next;
		reeve_listener_destroy(l->l);
		rv_free(n->arena, l, sizeof(*l));
	}
}

int
reeve_node_close(reeve_node_t *n, int64_t timeout_ms)
{
	uint64_t deadline;
	int rc;

	REEVE_REQUIRE(n != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(n->rt);
	REEVE_REQUIRE(rc == 0, rc);
	REEVE_REQUIRE(rva_self == NULL, REEVE_EWORKER);
	deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
	if (rvq_cell64_or(&n->work, RVN_CLOSING) & RVN_CLOSING)
		return wait_for(n, is_closed, deadline);
	rvn_lock(n); /* who did not see it has done what he was doing */
	rvn_unlock(n);
	for (struct rvn_listener *l = n->listeners; l != NULL; l = l->next)
		reeve_listener_stop(l->l);
	rvn_clerk_retry(n);
	rvn_dials_end(n);
	end_protocols(n, deadline);
	end_connections(n, deadline);
	end_listeners(n);
	rvn_lock(n); /* behind it another thread that waited here may free the node */
	rc = n->cut && timeout_ms != 0 ? REEVE_ETIMEDOUT : 0;
	n->closed = true;
	(void)rvq_parker_wake(&n->idle);
	rvn_unlock(n);
	return rc;
}

void
reeve_node_destroy(reeve_node_t *n)
{
	struct rvq_latch freed;
	struct rvn_proto *p, *next;
	struct rvn_names *t, *older;
	struct rv_arena *ar;

	if (n == NULL || rva_rt_alive(n->rt) < 0 || rva_self != NULL)
		return;
	(void)reeve_node_close(n, 0);
	rvq_latch_init(&freed);
	rvn_clerk_free(n, &freed);
	while (n->rt->external && !rvq_latch_isset(&freed) && !deserted(n))
		if (reeve_rt_run(n->rt, 1) < 0)
			(void)rvq_latch_wait(&freed, rv_deadline_us(rv_clock_us(), PUMP_MS));
	(void)rvq_latch_wait(&freed, UINT64_MAX);
	for (p = n->protos; p != NULL; p = next) {
		next = p->next;
		p->ops->free(p);
	}
	for (t = rvq_cellptr_get(&n->names); t != NULL; t = older) {
		older = t->older;
		rv_free(n->arena, t, t->size);
	}
	rvn_peers_free(n);
	rv_upgrade_release(&n->upgrade);
	pthread_mutex_destroy(&n->lock);
	ar = n->arena;
	rv_free(ar, n, sizeof(*n));
}
