/* wire.h - yamux frames by hand: a growing run of bytes, builders, and a reader that trusts
 * nothing of the engine's. */
#ifndef REEVE_TESTS_KIT_WIRE_H
#define REEVE_TESTS_KIT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RVT_DATA, RVT_WU, RVT_PING, RVT_GOAWAY };
#define RVT_SYN 1u
#define RVT_ACK 2u
#define RVT_FIN 4u
#define RVT_RST 8u

/* Zeroed: empty. */
struct rvt_bytes {
	uint8_t *p;
	size_t n, cap, at; /* at: where the reader is */
};
void rvt_bytes_fini(struct rvt_bytes *b);
/* n more bytes at the end; aborts without memory. */
uint8_t *rvt_bytes_more(struct rvt_bytes *b, size_t n);
/* What the reader has passed is forgotten. */
void rvt_bytes_pack(struct rvt_bytes *b);

/* Any header; the version is the upper byte of version_type. */
void rvt_put_raw(
    struct rvt_bytes *b, unsigned version_type, unsigned flags, uint32_t id, uint32_t len);
/* A header only. */
void rvt_put(struct rvt_bytes *b, unsigned type, unsigned flags, uint32_t id, uint32_t len);
/* DATA with a body of n bytes: rvt_byte(id, from + i). */
void rvt_put_data(struct rvt_bytes *b, unsigned flags, uint32_t id, uint32_t n, uint64_t from);
/* What byte i of a stream is in every test. */
static inline uint8_t
rvt_byte(uint32_t id, uint64_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + id;

	return (uint8_t)(x >> 56);
}

struct rvt_frame {
	unsigned version, type, flags;
	uint32_t id, len;
	const uint8_t *body; /* valid until b changes */
};
/* The next whole frame; false: there is none. */
bool rvt_next(struct rvt_bytes *b, struct rvt_frame *f);

#endif
