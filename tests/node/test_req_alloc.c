/* The n-th allocation fails, on either side of a request, for n = 1, 2, 3 ...: one completion that is right or says why,
 * nothing leaks, and the next request goes through. */
#include <config.h>

#include <string.h>

#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

static struct rq_node a, b;

static bool
good(int rc)
{
	return rc == 0 || rc == REEVE_ENOMEM || rc == REEVE_ELOST || rc == REEVE_EREFUSED ||
	    rc == REEVE_ERESET || rc == REEVE_ETRUNC || rc == REEVE_ETIMEDOUT ||
	    rc == REEVE_ENOPROTO || rc == REEVE_EDIAL || rc == REEVE_ECLOSED || rc == REEVE_ELIMIT;
}

static void
start(uint32_t flags, bool dial)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.flags = flags;
	rq_start(&a, 1, &cfg);
	cfg.fn = rq_echo;
	cfg.arg = &b;
	rq_start(&b, 2, &cfg);
	if (dial)
		rq_dial(&a, &b);
	else
		rq_know(&a, &b);
}

/* A request and its response, long or short; its rc. */
static int
once(reeve_buf_t *body, uint32_t n, int64_t timeout_ms)
{
	struct rq_ask ask;

	rq_ask_init(&ask, timeout_ms);
	rq_ask_start(&ask, &a, b.id, body);
	ck_assert_msg(good(rq_ask_wait(&ask)), "%s", reeve_errname(ask.q.rc));
	if (ask.q.rc == 0)
		rq_want(ask.q.response, n, 7);
	return ask.q.rc;
}

/* _i: which side; whether all later allocations fail too; whether the connection is there. */
START_TEST(an_allocation_that_fails_is_one_failed_request)
{
	uint32_t flags = _i & 8 ? REEVE_REQS_LAZY : 0;
	bool rest = (_i & 2) != 0, dialed = (_i & 4) != 0, failed = true;
	unsigned most = dialed ? 60 : 30;

	for (unsigned nth = 1; failed && nth <= most; nth++) {
		uint32_t n = nth % 2 == 0 ? 100 : 100000;
		struct rq_node *f;
		reeve_buf_t *body;

		start(flags, dialed);
		f = _i & 1 ? &a : &b;
		body = rq_echo_body(a.rt, n, 7);
		rvt_alloc_fail(&f->alloc, nth, rest);
		(void)once(body, n, 300);
		failed = rvt_alloc_failed(&f->alloc);
		rvt_alloc_fail(&f->alloc, 0, false);
		/* A connection may have ended for it; the next one is dialed. */
		body = rq_echo_body(a.rt, 50, 7);
		ck_assert_ptr_nonnull(body);
		if (once(body, 50, RVT_WAIT_MS) != 0) /* it was just ending */
			ck_assert_int_eq(once(rq_echo_body(a.rt, 50, 7), 50, RVT_WAIT_MS), 0);
		rq_quiet(&a);
		rq_quiet(&b);
		rq_stop(&a);
		rq_stop(&b);
	}
}
END_TEST

START_TEST(a_protocol_that_cannot_be_installed_leaves_nothing)
{
	reeve_reqs_cfg_t cfg;
	reeve_reqs_t *r = NULL;
	int rc = REEVE_ENOMEM;

	rq_cfg(&cfg);
	rq_start_node(&a, 1, 0, NULL);
	for (unsigned nth = 1; rc < 0; nth++) {
		rvt_alloc_fail(&a.alloc, nth, false);
		rc = reeve_reqs_install(&r, a.n, &cfg);
		ck_assert(rc == 0 || rc == REEVE_ENOMEM);
	}
	rvt_alloc_fail(&a.alloc, 0, false);
	rq_stop(&a);
}
END_TEST

RVT_MAIN_TABLE("req_alloc", {&an_allocation_that_fails_is_one_failed_request, 16},
    {&a_protocol_that_cannot_be_installed_leaves_nothing, 0})
