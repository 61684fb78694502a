/* mplex_wire.h - frames of mplex by hand, and a reader that trusts nothing of the engine's.  A flag is the one of the
 * wire. */
#ifndef REEVE_TESTS_KIT_MPLEX_WIRE_H
#define REEVE_TESTS_KIT_MPLEX_WIRE_H

#include "tests/kit/wire.h"

enum {
	RVT_MP_OPEN,
	RVT_MP_DATA_R, /* the sender accepted the stream */
	RVT_MP_DATA_I, /* the sender opened it */
	RVT_MP_CLOSE_R,
	RVT_MP_CLOSE_I,
	RVT_MP_RESET_R,
	RVT_MP_RESET_I
};

/* Key of a stream that the engine under test has opened (ours) or its peer has. */
static inline uint64_t
rvt_mp_key(uint64_t id, bool ours)
{
	return 2 * id + 2 + ours;
}

struct rvt_mp_run {
	uint32_t key, n;
	uint64_t from;
};

void rvt_mp_varint(struct rvt_bytes *b, uint64_t v);
/* A header that announces n bytes. */
void rvt_mp_put(struct rvt_bytes *b, unsigned flag, uint64_t id, uint64_t n);
/* DATA with bytes rvt_byte(key, from + i). */
void rvt_mp_data_of(struct rvt_bytes *b, unsigned flag, uint64_t id, struct rvt_mp_run run);
/* DATA from the peer of an engine on the bench: the stream's n bytes from the given one on. */
void rvt_mp_data(struct rvt_bytes *b, unsigned flag, uint64_t id, uint32_t n, uint64_t from);

struct rvt_mp_frame {
	unsigned flag;
	uint64_t id;
	uint32_t len, header;
	const uint8_t *body; /* valid until b changes */
};
/* The next whole frame; false: there is none. */
bool rvt_mp_next(struct rvt_bytes *b, struct rvt_mp_frame *f);

#endif
