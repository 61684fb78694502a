/* Asynchronous operations: deadlines, cancellation, mixing with blocking calls, the end of what they wait for. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

static uint8_t byte;

static void
fill_stream(struct rvt_duo *d)
{
	static uint8_t much[4000000];

	ck_assert_int_eq(reeve_deadline(d->s[0], REEVE_WR, 30), 0);
	ck_assert_int_gt(reeve_write(d->s[0], much, sizeof(much)), 0);
	ck_assert_int_eq(reeve_deadline(d->s[0], REEVE_WR, -1), 0);
}

START_TEST(every_operation_ends_at_its_own_deadline)
{
	static const int64_t timeouts[] = {0, 1, 10};
	struct rvt_duo d;
	struct rvt_done rd, accept, listen;
	reeve_listener_t *l;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://deadline", NULL), 0);
	rvt_done_init(&rd, timeouts[_i]);
	rvt_done_init(&accept, timeouts[_i]);
	rvt_done_init(&listen, timeouts[_i]);
	reeve_read_async(d.s[1], &rd.op);
	reeve_accept_async(d.k[1], &accept.op);
	reeve_listener_accept_async(l, &listen.op);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ETIMEDOUT);
	ck_assert_int_eq(rvt_done_wait(&accept), REEVE_ETIMEDOUT);
	ck_assert_int_eq(rvt_done_wait(&listen), REEVE_ETIMEDOUT);
	ck_assert_ptr_null(rd.op.buf);
	ck_assert_ptr_null(accept.op.stream);
	ck_assert_ptr_null(listen.op.conn);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_write_operation_ends_at_its_deadline)
{
	struct rvt_duo d;
	struct rvt_done first, wr[3];

	rvt_duo_start(&d);
	fill_stream(&d);
	/* The budgets of threads and operations are separate: fill this one too. */
	rvt_done_init(&first, -1);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 1000000, 0), &first.op);
	ck_assert_int_eq(rvt_done_wait(&first), 1000000);
	for (int i = 0; i < 3; i++) {
		rvt_done_init(&wr[i], 10 * i);
		reeve_write_async(d.s[0], rvt_buf_run(d.rt, 1000, 0), &wr[i].op);
	}
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rvt_done_wait(&wr[i]), REEVE_ETIMEDOUT);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_streams_deadline_holds_for_operations)
{
	struct rvt_duo d;
	struct rvt_done rd;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 20), 0);
	rvt_done_init(&rd, -1);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ETIMEDOUT);
	rvt_done_init(&rd, -1); /* set before, 0 */
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 0), 0);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ETIMEDOUT);
	rvt_done_init(&rd, -1); /* set while it waits */
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, -1), 0);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(rvt_done_is(&rd), 0);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 10), 0);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ETIMEDOUT);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_cleared_deadline_does_not_end_a_waiting_operation)
{
	struct rvt_duo d;
	struct rvt_done rd;
	uint64_t start = rvt_ms();

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 60), 0);
	rvt_done_init(&rd, -1);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, -1), 0);
	RVT_UNTIL(rvt_ms() > start + 120);
	rvt_write_run(d.s[0], 10, 0);
	ck_assert_int_eq(rvt_done_wait(&rd), 10);
	reeve_buf_unref(rd.op.buf);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(threads_stay_away_while_operations_read)
{
	struct rvt_duo d;
	struct rvt_done rd;
	reeve_buf_t *b;

	rvt_duo_start(&d);
	rvt_done_init(&rd, -1);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, NULL), 0); /* it is with the stream now */
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_EBUSY);
	ck_assert_int_eq(reeve_read_buf(d.s[1], &b), REEVE_EBUSY);
	rvt_write_run(d.s[0], 10, 0);
	ck_assert_int_eq(rvt_done_wait(&rd), 10);
	reeve_buf_unref(rd.op.buf);
	rvt_write_run(d.s[0], 10, 10);
	rvt_read_run(d.s[1], 10, 10);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(threads_read_again_once_an_operation_has_timed_out)
{
	struct rvt_duo d;
	struct rvt_done rd;

	rvt_duo_start(&d);
	rvt_done_init(&rd, 1);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ETIMEDOUT);
	rvt_write_run(d.s[0], 10, 0);
	rvt_read_run(d.s[1], 10, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(threads_read_again_once_an_operation_was_cancelled)
{
	struct rvt_duo d;
	struct rvt_done rd;

	rvt_duo_start(&d);
	rvt_done_init(&rd, -1);
	reeve_read_async(d.s[1], &rd.op);
	reeve_op_cancel(&rd.op);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ECANCELED);
	rvt_write_run(d.s[0], 10, 0);
	rvt_read_run(d.s[1], 10, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(threads_see_the_end_that_an_operation_was_told)
{
	struct rvt_duo d;
	struct rvt_done rd;

	rvt_duo_start(&d);
	rvt_done_init(&rd, -1);
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	ck_assert_int_eq(rvt_done_wait(&rd), 0);
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(an_operation_takes_over_what_threads_left_unread)
{
	struct rvt_duo d;
	struct rvt_done rd;
	reeve_buf_t *want;
	size_t at = 10;
	reeve_ssize n;

	rvt_duo_start(&d);
	rvt_write_run(d.s[0], 5000, 0);
	rvt_read_run(d.s[1], 10, 0);
	while (at < 5000) {
		rvt_done_init(&rd, RVT_WAIT_MS);
		reeve_read_async(d.s[1], &rd.op);
		n = rvt_done_wait(&rd);
		ck_assert_int_gt(n, 0);
		want = rvt_buf_run(d.rt, (size_t)n, at);
		ck_assert_mem_eq(reeve_buf_data(want), reeve_buf_data(rd.op.buf), (size_t)n);
		reeve_buf_unref(want);
		reeve_buf_unref(rd.op.buf);
		at += (size_t)n;
	}
	rvt_duo_end(&d);
}
END_TEST

static void *
read_in_thread(void *arg)
{
	reeve_stream_t *s = arg;
	uint8_t b;
	reeve_ssize n;

	while ((n = reeve_read(s, &b, 1)) == REEVE_EBUSY)
		; /* the operation was first this time */
	return (void *)(intptr_t)n;
}

START_TEST(an_operation_stays_away_while_a_thread_reads)
{
	struct rvt_duo d;
	struct rvt_done rd;
	pthread_t t;
	void *rc;
	reeve_ssize n;

	rvt_duo_start(&d);
	ck_assert_int_eq(pthread_create(&t, NULL, read_in_thread, d.s[1]), 0);
	do { /* until the thread is inside; before that the operation waits, and is cancelled */
		rvt_done_init(&rd, 1);
		reeve_read_async(d.s[1], &rd.op);
		n = rvt_done_wait(&rd);
	} while (n == REEVE_ETIMEDOUT);
	ck_assert_int_eq(n, REEVE_EBUSY);
	rvt_write_run(d.s[0], 1, 0);
	pthread_join(t, &rc);
	ck_assert_int_eq((intptr_t)rc, 1);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(cancel_ends_every_kind_of_operation)
{
	struct rvt_duo d;
	struct rvt_done rd, wr[2], accept, closed, listen;
	reeve_listener_t *l;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://cancel", NULL), 0);
	fill_stream(&d);
	for (int i = 0; i < 2; i++)
		rvt_done_init(&wr[i], -1);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 1000000, 0), &wr[0].op);
	ck_assert_int_eq(rvt_done_wait(&wr[0]), 1000000);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 1000, 0), &wr[1].op);
	rvt_done_init(&rd, -1);
	rvt_done_init(&accept, -1);
	rvt_done_init(&closed, -1);
	rvt_done_init(&listen, -1);
	reeve_read_async(d.s[0], &rd.op);
	reeve_accept_async(d.k[1], &accept.op);
	reeve_closed_async(d.k[1], &closed.op);
	reeve_listener_accept_async(l, &listen.op);
	reeve_op_cancel(&wr[1].op);
	reeve_op_cancel(&rd.op);
	reeve_op_cancel(&accept.op);
	reeve_op_cancel(&closed.op);
	reeve_op_cancel(&listen.op);
	ck_assert_int_eq(rvt_done_wait(&wr[1]), REEVE_ECANCELED);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_ECANCELED);
	ck_assert_int_eq(rvt_done_wait(&accept), REEVE_ECANCELED);
	ck_assert_int_eq(rvt_done_wait(&closed), REEVE_ECANCELED);
	ck_assert_int_eq(rvt_done_wait(&listen), REEVE_ECANCELED);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

