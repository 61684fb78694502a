/*
 * ref.h - reference counts.
 *
 * A reference may be taken only by somebody who holds one, so taking needs no order.  Every drop
 * releases what its holder did and the last drop acquires it all: whoever sees true may free.
 */
#ifndef REEVE_QUEUES_REF_H
#define REEVE_QUEUES_REF_H

#include "queues/atomic.h"

struct rvq_ref {
	RVQ_ATOMIC(uint32_t) count;
};

/* Before the object is shared: n references exist. */
static inline void
rvq_ref_init(struct rvq_ref *r, uint32_t n)
{
	rvq_store_rlx(&r->count, n);
}

/* Any holder: one more reference. */
static inline void
rvq_ref_get(struct rvq_ref *r)
{
	rvq_fetch_add_rlx(&r->count, 1);
}

/* Any holder: gives one reference up; true when it was the last and the caller must free.
 * pairs with rvq_ref_put of the other holders. */
static inline bool
rvq_ref_put(struct rvq_ref *r)
{
	return rvq_fetch_sub_ar(&r->count, 1) == 1;
}

/* Any holder: true when it is the only one, and then everything the former holders did is visible
 * (the object may be written in place).  pairs with rvq_ref_put. */
static inline bool
rvq_ref_single(const struct rvq_ref *r)
{
	return rvq_load_acq(&r->count) == 1;
}

/* Any holder: a snapshot for statistics and checks. */
static inline uint32_t
rvq_ref_count(const struct rvq_ref *r)
{
	return rvq_load_rlx(&r->count);
}

#endif
