/* test_connection_wire.c - one connection against a scripted peer: exact frames of a stream's life, both ways. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_raw r;

START_TEST(connection_begins_with_a_few_pings)
{
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	r.p.pings = RVT_PINGS_KEEP;
	ck_assert(rvt_peer_next(&r.p, &f));
	ck_assert_uint_eq(f.type, RVT_PING);
	ck_assert_uint_eq(f.flags, RVT_SYN);
	ck_assert_uint_eq(f.id, 0);
	rvt_peer_want_none(&r.p); /* one at a time */
	rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len);
	rvt_peer_settle(&r.p);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(open_without_write_sends_syn)
{
	static const int roles[] = {REEVE_DIALER, REEVE_LISTENER};
	reeve_stream_t *s[3];

	rvt_raw_open(&r, roles[_i], NULL);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(reeve_open(r.k, &s[i], 0), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 2 * i + 1 + (unsigned)_i, 0);
	}
	rvt_peer_want_none(&r.p);
	for (unsigned i = 0; i < 3; i++)
		reeve_close(s[i]);
	rvt_raw_fini(&r);
}
END_TEST

static reeve_op_t op_open, op_write;
static reeve_buf_t *buf;

static void
opened(reeve_op_t *op)
{
	reeve_write_async(op->stream, buf, &op_write);
}

