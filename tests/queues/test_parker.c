/* test_parker.c - parking: deadlines, tickets, several sleepers on a word, and lost wake-ups. */
#include <config.h>

#include "queues/cell.h"
#include "queues/parker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <reeve/error.h>

#include "tests/queues/crew.h"

#define PATIENCE_US UINT64_C(5000000)

START_TEST(wait_ends_at_the_deadline)
{
	struct rvq_parker p;
	uint64_t end = crew_now_us() + 20000, now;

	rvq_parker_init(&p);
	rvq_parker_arm(&p);
	ck_assert_int_eq(rvq_parker_wait(&p, end), REEVE_ETIMEDOUT);
	now = crew_now_us();
	ck_assert_uint_ge(now, end);
	ck_assert_uint_lt(now, end + PATIENCE_US);
}
END_TEST

START_TEST(deadline_in_the_past_ends_at_once)
{
	struct rvq_parker p;

	rvq_parker_init(&p);
	rvq_parker_arm(&p);
	ck_assert_int_eq(rvq_parker_wait(&p, 1), REEVE_ETIMEDOUT);
}
END_TEST

START_TEST(wake_is_once_per_arming)
{
	struct rvq_parker p;

	rvq_parker_init(&p);
	ck_assert(!rvq_parker_wake(&p));
	rvq_parker_arm(&p);
	ck_assert(rvq_parker_wake(&p));
	ck_assert(!rvq_parker_wake(&p));
	ck_assert_int_eq(rvq_parker_wait(&p, RVQ_FOREVER), 0); /* woken before it slept */
}
END_TEST

START_TEST(disarmed_thread_does_not_sleep)
{
	struct rvq_parker p;

	rvq_parker_init(&p);
	rvq_parker_arm(&p);
	rvq_parker_disarm(&p);
	ck_assert_int_eq(rvq_parker_wait(&p, RVQ_FOREVER), 0);
}
END_TEST

START_TEST(wait_on_another_parker_than_the_armed_does_not_sleep)
{
	struct rvq_parker a, b;

	rvq_parker_init(&a);
	rvq_parker_init(&b);
	rvq_parker_arm(&a);
	rvq_parker_arm(&b);
	ck_assert_int_eq(rvq_parker_wait(&a, RVQ_FOREVER), 0);
}
END_TEST

static void *
arm_only(void *arg)
{
	rvq_parker_arm(arg);
	return NULL;
}

/* With a bare flag this thread would sleep on the other's announcement and miss its own wake-up. */
START_TEST(wake_holds_though_another_thread_arms_after_it)
{
	struct rvq_parker p;
	struct crew crew = {.n = 0};

	rvq_parker_init(&p);
	rvq_parker_arm(&p);
	ck_assert(rvq_parker_wake(&p));
	crew_start(&crew, arm_only, &p);
	crew_join(&crew);
	ck_assert_int_eq(rvq_parker_wait(&p, RVQ_FOREVER), 0);
	ck_assert(rvq_parker_wake(&p)); /* the other's */
}
END_TEST

START_TEST(disarm_leaves_another_thread_armed)
{
	struct rvq_parker p;
	struct crew crew = {.n = 0};

	rvq_parker_init(&p);
	crew_start(&crew, arm_only, &p);
	crew_join(&crew);
	rvq_parker_arm(&p);
	rvq_parker_disarm(&p);
	ck_assert(rvq_parker_wake(&p));
}
END_TEST

static void
on_signal(int sig)
{
	(void)sig;
}

struct nudger {
	pthread_t sleeper;
	uint64_t until;
};

