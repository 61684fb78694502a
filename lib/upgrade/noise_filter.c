/* noise_filter.c - Noise messages of the transport phase: two bytes of length, cipher text, a tag of 16 bytes.
 *
 * Receiving decrypts as bytes come, whole message or not, straight into the block that the engine will parse; the tag at a
 * message's end proves all of it, and only then is it shown to anybody.  So no cipher text is ever kept or copied.
 * Sending puts one message behind the other into blocks.  A message is at most one block: 65 518 bytes of plain text, one
 * less than Noise allows.  The nonce counts messages; the last one is never used (Noise, section 5.1). */
#include <config.h>

#include "lib/upgrade/noise.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/check.h"
#include "lib/engine/gather.h"

#define HEAD     2u
#define OVERHEAD (HEAD + RV_TAG_LEN)
#define MESSAGE  (RV_FILTER_BLOCK - OVERHEAD)
#define ROOM     16384u /* a block with less left is not begun with a message that needs more */
#define PIECE \
	8192u /* of one call of the cipher, which goes over it twice: it stays in the cache; whole blocks of 64 */
#define REST 2048u /* of an unfinished message: more keeps its block */

struct noise_filter {
	struct rv_filter f; /* first */
	struct rv_arena *arena;
	struct evp_cipher_ctx_st *tx, *rx;
	uint64_t tx_nonce, rx_nonce;
	int rc;               /* receiving has failed */
	struct rv_slab *slab; /* being filled; used: up to where */
	bool begun;           /* the length of a message is known */
	uint32_t have;        /* bytes of head or tag */
	uint32_t left;        /* cipher text still to come, without the tag */
	uint8_t head[HEAD], tag[RV_TAG_LEN];
};

static struct noise_filter *
of(const struct rv_filter *f)
{
	return (struct noise_filter *)(void *)(uintptr_t)f;
}

static int
fail(struct noise_filter *x, int rc, const char *id)
{
	x->f.id = id;
	return x->rc = rc;
}

/* n bytes of a message, of which at are behind: through the cipher in pieces that end at whole ones of the message, so that
 * no block of the cipher is cut by them. */
static int
update(struct evp_cipher_ctx_st *c, uint8_t *to, struct rv_bytes from, size_t at)
{
	size_t n;
	int rc = 0;

	for (; rc == 0 && from.n > 0; at += n, to += n, from.p += n, from.n -= n) {
		n = PIECE - at % PIECE;
		if (n > from.n)
			n = from.n;
		rc = rv_aead_update(c, to, from.p, n);
	}
	return rc;
}

/* --- receiving */

/* Bytes to at most max of buf, of which have are there. */
static size_t
collect(uint8_t *buf, uint32_t *have, uint32_t max, struct rv_bytes in)
{
	size_t k = in.n < max - *have ? in.n : max - *have;

	memcpy(buf + *have, in.p, k);
	*have += (uint32_t)k;
	return k;
}

static int
begin(struct noise_filter *x)
{
	uint32_t n = rv_load_be16(x->head);

	if (n < RV_TAG_LEN)
		return fail(x, REEVE_EPROTO, "REEVE-NOISE-0001");
	if (x->rx_nonce == UINT64_MAX)
		return fail(x, REEVE_EEXHAUSTED, "REEVE-NOISE-0003");
	x->begun = true;
	x->have = 0;
	x->left = n - RV_TAG_LEN;
	return rv_aead_begin(x->rx, x->rx_nonce) == 0 ? 0
						      : fail(x, REEVE_ENOMEM, "REEVE-NOISE-0004");
}

static int
finish(struct noise_filter *x)
{
	if (!rv_aead_check(x->rx, x->tag))
		return fail(x, REEVE_EPROTO, "REEVE-NOISE-0002");
	x->rx_nonce++;
	x->begun = false;
	x->have = 0;
	rv_filter_prove(&x->f);
	return 0;
}

/* Room for the next bytes of the message: a block is filled up by a message that has begun in it. */
static bool
room(struct noise_filter *x, struct rv_pool *pool)
{
	uint32_t n = x->slab == NULL ? 0 : x->slab->cap - x->slab->used;

	if (n > 0 && (n >= x->left || n >= ROOM || x->f.nparts > x->f.nready))
		return true;
	if (x->slab != NULL)
		rv_slab_unref(x->slab);
	x->slab = rv_slab_get(pool, RV_FILTER_BLOCK);
	return x->slab != NULL;
}

