/* notif.h - the parts of the notification protocol (reeve/notif.h) and what they know of each other.
 *
 *	reeve_notif   the protocol: settings, the table of peers, the queue of events
 *	rvn_npeer     a peer: the machine of notif_state.h, an actor that carries its steps out
 *	rvn_nhalf     a substream until it is joined with the other one: opening, handshakes.  Runs in the peer's turns
 *	reeve_sink    a session: an open stream, an actor at home with the substream that it writes.  notif_session.c
 *	rvn_nev       an event on its way to the application
 *
 * The machine and the table are under the protocol's lock, so that every call is answered at once; what a step leads to is
 * queued under that lock (rvn_todo, embedded in what it is about) and done by the peer's actor, in order.  The lock is
 * never held over a call into anything else.  Messages do not come near it. */
#ifndef REEVE_NODE_NOTIF_H
#define REEVE_NODE_NOTIF_H

#include <pthread.h>
#include <string.h>

#include <reeve/notif.h>

#include "actors/actor.h"
#include "actors/runtime.h"
#include "lib/alloc.h"
#include "lib/buf/slice.h"
#include "node/core.h"
#include "node/notif_state.h"
#include "queues/parker.h"

#define RVN_NBUCKETS 256u

/* A bell that says whose it is. */
enum rvn_nbell_kind { RVN_NB_PEER, RVN_NB_HALF };
struct rvn_nbell {
	struct rvq_bell bell;
	uint32_t kind;
};

/* Something for the peer's actor to do. */
enum rvn_ndo {
	RVN_ND_START,
	RVN_ND_END,
	RVN_ND_REPLY,
	RVN_ND_AGAIN,
	RVN_ND_SAY,
	RVN_ND_JOIN,
	RVN_ND_OVER
};
struct rvn_todo {
	struct rvn_todo *next;
	uint32_t kind; /* enum rvn_ndo */
	uint32_t reserved;
	void *what; /* rvn_nhalf, rvn_nev or reeve_sink_t */
};

/* An event.  item.slab is NULL: so it is known among buffers in the queue of a peer. */
struct rvn_nev {
	struct reeve_buf item;
	struct rvn_todo say;
	struct rv_arena *arena;
	struct rvn_npeer *peer; /* a reference from the moment it is said */
	uint32_t type, name, dir;
	int32_t step;
	reeve_buf_t *data;  /* or NULL; a reference */
	reeve_sink_t *sink; /* or NULL; a reference */
	uint64_t ticket;
	reeve_reason_t reason;
	uint64_t lost, lost_bytes;
};

struct rvn_npeer {
	struct rva_actor actor;
	struct rvn_nbell bell; /* RVN_P_* */
	struct reeve_notif *p;
	struct rv_arena *arena;
	char name[REEVE_PEER_TEXT];
	/* under the lock */
	struct rvn_npeer *next;  /* bucket */
	struct rvn_npeer *tnext; /* bucket of tickets */
	struct rvn_npeer *knext; /* list of those that a closing node has to kick */
	uint32_t refs;
	bool asked;
	struct rvn_nmach mach;
	struct rvn_nhalf *out, *in;
	struct reeve_sink *session;
	struct rvn_nev *owed; /* the outcome that was promised */
	struct rvn_todo *todo, **todo_tail;
	/* events: see notif_event.c */
	struct rvq_mailbox evq;
	struct rvq_link ready;
	struct reeve_sink *cur; /* under the events' lock: whose messages are next in evq */
	/* owner */
	struct reeve_sink *joining;
};
#define RVN_P_TODO 1u
#define RVN_P_OVER 2u /* the session has ended: in session->end_* */
#define RVN_P_FREE 4u

struct rvn_nhalf {
	struct rvn_nbell bell; /* RVN_H_* */
	struct rvn_npeer *peer;
	struct rvn_nev *ask, *result; /* IN: events of a question and of its outcome */
	struct rvn_todo start, end, reply, again;
	bool outbound;
	/* owner: the peer's actor */
	bool opening, reading, writing; /* an operation is under way */
	bool dead;                      /* the machine has let go of it */
	bool yield;                     /* it is being joined: no new reads */
	bool greeted;                   /* the peer's handshake is complete */
	bool told;                      /* its failure was told */
	int end_rc; /* 1: goes on; 0 FIN; or an error: of the reading direction */
	unsigned name;
	int step;
	uint64_t deadline;
	reeve_stream_t *s;
	struct rv_chain got;  /* IN: bytes behind the handshake */
	reeve_buf_t *hs;      /* the peer's handshake, NULL: empty */
	struct rvn_open open; /* OUT */
	reeve_op_t rd, wr;
};
#define RVN_H_OPENED 1u
#define RVN_H_READ   2u
#define RVN_H_WROTE  4u
#define RVN_H_CAME   8u

struct rvn_events {
	struct rvq_stack fresh; /* peers that have become ready, any thread */
	struct rvq_parker parker;
	struct rvq_cell32 done;        /* nothing comes any more */
	struct rvq_cellptr home;       /* worker that had the last message, or NULL */
	struct rvq_cellptr leading;    /* worker that a consumer leads, or NULL */
	pthread_mutex_t lock;          /* consumers */
	struct rvq_link *head, **tail; /* ready peers in turn */
	uint64_t taken;                /* bytes taken of last's, not told yet */
	struct reeve_sink *last;       /* with a reference */
};

