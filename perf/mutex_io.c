/* mutex_io.c - the I/O thread of an end behind a lock: see mutex.h. */
#include <config.h>

#include "perf/mutex.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/clock.h"

#define POLL_EVERY 16

#define WAKE_READER 1u
#define WAKE_WRITER 2u

static void
touch(struct rvp_mx *m, struct rvp_lane *l)
{
	if (l->touched)
		return;
	l->touched = true;
	l->next_touched = m->touched;
	m->touched = l;
}

void
rvp_mx_lane(struct rvp_mx *m, struct rvp_lane *l)
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
lane_free(struct rvp_mx *m, struct rvp_lane *l)
{
	rv_chain_clear(&l->in);
	rv_chain_clear(&l->small);
	pthread_cond_destroy(&l->come);
	pthread_cond_destroy(&l->room);
	rv_free(m->end.arena, l, sizeof(*l));
}

static void
on_open(struct rvp_mx *m, struct rvp_lane *l)
{
	rvp_mx_lane(m, l);
	if (m->fresh == NULL)
		m->fresh = l;
	else
		m->fresh_last->next_fresh = l;
	m->fresh_last = l;
	m->end.engine->ops->accept(m->end.engine, &l->wire);
	pthread_cond_signal(&m->fresh_come);
}

static void
on_data(struct rvp_mx *m, struct rvp_lane *l, const struct rv_event *ev)
{
	if (ev->n < RVP_SMALL)
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
	struct rvp_mx *m = ctx;
	struct rvp_lane *l = (struct rvp_lane *)(void *)ev->st;

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
has_room(const struct rvp_lane *l)
{
	return l->queued <= l->mx->end.engine->cfg.user.send_budget / 2;
}

/* Who is to be woken, without the lock. */
static void
settle(struct rvp_mx *m)
{
	struct rvp_lane *l;
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

void
rvp_mx_unlock(struct rvp_mx *m)
{
	struct rvp_lane *l;

	pthread_mutex_unlock(&m->lock);
	for (; (l = m->wake) != NULL; l->wakes = 0) {
		m->wake = l->next_wake;
		if (l->wakes & WAKE_READER)
			pthread_cond_signal(&l->come);
		if (l->wakes & WAKE_WRITER)
			pthread_cond_signal(&l->room);
	}
}

void
rvp_mx_give_small(struct rvp_mx *m, struct rvp_lane *l)
{
	reeve_buf_t *b;

	while ((b = rv_chain_pop(&l->small)) != NULL)
		m->end.engine->ops->send(m->end.engine, &l->wire, b);
}

static void
give_dirty(struct rvp_mx *m)
{
	struct rvp_lane *l;

	while ((l = m->dirty) != NULL) {
		m->dirty = l->next_dirty;
		l->dirty = false;
		rvp_mx_give_small(m, l);
	}
}

static void
read_turn(struct rvp_mx *m)
{
	struct rvp_end *e = &m->end;
	uint32_t got = 0, at, n;

	while (e->readable && got < RVP_READ_BUDGET && !e->over) {
		pthread_mutex_unlock(&m->lock);
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

void
rvp_mx_write_turn(struct rvp_mx *m)
{
	struct rvp_end *e = &m->end;
	size_t sent = 0, n;

	while (e->writable && sent < RVP_WRITE_BUDGET && !e->over) {
		give_dirty(m);
		if (!rvp_end_gather(e))
			return;
		pthread_mutex_unlock(&m->lock);
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
wait_turn(struct rvp_mx *m, bool busy)
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

void
rvp_mx_over(struct rvp_mx *m)
{
	struct rvp_lane *l;

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
	struct rvp_mx *m = arg;
	struct rvp_end *e = &m->end;
	unsigned passes = 0;
	bool busy;

	rv_pool_enter(e->pool);
	pthread_mutex_lock(&m->lock);
	while (!m->over && !e->over) {
		e->now = rv_clock_us();
		read_turn(m);
		rvp_mx_write_turn(m);
		if (e->engine->ops->next_deadline(e->engine) <= e->now)
			e->over |= e->engine->ops->tick(e->engine, e->now) < 0;
		if (m->wake != NULL) {
			rvp_mx_unlock(m);
			pthread_mutex_lock(&m->lock);
		}
		busy = rvp_end_busy(e) || (e->writable && m->dirty != NULL);
		if (!busy || ++passes % POLL_EVERY == 0)
			wait_turn(m, busy);
	}
	rvp_mx_over(m);
	rvp_mx_unlock(m);
	rv_pool_enter(NULL);
	return NULL;
}

struct rvp_mx *
rvp_mx_start(const struct rvp_load *l, bool copy, int fd, int role)
{
	struct rvp_mx *m = aligned_alloc(64, (sizeof(*m) + 63) & ~(size_t)63);

	rvp_check(m != NULL, "memory");
	memset(m, 0, sizeof(*m));
	m->copy = copy || l->items != NULL;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->fresh_come, NULL);
	pthread_cond_init(&m->back, NULL);
	rvp_end_open(&m->end,
	    &(struct rvp_end_cfg){
		fd, role, l->window, l->budget, sizeof(struct rvp_lane), emit, m});
	m->smalls = rv_pool_create(m->end.arena);
	rvp_check(m->smalls != NULL, "memory");
	rvp_thread(&m->thread, io_main, m, l->pin ? (role == REEVE_DIALER ? 0 : 1) : RVP_ANY_CPU);
	return m;
}

void
rvp_mx_free(struct rvp_mx *m)
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
