/* test_distance.c - two nodes with a line between them: what flow control makes of distance.
 *
 * Rates are counted by the line.  A busy machine makes everything late but nothing faster, so what has to be reached
 * is waited for, and what must never happen is looked at all the time. */
#include <config.h>

#include "tests/kit/line.h"
#include "tests/kit/node.h"
#include "tests/kit/run.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 15000
#define PIECE   65536u
#define WINDOW0 262144u

/* A thread that writes zeroes, or reads, until its stream ends. */
struct pump {
	pthread_t thread;
	reeve_stream_t *s;
};

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Until it is true: looks every other millisecond, so that the line has the processor. */
#define UNTIL(cond)                                                                    \
	do {                                                                           \
		uint64_t until_ = now_ms() + WAIT_MS;                                  \
		while (!(cond)) {                                                      \
			ck_assert_msg(now_ms() < until_, "never became true: " #cond); \
			(void)poll(NULL, 0, 2);                                        \
		}                                                                      \
	} while (0)

static void *
write_main(void *arg)
{
	static const uint8_t zeroes[PIECE];
	struct pump *p = arg;

	while (reeve_write(p->s, zeroes, PIECE) > 0)
		;
	return NULL;
}

static void *
read_main(void *arg)
{
	uint8_t into[PIECE];
	struct pump *p = arg;

	while (reeve_read(p->s, into, sizeof(into)) > 0)
		;
	return NULL;
}

static void
pump(struct pump *p, reeve_stream_t *s, void *(*fn)(void *))
{
	p->s = s;
	ck_assert_int_eq(pthread_create(&p->thread, NULL, fn, p), 0);
}

static void
stop(struct rvt_nodes *n, struct pump *p, size_t count)
{
	(void)reeve_abort(n->k[0], 0);
	(void)reeve_abort(n->k[1], 0);
	for (size_t i = 0; i < count; i++)
		pthread_join(p[i].thread, NULL);
}

static reeve_stats_t
stats(reeve_ctl_t *k)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_ctl_stats(k, &st), 0);
	return st;
}

/* Nodes with a line of so many ms there and back. */
static void
marry(struct rvt_nodes *n, uint64_t rtt_ms, uint64_t mbit, uint32_t max_window)
{
	struct rvt_line_cfg line = {.delay_us = rtt_ms * 500, .mbit = mbit};
	reeve_cfg_t cfg;
	struct rvt_wedding w = {.via = RVT_TCP, .line = &line, .cfg = {&cfg, &cfg}};

	reeve_cfg_init(&cfg);
	cfg.max_window = max_window;
	rvt_marry(n, &w);
}

/* The part of the line's rate that passed upwards in the last so many full bins. */
static double
part_of_rate(struct rvt_line *l, uint64_t mbit, size_t width)
{
	static uint32_t bins[4096];
	size_t end = rvt_line_bin(l);
	double sum = 0;

	memset(bins, 0, sizeof(bins));
	(void)rvt_line_bins(l, RVT_UP, bins, 4096);
	ck_assert_uint_lt(end, 4096);
	for (size_t i = end < width ? 0 : end - width; i < end; i++)
		sum += bins[i];
	return sum / ((double)width * RVT_LINE_BIN_MS * (double)mbit * 125);
}

START_TEST(tuned_windows_fill_the_line_and_fixed_ones_do_not)
{
	/* 500 KB are under way: twice the first window.  Half a second is measured, or most of
	 * one where it must not be full: what was held up comes together. */
	const uint64_t mbit = 100, rtt_ms = 40;
	struct rvt_nodes n;
	reeve_stream_t *s[2];
	struct pump p[2];
	uint64_t until;

	marry(&n, rtt_ms, mbit, _i == 0 ? 0 : WINDOW0);
	rvt_stream_pair(&n, 0, s);
	pump(&p[0], s[0], write_main);
	pump(&p[1], s[1], read_main);
	if (_i == 0) {
		UNTIL(part_of_rate(n.line, mbit, 50) >= 0.8);
		ck_assert_uint_gt(stats(n.k[1]).window_max, WINDOW0);
	} else {
		for (until = now_ms() + 1000; now_ms() < until;)
			(void)poll(NULL, 0, 20);
		ck_assert_double_lt(part_of_rate(n.line, mbit, 90), 0.75);
		ck_assert_uint_eq(stats(n.k[1]).window_max, WINDOW0);
	}
	stop(&n, p, 2);
	reeve_stream_unref(s[0]);
	reeve_stream_unref(s[1]);
	rvt_divorce(&n);
}
END_TEST

