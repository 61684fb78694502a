/* Runtimes: made and ended, several at once, with live connections, with handles held beyond their end. */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

START_TEST(runtimes_come_and_go)
{
	struct rvt_duo d;

	for (int i = 0; i < 20; i++) {
		rvt_duo_rt(&d, (unsigned)_i);
		rvt_duo_end(&d);
		rvt_duo_rt(&d, (unsigned)_i);
		rvt_duo_conns(&d, NULL);
		if (_i > 0)
			rvt_duo_stream(&d);
		rvt_duo_end(&d);
	}
}
END_TEST

START_TEST(a_runtime_is_destroyed_with_everything_on_it)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	int v[2];

	for (int i = 0; i < 10; i++) {
		rvt_duo_rt(&d, (unsigned)_i + 1);
		rvt_duo_conns(&d, NULL);
		rvt_duo_stream(&d);
		rvt_write_run(d.s[0], 10000, 0);
		rvt_unix_pair(v);
		ck_assert_int_eq(reeve_listen(&l, d.rt, "tcp://127.0.0.1:0", NULL), 0);
		reeve_rt_destroy(d.rt);
		d.rt = NULL;
		reeve_listener_destroy(l);
		close(v[0]);
		close(v[1]);
		rvt_duo_end(&d);
	}
}
END_TEST

/* The runtime's end is ours on one side; the other side may have seen its peer's end before. */
static int
is_end(reeve_ssize rc)
{
	return rc == REEVE_ECLOSED || rc == REEVE_EEND;
}

START_TEST(held_handles_answer_after_the_end)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	reeve_stream_t *s = NULL;
	reeve_conn_t *c = NULL;
	reeve_buf_t *b = NULL;
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stats_t st = {.size = sizeof(st)};
	uint8_t byte = 0;
	char text[64];

	if (_i == 0) {
		rvt_duo_rt(&d, 0);
		rvt_duo_conns(&d, NULL);
		ck_assert_int_ge(reeve_rt_run(d.rt, 0), 0);
	} else {
		rvt_duo_rt(&d, (unsigned)_i);
		rvt_duo_conns(&d, NULL);
		rvt_duo_stream(&d);
	}
	if (_i > 0)
		ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://held", NULL), 0);
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	ck_assert(is_end(reeve_open(d.k[0], &s, -1)));
	ck_assert(is_end(reeve_accept(d.k[1], &s, -1)));
	ck_assert(is_end(reeve_ping(d.k[0], -1, NULL)));
	ck_assert_int_eq(reeve_goaway(d.k[0], 0), 0);
	ck_assert_int_eq(reeve_abort(d.k[0], 0), 0);
	ck_assert_int_eq(reeve_conn_close(d.c[0], -1), 0);
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], &why), 0);
	ck_assert(is_end(why.rc));
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), 0);
	for (int i = 0; i < 2 && _i > 0; i++) {
		ck_assert(is_end(reeve_read(d.s[i], &byte, 1)));
		ck_assert(is_end(reeve_read_buf(d.s[i], &b)));
		ck_assert(is_end(reeve_write(d.s[i], &byte, 1)));
		ck_assert_int_eq(reeve_shut(d.s[i]), 0);
		ck_assert_int_eq(reeve_stop(d.s[i]), 0);
		ck_assert_int_eq(reeve_reset(d.s[i], 0), 0);
		ck_assert_int_eq(reeve_deadline(d.s[i], REEVE_RD, 5), 0);
		ck_assert_int_eq(reeve_stream_reason(d.s[i], &why), 0);
		ck_assert_uint_eq(reeve_stream_id(d.s[i]), 1);
	}
	if (_i > 0) {
		ck_assert_int_eq(reeve_listener_accept(l, &c, -1), REEVE_ECLOSED);
		ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
		reeve_listener_stop(l);
		reeve_listener_destroy(l);
	}
	rvt_duo_end(&d);
}
END_TEST

static unsigned completions;

static void
count(reeve_op_t *op)
{
	ck_assert_int_lt(op->res, 0);
	completions++;
}

/* There is no worker left: they complete on the thread that asks. */
START_TEST(operations_on_held_handles_complete_after_the_end)
{
	struct rvt_duo d;
	reeve_op_t op[6];
	reeve_op_t wait = REEVE_OP(NULL, NULL);
	reeve_buf_t *b;

	rvt_duo_start(&d);
	b = rvt_buf_run(d.rt, 10, 0);
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	for (int i = 0; i < 6; i++)
		reeve_op_init(&op[i], count, NULL);
	reeve_open_async(d.k[0], &op[0]);
	reeve_accept_async(d.k[0], &op[1]);
	reeve_ping_async(d.k[0], &op[2]);
	reeve_closed_async(d.k[0], &op[3]);
	reeve_read_async(d.s[0], &op[4]);
	reeve_write_async(d.s[0], b, &op[5]);
	ck_assert_uint_eq(completions, 6);
	reeve_closed_async(d.k[1], &wait);
	ck_assert(is_end(reeve_op_wait(&wait)));
	rvt_duo_end(&d);
}
END_TEST

