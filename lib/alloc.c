/* alloc.c - the arena: see alloc.h. */
#include <config.h>

#include "lib/alloc.h"
#include "lib/check.h"
#include "queues/counter.h"
#include "queues/ref.h"

#include <stdlib.h>
#include <string.h>

#define RV_ALIGN_MIN 16

struct rv_arena {
	reeve_alloc_t a; /* immutable */
	struct rvq_ref refs;
	struct rvq_gauge allocs, bytes;
	/* written by the one caller of rv_arena_keep, read by whoever drops the last reference */
	unsigned nkept;
	struct {
		void *p;
		size_t size;
	} kept[RV_ARENA_KEEP];
};

static void *
system_alloc(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (align <= RV_ALIGN_MIN)
		return malloc(size);
	return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void
system_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	(void)size;
	free(p);
}

struct rv_arena *
rv_arena_create(const reeve_alloc_t *a)
{
	reeve_alloc_t use = {system_alloc, system_free, NULL};
	struct rv_arena *ar;

	if (a != NULL && (a->alloc != NULL || a->free != NULL))
		use = *a;
	REEVE_REQUIRE(use.alloc != NULL && use.free != NULL, NULL);
	ar = use.alloc(use.ctx, sizeof(*ar), RV_ALIGN_MIN);
	if (ar == NULL)
		return NULL;
	memset(ar, 0, sizeof(*ar));
	ar->a = use;
	rvq_ref_init(&ar->refs, 1);
	return ar;
}

void
rv_arena_ref(struct rv_arena *ar)
{
	rvq_ref_get(&ar->refs);
}

void
rv_arena_unref(struct rv_arena *ar)
{
	reeve_alloc_t use = ar->a;

	if (!rvq_ref_put(&ar->refs))
		return;
	for (unsigned i = 0; i < ar->nkept; i++)
		use.free(use.ctx, ar->kept[i].p, ar->kept[i].size);
	use.free(use.ctx, ar, sizeof(*ar));
}

void
rv_arena_keep(struct rv_arena *ar, void *p, size_t size)
{
	if (p == NULL)
		return;
	REEVE_ASSERT(ar->nkept < RV_ARENA_KEEP);
	ar->kept[ar->nkept].p = p;
	ar->kept[ar->nkept++].size = size;
	rvq_gauge_sub(&ar->bytes, size);
	rv_arena_unref(ar); /* the block's: the caller holds another */
}

void *
rv_alloc(struct rv_arena *ar, size_t size, size_t align)
{
	void *p = ar->a.alloc(ar->a.ctx, size, align < RV_ALIGN_MIN ? RV_ALIGN_MIN : align);

	if (p == NULL)
		return NULL;
	rvq_ref_get(&ar->refs);
	rvq_gauge_add(&ar->allocs, 1);
	rvq_gauge_add(&ar->bytes, size);
	return p;
}

void *
rv_zalloc(struct rv_arena *ar, size_t size)
{
	void *p = rv_alloc(ar, size, RV_ALIGN_MIN);

	return p == NULL ? NULL : memset(p, 0, size);
}

void
rv_free(struct rv_arena *ar, void *p, size_t size)
{
	if (p == NULL)
		return;
	rvq_gauge_sub(&ar->bytes, size);
	ar->a.free(ar->a.ctx, p, size);
	rv_arena_unref(ar);
}

uint64_t
rv_arena_allocs(const struct rv_arena *ar)
{
	return rvq_gauge_get(&ar->allocs);
}

uint64_t
rv_arena_bytes(const struct rv_arena *ar)
{
	return rvq_gauge_get(&ar->bytes);
}
