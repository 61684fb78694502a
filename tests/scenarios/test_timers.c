/* Scenario 71: deadlines and timers cost nothing once they are over. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/duo.h"
#include "tests/kit/flow.h"
#include "tests/kit/run.h"
#include "tests/scenarios/pace.h"

static uint64_t
heap(const struct rvt_duo *d)
{
	return rvq_gauge_get(&d->alloc.bytes);
}

START_TEST(scenario_71_deadlines_that_are_not_reached_leave_nothing)
{
	unsigned rounds = 200 * rvt_scale();
	struct rvt_base base = rvt_base();
	uint64_t before = 0, blocks = 0;
	struct rvt_duo d;
	uint8_t p[500];

	rvt_duo_start(&d);
	for (unsigned i = 0; i < rounds; i++) {
		if (i == rounds / 10) { /* pools are warm */
			before = heap(&d);
			blocks = rvq_gauge_get(&d.alloc.blocks);
		}
		ck_assert_int_eq(reeve_write(d.s[0], p, sizeof(p)), sizeof(p));
		for (unsigned k = 0; k < sizeof(p); k++) {
			(void)reeve_deadline(d.s[1], REEVE_RD, 60000);
			if (reeve_read(d.s[1], p, 1) != 1)
				ck_abort_msg("read");
		}
	}
	ck_assert_uint_lt(heap(&d), before + (256u << 10));
	ck_assert_uint_le(rvq_gauge_get(&d.alloc.blocks), blocks + 16);
	rvt_duo_end(&d);
	rvt_base_check(&base);
}
END_TEST

/* Operations with a timeout of their own: reads, accepts, opens, pings. */
START_TEST(scenario_71_operations_that_complete_leave_no_timer)
{
	unsigned rounds = 200 * rvt_scale();
	struct rvt_base base = rvt_base();
	uint64_t before = 0;
	reeve_stream_t *s, *t;
	struct rvt_duo d;
	reeve_op_t op;

	rvt_duo_start(&d);
	for (unsigned i = 0; i < rounds; i++) {
		if (i == rounds / 10)
			before = heap(&d);
		reeve_op_init(&op, NULL, NULL);
		op.timeout_ms = 60000;
		reeve_read_async(d.s[1], &op);
		ck_assert_int_eq(reeve_write(d.s[0], "x", 1), 1);
		ck_assert_int_eq(reeve_op_wait(&op), 1);
		reeve_buf_unref(op.buf);
		ck_assert_int_eq(reeve_open(d.k[0], &s, 60000), 0);
		ck_assert_int_eq(reeve_accept(d.k[1], &t, 60000), 0);
		ck_assert_int_eq(reeve_ping(d.k[0], 60000, NULL), 0);
		reeve_close(s);
		reeve_close(t);
	}
	ck_assert_uint_lt(heap(&d), before + (256u << 10));
	rvt_duo_end(&d);
	rvt_base_check(&base);
}
END_TEST

START_TEST(scenario_71_a_thousand_keepalives_a_second_leave_nothing)
{
	struct rvt_base base = rvt_base();
	struct rvt_duo d;
	reeve_cfg_t cfg;
	reeve_stats_t st = {.size = sizeof(st)};
	uint64_t until, before;

	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = 1;
	cfg.keepalive_timeout_ms = 60000;
	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, &cfg);
	rvt_duo_stream(&d);
	until = rvt_ms() + 100;
	while (rvt_ms() < until)
		rvt_pace_us(1000);
	before = heap(&d);
	until = rvt_ms() + 300 * rvt_scale();
	while (rvt_ms() < until)
		rvt_pace_us(10000);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), 0);
	ck_assert_uint_gt(st.frames_out, 10);
	ck_assert_uint_lt(heap(&d), before + (64u << 10));
	rvt_duo_end(&d);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: timers", {&scenario_71_deadlines_that_are_not_reached_leave_nothing, 0},
    {&scenario_71_operations_that_complete_leave_no_timer, 0},
    {&scenario_71_a_thousand_keepalives_a_second_leave_nothing, 0})
