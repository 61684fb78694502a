/* test_pool_race.c - blocks that cross threads: home without the allocator, and into a pool that closes. */
#include <config.h>

#include "lib/buf/slice.h"

#include "tests/kit/alloc.h"
#include "tests/kit/run.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#define IN_FLIGHT 32
#define BLOCKS    20000
#define FREERS    3
#define HELD      16
#define ROUNDS    150

static struct rvt_alloc t;
static struct rv_arena *ar;
static struct rvq_stack
    mail; /* blocks on their way, by the link that is free while they are in use */
static struct rvq_gauge in_flight, started;

static struct rv_slab *
slab_of(struct rvq_link *l)
{
	return (struct rv_slab *)(void *)((char *)l - offsetof(struct rv_slab, link));
}

/* A worker with a pool of its own that lets go of what comes, until the mail is told to be empty. */
static void *
consume(void *arg)
{
	struct rv_pool *mine = rv_pool_create(ar);
	unsigned long left = BLOCKS;
	struct rvq_link *l, *next;

	(void)arg;
	rv_pool_enter(mine);
	while (left > 0) {
		l = rvq_stack_take_mpsc(&mail);
		if (l == NULL)
			sched_yield();
		for (; l != NULL; l = next, left--) {
			next = l->next;
			if (slab_of(l)->data[0] != 0x77)
				abort();
			rv_slab_unref(slab_of(l));
			rvq_gauge_sub(&in_flight, 1);
		}
	}
	rv_pool_close(mine);
	return NULL;
}

START_TEST(blocks_come_home_and_the_allocator_is_not_called)
{
	struct rv_pool *pool;
	struct rv_slab *s;
	pthread_t thread;
	unsigned i;

	rvt_alloc_init(&t);
	rvq_stack_init(&mail);
	ar = rv_arena_create(&t.a);
	pool = rv_pool_create(ar);
	rv_pool_enter(pool);
	ck_assert_int_eq(pthread_create(&thread, NULL, consume, NULL), 0);
	for (i = 0; i < BLOCKS; i++) {
		while (rvq_gauge_get(&in_flight) >= IN_FLIGHT)
			sched_yield();
		rvq_gauge_add(&in_flight, 1);
		s = rv_slab_get(pool, 16384);
		s->data[0] = 0x77;
		rvq_stack_push_mpsc(&mail, &s->link);
	}
	pthread_join(thread, NULL);
	/* two pools, and no more blocks than were ever on their way together */
	ck_assert_uint_le(rv_arena_allocs(ar), 2 + IN_FLIGHT);
	rv_pool_close(pool);
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}
END_TEST

struct freer {
	struct rv_slab *held[HELD];
};

static void *
let_go(void *arg)
{
	struct freer *f = arg;
	unsigned i;

	rvq_gauge_add(&started, 1);
	while (rvq_gauge_get(&started) <= FREERS) /* the closer is the last */
		sched_yield();
	for (i = 0; i < HELD; i++)
		rv_slab_unref(f->held[i]);
	return NULL;
}

static void
close_round(void)
{
	static const size_t sizes[] = {100, 2000, 16000, 60000, 100000};
	struct rv_pool *pool = rv_pool_create(ar);
	struct rv_budget *b = rv_budget_create(ar, 1 << 20, NULL);
	struct freer f[FREERS];
	pthread_t thread[FREERS];
	unsigned i, j;

	rv_pool_enter(pool);
	for (i = 0; i < FREERS; i++)
		for (j = 0; j < HELD; j++) {
			f[i].held[j] = rv_slab_get(pool, sizes[j % 5]);
			rv_slab_charge(f[i].held[j], b);
		}
	rvq_gauge_sub(&started, rvq_gauge_get(&started));
	for (i = 0; i < FREERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, let_go, &f[i]), 0);
	while (rvq_gauge_get(&started) < FREERS)
		sched_yield();
	rvq_gauge_add(&started, 1);
	rv_pool_close(pool);
	for (i = 0; i < FREERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(rvq_gauge_get(&b->held), 0);
	rv_budget_unref(b);
}

START_TEST(closing_a_pool_races_with_returns)
{
	unsigned i;

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	for (i = 0; i < ROUNDS; i++)
		close_round();
	ck_assert_uint_eq(rv_arena_bytes(ar), 0);
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}
END_TEST

/* Slices of one block, let go by several threads while the owner still cuts and the pool closes. */
static void *
drop_slices(void *arg)
{
	reeve_buf_t **b = arg, *again;
	unsigned i;

	rvq_gauge_add(&started, 1);
	for (i = 0; i < HELD; i++) {
		again = rv_buf_slice(b[i], 1, 1);
		if (rv_buf_data(again)[0] != 0x42)
			abort();
		rv_buf_unref(b[i]);
		rv_buf_unref(again);
	}
	return NULL;
}

START_TEST(slices_of_one_block_are_dropped_by_many)
{
	reeve_buf_t *b[FREERS][HELD], *own;
	pthread_t thread[FREERS];
	struct rv_pool *pool;
	struct rv_slab *s;
	unsigned i, j, round;

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	for (round = 0; round < ROUNDS; round++) {
		pool = rv_pool_create(ar);
		rv_pool_enter(pool);
		s = rv_slab_get(pool, 65536);
		for (i = 0; i < FREERS; i++)
			for (j = 0; j < HELD; j++) {
				s->data[i * 1000 + j * 10 + 1] = 0x42;
				b[i][j] = rv_buf_cut(s, i * 1000 + j * 10, 10);
			}
		for (i = 0; i < FREERS; i++)
			pthread_create(&thread[i], NULL, drop_slices, b[i]);
		own = rv_buf_cut(s, 60000, 100);
		rv_slab_unref(s);
		rv_buf_unref(own);
		rv_pool_close(pool);
		for (i = 0; i < FREERS; i++)
			pthread_join(thread[i], NULL);
	}
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}
END_TEST

RVT_MAIN("pool_race", &blocks_come_home_and_the_allocator_is_not_called,
    &closing_a_pool_races_with_returns, &slices_of_one_block_are_dropped_by_many)
