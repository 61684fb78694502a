/*
 * spsc.h - single-producer single-consumer ring of values.
 *
 * The indices, their free-running arithmetic and their placement on three cache lines are those of
 * Concurrency Kit's ck_ring; the slots are the caller's array and hold values.  ck_ring has no
 * batch calls and, in release 0.7.1, orders only stores before a slot is given back, which is too
 * little on ARM; so the copies are made here over its indices, with its fences: release before an
 * index is published, acquire after the other side's index was read.  On x86 both are compiler
 * barriers.  A side reads its own index plainly, as ck_ring does, so that ThreadSanitizer sees a
 * second thread on that side.
 *
 * One thread pushes, one thread pops.  Nothing here orders a push before a later look at whether
 * the consumer sleeps: that takes the full fence that parker.h has.  A ring must lie at a multiple
 * of 64.
 */
#ifndef REEVE_QUEUES_SPSC_H
#define REEVE_QUEUES_SPSC_H

#include <stddef.h>

#include <ck_pr.h>
#include <ck_ring.h>

#include "queues/atomic.h"

struct rvq_ring {
	struct ck_ring ck;
} __attribute__((aligned(64)));

/* size is a power of two and the length of every slot array used with the ring; it holds size - 1.
 *  */
static inline void
rvq_ring_init(struct rvq_ring *r, unsigned size)
{
	ck_ring_init(&r->ck, size);
}

/* Any thread: how many are in, at some moment during the call for the producer and the consumer,
 * and roughly for others (never more than the ring holds). */
static inline unsigned
rvq_ring_count(const struct rvq_ring *r)
{
	unsigned head = ck_pr_load_uint(&r->ck.c_head);
	unsigned tail;

	ck_pr_fence_load();
	tail = ck_pr_load_uint(&r->ck.p_tail);
	return (tail - head) & r->ck.mask;
}

/* Producer: how many can be pushed now; the consumer can only make it more. */
static inline unsigned
rvq_ring_room(const struct rvq_ring *r)
{
	unsigned head = ck_pr_load_uint(&r->ck.c_head);

	/* pairs with rvq_ring_release: the slots that it gave back may be written now */
	ck_pr_fence_acquire();
	return r->ck.mask - (r->ck.p_tail - head);
}

/* Producer: the slot that is i behind the last one pushed. */
static inline unsigned
rvq_ring_in(const struct rvq_ring *r, unsigned i)
{
	return (r->ck.p_tail + i) & r->ck.mask;
}

/* Producer: makes n filled slots visible. */
static inline void
rvq_ring_publish(struct rvq_ring *r, unsigned n)
{
	/* pairs with rvq_ring_filled */
	ck_pr_fence_release();
	ck_pr_store_uint(&r->ck.p_tail, r->ck.p_tail + n);
}

/* Consumer: how many slots may be read now; the producer can only make it more. */
static inline unsigned
rvq_ring_filled(const struct rvq_ring *r)
{
	unsigned tail = ck_pr_load_uint(&r->ck.p_tail);

	/* pairs with rvq_ring_publish */
	ck_pr_fence_acquire();
	return tail - r->ck.c_head;
}

/* Consumer: the slot that is i behind the oldest one. */
static inline unsigned
rvq_ring_out(const struct rvq_ring *r, unsigned i)
{
	return (r->ck.c_head + i) & r->ck.mask;
}

/* Consumer: gives n read slots back. */
static inline void
rvq_ring_release(struct rvq_ring *r, unsigned n)
{
	/* pairs with rvq_ring_room; orders the reads of the slots, not only stores */
	ck_pr_fence_release();
	ck_pr_store_uint(&r->ck.c_head, r->ck.c_head + n);
}

/*
 * RVQ_RING_DEFINE(name, type) makes, for slots of that type:
 *	bool name_push_spsc(r, slots, e)              producer: false when full
 *	unsigned name_push_batch_spsc(r, slots, e, n) producer: how many fit, visible at once
 *	bool name_pop_spsc(r, slots, out)             consumer: false when empty
 *	unsigned name_pop_batch_spsc(r, slots, out, n) consumer: how many it got, given back at once
 *	type *name_peek_spsc(r, slots)                consumer: the oldest, which stays, or NULL
 *	void name_drop_spsc(r)                        consumer: gives back what peek showed
 * All are wait-free.
 */
#define RVQ_RING_DEFINE(name, type)                                                               \
	RVQ_UNUSED static inline bool name##_push_spsc(                                           \
	    struct rvq_ring *r, type *slots, type const *e)                                       \
	{                                                                                         \
		if (RVQ_UNLIKELY(rvq_ring_room(r) == 0))                                          \
			return false;                                                             \
		slots[rvq_ring_in(r, 0)] = *e;                                                    \
		rvq_ring_publish(r, 1);                                                           \
		return true;                                                                      \
	}                                                                                         \
                                                                                                  \
	RVQ_UNUSED static inline unsigned name##_push_batch_spsc(                                 \
	    struct rvq_ring *r, type *slots, type const *e, unsigned n)                           \
	{                                                                                         \
		unsigned mask = r->ck.mask, room = rvq_ring_room(r);                              \
		unsigned at = rvq_ring_in(r, 0), i;                                               \
                                                                                                  \
		if (n > room)                                                                     \
			n = room;                                                                 \
		for (i = 0; i < n; i++)                                                           \
			slots[(at + i) & mask] = e[i];                                            \
		if (n > 0)                                                                        \
			rvq_ring_publish(r, n);                                                   \
		return n;                                                                         \
	}                                                                                         \
                                                                                                  \
	RVQ_UNUSED static inline bool name##_pop_spsc(struct rvq_ring *r, type *slots, type *out) \
	{                                                                                         \
		if (RVQ_UNLIKELY(rvq_ring_filled(r) == 0))                                        \
			return false;                                                             \
		*out = slots[rvq_ring_out(r, 0)];                                                 \
		rvq_ring_release(r, 1);                                                           \
		return true;                                                                      \
	}                                                                                         \
                                                                                                  \
	RVQ_UNUSED static inline unsigned name##_pop_batch_spsc(                                  \
	    struct rvq_ring *r, type *slots, type *out, unsigned n)                               \
	{                                                                                         \
		unsigned mask = r->ck.mask, filled = rvq_ring_filled(r);                          \
		unsigned at = rvq_ring_out(r, 0), i;                                              \
                                                                                                  \
		if (n > filled)                                                                   \
			n = filled;                                                               \
		for (i = 0; i < n; i++)                                                           \
			out[i] = slots[(at + i) & mask];                                          \
		if (n > 0)                                                                        \
			rvq_ring_release(r, n);                                                   \
		return n;                                                                         \
	}                                                                                         \
                                                                                                  \
	RVQ_UNUSED static inline type *name##_peek_spsc(struct rvq_ring *r, type *slots)          \
	{                                                                                         \
		if (rvq_ring_filled(r) == 0)                                                      \
			return NULL;                                                              \
		return &slots[rvq_ring_out(r, 0)];                                                \
	}                                                                                         \
                                                                                                  \
	RVQ_UNUSED static inline void name##_drop_spsc(struct rvq_ring *r)                        \
	{                                                                                         \
		rvq_ring_release(r, 1);                                                           \
	}

#endif