/* Cancel while the result may be on its way: one of the two, once, and nothing is lost. */
START_TEST(a_race_of_cancel_and_result_ends_in_one_of_them)
{
	struct rvt_duo d;
	struct rvt_done rd;
	reeve_ssize n;
	uint64_t got = 0;

	rvt_duo_start(&d);
	for (unsigned i = 0; i < 500; i++) {
		rvt_done_init(&rd, -1);
		reeve_read_async(d.s[1], &rd.op);
		rvt_write_run(d.s[0], 10, i * 10);
		reeve_op_cancel(&rd.op);
		n = rvt_done_wait(&rd);
		ck_assert(n > 0 || n == REEVE_ECANCELED);
		if (n > 0)
			reeve_buf_unref(rd.op.buf);
		got += n > 0 ? (uint64_t)n : 0;
	}
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	while ((n = reeve_read(d.s[1], &byte, 1)) > 0)
		got++;
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(got, 5000);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(cancelled_accepts_lose_no_stream)
{
	struct rvt_duo d;
	struct rvt_done accept;
	reeve_stream_t *s, *t;
	unsigned taken = 0;

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	for (unsigned i = 0; i < 100; i++) {
		rvt_done_init(&accept, -1);
		reeve_accept_async(d.k[1], &accept.op);
		ck_assert_int_eq(reeve_open(d.k[0], &s, RVT_WAIT_MS), 0);
		reeve_op_cancel(&accept.op);
		if (rvt_done_wait(&accept) == 0) {
			taken++;
			reeve_close(accept.op.stream);
		}
		reeve_close(s);
	}
	for (; taken < 100; taken++) {
		ck_assert_int_eq(reeve_accept(d.k[1], &t, RVT_WAIT_MS), 0);
		reeve_close(t);
	}
	ck_assert_int_eq(reeve_accept(d.k[1], &t, 0), REEVE_ETIMEDOUT);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_end_of_the_connection_answers_everything)
{
	struct rvt_duo d;
	struct rvt_done rd, accept, open, ping, wr;

	rvt_duo_start(&d);
	rvt_done_init(&rd, -1);
	rvt_done_init(&accept, -1);
	rvt_done_init(&open, -1);
	rvt_done_init(&ping, -1);
	rvt_done_init(&wr, -1);
	reeve_read_async(d.s[0], &rd.op);
	reeve_accept_async(d.k[0], &accept.op);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_abort(d.k[0], REEVE_EDEAD), 0);
	ck_assert_int_eq(rvt_done_wait(&rd), REEVE_EDEAD);
	ck_assert_int_eq(rvt_done_wait(&accept), REEVE_EDEAD);
	reeve_open_async(d.k[0], &open.op);
	reeve_ping_async(d.k[0], &ping.op);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 10, 0), &wr.op);
	ck_assert_int_eq(rvt_done_wait(&open), REEVE_EDEAD);
	ck_assert_int_eq(rvt_done_wait(&ping), REEVE_EDEAD);
	ck_assert_int_eq(rvt_done_wait(&wr), REEVE_EDEAD);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_write_after_the_end_of_the_direction_is_answered_and_consumed)
{
	struct rvt_duo d;
	struct rvt_done wr;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	rvt_done_init(&wr, -1);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 10, 0), &wr.op);
	ck_assert_int_eq(rvt_done_wait(&wr), REEVE_ESHUT);
	ck_assert_int_eq(reeve_reset(d.s[1], 0), 0);
	rvt_done_init(&wr, -1);
	reeve_write_async(d.s[1], rvt_buf_run(d.rt, 10, 0), &wr.op);
	ck_assert_int_eq(rvt_done_wait(&wr), REEVE_ECLOSED);
	rvt_done_init(&wr, -1);
	reeve_read_async(d.s[1], &wr.op);
	ck_assert_int_eq(rvt_done_wait(&wr), REEVE_ECLOSED);
	rvt_duo_end(&d);
}
END_TEST

