/* mplex_frame.c - see mplex_frame.h. */
#include <config.h>

#include "lib/engine/mplex_frame.h"

#include "lib/varint.h"

static void
tell(struct rv_mphdr *h, uint64_t v, uint32_t len)
{
	unsigned flag = (unsigned)(v & 7);

	/* 0 open; 1, 2 data; 3, 4 close; 5, 6 reset; 7 nothing.  Odd: its sender accepted the stream, so we opened it. */
	h->kind = flag == 7 ? RV_MP_UNKNOWN : (uint8_t)((flag + 1) >> 1);
	h->key = rv_mp_key(v >> 3, flag & 1);
	h->len = len;
}

int
rv_mphdr_get(struct rv_mphdr *h, const uint8_t *p, size_t n)
{
	uint64_t v = 0, len = 0;
	int a, b;

	/* Most: the first 16 ids, bodies of 128 bytes to 16 KiB. */
	if (n >= 3 && p[0] < 0x80 && p[1] >= 0x80 && p[2] - 1u < 0x7f) {
		tell(h, p[0], (uint32_t)(p[1] & 0x7f) | (uint32_t)p[2] << 7);
		return 3;
	}
	a = rv_varint_get(&v, p, n, RV_MP_ID_BYTES);
	if (a < 0)
		return a;
	b = rv_varint_get(&len, p + a, n - (size_t)a, RV_MP_LEN_BYTES);
	if (b == REEVE_EAGAIN)
		return b;
	/* Three bytes that go on are above the limit whatever follows. */
	if (b < 0 && n - (size_t)a >= RV_MP_LEN_BYTES && (p[a] & p[a + 1] & p[a + 2] & 0x80) != 0)
		return REEVE_ELIMIT;
	if (b < 0)
		return b;
	if (len > RV_MP_BODY_MAX)
		return REEVE_ELIMIT;
	tell(h, v, (uint32_t)len);
	return a + b;
}

unsigned
rv_mphdr_put(uint8_t *p, uint64_t key, enum rv_mp_kind kind, uint32_t len)
{
	unsigned flag = 2 * (unsigned)kind;
	unsigned n;

	if (kind != RV_MP_OPEN && !(key & 1))
		flag--;
	n = rv_varint_put(p, rv_mp_id(key) << 3 | flag);
	return n + rv_varint_put(p + n, len);
}

unsigned
rv_mphdr_size(uint64_t key, uint32_t len)
{
	return rv_varint_size(rv_mp_id(key) << 3) + rv_varint_size(len);
}
