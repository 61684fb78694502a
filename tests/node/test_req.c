/* Requests between two nodes: what is asked, what is answered, by which name and within which bounds. */
#include <config.h>

#include <string.h>

#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

static struct rq_node a, b;

/* a has dialed b, which answers by rq_echo. */
static void
echo_pair(uint32_t flags)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.flags = flags;
	rq_start(&a, 1, &cfg);
	cfg.fn = rq_echo;
	cfg.arg = &b;
	rq_start(&b, 2, &cfg);
	rq_dial(&a, &b);
}

/* Both have cfg; b's requests are taken with rq_next. */
static void
pair(const reeve_reqs_cfg_t *cfg)
{
	rq_start(&a, 1, cfg);
	rq_start(&b, 2, cfg);
	rq_dial(&a, &b);
}

static void
part(void)
{
	rq_stop(&a);
	rq_stop(&b);
}

static const uint32_t ways[] = {
    0, REEVE_REQS_LAZY, REEVE_REQS_NO_SHUT, REEVE_REQS_LAZY | REEVE_REQS_NO_SHUT};
static const uint32_t sizes[] = {0, 1, 127, 128, 4096, 4097, 70000, 1 << 20, 16 << 20};

START_TEST(a_request_is_answered)
{
	reeve_buf_t *response;

	echo_pair(ways[_i]);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		response = NULL;
		ck_assert_int_eq(reeve_request(a.r, b.id, rq_echo_body(a.rt, sizes[i], (uint8_t)i),
				     &response, -1),
		    0);
		rq_want(response, sizes[i], (unsigned)i);
	}
	rq_quiet(&a);
	rq_quiet(&b);
	ck_assert_uint_eq(rq_stats(&a).requests_ok, sizeof(sizes) / sizeof(sizes[0]));
	ck_assert_uint_eq(rq_stats(&b).requests_served, sizeof(sizes) / sizeof(sizes[0]));
	ck_assert_uint_eq(rq_stats(&a).requests_failed + rq_stats(&b).requests_refused, 0);
	part();
}
END_TEST

/* Either side asks over the one connection, whoever dialed; the request is what was sent. */
START_TEST(requests_go_both_ways)
{
	static const size_t n[] = {0, 1, 5000, 200000};
	struct rq_node *from, *to;
	reeve_inbound_t *in;
	struct rq_ask ask;
	struct rq_done done;

	pair(NULL);
	for (size_t i = 0; i < 8; i++) {
		from = i % 2 == 0 ? &a : &b;
		to = i % 2 == 0 ? &b : &a;
		rq_ask_init(&ask, 0);
		memset(&done, 0, sizeof(done));
		rq_ask_start(&ask, from, to->id, rq_buf(from->rt, n[i / 2], 3));
		in = rq_next(to);
		ck_assert_str_eq(reeve_inbound_peer(in), from->id);
		ck_assert_uint_eq(reeve_inbound_name(in), 0);
		rq_want(
		    n[i / 2] > 0 ? reeve_buf_ref(reeve_inbound_body(in)) : reeve_inbound_body(in),
		    n[i / 2], 3);
		reeve_respond(in, rq_buf(to->rt, n[3 - i / 2], 4), rq_done_fn, &done);
		ck_assert_int_eq(rq_ask_wait(&ask), 0);
		ck_assert_uint_eq(ask.q.name, 0);
		rq_want(ask.q.response, n[3 - i / 2], 4);
		ck_assert_int_eq(rq_done_wait(&done), 0);
	}
	part();
}
END_TEST

#define MANY 200

/* To a peer that is still being dialed: each goes out, and each response finds its request. */
START_TEST(many_at_once_are_all_answered)
{
	static struct rq_ask ask[MANY];
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.flags = ways[_i];
	rq_start(&a, 1, &cfg);
	cfg.fn = rq_echo;
	cfg.arg = &b;
	rq_start(&b, 2, &cfg);
	rq_know(&a, &b);
	for (uint32_t i = 0; i < MANY; i++) {
		rq_ask_init(&ask[i], RVT_WAIT_MS);
		rq_ask_start(&ask[i], &a, b.id, rq_echo_body(a.rt, i * 97, (uint8_t)i));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		ck_assert_int_eq(rq_ask_wait(&ask[i]), 0);
		rq_want(ask[i].q.response, i * 97, (uint8_t)i);
	}
	ck_assert_uint_eq(rq_stats(&a).conns_total, 1);
	part();
}
END_TEST

