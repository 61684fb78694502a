/* test_counter.c - statistics: one writer and many readers, many writers of a gauge. */
#include <config.h>

#include "queues/cell.h"
#include "queues/counter.h"

#include "tests/queues/crew.h"

START_TEST(counter_adds_sets_and_keeps_the_maximum)
{
	struct rvq_counter c;

	rvq_counter_set(&c, 5);
	rvq_counter_add(&c, UINT64_C(1) << 40);
	ck_assert_uint_eq(rvq_counter_get(&c), (UINT64_C(1) << 40) + 5);
	rvq_counter_set(&c, 7);
	rvq_counter_max(&c, 6);
	ck_assert_uint_eq(rvq_counter_get(&c), 7);
	rvq_counter_max(&c, 8);
	ck_assert_uint_eq(rvq_counter_get(&c), 8);
}
END_TEST

#define WRITERS 3
#define ROUNDS  20000

static void *
raise_and_lower(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		ck_assert_uint_ge(rvq_gauge_add(arg, 2), 2);
		rvq_gauge_sub(arg, 1);
	}
	return NULL;
}

START_TEST(gauge_balances_over_threads)
{
	struct rvq_gauge g = {0};
	struct crew crew = {.n = 0};
	unsigned i;

	for (i = 0; i < WRITERS; i++)
		crew_start(&crew, raise_and_lower, &g);
	crew_join(&crew);
	ck_assert_uint_eq(rvq_gauge_get(&g), WRITERS * ROUNDS);
	ck_assert_uint_eq(rvq_gauge_sub(&g, WRITERS * ROUNDS), 0);
}
END_TEST

struct watched {
	struct rvq_counter counter;
	struct rvq_cell32 stop;
};

static void *
watch(void *arg)
{
	struct watched *w = arg;
	uint64_t last = 0, now;

	while (!rvq_cell32_get(&w->stop)) {
		now = rvq_counter_get(&w->counter);
		ck_assert_uint_ge(now, last);
		last = now;
		sched_yield();
	}
	return NULL;
}

START_TEST(readers_see_a_counter_only_rise)
{
	static struct watched w;
	struct crew crew = {.n = 0};
	unsigned i;

	crew_start(&crew, watch, &w);
	for (i = 0; i < 10 * ROUNDS; i++)
		rvq_counter_add(&w.counter, 3);
	rvq_cell32_put(&w.stop, 1);
	crew_join(&crew);
	ck_assert_uint_eq(rvq_counter_get(&w.counter), 30 * ROUNDS);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {counter_adds_sets_and_keeps_the_maximum,
	    gauge_balances_over_threads, readers_see_a_counter_only_rise};

	return rvt_run("counter", tests, sizeof(tests) / sizeof(tests[0]));
}
