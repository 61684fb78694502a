/* reeve_node_content.c - content that both sides can make (rust/nodes/README.md, "Content"): pure functions of a seed and an
 * index, and the tally of what came. */
#include <config.h>

#include "tests/interop/reeve_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (UINT64_C(1) << 30)

/* Output index of splitmix64 that begins with seed. */
static uint64_t
mix(uint64_t seed, uint64_t index)
{
	uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void
put64(uint8_t *out, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		out[i] = (uint8_t)(n >> (56 - 8 * i));
}

static uint64_t
get64(const uint8_t *in)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | in[i];
	return n;
}

/* The next word of xorshift64, little-endian. */
static void
next(struct node_words *w)
{
	w->x ^= w->x << 13;
	w->x ^= w->x >> 7;
	w->x ^= w->x << 17;
	for (int i = 0; i < 8; i++)
		w->word[i] = (uint8_t)(w->x >> 8 * i);
}

static struct node_words
words(uint64_t seed, uint64_t index)
{
	struct node_words w = {mix(seed, index), {0}};

	if (w.x == 0)
		w.x = 1;
	return w;
}

static void
fill(uint64_t seed, uint64_t index, uint8_t *out, size_t n)
{
	struct node_words w = words(seed, index);

	for (size_t at = 0; at < n; at += 8) {
		next(&w);
		memcpy(out + at, w.word, n - at < 8 ? n - at : 8);
	}
}

static bool
matches(uint64_t seed, uint64_t index, const uint8_t *p, size_t n)
{
	struct node_words w = words(seed, index);

	for (size_t at = 0; at < n; at += 8) {
		next(&w);
		if (memcmp(p + at, w.word, n - at < 8 ? n - at : 8) != 0)
			return false;
	}
	return true;
}

bool
node_size(const char *text, struct node_size *out)
{
	char least[24];
	const char *dash = strchr(text, '-');

	if (dash == NULL) {
		out->most = 0;
		return node_number(text, &out->least) && (out->most = out->least) <= ANSWER_MAX;
	}
	if ((size_t)(dash - text) >= sizeof(least))
		return false;
	memcpy(least, text, (size_t)(dash - text));
	least[dash - text] = '\0';
	return node_number(least, &out->least) && node_number(dash + 1, &out->most) &&
	    out->least <= out->most && out->most <= ANSWER_MAX;
}

uint64_t
node_size_of(struct node_size s, uint64_t seed, uint64_t index)
{
	return s.least + mix(~seed, index) % (s.most - s.least + 1);
}

static reeve_buf_t *
new_buf(reeve_rt_t *rt, size_t n, uint8_t **out)
{
	reeve_buf_t *b;

	*out = NULL;
	if (n == 0)
		return NULL;
	b = reeve_buf_alloc(rt, n);
	node_must(b != NULL, "out of memory", "a message");
	*out = reeve_buf_mut(b);
	return b;
}

static const uint8_t *
bytes(const reeve_buf_t *b)
{
	return b != NULL ? reeve_buf_data(b) : (const uint8_t *)"";
}

size_t
node_len(const reeve_buf_t *b)
{
	return b != NULL ? reeve_buf_len(b) : 0;
}

reeve_buf_t *
node_message(reeve_rt_t *rt, uint64_t seed, uint64_t index, struct node_size size)
{
	size_t n = (size_t)node_size_of(size, seed, index);
	uint8_t *p;
	reeve_buf_t *b = new_buf(rt, n, &p);

	if (n > 0)
		fill(seed, index, p, n);
	return b;
}

bool
node_is_message(const reeve_buf_t *b, uint64_t seed, uint64_t index, struct node_size size)
{
	return node_len(b) == node_size_of(size, seed, index) &&
	    matches(seed, index, bytes(b), node_len(b));
}

reeve_buf_t *
node_request(reeve_rt_t *rt, uint64_t seed, uint64_t index, uint64_t size, uint64_t answer)
{
	uint64_t both = mix(seed, index);
	uint8_t *p;
	reeve_buf_t *b = new_buf(rt, (size_t)size, &p);

	if (size > 0 && size < NODE_HEAD) {
		fill(both, 0, p, (size_t)size);
	} else if (size > 0) {
		put64(p, answer);
		put64(p + 8, both);
		fill(both, 0, p + NODE_HEAD, (size_t)size - NODE_HEAD);
	}
	return b;
}

bool
node_is_request(const reeve_buf_t *b)
{
	size_t n = node_len(b);

	return n < NODE_HEAD ||
	    matches(get64(bytes(b) + 8), 0, bytes(b) + NODE_HEAD, n - NODE_HEAD);
}

reeve_buf_t *
node_response(reeve_rt_t *rt, reeve_buf_t *request)
{
	uint64_t size;
	uint8_t *p;
	reeve_buf_t *b;

	if (request == NULL)
		return NULL;
	if (node_len(request) < NODE_HEAD)
		return reeve_buf_ref(request);
	size = get64(bytes(request));
	b = new_buf(rt, (size_t)(size < ANSWER_MAX ? size : ANSWER_MAX), &p);
	if (b != NULL)
		fill(get64(bytes(request) + 8), 1, p, node_len(b));
	return b;
}

bool
node_is_response(
    const reeve_buf_t *b, uint64_t seed, uint64_t index, uint64_t size, uint64_t answer)
{
	uint64_t both = mix(seed, index);

	if (size < NODE_HEAD)
		return node_len(b) == size && matches(both, 0, bytes(b), node_len(b));
	return node_len(b) == answer && matches(both, 1, bytes(b), node_len(b));
}

void
node_tally_init(struct node_tally *t)
{
	t->count = t->bytes = 0;
	sha256_init(&t->sum);
}

void
node_tally_add(struct node_tally *t, const reeve_buf_t *b)
{
	t->count++;
	t->bytes += node_len(b);
	sha256_add(&t->sum, bytes(b), node_len(b));
}

void
node_tally_digest(const struct node_tally *t, char out[65])
{
	struct sha256 sum = t->sum; /* the tally goes on */
	uint8_t digest[32];

	sha256_end(&sum, digest);
	for (int i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
