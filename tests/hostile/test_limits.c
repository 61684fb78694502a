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
	    (unsigned long long)rvt_siege_worst_us(&s));
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

/* --- a peer that never reads */

#define WRITE  15000u /* one write */
#define BUDGET 16384u /* what a stream may queue, but for the write that crosses it */
#define RECORD 4096u  /* what a stream takes besides */

static void
count_write(reeve_op_t *op)
{
	rvq_gauge_add(op->arg, 1);
}

static struct never {
	reeve_stream_t *st;
	reeve_op_t op[8];
} * never;

/* Open n streams with something to answer on each and never read; accept all, and start eight writes on each. */
static void
owe(unsigned n, struct rvq_gauge *done)
{
	never = calloc(n, sizeof(*never));
	for (uint32_t i = 0; i < n; i++) {
		rvt_put_data(&s.p.out, RVT_SYN, 2 * i + 1, 100, 0);
		rvt_put(&s.p.out, RVT_PING, RVT_SYN, 0, i);
	}
	ck_assert(rvt_hurl(&s.p, false));
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(reeve_accept(s.k, &never[i].st, rvt_slow(RVT_WAIT_MS)), 0);
		for (unsigned k = 0; k < 8; k++) {
			reeve_op_init(&never[i].op[k], count_write, done);
			/* Not of the memory that is counted. */
			reeve_write_async(
			    never[i].st, reeve_buf_alloc(s.far, WRITE), &never[i].op[k]);
		}
	}
}

/* Every stream owes something and has bytes to send: writers wait, what is queued is the sum of the budgets, and the
 * transport that takes nothing ends it. */
START_TEST(scenario_82_peer_that_never_reads_costs_the_send_budgets_only)
{
	unsigned n = 64 * (rvt_scale() < 64 ? rvt_scale() : 64), failed = 0;
	struct rvq_gauge done = {0};
	uint64_t start, taken, out;

	setup();
	cfg.accept_backlog = n;
	cfg.send_budget = BUDGET;
	cfg.write_ms = (uint32_t)rvt_slow(700);
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	start = rvt_now_ms();
	owe(n, &done);
	while (rvt_stats(s.k).stalls_transport == 0)
		sched_yield();
	do { /* until nothing is accepted any more: the honest connection goes round on the same worker */
		taken = rvq_gauge_get(&done);
		for (out = rvt_siege_probes(&s) + 3; rvt_siege_probes(&s) < out;)
			(void)rvt_siege_memory(&s);
	} while (taken != rvq_gauge_get(&done));
	out = rvt_stats(s.k).bytes_out;
	report("a peer that never reads");
	ck_assert_uint_le(taken * WRITE - out, n * (BUDGET + WRITE));
	ck_assert_uint_le(s.peak, n * RECORD + MB);
	rvt_ended_with(s.k, REEVE_ETIMEDOUT, "REEVE-CONN-0003");
	ck_assert_uint_ge(rvt_now_ms() - start, cfg.write_ms - 1);
	while (rvq_gauge_get(&done) < n * 8)
		sched_yield();
	for (unsigned i = 0; i < n; i++) {
		failed += never[i].op[7].res == REEVE_ETIMEDOUT;
		reeve_close(never[i].st);
	}
	ck_assert_uint_ge(failed, n / 2);
	rvt_siege_end(&s);
	free(never);
}
END_TEST

/* --- streams without end */

/* Streams over the limit are reset one by one; those within go on, and each costs no more than is written. */
START_TEST(scenario_83_streams_over_the_limit_are_reset_and_the_others_unharmed)
{
	uint32_t conns = rvt_scale() >= 100 ? 8 : 2,
		 most = 40 * rvt_scale() > 8192 ? 8192 : 80 * rvt_scale();
	uint32_t asked = 10 * most > 100000 ? 100000 : 10 * most, n, refused;
	reeve_stream_t **st;
	struct rvt_peer p;
	struct rvt_frame f;
	reeve_conn_t *c;

	setup();
	cfg.max_in = most;
	cfg.accept_backlog = most;
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	for (uint32_t k = 0; k < conns; k++) {
		uint64_t before = rvt_siege_memory(&s);

		st = calloc(most, sizeof(reeve_stream_t *));
		rvt_siege_join(&s, &c, &p, REEVE_LISTENER, &cfg);
		for (n = refused = 0; n < asked; n++) {
			rvt_put_data(&p.out, RVT_SYN, 2 * n + 1, 20, 0);
			if (n < most) {
				rvt_peer_send(&p);
				ck_assert_int_eq(
				    reeve_accept(reeve_conn_ctl(c), &st[n], rvt_slow(RVT_WAIT_MS)),
				    0);
				rvt_peer_want(&p, RVT_WU, RVT_ACK, 2 * n + 1, 0);
			} else if (n % 1000 == 999 || n == asked - 1) {
				rvt_peer_send(&p);
				for (; refused < n + 1 - most; refused++)
					if (!rvt_peer_next(&p, &f) || f.type != RVT_WU ||
					    f.flags != RVT_RST || f.id != 2 * (most + refused) + 1)
						ck_abort_msg("no reset of stream %u",
						    2 * (most + refused) + 1);
			}
		}
		rvt_peer_want_none(&p);
		ck_assert_uint_eq(rvt_stats(reeve_conn_ctl(c)).streams_open, most);
		ck_assert_uint_le(rvt_siege_memory(&s), before + most * RECORD + MB);
		for (uint32_t i = 0; i < most; i += 17)
			rvt_want_read(st[i], 20, 0);
		printf("%u streams: %llu bytes each\n", most,
		    (unsigned long long)rvt_siege_memory(&s) / most);
		for (uint32_t i = 0; i < most; i++)
			reeve_close(st[i]);
		reeve_conn_destroy(c);
		rvt_peer_fini(&p);
		free(st);
	}
	rvt_siege_end(&s);
}
END_TEST

RVT_MAIN_TABLE("limits", {&unread_bytes_in_frames_of_any_size_are_bounded, 6},
    {&scenario_82_peer_that_never_reads_costs_the_send_budgets_only, 0},
    {&scenario_83_streams_over_the_limit_are_reset_and_the_others_unharmed, 0},
    {&scenario_83_bound_of_the_process_is_kept_and_starves_nobody, 0})
