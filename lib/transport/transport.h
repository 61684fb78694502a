/* transport.h - the seam under a connection: bytes in, bytes out, never blocking.
 *
 * One worker at a time calls a transport.  ops->take/give, when present, move slices instead of copying (memory pipe). */
#ifndef REEVE_LIB_TRANSPORT_TRANSPORT_H
#define REEVE_LIB_TRANSPORT_TRANSPORT_H

#include <reeve/conn.h>
#include "lib/buf/slice.h"

struct rv_transport;

struct rv_transport_ops {
	/* > 0 bytes, 0 end, REEVE_EAGAIN, or an error.  Never more than offered. */
	reeve_ssize (*readv)(struct rv_transport *t, const struct iovec *v, int n);
	/* > 0 bytes taken, REEVE_EAGAIN (nothing taken), or an error. */
	reeve_ssize (*writev)(struct rv_transport *t, const struct iovec *v, int n);
	/* Optional, both or none: hand over received buffers (one reference each, NULL-terminated count), bytes as result;
	 * and take buffers to send: consumes those it took. */
	reeve_ssize (*take)(struct rv_transport *t, reeve_buf_t **out, int max, int *n);
	reeve_ssize (*give)(struct rv_transport *t, reeve_buf_t **in, int n, int *taken);
	int (*fd)(struct rv_transport *t); /* descriptor to poll, or -1: the transport tells readiness itself */
	void (*close)(struct rv_transport *t); /* the last call; frees t */
};

struct rv_transport {
	const struct rv_transport_ops *ops;
	int short_is_drained; /* a read or write shorter than offered means: wait for the poller before trying again */
};

/* A transport over a connected non-blocking stream socket, which it owns from now on: sets O_NONBLOCK, close-on-exec,
 * TCP_NODELAY and TCP_NOTSENT_LOWAT where they exist.  Writing never raises SIGPIPE.  *t on success only. */
int rv_fd_transport(struct rv_transport **t, struct rv_arena *ar, int fd);

#endif
