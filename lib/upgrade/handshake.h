/* handshake.h - what is agreed on a fresh connection before it carries streams: security, identity, multiplexer.
 *
 * It is an engine (lib/engine/engine.h) without streams, so that a connection runs it as any other: bytes in, bytes out,
 * a deadline.  When it is over (engine.over) and has nothing left to send, the connection puts the chosen protocol's
 * engine in its place and feeds it the bytes that follow; none is read twice or lost.
 *
 * Steps: multistream-select for the security, if one is configured; its exchange; multistream-select for the
 * multiplexer.  When Noise's exchange is over, feed and drain stop short until rv_handshake_filter was called: everything
 * that follows goes through the filter that it gives.  A failure's reason names the step: REEVE-UP-SECURITY, REEVE-UP-IDENTITY, REEVE-UP-MUXER. */
#ifndef REEVE_LIB_UPGRADE_HANDSHAKE_H
#define REEVE_LIB_UPGRADE_HANDSHAKE_H

#include "lib/engine/engine.h"
#include "lib/key.h"
#include "lib/upgrade/filter.h"
#include "lib/upgrade/identity.h"

#define RV_MUXERS 4

/* What the application configured, checked. */
struct rv_upgrade_cfg {
	uint32_t security; /* enum reeve_security */
	uint32_t timeout_ms;
	uint32_t nmuxers;
	uint32_t muxers[RV_MUXERS]; /* enum reeve_proto, in order of preference */
	struct rv_pubkey key;       /* ours */
	struct reeve_key *identity; /* borrowed; NULL: none */
	struct rv_peer_id expect;   /* len 0: anybody */
};

/* A public structure with what it points to, and the configuration that points to it (or to nothing).  Released once, also
 * if it is all zeroes. */
struct rv_upgrade_copy {
	reeve_upgrade_t up;
	uint8_t key[32];
	char expect[RV_PEER_TEXT];
};
void rv_upgrade_copy(struct rv_upgrade_copy *to, reeve_cfg_t *cfg);
void rv_upgrade_release(struct rv_upgrade_copy *copy);

/* size, defaults and contents of the public structure.  REEVE_EINVAL, REEVE_ENOTSUP. */
int rv_upgrade_resolve(struct rv_upgrade_cfg *out, const reeve_upgrade_t *up);
/* cfg->user, record_size and budget are not looked at.  REEVE_ENOMEM. */
int rv_handshake_create(
    struct rv_engine **e, const struct rv_engine_cfg *cfg, const struct rv_upgrade_cfg *up);
/* When it is over: enum reeve_proto. */
uint32_t rv_handshake_proto(const struct rv_engine *e);
/* What the rest goes through from now on, once: the caller's.  NULL: nothing new. */
struct rv_filter *rv_handshake_filter(struct rv_engine *e);
/* Whom the peer said it is; len 0: nothing was said. */
const struct rv_peer_id *rv_handshake_peer(const struct rv_engine *e);

#endif
