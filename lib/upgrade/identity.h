/* identity.h - peer ids: the multihash of an encoded public key, and its text.
 *
 * Pure functions.  Keys of at most 42 encoded bytes are their own multihash (identity code), as Ed25519 and secp256k1
 * keys are: no hash function is needed here, and other keys answer REEVE_ENOTSUP.  Source: the libp2p peer id
 * specification. */
#ifndef REEVE_LIB_UPGRADE_IDENTITY_H
#define REEVE_LIB_UPGRADE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <reeve/error.h>

#define RV_PUBKEY_MAX 42 /* encoded, as far as we take them */
#define RV_PEER_ID    (RV_PUBKEY_MAX + 2)
#define RV_PEER_TEXT  80 /* of any id, with the terminating zero */

enum rv_key_type { RV_KEY_RSA, RV_KEY_ED25519, RV_KEY_SECP256K1, RV_KEY_ECDSA };

struct rv_pubkey {
	uint32_t type; /* enum rv_key_type */
	uint32_t len;
	uint8_t v[33];
};

/* The multihash.  len 0: none. */
struct rv_peer_id {
	uint32_t len;
	uint8_t v[RV_PEER_ID];
};

/* Bytes of somebody else. */
struct rv_bytes {
	const uint8_t *p;
	size_t n;
};

/* The protobuf message PublicKey, the one way to write it.  Bytes written, at most RV_PUBKEY_MAX. */
size_t rv_pubkey_put(uint8_t *p, const struct rv_pubkey *key);
/* Read one from exactly n bytes; fields that we do not know are skipped.  REEVE_EPROTO (malformed, wrong length),
 * REEVE_ENOTSUP (a type we do not take). */
int rv_pubkey_get(struct rv_pubkey *key, const uint8_t *p, size_t n);
/* The same for a key of any type and length: what it says, in place.  PrivateKey has the same two fields. */
int rv_pubkey_fields(uint32_t *type, struct rv_bytes *data, const uint8_t *p, size_t n);

void rv_peer_id_of(struct rv_peer_id *id, const struct rv_pubkey *key);
/* Exactly n bytes are a multihash that can be a peer id.  REEVE_EPROTO. */
int rv_peer_id_get(struct rv_peer_id *id, const uint8_t *p, size_t n);
bool rv_peer_id_same(const struct rv_peer_id *a, const struct rv_peer_id *b);

/* base58btc text, ended by a zero.  Its length. */
size_t rv_peer_id_text(const struct rv_peer_id *id, char out[RV_PEER_TEXT]);
/* From base58btc, or from a version 1 content id in base32 ("bafz...").  REEVE_EINVAL. */
int rv_peer_id_parse(struct rv_peer_id *id, const char *text);

/* --- protobuf, as much as is needed here */

/* The next field of *p .. end: its number, and its value (varint) or bytes (length-delimited).  1, 0 at the end,
 * REEVE_EPROTO. */
struct rv_pb {
	uint32_t field, wire;
	uint64_t value;
	const uint8_t *p;
	size_t n;
};
int rv_pb_next(struct rv_pb *f, const uint8_t **p, const uint8_t *end);

#endif