struct place {
	reeve_op_t op;
	struct rvt_done done;
	pthread_t on;
};

static void
note_place(reeve_op_t *op)
{
	struct place *p = op->arg;

	p->on = pthread_self();
	p->done.op.fn(&p->done.op);
}

/* So that they cannot overlap the stream's others. */
START_TEST(a_refused_write_completes_where_the_streams_others_do)
{
	struct rvt_duo d;
	struct place rd, wr;

	rvt_duo_start(&d);
	for (int i = 0; i < 2; i++) {
		rvt_done_init(&rd.done, -1);
		rvt_done_init(&wr.done, -1);
		reeve_op_init(&rd.op, note_place, &rd);
		reeve_op_init(&wr.op, note_place, &wr);
		ck_assert_int_eq(reeve_shut(d.s[i]), 0);
		reeve_write_async(d.s[i], rvt_buf_run(d.rt, 10, 0), &wr.op);
		(void)rvt_done_wait(&wr.done);
		ck_assert_int_eq(wr.op.res, REEVE_ESHUT);
		rd.op.timeout_ms = 1;
		reeve_read_async(d.s[i], &rd.op);
		(void)rvt_done_wait(&rd.done);
		ck_assert(pthread_equal(rd.on, wr.on));
	}
	rvt_duo_end(&d);
}
END_TEST

