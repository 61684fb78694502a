/* open.h - streams that carry a byte there and back. */
#ifndef REEVE_PERF_OPEN_H
#define REEVE_PERF_OPEN_H

#include <stdbool.h>

#include "perf/kit.h"

/* By round: microseconds a stream, and from the call that opens one until its answer is there. */
struct rvp_echoes {
	double us[RVP_ROUNDS_MAX], p50[RVP_ROUNDS_MAX], p99[RVP_ROUNDS_MAX];
};

/* One measurement over TCP, by operations, 64 at once.  shared: both ends on one runtime with so many workers; 0: a runtime
 * of one worker an end. */
void rvp_open_echo(struct rvp_echoes *e, unsigned round, unsigned shared, bool quick, bool pin);

#endif
