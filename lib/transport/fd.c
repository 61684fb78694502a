/* fd.c - transport over a stream socket, or over another descriptor that can be read and written.
 *
 * One worker at a time.  A signal never shows: interrupted calls are repeated.  ENOBUFS and
 * ENOMEM are errors like others: no readiness event follows them, so waiting could be for ever
 * (TCP waits for memory by itself and says EAGAIN). */
#include <config.h>

#include "lib/transport/transport.h"
#include "lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct fd_transport {
	struct rv_transport t;
	struct rv_arena *arena;
	int fd;
};

static reeve_ssize
fd_result(ssize_t rc)
{
	if (rc >= 0)
		return rc;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return REEVE_EAGAIN;
	return REEVE_ESYS_BASE - errno;
}

static int
fd_of(const struct rv_transport *t)
{
	return ((const struct fd_transport *)t)->fd;
}

static reeve_ssize
sock_readv(struct rv_transport *t, const struct iovec *v, int n)
{
	int fd = fd_of(t);
	ssize_t rc;

	REEVE_ASSERT(n > 0 && v[0].iov_len > 0);
	do {
		rc = n == 1 ? recv(fd, v[0].iov_base, v[0].iov_len, 0) : readv(fd, v, n);
	} while (rc < 0 && errno == EINTR);
	return fd_result(rc);
}

static reeve_ssize
sock_writev(struct rv_transport *t, const struct iovec *v, int n)
{
	struct msghdr msg = {0};
	int fd = fd_of(t);
	ssize_t rc;

	REEVE_ASSERT(n > 0 && v[0].iov_len > 0);
	msg.msg_iov = (struct iovec *)(uintptr_t)v; /* sendmsg does not write to it */
	msg.msg_iovlen = (size_t)n;
	do {
		rc = n == 1 ? send(fd, v[0].iov_base, v[0].iov_len, MSG_NOSIGNAL)
			    : sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (rc < 0 && errno == EINTR);
	return fd_result(rc);
}

static reeve_ssize
file_readv(struct rv_transport *t, const struct iovec *v, int n)
{
	ssize_t rc;

	REEVE_ASSERT(n > 0 && v[0].iov_len > 0);
	do {
		rc = readv(fd_of(t), v, n);
	} while (rc < 0 && errno == EINTR);
	return fd_result(rc);
}

static reeve_ssize
file_writev(struct rv_transport *t, const struct iovec *v, int n)
{
	ssize_t rc;

	REEVE_ASSERT(n > 0 && v[0].iov_len > 0);
	do {
		rc = writev(fd_of(t), v, n);
	} while (rc < 0 && errno == EINTR);
	return fd_result(rc);
}

static int
fd_poll(struct rv_transport *t)
{
	return fd_of(t);
}

static void
fd_close(struct rv_transport *t)
{
	struct fd_transport *f = (struct fd_transport *)t;

	close(f->fd);
	rv_free(f->arena, f, sizeof(*f));
}

static int
sock_shut(struct rv_transport *t)
{
	return shutdown(fd_of(t), SHUT_WR) < 0 ? REEVE_ESYS_BASE - errno : 0;
}

static const struct rv_transport_ops sock_ops = {.readv = sock_readv,
    .writev = sock_writev,
    .fd = fd_poll,
    .shut = sock_shut,
    .close = fd_close};
static const struct rv_transport_ops file_ops = {
    .readv = file_readv, .writev = file_writev, .fd = fd_poll, .close = fd_close};

static int
sock_opt(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, name, &v, &len) == 0 ? v : -1;
}

#ifndef SO_BUF_LOCK /* Linux 5.14 */
#define SO_BUF_LOCK 72
#endif
#define SNDBUF_LOCK 1 /* of SO_BUF_LOCK: somebody has chosen the size */
#define RCVBUF_LOCK 2

/* How long a round trip is, or 0 when that is unknown or not near. */
static uint32_t
near_rtt(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
	    info.tcpi_rtt >= RV_NEAR_RTT_US)
		return 0;
	return info.tcpi_rtt;
}

