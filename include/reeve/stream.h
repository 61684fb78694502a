/* stream.h - one stream: two independent directions of bytes with back-pressure.  Any number of threads may use
 * one stream at once: concurrent readers each get a distinct run of bytes in order of arrival; the bytes of one
 * reeve_write_buf are never interleaved with another call's, those of a large reeve_write may be. */
#ifndef REEVE_STREAM_H
#define REEVE_STREAM_H

#include <reeve/rt.h>
#include <sys/uio.h>

REEVE_BEGIN

#define REEVE_RD 1
#define REEVE_WR 2

/* Read at most n bytes into p (one copy); returns as soon as there is at least one.  0: the peer ended its
 * direction (FIN) and everything was read; n == 0 answers 0 or the error at once.  REEVE_ETIMEDOUT at the read
 * deadline (the stream stays usable), REEVE_ERESET or REEVE_EREFUSED after the bytes that came before the reset,
 * REEVE_ECLOSED after reeve_close or reeve_stop, REEVE_EBUSY while an asynchronous read is pending, or what
 * ended the connection.
 * T: any B: yes W: no borrows s */
REEVE_API reeve_ssize reeve_read(reeve_stream_t *s, void *p, size_t n);

/* As reeve_read without a copy: *b is a buffer of one or more received bytes.  Returns its length.
 * T: any B: yes W: no borrows s returns ref */
REEVE_API reeve_ssize reeve_read_buf(reeve_stream_t *s, reeve_buf_t **b);

/* Write n bytes (one copy).  Returns when all are accepted (counted against the send budget, not yet seen by the
 * peer), or with the number accepted before the write deadline or an error came; REEVE_ETIMEDOUT when that is
 * none.  Two ends that both write more than a window and the budgets before they read wait for each other for ever:
 * read meanwhile, or set a deadline.  REEVE_ESHUT after reeve_shut, REEVE_ERESET, REEVE_EREFUSED, REEVE_ECLOSED, or
 * what ended the connection.  n == 0 answers 0 or the error and sends nothing.
 * T: any B: yes W: no borrows s */
REEVE_API reeve_ssize reeve_write(reeve_stream_t *s, const void *p, size_t n);

/* reeve_write of several pieces, in order, as one.
 * T: any B: yes W: no borrows s */
REEVE_API reeve_ssize reeve_writev(reeve_stream_t *s, const struct iovec *v, int n);

/* Write a buffer without a copy: accepted whole as soon as the send budget has any room, or not at all.
 * T: any B: yes W: no borrows s consumes b */
REEVE_API reeve_ssize reeve_write_buf(reeve_stream_t *s, reeve_buf_t *b);

/* Half-close: no more bytes from us; what was accepted is sent, then FIN.  Reading goes on.  Repeating is 0.
 * T: any B: no W: ok borrows s */
REEVE_API int reeve_shut(reeve_stream_t *s);

/* Stop reading: unread and later bytes are discarded and their credit is withheld; writing goes on.
 * T: any B: no W: ok borrows s */
REEVE_API int reeve_stop(reeve_stream_t *s);

/* End both directions at once: unsent and unread bytes are dropped, the peer sees a reset with code (0 if none).
 * T: any B: no W: ok borrows s */
REEVE_API int reeve_reset(reeve_stream_t *s, uint32_t code);

/* reeve_shut and reeve_stop for every user of the stream, and let go of this handle.  Accepted bytes are still
 * sent.  Unread bytes become a reset behind our FIN.  NULL is ignored.
 * T: any B: no W: ok consumes s */
REEVE_API void reeve_close(reeve_stream_t *s);

/* One more handle.  Returns s.
 * T: any B: no W: ok returns ref */
REEVE_API reeve_stream_t *reeve_stream_ref(reeve_stream_t *s);

/* Let go of a handle.  The last one without reeve_close is a drop: accepted bytes are sent, then a reset (FIN if
 * the peer has ended its direction).  NULL is ignored.
 * T: any B: no W: ok consumes s */
REEVE_API void reeve_stream_unref(reeve_stream_t *s);

/* Set the deadline of a direction (REEVE_RD, REEVE_WR or both) to timeout_ms from now; it persists over calls.
 * -1: none.  0: current waits end now, later calls answer at once.  Wakes waiting calls, which look again.
 * T: any B: no W: ok borrows s */
REEVE_API int reeve_deadline(reeve_stream_t *s, int dir, int64_t timeout_ms);

#define REEVE_LAZY 0x100 /* with REEVE_DIALER: go on as if the peer had agreed */

/* Agree with the peer on the protocol of this stream, by multistream-select, before anything else is read or written.
 * how REEVE_DIALER: propose the names in their order (usually who opened the stream); REEVE_LISTENER: take the first
 * proposal that is one of the names.  Names begin with '/', have at most 1023 bytes, no newline, and are copied; n is at
 * most 1024.  Returns the index of the agreed name.  Bytes behind the agreement are for the next reads.  Reads and
 * writes that other threads begin meanwhile wait for it.
 * timeout_ms: -1 is 10 s, nobody waits for ever; 0: what has come by now decides.
 * REEVE_DIALER | REEVE_LAZY, one name: 0 without an answer.  Header, name and the first bytes that are written leave
 * together (at the first write, read or reeve_shut); the first read consumes the answer, without any timeout but the
 * read's.  Not where the first bytes written could be taken for a proposal, as in another negotiation.
 * REEVE_EINVAL, REEVE_EBUSY (something was read, written or negotiated before), REEVE_ESHUT, REEVE_EWORKER and
 * REEVE_EFORKED leave the stream as it was.  Any other error ends it, and later reads and writes answer the same:
 * REEVE_ENOPROTO (no name in common: our direction ends by FIN, so that the peer can read the last "na"); all others
 * reset it: REEVE_EPROTO, REEVE_ELIMIT (more than 64 proposals or 8 KiB), REEVE_ETIMEDOUT, REEVE_ENOMEM, or what ended
 * the stream or the connection.  Close it.  With REEVE_LAZY they come from the read, all by a reset, and REEVE_ETRUNC
 * when the peer ends without an answer.
 * T: any B: yes W: no borrows s */
REEVE_API int reeve_negotiate(
    reeve_stream_t *s, int how, const char *const *names, unsigned n, int64_t timeout_ms);

/* The agreed name (with REEVE_LAZY the proposed one until the peer refuses it), or NULL.  Valid as long as the handle.
 * T: any B: no W: ok borrows s */
REEVE_API const char *reeve_stream_proto(const reeve_stream_t *s);

/* The id on the wire.
 * T: any B: no W: ok borrows s */
REEVE_API uint64_t reeve_stream_id(const reeve_stream_t *s);

/* The stream's controller, borrowed from the stream.
 * T: any B: no W: ok borrows s */
REEVE_API reeve_ctl_t *reeve_stream_ctl(reeve_stream_t *s);

/* A pointer of the application's own, NULL at first.  The library never looks at it.
 * T: owner B: no W: ok borrows s */
REEVE_API void reeve_stream_set_data(reeve_stream_t *s, void *p);

/* The pointer set last.
 * T: owner B: no W: ok borrows s */
REEVE_API void *reeve_stream_data(const reeve_stream_t *s);

/* Why the stream ended.  0, or REEVE_EINVAL when out->size is not set.
 * T: any B: no W: ok borrows s */
REEVE_API int reeve_stream_reason(reeve_stream_t *s, reeve_reason_t *out);

REEVE_END

#endif
