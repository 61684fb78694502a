/* test_slice_chain.c - chains: order, cutting, copying, failures, and against a flat array. */
#include <config.h>

#include "lib/buf/slice.h"

#include "tests/kit/alloc.h"
#include "tests/kit/run.h"

#include <string.h>

static struct rvt_alloc t;
static struct rv_arena *ar;
static struct rv_pool *pool;
static struct rv_budget *bud;
static struct rv_chain c;
static uint8_t src[1 << 18];

static void
begin(void)
{
	size_t i;

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	pool = rv_pool_create(ar);
	rv_pool_enter(pool);
	bud = rv_budget_create(ar, 1 << 20, NULL);
	rv_chain_init(&c);
	for (i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7 + i / 251);
}

static void
end(void)
{
	rvt_alloc_fail(&t, 0, false);
	rv_chain_clear(&c);
	ck_assert_uint_eq(c.bytes, 0);
	ck_assert_ptr_null(c.tail);
	ck_assert_uint_eq(rvq_gauge_get(&bud->held), 0);
	rv_budget_unref(bud);
	rv_pool_close(pool);
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}

/* The chain holds exactly these bytes; returns its number of buffers. */
static unsigned
check_bytes(const uint8_t *want, size_t n)
{
	const reeve_buf_t *b;
	unsigned count = 0;
	size_t at = 0;

	ck_assert_uint_eq(c.bytes, n);
	for (b = c.head; b != NULL; at += b->len, b = b->next, count++) {
		ck_assert_uint_gt(b->len, 0);
		ck_assert_uint_le(b->len, n - at);
		ck_assert_mem_eq(rv_buf_data(b), want + at, b->len);
		if (b->next == NULL)
			ck_assert_ptr_eq(b, c.tail);
	}
	ck_assert_uint_eq(at, n);
	return count;
}

static int
copy(size_t off, size_t n)
{
	return rv_chain_copy(&c, pool, bud, src + off, n);
}

/* A buffer with n bytes of src in it. */
static reeve_buf_t *
buffer(size_t off, size_t n)
{
	reeve_buf_t *b = rv_buf_alloc(pool, n);

	memcpy(b->slab->data, src + off, n);
	return b;
}

START_TEST(buffers_leave_in_the_order_they_came)
{
	reeve_buf_t *a, *b;

	begin();
	a = buffer(0, 100);
	b = buffer(100, 50);
	ck_assert_ptr_null(rv_chain_pop(&c));
	ck_assert_int_eq(rv_chain_push(&c, a), 0);
	ck_assert_int_eq(rv_chain_push(&c, b), 0);
	check_bytes(src, 150);
	ck_assert_ptr_eq(rv_chain_pop(&c), a);
	ck_assert_ptr_null(a->next);
	check_bytes(src + 100, 50);
	rv_chain_unpop(&c, a);
	check_bytes(src, 150);
	rv_chain_skip(&c, 0);
	rv_chain_skip(&c, 99);
	check_bytes(src + 99, 51);
	rv_chain_skip(&c, 1);
	ck_assert_ptr_eq(c.head, b);
	rv_chain_skip(&c, 50);
	ck_assert_ptr_null(c.head);
	a = buffer(0, 1);
	rv_chain_unpop(&c, a); /* into an empty chain */
	ck_assert_uint_eq(check_bytes(src, 1), 1);
	end();
}
END_TEST

START_TEST(shared_buffer_gets_a_descriptor_of_its_own)
{
	reeve_buf_t *a;

	begin();
	a = buffer(0, 100);
	rvq_ref_get(&a->refs);
	ck_assert_int_eq(rv_chain_push(&c, a), 0);
	ck_assert_ptr_ne(c.head, a);
	ck_assert(rvq_ref_single(&a->refs));
	rv_chain_skip(&c, 10);
	ck_assert_uint_eq(a->len, 100);
	check_bytes(src + 10, 90);
	rvq_ref_get(&a->refs);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_int_eq(rv_chain_push(&c, a), REEVE_ENOMEM);
	ck_assert(rvq_ref_single(&a->refs)); /* consumed all the same */
	check_bytes(src + 10, 90);
	rv_buf_unref(a);
	end();
}
END_TEST

