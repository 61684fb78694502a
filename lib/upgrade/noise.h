/* noise.h - /noise of libp2p: who the peer is, proven, and a secret with him.
 *
 * Pure but for random numbers: bytes in, bytes out, as plaintext.h.  One owner.  Messages of the handshake (noise_xx.h) have a
 * length of two bytes in front.  The second and the third carry a protobuf payload {1: identity key, 2: its signature of
 * "noise-libp2p-static-key:" and the static key, 4: extensions}; what is not known there is skipped, and so are the
 * extensions: the multiplexer is agreed on as on every other connection.  Source: libp2p specification noise, r5. */
#ifndef REEVE_LIB_UPGRADE_NOISE_H
#define REEVE_LIB_UPGRADE_NOISE_H

#include "lib/key.h"
#include "lib/upgrade/filter.h"
#include "lib/upgrade/identity.h"
#include "lib/upgrade/noise_xx.h"

#define RV_NOISE_NAME "/noise"
#define RV_NOISE_MAX  4096u /* bytes of a message of the peer; an RSA key of 8192 bits fits */
#define RV_NOISE_OUT  256u

struct rv_noise {
	struct rv_xx xx;
	struct reeve_key *key;    /* ours; one reference */
	struct rv_peer_id expect; /* len 0: anybody */
	struct rv_peer_id peer;   /* known when done */
	bool done;
	int rc;          /* done: 0 or why not */
	const char *why; /* in words */
	uint32_t have, need;
	uint32_t out_at, out_end;
	uint8_t out[RV_NOISE_OUT];
	uint8_t in[RV_NOISE_MAX];
};

/* expect may be NULL.  Failures show as done.  Takes a reference to key. */
void rv_noise_init(
    struct rv_noise *x, bool initiator, struct reeve_key *key, const struct rv_peer_id *expect);
/* Received bytes: how many were used; all, unless x->done.  x->rc: 0, REEVE_EPROTO, REEVE_ENOTSUP (the type of key),
 * REEVE_EIDENTITY (a wrong signature, or not the expected peer), REEVE_ENOMEM.  Done with 0 and bytes to send: they go
 * first. */
size_t rv_noise_feed(struct rv_noise *x, const uint8_t *p, size_t n);
/* The peer sends no more: failed, unless done. */
void rv_noise_end(struct rv_noise *x);
size_t rv_noise_out(const struct rv_noise *x, const uint8_t **p);
void rv_noise_sent(struct rv_noise *x, size_t n);
/* Done well: what protects everything that follows.  REEVE_ENOMEM. */
int rv_noise_filter(const struct rv_noise *x, struct rv_filter **f, struct rv_arena *ar);
/* Wipes. */
void rv_noise_fini(struct rv_noise *x);

/* The filter of two keys: Noise messages of the transport phase.  REEVE_ENOMEM. */
int rv_noise_filter_create(struct rv_filter **f, struct rv_arena *ar,
    const uint8_t send[RV_KEY_LEN], const uint8_t recv[RV_KEY_LEN]);
/* For tests: both nonces. */
void rv_noise_filter_nonce(struct rv_filter *f, uint64_t send, uint64_t recv);

#endif
