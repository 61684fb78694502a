/* test_ref.c - reference counts: the last one is told, and sees what the others wrote. */
#include <config.h>

#include "queues/cell.h"
#include "queues/ref.h"

#include "tests/queues/crew.h"

START_TEST(only_the_last_put_says_last)
{
	struct rvq_ref r;

	ck_assert_uint_eq(sizeof(r), 4);
	rvq_ref_init(&r, 2);
	rvq_ref_get(&r);
	ck_assert_uint_eq(rvq_ref_count(&r), 3);
	ck_assert(!rvq_ref_put(&r));
	ck_assert(!rvq_ref_put(&r));
	ck_assert(rvq_ref_put(&r));
}
END_TEST

START_TEST(single_holder_is_told_so)
{
	struct rvq_ref r;

	rvq_ref_init(&r, 1);
	ck_assert(rvq_ref_single(&r));
	rvq_ref_get(&r);
	ck_assert(!rvq_ref_single(&r));
	ck_assert(!rvq_ref_put(&r));
	ck_assert(rvq_ref_single(&r));
}
END_TEST

#define HOLDERS 4

struct shared {
	struct rvq_ref ref;
	unsigned written[HOLDERS]; /* plain: each holder writes its own before it lets go */
};

struct holder {
	struct shared *shared;
	unsigned id;
	struct rvq_cell32 *freed;
};

static void *
hold_and_drop(void *arg)
{
	struct holder *h = arg;
	unsigned i;

	for (i = 0; i < 100; i++) {
		rvq_ref_get(&h->shared->ref);
		ck_assert(!rvq_ref_put(&h->shared->ref));
	}
	h->shared->written[h->id] = 1;
	if (rvq_ref_put(&h->shared->ref)) {
		for (i = 0; i < HOLDERS; i++)
			ck_assert_uint_eq(h->shared->written[i], 1);
		free(h->shared);
		rvq_cell32_add(h->freed, 1);
	}
	return NULL;
}

START_TEST(object_shared_by_threads_is_freed_once)
{
	struct holder holders[HOLDERS];
	struct crew crew = {.n = 0};
	struct rvq_cell32 freed;
	struct shared *s;
	unsigned i, round;

	for (round = 0; round < 50; round++) {
		s = calloc(1, sizeof(*s));
		ck_assert_ptr_nonnull(s);
		rvq_cell32_put(&freed, 0);
		rvq_ref_init(&s->ref, HOLDERS);
		for (i = 0; i < HOLDERS; i++) {
			holders[i] = (struct holder){s, i, &freed};
			crew_start(&crew, hold_and_drop, &holders[i]);
		}
		crew_join(&crew);
		ck_assert_uint_eq(rvq_cell32_get(&freed), 1);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {only_the_last_put_says_last, single_holder_is_told_so,
	    object_shared_by_threads_is_freed_once};

	return rvt_run("ref", tests, sizeof(tests) / sizeof(tests[0]));
}
