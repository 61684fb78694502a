/* Every way in which a request of ours can end: exactly one completion with its own code, and the connection lives on
 * (unless it was the connection that ended). */
#include <config.h>

#include <string.h>

#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

static struct rq_node a;
static struct rq_raw w;
static struct rq_ask ask;
static reeve_stream_t *s; /* the responder's */

static void
start(uint32_t flags)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.flags = flags;
	cfg.max_response = 100000;
	rq_start(&a, 1, &cfg);
	rq_raw_listen(&w, &a);
	rq_ask_init(&ask, RVT_WAIT_MS);
}

static void
begin(size_t n)
{
	rq_ask_start(&ask, &a, w.id, rq_buf(a.rt, n, 1));
	if (w.c == NULL)
		rq_raw_accept(&w);
}

/* Another request goes through as if nothing had been. */
static void
still_there(void)
{
	struct rq_ask again;

	rq_ask_init(&again, RVT_WAIT_MS);
	rq_ask_start(&again, &a, w.id, rq_buf(a.rt, 10, 5));
	s = rq_raw_in(&w);
	rq_raw_get(s, 10, 5);
	rq_raw_put(&w, s, 20, 6);
	reeve_close(s);
	ck_assert_int_eq(rq_ask_wait(&again), 0);
	rq_want(again.q.response, 20, 6);
	ck_assert_uint_eq(rq_stats(&a).conns_total, 1);
}

static void
finish(void)
{
	rq_quiet(&a);
	rq_stop(&a);
	rq_raw_stop(&w);
}

/* What the responder does with the substream, and what the requester sees. */
enum act {
	ANSWER_CLOSE, /* as reeve and rust-libp2p */
	ANSWER_DROP,  /* as litep2p: the substream is dropped, a reset behind the response */
	ANSWER_MORE,  /* bytes behind the response */
	ANSWER_EMPTY,
	ANSWER_EARLY, /* before the request was read */
	DROP_AT_ONCE,
	RESET_AFTER, /* the request was read */
	FIN_AFTER,
	DROP_HALF, /* half a response */
	FIN_HALF,
	FIN_IN_LENGTH,
	BAD_LENGTH,
	LARGE,
	ACTS
};

static void
answer(int act)
{
	static const uint8_t bad[] = {0x80, 0x00}, half_length[] = {0x80},
			     large[] = {0xa1, 0x8d, 0x06};
	static const uint8_t half[] = {10, 1, 2, 3};

	switch (act) {
	case ANSWER_EMPTY:
		rq_raw_put(&w, s, 0, 0);
		break;
	case DROP_HALF:
	case FIN_HALF:
		rq_raw_bytes(s, half, sizeof(half));
		break;
	case FIN_IN_LENGTH:
		rq_raw_bytes(s, half_length, 1);
		break;
	case BAD_LENGTH:
		rq_raw_bytes(s, bad, sizeof(bad));
		break;
	case LARGE:
		rq_raw_bytes(s, large, sizeof(large)); /* 100 001 */
		break;
	case DROP_AT_ONCE:
	case RESET_AFTER:
	case FIN_AFTER:
		break;
	default:
		rq_raw_put(&w, s, 50000, 2);
		break;
	}
	if (act == ANSWER_MORE)
		rq_raw_bytes(s, half, sizeof(half));
}

static const struct {
	int rc, step;
	size_t response;
} outcome[ACTS] = {
    [ANSWER_CLOSE] = {0, REEVE_STEP_READ, 50000},
    [ANSWER_DROP] = {0, REEVE_STEP_READ, 50000},
    [ANSWER_MORE] = {0, REEVE_STEP_READ, 50000},
    [ANSWER_EMPTY] = {0, REEVE_STEP_READ, 0},
    [ANSWER_EARLY] = {0, REEVE_STEP_READ, 50000},
    [DROP_AT_ONCE] = {REEVE_EREFUSED, -1, 0},
    [RESET_AFTER] = {REEVE_EREFUSED, REEVE_STEP_READ, 0},
    [FIN_AFTER] = {REEVE_EREFUSED, REEVE_STEP_READ, 0},
    [DROP_HALF] = {REEVE_ERESET, REEVE_STEP_READ, 0},
    [FIN_HALF] = {REEVE_ETRUNC, REEVE_STEP_READ, 0},
    [FIN_IN_LENGTH] = {REEVE_ETRUNC, REEVE_STEP_READ, 0},
    [BAD_LENGTH] = {REEVE_EPROTO, REEVE_STEP_READ, 0},
    [LARGE] = {REEVE_ETOOBIG, REEVE_STEP_READ, 0},
};

