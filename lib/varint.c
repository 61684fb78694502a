/* varint.c - see varint.h. */
#include <config.h>

#include "lib/varint.h"
#include "lib/check.h"

int
rv_varint_get(uint64_t *v, const uint8_t *p, size_t n, unsigned max)
{
	uint64_t sum = 0;
	unsigned i;

	REEVE_ASSERT(max >= 1 && max <= RV_VARINT_MAX);
	for (i = 0; i < max; i++) {
		if (i == n)
			return REEVE_EAGAIN;
		/* the tenth byte has room for one bit and cannot go on */
		if (i == RV_VARINT_MAX - 1 && p[i] > 1)
			return REEVE_EPROTO;
		sum |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (p[i] & 0x80)
			continue;
		if (i > 0 && p[i] == 0)
			return REEVE_EPROTO;
		*v = sum;
		return (int)i + 1;
	}
	return REEVE_EPROTO;
}

unsigned
rv_varint_put(uint8_t *p, uint64_t v)
{
	unsigned n = 0;

	for (; v > 0x7f; v >>= 7)
		p[n++] = (uint8_t)(v | 0x80);
	p[n++] = (uint8_t)v;
	return n;
}

unsigned
rv_varint_size(uint64_t v)
{
	unsigned n = 1;

	for (; v > 0x7f; v >>= 7)
		n++;
	return n;
}
