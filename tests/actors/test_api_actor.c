/* reeve/actor.h: messages in order, one at a time, to the end and beyond it. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "queues/cell.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

struct note {
	reeve_msg_t msg;
	unsigned sender, n;
};

struct book {
	struct rvt_duo d;
	reeve_actor_t *a;
	struct rvq_cell32 got, after, stops, bad, inside;
	unsigned last[8]; /* actor only */
	pthread_t on;     /* actor only */
};

static void
take(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct book *b = arg;
	struct note *n = (struct note *)(void *)msg;

	if (rvq_cell32_add(&b->inside, 1) != 0 || reeve_actor_arg(self) != arg)
		(void)rvq_cell32_add(&b->bad, 1);
	if (msg == NULL) {
		(void)rvq_cell32_add(&b->stops, 1);
	} else {
		if (reeve_msg_op(msg) != NULL || n->n != b->last[n->sender] + 1)
			(void)rvq_cell32_add(&b->bad, 1);
		b->last[n->sender] = n->n;
		if (rvq_cell32_get(&b->stops) != 0)
			(void)rvq_cell32_add(&b->after, 1);
		free(n);
		(void)rvq_cell32_add(&b->got, 1);
	}
	(void)rvq_cell32_add(&b->inside, UINT32_MAX);
}

static void
post(struct book *b, unsigned sender, unsigned i)
{
	struct note *n = malloc(sizeof(*n));

	if (n == NULL)
		abort();
	n->sender = sender;
	n->n = i;
	reeve_actor_post(b->a, &n->msg);
}

static void
begin(struct book *b)
{
	memset(b, 0, sizeof(*b));
	rvt_duo_rt(&b->d, 2);
	ck_assert_int_eq(reeve_actor_spawn(&b->a, b->d.rt, take, b, NULL), 0);
}

static void
finish(struct book *b)
{
	reeve_actor_unref(b->a);
	rvt_duo_end(&b->d);
	ck_assert_uint_eq(rvq_cell32_get(&b->bad), 0);
	ck_assert_uint_eq(rvq_cell32_get(&b->stops), 1);
}

struct sender {
	struct book *b;
	unsigned me;
};

static void *
send_many(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 1; i <= 5000; i++)
		post(s->b, s->me, i);
	return NULL;
}

