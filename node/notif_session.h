/* notif_session.h - an open stream: two substreams, a queue of messages to the peer, messages from it.
 *
 * What is sent: senders reserve bytes of `queued` and post to `sendq`; the session puts a length in front of each, small
 * ones together, and gives them to its substream as long as that has room.  `queued` falls when the transport has taken
 * bytes; its top bit closes it, and what was reserved before has to come through `sendq`: so what is accepted is sent or
 * counted as lost, whatever threads do.
 *
 * Owner of what is not said otherwise: the session's actor, which lives with the substream that it writes. */
#ifndef REEVE_NODE_NOTIF_SESSION_H
#define REEVE_NODE_NOTIF_SESSION_H

#include "actors/op.h"
#include "actors/substream.h"
#include "actors/timer.h"
#include "node/notif.h"

#define RVN_K_READS   4u   /* reads of the peer's substream under way */
#define RVN_K_RECORDS 256u /* runs of messages of one size, given to the substream and not taken */
#define RVN_K_CLOSED  (UINT64_C(1) << 63)
#define RVN_K_IDLE_US \
	1000000u /* without a byte of the peer who has left on one substream, until the other is given up */

/* Bits of the bell. */
#define RVN_K_START  1u
#define RVN_K_SEND   2u   /* sendq is not empty */
#define RVN_K_READ   4u   /* reads have completed */
#define RVN_K_WATCH  8u   /* the read of our own substream has completed */
#define RVN_K_CLOSE  16u  /* close_at was set */
#define RVN_K_RESUME 32u  /* the application goes on */
#define RVN_K_ROOM   64u  /* messages were taken */
#define RVN_K_LAST   128u /* no reference is left */
#define RVN_K_LOOK   256u /* something may have come to its end */
#define RVN_K_TIME   512u

enum rvn_kphase {
	RVN_KP_NEW, /* not begun */
	RVN_KP_RUN,
	RVN_KP_DRAIN,   /* closed by us: what was accepted is sent */
	RVN_KP_DELIVER, /* ended by the peer or the connection: what was received is delivered */
	RVN_KP_SETTLE, /* the substreams are closed: senders and operations under way come to their end */
	RVN_KP_OVER
};

/* What stands in the queue for a message without bytes, or for one of an asynchronous send.  head.slab is NULL. */
struct rvn_kmark {
	struct reeve_buf head;
	reeve_buf_t *data; /* or NULL: empty */
	reeve_op_t *op;    /* or NULL */
	uint32_t n;        /* bytes on the wire */
	bool reserved;
	bool taken;     /* owner: by the actor */
	bool cancelled; /* owner: the cancel message has come */
};

struct rvn_krec {
	uint32_t size, count;
};