/* How many of n bytes of cipher text were opened, or an error. */
static reeve_ssize
decrypt(struct noise_filter *x, struct rv_pool *pool, const uint8_t *p, size_t n)
{
	struct rv_slab *s;
	uint32_t k, at;

	if (!room(x, pool))
		return fail(x, REEVE_ENOMEM, "REEVE-NOISE-0004");
	s = x->slab;
	k = s->cap - s->used;
	if (k > x->left)
		k = x->left;
	if (k > n)
		k = (uint32_t)n;
	at = rv_load_be16(x->head) - RV_TAG_LEN - x->left;
	if (update(x->rx, s->data + s->used, (struct rv_bytes){p, k}, at) != 0 ||
	    rv_filter_push(&x->f, s, s->used, k) != 0)
		return fail(x, REEVE_ENOMEM, "REEVE-NOISE-0004");
	s->used += k;
	x->left -= k;
	return k;
}

static int
noise_open(struct rv_filter *f, struct rv_pool *pool, const uint8_t *p, size_t n)
{
	struct noise_filter *x = of(f);
	reeve_ssize k = 0;
	int rc = x->rc;

	REEVE_ASSERT(f->nready == 0 && n <= RV_FILTER_BLOCK);
	for (; rc == 0 && n > 0; p += k, n -= (size_t)k) {
		if (!x->begun) {
			k = (reeve_ssize)collect(x->head, &x->have, HEAD, (struct rv_bytes){p, n});
			rc = x->have == HEAD ? begin(x) : 0;
		} else if (x->left > 0) {
			k = decrypt(x, pool, p, n);
			rc = k < 0 ? (int)k : 0;
		} else {
			k = (reeve_ssize)collect(
			    x->tag, &x->have, RV_TAG_LEN, (struct rv_bytes){p, n});
			rc = x->have == RV_TAG_LEN ? finish(x) : 0;
		}
	}
	return rc;
}

static bool
noise_inside(const struct rv_filter *f)
{
	return of(f)->begun || of(f)->have > 0;
}

/* The little that an unfinished message has does not keep a large block. */
static void
shrink(struct noise_filter *x, struct rv_pool *pool)
{
	struct rv_part *part = &x->f.part[0];
	struct rv_slab *s = part->len > REST ? NULL : rv_slab_get(pool, part->len);

	if (s == NULL)
		return;
	memcpy(s->data, part->slab->data + part->off, part->len);
	s->used = s->cap; /* what follows goes to another one */
	rv_slab_unref(part->slab);
	*part = (struct rv_part){s, 0, part->len};
	rv_slab_unref(x->slab);
	x->slab = NULL;
}

static void
noise_rest(struct rv_filter *f, struct rv_pool *pool)
{
	struct noise_filter *x = of(f);

	if (x->slab == NULL || f->nready > 0)
		return;
	if (f->nparts == 0 && rvq_ref_single(&x->slab->refs)) {
		rv_slab_unref(x->slab);
		x->slab = NULL;
	} else if (f->nparts == 1 && f->part[0].slab == x->slab) {
		shrink(x, pool);
	}
}

/* --- sending */

/* Where in g the next message ends that begins at at: where the engine said, or where it is full. */
static size_t
message_end(const struct rv_gather *g, size_t at, unsigned *cut)
{
	size_t end = g->bytes;

	while (*cut < g->ncuts && g->cut[*cut] <= at)
		(*cut)++;
	if (*cut < g->ncuts)
		end = g->cut[*cut];
	return end - at < MESSAGE ? end : at + MESSAGE;
}

/* The next block for what begins at at: as many messages as fit, in a block no larger than they need. */
static struct rv_slab *
block_for(struct rv_pool *pool, const struct rv_gather *g, size_t *at, unsigned *cut)
{
	size_t size = 0, end, n;

	while (*at < g->bytes) {
		end = message_end(g, *at, cut);
		n = end - *at + OVERHEAD;
		if (size + n > RV_FILTER_BLOCK)
			break;
		size += n;
		*at = end;
	}
	return rv_slab_get(pool, size);
}

/* Where in a gather's runs of bytes the sealing has come to. */
struct place {
	const struct iovec *v;
	size_t off;
};

