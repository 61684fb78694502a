/* listen.h - listeners and dialers.  Addresses: tcp://host:port (IPv6 in brackets), unix:///path, mem://name
 * (within one runtime's process). */
#ifndef REEVE_LISTEN_H
#define REEVE_LISTEN_H

#include <reeve/conn.h>

REEVE_BEGIN

/* Listen on an address; port 0 takes a free one.  An existing unix socket file that nobody listens on is replaced;
 * the file is removed at the end.  REEVE_EINVAL for a malformed address, or a system error.
 * T: any B: yes W: no returns ref */
REEVE_API REEVE_CHECKED int reeve_listen(
    reeve_listener_t **l, reeve_rt_t *rt, const char *addr, const reeve_cfg_t *cfg);

/* Write the bound address, port filled in, as a string of at most n bytes with its end; returns its length, or
 * REEVE_EINVAL when n is too small.
 * T: any B: no W: ok borrows l */
REEVE_API int reeve_listener_addr(reeve_listener_t *l, char *out, size_t n);

/* Take the next connection.  timeout_ms: -1 for ever, 0 try.  REEVE_ETIMEDOUT, REEVE_ECLOSED after
 * reeve_listener_stop, or a system error (running out of descriptors is one; the listener goes on).
 * T: any B: yes W: no borrows l returns ref */
REEVE_API REEVE_CHECKED int reeve_listener_accept(
    reeve_listener_t *l, reeve_conn_t **c, int64_t timeout_ms);

/* What reeve_serve calls for each inbound stream, on a thread of its own; it may block.  s is borrowed for the
 * call; when h returns the stream is closed (after an error: reset). */
typedef void (*reeve_handler)(reeve_stream_t *s, void *arg);

/* Serve every stream of every connection until the listener is stopped; returns after the last handler has.
 * A stream is acknowledged when a handler takes it.  0 after reeve_listener_stop, else an error.
 * T: any B: yes W: no borrows l */
REEVE_API int reeve_serve(reeve_listener_t *l, reeve_handler h, void *arg);

/* Take no more connections; waiting calls end with REEVE_ECLOSED, reeve_serve returns.
 * T: any B: no W: ok borrows l signal-safe */
REEVE_API void reeve_listener_stop(reeve_listener_t *l);

/* Stop, and let go.  NULL is ignored.
 * T: owner B: yes W: no consumes l */
REEVE_API void reeve_listener_destroy(reeve_listener_t *l);

/* Connect to an address.  Host names are resolved in the calling thread.  timeout_ms: -1 for ever.
 * REEVE_EINVAL, REEVE_ETIMEDOUT, or a system error.
 * T: any B: yes W: no returns ref */
REEVE_API REEVE_CHECKED int reeve_dial(
    reeve_conn_t **c, reeve_rt_t *rt, const char *addr, const reeve_cfg_t *cfg, int64_t timeout_ms);

REEVE_END

#endif
