/* worker.c - the loop of a worker. */
#include <config.h>

#include "actors/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "actors/connection.h"
#include "actors/op.h"
#include "actors/runtime.h"
#include "lib/alloc.h"
#include "lib/clock.h"

#define TURNS       64 /* actor turns between two looks at the connections */
#define TURN_BUDGET 64 /* messages of one turn */
#define POLL_EVERY \
	16 /* passes without reading between two looks at the poller while there is work */
#define SPARE_GATHERS 4
#define TRIM_US       2000000 /* of sleep, until the pool's spare blocks go back to the system */

_Thread_local struct rva_worker *rva_self;

/* To be awake is all. */
static void
woken(struct rva_source *s, int events)
{
	(void)s;
	(void)events;
}

static void
timer_due(struct rva_source *s, int events)
{
	struct rva_worker *w = rva_container(s, struct rva_worker, timer_source);
	uint64_t n;

	(void)events;
	if (read(w->timer_fd, &n, sizeof(n)) < 0)
		return; /* set anew meanwhile: not due */
}

int
rva_worker_init(struct rva_worker *w, reeve_rt_t *rt, unsigned index)
{
	int rc;

	memset(w, 0, sizeof(*w));
	w->rt = rt;
	w->arena = rt->arena;
	w->index = index;
	w->timer_fd = -1;
	rvq_stack_init(&w->inbox);
	w->run_tail = &w->run_head;
	w->dirty_tail = &w->dirty_head;
	w->read_tail = &w->read_head;
	w->now = rv_clock_us();
	rva_wheel_init(&w->wheel, w->now);
	w->wake_source.ready = woken;
	rva_spin_init(&w->spin, rt->spin_us);
	rva_spin_init(&w->lead, rt->spin_us);
	rva_op_clerk_init(&w->clerk, w);
	w->pool = rv_pool_create(rt->arena);
	if (w->pool == NULL)
		return REEVE_ENOMEM;
	rc = rvq_waker_init(&w->waker);
	if (rc < 0)
		goto out_pool;
	rc = rva_poller_init(&w->poller);
	if (rc < 0)
		goto out_waker;
	rc = rva_poller_add_bell(&w->poller, w->waker.fd, &w->wake_source);
	if (rc < 0)
		goto out_poller;
	return 0;
out_poller:
	rva_poller_fini(&w->poller);
out_waker:
	rvq_waker_fini(&w->waker);
out_pool:
	rv_pool_close(w->pool);
	return rc;
}

/* The worker's own turn: nothing that ended in a lent one is named by anybody any more. */
static void
bury(struct rva_worker *w)
{
	struct rvq_link *l;

	while ((l = w->dead) != NULL) {
		w->dead = l->next;
		rva_run_push(w, rva_container(l, struct rva_actor, link));
	}
}

static void
run_orphans(struct rva_worker *w, struct rvq_link *l)
{
	struct rvq_link *next;
	uint64_t handled = 0;

	(void)w;
	for (; l != NULL; l = next) {
		next = l->next;
		while (
		    rva_actor_turn(rva_container(l, struct rva_actor, link), TURN_BUDGET, &handled))
			;
	}
}

void
rva_worker_fini(struct rva_worker *w)
{
	struct rv_gather *g;

	rvq_cell32_put(&w->gone, 1);
	bury(w);
	run_orphans(w, w->run_head);
	run_orphans(w, rvq_link_reverse(rvq_stack_close(&w->inbox)));
	while ((g = w->gathers) != NULL) {
		w->gathers = g->next;
		rv_free(w->arena, g, sizeof(*g));
	}
	if (w->timer_fd >= 0)
		close(w->timer_fd);
	rva_poller_fini(&w->poller);
	rvq_waker_fini(&w->waker);
	rv_pool_close(w->pool);
}

static void
take_inbox(struct rva_worker *w)
{
	struct rvq_link *l = rvq_stack_take_fifo_mpsc(&w->inbox), *next;

	for (; l != NULL; l = next) {
		next = l->next;
		rva_run_push(w, rva_container(l, struct rva_actor, link));
	}
}

/* To the run list's head, in their order. */
static void
run_first(struct rva_worker *w, struct rvq_link *list, struct rvq_link **tail)
{
	if (list == NULL)
		return;
	*tail = w->run_head;
	if (w->run_head == NULL)
		w->run_tail = tail;
	w->run_head = list;
}

static unsigned
run_turns(struct rva_worker *w)
{
	struct rvq_link *kept = NULL,
			**kept_tail = &kept; /* what a borrower leaves to the worker */
	uint64_t handled = 0;
	unsigned turns = 0;

	while (turns < TURNS && w->run_head != NULL) {
		struct rva_actor *a = rva_container(w->run_head, struct rva_actor, link);

		w->run_head = a->link.next;
		if (w->run_head == NULL)
			w->run_tail = &w->run_head;
		turns++;
		if (w->lent && !a->ops->lend) {
			a->link.next = NULL;
			*kept_tail = &a->link;
			kept_tail = &a->link.next;
		} else if (rva_actor_turn(a, TURN_BUDGET, &handled)) {
			if (w->lent && a->dead && a->watched) {
				a->link.next = w->dead;
				w->dead = &a->link;
			} else {
				rva_run_push(w, a);
			}
		}
	}
	run_first(w, kept, kept_tail);
	rvq_counter_add(&w->messages, handled);
	return turns;
}