START_TEST(empty_buffer_is_let_go)
{
	reeve_buf_t *a, *none;

	begin();
	a = buffer(0, 100);
	none = rv_buf_slice(a, 100, 0);
	ck_assert_int_eq(rv_chain_push(&c, none), 0);
	ck_assert_ptr_null(c.head);
	ck_assert(rvq_ref_single(&a->slab->refs));
	rv_buf_unref(a);
	end();
}
END_TEST

START_TEST(cut_extends_what_ends_there_and_nothing_else)
{
	struct rv_slab *s, *s2;

	begin();
	s = rv_slab_get(pool, 65536);
	s2 = rv_slab_get(pool, 65536);
	memcpy(s->data, src, 65536);
	memcpy(s2->data, src + 500, 1000);
	ck_assert_int_eq(rv_chain_cut(&c, s, 0, 0), 0);
	ck_assert_ptr_null(c.head);
	ck_assert_int_eq(rv_chain_cut(&c, s, 0, 100), 0);
	ck_assert_int_eq(rv_chain_cut(&c, s, 100, 300), 0);
	ck_assert_uint_eq(check_bytes(src, 400), 1);
	ck_assert_int_eq(rv_chain_cut(&c, s, 400, 0), 0);
	rv_chain_skip(&c, 50); /* the end is where it was */
	ck_assert_int_eq(rv_chain_cut(&c, s, 400, 100), 0);
	ck_assert_uint_eq(check_bytes(src + 50, 450), 1);
	ck_assert_int_eq(rv_chain_cut(&c, s2, 0, 500), 0);
	ck_assert_uint_eq(check_bytes(src + 50, 950), 2);
	ck_assert_int_eq(rv_chain_cut(&c, s, 1000, 10), 0);
	ck_assert_int_eq(rv_chain_cut(&c, s, 1020, 10), 0); /* a gap */
	ck_assert_uint_eq(c.bytes, 970);
	ck_assert_uint_eq(s->udesc, 3);
	rv_slab_unref(s);
	rv_slab_unref(s2);
	end();
}
END_TEST

START_TEST(cut_that_fails_changes_nothing)
{
	struct rv_slab *s;
	unsigned i;

	begin();
	s = rv_slab_get(pool, 65536);
	memcpy(s->data, src, 65536);
	rvt_alloc_fail(&t, 1, true);
	for (i = 0; i < RV_SLAB_DESCS; i++)
		ck_assert_int_eq(rv_chain_cut(&c, s, i * 10, 5), 0);
	ck_assert_int_eq(rv_chain_cut(&c, s, i * 10, 5), REEVE_ENOMEM);
	ck_assert_uint_eq(c.bytes, RV_SLAB_DESCS * 5);
	ck_assert_int_eq(rv_chain_cut(&c, s, i * 10 - 5, 5), 0); /* extending needs no memory */
	ck_assert_uint_eq(c.bytes, RV_SLAB_DESCS * 5 + 5);
	rv_slab_unref(s);
	end();
}
END_TEST

/* 200 KiB that arrive in odd reads through 64 KiB blocks: one buffer for each block, no copy, and the
 * steady state allocates nothing. */
