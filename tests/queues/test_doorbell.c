/* test_doorbell.c - the bell: rings merge, an answered bell rings again, nothing announced is
 * missed. */
#include <config.h>

#include "queues/cell.h"
#include "queues/doorbell.h"

#include "tests/queues/crew.h"

START_TEST(first_ring_posts_and_the_next_merge)
{
	struct rvq_mailbox m;
	struct rvq_bell b;

	rvq_mailbox_init(&m);
	rvq_bell_init(&b);
	ck_assert(rvq_bell_ring_mpsc(&b, &m, 1));
	ck_assert(!rvq_bell_ring_mpsc(&b, &m, 4));
	ck_assert(!rvq_bell_ring_mpsc(&b, &m, 1));
	ck_assert_ptr_eq(rvq_bell_of(rvq_mailbox_pop_mpsc(&m)), &b);
	ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
	ck_assert_uint_eq(rvq_bell_answer(&b), 5);
	ck_assert_uint_eq(rvq_bell_answer(&b), 0);
}
END_TEST

START_TEST(ring_between_pop_and_answer_is_in_the_answer)
{
	struct rvq_mailbox m;
	struct rvq_bell b;

	rvq_mailbox_init(&m);
	rvq_bell_init(&b);
	rvq_bell_ring_mpsc(&b, &m, 1);
	ck_assert_ptr_nonnull(rvq_mailbox_pop_mpsc(&m));
	ck_assert(!rvq_bell_ring_mpsc(&b, &m, 2));
	ck_assert_uint_eq(rvq_bell_answer(&b), 3);
	ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
}
END_TEST

START_TEST(answered_bell_posts_again)
{
	struct rvq_mailbox m;
	struct rvq_bell b;
	unsigned i;

	rvq_mailbox_init(&m);
	rvq_bell_init(&b);
	for (i = 0; i < 3; i++) {
		rvq_bell_ring_mpsc(&b, &m, 1);
		ck_assert_ptr_eq(rvq_mailbox_pop_mpsc(&m), &b.node);
		ck_assert_uint_eq(rvq_bell_answer(&b), 1);
	}
	ck_assert_ptr_null(rvq_mailbox_pop_mpsc(&m));
	ck_assert(rvq_mailbox_idle_mpsc(&m));
	ck_assert(rvq_bell_ring_mpsc(&b, &m, 1)); /* the mailbox was idle: schedule */
}
END_TEST

START_TEST(bells_keep_their_order_and_their_bits)
{
	struct rvq_mailbox m;
	struct rvq_bell b[2];

	rvq_mailbox_init(&m);
	rvq_bell_init(&b[0]);
	rvq_bell_init(&b[1]);
	rvq_bell_ring_mpsc(&b[1], &m, 2);
	rvq_bell_ring_mpsc(&b[0], &m, 1);
	ck_assert_ptr_eq(rvq_bell_of(rvq_mailbox_pop_mpsc(&m)), &b[1]);
	ck_assert_uint_eq(rvq_bell_answer(&b[1]), 2);
	ck_assert_ptr_eq(rvq_bell_of(rvq_mailbox_pop_mpsc(&m)), &b[0]);
	ck_assert_uint_eq(rvq_bell_answer(&b[0]), 1);
}
END_TEST

#define RINGERS 3

struct house {
	struct rvq_mailbox box;
	struct rvq_bell bell;
	struct rvq_cell64 news[RINGERS];
	struct rvq_cell32 ringers;
};

struct ringer {
	struct house *house;
	unsigned id;
};

static void *
ring_all(void *arg)
{
	struct ringer *r = arg;
	uint64_t end = crew_now_us() + CREW_STRESS_US, n = 0;

	while (crew_now_us() < end) {
		rvq_cell64_put(&r->house->news[r->id], ++n);
		rvq_bell_ring_mpsc(&r->house->bell, &r->house->box, 1U << r->id);
		if (n % 8 == 0)
			sched_yield();
	}
	rvq_cell32_add(&r->house->ringers, UINT32_MAX);
	return NULL;
}

/* The owner looks at the news only when a bit says so; at the end it must know the last of each. */
START_TEST(news_are_never_missed)
{
	static struct house h;
	struct ringer ringers[RINGERS];
	uint64_t seen[RINGERS] = {0}, end = crew_now_us() + 10 * CREW_STRESS_US;
	struct crew crew = {.n = 0};
	unsigned i, complete = 0;
	uint32_t bits, left = RINGERS;

	rvq_mailbox_init(&h.box);
	rvq_bell_init(&h.bell);
	rvq_cell32_put(&h.ringers, RINGERS);
	for (i = 0; i < RINGERS; i++) {
		ringers[i] = (struct ringer){&h, i};
		crew_start(&crew, ring_all, &ringers[i]);
	}
	while (complete < RINGERS && crew_now_us() < end) {
		left = rvq_cell32_get(&h.ringers);
		if (rvq_mailbox_pop_mpsc(&h.box) == NULL) {
			if (left == 0)
				break; /* every ring came before: what is not seen now is lost */
			sched_yield();
			continue;
		}
		bits = rvq_bell_answer(&h.bell);
		ck_assert_uint_ne(bits, 0);
		for (i = 0; i < RINGERS; i++)
			if (bits & (1U << i))
				seen[i] = rvq_cell64_get(&h.news[i]);
	}
	crew_join(&crew);
	ck_assert_uint_eq(left, 0);
	for (i = 0; i < RINGERS; i++)
		ck_assert_uint_eq(seen[i], rvq_cell64_get(&h.news[i]));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {first_ring_posts_and_the_next_merge,
	    ring_between_pop_and_answer_is_in_the_answer, answered_bell_posts_again,
	    bells_keep_their_order_and_their_bits, news_are_never_missed};

	return rvt_run("doorbell", tests, sizeof(tests) / sizeof(tests[0]));
}
