/* limits.h - bounds on what a peer can make us owe or do: a token bucket, the pongs and the
 * refusals to send. */
#ifndef REEVE_LIB_ENGINE_LIMITS_H
#define REEVE_LIB_ENGINE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/alloc.h"

#define RV_PONGS_MAX       32u
#define RV_REFUSALS_MAX    1024u
#define RV_REFUSALS_INLINE 16u

/* rate tokens a second up to burst.  Time is counted in whole tokens, so nothing is lost by
 * asking often. */
struct rv_bucket {
	uint32_t tokens, burst, rate;
	uint64_t since;
};
void rv_bucket_init(struct rv_bucket *b, uint32_t burst, uint32_t rate, uint64_t now);
/* One token.  False: none left. */
bool rv_bucket_take(struct rv_bucket *b, uint64_t now);

/* Values of pings not answered yet, oldest first.  When it is full the newest is not answered. */
struct rv_pongs {
	uint32_t n;
	uint32_t v[RV_PONGS_MAX];
};
bool rv_pongs_push(struct rv_pongs *p, uint32_t value);
/* The first k are answered. */
void rv_pongs_drop(struct rv_pongs *p, uint32_t k);

/* Ids of streams to refuse, oldest first.  A few without an allocation, because the lack of
 * memory is a reason to refuse. */
struct rv_refusals {
	uint32_t n, at, cap;
	uint64_t *v;
	uint64_t own[RV_REFUSALS_INLINE];
};
void rv_refusals_init(struct rv_refusals *r);
void rv_refusals_fini(struct rv_refusals *r, struct rv_arena *ar);
/* REEVE_ELIMIT, REEVE_ENOMEM. */
int rv_refusals_push(struct rv_refusals *r, struct rv_arena *ar, uint64_t id);
/* The oldest, or 0 when there is none (and then the memory goes back). */
uint64_t rv_refusals_pop(struct rv_refusals *r, struct rv_arena *ar);
static inline uint32_t
rv_refusals_count(const struct rv_refusals *r)
{
	return r->n - r->at;
}
static inline bool
rv_refusals_any(const struct rv_refusals *r)
{
	return r->at != r->n;
}

#endif
