/* error.h - one list of error codes.  0 and positive values are success, negative values are one of these
 * or REEVE_ESYS_BASE - errno. */
#ifndef REEVE_ERROR_H
#define REEVE_ERROR_H

#include <reeve/export.h>

REEVE_BEGIN

#define REEVE_ERR_MAP(X)                                                   \
	X(EINVAL, 1, "bad argument")                                       \
	X(ENOMEM, 2, "out of memory")                                      \
	X(ECLOSED, 3, "closed on this side")                               \
	X(ERESET, 4, "reset by the peer")                                  \
	X(EGOAWAY, 5, "the connection takes no new streams")               \
	X(ETIMEDOUT, 6, "deadline passed")                                 \
	X(ECANCELED, 7, "operation cancelled")                             \
	X(EAGAIN, 8, "not ready")                                          \
	X(EPROTO, 9, "the peer broke the protocol")                        \
	X(ELIMIT, 10, "a configured limit was reached")                    \
	X(EREFUSED, 11, "refused by the peer")                             \
	X(ESHUT, 12, "write side already shut")                            \
	X(EWORKER, 13, "blocking call made on a worker thread")            \
	X(EFORKED, 14, "runtime used in a forked child")                   \
	X(ENOTSUP, 15, "not supported by this protocol or transport")      \
	X(EBUSY, 16, "another operation has this direction of the stream") \
	X(EEXHAUSTED, 17, "stream ids used up")                            \
	X(EEND, 18, "the peer closed the connection")                      \
	X(ETRUNC, 19, "the connection ended inside a frame")               \
	X(EDEAD, 20, "no sign of life from the peer")                      \
	X(ENOPROTO, 21, "no protocol in common with the peer")             \
	X(EIDENTITY, 22, "the peer is not who it should be")               \
	X(ENOTCONN, 23, "not connected to this peer")                      \
	X(EDIAL, 24, "the peer cannot be reached")                         \
	X(ETOOBIG, 25, "larger than the protocol allows")                  \
	X(ELOST, 26, "the connection was lost")                            \
	X(ECLOGGED, 27, "the send queue is full")                          \
	X(ESTALE, 28, "what this answers is gone")

enum reeve_err {
	REEVE_OK = 0,
#define X(name, num, text) REEVE_##name = -(num),
	REEVE_ERR_MAP(X)
#undef X
	    REEVE_ESYS_BASE = -1000 /* a system error is REEVE_ESYS_BASE - errno */
};

/* Text for an error code; for a system error the system's text.  Never NULL, a static string.
 * T: any B: no W: ok signal-safe */
REEVE_API const char *reeve_strerror(int rc);

/* Name of an error code ("REEVE_ERESET", "REEVE_ESYS:ECONNRESET").  Never NULL, a static string.
 * T: any B: no W: ok signal-safe */
REEVE_API const char *reeve_errname(int rc);

/* The version in use at run time, as REEVE_VERSION of the build that made the library.
 * T: any B: no W: ok signal-safe */
REEVE_API const char *reeve_version(void);

/* Who ended a stream or a connection. */
enum reeve_by {
	REEVE_BY_NONE = 0, /* not ended */
	REEVE_BY_US = 1,
	REEVE_BY_PEER = 2,
	REEVE_BY_TRANSPORT = 3
};

/* Why a stream or a connection ended. */
typedef struct reeve_reason {
	uint32_t size;      /* set by the caller: sizeof(reeve_reason_t) */
	int32_t rc;         /* 0 not ended or a clean end, else the error that later calls answer */
	uint32_t by;        /* enum reeve_by */
	uint32_t wire_code; /* code carried by the peer's reset or go-away frame, else 0 */
	const char *id;     /* stable message id ("REEVE-YAMUX-0007") or "", a static string */
} reeve_reason_t;

REEVE_END

#endif
