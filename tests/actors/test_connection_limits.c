/* test_connection_limits.c - peers that never answer, never read or never stop: bounds, timeouts, refusals. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_raw r;
static reeve_cfg_t cfg;

/* --- streams that we open */

START_TEST(open_beyond_the_unacknowledged_waits)
{
	struct rvt_call c = {.kind = RVT_CALL_OPEN, .timeout_ms = rvt_slow(100)};
	reeve_stream_t *s[256];

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	for (unsigned i = 0; i < 256; i++) {
		ck_assert_int_eq(reeve_open(r.k, &s[i], 0), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		rvt_want_write(s[i], 1000, 0);
		rvt_peer_want_data(&r.p, 0, 2 * i + 1, 1000, 0);
	}
	c.k = r.k;
	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c.ms, (uint64_t)rvt_slow(99));
	rvt_peer_want_none(&r.p); /* it left no trace */
	c.s = NULL;
	ck_assert_int_eq(reeve_open(r.k, &c.s, 0), REEVE_ETIMEDOUT);
	c.timeout_ms = -1;
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 5, 0);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 513, 0);
	ck_assert_uint_eq(reeve_stream_id(c.s), 513);
	reeve_close(c.s);
	for (unsigned i = 0; i < 256; i++)
		reeve_close(s[i]);
	rvt_raw_fini(&r);
}
END_TEST

/* What lets a waiting open go on: an acknowledgement, a refusal, the end of a stream, our own reset or drop. */
START_TEST(open_goes_on_when_a_stream_is_answered)
{
	struct rvt_call c = {.kind = RVT_CALL_OPEN, .timeout_ms = -1};
	reeve_stream_t *s[2];

	reeve_cfg_init(&cfg);
	cfg.max_unacked = 2;
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_open(r.k, &s[i], 0), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 2 * i + 1, 0);
	}
	c.k = r.k;
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	rvt_peer_want_none(&r.p);
	ck_assert(!rvt_call_done(&c));
	if (_i < 4)
		rvt_peer_data(
		    &r.p, (unsigned[]){RVT_ACK, RVT_RST, RVT_FIN, RVT_ACK | RVT_FIN}[_i], 1, 0, 0);
	else if (_i == 4)
		ck_assert_int_eq(reeve_reset(s[0], 0), 0);
	else
		reeve_stream_unref(reeve_stream_ref(s[0]));
	if (_i == 5) {
		reeve_stream_unref(s[0]);
		s[0] = NULL;
	}
	ck_assert_int_eq(rvt_call_end(&c), 0);
	if (_i >= 4)
		rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 5, 0);
	ck_assert_uint_eq(reeve_stream_id(c.s), 5);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 3, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 3, 0); /* once more: frees nothing */
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_open(r.k, &s[0], 0), 0);
	ck_assert_int_eq(reeve_open(r.k, &s[0], 0), REEVE_ETIMEDOUT);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(open_beyond_max_out_is_refused)
{
	reeve_stream_t *s[3];

	reeve_cfg_init(&cfg);
	cfg.max_out = 2;
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	s[0] = rvt_raw_outbound(&r);
	s[1] = rvt_raw_outbound(&r);
	ck_assert_int_eq(reeve_open(r.k, &s[2], -1), REEVE_ELIMIT);
	reeve_close(s[0]);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	s[0] = rvt_raw_outbound(&r);
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_raw_fini(&r);
}
END_TEST

/* --- streams that the peer opens */

START_TEST(inbound_beyond_max_in_is_reset)
{
	reeve_stream_t *s[3];

	reeve_cfg_init(&cfg);
	cfg.max_in = 2;
	rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	s[0] = rvt_raw_inbound(&r, 1);
	s[1] = rvt_raw_inbound(&r, 3);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 5, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 5, 0);
	rvt_peer_data(&r.p, RVT_SYN, 7, 200000, 0); /* its body is drained */
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 7, 0);
	rvt_peer_data(&r.p, 0, 7, 1000, 200000);
	rvt_peer_data(&r.p, RVT_FIN, 3, 100, 0);
	rvt_want_read(s[1], 100, 0);
	reeve_close(s[1]);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 3, 0);
	rvt_peer_want_none(&r.p);
	s[2] = rvt_raw_inbound(&r, 9);
	ck_assert_uint_eq(rvt_stats(r.k).streams_refused, 2);
	reeve_close(s[0]);
	reeve_close(s[2]);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(inbound_beyond_the_backlog_is_reset)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 256; i++)
		rvt_put_data(&r.p.out, RVT_SYN, 2 * i + 1, 100, 0);
	rvt_peer_send(&r.p);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 513, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 513, 0);
	for (uint32_t i = 0; i < 256; i++) {
		ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
		ck_assert_uint_eq(reeve_stream_id(s), 2 * i + 1);
		rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 2 * i + 1, 0);
		rvt_want_read(s, 100, 0);
		reeve_close(s);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 2 * i + 1, 0);
	}
	s = rvt_raw_inbound(&r, 515);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(refusals_that_are_never_read_end_the_connection)
{
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	ck_assert_int_eq(reeve_goaway(r.k, 0), 0);
	rvt_peer_want(&r.p, RVT_GOAWAY, 0, 0, 0);
	r.p.end = true; /* reads nothing */
	for (uint32_t i = 0; i < 50000; i++) {
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		if (i % 100 == 99 && !rvt_peer_try_send(&r.p))
			break;
	}
	rvt_raw_want_reason(&r, REEVE_ELIMIT, REEVE_BY_PEER);
	rvt_raw_fini(&r);
}
END_TEST

