/* rechunk.h - an application's transport that makes everything small: reads and writes take at most n bytes, and
 * now and then there is nothing (REEVE_EAGAIN) although there is.
 *
 * Two ways to tell readiness: the descriptor is given to the poller and the made-up EAGAINs are announced at once;
 * or there is no descriptor and a thread of its own announces everything. */
#ifndef REEVE_TESTS_KIT_RECHUNK_H
#define REEVE_TESTS_KIT_RECHUNK_H

#include <pthread.h>
#include <reeve/conn.h>
#include <stdbool.h>

struct rvt_rechunk {
	int fd;
	unsigned n;      /* bytes at once */
	bool own_thread; /* no descriptor for the poller */
	uint32_t seed;
	/* own */
	reeve_ctl_t *k;
	pthread_t thread;
	pthread_mutex_t lock;
	int want; /* the thread's: REEVE_READABLE | REEVE_WRITABLE to announce */
	bool quit, closed;
	int wake[2];
	uint64_t calls, lies;
};

/* Fill in fd (stream socket; the transport's until fini), n, own_thread and seed, then make it. */
void rvt_rechunk_init(struct rvt_rechunk *t, reeve_transport_t *out);
/* After the library has closed it (or never took it). */
void rvt_rechunk_fini(struct rvt_rechunk *t);

#endif
