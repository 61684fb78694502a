/* lend.c - borrowing a worker's turn. */
#include <config.h>

#include "actors/lend.h"

#include "actors/runtime.h"
#include "lib/clock.h"

#define PASSES 8

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

/* Run it until nothing is left.  False: something is, for the worker. */
static bool
run(struct rva_worker *w)
{
	struct rv_pool *before = rv_pool_current();
	unsigned passes = 0;

	w->lent = true;
	rva_self = w;
	rv_pool_enter(w->pool);
	w->now = rv_clock_us();
	do
		(void)rva_worker_work(w);
	while (rva_worker_busy(w) && ++passes < PASSES);
	rv_pool_enter(before);
	rva_self = NULL;
	w->lent = false;
	/* An earlier timer, or a pool that was trimmed and is not empty any more: the worker has to sleep anew. */
	return w->warm && !rva_worker_busy(w) && rva_wheel_next(&w->wheel) >= w->sleep_until;
}

static void
help(struct rva_worker *w)
{
	for (unsigned n = 0; n < PASSES; n++) {
		if (!rvq_waker_borrow(&w->waker))
			return; /* somebody is there, and looks before it sleeps */
		if (!run(w)) {
			w->warm = true;
			rvq_gauge_add(&w->wakes, 1);
			rvq_waker_hand(&w->waker);
			return;
		}
		if (!rvq_waker_give(&w->waker) || rvq_stack_empty(&w->inbox))
			return;
	}
	rva_worker_wake(w);
}

void
rva_lend_end(void)
{
	struct rva_worker *w = borrower.w;

	if (--borrower.depth > 0 || w == NULL)
		return;
	borrower.w = NULL;
	if (rvq_gauge_get(&w->custom) == 0 && rvq_cell32_get(&w->stop) == 0)
		help(w);
	else
		rva_worker_wake(w);
}
