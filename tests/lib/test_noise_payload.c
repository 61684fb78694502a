/* test_noise_payload.c - what is believed of the payload that says who the peer is: by a responder who knows the handshake and
 * says what it likes. */
#include <config.h>

#include "lib/upgrade/noise.h"

#include "tests/kit/run.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "lib/bytes.h"

static reeve_key_t *key[2]; /* ours, the peer's */

static void
keys(void)
{
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_key_generate(&key[i]), 0);
}

static void
keys_away(void)
{
	reeve_key_free(key[0]);
	reeve_key_free(key[1]);
}

struct forge {
	uint8_t payload[2048];
	size_t n;
	uint8_t says[56]; /* what is to be signed */
};

static struct rv_xx forger;

static void
forge_begin(struct rv_noise *x, struct forge *f)
{
	uint8_t none[64];
	const uint8_t *p;
	size_t n;

	rv_noise_init(x, true, key[0], NULL);
	ck_assert_int_eq(rv_xx_init(&forger, false, "", 0), 0);
	n = rv_noise_out(x, &p);
	ck_assert_int_eq(rv_xx_read(&forger, p + 2, n - 2, none), 0);
	rv_noise_sent(x, n);
	ck_assert_int_eq(rv_xx_static(&forger), 0);
	memcpy(f->says, "noise-libp2p-static-key:", 24);
	memcpy(f->says + 24, forger.sp, 32);
	f->n = 0;
}

static void
put(struct forge *f, unsigned field, const void *p, size_t n)
{
	f->payload[f->n++] = (uint8_t)(field << 3 | 2);
	if (n >= 128)
		f->payload[f->n++] = (uint8_t)(n | 128);
	f->payload[f->n++] = (uint8_t)(n >= 128 ? n >> 7 : n);
	memcpy(f->payload + f->n, p, n);
	f->n += n;
}

static void
put_key(struct forge *f, unsigned type, const void *p, size_t n)
{
	struct forge k = {.n = 2, .payload = {1 << 3, (uint8_t)type}};

	put(&k, 2, p, n);
	put(f, 1, k.payload, k.n);
}

static void
put_own(struct forge *f)
{
	uint8_t sig[64];

	ck_assert_int_eq(rv_key_sign(key[1], sig, f->says, sizeof(f->says)), 0);
	put_key(f, RV_KEY_ED25519, reeve_key_public(key[1]), 32);
	put(f, 2, sig, 64);
}

/* What x, an initiator, makes of it. */
static int
forge_answer(struct rv_noise *x, struct forge *f)
{
	uint8_t out[2400];
	reeve_ssize n = rv_xx_write(&forger, out + 2, f->payload, f->n);
	int rc;

	ck_assert_int_gt(n, 0);
	rv_store_be16(out, (uint16_t)n);
	rv_noise_feed(x, out, (size_t)n + 2);
	rv_xx_wipe(&forger);
	ck_assert(x->done);
	rc = x->rc;
	rv_noise_fini(x);
	return rc;
}

START_TEST(payloads_are_judged)
{
	uint8_t sig[64], none[1] = {0}, odd[34] = {0};
	struct rv_noise x;
	struct forge f;

	keys();
	forge_begin(&x, &f); /* nothing at all */
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	forge_begin(&x, &f); /* no signature */
	put_key(&f, RV_KEY_ED25519, reeve_key_public(key[1]), 32);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	forge_begin(&x, &f); /* no key */
	put(&f, 2, sig, 0);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	forge_begin(&x, &f); /* somebody else's signature */
	ck_assert_int_eq(rv_key_sign(key[0], sig, f.says, sizeof(f.says)), 0);
	put_key(&f, RV_KEY_ED25519, reeve_key_public(key[1]), 32);
	put(&f, 2, sig, 64);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EIDENTITY);
	forge_begin(&x, &f); /* of another static key */
	f.says[30] ^= 1;
	put_own(&f);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EIDENTITY);
	forge_begin(&x, &f); /* of another prefix */
	f.says[0] = 'N';
	put_own(&f);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EIDENTITY);
	forge_begin(&x, &f); /* an empty signature */
	put_key(&f, RV_KEY_ED25519, reeve_key_public(key[1]), 32);
	put(&f, 2, none, 0);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EIDENTITY);
	forge_begin(&x, &f); /* keys that are none */
	put_key(&f, RV_KEY_ED25519, odd, 31);
	put(&f, 2, sig, 64);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	forge_begin(&x, &f);
	put_key(&f, RV_KEY_SECP256K1, odd, 33);
	put(&f, 2, sig, 64);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	forge_begin(&x, &f);
	put_key(&f, RV_KEY_RSA, odd, 34);
	put(&f, 2, sig, 64);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	forge_begin(&x, &f); /* a type that does not exist */
	put_key(&f, 9, odd, 32);
	put(&f, 2, sig, 64);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_ENOTSUP);
	forge_begin(&x, &f); /* no protobuf */
	put_own(&f);
	f.payload[f.n++] = 7;
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	keys_away();
}
END_TEST

