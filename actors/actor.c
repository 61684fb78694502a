/* actor.c - turns and scheduling.  Any thread posts; the worker runs. */
#include <config.h>

#include "actors/actor.h"

#include "actors/lend.h"

#define ORPHAN_BUDGET 1024

void
rva_actor_init(struct rva_actor *a, struct rva_worker *home, const struct rva_actor_ops *ops)
{
	rvq_mailbox_init(&a->mailbox);
	a->link.next = NULL;
	a->home = home;
	a->ops = ops;
	a->dead = false;
	a->watched = false;
}

bool
rva_actor_turn(struct rva_actor *a, unsigned budget, uint64_t *handled)
{
	struct rvq_node *n;

	while (budget-- > 0) {
		n = rvq_mailbox_pop_mpsc(&a->mailbox);
		if (n == NULL) {
			if (a->dead) {
				/* The worker may hold an event of the poller that names it. */
				if (a->watched && a->home->lent)
					return true;
				a->ops->free(a);
				return false;
			}
			return !rvq_mailbox_idle_mpsc(&a->mailbox);
		}
		++*handled;
		a->ops->on(a, n);
	}
	return true;
}

/* In the inbox.  True: its worker has to be told. */
static bool
into_inbox(struct rva_actor *a)
{
	uint64_t handled = 0;

	switch (rvq_stack_push_mpsc(&a->home->inbox, &a->link)) {
	case RVQ_FIRST:
		return true;
	case RVQ_CLOSED: /* nobody runs it any more: answer here what was posted */
		while (rva_actor_turn(a, ORPHAN_BUDGET, &handled))
			;
		break;
	case RVQ_PUSHED:
		break;
	}
	return false;
}

void
rva_schedule(struct rva_actor *a)
{
	struct rva_worker *w = a->home;

	if (w == rva_self)
		rva_run_push(w, a);
	else if (into_inbox(a))
		rva_lend_wake(w);
}

void
rva_schedule_inbox(struct rva_actor *a)
{
	struct rva_worker *w = a->home;

	if (into_inbox(a))
		rva_worker_wake(w);
}

bool
rva_is_owner(const struct rva_actor *a)
{
	return a->home == rva_self || rva_worker_gone(a->home);
}
