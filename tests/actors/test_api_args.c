/* Every call with nothing and with nonsense, and every blocking call on a worker. */
#include <config.h>

#include <limits.h>
#include <signal.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

static void
handler(reeve_stream_t *s, void *arg)
{
	(void)s;
	(void)arg;
}

START_TEST(runtime_calls_without_arguments_answer_einval)
{
	reeve_rt_t *rt = NULL;
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_rt_create(NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_shutdown(NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_fd(NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_run(NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_stats(NULL, &st), REEVE_EINVAL);
	reeve_rt_destroy(NULL);
	reeve_rt_cfg_init_sized(NULL, sizeof(reeve_rt_cfg_t));
	reeve_cfg_init_sized(NULL, sizeof(reeve_cfg_t));
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_rt_stats(rt, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_fd(rt), REEVE_ENOTSUP);
	ck_assert_int_eq(reeve_rt_run(rt, 0), REEVE_ENOTSUP);
	reeve_rt_destroy(rt);
}
END_TEST

START_TEST(connection_calls_without_arguments_answer_einval)
{
	struct rvt_duo d;
	reeve_conn_t *c = NULL, *pair[2];
	reeve_transport_t t = {0};

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_conn_open(NULL, d.rt, &t, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open(&c, NULL, &t, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open(&c, d.rt, NULL, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open(&c, d.rt, &t, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open_fd(NULL, d.rt, 0, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open_fd(&c, NULL, 0, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open_fd(&c, d.rt, -1, REEVE_DIALER, NULL), REEVE_EINVAL);
	ck_assert_int_lt(reeve_conn_open_fd(&c, d.rt, 12345, REEVE_DIALER, NULL), 0);
	ck_assert_int_eq(reeve_conn_pair(NULL, d.rt, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_pair(pair, NULL, NULL), REEVE_EINVAL);
	ck_assert_ptr_null(reeve_conn_ctl(NULL));
	ck_assert_int_eq(reeve_conn_close(NULL, 0), REEVE_EINVAL);
	reeve_conn_destroy(NULL);
	reeve_conn_release(NULL);
	reeve_transport_ready(NULL, REEVE_READABLE);
	ck_assert_ptr_null(c);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(controller_calls_without_arguments_answer_einval)
{
	struct rvt_duo d;
	reeve_stream_t *s = NULL;
	reeve_reason_t why = {0};
	reeve_stats_t st = {0};

	ck_assert_int_eq(reeve_open(NULL, &s, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_accept(NULL, &s, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ping(NULL, 0, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_goaway(NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_abort(NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ctl_reason(NULL, &why), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ctl_stats(NULL, &st), REEVE_EINVAL);
	ck_assert_ptr_null(reeve_ctl_ref(NULL));
	reeve_ctl_unref(NULL);
	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_open(d.k[0], NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_accept(d.k[0], NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], &why), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), REEVE_EINVAL);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_abort(d.k[0], 1), REEVE_EINVAL);
	rvt_duo_end(&d);
}
END_TEST

/* The least number there is has no positive twin. */
START_TEST(abort_with_the_least_number_ends_the_connection_or_is_refused)
{
	struct rvt_duo d;
	reeve_reason_t why = {.size = sizeof(why)};
	int rc;

	rvt_duo_start(&d);
	rc = reeve_abort(d.k[0], INT_MIN);
	ck_assert(rc == 0 || rc == REEVE_EINVAL);
	if (rc == 0) {
		(void)reeve_conn_close(d.c[0], -1);
		ck_assert_int_eq(reeve_ctl_reason(d.k[0], &why), 0);
		ck_assert_int_lt(why.rc, 0);
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(stream_calls_without_a_stream_answer_einval)
{
	uint8_t byte = 0;
	struct iovec v = {&byte, 1};
	reeve_buf_t *b = NULL;
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_alloc alloc;
	struct rvt_duo d;

	(void)alloc;
	ck_assert_int_eq(reeve_read(NULL, &byte, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_read_buf(NULL, &b), REEVE_EINVAL);
	ck_assert_int_eq(reeve_write(NULL, &byte, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_writev(NULL, &v, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_shut(NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_stop(NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_reset(NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_deadline(NULL, REEVE_RD, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_stream_reason(NULL, &why), REEVE_EINVAL);
	ck_assert_uint_eq(reeve_stream_id(NULL), 0);
	ck_assert_ptr_null(reeve_stream_ctl(NULL));
	ck_assert_ptr_null(reeve_stream_data(NULL));
	ck_assert_ptr_null(reeve_stream_ref(NULL));
	reeve_stream_set_data(NULL, &byte);
	reeve_stream_unref(NULL);
	reeve_close(NULL);
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_write_buf(NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(
	    reeve_write_buf(NULL, rvt_buf_run(d.rt, 10, 0)), REEVE_EINVAL); /* consumed */
	rvt_duo_end(&d);
}
END_TEST

START_TEST(stream_calls_with_nonsense_answer_einval)
{
	struct rvt_duo d;
	uint8_t byte = 0;
	struct iovec v[2] = {{&byte, SIZE_MAX / 2}, {&byte, SIZE_MAX / 2}};
	reeve_reason_t why = {0};

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_read(d.s[0], NULL, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_read(d.s[0], &byte, SIZE_MAX), REEVE_EINVAL);
	ck_assert_int_eq(reeve_read(d.s[0], NULL, 0), 0);
	ck_assert_int_eq(reeve_read_buf(d.s[0], NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_write(d.s[0], NULL, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_write(d.s[0], NULL, 0), 0);
	ck_assert_int_eq(reeve_write(d.s[0], &byte, SIZE_MAX), REEVE_EINVAL);
	ck_assert_int_eq(reeve_writev(d.s[0], v, 2), REEVE_EINVAL);
	ck_assert_int_eq(reeve_writev(d.s[0], v, -1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_writev(d.s[0], NULL, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_writev(d.s[0], NULL, 0), 0);
	ck_assert_int_eq(reeve_write_buf(d.s[0], NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_deadline(d.s[0], 0, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_deadline(d.s[0], 4, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_stream_reason(d.s[0], &why), REEVE_EINVAL);
	ck_assert_int_eq(reeve_stream_reason(d.s[0], NULL), REEVE_EINVAL);
	rvt_duo_end(&d);
}
END_TEST

static unsigned mistakes;

static void
count(reeve_op_t *op)
{
	ck_assert_int_eq(op->res, REEVE_EINVAL);
	mistakes++;
}

/* Nothing is known of a runtime, so there is no worker to complete on. */
START_TEST(operations_on_nothing_complete_with_einval)
{
	reeve_op_t op = REEVE_OP(count, NULL);
	struct rvt_duo d;

	reeve_open_async(NULL, &op);
	reeve_accept_async(NULL, &op);
	reeve_ping_async(NULL, &op);
	reeve_closed_async(NULL, &op);
	reeve_read_async(NULL, &op);
	reeve_write_async(NULL, NULL, &op);
	reeve_dial_async(NULL, "mem://x", NULL, &op);
	reeve_listener_accept_async(NULL, &op);
	ck_assert_uint_eq(mistakes, 8);
	rvt_duo_start(&d);
	reeve_write_async(NULL, rvt_buf_run(d.rt, 10, 0), &op);
	ck_assert_uint_eq(mistakes, 9);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 10, 0), NULL); /* consumed all the same */
	reeve_open_async(d.k[0], NULL);
	reeve_accept_async(d.k[0], NULL);
	reeve_ping_async(d.k[0], NULL);
	reeve_closed_async(d.k[0], NULL);
	reeve_read_async(d.s[0], NULL);
	reeve_dial_async(d.rt, "mem://x", NULL, NULL);
	reeve_op_cancel(NULL);
	ck_assert_int_eq(reeve_op_wait(NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_EINVAL);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(listener_and_dialer_calls_without_arguments_answer_einval)
{
	struct rvt_duo d;
	reeve_listener_t *l = NULL;
	reeve_conn_t *c = NULL;
	char text[64];

	ck_assert_int_eq(reeve_listener_addr(NULL, text, sizeof(text)), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listener_accept(NULL, &c, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_serve(NULL, handler, NULL), REEVE_EINVAL);
	reeve_listener_stop(NULL);
	reeve_listener_destroy(NULL);
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(NULL, d.rt, "mem://a", NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listen(&l, NULL, "mem://a", NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listen(&l, d.rt, NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_dial(NULL, d.rt, "mem://a", NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_dial(&c, NULL, "mem://a", NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_dial(&c, d.rt, NULL, NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://a", NULL), 0);
	ck_assert_int_eq(reeve_listener_addr(l, NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listener_addr(l, text, 3), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listener_accept(l, NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_serve(l, NULL, NULL), REEVE_EINVAL);
	reeve_listener_accept_async(l, NULL);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

static void
actor(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)msg;
	(void)arg;
}

START_TEST(actor_and_buffer_calls_without_arguments_do_no_harm)
{
	struct rvt_duo d, other;
	reeve_actor_t *a = NULL;
	reeve_msg_t msg;

	ck_assert_ptr_null(reeve_actor_ref(NULL));
	ck_assert_ptr_null(reeve_actor_arg(NULL));
	ck_assert_ptr_null(reeve_msg_op(NULL));
	reeve_actor_unref(NULL);
	reeve_actor_stop(NULL);
	reeve_actor_post(NULL, &msg);
	rvt_duo_rt(&d, 1);
	rvt_duo_start(&other);
	ck_assert_int_eq(reeve_actor_spawn(NULL, d.rt, actor, NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_actor_spawn(&a, NULL, actor, NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_actor_spawn(&a, d.rt, NULL, NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_actor_spawn(&a, d.rt, actor, NULL, other.k[0]), REEVE_EINVAL);
	ck_assert_int_eq(reeve_actor_spawn(&a, d.rt, actor, &msg, NULL), 0);
	ck_assert_ptr_eq(reeve_actor_arg(a), &msg);
	reeve_actor_post(a, NULL);
	reeve_actor_unref(a);
	ck_assert_ptr_null(reeve_buf_alloc(NULL, 1));
	ck_assert_ptr_null(reeve_buf_wrap(NULL, "x", 1, NULL, NULL));
	ck_assert_ptr_null(reeve_buf_slice(NULL, 0, 1));
	ck_assert_ptr_null(reeve_buf_ref(NULL));
	ck_assert_ptr_null(reeve_buf_data(NULL));
	ck_assert_ptr_null(reeve_buf_mut(NULL));
	ck_assert_uint_eq(reeve_buf_len(NULL), 0);
	reeve_buf_unref(NULL);
	rvt_duo_end(&other);
	rvt_duo_end(&d);
}
END_TEST

/* --- on a worker --- */

struct on_worker {
	struct rvt_duo d;
	reeve_listener_t *l;
	reeve_op_t pending;
	reeve_op_t op;
	struct rvt_done done;
};

static void
block_everywhere(struct on_worker *w)
{
	reeve_conn_t *c = NULL;
	reeve_stream_t *s = NULL;
	reeve_listener_t *l = NULL;
	reeve_buf_t *b = NULL;
	uint8_t byte = 0;
	struct iovec v = {&byte, 1};

	ck_assert_int_eq(reeve_rt_shutdown(w->d.rt, 0), REEVE_EWORKER);
	reeve_rt_destroy(
	    w->d.rt); /* has no answer; the rest of the test shows that nothing happened */
	ck_assert_int_eq(reeve_conn_close(w->d.c[0], 0), REEVE_EWORKER);
	ck_assert_int_eq(reeve_open(w->d.k[0], &s, 0), REEVE_EWORKER);
	ck_assert_int_eq(reeve_accept(w->d.k[1], &s, 0), REEVE_EWORKER);
	ck_assert_int_eq(reeve_ping(w->d.k[1], 0, NULL), REEVE_EWORKER);
	ck_assert_int_eq(reeve_read(w->d.s[0], &byte, 1), REEVE_EWORKER);
	ck_assert_int_eq(reeve_read_buf(w->d.s[0], &b), REEVE_EWORKER);
	ck_assert_int_eq(reeve_write(w->d.s[0], &byte, 1), REEVE_EWORKER);
	ck_assert_int_eq(reeve_writev(w->d.s[0], &v, 1), REEVE_EWORKER);
	ck_assert_int_eq(reeve_write_buf(w->d.s[0], rvt_buf_run(w->d.rt, 10, 0)), REEVE_EWORKER);
	ck_assert_int_eq(reeve_op_wait(&w->pending), REEVE_EWORKER);
	ck_assert_int_eq(reeve_listen(&l, w->d.rt, "mem://b", NULL), REEVE_EWORKER);
	ck_assert_int_eq(reeve_listener_accept(w->l, &c, 0), REEVE_EWORKER);
	ck_assert_int_eq(reeve_serve(w->l, handler, NULL), REEVE_EWORKER);
	ck_assert_int_eq(reeve_dial(&c, w->d.rt, "mem://a", NULL, 0), REEVE_EWORKER);
	ck_assert_ptr_null(c);
	ck_assert_ptr_null(s);
	ck_assert_ptr_null(b);
	ck_assert_ptr_null(l);
}

static void
in_callback(reeve_op_t *op)
{
	struct on_worker *w = op->arg;

	block_everywhere(w);
	w->done.op.fn(&w->done.op);
}

START_TEST(blocking_calls_in_a_callback_answer_eworker)
{
	struct on_worker w;

	rvt_duo_start(&w.d);
	ck_assert_int_eq(reeve_listen(&w.l, w.d.rt, "mem://a", NULL), 0);
	rvt_done_init(&w.done, -1);
	reeve_op_init(&w.op, in_callback, &w);
	reeve_op_init(&w.pending, NULL, NULL);
	reeve_closed_async(w.d.k[0], &w.pending);
	reeve_ping_async(w.d.k[0], &w.op);
	(void)rvt_done_wait(&w.done);
	rvt_write_run(w.d.s[0], 1000, 0);
	rvt_read_run(w.d.s[1], 1000, 0);
	reeve_listener_destroy(w.l);
	(void)reeve_abort(w.d.k[0], REEVE_ELIMIT);
	ck_assert_int_eq(reeve_op_wait(&w.pending), REEVE_ELIMIT);
	rvt_duo_end(&w.d);
}
END_TEST

static void
spawned(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct on_worker *w = arg;

	(void)self;
	if (msg == NULL)
		return;
	block_everywhere(w);
	w->done.op.fn(&w->done.op);
}

START_TEST(blocking_calls_in_an_actor_answer_eworker)
{
	struct on_worker w;
	reeve_actor_t *a;
	reeve_msg_t msg;

	rvt_duo_start(&w.d);
	ck_assert_int_eq(reeve_listen(&w.l, w.d.rt, "mem://a", NULL), 0);
	rvt_done_init(&w.done, -1);
	reeve_op_init(&w.pending, NULL, NULL);
	reeve_closed_async(w.d.k[0], &w.pending);
	ck_assert_int_eq(reeve_actor_spawn(&a, w.d.rt, spawned, &w, NULL), 0);
	reeve_actor_post(a, &msg);
	(void)rvt_done_wait(&w.done);
	reeve_actor_unref(a);
	reeve_listener_destroy(w.l);
	(void)reeve_abort(w.d.k[0], 0);
	(void)reeve_op_wait(&w.pending);
	rvt_duo_end(&w.d);
}
END_TEST

static void
leave_with_handles(void *arg)
{
	struct on_worker *w = arg;

	reeve_conn_destroy(w->d.c[0]);
	reeve_conn_release(w->d.c[1]);
	reeve_listener_destroy(w->l);
	reeve_close(w->d.s[0]);
	reeve_stream_unref(w->d.s[1]);
}

/* They have no result, so they do what they can without waiting, and nothing leaks. */
START_TEST(letting_go_on_a_worker_works)
{
	struct on_worker w;

	rvt_duo_start(&w.d);
	ck_assert_int_eq(reeve_listen(&w.l, w.d.rt, "mem://a", NULL), 0);
	rvt_on_worker(w.d.rt, leave_with_handles, &w);
	w.d.c[0] = w.d.c[1] = NULL;
	w.d.s[0] = w.d.s[1] = NULL;
	rvt_duo_end(&w.d);
}
END_TEST

RVT_MAIN("api_args", &runtime_calls_without_arguments_answer_einval,
    &connection_calls_without_arguments_answer_einval,
    &controller_calls_without_arguments_answer_einval,
    &abort_with_the_least_number_ends_the_connection_or_is_refused,
    &stream_calls_without_a_stream_answer_einval, &stream_calls_with_nonsense_answer_einval,
    &operations_on_nothing_complete_with_einval,
    &listener_and_dialer_calls_without_arguments_answer_einval,
    &actor_and_buffer_calls_without_arguments_do_no_harm,
    &blocking_calls_in_a_callback_answer_eworker, &blocking_calls_in_an_actor_answer_eworker,
    &letting_go_on_a_worker_works)
