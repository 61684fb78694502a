/* Requests: what users of other request-response helpers reported.  Numbers as in README.md. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tests/kit/flow.h"
#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

static struct rq_node a, b;
static struct rq_raw w;

static uint64_t
resets(reeve_ctl_t *k)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_ctl_stats(k, &st), 0);
	return st.resets_in + st.resets_out;
}

/* b, and a peer by hand that has dialed it. */
static void
serve_raw(uint32_t timeout_ms)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.timeout_ms = timeout_ms;
	cfg.max_request = 100000;
	rq_start(&b, 2, &cfg);
	rq_raw_dial(&w, &b);
}

/* A message of no bytes is one byte on the wire, and no end. */
START_TEST(scenario_116_empty_requests_and_responses)
{
	reeve_inbound_t *in;
	reeve_stream_t *s;
	struct rq_ask ask;
	uint8_t got[2];

	serve_raw(5000);
	s = rq_raw_out(&w);
	rq_raw_bytes(s, "", 1);
	in = rq_next(&b);
	ck_assert_ptr_null(reeve_inbound_body(in));
	reeve_respond(in, NULL, NULL, NULL);
	ck_assert_int_eq(reeve_read(s, got, 2), 1);
	ck_assert_uint_eq(got[0], 0);
	rq_raw_end(s, 0);
	reeve_close(s);
	rq_stop(&b);
	rq_raw_stop(&w);

	rq_start(&a, 1, NULL);
	rq_raw_listen(&w, &a);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, w.id, NULL);
	rq_raw_accept(&w);
	s = rq_raw_in(&w);
	ck_assert_int_eq(reeve_read(s, got, 2), 1);
	ck_assert_uint_eq(got[0], 0);
	rq_raw_end(s, 0);
	rq_raw_bytes(s, "", 1);
	ck_assert_int_eq(rq_ask_wait(&ask), 0); /* before the end of the substream */
	ck_assert_ptr_null(ask.q.response);
	reeve_close(s);
	rq_stop(&a);
	rq_raw_stop(&w);
}
END_TEST

static void
pause_us(unsigned us)
{
	uint64_t until = rv_clock_us() + us;

	while (rv_clock_us() < until)
		sched_yield();
}

/* Every other one is answered only when the next one comes. */
static void
late(reeve_inbound_t *in, void *arg)
{
	struct rvq_cellptr *kept = arg;
	reeve_inbound_t *before = rvq_cellptr_swap(kept, NULL);

	if (before != NULL) {
		reeve_respond(before, NULL, NULL, NULL);
		reeve_respond(in, NULL, NULL, NULL);
	} else {
		rvq_cellptr_put(kept, in);
	}
}

/* The connection ends at any moment of a request. */
START_TEST(scenario_121_requests_end_with_their_connection)
{
	unsigned rounds = 400 * rvt_scale(), ok = 0, failed = 0;
	uint64_t rss = 0;
	struct rvq_cellptr kept = {NULL};
	reeve_reqs_cfg_t cfg;
	struct rq_ask ask;

	srand(121);
	rq_start(&a, 1, NULL);
	rq_cfg(&cfg);
	cfg.fn = late;
	cfg.arg = &kept;
	rq_start(&b, 2, &cfg);
	rq_know(&a, &b);
	for (unsigned i = 0; i < rounds; i++) {
		reeve_buf_t *body = reeve_buf_alloc(a.rt, 4096);
		reeve_ctl_t *k;

		memset(reeve_buf_mut(body), 0, 4096);
		ck_assert_int_eq(reeve_node_dial(a.n, b.id, NULL, NULL, RVT_WAIT_MS), 0);
		k = reeve_node_ctl(a.n, b.id);
		rq_ask_init(&ask, RVT_WAIT_MS);
		ask.q.flags = REEVE_REQUEST_NO_DIAL;
		rq_ask_start(&ask, &a, b.id, body);
		pause_us((unsigned)rand() % 2000 / (i % 2 == 0 ? 2 : 20));
		if (k != NULL)
			(void)reeve_abort(k, 0);
		reeve_ctl_unref(k);
		if (rq_ask_wait(&ask) == 0)
			ok++;
		else
			failed++;
		ck_assert(ask.q.rc == 0 || ask.q.rc == REEVE_ELOST || ask.q.rc == REEVE_ENOTCONN);
		reeve_buf_unref(ask.q.response);
		RVT_UNTIL(reeve_node_peers(a.n, NULL, 0) == 0);
		if (i == rounds / 2)
			rss = rvt_rss();
	}
	ck_assert_uint_gt(failed, 0);
	/* One may come that was on its way when its connection ended. */
	RVT_UNTIL((reeve_refuse(rvq_cellptr_swap(&kept, NULL)), rq_stats(&b).requests_in == 0));
	rq_quiet(&a);
	rq_quiet(&b);
	ck_assert_uint_eq(rq_stats(&a).requests_ok, ok);
	ck_assert_uint_eq(rq_stats(&a).requests_failed, failed);
	if (!RVT_SANITIZED)
		ck_assert_uint_lt(rvt_rss(), rss + (8u << 20));
	rq_stop(&a);
	rq_stop(&b);
}
END_TEST

/* --- 124 --- */

#define OTHERS 10

enum fault { BAD_LENGTH, EARLY_FIN, TOO_LARGE, REFUSAL, NO_PROTOCOL, NO_BYTES, FAULTS };

