/* Operations below the public calls: one of claim and cancel wins, lists, the record behind a blocking call. */
#include <config.h>

#include "actors/op.h"
#include "actors/runtime.h"
#include "lib/alloc.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

/* An actor that answers operations, and one that leaves them alone. */
struct server {
	struct rva_actor a;
	struct rva_oplist waiting;
	bool answers;
	unsigned cancels;
};

static void
server_on(struct rva_actor *a, struct rvq_node *n)
{
	struct server *s = rva_container(a, struct server, a);
	struct rva_msg *m = (struct rva_msg *)(void *)n;

	if (m->kind == RVA_MSG_CANCEL) {
		s->cancels++;
		(void)rva_oplist_remove(&s->waiting, rva_op_of_cancel(n));
		rva_op_finish(rva_op_of_cancel(n), REEVE_ECANCELED);
	} else if (s->answers) {
		(void)rva_op_answer(rva_op_of_msg(n), 42);
	} else {
		rva_oplist_push(&s->waiting, rva_op_of_msg(n));
	}
}

static const struct rva_actor_ops ops = {server_on, NULL, true};
static struct server server;

static void
begin(struct rvt_duo *d, bool answers)
{
	rvt_duo_rt(d, 1);
	rva_actor_init(&server.a, &d->rt->workers[0], &ops);
	rva_oplist_init(&server.waiting);
	server.answers = answers;
}

static unsigned unrefs;