/* However many come in one run of bytes: the peer reads what it is told. */
START_TEST(refusals_that_are_read_do_not_end_the_connection)
{
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 256; i++)
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, 2 * i + 1, 0);
	for (uint32_t i = 256; i < 20256; i++) {
		if ((i - 256) % 5000 == 0) {
			for (uint32_t k = i; k < i + 5000; k++)
				rvt_put(&r.p.out, RVT_WU, RVT_SYN, 2 * k + 1, 0);
			rvt_peer_send(&r.p);
		}
		ck_assert(rvt_peer_next(&r.p, &f));
		if (f.type != RVT_WU || f.flags != RVT_RST || f.id != 2 * i + 1)
			ck_abort_msg("type %u, flags %u, id %u", f.type, f.flags, f.id);
	}
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).streams_refused, 20000);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(opening_and_resetting_for_ever_ends_the_connection)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_op_t op;
	uint32_t i;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (i = 0; i < 20000; i++) {
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		rvt_put(&r.p.out, RVT_WU, RVT_RST, 2 * i + 1, 0);
		if (i % 100 == 99 && !rvt_peer_try_send(&r.p))
			break;
	}
	ck_assert_uint_ge(i, 999);
	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(r.k, &op);
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_int_eq(why.rc, REEVE_ELIMIT);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	rvt_raw_fini(&r);
}
END_TEST

/* Within the rate nothing ends, but streams that nobody took do not pile up either. */
START_TEST(streams_reset_before_they_are_accepted_do_not_pile_up)
{
	reeve_stream_t *s;
	unsigned n = 0;
	bool live;

	reeve_cfg_init(&cfg);
	cfg.churn_burst = REEVE_OFF;
	rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	for (uint32_t i = 0; i < 20000; i++) {
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		rvt_put(&r.p.out, RVT_WU, RVT_RST, 2 * i + 1, 0);
		if (i % 100 == 99)
			rvt_peer_send(&r.p);
	}
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 40001, 0);
	rvt_peer_want_none(&r.p);
	do {
		ck_assert_int_eq(reeve_accept(r.k, &s, 0), 0);
		n++;
		live = reeve_stream_id(s) == 40001;
		if (!live) {
			rvt_want_rc(s, REEVE_ERESET);
			reeve_close(s);
		}
	} while (!live);
	ck_assert_uint_le(n, 600);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 40001, 0);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- pings */

/* Kilobytes of memory that the process holds. */
static long
rss_kb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return kb;
}

/* The socket's buffer fills with pongs; what does not fit is not kept. */
START_TEST(pings_whose_answers_are_never_read_are_bounded)
{
	uint64_t deadline;
	long before, after;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_peer_barrier(&r.p);
	before = rss_kb();
	r.p.end = true; /* reads nothing */
	for (uint32_t i = 0; i < 200000; i++) {
		rvt_put(&r.p.out, RVT_PING, RVT_SYN, 0, i);
		if (i % 1000 == 999)
			rvt_peer_send(&r.p);
	}
	deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	while (rvt_stats(r.k).pings_in + rvt_stats(r.k).pongs_dropped < 200000)
		ck_assert_uint_lt(rvt_now_ms(), deadline);
	after = rss_kb();
	ck_assert_uint_gt(rvt_stats(r.k).pongs_dropped, 0);
	ck_assert_int_lt(after - before, 4096);
	r.p.end = false;
	rvt_peer_barrier(&r.p); /* it still lives */
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(ping_measures_and_only_the_right_pong_counts)
{
	struct rvt_call c = {.kind = RVT_CALL_PING, .timeout_ms = -1};
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_KEEP;
	c.k = r.k;
	rvt_call_start(&c);
	ck_assert(rvt_peer_next(&r.p, &f) && f.type == RVT_PING && f.flags == RVT_SYN);
	rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len + 1);
	rvt_peer_put(&r.p, RVT_PING, 0, 0, f.len);
	rvt_peer_barrier(&r.p);
	ck_assert(!rvt_call_done(&c));
	rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len); /* twice */
	c.timeout_ms = 50;
	rvt_call_start(&c);
	ck_assert(rvt_peer_next(&r.p, &f) && f.type == RVT_PING && f.flags == RVT_SYN);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	rvt_raw_fini(&r);
}
END_TEST

