/* serve.c - reeve_serve: every stream of every connection of a listener gets a thread of its own for a while.
 *
 * Threads are made when a stream comes and nobody is idle, up to max_handlers, and go after being idle for a while.
 * One accept per connection is outstanding; a handler that takes a stream starts the next one, so a
 * connection is at most one stream ahead of its handlers and the peer feels the rest as an unacknowledged backlog.
 * The lock is touched once per stream and connection, never by data. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <time.h>

#include <reeve/stream.h>

#include "actors/connection.h"
#include "actors/listener.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"

#define STACK    (256 * 1024)
#define IDLE_S   10
#define RETRY_MS 100u /* while something that connections need has run out */
#define GRACE_MS 3000 /* after the stop: time for what is being served to end by itself */

struct served;

struct serve {
	reeve_rt_t *rt;
	reeve_handler fn;
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	/* under lock */
	struct served *conns;
	struct served *ready, **ready_tail; /* with a stream that waits for a handler */
	unsigned threads, idle, busy;
	bool stopping;
};

struct served {
	reeve_op_t op;
	struct serve *sv;
	reeve_conn_t *conn;
	reeve_stream_t *stream;
	struct served *next, **pprev, *ready_next;
};

static void accepted(reeve_op_t *op);

static void
accept_more(struct served *d)
{
	reeve_op_init(&d->op, accepted, NULL);
	reeve_accept_async(&d->conn->ctl, &d->op);
}

/* Under the lock. */
static struct served *
take_ready(struct serve *sv)
{
	struct served *d = sv->ready;

	if (d != NULL && (sv->ready = d->ready_next) == NULL)
		sv->ready_tail = &sv->ready;
	return d;
}

static void
serve_stream(struct serve *sv, struct served *d)
{
	reeve_stream_t *s = d->stream;

	d->stream = NULL;
	sv->busy++;
	pthread_mutex_unlock(&sv->lock);
	accept_more(d);
	sv->fn(s, sv->arg);
	reeve_close(s);
	pthread_mutex_lock(&sv->lock);
	sv->busy--;
}

static void *
handler_main(void *arg)
{
	struct serve *sv = arg;
	struct served *d;
	struct timespec until;
	int rc = 0;

	pthread_mutex_lock(&sv->lock);
	for (;;) {
		d = take_ready(sv);
		if (d != NULL) {
			serve_stream(sv, d);
			continue;
		}
		if (sv->stopping || rc == ETIMEDOUT) {
			/* reeve_serve returns when the threads count as gone: leave nothing behind. */
			pthread_mutex_unlock(&sv->lock);
			rva_lease_give_back();
			pthread_mutex_lock(&sv->lock);
			rc = 0;
			if (sv->ready == NULL)
				break;
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += IDLE_S;
		sv->idle++;
		rc = pthread_cond_timedwait(&sv->work, &sv->lock, &until);
		sv->idle--;
	}
	rva_lease_drop(); /* nobody joins this thread: all that is the runtime's goes before it is told */
	sv->threads--;
	pthread_cond_broadcast(&sv->done);
	pthread_mutex_unlock(&sv->lock);
	return NULL;
}

/* Under the lock: one more thread. */
static void
spawn(struct serve *sv)
{
	pthread_attr_t attr;
	pthread_t t;
	sigset_t all, before;

	pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&t, &attr, handler_main, sv) == 0)
		sv->threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

/* Under the lock: a stream is ready. */
static void
push_ready(struct serve *sv, struct served *d)
{
	unsigned waiting = 0;

	d->ready_next = NULL;
	*sv->ready_tail = d;
	sv->ready_tail = &d->ready_next;
	for (struct served *r = sv->ready; r != NULL && waiting <= sv->idle; r = r->ready_next)
		waiting++;
	if (waiting > sv->idle && sv->threads < sv->rt->max_handlers)
		spawn(sv);
	pthread_cond_signal(&sv->work);
}

static void
forget(struct serve *sv, struct served *d)
{
	if (d->next != NULL)
		d->next->pprev = d->pprev;
	*d->pprev = d->next;
	pthread_cond_broadcast(&sv->done);
}

