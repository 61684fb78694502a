/* alloc.c - see alloc.h.  In front of each block is a mark with what was asked for, so that a wrong size,
 * a double free and a foreign pointer abort; freed bytes are overwritten. */
#include <config.h>

#include "tests/kit/alloc.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MARK_LIVE UINT64_C(0x6c697665626c6f63)
#define MARK_DEAD UINT64_C(0x6465616462c0ffee)

struct mark {
	uint64_t state;
	size_t size;
	void *base;
	void *pad;
};

static void *
kit_alloc(void *ctx, size_t size, size_t align)
{
	struct rvt_alloc *t = ctx;
	uint64_t call = rvq_gauge_add(&t->calls, 1), fails = rvq_cell64_get(&t->fail_at);
	size_t head = align > sizeof(struct mark) ? align : sizeof(struct mark);
	struct mark *m;
	void *base;

	if (size == 0 || align < 16 || (align & (align - 1)) != 0)
		abort();
	if (fails != 0 && (call == fails || (rvq_cell32_get(&t->fail_rest) && call > fails)))
		return NULL;
	if (posix_memalign(&base, align, head + size) != 0)
		return NULL;
	memset(base, 0xa5, head + size);
	m = (struct mark *)(void *)((char *)base + head) - 1;
	m->state = MARK_LIVE;
	m->size = size;
	m->base = base;
	rvq_gauge_add(&t->blocks, 1);
	rvq_gauge_add(&t->bytes, size);
	return m + 1;
}

static void
kit_free(void *ctx, void *p, size_t size)
{
	struct rvt_alloc *t = ctx;
	struct mark *m = (struct mark *)p - 1;

	if (m->state != MARK_LIVE || m->size != size)
		abort();
	m->state = MARK_DEAD;
	memset(p, 0x5a, size);
	rvq_gauge_sub(&t->blocks, 1);
	rvq_gauge_sub(&t->bytes, size);
	free(m->base);
}

void
rvt_alloc_init(struct rvt_alloc *t)
{
	memset(t, 0, sizeof(*t));
	t->a.alloc = kit_alloc;
	t->a.free = kit_free;
	t->a.ctx = t;
}

void
rvt_alloc_fail(struct rvt_alloc *t, uint64_t nth, bool rest)
{
	rvq_gauge_sub(&t->calls, rvq_gauge_get(&t->calls));
	rvq_cell32_put(&t->fail_rest, rest);
	rvq_cell64_put(&t->fail_at, nth);
}

bool
rvt_alloc_failed(const struct rvt_alloc *t)
{
	uint64_t fails = rvq_cell64_get(&t->fail_at);

	return fails != 0 && rvq_gauge_get(&t->calls) >= fails;
}

void
rvt_alloc_check(const struct rvt_alloc *t)
{
	ck_assert_uint_eq(rvq_gauge_get(&t->blocks), 0);
	ck_assert_uint_eq(rvq_gauge_get(&t->bytes), 0);
}
