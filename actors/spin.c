/* spin.c - see spin.h. */
#include <config.h>

#include "actors/spin.h"

#include <sched.h>

#include <reeve/conn.h>

#include "lib/clock.h"

#define SHORT      4 /* times the look: a sleep so short, with its wake-up, might have been a look */
#define MISSES_MAX 127

static bool
alone(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2;
}

uint32_t
rva_spin_us(uint32_t wanted)
{
	if (wanted == 0)
		return alone() ? 0 : RVA_SPIN_US;
	return wanted == REEVE_OFF ? 0 : wanted;
}

void
rva_spin_init(struct rva_spin *s, uint32_t us)
{
	s->us = us;
	s->skip = s->misses = 0;
}

/* Look until `until`, or until somebody has taken the turn.  Events found. */
static unsigned
look(struct rva_poller *p, struct rva_events *e, const struct rvq_waker *waker, uint64_t until)
{
	unsigned n;

	for (;;) {
		n = rva_poller_wait(p, e, 0, 0);
		if (n > 0 || (waker != NULL && rvq_waker_lent(waker)) || rv_clock_us() >= until)
			return n;
		(void)sched_yield();
	}
}

static void
hit(struct rva_spin *s)
{
	s->misses /= 2;
}

static void
missed(struct rva_spin *s)
{
	s->misses = s->misses < MISSES_MAX ? (uint8_t)(2 * s->misses + 1) : UINT8_MAX;
	s->skip = s->misses;
}

static void
slept(struct rva_spin *s, uint32_t us, uint64_t since)
{
	if (s->skip > 0 && rv_clock_us() - since < SHORT * us)
		s->skip--;
}

static uint64_t
end_of_look(uint64_t now, uint32_t us, uint64_t deadline)
{
	return deadline - now < us ? deadline : now + us;
}

unsigned
rva_spin_wait(struct rva_spin *s, struct rva_poller *p, struct rva_events *e,
    struct rvq_waker *waker, uint64_t deadline)
{
	uint64_t now = rv_clock_us();
	unsigned n;

	if (s->us == 0 || now >= deadline)
		return rva_poller_wait(p, e, now, deadline);
	if (s->skip == 0) {
		n = look(p, e, waker, end_of_look(now, s->us, deadline));
		if (n > 0) {
			hit(s);
			return n;
		}
		missed(s);
		now = rv_clock_us();
	}
	n = rva_poller_wait(p, e, now, deadline);
	slept(s, s->us, now);
	return n;
}

/* Look until `until`.  True: done. */
static bool
look_at(bool (*done)(void *arg), void *arg, uint64_t until)
{
	for (;;) {
		if (done(arg))
			return true;
		if (rv_clock_us() >= until)
			return false;
		(void)sched_yield();
	}
}

int
rva_spin_park(
    struct rvq_parker *p, bool (*done)(void *arg), void *arg, uint32_t us, uint64_t deadline)
{
	static _Thread_local struct rva_spin mine;
	uint64_t now = rv_clock_us();
	int rc;

	if (us != 0 && mine.skip == 0 && now < deadline) {
		if (look_at(done, arg, end_of_look(now, us, deadline))) {
			hit(&mine);
			return 0;
		}
		missed(&mine);
		now = rv_clock_us();
	}
	rvq_parker_arm(p);
	if (done(arg)) {
		rvq_parker_disarm(p);
		return 0;
	}
	rc = rvq_parker_wait(p, deadline);
	slept(&mine, us, now);
	return rc;
}
