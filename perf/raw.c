/*
 * raw.c - the transport alone: one thread that writes, one that reads, each in a non-blocking epoll loop.
 *
 * The loops ask until the kernel says that there is no more, then wait for the edge.  The reader reads
 * every byte into the same 64 KiB.
 */
#include <config.h>

#include "perf/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 65536u

struct raw {
	int fd[2];
	size_t write;
	pthread_t threads[2];
	struct rvq_cell32 stop;
	struct rvq_counter received __attribute__((aligned(64)));
};

static int
watch(int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events | EPOLLET};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	rvp_check(ep >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0,
	    "epoll");
	return ep;
}

static void *
raw_write(void *arg)
{
	struct raw *r = arg;
	int ep = watch(r->fd[0], EPOLLOUT);
	char *bytes = malloc(r->write);
	struct epoll_event ev;
	size_t at = 0;
	ssize_t n;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, r->write);
	while (!rvq_cell32_get_relaxed(&r->stop)) {
		n = send(r->fd[0], bytes + at, r->write - at, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			(void)epoll_wait(ep, &ev, 1, -1);
		else if (n < 0)
			break;
		else
			at = at + (size_t)n == r->write ? 0 : at + (size_t)n;
	}
	close(ep);
	free(bytes);
	return NULL;
}

static void *
raw_read(void *arg)
{
	struct raw *r = arg;
	int ep = watch(r->fd[1], EPOLLIN);
	char *bytes = malloc(READ_SIZE);
	struct epoll_event ev;
	ssize_t n;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, READ_SIZE);
	while (!rvq_cell32_get_relaxed(&r->stop)) {
		n = recv(r->fd[1], bytes, READ_SIZE, 0);
		if (n < 0 && errno == EAGAIN)
			(void)epoll_wait(ep, &ev, 1, -1);
		else if (n <= 0)
			break;
		else
			rvq_counter_add(&r->received, (uint64_t)n);
	}
	close(ep);
	free(bytes);
	return NULL;
}

static void *
raw_start(const struct rvp_load *l, size_t write, bool bare)
{
	struct raw *r = aligned_alloc(64, (sizeof(*r) + 63) & ~(size_t)63);

	rvp_check(r != NULL, "memory");
	memset(r, 0, sizeof(*r));
	r->write = write;
	if (bare)
		rvp_sockets_bare(l->transport, r->fd);
	else
		rvp_sockets(l->transport, r->fd);
	rvp_thread(&r->threads[1], raw_read, r, l->pin ? 1 : RVP_ANY_CPU);
	rvp_thread(&r->threads[0], raw_write, r, l->pin ? 0 : RVP_ANY_CPU);
	return r;
}

static void *
plain_start(const struct rvp_load *l)
{
	return raw_start(l, 65536, false);
}

static void *
same_start(const struct rvp_load *l)
{
	return raw_start(l, l->write, false);
}

static void *
strong_start(const struct rvp_load *l)
{
	return raw_start(l, 1u << 20, false);
}

static void *
bare_start(const struct rvp_load *l)
{
	return raw_start(l, 1u << 20, true);
}

static uint64_t
raw_received(void *run)
{
	return rvq_counter_get(&((struct raw *)run)->received);
}

static void
raw_stop(void *run)
{
	struct raw *r = run;

	rvq_cell32_put(&r->stop, 1);
	shutdown(r->fd[0], SHUT_RDWR);
	shutdown(r->fd[1], SHUT_RDWR);
	pthread_join(r->threads[0], NULL);
	pthread_join(r->threads[1], NULL);
	close(r->fd[0]);
	close(r->fd[1]);
	free(r);
}

const struct rvp_flow rvp_raw_plain = {"plain", plain_start, raw_received, NULL, raw_stop};
const struct rvp_flow rvp_raw_same = {"same", same_start, raw_received, NULL, raw_stop};
const struct rvp_flow rvp_raw_strong = {"strong", strong_start, raw_received, NULL, raw_stop};
const struct rvp_flow rvp_raw_bare = {"bare", bare_start, raw_received, NULL, raw_stop};
