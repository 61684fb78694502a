/* buf_api.c - the public calls on buffers that need no runtime: see reeve/buf.h.  Any thread. */
#include <config.h>

#include <reeve/buf.h>
#include "lib/buf/slice.h"
#include "lib/check.h"

reeve_buf_t *
reeve_buf_slice(reeve_buf_t *b, size_t off, size_t n)
{
	REEVE_REQUIRE(b != NULL && off <= b->len && n <= b->len - off, NULL);
	return rv_buf_slice(b, (uint32_t)off, (uint32_t)n);
}

reeve_buf_t *
reeve_buf_ref(reeve_buf_t *b)
{
	REEVE_REQUIRE(b != NULL, NULL);
	rvq_ref_get(&b->refs);
	return b;
}

void
reeve_buf_unref(reeve_buf_t *b)
{
	rv_buf_unref(b);
}

const uint8_t *
reeve_buf_data(const reeve_buf_t *b)
{
	REEVE_REQUIRE(b != NULL, NULL);
	return rv_buf_data(b);
}

uint8_t *
reeve_buf_mut(reeve_buf_t *b)
{
	REEVE_REQUIRE(b != NULL && b->slab->cls != RV_WRAPPED, NULL);
	if (!rvq_ref_single(&b->refs) || !rvq_ref_single(&b->slab->refs))
		return NULL;
	return b->slab->data + b->off;
}

size_t
reeve_buf_len(const reeve_buf_t *b)
{
	REEVE_REQUIRE(b != NULL, 0);
	return b->len;
}
