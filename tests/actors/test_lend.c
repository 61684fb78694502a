/* Threads that run a sleeping worker's turn: whose thread calls what, and that nobody waits in vain. */
#include <config.h>

#include <signal.h>
#include <string.h>

#include "queues/cell.h"
#include "queues/counter.h"
#include "tests/kit/duo.h"
#include "tests/kit/node.h"
#include "tests/kit/run.h"

static _Thread_local bool mine; /* a thread of the test's own */

/* A stream that is read by operations, one after the other: on which thread, how often, and in order. */
struct tap {
	reeve_op_t op;
	reeve_stream_t *s;
	struct rvq_gauge bytes, calls, wrong, inside;
	bool over;
	struct rvq_cell32 ended;
};

static void
tapped(reeve_op_t *op)
{
	struct tap *t = op->arg;

	rvq_gauge_add(&t->wrong, mine);
	rvq_gauge_add(&t->wrong, rvq_gauge_add(&t->inside, 1) != 1);
	rvq_gauge_add(&t->calls, 1);
	if (op->res > 0) {
		rvq_gauge_add(&t->bytes, (uint64_t)op->res);
		reeve_buf_unref(op->buf);
		rvq_gauge_sub(&t->inside, 1);
		reeve_read_async(t->s, op);
		return;
	}
	rvq_gauge_sub(&t->inside, 1);
	rvq_cell32_put(&t->ended, 1);
}

static void
tap(struct tap *t, reeve_stream_t *s)
{
	memset(t, 0, sizeof(*t));
	t->s = s;
	reeve_op_init(&t->op, tapped, t);
	reeve_read_async(s, &t->op);
}

/* The other end of a conversation by threads. */
static void *
echo(void *arg)
{
	uint8_t buf[4096];
	reeve_ssize n;

	mine = true;
	while ((n = reeve_read(arg, buf, sizeof(buf))) > 0)
		ck_assert_int_eq(reeve_write(arg, buf, (size_t)n), n);
	ck_assert_int_eq(reeve_shut(arg), 0);
	return NULL;
}

#define ROUNDS 2000

/* Blocking calls lend, and what they bring about for others is told on workers. */
START_TEST(threads_never_run_the_functions_of_others)
{
	struct rvt_wedding w = {.via = (enum rvt_via)_i, .workers = 1};
	reeve_stream_t *talk[2], *seen[2];
	uint8_t block[1000] = {0};
	struct rvt_nodes n;
	struct tap t;
	pthread_t th;

	mine = true;
	rvt_marry(&n, &w);
	rvt_stream_pair(&n, 0, talk);
	rvt_stream_pair(&n, 0, seen);
	tap(&t, seen[1]);
	ck_assert_int_eq(pthread_create(&th, NULL, echo, talk[1]), 0);
	for (int i = 0; i < ROUNDS; i++) {
		ck_assert_int_eq(reeve_write(talk[0], block, 100), 100);
		if (i % 3 == 0)
			ck_assert_int_eq(reeve_write(seen[0], block, sizeof(block)), sizeof(block));
		for (reeve_ssize got = 0, k; got < 100; got += k) {
			k = reeve_read(talk[0], block, sizeof(block));
			ck_assert_int_gt(k, 0);
		}
	}
	reeve_shut(talk[0]);
	reeve_shut(seen[0]);
	rvt_read_end(talk[0]);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	RVT_UNTIL(rvq_cell32_get(&t.ended) != 0);
	ck_assert_uint_eq(rvq_gauge_get(&t.bytes), (ROUNDS + 2) / 3 * sizeof(block));
	ck_assert_uint_eq(rvq_gauge_get(&t.wrong), 0);
	rvt_close_both(talk);
	rvt_close_both(seen);
	rvt_divorce(&n);
}
END_TEST

/* An actor of the application beside threads that lend. */
struct counted {
	struct rvq_gauge messages, wrong, stopped;
};

static void
count(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct counted *c = arg;

	(void)self;
	rvq_gauge_add(&c->wrong, mine);
	rvq_gauge_add(msg == NULL ? &c->stopped : &c->messages, 1);
}

START_TEST(threads_never_run_actors_of_the_application)
{
	static reeve_msg_t msg[ROUNDS];
	struct counted c;
	struct rvt_duo d;
	reeve_actor_t *a;
	uint8_t b[64] = {0};
	pthread_t th;

	mine = true;
	memset(&c, 0, sizeof(c));
	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_actor_spawn(&a, d.rt, count, &c, d.k[0]), 0);
	ck_assert_int_eq(pthread_create(&th, NULL, echo, d.s[1]), 0);
	for (int i = 0; i < ROUNDS; i++) {
		reeve_actor_post(a, &msg[i]);
		ck_assert_int_eq(reeve_write(d.s[0], b, sizeof(b)), sizeof(b));
		for (reeve_ssize got = 0, k; got < (reeve_ssize)sizeof(b); got += k)
			ck_assert_int_gt(k = reeve_read(d.s[0], b, sizeof(b)), 0);
	}
	reeve_shut(d.s[0]);
	rvt_read_end(d.s[0]);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	reeve_actor_unref(a);
	RVT_UNTIL(rvq_gauge_get(&c.stopped) == 1);
	ck_assert_uint_eq(rvq_gauge_get(&c.messages), ROUNDS);
	ck_assert_uint_eq(rvq_gauge_get(&c.wrong), 0);
	rvt_duo_end(&d);
}
END_TEST

