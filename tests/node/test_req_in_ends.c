/* Every way in which a request of a peer can end: the handle is let go of exactly once, its done is told exactly once, the
 * requester learns at once, and the connection lives on (unless it was the connection that ended). */
#include <config.h>

#include <string.h>

#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

static struct rq_node b;
static struct rq_raw w;
static reeve_stream_t *s; /* the requester's */
static reeve_inbound_t *in;
static struct rq_done done;

static void
start(uint32_t timeout_ms)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.timeout_ms = timeout_ms;
	cfg.max_request = 100000;
	cfg.max_response = 1 << 20;
	rq_start(&b, 1, &cfg);
	rq_raw_dial(&w, &b);
	memset(&done, 0, sizeof(done));
}

/* A request is with the application. */
static void
ask(bool half_close)
{
	s = rq_raw_out(&w);
	rq_raw_put(&w, s, 3000, 1);
	if (half_close)
		(void)reeve_shut(s);
	in = rq_next(&b);
}

static void
still_there(void)
{
	ask(true);
	rq_want(reeve_buf_ref(reeve_inbound_body(in)), 3000, 1);
	reeve_respond(in, rq_buf(b.rt, 50, 2), NULL, NULL);
	rq_raw_get(s, 50, 2);
	rq_raw_end(s, 0);
	reeve_close(s);
	ck_assert_uint_eq(rq_stats(&b).conns_total, 1);
}

/* served and refused of all that were asked before. */
static void
finish(unsigned served, unsigned refused)
{
	rq_quiet(&b);
	ck_assert_uint_eq(rq_stats(&b).requests_served, served);
	ck_assert_uint_eq(rq_stats(&b).requests_refused, refused);
	rq_stop(&b);
	rq_raw_stop(&w);
}

/* Response, then FIN, whether the requester has ended its direction or ends it only afterwards. */
START_TEST(a_response_ends_by_fin)
{
	start(5000);
	ask(_i == 0);
	reeve_respond(in, rq_buf(b.rt, 500000, 2), rq_done_fn, &done);
	rq_raw_get(s, 500000, 2);
	rq_raw_end(s, 0);
	ck_assert_int_eq(rq_done_wait(&done), 0);
	reeve_close(s);
	still_there();
	finish(2, 0);
}
END_TEST

/* Who never ends its own direction is waited for until the deadline, and then no longer. */
START_TEST(a_requester_that_keeps_its_side_open_is_let_go_at_the_deadline)
{
	start(200);
	ask(false);
	reeve_respond(in, rq_buf(b.rt, 500, 2), rq_done_fn, &done);
	rq_raw_get(s, 500, 2);
	ck_assert_int_eq(rq_done_wait(&done), 0);
	rq_raw_end(s, 0); /* a FIN, and only later a reset */
	rq_quiet(&b);
	RVT_UNTIL(reeve_write(s, "x", 1) < 0);
	reeve_close(s);
	still_there();
	finish(2, 0);
}
END_TEST

