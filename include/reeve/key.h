/* key.h - who we are: an Ed25519 key.  Its public half and its peer id are for everybody, the rest stays in the object. */
#ifndef REEVE_KEY_H
#define REEVE_KEY_H

#include <reeve/error.h>

REEVE_BEGIN

/* Refcounted inside: whatever is given one (reeve_upgrade_t) keeps it as long as it needs it, so the owner may free it
 * at any time.  It does not change.  A library without Noise answers REEVE_ENOTSUP to all of these. */
typedef struct reeve_key reeve_key_t;

/* A new key.  REEVE_EINVAL, REEVE_ENOMEM.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_key_generate(reeve_key_t **k);

/* The key of 32 secret bytes.  REEVE_EINVAL, REEVE_ENOMEM.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_key_from_seed(reeve_key_t **k, const uint8_t seed[32]);

/* The key in libp2p's encoding, the protobuf message PrivateKey, as reeve_key_save writes it.  REEVE_EINVAL,
 * REEVE_EPROTO (not such a message, or its two halves do not fit), REEVE_ENOTSUP (not Ed25519), REEVE_ENOMEM.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_key_from_bytes(reeve_key_t **k, const void *p, size_t n);

/* The key in a file.  As reeve_key_from_bytes, or a system error.  Reads one small file.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_key_load(reeve_key_t **k, const char *path);

/* Write it to a file that only its owner may read: all of it or, after an error, nothing; what was there is replaced at
 * once.  Something there that is not a file of that kind (a link, a file that others may read) is left alone:
 * REEVE_ESYS_BASE - EEXIST.  Another system error, REEVE_EINVAL.  Waits for the disk.
 * T: any B: yes W: no borrows k */
REEVE_API REEVE_CHECKED int reeve_key_save(const reeve_key_t *k, const char *path);

/* The public half, 32 bytes; the key's, as long as that is not freed.  NULL for NULL.
 * T: any B: no W: ok borrows k */
REEVE_API const uint8_t *reeve_key_public(const reeve_key_t *k);

/* Text of the peer id (with a zero; its length is returned), REEVE_EINVAL when n is too small (80 is enough).
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_key_peer_id(const reeve_key_t *k, char *out, size_t n);

/* Let go of it; with the last user the secret is overwritten.  NULL is ignored.
 * T: any B: no W: ok consumes k */
REEVE_API void reeve_key_free(reeve_key_t *k);

REEVE_END

#endif
