/* mplex_frame.h - headers of mplex: two varints, (id << 3 | flag) and the length of the body.
 *
 * The flag says what the frame is and, for all but the opening, whether its sender opened the stream (even) or accepted
 * it (odd).  Ids of the two sides are unrelated, so the table's key has the side in it.  Source: libp2p specification
 * of mplex, /mplex/6.7.0. */
#ifndef REEVE_LIB_ENGINE_MPLEX_FRAME_H
#define REEVE_LIB_ENGINE_MPLEX_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <reeve/error.h>

#define RV_MP_ID_BYTES  9u /* of the first varint: 63 bits, so ids have 60 */
#define RV_MP_LEN_BYTES 3u
#define RV_MP_HDR_MAX   (RV_MP_ID_BYTES + RV_MP_LEN_BYTES)
#define RV_MP_BODY_MAX  (1u << 20)
#define RV_MP_ID_LAST   ((UINT64_C(1) << 60) - 1)

enum rv_mp_kind { RV_MP_OPEN, RV_MP_DATA, RV_MP_CLOSE, RV_MP_RESET, RV_MP_UNKNOWN };

struct rv_mphdr {
	uint64_t key; /* of the stream, as its receiver sees it */
	uint32_t len;
	uint8_t kind; /* enum rv_mp_kind */
};

/* Key of the stream with this id that we have opened, or that the peer has: never 0. */
static inline uint64_t
rv_mp_key(uint64_t id, bool ours)
{
	return (id + 1) << 1 | ours;
}

static inline uint64_t
rv_mp_id(uint64_t key)
{
	return (key >> 1) - 1;
}

/* Read one from n bytes.  Bytes used; REEVE_EAGAIN: all n are the beginning of one; REEVE_EPROTO: a varint that is too
 * long or not the shortest; REEVE_ELIMIT: a body above RV_MP_BODY_MAX, told as soon as the bytes show it. */
int rv_mphdr_get(struct rv_mphdr *h, const uint8_t *p, size_t n);
/* Write one for a stream of ours (opened or accepted: its key), at most RV_MP_HDR_MAX bytes.  Bytes written. */
unsigned rv_mphdr_put(uint8_t *p, uint64_t key, enum rv_mp_kind kind, uint32_t len);
unsigned rv_mphdr_size(uint64_t key, uint32_t len);

#endif