START_TEST(large_frame_in_partial_reads_is_one_buffer_a_block)
{
	const size_t total = 200 * 1024;
	struct rv_slab *s = NULL;
	size_t at, n;
	unsigned round;

	begin();
	for (round = 0; round < 3; round++) {
		if (round == 1)
			rvt_alloc_fail(&t, 1, true);
		for (at = 0; at < total; at += n) {
			if (s == NULL) {
				s = rv_slab_get(pool, 65536);
				rv_slab_charge(s, bud);
			}
			n = 1 + at % 5000;
			if (n > s->cap - s->used)
				n = s->cap - s->used;
			if (n > total - at)
				n = total - at;
			memcpy(s->data + s->used, src + at, n);
			s->used += (uint32_t)n;
			ck_assert_int_eq(
			    rv_chain_cut(&c, s, s->used - (uint32_t)n, (uint32_t)n), 0);
			if (s->used == s->cap || at + n == total) {
				rv_slab_unref(s);
				s = NULL;
			}
		}
		ck_assert_uint_eq(check_bytes(src, total), 4);
		ck_assert_uint_eq(rvq_gauge_get(&bud->held), 4 * 65536);
		rv_chain_skip(&c, 100000);
		check_bytes(src + 100000, total - 100000);
		ck_assert_uint_eq(rvq_gauge_get(&bud->held), 3 * 65536);
		rv_chain_clear(&c);
	}
	end();
}
END_TEST

START_TEST(copies_fill_a_small_block_then_larger_ones)
{
	unsigned i;

	begin();
	ck_assert_int_eq(copy(0, 0), 0);
	ck_assert_ptr_null(c.head);
	for (i = 0; i < 2048; i++)
		ck_assert_int_eq(copy(i, 1), 0);
	ck_assert_uint_eq(check_bytes(src, 2048), 1);
	ck_assert_uint_eq(rvq_gauge_get(&bud->held), 2048);
	ck_assert_int_eq(copy(2048, 1), 0);
	ck_assert_uint_eq(c.tail->slab->cls, RV_16K);
	ck_assert_int_eq(copy(2049, 40000), 0);
	ck_assert_uint_eq(check_bytes(src, 42049), 4);
	ck_assert_uint_eq(rvq_gauge_get(&bud->held), 2048 + 3 * 16384);
	rv_chain_skip(&c, 42000);
	ck_assert_int_eq(copy(42049, 10), 0);
	ck_assert_uint_eq(check_bytes(src + 42000, 59), 1);
	end();
}
END_TEST

START_TEST(copy_crosses_from_the_old_block_into_a_new_one)
{
	begin();
	ck_assert_int_eq(copy(0, 2000), 0);
	ck_assert_int_eq(copy(2000, 100), 0);
	ck_assert_uint_eq(check_bytes(src, 2100), 2);
	ck_assert_uint_eq(c.head->len, 2048);
	ck_assert_uint_eq(c.tail->slab->cls, RV_16K);
	end();
	begin();
	ck_assert_int_eq(copy(0, 2049), 0);
	ck_assert_uint_eq(c.head->slab->cls, RV_16K);
	ck_assert_uint_eq(check_bytes(src, 2049), 1);
	end();
}
END_TEST

START_TEST(copy_does_not_touch_what_others_see)
{
	struct rv_slab *s;
	reeve_buf_t *seen;

	begin();
	ck_assert_int_eq(copy(0, 10), 0);
	seen = rv_buf_slice(c.head, 0, 10);
	ck_assert_int_eq(copy(10, 10), 0); /* a slice looks at the block */
	ck_assert_uint_eq(check_bytes(src, 20), 2);
	rv_buf_unref(seen);
	ck_assert_int_eq(rv_chain_push(&c, rv_buf_wrap(ar, src + 20, 10, NULL, NULL)), 0);
	ck_assert_int_eq(copy(30, 10), 0); /* foreign bytes */
	ck_assert_uint_eq(check_bytes(src, 40), 4);
	s = rv_slab_get(pool, 65536);
	memcpy(s->data, src + 40, 10);
	ck_assert_int_eq(rv_chain_cut(&c, s, 0, 10), 0);
	s->used = 10;
	rv_slab_unref(s);
	ck_assert_int_eq(copy(50, 10), 0); /* a received block, though alone now */
	ck_assert_uint_eq(check_bytes(src, 60), 6);
	ck_assert_int_eq(rv_chain_push(&c, buffer(60, 10)), 0);
	ck_assert_int_eq(copy(70, 10), 0); /* the application's block is full by definition */
	ck_assert_uint_eq(check_bytes(src, 80), 8);
	end();
}
END_TEST

