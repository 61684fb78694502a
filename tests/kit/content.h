/* content.h - the bytes of a stream from a xorshift generator: any length, written and compared piece by piece, and no
 * two places alike (rvt_byte of wire.h has a pattern of its own for each stream, found at any place without the ones
 * before it). */
#ifndef REEVE_TESTS_KIT_CONTENT_H
#define REEVE_TESTS_KIT_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rvt_content {
	uint32_t x;
	unsigned k; /* bytes of x that were used */
};

static inline void
rvt_content_init(struct rvt_content *c, uint32_t key)
{
	c->x = key * 2654435761u | 1;
	c->k = 0;
}

/* The next n bytes. */
static inline void
rvt_content_fill(struct rvt_content *c, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++, c->k = (c->k + 1) % 4) {
		if (c->k == 0) {
			c->x ^= c->x << 13;
			c->x ^= c->x >> 17;
			c->x ^= c->x << 5;
		}
		p[i] = (uint8_t)(c->x >> 8 * c->k);
	}
}

/* Whether p has them. */
static inline bool
rvt_content_is(struct rvt_content *c, const uint8_t *p, size_t n)
{
	uint8_t part[256];
	bool same = true;

	for (size_t k; n > 0; p += k, n -= k) {
		k = n < sizeof(part) ? n : sizeof(part);
		rvt_content_fill(c, part, k);
		same = same && memcmp(p, part, k) == 0;
	}
	return same;
}

#endif
