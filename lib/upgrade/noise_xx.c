/* noise_xx.c - the handshake pattern XX.  Names as in the specification: ck chaining key, h transcript hash, k and n
 * of the cipher state.  See noise_xx.h. */
#include <config.h>

#include "lib/upgrade/noise_xx.h"

#include <string.h>

#include "lib/check.h"

static const char name[] = "Noise_XX_25519_ChaChaPoly_SHA256";
_Static_assert(sizeof(name) - 1 == RV_HASH_LEN, "a name as long as a hash is its own hash");

static int
mix_hash(struct rv_xx *x, const void *p, size_t n)
{
	return rv_sha256(x->h, x->h, sizeof(x->h), p, n);
}

/* The secret that a pair of keys makes. */
static int
mix_dh(struct rv_xx *x, const uint8_t secret[RV_KEY_LEN], const uint8_t other[RV_KEY_LEN])
{
	uint8_t shared[RV_KEY_LEN];
	int rc = rv_x25519(shared, secret, other);

	if (rc == 0)
		rc = rv_hkdf2(x->ck, x->k, x->ck, shared, sizeof(shared));
	rv_wipe(shared, sizeof(shared));
	x->n = 0;
	x->keyed = true;
	return rc;
}

static int
begin_cipher(struct rv_xx *x, bool seal)
{
	int rc = rv_aead_key(x->cipher, x->k, seal);

	if (rc == 0)
		rc = rv_aead_begin(x->cipher, x->n++);
	return rc != 0 ? rc : rv_aead_ad(x->cipher, x->h, sizeof(x->h));
}

/* EncryptAndHash.  Bytes at out, or an error. */
static reeve_ssize
seal(struct rv_xx *x, uint8_t *out, const void *p, size_t n)
{
	size_t len = n;
	int rc = 0;

	if (x->keyed) {
		rc = begin_cipher(x, true);
		if (rc == 0)
			rc = rv_aead_update(x->cipher, out, p, n);
		if (rc == 0)
			rc = rv_aead_tag(x->cipher, out + n);
		len += RV_TAG_LEN;
	} else if (n > 0) {
		memcpy(out, p, n);
	}
	if (rc == 0)
		rc = mix_hash(x, out, len);
	return rc != 0 ? rc : (reeve_ssize)len;
}

/* DecryptAndHash of exactly n bytes. */
static reeve_ssize
open_sealed(struct rv_xx *x, uint8_t *out, const uint8_t *p, size_t n)
{
	size_t len = n;
	int rc = 0;

	if (x->keyed) {
		REEVE_REQUIRE(n >= RV_TAG_LEN, REEVE_EPROTO);
		len -= RV_TAG_LEN;
		rc = begin_cipher(x, false);
		if (rc == 0)
			rc = rv_aead_update(x->cipher, out, p, len);
		if (rc == 0 && !rv_aead_check(x->cipher, p + len))
			rc = REEVE_EPROTO;
	} else if (n > 0) {
		memcpy(out, p, n);
	}
	if (rc == 0)
		rc = mix_hash(x, p, n);
	return rc != 0 ? rc : (reeve_ssize)len;
}

int
rv_xx_init(struct rv_xx *x, bool initiator, const void *prologue, size_t n)
{
	static const uint8_t zero[RV_KEY_LEN];

	memset(x, 0, sizeof(*x));
	x->initiator = initiator;
	memcpy(x->h, name, sizeof(x->h));
	memcpy(x->ck, name, sizeof(x->ck));
	if (mix_hash(x, prologue, n) != 0)
		return REEVE_ENOMEM;
	return rv_aead_create(&x->cipher, zero, true);
}

int
rv_xx_static(struct rv_xx *x)
{
	if (x->has_s)
		return 0;
	x->has_s = true;
	return rv_x25519_generate(x->s, x->sp);
}

