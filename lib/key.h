/* key.h - an identity's key from the inside.  Immutable; any thread. */
#ifndef REEVE_LIB_KEY_H
#define REEVE_LIB_KEY_H

#include <reeve/key.h>

void rv_key_ref(struct reeve_key *k);
void rv_key_unref(struct reeve_key *k); /* NULL is ignored */
const uint8_t *rv_key_public(const struct reeve_key *k);
/* sig: 64 bytes.  REEVE_ENOMEM. */
int rv_key_sign(const struct reeve_key *k, uint8_t *sig, const void *msg, size_t n);

#endif
