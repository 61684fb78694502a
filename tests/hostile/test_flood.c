/* test_flood.c - peers that send cheap frames without end: memory, threads, the honest connection beside. */
#include <config.h>

#include "tests/hostile/attacks.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/siege.h"

#include <stdio.h>

#define STEP  512
#define KB    UINT64_C(1024)
#define COUNT 100000u /* frames, times the scale: ten million in a soak */

static struct rvt_siege s;
static struct sink k;
static reeve_cfg_t cfg;

static void
setup(void)
{
	reeve_cfg_init(&cfg);
	cfg.write_ms = 120000; /* longer than any flood */
}

static void
begin(void)
{
	rvt_siege_begin(&s, REEVE_LISTENER, &cfg, NULL);
	sink_begin(&k, s.k, &s.p);
}

/* Everything that was asked for has been answered: a ping of ours finds its place. */
static void
settled(void)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	reeve_stats_t st;

	do {
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		rvt_peer_receive(&s.p); /* the last of them need room */
		st = rvt_stats(s.k);
	} while (st.frames_out < st.pings_in + st.streams_refused);
}

/* One whole attack, which ends with rc, and id for the reason (0: it lives).  True: it lives. */
static bool
rush(const struct attack *a, bool read, int rc, const char *id)
{
	bool lives = true;

	struct assault t = {.a = a, .p = &s.p, .read = read};
	uint64_t n = (uint64_t)COUNT * rvt_scale();

	if (a->large)
		n /= 1000;
	for (uint64_t i = 0; i < n; i += STEP) {
		lives = assault(&t, i, i + STEP < n ? i + STEP : n);
		(void)rvt_siege_memory(&s);
		if (!lives)
			break;
	}
	if (lives && (rc == 0 || (a->may && read)))
		lives = rvt_frames_in(s.k, t.frames);
	else
		lives = false;
	if (rc == 0)
		ck_assert(lives);
	else if (!lives)
		rvt_ended_with(s.k, rc, id);
	(void)rvt_siege_memory(&s);
	printf("%-38s answers %s: %9llu bytes, %4llu KiB of memory, %llu us beside\n", a->name,
	    read ? "read  " : "unread", (unsigned long long)t.bytes,
	    (unsigned long long)(s.peak / KB), (unsigned long long)rvt_siege_worst_us(&s));
	fflush(stdout);
	ck_assert_msg(
	    s.peak <= a->memory_kb * KB, "%s: %llu bytes", a->name, (unsigned long long)s.peak);
	return lives;
}

static void
end(void)
{
	sink_end(&k);
	rvt_siege_end(&s);
}

START_TEST(flood_is_bounded_and_harms_nobody_else)
{
	const struct attack *a = &attacks[_i];

	setup();
	begin();
	if (rush(a, true, a->rc, a->id)) { /* the attacked connection still works */
		settled();
		rvt_peer_barrier(&s.p);
	}
	end();
}
END_TEST

/* With the limit on it turned off they do not pile up either. */
START_TEST(opening_and_reset_without_a_limit_is_bounded)
{
	setup();
	cfg.churn_burst = REEVE_OFF;
	begin();
	(void)rush(attack_named("opening and reset"), true, 0, NULL);
	end();
}
END_TEST

/* --- an application that accepts whatever comes, at once */

struct taker {
	reeve_op_t op;
	reeve_ctl_t *k;
	struct rvq_gauge n;
};

static void
on_accept(reeve_op_t *op)
{
	struct taker *t = op->arg;

	if (op->res < 0)
		return;
	rvq_gauge_add(&t->n, 1);
	reeve_close(op->stream);
	reeve_accept_async(t->k, op);
}

/* The peer resets what it opened while the application takes it: records go as fast as they come. */
START_TEST(opening_and_reset_beside_an_application_that_accepts_is_bounded)
{
	struct taker t = {.n = {0}};

	setup();
	cfg.churn_burst = REEVE_OFF;
	begin();
	t.k = s.k;
	reeve_op_init(&t.op, on_accept, &t);
	reeve_accept_async(s.k, &t.op);
	(void)rush(attack_named(_i == 0 ? "opening and reset" : "openings with data and an end"),
	    true, 0, NULL);
	printf("%llu of them accepted\n", (unsigned long long)rvq_gauge_get(&t.n));
	ck_assert_uint_gt(rvq_gauge_get(&t.n), 0);
	end();
}
END_TEST

