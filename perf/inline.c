/*
 * inline.c - the contender that calls the engine directly: one thread and one epoll set an end, no runtime, no actors, no
 * rings, no locks.
 *
 * This is the direct call that everything else is compared with: engine, buffers, pool, gather, transport and budgets are
 * those of a connection (end.h), and an event is a function call on the spot.  Received bytes are consumed where they lie;
 * credit goes back after each read.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "perf/end.h"
#include "perf/items.h"

#define POLL_EVERY 16

struct lane {
	struct rv_stream wire; /* first */
	struct lane *next;     /* touched: something follows from the events of this call */
	uint32_t queued;       /* with the engine, not taken */
	uint32_t got;          /* consumed and not yet told */
	bool touched, sends, fresh;
};

struct driver {
	struct rvp_end end; /* first: it has the strictest alignment */
	/* immutable */
	unsigned streams; /* opened at once; each keeps its send budget full */
	size_t write;     /* with buffers of so many bytes */
	struct rvp_items *items;
	pthread_t thread;
	/* the thread's */
	struct lane *touched, *first;
	/* any thread */
	struct rvq_cell32 stop __attribute__((aligned(64)));
	struct rvq_counter received __attribute__((aligned(64)));
};

static void
touch(struct driver *d, struct lane *l)
{
	if (l->touched)
		return;
	l->touched = true;
	l->next = d->touched;
	d->touched = l;
}

static void
emit(void *ctx, const struct rv_event *ev)
{
	struct driver *d = ctx;
	struct lane *l = (struct lane *)(void *)ev->st;

	switch (ev->kind) {
	case RV_EV_OPEN:
		l->fresh = true;
		touch(d, l);
		break;
	case RV_EV_DATA:
		(void)*(const volatile uint8_t *)(ev->slab->data + ev->off);
		if (d->items != NULL)
			rvp_items_take(d->items, ev->slab->data + ev->off, ev->len);
		rvq_counter_add(&d->received, ev->len);
		l->got += ev->len;
		touch(d, l);
		break;
	case RV_EV_TAKEN:
		l->queued -= ev->n;
		touch(d, l);
		break;
	case RV_EV_GONE:
		rv_free(d->end.arena, l, sizeof(*l));
		break;
	case RV_EV_RST:
	case RV_EV_GOAWAY:
		d->end.over = true;
		break;
	default:
		break;
	}
}

static reeve_buf_t *
piece(struct driver *d, size_t n)
{
	reeve_buf_t *b = rv_buf_alloc(d->end.pool, n);

	rvp_check(b != NULL, "memory");
	b->slab->data[b->off] = 1;
	return b;
}

static void
send_piece(struct driver *d, struct lane *l, reeve_buf_t *b)
{
	l->queued += b->len;
	d->end.engine->ops->send(d->end.engine, &l->wire, b);
}

static void
send_items(struct driver *d)
{
	reeve_buf_t *b;
	unsigned n;

	d->end.ticked = false;
	if (!rvp_items_due(d->items, &n))
		return;
	while (n-- > 0) {
		b = piece(d, RVP_ITEM);
		rvp_items_make(d->items, b->slab->data + b->off);
		send_piece(d, d->first, b);
	}
}

/* What follows from the events: accept, credit, more bytes. */
static void
settle(struct driver *d)
{
	const struct rv_engine_ops *ops = d->end.engine->ops;
	struct lane *l;
	uint32_t n;

	while ((l = d->touched) != NULL) {
		d->touched = l->next;
		l->touched = false;
		if (l->fresh)
			ops->accept(d->end.engine, &l->wire);
		l->fresh = false;
		n = l->got;
		l->got = 0;
		if (n > 0)
			ops->consumed(d->end.engine, &l->wire, n, d->end.now);
		while (l->sends && l->queued < d->end.engine->cfg.user.send_budget)
			send_piece(d, l, piece(d, d->write));
	}
}

static void
read_turn(struct driver *d)
{
	struct rvp_end *e = &d->end;
	uint32_t got = 0, at, n;

	while (e->readable && got < RVP_READ_BUDGET && !e->over) {
		n = rvp_end_read(e, &at);
		if (n == 0)
			return;
		got += n;
		rvp_check(e->engine->ops->feed(e->engine, e->slab, at, n, e->now) == n,
		    "the engine refused bytes");
		settle(d);
	}
}

