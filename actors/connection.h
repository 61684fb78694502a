/* connection.h - the connection actor: one byte pipe, its engine, its streams' wire side.
 *
 * It never waits for anybody and never calls user code.  It talks to its substreams and its controller through rings
 * (one pair each, entries by value, see messages.h), which its worker drains by calling the addressed handler; other
 * threads reach it by its bell.  A full ring at home makes the connection end its turn with the bytes unparsed. */
#ifndef REEVE_ACTORS_CONNECTION_H
#define REEVE_ACTORS_CONNECTION_H

#include <reeve/conn.h>
#include <reeve/stats.h>

#include "actors/controller.h"
#include "actors/messages.h"
#include "actors/poller.h"
#include "actors/runtime.h"
#include "actors/timer.h"
#include "lib/engine/engine.h"
#include "lib/transport/transport.h"
#include "lib/upgrade/filter.h"

enum rva_conn_state {
	RVA_CONN_OPEN,
	RVA_CONN_CLOSING, /* graceful: waiting for every stream to end both ways */
	RVA_CONN_LEAVING, /* GO_AWAY(0) queued: flush it */
	RVA_CONN_LINGERING, /* our direction is shut: wait for the peer's end, so that closing loses nothing in flight */
	RVA_CONN_ENDED /* nothing is read or written any more; GONE events still leave */
};

/* Bits of the bell. */
#define RVA_CONN_START    1u
#define RVA_CONN_ABORT    2u
#define RVA_CONN_GOAWAY   4u
#define RVA_CONN_READABLE 8u
#define RVA_CONN_WRITABLE 16u
#define RVA_CONN_FREE     32u
#define RVA_CONN_CLOSE    64u

#define RVA_COPY_BELOW \
	2048u /* a received body below this is copied so that it does not pin a slab */
#define RVA_COPY_PINNED \
	16384u /* below this when much is pinned: a larger one pins four times itself at most, and is never copied */

#define RVA_SEAL_BYTES \
	122880u /* what is sealed at once: it is written while it is still in the cache */

#define RVA_GATHER_FIRST 65536u /* the first bytes on a transport whose speed is not known yet */

struct reeve_conn {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct rva_source source; /* the poller's */
	/* immutable */
	reeve_rt_t *rt;
	struct rv_arena *arena;
	struct rva_worker *w;
	reeve_cfg_t cfg;
	int role;
	bool foreign; /* its transport is the application's */
	/* any thread */
	struct rvq_ref
	    refs; /* runtime until ended, handles (one for all), stream records, operations */
	struct rvq_gauge copied_out; /* payload bytes that threads' writes copied */
	struct rvq_cell32 ended;     /* reason below is final */
	struct rvq_cellptr stats;    /* counters of the engine at work */
	struct rvq_cell32 proto;     /* enum reeve_proto; 0: not chosen yet */
	struct rvq_cell32 abort_rc;  /* 0 or -rc, the first caller's */
	struct rvq_cell64 close_at;  /* deadline of a graceful close by the runtime, us */
	struct rvq_cell64 goaway;    /* 0 or code + 1, the first caller's */
	reeve_reason_t reason;       /* written once before ended is put */
	/* owner */
	enum rva_conn_state state;
	bool readable, writable, hup, in_dirty, in_read, paused;
	bool freeing;                  /* nobody has a reference any more */
	bool peer_leaves, hard_goaway; /* the peer sent GO_AWAY; with a code */
	struct rv_engine
	    *engine; /* what reads and writes now: first the handshake, if there is one */
	struct rv_engine *handshake; /* kept to the end; NULL: none */
	reeve_cfg_t raw; /* as it was given: defaults depend on the protocol that is chosen */
	struct rv_transport *transport;
	struct rv_chain unread; /* bytes received before the connection was started */
	struct rv_budget *budget;
	struct rv_slab *slab; /* being filled; slab->used: bytes received */
	struct rv_slab *held; /* blocked engine: bytes that are not parsed yet, or NULL */
	uint32_t held_off, held_len;
	bool held_raw;            /* they came before there was a filter */
	struct rv_filter *filter; /* NULL: bytes go through as they are */
	struct rv_gather *gather;
	size_t gather_limit; /* bytes; see connection_tx.c */
	uint64_t gather_at;  /* when it was filled */
	bool gather_stalled; /* the transport was full since then */
	bool gather_raw;     /* gathered before there was a filter: leaves as it is */
	struct rva_timer timer;
	int write_error; /* nothing more can be sent */
	bool starved;    /* no memory to send with: tried again a little later */
	uint64_t close_deadline, stall_deadline, linger_deadline;
	uint64_t quiet_at; /* us: the last stream that there was has ended; 0: never */
	struct reeve_conn *dirty_next, *read_next;
	struct reeve_stream *fresh; /* got bytes in this delivery, not pumped yet */
	struct rvq_counter reads, writes, copied_in, stalls, messages;
	struct reeve_conn *next, **pprev; /* register, under its lock */
	/* rings: producer and consumer are this worker (home placement) */
	struct rvq_ring down, up, to_ctl, from_ctl;
	struct rv_event run; /* bytes on their way to down that the next may join; st NULL: none */
	struct rv_event down_slots[RVA_DOWN];
	struct rva_up up_slots[RVA_UP];
	struct rva_ctlmsg to_ctl_slots[RVA_CTL], from_ctl_slots[RVA_CTL];
	struct reeve_ctl ctl;
};

