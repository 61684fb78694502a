/*
 * mutex.c - the contenders of the usual design: an engine behind a mutex, a thread of the application per stream that calls
 * in, and one I/O thread an end.
 *
 * Everything an end shares is under its one lock; no system call is made with it, no payload of 2 KiB or more is copied
 * with it, and nobody is signalled with it.  The I/O thread reads, parses, writes and wakes who waits; the others queue
 * bytes and take bytes, and ring for the I/O thread only if it sleeps with something to write.  Writers sleep while
 * their stream's send budget is used up, readers while nothing has come.
 *
 * mutex: buffers are handed over and looked at as inline and worker do it.  mutex-copy: bytes are copied from and to the
 * caller's memory, as in reeve_write and reeve_read; small writes are put together in the stream's open block.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "perf/crew.h"
#include "perf/end.h"

#define SMALL \
	2048u /* copied on the way in and put together on the way out, as the library does it */
#define POLL_EVERY 16
#define SOON_US    50

#define WAKE_READER 1u
#define WAKE_WRITER 2u

struct mx;

/* Under the lock unless it says otherwise. */
struct lane {
	struct rv_stream wire; /* first */
	struct mx *mx;         /* immutable */
	pthread_cond_t come, room;
	bool reading, writing;     /* somebody waits */
	bool touched, dirty;       /* is in the list */
	uint32_t queued;           /* of the budget */
	struct rv_chain in, small; /* not read; not given to the engine */
	struct lane *next_all, *next_fresh, *next_touched, *next_dirty;
	struct lane *next_wake; /* the I/O thread's */
	unsigned wakes;         /* the I/O thread's */
	struct rv_pool *pool;   /* the writing thread's */
};

struct mx {
	struct rvp_end
	    end;   /* engine under the lock; transport, slab, gather, flags the I/O thread's */
	bool copy; /* immutable */
	pthread_t thread;
	pthread_mutex_t lock __attribute__((aligned(64)));
	pthread_cond_t fresh_come;
	struct lane *all, *fresh, *fresh_last, *touched, *dirty;
	struct rv_pool *smalls;
	bool asleep; /* the I/O thread is, or is about to be */
	bool stuck;  /* the transport takes nothing now: an event will tell */
	bool lent;   /* a caller does the I/O thread's writing, which waits for it */
	bool over;
	uint64_t lent_at; /* us: the last time */
	pthread_cond_t back;
	struct lane *wake; /* of who does the I/O: to be signalled without the lock */
};

static void
touch(struct mx *m, struct lane *l)
{
	if (l->touched)
		return;
	l->touched = true;
	l->next_touched = m->touched;
	m->touched = l;
}

static void
lane_init(struct mx *m, struct lane *l)
{
	l->mx = m;
	pthread_cond_init(&l->come, NULL);
	pthread_cond_init(&l->room, NULL);
	rv_chain_init(&l->in);
	rv_chain_init(&l->small);
	l->next_all = m->all;
	m->all = l;
}

static void
lane_free(struct mx *m, struct lane *l)
{
	rv_chain_clear(&l->in);
	rv_chain_clear(&l->small);
	pthread_cond_destroy(&l->come);
	pthread_cond_destroy(&l->room);
	rv_free(m->end.arena, l, sizeof(*l));
}

static void
on_open(struct mx *m, struct lane *l)
{
	lane_init(m, l);
	if (m->fresh == NULL)
		m->fresh = l;
	else
		m->fresh_last->next_fresh = l;
	m->fresh_last = l;
	m->end.engine->ops->accept(m->end.engine, &l->wire);
	pthread_cond_signal(&m->fresh_come);
}

static void
on_data(struct mx *m, struct lane *l, const struct rv_event *ev)
{
	if (ev->n < SMALL)
		rvp_must(
		    rv_chain_copy(&l->in, m->end.pool, NULL, ev->slab->data + ev->off, ev->len),
		    "memory");
	else
		rvp_must(rv_chain_cut(&l->in, ev->slab, ev->off, ev->len), "memory");
	touch(m, l);
}

static void
emit(void *ctx, const struct rv_event *ev)
{
	struct mx *m = ctx;
	struct lane *l = (struct lane *)(void *)ev->st;

	switch (ev->kind) {
	case RV_EV_OPEN:
		on_open(m, l);
		break;
	case RV_EV_DATA:
		on_data(m, l, ev);
		break;
	case RV_EV_TAKEN:
		l->queued -= ev->n;
		touch(m, l);
		break;
	case RV_EV_GONE:
		lane_free(m, l);
		break;
	case RV_EV_RST:
	case RV_EV_GOAWAY:
		m->over = true;
		break;
	default:
		break;
	}
}

