/* alloc.h - the arena: one allocator, refcounted, that everything of a runtime is taken from.
 *
 * Any thread.  A block that was taken from the system keeps the arena alive, so buffers, streams
 * and controllers may be freed by whoever drops the last reference, also after the runtime is
 * gone. */
#ifndef REEVE_LIB_ALLOC_H
#define REEVE_LIB_ALLOC_H

#include <reeve/rt.h>

struct rv_arena;

/* Copies *a (NULL or both functions NULL: malloc).  One reference.  The arena itself comes from the
 * allocator too.  NULL: out of memory, or only one of the two functions is there. */
struct rv_arena *rv_arena_create(const reeve_alloc_t *a);
void rv_arena_ref(struct rv_arena *ar);
void rv_arena_unref(struct rv_arena *ar);

/* size bytes (> 0) aligned to align (a power of two, at least 16 is given); NULL when the allocator
 * fails.  Each block holds one reference to the arena. */
void *rv_alloc(struct rv_arena *ar, size_t size, size_t align);
/* The same, zeroed, aligned for any type. */
void *rv_zalloc(struct rv_arena *ar, size_t size);
/* p may be NULL; size as given at allocation. */
void rv_free(struct rv_arena *ar, void *p, size_t size);

/* Give a block (at most RV_ARENA_KEEP of them) to the arena, to be freed with it, for what handles may still
 * look at after the runtime is gone.  One caller, who holds a reference of his own. */
#define RV_ARENA_KEEP 2
void rv_arena_keep(struct rv_arena *ar, void *p, size_t size);

/* Blocks taken from the allocator since creation, and bytes out now (gauges, any thread; the arena
 * itself is in neither). */
uint64_t rv_arena_allocs(const struct rv_arena *ar);
uint64_t rv_arena_bytes(const struct rv_arena *ar);

#endif
