/* runtime.c - making, running and ending a runtime; the register of what lives on it. */
#include <config.h>

#include "actors/runtime.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "actors/connection.h"
#include "actors/fork.h"
#include "actors/listener.h"
#include "actors/user.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "lib/config.h"

#define MAX_WORKERS 8
#define EXTERNAL_PASSES \
	64 /* of one reeve_rt_run: it comes back to the application however busy it is */
#define DEFAULT_HANDLERS 1024
#define DEFAULT_BUFFERED (UINT64_C(1) << 30)

void
reeve_rt_cfg_init_sized(reeve_rt_cfg_t *cfg, size_t size)
{
	if (cfg == NULL || size < sizeof(cfg->size))
		return;
	memset(cfg, 0, size);
	cfg->size = (uint32_t)size;
}

static int
copy_cfg(reeve_rt_cfg_t *to, const reeve_rt_cfg_t *from)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(to, 0, sizeof(*to));
	if (from != NULL) {
		REEVE_REQUIRE(from->size >= offsetof(reeve_rt_cfg_t, workers), REEVE_EINVAL);
		REEVE_REQUIRE(from->size <= RV_CFG_SIZE_MAX, REEVE_EINVAL);
		for (size_t i = sizeof(*to); i < from->size; i++)
			REEVE_REQUIRE(((const char *)from)[i] == 0, REEVE_EINVAL);
		memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	}
	REEVE_REQUIRE(to->seed == 0, REEVE_ENOTSUP);
	REEVE_REQUIRE((to->flags & ~REEVE_RT_EXTERNAL) == 0, REEVE_EINVAL);
	REEVE_REQUIRE((to->alloc.alloc == NULL) == (to->alloc.free == NULL), REEVE_EINVAL);
	REEVE_REQUIRE(to->workers <= 256, REEVE_EINVAL);
	if (to->workers == 0)
		to->workers = cpus < 1 ? 1 : cpus > MAX_WORKERS ? MAX_WORKERS : (uint32_t)cpus;
	if (to->flags & REEVE_RT_EXTERNAL)
		to->workers = 1;
	REEVE_REQUIRE(to->spin_us <= RVA_SPIN_US_MAX || to->spin_us == REEVE_OFF, REEVE_EINVAL);
	to->spin_us = rva_spin_us(to->spin_us);
	if (to->max_handlers == 0)
		to->max_handlers = DEFAULT_HANDLERS;
	if (to->max_buffered == 0)
		to->max_buffered = DEFAULT_BUFFERED;
	if (to->log_level == 0)
		to->log_level = REEVE_LOG_WARN;
	return 0;
}

