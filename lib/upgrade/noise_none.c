/* noise_none.c - a library without OpenSSL: keys and Noise answer REEVE_ENOTSUP.  What is here only to be linked is never
 * called, since nobody has a key. */
#include <config.h>

#include "lib/upgrade/noise.h"

int
reeve_key_generate(reeve_key_t **k)
{
	(void)k;
	return REEVE_ENOTSUP;
}

int
reeve_key_from_seed(reeve_key_t **k, const uint8_t seed[32])
{
	(void)k;
	(void)seed;
	return REEVE_ENOTSUP;
}

int
reeve_key_from_bytes(reeve_key_t **k, const void *p, size_t n)
{
	(void)k;
	(void)p;
	(void)n;
	return REEVE_ENOTSUP;
}

int
reeve_key_load(reeve_key_t **k, const char *path)
{
	(void)k;
	(void)path;
	return REEVE_ENOTSUP;
}

int
reeve_key_save(const reeve_key_t *k, const char *path)
{
	(void)k;
	(void)path;
	return REEVE_ENOTSUP;
}

const uint8_t *
reeve_key_public(const reeve_key_t *k)
{
	(void)k;
	return NULL;
}

int
reeve_key_peer_id(const reeve_key_t *k, char *out, size_t n)
{
	(void)k;
	(void)out;
	(void)n;
	return REEVE_ENOTSUP;
}

void
reeve_key_free(reeve_key_t *k)
{
	(void)k;
}

void
rv_key_ref(struct reeve_key *k)
{
	(void)k;
}

void
rv_key_unref(struct reeve_key *k)
{
	(void)k;
}

const uint8_t *
rv_key_public(const struct reeve_key *k)
{
	(void)k;
	return NULL;
}

void
rv_noise_init(
    struct rv_noise *x, bool initiator, struct reeve_key *key, const struct rv_peer_id *expect)
{
	(void)initiator;
	(void)key;
	(void)expect;
	x->done = true;
	x->rc = REEVE_ENOTSUP;
	x->why = "built without Noise";
	x->out_at = x->out_end = 0;
}

size_t
rv_noise_feed(struct rv_noise *x, const uint8_t *p, size_t n)
{
	(void)x;
	(void)p;
	return n;
}

void
rv_noise_end(struct rv_noise *x)
{
	(void)x;
}

size_t
rv_noise_out(const struct rv_noise *x, const uint8_t **p)
{
	(void)x;
	(void)p;
	return 0;
}

void
rv_noise_sent(struct rv_noise *x, size_t n)
{
	(void)x;
	(void)n;
}

int
rv_noise_filter(const struct rv_noise *x, struct rv_filter **f, struct rv_arena *ar)
{
	(void)x;
	(void)f;
	(void)ar;
	return REEVE_ENOTSUP;
}

void
rv_noise_fini(struct rv_noise *x)
{
	(void)x;
}
