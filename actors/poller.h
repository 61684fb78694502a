/* poller.h - edge-triggered readiness of descriptors.  Owner: one worker. */
#ifndef REEVE_ACTORS_POLLER_H
#define REEVE_ACTORS_POLLER_H

#include <stdint.h>
#include <sys/epoll.h>

#define RVA_READ  1
#define RVA_WRITE 2
#define RVA_HUP   4 /* the peer ended its direction, or an error: read until the end */

/* Told by the poller on its worker, with RVA_* or-ed. */
struct rva_source {
	void (*ready)(struct rva_source *s, int events);
};

struct rva_poller {
	int fd; /* epoll */
};

/* What was ready; told by rva_poller_tell. */
struct rva_events {
	int n;
	struct epoll_event ev[64];
};

int rva_poller_init(struct rva_poller *p);
void rva_poller_fini(struct rva_poller *p);
/* Watch fd for both directions until removed (or closed); s is told of every edge.  0 or a system error.  Any
 * thread. */
int rva_poller_add(struct rva_poller *p, int fd, struct rva_source *s);
/* Watch an eventfd that nobody reads: every write to it is an edge of its own. */
int rva_poller_add_bell(struct rva_poller *p, int fd, struct rva_source *s);
void rva_poller_remove(struct rva_poller *p, int fd);
/* Wait until deadline (us of CLOCK_MONOTONIC; 0: do not wait; UINT64_MAX: for ever).  Returns how many are to be told, by
 * the next call: until then nothing that was added is freed. */
unsigned rva_poller_wait(
    struct rva_poller *p, struct rva_events *e, uint64_t now, uint64_t deadline);
void rva_poller_tell(struct rva_events *e);

#endif
