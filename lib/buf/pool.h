/* pool.h - blocks of four sizes in a pool per worker (or per lease of an application thread).
 *
 * A pool has one owner at a time, who takes blocks; any thread may give a block back: the owner to its plain free
 * list, others by the pool's return stack.  Pools hang off the arena and are closed with the runtime; a block that
 * comes back to a closed pool goes to the system at once. */
#ifndef REEVE_LIB_BUF_POOL_H
#define REEVE_LIB_BUF_POOL_H

#include "lib/alloc.h"
#include "queues/ref.h"
#include "queues/stack.h"
#include "queues/counter.h"

enum rv_class { RV_256, RV_2K, RV_16K, RV_64K, RV_NCLASS, RV_OWN = RV_NCLASS /* larger: a block of its own */ };

/* Bytes held for somebody, against a limit; refcounted because blocks outlive connections.  parent: the runtime's
 * budget, charged too. */
struct rv_budget {
	struct rvq_ref refs;
	struct rvq_gauge held;
	uint64_t limit;
	struct rv_budget *parent;
	struct rv_arena *arena;
};
struct rv_budget *rv_budget_create(struct rv_arena *ar, uint64_t limit, struct rv_budget *parent);
void rv_budget_unref(struct rv_budget *b);
/* How full the fuller of b and its parents is: 0 below half, 1 below three quarters, 2 below the limit, 3 at it. */
int rv_budget_level(const struct rv_budget *b);

/* The free descriptor of a run of bytes: what the public header calls a buffer.  32 bytes. */
struct reeve_buf {
	struct rv_slab *slab; /* immutable; holds one reference to it */
	uint32_t off, len;    /* immutable once a second reference exists */
	struct rvq_ref refs;
	uint32_t own; /* the descriptor is an allocation of its own, not one of the slab's */
	struct reeve_buf *next; /* owner: link in one chain */
};

/* Descriptors inside a block.  34 slices of at least 2 KiB fill 64 KiB; the rest is for runs that arrive in pieces. */
#define RV_SLAB_DESCS 48

/* A block: this header, then (64 KiB class only) RV_SLAB_DESCS descriptors, one descriptor for the smaller classes, then bytes at data. */
struct rv_slab {
	struct rvq_link link; /* free list or return stack */
	struct rvq_ref refs;
	uint32_t cap;  /* bytes at data */
	uint32_t used; /* owner: bytes filled so far, for whoever appends */
	uint16_t cls, ndesc, udesc; /* descriptors there are, and used so far (owner) */
	uint8_t *data;
	struct rv_pool *home;     /* NULL for RV_OWN and wrapped bytes */
	struct rv_arena *arena;
	struct rv_budget *budget; /* charged with cap until freed, or NULL */
	void (*done)(void *ctx);  /* wrapped bytes: tell the application */
	void *done_ctx;
	size_t size; /* of the allocation */
	struct reeve_buf desc[];
};

struct rv_pool *rv_pool_create(struct rv_arena *ar);
/* The calling thread owns p from now on (a thread-local, so that blocks it frees go to the plain list); NULL: none. */
void rv_pool_enter(struct rv_pool *p);
struct rv_pool *rv_pool_current(void);
/* Free everything cached and send later returns to the system.  No owner any more.  Drops the pool's creation reference;
 * the memory goes when the last block has come home. */
void rv_pool_close(struct rv_pool *p);
/* Free what is cached beyond a small reserve (owner; called when idle). */
void rv_pool_trim(struct rv_pool *p);

/* A block of at least size bytes, one reference, no descriptor used, used == 0; contents undefined.  size > 64 KiB: a
 * block of its own.  Owner of p only.  NULL: out of memory. */
struct rv_slab *rv_slab_get(struct rv_pool *p, size_t size);
/* A block over foreign bytes. */
struct rv_slab *rv_slab_wrap(struct rv_arena *ar, const void *p, size_t n, void (*done)(void *), void *ctx);
/* Charge the block's capacity to b until it is freed (once per life; owner, before anybody shares it). */
void rv_slab_charge(struct rv_slab *s, struct rv_budget *b);
void rv_slab_ref(struct rv_slab *s);
void rv_slab_unref(struct rv_slab *s); /* any thread */

#endif
