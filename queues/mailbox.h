/*
 * mailbox.h - an actor's mailbox: intrusive FIFO, many posters, one owner.
 *
 * The list is Dmitry Vyukov's intrusive MPSC queue (1024cores.net); the idle bit in the head word
 * is the idea of the Pony runtime's actor queue.  Posters exchange the head and then link the node
 * that was there to theirs.  A mailbox is idle (bit 0 of head set: the owner is not scheduled)
 * only while it is empty, and the exchange of the first post clears the bit: exactly one poster
 * sees it and schedules.
 *
 * Invariants.  The stub is in the list exactly when tail points at it.  Popping the last node puts
 * the stub in its place with one compare-and-swap of head, so a popped node is in nobody's hands
 * but the caller's and may be posted again at once, here or elsewhere.  Idle happens by one
 * compare-and-swap of head from the bare stub: there is no moment between "is it empty" and "idle"
 * for a post to fall into, and the owner has drained before it tries.
 *
 * Posting is wait-free.  A poster stopped between its exchange and its link hides later nodes from
 * the owner but stops no other poster: the owner keeps its turn scheduled and looks again.
 */
#ifndef REEVE_QUEUES_MAILBOX_H
#define REEVE_QUEUES_MAILBOX_H

#include <stddef.h>

#include "queues/atomic.h"

struct rvq_node {
	RVQ_ATOMIC(struct rvq_node *) next;
};

struct rvq_mailbox {
	RVQ_ATOMIC(uintptr_t) head;        /* any thread: the newest node | RVQ_MAILBOX_IDLE */
	RVQ_OWNED(struct rvq_node *) tail; /* owner: the oldest node */
	struct rvq_node stub;
};

#define RVQ_MAILBOX_IDLE ((uintptr_t)1)

/* Before it is shared: empty and idle. */
static inline void
rvq_mailbox_init(struct rvq_mailbox *m)
{
	rvq_store_rlx(&m->stub.next, (struct rvq_node *)NULL);
	RVQ_VAR(m->tail) = &m->stub;
	rvq_store_rlx(&m->head, (uintptr_t)&m->stub | RVQ_MAILBOX_IDLE);
}

/* Any thread: appends a node that is in no list.  True: the mailbox was idle and the caller, and
 * nobody else, must schedule its owner.  Wait-free.  From the moment the owner can pop the node,
 * the poster does not touch the mailbox, which cannot go idle before that moment. */
static inline bool
rvq_mailbox_post_mpsc(struct rvq_mailbox *m, struct rvq_node *n)
{
	uintptr_t was;
	struct rvq_node *prev;

	rvq_store_rlx(&n->next, (struct rvq_node *)NULL);
	/* pairs with rvq_mailbox_pop_mpsc:swap and rvq_mailbox_idle_mpsc:idle */
	was = rvq_swap_ar(&m->head, (uintptr_t)n);
	prev = (struct rvq_node *)(was & ~RVQ_MAILBOX_IDLE);
	/* pairs with the loads of next in rvq_mailbox_pop_mpsc */
	rvq_store_rel(&prev->next, n);
	return (was & RVQ_MAILBOX_IDLE) != 0;
}

/* Owner: the oldest node, which may be posted again at once, or NULL: nothing is available now,
 * because the mailbox is empty or a post is half done (rvq_mailbox_idle_mpsc tells).  Wait-free. */
static inline struct rvq_node *
rvq_mailbox_pop_mpsc(struct rvq_mailbox *m)
{
	struct rvq_node *oldest = RVQ_VAR(m->tail);
	struct rvq_node *next = rvq_load_acq(&oldest->next);
	uintptr_t head = (uintptr_t)oldest;

	if (oldest == &m->stub) {
		if (next == NULL)
			return NULL;
		RVQ_VAR(m->tail) = next;
		oldest = next;
		head = (uintptr_t)oldest;
		next = rvq_load_acq(&oldest->next);
	}
	if (next == NULL) {
		if (rvq_load_rlx(&m->head) == head) {
			rvq_store_rlx(&m->stub.next, (struct rvq_node *)NULL);
			/* swap: pairs with rvq_mailbox_post_mpsc, which will link the stub */
			if (rvq_cas_ar(&m->head, &head, (uintptr_t)&m->stub)) {
				RVQ_VAR(m->tail) = &m->stub;
				return oldest;
			}
		}
		next = rvq_load_acq(&oldest->next);
		if (next == NULL)
			return NULL;
	}
	RVQ_VAR(m->tail) = next;
	return oldest;
}

/* Owner, when pop said NULL.  True: the mailbox is idle now and belongs to whoever posts next; the
 * caller may not touch it again.  False: more came, or a post is half done; keep it scheduled. */
static inline bool
rvq_mailbox_idle_mpsc(struct rvq_mailbox *m)
{
	uintptr_t empty = (uintptr_t)&m->stub;

	/* With a node left, head is not the stub: the stub is not in the list then.
	 * idle: pairs with rvq_mailbox_post_mpsc; releases all the owner did to the next owner */
	return rvq_cas_ar(&m->head, &empty, empty | RVQ_MAILBOX_IDLE);
}

#endif
