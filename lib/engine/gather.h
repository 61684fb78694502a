/* gather.h - what one write offers to the transport: headers and small bodies in a staging
 * block, large bodies by reference.
 *
 * Owner: whoever drives the engine.  A body below RV_STAGE_MAX bytes is copied beside its header
 * (an iovec costs more than the copy up to 2-4 KiB), larger ones are referenced.  Partial writes
 * go on where they stopped; each account is settled (buffer let go, stream told) as soon as its
 * last byte was taken. */
#ifndef REEVE_LIB_ENGINE_GATHER_H
#define REEVE_LIB_ENGINE_GATHER_H

#include <sys/uio.h>
#include "lib/engine/engine.h"

#define RV_IOV_MAX    128
#define RV_ACCT_MAX   256
#define RV_STAGE_SIZE 65536
#define RV_STAGE_MAX  2048
#define RV_GATHER_BYTES \
	(512 * 1024) /* stop adding above this; measured against 256 KiB and 1 MiB in perf/ */

#define RV_CUTS_MAX 64

#define RV_TURN      16384u /* what several streams take turns with on a path of any speed */
#define RV_TURN_FAST 65536u /* where that is less than a millisecond for all that is gathered */

/* n bytes of st's budget that are settled once everything up to end was taken; buf (or NULL) is
 * let go then. */
struct rv_acct {
	struct rv_stream *st;
	reeve_buf_t *buf;
	uint64_t end;
	uint32_t n;
	uint32_t reserved;
};

struct rv_gather {
	struct iovec iov[RV_IOV_MAX];
	int niov, iov_at;
	size_t limit;  /* stop adding above this; RV_GATHER_BYTES unless set after the reset */
	uint32_t turn; /* a stream's turn among others, bytes; RV_TURN unless set after the reset */
	uint32_t
	    message; /* what is added leaves in messages of at most so many bytes, which begin at a frame where they can;
			   * 0: as it comes.  Set after the reset */
	unsigned ncuts; /* places where one ends before it is full, by the offset */
	size_t cut[RV_CUTS_MAX];
	size_t bytes; /* added since the last reset */
	size_t done;  /* taken by the transport */
	unsigned nacct, acct_at;
	size_t stage_used;
	struct rv_acct acct[RV_ACCT_MAX];
	struct rv_gather *next; /* owner's free list */
	uint8_t stage[RV_STAGE_SIZE];
};

void rv_gather_reset(struct rv_gather *g);
static inline bool
rv_gather_empty(const struct rv_gather *g)
{
	return g->done == g->bytes;
}
/* Room for one more frame of any kind: a header, which may need an iovec of its own, and a first
 * piece, copied or referenced, with its account.  A body asks for two iovecs before each piece. */
static inline bool
rv_gather_room(const struct rv_gather *g)
{
	return g->bytes < g->limit && g->niov + 3 <= RV_IOV_MAX && g->nacct + 2 <= RV_ACCT_MAX &&
	    g->ncuts + 4 <= RV_CUTS_MAX && g->stage_used + RV_STAGE_MAX + 16 <= RV_STAGE_SIZE;
}
/* A frame begins of which head bytes and a body of up to want bytes follow: how long a body may be so that message stays
 * whole.  Where little of it is left the next one begins. */
uint32_t rv_gather_fit(struct rv_gather *g, uint32_t head, uint32_t want);
/* n bytes of the stage, offered to the transport where they are: fill them before the next
 * write.  They are there: rv_gather_room, or the caller counted. */
uint8_t *rv_gather_reserve(struct rv_gather *g, size_t n);
/* Copy n bytes (a header, a small body) to the stage. */
void rv_gather_stage(struct rv_gather *g, const void *p, size_t n);
/* Offer n bytes at p, which stay where they are until an account that covers them is settled;
 * takes no reference. */
void rv_gather_ref(struct rv_gather *g, const uint8_t *p, size_t n);
/* Account n bytes of st, and the caller's reference to buf (or NULL), to everything added so
 * far. */
void rv_gather_account(struct rv_gather *g, struct rv_stream *st, uint32_t n, reeve_buf_t *buf);
/* The transport took n more bytes: settle. */
void rv_gather_sent(struct rv_engine *e, struct rv_gather *g, size_t n);
/* The connection ended: settle everything without sending. */
void rv_gather_abort(struct rv_engine *e, struct rv_gather *g);
/* Implemented by the engine side: n bytes of st were taken or dropped; schedules RV_EV_TAKEN and
 * a due RV_EV_GONE. */
void rv_engine_settle(struct rv_engine *e, struct rv_stream *st, uint32_t n);

#endif