/* Bounds of the kernel's buffers, of which the application's choice stays (chosen: *_LOCK).  Left alone, the system lets
 * megabytes stand between two near ends, and every one of them leaves the processor's cache (doc/performance.md).  Where
 * the system allows less than we ask for (net.core.rmem_max), its own tuning of the receive buffer goes on. */
static void
tune_near(int fd, int chosen, bool may_unlock)
{
	uint32_t rtt = near_rtt(fd);
	int snd = RV_NEAR_SNDBUF, rcv = RV_NEAR_RCVBUF;

	if (rtt == 0)
		return;
	if (rtt * RV_NEAR_SNDBUF_PER_US > RV_NEAR_SNDBUF)
		snd = (int)(rtt * RV_NEAR_SNDBUF_PER_US);
	if (rtt * RV_NEAR_RCVBUF_PER_US > RV_NEAR_RCVBUF)
		rcv = (int)(rtt * RV_NEAR_RCVBUF_PER_US);
	if (!(chosen & SNDBUF_LOCK))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &snd, sizeof(snd));
	if ((chosen & RCVBUF_LOCK) || !may_unlock)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcv, sizeof(rcv));
	if (sock_opt(fd, SOL_SOCKET, SO_RCVBUF) >= 2 * rcv)
		return;
	chosen |= SNDBUF_LOCK;
	(void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &chosen, sizeof(chosen));
}

/* Options make it faster, not right: failures are ignored. */
void
rv_fd_tune_tcp(int fd)
{
	int on = 1, lowat = RV_NOTSENT_LOWAT, locked = sock_opt(fd, SOL_SOCKET, SO_BUF_LOCK);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
	tune_near(fd, locked < 0 ? 0 : locked, locked >= 0);
}

static int
set_flags(int fd)
{
	int fl = fcntl(fd, F_GETFL), fdfl = fcntl(fd, F_GETFD);

	if (fl < 0 || fdfl < 0)
		return -1;
	if (!(fdfl & FD_CLOEXEC) && fcntl(fd, F_SETFD, fdfl | FD_CLOEXEC) != 0)
		return -1;
	if (!(fl & O_NONBLOCK) && fcntl(fd, F_SETFL, fl | O_NONBLOCK) != 0)
		return -1;
	return 0;
}

static struct fd_transport *
make(struct rv_arena *ar, int fd, bool socket)
{
	struct fd_transport *f = rv_zalloc(ar, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->t.ops = socket ? &sock_ops : &file_ops;
	f->t.short_is_drained = socket;
	f->arena = ar;
	f->fd = fd;
	return f;
}

int
rv_fd_transport(struct rv_transport **t, struct rv_arena *ar, int fd)
{
	struct fd_transport *f;
	int type = sock_opt(fd, SOL_SOCKET, SO_TYPE);

	if (type < 0 && errno != ENOTSOCK)
		return REEVE_ESYS_BASE - errno;
	REEVE_REQUIRE(type < 0 || type == SOCK_STREAM, REEVE_EINVAL);
	f = make(ar, fd, type >= 0);
	if (f == NULL)
		return REEVE_ENOMEM;
	if (set_flags(fd) != 0) {
		int rc = REEVE_ESYS_BASE - errno;

		rv_free(ar, f, sizeof(*f));
		return rc;
	}
	f->t.foreign = type < 0; /* writing may raise SIGPIPE at the thread that does it */
	if (type >= 0 && sock_opt(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP)
		rv_fd_tune_tcp(fd);
	*t = &f->t;
	return 0;
}

int
rv_fd_transport_ours(struct rv_transport **t, struct rv_arena *ar, int fd, bool tcp)
{
	struct fd_transport *f = make(ar, fd, true);

	if (f == NULL)
		return REEVE_ENOMEM;
	if (tcp)
		rv_fd_tune_tcp(fd);
	*t = &f->t;
	return 0;
}

void
rv_fd_transport_forget(struct rv_transport *t)
{
	struct fd_transport *f = (struct fd_transport *)t;

	rv_free(f->arena, f, sizeof(*f));
}
