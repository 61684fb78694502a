/* listener.h - the listener actor: accepts on a bound socket or a name while somebody waits for a connection.
 *
 * Connections that nobody waits for stay in the kernel's backlog, those of a mem:// name in the listener's own (bounded). */
#ifndef REEVE_ACTORS_LISTENER_H
#define REEVE_ACTORS_LISTENER_H

#include <reeve/listen.h>

#include "actors/op.h"
#include "actors/poller.h"
#include "actors/runtime.h"
#include "actors/timer.h"
#include "lib/addr.h"
#include "lib/transport/transport.h"
#include "lib/upgrade/handshake.h"

#define RVA_L_READY 1u
#define RVA_L_STOP  2u
#define RVA_L_FREE  8u

/* Connections that may be in their handshake or wait after it, at once: a slow peer holds up nobody else. */
#define RVA_GUESTS 128

struct reeve_listener {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct rva_source source;
	/* immutable */
	reeve_rt_t *rt;
	struct rv_arena *arena;
	struct rva_worker *w;
	struct rv_addr addr; /* bound, port filled in */
	reeve_cfg_t cfg;
	struct rv_upgrade_copy upgrade;
	int fd; /* -1: mem */
	/* any thread */
	struct rvq_ref refs;        /* the handle, operations, dialers on their way */
	struct rvq_cell32 stopping; /* reeve_listener_stop was called */
	struct rvq_parker stopped;  /* reeve_serve sleeps here too */
	struct rvq_gauge backlog;   /* mem: transports on their way to accept */
	/* owner */
	bool ended;
	bool drained; /* nobody was there: the poller tells of the next */
	struct rva_oplist accepts;
	struct rva_timer timer;
	struct rva_offer *offers, **offers_tail; /* mem: dialed, not accepted */
	struct rva_guest *guests;                /* in their handshake */
	unsigned nguests;
	reeve_conn_t
	    *ready[RVA_GUESTS]; /* handshake over, not accepted: a ring of nready from ready_at */
	unsigned nready, ready_at;
	struct reeve_listener *next, **pprev; /* register, under its lock */
	struct reeve_listener *name_next;     /* mem: names, under their lock */
};

/* A dialed end of a memory pipe on its way to the listener. */
struct rva_offer {
	struct rva_msg msg;
	struct rv_transport *transport;
	struct rva_worker *home; /* of the dialing end; NULL: of another runtime */
	struct rva_offer *next;
	struct rv_arena *arena;
};

/* mem: hand an end over, whose other end lives at home (NULL: in another runtime).  REEVE_ESYS_BASE - ECONNREFUSED
 * when the backlog is full or it stops; REEVE_ENOMEM. */
int rva_listener_offer(struct reeve_listener *l, struct rv_transport *t, struct rva_worker *home);

#endif
