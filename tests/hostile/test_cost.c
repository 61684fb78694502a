/* test_cost.c - what a hostile byte costs: processor time of floods beside that of plain data. */
#include <config.h>

#include "tests/hostile/attacks.h"
#include "tests/kit/base.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/siege.h"

#include <stdio.h>
#include <string.h>

#define CRUMBS_RATIO 300
#define TRIES        7
/* Plain data is copied by the system, which no sanitizer slows down. */
#define SANITIZED (RVT_SANITIZED ? 4 : 1)

/* Nanoseconds of processor time (all threads but the attacker's) that a byte of the attack costs. */
static double
cost(const struct attack *a)
{
	uint64_t enough = (uint64_t)(a->large ? 64 : 6) << 20;
	struct rvt_raw r;
	struct sink k;
	struct assault t = {.a = a, .p = &r.p, .read = true};
	reeve_cfg_t cfg;
	int64_t ns;

	reeve_cfg_init(&cfg);
	cfg.churn_burst = REEVE_OFF;
	rvt_raw_open(&r, REEVE_LISTENER, &cfg);
	sink_begin(&k, r.k, &r.p);
	ns = (int64_t)rvt_others_cpu_ns();
	for (uint64_t i = 0; t.bytes < enough; i += 64)
		if (!assault(&t, i, i + 64))
			break;
	(void)rvt_frames_in(r.k, t.frames);
	ns = (int64_t)rvt_others_cpu_ns() - ns;
	sink_end(&k);
	rvt_raw_fini(&r);
	return (double)ns / (double)t.bytes;
}

/* An attack beside its yardstick, each measured several times unless the first ones are clear: the least that the attack
 * cost, and the median of the yardstick.  What else the machine does makes either seem dearer, never cheaper. */
struct weighed {
	double ns, plain;
};

static struct weighed
weigh(double (*costs)(void *arg), void *arg, double most)
{
	double plain[TRIES];
	struct weighed w = {.ns = 1e9};

	for (unsigned n = 0; n < TRIES; n++) {
		double ns;

		plain[n] = cost(attack_named("plain data"));
		ns = costs(arg);
		w.ns = ns < w.ns ? ns : w.ns;
		w.plain = rvt_median(plain, n + 1);
		if (w.ns < w.plain * most)
			break;
	}
	return w;
}

static double
cost_of_attack(void *arg)
{
	return cost(arg);
}

START_TEST(byte_of_a_flood_costs_little_more_than_a_byte_of_data)
{
	struct attack a = attacks[_i];
	double most = a.ratio * SANITIZED;
	struct weighed w;

	if (a.rc == REEVE_EGOAWAY)
		return; /* ends at the first frame */
	w = weigh(cost_of_attack, &a, most);
	printf("%-40s %8.3f ns a byte, %6.1f times plain data (%.3f)\n", a.name, w.ns,
	    w.ns / w.plain, w.plain);
	fflush(stdout);
	ck_assert_msg(w.ns < w.plain * most, "%s: %.3f ns a byte, plain data %.3f: %.1f times",
	    a.name, w.ns, w.plain, w.ns / w.plain);
}
END_TEST

static void *
writer_main(void *arg)
{
	static const uint8_t zeroes[65536];

	while (reeve_write(arg, zeroes, sizeof(zeroes)) > 0)
		;
	return NULL;
}

/* Nanoseconds of a byte of credit that comes one at a time to a stream that has bytes to send: each may become a frame
 * of one byte.  frames: what left for each that came. */
static double
cost_of_crumbs(void *frames)
{
	const struct attack *a = attack_named("window updates of one byte");
	struct rvt_raw r;
	struct assault t = {.a = a, .p = &r.p, .read = true};
	reeve_stream_t *s;
	reeve_stats_t before, after;
	pthread_t writer;
	int64_t ns;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	ck_assert_int_eq(pthread_create(&writer, NULL, writer_main, s), 0);
	while (rvt_stats(r.k).bytes_out < 262144) /* the first credit */
		ck_assert(rvt_hurl(&r.p, true));
	before = rvt_stats(r.k);
	ns = (int64_t)rvt_others_cpu_ns();
	for (uint64_t i = 0; t.bytes < 4u << 20; i += 64)
		ck_assert(assault(&t, i, i + 64));
	(void)rvt_frames_in(r.k, before.frames_in + t.frames);
	ns = (int64_t)rvt_others_cpu_ns() - ns;
	after = rvt_stats(r.k);
	*(double *)frames = (double)(after.frames_out - before.frames_out) / (double)t.frames;
	ck_assert_int_eq(reeve_reset(s, 0), 0);
	pthread_join(writer, NULL);
	reeve_close(s);
	rvt_raw_fini(&r);
	return (double)ns / (double)t.bytes;
}

START_TEST(credit_in_crumbs_costs_little_more_than_data)
{
	double frames, most = CRUMBS_RATIO * SANITIZED;
	struct weighed w = weigh(cost_of_crumbs, &frames, most);

	printf("%-40s %8.3f ns a byte, %6.1f times plain data (%.3f), %.3f frames each\n",
	    "credit in crumbs for a busy stream", w.ns, w.ns / w.plain, w.plain, frames);
	ck_assert_msg(w.ns < w.plain * most, "%.3f ns, plain data %.3f", w.ns, w.plain);
	ck_assert(frames < 1.1);
}
END_TEST

RVT_MAIN_TABLE("cost", {&byte_of_a_flood_costs_little_more_than_a_byte_of_data, NATTACKS},
    {&credit_in_crumbs_costs_little_more_than_data, 0})
