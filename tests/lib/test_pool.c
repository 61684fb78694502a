/* test_pool.c - blocks, pools, budgets by one thread; failures of the allocator. */
#include <config.h>

#include "lib/buf/pool.h"

#include "tests/kit/alloc.h"
#include "tests/kit/run.h"

#include <string.h>

static struct rvt_alloc t;
static struct rv_arena *ar;
static struct rv_pool *pool;

static void
begin(void)
{
	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	pool = rv_pool_create(ar);
	rv_pool_enter(pool);
}

static void
end(void)
{
	rv_pool_close(pool);
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}

START_TEST(classes_fit_the_size)
{
	static const struct {
		size_t size;
		unsigned cls;
		uint32_t cap;
		unsigned ndesc;
	} row[] = {{0, RV_256, 256, 1}, {1, RV_256, 256, 1}, {256, RV_256, 256, 1},
	    {257, RV_2K, 2048, 1}, {2048, RV_2K, 2048, 1}, {2049, RV_16K, 16384, 1},
	    {16385, RV_64K, 65536, RV_SLAB_DESCS}, {65536, RV_64K, 65536, RV_SLAB_DESCS},
	    {65537, RV_OWN, 65537, 1}, {1000000, RV_OWN, 1000000, 1}};
	struct rv_slab *s;
	size_t i;

	begin();
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		s = rv_slab_get(pool, row[i].size);
		ck_assert_uint_eq(s->cls, row[i].cls);
		ck_assert_uint_eq(s->cap, row[i].cap);
		ck_assert_uint_eq(s->ndesc, row[i].ndesc);
		ck_assert_uint_eq(s->used, 0);
		ck_assert_uint_eq(s->udesc, 0);
		ck_assert_uint_eq((uintptr_t)s->data % 64, 0);
		ck_assert((void *)s->data >= (void *)&s->desc[s->ndesc]);
		memset(s->data, 1, s->cap);
		rv_slab_unref(s);
	}
	ck_assert_ptr_null(rv_slab_get(pool, (size_t)RV_BUF_MAX + 1));
	end();
}
END_TEST

START_TEST(freed_block_is_taken_again_without_the_allocator)
{
	struct rv_slab *s, *again;
	size_t size;

	begin();
	for (size = 256; size <= 65536; size *= 2) {
		s = rv_slab_get(pool, size);
		s->used = s->udesc = 1;
		rv_slab_ref(s);
		rv_slab_unref(s);
		ck_assert(rvq_ref_single(&s->refs));
		rv_slab_unref(s);
		rvt_alloc_fail(&t, 1, true);
		again = rv_slab_get(pool, size);
		ck_assert_ptr_eq(again, s);
		ck_assert_uint_eq(again->used, 0);
		ck_assert_uint_eq(again->udesc, 0);
		ck_assert(rvq_ref_single(&again->refs));
		rv_slab_unref(again);
		rvt_alloc_fail(&t, 0, false);
	}
	end();
}
END_TEST

START_TEST(block_freed_without_a_pool_of_ones_own_goes_home)
{
	struct rv_slab *s;

	begin();
	s = rv_slab_get(pool, 2048);
	rv_pool_enter(NULL);
	ck_assert_ptr_null(rv_pool_current());
	rv_slab_unref(s);
	rv_pool_enter(pool);
	ck_assert_ptr_eq(rv_pool_current(), pool);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_eq(rv_slab_get(pool, 2048), s);
	rv_slab_unref(s);
	end();
}
END_TEST

/* Takes n blocks and lets go of them, as the owner or as somebody else. */
static void
churn(size_t size, unsigned n, bool foreign)
{
	struct rv_slab *s[600];
	unsigned i;

	for (i = 0; i < n; i++)
		s[i] = rv_slab_get(pool, size);
	if (foreign)
		rv_pool_enter(NULL);
	for (i = 0; i < n; i++)
		rv_slab_unref(s[i]);
	rv_pool_enter(pool);
}

