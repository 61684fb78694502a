/* wire.c - see wire.h. */
#include <config.h>

#include "tests/kit/wire.h"

#include <stdlib.h>
#include <string.h>

void
rvt_bytes_fini(struct rvt_bytes *b)
{
	free(b->p);
	memset(b, 0, sizeof(*b));
}

uint8_t *
rvt_bytes_more(struct rvt_bytes *b, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = 2 * (b->n + n);
		b->p = realloc(b->p, b->cap);
		if (b->p == NULL)
			abort();
	}
	b->n += n;
	return b->p + b->n - n;
}

void
rvt_bytes_pack(struct rvt_bytes *b)
{
	if (b->at == 0)
		return;
	memmove(b->p, b->p + b->at, b->n - b->at);
	b->n -= b->at;
	b->at = 0;
}

static void
be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 8 | p[i];
	return v;
}

void
rvt_put_raw(struct rvt_bytes *b, unsigned version_type, unsigned flags, uint32_t id, uint32_t len)
{
	uint8_t *p = rvt_bytes_more(b, 12);

	p[0] = (uint8_t)(version_type >> 8);
	p[1] = (uint8_t)version_type;
	p[2] = (uint8_t)(flags >> 8);
	p[3] = (uint8_t)flags;
	be32(p + 4, id);
	be32(p + 8, len);
}

void
rvt_put(struct rvt_bytes *b, unsigned type, unsigned flags, uint32_t id, uint32_t len)
{
	rvt_put_raw(b, type, flags, id, len);
}

void
rvt_put_data(struct rvt_bytes *b, unsigned flags, uint32_t id, uint32_t n, uint64_t from)
{
	uint8_t *p;

	rvt_put(b, RVT_DATA, flags, id, n);
	if (n == 0)
		return;
	p = rvt_bytes_more(b, n);
	for (uint32_t i = 0; i < n; i++)
		p[i] = rvt_byte(id, from + i);
}

bool
rvt_next(struct rvt_bytes *b, struct rvt_frame *f)
{
	const uint8_t *p = b->p + b->at;
	size_t left = b->n - b->at;

	if (left < 12)
		return false;
	f->version = p[0];
	f->type = p[1];
	f->flags = (unsigned)p[2] << 8 | p[3];
	f->id = get32(p + 4);
	f->len = get32(p + 8);
	f->body = p + 12;
	if (f->type == RVT_DATA && left - 12 < f->len)
		return false;
	b->at += 12 + (f->type == RVT_DATA ? f->len : 0);
	return true;
}
