/* Scenario 69: somebody sets the clock.  This program's own clock_gettime, time and gettimeofday tell a wall clock
 * that jumps; what the library does with it shows, and that it never asks. */
#include <config.h>

#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "queues/cell.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/scenarios/pace.h"

#define HOUR 3600

static struct rvq_cell32 hours; /* added to the wall clock, plus 100 */
static struct rvq_cell32 asked; /* how often the wall clock was */
static struct rvq_cell32 stop;

static time_t
step(void)
{
	(void)rvq_cell32_add(&asked, 1);
	return ((time_t)rvq_cell32_get(&hours) - 100) * HOUR;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI))
		ts->tv_sec += step();
	return rc;
}

time_t
time(time_t *out)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	if (out != NULL)
		*out = ts.tv_sec;
	return ts.tv_sec;
}

int
gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

/* An hour forward, two back, again and again. */
static void *
jump(void *arg)
{
	uint32_t *ms = arg;

	for (unsigned i = 0; !rvq_cell32_get(&stop); i++) {
		rvq_cell32_put(&hours, i % 2 == 0 ? 101 : 99);
		rvt_pace_us(*ms * 1000);
	}
	return NULL;
}

static void
want_on_time(struct rvt_call *c, uint64_t ms)
{
	ck_assert_int_eq(rvt_call_end(c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c->ms + 1, ms);
	ck_assert_uint_lt(c->ms, ms + 100 + (uint64_t)rvt_slow(400));
}

START_TEST(scenario_69_a_clock_that_is_set_ends_and_delays_nothing)
{
	struct rvt_wedding how = {.via = (enum rvt_via)_i};
	uint32_t ms = rvt_scale() > 10 ? 4000 : 300, every = ms / 10, before;
	struct rvt_call rd = {.kind = RVT_CALL_READ, .n = 1};
	struct rvt_call ac = {.kind = RVT_CALL_ACCEPT, .timeout_ms = ms};
	struct rvt_flow w = {.kind = RVT_FLOW_WRITE, .total = 20u << 20};
	struct rvt_flow r = {.kind = RVT_FLOW_READ, .total = 20u << 20};
	struct rvt_base base = rvt_base();
	reeve_stream_t *s[2], *t[2];
	struct rvt_nodes n;
	reeve_cfg_t cfg;
	reeve_op_t op;
	uint64_t start;
	pthread_t th;
	uint8_t b;

	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = 50;
	cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(1000);
	how.cfg[0] = how.cfg[1] = &cfg;
	rvq_cell32_put(&hours, 100);
	before = rvq_cell32_get(&asked);
	ck_assert_int_eq(pthread_create(&th, NULL, jump, &every), 0);
	rvt_marry(&n, &how);
	rvt_stream_pair(&n, 0, s);
	rvt_stream_pair(&n, 1, t);
	w.s = s[0];
	r.s = s[1];
	rvt_flow_start(&w);
	rvt_flow_start(&r);
	rd.s = t[0];
	rd.p = &b;
	ac.k = n.k[1];
	ck_assert_int_eq(reeve_deadline(t[0], REEVE_RD, ms), 0);
	reeve_op_init(&op, NULL, NULL);
	op.timeout_ms = ms;
	start = rvt_now_ms();
	reeve_read_async(t[1], &op); /* a request that nobody answers */
	rvt_call_start(&rd);
	rvt_call_start(&ac);
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_ETIMEDOUT);
	start = rvt_now_ms() - start;
	ck_assert_uint_ge(start + 1, ms);
	ck_assert_uint_lt(start, ms + 100 + (uint64_t)rvt_slow(400));
	want_on_time(&ac, ms);
	ck_assert_int_eq(rvt_call_end(&rd), REEVE_ETIMEDOUT);
	rvt_flow_end(&w);
	rvt_flow_end(&r);
	ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), 0);
	for (int i = 0; i < 2; i++) {
		reeve_close(s[i]);
		reeve_close(t[i]);
	}
	rvt_divorce(&n);
	rvq_cell32_put(&stop, 1);
	pthread_join(th, NULL);
	ck_assert_uint_eq(rvq_cell32_get(&asked), before); /* nobody looked at it */
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE(
    "scenarios: clock", {&scenario_69_a_clock_that_is_set_ends_and_delays_nothing, RVT_RECHUNK})
