/* notif.h - notifications: a stream of messages in each direction with a peer, opened by a handshake that either side can
 * refuse.  Byte-compatible with litep2p's notification protocol: two substreams, each used in one direction, a varint
 * length in front of each message.
 *
 * Order is kept over both kinds of send.  What was accepted and could not be delivered is counted in the closing event:
 * nothing vanishes.  A slow consumer holds up this protocol with this peer and nothing else. */
#ifndef REEVE_NOTIF_H
#define REEVE_NOTIF_H

#include <reeve/buf.h>
#include <reeve/node.h>

REEVE_BEGIN

typedef struct reeve_notif reeve_notif_t; /* one notification protocol of a node */
typedef struct reeve_sink reeve_sink_t;   /* the sending end of one open stream, shared */

enum reeve_notif_type {
	REEVE_NOTIF_VALIDATE =
	    1, /* a peer wants a stream: answer with reeve_notif_answer(ticket) */
	REEVE_NOTIF_OPENED = 2,
	REEVE_NOTIF_CLOSED = 3, /* always behind OPENED and behind everything received */
	REEVE_NOTIF_FAILED = 4, /* an open that we asked for, or agreed to by an answer */
	REEVE_NOTIF_RECEIVED = 5
};

typedef struct reeve_notif_event {
	uint32_t size;
	uint32_t type;    /* enum reeve_notif_type */
	const char *peer; /* valid until the event is released */
	uint32_t name;    /* index of the agreed name of the substream of the peer */
	uint32_t
	    dir; /* REEVE_DIALER: we asked for it (also when both did), REEVE_LISTENER: the peer */
	reeve_buf_t *
	    data; /* VALIDATE, OPENED: the peer's handshake; RECEIVED: the message; contiguous; NULL: empty.  Borrowed: take a reference to keep it */
	reeve_sink_t *sink;    /* OPENED: to send with; borrowed: take a reference to keep it */
	uint64_t ticket;       /* VALIDATE */
	reeve_reason_t reason; /* CLOSED, FAILED: rc as of a request (request.h), by whom */
	int32_t step;          /* FAILED: enum reeve_step */
	uint32_t reserved;
	uint64_t lost; /* CLOSED: accepted messages that did not leave */
	uint64_t lost_bytes;
	void *priv[4];
} reeve_notif_event_t;

/* On a worker, one call at a time for one peer, in order; must not block.  The event is released when it returns.  Return
 * 0; REEVE_EAGAIN from RECEIVED: not now, hold this peer's stream until reeve_notif_resume (the event comes again). */
typedef int (*reeve_notif_fn)(reeve_notif_t *p, const reeve_notif_event_t *ev, void *arg);

typedef struct reeve_notif_cfg {
	uint32_t size;            /* set by reeve_notif_cfg_init */
	uint32_t flags;           /* REEVE_NOTIF_* */
	const char *const *names; /* the protocol's name, then fallbacks in order of preference */
	uint32_t nnames;
	uint32_t handshake_ms; /* our handshake out and the peer's in, for each substream; 10 000 */
	const void *handshake; /* at first: reeve_notif_set_handshake changes it */
	uint64_t handshake_len;
	uint64_t max_size; /* bytes of a message and of a handshake; 1 MiB; at most 1 GiB */
	uint64_t
	    send_queue; /* bytes accepted for one peer and not sent; 1 MiB; one message may always wait */
	uint64_t
	    recv_queue; /* bytes received from one peer and not taken; 1 MiB, or one message; then its stream is not read */
	uint64_t recv_total; /* the same of all peers of this protocol; 64 MiB */
	reeve_notif_fn fn;   /* NULL: reeve_notif_next */
	void *arg;
} reeve_notif_cfg_t;

#define REEVE_NOTIF_AUTO_ACCEPT \
	0x1u /* the peer's substream of a stream that we asked for needs no validation */
#define REEVE_NOTIF_NO_DIAL \
	0x2u /* an open to a peer that is not connected fails with REEVE_ENOTCONN */
#define REEVE_NOTIF_ACCEPT_ALL 0x4u /* nothing is validated */

/* Fill a configuration with its size and zeroes.  Use the macro.
 * T: any B: no W: ok */
