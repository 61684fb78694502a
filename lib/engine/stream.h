/* stream.h - the engine's part of a stream's record: wire state of both halves, windows, bytes
 * to send.
 *
 * Owner: the engine (so the connection's worker).  Only id may be read by others.  128 bytes:
 * two lines, and the fields that a frame touches are in the first.  A zeroed record is a valid
 * stream before its opening. */
#ifndef REEVE_LIB_ENGINE_STREAM_H
#define REEVE_LIB_ENGINE_STREAM_H

#include "lib/buf/slice.h"

struct rv_stream {
	uint64_t id;       /* immutable: key of the table, which for yamux is the id of the wire */
	uint32_t flags;    /* owed frames, facts and list memberships: RV_ST_* below */
	uint8_t tx, rx;    /* states of the halves: half.h */
	uint16_t events;   /* pending RV_EV_* for notify, one bit each */
	uint16_t inflight; /* accounts of gathers that refer to this stream */
	uint16_t reserved;
	uint32_t send_credit; /* bytes we may still send */
	uint32_t window;      /* M: current maximum of the receive window */
	uint32_t recv_credit; /* r: bytes the peer may still send */
	uint32_t consumed;    /* let go by the application since the last update */
	uint32_t unread;      /* handed over and not yet let go */
	uint32_t owed;        /* credit evaluated and not yet sent */
	uint32_t rst_code;
	uint64_t updated;    /* t: last window update; of a closed stream: when it is reset */
	struct rv_chain out; /* bytes not yet in a gather */
	uint32_t taken;      /* not yet reported RV_EV_TAKEN */
	uint32_t deficit;    /* bytes left of this round's quantum */
	struct rv_stream *ready_next;  /* round robin of streams with bytes and credit */
	struct rv_stream *ctl_next;    /* streams that owe a control frame */
	struct rv_stream *notify_next; /* streams with pending events */
	struct rv_stream *wait_prev;   /* closed streams, or streams whose credit is withheld */
	struct rv_stream *wait_next;
};

/* flags */
#define RV_ST_OUTBOUND   0x0001u /* opened here */
#define RV_ST_SYN        0x0002u /* the first frame is still to be sent: it carries SYN */
#define RV_ST_NEED_ACK   0x0004u /* opened by the peer, no frame of ours has carried ACK */
#define RV_ST_ACK        0x0008u /* accepted: ACK leaves at the next drain */
#define RV_ST_RST        0x0010u /* a reset is owed, behind the stream's own bytes and FIN */
#define RV_ST_UNACKED    0x0020u /* opened here, unanswered; counted in nunacked */
#define RV_ST_UNACCEPTED 0x0040u /* opened by the peer; counted in nunaccepted */
#define RV_ST_CLOSED     0x0080u /* closed or dropped: no event but TAKEN and GONE */
#define RV_ST_DRY        0x0100u /* the peer used up its credit; growth for it is open */
#define RV_ST_PART       0x0200u /* the first part of out.head is referenced by a gather */
#define RV_ST_STALLED    0x0400u /* counted as stalled */
#define RV_ST_TABLED     0x0800u /* alive on the wire: in the id table, counted in nstreams */
#define RV_ST_GONE       0x1000u /* let go: only to make late calls harmless */
#define RV_ST_IN_READY   0x2000u
#define RV_ST_IN_CTL     0x4000u
#define RV_ST_IN_NOTIFY  0x8000u
#define RV_ST_WAITING    0x10000u /* in a wait list */
#define RV_ST_EIGHTHS    0x20000u /* credit is due at an eighth of the window, not at half */

#endif