/* One request goes wrong; its requester hears of it at once. */
static void
go_wrong(int fault)
{
	static const uint8_t bad[] = {0x80, 0}, half[] = {10, 1, 2}, large[] = {0xa1, 0x8d, 0x06};
	static const char *const unknown[] = {"/unknown/1"};
	reeve_stream_t *s;
	uint64_t from = rvt_ms();

	if (fault == NO_PROTOCOL) {
		ck_assert_int_eq(reeve_open(w.k, &s, RVT_WAIT_MS), 0);
		ck_assert_int_eq(
		    reeve_negotiate(s, REEVE_DIALER, unknown, 1, RVT_WAIT_MS), REEVE_ENOPROTO);
	} else {
		s = rq_raw_out(&w);
		if (fault == BAD_LENGTH)
			rq_raw_bytes(s, bad, sizeof(bad));
		else if (fault == EARLY_FIN)
			rq_raw_bytes(s, half, sizeof(half));
		else if (fault == TOO_LARGE)
			rq_raw_bytes(s, large, sizeof(large));
		else if (fault == REFUSAL)
			rq_raw_put(&w, s, 5, 1);
		if (fault == EARLY_FIN || fault == NO_BYTES)
			(void)reeve_shut(s);
		if (fault == REFUSAL)
			reeve_refuse(rq_next(&b));
		rq_raw_end(s, REEVE_ERESET);
	}
	ck_assert_uint_lt(rvt_ms() - from, 4000); /* not by any timeout */
	reeve_close(s);
}

START_TEST(scenario_124_a_failing_request_ends_only_itself)
{
	reeve_inbound_t *in[OTHERS];
	reeve_stream_t *s[OTHERS];

	serve_raw(RVT_WAIT_MS);
	for (unsigned i = 0; i < OTHERS; i++) {
		s[i] = rq_raw_out(&w);
		rq_raw_put(&w, s[i], 100, i);
		in[i] = rq_next(&b);
	}
	for (int fault = 0; fault < FAULTS; fault++)
		go_wrong(fault);
	for (unsigned i = 0; i < OTHERS; i++) {
		rq_want(reeve_buf_ref(reeve_inbound_body(in[i])), 100, i);
		reeve_respond(in[i], rq_buf(b.rt, 200, i), NULL, NULL);
		rq_raw_get(s[i], 200, i);
		rq_raw_end(s[i], 0);
		reeve_close(s[i]);
	}
	ck_assert_uint_eq(rq_stats(&b).conns_total, 1);
	ck_assert_uint_eq(rq_stats(&b).requests_refused, FAULTS - 1);
	rq_quiet(&b);
	ck_assert_uint_eq(rq_stats(&b).requests_served, OTHERS);
	rq_stop(&b);
	rq_raw_stop(&w);
}
END_TEST

/* The requester has ended its direction and reads slowly: all of the response, then a FIN, and no reset. */
START_TEST(scenario_125_a_response_is_followed_by_an_end_and_no_reset)
{
	reeve_inbound_t *in;
	reeve_stream_t *s;
	struct rq_done done = {0};
	uint8_t part[1024], head[3];

	serve_raw(RVT_WAIT_MS);
	s = rq_raw_out(&w);
	rq_raw_put(&w, s, 10, 1);
	if (_i == 0)
		(void)reeve_shut(s);
	in = rq_next(&b);
	reeve_respond(in, rq_buf(b.rt, 65536, 2), rq_done_fn, &done);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_read(s, head + i, 1), 1);
	for (size_t at = 0; at < 65536;) {
		reeve_ssize n = reeve_read(s, part, sizeof(part));

		ck_assert_int_gt(n, 0);
		at += (size_t)n;
		pause_us(500);
	}
	rq_raw_end(s, 0);
	ck_assert_int_eq(rq_done_wait(&done), 0);
	reeve_close(s);
	rq_quiet(&b);
	ck_assert_uint_eq(resets(w.k), 0);
	rq_stop(&b);
	rq_raw_stop(&w);
}
END_TEST

/* A message in pieces, or with the beginning of something else behind it. */
START_TEST(scenario_126_messages_in_pieces)
{
	static const size_t cuts[] = {512, 1, 2, 3, 1026, 1025};
	uint8_t wire[2000];
	reeve_inbound_t *in;
	reeve_stream_t *s;
	size_t n = 1026;
	reeve_buf_t *content;

	serve_raw(RVT_WAIT_MS);
	wire[0] = 0x80; /* 1024 */
	wire[1] = 0x08;
	content = rq_buf(b.rt, 1024, 3);
	memcpy(wire + 2, reeve_buf_data(content), 1024);
	reeve_buf_unref(content);
	for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		s = rq_raw_out(&w);
		rq_raw_bytes(s, wire, cuts[c]);
		ck_assert_int_eq(reeve_ping(w.k, RVT_WAIT_MS, NULL), 0); /* it has come */
		if (cuts[c] < n)
			rq_raw_bytes(s, wire + cuts[c], n - cuts[c]);
		in = rq_next(&b);
		rq_want(reeve_buf_ref(reeve_inbound_body(in)), 1024, 3);
		reeve_respond(in, rq_buf(b.rt, 1024, 4), NULL, NULL);
		rq_raw_get(s, 1024, 4);
		reeve_close(s);
	}
	/* Short, and then the end: an error and no short message. */
	s = rq_raw_out(&w);
	rq_raw_bytes(s, wire, 1000);
	(void)reeve_shut(s);
	rq_raw_end(s, REEVE_ERESET);
	ck_assert_int_eq(reeve_inbound_next(b.r, &in, 0), REEVE_ETIMEDOUT);
	reeve_close(s);
	rq_stop(&b);
	rq_raw_stop(&w);
}
END_TEST

RVT_MAIN_TABLE("requests", {&scenario_116_empty_requests_and_responses, 0},
    {&scenario_121_requests_end_with_their_connection, 0},
    {&scenario_124_a_failing_request_ends_only_itself, 0},
    {&scenario_125_a_response_is_followed_by_an_end_and_no_reset, 2},
    {&scenario_126_messages_in_pieces, 0})
