/* threads.c - the contender that uses the library's blocking calls: a thread per stream and end. */
#include <config.h>

#include <stdlib.h>

#include "perf/crew.h"
#include "perf/nodes.h"

static void *
pair(const struct rvp_load *l)
{
	struct rvp_nodes *n = malloc(sizeof(*n));

	rvp_check(n != NULL, "memory");
	rvp_nodes_open_load(n, l);
	return n;
}

static void *
open_one(void *nodes)
{
	reeve_stream_t *s;

	return reeve_open(((struct rvp_nodes *)nodes)->ctl[0], &s, -1) < 0 ? NULL : s;
}

static void *
accept_one(void *nodes)
{
	reeve_stream_t *s;

	return reeve_accept(((struct rvp_nodes *)nodes)->ctl[1], &s, -1) < 0 ? NULL : s;
}

static bool
write_all(void *stream, const void *p, size_t n)
{
	return reeve_write(stream, p, n) == (reeve_ssize)n;
}

static ssize_t
read_some(void *stream, void *p, size_t n)
{
	return (ssize_t)reeve_read(stream, p, n);
}

static void
close_one(void *stream)
{
	reeve_close(stream);
}

static void
abort_pair(void *nodes)
{
	rvp_nodes_abort(nodes);
}

static void
free_pair(void *nodes)
{
	rvp_nodes_close(nodes);
	free(nodes);
}

static void
totals(void *nodes, struct rvp_totals *t)
{
	rvp_nodes_totals(nodes, t);
}

static const struct rvp_crew_ops ops = {
    pair, open_one, accept_one, write_all, read_some, close_one, abort_pair, free_pair, totals};

static void *
start(const struct rvp_load *l)
{
	return rvp_crew_start(l, &ops);
}

const struct rvp_flow rvp_threads_flow = {
    "threads", start, rvp_crew_received, rvp_crew_totals, rvp_crew_stop};
