/* test_latch.c - the latch: set once, seen by all, and free to go as soon as it is seen. */
#include <config.h>

#include "queues/latch.h"

#include <reeve/error.h>

#include "tests/queues/crew.h"

START_TEST(unset_latch_waits_until_the_deadline)
{
	struct rvq_latch l;
	uint64_t end = crew_now_us() + 20000;

	rvq_latch_init(&l);
	ck_assert(!rvq_latch_isset(&l));
	ck_assert_int_eq(rvq_latch_wait(&l, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(rvq_latch_wait(&l, end), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(crew_now_us(), end);
}
END_TEST

START_TEST(set_latch_stays_set)
{
	struct rvq_latch l;

	rvq_latch_init(&l);
	rvq_latch_set(&l);
	ck_assert(rvq_latch_isset(&l));
	ck_assert_int_eq(rvq_latch_wait(&l, 1), 0);
	ck_assert_int_eq(rvq_latch_wait(&l, UINT64_MAX), 0);
}
END_TEST

struct errand {
	struct rvq_latch done;
	unsigned result; /* plain: the latch publishes it */
};

static void *
run_errand(void *arg)
{
	struct errand *e = arg;

	e->result = 42;
	rvq_latch_set(&e->done);
	return NULL;
}

/* The waiter frees the latch at once, asleep or awake when it was set. */
START_TEST(waiter_may_free_the_latch_as_soon_as_it_is_set)
{
	struct crew crew = {.n = 0};
	struct errand *e;
	unsigned i;

	for (i = 0; i < 300; i++) {
		e = malloc(sizeof(*e));
		ck_assert_ptr_nonnull(e);
		rvq_latch_init(&e->done);
		crew_start(&crew, run_errand, e);
		if (i % 2 == 0)
			while (!rvq_latch_isset(&e->done))
				sched_yield();
		ck_assert_int_eq(rvq_latch_wait(&e->done, crew_now_us() + 5000000), 0);
		ck_assert_uint_eq(e->result, 42);
		free(e);
		crew_join(&crew);
	}
}
END_TEST

static void *
wait_for_latch(void *arg)
{
	ck_assert_int_eq(rvq_latch_wait(arg, crew_now_us() + 5000000), 0);
	return NULL;
}

START_TEST(every_sleeper_wakes)
{
	struct rvq_latch l;
	struct crew crew = {.n = 0};
	unsigned i, round;

	for (round = 0; round < 50; round++) {
		rvq_latch_init(&l);
		for (i = 0; i < 4; i++)
			crew_start(&crew, wait_for_latch, &l);
		rvq_latch_set(&l);
		crew_join(&crew);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {unset_latch_waits_until_the_deadline, set_latch_stays_set,
	    waiter_may_free_the_latch_as_soon_as_it_is_set, every_sleeper_wakes};

	return rvt_run("latch", tests, sizeof(tests) / sizeof(tests[0]));
}
