/*
 * crew.h - a thread per stream and end in blocking calls, whoever answers them.
 *
 * Writers open and write as fast as the calls return, readers accept and read into 64 KiB, until the pair is aborted.
 */
#ifndef REEVE_PERF_CREW_H
#define REEVE_PERF_CREW_H

#include <sys/types.h>

#include "perf/flow.h"

struct rvp_crew_ops {
	void *(*pair)(const struct rvp_load *l); /* two joined ends */
	void *(*open)(void *pair);               /* NULL: over */
	void *(*accept)(void *pair);
	bool (*write)(void *stream, const void *p, size_t n); /* all of it; false: over */
	ssize_t (*read)(void *stream, void *p, size_t n);     /* some; 0 and less: over */
	void (*close)(void *stream);
	void (*abort)(void *pair); /* every call returns from now on */
	void (*free)(void *pair);  /* nobody is in a call */
	void (*totals)(void *pair, struct rvp_totals *t);
};

void *rvp_crew_start(const struct rvp_load *l, const struct rvp_crew_ops *ops);
uint64_t rvp_crew_received(void *run);
void rvp_crew_totals(void *run, struct rvp_totals *t);
void rvp_crew_stop(void *run);

#endif
