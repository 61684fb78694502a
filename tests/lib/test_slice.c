/* test_slice.c - buffers: cutting, sharing, the public calls. */
#include <config.h>

#include <reeve/buf.h>
#include "lib/buf/slice.h"

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

START_TEST(cutting_allocates_only_when_descriptors_are_used_up)
{
	reeve_buf_t *b[RV_SLAB_DESCS + 2];
	struct rv_slab *s;
	unsigned i;

	begin();
	s = rv_slab_get(pool, 65536);
	rvt_alloc_fail(&t, 2, true);
	for (i = 0; i < RV_SLAB_DESCS + 1; i++) {
		b[i] = rv_buf_cut(s, i * 10, 10);
		ck_assert_ptr_eq(rv_buf_data(b[i]), s->data + i * 10);
		ck_assert_uint_eq(b[i]->own, i == RV_SLAB_DESCS);
		ck_assert_uint_eq(rvq_gauge_get(&t.calls), i == RV_SLAB_DESCS);
	}
	ck_assert_ptr_null(rv_buf_cut(s, 0, 1));
	rv_slab_unref(s);
	for (i = 0; i < RV_SLAB_DESCS + 1; i++)
		rv_buf_unref(b[i]);
	ck_assert_ptr_eq(rv_slab_get(pool, 65536), s); /* it went home with the last */
	rv_slab_unref(s);
	end();
}
END_TEST

START_TEST(slice_holds_the_block_and_checks_its_range)
{
	reeve_buf_t *b, *part, *part2;

	begin();
	b = rv_buf_alloc(pool, 100);
	memset(reeve_buf_mut(b), 7, 100);
	ck_assert_ptr_null(reeve_buf_slice(b, 101, 0));
	ck_assert_ptr_null(reeve_buf_slice(b, 50, 51));
	ck_assert_ptr_null(reeve_buf_slice(b, SIZE_MAX, 2));
	ck_assert_ptr_null(reeve_buf_slice(NULL, 0, 0));
	part = reeve_buf_slice(b, 40, 60);
	part2 = reeve_buf_slice(part, 10, 50);
	ck_assert_ptr_eq(reeve_buf_data(part2), reeve_buf_data(b) + 50);
	ck_assert_uint_eq(reeve_buf_len(part2), 50);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_null(reeve_buf_slice(b, 0, 1));
	reeve_buf_unref(b);
	reeve_buf_unref(part);
	ck_assert_uint_eq(reeve_buf_data(part2)[49], 7);
	reeve_buf_unref(part2);
	end();
}
END_TEST

START_TEST(only_the_single_holder_may_write)
{
	reeve_buf_t *b, *part;
	struct rv_slab *s;

	begin();
	b = rv_buf_alloc(pool, 100);
	ck_assert_ptr_eq(reeve_buf_mut(b), reeve_buf_data(b));
	ck_assert_ptr_eq(reeve_buf_ref(b), b);
	ck_assert_ptr_null(reeve_buf_mut(b));
	reeve_buf_unref(b);
	ck_assert_ptr_nonnull(reeve_buf_mut(b));
	part = reeve_buf_slice(b, 0, 10);
	ck_assert_ptr_null(reeve_buf_mut(b));
	ck_assert_ptr_null(reeve_buf_mut(part));
	reeve_buf_unref(b);
	ck_assert_ptr_nonnull(reeve_buf_mut(part));
	reeve_buf_unref(part);
	s = rv_slab_get(pool, 65536);
	b = rv_buf_cut(s, 0, 10);
	ck_assert_ptr_null(reeve_buf_mut(b)); /* the reader goes on filling the block */
	rv_slab_unref(s);
	ck_assert_ptr_nonnull(reeve_buf_mut(b));
	reeve_buf_unref(b);
	reeve_buf_unref(NULL);
	end();
}
END_TEST

START_TEST(buffers_of_all_sizes_come_and_go)
{
	static const size_t sizes[] = {1, 255, 256, 257, 2048, 16384, 65536, 65537, 3000000};
	reeve_buf_t *b;
	size_t i;

	begin();
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		b = rv_buf_alloc(pool, sizes[i]);
		ck_assert_uint_eq(reeve_buf_len(b), sizes[i]);
		memset(reeve_buf_mut(b), 1, sizes[i]);
		reeve_buf_unref(b);
	}
	ck_assert_ptr_null(rv_buf_alloc(pool, 0));
	ck_assert_ptr_null(rv_buf_alloc(pool, (size_t)RV_BUF_MAX + 1));
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_null(rv_buf_alloc(pool, 100000));
	end();
}
END_TEST

static void
count_done(void *ctx)
{
	++*(int *)ctx;
}

START_TEST(wrapped_buffer_is_read_only_and_told_after_its_last_slice)
{
	static const uint8_t text[] = "the caller's own bytes";
	reeve_buf_t *b, *part;
	int done = 0;

	begin();
	b = rv_buf_wrap(ar, text, sizeof(text), count_done, &done);
	ck_assert_ptr_eq(reeve_buf_data(b), text);
	ck_assert_uint_eq(reeve_buf_len(b), sizeof(text));
	ck_assert_ptr_null(reeve_buf_mut(b));
	part = reeve_buf_slice(b, 4, 6);
	reeve_buf_unref(b);
	ck_assert_ptr_null(reeve_buf_mut(part));
	ck_assert_mem_eq(reeve_buf_data(part), "caller", 6);
	ck_assert_int_eq(done, 0);
	reeve_buf_unref(part);
	ck_assert_int_eq(done, 1);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_ptr_null(rv_buf_wrap(ar, text, 1, count_done, &done));
	ck_assert_int_eq(done, 1);
	end();
}
END_TEST

START_TEST(buffer_outlives_everything)
{
	reeve_buf_t *b, *part;

	begin();
	b = rv_buf_alloc(pool, 5000);
	part = reeve_buf_slice(b, 0, 100);
	rv_pool_close(pool);
	rv_arena_unref(ar);
	memset(b->slab->data, 1, 5000);
	reeve_buf_unref(b);
	ck_assert_uint_eq(reeve_buf_data(part)[99], 1);
	reeve_buf_unref(part);
	rvt_alloc_check(&t);
}
END_TEST

START_TEST(null_is_answered)
{
	ck_assert_ptr_null(reeve_buf_ref(NULL));
	ck_assert_ptr_null(reeve_buf_data(NULL));
	ck_assert_ptr_null(reeve_buf_mut(NULL));
	ck_assert_uint_eq(reeve_buf_len(NULL), 0);
}
END_TEST

RVT_MAIN("slice", &cutting_allocates_only_when_descriptors_are_used_up,
    &slice_holds_the_block_and_checks_its_range, &only_the_single_holder_may_write,
    &buffers_of_all_sizes_come_and_go, &wrapped_buffer_is_read_only_and_told_after_its_last_slice,
    &buffer_outlives_everything, &null_is_answered)
