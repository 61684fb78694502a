/* The timer wheel: order, precision, moving and removing from inside, far deadlines, against a simple model. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "actors/timer.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

#define TICK 1024u

struct timed {
	struct rva_timer t;
	uint64_t fired_at; /* 0: not yet */
	unsigned fired;
	struct rva_wheel *w;
	struct timed *other;
	uint64_t again;
};

static void
fire(struct rva_timer *t, uint64_t now)
{
	struct timed *x = (struct timed *)(void *)t;

	ck_assert(!rva_timer_armed(t));
	x->fired_at = now;
	x->fired++;
}

static void
arm(struct rva_wheel *w, struct timed *x, uint64_t when)
{
	x->t.fn = fire;
	x->w = w;
	rva_timer_set(w, &x->t, when);
}

START_TEST(a_timer_fires_at_its_time_and_not_a_tick_later)
{
	static const uint64_t in[] = {0, 1, 1023, 1024, 1025, 64 * TICK, 64 * TICK + 1, 4096 * TICK,
	    1000000, 262144ull * TICK, 3600000000ull, 20000ull * 1000000};
	struct rva_wheel w;

	for (uint64_t base = 5; base < 9000000; base = base * 7 + 1023) {
		for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
			struct timed x = {.fired = 0};
			uint64_t when = base + in[i], next;

			rva_wheel_init(&w, base);
			ck_assert(rva_wheel_next(&w) == UINT64_MAX);
			arm(&w, &x, when);
			while (x.fired == 0) { /* go where it says, as the worker does */
				next = rva_wheel_next(&w);
				ck_assert(next != UINT64_MAX);
				ck_assert_uint_eq(rva_wheel_advance(&w, next - 1), 0);
				(void)rva_wheel_advance(&w, next);
				x.fired_at = next;
			}
			ck_assert_uint_ge(x.fired_at, when);
			ck_assert_uint_le(x.fired_at, (when > base ? when : base) + 2 * TICK);
			ck_assert(rva_wheel_next(&w) == UINT64_MAX);
		}
	}
}
END_TEST

START_TEST(a_disarmed_timer_does_not_fire)
{
	struct rva_wheel w;
	struct timed x[3] = {{.fired = 0}};

	rva_wheel_init(&w, 0);
	for (int i = 0; i < 3; i++)
		arm(&w, &x[i], 5000);
	rva_timer_clear(&w, &x[1].t);
	rva_timer_clear(&w, &x[1].t);
	rva_timer_set(&w, &x[2].t, UINT64_MAX);
	ck_assert(rva_timer_armed(&x[0].t));
	ck_assert(!rva_timer_armed(&x[1].t));
	ck_assert(!rva_timer_armed(&x[2].t));
	ck_assert_uint_eq(rva_wheel_advance(&w, 100000), 1);
	ck_assert_uint_eq(x[0].fired, 1);
	ck_assert_uint_eq(x[1].fired + x[2].fired, 0);
}
END_TEST

static void
fire_and_meddle(struct rva_timer *t, uint64_t now)
{
	struct timed *x = (struct timed *)(void *)t;

	fire(t, now);
	if (x->other != NULL)
		rva_timer_clear(x->w, &x->other->t);
	if (x->again != 0 && x->fired < 5)
		rva_timer_set(x->w, t, now + x->again);
}

START_TEST(a_timer_arms_itself_again_and_removes_its_neighbour)
{
	struct rva_wheel w;
	struct timed x[10];

	for (uint64_t again = 1; again < 100000; again *= 3) {
		rva_wheel_init(&w, 0);
		memset(x, 0, sizeof(x));
		for (int i = 0; i < 10; i++) {
			arm(&w, &x[i], 3000);
			x[i].t.fn = fire_and_meddle;
			x[i].other = &x[i ^ 1];
			x[i].again = again;
		}
		for (uint64_t now = 0; now < 600000; now += 1000)
			(void)rva_wheel_advance(&w, now);
		for (int i = 0; i < 10; i += 2) /* whoever was first removed the other */
			ck_assert_uint_eq(x[i].fired + x[i + 1].fired, 5);
		ck_assert(rva_wheel_next(&w) == UINT64_MAX);
	}
}
END_TEST

#define MODEL 300