REEVE_API void reeve_notif_cfg_init_sized(reeve_notif_cfg_t *cfg, size_t size);
#define reeve_notif_cfg_init(c) reeve_notif_cfg_init_sized((c), sizeof(*(c)))

/* Install the protocol.  REEVE_EINVAL, REEVE_EBUSY (a name is taken), REEVE_ENOMEM, REEVE_ECLOSED.  The handle lives as
 * long as the node.
 * T: any B: no W: ok */
REEVE_API REEVE_CHECKED int reeve_notif_install(
    reeve_notif_t **p, reeve_node_t *n, const reeve_notif_cfg_t *cfg);

/* Ask for a stream with a peer: OPENED or FAILED follows, exactly once (FAILED only if this call answered 0).  REEVE_EBUSY:
 * there is one, or it is being opened or validated.
 * T: any B: no W: ok borrows p */
REEVE_API int reeve_notif_open(reeve_notif_t *p, const char *peer);

/* End a stream: sends fail from now on (REEVE_ECLOSED), what was accepted is sent within timeout_ms (-1: the write timeout of the connection; 0: it is dropped and
 * counted), CLOSED follows.  An open that is under way ends with FAILED (REEVE_ECANCELED).  REEVE_ENOTCONN: there is none.
 * T: any B: no W: ok borrows p */
REEVE_API int reeve_notif_close(reeve_notif_t *p, const char *peer, int64_t timeout_ms);

/* Answer a VALIDATE event.  accept and 0: OPENED or FAILED follows, exactly once.  REEVE_ESTALE: the peer has gone meanwhile,
 * or it was answered.  REEVE_ENOMEM: it can be answered again.
 * T: any B: no W: ok borrows p */
REEVE_API int reeve_notif_answer(reeve_notif_t *p, uint64_t ticket, int accept);

/* The handshake of streams whose handshake is sent from now on.  REEVE_ETOOBIG.
 * T: any B: no W: ok borrows p */
REEVE_API int reeve_notif_set_handshake(reeve_notif_t *p, const void *bytes, size_t n);

/* The sink of the open stream with a peer, or NULL.
 * T: any B: no W: ok borrows p returns ref */
REEVE_API reeve_sink_t *reeve_notif_sink(reeve_notif_t *p, const char *peer);
/* One more reference.  Returns k.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_sink_t *reeve_sink_ref(reeve_sink_t *k);
/* Let go.  NULL is ignored.
 * T: any B: no W: ok consumes k */
REEVE_API void reeve_sink_unref(reeve_sink_t *k);

/* Send a message now or not at all: REEVE_ECLOGGED when send_queue is full, or what ended the stream.  b NULL: empty.  On
 * failure b is let go too.  0: accepted: it is sent, or counted as lost when the stream ends.
 * T: any B: no W: ok borrows k consumes b */
REEVE_API int reeve_sink_try_send(reeve_sink_t *k, reeve_buf_t *b);

/* Send a message; waits for room.  REEVE_ETIMEDOUT, REEVE_ETOOBIG, or what ended the stream.
 * T: any B: yes W: no borrows k consumes b */
REEVE_API int reeve_sink_send(reeve_sink_t *k, reeve_buf_t *b, int64_t timeout_ms);

/* As reeve_sink_send; sends of one sink are accepted in their order.
 * T: any B: no W: ok borrows k consumes b */
REEVE_API void reeve_sink_send_async(reeve_sink_t *k, reeve_buf_t *b, reeve_op_t *op);

/* The next event of the protocol (where fn is NULL).  Each has to be released.  REEVE_ETIMEDOUT; REEVE_ECLOSED once the
 * node is closed and every event was taken.
 * T: any B: yes W: no borrows p */
REEVE_API REEVE_CHECKED int reeve_notif_next(
    reeve_notif_t *p, reeve_notif_event_t *ev, int64_t timeout_ms);
/* T: any B: no W: ok borrows p */
REEVE_API void reeve_notif_release(reeve_notif_t *p, reeve_notif_event_t *ev);

/* Go on with a peer whose event was answered by REEVE_EAGAIN.
 * T: any B: no W: ok borrows p */
REEVE_API void reeve_notif_resume(reeve_notif_t *p, const char *peer);

REEVE_END

#endif
