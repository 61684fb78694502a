/* transport.h - the seam under a connection: bytes in, bytes out, never blocking.
 *
 * One worker at a time calls a transport.  ops->take/give, when present, move slices instead of
 * copying (memory pipe). */
#ifndef REEVE_LIB_TRANSPORT_TRANSPORT_H
#define REEVE_LIB_TRANSPORT_TRANSPORT_H

#include <reeve/conn.h>
#include "lib/buf/slice.h"

struct rv_transport;

/* n is 1 to 1024 (IOV_MAX) and every iovec has at least one byte. */
struct rv_transport_ops {
	/* > 0 bytes, 0 end, REEVE_EAGAIN, or an error.  Never more than offered. */
	reeve_ssize (*readv)(struct rv_transport *t, const struct iovec *v, int n);
	/* > 0 bytes taken, REEVE_EAGAIN (nothing taken), or an error. */
	reeve_ssize (*writev)(struct rv_transport *t, const struct iovec *v, int n);
	/* Optional, instead of readv: hand over a block of received bytes (one reference; the receiver is its owner from
	 * now on), bytes from *off.  Bytes, 0 end, REEVE_EAGAIN, or an error. */
	reeve_ssize (*take)(struct rv_transport *t, struct rv_slab **s, uint32_t *off);
	/* Optional: whom to tell of readiness (reeve_transport_ready); borrowed until close. */
	void (*attach)(struct rv_transport *t, reeve_ctl_t *k);
	int (*fd)(
	    struct rv_transport *t); /* descriptor to poll, or -1: it tells readiness itself */
	/* Optional: no more bytes from us (half-close of the pipe).  0 or an error. */
	int (*shut)(struct rv_transport *t);
	void (*close)(struct rv_transport *t); /* the last call; frees t */
};

/* short_is_drained: a read or write shorter than offered means that the kernel has no more
 * (takes no more) and that an edge-triggered poller will tell: wait for it instead of asking
 * once more (epoll(7), "Do I need to continuously read/write a file descriptor until EAGAIN").
 * The end of the stream is the exception: when the FIN came together with the last bytes its
 * edge is the one already being handled, so a turn that saw EPOLLRDHUP, EPOLLHUP or EPOLLERR
 * reads on until 0, REEVE_EAGAIN or an error. */
struct rv_transport {
	const struct rv_transport_ops *ops;
	int short_is_drained;
	int foreign; /* only workers may call it: it is the application's, or it may raise a signal */
};

/* A transport over a connected stream socket, which it owns from now on: sets O_NONBLOCK,
 * close-on-exec, and on TCP TCP_NODELAY, TCP_NOTSENT_LOWAT (RV_NOTSENT_LOWAT) and, for a near
 * peer, SO_SNDBUF and SO_RCVBUF (see below).  Writing to a
 * socket never raises SIGPIPE.  Anything else that read and write work on (a pipe, a tty) is
 * taken too: there writing can raise SIGPIPE at the calling thread, where it must be blocked, as
 * it is on workers.  System errors are REEVE_ESYS_BASE - errno.  *t on success only; after a
 * failure fd is still the caller's. REEVE_EINVAL (a socket of another type), REEVE_ENOMEM, a
 * system error. */
int rv_fd_transport(struct rv_transport **t, struct rv_arena *ar, int fd);
/* The same over a connected stream socket that the library has made, non-blocking and close-on-exec, all of whose other
 * options are the system's: nothing has to be asked.  REEVE_ENOMEM. */
int rv_fd_transport_ours(struct rv_transport **t, struct rv_arena *ar, int fd, bool tcp);
/* Free one that was never used; the descriptor is the caller's again. */
void rv_fd_transport_forget(struct rv_transport *t);

/* Bytes that may wait unsent in the kernel: what is committed there is ahead of everything more
 * urgent. */
#define RV_NOTSENT_LOWAT (128 * 1024)

/* SO_SNDBUF of a TCP connection whose round trip, as the kernel knows it when the transport is made, is below
 * RV_NEAR_RTT_US: what RV_NEAR_SNDBUF_PER_US a microsecond come to (32 Gbit/s, since the kernel doubles the value), at
 * least RV_NEAR_SNDBUF.  The same bound as that of windows on a near path (lib/engine/window.h). */
#define RV_NEAR_RTT_US        1000u
#define RV_NEAR_SNDBUF        (128 * 1024)
#define RV_NEAR_SNDBUF_PER_US 2048u
/* And SO_RCVBUF, of which about half is bytes: what a worker has not read of all its streams together. */
#define RV_NEAR_RCVBUF        (768 * 1024)
#define RV_NEAR_RCVBUF_PER_US 4096u

/* The options of a connected TCP socket: what rv_fd_transport sets. */
void rv_fd_tune_tcp(int fd);

#endif
