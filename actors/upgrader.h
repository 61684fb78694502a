/* upgrader.h - from a byte pipe to a connection.  The handshake, if there is one, runs in the
 * connection as its first engine (lib/upgrade/handshake.h); here it begins and ends. */
#ifndef REEVE_ACTORS_UPGRADER_H
#define REEVE_ACTORS_UPGRADER_H

#include "actors/connection.h"
#include "lib/upgrade/filter.h"

struct rva_upgrade {
	reeve_rt_t *rt;
	struct rva_worker *home; /* NULL: wherever there is room */
	struct rv_transport *transport;
	int role;
	const reeve_cfg_t *cfg;
	struct rv_chain
	    *unread; /* bytes already read from the transport, or NULL; consumed on success */
	struct rv_filter *filter; /* NULL: bytes go through as they are */
};

/* *c: one reference.  Transport and filter are the connection's on success and still the caller's on failure. */
int rva_upgrade(struct reeve_conn **c, const struct rva_upgrade *up);

/* A transport of the application's behind the library's seam.  *t on success only; nothing of u is called before that. */
int rva_custom_transport(struct rv_transport **t, struct rv_arena *ar, const reeve_transport_t *u);

#endif
