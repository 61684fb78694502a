/* test_windows.c - scenarios 12 to 18: what makes windows grow, bounds that contradict each other, memory held. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 262144u
#define MIB    1048576u
#define SPARE  (6 * MIB) /* bytes that a worker keeps for the next burst, and the test's own */

static struct rvt_nodes n;
static struct rvt_raw r;

/* Credit of the stream that has come, and nothing else. */
static uint32_t
credit(uint32_t id)
{
	struct rvt_frame f;
	uint32_t sum = 0;

	rvt_peer_barrier(&r.p);
	while (rvt_next(&r.p.in, &f)) {
		if (f.type == RVT_PING)
			continue;
		ck_assert(f.type == RVT_WU && f.flags == 0 && f.id == id);
		sum += f.len;
	}
	return sum;
}

/* --- 12: idle streams do not grow */

START_TEST(scenario_12_only_a_busy_reader_gets_a_larger_window)
{
	uint64_t deadline;
	reeve_stream_t *s;
	uint32_t sent = 0, left = WINDOW;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t id = 1; id < 2000; id += 2) { /* the acknowledgement grants nothing */
		s = rvt_raw_inbound(&r, id);
		reeve_close(s);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, id, 0);
		rvt_peer_put(&r.p, RVT_WU, RVT_FIN, id, 0);
	}
	rvt_peer_want_none(&r.p);
	s = rvt_raw_inbound(&r, 2001);
	for (uint32_t i = 0; i < 300; i++) { /* a byte now and then */
		rvt_peer_data(&r.p, 0, 2001, 1, i);
		rvt_want_read(s, 1, i);
		(void)poll(NULL, 0, (int)rvt_scale() / 100 * 100);
	}
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).window_max, WINDOW);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 2001, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 2001, 0);
	s = rvt_raw_inbound(&r, 2003);
	deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	while (rvt_stats(r.k).window_max == WINDOW) { /* all there is, again and again */
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		rvt_peer_data(&r.p, 0, 2003, left, sent);
		rvt_want_read(s, left, sent);
		sent += left;
		left = credit(2003);
	}
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 13: windows, bound of the connection, number of streams.  _i: one of each. */

static const uint32_t windows[] = {65536, WINDOW, 1310816, 16 * MIB};
static const uint32_t bounds[] = {MIB, 16 * MIB, 1024 * MIB};
static const uint32_t counts[] = {1, 256, 65536};
#define MOST 256

static reeve_stream_t *opened[MOST], *taken[MOST];

/* All that arrives, whichever stream it comes on: a full connection goes on when any of it is read. */
static void
read_everything(unsigned streams)
{
	uint64_t got[MOST] = {0}, deadline = rvt_now_ms() + (uint64_t)rvt_slow(4 * RVT_WAIT_MS);
	uint8_t *p = malloc(65536);
	unsigned ended = 0;
	reeve_ssize k;

	for (unsigned i = 0; ended < streams; i = (i + 1) % streams) {
		if (taken[i] == NULL)
			continue;
		ck_assert_msg(rvt_now_ms() < deadline, "%u of %u ended", ended, streams);
		ck_assert_int_eq(reeve_deadline(taken[i], REEVE_RD, 0), 0);
		while ((k = reeve_read(taken[i], p, 65536)) > 0)
			for (reeve_ssize j = 0; j < k; j++, got[i]++)
				if (p[j] != rvt_byte(1, got[i]))
					ck_abort_msg("stream %u is wrong at %llu", i,
					    (unsigned long long)got[i]);
		ck_assert_msg(k == 0 || k == REEVE_ETIMEDOUT, "%s", reeve_errname((int)k));
		if (k != 0)
			continue;
		ck_assert_uint_eq(got[i], WINDOW);
		reeve_close(taken[i]);
		taken[i] = NULL;
		ended++;
	}
	free(p);
}