static const uint32_t ways[] = {0, REEVE_REQS_LAZY, REEVE_REQS_NO_SHUT};

START_TEST(a_responder_decides_the_outcome)
{
	int act = _i % ACTS;

	start(ways[_i / ACTS]);
	begin(act == ANSWER_EARLY ? 600000 : 3000);
	s = rq_raw_in(&w);
	if (act != DROP_AT_ONCE && act != ANSWER_EARLY)
		rq_raw_get(s, 3000, 1);
	if (act != DROP_AT_ONCE && act != ANSWER_EARLY && ways[_i / ACTS] != REEVE_REQS_NO_SHUT)
		rq_raw_end(s, 0);
	answer(act);
	if (act == RESET_AFTER)
		(void)reeve_reset(s, 7);
	if (act == DROP_AT_ONCE || act == DROP_HALF || act == ANSWER_DROP || act == RESET_AFTER)
		reeve_stream_unref(s);
	else
		reeve_close(s);
	if (act == DROP_HALF && ways[_i / ACTS] != REEVE_REQS_NO_SHUT) {
		rq_ask_want(
		    &ask, REEVE_ETRUNC, REEVE_STEP_READ); /* a drop behind our end is a FIN */
	} else if (outcome[act].rc < 0) {
		rq_ask_want(&ask, outcome[act].rc, outcome[act].step);
	} else {
		ck_assert_int_eq(rq_ask_wait(&ask), 0);
		ck_assert_int_eq(ask.q.step, outcome[act].step);
		rq_want(ask.q.response, outcome[act].response, 2);
	}
	ck_assert_uint_eq(rq_stats(&a).requests_ok, outcome[act].rc == 0);
	ck_assert_uint_eq(rq_stats(&a).requests_failed, outcome[act].rc != 0);
	still_there();
	finish();
}
END_TEST

/* The symptom of polkadot-sdk #7076: the responder drops the substream while the protocol is being agreed on. */
START_TEST(issue_7076_a_responder_that_leaves_during_negotiation_fails_at_once)
{
	static const char head[] = "\x13/multistream/1.0.0\n";

	start(_i % 2 == 0 ? 0 : REEVE_REQS_LAZY);
	begin(100);
	s = rq_raw_in_bare(&w);
	if (_i / 2 % 2 == 1)
		rq_raw_bytes(s, head, sizeof(head) - 1);
	if (_i / 4 == 0)
		reeve_stream_unref(s);
	else
		reeve_close(s);
	/* A lazy requester has ended its direction, or not yet: then a drop is a FIN, or a reset. */
	(void)rq_ask_wait(&ask);
	if (_i % 2 == 0)
		ck_assert_int_eq(ask.q.rc, _i / 4 == 0 ? REEVE_EREFUSED : REEVE_ENOPROTO);
	ck_assert(ask.q.rc == REEVE_EREFUSED || ask.q.rc == REEVE_ENOPROTO);
	ck_assert_int_ge(ask.q.step, REEVE_STEP_NEGOTIATE);
	still_there();
	finish();
}
END_TEST

/* The other half of it: the response comes, then the substream is dropped; also where it is large and the requester slow. */
START_TEST(issue_7076_a_response_is_whole_though_its_responder_drops_the_substream)
{
	for (int i = 0; i < 20; i++) {
		if (i == 0)
			start(_i == 0 ? 0 : REEVE_REQS_LAZY);
		rq_ask_init(&ask, RVT_WAIT_MS);
		begin(2);
		s = rq_raw_in(&w);
		rq_raw_get(s, 2, 1);
		rq_raw_put(&w, s, 90000 + (size_t)i, 3);
		reeve_stream_unref(s);
		ck_assert_int_eq(rq_ask_wait(&ask), 0);
		rq_want(ask.q.response, 90000 + (size_t)i, 3);
	}
	finish();
}
END_TEST

START_TEST(a_broken_negotiation_is_malformed)
{
	static const char junk[] = "\x05junk\n";

	start(_i == 0 ? 0 : REEVE_REQS_LAZY);
	begin(100);
	s = rq_raw_in_bare(&w);
	rq_raw_bytes(s, junk, sizeof(junk) - 1);
	rq_ask_want(&ask, REEVE_EPROTO, REEVE_STEP_NEGOTIATE);
	reeve_close(s);
	still_there();
	finish();
}
END_TEST

