/*
 * atomic.h - the macros of queues/atomic.h over the types of the Relacy race detector.
 *
 * Named by RVQ_ATOMIC_HEADER when mailbox_relacy.cc compiles the real headers.  The memory order
 * of some operations depends on which bug is planted (the list is in mailbox_relacy.cc).
 */
#ifndef REEVE_TESTS_MODELS_RELACY_ATOMIC_H
#define REEVE_TESTS_MODELS_RELACY_ATOMIC_H

#include <cstring>

#define RVQ_ATOMIC(type) rl::atomic<type>
#define RVQ_OWNED(type)  rl::var<type>
#define RVQ_VAR(field)   VAR(field)

#define RELACY_UNLESS(bug, order) (planted == (bug) ? rl::mo_relaxed : (order))

#define rvq_load_rlx(p)     (p)->load(rl::mo_relaxed, $)
#define rvq_load_acq(p)     (p)->load(RELACY_UNLESS(2, rl::mo_acquire), $)
#define rvq_store_rlx(p, v) (p)->store((v), rl::mo_relaxed, $)
#define rvq_store_rel(p, v) (p)->store((v), RELACY_UNLESS(1, rl::mo_release), $)
#define rvq_swap_ar(p, v)   (p)->exchange((v), RELACY_UNLESS(3, rl::mo_acq_rel), $)

#define rvq_cas_ar(p, e, v)           \
	(p)->compare_exchange_strong( \
	    *(e), (v), RELACY_UNLESS(4, rl::mo_acq_rel), $, RELACY_UNLESS(4, rl::mo_acquire), $)
#define rvq_cas_weak_ar(p, e, v)    \
	(p)->compare_exchange_weak( \
	    *(e), (v), RELACY_UNLESS(4, rl::mo_acq_rel), $, RELACY_UNLESS(4, rl::mo_acquire), $)

#define rvq_fetch_add_rlx(p, v) (p)->fetch_add((v), rl::mo_relaxed, $)
#define rvq_fetch_sub_rlx(p, v) (p)->fetch_sub((v), rl::mo_relaxed, $)
#define rvq_fetch_add_ar(p, v)  (p)->fetch_add((v), rl::mo_acq_rel, $)
#define rvq_fetch_sub_ar(p, v)  (p)->fetch_sub((v), RELACY_UNLESS(5, rl::mo_acq_rel), $)
#define rvq_fetch_or_ar(p, v)   (p)->fetch_or((v), RELACY_UNLESS(6, rl::mo_acq_rel), $)
#define rvq_fetch_and_ar(p, v)  (p)->fetch_and((v), rl::mo_acq_rel, $)

#define rvq_fence_sc() relacy_fence(__func__, $)

static inline void
relacy_fence(const char *function, rl::debug_info_param info)
{
	bool sleeper = std::strcmp(function, "rvq_park_arm") == 0;

	if (planted == (sleeper ? 7 : 8))
		return;
	rl::atomic_thread_fence(rl::mo_seq_cst, info);
}

#endif
