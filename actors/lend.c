/* lend.c - borrowing a worker's turn. */
#include <config.h>

#include "actors/lend.h"

#include "actors/runtime.h"
#include "lib/clock.h"

#define PASSES 8
#define SHY \
	64 /* waits of threads that do not lead, after one that had to leave something to the worker */

static _Thread_local struct {
	unsigned depth;       /* between begin and end */
	struct rva_worker *w; /* sleeps, and has something to do */
} borrower;

void
rva_lend_begin(void)
{
	borrower.depth++;
}

void
rva_lend_wake(struct rva_worker *w)
{
	if (borrower.depth == 0 || w->rt->external || rva_self != NULL) {
		rva_worker_wake(w);
		return;
	}
	if (borrower.w != NULL && borrower.w != w)
		rva_worker_wake(borrower.w);
	borrower.w = w;
}

/* Tell the events and run until nothing is left.  False: something is, for the worker. */
static bool
run(struct rva_worker *w, struct rva_events *events)
{
	struct rv_pool *before = rv_pool_current();
	unsigned passes = 0;
	int cancel;

	/* Reading and writing are points where a thread may be cancelled, and it would take the turn with it. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	w->lent = true;
	rva_self = w;
	rv_pool_enter(w->pool);
	w->now = rv_clock_us();
	if (events != NULL)
		rva_poller_tell(events);
	do
		(void)rva_worker_work(w);
	while (rva_worker_busy(w) && ++passes < PASSES);
	rv_pool_enter(before);
	rva_self = NULL;
	w->lent = false;
	(void)pthread_setcancelstate(cancel, NULL);
	if (rva_worker_busy(w))
		rvq_cell32_put(&w->shy, SHY);
	/* An earlier timer, or a pool that was trimmed and is not empty any more: the worker has to sleep anew. */
	return w->warm && !rva_worker_busy(w) && rva_wheel_next(&w->wheel) >= w->sleep_until;
}

static void
hand(struct rva_worker *w)
{
	w->warm = true;
	rvq_gauge_add(&w->wakes, 1);
	rvq_waker_hand(&w->waker);
}

/* The caller has the turn, and run said that nothing was left: give it back, and do what came meanwhile. */
static void
give(struct rva_worker *w)
{
	for (unsigned n = 0; rvq_waker_give(&w->waker) && !rvq_stack_empty(&w->inbox); n++) {
		if (n == PASSES) {
			rva_worker_wake(w);
			return;
		}
		if (!rvq_waker_borrow(&w->waker))
			return;
		if (!run(w, NULL)) {
			hand(w);
			return;
		}
	}
}

static bool
may_lend(struct rva_worker *w)
{
	return rvq_gauge_get(&w->custom) == 0 && rvq_cell32_get(&w->stop) == 0;
}

/* Does the worker have to be there anyway, for what only it may do? */
static bool
shy(struct rva_worker *w)
{
	uint32_t n = rvq_cell32_get_relaxed(&w->shy);

	if (n == 0)
		return false;
	rvq_cell32_put(&w->shy, n - 1);
	return true;
}

bool
rva_lend_lead(struct rva_worker *w, bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	struct rva_events events = {.n = 0};
	uint64_t now = 0;
	bool mine = true;
	int cancel;

	if (w->rt->external || rva_self != NULL || !may_lend(w) || shy(w) ||
	    !rvq_waker_borrow(&w->waker))
		return false;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (run(w, &events) && mine) {
		now = w->now;
		if (done(arg) || now >= deadline) {
			give(w);
			(void)pthread_setcancelstate(cancel, NULL);
			return true;
		}
		if (!rvq_waker_lead(&w->waker))
			break;
		if (rvq_stack_empty(&w->inbox) && !done(arg))
			(void)rva_spin_wait(&w->lead, &w->poller, &events, NULL, deadline);
		mine = rvq_waker_led(&w->waker);
	}
	hand(w);
	(void)pthread_setcancelstate(cancel, NULL);
	return true;
}

void
rva_lend_end(void)
{
	struct rva_worker *w = borrower.w;

	if (--borrower.depth > 0 || w == NULL)
		return;
	borrower.w = NULL;
	if (!may_lend(w))
		rva_worker_wake(w);
	else if (rvq_waker_borrow(&w->waker)) {
		if (run(w, NULL))
			give(w);
		else
			hand(w);
	} /* else somebody is there, and looks before it sleeps */
}