/* On a worker: a stream, or the connection's end. */
static void
accepted(reeve_op_t *op)
{
	struct served *d = rva_container(op, struct served, op);
	struct serve *sv = d->sv;
	reeve_conn_t *c = d->conn;
	bool over = op->res < 0;

	pthread_mutex_lock(&sv->lock);
	if (!over) {
		d->stream = op->stream;
		push_ready(sv, d);
	} else {
		rv_arena_ref(c->arena);
		forget(sv, d);
	}
	pthread_mutex_unlock(&sv->lock);
	if (over) { /* sv may be gone */
		struct rv_arena *ar = c->arena;

		reeve_conn_release(c);
		rv_free(ar, d, sizeof(*d));
		rv_arena_unref(ar);
	}
}

static void
serve_conn(struct serve *sv, reeve_conn_t *c)
{
	struct served *d = rv_zalloc(sv->rt->arena, sizeof(*d));

	if (d == NULL) {
		(void)reeve_abort(&c->ctl, REEVE_ENOMEM);
		reeve_conn_release(c);
		return;
	}
	d->sv = sv;
	d->conn = c;
	pthread_mutex_lock(&sv->lock);
	d->next = sv->conns;
	d->pprev = &sv->conns;
	if (d->next != NULL)
		d->next->pprev = &d->next;
	sv->conns = d;
	pthread_mutex_unlock(&sv->lock);
	accept_more(d);
}

/* No more connections come: give those that are there time to end, then end them, and wait for the handlers. */
static void
drain(struct serve *sv)
{
	pthread_mutex_lock(&sv->lock);
	for (struct served *d = sv->conns; d != NULL; d = d->next)
		rva_conn_close(d->conn, GRACE_MS);
	while (sv->conns != NULL)
		pthread_cond_wait(&sv->done, &sv->lock);
	sv->stopping = true;
	pthread_cond_broadcast(&sv->work);
	while (sv->threads > 0)
		pthread_cond_wait(&sv->done, &sv->lock);
	pthread_mutex_unlock(&sv->lock);
}

static int
init(struct serve *sv)
{
	pthread_condattr_t attr;

	if (pthread_condattr_init(&attr) != 0)
		return REEVE_ENOMEM;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&sv->lock, NULL);
	pthread_cond_init(&sv->work, &attr);
	pthread_cond_init(&sv->done, NULL);
	pthread_condattr_destroy(&attr);
	sv->ready_tail = &sv->ready;
	return 0;
}

/* Something ran out that connections of others may give back. */
static bool
scarce(int rc)
{
	return rc == REEVE_ENOMEM || rc == REEVE_ESYS_BASE - ENOMEM ||
	    rc == REEVE_ESYS_BASE - EMFILE || rc == REEVE_ESYS_BASE - ENFILE ||
	    rc == REEVE_ESYS_BASE - ENOBUFS;
}

/* The connection waits in the kernel until something is freed; do not spin on it. */
static void
hold_on(struct serve *sv, reeve_listener_t *l, int rc, bool again)
{
	if (!again)
		rv_log(&sv->rt->log, REEVE_LOG_WARN, "REEVE-SERVE-0001",
		    "no connection can be taken, trying again every %u ms: %s", RETRY_MS,
		    reeve_strerror(rc));
	rvq_parker_arm(&l->stopped);
	if (rvq_cell32_get(&l->stopping) == 0)
		(void)rvq_parker_wait(&l->stopped, rv_deadline_us(rv_clock_us(), RETRY_MS));
}

int
reeve_serve(reeve_listener_t *l, reeve_handler h, void *arg)
{
	struct serve sv = {.fn = h, .arg = arg};
	bool held = false;
	reeve_conn_t *c;
	int rc;

	REEVE_REQUIRE(l != NULL && h != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(l->rt);
	REEVE_REQUIRE(rc == 0, rc);
	sv.rt = l->rt;
	rc = init(&sv);
	REEVE_REQUIRE(rc == 0, rc);
	for (;;) {
		rc = reeve_listener_accept(l, &c, -1);
		if (rc == 0) {
			held = false;
			serve_conn(&sv, c);
		} else if (rvq_cell32_get(&l->stopping) != 0 || rc == REEVE_ECLOSED) {
			rc = 0;
			break;
		} else if (scarce(rc)) {
			hold_on(&sv, l, rc, held);
			held = true;
		} else {
			break;
		}
	}
	drain(&sv);
	pthread_mutex_destroy(&sv.lock);
	pthread_cond_destroy(&sv.work);
	pthread_cond_destroy(&sv.done);
	return rc;
}
