/* test_mplex_memory.c - mplex when memory is short: who waits, who is to blame, who goes on. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <string.h>

#define WINDOW (256u << 10)

static struct rvt_rig r;
static reeve_cfg_t cfg;
static struct rv_budget *budget;

static void
setup(void)
{
	rvt_mp_cfg(&cfg);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* --- memory that is short */

static void
with_budget(uint64_t limit)
{
	rvt_rig_prepare(&r);
	budget = rv_budget_create(r.ar, limit, NULL);
	ck_assert_ptr_nonnull(budget);
	ck_assert_int_eq(rvt_rig_start(&r, REEVE_LISTENER, &cfg, budget), 0);
}

static void
budget_back(uint64_t held)
{
	rvq_gauge_sub(&budget->held, held);
	rvt_notify(&r);
	r.e->ops->end(r.e);
	rvt_notify(&r);
	rv_budget_unref(budget);
	r.e->cfg.budget = NULL;
}

START_TEST(short_memory_is_waited_for)
{
	with_budget(1000000);
	(void)rvt_mp_inbound(&r, 0);
	rvt_mp_feed_data(&r, 0, 10000, 0);
	rvq_gauge_add(&budget->held, 1000000); /* by others */
	rvt_mp_feed_data(&r, 0, 10000, 10000);
	ck_assert(r.e->blocked);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), 10000);
	rvt_mp_tick(&r, 5000); /* it has too little to be blamed */
	ck_assert(r.e->blocked);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + 5000000);
	rvt_no_event(&r);
	rvq_gauge_sub(&budget->held, 1000000);
	rvt_mp_tick(&r, 1);
	ck_assert(!r.e->blocked);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_mp_got(&r, 0), 20000);
	budget_back(0);
}
END_TEST

START_TEST(short_memory_resets_who_has_much_and_drops_it)
{
	with_budget(1000000);
	(void)rvt_mp_inbound(&r, 0);
	rvt_mp_feed_data(&r, 0, WINDOW / 4, 0);
	(void)rvt_mp_inbound(&r, 1);
	rvt_mp_feed_data(&r, 1, 100, 0);
	rvq_gauge_add(&budget->held, 1000000);
	rvt_mp_feed_data(&r, 1, 100, 100);
	ck_assert(r.e->blocked);
	rvt_mp_tick(&r, 5000);
	rvt_notify(&r);
	ck_assert_uint_ne(rvt_event(&r, RV_EV_SLOW, 2).n, 0);
	rvt_no_event(&r);
	budget_back(1000000);
}
END_TEST

/* Handles that nobody reads or closes hold all the memory: the others go on, one piece at a time. */
START_TEST(who_reads_goes_on_without_memory)
{
	struct rv_stream *st;

	with_budget(1000000);
	st = rvt_mp_inbound(&r, 0);
	rvq_gauge_add(&budget->held, 1000000);
	for (unsigned i = 0; i < 10; i++) {
		rvt_mp_feed_data(&r, 0, 1000, 1000 * i);
		ck_assert_uint_eq(rvt_mp_got(&r, 0), 1000 * (i + 1));
		ck_assert(!r.e->blocked);
		r.e->ops->consumed(r.e, st, 1000, r.now);
	}
	budget_back(1000000);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_memory");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, short_memory_is_waited_for);
	tcase_add_test(t, short_memory_resets_who_has_much_and_drops_it);
	tcase_add_test(t, who_reads_goes_on_without_memory);
	return rvt_run_tcase("mplex_memory", t);
}