START_TEST(free_lists_are_bounded_and_trimmed)
{
	uint64_t before;
	int foreign;

	begin();
	before = rv_arena_bytes(ar);
	for (foreign = 0; foreign < 2; foreign++) {
		churn(65536, 100, foreign);
		if (!foreign) /* the owner's go to the plain list, which is bounded at once */
			ck_assert_uint_lt(rv_arena_bytes(ar) - before, RV_POOL_KEEP_64K * 11 / 10);
		rv_slab_unref(rv_slab_get(pool, 1));
		churn(65536, 65, false); /* takes the return stack */
		ck_assert_uint_ge(rv_arena_bytes(ar) - before, RV_POOL_KEEP_64K);
		ck_assert_uint_lt(rv_arena_bytes(ar) - before, RV_POOL_KEEP_64K * 11 / 10);
		churn(2048, 600, foreign);
		rv_pool_trim(pool);
		ck_assert_uint_ge(rv_arena_bytes(ar) - before, RV_POOL_TRIM_64K + RV_POOL_TRIM);
		ck_assert_uint_lt(
		    rv_arena_bytes(ar) - before, (RV_POOL_TRIM_64K + RV_POOL_TRIM) * 11 / 10);
	}
	end();
}
END_TEST

/* The owner rests while others give back: what waits for it is bounded. */
START_TEST(blocks_given_back_by_others_are_bounded)
{
	struct rv_slab *s[200];
	uint64_t empty;

	begin();
	empty = rvq_gauge_get(&t.bytes);
	for (size_t i = 0; i < 200; i++)
		s[i] = rv_slab_get(pool, 65536);
	rv_pool_enter(NULL);
	for (size_t i = 0; i < 200; i++)
		rv_slab_unref(s[i]);
	ck_assert_uint_le(rvq_gauge_get(&t.bytes) - empty, RV_POOL_RETURNS + RV_POOL_RETURNS / 16);
	rv_pool_enter(pool);
	rv_pool_trim(pool);
	for (size_t i = 0; i < 64; i++) /* the count starts again */
		s[i] = rv_slab_get(pool, 65536);
	rv_pool_enter(NULL);
	for (size_t i = 0; i < 64; i++)
		rv_slab_unref(s[i]);
	ck_assert_uint_ge(rvq_gauge_get(&t.bytes) - empty, 64 * 65536);
	rv_pool_enter(pool);
	end();
}
END_TEST

START_TEST(block_outlives_pool_and_arena)
{
	struct rv_slab *mine, *other;

	begin();
	mine = rv_slab_get(pool, 65536);
	other = rv_slab_get(pool, 70000);
	rv_pool_close(pool);
	ck_assert_ptr_null(rv_pool_current());
	rv_arena_unref(ar);
	memset(mine->data, 1, mine->cap);
	memset(other->data, 1, other->cap);
	rv_slab_unref(mine);
	rv_slab_unref(other);
	rvt_alloc_check(&t);
}
END_TEST

static void
count_done(void *ctx)
{
	++*(int *)ctx;
}

START_TEST(wrapped_bytes_are_told_once)
{
	static const char text[] = "foreign";
	struct rv_slab *s;
	int done = 0;

	begin();
	s = rv_slab_wrap(ar, text, sizeof(text), count_done, &done);
	ck_assert_ptr_eq(s->data, text);
	ck_assert_uint_eq(s->cap, sizeof(text));
	rv_slab_ref(s);
	rv_slab_unref(s);
	ck_assert_int_eq(done, 0);
	rv_slab_unref(s);
	ck_assert_int_eq(done, 1);
	rv_slab_unref(rv_slab_wrap(ar, text, 1, NULL, NULL));
	ck_assert_ptr_null(rv_slab_wrap(ar, text, 0, count_done, &done));
	ck_assert_ptr_null(rv_slab_wrap(ar, NULL, 1, count_done, &done));
	ck_assert_ptr_null(rv_slab_wrap(ar, text, (size_t)RV_BUF_MAX + 1, count_done, &done));
	ck_assert_int_eq(done, 1);
	end();
}
END_TEST

START_TEST(budget_follows_blocks_and_outlives_its_maker)
{
	struct rv_budget *rt, *conn;
	struct rv_slab *s, *w;

	begin();
	rt = rv_budget_create(ar, 1000000, NULL);
	conn = rv_budget_create(ar, 500000, rt);
	s = rv_slab_get(pool, 65536);
	w = rv_slab_wrap(ar, "abc", 3, NULL, NULL);
	rv_slab_charge(s, conn);
	rv_slab_charge(w, conn);
	ck_assert_uint_eq(rvq_gauge_get(&conn->held), 65539);
	ck_assert_uint_eq(rvq_gauge_get(&rt->held), 65539);
	rv_budget_unref(conn);
	rv_slab_unref(s);
	ck_assert_uint_eq(rvq_gauge_get(&rt->held), 3);
	ck_assert_uint_eq(rvq_gauge_get(&conn->held), 3);
	rv_slab_unref(w); /* frees conn */
	ck_assert_uint_eq(rvq_gauge_get(&rt->held), 0);
	s = rv_slab_get(pool, 65536); /* the same block, charged to nobody */
	ck_assert_ptr_null(s->budget);
	rv_slab_charge(s, NULL);
	rv_slab_unref(s);
	rv_budget_unref(rt);
	rv_budget_unref(NULL);
	end();
}
END_TEST