struct reeve_notif {
	struct rvn_proto proto;
	struct rvq_ref refs;   /* the node's, and one of each peer's record: of the memory */
	reeve_notif_cfg_t cfg; /* names, handshake: not valid */
	struct rv_arena *arena;
	reeve_rt_t *rt;
	reeve_node_t *node;
	struct rvn_gauges *gauges;
	struct rvq_gauge held;      /* bytes received and not taken, of all peers */
	struct rvq_cell32 starving; /* sessions wait for that to become less */
	struct rvn_events events;
	pthread_mutex_t lock;
	/* under the lock */
	bool closing;
	uint64_t live; /* halves and sessions */
	uint64_t tickets;
	reeve_buf_t *greeting;      /* our handshake with its length in front */
	struct reeve_sink *starved; /* list of them */
	struct rvn_npeer *peers[RVN_NBUCKETS], *asking[RVN_NBUCKETS];
};

static inline void
rvn_nlock(struct reeve_notif *p)
{
	pthread_mutex_lock(&p->lock);
}
static inline void
rvn_nunlock(struct reeve_notif *p)
{
	pthread_mutex_unlock(&p->lock);
}

/* --- notif.c: the table --- */

/* Let go of the memory of the protocol. */
void rvn_notif_unref(struct reeve_notif *p);

/* Under the lock.  The record of a peer, or NULL. */
struct rvn_npeer *rvn_npeer_find(struct reeve_notif *p, const char *peer);
/* One more reference; under the lock. */
static inline void
rvn_npeer_hold(struct rvn_npeer *r)
{
	r->refs++;
}
/* Let go; not under the lock. */
void rvn_npeer_drop(struct rvn_npeer *r);
/* Count one more half or session.  False: the node closes.  Not under the lock. */
bool rvn_nlive(struct reeve_notif *p);
/* One less; the last thing that is done with p. */
void rvn_nover(struct reeve_notif *p);

/* --- notif_peer.c --- */

/* What comes with an event. */
struct rvn_narg {
	struct rvn_nhalf *half;       /* OPEN, ACCEPT, IN_AUTO: our new half; INBOUND: the peer's */
	struct reeve_sink *session;   /* OUT_OK, IN_SENT: a new one, in case it is wanted */
	struct rvn_nev *ev;           /* OPEN: of the outcome */
	uint64_t ticket;              /* ACCEPT, REJECT */
	const reeve_reason_t *reason; /* of what fails */
	int step;
	uint64_t deadline; /* CLOSE: us */
};
/* Feed an event; under the lock.  What it leads to is done by the peer's actor: the caller has to rvn_npeer_kick it without
 * the lock.  What was given in arg and has no place in the new state is NULLed out of arg when it was used. */
int rvn_npeer_step(struct rvn_npeer *r, enum rvn_ne_event ev, struct rvn_narg *arg);
void rvn_npeer_kick(struct rvn_npeer *r);
/* lock, step, unlock, kick; lets go of what was not used. */
int rvn_npeer_feed(struct rvn_npeer *r, enum rvn_ne_event ev, struct rvn_narg *arg);
extern const struct rva_actor_ops rvn_npeer_ops;
/* A reason of ours. */
reeve_reason_t rvn_reason(int rc, uint32_t by);
/* Why an open or a substream failed. */
uint32_t rvn_by(int rc);

/* --- notif_half.c; all in the turns of the peer's actor, but new --- */

/* A half of r with a reference to it.  s: the peer's substream (consumed), NULL: ours.  NULL: out of memory, or closing
 * (*rc says which). */
struct rvn_nhalf *rvn_nhalf_new(struct rvn_npeer *r, reeve_stream_t *s, unsigned name, int *rc);
/* It was never fed to the machine.  Not under the lock. */
void rvn_nhalf_discard(struct rvn_nhalf *h);
/* Tell the actor of the peer's substream: behind what is known to have become of the one before. */
void rvn_nhalf_came(struct rvn_nhalf *h);
void rvn_nhalf_start(struct rvn_nhalf *h);
void rvn_nhalf_end(struct rvn_nhalf *h);
void rvn_nhalf_reply(struct rvn_nhalf *h);
void rvn_nhalf_again(struct rvn_nhalf *h);
/* Stop reading; true: nothing is under way any more. */
bool rvn_nhalf_yield(struct rvn_nhalf *h);
void rvn_nhalf_on(struct rvn_nhalf *h, uint32_t bits);
/* Free it without its stream. */
void rvn_nhalf_free(struct rvn_nhalf *h);
/* The session that both halves are waiting for may begin now.  notif_peer.c */
void rvn_npeer_joined(struct rvn_npeer *r);

/* --- notif_event.c --- */

struct rvn_nev *rvn_nev_new(struct rv_arena *ar);
void rvn_nev_free(struct rvn_nev *ev); /* NULL is ignored */
/* Say it: to the callback, or to the queue.  ev and its reference to the peer are consumed. */
void rvn_nev_say(struct rvn_npeer *r, struct rvn_nev *ev);
/* One message of k to the queue (len 0: the event of an empty one).  True: rvn_events_ring has to follow. */
bool rvn_events_post(struct rvn_npeer *r, struct reeve_buf *item);
void rvn_events_ring(struct rvn_npeer *r);
int rvn_events_init(struct rvn_events *e);
void rvn_events_fini(struct reeve_notif *p);
void rvn_events_done(struct rvn_events *e);
/* The structure that the application sees. */
void rvn_nev_show(const struct rvn_nev *ev, reeve_notif_event_t *out);

#endif
