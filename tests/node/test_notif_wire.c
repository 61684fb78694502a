/* test_notif_wire.c - bytes of a peer that another program could send: cut anywhere, wrong, early, late, on the wrong
 * substream; and what it sees of us. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/notes.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

static struct rvt_notes t;
static struct rvt_stranger s;
static reeve_stream_t *out, *in; /* the stranger's, the node's */

static void
start(const reeve_notif_cfg_t *c)
{
	struct rvt_notes_cfg cfg = {.net = {.via = RVT_TCP}, .cfg = {c}};

	rvt_notes_start(&t, &cfg);
}

static void
end(void)
{
	reeve_close(out);
	reeve_close(in);
	out = in = NULL;
	rvt_stranger_end(&s);
	rvt_notes_end(&t);
}

static void
meet(void)
{
	rvt_stranger_start(&s, t.net.node[1].rt, 77);
	ck_assert_int_eq(rvt_stranger_dial(&s, t.net.node[1].rt, t.net.node[0].addr), 0);
	RVT_UNTIL(rvt_net_stats(&t.net, 0).peers == 1);
}

static void
received(const char *text)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, 0, REEVE_NOTIF_RECEIVED, &ev);
	if (*text == '\0') {
		ck_assert_ptr_null(ev.data);
	} else {
		ck_assert_uint_eq(reeve_buf_len(ev.data), strlen(text));
		ck_assert(memcmp(reeve_buf_data(ev.data), text, strlen(text)) == 0);
	}
	reeve_notif_release(t.p[0], &ev);
}

static void
closed(int rc, uint32_t by)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, 0, REEVE_NOTIF_CLOSED, &ev);
	ck_assert_msg(ev.reason.rc == rc && ev.reason.by == by, "%s by %u, not %s by %u",
	    reeve_errname(ev.reason.rc), ev.reason.by, reeve_errname(rc), by);
	reeve_notif_release(t.p[0], &ev);
}

static void
failed(int rc, int step)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, 0, REEVE_NOTIF_FAILED, &ev);
	ck_assert_msg(ev.reason.rc == rc && ev.step == step, "%s at %d",
	    reeve_errname(ev.reason.rc), ev.step);
	reeve_notif_release(t.p[0], &ev);
}

START_TEST(scenario_116_messages_without_bytes)
{
	reeve_notif_event_t ev;

	start(NULL);
	meet();
	out = rvt_wild_open(&s, "\0", 1); /* a handshake without bytes */
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_ptr_null(ev.data);
	ck_assert_uint_eq(ev.name, 1);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), 0);
	reeve_notif_release(t.p[0], &ev);
	in = rvt_wild_accept(&s, 5);
	rvt_wild_write(in, "\0", 1);
	rvt_wild_write(out, "\0\1A\0", 4); /* at once, behind the handshake */
	rvt_wild_read(out, "\5hello", 6);
	rvt_notes_next(&t, 0, REEVE_NOTIF_OPENED, &ev);
	reeve_notif_release(t.p[0], &ev);
	received("");
	received("A");
	received("");
	end();
}
END_TEST

/* Whatever pieces the bytes come in. */
START_TEST(scenario_126_messages_in_pieces)
{
	static const char bytes[] = "\3wll\0\1A\3abc\0\5hello\2no";
	static const char *const msg[] = {"", "A", "abc", "", "hello", "no"};
	reeve_notif_event_t ev;
	size_t n = sizeof(bytes) - 1, piece = (size_t)_i + 1;

	start(NULL);
	meet();
	out = rvt_wild_open(&s, NULL, 0);
	for (size_t at = 0; at < n; at += piece) {
		rvt_wild_write(out, bytes + at, n - at < piece ? n - at : piece);
		rvt_yield(20);
	}
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_uint_eq(reeve_buf_len(ev.data), 3);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), 0);
	reeve_notif_release(t.p[0], &ev);
	in = rvt_wild_accept(&s, 5);
	rvt_wild_write(in, "\2o", 2);
	rvt_yield(20);
	rvt_wild_write(in, "k", 1);
	rvt_notes_next(&t, 0, REEVE_NOTIF_OPENED, &ev);
	reeve_notif_release(t.p[0], &ev);
	for (size_t i = 0; i < sizeof(msg) / sizeof(msg[0]); i++)
		received(msg[i]);
	if (_i == 0) { /* ends inside a message: that is no clean end */
		rvt_wild_write(out, "\5hel", 4);
		(void)reeve_shut(out);
		closed(REEVE_ETRUNC, REEVE_BY_PEER);
	} else {
		(void)reeve_shut(out);
		closed(0, REEVE_BY_PEER);
	}
	rvt_notes_quiet(&t, 0, 0);
	end();
}
END_TEST

