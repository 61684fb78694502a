/* noise_crypto.h - the primitives that Noise and keys need, by OpenSSL's EVP interface.  No primitive is made here.
 *
 * Any thread.  What can fail answers 0 or an error: REEVE_ENOMEM when the library fails, since it fails for nothing else
 * with these arguments. */
#ifndef REEVE_LIB_UPGRADE_NOISE_CRYPTO_H
#define REEVE_LIB_UPGRADE_NOISE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/upgrade/identity.h"

#define RV_KEY_LEN  32u
#define RV_HASH_LEN 32u
#define RV_TAG_LEN  16u
#define RV_SIG_LEN  64u

struct evp_cipher_ctx_st;
struct evp_pkey_st;

/* Overwrite n bytes, also when nobody reads them afterwards. */
void rv_wipe(void *p, size_t n);

/* --- X25519 (RFC 7748) */
int rv_x25519_generate(uint8_t secret[RV_KEY_LEN], uint8_t pub[RV_KEY_LEN]);
int rv_x25519_public(uint8_t pub[RV_KEY_LEN], const uint8_t secret[RV_KEY_LEN]);
/* REEVE_EPROTO: the other key is one of the few with which everybody gets the same secret. */
int rv_x25519(
    uint8_t shared[RV_KEY_LEN], const uint8_t secret[RV_KEY_LEN], const uint8_t other[RV_KEY_LEN]);

/* --- SHA-256 of a then b, and HKDF with two outputs over HMAC-SHA-256 (RFC 5869, Noise section 4.3); out1 may be salt */
int rv_sha256(uint8_t out[RV_HASH_LEN], const void *a, size_t na, const void *b, size_t nb);
int rv_hkdf2(uint8_t out1[RV_HASH_LEN], uint8_t out2[RV_HASH_LEN], const uint8_t salt[RV_HASH_LEN],
    const void *ikm, size_t n);

/* --- ChaCha20-Poly1305 (RFC 8439), one direction of one key.  A message: begin, the associated data if any, updates in
 * pieces of any size, then tag (sealing) or check (opening).  What update gives while opening is not proven before
 * check. out may be in. */
int rv_aead_create(struct evp_cipher_ctx_st **c, const uint8_t key[RV_KEY_LEN], bool seal);
/* Another key, for the handshake. */
int rv_aead_key(struct evp_cipher_ctx_st *c, const uint8_t key[RV_KEY_LEN], bool seal);
int rv_aead_begin(struct evp_cipher_ctx_st *c, uint64_t nonce);
int rv_aead_ad(struct evp_cipher_ctx_st *c, const void *ad, size_t n);
int rv_aead_update(struct evp_cipher_ctx_st *c, uint8_t *out, const uint8_t *in, size_t n);
int rv_aead_tag(struct evp_cipher_ctx_st *c, uint8_t tag[RV_TAG_LEN]);
bool rv_aead_check(struct evp_cipher_ctx_st *c, const uint8_t tag[RV_TAG_LEN]);
/* Wipes the key.  NULL is ignored. */
void rv_aead_destroy(struct evp_cipher_ctx_st *c);

/* --- signatures of identities.  The key may be used by several threads at once. */
int rv_random(uint8_t *p, size_t n);
int rv_ed25519_from_seed(
    struct evp_pkey_st **k, uint8_t pub[RV_KEY_LEN], const uint8_t seed[RV_KEY_LEN]);
int rv_ed25519_sign(struct evp_pkey_st *k, uint8_t sig[RV_SIG_LEN], const void *msg, size_t n);
void rv_ed25519_destroy(struct evp_pkey_st *k); /* wipes; NULL is ignored */
/* A signature of msg by the key of the libp2p type (enum rv_key_type) in its libp2p form: Ed25519, ECDSA on P-256, secp256k1,
 * RSA of 2048 to 8192 bits.  0, REEVE_EIDENTITY (not by this key), REEVE_EPROTO (no key of that type), REEVE_ENOTSUP,
 * REEVE_ENOMEM. */
int rv_verify(uint32_t type, struct rv_bytes key, struct rv_bytes sig, struct rv_bytes msg);

#endif