START_TEST(the_end_of_the_connection_is_told_apart)
{
	static const uint8_t half[] = {10, 1, 2, 3};

	s = NULL;
	start(0);
	if (_i <= 1)
		ask.q.timeout_ms = 300;
	begin(100);
	if (_i == 1)
		s = rq_raw_in_bare(&w);
	if (_i >= 2)
		s = rq_raw_in(&w);
	if (_i >= 3)
		rq_raw_get(s, 100, 1);
	if (_i >= 4)
		rq_raw_bytes(s, half, sizeof(half));
	(void)reeve_abort(w.k, 0);
	(void)rq_ask_wait(&ask);
	/* Before anything of the request was said another connection is tried, which nobody serves here. */
	ck_assert_msg(ask.q.rc == REEVE_ELOST || (_i <= 1 && ask.q.rc == REEVE_ETIMEDOUT),
	    "%s in step %d", reeve_errname(ask.q.rc), ask.q.step);
	reeve_stream_unref(s);
	finish();
}
END_TEST

START_TEST(the_deadline_ends_a_silent_response)
{
	uint64_t from;

	start(_i == 0 ? 0 : REEVE_REQS_LAZY);
	ask.q.timeout_ms = 100;
	from = rvt_ms();
	begin(100);
	s = rq_raw_in(&w);
	rq_raw_get(s, 100, 1);
	rq_ask_want(&ask, REEVE_ETIMEDOUT, REEVE_STEP_READ);
	ck_assert_uint_ge(ask.ms - from, 99);
	rq_raw_end(s, 0);
	while (reeve_write(s, "x", 1) == 1) /* the substream was reset */
		;
	reeve_close(s);
	still_there();
	finish();
}
END_TEST

/* --- cancel, and the end of the node --- */

START_TEST(a_cancelled_request_completes_once)
{
	start(0);
	rq_ask_start(&ask, &a, w.id, rq_buf(a.rt, 100, 1));
	if (_i >= 1)
		rq_raw_accept(&w);
	if (_i == 2)
		s = rq_raw_in_bare(&w);
	if (_i >= 3)
		s = rq_raw_in(&w);
	if (_i == 4)
		rq_raw_get(s, 100, 1);
	if (_i < 5)
		reeve_request_cancel(&ask.q);
	else
		ck_assert_int_eq(reeve_node_close(a.n, 1000), 0);
	rq_ask_want(&ask, REEVE_ECANCELED, -1);
	if (_i >= 2)
		reeve_close(s);
	if (_i >= 2 && _i < 5)
		still_there();
	finish();
}
END_TEST

START_TEST(a_closed_node_asks_nobody)
{
	start(0);
	ck_assert_int_eq(reeve_node_close(a.n, 0), 0);
	rq_ask_start(&ask, &a, w.id, rq_buf(a.rt, 100, 1));
	rq_ask_want(&ask, REEVE_ECLOSED, REEVE_STEP_NONE);
	finish();
}
END_TEST

/* Whichever comes first, there is one completion, and what it says is so. */
START_TEST(a_cancel_that_races_with_the_response_is_one_completion)
{
	unsigned won = 0;

	start(0);
	for (int i = 0; i < 100; i++) {
		rq_ask_init(&ask, RVT_WAIT_MS);
		begin(10);
		s = rq_raw_in(&w);
		rq_raw_get(s, 10, 1);
		rq_raw_put(&w, s, 100, 2);
		for (int k = i; k > 0; k--)
			sched_yield();
		reeve_request_cancel(&ask.q);
		reeve_close(s);
		if (rq_ask_wait(&ask) == 0) {
			rq_want(ask.q.response, 100, 2);
			won++;
		} else {
			ck_assert_int_eq(ask.q.rc, REEVE_ECANCELED);
			ck_assert_ptr_null(ask.q.response);
		}
	}
	ck_assert_uint_eq(rq_stats(&a).requests_ok, won);
	finish();
}
END_TEST

RVT_MAIN_TABLE("req_out_ends", {&a_responder_decides_the_outcome, 3 * ACTS},
    {&issue_7076_a_responder_that_leaves_during_negotiation_fails_at_once, 8},
    {&issue_7076_a_response_is_whole_though_its_responder_drops_the_substream, 2},
    {&a_broken_negotiation_is_malformed, 2}, {&the_end_of_the_connection_is_told_apart, 5},
    {&the_deadline_ends_a_silent_response, 2}, {&a_cancelled_request_completes_once, 6},
    {&a_closed_node_asks_nobody, 0}, {&a_cancel_that_races_with_the_response_is_one_completion, 0})
