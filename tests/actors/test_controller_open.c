/* test_controller_open.c - opening: every open has one answer, in order, and waiting for it holds up nothing. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include "actors/connection.h"
#include "lib/engine/yamux_session.h"

#define UNACKED 256u

static struct rvt_raw r;
static reeve_stream_t *s[UNACKED];
static struct rvt_call next;

/* --- 256 streams that the peer has not acknowledged, and the 257th */

/* The peer has seen so many SYNs and answered none; one more open sleeps. */
static void
full(uint32_t n)
{
	static reeve_op_t op[UNACKED];
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = n == UNACKED ? 0 : n;
	cfg.max_window = 262144; /* credit is what was read, nothing more */
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	rvt_peer_settle(&r.p);
	for (uint32_t i = 0; i < n; i++) {
		reeve_op_init(&op[i], NULL, NULL);
		reeve_open_async(r.k, &op[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_int_eq(reeve_op_wait(&op[i]), 0);
		s[i] = op[i].stream;
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 2 * i + 1, 0);
	}
	next = (struct rvt_call){.kind = RVT_CALL_OPEN, .k = r.k, .timeout_ms = -1};
	rvt_call_start(&next);
	rvt_call_asleep(&next);
	rvt_peer_want_none(&r.p);
	ck_assert(!rvt_call_done(&next));
}

/* Half a window is read, which comes back as credit at the latest when the reader sleeps. */
static void
credit_comes_back(reeve_stream_t *t)
{
	uint32_t id = (uint32_t)reeve_stream_id(t);
	uint8_t byte;
	struct rvt_call c = {.kind = RVT_CALL_READ, .s = t, .p = &byte, .n = 1};

	rvt_peer_data(&r.p, 0, id, 131072, 0);
	rvt_want_read(t, 131072, 0);
	rvt_call_start(&c);
	rvt_peer_want(&r.p, RVT_WU, 0, id, 131072);
	rvt_peer_data(&r.p, 0, id, 1, 131072);
	ck_assert_int_eq(rvt_call_end(&c), 1);
}

/* Reads, credit, writes, FINs, accepts, and pings of both sides, on streams of the peer. */
static void
io_goes_on(uint32_t id)
{
	struct rvt_call ping = {.kind = RVT_CALL_PING, .k = r.k, .timeout_ms = -1};
	reeve_stream_t *in = rvt_raw_inbound(&r, id);

	credit_comes_back(in);
	rvt_want_write(in, 1000, 0);
	rvt_peer_want_data(&r.p, 0, id, 1000, 0);
	rvt_call_start(&ping);
	while (!rvt_call_done(&ping))
		rvt_peer_want_none(&r.p); /* a ping of the peer's is answered, ours too */
	ck_assert_int_eq(rvt_call_end(&ping), 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, id, 0);
	rvt_want_rc(in, 0);
	reeve_close(in);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, id, 0);
	rvt_peer_want_none(&r.p);
}

/* The 257th has its stream, and that works. */
static void
next_is_open(void)
{
	ck_assert_int_eq(rvt_call_end(&next), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 2 * UNACKED + 1, 0);
	ck_assert_uint_eq(reeve_stream_id(next.s), 2 * UNACKED + 1);
	rvt_want_write(next.s, 100, 0);
	rvt_peer_want_data(&r.p, 0, 2 * UNACKED + 1, 100, 0);
	rvt_peer_data(&r.p, RVT_ACK, 2 * UNACKED + 1, 100, 0);
	rvt_want_read(next.s, 100, 0);
}

static void
let_go(void)
{
	for (unsigned i = 0; i < UNACKED; i++)
		reeve_stream_unref(s[i]);
	reeve_stream_unref(next.s);
	rvt_raw_fini(&r);
}

static void
resolved_by(unsigned type, unsigned flags, uint32_t id, uint32_t len)
{
	full(UNACKED);
	io_goes_on(2);
	ck_assert(!rvt_call_done(&next));
	rvt_peer_put(&r.p, type, flags, id, len);
	next_is_open();
	io_goes_on(4);
	let_go();
}

START_TEST(the_257th_open_goes_on_at_the_first_ack)
{
	resolved_by(RVT_WU, RVT_ACK, 3, 0);
}
END_TEST

START_TEST(the_257th_open_goes_on_at_the_first_reset)
{
	resolved_by(RVT_WU, RVT_RST, 5, 0);
}
END_TEST

START_TEST(the_257th_open_goes_on_at_the_first_fin)
{
	resolved_by(RVT_WU, RVT_FIN, 7, 0);
}
END_TEST

/* Peers acknowledge late, or never: what else they send says that they know the stream. */
START_TEST(the_257th_open_goes_on_at_the_first_credit)
{
	resolved_by(RVT_WU, 0, 511, 1000);
}
END_TEST

