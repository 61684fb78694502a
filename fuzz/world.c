/* world.c - see world.h. */
#include <config.h>

#include "fuzz/world.h"

#include <string.h>

#define HOLD_LIMIT 1024u

static void
forget(struct world *w, struct rv_stream *st)
{
	for (unsigned i = 0; i < w->n; i++) {
		if (w->st[i] != st)
			continue;
		w->st[i] = w->st[--w->n];
		rv_free(w->ar, st, sizeof(*st));
		return;
	}
	abort();
}

static void
emit(void *ctx, const struct rv_event *ev)
{
	struct world *w = ctx;

	must(w->room > 0);
	w->room--;
	switch (ev->kind) {
	case RV_EV_OPEN:
		must(w->n < 2 * MAX_STREAMS);
		w->st[w->n++] = ev->st;
		break;
	case RV_EV_DATA:
		must(ev->len > 0 && ev->len <= ev->n && ev->off + ev->len <= ev->slab->cap);
		break;
	case RV_EV_GONE:
		forget(w, ev->st);
		break;
	default:
		break;
	}
}

static unsigned
room(void *ctx)
{
	return ((struct world *)ctx)->room;
}

/* The time of slow readers passes, or all of them read: parsing goes on.  While memory is short, none may be to blame. */
static void
unblock(struct world *w)
{
	uint64_t at;

	for (unsigned i = 0; w->e->blocked; i++) {
		must(i <= w->n);
		at = w->e->ops->next_deadline(w->e);
		if (at == UINT64_MAX || rv_budget_level(w->budget) >= 3) {
			for (unsigned k = 0; k < w->n; k++)
				w->e->ops->consumed(w->e, w->st[k], UINT32_MAX, w->now);
			must(!w->e->blocked);
		} else {
			w->now = at > w->now ? at : w->now;
			must(w->e->ops->tick(w->e, w->now) == 0);
		}
	}
}

static void
feed(struct world *w, const uint8_t *p, size_t n)
{
	struct rv_slab *s = rv_slab_get(w->pool, n + 1);
	reeve_ssize rc = 0;
	size_t at = 0;

	must(s != NULL);
	memcpy(s->data, p, n);
	while (!w->dead && at < n && !w->e->blocked) {
		w->room = (unsigned)(n + at) % 7 + RV_EV_PER_FRAME;
		rc = w->e->ops->feed(w->e, s, (uint32_t)at, (uint32_t)(n - at), w->now);
		w->dead = rc < 0;
		at += rc < 0 ? 0 : (size_t)rc;
		world_settle(w);
	}
	rv_slab_unref(s);
	if (w->dead || at == n)
		return;
	w->nheld = n - at;
	memmove(w->held, p + at, w->nheld);
}

void
world_feed(struct world *w, const uint8_t *p, size_t n)
{
	while (!w->dead && w->nheld > 0) {
		size_t k = w->nheld;

		unblock(w);
		world_settle(w);
		w->nheld = 0;
		feed(w, w->held, k);
	}
	if (!w->dead)
		feed(w, p, n);
}

void
world_settle(struct world *w)
{
	w->room = 1000;
	must(w->e->ops->notify(w->e));
	must(rv_arena_bytes(w->ar) < MEMORY_BOUND);
}

static void
write_out(struct world *w, size_t max)
{
	struct rv_gather *g = &w->g;
	bool any = w->e->ops->has_output(w->e);
	size_t n;

	if (rv_gather_empty(g))
		rv_gather_reset(g);
	n = w->e->ops->drain(w->e, g, w->now);
	must(any || n == 0);
	for (; max > 0 && !rv_gather_empty(g); max -= n) {
		n = g->iov[g->iov_at].iov_len < max ? g->iov[g->iov_at].iov_len : max;
		rv_gather_sent(w->e, g, n);
	}
}

/* The application holds bytes, up to so many quarters of what it may. */
static void
hold(struct world *w, unsigned quarters)
{
	static uint8_t bytes[HOLD_LIMIT];

	if (w->hog != NULL)
		rv_slab_unref(w->hog);
	w->hog = NULL;
	if (quarters == 0)
		return;
	w->hog = rv_slab_wrap(w->ar, bytes, quarters * (HOLD_LIMIT / 4), NULL, NULL);
	must(w->hog != NULL);
	rv_slab_charge(w->hog, w->budget);
}

