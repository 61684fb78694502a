/*
 * stack.h - take-all stack with close: many pushers, one taker.
 *
 * R. K. Treiber's stack restricted to "take everything", which has no ABA problem: nobody looks
 * behind the head while others may change it.  Concurrency Kit's ck_stack is the same thing but
 * cannot be closed, so this one is C11: closing puts a sentinel into the head word for ever, by
 * the same exchange that takes the rest, so every link was either taken or its pusher knows that
 * it was not pushed.
 *
 * After a successful push the pusher touches neither stack nor link again: the taker may free both.
 */
#ifndef REEVE_QUEUES_STACK_H
#define REEVE_QUEUES_STACK_H

#include <stddef.h>

#include "queues/atomic.h"

struct rvq_link {
	struct rvq_link *next; /* pusher until pushed, then the taker */
};

struct rvq_stack {
	RVQ_ATOMIC(uintptr_t) head; /* the newest link, 0 or RVQ_STACK_CLOSED */
};

#define RVQ_STACK_CLOSED ((uintptr_t)1)

enum rvq_push {
	RVQ_PUSHED, /* others were there and the first of them woke the taker */
	RVQ_FIRST,  /* it was empty: the caller wakes the taker */
	RVQ_CLOSED  /* not pushed: the link is still the caller's */
};

/* Before it is shared: empty and open. */
static inline void
rvq_stack_init(struct rvq_stack *s)
{
	rvq_store_rlx(&s->head, (uintptr_t)0);
}

/* Any thread.  Lock-free: an attempt fails only because another push or take succeeded. */
static inline enum rvq_push
rvq_stack_push_mpsc(struct rvq_stack *s, struct rvq_link *l)
{
	uintptr_t head = rvq_load_acq(&s->head);

	do {
		if (head == RVQ_STACK_CLOSED)
			return RVQ_CLOSED; /* acquired: pairs with rvq_stack_close */
		l->next = (struct rvq_link *)head;
		/* pairs with rvq_stack_take_mpsc and rvq_stack_close */
	} while (!rvq_cas_weak_ar(&s->head, &head, (uintptr_t)l));
	return head == 0 ? RVQ_FIRST : RVQ_PUSHED;
}

/* Any thread: true when a take would find nothing (a closed stack is empty). */
static inline bool
rvq_stack_empty(const struct rvq_stack *s)
{
	return rvq_load_acq(&s->head) <= RVQ_STACK_CLOSED;
}

/* Taker: everything, newest first, or NULL.  Wait-free. */
static inline struct rvq_link *
rvq_stack_take_mpsc(struct rvq_stack *s)
{
	/* Only the taker closes, so what is not closed here is not closed at the exchange either.
	 *  */
	if (rvq_load_rlx(&s->head) <= RVQ_STACK_CLOSED)
		return NULL;
	/* pairs with rvq_stack_push_mpsc */
	return (struct rvq_link *)rvq_swap_ar(&s->head, (uintptr_t)0);
}

/* Owner of the chain: the same links in the opposite order. */
static inline struct rvq_link *
rvq_link_reverse(struct rvq_link *l)
{
	struct rvq_link *done = NULL, *next;

	for (; l != NULL; l = next) {
		next = l->next;
		l->next = done;
		done = l;
	}
	return done;
}

/* Taker: everything, oldest first, or NULL. */
static inline struct rvq_link *
rvq_stack_take_fifo_mpsc(struct rvq_stack *s)
{
	return rvq_link_reverse(rvq_stack_take_mpsc(s));
}

/* Taker: no push succeeds any more; returns what was in it, newest first, or NULL (also when it was
 * closed before). */
static inline struct rvq_link *
rvq_stack_close(struct rvq_stack *s)
{
	/* pairs with rvq_stack_push_mpsc, both ways */
	uintptr_t head = rvq_swap_ar(&s->head, RVQ_STACK_CLOSED);

	return head == RVQ_STACK_CLOSED ? NULL : (struct rvq_link *)head;
}

#endif
