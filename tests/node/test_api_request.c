/* The calls of reeve/request.h: with nothing, with nonsense, on a worker, and blocking. */
#include <config.h>

#include <string.h>

#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

static struct rq_node a, b;

static void
pair(void)
{
	rq_start(&a, 1, NULL);
	rq_start(&b, 2, NULL);
	rq_dial(&a, &b);
}

static void
part(void)
{
	rq_stop(&a);
	rq_stop(&b);
}

static void
worker_fn(reeve_inbound_t *in, void *arg)
{
	(void)arg;
	reeve_refuse(in);
}

START_TEST(a_configuration_is_checked)
{
	static const char *const bad[] = {"req"};
	reeve_reqs_cfg_t cfg;
	reeve_reqs_t *r = NULL;
	char more[sizeof(cfg) + 8];

	rq_start_node(&a, 1, 0, NULL);
	rq_cfg(&cfg);
	ck_assert_int_eq(reeve_reqs_install(NULL, a.n, &cfg), REEVE_EINVAL);
	ck_assert_int_eq(reeve_reqs_install(&r, NULL, &cfg), REEVE_EINVAL);
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, NULL), REEVE_EINVAL);
	cfg.flags = 0x80;
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_EINVAL);
	rq_cfg(&cfg);
	cfg.nnames = 0;
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_EINVAL);
	rq_cfg(&cfg);
	cfg.names = bad;
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_EINVAL);
	rq_cfg(&cfg);
	cfg.max_response = (UINT64_C(1) << 30) + 1;
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_EINVAL);
	rq_cfg(&cfg);
	cfg.size = 4;
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_EINVAL);
	/* Of a later version: what it does not say is zero. */
	memset(more, 0, sizeof(more));
	rq_cfg(&cfg);
	cfg.size = sizeof(more);
	memcpy(more, &cfg, sizeof(cfg));
	more[sizeof(more) - 1] = 1;
	ck_assert_int_eq(
	    reeve_reqs_install(&r, a.n, (reeve_reqs_cfg_t *)(void *)more), REEVE_EINVAL);
	more[sizeof(more) - 1] = 0;
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, (reeve_reqs_cfg_t *)(void *)more), 0);
	rq_cfg(&cfg);
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_EBUSY);
	ck_assert_int_eq(reeve_node_close(a.n, 100), 0);
	ck_assert_int_eq(reeve_reqs_install(&r, a.n, &cfg), REEVE_ECLOSED);
	reeve_reqs_cfg_init_sized(NULL, sizeof(cfg));
	memset(&cfg, 0x55, sizeof(cfg));
	reeve_reqs_cfg_init(&cfg);
	ck_assert_uint_eq(cfg.size, sizeof(cfg));
	ck_assert_uint_eq(cfg.timeout_ms, 0);
	rq_stop(&a);
}
END_TEST