/* _i: 0 the handle is let go, 1 the stream is reset here. */
START_TEST(the_257th_open_goes_on_when_a_stream_is_dropped)
{
	full(UNACKED);
	io_goes_on(2);
	ck_assert(!rvt_call_done(&next));
	if (_i)
		ck_assert_int_eq(reeve_reset(s[9], 0), 0);
	else
		reeve_stream_unref(s[9]);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 19, 0);
	if (_i == 0)
		s[9] = NULL;
	next_is_open();
	io_goes_on(4);
	let_go();
}
END_TEST

/* A stream that was closed here still has a place in the peer's backlog: it counts until the peer answers. */
START_TEST(the_257th_open_goes_on_when_the_peer_answers_a_closed_stream)
{
	full(UNACKED);
	reeve_close(s[9]);
	s[9] = NULL;
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 19, 0);
	io_goes_on(2);
	ck_assert(!rvt_call_done(&next));
	rvt_peer_put(&r.p, RVT_WU, (unsigned[]){RVT_ACK, RVT_FIN, RVT_RST}[_i], 19, 0);
	next_is_open();
	io_goes_on(4);
	let_go();
}
END_TEST

/* What other controllers hang at: all are acknowledged while the open waits, and then everything must go on. */
START_TEST(the_257th_open_goes_on_when_all_are_acknowledged)
{
	full(UNACKED);
	for (uint32_t i = 0; i < UNACKED; i++)
		rvt_put(&r.p.out, RVT_WU, RVT_ACK, 2 * i + 1, 0);
	rvt_peer_send(&r.p);
	next_is_open();
	for (uint32_t i = 0; i < UNACKED; i += 51)
		credit_comes_back(s[i]);
	io_goes_on(2);
	let_go();
}
END_TEST

/* Streams are still open, so the connection is: but no open has to wait for its end.  _i: 0 close, 1 our GO_AWAY, 2 the
 * peer's, 3 abort, 4 the peer's end. */
START_TEST(waiting_opens_are_answered_when_there_will_be_no_more_streams)
{
	static const int rc[] = {
	    REEVE_ECLOSED, REEVE_EGOAWAY, REEVE_EGOAWAY, REEVE_ECLOSED, REEVE_EEND};
	struct rvt_call more = {.kind = RVT_CALL_OPEN, .timeout_ms = -1};
	struct rvt_call close = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};

	full(4);
	more.k = r.k;
	close.c = r.c;
	rvt_call_start(&more);
	rvt_call_asleep(&more);
	switch (_i) {
	case 0:
		rvt_call_start(&close);
		break;
	case 1:
		ck_assert_int_eq(reeve_goaway(r.k, 0), 0);
		break;
	case 2:
		rvt_peer_put(&r.p, RVT_GOAWAY, 0, 0, 0);
		break;
	case 3:
		ck_assert_int_eq(reeve_abort(r.k, 0), 0);
		break;
	default:
		rvt_peer_shut(&r.p);
		break;
	}
	ck_assert_int_eq(rvt_call_end(&next), rc[_i]);
	ck_assert_int_eq(rvt_call_end(&more), rc[_i]);
	if (_i < 3) { /* the streams go on */
		rvt_peer_data(&r.p, RVT_ACK, 1, 10, 0);
		rvt_want_read(s[0], 10, 0);
		ck_assert_int_eq(reeve_open(r.k, &next.s, -1), rc[_i]);
	}
	if (_i == 0) {
		ck_assert(!rvt_call_done(&close));
		ck_assert_int_eq(reeve_abort(r.k, 0), 0);
		ck_assert_int_eq(rvt_call_end(&close), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		reeve_stream_unref(s[i]);
	rvt_raw_fini(&r);
}
END_TEST

/* --- one answer each, in order */

START_TEST(opens_are_answered_in_order_and_once)
{
	static struct rvt_done op[400];
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = 100;
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	for (unsigned i = 0; i < 400; i++) {
		rvt_done_init(&op[i], i % 3 == 0 ? RVT_WAIT_MS : -1);
		reeve_open_async(r.k, &op[i].op);
	}
	for (uint32_t i = 0; i < 400; i++) {
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		if (i >= 99) { /* one more may go, and does not before */
			rvt_peer_want_none(&r.p);
			ck_assert(i == 399 || !rvt_done_is(&op[i + 1]));
			rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 2 * (i - 99) + 1, 0);
		}
	}
	for (unsigned i = 0; i < 400; i++) {
		ck_assert_int_eq(rvt_done_wait(&op[i]), 0);
		ck_assert_uint_eq(reeve_stream_id(op[i].op.stream), 2 * i + 1);
		ck_assert_uint_eq(op[i].order, i);
	}
	for (unsigned i = 0; i < 400; i++)
		reeve_stream_unref(op[i].op.stream);
	rvt_raw_fini(&r);
}
END_TEST

