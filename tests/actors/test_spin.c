/* Looking before sleeping: what a look finds, what looks in vain teach, and how threads on a parker do the same. */
#include <config.h>

#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "actors/spin.h"
#include "lib/clock.h"
#include "queues/cell.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

/* A poller with one eventfd. */
struct rig {
	struct rva_poller p;
	struct rva_events e;
	struct rva_source s;
	struct rva_spin spin;
	int fd;
};

static void
rig_begin(struct rig *r, uint32_t us)
{
	r->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ck_assert_int_ge(r->fd, 0);
	ck_assert_int_eq(rva_poller_init(&r->p), 0);
	ck_assert_int_eq(rva_poller_add_bell(&r->p, r->fd, &r->s), 0);
	rva_spin_init(&r->spin, us);
}

static void
rig_end(struct rig *r)
{
	rva_poller_fini(&r->p);
	close(r->fd);
}

static void
ring(struct rig *r)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(r->fd, &one, sizeof(one)), sizeof(one));
}

/* Waits at most ms, and says what came. */
static unsigned
wait_ms(struct rig *r, unsigned ms)
{
	return rva_spin_wait(&r->spin, &r->p, &r->e, NULL, rv_clock_us() + ms * UINT64_C(1000));
}

START_TEST(what_is_there_is_found_by_the_look)
{
	struct rig r;

	rig_begin(&r, 50);
	r.spin.misses = 7;
	ring(&r);
	ck_assert_uint_eq(wait_ms(&r, RVT_WAIT_MS), 1);
	ck_assert_ptr_eq(r.e.ev[0].data.ptr, &r.s);
	ck_assert_uint_eq(r.spin.misses, 3);
	ck_assert_uint_eq(r.spin.skip, 0);
	rig_end(&r);
}
END_TEST

START_TEST(looks_in_vain_become_rare)
{
	struct rig r;

	rig_begin(&r, 50);
	for (unsigned n = 1; n < 255; n = 2 * n + 1) {
		ck_assert_uint_eq(wait_ms(&r, 1), 0);
		ck_assert_uint_eq(r.spin.misses, n);
		r.spin.skip = 0; /* as if so many short sleeps had gone by */
	}
	for (unsigned n = 0; n < 2; n++) {
		ck_assert_uint_eq(wait_ms(&r, 1), 0);
		ck_assert_uint_eq(r.spin.misses, 255);
		ck_assert_uint_ge(r.spin.skip, 254);
		r.spin.skip = 0;
	}
	rig_end(&r);
}
END_TEST

START_TEST(only_short_sleeps_bring_the_next_look_nearer)
{
	struct rig r;

	rig_begin(&r, 1);
	r.spin.skip = 5;
	ck_assert_uint_eq(wait_ms(&r, 5), 0); /* long, for looks of 1 us */
	ck_assert_uint_eq(r.spin.skip, 5);
	r.spin.us = 1000000;
	ck_assert_uint_eq(wait_ms(&r, 1), 0); /* short, for looks of a second */
	ck_assert_uint_eq(r.spin.skip, 4);
	ring(&r);
	ck_assert_uint_eq(wait_ms(&r, RVT_WAIT_MS), 1); /* asleep it is found as well */
	ck_assert_uint_eq(r.spin.skip, 3);
	rig_end(&r);
}
END_TEST

START_TEST(a_look_ends_at_the_deadline)
{
	struct rig r;
	uint64_t began = rv_clock_us();

	rig_begin(&r, 60000000);
	ck_assert_uint_eq(wait_ms(&r, 2), 0);
	ck_assert_uint_lt(rv_clock_us() - began, 10000000);
	ck_assert_uint_eq(
	    r.spin.skip, 0); /* the look in vain, and a sleep of no length behind it */
	ck_assert_uint_eq(wait_ms(&r, 0), 0); /* no time to look */
	ck_assert_uint_eq(r.spin.misses, 1);
	rig_end(&r);
}
END_TEST

START_TEST(a_look_ends_when_the_turn_is_lent)
{
	struct rig r;
	struct rvq_waker w;

	rig_begin(&r, 60000000);
	ck_assert_int_eq(rvq_waker_init(&w), 0);
	rvq_waker_arm(&w);
	ck_assert(!rvq_waker_lent(&w));
	ck_assert(rvq_waker_borrow(&w));
	ck_assert(rvq_waker_lent(&w));
	ck_assert_uint_eq(
	    rva_spin_wait(&r.spin, &r.p, &r.e, &w, rv_clock_us() + 2000), 0); /* it sleeps */
	ck_assert(rvq_waker_give(&w));
	ck_assert(!rvq_waker_lent(&w));
	rvq_waker_disarm(&w);
	rvq_waker_fini(&w);
	rig_end(&r);
}
END_TEST

