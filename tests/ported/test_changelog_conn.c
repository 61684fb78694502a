/* test_changelog_conn.c - the changelog of the Rust crate (yamux 0.12 to 0.14) row by row: what a whole connection does
 * to a peer that sends frames by hand. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/socket.h>

static struct rvt_raw r;

/* Blocks taken from the allocator since the runtime began. */
static uint64_t
blocks(void)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_rt_stats(r.rt, &st), 0);
	return st.blocks_allocated;
}

/* --- 0.13.2: what is owed to a peer that does not read is bounded, and we go on reading */

#define PINGS 200000u

START_TEST(v0_13_2_what_is_owed_to_a_peer_that_never_reads_is_bounded)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 4u << 20};
	uint64_t before, taken, deadline;
	reeve_stream_t *s, *t;
	uint32_t id = 3, at = 0;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_settle(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 16u << 20);
	c.s = s;
	c.p = calloc(1, c.n);
	rvt_call_start(&c);
	rvt_raw_stalled(&r);
	r.p.end = true; /* reads nothing from here */
	before = rvt_rss();
	taken = blocks();
	for (uint32_t i = 0; i < PINGS; i++) {
		rvt_put(&r.p.out, RVT_PING, RVT_SYN, 0, i);
		if (i % 1000 != 999)
			continue;
		for (unsigned j = 0; j < 6; j++, id += 2) /* 256 wait, 944 are refused */
			rvt_put(&r.p.out, RVT_WU, RVT_SYN, id, 0);
		rvt_put_data(&r.p.out, 0, 1, 1000, at);
		rvt_peer_send(&r.p);
		rvt_want_read(s, 1000, at); /* we go on reading */
		at += 1000;
	}
	deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	while (rvt_stats(r.k).pings_in + rvt_stats(r.k).pongs_dropped < PINGS)
		ck_assert_uint_lt(rvt_now_ms(), deadline);
	ck_assert_uint_le(rvt_stats(r.k).pings_in, 32 + 10); /* owed, and its beginning */
	ck_assert_uint_eq(rvt_stats(r.k).streams_refused, 1200 - 256);
	ck_assert_uint_le(blocks(), taken + 1000); /* a stream each for 256, and what is read */
	ck_assert_uint_le(rvt_rss(), before + (16u << 20));
	for (unsigned j = 0; j < 100; j++, id += 2) /* more than it is willing to owe */
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, id, 0);
	(void)rvt_peer_try_send(&r.p);
	(void)rvt_call_end(&c);
	for (unsigned j = 0; j < 256; j++) { /* those that wait are not lost */
		ck_assert_int_eq(reeve_accept(r.k, &t, -1), 0);
		ck_assert_uint_eq(reeve_stream_id(t), 2 * j + 3);
		rvt_want_rc(t, REEVE_ELIMIT);
		reeve_close(t);
	}
	rvt_raw_want_reason(&r, REEVE_ELIMIT, REEVE_BY_PEER);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

/* --- 0.13.3: a reader is woken by the end of the peer's direction */

/* _i: FIN on DATA with bytes, on DATA without, on WINDOW_UPDATE, on WINDOW_UPDATE with credit, with ACK. */
START_TEST(v0_13_3_reader_is_woken_at_the_end_of_receive)
{
	struct rvt_call c = {.kind = RVT_CALL_READ};
	reeve_stream_t *s;
	uint8_t p[10];

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	if (_i == 4) { /* not acknowledged yet: FIN is the first answer */
		ck_assert_int_eq(reeve_open(r.k, &s, -1), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 1, 0);
	} else {
		s = rvt_raw_outbound(&r);
	}
	c.s = s;
	c.p = p;
	c.n = sizeof(p);
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	switch (_i) {
	case 0:
		rvt_peer_data(&r.p, RVT_FIN, 1, 4, 0);
		ck_assert_int_eq(rvt_call_end(&c), 4);
		rvt_call_start(&c);
		break;
	case 1:
		rvt_peer_data(&r.p, RVT_FIN, 1, 0, 0);
		break;
	default:
		rvt_peer_put(
		    &r.p, RVT_WU, _i == 4 ? RVT_FIN | RVT_ACK : RVT_FIN, 1, _i == 3 ? 1000 : 0);
		break;
	}
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_want_rc(s, 0);
	rvt_want_write(s, 100, 0); /* our direction goes on */
	rvt_peer_want_data(&r.p, 0, 1, 100, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 0.13.4: what is pending reaches the wire on close, then GO_AWAY(0) */

#define BIG (1u << 20)

static reeve_buf_t *
bytes_of(uint32_t id)
{
	reeve_buf_t *b = reeve_buf_alloc(r.rt, BIG);
	uint8_t *p = reeve_buf_mut(b);

	for (uint32_t i = 0; i < BIG; i++)
		p[i] = rvt_byte(id, i);
	return b;
}

/* Two streams of a MiB, pongs and the FINs, in any order.  Both streams are ended by the peer with theirs. */
static void
read_all_but_the_end(unsigned pongs)
{
	uint64_t got[2] = {0};
	struct rvt_frame f;
	unsigned fins = 0, i;

	while (fins < 2 || pongs > 0) {
		ck_assert(rvt_peer_next(&r.p, &f));
		if (f.type == RVT_PING && f.flags == RVT_ACK) {
			pongs--;
			continue;
		}
		i = f.id / 2;
		ck_assert_uint_lt(i, 2);
		if (f.type == RVT_DATA) {
			for (uint32_t k = 0; k < f.len; k++)
				if (f.body[k] != rvt_byte(f.id, got[i] + k))
					ck_abort_msg("stream %u is wrong", f.id);
			got[i] += f.len;
			continue;
		}
		ck_assert_uint_eq(f.type, RVT_WU);
		ck_assert_uint_eq(f.flags, RVT_FIN);
		ck_assert_uint_eq(got[i], BIG);
		fins++;
		rvt_peer_put(&r.p, RVT_WU, RVT_FIN, f.id, 0);
	}
}

/* _i: 0 the peer reads all the time, 1 it reads nothing until the close waits for it. */
START_TEST(v0_13_4_pending_frames_reach_the_wire_on_close)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};
	reeve_stream_t *s[2];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 2; i++)
		s[i] = rvt_raw_inbound(&r, 2 * i + 1);
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_KEEP;
	r.p.end = _i == 1;
	for (uint32_t i = 0; i < 2; i++)
		rvt_peer_put(&r.p, RVT_WU, 0, 2 * i + 1, 2 * BIG);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_write_buf(s[i], bytes_of(2 * i + 1)), BIG);
	if (_i == 1)
		rvt_raw_stalled(&r);
	for (uint32_t i = 0; i < 5; i++)
		rvt_peer_put(&r.p, RVT_PING, RVT_SYN, 0, i);
	while (rvt_stats(r.k).pings_in < 5)
		sched_yield(); /* the test's own time limit */
	c.c = r.c;
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	if (_i == 1)
		ck_assert(!rvt_call_done(&c));
	r.p.end = false;
	read_all_but_the_end(5);
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_raw_want_reason(&r, 0, REEVE_BY_US);
	for (unsigned i = 0; i < 2; i++)
		reeve_close(s[i]);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 0.13.5: an error while closing is an end like others */

