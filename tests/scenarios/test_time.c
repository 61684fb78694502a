/* Keepalive: who lives is left alone, who does not is given up in time.  Scenarios 65, 66 and 67. */
#include <config.h>

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queues/cell.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/line.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"
#include "tests/scenarios/pace.h"

static struct rvt_base base;
static struct rvt_raw r;
static reeve_cfg_t cfg;

static void
ended_with(reeve_ctl_t *k, int rc)
{
	reeve_reason_t why = {.size = sizeof(why)};

	ck_assert_int_eq(reeve_ctl_reason(k, &why), 0);
	ck_assert_msg(why.rc == rc, "%s (%s)", reeve_errname(why.rc), why.id);
}

/* --- two nodes with a line between them */

struct far {
	reeve_rt_t *rt[2];
	reeve_listener_t *l;
	struct rvt_line *line;
	reeve_conn_t *c[2];
	reeve_ctl_t *k[2];
};

static void
far_open(struct far *f, const struct rvt_line_cfg *how, const reeve_cfg_t *with)
{
	struct rvt_line_cfg lc = *how;
	char addr[80], to[80];
	reeve_rt_cfg_t rc;

	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_rt_create(&f->rt[i], &rc), 0);
	ck_assert_int_eq(reeve_listen(&f->l, f->rt[1], "tcp://127.0.0.1:0", with), 0);
	ck_assert_int_gt(reeve_listener_addr(f->l, addr, sizeof(addr)), 0);
	lc.to = strstr(addr, "127");
	f->line = rvt_line_start(&lc);
	ck_assert_ptr_nonnull(f->line);
	snprintf(to, sizeof(to), "tcp://%s", rvt_line_addr(f->line));
	ck_assert_int_eq(reeve_dial(&f->c[0], f->rt[0], to, with, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_listener_accept(f->l, &f->c[1], rvt_slow(RVT_WAIT_MS)), 0);
	for (int i = 0; i < 2; i++)
		f->k[i] = reeve_conn_ctl(f->c[i]);
}

static void
far_close(struct far *f)
{
	for (int i = 0; i < 2; i++)
		reeve_conn_destroy(f->c[i]);
	reeve_listener_destroy(f->l);
	for (int i = 0; i < 2; i++)
		reeve_rt_destroy(f->rt[i]);
	rvt_line_stop(f->line);
}

static void
far_streams(struct far *f, reeve_stream_t *s[2])
{
	ck_assert_int_eq(reeve_open(f->k[0], &s[0], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_accept(f->k[1], &s[1], rvt_slow(RVT_WAIT_MS)), 0);
}

/* --- 65 */

START_TEST(scenario_65_a_slow_busy_line_is_alive)
{
	bool whole = rvt_scale() > 10;
	struct rvt_line_cfg line = {.delay_us = 100000, .mbit = 1};
	uint64_t until;
	struct rvt_flow f[4];
	reeve_stream_t *s[2];
	struct far far;

	base = rvt_base();
	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = whole ? 1000 : (uint32_t)rvt_slow(100);
	cfg.keepalive_timeout_ms = whole ? 2000 : (uint32_t)rvt_slow(250);
	far_open(&far, &line, &cfg);
	far_streams(&far, s);
	memset(f, 0, sizeof(f));
	for (int i = 0; i < 4; i++) {
		f[i].kind = i < 2 ? RVT_FLOW_WRITE : RVT_FLOW_READ;
		f[i].s = s[i % 2];
		f[i].key = i == 0 || i == 3;
		f[i].total = 1u << 30;
		rvt_flow_start(&f[i]);
	}
	/* A pong waits far longer than the patience, behind all that; the bytes themselves are a sign of life. */
	until = rvt_now_ms() + 1200 * rvt_scale();
	while (rvt_now_ms() < until) {
		rvt_pace_us(20000);
		ended_with(far.k[0], 0);
		ended_with(far.k[1], 0);
	}
	ck_assert_int_eq(reeve_abort(far.k[0], REEVE_ECANCELED), 0);
	ck_assert_int_eq(reeve_abort(far.k[1], REEVE_ECANCELED), 0);
	for (int i = 0; i < 4; i++) {
		rvt_flow_join(&f[i]);
		ck_assert(!f[i].wrong && f[i].rc != REEVE_EDEAD);
	}
	ck_assert_uint_gt(f[2].done + f[3].done, 20000);
	reeve_close(s[0]);
	reeve_close(s[1]);
	far_close(&far);
	rvt_base_check(&base);
}
END_TEST

#define EVERY_MS 100 /* ping after, and patience */

static void
open_impatient(void)
{
	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(EVERY_MS);
	cfg.write_ms = REEVE_OFF;
	cfg.max_recv = 1u << 20;
	rvt_raw_open_tcp(&r, REEVE_LISTENER, &cfg);
}

/* It ends with REEVE_EDEAD when the silence since (ms) has lasted for both times, and soon. */
static void
want_death(uint64_t since)
{
	reeve_op_t op;
	uint64_t took, ms = 2 * (uint64_t)rvt_slow(EVERY_MS);

	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(r.k, &op);
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_EDEAD);
	took = rvt_now_ms() - since;
	ck_assert_uint_ge(took + 1, ms);
	ck_assert_uint_lt(took, ms + ms / 5 + (uint64_t)rvt_slow(500));
	ended_with(r.k, REEVE_EDEAD);
}

