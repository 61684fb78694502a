/* pool.c - blocks, the pools they come from and the budgets they are charged to: see pool.h.
 *
 * Lifetimes.  A pool has one reference for whoever closes it and one for each of its blocks that
 * came from the system, wherever that block is; taking and returning blocks does not count.  So
 * a pusher holds the pool by the block that it pushes, and must not look at either once the push
 * has succeeded. Sources: R. K. Treiber's stack with take-all and close (queues/stack.h) for
 * blocks that come home. */
#include <config.h>

#include "lib/buf/pool.h"
#include "lib/check.h"

#include <stddef.h>

#define RV_LINE 64

_Static_assert(sizeof(void *) != 8 || sizeof(struct reeve_buf) == 32, "a descriptor is 32 bytes");

struct rv_freelist {
	struct rvq_link *head;
	size_t bytes;
};

struct rv_pool {
	struct rvq_stack returns;  /* any thread */
	struct rvq_gauge returned; /* bytes of blocks in it; any thread */
	struct rvq_ref refs;
	struct rv_arena *arena;                               /* immutable */
	_Alignas(RV_LINE) struct rv_freelist free[RV_NCLASS]; /* owner */
};

static const uint32_t class_cap[RV_NCLASS] = {256, 2048, 16384, 65536};
static const uint32_t class_keep[RV_NCLASS] = {
    RV_POOL_KEEP, RV_POOL_KEEP, RV_POOL_KEEP, RV_POOL_KEEP_64K};
static const uint32_t class_trim[RV_NCLASS] = {
    RV_POOL_TRIM, RV_POOL_TRIM, RV_POOL_TRIM, RV_POOL_TRIM_64K};

static _Thread_local struct rv_pool *current;

/* --- budgets */

struct rv_budget *
rv_budget_create(struct rv_arena *ar, uint64_t limit, struct rv_budget *parent)
{
	struct rv_budget *b = rv_zalloc(ar, sizeof(*b));

	if (b == NULL)
		return NULL;
	rvq_ref_init(&b->refs, 1);
	b->limit = limit;
	b->arena = ar;
	b->parent = parent;
	if (parent != NULL)
		rvq_ref_get(&parent->refs);
	return b;
}

void
rv_budget_unref(struct rv_budget *b)
{
	struct rv_budget *parent;

	for (; b != NULL && rvq_ref_put(&b->refs); b = parent) {
		parent = b->parent;
		rv_free(b->arena, b, sizeof(*b));
	}
}

static int
level_of(uint64_t held, uint64_t limit)
{
	if (held >= limit)
		return 3;
	if (held >= limit - limit / 4)
		return 2;
	return held >= limit - limit / 2;
}

/* What a parent's fullness means for one who holds so much himself.  The last eighth is kept for those who hold
 * little, so that the ones who fill it cannot stop everybody else. */
static int
share_level(const struct rv_budget *parent, uint64_t own)
{
	uint64_t held = rvq_gauge_get(&parent->held), limit = parent->limit, small = limit / 16;
	int level;

	if (small > RV_BUDGET_SMALL)
		small = RV_BUDGET_SMALL;
	if (own >= small)
		return level_of(held, limit - limit / 8);
	level = level_of(held, limit);
	return level == 2 ? 1 : level;
}

int
rv_budget_level(const struct rv_budget *b)
{
	uint64_t own = rvq_gauge_get(&b->held);
	int level = level_of(own, b->limit), l;

	for (b = b->parent; b != NULL; b = b->parent) {
		l = share_level(b, own);
		if (l > level)
			level = l;
	}
	return level;
}

void
rv_slab_charge(struct rv_slab *s, struct rv_budget *b)
{
	REEVE_ASSERT(s->budget == NULL);
	if (b == NULL)
		return;
	rvq_ref_get(&b->refs);
	s->budget = b;
	for (; b != NULL; b = b->parent)
		rvq_gauge_add(&b->held, s->cap);
}

static void
uncharge(struct rv_slab *s)
{
	struct rv_budget *b;

	for (b = s->budget; b != NULL; b = b->parent)
		rvq_gauge_sub(&b->held, s->cap);
	rv_budget_unref(s->budget);
	s->budget = NULL;
}

/* --- blocks */

static struct rv_slab *
slab_new(struct rv_arena *ar, uint16_t cls, size_t cap)
{
	uint16_t ndesc = cls == RV_64K ? RV_SLAB_DESCS : 1;
	size_t head = offsetof(struct rv_slab, desc) + ndesc * sizeof(struct reeve_buf);
	struct rv_slab *s;

	head = (head + RV_LINE - 1) / RV_LINE * RV_LINE;
	s = rv_alloc(ar, head + cap, RV_LINE);
	if (s == NULL)
		return NULL;
	rvq_ref_init(&s->refs, 1);
	s->cap = (uint32_t)cap;
	s->used = 0;
	s->cls = cls;
	s->ndesc = ndesc;
	s->udesc = 0;
	s->data = (uint8_t *)s + head;
	s->home = NULL;
	s->arena = ar;
	s->budget = NULL;
	s->done = NULL;
	s->done_ctx = NULL;
	s->size = head + cap;
	return s;
}

static void
pool_put(struct rv_pool *p)
{
	if (rvq_ref_put(&p->refs))
		rv_free(p->arena, p, sizeof(*p));
}

static void
slab_to_system(struct rv_slab *s)
{
	struct rv_pool *home = s->home;

	rv_free(s->arena, s, s->size);
	if (home != NULL)
		pool_put(home);
}