/* A parent that is filled by some is not closed to one that holds little. */
START_TEST(last_of_a_parents_budget_is_for_those_who_hold_little)
{
	static const struct {
		uint64_t own, all;
		int level;
	} row[] = {{99, 799, 0}, {99, 800, 1}, {99, 1599, 1}, {99, 1600, 3}, {100, 699, 0},
	    {100, 700, 1}, {100, 1049, 1}, {100, 1050, 2}, {100, 1399, 2}, {100, 1400, 3}};
	struct rv_budget *rt, *conn;
	size_t i;

	begin();
	rt = rv_budget_create(ar, 1600, NULL);
	conn = rv_budget_create(ar, UINT64_MAX, rt);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		rvq_gauge_add(&conn->held, row[i].own);
		rvq_gauge_add(&rt->held, row[i].all);
		ck_assert_int_eq(rv_budget_level(conn), row[i].level);
		rvq_gauge_sub(&conn->held, row[i].own);
		rvq_gauge_sub(&rt->held, row[i].all);
	}
	rt->limit = UINT64_C(1) << 30;
	rvq_gauge_add(&rt->held, rt->limit - 1);
	rvq_gauge_add(&conn->held, RV_BUDGET_SMALL - 1);
	ck_assert_int_eq(rv_budget_level(conn), 1);
	rvq_gauge_add(&conn->held, 1);
	ck_assert_int_eq(rv_budget_level(conn), 3);
	rvq_gauge_sub(&conn->held, RV_BUDGET_SMALL);
	rvq_gauge_sub(&rt->held, rt->limit - 1);
	rv_budget_unref(conn);
	rv_budget_unref(rt);
	end();
}
END_TEST

START_TEST(budget_level_is_that_of_the_fullest)
{
	static const struct {
		uint64_t limit, held;
		int level;
	} row[] = {{100, 0, 0}, {100, 49, 0}, {100, 50, 1}, {100, 74, 1}, {100, 75, 2},
	    {100, 99, 2}, {100, 100, 3}, {100, 200, 3}, {0, 0, 3}, {1, 0, 0}, {1, 1, 3},
	    {UINT64_MAX, UINT64_C(1) << 40, 0}};
	struct rv_budget *rt, *conn;
	size_t i;

	begin();
	rt = rv_budget_create(ar, 100, NULL);
	conn = rv_budget_create(ar, UINT64_MAX, rt);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		rt->limit = row[i].limit;
		rvq_gauge_add(&rt->held, row[i].held);
		ck_assert_int_eq(rv_budget_level(rt), row[i].level);
		rvq_gauge_sub(&rt->held, row[i].held);
	}
	rt->limit = 100;
	conn->limit = 10;
	rvq_gauge_add(&conn->held, 8);
	ck_assert_int_eq(rv_budget_level(conn), 2);
	ck_assert_int_eq(rv_budget_level(rt), 0);
	rvq_gauge_sub(&conn->held, 8);
	rv_budget_unref(conn);
	rv_budget_unref(rt);
	end();
}
END_TEST

START_TEST(allocation_failures_leave_nothing_behind)
{
	static const char byte = 'x';
	struct rv_slab *s;
	int done = 0;

	begin();
	s = rv_slab_get(pool, 100);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_null(rv_pool_create(ar));
	ck_assert_ptr_null(rv_budget_create(ar, 1, NULL));
	ck_assert_ptr_null(rv_slab_get(pool, 100));
	ck_assert_ptr_null(rv_slab_get(pool, 100000));
	ck_assert_ptr_null(rv_slab_wrap(ar, &byte, 1, count_done, &done));
	ck_assert_int_eq(done, 0);
	rvt_alloc_fail(&t, 0, false);
	rv_slab_unref(s);
	end();
}
END_TEST

RVT_MAIN("pool", &classes_fit_the_size, &freed_block_is_taken_again_without_the_allocator,
    &block_freed_without_a_pool_of_ones_own_goes_home, &free_lists_are_bounded_and_trimmed,
    &blocks_given_back_by_others_are_bounded, &block_outlives_pool_and_arena,
    &wrapped_bytes_are_told_once, &budget_follows_blocks_and_outlives_its_maker,
    &budget_level_is_that_of_the_fullest, &last_of_a_parents_budget_is_for_those_who_hold_little,
    &allocation_failures_leave_nothing_behind)
