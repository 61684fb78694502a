/*
 * mailbox_planted.h - the mailbox's own mistakes for mailbox_relacy.cc, those that are not a matter of memory order.
 *
 * Each function is the header's unless its bug is planted.
 */
#ifndef REEVE_TESTS_MODELS_RELACY_MAILBOX_PLANTED_H
#define REEVE_TESTS_MODELS_RELACY_MAILBOX_PLANTED_H

static bool
go_idle(rvq_mailbox *m)
{
	if (planted != 9)
		return rvq_mailbox_idle_mpsc(m);
	if (VAR(m->first) != NULL || rvq_load_acq(&m->far) != 0)
		return false;
	rvq_store_rel(&m->far, RVQ_MAILBOX_IDLE);
	return true;
}

static void
take(rvq_mailbox *m)
{
	rvq_node *newest, *done = NULL, *n, *next;

	newest = (rvq_node *)rvq_load_acq(&m->far);
	rvq_store_rel(&m->far, (uintptr_t)0);
	for (n = newest; n != NULL; n = next) {
		next = VAR(n->next);
		VAR(n->next) = done;
		done = n;
	}
	VAR(m->first) = done;
	VAR(m->last) = newest;
}

static rvq_node *
pop(rvq_mailbox *m)
{
	if (planted == 11 && VAR(m->first) == NULL && rvq_load_rlx(&m->far) > RVQ_MAILBOX_IDLE)
		take(m);
	return rvq_mailbox_pop_mpsc(m);
}

static bool
post_near(rvq_mailbox *m, rvq_node *n)
{
	if (planted != 21 && planted != 22)
		return rvq_mailbox_post_near(m, n);
	VAR(n->next) = NULL;
	if (VAR(m->first) == NULL)
		VAR(m->first) = n;
	else
		VAR(VAR(m->last)->next) = n;
	VAR(m->last) = n;
	if (rvq_load_acq(&m->far) != RVQ_MAILBOX_IDLE)
		return false;
	if (planted == 22) {
		rvq_store_rel(&m->far, (uintptr_t)0);
		return true;
	}
	uintptr_t idle = RVQ_MAILBOX_IDLE;
	return rvq_cas_ar(&m->far, &idle, (uintptr_t)0);
}

#endif