static void *
nudge(void *arg)
{
	struct nudger *n = arg;

	while (crew_now_us() < n->until) {
		pthread_kill(n->sleeper, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

START_TEST(signals_do_not_end_a_wait)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct rvq_parker p;
	struct crew crew = {.n = 0};
	struct nudger n = {.sleeper = pthread_self(), .until = crew_now_us() + 50000};

	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	rvq_parker_init(&p);
	rvq_parker_arm(&p);
	crew_start(&crew, nudge, &n);
	ck_assert_int_eq(rvq_parker_wait(&p, n.until), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(crew_now_us(), n.until);
	crew_join(&crew);
}
END_TEST

#define SLEEPERS 4

struct room {
	struct rvq_parker parker;
	struct rvq_cell64 news;
	struct rvq_cell32 seen; /* sleepers that saw the current news */
	struct rvq_cell32 late;
};

static void *
follow_news(void *arg)
{
	struct room *r = arg;
	uint64_t known = 0, now, end = crew_now_us() + 2 * PATIENCE_US;

	for (;;) {
		now = rvq_cell64_get(&r->news);
		if (now == known) {
			rvq_parker_arm(&r->parker);
			now = rvq_cell64_get(&r->news);
			if (now == known) {
				if (rvq_parker_wait(&r->parker, end) != 0)
					rvq_cell32_put(&r->late, 1);
				if (rvq_cell32_get(&r->late))
					return NULL;
				continue;
			}
			rvq_parker_disarm(&r->parker);
		}
		if (now == UINT64_MAX)
			return NULL;
		known = now;
		rvq_cell32_add(&r->seen, 1);
	}
}

/* Each piece of news must reach every sleeper although one wake is all that is sent. */
START_TEST(every_sleeper_on_a_word_gets_every_wake)
{
	static struct room r;
	struct crew crew = {.n = 0};
	uint64_t end = crew_now_us() + CREW_STRESS_US, news = 0;
	unsigned i;

	rvq_parker_init(&r.parker);
	for (i = 0; i < SLEEPERS; i++)
		crew_start(&crew, follow_news, &r);
	while ((crew_now_us() < end || news <= 10) && !rvq_cell32_get(&r.late)) {
		rvq_cell32_put(&r.seen, 0);
		rvq_cell64_put(&r.news, ++news);
		rvq_parker_wake(&r.parker);
		while (rvq_cell32_get(&r.seen) < SLEEPERS && !rvq_cell32_get(&r.late))
			sched_yield();
	}
	rvq_cell64_put(&r.news, UINT64_MAX);
	rvq_parker_wake(&r.parker);
	crew_join(&crew);
	ck_assert_uint_eq(rvq_cell32_get(&r.late), 0);
	ck_assert_uint_gt(news, 10);
}
END_TEST

static bool
readable(const struct rvq_waker *w, int timeout_ms)
{
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

static void
drain(const struct rvq_waker *w)
{
	uint64_t count;
	ssize_t n = read(w->fd, &count, sizeof(count));

	(void)n; /* nothing to read is as good */
}

START_TEST(waker_makes_its_descriptor_readable_once_per_arming)
{
	struct rvq_waker w;

	ck_assert_int_eq(rvq_waker_init(&w), 0);
	ck_assert(fcntl(w.fd, F_GETFL) & O_NONBLOCK);
	ck_assert(fcntl(w.fd, F_GETFD) & FD_CLOEXEC);
	ck_assert(!rvq_waker_wake(&w));
	ck_assert(!readable(&w, 0));
	rvq_waker_arm(&w);
	ck_assert(rvq_waker_wake(&w));
	ck_assert(!rvq_waker_wake(&w));
	ck_assert(readable(&w, 0));
	drain(&w);
	ck_assert(!readable(&w, 0));
	drain(&w); /* does not block */
	rvq_waker_fini(&w);
}
END_TEST

/* A worker watches edges and never reads. */
START_TEST(every_wake_is_an_edge)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	struct rvq_waker w;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ck_assert_int_eq(rvq_waker_init(&w), 0);
	ck_assert_int_ge(ep, 0);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, w.fd, &ev), 0);
	ck_assert_int_eq(epoll_wait(ep, &ev, 1, 0), 0);
	for (int i = 0; i < 3; i++) {
		rvq_waker_arm(&w);
		ck_assert(rvq_waker_wake(&w));
		ck_assert_int_eq(epoll_wait(ep, &ev, 1, 5000), 1);
		ck_assert_int_eq(epoll_wait(ep, &ev, 1, 0), 0);
	}
	close(ep);
	rvq_waker_fini(&w);
}
END_TEST

START_TEST(disarmed_waker_is_not_woken)
{
	struct rvq_waker w;

	ck_assert_int_eq(rvq_waker_init(&w), 0);
	rvq_waker_arm(&w);
	rvq_waker_disarm(&w);
	ck_assert(!rvq_waker_wake(&w));
	ck_assert(!readable(&w, 0));
	rvq_waker_fini(&w);
}
END_TEST

START_TEST(a_lent_turn_is_nobodys_until_it_is_given_back)
{
	struct rvq_waker w;

	ck_assert_int_eq(rvq_waker_init(&w), 0);
	ck_assert(!rvq_waker_borrow(&w)); /* awake */
	rvq_waker_arm(&w);
	ck_assert(rvq_waker_borrow(&w));
	ck_assert(!rvq_waker_borrow(&w));
	ck_assert(!rvq_waker_wake(&w)); /* the borrower looks before it goes */
	ck_assert(!readable(&w, 0));
	ck_assert(rvq_waker_give(&w));
	ck_assert(rvq_waker_borrow(&w));
	rvq_waker_hand(&w); /* the worker is woken */
	ck_assert(readable(&w, 0));
	ck_assert(!rvq_waker_borrow(&w));
	rvq_waker_disarm(&w);
	rvq_waker_fini(&w);
}
END_TEST

START_TEST(a_leader_is_rung_for)
{
	struct rvq_waker w;

	ck_assert_int_eq(rvq_waker_init(&w), 0);
	rvq_waker_arm(&w);
	for (int how = 0; how < 3; how++) {
		ck_assert(rvq_waker_borrow(&w));
		ck_assert(rvq_waker_lead(&w));
		if (how == 0)
			ck_assert(rvq_waker_wake(&w));
		else if (how == 1)
			ck_assert(!rvq_waker_borrow(&w));
		else
			rvq_waker_poke(&w);
		ck_assert(readable(&w, 0));
		drain(&w);
		ck_assert(!rvq_waker_wake(&w));
		ck_assert(rvq_waker_led(&w));
		ck_assert(rvq_waker_lead(&w)); /* nothing came: sleeps on */
		ck_assert(rvq_waker_led(&w));
		ck_assert(rvq_waker_give(&w));
	}
	rvq_waker_poke(&w); /* nobody leads */
	ck_assert(!readable(&w, 0));
	rvq_waker_fini(&w);
}
END_TEST

static void *
come_back(void *arg)
{
	rvq_waker_disarm(arg);
	return NULL;
}

static void
back_to_work(bool leads)
{
	struct rvq_waker w;
	pthread_t th;

	ck_assert_int_eq(rvq_waker_init(&w), 0);
	rvq_waker_arm(&w);
	ck_assert(rvq_waker_borrow(&w));
	if (leads)
		ck_assert(rvq_waker_lead(&w));
	ck_assert_int_eq(pthread_create(&th, NULL, come_back, &w), 0);
	ck_assert(readable(&w, 5000)); /* it rings, for it may be a leader that has the turn */
	if (leads) {
		ck_assert(!rvq_waker_led(&w));
		rvq_waker_hand(&w);
	} else {
		ck_assert(!rvq_waker_give(&w));
	}
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	ck_assert(!rvq_waker_borrow(&w));
	rvq_waker_fini(&w);
}

START_TEST(a_worker_that_is_back_gets_its_turn)
{
	back_to_work(false);
	back_to_work(true);
}
END_TEST

START_TEST(waker_without_descriptors_says_why)
{
	struct rlimit usual, none;
	struct rvq_waker w;
	int rc;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = usual;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	rc = rvq_waker_init(&w);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
	ck_assert_int_eq(rc, REEVE_ESYS_BASE - EMFILE);
}
END_TEST

struct wall {
	struct rvq_waker waker[2];
	struct rvq_cell64 ball[2]; /* how often each side was served */
	struct rvq_cell32 lost;
};

/* Plays one side until the other has sent UINT64_MAX; each stroke may find the other asleep or
 * not. */
static void
play(struct wall *w, unsigned me, uint64_t end)
{
	struct rvq_waker *waker = &w->waker[me];
	uint64_t n;

	for (n = 1;; n++) {
		while (rvq_cell64_get(&w->ball[me]) < n) {
			rvq_waker_arm(waker);
			if (rvq_cell64_get(&w->ball[me]) < n && !readable(waker, 5000)) {
				rvq_cell32_put(&w->lost, 1);
				return;
			}
			rvq_waker_disarm(waker);
			drain(waker);
		}
		if (rvq_cell64_get(&w->ball[me]) == UINT64_MAX)
			return;
		rvq_cell64_put(
		    &w->ball[!me], me == 0 && crew_now_us() >= end ? UINT64_MAX : n + me);
		rvq_waker_wake(&w->waker[!me]);
		if (rvq_cell64_get(&w->ball[!me]) == UINT64_MAX)
			return;
	}
}

static void *
play_second(void *arg)
{
	play(arg, 1, UINT64_MAX);
	return NULL;
}

START_TEST(two_workers_never_lose_a_wake)
{
	static struct wall w;
	struct crew crew = {.n = 0};

	ck_assert_int_eq(rvq_waker_init(&w.waker[0]), 0);
	ck_assert_int_eq(rvq_waker_init(&w.waker[1]), 0);
	rvq_cell64_put(&w.ball[0], 1);
	crew_start(&crew, play_second, &w);
	play(&w, 0, crew_now_us() + CREW_STRESS_US);
	crew_join(&crew);
	ck_assert_uint_eq(rvq_cell32_get(&w.lost), 0);
	rvq_waker_fini(&w.waker[0]);
	rvq_waker_fini(&w.waker[1]);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {wait_ends_at_the_deadline, deadline_in_the_past_ends_at_once,
	    wake_is_once_per_arming, disarmed_thread_does_not_sleep,
	    wait_on_another_parker_than_the_armed_does_not_sleep,
	    wake_holds_though_another_thread_arms_after_it, disarm_leaves_another_thread_armed,
	    signals_do_not_end_a_wait, every_sleeper_on_a_word_gets_every_wake,
	    waker_makes_its_descriptor_readable_once_per_arming, every_wake_is_an_edge,
	    disarmed_waker_is_not_woken, a_lent_turn_is_nobodys_until_it_is_given_back,
	    a_leader_is_rung_for, a_worker_that_is_back_gets_its_turn,
	    waker_without_descriptors_says_why, two_workers_never_lose_a_wake};

	return rvt_run("parker", tests, sizeof(tests) / sizeof(tests[0]));
}