/* --- the I/O thread --- */

static bool
has_room(const struct lane *l)
{
	return l->queued <= l->mx->end.engine->cfg.user.send_budget / 2;
}

/* Who is to be woken, without the lock. */
static void
settle(struct mx *m)
{
	struct lane *l;
	unsigned wakes;

	while ((l = m->touched) != NULL) {
		m->touched = l->next_touched;
		l->touched = false;
		wakes = (l->reading && l->in.bytes > 0 ? WAKE_READER : 0) |
		    (l->writing && has_room(l) ? WAKE_WRITER : 0);
		if (wakes == 0)
			continue;
		l->reading &= (wakes & WAKE_READER) == 0;
		l->writing &= (wakes & WAKE_WRITER) == 0;
		if (l->wakes == 0) {
			l->next_wake = m->wake;
			m->wake = l;
		}
		l->wakes |= wakes;
	}
}

static void
unlock_and_wake(struct mx *m)
{
	struct lane *l;

	pthread_mutex_unlock(&m->lock);
	for (; (l = m->wake) != NULL; l->wakes = 0) {
		m->wake = l->next_wake;
		if (l->wakes & WAKE_READER)
			pthread_cond_signal(&l->come);
		if (l->wakes & WAKE_WRITER)
			pthread_cond_signal(&l->room);
	}
}

static void
give_small(struct mx *m, struct lane *l)
{
	reeve_buf_t *b;

	while ((b = rv_chain_pop(&l->small)) != NULL)
		m->end.engine->ops->send(m->end.engine, &l->wire, b);
}

static void
give_dirty(struct mx *m)
{
	struct lane *l;

	while ((l = m->dirty) != NULL) {
		m->dirty = l->next_dirty;
		l->dirty = false;
		give_small(m, l);
	}
}

static void
read_turn(struct mx *m)
{
	struct rvp_end *e = &m->end;
	uint32_t got = 0, at, n;

	while (e->readable && got < RVP_READ_BUDGET && !e->over) {
		unlock_and_wake(m);
		n = rvp_end_read(e, &at);
		pthread_mutex_lock(&m->lock);
		if (n == 0)
			return;
		got += n;
		rvp_check(e->engine->ops->feed(e->engine, e->slab, at, n, e->now) == n,
		    "the engine refused bytes");
		settle(m);
	}
}

static void
write_turn(struct mx *m)
{
	struct rvp_end *e = &m->end;
	size_t sent = 0, n;

	while (e->writable && sent < RVP_WRITE_BUDGET && !e->over) {
		give_dirty(m);
		if (!rvp_end_gather(e))
			return;
		unlock_and_wake(m);
		n = rvp_end_write(e);
		pthread_mutex_lock(&m->lock);
		if (n > 0)
			rv_gather_sent(e->engine, e->gather, n);
		sent += n;
		(void)e->engine->ops->notify(e->engine);
		settle(m);
	}
}

/* Looks at the events; sleeps if there is nothing to do.  Nobody is left to be woken. */
static void
wait_turn(struct mx *m, bool busy)
{
	struct rvp_end *e = &m->end;
	uint64_t us = busy ? 0 : rvp_end_due(e);
	uint32_t events;

	m->asleep = !busy;
	m->stuck = !e->writable;
	pthread_mutex_unlock(&m->lock);
	events = rvp_end_wait(e, us);
	pthread_mutex_lock(&m->lock);
	m->asleep = false;
	while (m->lent)
		pthread_cond_wait(&m->back, &m->lock);
	rvp_end_see(e, events);
}

static void
wake_all(struct mx *m)
{
	struct lane *l;

	m->over = true;
	pthread_cond_broadcast(&m->fresh_come);
	for (l = m->all; l != NULL; l = l->next_all) {
		pthread_cond_broadcast(&l->come);
		pthread_cond_broadcast(&l->room);
	}
}

static void *
io_main(void *arg)
{
	struct mx *m = arg;
	struct rvp_end *e = &m->end;
	unsigned passes = 0;
	bool busy;

	rv_pool_enter(e->pool);
	pthread_mutex_lock(&m->lock);
	while (!m->over && !e->over) {
		e->now = rv_clock_us();
		read_turn(m);
		write_turn(m);
		if (e->engine->ops->next_deadline(e->engine) <= e->now)
			e->over |= e->engine->ops->tick(e->engine, e->now) < 0;
		if (m->wake != NULL) {
			unlock_and_wake(m);
			pthread_mutex_lock(&m->lock);
		}
		busy = rvp_end_busy(e) || (e->writable && m->dirty != NULL);
		if (!busy || ++passes % POLL_EVERY == 0)
			wait_turn(m, busy);
	}
	wake_all(m);
	unlock_and_wake(m);
	rv_pool_enter(NULL);
	return NULL;
}

