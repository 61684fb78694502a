/* ctl.h - the controller: the shared right to open and accept streams of a connection, to ping it and to end
 * it.  Any number of threads may use one controller at once. */
#ifndef REEVE_CTL_H
#define REEVE_CTL_H

#include <reeve/rt.h>

REEVE_BEGIN

/* One more reference.  Returns k.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_ctl_t *reeve_ctl_ref(reeve_ctl_t *k);

/* Let go.  NULL is ignored.  A released connection closes when nobody holds it any more.
 * T: any B: no W: ok consumes k */
REEVE_API void reeve_ctl_unref(reeve_ctl_t *k);

/* Open a stream.  Waits while max_unacked streams are unacknowledged; does not wait for the peer's answer.
 * Opens are answered in order.  timeout_ms: -1 for ever, 0 try.  REEVE_ETIMEDOUT, REEVE_ELIMIT (max_out),
 * REEVE_EEXHAUSTED, REEVE_EGOAWAY, or what ended the connection.  The connection survives every failed open.
 * T: any B: yes W: no borrows k returns ref */
REEVE_API REEVE_CHECKED int reeve_open(reeve_ctl_t *k, reeve_stream_t **s, int64_t timeout_ms);

/* Take the next stream that the peer opened, and acknowledge it.  timeout_ms as above.  After the connection
 * ended: what is queued, then its reason (REEVE_ECLOSED or REEVE_EEND for a clean end).
 * T: any B: yes W: no borrows k returns ref */
REEVE_API REEVE_CHECKED int reeve_accept(reeve_ctl_t *k, reeve_stream_t **s, int64_t timeout_ms);

/* Round trip to the peer and back, in microseconds, through an otherwise idle or busy connection.
 * T: any B: yes W: no borrows k */
REEVE_API int reeve_ping(reeve_ctl_t *k, int64_t timeout_ms, uint64_t *rtt_us);

/* Tell the peer GO_AWAY(code) and take no new streams in either direction; existing ones go on (but peers other
 * than this library may drop them on receipt).
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_goaway(reeve_ctl_t *k, uint32_t code);

/* Wait until everything is agreed that reeve_upgrade_t asks for: 0 (at once where nothing is asked for), or what ended
 * the connection.  Dialed and accepted connections are ready when they are given out.
 * T: any B: yes W: no borrows k */
REEVE_API int reeve_ready(reeve_ctl_t *k, int64_t timeout_ms);

/* Text of the id that the peer showed (with a zero; its length is returned), REEVE_EAGAIN before the connection is
 * ready, REEVE_ENOTSUP when peers show none, REEVE_EINVAL when n is too small (80 is enough).
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_peer_id(reeve_ctl_t *k, char *out, size_t n);

/* The protocol that carries the streams (enum reeve_proto); REEVE_EAGAIN before the connection is ready.
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_proto(reeve_ctl_t *k);

/* End the connection now: every operation ends with rc (a REEVE_E code, 0 means REEVE_ECLOSED).  The first
 * reason wins.
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_abort(reeve_ctl_t *k, int rc);

/* Why the connection ended.  0, or REEVE_EINVAL when out->size is not set.
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_ctl_reason(reeve_ctl_t *k, reeve_reason_t *out);

REEVE_END

#endif
