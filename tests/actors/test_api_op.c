/* Asynchronous operations: what they do, in which order, exactly once. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

START_TEST(init_and_macro_make_the_same_operation)
{
	reeve_op_t a, b = REEVE_OP(NULL, &a);

	memset(&a, 0x55, sizeof(a));
	reeve_op_init(&a, NULL, &a);
	ck_assert_ptr_eq(a.arg, b.arg);
	ck_assert_ptr_null(a.fn);
	ck_assert_ptr_null(a.actor);
	ck_assert_ptr_null(a.cq);
	ck_assert_int_eq(a.timeout_ms, -1);
	ck_assert_int_eq(b.timeout_ms, -1);
	ck_assert_int_eq(a.res, 0);
	ck_assert_ptr_null(a.buf);
	ck_assert_ptr_null(a.stream);
	ck_assert_ptr_null(a.conn);
}
END_TEST

START_TEST(streams_are_opened_accepted_and_used_without_blocking)
{
	struct rvt_duo d;
	struct rvt_done open, accept, rd, wr;

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	rvt_done_init(&open, RVT_WAIT_MS);
	rvt_done_init(&accept, RVT_WAIT_MS);
	rvt_done_init(&rd, RVT_WAIT_MS);
	rvt_done_init(&wr, RVT_WAIT_MS);
	reeve_accept_async(d.k[1], &accept.op);
	reeve_open_async(d.k[0], &open.op);
	ck_assert_int_eq(rvt_done_wait(&open), 0);
	d.s[0] = open.op.stream;
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 3000, 0), &wr.op);
	ck_assert_int_eq(rvt_done_wait(&wr), 3000);
	ck_assert_int_eq(rvt_done_wait(&accept), 0);
	d.s[1] = accept.op.stream;
	reeve_read_async(d.s[1], &rd.op);
	ck_assert_int_eq(rvt_done_wait(&rd), 3000);
	ck_assert_uint_eq(reeve_buf_len(rd.op.buf), 3000);
	reeve_buf_unref(rd.op.buf);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_ping_tells_its_round_trip)
{
	struct rvt_duo d;
	struct rvt_done ping[5];
	uint64_t rtt = 0;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, &rtt), 0);
	ck_assert_uint_lt(rtt, RVT_WAIT_MS * 1000);
	for (int i = 0; i < 5; i++) {
		rvt_done_init(&ping[i], -1);
		reeve_ping_async(d.k[0], &ping[i].op);
	}
	for (int i = 0; i < 5; i++)
		ck_assert_int_ge(rvt_done_wait(&ping[i]), 0);
	rvt_duo_end(&d);
}
END_TEST

#define PIPELINED 100

START_TEST(pipelined_writes_and_reads_complete_in_order)
{
	struct rvt_duo d;
	static struct rvt_done wr[PIPELINED], rd[PIPELINED];
	size_t at = 0;

	rvt_duo_start(&d);
	for (int i = 0; i < PIPELINED; i++) {
		rvt_done_init(&rd[i], -1);
		reeve_read_async(d.s[1], &rd[i].op);
	}
	for (int i = 0; i < PIPELINED; i++) {
		rvt_done_init(&wr[i], -1);
		reeve_write_async(d.s[0], rvt_buf_run(d.rt, 1000, (uint64_t)i * 1000), &wr[i].op);
	}
	for (int i = 0; i < PIPELINED; i++) {
		ck_assert_int_eq(rvt_done_wait(&wr[i]), 1000);
		if (i > 0)
			ck_assert_uint_gt(wr[i].order, wr[i - 1].order);
	}
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	for (int i = 0; i < PIPELINED; i++) {
		reeve_ssize n = rvt_done_wait(&rd[i]);
		reeve_buf_t *want;

		if (i > 0)
			ck_assert_uint_gt(rd[i].order, rd[i - 1].order);
		if (at == PIPELINED * 1000) {
			ck_assert_int_eq(n, 0);
			ck_assert_ptr_null(rd[i].op.buf);
			continue;
		}
		ck_assert_int_gt(n, 0);
		want = rvt_buf_run(d.rt, (size_t)n, at);
		ck_assert_mem_eq(reeve_buf_data(rd[i].op.buf), reeve_buf_data(want), (size_t)n);
		reeve_buf_unref(want);
		reeve_buf_unref(rd[i].op.buf);
		at += (size_t)n;
	}
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

/* Far more than the budget is under way when the stream is ended: all of it goes out. */
static void
end_behind_writes(int close)
{
	struct rvt_duo d;
	static struct rvt_done wr[PIPELINED];

	rvt_duo_start(&d);
	for (int i = 0; i < PIPELINED; i++) {
		rvt_done_init(&wr[i], -1);
		reeve_write_async(d.s[0], rvt_buf_run(d.rt, 20000, (uint64_t)i * 20000), &wr[i].op);
	}
	if (close) {
		reeve_close(d.s[0]);
		d.s[0] = NULL;
	} else {
		ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	}
	rvt_read_run(d.s[1], PIPELINED * 20000, 0);
	rvt_read_end(d.s[1]);
	for (int i = 0; i < PIPELINED; i++)
		ck_assert_int_eq(rvt_done_wait(&wr[i]), 20000);
	rvt_duo_end(&d);
}

START_TEST(shut_behind_pipelined_writes_sends_them)
{
	end_behind_writes(0);
}
END_TEST

START_TEST(close_behind_pipelined_writes_sends_them)
{
	end_behind_writes(1);
}
END_TEST

