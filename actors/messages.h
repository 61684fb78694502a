/* messages.h - every message between the actors of a connection, in one table.
 *
 *   ring                       entries                    bound and answer when full
 *   connection -> substreams   struct rv_event: OPEN is   RVA_DOWN - 1; the engine parses no further until the worker has
 *                              not among them; DATA, FIN, drained it (receive windows bound the bytes)
 *                              RST, TAKEN, CLOSING, GONE
 *   substreams -> connection   struct rva_up              RVA_UP - 1; the connection absorbs it on the spot (same worker);
 *                                                         the send budget of each stream bounds the bytes
 *   connection -> controller   struct rva_ctlmsg          RVA_CTL - 1; as the first
 *   controller -> connection   struct rva_ctlmsg          RVA_CTL - 1; as the second
 *   application -> substream   port.h (write ring)        15 entries; the writer waits, with its deadline
 *   substream -> application   port.h (read ring)         15 entries; the rest waits in the substream, bounded by the window
 *
 *   mailbox                    carries                    bound
 *   connection                 its bell                   1
 *   controller                 its bell, operations       1 and the callers' own storage
 *   substream                  its bell, operations       1 and the callers' own storage
 *   user actor                 messages, completions      the senders' own storage */
#ifndef REEVE_ACTORS_MESSAGES_H
#define REEVE_ACTORS_MESSAGES_H

#include <reeve/op.h>

#include "lib/engine/engine.h"
#include "queues/spsc.h"

#define RVA_DOWN 64
#define RVA_UP   32
#define RVA_CTL  16

enum rva_up_kind {
	RVA_UP_SEND = 1, /* buf: to be sent; the reference goes along */
	RVA_UP_CONSUMED, /* n: bytes the application has let go */
	RVA_UP_SHUT,
	RVA_UP_STOP,
	RVA_UP_RESET, /* n: code */
	RVA_UP_CLOSE,
	RVA_UP_DROP
};

struct rva_up {
	struct reeve_stream *s;
	reeve_buf_t *buf;
	uint32_t n;
	uint32_t kind;
};

enum rva_ctl_kind {
	/* controller -> connection */
	RVA_CTL_OPEN = 1, /* op */
	RVA_CTL_ACCEPTED, /* s: the application has it */
	RVA_CTL_PING,
	RVA_CTL_CLOSE, /* deadline */
	/* connection -> controller */
	RVA_CTL_INBOUND, /* s */
	RVA_CTL_OPENED,  /* op, s or rc */
	RVA_CTL_SLOT,    /* opens that had to wait may be tried again */
	RVA_CTL_PONG,    /* n: us */
	RVA_CTL_READY,   /* the handshake is over */
	RVA_CTL_ENDED    /* the reason is in the connection */
};

struct rva_ctlmsg {
	reeve_op_t *op;
	struct reeve_stream *s;
	uint64_t n;
	int32_t rc;
	uint32_t kind;
};

RVQ_RING_DEFINE(rva_down, struct rv_event)
RVQ_RING_DEFINE(rva_upring, struct rva_up)
RVQ_RING_DEFINE(rva_ctlring, struct rva_ctlmsg)

#endif
