/* test_fd.c - the descriptor transport over socket pairs, TCP and pipes. */
#include <config.h>

#include "lib/transport/transport.h"

#include "tests/kit/alloc.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOTAL (4u << 20)
#define STORM 100

static struct rvt_alloc t;
static struct rv_arena *ar;

static struct rv_transport *
transport(int fd)
{
	struct rv_transport *tr = NULL;

	ck_assert_int_eq(rv_fd_transport(&tr, ar, fd), 0);
	ck_assert_int_eq(tr->ops->fd(tr), fd);
	return tr;
}

/* a[0] and a[1] joined by the given kind of pair. */
static void
begin(struct rv_transport *a[2], void (*pair)(int v[2]))
{
	int v[2];

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	pair(v);
	a[0] = transport(v[0]);
	a[1] = transport(v[1]);
}

static void
end(void)
{
	rv_arena_unref(ar);
	rvt_alloc_check(&t);
}

static void
wait_for(struct rv_transport *tr, short events)
{
	rvt_poll(tr->ops->fd(tr), events);
}

static reeve_ssize
put(struct rv_transport *tr, const void *p, size_t n)
{
	struct iovec v = {(void *)(uintptr_t)p, n};

	return tr->ops->writev(tr, &v, 1);
}

static reeve_ssize
get(struct rv_transport *tr, void *p, size_t n)
{
	struct iovec v = {p, n};

	return tr->ops->readv(tr, &v, 1);
}

/* A system error that one of two numbers explains: which, depends on what arrived first. */
static void
assert_broken(reeve_ssize rc)
{
	ck_assert(rc == REEVE_ESYS_BASE - EPIPE || rc == REEVE_ESYS_BASE - ECONNRESET);
}

static void (*const pairs[])(int v[2]) = {rvt_unix_pair, rvt_tcp_pair};

START_TEST(descriptor_is_made_ready)
{
	struct rv_transport *a[2];
	socklen_t len = sizeof(int);
	int fd, v, i;

	for (i = 0; i < 2; i++) {
		begin(a, pairs[i]);
		fd = a[0]->ops->fd(a[0]);
		ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
		ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		ck_assert_int_eq(a[0]->short_is_drained, 1);
		if (pairs[i] == rvt_tcp_pair) {
			ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &len), 0);
			ck_assert_int_ne(v, 0);
			ck_assert_int_eq(
			    getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &v, &len), 0);
			ck_assert_int_eq(v, RV_NOTSENT_LOWAT);
		}
		a[0]->ops->close(a[0]);
		ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
		a[1]->ops->close(a[1]);
		end();
	}
}
END_TEST

START_TEST(nothing_there_and_no_room_are_eagain)
{
	struct rv_transport *a[2];
	static char buf[65536];
	reeve_ssize rc;
	size_t sent, got;
	int i;

	for (i = 0; i < 2; i++) {
		begin(a, pairs[i]);
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), REEVE_EAGAIN);
		for (sent = 0; (rc = put(a[0], buf, sizeof(buf))) > 0; sent += (size_t)rc)
			ck_assert_uint_lt(sent, 64u << 20);
		ck_assert_int_eq(rc, REEVE_EAGAIN);
		for (got = 0; got < sent; got += (size_t)rc) {
			wait_for(a[1], POLLIN);
			rc = get(a[1], buf, sizeof(buf));
			ck_assert_int_gt(rc, 0);
		}
		ck_assert_uint_eq(got, sent);
		wait_for(a[0], POLLOUT);
		ck_assert_int_gt(put(a[0], buf, 1), 0);
		a[0]->ops->close(a[0]);
		a[1]->ops->close(a[1]);
		end();
	}
}
END_TEST

/* v[3] over p[n]: uneven parts. */
static void
thirds(struct iovec v[3], uint8_t *p, size_t n)
{
	size_t a = 1, b = n > 100 ? 99 : 1;

	v[0] = (struct iovec){p, a};
	v[1] = (struct iovec){p + a, b};
	v[2] = (struct iovec){p + a + b, n - a - b};
}

struct pump {
	struct rv_transport *tr;
	size_t done, total;
};

/* Sends total bytes that follow from their position, in gathered writes of all sizes. */
static void *
pump_out(void *arg)
{
	static uint8_t buf[65536];
	struct pump *p = arg;
	struct iovec v[3];
	reeve_ssize rc;
	size_t n, i;

	while (p->done < p->total) {
		n = 3 + p->done % (sizeof(buf) - 3);
		if (n > p->total - p->done)
			n = p->total - p->done;
		for (i = 0; i < n; i++)
			buf[i] = (uint8_t)((p->done + i) % 251);
		if (n >= 3) {
			thirds(v, buf, n);
			rc = p->tr->ops->writev(p->tr, v, 3);
		} else {
			rc = put(p->tr, buf, n);
		}
		ck_assert(rc == REEVE_EAGAIN || (rc > 0 && (size_t)rc <= n));
		if (rc == REEVE_EAGAIN)
			wait_for(p->tr, POLLOUT);
		else
			p->done += (size_t)rc;
	}
	return NULL;
}

