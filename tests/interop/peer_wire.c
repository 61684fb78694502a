/* peer_wire.c - the pieces of the protocol that both sides of our interop peer use.  No state. */
#include <config.h>

#include "tests/interop/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECE 65536

void
peer_gen_init(struct peer_gen *g)
{
	g->state = UINT64_C(0x9e3779b97f4a7c15);
	g->left = 0;
}

static uint64_t
next_word(struct peer_gen *g)
{
	g->state ^= g->state << 13;
	g->state ^= g->state >> 7;
	g->state ^= g->state << 17;
	return g->state;
}

void
peer_gen_fill(struct peer_gen *g, uint8_t *out, size_t n)
{
	size_t i, k;

	for (i = 0; i < n;) {
		if (g->left == 0 && n - i >= 8) {
			uint64_t word = next_word(g);

			for (k = 0; k < 8; k++)
				out[i++] = (uint8_t)(word >> 8 * k);
			continue;
		}
		if (g->left == 0) {
			g->word = next_word(g);
			g->left = 8;
		}
		out[i++] = (uint8_t)g->word;
		g->word >>= 8;
		g->left--;
	}
}

void
peer_put64(uint8_t out[8], uint64_t n)
{
	int i;

	for (i = 0; i < 8; i++)
		out[i] = (uint8_t)(n >> (56 - 8 * i));
}

uint64_t
peer_get64(const uint8_t in[8])
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < 8; i++)
		n = n << 8 | in[i];
	return n;
}

uint64_t
peer_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void
peer_nap_ms(unsigned ms)
{
	struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

int
peer_write(reeve_stream_t *s, const void *p, size_t n)
{
	const uint8_t *at = p;

	/* Why less was taken is what the next call answers. */
	for (;;) {
		reeve_ssize done = reeve_write(s, at, n);

		if (done < 0)
			return (int)done;
		at += done;
		if ((n -= (size_t)done) == 0)
			return 0;
	}
}

int
peer_read(reeve_stream_t *s, void *p, size_t n)
{
	uint8_t *at = p;

	while (n > 0) {
		reeve_ssize got = reeve_read(s, at, n);

		if (got <= 0)
			return got == 0 ? REEVE_ETRUNC : (int)got;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

int
peer_drain(reeve_stream_t *s, struct sha256 *sum, uint64_t *total)
{
	reeve_ssize n;
	reeve_buf_t *b;

	*total = 0;
	while ((n = reeve_read_buf(s, &b)) > 0) {
		if (sum != NULL)
			sha256_add(sum, reeve_buf_data(b), reeve_buf_len(b));
		reeve_buf_unref(b);
		*total += (uint64_t)n;
	}
	return (int)n;
}

int
peer_send_generated(reeve_stream_t *s, uint64_t length, size_t chunk)
{
	struct peer_gen g;
	uint8_t *piece;
	int rc = 0;

	if (chunk == 0 || chunk > length)
		chunk = (size_t)length;
	if ((piece = malloc(chunk + 1)) == NULL)
		return REEVE_ENOMEM;
	peer_gen_init(&g);
	while (length > 0 && rc == 0) {
		size_t n = length < chunk ? (size_t)length : chunk;

		peer_gen_fill(&g, piece, n);
		rc = peer_write(s, piece, n);
		length -= n;
	}
	free(piece);
	return rc;
}

int
peer_read_generated(reeve_stream_t *s, uint64_t length)
{
	uint8_t *got = malloc(PIECE), *want = malloc(PIECE);
	struct peer_gen g;
	int rc = got != NULL && want != NULL ? 0 : REEVE_ENOMEM;

	peer_gen_init(&g);
	while (length > 0 && rc == 0) {
		size_t n = length < PIECE ? (size_t)length : PIECE;

		if ((rc = peer_read(s, got, n)) == 0) {
			peer_gen_fill(&g, want, n);
			if (memcmp(got, want, n) != 0)
				rc = REEVE_EPROTO;
		}
		length -= n;
	}
	free(got);
	free(want);
	return rc;
}

uint64_t
peer_bytes_in(reeve_ctl_t *k)
{
	reeve_stats_t stats = {.size = sizeof(stats)};

	reeve_ctl_stats(k, &stats);
	return stats.bytes_in;
}

int
peer_arrived(reeve_ctl_t *k, uint64_t n)
{
	uint64_t from = peer_now_ns();

	do {
		if (peer_bytes_in(k) >= n)
			return 0;
		peer_nap_ms(1);
	} while (peer_now_ns() - from < 5 * PEER_SECOND);
	return REEVE_ETIMEDOUT;
}

void
peer_must(int rc, const char *what)
{
	if (rc < 0) {
		fprintf(stderr, "reeve peer: %s: %s (%s)\n", what, reeve_errname(rc),
		    reeve_strerror(rc));
		exit(1);
	}
}

void
peer_check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "reeve peer: %s\n", what);
		exit(1);
	}
}

void
peer_absent(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(77);
}