START_TEST(wrong_lengths_end_the_stream_and_nothing_else)
{
	static const struct {
		const char *bytes;
		size_t n;
		int rc;
	} wrong[] = {{"\x81\x80\x80\x80\x10", 5, REEVE_ETOOBIG}, {"\x80\x00", 2, REEVE_EPROTO},
	    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, REEVE_EPROTO}};

	start(NULL);
	rvt_wild_marry(&t, &s, &out, &in);
	rvt_wild_write(out, "\1A\1B", 4);
	rvt_wild_write(out, wrong[_i].bytes, wrong[_i].n);
	received("A");
	received("B");
	closed(wrong[_i].rc, REEVE_BY_PEER);
	ck_assert_int_le(rvt_wild_end(in), 0);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).peers, 1);
	/* The next one is as good as any. */
	reeve_close(out);
	reeve_close(in);
	out = rvt_wild_open(&s, "\3wll", 4);
	rvt_notes_answer(&t, 0, 1);
	in = rvt_wild_accept(&s, 5);
	end();
}
END_TEST

START_TEST(wrong_handshakes_are_refused)
{
	static const char big[] = "\x81\x80\x80\x80\x10";

	start(NULL);
	meet();
	out = rvt_wild_open(&s, big, 5);
	ck_assert_int_eq(rvt_wild_end(out), 0);
	reeve_close(out);
	out = rvt_wild_open(&s, "\5hel", 4); /* ends inside */
	(void)reeve_shut(out);
	ck_assert_int_eq(rvt_wild_end(out), 0);
	rvt_notes_quiet(&t, 0, 0);
	/* The same as an answer. */
	ck_assert_int_eq(reeve_notif_open(t.p[0], s.id), 0);
	in = rvt_wild_accept(&s, 5);
	rvt_wild_write(in, big, 5);
	failed(REEVE_ETOOBIG, REEVE_STEP_READ);
	end();
}
END_TEST

/* The end of either substream, by FIN or reset, ends the stream once; what came before is delivered. */
START_TEST(either_substream_shows_the_end)
{
	bool ours = _i & 1, reset = _i & 2;
	reeve_sink_t *k;
	int rc;

	start(NULL);
	rvt_wild_marry(&t, &s, &out, &in);
	k = reeve_notif_sink(t.p[0], s.id);
	ck_assert_ptr_nonnull(k);
	rvt_wild_write(out, "\1A\1B\1C", 6);
	received("A");
	if (reset)
		(void)reeve_reset(ours ? in : out, 0);
	else
		(void)reeve_shut(ours ? in : out);
	if (!reset || ours) {
		received("B");
		received("C");
	} else {
		reeve_notif_event_t ev; /* a reset may overtake what its own end had not sent */

		for (;;) {
			ck_assert_int_eq(reeve_notif_next(t.p[0], &ev, RVT_WAIT_MS), 0);
			rc = ev.type == REEVE_NOTIF_CLOSED ? ev.reason.rc : 0;
			if (rc != 0)
				ck_assert_int_eq(rc, REEVE_ERESET);
			reeve_notif_release(t.p[0], &ev);
			if (rc != 0)
				break;
		}
	}
	if (!reset || ours)
		closed(reset ? REEVE_ERESET : 0, REEVE_BY_PEER);
	ck_assert_int_lt(reeve_sink_try_send(k, NULL), 0);
	reeve_sink_unref(k);
	rvt_notes_quiet(&t, 0, 0);
	end();
}
END_TEST