START_TEST(what_is_not_known_is_skipped)
{
	static const uint8_t muxers[] = "\x12\x0c/yamux/1.0.0\x12\x0c/mplex/6.7.0";
	struct rv_noise x;
	struct forge f;

	keys();
	forge_begin(&x, &f);
	put(&f, 4, muxers, sizeof(muxers) - 1);
	put(&f, 9, "whatever", 8);
	put_own(&f);
	f.payload[f.n++] = 11 << 3; /* a number */
	f.payload[f.n++] = 5;
	ck_assert_int_eq(forge_answer(&x, &f), 0);
	keys_away();
}
END_TEST

/* An identity of another type: generated, signs the static key. */
static void
identity(struct rv_noise *x, EVP_PKEY *k, unsigned type)
{
	unsigned char *der = NULL, point[80];
	size_t len = sizeof(point), sig_len;
	uint8_t sig[1100];
	struct forge f;
	EVP_MD_CTX *c;
	int n;

	ck_assert_ptr_nonnull(k);
	for (int good = 0; good < 2; good++) {
		forge_begin(x, &f);
		c = EVP_MD_CTX_new();
		sig_len = sizeof(sig);
		ck_assert_int_eq(EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k), 1);
		ck_assert_int_eq(
		    EVP_DigestSign(c, sig, &sig_len, f.says, sizeof(f.says) - !good), 1);
		EVP_MD_CTX_free(c);
		if (type == RV_KEY_SECP256K1) {
			ck_assert_int_eq(EVP_PKEY_get_octet_string_param(
					     k, "encoded-pub-key", point, sizeof(point), &len),
			    1);
			ck_assert_uint_eq(len, 65);
			point[0] = (uint8_t)(2 + (point[64] & 1));
			put_key(&f, type, point, 33);
		} else {
			n = i2d_PUBKEY(k, &der);
			ck_assert_int_gt(n, 0);
			put_key(&f, type, der, (size_t)n);
			OPENSSL_free(der);
			der = NULL;
		}
		put(&f, 2, sig, sig_len);
		ck_assert_int_eq(forge_answer(x, &f), good ? 0 : REEVE_EIDENTITY);
	}
	EVP_PKEY_free(k);
}

START_TEST(identities_of_the_other_types_are_verified)
{
	struct rv_noise x;

	keys();
	identity(&x, EVP_EC_gen("P-256"), RV_KEY_ECDSA);
	identity(&x, EVP_EC_gen("secp256k1"), RV_KEY_SECP256K1);
	identity(&x, EVP_RSA_gen(2048), RV_KEY_RSA);
	keys_away();
}
END_TEST

START_TEST(weak_keys_are_refused)
{
	unsigned char *der = NULL;
	struct rv_noise x;
	struct forge f;
	EVP_PKEY *k = EVP_RSA_gen(1024);
	int n = i2d_PUBKEY(k, &der);

	keys();
	forge_begin(&x, &f);
	put_key(&f, RV_KEY_RSA, der, (size_t)n);
	put(&f, 2, "x", 1);
	ck_assert_int_eq(forge_answer(&x, &f), REEVE_EPROTO);
	OPENSSL_free(der);
	EVP_PKEY_free(k);
	keys_away();
}
END_TEST

RVT_MAIN("noise_payload", &payloads_are_judged, &what_is_not_known_is_skipped,
    &identities_of_the_other_types_are_verified, &weak_keys_are_refused)
