/* poller_epoll.c - the poller on epoll, edge-triggered: one registration for a descriptor's life, no call per wait. */
#include <config.h>

#include "actors/poller.h"

#include <errno.h>
#include <unistd.h>

#include <reeve/error.h>

int
rva_poller_init(struct rva_poller *p)
{
	p->fd = epoll_create1(EPOLL_CLOEXEC);
	return p->fd < 0 ? REEVE_ESYS_BASE - errno : 0;
}

void
rva_poller_fini(struct rva_poller *p)
{
	close(p->fd);
	p->fd = -1;
}

int
rva_poller_add(struct rva_poller *p, int fd, struct rva_source *s)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = s};

	return epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? REEVE_ESYS_BASE - errno : 0;
}

int
rva_poller_add_bell(struct rva_poller *p, int fd, struct rva_source *s)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = s};

	return epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? REEVE_ESYS_BASE - errno : 0;
}

void
rva_poller_remove(struct rva_poller *p, int fd)
{
	(void)epoll_ctl(p->fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Whole milliseconds to wait, rounded up so that a timer is due when we come back. */
static int
wait_ms(uint64_t now, uint64_t deadline)
{
	uint64_t ms;

	if (deadline == UINT64_MAX)
		return -1;
	if (deadline <= now)
		return 0;
	ms = (deadline - now + 999) / 1000;
	return ms > 3600000 ? 3600000 : (int)ms;
}

unsigned
rva_poller_wait(struct rva_poller *p, struct rva_events *e, uint64_t now, uint64_t deadline)
{
	e->n = epoll_wait(p->fd, e->ev, sizeof(e->ev) / sizeof(e->ev[0]), wait_ms(now, deadline));
	return e->n > 0 ? (unsigned)e->n : 0;
}

void
rva_poller_tell(struct rva_events *e)
{
	for (int i = 0; i < e->n; i++) {
		struct rva_source *s = e->ev[i].data.ptr;
		uint32_t got = e->ev[i].events;
		int events = 0;

		if (got & EPOLLIN)
			events |= RVA_READ;
		if (got & EPOLLOUT)
			events |= RVA_WRITE;
		if (got & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			events |= RVA_HUP | RVA_READ | RVA_WRITE;
		s->ready(s, events);
	}
	e->n = 0;
}
