/* test_flow.c - scenarios 1 to 18: credit, windows, and what is held for a reader. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW  262144u
#define KIB     1024u
#define MIB     1048576u
#define SOON_MS 1000 /* generous: what must happen at once has happened by then */

static struct rvt_nodes n;
static struct rvt_raw r;

/* The count of a full run, or the hundredth that make check does. */
static uint32_t
scaled(uint32_t full)
{
	uint64_t k = (uint64_t)full * rvt_scale() / 100;

	return k < 1 ? 1 : k > full ? full : (uint32_t)k;
}

/* Bytes of credit that have come for the stream, with no other frame among them. */
static uint64_t
credit(uint32_t id)
{
	struct rvt_frame f;
	uint64_t sum = 0;

	rvt_peer_barrier(&r.p);
	while (rvt_next(&r.p.in, &f)) {
		if (f.type == RVT_PING)
			continue;
		ck_assert_msg(f.type == RVT_WU && f.flags == 0 && f.id == id,
		    "type %u, flags %u, id %u, length %u instead of credit", f.type, f.flags, f.id,
		    f.len);
		sum += f.len;
	}
	return sum;
}

/* --- 1: a legal sender accused of overrunning the window */

#define FLOWS 256

/* Every stream is full in both directions at once. */
static void
all_busy(unsigned streams, uint64_t each, uint32_t seed)
{
	static struct rvt_flow f[FLOWS];
	reeve_stream_t *s[FLOWS / 4][2];

	for (unsigned i = 0; i < streams; i++) {
		rvt_stream_pair(&n, (int)(i % 2), s[i]);
		for (unsigned k = 0; k < 4; k++) { /* k % 2: whose, k / 2: reads */
			f[4 * i + k] = (struct rvt_flow){
			    .kind = k / 2 ? RVT_FLOW_READ : RVT_FLOW_WRITE,
			    .s = s[i][k % 2],
			    .total = each,
			    .key = 2 * i + (k == 1 || k == 2),
			    .seed = seed + 4 * i + k};
			rvt_flow_start(&f[4 * i + k]);
		}
	}
	for (unsigned i = 0; i < 4 * streams; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < streams; i++) {
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
}

START_TEST(scenario_1_bytes_within_credit_are_accepted)
{
	struct rvt_wedding w = {.via = (enum rvt_via)_i};
	unsigned streams = rvt_scale() > 1 ? 64 : 6;
	uint64_t each = rvt_scale() > 1 ? 200000u * (uint64_t)rvt_scale() : 3 * WINDOW;
	uint32_t seed = rvt_seed();

	rvt_marry(&n, &w);
	for (uint32_t run = scaled(_i == RVT_TCP ? 20 : 2); run > 0; run--)
		all_busy(streams, each, seed + run);
	for (int i = 0; i < 2; i++) {
		rvt_no_streams(n.k[i]);
		ck_assert_uint_eq(rvt_stats(n.k[i]).resets_out, 0);
		ck_assert_int_ge(reeve_ping(n.k[i], rvt_slow(RVT_WAIT_MS), NULL), 0);
	}
	rvt_divorce(&n);
}
END_TEST

/* Credit is used whole in the moment it arrives. */
START_TEST(scenario_1_credit_holds_when_it_has_been_sent)
{
	uint64_t total = (uint64_t)scaled(200) * MIB, sent = 0, left = WINDOW;
	struct rvt_flow rd = {.kind = RVT_FLOW_READ, .total = total, .key = 1, .open = true};
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rd.s = rvt_raw_inbound(&r, 1);
	rd.seed = rvt_seed();
	rvt_flow_start(&rd);
	while (sent < total) {
		if (left > total - sent)
			left = total - sent;
		rvt_peer_data(&r.p, 0, 1, (uint32_t)left, sent);
		sent += left;
		left = 0;
		while (sent < total && left == 0) {
			ck_assert(rvt_peer_next(&r.p, &f));
			ck_assert(f.type == RVT_WU && f.flags == 0 && f.id == 1);
			left = f.len;
		}
	}
	rvt_flow_end(&rd);
	(void)credit(1);
	reeve_close(rd.s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 2: the first window update is an addition.  _i: 0, 1 the peer opens; 2, 3 the peer acknowledges. */

START_TEST(scenario_2_first_credit_adds_to_the_initial_window)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 600 * KIB};
	uint32_t more = _i % 2 ? 0 : WINDOW;
	uint64_t out = WINDOW + more;

	rvt_raw_open(&r, _i < 2 ? REEVE_LISTENER : REEVE_DIALER, NULL);
	if (_i < 2) {
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 1, more);
		ck_assert_int_eq(reeve_accept(r.k, &c.s, rvt_slow(RVT_WAIT_MS)), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 1, 0);
	} else {
		ck_assert_int_eq(reeve_open(r.k, &c.s, -1), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 1, 0);
		rvt_peer_put(&r.p, RVT_WU, RVT_ACK, 1, more);
	}
	c.p = rvt_pattern(1, c.n);
	rvt_call_start(&c);
	ck_assert_uint_eq(rvt_peer_want_bytes(&r.p, 1, out, 0), 0);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 1);
	rvt_peer_want_data(&r.p, 0, 1, 1, out);
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_WR, 0), 0);
	ck_assert_int_gt(rvt_call_end(&c), (reeve_ssize)out);
	ck_assert_int_eq(reeve_reset(c.s, 0), 0);
	reeve_close(c.s);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_want_none(&r.p);
	free(c.p);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 3: window updates of zero.  _i: 0 we acknowledge at once, 1 with our first frame, 2 the peer acknowledges. */