START_TEST(copy_that_fails_changes_nothing)
{
	uint64_t nth;
	uint32_t used;

	for (nth = 1; nth <= 4; nth++) {
		begin();
		ck_assert_int_eq(copy(0, 100), 0);
		used = c.tail->slab->used;
		rvt_alloc_fail(&t, nth, nth % 2);
		ck_assert_int_eq(copy(100, 1948 + 3 * 16384), nth <= 3 ? REEVE_ENOMEM : 0);
		ck_assert_int_eq(rvt_alloc_failed(&t), nth <= 3);
		if (nth <= 3) {
			ck_assert_uint_eq(check_bytes(src, 100), 1);
			ck_assert_uint_eq(c.tail->slab->used, used);
			ck_assert_uint_eq(rvq_gauge_get(&bud->held), 2048);
			rvt_alloc_fail(&t, 0, false);
			ck_assert_int_eq(copy(100, 1948 + 3 * 16384), 0);
		}
		ck_assert_uint_eq(check_bytes(src, 2048 + 3 * 16384), 4);
		end();
	}
}
END_TEST

static uint32_t
next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

/* One random operation on c; *from and *to: the part of src that c holds. */
static void
random_op(uint32_t *rnd, struct rv_slab *s, size_t *from, size_t *to)
{
	size_t n = next_random(rnd) % (next_random(rnd) % 4 == 0 ? 5000 : 100);
	reeve_buf_t *b;

	if (n > sizeof(src) - *to)
		n = sizeof(src) - *to;
	switch (next_random(rnd) % 6) {
	case 0:
		ck_assert_int_eq(copy(*to, n), 0);
		*to += n;
		break;
	case 1:
		if (n > s->cap - s->used)
			n = s->cap - s->used;
		memcpy(s->data + s->used, src + *to, n);
		ck_assert_int_eq(rv_chain_cut(&c, s, s->used, (uint32_t)n), 0);
		s->used += (uint32_t)n;
		*to += n;
		break;
	case 2:
		if (n == 0)
			break;
		b = buffer(*to, n);
		if (n % 2)
			rvq_ref_get(&b->refs);
		ck_assert_int_eq(rv_chain_push(&c, b), 0);
		if (n % 2)
			rv_buf_unref(b);
		*to += n;
		break;
	case 3:
		b = rv_chain_pop(&c);
		if (b != NULL && n % 2)
			rv_chain_unpop(&c, b);
		else if (b != NULL) {
			*from += b->len;
			rv_buf_unref(b);
		}
		break;
	default:
		n = n < c.bytes ? n : c.bytes;
		rv_chain_skip(&c, n);
		*from += n;
		break;
	}
}

START_TEST(random_operations_agree_with_a_flat_array)
{
	uint32_t rnd = 1, round;
	struct rv_slab *s;
	size_t from, to;
	unsigned i;

	begin();
	for (round = 0; round < 20; round++) {
		s = rv_slab_get(pool, 65536);
		rv_slab_charge(s, bud);
		from = to = 0;
		for (i = 0; i < 400; i++) {
			random_op(&rnd, s, &from, &to);
			check_bytes(src + from, to - from);
		}
		rv_slab_unref(s);
		rv_chain_clear(&c);
		ck_assert_uint_eq(rvq_gauge_get(&bud->held), 0);
	}
	end();
}
END_TEST

RVT_MAIN("slice_chain", &buffers_leave_in_the_order_they_came,
    &shared_buffer_gets_a_descriptor_of_its_own, &empty_buffer_is_let_go,
    &cut_extends_what_ends_there_and_nothing_else, &cut_that_fails_changes_nothing,
    &large_frame_in_partial_reads_is_one_buffer_a_block,
    &copies_fill_a_small_block_then_larger_ones, &copy_crosses_from_the_old_block_into_a_new_one,
    &copy_does_not_touch_what_others_see, &copy_that_fails_changes_nothing,
    &random_operations_agree_with_a_flat_array)
