/* mplex_peer.h - one mplex connection of ours against the scripted peer: raw.h with frames of mplex.
 *
 * The content of a stream's bytes is rvt_byte(id, i), as rvt_want_read has it.  Check assertions inside: main thread of a
 * test. */
#ifndef REEVE_TESTS_KIT_MPLEX_PEER_H
#define REEVE_TESTS_KIT_MPLEX_PEER_H

#include "tests/kit/mplex_wire.h"
#include "tests/kit/raw.h"

/* Defaults of mplex. */
void rvt_mpp_cfg(reeve_cfg_t *cfg);
/* Ours listens; cfg NULL: defaults. */
void rvt_mpp_open(struct rvt_raw *r, const reeve_cfg_t *cfg);
/* A header, at once. */
void rvt_mpp_put(struct rvt_raw *r, unsigned flag, uint64_t id, uint32_t len);
/* n bytes of the stream, from the given one, in frames of at most 64 KiB, at once. */
void rvt_mpp_data(struct rvt_raw *r, unsigned flag, uint64_t id, uint32_t n, uint64_t from);
/* The same, not yet sent: rvt_peer_send. */
void rvt_mpp_queue(struct rvt_raw *r, unsigned flag, uint64_t id, uint32_t n, uint64_t from);
/* The peer opens id, we accept. */
reeve_stream_t *rvt_mpp_inbound(struct rvt_raw *r, uint64_t id);
/* We open, the peer sees it. */
reeve_stream_t *rvt_mpp_outbound(struct rvt_raw *r);
/* The next frame; false: the other end closed before one. */
bool rvt_mpp_next(struct rvt_raw *r, struct rvt_mp_frame *f);
/* The next frame is this one, with a body of zero bytes. */
void rvt_mpp_want(struct rvt_raw *r, unsigned flag, uint64_t id);
/* The next frames are DATA with n bytes of the stream. */
void rvt_mpp_want_bytes(struct rvt_raw *r, unsigned flag, uint64_t id, uint64_t n, uint64_t from);
/* No further frame, the other end closes. */
void rvt_mpp_want_end(struct rvt_raw *r);

#endif
