/* slice.h - buffers: descriptors of runs of bytes in blocks, and chains of them.
 *
 * A descriptor lives in its block while there are some left, else it is an allocation of its
 * own.  Cutting needs the block's owner (who holds a reference and fills it); referencing and
 * letting go is for any thread. */
#ifndef REEVE_LIB_BUF_SLICE_H
#define REEVE_LIB_BUF_SLICE_H

#include "lib/buf/pool.h"

/* A buffer over [off, off + len) of s, one reference; takes a reference to s.  Owner of s only.
 * NULL: out of memory (only possible when the descriptors of s are used up). */
reeve_buf_t *rv_buf_cut(struct rv_slab *s, uint32_t off, uint32_t len);
/* The same from a buffer, off counted from its start, by any thread: always an allocation of its
 * own. NULL: out of memory or out of range. */
reeve_buf_t *rv_buf_slice(reeve_buf_t *b, uint32_t off, uint32_t len);
/* A buffer of exactly n bytes (1 to RV_BUF_MAX), contents undefined, in a block of its own that
 * is marked full; it is the only reference.  Owner of p only.  NULL: out of memory or bad n. */
reeve_buf_t *rv_buf_alloc(struct rv_pool *p, size_t n);
/* A buffer over n foreign bytes: see rv_slab_wrap.  Any thread. */
reeve_buf_t *rv_buf_wrap(
    struct rv_arena *ar, const void *p, size_t n, void (*done)(void *), void *ctx);

static inline const uint8_t *
rv_buf_data(const reeve_buf_t *b)
{
	return b->slab->data + b->off;
}
static inline size_t
rv_buf_len(const reeve_buf_t *b)
{
	return b->len;
}
void rv_buf_unref(reeve_buf_t *b); /* any thread; NULL ignored */

/* A queue of buffers linked through next: only buffers that nobody else holds may be in one, and
 * none is empty.  One owner. */
struct rv_chain {
	struct reeve_buf *head, *tail;
	size_t bytes;
};
void rv_chain_init(struct rv_chain *c);
/* Append; consumes b.  A buffer with other references gets a descriptor of its own first; an
 * empty one is let go.  REEVE_ENOMEM: b is gone, the chain as before. */
int rv_chain_push(struct rv_chain *c, reeve_buf_t *b);
/* Put back at the front; consumes b, which must be unshared and not empty (it was popped from
 * here). */
void rv_chain_unpop(struct rv_chain *c, reeve_buf_t *b);
/* The first buffer, the caller's now, or NULL. */
reeve_buf_t *rv_chain_pop(struct rv_chain *c);
/* Drop n bytes from the front (n <= bytes). */
void rv_chain_skip(struct rv_chain *c, size_t n);
/* Let go of everything. */
void rv_chain_clear(struct rv_chain *c);
/* Append len bytes of s at off without copying: extends the last buffer when it ends exactly
 * there, else cuts a new one.  Owner of s.  REEVE_ENOMEM: the chain as before. */
int rv_chain_cut(struct rv_chain *c, struct rv_slab *s, uint32_t off, uint32_t len);
/* Append a copy of n bytes: into the last buffer's block when that buffer ends at the block's
 * fill mark and the block is unshared and small (below RV_64K), the rest into new blocks from p
 * (2 KiB class; 16 KiB when the last one was filled up or more than 2 KiB are left) that are
 * charged to bud (NULL: nobody). Owner of p.  REEVE_ENOMEM: the chain as before, nothing was
 * copied. */
int rv_chain_copy(
    struct rv_chain *c, struct rv_pool *p, struct rv_budget *bud, const uint8_t *bytes, size_t n);

#endif
