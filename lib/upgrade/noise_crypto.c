/* noise_crypto.c - see noise_crypto.h. */
#include <config.h>

#include "lib/upgrade/noise_crypto.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <string.h>

#include "lib/check.h"
#include "lib/upgrade/identity.h"

#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192

/* What failed left notes in a queue of the thread, which nobody reads. */
static int
result(int ok, int rc)
{
	if (ok == 1)
		return 0;
	ERR_clear_error();
	return rc;
}

void
rv_wipe(void *p, size_t n)
{
	OPENSSL_cleanse(p, n);
}

int
rv_random(uint8_t *p, size_t n)
{
	return result(n <= INT_MAX && RAND_priv_bytes(p, (int)n) == 1, REEVE_ENOMEM);
}

/* --- X25519 */

static EVP_PKEY *
x25519_secret(const uint8_t secret[RV_KEY_LEN])
{
	return EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, RV_KEY_LEN);
}

int
rv_x25519_public(uint8_t pub[RV_KEY_LEN], const uint8_t secret[RV_KEY_LEN])
{
	EVP_PKEY *k = x25519_secret(secret);
	size_t n = RV_KEY_LEN;
	int ok = k != NULL && EVP_PKEY_get_raw_public_key(k, pub, &n) == 1 && n == RV_KEY_LEN;

	EVP_PKEY_free(k);
	return result(ok, REEVE_ENOMEM);
}

int
rv_x25519_generate(uint8_t secret[RV_KEY_LEN], uint8_t pub[RV_KEY_LEN])
{
	int rc = rv_random(secret, RV_KEY_LEN);

	return rc != 0 ? rc : rv_x25519_public(pub, secret);
}

int
rv_x25519(
    uint8_t shared[RV_KEY_LEN], const uint8_t secret[RV_KEY_LEN], const uint8_t other[RV_KEY_LEN])
{
	EVP_PKEY *k = x25519_secret(secret);
	EVP_PKEY *o = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, other, RV_KEY_LEN);
	EVP_PKEY_CTX *c = k == NULL ? NULL : EVP_PKEY_CTX_new_from_pkey(NULL, k, NULL);
	size_t n = RV_KEY_LEN;
	int rc = REEVE_ENOMEM;

	if (o != NULL && c != NULL && EVP_PKEY_derive_init(c) == 1 &&
	    EVP_PKEY_derive_set_peer(c, o) == 1)
		rc = result(EVP_PKEY_derive(c, shared, &n) == 1 && n == RV_KEY_LEN, REEVE_EPROTO);
	else
		rc = result(0, REEVE_ENOMEM);
	EVP_PKEY_CTX_free(c);
	EVP_PKEY_free(o);
	EVP_PKEY_free(k);
	return rc;
}

/* --- hashes */

int
rv_sha256(uint8_t out[RV_HASH_LEN], const void *a, size_t na, const void *b, size_t nb)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	int ok = c != NULL && EVP_DigestInit_ex(c, EVP_sha256(), NULL) == 1 &&
	    EVP_DigestUpdate(c, a, na) == 1 && EVP_DigestUpdate(c, b, nb) == 1 &&
	    EVP_DigestFinal_ex(c, out, NULL) == 1;

	EVP_MD_CTX_free(c);
	return result(ok, REEVE_ENOMEM);
}

static bool
hmac(uint8_t out[RV_HASH_LEN], const uint8_t key[RV_HASH_LEN], const void *p, size_t n)
{
	unsigned len = 0;

	return HMAC(EVP_sha256(), key, RV_HASH_LEN, p, n, out, &len) != NULL && len == RV_HASH_LEN;
}

int
rv_hkdf2(uint8_t out1[RV_HASH_LEN], uint8_t out2[RV_HASH_LEN], const uint8_t salt[RV_HASH_LEN],
    const void *ikm, size_t n)
{
	uint8_t prk[RV_HASH_LEN], more[RV_HASH_LEN + 1];
	bool ok = hmac(prk, salt, ikm, n);

	more[0] = 1;
	ok = ok && hmac(out1, prk, more, 1);
	if (ok)
		memcpy(more, out1, RV_HASH_LEN);
	more[RV_HASH_LEN] = 2;
	ok = ok && hmac(out2, prk, more, sizeof(more));
	rv_wipe(prk, sizeof(prk));
	rv_wipe(more, sizeof(more));
	return result(ok, REEVE_ENOMEM);
}

/* --- the cipher */

int
rv_aead_create(EVP_CIPHER_CTX **out, const uint8_t key[RV_KEY_LEN], bool seal)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int rc = c == NULL ? result(0, REEVE_ENOMEM) : rv_aead_key(c, key, seal);

	if (rc != 0)
		EVP_CIPHER_CTX_free(c);
	else
		*out = c;
	return rc;
}

int
rv_aead_key(EVP_CIPHER_CTX *c, const uint8_t key[RV_KEY_LEN], bool seal)
{
	return result(
	    EVP_CipherInit_ex(c, EVP_chacha20_poly1305(), NULL, key, NULL, seal), REEVE_ENOMEM);
}

int
rv_aead_begin(EVP_CIPHER_CTX *c, uint64_t nonce)
{
	uint8_t iv[12] = {0};

	for (unsigned i = 0; i < 8; i++)
		iv[4 + i] = (uint8_t)(nonce >> 8 * i);
	return result(EVP_CipherInit_ex(c, NULL, NULL, NULL, iv, -1), REEVE_ENOMEM);
}

int
rv_aead_ad(EVP_CIPHER_CTX *c, const void *ad, size_t n)
{
	int len;

	return n == 0 ? 0 : result(EVP_CipherUpdate(c, NULL, &len, ad, (int)n), REEVE_ENOMEM);
}

