/* test_garbage.c - bytes that are no frames, frames larger than anything allows, headers that never become whole. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/siege.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define KB UINT64_C(1024)

static struct rvt_siege s;
static reeve_cfg_t cfg;

/* A connection ended and says why; the library found words for it. */
static int
reason_of_end(reeve_ctl_t *k)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_op_t op;

	reeve_op_init(&op, NULL, NULL);
	op.timeout_ms = rvt_slow(RVT_WAIT_MS);
	reeve_closed_async(k, &op);
	(void)reeve_op_wait(&op);
	ck_assert_int_eq(reeve_ctl_reason(k, &why), 0);
	ck_assert_int_lt(why.rc, 0);
	ck_assert_int_eq(strncmp(why.id, "REEVE-", 6), 0);
	return why.rc;
}

static void
noise(struct rvt_bytes *o, uint32_t *seed)
{
	for (unsigned i = 0; i < 4096; i++)
		*rvt_bytes_more(o, 1) = (uint8_t)rvt_random(seed);
}

/* Frames whose fields are legal one by one. */
static void
salad(struct rvt_bytes *o, uint32_t *seed)
{
	static const uint32_t lens[] = {0, 1, 13, 4096, 262144, 262145, 0x7fffffff, 0xffffffff};
	uint32_t type, len;

	for (unsigned i = 0; i < 200; i++) {
		type = rvt_random(seed) % 16 < 15 ? rvt_random(seed) % 4 : rvt_random(seed) % 6;
		len = lens[rvt_random(seed) % (rvt_random(seed) % 8 == 0 ? 8 : 4)];
		rvt_put(o, type, rvt_random(seed) % 16, rvt_random(seed) % 40, len);
		if (type == RVT_DATA && len <= 262144)
			memset(rvt_bytes_more(o, len), (int)i, len);
	}
}

/* Whatever comes: the connection ends with a reason (at the latest with the bytes), memory is back, and the honest
 * connection knows nothing of it. */
START_TEST(garbage_ends_its_connection_only)
{
	uint32_t seed = rvt_seed() + (uint32_t)_i;
	unsigned n = 50 * rvt_scale(), by[4] = {0};
	reeve_conn_t *c;
	struct rvt_peer p;
	int rc;

	reeve_cfg_init(&cfg);
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	for (unsigned i = 0; i < n; i++) {
		rvt_siege_join(&s, &c, &p, i % 2 == 0 ? REEVE_LISTENER : REEVE_DIALER, &cfg);
		if (_i == 0)
			noise(&p.out, &seed);
		else
			salad(&p.out, &seed);
		if (rvt_hurl(&p, true))
			rvt_peer_shut(&p);
		rc = reason_of_end(reeve_conn_ctl(c));
		by[0] += rc == REEVE_EPROTO;
		by[1] += rc == REEVE_EGOAWAY;
		by[2] += rc == REEVE_EEND || rc == REEVE_ETRUNC;
		(void)rvt_siege_memory(&s);
		reeve_conn_destroy(c);
		rvt_peer_fini(&p);
	}
	printf("%u connections: %u broke the protocol, %u went away, %u ended; %llu KiB\n", n,
	    by[0], by[1], by[2], (unsigned long long)(s.peak / KB));
	ck_assert_uint_eq(by[0] + by[1] + by[2], n);
	ck_assert_uint_gt(by[0], 0);
	ck_assert_uint_le(s.peak, 20 * 1024 * KB);
	rvt_siege_end(&s);
}
END_TEST

/* --- oversize */