START_TEST(threads_and_operations_write_in_the_order_of_the_calls)
{
	struct rvt_duo d;
	static struct rvt_done wr[PIPELINED];

	rvt_duo_start(&d);
	for (int i = 0; i < PIPELINED; i++) {
		rvt_done_init(&wr[i], -1);
		rvt_write_run(d.s[0], 100, (uint64_t)i * 300);
		reeve_write_async(
		    d.s[0], rvt_buf_run(d.rt, 200, (uint64_t)i * 300 + 100), &wr[i].op);
	}
	rvt_read_run(d.s[1], PIPELINED * 300, 0);
	for (int i = 0; i < PIPELINED; i++)
		ck_assert_int_eq(rvt_done_wait(&wr[i]), 200);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(an_operation_without_a_function_is_waited_for)
{
	struct rvt_duo d;
	reeve_op_t op = REEVE_OP(NULL, NULL), ping = REEVE_OP(NULL, NULL);

	rvt_duo_start(&d);
	reeve_read_async(d.s[1], &op);
	reeve_ping_async(d.k[1], &ping);
	rvt_write_run(d.s[0], 10, 0);
	ck_assert_int_eq(reeve_op_wait(&op), 10);
	ck_assert_int_eq(reeve_op_wait(&op), 10); /* again is the same */
	reeve_buf_unref(op.buf);
	ck_assert_int_ge(reeve_op_wait(&ping), 0);
	for (int i = 0; i < 100; i++) { /* and its storage may be used again at once */
		reeve_op_init(&op, NULL, NULL);
		reeve_ping_async(d.k[0], &op);
		ck_assert_int_ge(reeve_op_wait(&op), 0);
	}
	rvt_duo_end(&d);
}
END_TEST

struct chain {
	reeve_op_t op;
	struct rvt_done over;
	reeve_stream_t *s;
	reeve_rt_t *rt;
	struct rvq_gauge depth;
	reeve_ssize left; /* bytes to come */
};

/* Starts itself again, from inside: the next completion never comes inside this one. */
static void
echo_step(reeve_op_t *op)
{
	struct chain *c = op->arg;

	ck_assert_uint_eq(rvq_gauge_add(&c->depth, 1), 1);
	if (op->buf != NULL)
		reeve_buf_unref(op->buf);
	op->buf = NULL;
	if (op->res <= 0 || (c->left -= op->res) <= 0) {
		c->over.op.res = op->res;
		c->over.op.fn(&c->over.op);
	} else {
		reeve_read_async(c->s, op);
	}
	rvq_gauge_sub(&c->depth, 1);
}

START_TEST(an_operation_started_again_by_its_completion_runs_on)
{
	struct rvt_duo d;
	struct chain c = {.left = 200 * 3000};

	rvt_duo_start(&d);
	c.s = d.s[1];
	rvt_done_init(&c.over, -1);
	reeve_op_init(&c.op, echo_step, &c);
	reeve_read_async(c.s, &c.op);
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 3000, i)), 3000);
		if (i % 10 == 0)
			ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	}
	ck_assert_int_gt(rvt_done_wait(&c.over), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(operations_on_a_worker_do_not_complete_inside_their_call)
{
	struct rvt_duo d;
	struct chain c = {.left = 100000};

	rvt_duo_start(&d);
	c.s = d.s[1];
	rvt_done_init(&c.over, -1);
	reeve_op_init(&c.op, echo_step, &c);
	/* There is always something to read, so each start could be answered at once. */
	rvt_write_run(d.s[0], 100000, 0);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	reeve_read_async(c.s, &c.op);
	ck_assert_int_gt(rvt_done_wait(&c.over), 0);
	rvt_duo_end(&d);
}
END_TEST

static unsigned refused;

static void
count_refused(reeve_op_t *op)
{
	ck_assert_int_eq(op->res, REEVE_ENOTSUP);
	(void)__atomic_fetch_add(&refused, 1, __ATOMIC_SEQ_CST);
}

START_TEST(a_completion_queue_is_not_there_yet)
{
	struct rvt_duo d;
	reeve_op_t op[8];
	reeve_listener_t *l;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://cq", NULL), 0);
	for (int i = 0; i < 8; i++) {
		reeve_op_init(&op[i], count_refused, NULL);
		op[i].cq = (reeve_cq_t *)(void *)&op[i];
	}
	reeve_open_async(d.k[0], &op[0]);
	reeve_accept_async(d.k[0], &op[1]);
	reeve_ping_async(d.k[0], &op[2]);
	reeve_closed_async(d.k[0], &op[3]);
	reeve_read_async(d.s[0], &op[4]);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 10, 0), &op[5]);
	reeve_dial_async(d.rt, "mem://cq", NULL, &op[6]);
	reeve_listener_accept_async(l, &op[7]);
	RVT_UNTIL(__atomic_load_n(&refused, __ATOMIC_SEQ_CST) == 8);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN("api_op", &init_and_macro_make_the_same_operation,
    &streams_are_opened_accepted_and_used_without_blocking, &a_ping_tells_its_round_trip,
    &pipelined_writes_and_reads_complete_in_order, &shut_behind_pipelined_writes_sends_them,
    &close_behind_pipelined_writes_sends_them,
    &threads_and_operations_write_in_the_order_of_the_calls,
    &an_operation_without_a_function_is_waited_for,
    &an_operation_started_again_by_its_completion_runs_on,
    &operations_on_a_worker_do_not_complete_inside_their_call, &a_completion_queue_is_not_there_yet)