static void
unref(void *arg)
{
	(void)__atomic_fetch_add((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
}

START_TEST(an_operation_is_answered_and_its_reference_dropped)
{
	struct rvt_duo d;
	struct rvt_done done;

	begin(&d, true);
	rvt_done_init(&done, -1);
	rva_op_start(&done.op, &server.a, RVA_MSG_PING, &unrefs, unref);
	ck_assert_int_eq(rvt_done_wait(&done), 42);
	RVT_UNTIL(__atomic_load_n(&unrefs, __ATOMIC_SEQ_CST) == 1);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(claim_and_cancel_exclude_each_other)
{
	reeve_op_t op = REEVE_OP(NULL, NULL);
	struct rvt_duo d;

	begin(&d, false);
	rva_op_prepare(&op, &server.a, RVA_MSG_PING, NULL, NULL);
	ck_assert(rva_op_claim(&op));
	ck_assert(!rva_op_claim(&op));
	ck_assert(!rva_op_cancel(&op));
	rva_op_prepare(&op, &server.a, RVA_MSG_PING, NULL, NULL);
	ck_assert(rva_op_cancel(&op));
	ck_assert(!rva_op_cancel(&op));
	ck_assert(!rva_op_claim(&op));
	ck_assert(!rva_op_answer(&op, 1));
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_ECANCELED);
	rvt_duo_end(&d);
}
END_TEST

struct canceller {
	struct rvt_done *done;
	struct rvq_cell32 go; /* how many may be cancelled: publishes them */
};

static void *
cancel_it(void *arg)
{
	struct canceller *c = arg;

	for (unsigned i = 1; i <= 300; i++) {
		while (rvq_cell32_get(&c->go) < i)
			sched_yield();
		if (rvq_cell32_get(&c->go) > 1000)
			break;
		reeve_op_cancel(&c->done[i - 1].op);
	}
	return NULL;
}

START_TEST(answers_and_cancels_of_two_threads_complete_once)
{
	struct rvt_duo d;
	static struct rvt_done done[300];
	struct canceller c = {.done = done};
	pthread_t t;
	unsigned cancelled = 0;

	begin(&d, true);
	ck_assert_int_eq(pthread_create(&t, NULL, cancel_it, &c), 0);
	for (int i = 0; i < 300; i++) {
		rvt_done_init(&done[i], -1);
		/* Prepared, so that cancelling is legal from here on; whoever is first wins. */
		rva_op_prepare(&done[i].op, &server.a, RVA_MSG_PING, NULL, NULL);
		rva_post(&server.a, &rva_op(&done[i].op)->msg.node);
		(void)rvq_cell32_add(&c.go, 1);
	}
	pthread_join(t, NULL);
	for (int i = 0; i < 300; i++) {
		reeve_ssize rc = rvt_done_wait(&done[i]);

		ck_assert(rc == 42 || rc == REEVE_ECANCELED);
		cancelled += rc == REEVE_ECANCELED;
	}
	ck_assert_uint_eq(cancelled, server.cancels);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(lists_keep_their_order_and_lose_anything)
{
	reeve_op_t op[5];
	struct rva_oplist l;

	rva_oplist_init(&l);
	ck_assert_ptr_null(rva_oplist_pop(&l));
	for (int i = 0; i < 5; i++) {
		reeve_op_init(&op[i], NULL, NULL);
		rva_oplist_push(&l, &op[i]);
	}
	ck_assert(rva_oplist_remove(&l, &op[4]));
	ck_assert(!rva_oplist_remove(&l, &op[4]));
	ck_assert(rva_oplist_remove(&l, &op[0]));
	ck_assert(rva_oplist_remove(&l, &op[2]));
	rva_oplist_push(&l, &op[0]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[1]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[3]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[0]);
	ck_assert_ptr_null(rva_oplist_pop(&l));
	rva_oplist_push(&l, &op[4]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[4]);
}
END_TEST

static struct rva_oplist *refill;
static unsigned completions;

static void
push_again(reeve_op_t *op)
{
	ck_assert_int_eq(op->res, REEVE_ETIMEDOUT);
	completions++;
	rva_op_prepare(op, NULL, RVA_MSG_READ, NULL, NULL);
	rva_op(op)->deadline = 1000;
	rva_oplist_push(refill, op);
}

START_TEST(expiry_takes_those_that_are_due_and_may_be_pushed_to)
{
	reeve_op_t op[4];
	struct rva_oplist l;

	rva_oplist_init(&l);
	refill = &l;
	for (unsigned i = 0; i < 4; i++) {
		reeve_op_init(&op[i], push_again, NULL);
		rva_op_prepare(&op[i], NULL, RVA_MSG_READ, NULL, NULL);
		rva_op(&op[i])->deadline = i == 1 ? UINT64_MAX : 10 * (i + 1);
		rva_oplist_push(&l, &op[i]);
	}
	ck_assert_uint_eq(rva_oplist_expire(&l, 5), 10);
	ck_assert_uint_eq(completions, 0);
	ck_assert_uint_eq(rva_oplist_expire(&l, 30), 40);
	ck_assert_uint_eq(completions, 2);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[1]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[3]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[0]);
	ck_assert_ptr_eq(rva_oplist_pop(&l), &op[2]);
	ck_assert_ptr_null(rva_oplist_pop(&l));
	ck_assert(rva_oplist_expire(&l, 30) == UINT64_MAX);
}
END_TEST

START_TEST(a_caller_whose_time_is_over_leaves_alone)
{
	struct rvt_duo d;
	struct rva_ask *k;
	reeve_op_t out;
	uint64_t start = rvt_ms();

	begin(&d, false);
	k = rva_ask_new(d.rt->arena, 20);
	ck_assert_ptr_nonnull(k);
	rva_op_start(&k->op, &server.a, RVA_MSG_PING, NULL, NULL);
	ck_assert_int_eq(rva_ask_wait(k, &out), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(rvt_ms() - start, 19);
	rvt_duo_end(&d); /* the record was freed by the server's answer to the cancel */
	ck_assert_uint_eq(server.cancels, 1);
}
END_TEST

START_TEST(a_caller_gets_its_answer)
{
	struct rvt_duo d;
	struct rva_ask *k;
	reeve_op_t out;

	begin(&d, true);
	for (int i = 0; i < 200; i++) {
		k = rva_ask_new(d.rt->arena, i % 2 == 0 ? -1 : RVT_WAIT_MS);
		ck_assert_ptr_nonnull(k);
		rva_op_start(&k->op, &server.a, RVA_MSG_PING, NULL, NULL);
		ck_assert_int_eq(rva_ask_wait(k, &out), 42);
	}
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN("op", &an_operation_is_answered_and_its_reference_dropped,
    &claim_and_cancel_exclude_each_other, &answers_and_cancels_of_two_threads_complete_once,
    &lists_keep_their_order_and_lose_anything,
    &expiry_takes_those_that_are_due_and_may_be_pushed_to,
    &a_caller_whose_time_is_over_leaves_alone, &a_caller_gets_its_answer)
