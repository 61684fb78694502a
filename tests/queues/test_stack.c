/* test_stack.c - the take-all stack: order, who wakes, closing, and pushes that race with a close.
 *  */
#include <config.h>

#include "queues/cell.h"
#include "queues/stack.h"

#include "tests/queues/crew.h"

static unsigned
chain_length(const struct rvq_link *l)
{
	unsigned n = 0;

	for (; l != NULL; l = l->next)
		n++;
	return n;
}

START_TEST(only_the_push_into_an_empty_stack_is_first)
{
	struct rvq_stack s;
	struct rvq_link l[3];

	rvq_stack_init(&s);
	ck_assert(rvq_stack_empty(&s));
	ck_assert_int_eq(rvq_stack_push_mpsc(&s, &l[0]), RVQ_FIRST);
	ck_assert(!rvq_stack_empty(&s));
	ck_assert_int_eq(rvq_stack_push_mpsc(&s, &l[1]), RVQ_PUSHED);
	ck_assert_uint_eq(chain_length(rvq_stack_take_mpsc(&s)), 2);
	ck_assert(rvq_stack_empty(&s));
	ck_assert_int_eq(rvq_stack_push_mpsc(&s, &l[2]), RVQ_FIRST);
}
END_TEST

START_TEST(take_gives_the_newest_first)
{
	struct rvq_stack s;
	struct rvq_link l[3], *got;
	unsigned i;

	rvq_stack_init(&s);
	ck_assert_ptr_null(rvq_stack_take_mpsc(&s));
	for (i = 0; i < 3; i++)
		rvq_stack_push_mpsc(&s, &l[i]);
	got = rvq_stack_take_mpsc(&s);
	for (i = 3; i-- > 0; got = got->next)
		ck_assert_ptr_eq(got, &l[i]);
	ck_assert_ptr_null(got);
	ck_assert_ptr_null(rvq_stack_take_mpsc(&s));
}
END_TEST

START_TEST(take_fifo_gives_the_oldest_first)
{
	struct rvq_stack s;
	struct rvq_link l[3], *got;
	unsigned i, len;

	rvq_stack_init(&s);
	for (len = 0; len <= 3; len++) {
		for (i = 0; i < len; i++)
			rvq_stack_push_mpsc(&s, &l[i]);
		got = rvq_stack_take_fifo_mpsc(&s);
		for (i = 0; i < len; i++, got = got->next)
			ck_assert_ptr_eq(got, &l[i]);
		ck_assert_ptr_null(got);
	}
}
END_TEST

START_TEST(closed_stack_refuses_for_ever)
{
	struct rvq_stack s;
	struct rvq_link l[2];

	rvq_stack_init(&s);
	rvq_stack_push_mpsc(&s, &l[0]);
	ck_assert_ptr_eq(rvq_stack_close(&s), &l[0]);
	ck_assert(rvq_stack_empty(&s));
	ck_assert_int_eq(rvq_stack_push_mpsc(&s, &l[1]), RVQ_CLOSED);
	ck_assert_ptr_null(rvq_stack_take_mpsc(&s));
	ck_assert_ptr_null(rvq_stack_take_fifo_mpsc(&s));
	ck_assert_ptr_null(rvq_stack_close(&s));
	ck_assert_int_eq(rvq_stack_push_mpsc(&s, &l[1]), RVQ_CLOSED);
}
END_TEST

START_TEST(closing_an_empty_stack_returns_nothing)
{
	struct rvq_stack s;
	struct rvq_link l;

	rvq_stack_init(&s);
	ck_assert_ptr_null(rvq_stack_close(&s));
	ck_assert_int_eq(rvq_stack_push_mpsc(&s, &l), RVQ_CLOSED);
}
END_TEST

#define PUSHERS 3

struct parcel {
	struct rvq_link link; /* first */
	unsigned pusher;
	uint64_t seq;
};

struct yard {
	struct rvq_stack stack;
	struct rvq_cell64 pushed, firsts;
};

struct pusher {
	struct yard *yard;
	unsigned id;
};

static void *
push_until_closed(void *arg)
{
	struct pusher *p = arg;
	uint64_t seq = 0, firsts = 0;
	enum rvq_push pushed;
	struct parcel *parcel;

	for (;; seq++) {
		parcel = malloc(sizeof(*parcel));
		ck_assert_ptr_nonnull(parcel);
		parcel->pusher = p->id;
		parcel->seq = seq;
		pushed = rvq_stack_push_mpsc(&p->yard->stack, &parcel->link);
		if (pushed == RVQ_CLOSED)
			break;
		firsts += pushed == RVQ_FIRST;
	}
	free(parcel);
	rvq_cell64_add(&p->yard->pushed, seq);
	rvq_cell64_add(&p->yard->firsts, firsts);
	return NULL;
}

static uint64_t
unload(struct rvq_link *l, uint64_t next[PUSHERS])
{
	struct rvq_link *after;
	struct parcel *p;
	uint64_t n = 0;

	for (; l != NULL; l = after, n++) {
		after = l->next;
		p = (struct parcel *)(void *)l;
		ck_assert_uint_eq(p->seq, next[p->pusher]);
		next[p->pusher]++;
		free(p);
	}
	return n;
}

/* Every push is taken once, or was refused; and exactly one push per filled take was the first. */
START_TEST(pushes_racing_with_takes_and_a_close_balance)
{
	static struct yard y;
	struct pusher pushers[PUSHERS];
	uint64_t next[PUSHERS], taken, fills, n, end, stop = crew_now_us() + CREW_STRESS_US;
	struct crew crew = {.n = 0};
	unsigned i, rounds = 0;

	for (; rounds == 0 || crew_now_us() < stop; rounds++) {
		y = (struct yard){.stack = {0}};
		taken = fills = 0;
		for (i = 0; i < PUSHERS; i++) {
			next[i] = 0;
			pushers[i] = (struct pusher){&y, i};
			crew_start(&crew, push_until_closed, &pushers[i]);
		}
		for (end = crew_now_us() + 5000; crew_now_us() < end; taken += n) {
			n = unload(rvq_stack_take_fifo_mpsc(&y.stack), next);
			fills += n > 0;
		}
		n = unload(rvq_link_reverse(rvq_stack_close(&y.stack)), next);
		fills += n > 0;
		taken += n;
		crew_join(&crew);
		ck_assert_uint_eq(taken, rvq_cell64_get(&y.pushed));
		ck_assert_uint_eq(fills, rvq_cell64_get(&y.firsts));
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {only_the_push_into_an_empty_stack_is_first,
	    take_gives_the_newest_first, take_fifo_gives_the_oldest_first,
	    closed_stack_refuses_for_ever, closing_an_empty_stack_returns_nothing,
	    pushes_racing_with_takes_and_a_close_balance};

	return rvt_run("stack", tests, sizeof(tests) / sizeof(tests[0]));
}
