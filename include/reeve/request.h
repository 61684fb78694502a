/* request.h - request-response: one substream for each request, a message there and a message back.  Byte-compatible with
 * litep2p's and rust-libp2p's request-response protocols (a varint length in front of each message).
 *
 * One absolute deadline for everything from submission to the response, and exactly one completion whatever happens. */
#ifndef REEVE_REQUEST_H
#define REEVE_REQUEST_H

#include <reeve/buf.h>
#include <reeve/node.h>

REEVE_BEGIN

typedef struct reeve_reqs reeve_reqs_t;       /* one request-response protocol of a node */
typedef struct reeve_inbound reeve_inbound_t; /* a request of a peer, to be answered once */
typedef struct reeve_request reeve_request_t; /* a request of ours */

typedef void (*reeve_inbound_fn)(reeve_inbound_t *in, void *arg);

typedef struct reeve_reqs_cfg {
	uint32_t size;            /* set by reeve_reqs_cfg_init */
	uint32_t flags;           /* REEVE_REQS_* */
	const char *const *names; /* the protocol's name, then fallbacks in order of preference */
	uint32_t nnames;
	uint32_t
	    timeout_ms; /* of a request that says none; of an inbound one, for reading and answering it, and
			      * again for sending the answer; 5000; REEVE_OFF */
	uint64_t max_request;  /* bytes; 1 MiB */
	uint64_t max_response; /* bytes; 16 MiB */
	uint32_t
	    max_inbound; /* requests of all peers being read or answered; 1000; more are reset at once */
	uint32_t max_inbound_peer; /* of one peer; max_inbound */
	uint64_t
	    max_held; /* bytes of inbound requests not answered; 64 MiB; more wait unread (one alone may be larger) */
	reeve_inbound_fn fn; /* on a worker, owns in, must not block; NULL: reeve_inbound_next */
	void *arg;
} reeve_reqs_cfg_t;

#define REEVE_REQS_LAZY    0x1u /* negotiate optimistically when only one name is proposed (V1Lazy) */
#define REEVE_REQS_NO_SHUT 0x2u /* do not half-close behind the request */

/* Fill a configuration with its size and zeroes.  Use the macro.
 * T: any B: no W: ok */
REEVE_API void reeve_reqs_cfg_init_sized(reeve_reqs_cfg_t *cfg, size_t size);
#define reeve_reqs_cfg_init(c) reeve_reqs_cfg_init_sized((c), sizeof(*(c)))

/* Install the protocol.  REEVE_EINVAL (also for limits above 1 GiB), REEVE_EBUSY (a name is taken), REEVE_ENOMEM,
 * REEVE_ECLOSED.  The handle lives as long as the node.
 * T: any B: no W: ok */
REEVE_API REEVE_CHECKED int reeve_reqs_install(
    reeve_reqs_t **r, reeve_node_t *n, const reeve_reqs_cfg_t *cfg);

/* How far a request came. */
enum reeve_step {
	REEVE_STEP_NONE = 0,
	REEVE_STEP_DIAL = 1,      /* connecting, with security and muxer */
	REEVE_STEP_OPEN = 2,      /* opening a substream */
	REEVE_STEP_NEGOTIATE = 3, /* agreeing on the protocol */
	REEVE_STEP_WRITE = 4,     /* sending the request (notifications: our handshake) */
	REEVE_STEP_READ = 5, /* waiting for the response (notifications: the peer's handshake) */
	REEVE_STEP_VALIDATE =
	    6 /* notifications: waiting for the application, or for the peer's own substream */
};

/* What is sent instead of the body to a peer that agreed on another name. */
typedef struct reeve_payload {
	reeve_buf_t *body; /* NULL: empty */
	uint32_t name;     /* the index of that name */
	uint32_t reserved;
} reeve_payload_t;