/* _i: 0 the others are written, 1 they end with the stream, 2 they are cancelled. */
START_TEST(a_refused_write_completes_behind_those_that_wait)
{
	static const int rc[] = {1000000, REEVE_ESHUT, REEVE_ECANCELED};
	struct rvt_duo d;
	struct rvt_done wr[6];

	rvt_duo_start(&d);
	for (int i = 0; i < 6; i++) {
		if (i == 4) /* 0 was accepted, 1 to 3 wait for room */
			ck_assert_int_eq(reeve_shut(d.s[0]), 0);
		rvt_done_init(&wr[i], -1);
		reeve_write_async(
		    d.s[0], rvt_buf_run(d.rt, 1000000, (uint64_t)i * 1000000), &wr[i].op);
	}
	ck_assert_int_eq(rvt_done_wait(&wr[0]), 1000000);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	for (int i = 1; i < 6; i++)
		ck_assert(!rvt_done_is(&wr[i]));
	if (_i == 0) {
		rvt_read_run(d.s[1], 4000000, 0);
		rvt_read_end(d.s[1]);
	} else if (_i == 1) {
		ck_assert_int_eq(reeve_reset(d.s[0], 0), 0);
	} else {
		for (int i = 1; i < 4; i++)
			reeve_op_cancel(&wr[i].op);
	}
	for (int i = 1; i < 6; i++) {
		ck_assert_int_eq(rvt_done_wait(&wr[i]), i > 3 ? REEVE_ESHUT : rc[_i]);
		ck_assert_uint_gt(wr[i].order, wr[i - 1].order);
	}
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("api_op_end", {&a_write_operation_ends_at_its_deadline, 0},
    {&the_streams_deadline_holds_for_operations, 0},
    {&a_cleared_deadline_does_not_end_a_waiting_operation, 0},
    {&threads_stay_away_while_operations_read, 0},
    {&threads_read_again_once_an_operation_has_timed_out, 0},
    {&threads_read_again_once_an_operation_was_cancelled, 0},
    {&threads_see_the_end_that_an_operation_was_told, 0},
    {&an_operation_takes_over_what_threads_left_unread, 0},
    {&an_operation_stays_away_while_a_thread_reads, 0}, {&cancel_ends_every_kind_of_operation, 0},
    {&a_race_of_cancel_and_result_ends_in_one_of_them, 0}, {&cancelled_accepts_lose_no_stream, 0},
    {&the_end_of_the_connection_answers_everything, 0},
    {&a_write_after_the_end_of_the_direction_is_answered_and_consumed, 0},
    {&a_refused_write_completes_where_the_streams_others_do, 0},
    {&a_refused_write_completes_behind_those_that_wait, 3},
    {&every_operation_ends_at_its_own_deadline, 3})