START_TEST(scenario_13_no_stream_is_reset_for_using_its_credit)
{
	struct rvt_wedding w = {.via = RVT_SOCKETPAIR};
	unsigned streams, most = rvt_scale() > 1 ? MOST : 24;
	uint8_t *p = rvt_pattern(1, WINDOW);
	reeve_stream_t *s[2];
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_window = windows[_i / 9];
	cfg.max_recv = bounds[_i / 3 % 3];
	cfg.max_in = counts[_i % 3];
	if (cfg.max_window < WINDOW) { /* less than what every stream begins with */
		reeve_conn_t *pair[2];

		rvt_marry(&n, &w);
		ck_assert_int_eq(reeve_conn_pair(pair, n.rt[0], &cfg), REEVE_EINVAL);
		rvt_divorce(&n);
		free(p);
		return;
	}
	w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
	streams = cfg.max_in < most ? cfg.max_in : most;
	for (unsigned i = 0; i < streams; i++) {
		rvt_stream_pair(&n, 0, s);
		opened[i] = s[0];
		taken[i] = s[1];
	}
	for (unsigned i = 0; i < streams; i++) { /* all that the peer may send; nobody reads */
		ck_assert_int_eq(reeve_write(opened[i], p, WINDOW), WINDOW);
		reeve_close(opened[i]);
	}
	if (cfg.max_recv > 2 * (uint64_t)streams * WINDOW)
		while (rvt_stats(n.k[1]).bytes_in < (uint64_t)streams * WINDOW)
			sched_yield();
	ck_assert_uint_le(
	    rvt_stats(n.k[1]).held, cfg.max_recv + MIB); /* and what one read brings */
	read_everything(streams);
	for (int i = 0; i < 2; i++) {
		rvt_no_streams(n.k[i]);
		ck_assert_uint_eq(rvt_stats(n.k[i]).resets_out, 0);
	}
	rvt_divorce(&n);
	free(p);
}
END_TEST

/* --- 18: what has been read is given back */

/* Bytes resident, without those that were freed and that the C library has not given back. */
static uint64_t
resident(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
	return RVT_SANITIZED ? 0 : rvt_rss();
}

START_TEST(scenario_18_bytes_that_were_read_are_not_kept)
{
	uint64_t total = (uint64_t)10 * MIB * rvt_scale(), at = 0, before = 0, most;
	uint32_t left = WINDOW, k, piece = 65536;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	while (at < total) {
		k = left < piece ? left : piece;
		rvt_peer_data(&r.p, 0, 1, k, at);
		left -= k;
		rvt_want_read(s, at == 0 ? k - 1 : k, at == 0 ? 0 : at - 1); /* one byte stays */
		at += k;
		if (before == 0)
			before = resident();
		left += credit(1);
		ck_assert_uint_gt(left, 0);
		most = rvt_stats(r.k).window_max + MIB;
		ck_assert_uint_le(rvt_stats(r.k).held, most);
		if (at % (8 * MIB) == 0 || at >= total)
			ck_assert_uint_le(resident(), before + most);
	}
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

static reeve_stream_t *many[1000];

START_TEST(scenario_18_idle_streams_hold_nothing)
{
	uint32_t count = 10 * rvt_scale() < 1000 ? 100 : 1000, group = 100;
	uint64_t before, deadline;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	before = resident();
	for (uint32_t i = 0; i < count; i++)
		many[i] = rvt_raw_inbound(&r, 2 * i + 1);
	for (uint32_t from = 0; from < count; from += group) {
		for (uint32_t i = from; i < from + group; i++) {
			rvt_put_data(&r.p.out, 0, 2 * i + 1, WINDOW, 0);
			rvt_peer_send(&r.p);
		}
		for (uint32_t i = from; i < from + group; i++)
			rvt_want_read(many[i], WINDOW, 0);
	}
	deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	/* A block that the connection has begun to fill, and what a worker keeps for the next burst. */
	while (rvt_stats(r.k).held > 65536 || resident() > before + count * 4096 + SPARE) {
		ck_assert_msg(rvt_now_ms() < deadline, "held %llu, %llu KiB more than before",
		    (unsigned long long)rvt_stats(r.k).held,
		    (unsigned long long)(resident() - before) / 1024);
		(void)poll(NULL, 0, 10);
	}
	for (uint32_t i = 0; i < count; i++)
		reeve_close(many[i]);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("scenarios: windows", {&scenario_12_only_a_busy_reader_gets_a_larger_window, 0},
    {&scenario_13_no_stream_is_reset_for_using_its_credit, 36},
    {&scenario_18_bytes_that_were_read_are_not_kept, 0},
    {&scenario_18_idle_streams_hold_nothing, 0})
