/* test_noise_wire.c - one connection of ours against a peer that speaks Noise by hand: what it may send and what it may
 * not, to the byte. */
#include <config.h>

#include <string.h>
#include <sys/socket.h>

#include "tests/kit/noise_peer.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

/* --- what may be sent */

/* Everything in one run behind the peer's second message, in pieces: the last message of noise, the muxer, a stream. */
START_TEST(steps_may_come_together_or_byte_by_byte)
{
	static const size_t pieces[] = {SIZE_MAX, 1, 7, 171, 1000};
	reeve_stream_t *s;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial_noise();
	rvt_np_seal(STR(HELLO YAMUX));
	rvt_np_stream(1, 20000);
	rvt_np_flush(pieces[_i]);
	s = rvt_np_accepted();
	rvt_want_read(s, 20000, 0);
	rvt_np_want_plain(STR(HELLO YAMUX));
	reeve_close(s);
	rvt_np_finish();
}
END_TEST

START_TEST(we_dial_and_follow_the_order)
{
	reeve_stream_t *s;
	char id[80];

	rvt_np_begin(REEVE_DIALER, NULL);
	rvt_np_want(STR(HELLO NOISE));
	rvt_np_put(STR(HELLO NOISE));
	rvt_np_flush(_i ? 1 : SIZE_MAX);
	rvt_np_noise_in(34);
	rvt_np_noise_out();
	rvt_np_flush(_i ? 1 : SIZE_MAX);
	rvt_np_noise_in(170);
	rvt_np_filter();
	rvt_np_want_plain(STR(HELLO YAMUX));
	rvt_np_seal(STR(HELLO));
	rvt_np_seal(STR(YAMUX));
	rvt_np_stream(2, 100);
	rvt_np_flush(_i ? 1 : SIZE_MAX);
	s = rvt_np_accepted();
	rvt_want_read(s, 100, 0);
	ck_assert_int_eq(reeve_peer_id(rvt_np.k, id, sizeof(id)), 52);
	reeve_close(s);
	rvt_np_finish();
}
END_TEST