START_TEST(bytes_on_our_own_substream_are_ignored)
{
	reeve_sink_t *k;

	start(NULL);
	rvt_wild_marry(&t, &s, &out, &in);
	for (unsigned i = 0; i < 100; i++)
		rvt_wild_write(in, "nobody reads this, and it is no error", 37);
	rvt_wild_write(out, "\1A", 2);
	received("A");
	k = reeve_notif_sink(t.p[0], s.id);
	ck_assert_int_eq(reeve_sink_try_send(k, rvt_note(t.net.node[0].rt, 3, 0)), 0);
	rvt_wild_read(in, "\3\0\0\0", 4);
	reeve_sink_unref(k);
	end();
}
END_TEST

/* It agreed to ours and never opens its own. */
START_TEST(a_peer_that_never_opens_its_own)
{
	reeve_notif_cfg_t c;

	rvt_notes_cfg(&c, "hello");
	c.handshake_ms = 100;
	start(&c);
	meet();
	ck_assert_int_eq(reeve_notif_open(t.p[0], s.id), 0);
	in = rvt_wild_accept(&s, 5);
	if (_i == 1) { /* not even a word */
		failed(REEVE_ETIMEDOUT, REEVE_STEP_READ);
	} else {
		rvt_wild_write(in, "\0", 1);
		failed(REEVE_ETIMEDOUT, REEVE_STEP_VALIDATE);
	}
	ck_assert_int_eq(rvt_wild_end(in), 0);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).conns, 1); /* no connection is closed for that */
	ck_assert_int_eq(reeve_notif_open(t.p[0], s.id), 0);
	end();
}
END_TEST

START_TEST(a_peer_that_opens_and_says_nothing)
{
	reeve_notif_cfg_t c;

	rvt_notes_cfg(&c, "hello");
	c.handshake_ms = 100;
	start(&c);
	meet();
	out = rvt_wild_open(&s, NULL, 0);
	ck_assert_int_eq(rvt_wild_end(out), 0);
	rvt_notes_quiet(&t, 0, 0);
	end();
}
END_TEST

START_TEST(a_second_substream_while_one_is_validated_closes_both)
{
	reeve_stream_t *second;
	reeve_notif_event_t ev;

	start(NULL);
	meet();
	out = rvt_wild_open(&s, "\1A", 2);
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	second = rvt_wild_open(&s, "\1B", 2);
	ck_assert_int_le(rvt_wild_end(out), 0);
	ck_assert_int_le(rvt_wild_end(second), 0);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), REEVE_ESTALE);
	reeve_notif_release(t.p[0], &ev);
	reeve_close(second);
	reeve_close(out);
	out = rvt_wild_open(&s, "\1C", 2);
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_uint_eq(reeve_buf_data(ev.data)[0], 'C');
	reeve_notif_release(t.p[0], &ev);
	end();
}
END_TEST

/* The peer ends and opens anew before we have heard the end: its new substream waits for that. */
START_TEST(a_substream_that_comes_before_the_end_is_held)
{
	reeve_stream_t *fresh;
	reeve_notif_event_t ev;

	start(NULL);
	rvt_wild_marry(&t, &s, &out, &in);
	fresh = rvt_wild_open(&s, "\1N", 2);
	if (_i == 1) { /* two of them: neither */
		reeve_stream_t *more = rvt_wild_open(&s, "\1M", 2);

		ck_assert_int_le(rvt_wild_end(fresh), 0);
		ck_assert_int_le(rvt_wild_end(more), 0);
		reeve_close(more);
	}
	rvt_notes_quiet(&t, 0, 20);
	rvt_wild_write(out, "\1Z", 2);
	(void)reeve_shut(out);
	received("Z");
	closed(0, REEVE_BY_PEER);
	if (_i == 0) {
		rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
		ck_assert_uint_eq(reeve_buf_data(ev.data)[0], 'N');
		ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), 0);
		reeve_notif_release(t.p[0], &ev);
		reeve_close(in);
		in = rvt_wild_accept(&s, 5);
		rvt_wild_write(in, "\0", 1);
		rvt_notes_next(&t, 0, REEVE_NOTIF_OPENED, &ev);
		reeve_notif_release(t.p[0], &ev);
	} else {
		rvt_notes_quiet(&t, 0, 20);
	}
	reeve_close(fresh);
	end();
}
END_TEST

