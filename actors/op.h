/* op.h - what the library keeps in an operation that was started, and how operations end.
 *
 * An operation belongs to one actor (target) from its start message to its completion.  One word decides between
 * completion and cancellation: the owner claims the operation before it gives a result away, the canceller claims it
 * before it posts; whoever comes second stays away.  So nothing is ever given to somebody who has left. */
#ifndef REEVE_ACTORS_OP_H
#define REEVE_ACTORS_OP_H

#include <reeve/actor.h>
#include <reeve/op.h>

#include "actors/actor.h"
#include "queues/cell.h"
#include "queues/latch.h"
#include "queues/ref.h"

enum rva_msg_kind {
	RVA_MSG_USER = 0, /* reeve_msg_t of a user's actor: its word is zeroed by the post */
	RVA_MSG_DONE,     /* a completed operation on its way to a user's actor */
	RVA_MSG_CANCEL,   /* op_of_cancel */
	RVA_MSG_READ,
	RVA_MSG_WRITE,
	RVA_MSG_OPEN,
	RVA_MSG_ACCEPT,
	RVA_MSG_PING,
	RVA_MSG_READY,  /* tell when the handshake is over */
	RVA_MSG_CLOSED, /* tell when the connection has ended */
	RVA_MSG_CLOSE,  /* close gracefully, then tell */
	RVA_MSG_LISTEN_ACCEPT,
	RVA_MSG_DIAL,
	RVA_MSG_NEGOTIATE,
	RVA_MSG_REFUSED,
	RVA_MSG_WRITE_SENT, /* a write that is answered when the transport has taken it */
	RVA_MSG_BOUNCED     /* decided, on its way to the worker's clerk */
};

enum rva_op_state { RVA_OP_PENDING = 1, RVA_OP_CLAIMED = 2, RVA_OP_CANCELLING = 3 };

/* The private words of reeve_op_t. */
struct rva_op {
	struct rva_msg
	    msg; /* start, later completion to an actor: the same words as a reeve_msg_t */
	struct rva_msg cancel;    /* RVA_MSG_CANCEL */
	reeve_op_t *next;         /* owner: list of pending operations */
	struct rva_actor *target; /* immutable while started */
	void *ref;                /* what the operation keeps alive, let go at completion */
	void (*unref)(void *ref);
	uint64_t deadline;       /* us, UINT64_MAX none */
	uint64_t pos;            /* write: bytes that threads had written before it */
	struct rvq_cell32 state; /* enum rva_op_state */
	struct rvq_latch done;   /* fn and actor NULL: reeve_op_wait */
	reeve_buf_t *buf;        /* write: until accepted */
};
_Static_assert(
    sizeof(struct rva_op) <= sizeof(((reeve_op_t *)0)->priv), "struct rva_op fits reeve_op_t");

static inline struct rva_op *
rva_op(reeve_op_t *op)
{
	return (struct rva_op *)(void *)op->priv;
}
static inline reeve_op_t *
rva_op_of_msg(struct rvq_node *n)
{
	return rva_container(n, reeve_op_t, priv);
}
static inline reeve_op_t *
rva_op_of_cancel(struct rvq_node *n)
{
	return rva_container((char *)n - offsetof(struct rva_op, cancel), reeve_op_t, priv);
}

/* Start: fill the private words and post to target.  ref/unref: see struct rva_op.  Any thread. */
void rva_op_start(
    reeve_op_t *op, struct rva_actor *target, uintptr_t kind, void *ref, void (*unref)(void *));
/* Fill without posting (a target that must see something else first). */
void rva_op_prepare(
    reeve_op_t *op, struct rva_actor *target, uintptr_t kind, void *ref, void (*unref)(void *));
/* Owner: may a result be given to op?  False: it is being cancelled; leave it, its cancel message is on the way. */
bool rva_op_claim(reeve_op_t *op);
/* Owner, after a claim or for a cancelled one: complete.  op may be gone afterwards. */
void rva_op_finish(reeve_op_t *op, reeve_ssize res);
/* Owner: claim and finish in one; false and nothing done when it is being cancelled. */
bool rva_op_answer(reeve_op_t *op, reeve_ssize res);
/* An operation that could not be started: completes with rc on a worker of rt; rt NULL (nothing is known, all handles
 * were NULL) or a forked child: at once, on the calling thread. */
void rva_op_refuse(reeve_rt_t *rt, reeve_op_t *op, int rc);
/* Its fn is the library's and may be called wherever the operation is decided.  Not for those that result in a connection. */
void rva_op_ours(reeve_op_t *op);
/* The actor of a worker that completes operations which must not call back where they were decided: refused ones, and
 * those that a thread of the application decided in the worker's stead. */
void rva_op_clerk_init(struct rva_actor *clerk, struct rva_worker *w);
/* Any thread: claim for cancellation and tell the owner.  False: too late, the completion comes. */
bool rva_op_cancel(reeve_op_t *op);

/* A FIFO of pending operations.  Owner. */
struct rva_oplist {
	reeve_op_t *head, **tail;
};
void rva_oplist_init(struct rva_oplist *l);
void rva_oplist_push(struct rva_oplist *l, reeve_op_t *op);
reeve_op_t *rva_oplist_pop(struct rva_oplist *l);
bool rva_oplist_remove(struct rva_oplist *l, reeve_op_t *op);
/* Answer and take out every operation whose deadline has come; returns the earliest deadline left. */
uint64_t rva_oplist_expire(struct rva_oplist *l, uint64_t now);
/* Answer every operation with rc (those being cancelled stay out of the list and end by their cancel message). */
void rva_oplist_fail(struct rva_oplist *l, reeve_ssize rc);

/* The blocking twin of any operation: a pooled record that the caller sleeps on; both sides hold it, so a caller whose
 * deadline has passed leaves without waiting for the worker. */
struct rva_ask {
	reeve_op_t op;
	struct rvq_ref refs;
	struct rv_arena *arena;
	struct rva_worker *w; /* who answers, if its turns are lent */
	uint64_t deadline;    /* us, the caller's */
	struct rvq_latch done;
};
/* timeout_ms 0 is answered by the owner ("not ready now"), others are kept by the caller.  NULL: out of memory. */
struct rva_ask *rva_ask_new(struct rv_arena *ar, int64_t timeout_ms);
/* Instead of starting it. */
void rva_ask_drop(struct rva_ask *k);
/* A worker that answers nothing for so long is stuck in a transport or callback. */
#define RVA_HELD_UP_MS 100
/* Sleep until answered or the timeout; returns op.res or REEVE_ETIMEDOUT; op results go to *out.  Lets go of the record. */
reeve_ssize rva_ask_wait(struct rva_ask *k, reeve_op_t *out);

#endif