static void
pump_in(struct rv_transport *tr, size_t total)
{
	static uint8_t buf[70000];
	struct iovec v[3];
	size_t got = 0, wrong = 0, i; /* one assertion a byte would take seconds */
	reeve_ssize rc;

	while (got < total) {
		thirds(v, buf, 3 + got % (sizeof(buf) - 3));
		rc = got % 2 ? get(tr, buf, sizeof(buf)) : tr->ops->readv(tr, v, 3);
		ck_assert(rc == REEVE_EAGAIN || rc > 0);
		if (rc == REEVE_EAGAIN) {
			wait_for(tr, POLLIN);
			continue;
		}
		for (i = 0; i < (size_t)rc; i++, got++)
			wrong += buf[i] != got % 251;
	}
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(partial_reads_and_writes_lose_nothing)
{
	struct rv_transport *a[2];
	pthread_t thread;
	struct pump p;
	int i;

	for (i = 0; i < 2; i++) {
		begin(a, pairs[i]);
		p = (struct pump){a[0], 0, TOTAL};
		ck_assert_int_eq(pthread_create(&thread, NULL, pump_out, &p), 0);
		pump_in(a[1], TOTAL);
		pthread_join(thread, NULL);
		a[0]->ops->close(a[0]);
		wait_for(a[1], POLLIN);
		ck_assert_int_eq(get(a[1], &p, 1), 0);
		a[1]->ops->close(a[1]);
		end();
	}
}
END_TEST

START_TEST(end_comes_after_the_last_bytes)
{
	struct rv_transport *a[2];
	char buf[16];
	int i;

	for (i = 0; i < 2; i++) {
		begin(a, pairs[i]);
		ck_assert_int_eq(put(a[0], "bye", 3), 3);
		a[0]->ops->close(a[0]);
		wait_for(a[1], POLLIN);
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), 3);
		wait_for(a[1], POLLIN);
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), 0);
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), 0);
		a[1]->ops->close(a[1]);
		end();
	}
}
END_TEST

/* The default action of SIGPIPE would end the child that Check forked. */
START_TEST(writing_to_a_closed_peer_is_an_error_and_no_signal)
{
	struct rv_transport *a[2];
	char two[] = "abcd";
	struct iovec v[2] = {{two, 2}, {two + 2, 2}};
	reeve_ssize rc;
	int i;

	signal(SIGPIPE, SIG_DFL);
	for (i = 0; i < 2; i++) {
		begin(a, pairs[i]);
		a[1]->ops->close(a[1]);
		while ((rc = put(a[0], "x", 1)) > 0) /* TCP learns it from the first answer */
			wait_for(a[0], POLLIN);
		assert_broken(rc);
		assert_broken(a[0]->ops->writev(a[0], v, 2));
		a[0]->ops->close(a[0]);
		end();
	}
}
END_TEST

