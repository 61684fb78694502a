/* test_connection_matrix.c - what a whole connection does with every kind of wrong, late or odd frame. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <string.h>

static struct rvt_raw r;

/* --- violations: GO_AWAY(1), the end, and everybody is told */

struct bad {
	int role; /* 0: listener */
	unsigned version, type, flags;
	uint32_t id, len;
};

/* Stream 1 exists. */
static const struct bad bad[] = {
    {0, 1, RVT_DATA, 0, 1, 0},
    {0, 255, RVT_PING, RVT_SYN, 0, 0},
    {0, 0, 4, 0, 0, 0},
    {0, 0, 255, RVT_SYN, 3, 0},
    {0, 0, RVT_WU, RVT_SYN, 2, 0}, /* our own parity */
    {0, 0, RVT_DATA, RVT_SYN, 4, 10},
    {REEVE_DIALER, 0, RVT_WU, RVT_SYN, 3, 0},
    {REEVE_DIALER, 0, RVT_DATA, RVT_SYN, 5, 10},
    {0, 0, RVT_WU, RVT_SYN, 0, 0}, /* id 0 */
    {0, 0, RVT_DATA, RVT_SYN, 0, 0},
    {REEVE_DIALER, 0, RVT_WU, RVT_SYN, 0, 0},
    {0, 0, RVT_WU, 0, 0, 1},
    {0, 0, RVT_DATA, 0, 0, 10},
    {0, 0, RVT_DATA, RVT_FIN, 0, 0},
    {0, 0, RVT_WU, RVT_RST, 0, 0},
    {0, 0, RVT_WU, RVT_SYN, 1, 0}, /* once more */
    {0, 0, RVT_DATA, RVT_SYN, 1, 10},
    {0, 0, RVT_DATA, 0, 1, 262144 - 5 + 1}, /* more than the credit, only the header was sent */
    {REEVE_DIALER, 0, RVT_DATA, 0, 1, 262144 - 5 + 1},
    {0, 0, RVT_DATA, 0, 1, UINT32_MAX},
    {0, 0, RVT_DATA, RVT_SYN, 3, 262145},
    {0, 0, RVT_DATA, RVT_SYN, 3, UINT32_MAX},
    {0, 0, RVT_WU, 0, 1, UINT32_MAX - 262144 + 1},
    {REEVE_DIALER, 0, RVT_WU, 0, 1, UINT32_MAX},
    {0, 0, RVT_WU, RVT_SYN, 3, UINT32_MAX - 262144 + 1},
};
#define NBAD ((int)(sizeof(bad) / sizeof(bad[0])))

