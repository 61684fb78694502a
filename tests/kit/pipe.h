/* pipe.h - two transports joined in memory by a pipe of a few bytes, each end of which can be kept from writing.
 *
 * Check assertions in the functions of the main thread; the transports themselves run on workers. */
#ifndef REEVE_TESTS_KIT_PIPE_H
#define REEVE_TESTS_KIT_PIPE_H

#include <pthread.h>
#include <reeve/reeve.h>
#include <stdbool.h>

#include "tests/kit/node.h"

struct rvt_pipe_end {
	struct rvt_pipe *p;
	int me;
	reeve_ctl_t *k; /* NULL: not there yet, or closed */
	/* what this end has written and the other one not read */
	uint8_t *bytes;
	size_t at, n;
	bool stopped, ended;
};

struct rvt_pipe {
	pthread_mutex_t lock;
	size_t size; /* of each direction */
	struct rvt_pipe_end end[2];
};

/* Two nodes of one worker each, joined by a pipe of that size; rt_cfg NULL and cfg NULL: defaults, else one cfg an end. */
void rvt_pipe_marry(struct rvt_pipe *p, struct rvt_nodes *n, size_t size,
    const reeve_rt_cfg_t *rt_cfg, const reeve_cfg_t *const cfg[2]);
/* As rvt_divorce. */
void rvt_pipe_divorce(struct rvt_pipe *p, struct rvt_nodes *n);
/* From now on the transport of that end takes nothing; or as much again as there is room for. */
void rvt_pipe_stop(struct rvt_pipe *p, int end);
void rvt_pipe_go(struct rvt_pipe *p, int end);

#endif