/* --- silence */

START_TEST(silent_peer_is_given_up)
{
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_call c = {.kind = RVT_CALL_READ};
	reeve_stream_t *s;
	uint64_t start;
	uint8_t p[10];

	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = 100;
	cfg.keepalive_timeout_ms = 100;
	rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	start = rvt_now_ms(); /* the silence begins later */
	s = rvt_raw_inbound(&r, 1);
	c.s = s;
	c.p = p;
	c.n = sizeof(p);
	rvt_peer_settle(&r.p);
	rvt_call_start(&c);
	r.p.pings = RVT_PINGS_MUTE;
	ck_assert_int_eq(rvt_call_end(&c), REEVE_EDEAD);
	ck_assert_uint_ge(rvt_now_ms() - start, 190);
	ck_assert_int_eq(reeve_write(s, p, 1), REEVE_EDEAD);
	rvt_raw_want_reason(&r, REEVE_EDEAD, REEVE_BY_PEER);
	rvt_peer_want_end(&r.p);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(peer_that_answers_pings_is_alive)
{
	struct rvt_frame f;
	uint64_t start;

	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = 30;
	cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(300);
	rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_KEEP;
	start = rvt_now_ms();
	for (unsigned i = 0; i < 10; i++) {
		ck_assert(rvt_peer_next(&r.p, &f) && f.type == RVT_PING && f.flags == RVT_SYN);
		rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len);
	}
	ck_assert_uint_ge(rvt_now_ms() - start, 9 * 25);
	rvt_raw_fini(&r);
}
END_TEST

/* --- a peer that does not read */

START_TEST(peer_that_takes_no_byte_is_given_up)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 8u << 20};
	uint64_t start = rvt_now_ms();
	reeve_stream_t *s;

	reeve_cfg_init(&cfg);
	cfg.write_ms = 150;
	if (_i)
		rvt_raw_open_tcp(&r, REEVE_LISTENER, &cfg);
	else
		rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 64u << 20);
	c.s = s;
	c.p = calloc(1, c.n);
	rvt_call_start(&c);
	(void)rvt_call_end(&c);
	ck_assert_uint_ge(rvt_now_ms() - start, 149);
	ck_assert_int_eq(reeve_write(s, c.p, 1), REEVE_ETIMEDOUT);
	rvt_raw_want_reason(&r, REEVE_ETIMEDOUT, REEVE_BY_TRANSPORT);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

START_TEST(reading_goes_on_while_the_peer_does_not_read)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 4u << 20};
	uint64_t left = c.n;
	struct rvt_frame f;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 16u << 20);
	c.s = s;
	c.p = calloc(1, c.n);
	rvt_call_start(&c);
	rvt_raw_stalled(&r);
	r.p.end = true; /* reads nothing */
	rvt_peer_data(&r.p, 0, 1, 262144, 0);
	rvt_want_read(s, 262144, 0);
	r.p.end = false;
	while (rvt_peer_next_but(&r.p, &f, 1, &left)) /* credit, in between */
		ck_assert(f.type == RVT_WU && f.flags == 0 && f.id == 1);
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

RVT_MAIN_TABLE("connection_limits", {&open_beyond_the_unacknowledged_waits, 0},
    {&open_goes_on_when_a_stream_is_answered, 6}, {&open_beyond_max_out_is_refused, 0},
    {&inbound_beyond_max_in_is_reset, 0}, {&inbound_beyond_the_backlog_is_reset, 0},
    {&refusals_that_are_never_read_end_the_connection, 0},
    {&refusals_that_are_read_do_not_end_the_connection, 0},
    {&opening_and_resetting_for_ever_ends_the_connection, 0},
    {&streams_reset_before_they_are_accepted_do_not_pile_up, 0},
    {&pings_whose_answers_are_never_read_are_bounded, 0},
    {&ping_measures_and_only_the_right_pong_counts, 0}, {&silent_peer_is_given_up, 0},
    {&peer_that_answers_pings_is_alive, 0}, {&peer_that_takes_no_byte_is_given_up, 2},
    {&reading_goes_on_while_the_peer_does_not_read, 0})