START_TEST(scenario_65_bytes_are_a_sign_of_life_and_silence_is_not)
{
	reeve_stream_t *s;
	uint64_t until, last = 0, from = 0;

	base = rvt_base();
	open_impatient();
	r.p.pings = RVT_PINGS_MUTE;
	s = rvt_raw_inbound(&r, 1);
	until = rvt_now_ms() + 5 * (uint64_t)rvt_slow(EVERY_MS) + 100 * rvt_scale();
	while (rvt_now_ms() < until) {
		last = rvt_now_ms();
		rvt_peer_data(&r.p, 0, 1, 100, from);
		rvt_want_read(s, 100, from);
		from += 100;
		rvt_pace_us(5000);
	}
	want_death(last);
	ck_assert_int_eq(reeve_write(s, "x", 1), REEVE_EDEAD);
	reeve_close(s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

/* Our own slowness: nobody reads, so that the connection is not read either.  The peer is not to blame. */
START_TEST(scenario_65_a_peer_we_do_not_listen_to_is_not_given_up)
{
	const uint32_t window = 256 * 1024;
	reeve_stream_t *s[6];
	uint64_t until;

	base = rvt_base();
	open_impatient();
	r.p.pings = RVT_PINGS_MUTE;
	for (uint32_t i = 0; i < 6; i++)
		s[i] = rvt_raw_inbound(&r, 1 + 2 * i);
	for (uint32_t i = 0; i < 6; i++)
		rvt_put_data(&r.p.out, 0, 1 + 2 * i, window, 0);
	ck_assert(rvt_peer_try_send(&r.p)); /* the last part waits in the kernel */
	until = rvt_now_ms() + 5 * (uint64_t)rvt_slow(EVERY_MS);
	while (rvt_now_ms() < until) {
		ended_with(r.k, 0);
		rvt_pace_us(10000);
	}
	r.p.pings = RVT_PINGS_ANSWER;
	for (uint32_t i = 0; i < 6; i++)
		rvt_want_read(s[i], window, 0);
	for (uint32_t i = 0; i < 6; i++)
		reeve_close(s[i]);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

struct held_up {
	reeve_msg_t msg[2];
	struct rvq_cell32 inside, leave;
};

static void
hold_up(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct held_up *h = arg;

	(void)self;
	if (msg != &h->msg[0])
		return;
	rvq_cell32_put(&h->inside, 1);
	while (!rvq_cell32_get(&h->leave))
		rvt_pace_us(1000);
	reeve_actor_post(self, &h->msg[1]); /* busy, also in the next round */
}

/* Our own standstill: the process was stopped, or a callback took its time.  What came meanwhile counts. */
START_TEST(scenario_65_a_standstill_of_ours_is_no_silence_of_the_peer)
{
	struct held_up h;
	reeve_stream_t *s;
	reeve_actor_t *a;
	uint64_t until;

	base = rvt_base();
	open_impatient();
	s = rvt_raw_inbound(&r, 1);
	for (unsigned i = 0; i < 3; i++) {
		memset(&h, 0, sizeof(h));
		ck_assert_int_eq(reeve_actor_spawn(&a, r.rt, hold_up, &h, NULL), 0);
		reeve_actor_post(a, &h.msg[0]);
		while (!rvq_cell32_get(&h.inside))
			sched_yield();
		until = rvt_now_ms() + 3 * (uint64_t)rvt_slow(EVERY_MS);
		while (rvt_now_ms() < until)
			rvt_pace_us(10000);
		rvt_peer_data(&r.p, 0, 1, 10, i * 10);
		rvq_cell32_put(&h.leave, 1);
		rvt_want_read(s, 10, i * 10);
		rvt_peer_barrier(&r.p);
		reeve_actor_unref(a);
	}
	reeve_close(s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

/* --- 66 */

#define WRITERS 32

#define SAMPLES 15

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What passed the line before the answer to a ping came back. */
static uint64_t
before_pong(struct far *far)
{
	uint64_t at = rvt_line_total(far->line, RVT_UP);

	ck_assert_int_eq(reeve_ping(far->k[0], rvt_slow(2 * RVT_WAIT_MS), NULL), 0);
	return rvt_line_total(far->line, RVT_UP) - at;
}

/* What passed before an acknowledgement: the next open of the far end waits for it. */
static uint64_t
before_ack(struct far *far)
{
	reeve_stream_t *a, *b, *t[2];
	uint64_t at;

	ck_assert_int_eq(reeve_open(far->k[1], &a, rvt_slow(2 * RVT_WAIT_MS)), 0);
	at = rvt_line_total(far->line, RVT_UP);
	ck_assert_int_eq(reeve_accept(far->k[0], &t[0], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_open(far->k[1], &b, rvt_slow(2 * RVT_WAIT_MS)), 0);
	at = rvt_line_total(far->line, RVT_UP) - at;
	ck_assert_int_eq(reeve_accept(far->k[0], &t[1], rvt_slow(RVT_WAIT_MS)), 0);
	reeve_close(a);
	reeve_close(b);
	reeve_close(t[0]);
	reeve_close(t[1]);
	return at;
}

/* The median: a thread that the machine holds up lets more pass. */
static void
want_ahead(const char *what, uint64_t *bytes, unsigned n, uint64_t bound)
{
	qsort(bytes, n, sizeof(*bytes), by_size);
	ck_assert_msg(bytes[n / 2] < bound, "%s: behind %llu bytes, at most %llu", what,
	    (unsigned long long)bytes[n / 2], (unsigned long long)bound);
}

START_TEST(scenario_66_pings_and_acknowledgements_pass_the_bulk)
{
	/* 10 Mbit/s, and what a ping has to wait for: 128 KiB that the kernel has not sent, the line's own bytes and its
	 * four small socket buffers (the kernel doubles them), a frame; and 50 ms of ways and threads. */
	struct rvt_line_cfg line = {.mbit = 10, .delay_us = 5000, .buffer = 16384};
	const uint64_t bound = (128 + 16 + 4 * 32 + 16) * 1024 + 50 * 1250;
	unsigned n = rvt_scale() > 10 ? 20 * SAMPLES : SAMPLES;
	uint64_t *pong = calloc(n, sizeof(*pong)), *ack = calloc(n, sizeof(*ack));
	struct rvt_flow w[WRITERS], rd[WRITERS];
	reeve_stream_t *s[WRITERS][2];
	struct far far;

	base = rvt_base();
	reeve_cfg_init(&cfg);
	cfg.max_unacked = 1;
	far_open(&far, &line, &cfg);
	for (unsigned i = 0; i < WRITERS; i++) {
		far_streams(&far, s[i]);
		w[i] = (struct rvt_flow){.kind = RVT_FLOW_WRITE, .s = s[i][0], .key = i};
		rd[i] = (struct rvt_flow){.kind = RVT_FLOW_READ, .s = s[i][1], .key = i};
		w[i].total = rd[i].total = 1u << 30;
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		rvt_flow_start(&w[i]);
		rvt_flow_start(&rd[i]);
	}
	while (rvt_line_total(far.line, RVT_UP) < 200000) /* all is full */
		rvt_pace_us(5000);
	for (unsigned i = 0; i < n; i++) {
		pong[i] = before_pong(&far);
		if (i % 3 == 0)
			ack[i / 3] = before_ack(&far);
	}
	want_ahead("ping", pong, n, bound);
	want_ahead("acknowledgement", ack, n / 3, bound);
	(void)reeve_abort(far.k[0], REEVE_ECANCELED);
	(void)reeve_abort(far.k[1], REEVE_ECANCELED);
	for (unsigned i = 0; i < WRITERS; i++) {
		rvt_flow_join(&w[i]);
		rvt_flow_join(&rd[i]);
		ck_assert(!rd[i].wrong); /* order is kept */
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
	far_close(&far);
	free(pong);
	free(ack);
	rvt_base_check(&base);
}
END_TEST

/* --- 67 */

enum hole { IDLE, NEVER_READS, FULL_SENDER, HOLES };

START_TEST(scenario_67_a_black_hole_is_given_up)
{
	struct rvt_call w = {.kind = RVT_CALL_WRITE, .n = 16u << 20};
	uint64_t since = rvt_now_ms();

	base = rvt_base();
	open_impatient();
	if (_i == IDLE)
		r.p.pings = RVT_PINGS_MUTE;
	r.p.end = _i == NEVER_READS;
	if (_i == FULL_SENDER) {
		w.s = rvt_raw_inbound(&r, 1);
		w.p = calloc(1, w.n);
		since = rvt_now_ms();
		rvt_peer_put(&r.p, RVT_WU, 0, 1, 64u << 20);
		rvt_call_start(&w);
		rvt_raw_stalled(&r);
	}
	want_death(since);
	if (_i == FULL_SENDER) {
		(void)rvt_call_end(&w);
		ck_assert_int_eq(reeve_write(w.s, w.p, 1), REEVE_EDEAD);
		free(w.p);
	}
	reeve_close(w.s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

/* The loopback device of a network of our own, up or down.  False: not possible here. */
static bool
loopback(bool up)
{
	struct ifreq q = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), rc;

	q.ifr_flags = up ? IFF_UP : 0;
	rc = ioctl(fd, SIOCSIFFLAGS, &q);
	close(fd);
	return rc == 0;
}

START_TEST(scenario_67_packets_that_vanish_end_the_connection)
{
	struct rvt_call w = {.kind = RVT_CALL_WRITE, .n = 16u << 20};
	uint64_t since;

	/* A process without threads may move to a network where nobody else is. */
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return;
	if (!loopback(true))
		return;
	base = rvt_base();
	open_impatient();
	w.s = rvt_raw_inbound(&r, 1);
	since = rvt_now_ms();
	rvt_peer_barrier(&r.p);
	ck_assert(loopback(false));
	if (_i) { /* with a full send buffer */
		w.p = calloc(1, w.n);
		rvt_call_start(&w);
	}
	want_death(since);
	if (_i) {
		(void)rvt_call_end(&w);
		free(w.p);
	}
	reeve_close(w.s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: time", {&scenario_65_a_slow_busy_line_is_alive, 0},
    {&scenario_65_bytes_are_a_sign_of_life_and_silence_is_not, 0},
    {&scenario_65_a_peer_we_do_not_listen_to_is_not_given_up, 0},
    {&scenario_65_a_standstill_of_ours_is_no_silence_of_the_peer, 0},
    {&scenario_66_pings_and_acknowledgements_pass_the_bulk, 0},
    {&scenario_67_a_black_hole_is_given_up, HOLES},
    {&scenario_67_packets_that_vanish_end_the_connection, 2})
