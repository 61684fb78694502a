/*
 * ck_ring.h - the index block of Concurrency Kit's ring with Relacy's types, for mailbox_relacy.cc.
 *
 * queues/spsc.h takes from Concurrency Kit the indices, their loads and stores, and the fences; the
 * algorithm under test is its own.  ck_pr.h beside this file is empty.
 */
#ifndef REEVE_TESTS_MODELS_RELACY_CK_RING_H
#define REEVE_TESTS_MODELS_RELACY_CK_RING_H

#include <cstring>

/* Read plainly by the side that owns it. */
struct relacy_index : rl::atomic<unsigned> {
	operator unsigned() const
	{
		return this->load(rl::mo_relaxed, $);
	}
};

struct ck_ring {
	relacy_index c_head, p_tail;
	unsigned size, mask;
};

#define ck_pr_load_uint(p)     (p)->load(rl::mo_relaxed, $)
#define ck_pr_store_uint(p, v) (p)->store((v), rl::mo_relaxed, $)

#define ck_pr_fence_load()    relacy_ring_fence(__func__, rl::mo_acquire, $)
#define ck_pr_fence_acquire() relacy_ring_fence(__func__, rl::mo_acquire, $)
#define ck_pr_fence_release() relacy_ring_fence(__func__, rl::mo_release, $)

static inline void
ck_ring_init(struct ck_ring *r, unsigned size)
{
	r->size = size;
	r->mask = size - 1;
	r->c_head.store(0, rl::mo_relaxed, $);
	r->p_tail.store(0, rl::mo_relaxed, $);
}

static inline void
relacy_ring_fence(const char *function, rl::memory_order order, rl::debug_info_param info)
{
	static const char *const fenced[] = {
	    "rvq_ring_publish", "rvq_ring_filled", "rvq_ring_release", "rvq_ring_room"};

	if (planted >= 16 && planted < 20 && std::strcmp(function, fenced[planted - 16]) == 0)
		return;
	rl::atomic_thread_fence(order, info);
}

#endif
