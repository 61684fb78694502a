/* core.h - what the protocols of a node see of it: substreams that are opened for them, and substreams that peers open.
 *
 * The table of peers is under one lock that is never held over a call into anything else; connections, dials and
 * negotiations are asynchronous operations that complete on workers.  A protocol never waits for the core. */
#ifndef REEVE_NODE_CORE_H
#define REEVE_NODE_CORE_H

#include <reeve/node.h>
#include <reeve/request.h>

#include "actors/actor.h"
#include "lib/clock.h"
#include "lib/upgrade/identity.h"
#include "queues/cell.h"
#include "queues/counter.h"

struct rvn_proto;

struct rvn_proto_ops {
	/* The peer opened s, and names[name] was agreed on: s is the protocol's (one reference).  On the worker of the
	 * connection; calls for other connections may come at the same time, also for a second one of this peer, and while
	 * or after close is called (rvn_hold tells). */
	void (*inbound)(struct rvn_proto *p, const char *peer, reeve_stream_t *s, unsigned name);
	/* Optional.  The peer's first connection is usable (why NULL), or its last one has ended.  In order for one peer,
	 * before any inbound of a new connection and before any rvn_open of it completes.  Connections that were there when
	 * the protocol was installed are told of by their end only. */
	void (*peer)(struct rvn_proto *p, const char *peer, const reeve_reason_t *why);
	/* The node closes, on the thread that closes it: end what there is, each with its event or completion.  The core
	 * waits until every rvn_hold has been dropped and every open has completed; at the deadline of the close it cuts
	 * the connections.  New opens answer REEVE_ECLOSED. */
	void (*close)(struct rvn_proto *p);
	/* The node is freed: nothing of the protocol runs any more. */
	void (*free)(struct rvn_proto *p);
};

/* The first member of what a protocol keeps. */
struct rvn_proto {
	const struct rvn_proto_ops *ops;
	reeve_node_t *node;
	const char *const *names; /* copied by rvn_proto_install; the core's */
	unsigned nnames;
	struct rvn_proto *next;
};

/* Names: as reeve_negotiate's.  REEVE_EINVAL, REEVE_EBUSY (a name is taken), REEVE_ENOMEM, REEVE_ECLOSED. */
int rvn_proto_install(
    reeve_node_t *n, struct rvn_proto *p, const char *const *names, unsigned nnames);

/* Something of a protocol that reeve_node_close waits for.  rvn_hold: false once the node is closing (nothing is held). */
bool rvn_hold(reeve_node_t *n);
void rvn_drop(reeve_node_t *n);

reeve_rt_t *rvn_rt(reeve_node_t *n);

/* The counters of reeve_node_stats_t that protocols keep. */
struct rvn_gauges {
	struct rvq_gauge streams, requests_in, requests_out, queued, held;
	struct rvq_gauge notif_sent, notif_received, notif_lost, notif_clogged;
	struct rvq_gauge requests_ok, requests_failed, requests_served, requests_refused;
};
struct rvn_gauges *rvn_gauges(reeve_node_t *n);

#define RVN_NO_DIAL 0x1u
#define RVN_LAZY    0x2u /* negotiate optimistically; with one name only */

/* A substream to a peer that speaks one of names: dials if the peer is not connected, opens, negotiates, all under one
 * deadline.  The caller's storage; completes exactly once. */
struct rvn_open {
	/* the caller's */
	void (*fn)(struct rvn_open *o); /* on a worker, after which o may be gone */
	const char *const *names;       /* until then */
	unsigned nnames;
	unsigned flags;
	uint64_t deadline; /* us of rv_clock_us; UINT64_MAX: the node's limits for each step */
	/* outcome */
	int rc; /* 0, REEVE_EINVAL (no peer id), REEVE_ENOTCONN, REEVE_EDIAL (also: no address is known), REEVE_EIDENTITY,
		 * REEVE_ENOPROTO, REEVE_EREFUSED, REEVE_ETIMEDOUT, REEVE_ELOST, REEVE_ERESET, REEVE_ECANCELED, REEVE_ELIMIT,
		 * REEVE_EPROTO, REEVE_ENOMEM, REEVE_ECLOSED */
	int step;               /* enum reeve_step: where it failed */
	reeve_stream_t *stream; /* rc 0: one reference for the caller */
	unsigned name;          /* rc 0: index of the agreed name */
	/* the core's */
	struct rva_msg start, stop; /* to who has it */
	reeve_op_t op;
	reeve_node_t *node;
	struct rvn_link *link;          /* that opens it; NULL: the clerk has it, or a dial */
	struct rvn_open *next, **pprev; /* of a link, or of a peer that is being dialed */
	struct rv_peer_id id;
	struct rvq_cell32 state;
	int stage;
	uint64_t limit; /* us: of opening and negotiating */
	bool waiting;   /* for a dial */
	unsigned again; /* how often a link closed under it */
	bool cancelled, finished;
};
/* Start.  Any thread; fn is never called inside. */
void rvn_open(reeve_node_t *n, const char *peer, struct rvn_open *o);
/* Ask for an early end: fn still comes, exactly once (rc 0 if it was too late).  rvn_open has returned; fn may have begun
 * on another thread, but o stays valid until this returns.  Any thread. */
void rvn_open_cancel(struct rvn_open *o);

/* What a stream or connection error means to a user of a protocol: the end of a connection is REEVE_ELOST, everything else
 * is itself. */
int rvn_error(reeve_stream_t *s, int rc);

/* Reset a stream, unless something of ours is not sent yet, such as the name that was just agreed on: without it the peer
 * would take it that we speak none of his protocols.  Then dropping the last handle ends it, behind that.  The stream's
 * worker. */
void rvn_turn_away(reeve_stream_t *s);

#endif
