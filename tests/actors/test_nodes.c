/* test_nodes.c - two nodes over every transport and with either protocol: bytes both ways, many streams, large writes. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 64

static struct rvt_nodes n;

/* Loop tests: transports, with one runtime and with two; then the same with mplex. */
#define LOOPS (2 * RVT_VIAS)

static void
marry(int i, uint32_t seed)
{
	static const unsigned chunks[] = {1, 2, 7, 11, 12, 13};
	bool mplex = i >= LOOPS;
	struct rvt_wedding w = {.via = (enum rvt_via)(i % LOOPS / 2),
	    .one_rt = i % 2 == 1 || i % LOOPS < 2,
	    .seed = seed};
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = mplex ? REEVE_MPLEX : REEVE_YAMUX;
	w.cfg[0] = w.cfg[1] = &cfg;

	w.chunk = chunks[seed % 6];
	printf("%s, %s, %s", mplex ? "mplex" : "yamux", rvt_via_name[w.via],
	    w.one_rt ? "one runtime" : "two runtimes");
	if (w.via >= RVT_RECHUNK)
		printf(", %u bytes at once", w.chunk);
	printf("\n");
	fflush(stdout);
	rvt_marry(&n, &w);
}

static bool
slow(int i)
{
	return i % LOOPS / 2 >= RVT_RECHUNK;
}

/* total bytes from s[0] to s[1] and back. */
static void
echo(reeve_stream_t *s[2], uint64_t total, uint32_t seed, bool zero_copy)
{
	uint32_t key = (uint32_t)reeve_stream_id(s[0]);
	struct rvt_flow f[3] = {
	    {.kind = RVT_FLOW_WRITE, .s = s[0]},
	    {.kind = RVT_FLOW_ECHO, .s = s[1]},
	    {.kind = RVT_FLOW_READ, .s = s[0]},
	};

	for (unsigned i = 0; i < 3; i++) {
		f[i].total = total;
		f[i].key = key;
		f[i].seed = seed + i;
		f[i].rt = zero_copy ? n.rt[0] : NULL;
		rvt_flow_start(&f[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		rvt_flow_end(&f[i]);
}

START_TEST(echo_of_all_sizes)
{
	static const uint32_t sizes[] = {1, 11, 4096, 65537, 262144, 262145, 1u << 20, 4u << 20};
	uint32_t seed = rvt_seed();
	reeve_stream_t *s[2];

	marry(_i, seed + (uint32_t)_i);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (slow(_i) && sizes[i] > 65537)
			break;
		rvt_stream_pair(&n, (int)i % 2, s);
		echo(s, sizes[i], seed + i, i % 4 > 1);
		reeve_close(s[0]);
		reeve_close(s[1]);
	}
	rvt_part(&n);
}
END_TEST

/* 64 streams, opened from both ends, all pumping both ways at once with calls of any size. */
START_TEST(many_streams_both_ways)
{
	static struct rvt_flow f[STREAMS * 4];
	static reeve_stream_t *s[STREAMS][2];
	uint32_t seed = rvt_seed();
	uint64_t total = slow(_i) ? 500 : (20u << 20) / 100;
	struct rvt_flow *p = f;

	marry(_i, seed + (uint32_t)_i);
	for (int i = 0; i < STREAMS; i++)
		rvt_stream_pair(&n, i % 2, s[i]);
	for (unsigned i = 0; i < STREAMS; i++)
		for (unsigned end = 0; end < 2; end++) {
			uint32_t key = 2 * (uint32_t)reeve_stream_id(s[i][0]) + end;

			p[0] = (struct rvt_flow){.kind = RVT_FLOW_WRITE, .s = s[i][end]};
			p[1] = (struct rvt_flow){.kind = RVT_FLOW_READ, .s = s[i][1 - end]};
			for (unsigned j = 0; j < 2; j++, p++) {
				p->key = key;
				p->seed = seed++;
				p->total = total * rvt_scale();
				p->rt = i % 3 == 0 ? n.rt[0] : NULL;
			}
		}
	for (unsigned i = 0; i < STREAMS * 4; i++)
		rvt_flow_start(&f[i]);
	for (unsigned i = 0; i < STREAMS * 4; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < STREAMS; i++) {
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
	ck_assert_uint_eq(rvt_stats(n.k[0]).resets_in + rvt_stats(n.k[0]).resets_out, 0);
	rvt_part(&n);
}
END_TEST

/* A window, and what the send budget takes beside it: all that needs no reader. */
START_TEST(both_ends_write_a_window_before_reading)
{
	size_t size = slow(_i) ? 20000 : 2 * 262144;
	reeve_stream_t *s[2];

	marry(_i, 7);
	rvt_stream_pair(&n, 0, s);
	rvt_want_write(s[0], size, 0);
	rvt_want_write(s[1], size, 0);
	for (int i = 0; i < 2; i++) {
		rvt_want_read(s[i], size, 0);
		ck_assert_int_eq(reeve_shut(s[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		rvt_want_rc(s[i], 0);
		reeve_close(s[i]);
	}
	rvt_part(&n);
}
END_TEST

START_TEST(one_write_of_ten_megabytes)
{
	size_t size = 10u << 20;
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = size};
	reeve_stream_t *s[2];

	marry(_i, 1);
	rvt_stream_pair(&n, 1, s);
	c.s = s[0];
	c.p = rvt_pattern((uint32_t)reeve_stream_id(s[0]), size);
	rvt_call_start(&c);
	rvt_want_read(s[1], size, 0);
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)size);
	reeve_close(s[0]);
	rvt_want_rc(s[1], 0);
	reeve_close(s[1]);
	rvt_part(&n);
	free(c.p);
}
END_TEST

/* Both ends write more than a window before they read: it stalls by design, and nothing else does. */
START_TEST(both_ends_write_too_much)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 1u << 20};
	reeve_stream_t *s[2], *t[2];
	void *big = calloc(1, c.n);
	uint64_t start, us = 0;
	reeve_ssize got;

	marry(_i, 1);
	rvt_stream_pair(&n, 0, s);
	c.s = s[1];
	c.p = big;
	start = rvt_now_ms(); /* the deadlines count from their setting */
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_deadline(s[i], REEVE_WR, 200), 0);
	rvt_call_start(&c);
	got = reeve_write(s[0], big, c.n);
	ck_assert(got >= 262144 && got < (reeve_ssize)c.n); /* the window and what we buffer */
	ck_assert_uint_ge(rvt_now_ms() - start, 199);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(1500));
	got = rvt_call_end(&c);
	ck_assert(got >= 262144 && got < (reeve_ssize)c.n);
	ck_assert_uint_gt(rvt_stats(n.k[0]).stalls_window, 0);
	ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(1000), &us), 0);
	rvt_stream_pair(&n, 0, t);
	rvt_want_write(t[0], 1000, 0);
	rvt_want_read(t[1], 1000, 0);
	reeve_close(t[0]);
	reeve_close(t[1]);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_reset(s[i], 0), 0);
	for (int i = 0; i < 2; i++)
		reeve_close(s[i]);
	rvt_part(&n);
	free(big);
}
END_TEST

RVT_MAIN_TABLE("nodes", {&echo_of_all_sizes, 2 * LOOPS}, {&many_streams_both_ways, 2 * LOOPS},
    {&both_ends_write_a_window_before_reading, 2 * LOOPS},
    {&one_write_of_ten_megabytes, 2 * RVT_RECHUNK}, {&both_ends_write_too_much, 2 * RVT_RECHUNK})
