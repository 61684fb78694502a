/* limits.c - see limits.h. */
#include <config.h>

#include "lib/engine/limits.h"

#include <reeve/error.h>
#include <string.h>

#define SECOND_US 1000000u

void
rv_bucket_init(struct rv_bucket *b, uint32_t burst, uint32_t rate, uint64_t now)
{
	b->tokens = b->burst = burst;
	b->rate = rate;
	b->since = now;
}

bool
rv_bucket_take(struct rv_bucket *b, uint64_t now)
{
	uint64_t us = now - b->since, fresh;

	if (b->burst == UINT32_MAX)
		return true;
	if (us > UINT32_MAX)
		us = UINT32_MAX;
	fresh = us * b->rate / SECOND_US;
	if (fresh >= b->burst - b->tokens) {
		b->tokens = b->burst;
		b->since = now;
	} else if (fresh > 0) {
		b->tokens += (uint32_t)fresh;
		b->since += fresh * SECOND_US / b->rate;
	}
	if (b->tokens == 0)
		return false;
	b->tokens--;
	return true;
}

bool
rv_pongs_push(struct rv_pongs *p, uint32_t value)
{
	if (p->n == RV_PONGS_MAX)
		return false;
	p->v[p->n++] = value;
	return true;
}

void
rv_pongs_drop(struct rv_pongs *p, uint32_t k)
{
	p->n -= k;
	memmove(p->v, p->v + k, p->n * sizeof(p->v[0]));
}

void
rv_refusals_init(struct rv_refusals *r)
{
	r->n = r->at = 0;
	r->cap = RV_REFUSALS_INLINE;
	r->v = r->own;
}

void
rv_refusals_fini(struct rv_refusals *r, struct rv_arena *ar)
{
	if (r->v != r->own)
		rv_free(ar, r->v, r->cap * sizeof(r->v[0]));
	rv_refusals_init(r);
}

int
rv_refusals_push(struct rv_refusals *r, struct rv_arena *ar, uint64_t id)
{
	uint64_t *v;

	if (r->n == r->cap && r->at > 0) {
		r->n -= r->at;
		memmove(r->v, r->v + r->at, r->n * sizeof(r->v[0]));
		r->at = 0;
	}
	if (r->n == RV_REFUSALS_MAX)
		return REEVE_ELIMIT;
	if (r->n == r->cap) {
		v = rv_alloc(ar, RV_REFUSALS_MAX * sizeof(*v), sizeof(*v));
		if (v == NULL)
			return REEVE_ENOMEM;
		memcpy(v, r->v, r->n * sizeof(*v));
		r->v = v;
		r->cap = RV_REFUSALS_MAX;
	}
	r->v[r->n++] = id;
	return 0;
}

uint64_t
rv_refusals_pop(struct rv_refusals *r, struct rv_arena *ar)
{
	if (r->at == r->n) {
		rv_refusals_fini(r, ar);
		return 0;
	}
	return r->v[r->at++];
}
