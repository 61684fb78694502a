/*
 * mutex.c - the contenders of the usual design: an engine behind a mutex, a thread of the application per stream that calls
 * in, and one I/O thread an end.
 *
 * Everything an end shares is under its one lock; no system call is made with it, no payload of 2 KiB or more is copied
 * with it, and nobody is signalled with it.  The I/O thread reads, parses, writes, and wakes who waits when its turn of
 * reads and writes is done (once per read costs twice the switches and, with one stream, half the rate).  The others queue
 * bytes and take bytes.  While the I/O thread sleeps they write by themselves, which saves a wake-up, or, when they did so
 * just now, ring for it, which gathers small writes.  Writers sleep while their stream's send budget is used up,
 * readers while nothing has come.
 *
 * mutex: buffers are handed over and looked at as inline and worker do it.  mutex-copy: bytes are copied from and to the
 * caller's memory, as in reeve_write and reeve_read; small writes are put together in the stream's open block.
 */
#include <config.h>

#include "perf/mutex.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "perf/crew.h"

#define SOON_US 50

static bool
to_write(const struct rvp_mx *m)
{
	return m->asleep && !m->stuck &&
	    (m->dirty != NULL || m->end.engine->ops->has_output(m->end.engine) ||
		!rv_gather_empty(m->end.gather));
}

/* With the lock, while the I/O thread sleeps: writes in its stead. */
static void
write_here(struct rvp_mx *m, uint64_t now)
{
	m->lent = true;
	m->end.now = now;
	rvp_mx_write_turn(m);
	m->stuck = !m->end.writable;
	m->lent_at = now;
	rvp_mx_unlock(m);
	pthread_mutex_lock(&m->lock);
	m->lent = false;
	pthread_cond_signal(&m->back);
}

/* Unlocks.  What there is to write is written here, or by the I/O thread if it is awake, or if this comes so soon after the
 * last time that it is better to gather. */
static void
unlock_and_write(struct rvp_mx *m)
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

static struct rvp_lane *
mx_open(struct rvp_mx *m)
{
	struct rv_stream *st;
	struct rvp_lane *l;

	pthread_mutex_lock(&m->lock);
	rvp_must(m->end.engine->ops->open(m->end.engine, &st, m->end.now), "open");
	l = (struct rvp_lane *)(void *)st;
	rvp_mx_lane(m, l);
	unlock_and_write(m);
	l->pool = rv_pool_create(m->end.arena);
	rvp_check(l->pool != NULL, "memory");
	rv_pool_enter(l->pool);
	return l;
}

static struct rvp_lane *
mx_accept(struct rvp_mx *m)
{
	struct rvp_lane *l;

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
budget_wait(struct rvp_lane *l)
{
	struct rvp_mx *m = l->mx;

	while (l->queued >= m->end.engine->cfg.user.send_budget && !m->over) {
		l->writing = true;
		pthread_cond_wait(&l->room, &m->lock);
	}
	return !m->over;
}

static void
put_small(struct rvp_lane *l, const void *p, size_t n)
{
	struct rvp_mx *m = l->mx;

	rvp_must(rv_chain_copy(&l->small, m->smalls, NULL, p, n), "memory");
	if (l->dirty)
		return;
	l->dirty = true;
	l->next_dirty = m->dirty;
	m->dirty = l;
}

static bool
lane_write(struct rvp_lane *l, const void *p, size_t n)
{
	struct rvp_mx *m = l->mx;
	reeve_buf_t *b = NULL;
	bool alive;

	if (!m->copy || n >= RVP_SMALL) {
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
			rvp_mx_give_small(m, l);
			m->end.engine->ops->send(m->end.engine, &l->wire, b);
			b = NULL;
		}
	}
	unlock_and_write(m);
	rv_buf_unref(b);
	return alive;
}

static ssize_t
lane_read(struct rvp_lane *l, void *p, size_t n)
{
	struct rvp_mx *m = l->mx;
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
	struct rvp_mx *tx, *rx;
};

static void *
pair(const struct rvp_load *l, bool copy)
{
	struct ends *e = malloc(sizeof(*e));
	int fd[2];

	rvp_check(e != NULL, "memory");
	rvp_sockets(l->transport, fd);
	e->rx = rvp_mx_start(l, copy, fd[1], REEVE_LISTENER);
	e->tx = rvp_mx_start(l, copy, fd[0], REEVE_DIALER);
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
	struct rvp_lane *l = stream;

	if (l->pool == NULL)
		return;
	rv_pool_enter(NULL);
	rv_pool_close(l->pool);
}

static void
mx_abort(struct rvp_mx *m)
{
	pthread_mutex_lock(&m->lock);
	rvp_mx_over(m);
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

	rvp_mx_free(e->tx);
	rvp_mx_free(e->rx);
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