START_TEST(nothing_is_ignored_or_refused)
{
	reeve_inbound_t *in = NULL;
	reeve_buf_t *response = NULL;
	struct rq_ask ask;

	pair();
	reeve_request_async(a.r, b.id, rq_buf(a.rt, 10, 0), NULL);
	reeve_request_cancel(NULL);
	ck_assert_int_eq(reeve_request_wait(NULL), REEVE_EINVAL);
	ck_assert_int_eq(
	    reeve_request(NULL, b.id, rq_buf(a.rt, 10, 0), &response, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_request(a.r, b.id, rq_buf(a.rt, 10, 0), NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_request(a.r, NULL, rq_buf(a.rt, 10, 0), &response, 0), REEVE_EINVAL);
	ck_assert_int_eq(
	    reeve_request(a.r, "nobody", rq_buf(a.rt, 10, 0), &response, 0), REEVE_EINVAL);
	ck_assert_int_eq(
	    reeve_request(a.r, b.id, rq_buf(a.rt, 10, 0), &response, -2), REEVE_EINVAL);
	ck_assert_ptr_null(response);
	ck_assert_int_eq(reeve_inbound_next(NULL, &in, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_inbound_next(b.r, NULL, 0), REEVE_EINVAL);
	ck_assert_ptr_null(reeve_inbound_peer(NULL));
	ck_assert_uint_eq(reeve_inbound_name(NULL), 0);
	ck_assert_ptr_null(reeve_inbound_body(NULL));
	reeve_respond(NULL, rq_buf(a.rt, 10, 0), NULL, NULL);
	reeve_refuse(NULL);
	rq_ask_init(&ask, 0);
	ask.q.flags = 0x10;
	rq_ask_start(&ask, &a, b.id, NULL);
	rq_ask_want(&ask, REEVE_EINVAL, REEVE_STEP_NONE);
	rq_ask_init(&ask, 0);
	reeve_request_async(NULL, b.id, rq_buf(a.rt, 10, 0), &ask.q);
	rq_ask_want(&ask, REEVE_EINVAL, REEVE_STEP_NONE);
	part();
}
END_TEST

START_TEST(a_payload_needs_a_name)
{
	reeve_payload_t payload = {NULL, 1, 0};
	struct rq_ask ask;

	pair();
	payload.body = rq_buf(a.rt, 10, 0);
	rq_ask_init(&ask, 0);
	ask.q.payloads = &payload;
	ask.q.npayloads = 1;
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 10, 0));
	rq_ask_want(&ask, REEVE_EINVAL, REEVE_STEP_NONE);
	part();
}
END_TEST

static void *
serve(void *arg)
{
	reeve_inbound_t *in = NULL;
	unsigned n = 0;

	while (reeve_inbound_next(b.r, &in, -1) == 0) {
		n++;
		reeve_respond(in, reeve_buf_ref(reeve_inbound_body(in)), NULL, NULL);
	}
	*(unsigned *)arg = n;
	return NULL;
}

/* Blocking on both sides, by several threads. */
START_TEST(threads_ask_and_answer)
{
	pthread_t t[3];
	unsigned n[3], all = 0;

	pair();
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, serve, &n[i]);
	for (unsigned i = 0; i < 300; i++) {
		reeve_buf_t *response = NULL;

		ck_assert_int_eq(
		    reeve_request(a.r, b.id, rq_buf(a.rt, i + 1, i), &response, RVT_WAIT_MS), 0);
		rq_want(response, i + 1, i);
	}
	ck_assert_int_eq(reeve_node_close(b.n, 1000), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
		all += n[i];
	}
	ck_assert_uint_eq(all, 300);
	part();
}
END_TEST

START_TEST(a_request_without_fn_is_waited_for)
{
	reeve_request_t q;

	pair();
	memset(&q, 0, sizeof(q));
	reeve_request_async(a.r, b.id, rq_buf(a.rt, 10, 3), &q);
	reeve_respond(rq_next(&b), rq_buf(b.rt, 20, 4), NULL, NULL);
	ck_assert_int_eq(reeve_request_wait(&q), 0);
	rq_want(q.response, 20, 4);
	part();
}
END_TEST

static void
on_worker(void *arg)
{
	reeve_inbound_t *in = NULL;
	reeve_buf_t *response = NULL;
	reeve_request_t *q = arg;

	ck_assert_int_eq(reeve_request(a.r, b.id, NULL, &response, 0), REEVE_EWORKER);
	ck_assert_int_eq(reeve_inbound_next(a.r, &in, 0), REEVE_EWORKER);
	reeve_request_async(a.r, b.id, NULL, q);
	ck_assert_int_eq(reeve_request_wait(q), REEVE_EWORKER);
}

START_TEST(a_worker_does_not_wait)
{
	reeve_request_t q;

	pair();
	memset(&q, 0, sizeof(q));
	rvt_on_worker(a.rt, on_worker, &q);
	reeve_refuse(rq_next(&b));
	ck_assert_int_eq(reeve_request_wait(&q), REEVE_EREFUSED);
	part();
}
END_TEST

START_TEST(a_call_back_and_a_queue_exclude_each_other)
{
	reeve_inbound_t *in = NULL;
	reeve_buf_t *response = NULL;
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.fn = worker_fn;
	rq_start(&a, 1, &cfg);
	rq_start(&b, 2, &cfg);
	rq_dial(&a, &b);
	ck_assert_int_eq(reeve_inbound_next(b.r, &in, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_request(a.r, b.id, NULL, &response, 0), REEVE_EREFUSED);
	part();
}
END_TEST

RVT_MAIN_TABLE("api_request", {&a_configuration_is_checked, 0}, {&nothing_is_ignored_or_refused, 0},
    {&a_payload_needs_a_name, 0}, {&threads_ask_and_answer, 0},
    {&a_request_without_fn_is_waited_for, 0}, {&a_worker_does_not_wait, 0},
    {&a_call_back_and_a_queue_exclude_each_other, 0})
