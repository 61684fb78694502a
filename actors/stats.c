/* stats.c - counters of connections and the runtime, read while they count; buffers that need the runtime's pools. */
#include <config.h>

#include <string.h>

#include <reeve/buf.h>

#include "actors/connection.h"
#include "lib/alloc.h"
#include "lib/check.h"

void
rva_conn_stats(struct reeve_conn *c, reeve_stats_t *out)
{
	const struct rv_engine_stats *e = rvq_cellptr_get(&c->stats);

	out->streams_open = rvq_counter_get(&e->streams_open);
	out->streams_opened = rvq_counter_get(&e->opened);
	out->streams_accepted = rvq_counter_get(&e->accepted);
	out->streams_refused = rvq_counter_get(&e->refused);
	out->resets_in = rvq_counter_get(&e->resets_in);
	out->resets_out = rvq_counter_get(&e->resets_out);
	out->bytes_in = rvq_counter_get(&e->bytes_in);
	out->bytes_out = rvq_counter_get(&e->bytes_out);
	out->frames_in = rvq_counter_get(&e->frames_in);
	out->frames_out = rvq_counter_get(&e->frames_out);
	out->reads = rvq_counter_get(&c->reads);
	out->writes = rvq_counter_get(&c->writes);
	out->bytes_copied_in = rvq_counter_get(&c->copied_in);
	out->bytes_copied_out = rvq_gauge_get(&c->copied_out) + rvq_counter_get(&e->copied_out);
	out->held = rvq_gauge_get(&c->budget->held);
	out->unread = rvq_counter_get(&e->unread);
	out->window_max = rvq_counter_get(&e->window_max);
	out->stalls_window = rvq_counter_get(&e->stalls_window);
	out->stalls_transport = rvq_counter_get(&c->stalls);
	out->pings_in = rvq_counter_get(&e->pings_in);
	out->pongs_dropped = rvq_counter_get(&e->pongs_dropped);
	out->rtt_us = rvq_counter_get(&e->rtt_us);
	out->messages = rvq_counter_get(&c->messages);
}

void
rva_stats_add(reeve_stats_t *sum, const reeve_stats_t *one)
{
	uint64_t *s = &sum->size;
	const uint64_t *o = &one->size;

	for (size_t i = 1; i < sizeof(*sum) / sizeof(*s); i++)
		s[i] += o[i];
}

/* The caller's struct may be older (shorter) or newer (longer: zeroes) than ours. */
static int
give(reeve_stats_t *out, const reeve_stats_t *st)
{
	uint64_t size = out->size;

	memset((char *)out + sizeof(size), 0, size - sizeof(size));
	memcpy((char *)out + sizeof(size), (const char *)st + sizeof(size),
	    (size < sizeof(*st) ? size : sizeof(*st)) - sizeof(size));
	return 0;
}

int
reeve_ctl_stats(reeve_ctl_t *k, reeve_stats_t *out)
{
	reeve_stats_t st;

	REEVE_REQUIRE(
	    k != NULL && out != NULL && out->size >= 2 * sizeof(uint64_t) && out->size <= 65536,
	    REEVE_EINVAL);
	memset(&st, 0, sizeof(st));
	rva_conn_stats(k->conn, &st);
	return give(out, &st);
}

int
reeve_rt_stats(reeve_rt_t *rt, reeve_stats_t *out)
{
	reeve_stats_t st, one;

	REEVE_REQUIRE(
	    rt != NULL && out != NULL && out->size >= 2 * sizeof(uint64_t) && out->size <= 65536,
	    REEVE_EINVAL);
	REEVE_REQUIRE(rva_rt_alive(rt) == 0, REEVE_EFORKED);
	pthread_mutex_lock(&rt->lock);
	st = rt->past;
	for (struct reeve_conn *c = rt->conns; c != NULL; c = c->next) {
		memset(&one, 0, sizeof(one));
		rva_conn_stats(c, &one);
		rva_stats_add(&st, &one);
	}
	pthread_mutex_unlock(&rt->lock);
	for (unsigned i = 0; i < rt->nworkers; i++) {
		st.messages += rvq_counter_get(&rt->workers[i].messages);
		st.wakes += rvq_gauge_get(&rt->workers[i].wakes);
	}
	st.connections = rvq_gauge_get(&rt->nconns);
	st.held = rvq_gauge_get(&rt->budget->held);
	st.blocks_allocated = rv_arena_allocs(rt->arena);
	return give(out, &st);
}

reeve_buf_t *
reeve_buf_alloc(reeve_rt_t *rt, size_t size)
{
	struct rv_pool *p;

	REEVE_REQUIRE(rt != NULL && rva_rt_alive(rt) == 0, NULL);
	p = rva_rt_pool(rt);
	return p == NULL ? NULL : rv_buf_alloc(p, size);
}

reeve_buf_t *
reeve_buf_wrap(reeve_rt_t *rt, const void *p, size_t n, void (*done)(void *ctx), void *ctx)
{
	REEVE_REQUIRE(rt != NULL && rva_rt_alive(rt) == 0, NULL);
	return rv_buf_wrap(rt->arena, p, n, done, ctx);
}