/* A callback may take a lock that its thread's own calls are made under. */
static pthread_mutex_t everything = PTHREAD_MUTEX_INITIALIZER;

static void
locked(reeve_op_t *op)
{
	pthread_mutex_lock(&everything);
	pthread_mutex_unlock(&everything);
	tapped(op);
}

START_TEST(a_callback_may_want_a_lock_that_a_caller_holds)
{
	struct rvt_duo d;
	uint8_t block[20000] = {0};
	struct tap t;

	mine = true;
	rvt_duo_start(&d);
	tap(&t, d.s[1]);
	t.op.fn = locked; /* nothing has come yet */
	for (int i = 1; i <= 200; i++) {
		pthread_mutex_lock(&everything);
		ck_assert_int_gt(reeve_write(d.s[0], block, sizeof(block)), 0);
		pthread_mutex_unlock(&everything);
		if (i % 10 ==
		    0) /* less than the send budget: a write under the lock must not need the callback */
			RVT_UNTIL(rvq_gauge_get(&t.bytes) == (uint64_t)i * sizeof(block));
	}
	reeve_shut(d.s[0]);
	RVT_UNTIL(rvq_cell32_get(&t.ended) != 0);
	ck_assert_uint_eq(rvq_gauge_get(&t.bytes), 200 * sizeof(block));
	ck_assert_uint_eq(rvq_gauge_get(&t.wrong), 0);
	rvt_duo_end(&d);
}
END_TEST

/* --- a thread that leads --- */

struct reader {
	reeve_stream_t *s;
	pthread_t thread;
	struct rvq_cell32 inside;
	reeve_ssize rc;
	uint8_t buf[64];
};

static void *
read_one(void *arg)
{
	struct reader *r = arg;

	rvq_cell32_put(&r->inside, 1);
	r->rc = reeve_read(r->s, r->buf, sizeof(r->buf));
	return NULL;
}

static void
reader(struct reader *r, reeve_stream_t *s)
{
	memset(r, 0, sizeof(*r));
	r->s = s;
	ck_assert_int_eq(pthread_create(&r->thread, NULL, read_one, r), 0);
	RVT_UNTIL(rvq_cell32_get(&r->inside) != 0);
}

static reeve_ssize
joined(struct reader *r)
{
	ck_assert_int_eq(pthread_join(r->thread, NULL), 0);
	return r->rc;
}

START_TEST(a_reader_leaves_at_its_deadline)
{
	struct rvt_duo d;
	uint64_t from;
	uint8_t b;

	rvt_duo_start(&d);
	for (int i = 0; i < 5; i++) {
		from = rvt_ms();
		ck_assert_int_eq(reeve_deadline(d.s[0], REEVE_RD, 20), 0);
		ck_assert_int_eq(reeve_read(d.s[0], &b, 1), REEVE_ETIMEDOUT);
		ck_assert_uint_ge(rvt_ms() + 1 - from, 20);
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_reader_is_called_off_from_outside)
{
	static const int answer[] = {
	    REEVE_ETIMEDOUT, REEVE_ECLOSED, REEVE_ECLOSED, REEVE_ECANCELED};
	struct rvt_duo d;
	struct reader r;

	for (int round = 0; round < 20; round++) {
		rvt_duo_start(&d);
		reader(&r, d.s[0]);
		for (int k = 0; k < round; k++)
			sched_yield();
		switch (_i) {
		case 0:
			ck_assert_int_eq(reeve_deadline(d.s[0], REEVE_RD, 0), 0);
			break;
		case 1:
			ck_assert_int_eq(reeve_stop(d.s[0]), 0);
			break;
		case 2:
			ck_assert_int_eq(reeve_reset(d.s[0], 0), 0);
			break;
		default:
			ck_assert_int_eq(reeve_abort(d.k[0], REEVE_ECANCELED), 0);
			break;
		}
		ck_assert_int_eq(joined(&r), answer[_i]);
		rvt_duo_end(&d);
	}
}
END_TEST

#define CROWD 8

/* One of them leads; the others are served by it, and by whoever comes after it. */
START_TEST(many_readers_of_one_worker_get_theirs)
{
	struct rvt_wedding w = {.via = (enum rvt_via)_i, .workers = 1};
	reeve_stream_t *s[CROWD][2];
	struct reader r[CROWD];
	struct rvt_nodes n;
	uint8_t b;

	rvt_marry(&n, &w);
	for (int i = 0; i < CROWD; i++)
		rvt_stream_pair(&n, 0, s[i]);
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < CROWD; i++)
			reader(&r[i], s[i][1]);
		for (int k = 0; k < CROWD; k++) {
			int i = (k * 3 + round) % CROWD;

			b = (uint8_t)i;
			ck_assert_int_eq(reeve_write(s[i][0], &b, 1), 1);
			ck_assert_int_eq(joined(&r[i]), 1);
			ck_assert_uint_eq(r[i].buf[0], i);
		}
	}
	for (int i = 0; i < CROWD; i++)
		rvt_close_both(s[i]);
	rvt_divorce(&n);
}
END_TEST