START_TEST(reset_is_told_as_a_system_error)
{
	struct rv_transport *a[2];
	struct linger hard = {1, 0};
	char c;

	begin(a, rvt_tcp_pair);
	ck_assert_int_eq(
	    setsockopt(a[1]->ops->fd(a[1]), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	a[1]->ops->close(a[1]);
	wait_for(a[0], POLLIN);
	ck_assert_int_eq(get(a[0], &c, 1), REEVE_ESYS_BASE - ECONNRESET);
	a[0]->ops->close(a[0]);
	end();
}
END_TEST

static struct rvq_gauge handled;

static void
on_signal(int sig)
{
	(void)sig;
	rvq_gauge_add(&handled, 1);
}

struct storm {
	pthread_t target;
	int fd; /* the other end: has what the target waits for */
	bool drain;
};

/* Interrupts the target STORM times, then lets it go on. */
static void *
rain(void *arg)
{
	static char buf[65536];
	struct storm *s = arg;
	unsigned i;

	/* Again while it was not handled: ThreadSanitizer puts a signal off that comes between calls. */
	for (i = 1; i <= STORM; i++)
		while (rvq_gauge_get(&handled) < i) {
			pthread_kill(s->target, SIGUSR1);
			sched_yield();
		}
	if (s->drain)
		while (recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
	else if (send(s->fd, "abc", 3, 0) != 3)
		abort();
	return NULL;
}

/* One call of the transport in a storm; the descriptor is blocking, so that the call is asleep in it. */
static reeve_ssize
call_in_storm(struct rv_transport *tr, int other, const struct iovec *v, int n, bool writes)
{
	struct storm s = {pthread_self(), other, writes};
	int fd = tr->ops->fd(tr);
	sigset_t usr1;
	pthread_t thread;
	reeve_ssize rc;

	rvq_gauge_sub(&handled, rvq_gauge_get(&handled));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, rain, &s), 0);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	rc = (writes ? tr->ops->writev : tr->ops->readv)(tr, v, n);
	pthread_join(thread, NULL);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return rc;
}

static void
fill(struct rv_transport *tr)
{
	static char buf[65536];

	while (put(tr, buf, sizeof(buf)) > 0)
		;
}

START_TEST(interrupted_calls_are_repeated)
{
	struct sigaction sa = {0};
	struct rv_transport *a[2];
	struct iovec v[2];
	char buf[4];
	int n;

	sa.sa_handler = on_signal; /* no SA_RESTART */
	sigaction(SIGUSR1, &sa, NULL);
	v[0] = (struct iovec){buf, 2};
	v[1] = (struct iovec){buf + 2, 2};
	for (n = 1; n <= 2; n++) {
		begin(a, rvt_unix_pair);
		ck_assert_int_eq(call_in_storm(a[0], a[1]->ops->fd(a[1]), v, n, false), n + 1);
		fill(a[0]);
		ck_assert_int_eq(call_in_storm(a[0], a[1]->ops->fd(a[1]), v, n, true), 2 * n);
		a[0]->ops->close(a[0]);
		a[1]->ops->close(a[1]);
		end();
	}
}
END_TEST

/* What transport.h says about the poller: with edges, the end that came with the last bytes is told by
 * EPOLLRDHUP of the same event, and after a short read the next bytes raise a new edge. */
START_TEST(edge_tells_what_a_short_read_left_out)
{
	struct rv_transport *a[2];
	struct epoll_event ev = {EPOLLIN | EPOLLRDHUP | EPOLLET, {0}};
	char buf[16];
	int ep, i;

	for (i = 0; i < 2; i++) {
		begin(a, pairs[i]);
		ep = epoll_create1(EPOLL_CLOEXEC);
		ev.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
		epoll_ctl(ep, EPOLL_CTL_ADD, a[1]->ops->fd(a[1]), &ev);
		put(a[0], "abc", 3);
		ck_assert_int_eq(epoll_wait(ep, &ev, 1, 10000), 1);
		ck_assert(!(ev.events & EPOLLRDHUP));
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), 3);
		put(a[0], "def", 3);
		shutdown(a[0]->ops->fd(a[0]), SHUT_WR);
		do {
			ck_assert_int_eq(epoll_wait(ep, &ev, 1, 10000), 1);
		} while (!(ev.events & EPOLLRDHUP));
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), 3);
		ck_assert_int_eq(get(a[1], buf, sizeof(buf)), 0);
		close(ep);
		a[0]->ops->close(a[0]);
		a[1]->ops->close(a[1]);
		end();
	}
}
END_TEST

START_TEST(pipe_works_and_its_sigpipe_can_be_blocked)
{
	struct rv_transport *a[2];
	static char buf[65536];
	sigset_t set;

	begin(a, rvt_pipe_pair);
	ck_assert_int_eq(a[0]->short_is_drained, 0);
	ck_assert_int_eq(get(a[0], buf, 1), REEVE_EAGAIN);
	ck_assert_int_eq(put(a[1], "abc", 3), 3);
	ck_assert_int_eq(get(a[0], buf, sizeof(buf)), 3);
	while (put(a[1], buf, sizeof(buf)) > 0)
		;
	ck_assert_int_eq(put(a[1], buf, sizeof(buf)), REEVE_EAGAIN);
	a[0]->ops->close(a[0]);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ck_assert_int_eq(put(a[1], buf, 1), REEVE_ESYS_BASE - EPIPE);
	a[1]->ops->close(a[1]);
	end();
}
END_TEST

START_TEST(failure_leaves_the_descriptor_to_the_caller)
{
	struct rv_transport *tr = NULL;
	int v[2];

	rvt_alloc_init(&t);
	ar = rv_arena_create(&t.a);
	ck_assert_int_eq(rv_fd_transport(&tr, ar, -1), REEVE_ESYS_BASE - EBADF);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, v), 0);
	ck_assert_int_eq(rv_fd_transport(&tr, ar, v[0]), REEVE_EINVAL);
	close(v[0]);
	close(v[1]);
	rvt_unix_pair(v);
	rvt_alloc_fail(&t, 1, true);
	ck_assert_int_eq(rv_fd_transport(&tr, ar, v[0]), REEVE_ENOMEM);
	ck_assert_ptr_null(tr);
	ck_assert(!(fcntl(v[0], F_GETFL) & O_NONBLOCK));
	close(v[0]);
	close(v[1]);
	end();
}
END_TEST

RVT_MAIN("fd", &descriptor_is_made_ready, &nothing_there_and_no_room_are_eagain,
    &partial_reads_and_writes_lose_nothing, &end_comes_after_the_last_bytes,
    &writing_to_a_closed_peer_is_an_error_and_no_signal, &reset_is_told_as_a_system_error,
    &interrupted_calls_are_repeated, &edge_tells_what_a_short_read_left_out,
    &pipe_works_and_its_sigpipe_can_be_blocked, &failure_leaves_the_descriptor_to_the_caller)