START_TEST(nobody_is_dialed_who_must_not_be)
{
	struct rq_ask ask;

	rq_start(&a, 1, NULL);
	rq_start(&b, 2, NULL);
	rq_know(&a, &b);
	rq_ask_init(&ask, 0);
	ask.q.flags = REEVE_REQUEST_NO_DIAL;
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 10, 0));
	rq_ask_want(&ask, REEVE_ENOTCONN, -1);
	ck_assert_uint_eq(rq_stats(&a).conns_total, 0);
	ck_assert_uint_eq(rq_stats(&a).requests_failed, 1);
	part();
}
END_TEST

START_TEST(a_peer_that_is_nowhere_cannot_be_dialed)
{
	struct rq_ask ask;

	rq_start(&a, 1, NULL);
	rq_start(&b, 2, NULL);
	if (_i == 1) /* there is one, and nobody there */
		ck_assert_int_eq(reeve_node_add_address(a.n, b.id, "tcp://127.0.0.1:1"), 0);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 10, 0));
	rq_ask_want(&ask, REEVE_EDIAL, REEVE_STEP_DIAL);
	part();
}
END_TEST

#define STREAMS 16

/* The peer's limit of streams: what is above it is reset, and the rest and the connection go on. */
START_TEST(more_requests_than_the_peer_takes_streams_fail_alone)
{
	static struct rq_ask ask[4 * STREAMS];
	reeve_node_cfg_t node;
	reeve_cfg_t conn;
	unsigned ok = 0;

	reeve_cfg_init(&conn);
	conn.max_in = STREAMS;
	reeve_node_cfg_init(&node);
	node.conn = &conn;
	rq_start(&a, 1, NULL);
	rq_start_node(&b, 2, 0, &node);
	rq_install(&b, NULL);
	rq_dial(&a, &b);
	for (unsigned i = 0; i < 4 * STREAMS; i++) {
		rq_ask_init(&ask[i], RVT_WAIT_MS);
		rq_ask_start(&ask[i], &a, b.id, rq_buf(a.rt, 10, i));
	}
	RVT_UNTIL(rq_stats(&a).requests_failed == 3 * STREAMS);
	for (unsigned i = 0; i < STREAMS; i++)
		reeve_respond(rq_next(&b), NULL, NULL, NULL);
	for (unsigned i = 0; i < 4 * STREAMS; i++) {
		ok += rq_ask_wait(&ask[i]) == 0;
		ck_assert(ask[i].q.rc == 0 || ask[i].q.rc == REEVE_EREFUSED);
	}
	ck_assert_uint_eq(ok, STREAMS);
	rq_quiet(&b);
	rq_ask_init(&ask[0], RVT_WAIT_MS);
	rq_ask_start(&ask[0], &a, b.id, NULL);
	reeve_respond(rq_next(&b), NULL, NULL, NULL);
	ck_assert_int_eq(rq_ask_wait(&ask[0]), 0);
	ck_assert_uint_eq(rq_stats(&a).conns_total, 1);
	part();
}
END_TEST

/* --- names --- */

static const char *const two[] = {"/req/2", "/req/1"};
static const char *const old[] = {"/req/1"};
static const char *const other[] = {"/other/1"};

/* Whoever speaks only the old name gets what is meant for it; index of the agreed name on each side. */
static void
with_names(const char *const *an, unsigned na, const char *const *bn, unsigned nb)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.names = an;
	cfg.nnames = na;
	rq_start(&a, 1, &cfg);
	cfg.names = bn;
	cfg.nnames = nb;
	rq_start(&b, 2, &cfg);
	rq_dial(&a, &b);
}

struct fallback {
	const char *const *an, *const *bn;
	unsigned na, nb;
	int payload;                   /* for that name; -1: none */
	unsigned a_name, b_name, seed; /* agreed; seed 1: the body, 2: the payload */
};
static const struct fallback fallbacks[] = {
    {two, two, 2, 2, 1, 0, 0, 1},  /* the main name: the body */
    {two, old, 2, 1, 1, 1, 0, 2},  /* the listener is old */
    {old, two, 1, 2, -1, 0, 1, 1}, /* the dialer is old */
    {two, old, 2, 1, -1, 1, 0, 1}, /* the same body for both names */
    {two, two, 2, 2, 0, 0, 0, 2},  /* also the main name may have one */
};

