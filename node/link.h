/* link.h - links: one connection of a node.  See link.c. */
#ifndef REEVE_NODE_LINK_H
#define REEVE_NODE_LINK_H

#include "node/inner.h"

#define RVN_LINK_GO    1u
#define RVN_LINK_LEAVE 2u /* close gracefully until close_at */
#define RVN_LINK_FREE  4u

struct rvn_link {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct rvq_ref refs; /* itself until ended, operations, events, opens */
	/* immutable */
	reeve_node_t *node;
	reeve_conn_t *c;
	reeve_ctl_t *k;
	struct rvn_peer *peer; /* valid until ended */
	char text[REEVE_PEER_TEXT];
	char addr[RVN_ADDR_TEXT]; /* dialed; "": the peer has dialed */
	/* under the lock */
	struct rvn_link *next, **pprev; /* pprev NULL: ended */
	bool told;                      /* by a close of the node */
	/* owner */
	bool going, ended, leaving;
	struct rvn_open *held;        /* until it goes */
	struct rvn_inbound *inbounds; /* being negotiated */
	unsigned nopens, ninbound;    /* being opened and negotiated */
	struct rva_timer timer;       /* idle */
	uint64_t used;                /* us: the last open of ours was over */
	struct rvn_event up, down;    /* under the lock of their queue */
	reeve_op_t closed;
	struct rvn_accept {
		reeve_op_t op;
		struct rvn_link *l;
	} accept[RVN_ACCEPTS];
};

/* What a new connection is to become. */
struct rvn_arrival {
	reeve_conn_t *c;           /* ready; consumed in any case */
	const char *addr;          /* that was dialed, or NULL */
	bool slot;                 /* one was taken for it */
	char who[REEVE_PEER_TEXT]; /* out: the peer, also when it was refused, if it is known */
};
/* A connection is there.  0: the slot is the link's.  REEVE_EIDENTITY (ourselves), REEVE_ELIMIT (max_conns),
 * REEVE_EBUSY (there are two), REEVE_ECLOSED, REEVE_ENOMEM: it is being ended, the slot is still the caller's. */
int rvn_link_new(reeve_node_t *n, struct rvn_arrival *a);
void rvn_link_ref(struct rvn_link *l);
void rvn_link_unref(struct rvn_link *l);
/* Any thread: no new opens use it; it closes gracefully, at most so long.  The lock is not held. */
void rvn_link_leave(struct rvn_link *l, int64_t timeout_ms);

#endif