START_TEST(write_in_the_completion_of_open_follows_the_syn)
{
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	buf = reeve_buf_alloc(r.rt, 100);
	for (unsigned i = 0; i < 100; i++)
		reeve_buf_mut(buf)[i] = rvt_byte(1, i);
	reeve_op_init(&op_open, opened, NULL);
	reeve_op_init(&op_write, NULL, NULL);
	reeve_open_async(r.k, &op_open);
	ck_assert(rvt_peer_next(&r.p, &f));
	ck_assert_uint_eq(f.flags, RVT_SYN); /* alone or with the bytes */
	ck_assert_uint_eq(f.id, 1);
	if (f.type == RVT_WU)
		rvt_peer_want_data(&r.p, 0, 1, 100, 0);
	else
		ck_assert_uint_eq(f.len, 100);
	ck_assert_int_eq(reeve_op_wait(&op_write), 100);
	rvt_peer_want_none(&r.p);
	reeve_stream_unref(op_open.stream);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(syn_that_has_not_left_rides_on_the_bytes)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 4u << 20};
	reeve_stream_t *s[3];
	struct rvt_frame f;
	uint64_t left = c.n;

	c.p = calloc(1, c.n);
	rvt_raw_open(&r, REEVE_DIALER, NULL);
	c.s = rvt_raw_outbound(&r);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 16u << 20);
	rvt_call_start(&c);
	rvt_raw_stalled(&r);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_open(r.k, &s[i], -1), 0);
	rvt_want_write(s[0], 10, 0); /* 3: bytes */
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	reeve_close(s[1]);        /* 5: nothing but its end */
	reeve_stream_unref(s[2]); /* 7: the peer never hears of it */
	ck_assert(rvt_peer_next_but(&r.p, &f, 1, &left));
	ck_assert(f.type == RVT_WU && f.flags == (RVT_SYN | RVT_FIN) && f.id == 5 && f.len == 0);
	ck_assert(rvt_peer_next_but(&r.p, &f, 1, &left));
	ck_assert(f.type == RVT_DATA && f.flags == RVT_SYN && f.id == 3 && f.len == 10);
	ck_assert(rvt_peer_next_but(&r.p, &f, 1, &left));
	ck_assert(f.type == RVT_WU && f.flags == RVT_FIN && f.id == 3);
	ck_assert(!rvt_peer_next_but(&r.p, &f, 1, &left));
	(void)rvt_call_end(&c);
	reeve_close(s[0]);
	reeve_close(c.s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

START_TEST(writing_does_not_wait_for_the_ack)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	ck_assert_int_eq(reeve_open(r.k, &s, -1), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 1, 0);
	rvt_want_write(s, 1000, 0);
	(void)rvt_peer_want_bytes(&r.p, 1, 1000, 0);
	rvt_peer_data(&r.p, RVT_ACK, 1, 10, 0);
	rvt_want_read(s, 10, 0);
	rvt_peer_want_none(&r.p);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(accept_acknowledges_once)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 1, 0);
	rvt_peer_want_none(&r.p); /* nobody has accepted it */
	ck_assert_int_eq(reeve_accept(r.k, &s, 0), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 1, 0);
	rvt_want_write(s, 10, 0);
	rvt_peer_want_data(&r.p, 0, 1, 10, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(lazy_ack_rides_on_the_first_frame)
{
	reeve_stream_t *s;
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.flags = REEVE_CFG_LAZY_ACK;
	rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	rvt_peer_data(&r.p, RVT_SYN, 1, 10, 0);
	ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
	rvt_peer_want_none(&r.p);
	rvt_want_write(s, 10, 0);
	rvt_peer_want_data(&r.p, RVT_ACK, 1, 10, 0);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(echo_is_exact)
{
	static const uint32_t sizes[] = {1, 2, 11, 12, 13, 1000, 2047, 2048, 16384, 65537, 200000};
	uint64_t pos = 0;
	reeve_stream_t *s;

	rvt_raw_open(&r, _i ? REEVE_LISTENER : REEVE_DIALER, NULL);
	s = _i ? rvt_raw_inbound(&r, 1) : rvt_raw_outbound(&r);
	for (unsigned i = 0; i < 9; i++) { /* below the first credit update */
		rvt_peer_data(&r.p, 0, 1, sizes[i], pos);
		rvt_want_read(s, sizes[i], pos);
		rvt_want_write(s, sizes[i], pos);
		ck_assert_uint_eq(rvt_peer_want_bytes(&r.p, 1, sizes[i], pos), 0);
		pos += sizes[i];
	}
	rvt_peer_want_none(&r.p);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(frames_in_any_pieces_are_understood)
{
	struct rvt_bytes b = {0};
	reeve_stream_t *s;
	size_t step = (size_t[]){1, 7, 11, 12, 13}[_i], n;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_put_data(&b, RVT_SYN, 1, 30, 0);
	rvt_put(&b, RVT_WU, 0, 1, 1);
	rvt_put_data(&b, 0, 1, 100, 30);
	rvt_put_data(&b, RVT_FIN, 1, 0, 130);
	for (; b.at < b.n; b.at += n) {
		n = b.n - b.at < step ? b.n - b.at : step;
		memcpy(rvt_bytes_more(&r.p.out, n), b.p + b.at, n);
		rvt_peer_send(&r.p);
	}
	ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
	rvt_want_read(s, 130, 0);
	rvt_want_rc(s, 0);
	rvt_want_rc(s, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 1, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_bytes_fini(&b);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(half_close_then_reply)
{
	uint8_t byte = 0;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	s = rvt_raw_outbound(&r);
	rvt_want_write(s, 100, 0);
	ck_assert_int_eq(reeve_shut(s), 0);
	rvt_peer_want_data(&r.p, 0, 1, 100, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(reeve_shut(s), 0);
	ck_assert_int_eq(reeve_write(s, &byte, 1), REEVE_ESHUT);
	ck_assert_int_eq(reeve_write(s, &byte, 0), REEVE_ESHUT);
	rvt_peer_data(&r.p, 0, 1, 1000, 0);
	rvt_want_read(s, 1000, 0);
	rvt_peer_data(&r.p, RVT_FIN, 1, 5, 1000);
	rvt_want_read(s, 5, 1000);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_peer_want_none(&r.p); /* one FIN, no RST */
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(peer_half_closes_and_we_go_on)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_put(&r.p, _i ? RVT_WU : RVT_DATA, RVT_FIN, 1, 0);
	rvt_want_rc(s, 0);
	rvt_want_write(s, 300000, 0);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 100000);
	(void)rvt_peer_want_bytes(&r.p, 1, 300000 - 262144, 262144);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(bytes_and_fin_in_one_segment_are_read_in_order)
{
	reeve_stream_t *s;
	uint32_t seed = 12345, id, n;

	printf("seed %u\n", seed);
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (unsigned i = 0; i < 300; i++) {
		seed = seed * 1664525 + 1013904223;
		id = 2 * i + 1;
		n = 1 + (seed >> 16) % 65535;
		rvt_put_data(&r.p.out, RVT_SYN | (i % 2 ? RVT_FIN : 0), id, n, 0);
		if (i % 2 == 0)
			rvt_put(&r.p.out, RVT_WU, RVT_FIN, id, 0);
		rvt_peer_send(&r.p);
		ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
		rvt_want_read(s, n, 0);
		rvt_want_rc(s, 0);
		rvt_want_rc(s, 0);
		reeve_close(s);
	}
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(reader_asleep_is_woken_by_fin)
{
	struct rvt_call c = {.kind = RVT_CALL_READ};
	uint8_t p[10];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 300; i++) {
		c.s = rvt_raw_inbound(&r, 2 * i + 1);
		c.p = p;
		c.n = sizeof(p);
		rvt_call_start(&c);
		if (i % 2)
			rvt_call_asleep(&c);
		rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 2 * i + 1, 0);
		ck_assert_int_eq(rvt_call_end(&c), 0);
		reeve_close(c.s);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 2 * i + 1, 0);
	}
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(credit_returns_when_bytes_are_read)
{
	reeve_stream_t *s;
	uint64_t granted = 262144, sent = 0, read = 0, total = 10u << 20;
	uint32_t n;
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	while (read < total) {
		while (sent < granted && sent < total) {
			n = (uint32_t)(granted - sent < 50000 ? granted - sent : 50000);
			n = total - sent < n ? (uint32_t)(total - sent) : n;
			rvt_peer_data(&r.p, 0, 1, n, sent);
			sent += n;
		}
		rvt_want_read(s, sent - read, read);
		read = sent;
		if (read == total)
			break;
		ck_assert(rvt_peer_next(&r.p, &f));
		ck_assert(f.type == RVT_WU && f.flags == 0 && f.id == 1);
		granted += f.len;
		ck_assert_uint_le(granted, read + (16u << 20));
	}
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(no_credit_means_no_bytes)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 1u << 20};
	uint8_t *p = malloc(c.n);
	uint64_t at = 262144;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	c.s = rvt_raw_outbound(&r);
	for (size_t i = 0; i < c.n; i++)
		p[i] = rvt_byte(1, i);
	c.p = p;
	rvt_call_start(&c);
	(void)rvt_peer_want_bytes(&r.p, 1, at, 0);
	rvt_peer_want_none(&r.p);
	rvt_call_asleep(&c);
	ck_assert(!rvt_call_done(&c));
	for (uint32_t step = 1; at < c.n; step = 1000 + step * 2) {
		rvt_peer_put(&r.p, RVT_WU, 0, 1, step);
		if (step > c.n - at)
			step = (uint32_t)(c.n - at);
		(void)rvt_peer_want_bytes(&r.p, 1, step, at);
		at += step;
		rvt_peer_want_none(&r.p);
	}
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	reeve_close(c.s);
	rvt_raw_fini(&r);
	free(p);
}
END_TEST

RVT_MAIN_TABLE("connection_wire", {&connection_begins_with_a_few_pings, 0},
    {&open_without_write_sends_syn, 2}, {&write_in_the_completion_of_open_follows_the_syn, 0},
    {&syn_that_has_not_left_rides_on_the_bytes, 0}, {&writing_does_not_wait_for_the_ack, 0},
    {&accept_acknowledges_once, 0}, {&lazy_ack_rides_on_the_first_frame, 0}, {&echo_is_exact, 2},
    {&frames_in_any_pieces_are_understood, 5}, {&half_close_then_reply, 0},
    {&peer_half_closes_and_we_go_on, 2}, {&bytes_and_fin_in_one_segment_are_read_in_order, 0},
    {&reader_asleep_is_woken_by_fin, 0}, {&credit_returns_when_bytes_are_read, 0},
    {&no_credit_means_no_bytes, 0})