START_TEST(round_trip_stays_the_paths_under_load_both_ways)
{
	const uint64_t rtt_us = 10000;
	uint64_t us, loaded = 0, off = 0;
	struct rvt_nodes n;
	reeve_stream_t *s[2];
	struct pump p[4];

	marry(&n, rtt_us / 1000, 50, 0);
	for (int i = 0; i < 2; i++)
		UNTIL(reeve_ping(n.k[i], WAIT_MS, &us) == 0 &&
		    stats(n.k[i]).rtt_us <= rtt_us * 12 / 10);
	rvt_stream_pair(&n, 0, s);
	for (int i = 0; i < 2; i++) {
		pump(&p[2 * i], s[i], write_main);
		pump(&p[2 * i + 1], s[i], read_main);
	}
	UNTIL(stats(n.k[0]).bytes_in > WINDOW0 && stats(n.k[1]).bytes_in > WINDOW0);
	/* More measurements than the minimum looks back to. */
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(reeve_ping(n.k[1], WAIT_MS, &us), 0);
		loaded += us > rtt_us * 3 / 2;
		for (int k = 0; k < 2; k++) {
			ck_assert_uint_ge(stats(n.k[k]).rtt_us, rtt_us);
			off += stats(n.k[k]).rtt_us > rtt_us * 3 / 2;
		}
	}
	ck_assert_uint_ge(loaded, 15); /* it was a load */
	ck_assert_uint_le(off, 10);    /* of 40: the machine's own delays */
	stop(&n, p, 4);
	reeve_stream_unref(s[0]);
	reeve_stream_unref(s[1]);
	rvt_divorce(&n);
}
END_TEST

START_TEST(windows_of_idle_streams_do_not_grow)
{
	reeve_stream_t *s[2][2];
	struct rvt_nodes n;
	uint8_t b = 0;

	marry(&n, 10, 50, 0);
	for (int i = 0; i < 2; i++)
		rvt_stream_pair(&n, 0, s[i]);
	/* A byte there and back on one, nothing on the other, over thirty round trips. */
	for (int i = 0; i < 30; i++) {
		for (int k = 0; k < 2; k++) {
			ck_assert_int_eq((int)reeve_write(s[0][k], &b, 1), 1);
			ck_assert_int_eq((int)reeve_read(s[0][1 - k], &b, 1), 1);
		}
	}
	for (int k = 0; k < 2; k++) {
		ck_assert_uint_eq(stats(n.k[k]).window_max, WINDOW0);
		ck_assert_uint_le(stats(n.k[k]).frames_out, 80);
	}
	for (int i = 0; i < 4; i++)
		reeve_stream_unref(s[i / 2][i % 2]);
	rvt_divorce(&n);
}
END_TEST

START_TEST(a_paused_reader_stops_its_sender_at_the_window)
{
	static uint8_t into[PIECE];
	struct rvt_nodes n;
	reeve_stream_t *s[2];
	reeve_stats_t st;
	struct pump p;
	uint64_t passed;

	marry(&n, 20, 50, 0);
	rvt_stream_pair(&n, 0, s);
	pump(&p, s[0], write_main);
	if (_i == 1) /* a window that has grown */
		while (stats(n.k[1]).window_max == WINDOW0)
			ck_assert_int_gt((int)reeve_read(s[1], into, PIECE), 0);
	/* It has stopped when nothing has passed for ten round trips, and what came is the window. */
	UNTIL(stats(n.k[1]).unread > stats(n.k[1]).window_max / 2 &&
	    part_of_rate(n.line, 50, 20) == 0);
	st = stats(n.k[1]);
	ck_assert_uint_le(st.unread, st.window_max);
	if (_i == 0)
		ck_assert_uint_eq(st.unread, WINDOW0);
	passed = rvt_line_total(n.line, RVT_UP);
	UNTIL(reeve_read(s[1], into, PIECE) > 0 && rvt_line_total(n.line, RVT_UP) > passed);
	stop(&n, &p, 1);
	reeve_stream_unref(s[0]);
	reeve_stream_unref(s[1]);
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("distance", {&tuned_windows_fill_the_line_and_fixed_ones_do_not, 2},
    {&round_trip_stays_the_paths_under_load_both_ways, 0},
    {&windows_of_idle_streams_do_not_grow, 0}, {&a_paused_reader_stops_its_sender_at_the_window, 2})