START_TEST(waiting_operations_are_answered_by_the_end)
{
	struct rvt_duo d;
	struct rvt_done rd, accept, closed, listen;
	reeve_listener_t *l;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://waiting", NULL), 0);
	rvt_done_init(&rd, -1);
	rvt_done_init(&accept, -1);
	rvt_done_init(&closed, -1);
	rvt_done_init(&listen, -1);
	reeve_read_async(d.s[0], &rd.op);
	reeve_accept_async(d.k[0], &accept.op);
	reeve_closed_async(d.k[0], &closed.op);
	reeve_listener_accept_async(l, &listen.op);
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	ck_assert(is_end(rvt_done_wait(&rd)));
	ck_assert(is_end(rvt_done_wait(&accept)));
	ck_assert(is_end(rvt_done_wait(&closed)));
	ck_assert_int_eq(rvt_done_wait(&listen), REEVE_ECLOSED);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

/* The peer is of another runtime, so that it does not end its streams too. */
START_TEST(shutdown_waits_for_streams_then_refuses_everything_new)
{
	struct rvt_duo d, far;
	reeve_listener_t *l;
	uint64_t start;

	rvt_duo_rt(&d, 1);
	rvt_duo_rt(&far, 1);
	ck_assert_int_eq(reeve_listen(&l, far.rt, "mem://far", NULL), 0);
	ck_assert_int_eq(reeve_dial(&d.c[0], d.rt, "mem://far", NULL, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_listener_accept(l, &far.c[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(d.c[0]), &d.s[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(far.c[0]), &far.s[0], RVT_WAIT_MS), 0);
	start = rvt_ms();
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, 60), REEVE_ETIMEDOUT); /* a stream is open */
	ck_assert_uint_ge(rvt_ms() - start, 59);
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, -1), 0);
	reeve_conn_destroy(d.c[0]);
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, NULL), REEVE_ECLOSED);
	ck_assert_int_lt(reeve_dial(&d.c[0], d.rt, "mem://far", NULL, -1), 0);
	d.c[0] = d.c[1] = NULL;
	reeve_listener_destroy(l);
	rvt_duo_end(&far);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(shutdown_of_idle_connections_is_clean)
{
	struct rvt_duo d;
	reeve_reason_t why = {.size = sizeof(why)};

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], &why), 0);
	ck_assert(why.rc == 0 || is_end(why.rc));
	ck_assert_uint_eq(rvq_gauge_get(&d.warned), 0);
	rvt_duo_end(&d);
}
END_TEST

/* 16 streams' first windows, unread all at once, come out of blocks; who has read them keeps the blocks for a while. */
START_TEST(an_idle_worker_gives_its_spare_blocks_back)
{
	enum { STREAMS = 16, BYTES = 256 << 10 };
	reeve_stream_t *s[STREAMS][2];
	struct rvt_duo d;
	uint64_t busy;
	int i;

	rvt_duo_rt(&d, 1);
	rvt_duo_conns(&d, NULL);
	for (i = 0; i < STREAMS; i++) {
		ck_assert_int_eq(reeve_open(d.k[0], &s[i][0], RVT_WAIT_MS), 0);
		rvt_write_run(s[i][0], BYTES, 0);
		ck_assert_int_eq(reeve_accept(d.k[1], &s[i][1], RVT_WAIT_MS), 0);
	}
	for (i = 0; i < STREAMS; i++)
		rvt_read_run(s[i][1], BYTES, 0);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	busy = rvq_gauge_get(&d.alloc.bytes);
	RVT_UNTIL(rvq_gauge_get(&d.alloc.bytes) + (2 << 20) < busy);
	for (i = 0; i < 2 * STREAMS; i++)
		reeve_close(s[i / 2][i % 2]);
	rvt_duo_end(&d);
}
END_TEST

static void *
keep_writing(void *arg)
{
	reeve_stream_t *s = arg;
	static uint8_t much[5000];
	reeve_ssize n;

	while ((n = reeve_write(s, much, sizeof(much))) > 0)
		;
	return (void *)(intptr_t)n;
}

static void *
keep_reading(void *arg)
{
	reeve_stream_t *s = arg;
	uint8_t some[3000];
	reeve_ssize n;

	while ((n = reeve_read(s, some, sizeof(some))) > 0)
		;
	return (void *)(intptr_t)n;
}