START_TEST(nobody_looks_who_is_told_not_to)
{
	struct rig r;

	rig_begin(&r, rva_spin_us(REEVE_OFF));
	ck_assert_uint_eq(r.spin.us, 0);
	ck_assert_uint_eq(wait_ms(&r, 1), 0);
	ck_assert_uint_eq(r.spin.misses, 0);
	ring(&r);
	ck_assert_uint_eq(wait_ms(&r, RVT_WAIT_MS), 1);
	ck_assert_uint_eq(rva_spin_us(7), 7);
	ck_assert(rva_spin_us(0) == 0 || rva_spin_us(0) == RVA_SPIN_US);
	rig_end(&r);
}
END_TEST

/* --- threads on a parker --- */

struct gate {
	struct rvq_parker p;
	struct rvq_cell32 open, waiting;
};

static bool
is_open(void *arg)
{
	struct gate *g = arg;

	rvq_cell32_put(&g->waiting, 1);
	return rvq_cell32_get(&g->open) != 0;
}

static void *
opener(void *arg)
{
	struct gate *g = arg;

	while (rvq_cell32_get(&g->waiting) == 0)
		;
	rvq_cell32_put(&g->open, 1);
	(void)rvq_parker_wake(&g->p);
	return NULL;
}

START_TEST(a_parked_thread_is_woken_in_the_look_or_asleep)
{
	struct gate g;
	pthread_t t;

	rvq_parker_init(&g.p);
	for (unsigned i = 0; i < 200; i++) {
		rvq_cell32_put(&g.open, 0);
		rvq_cell32_put(&g.waiting, 0);
		ck_assert_int_eq(pthread_create(&t, NULL, opener, &g), 0);
		while (!is_open(&g))
			ck_assert_int_eq(rva_spin_park(&g.p, is_open, &g, i % 2 ? 50 : 0,
					     rv_clock_us() + RVT_WAIT_MS * UINT64_C(1000)),
			    0);
		pthread_join(t, NULL);
	}
}
END_TEST

START_TEST(a_parked_thread_wakes_at_its_deadline)
{
	struct gate g;

	rvq_parker_init(&g.p);
	rvq_cell32_put(&g.open, 0);
	ck_assert_int_eq(
	    rva_spin_park(&g.p, is_open, &g, 50, rv_clock_us() + 2000), REEVE_ETIMEDOUT);
	ck_assert_int_eq(rva_spin_park(&g.p, is_open, &g, 50, 0), REEVE_ETIMEDOUT);
	rvq_cell32_put(&g.open, 1);
	ck_assert_int_eq(rva_spin_park(&g.p, is_open, &g, 50, 0), 0); /* done counts before late */
}
END_TEST

/* --- a stream's deadline, moved at any moment of a call that looks, arms or sleeps --- */

struct caller {
	reeve_stream_t *s;
	struct rvq_cell32 started;
	bool writes;
	reeve_ssize rc;
};

static void *
call(void *arg)
{
	static char bytes[4096];
	struct caller *c = arg;

	rvq_cell32_put(&c->started, 1);
	do
		c->rc = c->writes ? reeve_write(c->s, bytes, sizeof(bytes))
				  : reeve_read(c->s, bytes, sizeof(bytes));
	while (c->rc == sizeof(bytes));
	return NULL;
}

START_TEST(a_deadline_moved_to_now_ends_a_call_wherever_it_is)
{
	struct caller c = {.writes = _i};
	struct timespec until;
	struct rvt_duo d;
	pthread_t t;

	rvt_duo_start(&d);
	c.s = d.s[0];
	for (unsigned i = 0; i < 300; i++) {
		rvq_cell32_put(&c.started, 0);
		ck_assert_int_eq(reeve_deadline(c.s, REEVE_RD | REEVE_WR, -1), 0);
		ck_assert_int_eq(pthread_create(&t, NULL, call, &c), 0);
		while (rvq_cell32_get(&c.started) == 0)
			;
		for (uint64_t end = rv_clock_us() + i % 100; rv_clock_us() < end;)
			;
		ck_assert_int_eq(reeve_deadline(c.s, REEVE_RD | REEVE_WR, 0), 0);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += RVT_WAIT_MS / 1000;
		ck_assert_int_eq(pthread_timedjoin_np(t, NULL, &until), 0);
		if (!c.writes || c.rc < 0)
			ck_assert_int_eq(c.rc, REEVE_ETIMEDOUT);
	}
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("spin", {&what_is_there_is_found_by_the_look, 0}, {&looks_in_vain_become_rare, 0},
    {&only_short_sleeps_bring_the_next_look_nearer, 0}, {&a_look_ends_at_the_deadline, 0},
    {&a_look_ends_when_the_turn_is_lent, 0}, {&nobody_looks_who_is_told_not_to, 0},
    {&a_parked_thread_is_woken_in_the_look_or_asleep, 0},
    {&a_parked_thread_wakes_at_its_deadline, 0},
    {&a_deadline_moved_to_now_ends_a_call_wherever_it_is, 2})
