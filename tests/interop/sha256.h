/* sha256.h - the digest that the interop peers compare.  One context per user, no locking. */
#ifndef REEVE_TESTS_INTEROP_SHA256_H
#define REEVE_TESTS_INTEROP_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t state[8];
	uint64_t total; /* bytes so far */
	uint8_t block[64];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *p, size_t n);
void sha256_end(struct sha256 *h, uint8_t digest[32]);

#endif
