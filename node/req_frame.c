/* req_frame.c - messages with their length in front.  See req_frame.h. */
#include <config.h>

#include "node/req_frame.h"

#include <string.h>

#include "lib/buf/slice.h"

/* A body up to this is copied behind its length: that is cheaper than a frame for the length alone. */
#define TOGETHER 4096u

/* A small message must not keep much more memory alive than it has bytes. */
#define SMALL_SLAB 4096u
#define WASTE      4u

int
rvn_frame_size(struct rvn_frame *f, reeve_buf_t *b)
{
	uint32_t n = RV_VARINT_MAX - f->nhead;
	int rc;

	n = b->len < n ? b->len : n;
	memcpy(f->head + f->nhead, rv_buf_data(b), n);
	rc = rv_varint_get(&f->len, f->head, f->nhead + n, RV_VARINT_MAX);
	if (rc > 0) {
		b->off += (uint32_t)rc - f->nhead;
		b->len -= (uint32_t)rc - f->nhead;
		f->sized = true;
		return 1;
	}
	if (rc != REEVE_EAGAIN)
		return REEVE_EPROTO;
	f->nhead = (uint8_t)(f->nhead + n);
	b->off += n;
	b->len -= n;
	return 0;
}

/* May b itself become the message? */
static bool
fits(const struct rvn_frame *f, const reeve_buf_t *b)
{
	return f->buf == NULL && b->len >= f->len &&
	    (b->slab->cap <= SMALL_SLAB || f->len >= b->slab->cap / WASTE);
}

int
rvn_frame_fill(struct rvn_frame *f, reeve_rt_t *rt, reeve_buf_t *b)
{
	uint64_t n = f->len - f->got;

	if (n > 0 && fits(f, b)) {
		b->len = (uint32_t)f->len;
		f->buf = b;
		f->got = f->len;
		return 1;
	}
	n = b->len < n ? b->len : n;
	if (n > 0 && f->buf == NULL)
		f->buf = reeve_buf_alloc(rt, f->len);
	if (n > 0 && f->buf == NULL) {
		rv_buf_unref(b);
		return REEVE_ENOMEM;
	}
	if (n > 0)
		memcpy(f->buf->slab->data + f->buf->off + f->got, rv_buf_data(b), n);
	f->got += n;
	rv_buf_unref(b);
	return f->got == f->len;
}

reeve_buf_t *
rvn_frame_take(struct rvn_frame *f)
{
	reeve_buf_t *b = f->buf;

	f->buf = NULL;
	return b;
}

void
rvn_frame_drop(struct rvn_frame *f)
{
	rv_buf_unref(f->buf);
	f->buf = NULL;
}

int
rvn_frame_make(reeve_rt_t *rt, reeve_buf_t *body, reeve_buf_t *out[2])
{
	size_t len = body != NULL ? rv_buf_len(body) : 0;
	bool together = len <= TOGETHER;
	unsigned head = rv_varint_size(len);
	reeve_buf_t *b = reeve_buf_alloc(rt, head + (together ? len : 0));
	uint8_t *to;

	if (b == NULL) {
		rv_buf_unref(body);
		return REEVE_ENOMEM;
	}
	to = b->slab->data + b->off;
	(void)rv_varint_put(to, len);
	out[0] = b;
	out[1] = together ? NULL : body;
	if (!together)
		return 0;
	if (len > 0)
		memcpy(to + head, rv_buf_data(body), len);
	rv_buf_unref(body);
	return 0;
}
