/* rechunk.c - see rechunk.h. */
#include <config.h>

#include "tests/kit/rechunk.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECES 16

/* Something changed for the thread, or a made-up EAGAIN is over: tell. */
static void
again(struct rvt_rechunk *t, int events)
{
	char c = 0;

	if (!t->own_thread) {
		reeve_transport_ready(t->k, events);
		return;
	}
	pthread_mutex_lock(&t->lock);
	t->want |= events;
	pthread_mutex_unlock(&t->lock);
	if (write(t->wake[1], &c, 1) < 0)
		return; /* full: it will wake anyway */
}

/* Is this one a lie?  The worker's. */
static bool
lie(struct rvt_rechunk *t)
{
	t->calls++;
	t->seed = t->seed * 1664525 + 1013904223;
	if ((t->seed >> 16) % 8 != 0)
		return false;
	t->lies++;
	return true;
}

/* At most t->n bytes of v. */
static int
cut(const struct rvt_rechunk *t, const struct iovec *v, int n, struct iovec *out)
{
	size_t left = t->n;
	int k = 0;

	for (; k < n && k < PIECES && left > 0; k++) {
		out[k] = v[k];
		if (out[k].iov_len > left)
			out[k].iov_len = left;
		left -= out[k].iov_len;
	}
	return k;
}

static reeve_ssize
result(struct rvt_rechunk *t, ssize_t n, int event)
{
	if (n >= 0)
		return n;
	if (errno != EAGAIN && errno != EINTR)
		return REEVE_ESYS_BASE - errno;
	if (t->own_thread || errno == EINTR)
		again(t, event);
	return REEVE_EAGAIN;
}

static reeve_ssize
rechunk_readv(void *ctx, const struct iovec *v, int n)
{
	struct rvt_rechunk *t = ctx;
	struct iovec w[PIECES];

	if (lie(t)) {
		again(t, REEVE_READABLE);
		return REEVE_EAGAIN;
	}
	return result(t, readv(t->fd, w, cut(t, v, n, w)), REEVE_READABLE);
}

static reeve_ssize
rechunk_writev(void *ctx, const struct iovec *v, int n)
{
	struct rvt_rechunk *t = ctx;
	struct iovec w[PIECES];
	struct msghdr m = {.msg_iov = w};

	if (lie(t)) {
		again(t, REEVE_WRITABLE);
		return REEVE_EAGAIN;
	}
	m.msg_iovlen = (size_t)cut(t, v, n, w);
	return result(t, sendmsg(t->fd, &m, MSG_NOSIGNAL), REEVE_WRITABLE);
}

static int
rechunk_fd(void *ctx)
{
	const struct rvt_rechunk *t = ctx;

	return t->own_thread ? -1 : t->fd;
}

/* The thread: wait for what was wanted and announce it. */
static void *
announce(void *arg)
{
	struct rvt_rechunk *t = arg;
	struct pollfd p[2] = {{t->fd, 0, 0}, {t->wake[0], POLLIN, 0}};
	char drain[64];
	int events;

	for (;;) {
		pthread_mutex_lock(&t->lock);
		p[0].events = (short)((t->want & REEVE_READABLE ? POLLIN : 0) |
		    (t->want & REEVE_WRITABLE ? POLLOUT : 0));
		events = t->quit ? -1 : 0;
		pthread_mutex_unlock(&t->lock);
		if (events < 0)
			return NULL;
		p[0].fd = p[0].events != 0 ? t->fd : -1; /* else a hang-up would spin */
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents != 0 && read(t->wake[0], drain, sizeof(drain)) < 0)
			continue;
		if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
			events |= REEVE_READABLE;
		if (p[0].revents & (POLLOUT | POLLHUP | POLLERR))
			events |= REEVE_WRITABLE;
		pthread_mutex_lock(&t->lock);
		t->want &= ~events;
		if (!t->quit && events != 0)
			reeve_transport_ready(t->k, events);
		pthread_mutex_unlock(&t->lock);
	}
}

static void
rechunk_attach(void *ctx, reeve_ctl_t *k)
{
	struct rvt_rechunk *t = ctx;

	t->k = k;
	if (t->own_thread)
		ck_assert_int_eq(pthread_create(&t->thread, NULL, announce, t), 0);
}

/* The descriptor stays: closing it with unread bytes in it would reset what is on its way to the other end. */
static void
rechunk_close(void *ctx)
{
	struct rvt_rechunk *t = ctx;

	if (t->own_thread) {
		pthread_mutex_lock(&t->lock);
		t->quit = true;
		pthread_mutex_unlock(&t->lock);
		again(t, 0);
		pthread_join(t->thread, NULL);
	}
	shutdown(t->fd, SHUT_WR);
	t->closed = true;
}

void
rvt_rechunk_init(struct rvt_rechunk *t, reeve_transport_t *out)
{
	t->k = NULL;
	t->quit = t->closed = false;
	t->want = 0;
	t->calls = t->lies = 0;
	pthread_mutex_init(&t->lock, NULL);
	ck_assert_int_eq(pipe(t->wake), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fcntl(t->wake[i], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(fcntl(t->fd, F_SETFL, O_NONBLOCK), 0);
	memset(out, 0, sizeof(*out));
	out->readv = rechunk_readv;
	out->writev = rechunk_writev;
	out->fd = rechunk_fd;
	out->attach = rechunk_attach;
	out->close = rechunk_close;
	out->ctx = t;
}

void
rvt_rechunk_fini(struct rvt_rechunk *t)
{
	close(t->fd);
	close(t->wake[0]);
	close(t->wake[1]);
	pthread_mutex_destroy(&t->lock);
}
