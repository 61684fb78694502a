/* req.h - one request-response protocol of a node: what is kept of it, of our requests and of those of peers.
 *
 * A request of ours lives in the caller's storage.  Until it has a substream the core has it; then the worker of the
 * connection does everything with it, by completions of the substream's operations and one timer.  Other threads only
 * cancel, under the lock of the shard that lists it: there is always either an open to cancel or a substream to reset.
 *
 * A request of a peer is an actor on the worker of its connection.  Whoever answers it rings its bell; on that worker
 * itself an answer goes on at once.  Limits, the queue of reeve_inbound_next and who waits for room are under the
 * protocol's lock, which is held for a few stores at a time and never over a call into the application. */
#ifndef REEVE_NODE_REQ_H
#define REEVE_NODE_REQ_H

#include <pthread.h>
#include <reeve/request.h>

#include "actors/substream.h"
#include "node/core.h"
#include "node/req_frame.h"
#include "queues/latch.h"

#define RVN_REQ_SHARDS 8
#define RVN_REQ_CHAINS 256 /* inbound requests by peer; a power of two */

enum rvn_req_phase {
	RVN_REQ_OPENING = 1, /* open is with the core */
	RVN_REQ_TALKING,     /* there is a substream */
	RVN_REQ_DONE
};

/* A request of ours, in reeve_request_t's private words. */
struct rvn_req {
	reeve_reqs_t *r;
	/* under the shard's lock */
	struct rvn_req *next, **pprev;
	enum rvn_req_phase phase;
	/* any thread */
	struct rvq_cell32 cancelled;
	struct rvq_latch done; /* fn NULL: reeve_request_wait */
	/* the worker (before that whoever starts it) */
	reeve_stream_t *stream;
	reeve_buf_t *body;
	reeve_buf_t *rest; /* of what is to be written: the second buffer */
	struct rvn_frame in;
	struct rva_timer timer;
	uint64_t deadline;
	int rc;
	unsigned pending; /* operations of the substream */
	bool over;        /* rc is final */
	union {
		struct rvn_open open;
		struct {
			reeve_op_t rd, wr;
		} io;
	} u;
};
_Static_assert(
    sizeof(struct rvn_req) <= sizeof(((reeve_request_t *)0)->priv), "struct rvn_req fits");

struct rvn_req_shard {
	pthread_mutex_t lock;
	struct rvn_req *first;
};

enum rvn_in_state {
	RVN_IN_READING = 1,
	RVN_IN_ASKED,     /* the application has it, or will take it from the queue */
	RVN_IN_ANSWERING, /* the response is being sent */
	RVN_IN_ENDING     /* it has left: until the peer ends its direction */
};

/* Bits of the bell. */
#define RVN_IN_ANSWER 1u  /* reeve_respond */
#define RVN_IN_REFUSE 2u  /* reeve_refuse */
#define RVN_IN_RESUME 4u  /* there is room for it */
#define RVN_IN_CLOSE  8u  /* the node closes */
#define RVN_IN_LOOK   16u /* it may be over */
#define RVN_IN_FREE   32u /* nobody has it any more */

/* A request of a peer. */
struct reeve_inbound {
	struct rva_actor actor;
	struct rvq_bell bell;
	/* immutable */
	reeve_rt_t *rt;
	struct rv_arena *arena;
	unsigned name;
	char peer[REEVE_PEER_TEXT];
	/* the worker, then the application until it answers */
	reeve_buf_t *body;
	/* the application, before the bell */
	reeve_buf_t *answer;
	void (*done)(void *arg, int rc);
	void *done_arg;
	/* the worker */
	reeve_reqs_t *r; /* NULL: no longer in the protocol's books */
	reeve_stream_t *stream;
	reeve_buf_t *rest; /* received, not looked at; or to be written behind the first buffer */
	struct rvn_frame frame;
	struct rva_timer timer;
	enum rvn_in_state state;
	int rc;
	unsigned pending;
	bool over;
	bool answered; /* the answer came; done is owed until it was called */
	bool handed;   /* the application has it (or the queue: then queued too) */
	reeve_op_t rd, wr;
	/* under the protocol's lock */
	struct reeve_inbound *next, **pprev;         /* chain of its peer */
	struct reeve_inbound *wait_next, *wait_prev; /* queue or gate */
	bool queued;                                 /* waits for reeve_inbound_next */
	bool parked;                                 /* waits for room */
	bool counted;                                /* one of the active */
	uint64_t held;
};

struct rvn_in_list {
	struct reeve_inbound *head, *tail;
};

struct reeve_reqs {
	struct rvn_proto proto; /* first */
	/* immutable */
	reeve_rt_t *rt;
	struct rv_arena *arena;
	struct rvn_gauges *gauges;
	reeve_reqs_cfg_t cfg; /* resolved; names are proto's */
	struct rvn_req_shard shard[RVN_REQ_SHARDS];
	pthread_mutex_t lock;
	pthread_cond_t ready; /* CLOCK_MONOTONIC */
	/* under lock */
	bool closed;
	uint32_t active;
	uint64_t held;
	struct rvn_in_list queue; /* complete, for reeve_inbound_next */
	struct rvn_in_list gate;  /* their lengths are known, and there is no room */
	struct reeve_inbound *chain[RVN_REQ_CHAINS];
};

static inline struct rvn_req *
rvn_req(reeve_request_t *q)
{
	return (struct rvn_req *)(void *)q->priv;
}
static inline reeve_request_t *
rvn_request_of(struct rvn_req *x)
{
	return rva_container((void **)(void *)x, reeve_request_t, priv);
}

/* When a protocol's own timeout ends, counted from now (us). */
uint64_t rvn_reqs_until(const reeve_reqs_t *r, uint64_t now);

/* req_out.c: cancel every request of ours. */
void rvn_req_cancel_all(reeve_reqs_t *r);

/* req_in.c: a peer's substream. */
void rvn_in_arrive(struct rvn_proto *p, const char *peer, reeve_stream_t *s, unsigned name);

/* req_books.c: what is counted and bounded; any thread.  arrive: into the books, or false: a limit is reached. */
bool rvn_in_enter(reeve_reqs_t *r, struct reeve_inbound *in);
/* Out of the books; then nothing rings the bell but who has the handle. */
void rvn_in_leave(reeve_reqs_t *r, struct reeve_inbound *in);
/* Room for a body of so many bytes; false: the bell will ring (RVN_IN_RESUME). */
bool rvn_in_admit(reeve_reqs_t *r, struct reeve_inbound *in, uint64_t len);
/* Its body is gone, and it no longer counts as one being answered (active). */
void rvn_in_give(reeve_reqs_t *r, struct reeve_inbound *in);
void rvn_in_uncount(reeve_reqs_t *r, struct reeve_inbound *in);
/* For reeve_inbound_next; back, or false: somebody has taken it. */
void rvn_in_queue(reeve_reqs_t *r, struct reeve_inbound *in);
bool rvn_in_unqueue(reeve_reqs_t *r, struct reeve_inbound *in);
/* The node closes: ring them all. */
void rvn_in_close_all(reeve_reqs_t *r);

#endif
