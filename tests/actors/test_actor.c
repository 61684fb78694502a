/* Turns and scheduling: who runs an actor, how long, and what becomes of it when its worker is gone. */
#include <config.h>

#include "actors/actor.h"
#include "actors/runtime.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

struct probe {
	struct rva_actor a;
	struct rvq_bell bell;
	struct rva_msg msg[200];
	unsigned seen, freed, bells;
	uintptr_t last;
	uint32_t bits;
};

static void
probe_on(struct rva_actor *a, struct rvq_node *n)
{
	struct probe *p = rva_container(a, struct probe, a);

	if (n == &p->bell.node) {
		p->bells++;
		p->bits |= rvq_bell_answer(&p->bell);
		if (p->bits & 0x80u)
			a->dead = true;
		return;
	}
	p->seen++;
	p->last = ((struct rva_msg *)(void *)n)->kind;
}

static void
probe_free(struct rva_actor *a)
{
	rva_container(a, struct probe, a)->freed++;
}

static const struct rva_actor_ops ops = {probe_on, probe_free, true};
static struct probe p;

/* Its worker exists but nobody runs it: a turn is taken by hand. */
static void
idle_worker(struct rvt_duo *d)
{
	rvt_duo_rt(d, 0);
	rva_actor_init(&p.a, &d->rt->workers[0], &ops);
	rvq_bell_init(&p.bell);
	for (unsigned i = 0; i < 200; i++)
		p.msg[i].kind = i + 1;
}

/* As the worker does: off the inbox, then a turn. */
static bool
turn(struct rvt_duo *d, bool from_inbox, uint64_t *handled)
{
	if (from_inbox)
		ck_assert_ptr_eq(rvq_stack_take_fifo_mpsc(&d->rt->workers[0].inbox), &p.a.link);
	return rva_actor_turn(&p.a, 64, handled);
}

START_TEST(a_turn_handles_at_most_its_budget)
{
	struct rvt_duo d;
	uint64_t handled = 0;

	idle_worker(&d);
	for (int i = 0; i < 100; i++)
		rva_post(&p.a, &p.msg[i].node);
	ck_assert(turn(&d, true, &handled));
	ck_assert_uint_eq(p.seen, 64);
	ck_assert_uint_eq(p.last, 64);
	ck_assert(!turn(&d, false, &handled));
	ck_assert_uint_eq(p.seen, 100);
	ck_assert_uint_eq(handled, 100);
	ck_assert_uint_eq(p.freed, 0);
	rvt_duo_end(&d);
	ck_assert_uint_eq(p.seen, 100);
}
END_TEST

START_TEST(a_bell_rung_often_is_one_message_with_all_bits)
{
	struct rvt_duo d;
	uint64_t handled = 0;

	idle_worker(&d);
	for (uint32_t i = 0; i < 5; i++)
		rva_ring(&p.a, &p.bell, 1u << i);
	ck_assert(!turn(&d, true, &handled));
	ck_assert_uint_eq(p.bells, 1);
	ck_assert_uint_eq(p.bits, 31);
	rva_ring(&p.a, &p.bell, 0x40u);
	ck_assert(!turn(&d, true, &handled));
	ck_assert_uint_eq(p.bells, 2);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_dead_actor_is_freed_behind_its_last_message)
{
	struct rvt_duo d;
	uint64_t handled = 0;

	idle_worker(&d);
	rva_ring(&p.a, &p.bell, 0x80u);
	rva_post(&p.a, &p.msg[0].node);
	ck_assert(!turn(&d, true, &handled));
	ck_assert_uint_eq(p.seen, 1);
	ck_assert_uint_eq(p.freed, 1);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(posts_after_the_worker_is_gone_run_here)
{
	struct rvt_duo d;

	idle_worker(&d);
	rva_post(&p.a, &p.msg[0].node); /* waits in the inbox: the end of the worker answers it */
	ck_assert(!rva_is_owner(&p.a));
	d.c[0] = NULL;
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, NULL), 0); /* keeps the worker's memory */
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	ck_assert_uint_eq(p.seen, 1);
	ck_assert(rva_is_owner(&p.a));
	for (int i = 1; i < 100; i++) {
		rva_post(&p.a, &p.msg[i].node);
		ck_assert_uint_eq(p.seen, (unsigned)i + 1);
	}
	rva_ring(&p.a, &p.bell, 0x80u);
	ck_assert_uint_eq(p.freed, 1);
	rvt_duo_end(&d);
}
END_TEST

static void *
post_share(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg;

	for (unsigned i = first; i < first + 50; i++)
		rva_post(&p.a, &p.msg[i].node);
	return NULL;
}

START_TEST(posts_that_race_with_the_end_are_all_handled)
{
	struct rvt_duo d;
	pthread_t t[4];

	for (int round = 0; round < 20; round++) {
		rvt_duo_rt(&d, 1);
		ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, NULL), 0);
		rva_actor_init(&p.a, &d.rt->workers[0], &ops);
		rvq_bell_init(&p.bell);
		p.seen = 0;
		for (unsigned i = 0; i < 4; i++)
			ck_assert_int_eq(
			    pthread_create(&t[i], NULL, post_share, (void *)(uintptr_t)(i * 50)),
			    0);
		reeve_rt_destroy(d.rt);
		d.rt = NULL;
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		ck_assert_uint_eq(p.seen, 200);
		rvt_duo_end(&d);
	}
}
END_TEST

RVT_MAIN("actor", &a_turn_handles_at_most_its_budget,
    &a_bell_rung_often_is_one_message_with_all_bits, &a_dead_actor_is_freed_behind_its_last_message,
    &posts_after_the_worker_is_gone_run_here, &posts_that_race_with_the_end_are_all_handled)