START_TEST(threads_in_full_use_get_the_end)
{
	struct rvt_duo d;
	pthread_t t[4];
	void *rc;

	for (int round = 0; round < 5; round++) {
		rvt_duo_rt(&d, (unsigned)_i + 1);
		rvt_duo_conns(&d, NULL);
		rvt_duo_stream(&d);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(pthread_create(&t[i], NULL, keep_writing, d.s[i]), 0);
			ck_assert_int_eq(pthread_create(&t[2 + i], NULL, keep_reading, d.s[i]), 0);
		}
		ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
		(void)reeve_rt_shutdown(d.rt, 0);
		for (int i = 0; i < 4; i++) {
			pthread_join(t[i], &rc);
			ck_assert_int_lt((intptr_t)rc, 0);
		}
		rvt_duo_end(&d);
	}
}
END_TEST

START_TEST(several_runtimes_live_side_by_side)
{
	struct rvt_duo d[3];
	reeve_listener_t *l;
	reeve_conn_t *c, *far;
	reeve_stream_t *s, *t;

	for (int i = 0; i < 3; i++)
		rvt_duo_start(&d[i]);
	/* A connection from one to the other through a name of the process. */
	ck_assert_int_eq(reeve_listen(&l, d[1].rt, "mem://between", NULL), 0);
	ck_assert_int_eq(reeve_dial(&c, d[0].rt, "mem://between", NULL, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_listener_accept(l, &far, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(c), &s, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(far), &t, RVT_WAIT_MS), 0);
	for (uint64_t at = 0; at < 500000; at += 50000) {
		rvt_write_run(s, 50000, at);
		rvt_read_run(t, 50000, at);
	}
	for (int i = 0; i < 3; i++) { /* one thread turns from runtime to runtime */
		rvt_write_run(d[i].s[0], 1000, 0);
		rvt_read_run(d[i].s[1], 1000, 0);
	}
	reeve_listener_destroy(l);
	reeve_close(s);
	reeve_close(t);
	reeve_conn_destroy(far);
	reeve_conn_destroy(c);
	for (int i = 0; i < 3; i++)
		rvt_duo_end(&d[i]);
}
END_TEST

START_TEST(a_runtime_ends_while_its_peer_in_another_goes_on)
{
	struct rvt_duo a, b;
	reeve_listener_t *l;

	rvt_duo_rt(&a, 1);
	rvt_duo_rt(&b, 1);
	ck_assert_int_eq(reeve_listen(&l, b.rt, "mem://across", NULL), 0);
	ck_assert_int_eq(reeve_dial(&a.c[0], a.rt, "mem://across", NULL, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_listener_accept(l, &b.c[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(a.c[0]), &a.s[0], RVT_WAIT_MS), 0);
	rvt_write_run(a.s[0], 1000, 0);
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(b.c[0]), &b.s[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(
	    reeve_ping(reeve_conn_ctl(a.c[0]), RVT_WAIT_MS, NULL), 0); /* the bytes are there */
	reeve_rt_destroy(a.rt);
	a.rt = NULL;
	rvt_read_run(b.s[0], 1000, 0);
	(void)reeve_conn_close(b.c[0], 100);
	reeve_listener_destroy(l);
	/* The pipe between them is of a's memory: it goes with the last of both. */
	reeve_close(a.s[0]);
	reeve_conn_destroy(a.c[0]);
	a.s[0] = NULL;
	a.c[0] = NULL;
	rvt_duo_end(&b);
	rvt_duo_end(&a);
}
END_TEST

START_TEST(nothing_is_ever_printed)
{
	struct rvt_duo d;
	char said[64];
	int v[2], out = dup(1), err = dup(2);

	rvt_pipe_pair(v);
	ck_assert_int_eq(fcntl(v[0], F_SETFL, O_NONBLOCK), 0);
	dup2(v[1], 1);
	dup2(v[1], 2);
	rvt_duo_start(&d);
	rvt_write_run(d.s[0], 100, 0);
	(void)reeve_abort(d.k[0], REEVE_EPROTO);
	rvt_duo_end(&d);
	dup2(out, 1);
	dup2(err, 2);
	ck_assert_int_lt(read(v[0], said, sizeof(said)), 0);
}
END_TEST

RVT_MAIN_TABLE("runtime", {&runtimes_come_and_go, 5},
    {&a_runtime_is_destroyed_with_everything_on_it, 4}, {&held_handles_answer_after_the_end, 3},
    {&operations_on_held_handles_complete_after_the_end, 0},
    {&waiting_operations_are_answered_by_the_end, 0},
    {&shutdown_waits_for_streams_then_refuses_everything_new, 0},
    {&shutdown_of_idle_connections_is_clean, 0}, {&an_idle_worker_gives_its_spare_blocks_back, 0},
    {&threads_in_full_use_get_the_end, 2}, {&several_runtimes_live_side_by_side, 0},
    {&a_runtime_ends_while_its_peer_in_another_goes_on, 0}, {&nothing_is_ever_printed, 0})