struct reeve_sink {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct rvq_ref refs; /* the application's, and one of the session until it is over */
	struct rv_arena *arena;
	reeve_rt_t *rt;
	uint64_t max_size, limit; /* of a message; of queued */
	char name[REEVE_PEER_TEXT];
	/* until it is over */
	struct reeve_notif *p;
	struct rvn_npeer *peer; /* a reference */
	struct rvn_gauges *gauges;
	/* under the protocol's lock */
	struct reeve_sink *snext;
	bool starved;
	struct rvn_todo join, over;
	struct rvn_nev *opened, *closed; /* events; opened: unless the outcome was promised */
	uint32_t dir;
	struct rvn_nhalf *hin, *hout; /* until it begins */
	/* any thread */
	struct rvq_mailbox sendq __attribute__((aligned(64)));
	struct rvq_cell64 queued;   /* bytes accepted and not taken, RVN_K_CLOSED */
	struct rvq_cell32 rc;       /* RVA_RC_OPEN, or what sends answer */
	struct rvq_cell64 close_at; /* us + 1, 0: not asked */
	struct rvq_cell32 rd_done;  /* reads that have completed */
	struct rvq_cell64 held;     /* bytes received and not taken */
	struct rvq_cell32 hungry;   /* reading has stopped because of held */
	struct rvq_parker room;     /* senders */
	struct rvq_cell64 sent_at;  /* us: the last blocking send that found it empty was over */
	/* owner */
	enum rvn_kphase phase __attribute__((aligned(64)));
	reeve_stream_t *in, *out;
	struct rva_tap tap;
	bool tapped;
	bool out_shut; /* nothing more can be put */
	bool out_dead; /* and nothing more is taken */
	bool reasoned;
	reeve_reason_t reason;
	struct rva_timer timer;
	uint64_t deadline; /* of draining */
	uint64_t idle_at;  /* of delivering */
	uint64_t op_due;   /* of asynchronous sends that wait */
	/* sending */
	bool owning;                         /* sendq is ours to take from: it was rung for */
	struct reeve_buf *fifo, **fifo_tail; /* accepted, or waiting to be (marks) */
	uint64_t popped;                     /* bytes of fifo and pushed, accepted and not taken */
	uint64_t pushed;                     /* bytes with the substream */
	uint64_t told_queued;                /* in the gauge */
	unsigned rec_at, nrec;
	uint32_t rec_part; /* bytes taken of the oldest message */
	struct rvn_krec rec[RVN_K_RECORDS];
	uint64_t lost, lost_bytes;
	unsigned waiting; /* marks with operations in fifo */
	/* receiving */
	reeve_op_t rd[RVN_K_READS], watch;
	unsigned rd_head, rd_out; /* the oldest, how many are out */
	uint32_t rd_seen;         /* of rd_done */
	bool watching;
	int in_rc;    /* 1: goes on; else how the peer's direction ended */
	int watch_rc; /* the same of the direction of our substream that nobody uses */
	struct rv_chain got;
	reeve_buf_t *msg; /* being put together */
	uint32_t fill;
	reeve_buf_t *again; /* holding: what the callback refused, NULL: a message without bytes */
	bool holding, resumed;
	bool stuck;                /* the application holds its share */
	bool broken;               /* the peer's bytes are no messages */
	bool due;                  /* the queue of events has to be rung for */
	uint64_t came, came_bytes; /* not in the gauges yet */
};

/* notif_session.c.  Out of memory: NULL.  With a reference to the peer; counted (rvn_nlive); nothing runs yet. */
struct reeve_sink *rvn_session_new(struct rvn_npeer *r, reeve_stream_t *out, int *rc);
/* It was never begun.  Not under the lock. */
void rvn_session_discard(struct reeve_sink *k);
/* Any thread: begin (in and out were set); end, with what was accepted sent by deadline (us). */
void rvn_session_begin(struct reeve_sink *k);
void rvn_session_close(struct reeve_sink *k, uint64_t deadline);
void rvn_session_ring(struct reeve_sink *k, uint32_t bits);
/* Owner: it ends, by the peer or by a fault; the first reason stays. */
void rvn_session_fail(struct reeve_sink *k, const reeve_reason_t *why);

/* notif_sink.c, any thread: bytes of a message with its length (b NULL: without bytes); n bytes are not queued any more; what
 * sends answer once it has ended; a mark goes, with its buffer. */
uint32_t rvn_send_size(const reeve_buf_t *b);
void rvn_send_unreserve(struct reeve_sink *k, uint64_t n);
int rvn_send_ended(const struct reeve_sink *k);
void rvn_send_mark_free(struct reeve_sink *k, struct rvn_kmark *m);

/* notif_send.c; owner: take what senders posted; give it to the substream; drop and count all; a cancelled operation. */
void rvn_send_take(struct reeve_sink *k);
void rvn_send_push(struct reeve_sink *k, bool all);
void rvn_send_taken(struct reeve_sink *k, uint32_t n);
void rvn_send_refuse(struct reeve_sink *k);
void rvn_send_drop(struct reeve_sink *k);
void rvn_send_cancel(struct reeve_sink *k, reeve_op_t *op);
/* Answers the operations whose time has come; when the next one is due. */
uint64_t rvn_send_expire(struct reeve_sink *k, uint64_t now);

/* notif_recv.c; owner: start reads; take what they brought; hand messages on. */
void rvn_recv_begin(struct reeve_sink *k);
void rvn_recv_take(struct reeve_sink *k);
void rvn_recv_deliver(struct reeve_sink *k);
void rvn_recv_drop(struct reeve_sink *k);
/* The node goes: sessions that wait for room are forgotten. */
void rvn_recv_forget(struct reeve_notif *p);
/* Any thread: n bytes of k were taken by the application. */
void rvn_recv_freed(struct reeve_notif *p, struct reeve_sink *k, uint64_t n);

#endif