static void
fail_while_closing(int how)
{
	struct linger hard = {1, 0};

	switch (how) {
	case 0:
		rvt_peer_put(&r.p, 9, 0, 0, 0);
		break;
	case 1:
		rvt_put_data(&r.p.out, 0, 1, 1000, 0);
		r.p.out.n -= 500;
		rvt_peer_send(&r.p);
		rvt_peer_shut(&r.p);
		break;
	case 2:
		ck_assert_int_eq(setsockopt(r.p.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
		rvt_peer_close(&r.p);
		break;
	case 3:
		rvt_peer_put(&r.p, RVT_GOAWAY, 0, 0, 2);
		break;
	default:
		rvt_peer_shut(&r.p);
		break;
	}
}

/* The close answers, with the reason that everything answers from then on; nothing is called that must not be. */
START_TEST(v0_13_5_error_while_closing_ends_the_connection)
{
	static const int rc[] = {
	    REEVE_EPROTO, REEVE_ETRUNC, REEVE_ESYS_BASE - ECONNRESET, REEVE_EGOAWAY, REEVE_EEND};
	static const uint32_t by[] = {
	    REEVE_BY_PEER, REEVE_BY_TRANSPORT, REEVE_BY_TRANSPORT, REEVE_BY_PEER, REEVE_BY_PEER};
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};
	struct rvt_call rd = {.kind = RVT_CALL_READ};
	reeve_stream_t *s;
	uint8_t p[10];

	rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_settle(&r.p);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0); /* and it waits for the peer's */
	rd.s = s;
	rd.p = p;
	rd.n = sizeof(p);
	if (_i != 1) {
		rvt_call_start(&rd);
		rvt_call_asleep(&rd);
	}
	fail_while_closing(_i);
	ck_assert_int_eq(rvt_call_end(&c), _i == 4 ? 0 : rc[_i]); /* an end was wanted */
	if (_i != 1)
		ck_assert_int_eq(rvt_call_end(&rd), rc[_i]);
	else
		rvt_want_read(s, 500, 0);
	rvt_want_rc(s, rc[_i]);
	rvt_raw_want_reason(&r, rc[_i], by[_i]);
	ck_assert_int_eq(reeve_conn_close(r.c, -1), _i == 4 ? 0 : rc[_i]);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 0.13.9, 0.13.10, 0.14.0: headers that lie, to a whole connection */

/* Only the header is ever sent.  The reader of a stream that did nothing wrong is told. */
START_TEST(v0_14_0_header_that_lies_ends_the_connection)
{
	static const struct {
		unsigned type, flags;
		uint32_t id, len;
	} lie[] = {
	    {RVT_WU, 0, 1, UINT32_MAX - 262144 + 1},
	    {RVT_WU, 0, 1, UINT32_MAX},
	    {RVT_DATA, RVT_SYN, 3, 262145},
	    {RVT_WU, RVT_SYN, 3, UINT32_MAX},
	    {RVT_WU, RVT_SYN, 3, UINT32_MAX - 262144 + 1},
	    {RVT_DATA, 0, 1, 262145},
	};
	struct rvt_call c = {.kind = RVT_CALL_READ};
	reeve_stream_t *s;
	uint8_t p[10];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_settle(&r.p);
	c.s = s;
	c.p = p;
	c.n = sizeof(p);
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	rvt_peer_put(&r.p, lie[_i].type, lie[_i].flags, lie[_i].id, lie[_i].len);
	rvt_peer_want_goaway_end(&r.p, 1);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_EPROTO);
	rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
	ck_assert_uint_eq(rvt_stats(r.k).streams_accepted, 1);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("changelog_conn", {&v0_13_2_what_is_owed_to_a_peer_that_never_reads_is_bounded, 0},
    {&v0_13_3_reader_is_woken_at_the_end_of_receive, 5},
    {&v0_13_4_pending_frames_reach_the_wire_on_close, 2},
    {&v0_13_5_error_while_closing_ends_the_connection, 5},
    {&v0_14_0_header_that_lies_ends_the_connection, 6})
