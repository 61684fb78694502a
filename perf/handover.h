/* handover.h - what comes in is handed over, or copied. */
#ifndef REEVE_PERF_HANDOVER_H
#define REEVE_PERF_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVP_HAND_BLOCK 65536u /* bytes that one receive call brings */

/* The sum of n bytes as 8-byte words and a rest: every byte is read. */
uint64_t rvp_hand_sum(const uint8_t *p, size_t n);

/* --- handover_ways.c: from the connection to a stream's consumer --- */

struct rvp_way; /* of one run */

struct rvp_piece {
	const uint8_t *p; /* what the consumer reads, or takes */
	uint32_t n;
	unsigned stream;
	void *own;
};

struct rvp_way_kind {
	const char *name;
	/* The receiving thread: where the next block is received. */
	uint8_t *(*block)(struct rvp_way *w);
	/* The receiving thread: n bytes at off of that block for a stream.  False: the stream has no room yet. */
	bool (*give)(
	    struct rvp_way *w, unsigned stream, uint32_t off, uint32_t n, struct rvp_piece *piece);
	/* The consumer: the sum of a piece, which it is done with. */
	uint64_t (*take)(struct rvp_way *w, struct rvp_piece *piece);
};

extern const struct rvp_way_kind rvp_way_slices, rvp_way_in_place, rvp_way_copy, rvp_way_litep2p;

struct rvp_way *rvp_way_open(void);
void rvp_way_close(struct rvp_way *w);

/* --- handover_library.c: the same within the library --- */

/* Prints its cells. */
void rvp_handover_library(bool quick, unsigned rounds);

#endif