START_TEST(the_payload_is_that_of_the_agreed_name)
{
	const struct fallback *f = &fallbacks[_i];
	reeve_payload_t payload = {NULL, (uint32_t)f->payload, 0};
	reeve_inbound_t *in;
	struct rq_ask ask;

	with_names(f->an, f->na, f->bn, f->nb);
	rq_ask_init(&ask, 0);
	if (f->payload >= 0) {
		payload.body = rq_buf(a.rt, 50, 2);
		ask.q.payloads = &payload;
		ask.q.npayloads = 1;
	}
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 50, 1));
	in = rq_next(&b);
	ck_assert_uint_eq(reeve_inbound_name(in), f->b_name);
	rq_want(reeve_buf_ref(reeve_inbound_body(in)), 50, f->seed);
	reeve_respond(in, rq_buf(b.rt, 60, 9), NULL, NULL);
	ck_assert_int_eq(rq_ask_wait(&ask), 0);
	ck_assert_uint_eq(ask.q.name, f->a_name);
	rq_want(ask.q.response, 60, 9);
	part();
}
END_TEST

START_TEST(a_protocol_that_the_peer_does_not_speak_is_told)
{
	reeve_reqs_cfg_t cfg;
	struct rq_ask ask;

	rq_cfg(&cfg);
	cfg.flags = ways[_i];
	rq_start(&a, 1, &cfg);
	cfg.names = other;
	rq_start(&b, 2, &cfg);
	rq_dial(&a, &b);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 10, 0));
	rq_ask_want(&ask, REEVE_ENOPROTO, REEVE_STEP_NEGOTIATE);
	ck_assert_uint_eq(reeve_node_peers(a.n, NULL, 0), 1);
	part();
}
END_TEST

/* --- bounds --- */

START_TEST(a_request_that_is_too_large_is_not_sent)
{
	reeve_payload_t payload = {NULL, 0, 0};
	reeve_reqs_cfg_t cfg;
	struct rq_ask ask;

	rq_cfg(&cfg);
	cfg.max_request = 1000;
	pair(&cfg);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 1001, 0));
	rq_ask_want(&ask, REEVE_ETOOBIG, REEVE_STEP_NONE);
	rq_ask_init(&ask, 0);
	payload.body = rq_buf(a.rt, 1001, 0);
	ask.q.payloads = &payload;
	ask.q.npayloads = 1;
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 5, 0));
	rq_ask_want(&ask, REEVE_ETOOBIG, REEVE_STEP_NONE);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 1000, 7));
	reeve_refuse(rq_next(&b));
	rq_ask_want(&ask, REEVE_EREFUSED, -1);
	ck_assert_uint_eq(rq_stats(&b).requests_refused, 1);
	part();
}
END_TEST

START_TEST(a_request_that_is_too_large_for_the_peer_is_refused)
{
	reeve_reqs_cfg_t cfg;
	struct rq_ask ask;

	rq_start(&a, 1, NULL);
	rq_cfg(&cfg);
	cfg.max_request = 1000;
	rq_start(&b, 2, &cfg);
	rq_dial(&a, &b);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, b.id, rq_buf(a.rt, 1001, 0));
	rq_ask_want(&ask, REEVE_EREFUSED, -1);
	ck_assert_uint_eq(rq_stats(&b).requests_refused, 1);
	part();
}
END_TEST

START_TEST(a_response_that_is_too_large_is_told_on_both_sides)
{
	reeve_reqs_cfg_t cfg;
	struct rq_ask ask;
	struct rq_done done = {0};

	rq_cfg(&cfg);
	cfg.max_response = _i == 0 ? 1000 : 0; /* b's limit is a's, or not */
	rq_start(&b, 2, &cfg);
	cfg.max_response = 1000;
	rq_start(&a, 1, &cfg);
	rq_dial(&a, &b);
	rq_ask_init(&ask, 0);
	rq_ask_start(&ask, &a, b.id, NULL);
	reeve_respond(rq_next(&b), rq_buf(b.rt, 1001, 0), rq_done_fn, &done);
	if (_i == 0) {
		rq_ask_want(&ask, REEVE_EREFUSED, -1);
		ck_assert_int_eq(rq_done_wait(&done), REEVE_ETOOBIG);
	} else {
		rq_ask_want(&ask, REEVE_ETOOBIG, REEVE_STEP_READ);
		(void)rq_done_wait(&done);
	}
	rq_quiet(&a);
	rq_quiet(&b);
	part();
}
END_TEST

