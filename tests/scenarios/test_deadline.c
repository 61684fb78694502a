/* Scenario 72: deadlines that are moved under a call. */
#include <config.h>

#include <stdlib.h>

#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/scenarios/pace.h"

static struct rvt_raw r;
static struct rvt_base base;

/* A call that sleeps: a read, or a write without credit. */
static void
sleeper(struct rvt_call *c, bool write, int64_t deadline_ms)
{
	*c = (struct rvt_call){.kind = write ? RVT_CALL_WRITE : RVT_CALL_READ};
	c->n = write ? 2u << 20 : 1;
	c->p = rvt_pattern(1, c->n);
	c->s = rvt_raw_inbound(&r, 1);
	ck_assert_int_eq(reeve_deadline(c->s, REEVE_RD | REEVE_WR, deadline_ms), 0);
	rvt_call_start(c);
	if (write)
		(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_call_asleep(c);
}

static void
want_timeout(struct rvt_call *c, bool write)
{
	reeve_ssize rc = rvt_call_end(c);

	/* A write tells what was taken of it. */
	ck_assert_msg(write ? rc > 0 && rc < (reeve_ssize)c->n : rc == REEVE_ETIMEDOUT, "%td", rc);
}

static void
still_usable(struct rvt_call *c)
{
	ck_assert_int_eq(reeve_deadline(c->s, REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_peer_data(&r.p, 0, 1, 10, 0);
	rvt_want_read(c->s, 10, 0);
	reeve_close(c->s);
	rvt_raw_fini(&r);
	free(c->p);
	rvt_base_check(&base);
}

START_TEST(scenario_72_a_deadline_set_to_the_past_ends_a_call)
{
	struct rvt_call c;
	uint64_t start;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	sleeper(&c, _i != 0, -1);
	start = rvt_now_ms();
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_RD | REEVE_WR, 0), 0);
	want_timeout(&c, _i != 0);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(50) + 200);
	still_usable(&c);
}
END_TEST

START_TEST(scenario_72_a_deadline_moved_away_lets_a_call_sleep)
{
	uint64_t unit = rvt_scale() > 10 ? 1000 : 100, start = rvt_now_ms(), took;
	struct rvt_call c;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	sleeper(&c, _i != 0, (int64_t)unit * 6);
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_RD | REEVE_WR, (int64_t)unit * 9), 0);
	want_timeout(&c, _i != 0);
	took = rvt_now_ms() - start;
	ck_assert_uint_ge(took, 9 * unit - 1);
	ck_assert_uint_lt(took, 10 * unit + (uint64_t)rvt_slow(1000));
	still_usable(&c);
}
END_TEST

START_TEST(scenario_72_a_deadline_cleared_lets_a_call_sleep_for_ever)
{
	uint64_t until;
	struct rvt_call c;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	sleeper(&c, _i != 0, 600);
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_RD | REEVE_WR, -1), 0);
	until = rvt_now_ms() + 700;
	while (rvt_now_ms() < until)
		rvt_pace_us(10000);
	ck_assert(!rvt_call_done(&c));
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_RD | REEVE_WR, 0), 0);
	want_timeout(&c, _i != 0);
	still_usable(&c);
}
END_TEST

/* A blocking accept has the timeout of its call; one that shall end earlier is an operation. */
START_TEST(scenario_72_an_accept_is_cancelled_and_accepts_again)
{
	struct rvt_call c = {.kind = RVT_CALL_ACCEPT, .timeout_ms = 50};
	reeve_stream_t *s;
	uint64_t start;
	reeve_op_t op;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	reeve_op_init(&op, NULL, NULL);
	reeve_accept_async(r.k, &op);
	start = rvt_now_ms();
	reeve_op_cancel(&op);
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_ECANCELED);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(50) + 200);
	c.k = r.k;
	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	s = rvt_raw_inbound(&r, 1);
	reeve_close(s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: deadlines", {&scenario_72_a_deadline_set_to_the_past_ends_a_call, 2},
    {&scenario_72_a_deadline_moved_away_lets_a_call_sleep, 2},
    {&scenario_72_a_deadline_cleared_lets_a_call_sleep_for_ever, 2},
    {&scenario_72_an_accept_is_cancelled_and_accepts_again, 0})
