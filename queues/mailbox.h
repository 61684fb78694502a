/*
 * mailbox.h - an actor's mailbox: intrusive FIFO with two lanes, many posters, one owner.
 *
 * Others post to the far lane, a word: R. K. Treiber's stack of which only everything is taken (no
 * ABA problem: see stack.h).  The owner's own posts go to the near lane, a plain list: no
 * read-modify-write, nothing shared.  The owner pops from the near lane; what is in the far lane is
 * taken at once, put in its order and appended to the near lane
 *	- when the near lane is empty, and
 *	- before each near post.
 * By the second, the order of causes is kept: a far post that happened before a near one is in
 * the list already when that is appended, and a near post that happened before a far one is in the list
 * before the far one can be taken.  So what one thread posts comes in its order, and an answer never
 * overtakes its question, whatever lane each took.
 *
 * The far word also says whether the mailbox is idle (RVQ_MAILBOX_IDLE: the owner is not scheduled),
 * which is so only while both lanes are empty.  Exactly one post takes it from idle to anything else: a
 * far one by pushing, a near one by a compare-and-swap; that one schedules the owner.  (The idle bit
 * in the head word is the idea of the Pony runtime's actor queue.)  Idle happens by one
 * compare-and-swap from the empty word: there is no moment between "is it empty" and "idle" for a post to
 * fall into.
 *
 * A popped node is in nobody's hands but the caller's and may be posted again at once, here or
 * elsewhere.  Posting is lock-free: an attempt fails only because another post or a take succeeded.
 */
#ifndef REEVE_QUEUES_MAILBOX_H
#define REEVE_QUEUES_MAILBOX_H

#include <stddef.h>

#include "queues/atomic.h"

/* A record may lend a pointer of its own as its node (a buffer its link in a chain), hence may_alias. */
struct __attribute__((may_alias)) rvq_node {
	RVQ_OWNED(struct rvq_node *) next; /* poster until posted, then the owner */
};

struct rvq_mailbox {
	/* any thread: the newest node of the far lane, 0 or RVQ_MAILBOX_IDLE */
	RVQ_ATOMIC(uintptr_t) far;
	RVQ_OWNED(struct rvq_node *) first; /* owner: the near lane, NULL when it is empty */
	RVQ_OWNED(struct rvq_node *) last;  /* owner: valid while it is not */
};

#define RVQ_MAILBOX_IDLE ((uintptr_t)1)

/* Before it is shared: empty and idle. */
static inline void
rvq_mailbox_init(struct rvq_mailbox *m)
{
	rvq_store_rlx(&m->far, RVQ_MAILBOX_IDLE);
	RVQ_VAR(m->first) = NULL;
	RVQ_VAR(m->last) = NULL;
}

/* Any thread: posts a node that is in no list.  True: the mailbox was idle and the caller, and
 * nobody else, must schedule its owner.  Lock-free.  From the moment the owner can take the node,
 * the poster does not touch the mailbox, which cannot go idle before that moment. */
static inline bool
rvq_mailbox_post_mpsc(struct rvq_mailbox *m, struct rvq_node *n)
{
	uintptr_t was = rvq_load_rlx(&m->far);

	do {
		RVQ_VAR(n->next) = (struct rvq_node *)(was & ~RVQ_MAILBOX_IDLE);
		/* pairs with rvq_mailbox_take_mpsc; with rvq_mailbox_idle_mpsc: who found it idle
		 * schedules its next owner */
	} while (!rvq_cas_weak_ar(&m->far, &was, (uintptr_t)n));
	return was == RVQ_MAILBOX_IDLE;
}

/* Owner: the far lane, which is not empty, goes behind the near one.  Wait-free but for the length of
 * what was taken. */
static inline void
rvq_mailbox_take_mpsc(struct rvq_mailbox *m)
{
	/* pairs with rvq_mailbox_post_mpsc */
	struct rvq_node *newest = (struct rvq_node *)rvq_swap_ar(&m->far, (uintptr_t)0);
	struct rvq_node *done = NULL, *n = newest, *next;

	for (; n != NULL; n = next) {
		next = RVQ_VAR(n->next);
		RVQ_VAR(n->next) = done;
		done = n;
	}
	if (RVQ_VAR(m->first) == NULL)
		RVQ_VAR(m->first) = done;
	else
		RVQ_VAR(RVQ_VAR(m->last)->next) = done;
	RVQ_VAR(m->last) = newest;
}

/* The thread that is the owner's home, whether the owner is scheduled or not: posts a node that is in no
 * list.  True: as rvq_mailbox_post_mpsc.  Nobody else may be the owner meanwhile. */
static inline bool
rvq_mailbox_post_near(struct rvq_mailbox *m, struct rvq_node *n)
{
	/* order: a far post that happened before this is seen, and so goes before it */
	uintptr_t far = rvq_load_acq(&m->far);

	if (far > RVQ_MAILBOX_IDLE)
		rvq_mailbox_take_mpsc(m);
	RVQ_VAR(n->next) = NULL;
	if (RVQ_VAR(m->first) == NULL)
		RVQ_VAR(m->first) = n;
	else
		RVQ_VAR(RVQ_VAR(m->last)->next) = n;
	RVQ_VAR(m->last) = n;
	/* If it fails, a far post was first, and schedules. */
	return far == RVQ_MAILBOX_IDLE && rvq_cas_ar(&m->far, &far, (uintptr_t)0);
}

/* Owner: the oldest node, which may be posted again at once, or NULL: there is none now. */
static inline struct rvq_node *
rvq_mailbox_pop_mpsc(struct rvq_mailbox *m)
{
	struct rvq_node *n = RVQ_VAR(m->first);

	if (n == NULL) {
		if (rvq_load_rlx(&m->far) <= RVQ_MAILBOX_IDLE)
			return NULL;
		rvq_mailbox_take_mpsc(m);
		n = RVQ_VAR(m->first);
	}
	RVQ_VAR(m->first) = RVQ_VAR(n->next);
	return n;
}

/* Owner.  True: the mailbox is empty and idle now and belongs to whoever posts next; the caller may not
 * touch it again.  False: there is something in it; keep it scheduled. */
static inline bool
rvq_mailbox_idle_mpsc(struct rvq_mailbox *m)
{
	uintptr_t empty = 0;

	/* pairs with the posts that find it idle: releases all the owner did to the next owner */
	return RVQ_VAR(m->first) == NULL && rvq_cas_ar(&m->far, &empty, RVQ_MAILBOX_IDLE);
}

#endif
