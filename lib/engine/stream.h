/* stream.h - the engine's part of a stream's record: wire state of both halves, windows, bytes to send.
 *
 * Owner: the engine (so the connection's worker).  Only id may be read by others. */
#ifndef REEVE_LIB_ENGINE_STREAM_H
#define REEVE_LIB_ENGINE_STREAM_H

#include "lib/buf/slice.h"

struct rv_stream {
	uint32_t id;          /* immutable */
	uint8_t tx, rx;       /* states of the halves: half.h */
	uint16_t flags;       /* owed frames and facts: RV_ST_* in yamux_session.h */
	uint32_t send_credit; /* bytes we may still send */
	uint32_t window;      /* M: current maximum of the receive window */
	uint32_t recv_credit; /* r: bytes the peer may still send */
	uint32_t consumed;    /* let go by the application since the last update */
	uint32_t rst_code;
	uint32_t taken;       /* not yet reported RV_EV_TAKEN */
	uint16_t inflight;    /* entries of a gather that refer to this stream */
	uint16_t events;      /* pending RV_EV_* for notify, one bit each */
	uint64_t updated;     /* t: time of the last window update */
	struct rv_chain out;  /* bytes not yet in a gather */
	struct rv_stream *ready_next;  /* round robin of streams with bytes and credit */
	struct rv_stream *ctl_next;    /* streams that owe a control frame */
	struct rv_stream *notify_next; /* streams with pending events */
	uint32_t deficit;
	uint32_t linger_slot;
};

#endif