#define LIMIT 5

START_TEST(requests_beyond_the_limit_are_refused_at_once)
{
	struct rq_ask ask[LIMIT + 2];
	reeve_inbound_t *in[LIMIT];
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.max_inbound = _i == 0 ? LIMIT : 100;
	cfg.max_inbound_peer = LIMIT;
	pair(&cfg);
	for (int i = 0; i < LIMIT; i++) {
		rq_ask_init(&ask[i], RVT_WAIT_MS);
		rq_ask_start(&ask[i], &a, b.id, NULL);
		in[i] = rq_next(&b);
	}
	for (int i = LIMIT; i < LIMIT + 2; i++) {
		rq_ask_init(&ask[i], RVT_WAIT_MS);
		rq_ask_start(&ask[i], &a, b.id, NULL);
		rq_ask_want(&ask[i], REEVE_EREFUSED, -1);
	}
	ck_assert_uint_eq(rq_stats(&b).requests_refused, 2);
	for (int i = 0; i < LIMIT; i++) {
		reeve_respond(in[i], NULL, NULL, NULL);
		ck_assert_int_eq(rq_ask_wait(&ask[i]), 0);
	}
	RVT_UNTIL(rq_stats(&b).requests_in == 0);
	rq_ask_init(&ask[0], 0);
	rq_ask_start(&ask[0], &a, b.id, NULL);
	reeve_respond(rq_next(&b), NULL, NULL, NULL);
	ck_assert_int_eq(rq_ask_wait(&ask[0]), 0);
	part();
}
END_TEST

/* Bodies beyond max_held stay with the peer until there is room; then they come, in order. */
START_TEST(bodies_beyond_what_may_be_held_wait_unread)
{
	struct rq_ask ask[6];
	reeve_inbound_t *in[6], *none = NULL;
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	cfg.max_held = 250000;
	cfg.timeout_ms = RVT_WAIT_MS;
	pair(&cfg);
	for (unsigned i = 0; i < 6; i++) {
		rq_ask_init(&ask[i], RVT_WAIT_MS);
		rq_ask_start(&ask[i], &a, b.id, rq_buf(a.rt, 100000, i));
	}
	in[0] = rq_next(&b);
	in[1] = rq_next(&b);
	RVT_UNTIL(rq_stats(&b).requests_in == 6);
	ck_assert_int_eq(reeve_inbound_next(b.r, &none, 20), REEVE_ETIMEDOUT);
	ck_assert_uint_eq(rq_stats(&b).held, 200000);
	for (unsigned i = 0; i < 6; i++) {
		rq_want(reeve_buf_ref(reeve_inbound_body(in[i])), 100000, i);
		reeve_respond(in[i], NULL, NULL, NULL);
		ck_assert_int_eq(rq_ask_wait(&ask[i]), 0);
		if (i < 4)
			in[i + 2] = rq_next(&b);
	}
	rq_quiet(&b);
	/* One that is larger than all comes alone. */
	rq_ask_init(&ask[0], 0);
	rq_ask_start(&ask[0], &a, b.id, rq_buf(a.rt, 300000, 1));
	in[0] = rq_next(&b);
	reeve_respond(in[0], NULL, NULL, NULL);
	ck_assert_int_eq(rq_ask_wait(&ask[0]), 0);
	part();
}
END_TEST

RVT_MAIN_TABLE("req", {&a_request_is_answered, 4}, {&requests_go_both_ways, 0},
    {&many_at_once_are_all_answered, 4}, {&nobody_is_dialed_who_must_not_be, 0},
    {&a_peer_that_is_nowhere_cannot_be_dialed, 2},
    {&more_requests_than_the_peer_takes_streams_fail_alone, 0},
    {&the_payload_is_that_of_the_agreed_name, sizeof(fallbacks) / sizeof(fallbacks[0])},
    {&a_protocol_that_the_peer_does_not_speak_is_told, 2},
    {&a_request_that_is_too_large_is_not_sent, 0},
    {&a_request_that_is_too_large_for_the_peer_is_refused, 0},
    {&a_response_that_is_too_large_is_told_on_both_sides, 2},
    {&requests_beyond_the_limit_are_refused_at_once, 2},
    {&bodies_beyond_what_may_be_held_wait_unread, 0})
