/* test_noise_filter.c - Noise messages of the transport phase: sealed once, opened in place, in pieces of any size. */
#include <config.h>

#include "lib/upgrade/noise.h"

#include "tests/kit/alloc.h"
#include "tests/kit/flow.h"
#include "tests/kit/run.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/engine/gather.h"

#define BIG (1u << 20)

static struct rvt_alloc counts;
static struct rv_arena *arena;
static struct rv_pool *pool;
static struct rv_filter *a, *b; /* a seals, b opens */
static struct rv_gather *g;
static uint8_t *plain, *wire, *got;
static size_t nplain, nwire, ngot;

static void
begin(void)
{
	uint8_t k[2][32];

	memset(k[0], 1, 32);
	memset(k[1], 2, 32);
	rvt_alloc_init(&counts);
	arena = rv_arena_create(&counts.a);
	pool = rv_pool_create(arena);
	rv_pool_enter(pool);
	ck_assert_int_eq(rv_noise_filter_create(&a, arena, k[0], k[1]), 0);
	ck_assert_int_eq(rv_noise_filter_create(&b, arena, k[1], k[0]), 0);
	g = malloc(sizeof(*g));
	plain = malloc(BIG);
	wire = malloc(BIG);
	got = malloc(BIG);
	ck_assert(g != NULL && plain != NULL && wire != NULL && got != NULL);
	for (size_t i = 0; i < BIG; i++)
		plain[i] = (uint8_t)(i * 31 + (i >> 8));
	rv_gather_reset(g);
	g->message = a->message;
	nplain = nwire = ngot = 0;
}

static void
end(void)
{
	a->ops->destroy(a);
	b->ops->destroy(b);
	rv_pool_close(pool);
	rv_arena_unref(arena);
	rvt_alloc_check(&counts);
	free(g);
	free(plain);
	free(wire);
	free(got);
}

/* The next n bytes of plain, as a frame of which they are all one. */
static void
add(size_t n)
{
	if (n < RV_STAGE_MAX && g->stage_used + n <= RV_STAGE_SIZE)
		rv_gather_stage(g, plain + nplain, n);
	else
		rv_gather_ref(g, plain + nplain, n);
	nplain += n;
}

/* Seal what was added; it goes behind wire, taken in pieces. */
static void
seal(size_t piece)
{
	struct iovec v[RV_FILTER_IOV];
	size_t k;

	ck_assert_int_eq(a->ops->seal(a, pool, g), 0);
	while (a->out_left > 0) {
		ck_assert_int_gt(rv_filter_iov(a, v), 0);
		k = v[0].iov_len < piece ? v[0].iov_len : piece;
		memcpy(wire + nwire, v[0].iov_base, k);
		nwire += k;
		rv_filter_sent(a, k);
	}
	ck_assert_int_eq(rv_filter_iov(a, v), 0);
	rv_gather_reset(g);
	g->message = a->message;
}

static void
take(void)
{
	struct rv_part part;

	while (rv_filter_pop(b, &part)) {
		ck_assert_uint_gt(part.len, 0);
		memcpy(got + ngot, part.slab->data + part.off, part.len);
		ngot += part.len;
		rv_slab_unref(part.slab);
	}
}

static int
open_wire(const uint8_t *p, size_t n, size_t piece)
{
	size_t k;
	int rc = 0;

	for (; rc == 0 && n > 0; p += k, n -= k) {
		k = n < piece ? n : piece;
		rc = b->ops->open(b, pool, p, k);
		take();
	}
	return rc;
}

static void
same(void)
{
	ck_assert_uint_eq(ngot, nplain);
	ck_assert_mem_eq(got, plain, ngot);
	ck_assert(!b->ops->inside(b));
}

