/* siege.h - a hostile peer at one connection, and an honest one that echoes beside it on the same worker.
 *
 * The runtime under siege has one worker, so that whatever the attacker costs is taken from the honest connection too.
 * Check assertions inside: main thread of a test, which is the attacker. */
#ifndef REEVE_TESTS_KIT_SIEGE_H
#define REEVE_TESTS_KIT_SIEGE_H

#include <pthread.h>
#include <reeve/reeve.h>

#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/peer.h"

#define RVT_ECHO_MS 2000 /* the honest connection's longest round trip, times REEVE_TEST_SLOW */

struct rvt_siege {
	struct rvt_alloc alloc;
	reeve_rt_t *rt; /* under siege */
	reeve_conn_t *c;
	reeve_ctl_t *k; /* borrowed from c */
	struct rvt_peer p;
	struct rvt_base base;
	unsigned threads; /* once everything stood */
	uint64_t from;    /* bytes out of the allocator then */
	uint64_t peak;    /* the most above that, at any look */
	/* the honest connection */
	reeve_rt_t *far;
	reeve_conn_t *hc[2]; /* [0] is far away, [1] in rt */
	reeve_stream_t *hs[2];
	struct rvt_flow echo;
	pthread_t prober;
	pthread_mutex_t lock;
	bool stop, lost;
	uint64_t probes, worst_us;
};

/* Zeroed, cfg and rt_cfg NULL: defaults (rt_cfg: workers and allocator are set here).  role: ours at the attacked
 * connection. */
void rvt_siege_begin(
    struct rvt_siege *s, int role, const reeve_cfg_t *cfg, const reeve_rt_cfg_t *rt_cfg);
/* One more attacker at the same runtime. */
void rvt_siege_join(
    struct rvt_siege *s, reeve_conn_t **c, struct rvt_peer *p, int role, const reeve_cfg_t *cfg);
/* What is out of the allocator now, above what there was at the beginning; keeps the peak. */
uint64_t rvt_siege_memory(struct rvt_siege *s);
/* Round trips of the honest connection until now. */
uint64_t rvt_siege_probes(struct rvt_siege *s);
/* And the longest of them, microseconds. */
uint64_t rvt_siege_worst_us(struct rvt_siege *s);
/* The honest connection was never held up and no thread was made; everything goes; descriptors, threads and memory
 * are what they were. */
void rvt_siege_end(struct rvt_siege *s);

/* Send what is in p->out; false: the other end is gone, and p->out is empty.  Reads nothing when read is false. */
bool rvt_hurl(struct rvt_peer *p, bool read);
/* Wait until the connection has counted so many frames; false: it has ended. */
bool rvt_frames_in(reeve_ctl_t *k, uint64_t n);
/* Processor nanoseconds of all threads of the process but the calling one. */
uint64_t rvt_others_cpu_ns(void);
/* The connection ends (deadline), with this answer and a reason with that id. */
void rvt_ended_with(reeve_ctl_t *k, int rc, const char *id);

#endif