START_TEST(a_refusal_is_seen_at_once)
{
	start(5000);
	ask(_i == 0);
	reeve_refuse(in);
	rq_raw_end(s, REEVE_ERESET);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

static void
refuse_at_once(reeve_inbound_t *asked, void *arg)
{
	(void)arg;
	reeve_refuse(asked);
}

/* Above a limit, or by a callback: what was agreed on still leaves, else the requester would take it that we do not know the
 * protocol.  A requester that is lazy has said everything at once. */
START_TEST(a_refusal_comes_behind_the_agreed_name)
{
	static const char said[] = "\x13/multistream/1.0.0\n\x07" RQ_NAME "\n";
	const size_t n = sizeof(said) - 1; /* an empty request is the zero behind it */
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.max_inbound = 1;
	cfg.fn = _i == 1 ? refuse_at_once : NULL;
	rq_start(&b, 1, &cfg);
	rq_raw_dial(&w, &b);
	if (_i == 0)
		ask(true);
	for (int i = 0; i < 50; i++) {
		reeve_stream_t *t = NULL;
		char heard[sizeof(said)];

		ck_assert_int_eq(reeve_open(w.k, &t, RVT_WAIT_MS), 0);
		(void)reeve_deadline(t, REEVE_RD | REEVE_WR, RVT_WAIT_MS);
		rq_raw_bytes(t, said, n + 1);
		for (size_t have = 0; have < n;) {
			reeve_ssize got = reeve_read(t, heard + have, n - have);

			ck_assert_int_gt(got, 0);
			have += (size_t)got;
		}
		ck_assert_mem_eq(heard, said, n);
		rq_raw_end(t, REEVE_ERESET);
		reeve_close(t);
	}
	if (_i == 0) {
		reeve_refuse(in);
		reeve_close(s);
	}
	finish(0, _i == 0 ? 51 : 50);
}
END_TEST

START_TEST(a_response_beyond_the_limit_is_a_refusal)
{
	start(5000);
	ask(true);
	reeve_respond(in, rq_buf(b.rt, (1 << 20) + 1, 2), rq_done_fn, &done);
	ck_assert_int_eq(rq_done_wait(&done), REEVE_ETOOBIG);
	rq_raw_end(s, REEVE_ERESET);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

START_TEST(who_is_not_answered_in_time_is_told)
{
	start(150);
	ask(_i == 0);
	rq_raw_end(s, REEVE_ERESET);
	reeve_respond(in, rq_buf(b.rt, 100, 2), rq_done_fn, &done);
	ck_assert_int_eq(rq_done_wait(&done), REEVE_ETIMEDOUT);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

/* Queued for nobody: at its deadline it is gone from the queue too. */
START_TEST(a_request_that_nobody_takes_is_reset_at_the_deadline)
{
	start(150);
	s = rq_raw_out(&w);
	rq_raw_put(&w, s, 10, 1);
	rq_raw_end(s, REEVE_ERESET);
	rq_quiet(&b);
	ck_assert_int_eq(reeve_inbound_next(b.r, &in, 0), REEVE_ETIMEDOUT);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

/* --- the requester leaves --- */

enum left {
	RESET_EARLY, /* inside its request */
	FIN_EARLY,
	FIN_AT_ONCE,
	RESET_QUEUED, /* the request waits for reeve_inbound_next */
	RESET_ASKED,  /* the application has it */
	LOST_ASKED,   /* the connection */
	LEFTS
};

START_TEST(a_requester_that_leaves_is_no_riddle)
{
	static const uint8_t half[] = {10, 1, 2, 3};

	start(5000);
	if (_i == RESET_ASKED || _i == LOST_ASKED) {
		ask(false);
	} else {
		s = rq_raw_out(&w);
		if (_i == RESET_QUEUED)
			rq_raw_put(&w, s, 10, 1);
		else if (_i != FIN_AT_ONCE)
			rq_raw_bytes(s, half, sizeof(half));
	}
	if (_i == LOST_ASKED) {
		(void)reeve_abort(w.k, 0);
		RVT_UNTIL(rq_stats(&b).conns == 0);
	} else if (_i == FIN_EARLY || _i == FIN_AT_ONCE) {
		(void)reeve_shut(s);
		rq_raw_end(s, REEVE_ERESET);
	} else {
		if (_i == RESET_QUEUED)
			RVT_UNTIL(rq_stats(&b).held == 10);
		reeve_stream_unref(s);
		s = NULL;
		ck_assert_int_eq(reeve_ping(w.k, RVT_WAIT_MS, NULL), 0); /* it is there */
	}
	if (_i == RESET_ASKED || _i == LOST_ASKED) {
		reeve_respond(in, rq_buf(b.rt, 100, 2), rq_done_fn, &done);
		ck_assert_int_eq(
		    rq_done_wait(&done), _i == LOST_ASKED ? REEVE_ELOST : REEVE_ERESET);
	} else {
		ck_assert_int_eq(reeve_inbound_next(b.r, &in, 0), REEVE_ETIMEDOUT);
	}
	reeve_close(s);
	rq_quiet(&b);
	if (_i == LOST_ASKED) {
		rq_raw_stop(&w);
		rq_raw_dial(&w, &b);
		ck_assert_uint_eq(rq_stats(&b).requests_refused, 1);
		finish(0, 1);
	} else {
		still_there();
		finish(1, 1);
	}
}
END_TEST

static void *
takes(void *arg)
{
	*(int *)arg = reeve_inbound_next(b.r, &in, RVT_WAIT_MS);
	return NULL;
}

/* Whoever waits for the next one lets go of those whose requesters have left, and waits on. */
START_TEST(a_request_that_was_given_up_in_the_queue_is_gone_at_once)
{
	pthread_t t;
	int rc = 1;

	start(RVT_WAIT_MS);
	s = rq_raw_out(&w);
	rq_raw_put(&w, s, 10, 1);
	RVT_UNTIL(rq_stats(&b).held == 10);
	reeve_stream_unref(s);
	ck_assert_int_eq(reeve_ping(w.k, RVT_WAIT_MS, NULL), 0);
	pthread_create(&t, NULL, takes, &rc);
	rq_quiet(&b);
	s = rq_raw_out(&w);
	rq_raw_put(&w, s, 20, 1);
	pthread_join(t, NULL);
	ck_assert_int_eq(rc, 0);
	rq_want(reeve_buf_ref(reeve_inbound_body(in)), 20, 1);
	reeve_respond(in, NULL, NULL, NULL);
	rq_raw_get(s, 0, 0);
	reeve_close(s);
	finish(1, 1);
}
END_TEST

/* A response that nobody reads is given up at the deadline. */
START_TEST(a_response_that_is_not_read_times_out)
{
	reeve_reqs_cfg_t cfg;
	reeve_buf_t *large;

	rq_cfg(&cfg);
	cfg.timeout_ms = 200;
	cfg.max_response = 64 << 20;
	rq_start(&b, 1, &cfg);
	rq_raw_dial(&w, &b);
	memset(&done, 0, sizeof(done));
	ask(true);
	large = reeve_buf_alloc(b.rt, 32 << 20);
	memset(reeve_buf_mut(large), 1, 32 << 20);
	reeve_respond(in, large, rq_done_fn, &done);
	ck_assert_int_eq(rq_done_wait(&done), REEVE_ETIMEDOUT);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

/* --- what a requester should not send --- */

START_TEST(a_broken_request_ends_only_its_substream)
{
	static const uint8_t bad[2][3] = {
	    {0x80, 0x00, 0}, {0xa1, 0x8d, 0x06}}; /* no length; 100 001 */

	start(5000);
	s = rq_raw_out(&w);
	rq_raw_bytes(s, bad[_i], 3);
	rq_raw_end(s, REEVE_ERESET);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

START_TEST(a_request_that_does_not_come_to_an_end_is_given_up)
{
	static const uint8_t half[] = {10, 1, 2, 3};
	uint64_t from;

	start(150);
	s = rq_raw_out(&w);
	if (_i > 0)
		rq_raw_bytes(s, half, _i == 1 ? 1 : 3);
	from = rvt_ms();
	rq_raw_end(s, REEVE_ERESET);
	ck_assert_uint_ge(rvt_ms() - from, 100);
	reeve_close(s);
	still_there();
	finish(1, 1);
}
END_TEST

START_TEST(bytes_behind_the_request_do_not_matter)
{
	start(5000);
	s = rq_raw_out(&w);
	rq_raw_put(&w, s, 3000, 1);
	rq_raw_put(&w, s, 3000, 2);
	in = rq_next(&b);
	rq_want(reeve_buf_ref(reeve_inbound_body(in)), 3000, 1);
	reeve_respond(in, rq_buf(b.rt, 50, 2), NULL, NULL);
	rq_raw_get(s, 50, 2);
	reeve_close(s);
	still_there();
	finish(2, 0);
}
END_TEST

/* --- the end of the node --- */

static void *
closes(void *arg)
{
	ck_assert_int_eq(reeve_node_close(b.n, 1000), 0);
	return arg;
}

/* Whoever waits for a request comes back; who has one may answer, and is told that it was too late. */
START_TEST(the_end_of_the_node_ends_handlers)
{
	pthread_t t;

	start(5000);
	if (_i > 0)
		ask(_i == 1);
	pthread_create(&t, NULL, closes, NULL);
	if (_i == 0)
		ck_assert_int_eq(reeve_inbound_next(b.r, &in, RVT_WAIT_MS), REEVE_ECLOSED);
	pthread_join(t, NULL);
	ck_assert_int_eq(reeve_inbound_next(b.r, &in, RVT_WAIT_MS), REEVE_ECLOSED);
	if (_i > 0) {
		rq_want(reeve_buf_ref(reeve_inbound_body(in)), 3000, 1);
		reeve_respond(in, rq_buf(b.rt, 100, 2), rq_done_fn, &done);
		ck_assert_int_eq(rq_done_wait(&done), REEVE_ECLOSED);
	}
	if (_i > 0)
		reeve_close(s);
	finish(0, _i > 0);
}
END_TEST

/* Also much later, when nothing of the node is left. */
START_TEST(a_handle_may_outlive_its_node)
{
	reeve_buf_t *body;

	start(5000);
	ask(true);
	body = rq_buf(b.rt, 100, 2);
	reeve_node_destroy(b.n);
	ck_assert_str_ne(reeve_inbound_peer(in), "");
	rq_want(reeve_buf_ref(reeve_inbound_body(in)), 3000, 1);
	if (_i == 0) {
		reeve_respond(in, body, rq_done_fn, &done);
		ck_assert_int_eq(rq_done_wait(&done), REEVE_ECLOSED);
		reeve_rt_destroy(b.rt);
	} else {
		reeve_rt_destroy(b.rt);
		reeve_respond(in, body, rq_done_fn, &done);
		ck_assert_int_eq(rq_done_wait(&done), REEVE_ECLOSED);
	}
	rvt_alloc_check(&b.alloc);
	reeve_close(s);
	rq_raw_stop(&w);
}
END_TEST

RVT_MAIN_TABLE("req_in_ends", {&a_response_ends_by_fin, 2},
    {&a_requester_that_keeps_its_side_open_is_let_go_at_the_deadline, 0},
    {&a_refusal_is_seen_at_once, 2}, {&a_refusal_comes_behind_the_agreed_name, 2},
    {&a_response_beyond_the_limit_is_a_refusal, 0}, {&who_is_not_answered_in_time_is_told, 2},
    {&a_request_that_nobody_takes_is_reset_at_the_deadline, 0},
    {&a_requester_that_leaves_is_no_riddle, LEFTS},
    {&a_request_that_was_given_up_in_the_queue_is_gone_at_once, 0},
    {&a_response_that_is_not_read_times_out, 0}, {&a_broken_request_ends_only_its_substream, 2},
    {&a_request_that_does_not_come_to_an_end_is_given_up, 3},
    {&bytes_behind_the_request_do_not_matter, 0}, {&the_end_of_the_node_ends_handlers, 3},
    {&a_handle_may_outlive_its_node, 2})