static int
ephemeral(struct rv_xx *x)
{
	if (x->has_e)
		return 0;
	x->has_e = true;
	return rv_x25519_generate(x->e, x->ep);
}

bool
rv_xx_writes(const struct rv_xx *x)
{
	return x->step < RV_XX_MESSAGES && (x->step % 2 == 0) == x->initiator;
}

/* s in the second message for es, in the third for se: our static key, then what it makes with their ephemeral one. */
static reeve_ssize
write_static(struct rv_xx *x, uint8_t *out)
{
	reeve_ssize n = rv_xx_static(x);
	int rc;

	if (n == 0)
		n = seal(x, out, x->sp, sizeof(x->sp));
	rc = n < 0 ? 0 : mix_dh(x, x->s, x->re);
	return rc != 0 ? rc : n;
}

static int
read_static(struct rv_xx *x, const uint8_t *msg)
{
	reeve_ssize n = open_sealed(x, x->rs, msg, RV_KEY_LEN + RV_TAG_LEN);

	return n < 0 ? (int)n : mix_dh(x, x->e, x->rs);
}

reeve_ssize
rv_xx_write(struct rv_xx *x, uint8_t *out, const void *payload, size_t n)
{
	uint8_t *to = out;
	reeve_ssize k;
	int rc = 0;

	REEVE_ASSERT(rv_xx_writes(x));
	if (x->step < 2) {
		rc = ephemeral(x);
		if (rc == 0)
			rc = mix_hash(x, x->ep, sizeof(x->ep));
		REEVE_REQUIRE(rc == 0, rc);
		memcpy(to, x->ep, sizeof(x->ep));
		to += sizeof(x->ep);
	}
	if (x->step == 1) {
		rc = mix_dh(x, x->e, x->re);
		REEVE_REQUIRE(rc == 0, rc);
	}
	if (x->step > 0) {
		k = write_static(x, to);
		REEVE_REQUIRE(k >= 0, k);
		to += k;
	}
	k = seal(x, to, payload, n);
	REEVE_REQUIRE(k >= 0, k);
	x->step++;
	return to - out + k;
}

reeve_ssize
rv_xx_read(struct rv_xx *x, const uint8_t *msg, size_t n, uint8_t *out)
{
	const uint8_t *end = msg + n;
	reeve_ssize k;
	int rc = 0;

	REEVE_ASSERT(!rv_xx_writes(x) && x->step < RV_XX_MESSAGES);
	if (x->step < 2) {
		REEVE_REQUIRE((size_t)(end - msg) >= sizeof(x->re), REEVE_EPROTO);
		memcpy(x->re, msg, sizeof(x->re));
		msg += sizeof(x->re);
		rc = mix_hash(x, x->re, sizeof(x->re));
		if (rc == 0 && x->step == 1)
			rc = mix_dh(x, x->e, x->re);
		REEVE_REQUIRE(rc == 0, rc);
	}
	if (x->step > 0) {
		REEVE_REQUIRE((size_t)(end - msg) >= RV_KEY_LEN + RV_TAG_LEN, REEVE_EPROTO);
		rc = read_static(x, msg);
		REEVE_REQUIRE(rc == 0, rc);
		msg += RV_KEY_LEN + RV_TAG_LEN;
	}
	k = open_sealed(x, out, msg, (size_t)(end - msg));
	x->step += k >= 0;
	return k;
}

int
rv_xx_split(const struct rv_xx *x, uint8_t send[RV_KEY_LEN], uint8_t recv[RV_KEY_LEN])
{
	REEVE_ASSERT(x->step == RV_XX_MESSAGES);
	return x->initiator ? rv_hkdf2(send, recv, x->ck, "", 0)
			    : rv_hkdf2(recv, send, x->ck, "", 0);
}

void
rv_xx_wipe(struct rv_xx *x)
{
	rv_aead_destroy(x->cipher);
	rv_wipe(x, sizeof(*x));
}