/* One that gives up in the middle of the queue, or at its head, does not hold up or reorder the others. */
START_TEST(opens_that_give_up_leave_the_order)
{
	static struct rvt_done op[9];

	full(2);
	for (unsigned i = 0; i < 9; i++) {
		rvt_done_init(&op[i], i == 3 ? 20 : -1);
		reeve_open_async(r.k, &op[i].op);
	}
	reeve_op_cancel(&op[5].op);
	ck_assert_int_eq(rvt_done_wait(&op[5]), REEVE_ECANCELED);
	ck_assert_int_eq(rvt_done_wait(&op[3]), REEVE_ETIMEDOUT);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 1, 0);
	ck_assert_int_eq(rvt_call_end(&next), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 5, 0);
	reeve_op_cancel(&op[0].op); /* the head */
	ck_assert_int_eq(rvt_done_wait(&op[0]), REEVE_ECANCELED);
	for (uint32_t i = 1, id = 7; i < 9; i++) {
		if (i == 3 || i == 5)
			continue;
		rvt_peer_want_none(&r.p);
		rvt_peer_put(&r.p, RVT_WU, RVT_ACK, id - 4, 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, id, 0);
		ck_assert_int_eq(rvt_done_wait(&op[i]), 0);
		ck_assert_uint_eq(reeve_stream_id(op[i].op.stream), id);
		reeve_stream_unref(reeve_stream_ref(op[i].op.stream));
		id += 2;
	}
	for (unsigned i = 0; i < 9; i++)
		if (op[i].op.res == 0)
			reeve_stream_unref(op[i].op.stream);
	for (unsigned i = 0; i < 2; i++)
		reeve_stream_unref(s[i]);
	reeve_stream_unref(next.s);
	rvt_raw_fini(&r);
}
END_TEST

/* The open of a thread and of an operation with the same answer. */
static void
want_open(int64_t timeout_ms, int rc)
{
	reeve_stream_t *got = NULL;
	struct rvt_done op;

	ck_assert_int_eq(reeve_open(r.k, &got, timeout_ms), rc);
	ck_assert_ptr_null(got);
	rvt_done_init(&op, timeout_ms);
	reeve_open_async(r.k, &op.op);
	ck_assert_int_eq(rvt_done_wait(&op), rc);
	ck_assert_ptr_null(op.op.stream);
}

START_TEST(open_at_the_limit_is_refused_and_works_again)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_out = 2;
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	s[0] = rvt_raw_outbound(&r);
	s[1] = rvt_raw_outbound(&r);
	want_open(-1, REEVE_ELIMIT);
	rvt_peer_want_none(&r.p);
	reeve_stream_unref(s[0]);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	s[0] = rvt_raw_outbound(&r); /* 5: a refusal costs no id */
	ck_assert_uint_eq(reeve_stream_id(s[0]), 5);
	reeve_stream_unref(s[0]);
	reeve_stream_unref(s[1]);
	rvt_raw_fini(&r);
}
END_TEST

/* _i: 0 dialer, 1 listener.  The counter is put near its end before the first open looks at it. */
START_TEST(open_without_ids_is_refused_and_the_connection_lives)
{
	uint32_t last = _i ? UINT32_MAX - 1 : UINT32_MAX;

	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_window = 262144;
	rvt_raw_open(&r, _i ? REEVE_LISTENER : REEVE_DIALER, &cfg);
	rvt_peer_settle(&r.p);
	rv_yamux_set_next_id(r.c->engine, last - 2);
	s[0] = rvt_raw_outbound(&r);
	s[1] = rvt_raw_outbound(&r);
	ck_assert_uint_eq(reeve_stream_id(s[1]), last);
	for (unsigned i = 0; i < 3; i++)
		want_open(-1, REEVE_EEXHAUSTED);
	rvt_peer_want_none(&r.p);
	io_goes_on(_i ? 1 : 2);
	rvt_want_write(s[1], 10, 0);
	rvt_peer_want_data(&r.p, 0, last, 10, 0);
	reeve_stream_unref(s[0]);
	reeve_stream_unref(s[1]);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(open_gives_up_at_its_deadline)
{
	static const int64_t ms[] = {0, 1, 30};
	uint64_t start;

	full(2);
	for (unsigned i = 0; i < 3; i++) {
		start = rvt_now_ms();
		want_open(ms[i], REEVE_ETIMEDOUT);
		ck_assert_uint_ge(rvt_now_ms() - start + 2, (uint64_t)(2 * ms[i]));
	}
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 1, 0);
	ck_assert_int_eq(rvt_call_end(&next), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 5, 0); /* no id was spent */
	for (unsigned i = 0; i < 2; i++)
		reeve_stream_unref(s[i]);
	reeve_stream_unref(next.s);
	rvt_raw_fini(&r);
}
END_TEST