/* Timers are the worker's, and it gets its turn for them. */
START_TEST(timers_go_off_while_a_thread_leads)
{
	struct rvt_duo d;
	struct rvt_done accept;
	struct reader r;
	uint8_t b = 7;

	rvt_duo_start(&d);
	reader(&r, d.s[1]);
	for (int i = 0; i < 10; i++) {
		rvt_done_init(&accept, 5);
		reeve_accept_async(d.k[1], &accept.op);
		ck_assert_int_eq(rvt_done_wait(&accept), REEVE_ETIMEDOUT);
	}
	ck_assert_int_eq(reeve_write(d.s[0], &b, 1), 1);
	ck_assert_int_eq(joined(&r), 1);
	rvt_duo_end(&d);
}
END_TEST

/* The end of a connection while a thread of another one leads: what the poller knew is freed in the worker's turn. */
START_TEST(connections_come_and_go_while_a_thread_leads)
{
	enum rvt_via via = (enum rvt_via)(RVT_MEMORY + _i);
	struct rvt_wedding w = {.via = via, .workers = 1};
	reeve_listener_t *l;
	reeve_stream_t *s[2];
	struct rvt_nodes n;
	char addr[128];
	struct reader r;
	uint8_t b = 1;

	rvt_marry(&n, &w);
	rvt_stream_pair(&n, 0, s);
	rvt_scratch(via, addr, sizeof(addr));
	ck_assert_int_eq(reeve_listen(&l, n.rt[1], addr, NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, addr, sizeof(addr)), 0);
	reader(&r, s[1]);
	for (int i = 0; i < 30; i++) {
		reeve_conn_t *c[2];

		ck_assert_int_eq(reeve_dial(&c[0], n.rt[0], addr, NULL, RVT_WAIT_MS), 0);
		ck_assert_int_eq(reeve_listener_accept(l, &c[1], RVT_WAIT_MS), 0);
		if (i % 2 == 0)
			ck_assert_int_eq(reeve_conn_close(c[0], RVT_WAIT_MS), 0);
		reeve_conn_destroy(c[i % 3 == 0]);
		reeve_conn_destroy(c[i % 3 != 0]);
	}
	ck_assert_int_eq(reeve_write(s[0], &b, 1), 1);
	ck_assert_int_eq(joined(&r), 1);
	reeve_listener_destroy(l);
	rvt_close_both(s);
	rvt_divorce(&n);
	rvt_scratch_end();
}
END_TEST

static void
nothing(int sig)
{
	(void)sig;
}

START_TEST(signals_do_not_end_a_wait)
{
	struct sigaction sa;
	struct rvt_duo d;
	struct reader r;
	uint8_t b = 9;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = nothing;
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	rvt_duo_start(&d);
	reader(&r, d.s[1]);
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(pthread_kill(r.thread, SIGUSR1), 0);
		sched_yield();
	}
	ck_assert_int_eq(reeve_write(d.s[0], &b, 1), 1);
	ck_assert_int_eq(joined(&r), 1);
	rvt_duo_end(&d);
}
END_TEST

/* A cancelled thread does not take the worker's turn with it. */
START_TEST(a_cancelled_reader_leaves_the_worker_whole)
{
	struct rvt_duo d;
	struct reader r;
	uint8_t b = 3;

	rvt_duo_start(&d);
	reader(&r, d.s[1]);
	ck_assert_int_eq(pthread_cancel(r.thread), 0);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_write(d.s[0], &b, 1), 1);
	ck_assert_int_eq(pthread_join(r.thread, NULL), 0);
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, NULL), 0);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("lend", {&threads_never_run_the_functions_of_others, RVT_RECHUNK},
    {&threads_never_run_actors_of_the_application, 1},
    {&a_callback_may_want_a_lock_that_a_caller_holds, 1}, {&a_reader_leaves_at_its_deadline, 1},
    {&a_reader_is_called_off_from_outside, 4}, {&many_readers_of_one_worker_get_theirs, RVT_VIAS},
    {&timers_go_off_while_a_thread_leads, 1}, {&connections_come_and_go_while_a_thread_leads, 3},
    {&signals_do_not_end_a_wait, 1}, {&a_cancelled_reader_leaves_the_worker_whole, 1})
