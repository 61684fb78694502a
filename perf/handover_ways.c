/*
 * handover_ways.c - ways from a block that was received to the consumer of a stream.
 *
 * slices: the block is the library's slab, a piece a reference to a part of it; whoever drops the last one gives the block back.
 * in place: the piece is copied into the stream's buffer, a ring of 256 KiB, where the consumer reads it.
 * copy: the same, and the consumer copies it out of there into memory of its own: read(2).
 * litep2p: a zeroed buffer for each frame, the frame copied into it; another zeroed one of the consumer's, copied into; both
 * from the allocator and back.  Two copies and two memsets is what its yamux stream and substream do with a frame's body.
 */
#include <config.h>

#include "perf/handover.h"

#include <stdlib.h>
#include <string.h>

#include "lib/buf/slice.h"
#include "perf/flow.h"
#include "queues/cell.h"

#define STREAMS 8
#define WINDOW  (256u * 1024)

/* A stream's buffer.  Positions count bytes for ever. */
struct lane {
	uint8_t *bytes;
	uint64_t written;                                        /* the receiver's */
	struct rvq_cell64 consumed __attribute__((aligned(64))); /* the consumer's */
};

struct rvp_way {
	struct lane lanes[STREAMS];
	uint8_t *block, *out;
	struct rv_arena *arena;
	struct rv_pool *pool; /* the receiving thread's */
	struct rv_slab *slab;
};

/* --- slices --- */

static uint8_t *
slices_block(struct rvp_way *w)
{
	if (w->pool == NULL) {
		rvp_check((w->pool = rv_pool_create(w->arena)) != NULL, "memory");
		rv_pool_enter(w->pool);
	}
	if (w->slab != NULL)
		rv_slab_unref(w->slab);
	w->slab = rv_slab_get(w->pool, RVP_HAND_BLOCK);
	rvp_check(w->slab != NULL, "memory");
	return w->slab->data;
}

static bool
slices_give(struct rvp_way *w, unsigned stream, uint32_t off, uint32_t n, struct rvp_piece *piece)
{
	reeve_buf_t *b = rv_buf_cut(w->slab, off, n);

	rvp_check(b != NULL, "memory");
	*piece = (struct rvp_piece){rv_buf_data(b), n, stream, b};
	return true;
}

static uint64_t
slices_take(struct rvp_way *w, struct rvp_piece *piece)
{
	uint64_t sum = rvp_hand_sum(piece->p, piece->n);

	(void)w;
	rv_buf_unref(piece->own);
	return sum;
}

/* --- a buffer for each stream --- */

static uint8_t *
plain_block(struct rvp_way *w)
{
	return w->block;
}

static bool
ring_give(struct rvp_way *w, unsigned stream, uint32_t off, uint32_t n, struct rvp_piece *piece)
{
	struct lane *l = &w->lanes[stream];
	uint64_t at = l->written % WINDOW, skip = at + n > WINDOW ? WINDOW - at : 0;

	/* A piece lies in one run; what is left at the end is skipped. */
	if (l->written + skip + n - rvq_cell64_get(&l->consumed) > WINDOW)
		return false;
	at = (at + skip) % WINDOW;
	memcpy(l->bytes + at, w->block + off, n);
	l->written += skip + n;
	*piece = (struct rvp_piece){l->bytes + at, n, stream, (void *)(uintptr_t)(skip + n)};
	return true;
}

static void
ring_done(struct rvp_way *w, const struct rvp_piece *piece)
{
	struct lane *l = &w->lanes[piece->stream];

	rvq_cell64_put(&l->consumed, rvq_cell64_get(&l->consumed) + (uintptr_t)piece->own);
}

static uint64_t
in_place_take(struct rvp_way *w, struct rvp_piece *piece)
{
	uint64_t sum = rvp_hand_sum(piece->p, piece->n);

	ring_done(w, piece);
	return sum;
}

static uint64_t
copy_take(struct rvp_way *w, struct rvp_piece *piece)
{
	memcpy(w->out, piece->p, piece->n);
	ring_done(w, piece);
	return rvp_hand_sum(w->out, piece->n);
}

/* --- litep2p's --- */

static bool
litep2p_give(struct rvp_way *w, unsigned stream, uint32_t off, uint32_t n, struct rvp_piece *piece)
{
	uint8_t *frame = malloc(n);

	rvp_check(frame != NULL, "memory");
	memset(frame, 0, n);
	memcpy(frame, w->block + off, n);
	*piece = (struct rvp_piece){frame, n, stream, frame};
	return true;
}

static uint64_t
litep2p_take(struct rvp_way *w, struct rvp_piece *piece)
{
	uint8_t *message = malloc(piece->n);
	uint64_t sum;

	(void)w;
	rvp_check(message != NULL, "memory");
	memset(message, 0, piece->n);
	memcpy(message, piece->p, piece->n);
	free(piece->own);
	sum = rvp_hand_sum(message, piece->n);
	free(message);
	return sum;
}

const struct rvp_way_kind rvp_way_slices = {"slices", slices_block, slices_give, slices_take};
const struct rvp_way_kind rvp_way_in_place = {"in place", plain_block, ring_give, in_place_take};
const struct rvp_way_kind rvp_way_copy = {"copy", plain_block, ring_give, copy_take};
const struct rvp_way_kind rvp_way_litep2p = {"litep2p", plain_block, litep2p_give, litep2p_take};

/* --- all --- */

uint64_t
rvp_hand_sum(const uint8_t *p, size_t n)
{
	uint64_t sum = 0, word;
	size_t i;

	for (i = 0; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		sum += word;
	}
	for (; i < n; i++)
		sum += p[i];
	return sum;
}

struct rvp_way *
rvp_way_open(void)
{
	struct rvp_way *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);

	rvp_check(w != NULL, "memory");
	memset(w, 0, sizeof(*w));
	w->arena = rv_arena_create(NULL);
	w->block = malloc(RVP_HAND_BLOCK);
	w->out = malloc(RVP_HAND_BLOCK);
	rvp_check(w->arena != NULL && w->block != NULL && w->out != NULL, "memory");
	memset(w->block, 0, RVP_HAND_BLOCK);
	memset(w->out, 0, RVP_HAND_BLOCK);
	for (unsigned i = 0; i < STREAMS; i++) {
		rvp_check((w->lanes[i].bytes = malloc(WINDOW)) != NULL, "memory");
		memset(w->lanes[i].bytes, 0, WINDOW);
	}
	return w;
}

void
rvp_way_close(struct rvp_way *w)
{
	if (w->slab != NULL)
		rv_slab_unref(w->slab);
	if (w->pool != NULL) {
		rv_pool_enter(NULL);
		rv_pool_close(w->pool);
	}
	rv_arena_unref(w->arena);
	for (unsigned i = 0; i < STREAMS; i++)
		free(w->lanes[i].bytes);
	free(w->block);
	free(w->out);
	free(w);
}