START_TEST(violation_ends_the_connection)
{
	const struct bad *b = &bad[_i];
	bool dialer = b->role == REEVE_DIALER;
	struct rvt_call reader = {.kind = RVT_CALL_READ}, acceptor = {.kind = RVT_CALL_ACCEPT};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s, *quiet;
	uint8_t p[100];

	rvt_raw_open(&r, dialer ? REEVE_DIALER : REEVE_LISTENER, NULL);
	s = dialer ? rvt_raw_outbound(&r) : rvt_raw_inbound(&r, 1);
	quiet = dialer ? rvt_raw_inbound(&r, 2) : rvt_raw_outbound(&r);
	reader.s = quiet;
	reader.p = p;
	reader.n = sizeof(p);
	acceptor.k = r.k;
	acceptor.timeout_ms = -1;
	rvt_call_start(&reader);
	rvt_call_start(&acceptor);
	rvt_call_asleep(&reader);
	rvt_call_asleep(&acceptor);
	rvt_put_data(&r.p.out, 0, 1, 5, 0);
	rvt_put_raw(&r.p.out, b->version << 8 | b->type, b->flags, b->id, b->len);
	rvt_peer_send(&r.p);
	rvt_peer_want_goaway_end(&r.p, 1);
	ck_assert_int_eq(rvt_call_end(&reader), REEVE_EPROTO);
	ck_assert_int_eq(rvt_call_end(&acceptor), REEVE_EPROTO);
	rvt_want_read(s, 5, 0); /* came before the violation */
	rvt_want_rc(s, REEVE_EPROTO);
	ck_assert_int_eq(reeve_write(s, p, 1), REEVE_EPROTO);
	ck_assert_int_eq(reeve_write(quiet, p, 1), REEVE_EPROTO);
	rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_int_eq(strncmp(why.id, "REEVE-YAMUX-", 12), 0);
	ck_assert_int_eq(reeve_stream_reason(s, &why), 0);
	ck_assert_int_eq(why.rc, REEVE_EPROTO);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	ck_assert_int_eq(reeve_conn_close(r.c, 1000), REEVE_EPROTO);
	reeve_close(s);
	reeve_stream_unref(quiet);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(violation_in_the_first_bytes_ends_the_connection)
{
	if (_i)
		rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
	else
		rvt_raw_open(&r, REEVE_LISTENER, NULL);
	memcpy(rvt_bytes_more(&r.p.out, 16), "GET / HTTP/1.1\r\n", 16);
	rvt_peer_send(&r.p);
	rvt_peer_want_goaway_end(&r.p, 1);
	rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
	rvt_raw_fini(&r);
}
END_TEST

/* --- odd, late, and no harm done */

/* The connection carries on: a new stream works. */
static void
alive(uint32_t id)
{
	reeve_stream_t *s;

	rvt_peer_want_none(&r.p);
	s = rvt_raw_inbound(&r, id);
	rvt_peer_data(&r.p, RVT_FIN, id, 100, 0);
	rvt_want_read(s, 100, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, id, 0);
	rvt_peer_want_none(&r.p);
}

START_TEST(unknown_flags_are_ignored)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_put_data(&r.p.out, 0xfff0, 1, 10, 0);
	rvt_put(&r.p.out, RVT_WU, 0xfff0, 1, 10);
	rvt_put(&r.p.out, RVT_PING, 0xfff0, 0, 10);
	rvt_peer_send(&r.p);
	rvt_want_read(s, 10, 0);
	alive(3);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(frames_of_unknown_streams_are_drained)
{
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t id = 1; id < 100; id++) {
		rvt_put_data(&r.p.out, id % 2 ? RVT_FIN : 0, id, 1000 * id, 0);
		rvt_put(&r.p.out, RVT_WU, 0, id, UINT32_MAX);
		rvt_put(&r.p.out, RVT_WU, RVT_FIN, id, 0);
		rvt_put(&r.p.out, RVT_WU, RVT_RST, id, 7);
		rvt_put(&r.p.out, RVT_DATA, RVT_ACK, id, 0);
	}
	rvt_put_data(&r.p.out, 0, 1, 3u << 20, 0); /* larger than any window */
	rvt_peer_send(&r.p);
	alive(101);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(pings_are_answered_as_they_should)
{
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_KEEP;
	rvt_put(&r.p.out, RVT_PING, RVT_SYN, 0, 77);
	rvt_put(&r.p.out, RVT_PING, RVT_SYN, 9, 78);           /* an id: answered without */
	rvt_put(&r.p.out, RVT_PING, 0, 0, 79);                 /* no flags: nothing */
	rvt_put(&r.p.out, RVT_PING, RVT_SYN | RVT_ACK, 0, 80); /* a request */
	rvt_put(&r.p.out, RVT_PING, RVT_ACK, 0, 81);           /* nobody asked */
	rvt_put(&r.p.out, RVT_PING, RVT_ACK, 5, 0);
	rvt_peer_send(&r.p);
	rvt_peer_want(&r.p, RVT_PING, RVT_ACK, 0, 77);
	rvt_peer_want(&r.p, RVT_PING, RVT_ACK, 0, 78);
	rvt_peer_want(&r.p, RVT_PING, RVT_ACK, 0, 80);
	alive(1);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(second_fin_and_bytes_behind_it_are_ignored)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_put_data(&r.p.out, RVT_FIN, 1, 10, 0);
	rvt_put(&r.p.out, RVT_WU, RVT_FIN, 1, 0);
	rvt_put_data(&r.p.out, 0, 1, 10, 10);
	rvt_put_data(&r.p.out, RVT_FIN, 1, 10, 20);
	rvt_peer_send(&r.p);
	rvt_want_read(s, 10, 0);
	rvt_want_rc(s, 0);
	alive(3);
	rvt_want_rc(s, 0);
	rvt_want_write(s, 10, 0); /* our direction is open */
	rvt_peer_want_data(&r.p, 0, 1, 10, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_data(&r.p, RVT_FIN, 1, 10, 30); /* after the end of both */
	alive(5);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(reset_lets_what_came_before_be_read)
{
	reeve_reason_t why = {.size = sizeof(why)};
	uint8_t byte = 0;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_put_data(&r.p.out, 0, 1, 100000, 0);
	if (_i)
		rvt_put(&r.p.out, RVT_WU, RVT_RST, 1, 42);
	else
		rvt_put_data(&r.p.out, RVT_RST, 1, 10, 100000); /* its bytes are not the stream's */
	rvt_put_data(&r.p.out, 0, 1, 10, 100000);               /* late */
	rvt_put(&r.p.out, RVT_WU, 0, 1, 10);
	rvt_peer_send(&r.p);
	rvt_want_read(s, 100000, 0);
	rvt_want_rc(s, REEVE_ERESET);
	rvt_want_rc(s, REEVE_ERESET);
	ck_assert_int_eq(reeve_write(s, &byte, 1), REEVE_ERESET);
	ck_assert_int_eq(reeve_stream_reason(s, &why), 0);
	ck_assert_int_eq(why.rc, REEVE_ERESET);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	ck_assert_uint_eq(why.wire_code, _i ? 42 : 0);
	ck_assert_str_eq(why.id, "REEVE-STREAM-0001");
	alive(3);
	reeve_close(s);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(reset_as_the_first_answer_is_a_refusal)
{
	reeve_reason_t why = {.size = sizeof(why)};
	uint8_t byte = 0;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	ck_assert_int_eq(reeve_open(r.k, &s, -1), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 1, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_want_rc(s, REEVE_EREFUSED);
	ck_assert_int_eq(reeve_write(s, &byte, 1), REEVE_EREFUSED);
	ck_assert_int_eq(reeve_stream_reason(s, &why), 0);
	ck_assert_int_eq(why.rc, REEVE_EREFUSED);
	ck_assert_str_eq(why.id, "REEVE-STREAM-0002");
	reeve_close(s);
	alive(2);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(syn_with_rst_is_no_stream)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_put(&r.p.out, RVT_WU, RVT_SYN | RVT_RST, 1, 0);
	rvt_put_data(&r.p.out, RVT_SYN | RVT_RST, 3, 100, 0);
	rvt_peer_send(&r.p);
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_accept(r.k, &s, 0), REEVE_ETIMEDOUT);
	alive(5);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(syn_with_fin_is_a_stream)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	if (_i)
		rvt_peer_data(&r.p, RVT_SYN | RVT_FIN, 1, 1000, 0);
	else
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN | RVT_FIN, 1, 0);
	ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
	rvt_want_read(s, _i ? 1000 : 0, 0);
	rvt_want_rc(s, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 1, 0);
	rvt_want_write(s, 10, 0);
	rvt_peer_want_data(&r.p, 0, 1, 10, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	alive(3);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(credit_on_fin_and_zero_credit_count)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 1, 1000);
	ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 1, 0);
	for (int i = 0; i < 100; i++)
		rvt_put(&r.p.out, RVT_WU, 0, 1, 0);
	rvt_put(&r.p.out, RVT_WU, RVT_FIN, 1, 500);
	rvt_peer_send(&r.p);
	rvt_want_rc(s, 0);
	rvt_want_write(s, 300000, 0);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144 + 1500, 0);
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_reset(s, 9), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 9);
	reeve_stream_unref(s);
	alive(3);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("connection_matrix", {&violation_ends_the_connection, NBAD},
    {&violation_in_the_first_bytes_ends_the_connection, 2}, {&unknown_flags_are_ignored, 0},
    {&frames_of_unknown_streams_are_drained, 0}, {&pings_are_answered_as_they_should, 0},
    {&second_fin_and_bytes_behind_it_are_ignored, 0}, {&reset_lets_what_came_before_be_read, 2},
    {&reset_as_the_first_answer_is_a_refusal, 0}, {&syn_with_rst_is_no_stream, 0},
    {&syn_with_fin_is_a_stream, 2}, {&credit_on_fin_and_zero_credit_count, 0})