/* Each connection that was readable gets one turn; those with more to read go behind. */
static unsigned
read_connections(struct rva_worker *w)
{
	struct reeve_conn *c = w->read_head, *next;
	unsigned n = 0;

	w->read_head = NULL;
	w->read_tail = &w->read_head;
	for (; c != NULL; c = next, n++) {
		next = c->read_next;
		c->in_read = false;
		rva_conn_read(c);
	}
	return n;
}

static unsigned
flush_connections(struct rva_worker *w)
{
	struct reeve_conn *c = w->dirty_head, *next;
	unsigned n = 0;

	w->dirty_head = NULL;
	w->dirty_tail = &w->dirty_head;
	for (; c != NULL; c = next, n++) {
		next = c->dirty_next;
		c->in_dirty = false;
		rva_conn_flush(c);
	}
	return n;
}

bool
rva_worker_busy(const struct rva_worker *w)
{
	return w->run_head != NULL || w->dirty_head != NULL || w->read_head != NULL ||
	    !rvq_stack_empty(&w->inbox);
}

static unsigned
look(struct rva_worker *w)
{
	struct rva_events events;
	unsigned n = rva_poller_wait(&w->poller, &events, w->now, 0);

	rva_poller_tell(&events);
	return n;
}

/* Sleep in the poller until something happens, a timer is due or the deadline has come.  A thread of ours that has
 * slept for TRIM_US after work wakes once more, to trim its pool. */
static unsigned
park(struct rva_worker *w, uint64_t deadline)
{
	uint64_t timer = rva_wheel_next(&w->wheel), until = timer < deadline ? timer : deadline;
	struct rva_events events;
	uint64_t now = w->now; /* armed, a borrower may set it */
	bool trim = w->warm && until > w->now + TRIM_US;
	unsigned n = 0;

	if (trim)
		until = w->now + TRIM_US;
	w->sleep_until = until;
	rvq_waker_arm(&w->waker);
	if (rvq_stack_empty(&w->inbox) && rvq_cell32_get(&w->stop) == 0)
		n = rva_spin_wait(&w->spin, &w->poller, &events, &w->waker, until);
	else
		n = rva_poller_wait(&w->poller, &events, now, 0);
	rvq_waker_disarm(&w->waker);
	rva_poller_tell(&events);
	if (n > 0) {
		w->warm = !w->rt->external;
	} else if (trim && rv_clock_us() >= until) {
		rv_pool_trim(w->pool);
		w->warm = false;
	}
	return n;
}

unsigned
rva_worker_work(struct rva_worker *w)
{
	unsigned done;

	take_inbox(w);
	if (w->lent && rvq_gauge_get(&w->custom) != 0) /* one may be among what was taken */
		return 0;
	done = read_connections(w);
	done += run_turns(w);
	return done + flush_connections(w);
}

unsigned
rva_worker_pass(struct rva_worker *w, uint64_t deadline)
{
	unsigned done = 0, io;

	w->now = rv_clock_us();
	bury(w);
	take_inbox(w);
	/* What came before a timer is due counts before it, however long this thread was held up. */
	if (!w->polled && rva_wheel_next(&w->wheel) <= w->now)
		(void)look(w);
	io = done = read_connections(w);
	done += run_turns(w);
	done += flush_connections(w);
	done += rva_wheel_advance(&w->wheel, w->now);
	rvq_counter_add(&w->loops, 1);
	w->polled = true;
	if (!rva_worker_busy(w))
		done += park(w, done > 0 && w->rt->external ? 0 : deadline);
	else if (io > 0 || rvq_counter_get(&w->loops) % POLL_EVERY == 0)
		done += look(w);
	else
		w->polled = false;
	return done;
}

int
rva_worker_external(struct rva_worker *w)
{
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->timer_fd < 0)
		return REEVE_ESYS_BASE - errno;
	w->timer_source.ready = timer_due;
	rvq_waker_arm(&w->waker); /* nobody is in the loop: the first post tells the application */
	return rva_poller_add(&w->poller, w->timer_fd, &w->timer_source);
}

void
rva_worker_announce(struct rva_worker *w)
{
	uint64_t at = rva_wheel_next(&w->wheel);
	struct itimerspec t = {{0, 0}, {0, 0}};

	if (at != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(at / 1000000);
		t.it_value.tv_nsec = (long)(at % 1000000) * 1000 + 1;
	}
	(void)timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
	rvq_waker_arm(&w->waker);
	if (rva_worker_busy(w))
		(void)rvq_waker_wake(&w->waker);
}

void *
rva_worker_main(void *arg)
{
	struct rva_worker *w = arg;

	rva_self = w;
	rv_pool_enter(w->pool);
	while (rvq_cell32_get(&w->stop) == 0 || rva_worker_busy(w))
		(void)rva_worker_pass(w, UINT64_MAX);
	rva_dials_end(w);
	while (rva_worker_busy(w))
		(void)rva_worker_pass(w, 0);
	rv_pool_enter(NULL);
	rva_self = NULL;
	return NULL;
}

struct rv_gather *
rva_gather_get(struct rva_worker *w)
{
	struct rv_gather *g = w->gathers;

	if (g != NULL) {
		w->gathers = g->next;
		w->ngathers--;
	} else {
		g = rv_alloc(w->arena, sizeof(*g), 64);
		if (g == NULL)
			return NULL;
	}
	rv_gather_reset(g);
	return g;
}

void
rva_gather_put(struct rva_worker *w, struct rv_gather *g)
{
	if (w->ngathers >= SPARE_GATHERS) {
		rv_free(w->arena, g, sizeof(*g));
		return;
	}
	g->next = w->gathers;
	w->gathers = g;
	w->ngathers++;
}