int
rv_aead_update(EVP_CIPHER_CTX *c, uint8_t *out, const uint8_t *in, size_t n)
{
	int len;

	return n == 0 ? 0 : result(EVP_CipherUpdate(c, out, &len, in, (int)n), REEVE_ENOMEM);
}

int
rv_aead_tag(EVP_CIPHER_CTX *c, uint8_t tag[RV_TAG_LEN])
{
	int len;

	return result(EVP_CipherFinal_ex(c, tag, &len) == 1 &&
		EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, RV_TAG_LEN, tag) == 1,
	    REEVE_ENOMEM);
}

bool
rv_aead_check(EVP_CIPHER_CTX *c, const uint8_t tag[RV_TAG_LEN])
{
	uint8_t copy[RV_TAG_LEN], none[RV_TAG_LEN];
	int len;

	memcpy(copy, tag, sizeof(copy));
	return result(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, RV_TAG_LEN, copy) == 1 &&
		       EVP_CipherFinal_ex(c, none, &len) == 1,
		   REEVE_EPROTO) == 0;
}

void
rv_aead_destroy(EVP_CIPHER_CTX *c)
{
	EVP_CIPHER_CTX_free(c);
}

/* --- signatures */

int
rv_ed25519_from_seed(EVP_PKEY **out, uint8_t pub[RV_KEY_LEN], const uint8_t seed[RV_KEY_LEN])
{
	EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, RV_KEY_LEN);
	size_t n = RV_KEY_LEN;
	int rc = result(
	    k != NULL && EVP_PKEY_get_raw_public_key(k, pub, &n) == 1 && n == RV_KEY_LEN,
	    REEVE_ENOMEM);

	if (rc != 0)
		EVP_PKEY_free(k);
	else
		*out = k;
	return rc;
}

int
rv_ed25519_sign(EVP_PKEY *k, uint8_t sig[RV_SIG_LEN], const void *msg, size_t n)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	size_t len = RV_SIG_LEN;
	int ok = c != NULL && EVP_DigestSignInit(c, NULL, NULL, NULL, k) == 1 &&
	    EVP_DigestSign(c, sig, &len, msg, n) == 1 && len == RV_SIG_LEN;

	EVP_MD_CTX_free(c);
	return result(ok, REEVE_ENOMEM);
}

void
rv_ed25519_destroy(EVP_PKEY *k)
{
	EVP_PKEY_free(k);
}

/* A compressed point.  EVP has no other way to make a key of it. */
static EVP_PKEY *
secp256k1(struct rv_bytes key)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	char group[] = "secp256k1";
	OSSL_PARAM p[3];
	EVP_PKEY *k = NULL;

	p[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
	p[1] = OSSL_PARAM_construct_octet_string(
	    OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)key.p, key.n);
	p[2] = OSSL_PARAM_construct_end();
	if (c == NULL || EVP_PKEY_fromdata_init(c) != 1 ||
	    EVP_PKEY_fromdata(c, &k, EVP_PKEY_PUBLIC_KEY, p) != 1)
		k = NULL;
	EVP_PKEY_CTX_free(c);
	return k;
}

/* A SubjectPublicKeyInfo, all of it, of the kind that was named. */
static EVP_PKEY *
spki(struct rv_bytes key, const char *kind)
{
	const unsigned char *at = key.p;
	EVP_PKEY *k = key.n > LONG_MAX ? NULL : d2i_PUBKEY(NULL, &at, (long)key.n);

	if (k != NULL && at == key.p + key.n && EVP_PKEY_is_a(k, kind) == 1)
		return k;
	EVP_PKEY_free(k);
	return NULL;
}

static bool
is_p256(const EVP_PKEY *k)
{
	char name[32];
	size_t n;

	return EVP_PKEY_get_group_name(k, name, sizeof(name), &n) == 1 &&
	    strcmp(name, "prime256v1") == 0;
}

static EVP_PKEY *
public_key(uint32_t type, struct rv_bytes key)
{
	EVP_PKEY *k = NULL;
	bool fit = true;

	if (type == RV_KEY_ED25519 && key.n == RV_KEY_LEN) {
		k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key.p, key.n);
	} else if (type == RV_KEY_SECP256K1 && key.n == 33) {
		k = secp256k1(key);
	} else if (type == RV_KEY_ECDSA) {
		k = spki(key, "EC");
		fit = k != NULL && is_p256(k);
	} else if (type == RV_KEY_RSA) {
		k = spki(key, "RSA");
		fit = k != NULL && EVP_PKEY_get_bits(k) >= RSA_BITS_MIN &&
		    EVP_PKEY_get_bits(k) <= RSA_BITS_MAX;
	}
	if (fit)
		return k;
	EVP_PKEY_free(k);
	return NULL;
}

int
rv_verify(uint32_t type, struct rv_bytes key, struct rv_bytes sig, struct rv_bytes msg)
{
	const EVP_MD *md = type == RV_KEY_ED25519 ? NULL : EVP_sha256();
	EVP_MD_CTX *c;
	EVP_PKEY *k;
	int ok;

	REEVE_REQUIRE(type <= RV_KEY_ECDSA, REEVE_ENOTSUP);
	k = public_key(type, key);
	if (k == NULL)
		return result(0, REEVE_EPROTO);
	c = EVP_MD_CTX_new();
	ok = c != NULL && EVP_DigestVerifyInit(c, NULL, md, NULL, k) == 1 &&
	    EVP_DigestVerify(c, sig.p, sig.n, msg.p, msg.n) == 1;
	EVP_MD_CTX_free(c);
	EVP_PKEY_free(k);
	return result(ok, REEVE_EIDENTITY);
}
