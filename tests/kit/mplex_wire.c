/* mplex_wire.c - see mplex_wire.h. */
#include <config.h>

#include "tests/kit/mplex_wire.h"

void
rvt_mp_varint(struct rvt_bytes *b, uint64_t v)
{
	while (v >= 128) {
		*rvt_bytes_more(b, 1) = (uint8_t)(v % 128 + 128);
		v /= 128;
	}
	*rvt_bytes_more(b, 1) = (uint8_t)v;
}

void
rvt_mp_put(struct rvt_bytes *b, unsigned flag, uint64_t id, uint64_t n)
{
	rvt_mp_varint(b, 8 * id + flag);
	rvt_mp_varint(b, n);
}

void
rvt_mp_data_of(struct rvt_bytes *b, unsigned flag, uint64_t id, struct rvt_mp_run run)
{
	uint8_t *p;

	rvt_mp_put(b, flag, id, run.n);
	if (run.n == 0)
		return;
	p = rvt_bytes_more(b, run.n);
	for (uint32_t i = 0; i < run.n; i++)
		p[i] = rvt_byte(run.key, run.from + i);
}

void
rvt_mp_data(struct rvt_bytes *b, unsigned flag, uint64_t id, uint32_t n, uint64_t from)
{
	rvt_mp_data_of(
	    b, flag, id, (struct rvt_mp_run){(uint32_t)rvt_mp_key(id, flag % 2 == 1), n, from});
}

static size_t
varint(const uint8_t *p, size_t n, uint64_t *v)
{
	*v = 0;
	for (size_t i = 0; i < n; i++) {
		*v += (uint64_t)(p[i] % 128) << (7 * i);
		if (p[i] < 128)
			return i + 1;
	}
	return 0;
}

bool
rvt_mp_next(struct rvt_bytes *b, struct rvt_mp_frame *f)
{
	const uint8_t *p = b->p + b->at;
	size_t left = b->n - b->at, a = varint(p, left, &f->id), c;
	uint64_t len;

	if (a == 0 || (c = varint(p + a, left - a, &len)) == 0 || left - a - c < len)
		return false;
	f->flag = (unsigned)(f->id % 8);
	f->id /= 8;
	f->len = (uint32_t)len;
	f->header = (uint32_t)(a + c);
	f->body = p + a + c;
	b->at += a + c + len;
	return true;
}