/* A frame may be in any number of messages, and a message may hold none or half of one. */
START_TEST(messages_and_frames_have_nothing_to_do_with_each_other)
{
	struct rvt_bytes b = {0};
	reeve_stream_t *s;
	size_t k;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_put_data(&b, RVT_SYN, 1, 9000, 0);
	rvt_put_data(&b, RVT_FIN, 1, 50, 9000);
	for (size_t at = 0; at < b.n; at += k) {
		k = b.n - at < 1 + at / 2 ? b.n - at : 1 + at / 2;
		rvt_np_seal(b.p + at, k);
	}
	rvt_np_flush(_i ? 1 : SIZE_MAX);
	s = rvt_np_accepted();
	rvt_want_read(s, 9050, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_bytes_fini(&b);
	rvt_np_finish();
}
END_TEST

/* --- what may not */

START_TEST(a_message_that_was_changed_ends_the_connection)
{
	reeve_stream_t *s;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_np_stream(1, 3000); /* before it */
	rvt_np_stream(3, 3000);
	rvt_np.out.p[3030 + 100 * (unsigned)_i + 4] ^= 1;
	rvt_np_flush(SIZE_MAX);
	s = rvt_np_accepted();
	rvt_want_read(s, 3000, 0);
	rvt_want_rc(s, REEVE_EPROTO);
	rvt_np_want_reason(REEVE_EPROTO, REEVE_BY_PEER, "REEVE-NOISE-0002");
	reeve_close(s);
	rvt_np_finish();
}
END_TEST

START_TEST(a_message_that_is_repeated_ends_the_connection)
{
	uint8_t copy[200];
	size_t n;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_np_stream(1, 100);
	n = rvt_np.out.n;
	memcpy(copy, rvt_np.out.p, n);
	rvt_np_put(copy, n);
	rvt_np_flush(SIZE_MAX);
	rvt_np_want_reason(REEVE_EPROTO, REEVE_BY_PEER, "REEVE-NOISE-0002");
	rvt_np_finish();
}
END_TEST

START_TEST(lengths_that_hold_no_tag_end_the_connection)
{
	uint8_t head[2] = {0, (uint8_t)_i};

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_np_put(head, 2);
	rvt_np_flush(SIZE_MAX);
	rvt_np_want_reason(REEVE_EPROTO, REEVE_BY_PEER, "REEVE-NOISE-0001");
	rvt_np_finish();
}
END_TEST

/* The end within a message, wherever: what was whole before it is read. */
START_TEST(the_end_within_a_message_is_told)
{
	static const size_t cut[] = {1, 2, 3, 1000, 3012, 3013, 3029};
	reeve_stream_t *s;
	size_t n;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_np_stream(1, 3000);
	n = rvt_np.out.n;
	rvt_np_stream(3, 3000);
	rvt_np.out.n = n + cut[_i];
	rvt_np_flush(SIZE_MAX);
	ck_assert_int_eq(shutdown(rvt_np.fd, SHUT_WR), 0);
	s = rvt_np_accepted();
	rvt_want_read(s, 3000, 0);
	rvt_want_rc(s, REEVE_ETRUNC);
	rvt_np_want_reason(REEVE_ETRUNC, REEVE_BY_TRANSPORT, "REEVE-CONN-0006");
	reeve_close(s);
	rvt_np_finish();
}
END_TEST

START_TEST(the_end_between_messages_is_an_end)
{
	reeve_stream_t *s;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_np_stream(1, 3000);
	rvt_np_flush(SIZE_MAX);
	ck_assert_int_eq(shutdown(rvt_np.fd, SHUT_WR), 0);
	s = rvt_np_accepted();
	rvt_want_read(s, 3000, 0);
	rvt_want_rc(s, REEVE_EEND);
	reeve_close(s);
	rvt_np_finish();
}
END_TEST

/* What breaks the protocol inside is answered inside: the GO_AWAY is sealed. */
START_TEST(last_words_are_sealed_too)
{
	struct rvt_bytes b = {0};
	struct rvt_frame f;

	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial();
	rvt_put_raw(&b, 0x0107, 0, 0, 0);
	rvt_np_seal(b.p, b.n);
	rvt_np_flush(SIZE_MAX);
	while (rvt_np_more())
		continue;
	rvt_np_open_in();
	do
		ck_assert(rvt_next(&rvt_np.plain, &f));
	while (f.type == RVT_PING);
	ck_assert_uint_eq(f.type, RVT_GOAWAY);
	ck_assert_uint_eq(f.len, 1);
	rvt_bytes_fini(&b);
	rvt_np_finish();
}
END_TEST

/* In the handshake: the identity step says what was wrong, nothing is answered. */
START_TEST(a_handshake_that_was_changed_is_refused)
{
	rvt_np_begin(REEVE_LISTENER, NULL);
	if (_i == 0) { /* a length that cannot be */
		rvt_np_put(STR(HELLO NOISE "\xff\xff"));
	} else if (_i == 1) { /* the wrong payload in the third message */
		rvt_np_dial_noise();
		rvt_np.out.p[100] ^= 1;
	} else { /* the end instead of it */
		rvt_np_dial_noise();
		rvt_np.out.n = 50;
	}
	rvt_np_flush(SIZE_MAX);
	ck_assert_int_eq(shutdown(rvt_np.fd, SHUT_WR), 0);
	rvt_np_want_reason(
	    _i == 2 ? REEVE_ETRUNC : REEVE_EPROTO, REEVE_BY_PEER, "REEVE-UP-IDENTITY");
	rvt_np_finish();
}
END_TEST

START_TEST(somebody_else_than_expected_is_refused)
{
	rvt_np_begin(REEVE_LISTENER, "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq");
	rvt_np_dial_noise();
	rvt_np_seal(STR(HELLO YAMUX));
	rvt_np_flush(SIZE_MAX);
	rvt_np_want_reason(REEVE_EIDENTITY, REEVE_BY_PEER, "REEVE-UP-IDENTITY");
	while (rvt_np_more())
		continue;
	ck_assert_uint_eq(rvt_np.in.n - rvt_np.in.at, 0);
	rvt_np_finish();
}
END_TEST

/* Plain bytes where sealed ones are due. */
START_TEST(a_peer_that_forgets_to_seal_is_refused)
{
	rvt_np_begin(REEVE_LISTENER, NULL);
	rvt_np_dial_noise();
	rvt_np_put(STR(HELLO YAMUX "0123456789012345678901234567890123456789"));
	for (int i = 0; i < 100; i++)
		rvt_np_put(STR("0123456789012345678901234567890123456789012345678901234567890123"));
	rvt_np_flush(SIZE_MAX);
	rvt_np_want_reason(REEVE_EPROTO, REEVE_BY_PEER, "REEVE-NOISE-0002");
	rvt_np_finish();
}
END_TEST

RVT_MAIN_TABLE("noise_wire", {&steps_may_come_together_or_byte_by_byte, 5},
    {&we_dial_and_follow_the_order, 2},
    {&messages_and_frames_have_nothing_to_do_with_each_other, 2},
    {&a_message_that_was_changed_ends_the_connection, 30},
    {&a_message_that_is_repeated_ends_the_connection, 0},
    {&lengths_that_hold_no_tag_end_the_connection, 16}, {&the_end_within_a_message_is_told, 7},
    {&the_end_between_messages_is_an_end, 0}, {&last_words_are_sealed_too, 0},
    {&a_handshake_that_was_changed_is_refused, 3}, {&somebody_else_than_expected_is_refused, 0},
    {&a_peer_that_forgets_to_seal_is_refused, 0})
