/* test_negotiate.c - negotiation in every kind of use: handlers, actors, no threads; with a peer that has left; without a
 * copy. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

#include <string.h>

static const char *const ab[] = {"/a/1", "/b/1"};
static const char *const cb[] = {"/c/1", "/b/1"};
static const char *const d1[] = {"/d/1"};
#define LAZY (REEVE_DIALER | REEVE_LAZY)

static struct rvt_duo d;

/* 0: the peer has ended its direction; 1: it has left; 2: in the midst of its proposal. */
START_TEST(what_a_peer_has_said_before_it_left_is_heard)
{
	reeve_stats_t st = {.size = sizeof(st)};
	const char *said = "\x13/multistream/1.0.0\n\x05/b/1\nrequest";
	size_t n = _i == 2 ? 24 : 33;
	reeve_op_t over;

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	ck_assert_int_eq(reeve_open(d.k[0], &d.s[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_write(d.s[0], said, n), (reeve_ssize)n);
	if (_i == 0)
		ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	do {
		ck_assert_int_eq(reeve_ctl_stats(d.k[1], &st), 0);
	} while (st.unread < n);
	if (_i > 0) {
		reeve_op_init(&over, NULL, NULL);
		reeve_closed_async(d.k[1], &over);
		ck_assert_int_eq(reeve_abort(d.k[0], 0), 0);
		ck_assert_int_eq(reeve_op_wait(&over), REEVE_EEND);
	}
	ck_assert_int_eq(reeve_accept(d.k[1], &d.s[1], RVT_WAIT_MS), 0);
	if (_i == 2) {
		ck_assert_int_eq(
		    reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, RVT_WAIT_MS), REEVE_EEND);
	} else {
		char p[8];

		ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, RVT_WAIT_MS), 1);
		ck_assert_int_eq(reeve_read(d.s[1], p, sizeof(p)), 7);
		ck_assert_mem_eq(p, "request", 7);
		ck_assert_int_eq(reeve_read(d.s[1], p, 1), _i ? REEVE_EEND : 0);
	}
	rvt_duo_end(&d);
}
END_TEST

/* They come in one frame with the proposal: what is behind it is cut off, not copied. */
START_TEST(bytes_behind_the_proposal_are_not_copied)
{
	reeve_stats_t st = {.size = sizeof(st)};
	uint64_t before;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_ctl_stats(d.k[1], &st), 0);
	before = st.bytes_copied_in;
	ck_assert_int_eq(reeve_negotiate(d.s[0], LAZY, cb + 1, 1, -1), 0);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 100000, 0)), 100000);
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, RVT_WAIT_MS), 1);
	rvt_read_run(d.s[1], 100000, 0);
	ck_assert_int_eq(reeve_ctl_stats(d.k[1], &st), 0);
	/* pieces at the ends of blocks may be small */
	ck_assert_uint_lt(st.bytes_copied_in - before, 8192);
	rvt_duo_end(&d);
}
END_TEST

static void
handler(reeve_stream_t *s, void *arg)
{
	reeve_buf_t *b;

	(void)arg;
	if (reeve_negotiate(s, REEVE_LISTENER, ab, 2, RVT_WAIT_MS) == 1)
		while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
			;
}

static void *
serve(void *l)
{
	ck_assert_int_eq(reeve_serve(l, handler, NULL), 0);
	return NULL;
}

START_TEST(handlers_negotiate)
{
	reeve_listener_t *l;
	char addr[64];
	pthread_t t;

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, _i ? "mem://nego" : "tcp://127.0.0.1:0", NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, addr, sizeof(addr)), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, serve, l), 0);
	ck_assert_int_eq(reeve_dial(&d.c[0], d.rt, addr, NULL, RVT_WAIT_MS), 0);
	d.k[0] = reeve_conn_ctl(d.c[0]);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(reeve_open(d.k[0], &d.s[0], RVT_WAIT_MS), 0);
		ck_assert_int_eq(reeve_deadline(d.s[0], REEVE_RD, RVT_WAIT_MS), 0);
		if (i % 3 == 2)
			ck_assert_int_eq(reeve_negotiate(d.s[0], REEVE_DIALER, d1, 1, RVT_WAIT_MS),
			    REEVE_ENOPROTO);
		else
			ck_assert_int_eq(reeve_negotiate(d.s[0], i % 3 ? LAZY : REEVE_DIALER,
					     cb + 1, 1, RVT_WAIT_MS),
			    0);
		if (i % 3 != 2) {
			rvt_write_run(d.s[0], 1000, 0);
			ck_assert_int_eq(reeve_shut(d.s[0]), 0);
			rvt_read_run(d.s[0], 1000, 0);
			rvt_read_end(d.s[0]);
		}
		reeve_close(d.s[0]);
		d.s[0] = NULL;
	}
	reeve_listener_stop(l);
	pthread_join(t, NULL);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