START_TEST(bytes_come_out_as_they_went_in)
{
	uint32_t seed = rvt_seed() + (uint32_t)_i;
	size_t n;

	begin();
	while (nplain < BIG / 2) {
		for (unsigned k = rvt_random(&seed) % 20 + 1; k > 0 && rv_gather_room(g); k--) {
			n = 1 + rvt_random(&seed) % (k % 4 == 0 ? 70000 : k % 4 == 1 ? 3000 : 20);
			(void)rv_gather_fit(g, 12, (uint32_t)n);
			add(n);
		}
		seal(1 + rvt_random(&seed) % 70000);
	}
	for (size_t at = 0; at < nwire; at += n) {
		n = 1 + rvt_random(&seed) % (_i % 2 ? 65536 : 100);
		n = n < nwire - at ? n : nwire - at;
		ck_assert_int_eq(open_wire(wire + at, n, n), 0);
		if (rvt_random(&seed) % 4 == 0)
			b->ops->rest(b, pool);
	}
	same();
	end();
}
END_TEST

START_TEST(single_bytes_are_enough)
{
	begin();
	add(3);
	add(5000);
	seal(1);
	add(1);
	seal(1);
	for (size_t i = 0; i < nwire; i++) {
		ck_assert_int_eq(open_wire(wire + i, 1, 1), 0);
		b->ops->rest(b, pool);
	}
	same();
	end();
}
END_TEST

/* Frames that fit are not torn: a message ends before one that does not. */
START_TEST(frames_are_kept_whole_and_messages_full)
{
	begin();
	add(12); /* control */
	ck_assert_uint_eq(rv_gather_fit(g, 12, 65536), 65518 - 24);
	add(12);
	add(65518 - 24);
	ck_assert_uint_eq(rv_gather_fit(g, 12, 100), 100);
	add(12);
	add(100);
	ck_assert_uint_eq(rv_gather_fit(g, 12, 61500), 61500);
	add(61512);
	/* What is left would be a small piece of a large body, or not hold a small one. */
	ck_assert_uint_eq(rv_gather_fit(g, 12, 65536), 65506);
	ck_assert_uint_eq(g->ncuts, 1);
	add(3);
	seal(SIZE_MAX);
	ck_assert_uint_eq(rv_load_be16(wire), 65534);
	ck_assert_uint_eq(rv_load_be16(wire + 65536), 112 + 61512 + 16);
	ck_assert_uint_eq(rv_load_be16(wire + 65536 + 61642), 3 + 16);
	ck_assert_uint_eq(nwire, nplain + 3 * 18);
	ck_assert_int_eq(open_wire(wire, nwire, 65536), 0);
	same();
	end();
}
END_TEST

/* Bodies larger than any message are cut where it is full. */
START_TEST(bodies_of_any_size_are_carried)
{
	begin();
	add(300000);
	add(200000);
	seal(SIZE_MAX);
	ck_assert_uint_eq(nwire, nplain + 8 * 18);
	ck_assert_int_eq(open_wire(wire, nwire, 65536), 0);
	same();
	end();
}
END_TEST

