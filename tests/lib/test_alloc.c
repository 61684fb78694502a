/* test_alloc.c - the arena: alignment, gauges, life by blocks, failures. */
#include <config.h>

#include "lib/alloc.h"

#include "tests/kit/alloc.h"
#include "tests/kit/run.h"

#include <string.h>

START_TEST(default_allocator_gives_aligned_blocks)
{
	struct rv_arena *ar = rv_arena_create(NULL);
	size_t align;
	void *p;

	for (align = 1; align <= 4096; align *= 2) {
		p = rv_alloc(ar, 100, align);
		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % (align < 16 ? 16 : align), 0);
		memset(p, 1, 100);
		rv_free(ar, p, 100);
	}
	rv_arena_unref(ar);
}
END_TEST

START_TEST(empty_allocator_is_malloc_and_half_a_one_is_refused)
{
	reeve_alloc_t none = {NULL, NULL, NULL}, half;
	struct rvt_alloc t;
	struct rv_arena *ar = rv_arena_create(&none);

	ck_assert_ptr_nonnull(ar);
	rv_arena_unref(ar);
	rvt_alloc_init(&t);
	half = t.a;
	half.free = NULL;
	ck_assert_ptr_null(rv_arena_create(&half));
	half = t.a;
	half.alloc = NULL;
	ck_assert_ptr_null(rv_arena_create(&half));
}
END_TEST

START_TEST(gauges_follow_blocks)
{
	struct rvt_alloc t;
	struct rv_arena *ar;
	char *p, *q;
	size_t i;

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	p = rv_alloc(ar, 100, 16);
	q = rv_zalloc(ar, 50);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(q[i], 0);
	ck_assert_uint_eq(rv_arena_allocs(ar), 2);
	ck_assert_uint_eq(rv_arena_bytes(ar), 150);
	rv_free(ar, NULL, 7);
	rv_free(ar, p, 100);
	rv_free(ar, q, 50);
	ck_assert_uint_eq(rv_arena_allocs(ar), 2);
	ck_assert_uint_eq(rv_arena_bytes(ar), 0);
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}
END_TEST

START_TEST(block_keeps_the_arena_alive)
{
	struct rvt_alloc t;
	struct rv_arena *ar;
	void *p;

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	p = rv_alloc(ar, 10, 16);
	rv_arena_ref(ar);
	rv_arena_unref(ar);
	rv_arena_unref(ar);
	ck_assert_uint_eq(rvq_gauge_get(&t.blocks), 2);
	rv_free(ar, p, 10);
	rvt_alloc_check(&t);
}
END_TEST

START_TEST(failures_are_null_and_change_nothing)
{
	struct rvt_alloc t;
	struct rv_arena *ar;

	rvt_alloc_init(&t);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_null(rv_arena_create(&t.a));
	rvt_alloc_fail(&t, 0, false);
	ar = rv_arena_create(&t.a);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_null(rv_alloc(ar, 10, 16));
	ck_assert_ptr_null(rv_zalloc(ar, 10));
	ck_assert_uint_eq(rv_arena_allocs(ar), 0);
	ck_assert_uint_eq(rv_arena_bytes(ar), 0);
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}
END_TEST

RVT_MAIN("alloc", &default_allocator_gives_aligned_blocks,
    &empty_allocator_is_malloc_and_half_a_one_is_refused, &gauges_follow_blocks,
    &block_keeps_the_arena_alive, &failures_are_null_and_change_nothing)
