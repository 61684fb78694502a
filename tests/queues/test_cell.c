/* test_cell.c - cells: results of each operation, and what a put publishes. */
#include <config.h>

#include "queues/cell.h"

#include "tests/queues/crew.h"

START_TEST(cell32_operations_return_the_value_before)
{
	struct rvq_cell32 c;

	ck_assert_uint_eq(sizeof(c), 4);
	rvq_cell32_put(&c, 1);
	ck_assert_uint_eq(rvq_cell32_or(&c, 6), 1);
	ck_assert_uint_eq(rvq_cell32_and(&c, 5), 7);
	ck_assert_uint_eq(rvq_cell32_add(&c, UINT32_MAX), 5);
	ck_assert_uint_eq(rvq_cell32_swap(&c, 9), 4);
	ck_assert_uint_eq(rvq_cell32_get(&c), 9);
	ck_assert_uint_eq(rvq_cell32_get_relaxed(&c), 9);
}
END_TEST

START_TEST(cell64_operations_use_all_bits)
{
	struct rvq_cell64 c;
	const uint64_t high = UINT64_C(1) << 40;

	ck_assert_uint_eq(sizeof(c), 8);
	rvq_cell64_put(&c, high);
	ck_assert_uint_eq(rvq_cell64_or(&c, 3), high);
	ck_assert_uint_eq(rvq_cell64_and(&c, ~UINT64_C(1)), high + 3);
	ck_assert_uint_eq(rvq_cell64_add(&c, high), high + 2);
	ck_assert_uint_eq(rvq_cell64_swap(&c, 0), 2 * high + 2);
	ck_assert_uint_eq(rvq_cell64_get_relaxed(&c), 0);
}
END_TEST

START_TEST(cas_changes_only_the_expected_value)
{
	struct rvq_cell32 c32;
	struct rvq_cell64 c64;
	struct rvq_cellptr p;

	rvq_cell32_put(&c32, 1);
	ck_assert(!rvq_cell32_cas(&c32, 2, 3));
	ck_assert(rvq_cell32_cas(&c32, 1, 3));
	ck_assert_uint_eq(rvq_cell32_get(&c32), 3);
	rvq_cell64_put(&c64, 1);
	ck_assert(!rvq_cell64_cas(&c64, 2, 3));
	ck_assert(rvq_cell64_cas(&c64, 1, 3));
	ck_assert_uint_eq(rvq_cell64_get(&c64), 3);
	rvq_cellptr_put(&p, NULL);
	ck_assert(!rvq_cellptr_cas(&p, &c32, &c64));
	ck_assert(rvq_cellptr_cas(&p, NULL, &c64));
	ck_assert_ptr_eq(rvq_cellptr_get(&p), &c64);
	ck_assert_ptr_eq(rvq_cellptr_swap(&p, NULL), &c64);
	ck_assert_ptr_null(rvq_cellptr_get_relaxed(&p));
}
END_TEST

#define WRITERS 3
#define TAKEN   UINT32_C(0x80000000)

struct desk {
	struct rvq_cell32 lock;
	uint64_t plain; /* under the lock */
	struct rvq_cellptr published;
	struct rvq_cell64 turns;
};

static void *
take_turns(void *arg)
{
	struct desk *d = arg;
	uint64_t end = crew_now_us() + CREW_STRESS_US, *mine, *old, turns = 0;

	while (crew_now_us() < end) {
		while (rvq_cell32_or(&d->lock, TAKEN) & TAKEN)
			sched_yield();
		d->plain++;
		rvq_cell32_and(&d->lock, ~TAKEN);
		turns++;
		mine = malloc(sizeof(*mine));
		ck_assert_ptr_nonnull(mine);
		*mine = turns;
		old = rvq_cellptr_swap(&d->published, mine);
		if (old != NULL)
			ck_assert_uint_gt(*old, 0);
		free(old);
	}
	rvq_cell64_add(&d->turns, turns);
	return NULL;
}

START_TEST(cells_publish_plain_memory_between_threads)
{
	static struct desk d;
	struct crew crew = {.n = 0};
	unsigned i;

	for (i = 0; i < WRITERS; i++)
		crew_start(&crew, take_turns, &d);
	crew_join(&crew);
	free(rvq_cellptr_get(&d.published));
	ck_assert_uint_eq(d.plain, rvq_cell64_get(&d.turns));
}
END_TEST

struct swings {
	struct rvq_cell32 x, y, round;
	uint32_t r[2];
	struct rvq_cell32 done;
};

static void *
swing_second(void *arg)
{
	struct swings *s = arg;
	uint32_t round, last = 0;

	for (;;) {
		while ((round = rvq_cell32_get(&s->round)) == last)
			;
		if (round == UINT32_MAX)
			return NULL;
		last = round;
		rvq_cell32_put(&s->y, 1);
		rvq_fence_full();
		s->r[1] = rvq_cell32_get_relaxed(&s->x);
		rvq_cell32_put(&s->done, round);
	}
}

/* Store, fence, load on both sides: not both may miss the other. */
START_TEST(full_fence_orders_a_store_before_a_load)
{
	static struct swings s;
	struct crew crew = {.n = 0};
	uint64_t end = crew_now_us() + CREW_STRESS_US;
	uint32_t round = 0;

	crew_start(&crew, swing_second, &s);
	while (crew_now_us() < end) {
		rvq_cell32_put(&s.x, 0);
		rvq_cell32_put(&s.y, 0);
		rvq_cell32_put(&s.round, ++round);
		rvq_cell32_put(&s.x, 1);
		rvq_fence_full();
		s.r[0] = rvq_cell32_get_relaxed(&s.y);
		while (rvq_cell32_get(&s.done) != round)
			;
		ck_assert(s.r[0] || s.r[1]);
	}
	rvq_cell32_put(&s.round, UINT32_MAX);
	crew_join(&crew);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {cell32_operations_return_the_value_before,
	    cell64_operations_use_all_bits, cas_changes_only_the_expected_value,
	    cells_publish_plain_memory_between_threads, full_fence_orders_a_store_before_a_load};

	return rvt_run("cell", tests, sizeof(tests) / sizeof(tests[0]));
}