START_TEST(scenario_79_answers_to_pings_that_nobody_reads_are_bounded)
{
	uint32_t last = 0, first = 0;
	reeve_stats_t before, st;
	uint64_t rss, gap = 0;
	struct rvt_frame f;

	setup();
	begin();
	before = rvt_stats(s.k);
	rss = rvt_rss();
	(void)rush(attack_named("pings"), false, 0, NULL);
	if (!RVT_SANITIZED)
		ck_assert_uint_lt(rvt_rss(), rss + 1024 * KB);
	st = rvt_stats(s.k);
	ck_assert_uint_gt(st.pongs_dropped, 0);
	ck_assert_uint_eq(st.pings_in + st.pongs_dropped - before.pings_in, COUNT * rvt_scale());
	/* Now they are read: in order, and the dropped ones are the newest of a run. */
	s.p.pings = RVT_PINGS_KEEP;
	for (uint64_t n = st.pings_in - before.pings_in, i = 0; i < n;) {
		ck_assert(rvt_peer_next(&s.p, &f));
		if (f.type == RVT_PING && f.flags == RVT_SYN)
			continue; /* our own */
		if (f.type != RVT_PING || f.flags != RVT_ACK || f.id != 0 ||
		    (i > 0 && f.len <= last))
			ck_abort_msg(
			    "type %u, flags %u, value %u after %u", f.type, f.flags, f.len, last);
		gap += i > 0 && f.len != last + 1;
		first += gap == 0;
		last = f.len;
		i++;
	}
	ck_assert_uint_ge(first, 32);
	s.p.pings = RVT_PINGS_ANSWER;
	rvt_peer_barrier(&s.p);
	end();
}
END_TEST

START_TEST(scenario_79_pongs_nobody_asked_for_are_ignored)
{
	const char *const names[] = {"pongs nobody asked for", "pings with odd flags"};

	setup();
	begin();
	(void)rush(attack_named(names[_i]), true, 0, NULL);
	settled();
	rvt_peer_want_none(&s.p);
	end();
}
END_TEST

/* Frames of streams that do not exist are asked no answer for: nothing is owed, nothing is closed. */
START_TEST(scenario_80_frames_of_unknown_streams_owe_nothing)
{
	setup();
	begin();
	(void)rush(attack_named("empty data of unknown streams"), false, 0, NULL);
	rvt_peer_want_none(&s.p);
	ck_assert_uint_eq(rvt_stats(s.k).resets_out, 0);
	end();
}
END_TEST

START_TEST(scenario_80_refusals_that_nobody_reads_end_the_connection)
{
	const char *const names[] = {
	    "openings", "openings with data", "openings with data and an end"};

	setup();
	begin();
	(void)rush(attack_named(names[_i]), false, REEVE_ELIMIT, "REEVE-YAMUX-0009");
	end();
}
END_TEST

/* A peer that leaves again and again: once is news. */
START_TEST(go_aways_without_end_leave_the_streams_alone)
{
	setup();
	begin();
	(void)rush(attack_named("go-aways"), false, 0, NULL);
	s.p.end = false;
	rvt_peer_data(&s.p, RVT_FIN, 1, 100, 0);
	rvt_peer_barrier(&s.p);
	ck_assert_uint_eq(rvt_stats(s.k).bytes_in, 100);
	end();
}
END_TEST

RVT_MAIN_TABLE("flood", {&flood_is_bounded_and_harms_nobody_else, NATTACKS},
    {&opening_and_reset_without_a_limit_is_bounded, 0},
    {&opening_and_reset_beside_an_application_that_accepts_is_bounded, 2},
    {&scenario_79_answers_to_pings_that_nobody_reads_are_bounded, 0},
    {&scenario_79_pongs_nobody_asked_for_are_ignored, 2},
    {&scenario_80_frames_of_unknown_streams_owe_nothing, 0},
    {&scenario_80_refusals_that_nobody_reads_end_the_connection, 3},
    {&go_aways_without_end_leave_the_streams_alone, 0})
