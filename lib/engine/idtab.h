/* idtab.h - stream id -> record: open addressing, linear probing, at most half full, 16 bytes an
 * entry.
 *
 * Ids come from the peer, so the multiplier is not a constant: a peer that knew it could make
 * every id collide.  It comes from the caller (the creation time), which keeps a replay with a
 * virtual clock deterministic. */
#ifndef REEVE_LIB_ENGINE_IDTAB_H
#define REEVE_LIB_ENGINE_IDTAB_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/alloc.h"

struct rv_stream;

struct rv_idtab_entry {
	uint64_t id; /* 0: free */
	struct rv_stream *st;
};

struct rv_idtab {
	struct rv_idtab_entry *v; /* NULL until the first stream */
	uint32_t cap;             /* a power of two */
	uint32_t n;
	uint64_t mult;
	unsigned shift; /* 64 - log2(cap) */
};

void rv_idtab_init(struct rv_idtab *t, uint64_t seed);
void rv_idtab_fini(struct rv_idtab *t, struct rv_arena *ar);
/* Make room for one more.  REEVE_ENOMEM: nothing changed. */
int rv_idtab_reserve(struct rv_idtab *t, struct rv_arena *ar);
/* After rv_idtab_reserve; id is not in the table and not 0. */
void rv_idtab_put(struct rv_idtab *t, uint64_t id, struct rv_stream *st);
/* Shrinks now and then; a failed shrink is no failure.  id is in the table. */
void rv_idtab_del(struct rv_idtab *t, struct rv_arena *ar, uint64_t id);

static inline uint32_t
rv_idtab_slot(const struct rv_idtab *t, uint64_t id)
{
	return (uint32_t)((id * t->mult) >> t->shift);
}

static inline struct rv_stream *
rv_idtab_get(const struct rv_idtab *t, uint64_t id)
{
	if (t->v == NULL || id == 0)
		return NULL;
	for (uint32_t i = rv_idtab_slot(t, id);; i = (i + 1) & (t->cap - 1)) {
		if (t->v[i].id == id)
			return t->v[i].st;
		if (t->v[i].id == 0)
			return NULL;
	}
}

#endif
