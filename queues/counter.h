/*
 * counter.h - statistics: numbers that order nothing.
 *
 * A counter has one writing thread, its owner, and pays a plain load and store; any thread may
 * read it. A gauge has many writers.  Both are relaxed: a reader sees some recent value and may
 * conclude nothing about other memory from it.
 */
#ifndef REEVE_QUEUES_COUNTER_H
#define REEVE_QUEUES_COUNTER_H

#include "queues/atomic.h"

struct rvq_counter {
	RVQ_ATOMIC(uint64_t) value;
};

struct rvq_gauge {
	RVQ_ATOMIC(uint64_t) value;
};

/* Any thread. */
static inline uint64_t
rvq_counter_get(const struct rvq_counter *c)
{
	return rvq_load_rlx(&c->value);
}

/* Owner. */
static inline void
rvq_counter_set(struct rvq_counter *c, uint64_t v)
{
	rvq_store_rlx(&c->value, v);
}

/* Owner. */
static inline void
rvq_counter_add(struct rvq_counter *c, uint64_t n)
{
	rvq_store_rlx(&c->value, rvq_load_rlx(&c->value) + n);
}

/* Owner: the counter becomes v if that is more (a high-water mark). */
static inline void
rvq_counter_max(struct rvq_counter *c, uint64_t v)
{
	if (v > rvq_load_rlx(&c->value))
		rvq_store_rlx(&c->value, v);
}

/* Any thread.  Returns the value after, so that a bound can be tested with the same access. */
static inline uint64_t
rvq_gauge_add(struct rvq_gauge *g, uint64_t n)
{
	return rvq_fetch_add_rlx(&g->value, n) + n;
}

/* Any thread.  Returns the value after. */
static inline uint64_t
rvq_gauge_sub(struct rvq_gauge *g, uint64_t n)
{
	return rvq_fetch_sub_rlx(&g->value, n) - n;
}

/* Any thread. */
static inline uint64_t
rvq_gauge_get(const struct rvq_gauge *g)
{
	return rvq_load_rlx(&g->value);
}

#endif