struct rv_slab *
rv_slab_wrap(struct rv_arena *ar, const void *p, size_t n, void (*done)(void *), void *ctx)
{
	struct rv_slab *s;

	REEVE_REQUIRE(p != NULL && n > 0 && n <= RV_BUF_MAX, NULL);
	s = slab_new(ar, RV_WRAPPED, 0);
	if (s == NULL)
		return NULL;
	s->cap = s->used = (uint32_t)n;
	s->data = (uint8_t *)(uintptr_t)p; /* nobody writes: reeve_buf_mut looks at the class */
	s->done = done;
	s->done_ctx = ctx;
	return s;
}

void
rv_slab_ref(struct rv_slab *s)
{
	rvq_ref_get(&s->refs);
}

/* --- pools */

struct rv_pool *
rv_pool_create(struct rv_arena *ar)
{
	struct rv_pool *p = rv_alloc(ar, sizeof(*p), _Alignof(struct rv_pool));
	int i;

	if (p == NULL)
		return NULL;
	rvq_stack_init(&p->returns);
	p->returned = (struct rvq_gauge){0};
	rvq_ref_init(&p->refs, 1);
	p->arena = ar;
	for (i = 0; i < RV_NCLASS; i++) {
		p->free[i].head = NULL;
		p->free[i].bytes = 0;
	}
	return p;
}

void
rv_pool_enter(struct rv_pool *p)
{
	current = p;
}

struct rv_pool *
rv_pool_current(void)
{
	return current;
}

static void
pool_keep(struct rv_pool *p, struct rv_slab *s)
{
	struct rv_freelist *f = &p->free[s->cls];

	if (f->bytes + s->cap > class_keep[s->cls]) {
		slab_to_system(s);
		return;
	}
	s->link.next = f->head;
	f->head = &s->link;
	f->bytes += s->cap;
}

static struct rv_slab *
pool_pop(struct rv_pool *p, unsigned cls)
{
	struct rv_freelist *f = &p->free[cls];
	struct rv_slab *s;

	if (f->head == NULL)
		return NULL;
	s = rv_slab_of(f->head);
	f->head = s->link.next;
	f->bytes -= s->cap;
	return s;
}

/* Everything that others gave back goes to the free lists. */
static void
pool_fetch(struct rv_pool *p)
{
	struct rvq_link *l = rvq_stack_take_mpsc(&p->returns), *next;
	uint64_t bytes = 0;

	for (; l != NULL; l = next) {
		next = l->next;
		bytes += rv_slab_of(l)->cap;
		pool_keep(p, rv_slab_of(l));
	}
	if (bytes > 0)
		rvq_gauge_sub(&p->returned, bytes);
}

/* A block comes home from another thread.  The owner may be asleep for long: what waits for it has a bound. */
static void
pool_return(struct rv_pool *p, struct rv_slab *s)
{
	uint32_t cap = s->cap;

	if (rvq_gauge_add(&p->returned, cap) <= RV_POOL_RETURNS &&
	    rvq_stack_push_mpsc(&p->returns, &s->link) != RVQ_CLOSED)
		return;
	rvq_gauge_sub(&p->returned, cap);
	slab_to_system(s);
}

/* Free cached blocks of a class until at most keep bytes are left. */
static void
pool_shrink(struct rv_pool *p, unsigned cls, size_t keep)
{
	while (p->free[cls].bytes > keep)
		slab_to_system(pool_pop(p, cls));
}

void
rv_pool_trim(struct rv_pool *p)
{
	unsigned i;

	pool_fetch(p);
	for (i = 0; i < RV_NCLASS; i++)
		pool_shrink(p, i, class_trim[i]);
}

void
rv_pool_close(struct rv_pool *p)
{
	struct rvq_link *l = rvq_stack_close(&p->returns), *next;
	unsigned i;

	if (current == p)
		current = NULL;
	for (; l != NULL; l = next) {
		next = l->next;
		slab_to_system(rv_slab_of(l));
	}
	for (i = 0; i < RV_NCLASS; i++)
		pool_shrink(p, i, 0);
	pool_put(p);
}

struct rv_slab *
rv_slab_get(struct rv_pool *p, size_t size)
{
	struct rv_slab *s;
	uint16_t cls = RV_256;

	REEVE_REQUIRE(size <= RV_BUF_MAX, NULL);
	while (cls < RV_NCLASS && class_cap[cls] < size)
		cls++;
	if (cls == RV_OWN)
		return slab_new(p->arena, RV_OWN, size);
	s = pool_pop(p, cls);
	if (s == NULL) {
		pool_fetch(p);
		s = pool_pop(p, cls);
	}
	if (s == NULL) {
		s = slab_new(p->arena, cls, class_cap[cls]);
		if (s == NULL)
			return NULL;
		s->home = p;
		rvq_ref_get(&p->refs);
		return s;
	}
	rvq_ref_init(&s->refs, 1);
	s->used = 0;
	s->udesc = 0;
	return s;
}

void
rv_slab_unref(struct rv_slab *s)
{
	void (*done)(void *);
	void *ctx;

	if (!rv_ref_drop(&s->refs))
		return;
	if (s->budget != NULL)
		uncharge(s);
	if (s->home == NULL) {
		done = s->done;
		ctx = s->done_ctx;
		slab_to_system(s);
		if (done != NULL)
			done(ctx);
	} else if (s->home == current) {
		pool_keep(current, s);
	} else {
		pool_return(s->home, s);
	}
}