/* connection.c, for connection_begin.c: what a new connection is wired to. */
struct rva_conn_hooks {
	void (*emit)(void *ctx, const struct rv_event *ev);
	unsigned (*room)(void *ctx);
	void (*timer)(struct rva_timer *t, uint64_t now);
	void (*ready)(struct rva_source *s, int events);
};
extern const struct rva_conn_hooks rva_conn_hooks;
extern const struct rva_actor_ops rva_conn_ops;

/* What an upgrade hands over: see upgrader.h. */
struct rva_conn_args {
	reeve_rt_t *rt;
	struct rva_worker *home; /* NULL: wherever there is room */
	struct rv_transport *transport;
	int role;
	const reeve_cfg_t *cfg;
	struct rv_chain *unread;  /* bytes read ahead, or NULL; consumed on success */
	struct rv_filter *filter; /* what they and all others go through, or NULL */
};
/* One reference (the owner's handle).  transport is consumed on success only. */
int rva_conn_create(struct reeve_conn **c, const struct rva_conn_args *args);
void rva_conn_ref(struct reeve_conn *c);
void rva_conn_unref(struct reeve_conn *c); /* any thread */

/* All below: owner. */
void rva_conn_dirty(struct reeve_conn *c);     /* flush me before the next wait */
void rva_conn_want_read(struct reeve_conn *c); /* read me in the next pass */
/* An ended one has left a list of the worker's: it is freed if it waited for that. */
void rva_conn_off_list(struct reeve_conn *c);
void rva_conn_read(struct reeve_conn *c);  /* connection_rx.c: one budgeted read turn */
void rva_conn_flush(struct reeve_conn *c); /* connection_tx.c: rings in, frames out */
void rva_conn_last_words(
    struct reeve_conn *c);                  /* after a violation: one attempt to send the GO_AWAY */
void rva_conn_absorb(struct reeve_conn *c); /* drain the rings that lead to the connection */
void rva_conn_deliver(struct reeve_conn *c); /* drain the rings that lead away from it */
void rva_conn_hand_on(struct reeve_conn *c); /* the same, but readers are not told of bytes yet */
void rva_conn_up(struct reeve_conn *c, const struct rva_up *m);       /* a substream's message */
void rva_conn_tell(struct reeve_conn *c, const struct rva_ctlmsg *m); /* the controller's message */
void rva_conn_end(struct reeve_conn *c, int rc, uint32_t by,
    const char *id); /* the one exit path; first reason wins */
/* upgrader.c: the handshake is over: the chosen protocol's engine takes its place.  False: the connection has ended. */
bool rva_conn_upgraded(struct reeve_conn *c);
static inline bool
rva_conn_handshaking(const struct reeve_conn *c)
{
	return c->handshake != NULL && c->engine == c->handshake;
}
/* connection_rx.c: the handshake has brought a filter: from here on it is used. */
void rva_conn_secure(struct reeve_conn *c);
/* Everything that was gathered has been taken by the transport. */
static inline bool
rva_conn_all_sent(const struct reeve_conn *c)
{
	return c->gather == NULL && (c->filter == NULL || c->filter->out_left == 0);
}
/* connection.c: tell the controller. */
void rva_conn_ready(struct reeve_conn *c);
/* The engine of the configured protocol. */
int rva_conn_make_engine(struct reeve_conn *c);
void rva_conn_begin_close(struct reeve_conn *c, uint64_t deadline); /* graceful */
void rva_conn_rearm(struct reeve_conn *c); /* set the timer to the next deadline */
void rva_conn_close(
    struct reeve_conn *c, int64_t timeout_ms); /* any thread: graceful, or abort when 0 */
void rva_conn_stats(struct reeve_conn *c, reeve_stats_t *out); /* any thread */
void rva_stats_add(reeve_stats_t *sum, const reeve_stats_t *one);
/* Memory that received bytes may pin: copy them all while it is above twice what is unread and 512 KiB. */
bool rva_conn_pinned_hard(const struct reeve_conn *c);

#endif
