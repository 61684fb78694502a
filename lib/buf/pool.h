/* pool.h - blocks of four sizes in a pool per worker (or per lease of an application thread).
 *
 * A pool has one owner at a time, who takes blocks; any thread may give a block back: the owner
 * to its plain free list, others by the pool's return stack.  Pools hang off the arena and are
 * closed with the runtime; a block that comes back to a closed pool goes to the system at once. */
#ifndef REEVE_LIB_BUF_POOL_H
#define REEVE_LIB_BUF_POOL_H

#include <stddef.h>
#include "lib/alloc.h"
#include "queues/ref.h"
#include "queues/stack.h"
#include "queues/counter.h"

enum rv_class {
	RV_256,
	RV_2K,
	RV_16K,
	RV_64K,
	RV_NCLASS,
	RV_OWN = RV_NCLASS, /* larger: a block of its own */
	RV_WRAPPED          /* foreign bytes */
};

/* Largest block or wrapped run, so that sums of a few lengths fit 32 bits. */
#define RV_BUF_MAX (1u << 30)

/* What a pool keeps of a class before blocks go back to the system, and what trimming leaves:
 * bytes. */
#define RV_POOL_KEEP_64K (4u << 20)
#define RV_POOL_KEEP     (1u << 20)
#define RV_POOL_TRIM_64K (256u << 10)
#define RV_POOL_TRIM     (64u << 10)
/* What others may give back before the owner fetches it: bytes; beyond that it goes to the system at once. */
#define RV_POOL_RETURNS (4u << 20)

/* Bytes held for somebody, against a limit; refcounted because blocks outlive connections.
 * parent: the runtime's budget, charged too, kept alive by a reference. */
struct rv_budget {
	struct rvq_ref refs;
	struct rvq_gauge held;
	uint64_t limit; /* UINT64_MAX: none; its owner may change it as long as nothing is held */
	struct rv_budget *parent;
	struct rv_arena *arena;
};
/* One reference.  NULL: out of memory. */
struct rv_budget *rv_budget_create(struct rv_arena *ar, uint64_t limit, struct rv_budget *parent);
void rv_budget_unref(struct rv_budget *b); /* any thread; NULL ignored */
/* How full the fullest of b and its parents is: 0 below half, 1 below three quarters, 2 below
 * the limit, 3 at it.  Of a parent's limit the last eighth is for those who hold little themselves
 * (less than RV_BUDGET_SMALL and a sixteenth of it): for the others it ends before, and for those it
 * is 1 until it is 3.  Any thread. */
#define RV_BUDGET_SMALL (256u << 10)
int rv_budget_level(const struct rv_budget *b);

/* The descriptor of a run of bytes: what the public header calls a buffer.  32 bytes. */
struct reeve_buf {
	struct rv_slab *slab; /* immutable; holds one reference to it */
	uint32_t off, len;    /* immutable once a second reference exists */
	struct rvq_ref refs;
	uint32_t own; /* the descriptor is an allocation of its own, not one of the slab's */
	struct reeve_buf *next; /* owner: link in one chain */
};

/* Descriptors inside a block.  34 slices of at least 2 KiB fill 64 KiB; the rest is for runs
 * that arrive in pieces. */
#define RV_SLAB_DESCS 48

/* A block: this header, then RV_SLAB_DESCS descriptors (64 KiB class only, else one), then bytes
 * at data, which begin at a cache line. */
struct rv_slab {
	struct rvq_link link; /* free list or return stack */
	struct rvq_ref refs;
	uint32_t cap;               /* bytes at data */
	uint32_t used;              /* owner: bytes filled so far, for whoever appends */
	uint16_t cls, ndesc, udesc; /* descriptors there are, and used so far (owner) */
	uint8_t *data;
	struct rv_pool *home; /* NULL for RV_OWN and RV_WRAPPED */
	struct rv_arena *arena;
	struct rv_budget *budget; /* charged with cap until freed, or NULL */
	void (*done)(void *ctx);  /* RV_WRAPPED: tell the application, or NULL */
	void *done_ctx;
	size_t size; /* of the allocation */
	struct reeve_buf desc[];
};

/* The block of a link; while somebody has the only reference, link is his. */
static inline struct rv_slab *
rv_slab_of(struct rvq_link *l)
{
	return (struct rv_slab *)(void *)((char *)l - offsetof(struct rv_slab, link));
}

/* NULL: out of memory.  The caller owns it. */
struct rv_pool *rv_pool_create(struct rv_arena *ar);
/* The calling thread owns p from now on (a thread-local, so that blocks it frees go to the plain
 * list); NULL: none.  Whoever hands a pool from thread to thread orders the two. */
void rv_pool_enter(struct rv_pool *p);
struct rv_pool *rv_pool_current(void);
/* Free everything cached and send later returns to the system.  Called when there is no owner
 * any more, or by the owner.  Drops the pool's creation reference; the memory goes when the last
 * block has come home. */
void rv_pool_close(struct rv_pool *p);
/* Fetch what others gave back, and free what is cached beyond a small reserve (owner; called
 * when idle). */
void rv_pool_trim(struct rv_pool *p);

/* A block of at least size bytes (at most RV_BUF_MAX), one reference, no descriptor used, used
 * == 0; contents undefined.  size > 64 KiB: a block of its own.  Owner of p only.  NULL: out of
 * memory. Free list, else return stack, else the system: in the steady state the allocator is
 * not called. */
struct rv_slab *rv_slab_get(struct rv_pool *p, size_t size);
/* A block over n foreign bytes (1 to RV_BUF_MAX), any thread; done(ctx), which may be NULL, is
 * called by whoever drops the last reference, after everything of ours is gone.  NULL: out of
 * memory or bad n, and done is not called. */
struct rv_slab *rv_slab_wrap(
    struct rv_arena *ar, const void *p, size_t n, void (*done)(void *), void *ctx);
/* Charge the block's capacity to b (NULL: nobody) and its parents until it is freed (once per
 * life; owner, before anybody shares it). */
void rv_slab_charge(struct rv_slab *s, struct rv_budget *b);
void rv_slab_ref(struct rv_slab *s);   /* any holder */
void rv_slab_unref(struct rv_slab *s); /* any thread */

/* Any holder: give one reference up; true when it was the last.  Whoever holds the only one
 * needs no read-modify-write: nobody else can take another. */
static inline bool
rv_ref_drop(struct rvq_ref *r)
{
	return rvq_ref_single(r) || rvq_ref_put(r);
}

#endif