START_TEST(scenario_3_window_updates_of_zero_are_nothing)
{
	reeve_stream_t *s = NULL;
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.flags = _i == 1 ? REEVE_CFG_LAZY_ACK : 0;
	rvt_raw_open(&r, _i < 2 ? REEVE_LISTENER : REEVE_DIALER, &cfg);
	if (_i < 2) {
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 1, 0);
		ck_assert_int_eq(reeve_accept(r.k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	} else {
		s = rvt_raw_outbound(&r);
	}
	rvt_want_write(s, 10, 0);
	if (_i == 0)
		rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 1, 0);
	rvt_peer_want_data(&r.p, _i == 1 ? RVT_ACK : 0, 1, 10, 0);
	for (unsigned i = 0; i < 100; i++)
		rvt_put(&r.p.out, RVT_WU, 0, 1, 0);
	rvt_peer_send(&r.p);
	rvt_peer_want_none(&r.p);
	rvt_want_write(s, 10, 10);
	rvt_peer_want_data(&r.p, 0, 1, 10, 10);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 4: FIN and RST count on window updates too */

START_TEST(scenario_4_ends_ride_on_window_updates)
{
	static const uint32_t flags[] = {RVT_FIN, RVT_FIN, RVT_RST, RVT_RST};
	static const uint32_t value[] = {0, 1000, 0, 77};
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_call rd[4];
	uint8_t byte[4];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		rd[i] = (struct rvt_call){.kind = RVT_CALL_READ, .p = &byte[i], .n = 1};
		rd[i].s = rvt_raw_inbound(&r, 2 * i + 1);
		rvt_want_write(rd[i].s, WINDOW, 0);
		(void)rvt_peer_want_bytes(&r.p, 2 * i + 1, WINDOW, 0);
		rvt_call_start(&rd[i]);
		rvt_call_asleep(&rd[i]);
	}
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t start = rvt_now_ms();

		rvt_peer_put(&r.p, RVT_WU, flags[i], 2 * i + 1, value[i]);
		ck_assert_int_eq(rvt_call_end(&rd[i]), i < 2 ? 0 : REEVE_ERESET);
		ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(SOON_MS));
	}
	rvt_want_write(rd[0].s, 2000, WINDOW);
	rvt_want_write(rd[1].s, 2000, WINDOW);
	rvt_peer_want_data(&r.p, 0, 3, 1000, WINDOW);
	for (unsigned i = 2; i < 4; i++) {
		ck_assert_int_eq(reeve_write(rd[i].s, byte, 1), REEVE_ERESET);
		ck_assert_int_eq(reeve_stream_reason(rd[i].s, &why), 0);
		ck_assert_uint_eq(why.by, REEVE_BY_PEER);
		ck_assert_uint_eq(why.wire_code, value[i]);
	}
	rvt_peer_want_none(&r.p);
	for (unsigned i = 0; i < 4; i++)
		reeve_stream_unref(rd[i].s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 6: credit that no longer fits 32 bits.  _i: 0 on SYN, 1 at once, 2 in steps, 3 in steps after a write. */

START_TEST(scenario_6_credit_never_wraps)
{
	uint32_t most = UINT32_MAX - WINDOW, step = MIB;
	reeve_stream_t *s = NULL;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 3, most); /* as much as there can be */
	ck_assert_int_eq(reeve_accept(r.k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 3, 0);
	reeve_stream_unref(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 3, 0);
	s = _i == 0 ? NULL : rvt_raw_inbound(&r, 5);
	if (_i == 0) {
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 5, UINT32_MAX);
	} else if (_i == 1) {
		rvt_peer_put(&r.p, RVT_WU, 0, 5, UINT32_MAX);
	} else {
		if (_i == 3) { /* there is room for one step more */
			rvt_want_write(s, WINDOW, 0);
			(void)rvt_peer_want_bytes(&r.p, 5, WINDOW, 0);
		}
		for (unsigned i = 1; i < UINT32_MAX / step + 1; i++)
			rvt_put(&r.p.out, RVT_WU, 0, 5, step);
		rvt_peer_send(&r.p);
		rvt_peer_want_none(&r.p);
		rvt_want_write(s, 1, _i == 3 ? WINDOW : 0); /* it has not become smaller */
		rvt_peer_want_data(&r.p, 0, 5, 1, _i == 3 ? WINDOW : 0);
		if (_i == 3) {
			rvt_peer_put(&r.p, RVT_WU, 0, 5, step - 1);
			rvt_peer_want_none(&r.p);
		}
		rvt_peer_put(&r.p, RVT_WU, 0, 5, step);
	}
	rvt_peer_want_goaway_end(&r.p, 1);
	rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 7: credit is counted, both ways */

START_TEST(scenario_7_no_byte_leaves_without_credit)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = MIB};
	uint8_t *p = rvt_pattern(1, MIB);
	reeve_ssize got = 0;
	uint64_t at;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	c.s = rvt_raw_inbound(&r, 1);
	c.p = p;
	rvt_call_start(&c);
	ck_assert_uint_eq(rvt_peer_want_bytes(&r.p, 1, WINDOW, 0), 0);
	rvt_call_asleep(&c);
	ck_assert(!rvt_call_done(&c));
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_WR, 0), 0);
	at = (uint64_t)rvt_call_end(&c); /* what left, and what waits: the send budget */
	ck_assert_uint_ge(at, WINDOW);
	ck_assert_uint_le(at, 2 * WINDOW);
	for (unsigned i = 0; i < 2000 && (got = reeve_write(c.s, p + at, 1)) == 1; i++)
		at++;
	ck_assert_msg(got == 1 || got == REEVE_ETIMEDOUT, "%s", reeve_errname((int)got));
	ck_assert_uint_le(at, 2 * WINDOW);
	rvt_peer_want_none(&r.p);
	reeve_stream_unref(c.s);
	free(p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(scenario_7_credit_comes_back_as_bytes_are_read)
{
	uint64_t total = 10u * MIB, sent = 0, granted = WINDOW, k;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	while (sent < total) {
		k = granted - sent < total - sent ? granted - sent : total - sent;
		ck_assert_msg(k > 0, "no credit after %llu bytes", (unsigned long long)sent);
		rvt_peer_data(&r.p, 0, 1, (uint32_t)k, sent);
		rvt_want_read(s, k, sent);
		sent += k;
		granted += credit(1);
		ck_assert_uint_le(granted, sent + rvt_stats(r.k).window_max);
	}
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 8: one write that is larger than every window */

START_TEST(scenario_8_write_larger_than_the_window_is_paced)
{
	struct rvt_wedding w = {.via = (enum rvt_via)_i, .chunk = 1000};
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 10u * MIB};
	reeve_stream_t *s[2];

	rvt_marry(&n, &w);
	rvt_stream_pair(&n, 0, s);
	if (_i >= RVT_RECHUNK || RVT_SANITIZED)
		c.n /= 10;
	c.s = s[0];
	c.p = rvt_pattern(1, c.n);
	rvt_call_start(&c);
	rvt_want_read(s[1], c.n, 0);
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	reeve_close(s[0]);
	rvt_want_rc(s[1], 0);
	reeve_close(s[1]);
	free(c.p);
	rvt_divorce(&n);
}
END_TEST

START_TEST(scenario_8_every_credit_makes_progress)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = WINDOW + MIB / 4 + scaled(10) * MIB};
	uint64_t at = WINDOW, rest = 0;
	uint8_t *p = rvt_pattern(1, c.n);

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	c.s = rvt_raw_inbound(&r, 1);
	c.p = p;
	rvt_call_start(&c);
	(void)rvt_peer_want_bytes(&r.p, 1, WINDOW, 0);
	for (; at + 1000 <= c.n + rest; at += 1000) {
		rvt_peer_put(&r.p, RVT_WU, 0, 1, 1000);
		(void)rvt_peer_want_bytes(&r.p, 1, 1000, at);
		if (rest != 0 || at < c.n / 2)
			continue;
		/* Half-way: no more than the send budget has been taken in. */
		ck_assert_int_eq(reeve_deadline(c.s, REEVE_WR, 0), 0);
		rest = (uint64_t)rvt_call_end(&c);
		ck_assert_uint_le(rest, at + 1000 + WINDOW);
		ck_assert_int_eq(reeve_deadline(c.s, REEVE_WR, -1), 0);
		c.p = p + rest;
		c.n -= rest;
		rvt_call_start(&c);
	}
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	rvt_peer_want_none(&r.p);
	reeve_stream_unref(c.s);
	free(p);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("scenarios: flow", {&scenario_1_bytes_within_credit_are_accepted, RVT_RECHUNK},
    {&scenario_1_credit_holds_when_it_has_been_sent, 0},
    {&scenario_2_first_credit_adds_to_the_initial_window, 4},
    {&scenario_3_window_updates_of_zero_are_nothing, 3},
    {&scenario_4_ends_ride_on_window_updates, 0}, {&scenario_6_credit_never_wraps, 4},
    {&scenario_7_no_byte_leaves_without_credit, 0},
    {&scenario_7_credit_comes_back_as_bytes_are_read, 0},
    {&scenario_8_write_larger_than_the_window_is_paced, RVT_VIAS},
    {&scenario_8_every_credit_makes_progress, 0})
