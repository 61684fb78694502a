/* world.h - one engine, either protocol, and the application around it, as fuzz targets drive them.
 *
 * Bytes that a blocked engine does not take are held and come before the next ones; an engine that stays blocked when
 * its time has passed, or everything was read, is a fault. */
#ifndef REEVE_FUZZ_WORLD_H
#define REEVE_FUZZ_WORLD_H

#include "fuzz/fuzz.h"
#include "lib/config.h"
#include "lib/engine/gather.h"

#define MEMORY_BOUND (4u << 20)
#define MAX_STREAMS  128u
#define PIECE_MAX    (65536u + 16)

struct world {
	struct rv_engine *e;
	struct rv_arena *ar;
	struct rv_pool *pool;
	struct rv_budget *budget; /* of held bytes; all of them are ... */
	struct rv_slab *hog;      /* ... in this one, or NULL */
	struct rv_stream *st[2 * MAX_STREAMS];
	unsigned n, room;
	uint64_t now;
	bool dead;
	size_t nheld;
	uint8_t held[PIECE_MAX];
	struct rv_gather g;
};

/* cfg as the application would give it. */
void world_start(struct world *w, int role, const reeve_cfg_t *cfg);
/* At most PIECE_MAX bytes. */
void world_feed(struct world *w, const uint8_t *p, size_t n);
/* Something that the application does. */
void world_act(struct world *w, unsigned what, unsigned arg);
/* Whatever is pending, with room for it; memory has its bound. */
void world_settle(struct world *w);
void world_finish(struct world *w);

/* A protocol's part. */
struct world_target {
	void (*start)(struct world *w, uint8_t how);
	void (*frame)(struct world *w, const uint8_t *p); /* out of four bytes */
	void (*check)(struct world *w);
};
/* An input is a program.  Its first byte is how to start; then a byte below 8 feeds eight times that many of the next
 * bytes as they are, one below 0xc0 feeds a frame made of the next bytes (most of them nearly right, so that a
 * connection lives for a while), 0xc0 and above is something that the application does. */
int world_run(const struct world_target *t, const uint8_t *p, size_t n);

#endif