static void
send(struct world *w, struct rv_stream *st, size_t n)
{
	reeve_buf_t *b;

	if (st->out.bytes > 65536 || rv_arena_bytes(w->ar) > MEMORY_BOUND / 2)
		return;
	b = rv_buf_alloc(w->pool, n);
	must(b != NULL);
	memset(b->slab->data, 'x', n);
	w->e->ops->send(w->e, st, b);
}

void
world_act(struct world *w, unsigned what, unsigned arg)
{
	const struct rv_engine_ops *o = w->e->ops;
	struct rv_stream *st = w->n > 0 ? w->st[arg % w->n] : NULL;

	switch (what % 16) {
	case 0:
		if (w->n < MAX_STREAMS && o->open(w->e, &st, w->now) == 0)
			w->st[w->n++] = st;
		return;
	case 1:
		write_out(w, (size_t)arg * 512 + 1);
		return;
	case 2:
		w->now += (uint64_t)arg * arg * 1000;
		w->dead = w->dead || o->tick(w->e, w->now) < 0;
		must(w->dead || o->next_deadline(w->e) > w->now);
		return;
	case 3:
		if (o->ping != NULL)
			(void)o->ping(w->e, w->now);
		return;
	case 4:
		if (arg == 0)
			o->goaway(w->e, arg);
		else if (arg == 1)
			o->closing(w->e);
		else if (arg == 2)
			w->dead = w->dead || o->feed_end(w->e) < 0;
		else if (arg >= 128)
			hold(w, arg % 5);
		else { /* the application is slow to take what it is told */
			w->room = arg % 7;
			(void)o->notify(w->e);
		}
		return;
	default:
		break;
	}
	if (st == NULL)
		return;
	switch (what % 16) {
	case 5:
		o->accept(w->e, st);
		break;
	case 6:
		send(w, st, 1 + arg * 3);
		break;
	case 7:
		send(w, st, 1 + arg * 300);
		break;
	case 8:
		o->consumed(w->e, st, arg * 1000, w->now);
		break;
	case 9:
		o->shut(w->e, st);
		break;
	case 10:
		o->stop(w->e, st);
		break;
	case 11:
		o->reset(w->e, st, arg);
		break;
	case 12:
		o->close(w->e, st, arg & 128, w->now);
		break;
	case 13:
		o->drop(w->e, st);
		break;
	default:
		o->consumed(w->e, st, UINT32_MAX, w->now);
		break;
	}
}

void
world_start(struct world *w, int role, const reeve_cfg_t *cfg)
{
	struct rv_engine_cfg c = {.role = role, .record_size = sizeof(struct rv_stream)};

	memset(w, 0, offsetof(struct world, held));
	rv_gather_reset(&w->g);
	w->ar = rv_arena_create(NULL);
	must(w->ar != NULL);
	w->pool = rv_pool_create(w->ar);
	w->budget = rv_budget_create(w->ar, HOLD_LIMIT, NULL);
	must(w->pool != NULL && w->budget != NULL && rv_cfg_resolve(&c.user, cfg) == 0);
	rv_pool_enter(w->pool);
	c.arena = w->ar;
	c.budget = w->budget;
	c.sink.emit = emit;
	c.sink.room = room;
	c.sink.ctx = w;
	c.now = w->now = 1;
	must(rv_engine_create(&w->e, &c) == 0);
}

void
world_finish(struct world *w)
{
	w->room = 1000;
	w->e->ops->end(w->e);
	rv_gather_abort(w->e, &w->g);
	must(w->e->ops->notify(w->e));
	must(w->n == 0 && w->e->nstreams == 0 && w->e->nunacked == 0 && w->e->nunaccepted == 0);
	w->e->ops->destroy(w->e);
	hold(w, 0);
	rv_budget_unref(w->budget);
	rv_pool_enter(NULL);
	rv_pool_close(w->pool);
	must(rv_arena_bytes(w->ar) == 0);
	rv_arena_unref(w->ar);
}

int
world_run(const struct world_target *t, const uint8_t *p, size_t n)
{
	static struct world w;
	size_t at = 1, k;

	if (n == 0)
		return 0;
	t->start(&w, p[0]);
	while (at + 5 <= n) {
		uint8_t op = p[at++];

		if (op < 8) {
			k = op * 8u < n - at ? op * 8u : n - at;
			world_feed(&w, p + at, k);
			at += k;
		} else if (op < 0xc0) {
			t->frame(&w, p + at);
			at += 4;
		} else {
			world_act(&w, op, p[at++]);
		}
		world_settle(&w);
		t->check(&w);
	}
	world_finish(&w);
	return 0;
}
