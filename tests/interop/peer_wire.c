/* peer_wire.c - the pieces of the protocol that both sides of our interop peer use.  No state. */
#include <config.h>

#include "tests/interop/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void
peer_gen_init(struct peer_gen *g)
{
	g->state = UINT64_C(0x9e3779b97f4a7c15);
	g->left = 0;
}

void
peer_gen_fill(struct peer_gen *g, uint8_t *out, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (g->left == 0) {
			g->state ^= g->state << 13;
			g->state ^= g->state >> 7;
			g->state ^= g->state << 17;
			g->word = g->state;
			g->left = 8;
		}
		out[i] = (uint8_t)g->word;
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
	reeve_ssize done = reeve_write(s, p, n);

	if (done < 0)
		return (int)done;
	return (size_t)done == n ? 0 : REEVE_ETIMEDOUT;
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