/* Every signal is blocked on workers: the application's handlers run on its own threads. */
static int
start_workers(reeve_rt_t *rt, unsigned *started)
{
	sigset_t all, before;
	char name[16];
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (*started = 0; *started < rt->nworkers && rc == 0; ++*started) {
		struct rva_worker *w = &rt->workers[*started];

		rc = pthread_create(&w->thread, NULL, rva_worker_main, w);
		if (rc != 0)
			break;
		snprintf(name, sizeof(name), "%s-%u", rt->name, *started % 1000);
		(void)pthread_setname_np(w->thread, name);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0 ? 0 : REEVE_ESYS_BASE - rc;
}

static void
stop_workers(reeve_rt_t *rt, unsigned started)
{
	for (unsigned i = 0; i < started; i++) {
		rvq_cell32_put(&rt->workers[i].stop, 1);
		rva_worker_wake(&rt->workers[i]);
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(rt->workers[i].thread, NULL);
}

static void
free_rt(reeve_rt_t *rt, unsigned ready)
{
	struct rv_arena *ar = rt->arena;

	for (unsigned i = 0; i < ready; i++)
		rva_worker_fini(&rt->workers[i]);
	if (rt->leases != NULL)
		rva_leases_close(rt->leases);
	if (rt->budget != NULL)
		rv_budget_unref(rt->budget);
	pthread_mutex_destroy(&rt->lock);
	/* Handles that are still held name their worker: it stays until the arena does. */
	rv_arena_keep(ar, rt->workers, rt->nworkers * sizeof(*rt->workers));
	rv_arena_keep(ar, rt, sizeof(*rt));
	rv_arena_unref(ar);
}

static int
init_rt(reeve_rt_t *rt, const reeve_rt_cfg_t *cfg, unsigned *ready)
{
	int rc = 0;

	rt->log = (struct rv_log){cfg->log, cfg->log_ctx, cfg->log_level};
	rt->max_handlers = cfg->max_handlers;
	rt->external = (cfg->flags & REEVE_RT_EXTERNAL) != 0;
	rt->generation = rva_fork_generation();
	snprintf(rt->name, sizeof(rt->name), "%s", cfg->name != NULL ? cfg->name : "reeve");
	rvq_parker_init(&rt->idle);
	rt->past.size = sizeof(rt->past);
	rt->budget = rv_budget_create(rt->arena, cfg->max_buffered, NULL);
	rt->leases = rva_leases_create(rt->arena);
	if (rt->budget == NULL || rt->leases == NULL)
		return REEVE_ENOMEM;
	for (*ready = 0; *ready < rt->nworkers; ++*ready) {
		rc = rva_worker_init(&rt->workers[*ready], rt, *ready);
		if (rc < 0)
			return rc;
	}
	if (rt->external)
		rc = rva_worker_external(&rt->workers[0]);
	return rc;
}

int
reeve_rt_create(reeve_rt_t **out, const reeve_rt_cfg_t *ucfg)
{
	reeve_rt_cfg_t cfg;
	struct rv_arena *ar;
	reeve_rt_t *rt;
	unsigned ready = 0, started = 0;
	int rc;

	REEVE_REQUIRE(out != NULL, REEVE_EINVAL);
	rc = copy_cfg(&cfg, ucfg);
	REEVE_REQUIRE(rc == 0, rc);
	ar = rv_arena_create(&cfg.alloc);
	REEVE_REQUIRE(ar != NULL, REEVE_ENOMEM);
	rt = rv_zalloc(ar, sizeof(*rt));
	if (rt == NULL) {
		rv_arena_unref(ar);
		return REEVE_ENOMEM;
	}
	rt->arena = ar;
	pthread_mutex_init(&rt->lock, NULL);
	rt->nworkers = cfg.workers;
	rt->spin_us = cfg.spin_us;
	rt->workers = rv_alloc(ar, rt->nworkers * sizeof(*rt->workers), 64);
	rc = rt->workers == NULL ? REEVE_ENOMEM : init_rt(rt, &cfg, &ready);
	if (rc == 0 && !rt->external)
		rc = start_workers(rt, &started);
	if (rc < 0) {
		stop_workers(rt, started);
		free_rt(rt, ready);
		return rc;
	}
	*out = rt;
	return 0;
}

int
rva_rt_alive(reeve_rt_t *rt)
{
	return rt->generation == rva_fork_generation() ? 0 : REEVE_EFORKED;
}

int
rva_rt_may_block(reeve_rt_t *rt)
{
	if (rt->generation != rva_fork_generation())
		return REEVE_EFORKED;
	if (rva_self != NULL)
		return REEVE_EWORKER;
	if (rt->external && rvq_cell64_get(&rt->runner) == (uint64_t)pthread_self())
		return REEVE_EWORKER;
	return 0;
}

bool
rva_rt_may_wait(reeve_rt_t *rt)
{
	return rva_rt_may_block(rt) == 0 && (!rt->external || rvq_cell64_get(&rt->runner) != 0);
}

/* Fewer connections, dialed ones included; among as many the worker that asks, so that what made a connection need not
 * wake another to use it; else the one with fewer listeners, whose connections are to come. */
static bool
better(struct rva_worker *a, struct rva_worker *b)
{
	uint64_t x = rvq_gauge_get(&a->connections), y = rvq_gauge_get(&b->connections);

	if (x != y || b == rva_self)
		return x < y;
	return a == rva_self || rvq_gauge_get(&a->listeners) < rvq_gauge_get(&b->listeners);
}

struct rva_worker *
rva_rt_place(reeve_rt_t *rt)
{
	struct rva_worker *best = &rt->workers[0];

	for (unsigned i = 1; i < rt->nworkers; i++)
		if (better(&rt->workers[i], best))
			best = &rt->workers[i];
	return best;
}

struct rv_pool *
rva_rt_pool(reeve_rt_t *rt)
{
	if (rva_self != NULL && rva_self->rt == rt)
		return rva_self->pool;
	return rva_lease(rt->leases);
}

/* --- the register --- */

/* One list of it: links next and pprev.  begin: what makes x work, under the lock: nobody ends it before. */
#define REGISTER_ADD(rt, list, x, begin, rc)                                           \
	do {                                                                           \
		pthread_mutex_lock(&(rt)->lock);                                       \
		(rc) = rvq_cell32_get(&(rt)->stopping) != 0 ? REEVE_ECLOSED : (begin); \
		if ((rc) == 0) {                                                       \
			(x)->next = (rt)->list;                                        \
			(x)->pprev = &(rt)->list;                                      \
			if ((x)->next != NULL)                                         \
				(x)->next->pprev = &(x)->next;                         \
			(rt)->list = (x);                                              \
		}                                                                      \
		pthread_mutex_unlock(&(rt)->lock);                                     \
	} while (0)

/* Out of it, under the lock. */
#define REGISTER_UNLINK(rt, x)                                 \
	do {                                                   \
		if ((x)->pprev != NULL) {                      \
			*(x)->pprev = (x)->next;               \
			if ((x)->next != NULL)                 \
				(x)->next->pprev = (x)->pprev; \
			(x)->pprev = NULL;                     \
		}                                              \
		(void)rvq_parker_wake(&(rt)->idle);            \
	} while (0)

#define REGISTER_REMOVE(rt, x)                     \
	do {                                       \
		pthread_mutex_lock(&(rt)->lock);   \
		REGISTER_UNLINK(rt, x);            \
		pthread_mutex_unlock(&(rt)->lock); \
	} while (0)

int
rva_rt_add_conn(reeve_rt_t *rt, struct reeve_conn *c)
{
	int rc;

	REGISTER_ADD(rt, conns, c, 0, rc);
	if (rc == 0) {
		rvq_gauge_add(&rt->nconns, 1);
		rvq_gauge_add(&c->w->connections, 1);
	}
	return rc;
}

void
rva_rt_remove_conn(reeve_rt_t *rt, struct reeve_conn *c)
{
	reeve_stats_t st = {.size = sizeof(st)};

	rva_conn_stats(c, &st);
	rvq_gauge_sub(&c->w->connections, 1);
	if (c->foreign)
		rvq_gauge_sub(&c->w->custom, 1);
	rvq_gauge_sub(&rt->nconns, 1);
	pthread_mutex_lock(&rt->lock);
	/* At once with the removal: no sum has it twice, or not at all. */
	rva_stats_add(&rt->past, &st);
	REGISTER_UNLINK(rt, c);
	pthread_mutex_unlock(&rt->lock);
}

int
rva_rt_add_listener(reeve_rt_t *rt, struct reeve_listener *l)
{
	int rc;

	REGISTER_ADD(
	    rt, listeners, l, l->fd < 0 ? 0 : rva_poller_add(&l->w->poller, l->fd, &l->source), rc);
	if (rc == 0)
		rvq_gauge_add(&l->w->listeners, 1);
	return rc;
}

void
rva_rt_remove_listener(reeve_rt_t *rt, struct reeve_listener *l)
{
	rvq_gauge_sub(&l->w->listeners, 1);
	REGISTER_REMOVE(rt, l);
}

int
rva_rt_add_actor(reeve_rt_t *rt, struct reeve_actor *a)
{
	int rc;

	REGISTER_ADD(rt, actors, a, 0, rc);
	return rc;
}

void
rva_rt_remove_actor(reeve_rt_t *rt, struct reeve_actor *a)
{
	REGISTER_REMOVE(rt, a);
}

/* --- ending --- */

static bool
register_empty(reeve_rt_t *rt, bool actors_too)
{
	bool empty;

	pthread_mutex_lock(&rt->lock);
	empty = rt->conns == NULL && rt->listeners == NULL && (!actors_too || rt->actors == NULL);
	pthread_mutex_unlock(&rt->lock);
	return empty;
}

/* Wait until the register is empty or the deadline has come; an external runtime is run meanwhile. */
static int
wait_empty(reeve_rt_t *rt, uint64_t deadline, bool actors_too)
{
	while (!register_empty(rt, actors_too)) {
		if (rt->external) {
			int rc = reeve_rt_run(rt, 0);

			if (rc < 0 && rc != REEVE_EBUSY)
				return rc;
			if (rc > 0)
				continue;
			if (rv_clock_us() >= deadline)
				return REEVE_ETIMEDOUT;
			(void)reeve_rt_run(rt, 1);
			continue;
		}
		rvq_parker_arm(&rt->idle);
		if (register_empty(rt, actors_too)) {
			rvq_parker_disarm(&rt->idle);
			break;
		}
		if (rvq_parker_wait(&rt->idle, deadline) == REEVE_ETIMEDOUT)
			return REEVE_ETIMEDOUT;
	}
	return 0;
}

static void
end_all(reeve_rt_t *rt, int64_t timeout_ms)
{
	pthread_mutex_lock(&rt->lock);
	for (struct reeve_listener *l = rt->listeners; l != NULL; l = l->next)
		reeve_listener_stop(l);
	for (struct reeve_conn *c = rt->conns; c != NULL; c = c->next)
		rva_conn_close(c, timeout_ms);
	pthread_mutex_unlock(&rt->lock);
}

int
reeve_rt_shutdown(reeve_rt_t *rt, int64_t timeout_ms)
{
	uint64_t deadline;
	int rc;

	REEVE_REQUIRE(rt != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(rt);
	REEVE_REQUIRE(rc == 0, rc);
	REEVE_REQUIRE(rva_self == NULL, REEVE_EWORKER);
	deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
	rvq_cell32_put(&rt->stopping, 1);
	end_all(rt, timeout_ms);
	rc = timeout_ms == 0 ? 0 : wait_empty(rt, deadline, false);
	if (rc == REEVE_ETIMEDOUT || timeout_ms == 0) {
		end_all(rt, 0);
		(void)wait_empty(rt, UINT64_MAX, false);
	}
	return rc == 0 && rvq_cell32_swap(&rt->cut, 0) != 0 ? REEVE_ETIMEDOUT : rc;
}

/* In a forked child no thread of ours exists and locks may be held for ever: close what is ours, touch nothing else. */
static void
abandon(reeve_rt_t *rt)
{
	for (struct reeve_conn *c = rt->conns; c != NULL; c = c->next)
		if (c->transport != NULL && c->transport->ops->fd(c->transport) >= 0)
			close(c->transport->ops->fd(c->transport));
	for (struct reeve_listener *l = rt->listeners; l != NULL; l = l->next)
		if (l->fd >= 0)
			close(l->fd);
	for (unsigned i = 0; i < rt->nworkers; i++) {
		close(rt->workers[i].poller.fd);
		close(rt->workers[i].waker.fd);
	}
}

void
reeve_rt_destroy(reeve_rt_t *rt)
{
	if (rt == NULL || rva_self != NULL)
		return;
	if (rva_rt_alive(rt) != 0) {
		abandon(rt);
		return;
	}
	(void)reeve_rt_shutdown(rt, 0);
	pthread_mutex_lock(&rt->lock);
	for (struct reeve_actor *a = rt->actors; a != NULL; a = a->next)
		rva_user_stop(a);
	pthread_mutex_unlock(&rt->lock);
	(void)wait_empty(rt, UINT64_MAX, true);
	if (!rt->external)
		stop_workers(rt, rt->nworkers);
	else
		rvq_cell32_put(&rt->workers[0].stop, 1);
	while (rt->external && reeve_rt_run(rt, 0) > 0)
		;
	rvq_cell64_put(&rt->runner, 0); /* calls on what is left wait for nobody */
	free_rt(rt, rt->nworkers);
}

/* --- external mode --- */

int
reeve_rt_fd(reeve_rt_t *rt)
{
	REEVE_REQUIRE(rt != NULL, REEVE_EINVAL);
	REEVE_REQUIRE(rt->external, REEVE_ENOTSUP);
	return rt->workers[0].poller.fd;
}

int
reeve_rt_run(reeve_rt_t *rt, int64_t timeout_ms)
{
	struct rva_worker *w;
	uint64_t deadline;
	struct rv_pool *before;
	unsigned done = 0, passes = 0;
	int rc;

	REEVE_REQUIRE(rt != NULL, REEVE_EINVAL);
	REEVE_REQUIRE(rt->external, REEVE_ENOTSUP);
	rc = rva_rt_alive(rt);
	REEVE_REQUIRE(rc == 0, rc);
	REEVE_REQUIRE(rva_self == NULL, REEVE_EWORKER);
	REEVE_REQUIRE(rvq_cell32_cas(&rt->running, 0, 1), REEVE_EBUSY);
	w = &rt->workers[0];
	rvq_cell64_put(&rt->runner, (uint64_t)pthread_self());
	rva_self = w;
	before = rv_pool_current();
	rv_pool_enter(w->pool);
	deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
	if (rvq_cell32_get(&w->stop) != 0)
		rva_dials_end(w);
	do
		done += rva_worker_pass(w, done > 0 ? 0 : deadline);
	while (rva_worker_busy(w) && ++passes < EXTERNAL_PASSES);
	rva_worker_announce(w);
	rv_pool_enter(before);
	rva_self = NULL;
	rvq_cell32_put(&rt->running, 0);
	return done > INT32_MAX ? INT32_MAX : (int)done;
}
