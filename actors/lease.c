/* lease.c - pools for application threads.
 *
 * A thread holds at most one lease, in thread-local storage; its destructor gives the pool back.  The register of
 * leases is refcounted, so it outlives the runtime while some thread still holds a pool. */
#include <config.h>

#include "actors/lease.h"

#include <pthread.h>

#include "lib/alloc.h"

struct lease {
	struct rva_leases *owner;
	struct rv_pool *pool;
	struct lease *next; /* idle list, under lock */
};

struct rva_leases {
	struct rvq_ref refs; /* the runtime, and every lease that a thread holds */
	struct rv_arena *arena;
	pthread_mutex_t lock;
	struct lease *idle; /* under lock */
	bool closed;        /* under lock */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_rc;
static _Thread_local struct lease *mine;

static void
leases_unref(struct rva_leases *l)
{
	struct rv_arena *ar = l->arena;

	if (!rvq_ref_put(&l->refs))
		return;
	pthread_mutex_destroy(&l->lock);
	rv_free(ar, l, sizeof(*l));
	rv_arena_unref(ar);
}

static void
lease_end(struct lease *m)
{
	struct rva_leases *l = m->owner;
	bool closed;

	rv_pool_trim(m->pool); /* nobody may want it for long */
	if (rv_pool_current() == m->pool)
		rv_pool_enter(NULL);
	pthread_mutex_lock(&l->lock);
	closed = l->closed;
	if (!closed) {
		m->next = l->idle;
		l->idle = m;
	}
	pthread_mutex_unlock(&l->lock);
	if (closed) {
		rv_pool_close(m->pool);
		rv_free(l->arena, m, sizeof(*m));
	}
	leases_unref(l);
}

static void
thread_exits(void *arg)
{
	mine = NULL;
	lease_end(arg);
}

void
rva_lease_drop(void)
{
	struct lease *m = mine;

	if (m == NULL)
		return;
	mine = NULL;
	(void)pthread_setspecific(key, NULL);
	lease_end(m);
}

static void
make_key(void)
{
	key_rc = pthread_key_create(&key, thread_exits);
}

struct rva_leases *
rva_leases_create(struct rv_arena *ar)
{
	struct rva_leases *l = rv_zalloc(ar, sizeof(*l));

	if (l == NULL)
		return NULL;
	rvq_ref_init(&l->refs, 1);
	l->arena = ar;
	rv_arena_ref(ar);
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

static struct lease *
lease_new(struct rva_leases *l)
{
	struct lease *m;

	pthread_mutex_lock(&l->lock);
	m = l->closed ? NULL : l->idle;
	if (m != NULL)
		l->idle = m->next;
	pthread_mutex_unlock(&l->lock);
	if (m != NULL)
		return m;
	m = rv_zalloc(l->arena, sizeof(*m));
	if (m == NULL)
		return NULL;
	m->owner = l;
	m->pool = rv_pool_create(l->arena);
	if (m->pool == NULL) {
		rv_free(l->arena, m, sizeof(*m));
		return NULL;
	}
	return m;
}

struct rv_pool *
rva_lease(struct rva_leases *l)
{
	struct lease *m = mine;

	if (m != NULL && m->owner == l)
		return m->pool;
	rva_lease_give_back(); /* the thread has turned to another runtime */
	(void)pthread_once(&once, make_key);
	if (key_rc != 0)
		return NULL;
	m = lease_new(l);
	if (m == NULL)
		return NULL;
	rvq_ref_get(&l->refs);
	if (pthread_setspecific(key, m) != 0) {
		lease_end(m);
		return NULL;
	}
	mine = m;
	rv_pool_enter(m->pool);
	return m->pool;
}

void
rva_lease_give_back(void)
{
	struct lease *m = mine;

	if (m == NULL)
		return;
	mine = NULL;
	(void)pthread_setspecific(key, NULL);
	lease_end(m);
}

void
rva_leases_close(struct rva_leases *l)
{
	struct lease *m, *idle;

	pthread_mutex_lock(&l->lock);
	l->closed = true;
	idle = l->idle;
	l->idle = NULL;
	pthread_mutex_unlock(&l->lock);
	while ((m = idle) != NULL) {
		idle = m->next;
		rv_pool_close(m->pool);
		rv_free(l->arena, m, sizeof(*m));
	}
	if (mine != NULL && mine->owner == l)
		rva_lease_give_back();
	leases_unref(l);
}