/* The next frame but resets, which cross the peer's; no reset is of a stream that nobody was given. */
static bool
next_but_reset(uint32_t last, struct rvt_frame *f)
{
	while (rvt_peer_next(&r.p, f)) {
		if (f->type != RVT_WU || f->flags != RVT_RST)
			return true;
		ck_assert_uint_le(f->id, last);
	}
	return false;
}

/* Cancelled at once, at every moment of an open's way: either there is a stream, or the wire has not heard of one.  Odd
 * rounds have two opens, and cancel the first. */
START_TEST(cancelled_open_leaves_nothing_on_the_wire)
{
	struct rvt_done op[2];
	unsigned cancelled = 0, n;
	uint32_t last = 0;
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	rvt_peer_settle(&r.p);
	for (unsigned i = 0; i < 600; i++) {
		n = 1 + i % 2;
		for (unsigned j = 0; j < n; j++) {
			rvt_done_init(&op[j], -1);
			reeve_open_async(r.k, &op[j].op);
		}
		for (unsigned spin = 0; spin < (i / 2) % 64; spin++)
			(void)rvt_now_ms();
		reeve_op_cancel(&op[0].op);
		for (unsigned j = 0; j < n; j++) {
			if (rvt_done_wait(&op[j]) == REEVE_ECANCELED) {
				cancelled++;
				continue;
			}
			ck_assert_int_eq(op[j].op.res, 0);
			ck_assert(next_but_reset(last, &f));
			ck_assert(f.type == RVT_WU && f.flags == RVT_SYN);
			last = (uint32_t)reeve_stream_id(op[j].op.stream);
			ck_assert_uint_eq(f.id, last);
			rvt_peer_put(&r.p, RVT_WU, RVT_RST, f.id, 0);
			reeve_stream_unref(op[j].op.stream);
		}
	}
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 2, 0); /* the end, accepted */
	ck_assert_int_eq(reeve_accept(r.k, &s[0], RVT_WAIT_MS), 0);
	ck_assert(next_but_reset(last, &f));
	ck_assert(f.type == RVT_WU && f.flags == RVT_ACK && f.id == 2);
	rvt_peer_want_none(&r.p);
	ck_assert_uint_gt(cancelled, 0);
	ck_assert_uint_eq(rvt_stats(r.k).streams_open, 1);
	reeve_stream_unref(s[0]);
	rvt_raw_fini(&r);
}
END_TEST

/* The same for threads whose time is up while their open is on its way. */
START_TEST(open_that_times_out_leaves_nothing_on_the_wire)
{
	struct rvt_call c = {.kind = RVT_CALL_OPEN, .timeout_ms = 1};
	unsigned late = 0;

	full(1);
	c.k = r.k;
	for (unsigned i = 0; i < 50; i++) {
		c.s = NULL;
		rvt_call_start(&c);
		if (i % 2)
			rvt_call_asleep(&c);
		late += rvt_call_end(&c) == REEVE_ETIMEDOUT;
	}
	ck_assert_uint_eq(late, 50);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 1, 0);
	ck_assert_int_eq(rvt_call_end(&next), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 3, 0);
	rvt_peer_want_none(&r.p);
	reeve_stream_unref(s[0]);
	reeve_stream_unref(next.s);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("controller_open", {&the_257th_open_goes_on_at_the_first_ack, 0},
    {&the_257th_open_goes_on_at_the_first_reset, 0}, {&the_257th_open_goes_on_at_the_first_fin, 0},
    {&the_257th_open_goes_on_at_the_first_credit, 0},
    {&the_257th_open_goes_on_when_a_stream_is_dropped, 2},
    {&the_257th_open_goes_on_when_the_peer_answers_a_closed_stream, 3},
    {&the_257th_open_goes_on_when_all_are_acknowledged, 0},
    {&waiting_opens_are_answered_when_there_will_be_no_more_streams, 5},
    {&opens_are_answered_in_order_and_once, 0}, {&opens_that_give_up_leave_the_order, 0},
    {&open_at_the_limit_is_refused_and_works_again, 0},
    {&open_without_ids_is_refused_and_the_connection_lives, 2}, {&open_gives_up_at_its_deadline, 0},
    {&cancelled_open_leaves_nothing_on_the_wire, 0},
    {&open_that_times_out_leaves_nothing_on_the_wire, 0})
