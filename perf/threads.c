/* threads.c - the contender that uses blocking calls: a thread per stream and end, reads into 64 KiB. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "perf/nodes.h"

#define READ_SIZE 65536u

struct crew;

struct hand {
	struct crew *crew;
	pthread_t writer, reader;
	struct rvq_counter received __attribute__((aligned(64))); /* the reader's */
};

struct crew {
	struct rvp_nodes nodes;
	struct rvp_load load;
	struct hand *hands;
};

static void *
write_main(void *arg)
{
	struct hand *h = arg;
	size_t n = h->crew->load.write;
	char *bytes = malloc(n);
	reeve_stream_t *s;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, n);
	rvp_must(reeve_open(h->crew->nodes.ctl[0], &s, -1), "open");
	while (reeve_write(s, bytes, n) == (reeve_ssize)n)
		;
	reeve_close(s);
	free(bytes);
	return NULL;
}

static void *
read_main(void *arg)
{
	struct hand *h = arg;
	char *bytes = malloc(READ_SIZE);
	reeve_stream_t *s;
	reeve_ssize n;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, READ_SIZE);
	rvp_must(reeve_accept(h->crew->nodes.ctl[1], &s, -1), "accept");
	while ((n = reeve_read(s, bytes, READ_SIZE)) > 0)
		rvq_counter_add(&h->received, (uint64_t)n);
	reeve_close(s);
	free(bytes);
	return NULL;
}

static void *
threads_start(const struct rvp_load *l)
{
	struct crew *c = calloc(1, sizeof(*c));
	unsigned i;

	rvp_check(c != NULL, "memory");
	c->load = *l;
	c->hands = aligned_alloc(64, l->streams * sizeof(*c->hands));
	rvp_check(c->hands != NULL, "memory");
	memset(c->hands, 0, l->streams * sizeof(*c->hands));
	rvp_nodes_open_load(&c->nodes, l);
	for (i = 0; i < l->streams; i++) {
		c->hands[i].crew = c;
		rvp_thread(&c->hands[i].reader, read_main, &c->hands[i], l->pin ? 1 : RVP_ANY_CPU);
		rvp_thread(&c->hands[i].writer, write_main, &c->hands[i], l->pin ? 0 : RVP_ANY_CPU);
	}
	return c;
}

static uint64_t
threads_received(void *run)
{
	struct crew *c = run;
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < c->load.streams; i++)
		sum += rvq_counter_get(&c->hands[i].received);
	return sum;
}

static void
threads_totals(void *run, struct rvp_totals *t)
{
	rvp_nodes_totals(&((struct crew *)run)->nodes, t);
}

static void
threads_stop(void *run)
{
	struct crew *c = run;
	unsigned i;

	rvp_nodes_abort(&c->nodes);
	for (i = 0; i < c->load.streams; i++) {
		pthread_join(c->hands[i].writer, NULL);
		pthread_join(c->hands[i].reader, NULL);
	}
	rvp_nodes_close(&c->nodes);
	free(c->hands);
	free(c);
}

const struct rvp_flow rvp_threads_flow = {
    "threads", threads_start, threads_received, threads_totals, threads_stop};