START_TEST(messages_of_many_senders_arrive_once_and_in_each_ones_order)
{
	static struct book b;
	struct sender s[4];
	pthread_t t[4];

	begin(&b);
	for (unsigned i = 0; i < 4; i++) {
		s[i].b = &b;
		s[i].me = i;
		ck_assert_int_eq(pthread_create(&t[i], NULL, send_many, &s[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	RVT_UNTIL(rvq_cell32_get(&b.got) == 4 * 5000);
	ck_assert_uint_eq(rvq_cell32_get(&b.stops), 0);
	finish(&b);
}
END_TEST

/* --- an actor that is asked and one that is told, and answers the first --- */

static struct book asked;

static void
take_both(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct note *n = (struct note *)(void *)msg;

	/* The answer to a question comes behind it. */
	if (msg != NULL && n->sender >= 4 && n->n > asked.last[n->sender - 4])
		(void)rvq_cell32_add(&asked.bad, 1);
	take(self, msg, arg);
}

static void
answer(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct note *n = (struct note *)(void *)msg;

	(void)self;
	(void)arg;
	if (msg == NULL)
		return;
	n->sender += 4;
	reeve_actor_post(asked.a, &n->msg);
}

struct asker {
	reeve_actor_t *answers;
	unsigned me;
};

static void *
ask_many(void *arg)
{
	struct asker *s = arg;

	for (unsigned i = 1; i <= 5000; i++) {
		struct note *n = malloc(sizeof(*n));

		if (n == NULL)
			abort();
		n->sender = s->me;
		n->n = i;
		post(&asked, s->me, i);
		reeve_actor_post(s->answers, &n->msg);
	}
	return NULL;
}

/* On one worker the answers are its own posts, on two those of another one, beside the posts of threads in both cases. */
START_TEST(an_answer_never_overtakes_its_question)
{
	struct asker s[4];
	reeve_actor_t *answers;
	pthread_t t[4];

	memset(&asked, 0, sizeof(asked));
	rvt_duo_rt(&asked.d, (unsigned)_i + 1);
	ck_assert_int_eq(reeve_actor_spawn(&asked.a, asked.d.rt, take_both, &asked, NULL), 0);
	ck_assert_int_eq(reeve_actor_spawn(&answers, asked.d.rt, answer, NULL, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		s[i].answers = answers;
		s[i].me = i;
		ck_assert_int_eq(pthread_create(&t[i], NULL, ask_many, &s[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	RVT_UNTIL(rvq_cell32_get(&asked.got) == 8 * 5000);
	reeve_actor_unref(answers);
	finish(&asked);
}
END_TEST

START_TEST(what_was_posted_before_a_stop_comes_before_it_and_the_rest_behind)
{
	static struct book b;

	for (int round = 0; round < 50; round++) {
		begin(&b);
		for (unsigned i = 1; i <= 100; i++)
			post(&b, 0, i);
		reeve_actor_stop(b.a);
		reeve_actor_stop(b.a);
		for (unsigned i = 101; i <= 150; i++)
			post(&b, 0, i);
		RVT_UNTIL(rvq_cell32_get(&b.got) == 150);
		ck_assert_uint_eq(rvq_cell32_get(&b.stops), 1);
		ck_assert_uint_eq(rvq_cell32_get(&b.after), 50);
		finish(&b);
	}
}
END_TEST

START_TEST(the_last_reference_stops_after_what_was_posted)
{
	static struct book b;

	begin(&b);
	ck_assert_ptr_eq(reeve_actor_ref(b.a), b.a);
	reeve_actor_unref(b.a);
	for (unsigned i = 1; i <= 100; i++)
		post(&b, 0, i);
	reeve_actor_unref(b.a);
	RVT_UNTIL(rvq_cell32_get(&b.stops) == 1);
	ck_assert_uint_eq(rvq_cell32_get(&b.got), 100);
	b.a = NULL;
	finish(&b);
}
END_TEST

START_TEST(the_end_of_the_runtime_stops_every_actor_and_later_posts_run_here)
{
	static struct book b;

	begin(&b);
	for (unsigned i = 1; i <= 100; i++)
		post(&b, 0, i);
	reeve_rt_destroy(b.d.rt);
	b.d.rt = NULL;
	ck_assert_uint_eq(rvq_cell32_get(&b.got), 100);
	ck_assert_uint_eq(rvq_cell32_get(&b.stops), 1);
	post(&b, 0, 101);
	ck_assert_uint_eq(rvq_cell32_get(&b.got), 101);
	ck_assert_uint_eq(rvq_cell32_get(&b.after), 1);
	reeve_actor_stop(b.a);
	finish(&b);
}
END_TEST

struct hop {
	reeve_msg_t msg;
	reeve_actor_t *a[2];
	struct rvq_cell32 left, done;
};

static void
pass_on(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct hop *h = arg;

	if (msg == NULL)
		return;
	if (rvq_cell32_add(&h->left, UINT32_MAX) == 1)
		rvq_cell32_put(&h->done, 1);
	else
		reeve_actor_post(h->a[self == h->a[0]], msg);
}

START_TEST(a_message_is_posted_again_by_its_receiver)
{
	struct rvt_duo d;
	static struct hop h;

	rvt_duo_rt(&d, 2);
	rvq_cell32_put(&h.left, 10000);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_actor_spawn(&h.a[i], d.rt, pass_on, &h, NULL), 0);
	reeve_actor_post(h.a[0], &h.msg);
	RVT_UNTIL(rvq_cell32_get(&h.done) == 1);
	for (int i = 0; i < 2; i++)
		reeve_actor_unref(h.a[i]);
	rvt_duo_end(&d);
}
END_TEST

struct near {
	struct rvt_duo d;
	reeve_actor_t *a;
	reeve_op_t op;
	pthread_t of_actor, of_conn;
	struct rvq_cell32 seen;
	reeve_msg_t msg;
};

static void
where_actor(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct near *n = arg;

	(void)self;
	if (msg == NULL)
		return;
	n->of_actor = pthread_self();
	(void)rvq_cell32_add(&n->seen, 1);
}

static void
where_conn(reeve_op_t *op)
{
	struct near *n = op->arg;

	n->of_conn = pthread_self();
	(void)rvq_cell32_add(&n->seen, 1);
}

START_TEST(an_actor_near_a_controller_shares_its_worker)
{
	static struct near n;

	for (int i = 0; i < 2; i++) {
		memset(&n, 0, sizeof(n));
		rvt_duo_rt(&n.d, 4);
		rvt_duo_conns(&n.d, NULL);
		ck_assert_int_eq(reeve_actor_spawn(&n.a, n.d.rt, where_actor, &n, n.d.k[i]), 0);
		reeve_op_init(&n.op, where_conn, &n);
		reeve_ping_async(n.d.k[i], &n.op);
		reeve_actor_post(n.a, &n.msg);
		RVT_UNTIL(rvq_cell32_get(&n.seen) == 2);
		ck_assert(pthread_equal(n.of_actor, n.of_conn));
		reeve_actor_unref(n.a);
		rvt_duo_end(&n.d);
	}
}
END_TEST

/* An echo actor: every completion is a message. */
struct echo {
	struct rvt_duo d;
	reeve_actor_t *a;
	reeve_op_t rd, wr;
	struct rvq_cell32 over, bad;
};

static void
echo(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct echo *e = arg;
	reeve_op_t *op = reeve_msg_op(msg);

	if (msg == NULL)
		return;
	if (op != &e->rd && op != &e->wr) {
		(void)rvq_cell32_add(&e->bad, 1);
		return;
	}
	if (op->res <= 0) {
		(void)reeve_shut(e->d.s[1]);
		rvq_cell32_put(&e->over, 1);
	} else if (op == &e->rd) {
		reeve_op_init(&e->wr, NULL, e);
		e->wr.actor = self;
		reeve_write_async(e->d.s[1], op->buf, &e->wr);
	} else {
		reeve_op_init(&e->rd, NULL, e);
		e->rd.actor = self;
		reeve_read_async(e->d.s[1], &e->rd);
	}
}

START_TEST(completions_come_as_messages)
{
	static struct echo e;

	rvt_duo_start(&e.d);
	ck_assert_int_eq(reeve_actor_spawn(&e.a, e.d.rt, echo, &e, reeve_stream_ctl(e.d.s[1])), 0);
	reeve_op_init(&e.rd, NULL, &e);
	e.rd.actor = e.a;
	reeve_read_async(e.d.s[1], &e.rd);
	for (uint64_t at = 0; at < 500000; at += 50000) {
		rvt_write_run(e.d.s[0], 50000, at);
		rvt_read_run(e.d.s[0], 50000, at);
	}
	(void)reeve_shut(e.d.s[0]);
	rvt_read_end(e.d.s[0]);
	RVT_UNTIL(rvq_cell32_get(&e.over) == 1);
	ck_assert_uint_eq(rvq_cell32_get(&e.bad), 0);
	ck_assert_int_eq(reeve_op_wait(&e.rd), REEVE_EINVAL); /* it has somewhere to go */
	reeve_actor_unref(e.a);
	rvt_duo_end(&e.d);
}
END_TEST

START_TEST(actors_are_spawned_and_dropped_by_many)
{
	struct rvt_duo d;
	static struct book b[100];

	rvt_duo_rt(&d, 3);
	for (int i = 0; i < 100; i++) {
		memset(&b[i], 0, sizeof(b[i]));
		ck_assert_int_eq(reeve_actor_spawn(&b[i].a, d.rt, take, &b[i], NULL), 0);
		post(&b[i], 0, 1);
	}
	for (int i = 0; i < 100; i += 2) {
		reeve_actor_unref(b[i].a);
		RVT_UNTIL(rvq_cell32_get(&b[i].stops) == 1);
	}
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, RVT_WAIT_MS), 0);
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(rvq_cell32_get(&b[i].got), 1);
		ck_assert_uint_eq(rvq_cell32_get(&b[i].stops), 1);
	}
	for (int i = 1; i < 100; i += 2)
		reeve_actor_unref(b[i].a);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("api_actor", {&messages_of_many_senders_arrive_once_and_in_each_ones_order, 0},
    {&an_answer_never_overtakes_its_question, 2},
    {&what_was_posted_before_a_stop_comes_before_it_and_the_rest_behind, 0},
    {&the_last_reference_stops_after_what_was_posted, 0},
    {&the_end_of_the_runtime_stops_every_actor_and_later_posts_run_here, 0},
    {&a_message_is_posted_again_by_its_receiver, 0},
    {&an_actor_near_a_controller_shares_its_worker, 0}, {&completions_come_as_messages, 0},
    {&actors_are_spawned_and_dropped_by_many, 0})
