/* noise_xx.h - the handshake Noise_XX_25519_ChaChaPoly_SHA256: three messages, two secrets that nobody else knows.
 *
 * Pure but for the random numbers; one owner.  Messages alternate, the initiator writes the first:
 *     -> e      <- e, ee, s, es      -> s, se
 * each with a payload, which is in the clear in the first, for whoever answers in the second, and for the two of them in the
 * third.  After a failure nothing but rv_xx_wipe may be called.  Source: The Noise Protocol Framework, revision 34. */
#ifndef REEVE_LIB_UPGRADE_NOISE_XX_H
#define REEVE_LIB_UPGRADE_NOISE_XX_H

#include "lib/upgrade/noise_crypto.h"

#define RV_XX_MESSAGES 3u
#define RV_XX_OVERHEAD \
	(2 * RV_KEY_LEN + 2 * RV_TAG_LEN) /* of a message over its payload, at most */

struct rv_xx {
	struct evp_cipher_ctx_st *cipher;
	uint8_t ck[RV_HASH_LEN], h[RV_HASH_LEN], k[RV_KEY_LEN];
	uint64_t n;
	bool keyed, initiator;
	unsigned step; /* messages written and read */
	/* secret and public halves: static, ephemeral; the peer's public ones */
	uint8_t s[RV_KEY_LEN], sp[RV_KEY_LEN], e[RV_KEY_LEN], ep[RV_KEY_LEN];
	uint8_t rs[RV_KEY_LEN], re[RV_KEY_LEN];
	bool has_s, has_e; /* made when they are needed; tests give theirs */
};

int rv_xx_init(struct rv_xx *x, bool initiator, const void *prologue, size_t n);
/* Our static key, which the payload of the message that carries it may speak of. */
int rv_xx_static(struct rv_xx *x);
/* Is the next message ours to write? */
bool rv_xx_writes(const struct rv_xx *x);
/* The next message with n bytes of payload, to out, which has room for n + RV_XX_OVERHEAD.  Its length, or an error. */
reeve_ssize rv_xx_write(struct rv_xx *x, uint8_t *out, const void *payload, size_t n);
/* The peer's message of n bytes; its payload to out, which has room for n.  Its length, REEVE_EPROTO (it is not by somebody
 * who knows what he should), or REEVE_ENOMEM. */
reeve_ssize rv_xx_read(struct rv_xx *x, const uint8_t *msg, size_t n, uint8_t *out);
/* After three messages: what protects each direction from now on. */
int rv_xx_split(const struct rv_xx *x, uint8_t send[RV_KEY_LEN], uint8_t recv[RV_KEY_LEN]);
void rv_xx_wipe(struct rv_xx *x);

#endif