static int
seal_message(struct noise_filter *x, struct rv_slab *s, struct place *from, size_t n)
{
	uint8_t *to = s->data + s->used;
	size_t left = n, k;
	int rc = rv_aead_begin(x->tx, x->tx_nonce++);

	rv_store_be16(to, (uint16_t)(n + RV_TAG_LEN));
	to += HEAD;
	for (; rc == 0 && left > 0; left -= k, to += k) {
		k = from->v->iov_len - from->off;
		if (k > left)
			k = left;
		rc = update(x->tx, to,
		    (struct rv_bytes){(const uint8_t *)from->v->iov_base + from->off, k}, n - left);
		from->off += k;
		if (from->off == from->v->iov_len) {
			from->v++;
			from->off = 0;
		}
	}
	if (rc == 0)
		rc = rv_aead_tag(x->tx, to);
	s->used += (uint32_t)(n + OVERHEAD);
	return rc;
}

/* The blocks that all of g needs, or none. */
static bool
take_blocks(struct rv_pool *pool, const struct rv_gather *g, struct rvq_link **list)
{
	struct rvq_link **tail = list, *l;
	unsigned cut = 0;
	size_t at = 0;
	struct rv_slab *s;

	*list = NULL;
	while (at < g->bytes) {
		s = block_for(pool, g, &at, &cut);
		if (s == NULL) {
			while ((l = *list) != NULL) {
				*list = l->next;
				rv_slab_unref(rv_slab_of(l));
			}
			return false;
		}
		s->link.next = NULL;
		*tail = &s->link;
		tail = &s->link.next;
	}
	return true;
}

static int
noise_seal(struct rv_filter *f, struct rv_pool *pool, const struct rv_gather *g)
{
	struct noise_filter *x = of(f);
	struct place from = {g->iov, 0};
	struct rvq_link *list;
	unsigned cut = 0;
	size_t at = 0, end;
	int rc = 0;

	REEVE_ASSERT(f->out == NULL && g->done == 0);
	if (x->tx_nonce > UINT64_MAX - 1 - g->bytes) {
		f->id = "REEVE-NOISE-0003";
		return REEVE_EEXHAUSTED;
	}
	if (!take_blocks(pool, g, &list))
		return REEVE_ENOMEM;
	while (list != NULL) {
		struct rv_slab *s = rv_slab_of(list);

		list = list->next;
		while (rc == 0 && at < g->bytes) {
			end = message_end(g, at, &cut);
			if (s->used + end - at + OVERHEAD > RV_FILTER_BLOCK)
				break;
			rc = seal_message(x, s, &from, end - at);
			at = end;
		}
		rv_filter_out(f, s);
	}
	if (rc == 0)
		return 0;
	f->id = "REEVE-NOISE-0004"; /* a message is lost: nothing can follow */
	return REEVE_EEXHAUSTED;
}

/* --- making */

static void
noise_destroy(struct rv_filter *f)
{
	struct noise_filter *x = of(f);
	struct rv_arena *ar = x->arena;

	rv_filter_fini(f);
	if (x->slab != NULL)
		rv_slab_unref(x->slab);
	rv_aead_destroy(x->tx);
	rv_aead_destroy(x->rx);
	rv_wipe(x, sizeof(*x));
	rv_free(ar, x, sizeof(*x));
}

static const struct rv_filter_ops noise_ops = {
    .open = noise_open,
    .inside = noise_inside,
    .rest = noise_rest,
    .seal = noise_seal,
    .destroy = noise_destroy,
};

int
rv_noise_filter_create(struct rv_filter **f, struct rv_arena *ar, const uint8_t send[RV_KEY_LEN],
    const uint8_t recv[RV_KEY_LEN])
{
	struct noise_filter *x = rv_zalloc(ar, sizeof(*x));

	REEVE_REQUIRE(x != NULL, REEVE_ENOMEM);
	rv_filter_init(&x->f, &noise_ops, MESSAGE);
	x->arena = ar;
	if (rv_aead_create(&x->tx, send, true) != 0 || rv_aead_create(&x->rx, recv, false) != 0) {
		noise_destroy(&x->f);
		return REEVE_ENOMEM;
	}
	*f = &x->f;
	return 0;
}

void
rv_noise_filter_nonce(struct rv_filter *f, uint64_t send, uint64_t recv)
{
	of(f)->tx_nonce = send;
	of(f)->rx_nonce = recv;
}
