/* slice.c - buffers and chains: see slice.h.
 *
 * Invariants: a buffer holds one reference to its block; only the owner of a block touches udesc
 * and used; a buffer in a chain has one reference, so its owner may move both of its ends. */
#include <config.h>

#include "lib/buf/slice.h"
#include "lib/check.h"

#include <string.h>

#define RV_COPY_FIRST 2048u  /* first copy block of a chain */
#define RV_COPY_NEXT  16384u /* once that was not enough */

static reeve_buf_t *
desc_init(reeve_buf_t *b, struct rv_slab *s, uint32_t off, uint32_t len)
{
	b->slab = s;
	b->off = off;
	b->len = len;
	rvq_ref_init(&b->refs, 1);
	b->own = 0;
	b->next = NULL;
	return b;
}

/* A descriptor that is an allocation of its own.  Takes over the caller's reference to s. */
static reeve_buf_t *
desc_own(struct rv_slab *s, uint32_t off, uint32_t len)
{
	reeve_buf_t *b = rv_alloc(s->arena, sizeof(*b), _Alignof(reeve_buf_t));

	if (b == NULL)
		return NULL;
	desc_init(b, s, off, len);
	b->own = 1;
	return b;
}

/* The first descriptor of a new block.  Takes over the caller's reference to s. */
static reeve_buf_t *
desc_first(struct rv_slab *s, uint32_t len)
{
	s->used = len;
	s->udesc = 1;
	return desc_init(&s->desc[0], s, 0, len);
}

reeve_buf_t *
rv_buf_cut(struct rv_slab *s, uint32_t off, uint32_t len)
{
	reeve_buf_t *b;

	REEVE_ASSERT(off <= s->cap && len <= s->cap - off);
	b = s->udesc < s->ndesc ? desc_init(&s->desc[s->udesc++], s, off, len)
				: desc_own(s, off, len);
	if (b != NULL)
		rv_slab_ref(s);
	return b;
}

reeve_buf_t *
rv_buf_slice(reeve_buf_t *b, uint32_t off, uint32_t len)
{
	reeve_buf_t *part;

	REEVE_REQUIRE(off <= b->len && len <= b->len - off, NULL);
	part = desc_own(b->slab, b->off + off, len);
	if (part != NULL)
		rv_slab_ref(b->slab);
	return part;
}

reeve_buf_t *
rv_buf_alloc(struct rv_pool *p, size_t n)
{
	struct rv_slab *s;

	REEVE_REQUIRE(n > 0 && n <= RV_BUF_MAX, NULL);
	s = rv_slab_get(p, n);
	if (s == NULL)
		return NULL;
	desc_first(s, (uint32_t)n);
	s->used = s->cap; /* nobody appends behind the application's bytes */
	return &s->desc[0];
}

reeve_buf_t *
rv_buf_wrap(struct rv_arena *ar, const void *p, size_t n, void (*done)(void *), void *ctx)
{
	struct rv_slab *s = rv_slab_wrap(ar, p, n, done, ctx);

	return s == NULL ? NULL : desc_first(s, (uint32_t)n);
}

void
rv_buf_unref(reeve_buf_t *b)
{
	struct rv_slab *s;

	if (b == NULL || !rv_ref_drop(&b->refs))
		return;
	s = b->slab;
	if (b->own)
		rv_free(s->arena, b, sizeof(*b));
	rv_slab_unref(s);
}

/* --- chains */

void
rv_chain_init(struct rv_chain *c)
{
	c->head = c->tail = NULL;
	c->bytes = 0;
}

static void
chain_append(struct rv_chain *c, reeve_buf_t *b)
{
	b->next = NULL;
	if (c->tail == NULL)
		c->head = b;
	else
		c->tail->next = b;
	c->tail = b;
	c->bytes += b->len;
}

int
rv_chain_push(struct rv_chain *c, reeve_buf_t *b)
{
	reeve_buf_t *mine = b;

	if (b->len == 0) {
		rv_buf_unref(b);
		return 0;
	}
	if (!rvq_ref_single(&b->refs)) {
		mine = rv_buf_slice(b, 0, b->len);
		rv_buf_unref(b);
		if (mine == NULL)
			return REEVE_ENOMEM;
	}
	chain_append(c, mine);
	return 0;
}