/* A length is judged before a byte of the body comes, and nothing is taken from memory for it. */
START_TEST(oversize_is_refused_by_its_header)
{
	static const struct {
		unsigned type, flags;
		uint32_t id, len;
		const char *id_of_reason;
	} row[] = {
	    {RVT_DATA, RVT_SYN, 3, 262145, "REEVE-YAMUX-0006"},
	    {RVT_DATA, RVT_SYN, 3, 0xffffffff, "REEVE-YAMUX-0006"},
	    {RVT_DATA, RVT_SYN | RVT_FIN, 3, 0x80000000, "REEVE-YAMUX-0006"},
	    {RVT_DATA, 0, 1, 262145, "REEVE-YAMUX-0007"},
	    {RVT_DATA, RVT_FIN, 1, 0xffffffff, "REEVE-YAMUX-0007"},
	    {RVT_WU, 0, 1, 0xffffffff, "REEVE-YAMUX-0008"},
	    {RVT_WU, RVT_SYN, 3, 0xffffffff, "REEVE-YAMUX-0008"},
	    {RVT_WU, RVT_SYN, 3, 0xfffc0000, "REEVE-YAMUX-0008"},
	    {4, 0, 1, 0, "REEVE-YAMUX-0002"},
	    {0xffff, 0xffff, 0xffffffff, 0xffffffff, "REEVE-YAMUX-0001"},
	};
	reeve_stream_t *st;

	reeve_cfg_init(&cfg);
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	rvt_peer_put(&s.p, RVT_WU, RVT_SYN, 1, 0);
	ck_assert_int_eq(reeve_accept(s.k, &st, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_peer_want(&s.p, RVT_WU, RVT_ACK, 1, 0);
	rvt_peer_settle(&s.p);
	rvt_put_raw(&s.p.out, row[_i].type, row[_i].flags, row[_i].id, row[_i].len);
	rvt_peer_send(&s.p);
	rvt_ended_with(s.k, REEVE_EPROTO, row[_i].id_of_reason);
	rvt_peer_want_goaway_end(&s.p, 1);
	(void)rvt_siege_memory(&s);
	ck_assert_uint_le(s.peak, 64 * KB);
	reeve_close(st);
	rvt_siege_end(&s);
}
END_TEST

#define HUGE (64u << 20)

/* A body of gigabytes for a stream that does not exist passes through: nothing is kept, and what comes behind it is
 * understood. */
START_TEST(huge_body_of_an_unknown_stream_passes_through)
{
	uint32_t len = HUGE > 655360 * rvt_scale() ? 655360 * rvt_scale() : HUGE;

	reeve_cfg_init(&cfg);
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	rvt_put(&s.p.out, RVT_DATA, 0, 99, len);
	for (uint32_t at = 0; at < len; at += 65536) {
		memset(rvt_bytes_more(&s.p.out, 65536), 0xff, 65536);
		ck_assert(rvt_hurl(&s.p, true));
		(void)rvt_siege_memory(&s);
	}
	rvt_peer_want_none(&s.p);
	ck_assert_uint_le(s.peak, 128 * KB);
	rvt_siege_end(&s);
}
END_TEST

/* --- a header that comes byte by byte */

static void
drip(unsigned bytes)
{
	*rvt_bytes_more(&s.p.out, 1) = bytes % 12 == 4 ? 0x7f : 0;
	ck_assert(rvt_hurl(&s.p, true));
}

/* A peer that sends a byte now and then costs what an idle connection does: no slab, no call that waits, no wakes but
 * its own; and when it stops in the middle of a header keepalive ends it. */
START_TEST(header_that_never_becomes_whole_costs_nothing)
{
	unsigned bytes = 11 + 12 * 4 * rvt_scale();
	uint64_t next = rvt_now_ms(), reads;
	int step = rvt_slow(10);

	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = (uint32_t)rvt_slow(300);
	cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(300);
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	rvt_peer_settle(&s.p);
	reads = rvt_stats(s.k).reads;
	for (unsigned i = 0; i < bytes; i++) {
		for (next += (uint64_t)step; rvt_now_ms() < next;)
			sched_yield();
		drip(i);
		(void)rvt_siege_memory(&s);
	}
	ck_assert_uint_le(s.peak, 80 * KB); /* a slab while a byte is looked at */
	ck_assert_uint_le(rvt_stats(s.k).reads - reads, 3 * bytes + 10);
	rvt_ended_with(s.k, REEVE_EDEAD, "REEVE-YAMUX-0012");
	(void)rvt_siege_memory(&s);
	rvt_siege_end(&s);
}
END_TEST

/* Nobody waits for the rest of a header: closing is as fast as ever, and an end inside one is told apart. */
START_TEST(half_a_header_holds_up_no_close)
{
	uint64_t start;

	reeve_cfg_init(&cfg);
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	rvt_peer_settle(&s.p);
	for (unsigned i = 0; i < 7; i++)
		drip(i);
	if (_i == 0) {
		rvt_peer_close(&s.p);
		rvt_ended_with(s.k, REEVE_ETRUNC, "REEVE-CONN-0006");
	} else {
		start = rvt_now_ms();
		(void)reeve_conn_close(s.c, rvt_slow(500));
		ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(1500));
	}
	rvt_siege_end(&s);
}
END_TEST

RVT_MAIN_TABLE("garbage", {&garbage_ends_its_connection_only, 2},
    {&oversize_is_refused_by_its_header, 10}, {&huge_body_of_an_unknown_stream_passes_through, 0},
    {&header_that_never_becomes_whole_costs_nothing, 0}, {&half_a_header_holds_up_no_close, 2})