static struct mx *
mx_start(const struct rvp_load *l, bool copy, int fd, int role)
{
	struct mx *m = aligned_alloc(64, (sizeof(*m) + 63) & ~(size_t)63);

	rvp_check(m != NULL, "memory");
	memset(m, 0, sizeof(*m));
	m->copy = copy || l->items != NULL;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->fresh_come, NULL);
	pthread_cond_init(&m->back, NULL);
	rvp_end_open(&m->end,
	    &(struct rvp_end_cfg){fd, role, l->window, l->budget, sizeof(struct lane), emit, m});
	m->smalls = rv_pool_create(m->end.arena);
	rvp_check(m->smalls != NULL, "memory");
	rvp_thread(&m->thread, io_main, m, l->pin ? (role == REEVE_DIALER ? 0 : 1) : RVP_ANY_CPU);
	return m;
}

static void
mx_free(struct mx *m)
{
	pthread_join(m->thread, NULL);
	rvp_end_finish(&m->end);
	rv_pool_close(m->smalls);
	rvp_end_close(&m->end);
	pthread_cond_destroy(&m->fresh_come);
	pthread_cond_destroy(&m->back);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* --- calls of the application --- */

static bool
to_write(const struct mx *m)
{
	return m->asleep && !m->stuck &&
	    (m->dirty != NULL || m->end.engine->ops->has_output(m->end.engine) ||
		!rv_gather_empty(m->end.gather));
}

/* With the lock, while the I/O thread sleeps: writes in its stead. */
static void
write_here(struct mx *m, uint64_t now)
{
	m->lent = true;
	m->end.now = now;
	write_turn(m);
	m->stuck = !m->end.writable;
	m->lent_at = now;
	unlock_and_wake(m);
	pthread_mutex_lock(&m->lock);
	m->lent = false;
	pthread_cond_signal(&m->back);
}

/* Unlocks.  What there is to write is written here, or by the I/O thread if it is awake, or if this comes so soon after the
 * last time that it is better to gather. */
static void
unlock_and_write(struct mx *m)
{
	uint64_t now;
	bool ring;

	if (to_write(m) && !m->lent) {
		now = rv_clock_us();
		if (now - m->lent_at > SOON_US)
			write_here(m, now);
	}
	ring = to_write(m) && !m->lent;
	if (ring)
		m->asleep = false;
	pthread_mutex_unlock(&m->lock);
	if (ring)
		rvp_end_ring(&m->end);
}

static struct lane *
mx_open(struct mx *m)
{
	struct rv_stream *st;
	struct lane *l;

	pthread_mutex_lock(&m->lock);
	rvp_must(m->end.engine->ops->open(m->end.engine, &st, m->end.now), "open");
	l = (struct lane *)(void *)st;
	lane_init(m, l);
	unlock_and_write(m);
	l->pool = rv_pool_create(m->end.arena);
	rvp_check(l->pool != NULL, "memory");
	rv_pool_enter(l->pool);
	return l;
}

static struct lane *
mx_accept(struct mx *m)
{
	struct lane *l;

	pthread_mutex_lock(&m->lock);
	while (m->fresh == NULL && !m->over)
		pthread_cond_wait(&m->fresh_come, &m->lock);
	l = m->fresh;
	if (l != NULL)
		m->fresh = l->next_fresh;
	pthread_mutex_unlock(&m->lock);
	return l;
}

/* With the lock: waits until the budget has room.  False: over. */
static bool
budget_wait(struct lane *l)
{
	struct mx *m = l->mx;

	while (l->queued >= m->end.engine->cfg.user.send_budget && !m->over) {
		l->writing = true;
		pthread_cond_wait(&l->room, &m->lock);
	}
	return !m->over;
}

static void
put_small(struct lane *l, const void *p, size_t n)
{
	struct mx *m = l->mx;

	rvp_must(rv_chain_copy(&l->small, m->smalls, NULL, p, n), "memory");
	if (l->dirty)
		return;
	l->dirty = true;
	l->next_dirty = m->dirty;
	m->dirty = l;
}

static bool
lane_write(struct lane *l, const void *p, size_t n)
{
	struct mx *m = l->mx;
	reeve_buf_t *b = NULL;
	bool alive;

	if (!m->copy || n >= SMALL) {
		b = rv_buf_alloc(l->pool, n);
		rvp_check(b != NULL, "memory");
		if (m->copy)
			memcpy(b->slab->data + b->off, p, n);
		else
			b->slab->data[b->off] = 1;
	}
	pthread_mutex_lock(&m->lock);
	alive = budget_wait(l);
	if (alive) {
		l->queued += (uint32_t)n;
		if (b == NULL) {
			put_small(l, p, n);
		} else {
			give_small(m, l);
			m->end.engine->ops->send(m->end.engine, &l->wire, b);
			b = NULL;
		}
	}
	unlock_and_write(m);
	rv_buf_unref(b);
	return alive;
}

static ssize_t
lane_read(struct lane *l, void *p, size_t n)
{
	struct mx *m = l->mx;
	struct rv_chain got;
	reeve_buf_t *b;
	size_t at = 0;

	rv_chain_init(&got);
	pthread_mutex_lock(&m->lock);
	while (l->in.bytes == 0 && !m->over) {
		l->reading = true;
		pthread_cond_wait(&l->come, &m->lock);
	}
	while (l->in.bytes > 0 && got.bytes + l->in.head->len <= n)
		rvp_must(rv_chain_push(&got, rv_chain_pop(&l->in)), "memory");
	if (m->over)
		rv_chain_clear(&got);
	else
		m->end.engine->ops->consumed(
		    m->end.engine, &l->wire, (uint32_t)got.bytes, rv_clock_us());
	unlock_and_write(m);
	while ((b = rv_chain_pop(&got)) != NULL) {
		if (m->copy)
			memcpy((char *)p + at, rv_buf_data(b), b->len);
		else
			(void)*(const volatile uint8_t *)rv_buf_data(b);
		at += b->len;
		rv_buf_unref(b);
	}
	return (ssize_t)at;
}

/* --- as contenders --- */

struct ends {
	struct mx *tx, *rx;
};

static void *
pair(const struct rvp_load *l, bool copy)
{
	struct ends *e = malloc(sizeof(*e));
	int fd[2];

	rvp_check(e != NULL, "memory");
	rvp_sockets(l->transport, fd);
	e->rx = mx_start(l, copy, fd[1], REEVE_LISTENER);
	e->tx = mx_start(l, copy, fd[0], REEVE_DIALER);
	return e;
}

static void *
pair_plain(const struct rvp_load *l)
{
	return pair(l, false);
}

static void *
pair_copy(const struct rvp_load *l)
{
	return pair(l, true);
}

static void *
open_one(void *ends)
{
	return mx_open(((struct ends *)ends)->tx);
}

static void *
accept_one(void *ends)
{
	return mx_accept(((struct ends *)ends)->rx);
}

static bool
write_all(void *stream, const void *p, size_t n)
{
	return lane_write(stream, p, n);
}

static ssize_t
read_some(void *stream, void *p, size_t n)
{
	return lane_read(stream, p, n);
}

/* The stream itself goes with the connection. */
static void
close_one(void *stream)
{
	struct lane *l = stream;

	if (l->pool == NULL)
		return;
	rv_pool_enter(NULL);
	rv_pool_close(l->pool);
}

static void
mx_abort(struct mx *m)
{
	pthread_mutex_lock(&m->lock);
	wake_all(m);
	pthread_mutex_unlock(&m->lock);
	rvp_end_ring(&m->end);
}

static void
abort_pair(void *ends)
{
	mx_abort(((struct ends *)ends)->tx);
	mx_abort(((struct ends *)ends)->rx);
}

static void
free_pair(void *ends)
{
	struct ends *e = ends;

	mx_free(e->tx);
	mx_free(e->rx);
	free(e);
}

static void
totals(void *ends, struct rvp_totals *t)
{
	rvp_end_totals(&((struct ends *)ends)->tx->end, t);
	rvp_end_totals(&((struct ends *)ends)->rx->end, t);
}

static const struct rvp_crew_ops ops_plain = {pair_plain, open_one, accept_one, write_all,
    read_some, close_one, abort_pair, free_pair, totals};
static const struct rvp_crew_ops ops_copy = {pair_copy, open_one, accept_one, write_all, read_some,
    close_one, abort_pair, free_pair, totals};

static void *
start_plain(const struct rvp_load *l)
{
	return rvp_crew_start(l, &ops_plain);
}

static void *
start_copy(const struct rvp_load *l)
{
	return rvp_crew_start(l, &ops_copy);
}

const struct rvp_flow rvp_mutex_flow = {
    "mutex", start_plain, rvp_crew_received, rvp_crew_totals, rvp_crew_stop};
const struct rvp_flow rvp_mutex_copy_flow = {
    "mutex-copy", start_copy, rvp_crew_received, rvp_crew_totals, rvp_crew_stop};