/* The caller's storage, from reeve_request_async until fn is called.  Zero it, then set what is needed.
 *
 * rc is 0 or why there is no response; step says how far it came:
 * REEVE_ENOTCONN   there is no connection, and REEVE_REQUEST_NO_DIAL
 * REEVE_EDIAL      no address of the peer answers; REEVE_EIDENTITY somebody else does
 * REEVE_ENOPROTO   the peer speaks none of the names, or ended its direction before it said which
 * REEVE_EREFUSED   the peer ended the substream before the first byte of a response
 * REEVE_ETOOBIG    step REEVE_STEP_NONE: our request, nothing was sent; REEVE_STEP_READ: the response
 * REEVE_ETIMEDOUT  the deadline has passed
 * REEVE_ELOST      the connection ended
 * REEVE_ERESET     the peer reset the substream inside the response; REEVE_ETRUNC it ended it there
 * REEVE_EPROTO     the peer broke the protocol of the step
 * REEVE_ECANCELED  cancelled by us, or the node was closed; REEVE_ECLOSED it was closed before
 * REEVE_EINVAL, REEVE_ENOMEM, REEVE_ELIMIT (max_conns), REEVE_EFORKED */
struct reeve_request {
	void (*fn)(reeve_request_t *q); /* on a worker, must not block; NULL: reeve_request_wait */
	void *arg;
	int64_t timeout_ms; /* from submission to completion; 0: the protocol's; -1: none */
	uint32_t flags;     /* REEVE_REQUEST_* */
	uint32_t npayloads;
	const reeve_payload_t
	    *payloads; /* stays until completion; one reference of each body is consumed */
	/* outcome */
	int rc;
	int step;      /* enum reeve_step: the one it was in */
	unsigned name; /* index of the agreed name, once step is past REEVE_STEP_NEGOTIATE */
	reeve_buf_t *
	    response; /* one reference for the caller when rc == 0 and it is not empty: contiguous */
	void *priv[88]; /* the library's */
};

#define REEVE_REQUEST_NO_DIAL 0x1u /* REEVE_ENOTCONN instead of dialing */

/* Start a request.  body NULL: empty.  It completes exactly once, also when starting it was a mistake; never inside this
 * call (unless r is NULL).
 * T: any B: no W: ok borrows r consumes body */
REEVE_API void reeve_request_async(
    reeve_reqs_t *r, const char *peer, reeve_buf_t *body, reeve_request_t *q);

/* Ask for an early end, at any stage.  The completion still comes, exactly once.  q must be started and not completed.
 * T: any B: no W: ok */
REEVE_API void reeve_request_cancel(reeve_request_t *q);

/* Wait for a request whose fn is NULL; returns its rc.
 * T: any B: yes W: no */
REEVE_API int reeve_request_wait(reeve_request_t *q);

/* Request and wait.  *response: one contiguous buffer (NULL: an empty response).  timeout_ms as in reeve_request_t.
 * T: any B: yes W: no borrows r consumes body returns ref */
REEVE_API int reeve_request(reeve_reqs_t *r, const char *peer, reeve_buf_t *body,
    reeve_buf_t **response, int64_t timeout_ms);

/* The next inbound request (where fn is NULL).  REEVE_ETIMEDOUT; REEVE_ECLOSED once the node is closed.
 * T: any B: yes W: no borrows r returns ref */
REEVE_API REEVE_CHECKED int reeve_inbound_next(
    reeve_reqs_t *r, reeve_inbound_t **in, int64_t timeout_ms);

/* Who asks; the index of the agreed name; the request, borrowed and contiguous (NULL: empty).
 * T: any B: no W: ok borrows in */
REEVE_API const char *reeve_inbound_peer(const reeve_inbound_t *in);
/* T: any B: no W: ok borrows in */
REEVE_API unsigned reeve_inbound_name(const reeve_inbound_t *in);
/* T: any B: no W: ok borrows in */
REEVE_API reeve_buf_t *reeve_inbound_body(const reeve_inbound_t *in);

/* Answer (body NULL: empty) and let go of in.  done, or NULL: called once, on a worker and never inside this call, when the
 * transport has taken the response (0), or with why not: REEVE_ERESET or REEVE_EREFUSED (the requester gave up),
 * REEVE_ELOST (the connection), REEVE_ETIMEDOUT, REEVE_ETOOBIG (the requester sees a refusal), REEVE_ECLOSED (the node),
 * REEVE_ENOMEM.  The substream ends behind the response.
 * T: any B: no W: ok consumes in consumes body */
REEVE_API void reeve_respond(
    reeve_inbound_t *in, reeve_buf_t *body, void (*done)(void *arg, int rc), void *arg);

/* Refuse: the substream is reset, the requester sees it end without a response.  NULL is ignored.
 * T: any B: no W: ok consumes in */
REEVE_API void reeve_refuse(reeve_inbound_t *in);

REEVE_END

#endif