/* A thread that reads and writes right behind the start, with bytes that are in its port already: it never sees any of
 * the negotiation, and none of its bytes overtakes it. */
START_TEST(calls_right_behind_the_start_see_nothing_of_it)
{
	struct rvt_done n[2];
	char p[3];

	rvt_duo_begin(&d, _i);
	for (int round = 0; round < 300; round++) {
		if (round > 0) {
			reeve_close(d.s[0]);
			reeve_close(d.s[1]);
			rvt_duo_stream(&d);
		}
		for (int i = 0; i < 2; i++) {
			rvt_done_init(&n[i], RVT_WAIT_MS);
			ck_assert_int_eq(reeve_deadline(d.s[i], REEVE_RD, 0), 0);
			ck_assert_int_eq(reeve_read(d.s[i], p, 1), REEVE_ETIMEDOUT);
			ck_assert_int_eq(reeve_deadline(d.s[i], REEVE_RD, RVT_WAIT_MS), 0);
		}
		reeve_negotiate_async(d.s[0], round % 2 ? LAZY : REEVE_DIALER, cb + 1, 1, &n[0].op);
		ck_assert_int_eq(reeve_write(d.s[0], "abc", 3), 3);
		for (int spin = round % 7 * 20; spin > 0; spin--)
			sched_yield();
		reeve_negotiate_async(d.s[1], REEVE_LISTENER, ab, 2, &n[1].op);
		ck_assert_int_eq(reeve_write(d.s[1], "abc", 3), 3);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(reeve_read(d.s[!i], p, 3), 3);
			ck_assert_mem_eq(p, "abc", 3);
			ck_assert_int_ge(rvt_done_wait(&n[!i]), 0);
		}
	}
	rvt_duo_end(&d);
}
END_TEST

static void
on_worker(void *arg)
{
	*(int *)arg = reeve_negotiate(d.s[0], REEVE_DIALER, ab, 2, 0);
}

START_TEST(a_worker_may_not_wait)
{
	int rc = 0;

	rvt_duo_start(&d);
	rvt_on_worker(d.rt, on_worker, &rc);
	ck_assert_int_eq(rc, REEVE_EWORKER);
	rvt_write_run(d.s[0], 10, 0);
	rvt_read_run(d.s[1], 10, 0);
	rvt_duo_end(&d);
}
END_TEST

static struct {
	reeve_op_t op;
	int got;
} act;

static void
on_msg(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)arg;
	if (msg != NULL && reeve_msg_op(msg) == &act.op)
		act.got++;
}

/* Without threads, and completed to an actor. */
START_TEST(an_external_runtime_and_an_actor_negotiate_too)
{
	reeve_op_t op[2], open;
	reeve_actor_t *a;

	rvt_duo_rt(&d, 0);
	rvt_duo_conns(&d, NULL);
	reeve_op_init(&open, NULL, NULL);
	reeve_op_init(&op[1], NULL, NULL);
	reeve_open_async(d.k[0], &open);
	reeve_accept_async(d.k[1], &op[1]);
	for (int i = 0; i < 100; i++)
		(void)reeve_rt_run(d.rt, 0);
	ck_assert_int_eq(open.res | op[1].res, 0);
	d.s[0] = open.stream;
	d.s[1] = op[1].stream;
	ck_assert_int_eq(reeve_actor_spawn(&a, d.rt, on_msg, NULL, NULL), 0);
	reeve_op_init(&act.op, NULL, NULL);
	act.op.actor = a;
	reeve_op_init(&op[1], NULL, NULL);
	reeve_negotiate_async(d.s[0], REEVE_DIALER, cb, 2, &act.op);
	reeve_negotiate_async(d.s[1], REEVE_LISTENER, ab, 2, &op[1]);
	for (int i = 0; i < 100; i++)
		(void)reeve_rt_run(d.rt, 0);
	ck_assert_int_eq(act.got, 1);
	ck_assert_int_eq(act.op.res, 1);
	ck_assert_int_eq(op[1].res, 1);
	ck_assert_str_eq(reeve_stream_proto(d.s[0]), "/b/1");
	reeve_actor_unref(a);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("negotiate", {&what_a_peer_has_said_before_it_left_is_heard, 3},
    {&bytes_behind_the_proposal_are_not_copied, 2}, {&handlers_negotiate, 2},
    {&calls_right_behind_the_start_see_nothing_of_it, 2}, {&a_worker_may_not_wait, 0},
    {&an_external_runtime_and_an_actor_negotiate_too, 0})
