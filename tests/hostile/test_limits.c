/* test_limits.c - peers that make us hold or owe as much as they can: streams, bytes, answers, connections. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/siege.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define KB     UINT64_C(1024)
#define MB     (KB * KB)
#define WINDOW 262144u

static struct rvt_siege s;
static reeve_cfg_t cfg;
static reeve_rt_cfg_t rt_cfg;

static void
setup(void)
{
	reeve_cfg_init(&cfg);
	reeve_rt_cfg_init(&rt_cfg);
}

static uint64_t
held(void)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_rt_stats(s.rt, &st), 0);
	return st.held;
}

static void
report(const char *what)
{
	printf("%-40s %6llu KiB of memory, %6llu KiB held, %llu us beside\n", what,
	    (unsigned long long)(s.peak / KB), (unsigned long long)(held() / KB),
	    (unsigned long long)s.worst_us);
	fflush(stdout);
}

/* --- bytes that nobody reads */

/* Streams with a full window each that nobody accepts, as frames of n bytes of body. */
static uint64_t
stuff(struct rvt_peer *p, uint32_t streams, uint32_t n)
{
	uint64_t frames = 0;

	for (uint32_t i = 0; i < streams; i++)
		for (uint32_t at = 0; at < WINDOW; at += n, frames++) {
			rvt_put_data(&p->out, at == 0 ? RVT_SYN : 0, 2 * i + 1, n, at);
			if (p->out.n > 65536)
				ck_assert(rvt_hurl(p, false));
		}
	ck_assert(rvt_hurl(p, false));
	return frames;
}

/* Whatever the size of the frames, unread bytes cost at most twice their number. */
START_TEST(unread_bytes_in_frames_of_any_size_are_bounded)
{
	static const uint32_t sizes[] = {1, 64, 1024, 2048, 16384, 262144};
	uint32_t streams = sizes[_i] == 1 ? 2 + rvt_scale() / 2 : 4 + rvt_scale() / 2;
	uint64_t bytes = (uint64_t)streams * WINDOW, frames;

	setup();
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	frames = rvt_stats(s.k).frames_in;
	frames += stuff(&s.p, streams, sizes[_i]);
	rvt_frames_in(s.k, frames);
	while (rvt_stats(s.k).unread < bytes)
		sched_yield();
	(void)rvt_siege_memory(&s);
	report("bytes that nobody reads");
	ck_assert_uint_eq(rvt_stats(s.k).unread, bytes);
	ck_assert_uint_ge(rvt_stats(s.k).held, bytes);
	ck_assert_uint_le(s.peak, 2 * bytes + MB);
	rvt_siege_end(&s);
}
END_TEST

/* Send what the socket takes now; the rest stays. */
static bool
push(struct rvt_peer *p)
{
	ssize_t n = send(p->fd, p->out.p + p->out.at, p->out.n - p->out.at, MSG_NOSIGNAL);

	p->out.at += n > 0 ? (size_t)n : 0;
	return n > 0;
}

#define ATTACKERS 8

/* The runtime's bound is for all connections together, and those who fill it cannot close it to one that holds little. */
START_TEST(scenario_83_bound_of_the_process_is_kept_and_starves_nobody)
{
	struct rvt_peer p[ATTACKERS];
	reeve_conn_t *c[ATTACKERS];
	uint64_t cap = 4 * MB * (1 + rvt_scale() / 16), until, probes;
	bool moved;

	setup();
	rt_cfg.max_buffered = cap;
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, &rt_cfg);
	for (int i = 0; i < ATTACKERS; i++) {
		rvt_siege_join(&s, &c[i], &p[i], REEVE_LISTENER, &cfg);
		for (uint32_t k = 0; k < 2 * cap / ATTACKERS / WINDOW; k++)
			rvt_put(&p[i].out, RVT_WU, RVT_SYN, 2 * k + 1, 0); /* while there is room */
		rvt_peer_send(&p[i]);
		rvt_peer_barrier(&p[i]);
	}
	for (int i = 0; i < ATTACKERS; i++) {
		for (uint32_t k = 0; k < 2 * cap / ATTACKERS / WINDOW; k++)
			for (uint32_t at = 0; at < WINDOW; at += 16384)
				rvt_put_data(&p[i].out, 0, 2 * k + 1, 16384, at);
	}
	/* Twice the bound is offered; nothing moves any more for a while. */
	for (until = rvt_now_ms() + 200; rvt_now_ms() < until;) {
		moved = false;
		for (int i = 0; i < ATTACKERS; i++)
			moved = push(&p[i]) || moved;
		if (moved)
			until = rvt_now_ms() + 200;
		(void)rvt_siege_memory(&s);
		ck_assert_uint_le(held(), cap + 65536 * (ATTACKERS + 2));
		sched_yield();
	}
	report("bound of the process");
	ck_assert_uint_ge(held(), cap / 4 * 3);
	ck_assert_uint_le(s.peak, cap + cap / 4 + MB);
	probes = rvt_siege_probes(&s);
	for (until = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	     rvt_siege_probes(&s) < probes + 50;)
		ck_assert_msg(rvt_now_ms() < until, "the honest connection stands still");
	for (int i = 0; i < ATTACKERS; i++) {
		reeve_conn_destroy(c[i]);
		rvt_peer_fini(&p[i]);
	}
	rvt_siege_end(&s);
}
END_TEST

RVT_MAIN_TABLE("limits", {&unread_bytes_in_frames_of_any_size_are_bounded, 6},
    {&scenario_83_bound_of_the_process_is_kept_and_starves_nobody, 0})
