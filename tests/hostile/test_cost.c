/* test_cost.c - what a hostile byte costs: processor time of floods beside that of plain data. */
#include <config.h>

#include "tests/hostile/attacks.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/siege.h"

#include <stdio.h>
#include <string.h>

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

START_TEST(byte_of_a_flood_costs_little_more_than_a_byte_of_data)
{
	const struct attack *a = &attacks[_i];
	double plain, ns;

	if (a->rc == REEVE_EGOAWAY)
		return; /* ends at the first frame */
	plain = cost(attack_named("plain data"));
	ns = cost(a);
	for (int again = 0; again < 4 && ns >= plain * a->ratio; again++) /* somebody else's load */
		ns = cost(a);
	printf("%-40s %8.3f ns a byte, %6.1f times plain data (%.3f)\n", a->name, ns, ns / plain,
	    plain);
	fflush(stdout);
	ck_assert_msg(ns < plain * a->ratio, "%s: %.3f ns a byte, plain data %.3f: %.1f times",
	    a->name, ns, plain, ns / plain);
}
END_TEST

RVT_MAIN_TABLE("cost", {&byte_of_a_flood_costs_little_more_than_a_byte_of_data, NATTACKS})
