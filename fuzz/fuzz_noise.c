/* fuzz_noise.c - the handshake of /noise against arbitrary bytes: as messages, behind a true beginning, and as the payload
 * of somebody who knows the handshake.
 *
 * The first byte chooses which, and how the input is cut.  All keys are fixed, so that a run can be repeated.  Looked for:
 * crashes, more bytes used than given, an end that is not told, a peer that is believed, a result that depends on how the
 * input was cut. */
#include <config.h>

#include "fuzz/fuzz.h"
#include "lib/bytes.h"
#include "lib/upgrade/noise.h"

#include <string.h>

#define ROOM 8192u

static struct reeve_key *key[2];

static void
fix(struct rv_xx *x, unsigned n)
{
	memset(x->s, (int)n + 10, RV_KEY_LEN);
	memset(x->e, (int)n + 20, RV_KEY_LEN);
	must(rv_x25519_public(x->sp, x->s) == 0 && rv_x25519_public(x->ep, x->e) == 0);
	x->has_s = x->has_e = true;
}

/* One of ours.  An initiator makes its first message again, with the fixed key. */
static void
init(struct rv_noise *x, bool initiator)
{
	uint8_t seed[32];
	reeve_ssize n;

	for (unsigned i = 0; i < 2 && key[i] == NULL; i++) {
		memset(seed, (int)i + 1, sizeof(seed));
		must(reeve_key_from_seed(&key[i], seed) == 0);
	}
	rv_noise_init(x, initiator, key[0], NULL);
	if (!initiator) {
		fix(&x->xx, 0);
		return;
	}
	rv_xx_wipe(&x->xx);
	must(rv_xx_init(&x->xx, true, "", 0) == 0);
	fix(&x->xx, 0);
	n = rv_xx_write(&x->xx, x->out + 2, "", 0);
	must(n == 32);
}

static void
feed(struct rv_noise *x, const uint8_t *p, size_t n, size_t piece)
{
	const uint8_t *out;
	size_t used, k;

	while (!x->done && n > 0) {
		k = n < piece ? n : piece;
		used = rv_noise_feed(x, p, k);
		must(used <= k && (used == k || x->done));
		p += used;
		n -= used;
		k = rv_noise_out(x, &out);
		must(k <= RV_NOISE_OUT);
		rv_noise_sent(x, k);
	}
}

static int
end(struct rv_noise *x)
{
	int rc;

	rv_noise_end(x);
	must(x->done && x->why != NULL && (x->rc == 0 || x->peer.len == 0));
	rc = x->rc;
	rv_noise_fini(x);
	return rc;
}

static int
bytes(bool initiator, const uint8_t *p, size_t n, size_t piece)
{
	static struct rv_noise x;
	int rc;

	init(&x, initiator);
	feed(&x, p, n, piece);
	rc = end(&x);
	must(rc != 0); /* nobody who guesses knows the secret */
	return rc;
}

/* The second message as a true responder says it, with p for a payload. */
static int
payload(const uint8_t *p, size_t n, size_t piece)
{
	static uint8_t out[ROOM], none[64];
	static struct rv_noise x;
	struct rv_xx peer;
	reeve_ssize k;

	init(&x, true);
	must(rv_xx_init(&peer, false, "", 0) == 0);
	fix(&peer, 1);
	must(rv_xx_read(&peer, x.out + 2, 32, none) == 0);
	n = n < 3000 ? n : 3000;
	k = rv_xx_write(&peer, out + 2, p, n);
	must(k > 0);
	rv_store_be16(out, (uint16_t)k);
	feed(&x, out, (size_t)k + 2, piece);
	rv_xx_wipe(&peer);
	return end(&x);
}

/* What a true initiator says, with some bytes changed. */
static int
nearly(const uint8_t *p, size_t n, size_t piece)
{
	static struct rv_noise x[2];
	uint8_t said[512];
	const uint8_t *out;
	size_t len, all;
	int rc;

	init(&x[0], true);
	init(&x[1], false);
	memcpy(said + 2, x[0].out + 2, 32);
	rv_store_be16(said, 32);
	must(rv_noise_feed(&x[1], said, 34) == 34);
	len = rv_noise_out(&x[1], &out);
	must(rv_noise_feed(&x[0], out, len) == len);
	all = 34 + rv_noise_out(&x[0], &out);
	memcpy(said + 34, out, all - 34);
	rv_noise_fini(&x[1]);
	init(&x[1], false);
	for (size_t i = 0; i + 1 < n && i < 6; i += 2)
		said[p[i] % all] ^= p[i + 1];
	feed(&x[1], said, all, piece);
	rv_noise_fini(&x[0]);
	rc = end(&x[1]);
	/* Identity on both sides is the same key here: only what was not changed is believed. */
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	size_t piece;
	unsigned how;
	int a, b;

	if (n == 0)
		return 0;
	how = p[0] % 4;
	piece = p[0] / 4 + 1u;
	p++;
	n--;
	if (how < 2) {
		a = bytes(how == 0, p, n, SIZE_MAX);
		b = bytes(how == 0, p, n, piece);
	} else if (how == 2) {
		a = payload(p, n, SIZE_MAX);
		b = payload(p, n, piece);
	} else {
		a = nearly(p, n, SIZE_MAX);
		b = nearly(p, n, piece);
	}
	must(a == b);
	return 0;
}
