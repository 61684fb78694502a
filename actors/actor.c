/* actor.c - turns and scheduling.  Any thread posts; the worker runs. */
#include <config.h>

#include "actors/actor.h"

#include "actors/worker.h"

#define ORPHAN_BUDGET 1024

void
rva_actor_init(struct rva_actor *a, struct rva_worker *home, const struct rva_actor_ops *ops)
{
	rvq_mailbox_init(&a->mailbox);
	a->link.next = NULL;
	a->home = home;
	a->ops = ops;
	a->dead = false;
}

bool
rva_actor_turn(struct rva_actor *a, unsigned budget, uint64_t *handled)
{
	struct rvq_node *n;

	while (budget-- > 0) {
		n = rvq_mailbox_pop_mpsc(&a->mailbox);
		if (n == NULL) {
			if (a->dead) {
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

void
rva_schedule(struct rva_actor *a)
{
	if (a->home == rva_self)
		rva_run_push(a->home, a);
	else
		rva_schedule_inbox(a);
}

void
rva_schedule_inbox(struct rva_actor *a)
{
	struct rva_worker *w = a->home;
	uint64_t handled = 0;

	switch (rvq_stack_push_mpsc(&w->inbox, &a->link)) {
	case RVQ_FIRST:
		rva_worker_wake(w);
		break;
	case RVQ_CLOSED: /* nobody runs it any more: answer here what was posted */
		while (rva_actor_turn(a, ORPHAN_BUDGET, &handled))
			;
		break;
	case RVQ_PUSHED:
		break;
	}
}

bool
rva_is_owner(const struct rva_actor *a)
{
	return a->home == rva_self || rva_worker_gone(a->home);
}