/* The verdict refers to a peer that has gone: it left the substream, or the whole connection. */
START_TEST(scenario_119_answers_that_are_stale)
{
	reeve_notif_event_t ev;
	uint64_t ticket;

	start(NULL);
	meet();
	out = rvt_wild_open(&s, "\1A", 2);
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ticket = ev.ticket;
	reeve_notif_release(t.p[0], &ev);
	switch (_i) {
	case 0:
		(void)reeve_shut(out);
		break;
	case 1:
		(void)reeve_reset(out, 0);
		break;
	default:
		reeve_conn_destroy(s.c);
		s.c = NULL;
		break;
	}
	/* It is noticed without anybody asking: the gauge of halves is not public, a new request comes through. */
	reeve_close(out);
	if (_i > 1) {
		RVT_UNTIL(rvt_net_stats(&t.net, 0).peers == 0);
		ck_assert_int_eq(rvt_stranger_dial(&s, t.net.node[1].rt, t.net.node[0].addr), 0);
	}
	out = rvt_wild_open(&s, "\1B", 2);
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_uint_eq(reeve_buf_data(ev.data)[0], 'B');
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ticket, _i & 1), REEVE_ESTALE);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], 0, 1), REEVE_ESTALE);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ticket + 1000, 1), REEVE_ESTALE);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), 0);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), REEVE_ESTALE);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 0), REEVE_ESTALE);
	reeve_notif_release(t.p[0], &ev);
	in = rvt_wild_accept(&s, 5);
	rvt_wild_write(in, "\0", 1);
	rvt_notes_next(&t, 0, REEVE_NOTIF_OPENED, &ev);
	reeve_notif_release(t.p[0], &ev);
	end();
}
END_TEST

/* What leaves us, byte for byte: the length and the message in front of each other, in order. */
START_TEST(what_the_peer_sees)
{
	reeve_sink_t *k;
	char big[303];

	start(NULL);
	rvt_wild_marry(&t, &s, &out, &in);
	k = reeve_notif_sink(t.p[0], s.id);
	ck_assert_int_eq(reeve_sink_try_send(k, NULL), 0);
	ck_assert_int_eq(reeve_sink_try_send(k, rvt_note(t.net.node[0].rt, 2, 65)), 0);
	ck_assert_int_eq(reeve_sink_try_send(k, rvt_note(t.net.node[0].rt, 300, 0)), 0);
	ck_assert_int_eq(reeve_notif_close(t.p[0], s.id, -1), 0);
	rvt_wild_read(in, "\0\2AA\xac\2", 6);
	for (unsigned i = 0; i < 300; i++)
		big[i] = (char)(i / 7);
	rvt_wild_read(in, big, 200);
	rvt_wild_read(in, big + 200, 100);
	ck_assert_int_eq(rvt_wild_end(in), 0); /* a clean end behind them */
	closed(0, REEVE_BY_US);
	reeve_sink_unref(k);
	end();
}
END_TEST

RVT_MAIN_TABLE("notif_wire", {&scenario_116_messages_without_bytes, 0},
    {&scenario_126_messages_in_pieces, 8}, {&wrong_lengths_end_the_stream_and_nothing_else, 3},
    {&wrong_handshakes_are_refused, 0}, {&either_substream_shows_the_end, 4},
    {&bytes_on_our_own_substream_are_ignored, 0}, {&a_peer_that_never_opens_its_own, 2},
    {&a_peer_that_opens_and_says_nothing, 0},
    {&a_second_substream_while_one_is_validated_closes_both, 0},
    {&a_substream_that_comes_before_the_end_is_held, 2}, {&scenario_119_answers_that_are_stale, 3},
    {&what_the_peer_sees, 0})
