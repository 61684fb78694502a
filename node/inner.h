/* inner.h - what a node is made of: private to node/core.c, life.c, peers.c, link.c, dial.c, open.c.
 *
 * One mutex guards the table of peers and all lists; it is held for a few instructions (and an allocation), never over a
 * post, an operation or a callback.  A link (one connection) and a dial are actors: what is marked "owner" belongs to
 * their worker.  Whatever reeve_node_close has to wait for is counted: things (links, dials, accepts, under the lock) and
 * work (holds of protocols, opens). */
#ifndef REEVE_NODE_INNER_H
#define REEVE_NODE_INNER_H

#include <pthread.h>

#include <reeve/ctl.h>
#include <reeve/stream.h>

#include "actors/actor.h"
#include "actors/listener.h"
#include "actors/op.h"
#include "actors/runtime.h"
#include "actors/timer.h"
#include "lib/upgrade/handshake.h"
#include "node/core.h"
#include "queues/cell.h"
#include "queues/parker.h"

#define RVN_ADDRS     8   /* of a peer, and of a dial */
#define RVN_ADDR_TEXT 288 /* of any address, with its zero */
#define RVN_PER_PEER  2   /* connections with one peer: two that dial each other at once get both */
#define RVN_ACCEPTS   8   /* pending on a link */
#define RVN_GUESTS    4   /* pending on a listener */
#define RVN_LEAVE_MS  1000 /* of a graceful close that nobody waits for */

struct rvn_link;
struct rvn_dial;

/* --- peers.c --- */

enum rvn_event_kind { RVN_EV_NONE, RVN_EV_GO, RVN_EV_UP, RVN_EV_DOWN };

/* What a peer's protocols are told, in order; GO tells only the link, that everything before it was told. */
struct rvn_event {
	struct rvn_event *next;
	struct rvn_link *link; /* one reference */
	enum rvn_event_kind kind;
	reeve_reason_t why;
};

/* All of it under the lock.  It stays while anything below is there. */
struct rvn_peer {
	struct rvn_peer *chain;       /* of its bucket */
	struct rvn_peer *up, **upp;   /* connected ones */
	struct rvn_peer *old, *young; /* in the order of use, if only addresses hold it */
	struct rv_peer_id id;
	char text[REEVE_PEER_TEXT];
	bool listed;                         /* in that order */
	bool booked;                         /* counted as one whose addresses are remembered */
	bool announced;                      /* CONNECTED is the last of the two that was queued */
	bool delivering;                     /* a thread is telling */
	unsigned naddrs, nlinks;             /* nlinks: open, also those that are closing */
	char *addr[RVN_ADDRS];               /* the one that worked last is first */
	struct rvn_link *use[RVN_PER_PEER];  /* the first is in use; NULL: none */
	struct rvn_dial *dial;               /* under way */
	struct rvn_open *opens, **opens_end; /* wait for it */
	struct rvn_event *events, **events_end;
};

/* --- the node --- */

/* Every version of the table of names stays until the node goes: readers need no lock. */
struct rvn_names {
	struct rvn_names *older;
	size_t size;
	unsigned n;
	const char **names;
	struct rvn_slot {
		struct rvn_proto *p;
		unsigned index;
	} slot[];
};

/* One pending accept of a listener. */
struct rvn_guest {
	struct rva_msg msg; /* to the clerk: begin it again after a while */
	reeve_op_t op;
	struct rvn_listener *l;
	struct rvn_guest *next;
};

struct rvn_listener {
	struct rvn_listener *next;
	reeve_node_t *node;
	reeve_listener_t *l;
	struct rvn_guest guest[RVN_GUESTS];
};

enum { RVN_MSG_OPEN = 2000, RVN_MSG_CANCEL, RVN_MSG_GUEST, RVN_MSG_ATTEMPT };

/* The clerk's bell. */
#define RVN_CLERK_FREE  1u
#define RVN_CLERK_RETRY 2u

#define RVN_CLOSING UINT64_C(1)

