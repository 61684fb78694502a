/*
 * cell.h - published words for the floors above, which may not use atomics themselves.
 *
 * A cell may be read and written by any thread.  get acquires what the put (or swap, cas, or, and,
 * add) that it sees released.  swap, cas, or, and, add acquire and release; swap, or, and, add
 * return the old value.  get_relaxed promises nothing about other memory.  Every function is
 * wait-free where the machine has the instruction (x86: or and and with the old value are short
 * compare-and-swap loops).
 */
#ifndef REEVE_QUEUES_CELL_H
#define REEVE_QUEUES_CELL_H

#include "queues/atomic.h"

struct rvq_cell32 {
	RVQ_ATOMIC(uint32_t) word;
};

struct rvq_cell64 {
	RVQ_ATOMIC(uint64_t) word;
};

struct rvq_cellptr {
	RVQ_ATOMIC(void *) word;
};

/* The operations that all three kinds have.  pairs with: any writer of the same cell. */
#define RVQ_CELL_DEFINE(name, type)                                                \
	static inline type name##_get(const struct name *c)                        \
	{                                                                          \
		return rvq_load_acq(&c->word);                                     \
	}                                                                          \
                                                                                   \
	static inline type name##_get_relaxed(const struct name *c)                \
	{                                                                          \
		return rvq_load_rlx(&c->word);                                     \
	}                                                                          \
                                                                                   \
	static inline void name##_put(struct name *c, type v)                      \
	{                                                                          \
		rvq_store_rel(&c->word, v);                                        \
	}                                                                          \
                                                                                   \
	static inline type name##_swap(struct name *c, type v)                     \
	{                                                                          \
		return rvq_swap_ar(&c->word, v);                                   \
	}                                                                          \
                                                                                   \
	static inline bool name##_cas(struct name *c, type expected, type desired) \
	{                                                                          \
		return rvq_cas_ar(&c->word, &expected, desired);                   \
	}

/* The fetch operations of the two integer kinds; each returns the value before. */
#define RVQ_CELL_DEFINE_FETCH(name, type)                        \
	static inline type name##_or(struct name *c, type bits)  \
	{                                                        \
		return rvq_fetch_or_ar(&c->word, bits);          \
	}                                                        \
                                                                 \
	static inline type name##_and(struct name *c, type bits) \
	{                                                        \
		return rvq_fetch_and_ar(&c->word, bits);         \
	}                                                        \
                                                                 \
	static inline type name##_add(struct name *c, type n)    \
	{                                                        \
		return rvq_fetch_add_ar(&c->word, n);            \
	}

RVQ_CELL_DEFINE(rvq_cell32, uint32_t)
RVQ_CELL_DEFINE(rvq_cell64, uint64_t)
RVQ_CELL_DEFINE(rvq_cellptr, void *)
RVQ_CELL_DEFINE_FETCH(rvq_cell32, uint32_t)
RVQ_CELL_DEFINE_FETCH(rvq_cell64, uint64_t)

#undef RVQ_CELL_DEFINE
#undef RVQ_CELL_DEFINE_FETCH

/* Orders every access before it against every access after it, stores against later loads included.
 * "I published, are you asleep?" needs it on both sides; parker.h has it built in. */
static inline void
rvq_fence_full(void)
{
	rvq_fence_sc();
}

#endif
