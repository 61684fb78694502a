/* req_frame.h - one message of a request-response protocol: its length as a varint, then its bytes (the codecs of litep2p
 * and rust-libp2p).
 *
 * A message that lies in one received buffer becomes that buffer; any other is put together in one of its own, with one
 * copy.  The caller's thread; no state but the caller's. */
#ifndef REEVE_NODE_REQ_FRAME_H
#define REEVE_NODE_REQ_FRAME_H

#include <stdbool.h>
#include <reeve/buf.h>

#include "lib/varint.h"

/* What is being received.  Zeroed at first. */
struct rvn_frame {
	uint64_t len;     /* once sized */
	uint64_t got;     /* bytes of it */
	reeve_buf_t *buf; /* one reference; NULL: nothing yet, or empty */
	uint8_t head[RV_VARINT_MAX];
	uint8_t nhead;
	bool sized;
};

/* Take the length off the front of b, which nobody else holds.  1: known, the rest of b is of the message and what is
 * behind it.  0: b was used up, more is needed.  REEVE_EPROTO: not a length. */
int rvn_frame_size(struct rvn_frame *f, reeve_buf_t *b);
/* Take b, which nobody else holds, as the next bytes of a sized message; what is behind the message is dropped.  1: it is
 * complete, in f->buf.  0: more is needed.  REEVE_ENOMEM.  Consumes b. */
int rvn_frame_fill(struct rvn_frame *f, reeve_rt_t *rt, reeve_buf_t *b);
/* Was there any byte? */
static inline bool
rvn_frame_begun(const struct rvn_frame *f)
{
	return f->sized || f->nhead > 0;
}
/* The complete message, the caller's now.  NULL: empty. */
reeve_buf_t *rvn_frame_take(struct rvn_frame *f);
/* Let go of what there is. */
void rvn_frame_drop(struct rvn_frame *f);

/* A body (NULL: empty) as it is sent: out[0], and behind it out[1] unless that is NULL.  REEVE_ENOMEM: nothing.  Consumes
 * body. */
int rvn_frame_make(reeve_rt_t *rt, reeve_buf_t *body, reeve_buf_t *out[2]);

#endif