/* Arm, move and remove at random, advance by random steps: exactly those that are due have fired. */
START_TEST(the_wheel_agrees_with_a_list)
{
	struct rva_wheel w;
	static struct timed x[MODEL];
	uint64_t due[MODEL], now = 12345;
	unsigned want[MODEL] = {0};
	uint32_t r = (uint32_t)_i * 7919 + 1;

	memset(x, 0, sizeof(x));
	memset(due, 0xff, sizeof(due));
	rva_wheel_init(&w, now);
	for (int round = 0; round < 3000; round++) {
		for (int k = 0; k < 5; k++) {
			unsigned i = (r = r * 1664525 + 1013904223) >> 8,
				 shift = (r = r * 1664525 + 1013904223) >> 27;

			i %= MODEL;
			r = r * 1664525 + 1013904223;
			due[i] = r % 8 == 0
			    ? UINT64_MAX
			    : now + ((r | UINT64_C(1) << 33) >> shift) % (UINT64_C(1) << 35);
			arm(&w, &x[i], due[i]);
		}
		r = r * 1664525 + 1013904223;
		now += (r % 16 == 0 ? (uint64_t)r * 8 : r % 20000) + 1;
		(void)rva_wheel_advance(&w, now);
		for (int i = 0; i < MODEL; i++) {
			if (due[i] != UINT64_MAX &&
			    x[i].fired != want[i]) { /* fired: was it its time? */
				ck_assert_uint_eq(x[i].fired, want[i] + 1);
				ck_assert_uint_le(due[i], now);
				want[i]++;
				due[i] = UINT64_MAX;
			}
			/* Not fired: at most two ticks late. */
			if (due[i] != UINT64_MAX && due[i] + 2 * TICK <= now)
				ck_abort_msg("due %llu, now %llu", (unsigned long long)due[i],
				    (unsigned long long)now);
			if (x[i].fired != want[i])
				ck_abort_msg("fired though not armed");
		}
	}
}
END_TEST

START_TEST(timers_of_different_ticks_fire_in_their_order)
{
	struct rva_wheel w;
	static struct timed x[500];
	uint64_t last = 0;

	rva_wheel_init(&w, 0);
	memset(x, 0, sizeof(x));
	for (int i = 0; i < 500; i++)
		arm(&w, &x[(i * 37) % 500], (uint64_t)((i * 37) % 500) * 3 * TICK + 1);
	for (uint64_t now = 0; now <= 501u * 3 * TICK; now += TICK)
		(void)rva_wheel_advance(&w, now);
	for (int i = 0; i < 500; i++) {
		ck_assert_uint_eq(x[i].fired, 1);
		ck_assert_uint_gt(x[i].fired_at, last);
		last = x[i].fired_at;
	}
}
END_TEST

/* A worker that slept for a day does not pay for it, nor does a timer of next year cost wake-ups. */
START_TEST(long_idle_is_cheap)
{
	struct rva_wheel w;
	struct timed x = {.fired = 0};
	uint64_t day = UINT64_C(86400000000), now = 0;
	uint64_t began = rvt_ms();
	unsigned wakes = 0;

	rva_wheel_init(&w, 0);
	ck_assert_uint_eq(rva_wheel_advance(&w, 10000 * day), 0);
	now = 10000 * day;
	arm(&w, &x, now + day);
	while (x.fired == 0) {
		now = rva_wheel_next(&w);
		(void)rva_wheel_advance(&w, now);
		ck_assert_uint_lt(++wakes, 20);
	}
	ck_assert_uint_ge(now, 10001 * day);
	x.fired = 0;
	arm(&w, &x, now + 1000); /* due long ago when the worker comes back */
	ck_assert_uint_eq(rva_wheel_advance(&w, now + day), 1);
	ck_assert_uint_lt(rvt_ms() - began, 2000);
}
END_TEST

RVT_MAIN_TABLE("timer", {&a_timer_fires_at_its_time_and_not_a_tick_later, 0},
    {&a_disarmed_timer_does_not_fire, 0}, {&a_timer_arms_itself_again_and_removes_its_neighbour, 0},
    {&timers_of_different_ticks_fire_in_their_order, 0}, {&long_idle_is_cheap, 0},
    {&the_wheel_agrees_with_a_list, 4})
