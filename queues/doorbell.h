/*
 * doorbell.h - a notice that merges with itself.
 *
 * A bell belongs to one mailbox.  Ringing adds bits; only the ring that finds none posts the node,
 * so there is at most one node in the mailbox however often the bell rings.  The owner takes the
 * bits *before* it looks at what they announce: whatever is published after that rings again.
 * (Bits that were looked at first and cleared then would lose what came between.)
 */
#ifndef REEVE_QUEUES_DOORBELL_H
#define REEVE_QUEUES_DOORBELL_H

#include "queues/mailbox.h"

struct rvq_bell {
	struct rvq_node node;
	RVQ_ATOMIC(uint32_t) bits;
};

/* Before it is shared: silent. */
static inline void
rvq_bell_init(struct rvq_bell *b)
{
	RVQ_VAR(b->node.next) = NULL;
	rvq_store_rlx(&b->bits, (uint32_t)0);
}

/* Any thread, after publishing what bits (not 0) announces.  True: the caller, and nobody else, must post
 * the node to the bell's mailbox. */
static inline bool
rvq_bell_add(struct rvq_bell *b, uint32_t bits)
{
	/* pairs with rvq_bell_answer; a read-modify-write even if the bits are set, to release */
	return rvq_fetch_or_ar(&b->bits, bits) == 0;
}

/* The same, and posts it from afar.  True: the caller must schedule the mailbox's owner. */
static inline bool
rvq_bell_ring_mpsc(struct rvq_bell *b, struct rvq_mailbox *m, uint32_t bits)
{
	return rvq_bell_add(b, bits) && rvq_mailbox_post_mpsc(m, &b->node);
}

/* Owner, once after popping the node and before looking at what the bits announce. */
static inline uint32_t
rvq_bell_answer(struct rvq_bell *b)
{
	/* pairs with rvq_bell_add */
	return rvq_swap_ar(&b->bits, (uint32_t)0);
}

/* The bell of a popped node. */
static inline struct rvq_bell *
rvq_bell_of(struct rvq_node *n)
{
	return (struct rvq_bell *)(void *)((char *)n - offsetof(struct rvq_bell, node));
}

#endif