static void
write_turn(struct driver *d)
{
	struct rvp_end *e = &d->end;
	size_t sent = 0, n;

	while (e->writable && sent < RVP_WRITE_BUDGET && rvp_end_gather(e)) {
		n = rvp_end_write(e);
		if (n > 0)
			rv_gather_sent(e->engine, e->gather, n);
		sent += n;
		(void)e->engine->ops->notify(e->engine);
		settle(d);
	}
}

static void
open_streams(struct driver *d)
{
	struct rv_stream *st;
	struct lane *l;
	unsigned i;

	for (i = 0; i < d->streams; i++) {
		rvp_must(d->end.engine->ops->open(d->end.engine, &st, d->end.now), "open");
		l = (struct lane *)(void *)st;
		l->sends = d->items == NULL;
		d->first = i == 0 ? l : d->first;
		touch(d, l);
	}
	settle(d);
}

static void *
driver_main(void *arg)
{
	struct driver *d = arg;
	struct rvp_end *e = &d->end;
	unsigned passes = 0;
	bool busy;

	rv_pool_enter(e->pool);
	open_streams(d);
	while (!rvq_cell32_get_relaxed(&d->stop) && !e->over) {
		e->now = rv_clock_us();
		if (e->ticked)
			send_items(d);
		read_turn(d);
		write_turn(d);
		if (e->engine->ops->next_deadline(e->engine) <= e->now)
			e->over |= e->engine->ops->tick(e->engine, e->now) < 0;
		busy = rvp_end_busy(e);
		if (!busy || ++passes % POLL_EVERY == 0)
			rvp_end_see(e, rvp_end_wait(e, busy ? 0 : rvp_end_due(e)));
	}
	rvp_end_finish(e);
	rv_pool_enter(NULL);
	return NULL;
}

static struct driver *
driver_start(const struct rvp_load *l, int fd, int role)
{
	const bool tx = role == REEVE_DIALER;
	struct driver *d = aligned_alloc(64, (sizeof(*d) + 63) & ~(size_t)63);

	rvp_check(d != NULL, "memory");
	memset(d, 0, sizeof(*d));
	d->streams = tx ? l->streams : 0;
	d->write = l->write;
	d->items = l->items;
	rvp_end_open(&d->end,
	    &(struct rvp_end_cfg){fd, role, l->window, l->budget, sizeof(struct lane), emit, d});
	if (tx && l->items != NULL)
		rvp_end_tick(&d->end, RVP_ITEMS_RATE);
	rvp_thread(&d->thread, driver_main, d, l->pin ? (tx ? 0 : 1) : RVP_ANY_CPU);
	return d;
}

static void
driver_stop(struct driver *d)
{
	rvq_cell32_put(&d->stop, 1);
	rvp_end_ring(&d->end);
	pthread_join(d->thread, NULL);
	rvp_end_close(&d->end);
	free(d);
}

/* --- as a contender: two ends --- */

struct ends {
	struct driver *tx, *rx;
};

static void *
ends_start(const struct rvp_load *l)
{
	struct ends *e = malloc(sizeof(*e));
	int fd[2];

	rvp_check(e != NULL, "memory");
	rvp_sockets(l->transport, fd);
	e->rx = driver_start(l, fd[1], REEVE_LISTENER);
	e->tx = driver_start(l, fd[0], REEVE_DIALER);
	return e;
}

static uint64_t
ends_received(void *run)
{
	return rvq_counter_get(&((struct ends *)run)->rx->received);
}

static void
ends_totals(void *run, struct rvp_totals *t)
{
	struct ends *e = run;

	rvp_end_totals(&e->tx->end, t);
	rvp_end_totals(&e->rx->end, t);
}

static void
ends_stop(void *run)
{
	struct ends *e = run;

	driver_stop(e->tx);
	driver_stop(e->rx);
	free(e);
}

const struct rvp_flow rvp_inline_flow = {
    "inline", ends_start, ends_received, ends_totals, ends_stop};