void
rv_chain_unpop(struct rv_chain *c, reeve_buf_t *b)
{
	REEVE_ASSERT(b->len > 0 && rvq_ref_single(&b->refs));
	b->next = c->head;
	c->head = b;
	if (c->tail == NULL)
		c->tail = b;
	c->bytes += b->len;
}

reeve_buf_t *
rv_chain_pop(struct rv_chain *c)
{
	reeve_buf_t *b = c->head;

	if (b == NULL)
		return NULL;
	c->head = b->next;
	if (c->head == NULL)
		c->tail = NULL;
	c->bytes -= b->len;
	b->next = NULL;
	return b;
}

void
rv_chain_skip(struct rv_chain *c, size_t n)
{
	REEVE_ASSERT(n <= c->bytes);
	while (n > 0 && n >= c->head->len) {
		n -= c->head->len;
		rv_buf_unref(rv_chain_pop(c));
	}
	if (n > 0) {
		c->head->off += (uint32_t)n;
		c->head->len -= (uint32_t)n;
		c->bytes -= n;
	}
}

void
rv_chain_clear(struct rv_chain *c)
{
	while (c->head != NULL)
		rv_buf_unref(rv_chain_pop(c));
}

int
rv_chain_cut(struct rv_chain *c, struct rv_slab *s, uint32_t off, uint32_t len)
{
	reeve_buf_t *b = c->tail;

	if (len == 0)
		return 0;
	if (b != NULL && b->slab == s && b->off + b->len == off) {
		REEVE_ASSERT(len <= s->cap - off && rvq_ref_single(&b->refs));
		b->len += len;
		c->bytes += len;
		return 0;
	}
	b = rv_buf_cut(s, off, len);
	if (b == NULL)
		return REEVE_ENOMEM;
	chain_append(c, b);
	return 0;
}

/* May bytes be appended to the block of b, which is the last buffer of a chain?  Only if nobody
 * else can see the block and it is not one that a reader fills or the application owns. */
static bool
copy_open(const reeve_buf_t *b)
{
	/* The count first: a block that a thread is still filling changes under the eyes of others. */
	if (b == NULL || b->slab->cls >= RV_64K || !rvq_ref_single(&b->slab->refs))
		return false;
	REEVE_ASSERT(rvq_ref_single(&b->refs));
	return b->off + b->len == b->slab->used;
}

/* A chain of new copy blocks that hold n bytes.  grow: begin with the larger size. */
static int
copy_new(struct rv_chain *c, struct rv_pool *p, bool grow, const uint8_t *bytes, size_t n)
{
	struct rv_slab *s;
	uint32_t m;

	for (; n > 0; bytes += m, n -= m) {
		s = rv_slab_get(p, grow || n > RV_COPY_FIRST ? RV_COPY_NEXT : RV_COPY_FIRST);
		if (s == NULL) {
			rv_chain_clear(c);
			return REEVE_ENOMEM;
		}
		m = n < s->cap ? (uint32_t)n : s->cap;
		memcpy(s->data, bytes, m);
		chain_append(c, desc_first(s, m));
		grow = true;
	}
	return 0;
}

int
rv_chain_copy(
    struct rv_chain *c, struct rv_pool *p, struct rv_budget *bud, const uint8_t *bytes, size_t n)
{
	reeve_buf_t *t = copy_open(c->tail) ? c->tail : NULL;
	size_t room = t == NULL ? 0 : t->slab->cap - t->slab->used;
	uint32_t m = (uint32_t)(n < room ? n : room);
	struct rv_chain more;
	reeve_buf_t *b;

	if (n == 0)
		return 0;
	/* New blocks first, so that a failure changes nothing. */
	rv_chain_init(&more);
	if (copy_new(&more, p, t != NULL, bytes + m, n - m) != 0)
		return REEVE_ENOMEM;
	if (m > 0) {
		memcpy(t->slab->data + t->slab->used, bytes, m);
		t->slab->used += m;
		t->len += m;
		c->bytes += m;
	}
	while ((b = rv_chain_pop(&more)) != NULL) {
		rv_slab_charge(b->slab, bud);
		chain_append(c, b);
	}
	return 0;
}