START_TEST(every_changed_bit_ends_it)
{
	int rc;

	for (size_t bit = 0; bit < 8 * (2 + 40 + 16); bit++) {
		begin();
		add(10);
		seal(100);
		add(40);
		seal(100);
		wire[28 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = open_wire(wire, nwire, 65536);
		/* The message before it is whole, nothing of this one is shown. */
		ck_assert_uint_eq(ngot, 10);
		if (bit < 16 && rc == 0) /* said to be longer: the rest never comes */
			ck_assert(b->ops->inside(b));
		else
			ck_assert_int_eq(rc, REEVE_EPROTO);
		if (rc != 0 && bit >= 16)
			ck_assert_str_eq(b->id, "REEVE-NOISE-0002");
		/* And there is no way back. */
		if (rc != 0)
			ck_assert_int_eq(b->ops->open(b, pool, wire, nwire), rc);
		end();
	}
}
END_TEST

START_TEST(messages_out_of_turn_end_it)
{
	begin();
	for (int i = 0; i < 3; i++) {
		add(20);
		seal(100);
	}
	if (_i == 0) { /* again */
		ck_assert_int_eq(open_wire(wire, 38, 38), 0);
		ck_assert_int_eq(open_wire(wire, 38, 38), REEVE_EPROTO);
	} else if (_i == 1) { /* one is missing */
		ck_assert_int_eq(open_wire(wire, 38, 38), 0);
		ck_assert_int_eq(open_wire(wire + 76, 38, 38), REEVE_EPROTO);
	} else if (_i == 2) { /* the wrong order */
		ck_assert_int_eq(open_wire(wire + 38, 38, 38), REEVE_EPROTO);
	} else { /* our own, back */
		struct rv_filter *swap = a;

		a = b;
		b = swap;
		ck_assert_int_eq(open_wire(wire, 38, 38), REEVE_EPROTO);
	}
	ck_assert_str_eq(b->id, "REEVE-NOISE-0002");
	end();
}
END_TEST

START_TEST(lengths_that_hold_no_tag_are_none)
{
	uint8_t head[2] = {0, (uint8_t)_i};

	begin();
	ck_assert_int_eq(open_wire(head, 2, 1), REEVE_EPROTO);
	ck_assert_str_eq(b->id, "REEVE-NOISE-0001");
	end();
}
END_TEST

/* A message of n bytes by hand, the first of a direction. */
static void
by_hand(size_t n, uint64_t nonce)
{
	uint8_t k[32];
	struct evp_cipher_ctx_st *c;

	memset(k, 1, 32);
	ck_assert_int_eq(rv_aead_create(&c, k, true), 0);
	ck_assert_int_eq(rv_aead_begin(c, nonce), 0);
	rv_store_be16(wire + nwire, (uint16_t)(n + 16));
	ck_assert_int_eq(rv_aead_update(c, wire + nwire + 2, plain + nplain, n), 0);
	ck_assert_int_eq(rv_aead_tag(c, wire + nwire + 2 + n), 0);
	rv_aead_destroy(c);
	nplain += n;
	nwire += n + 18;
}

START_TEST(empty_messages_and_the_largest_are_messages)
{
	static const size_t sizes[] = {0, 65519, 0, 0, 1, 65519, 65519, 0};

	begin();
	for (unsigned i = 0; i < 8; i++)
		by_hand(sizes[i], i);
	ck_assert_int_eq(open_wire(wire, nwire, _i ? 65536 : 9999), 0);
	same();
	end();
}
END_TEST

START_TEST(the_last_nonce_is_never_used)
{
	begin();
	rv_noise_filter_nonce(a, UINT64_MAX, 0);
	add(1);
	ck_assert_int_eq(a->ops->seal(a, pool, g), REEVE_EEXHAUSTED);
	ck_assert_str_eq(a->id, "REEVE-NOISE-0003");
	ck_assert_uint_eq(a->out_left, 0);
	rv_noise_filter_nonce(b, 0, UINT64_MAX - 1);
	nplain = 0;
	by_hand(5, UINT64_MAX - 1);
	ck_assert_int_eq(open_wire(wire, nwire, 65536), 0);
	same();
	by_hand(5, UINT64_MAX);
	ck_assert_int_eq(open_wire(wire + 23, 23, 65536), REEVE_EEXHAUSTED);
	ck_assert_str_eq(b->id, "REEVE-NOISE-0003");
	end();
}
END_TEST

START_TEST(sealing_without_memory_is_tried_again)
{
	begin();
	add(200000);
	for (uint64_t n = 1; n <= 3; n++) {
		rvt_alloc_fail(&counts, n, true);
		ck_assert_int_eq(a->ops->seal(a, pool, g), REEVE_ENOMEM);
		ck_assert_uint_eq(a->out_left, 0);
		rv_pool_trim(pool);
	}
	rvt_alloc_fail(&counts, 0, false);
	seal(SIZE_MAX);
	ck_assert_int_eq(open_wire(wire, nwire, 65536), 0);
	same();
	end();
}
END_TEST

START_TEST(opening_without_memory_ends_it)
{
	begin();
	add(100);
	seal(SIZE_MAX);
	rvt_alloc_fail(&counts, 1, true);
	ck_assert_int_eq(open_wire(wire, nwire, 65536), REEVE_ENOMEM);
	ck_assert_str_eq(b->id, "REEVE-NOISE-0004");
	end();
}
END_TEST

/* What waits for the rest of a message does not keep a large block when it is little. */
START_TEST(resting_keeps_little)
{
	begin();
	add(60000);
	seal(SIZE_MAX);
	ck_assert_int_eq(open_wire(wire, 2 + 100, 65536), 0);
	b->ops->rest(b, pool);
	ck_assert_uint_eq(b->nparts, 1);
	ck_assert_uint_le(b->part[0].slab->cap, 256);
	ck_assert_int_eq(open_wire(wire + 102, 1900, 1), 0);
	b->ops->rest(b, pool);
	ck_assert_uint_le(b->part[0].slab->cap + (b->nparts > 1 ? b->part[1].slab->cap : 0), 66000);
	ck_assert_int_eq(open_wire(wire + 2002, nwire - 2002, 1000), 0);
	same();
	b->ops->rest(b, pool);
	ck_assert_uint_eq(b->nparts, 0);
	/* Nothing is held: all blocks are the pool's. */
	rv_pool_trim(pool);
	ck_assert_uint_lt(rv_arena_bytes(arena), 800000);
	end();
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
	uint64_t before = 0;

	begin();
	for (unsigned i = 0; i < 200; i++) {
		nplain = nwire = ngot = 0;
		add(12);
		add(65000);
		add(30);
		seal(SIZE_MAX);
		ck_assert_int_eq(open_wire(wire, nwire, 65536), 0);
		same();
		b->ops->rest(b, pool);
		if (i == 3)
			before = rv_arena_allocs(arena);
	}
	ck_assert_uint_eq(rv_arena_allocs(arena), before);
	end();
}
END_TEST

/* A read that is full of small messages makes one part, not one a message. */
START_TEST(messages_of_one_read_are_one_part)
{
	begin();
	for (unsigned i = 0; i < 200; i++) {
		add(64);
		seal(SIZE_MAX);
	}
	ck_assert_int_eq(b->ops->open(b, pool, wire, nwire), 0);
	ck_assert_uint_eq(b->nready, 1);
	take();
	same();
	end();
}
END_TEST

START_TEST(what_is_not_taken_is_let_go_of)
{
	begin();
	add(100000);
	ck_assert_int_eq(a->ops->seal(a, pool, g), 0);
	nwire = 0;
	nplain = 0;
	by_hand(1000, 0);
	ck_assert_int_eq(b->ops->open(b, pool, wire, nwire), 0);
	ck_assert_int_eq(b->nready, 1);
	end();
}
END_TEST

RVT_MAIN_TABLE("noise_filter", {&bytes_come_out_as_they_went_in, 4}, {&single_bytes_are_enough, 0},
    {&frames_are_kept_whole_and_messages_full, 0}, {&bodies_of_any_size_are_carried, 0},
    {&every_changed_bit_ends_it, 0}, {&messages_out_of_turn_end_it, 4},
    {&lengths_that_hold_no_tag_are_none, 16}, {&empty_messages_and_the_largest_are_messages, 2},
    {&the_last_nonce_is_never_used, 0}, {&sealing_without_memory_is_tried_again, 0},
    {&opening_without_memory_ends_it, 0}, {&resting_keeps_little, 0},
    {&nothing_is_allocated_in_the_steady_state, 0}, {&messages_of_one_read_are_one_part, 0},
    {&what_is_not_taken_is_let_go_of, 0})
