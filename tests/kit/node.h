/* node.h - two nodes of ours, married with one call over any transport.
 *
 * Check assertions inside: main thread of a test.  With REEVE_TEST_NOISE=1 in the environment every couple whose
 * configurations ask for no upgrade speaks Noise. */
#ifndef REEVE_TESTS_KIT_NODE_H
#define REEVE_TESTS_KIT_NODE_H

#include <reeve/reeve.h>

#include "tests/kit/base.h"
#include "tests/kit/line.h"
#include "tests/kit/rechunk.h"

enum rvt_via {
	RVT_PAIR, /* reeve_conn_pair: one runtime only */
	RVT_MEMORY,
	RVT_UNIX,
	RVT_TCP,
	RVT_SOCKETPAIR,
	RVT_RECHUNK,        /* descriptor with the poller */
	RVT_RECHUNK_THREAD, /* readiness told by a thread */
	RVT_VIAS
};
extern const char *const rvt_via_name[RVT_VIAS];

/* Zeroed: two runtimes with one worker each, default configurations, joined by reeve_conn_pair. */
struct rvt_wedding {
	enum rvt_via via;
	bool one_rt;      /* one runtime for both */
	unsigned workers; /* of each runtime; 0: one */
	unsigned chunk;   /* bytes at once (rechunk); 0: 7 */
	uint32_t seed;    /* of the rechunk */
	const reeve_cfg_t *cfg[2];
	const struct rvt_line_cfg
	    *line; /* RVT_TCP: through a line (its to is ignored); NULL: none */
};

/* [0] dials, [1] listens. */
struct rvt_nodes {
	reeve_rt_t *rt[2]; /* the same twice with one_rt */
	reeve_conn_t *c[2];
	reeve_ctl_t *k[2];     /* borrowed from c */
	struct rvt_line *line; /* up is from [0] to [1] */
	struct rvt_rechunk re[2];
	bool rechunked;
	struct rvt_base base;
};
void rvt_marry(struct rvt_nodes *n, const struct rvt_wedding *w);
/* Destroy what is left.  Descriptors and threads are what they were before. */
void rvt_divorce(struct rvt_nodes *n);
/* Both ends close gracefully, at once, and both succeed; then as rvt_divorce. */
void rvt_part(struct rvt_nodes *n);
/* Open a stream at one end and accept it at the other: s[end] opened it. */
void rvt_stream_pair(struct rvt_nodes *n, int end, reeve_stream_t *s[2]);
void rvt_close_both(reeve_stream_t *s[2]);
/* Neither end has a stream any more; and neither has reset one. */
void rvt_settled(struct rvt_nodes *n);
void rvt_settled_clean(struct rvt_nodes *n);
/* A request over a stream, half-close, an answer of size bytes to its end; settled, clean. */
void rvt_ask_and_answer(struct rvt_nodes *n, uint32_t size);
/* A fresh address of the kind (RVT_MEMORY, RVT_UNIX or RVT_TCP) to listen on; unix: in a folder that rvt_scratch_end
 * removes. */
void rvt_scratch(enum rvt_via via, char *out, size_t n);
void rvt_scratch_end(void);

#endif
