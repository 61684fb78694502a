/* plaintext.h - the exchange of /plaintext/2.0.0: each end says who it is, and nothing is proven.
 *
 * Pure: bytes in, bytes out.  One message each way, sent at once by both: varint length, protobuf {1: peer id, 2: public
 * key}.  The id has to be that of the key, and the one that was expected if any was.  Anybody can claim any identity, so
 * this is for tests and for networks that are trusted as a whole.  Source: libp2p specification plaintext 2.0.0. */
#ifndef REEVE_LIB_UPGRADE_PLAINTEXT_H
#define REEVE_LIB_UPGRADE_PLAINTEXT_H

#include "lib/upgrade/identity.h"

#define RV_PLAINTEXT_NAME "/plaintext/2.0.0"
#define RV_PLAINTEXT_MAX  1024u /* bytes of a message of the peer */

struct rv_plaintext {
	struct rv_peer_id expect; /* len 0: anybody */
	struct rv_peer_id peer;   /* known when done */
	bool done;
	int rc;         /* done: 0 or why not */
	const char *id; /* of the reason, "" */
	uint32_t have, need;
	uint32_t out_at, out_end;
	uint8_t out[2 * RV_PEER_ID + 8];
	uint8_t in[RV_PLAINTEXT_MAX];
};

/* expect may be NULL. */
void rv_plaintext_init(
    struct rv_plaintext *x, const struct rv_pubkey *own, const struct rv_peer_id *expect);
/* Received bytes: how many were used; all, unless x->done.  x->rc: 0, REEVE_EPROTO, REEVE_ENOTSUP (the type of key),
 * REEVE_EIDENTITY (the id is not that of the key, or not the expected one). */
size_t rv_plaintext_feed(struct rv_plaintext *x, const uint8_t *p, size_t n);
/* The peer sends no more: failed, unless done. */
void rv_plaintext_end(struct rv_plaintext *x);
size_t rv_plaintext_out(const struct rv_plaintext *x, const uint8_t **p);
void rv_plaintext_sent(struct rv_plaintext *x, size_t n);

#endif