struct reeve_node {
	struct rva_actor
	    actor; /* the clerk: completes opens that nobody else has, retries accepts */
	struct rvq_bell bell;
	/* immutable */
	reeve_rt_t *rt;
	struct rv_arena *arena;
	reeve_cfg_t conn;
	struct rv_upgrade_copy upgrade;
	uint32_t idle_ms, dial_ms, negotiate_ms, max_conns, max_negotiating, max_peers;
	reeve_peer_fn fn;
	void *arg;
	struct rv_peer_id id;
	char text[REEVE_PEER_TEXT];
	uint64_t seed;
	/* any thread */
	struct rvq_cellptr names; /* struct rvn_names */
	struct rvq_cell64 work;   /* RVN_CLOSING, and 2 for each hold and open */
	struct rvn_gauges gauges;
	struct rvq_gauge dials, negotiating, opening, conns_total, dials_failed, refused;
	struct rvq_parker idle;  /* woken when things or work have become 0 */
	struct rvq_latch *freed; /* set by the clerk's end */
	/* owner: the clerk */
	struct rvn_guest *parked;
	struct rva_timer timer;
	/* under the lock */
	pthread_mutex_t lock;
	struct rvn_peer **bucket;
	size_t nbuckets;
	unsigned npeers, nbooked, nup; /* records, remembered, connected */
	struct rvn_peer *oldest, *youngest, *ups;
	unsigned slots; /* connections, and dials that may become one */
	unsigned nlinks;
	unsigned things; /* links, dials and accepts that have not been freed */
	bool closed;     /* reeve_node_close has done everything */
	bool cut;        /* by it: something did not end in time */
	struct rvn_link *links;
	struct rvn_dial *all_dials;
	struct rvn_listener *listeners;
	struct rvn_proto *protos;
};

static inline bool
rvn_closing(reeve_node_t *n)
{
	return (rvq_cell64_get(&n->work) & RVN_CLOSING) != 0;
}
static inline void
rvn_lock(reeve_node_t *n)
{
	pthread_mutex_lock(&n->lock);
}
static inline void
rvn_unlock(reeve_node_t *n)
{
	pthread_mutex_unlock(&n->lock);
}
/* Under the lock: a thing more; and one less, where the node may be gone right after the unlock. */
void rvn_thing_put(reeve_node_t *n);
/* As rvn_hold, whether the node closes or not. */
void rvn_work_get(reeve_node_t *n);
/* core.c: the clerk. */
void rvn_clerk_init(reeve_node_t *n);
void rvn_clerk_retry(reeve_node_t *n); /* accepts that wait begin again */
void rvn_clerk_free(reeve_node_t *n, struct rvq_latch *freed);
/* Log level info: what happened to an address or a peer, and why. */
void rvn_log(reeve_node_t *n, const char *id, const char *what, int rc);

/* --- peers.c: all under the lock, but deliver --- */

/* A secret number for the table.  Any thread. */
uint64_t rvn_seed(const void *at);
struct rvn_peer *rvn_peer_find(reeve_node_t *n, const struct rv_peer_id *id);
/* Finds or makes one.  NULL: out of memory.  To be settled before the unlock. */
struct rvn_peer *rvn_peer_get(reeve_node_t *n, const struct rv_peer_id *id);
/* After whatever may have been the last thing that kept it: it may be gone afterwards. */
void rvn_peer_settle(reeve_node_t *n, struct rvn_peer *p);
/* Remember an address; first: it has just worked.  REEVE_ENOMEM. */
int rvn_peer_address(reeve_node_t *n, struct rvn_peer *p, const char *addr, bool first);
/* A reference of ev->link goes with it.  True: the caller has to call rvn_deliver after the unlock. */
bool rvn_peer_tell(reeve_node_t *n, struct rvn_peer *p, struct rvn_event *ev);
void rvn_deliver(reeve_node_t *n, struct rvn_peer *p);
void rvn_peers_free(reeve_node_t *n);

#endif
