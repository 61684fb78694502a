/* beside_threads.c - a ping-pong beside bulk by blocking calls: a thread for each end of each stream. */
#include <config.h>

#include "perf/beside.h"

#include <stdlib.h>
#include <string.h>

#include "perf/kit.h"

#define BULK_MAX 64u

struct lane {
	struct crew *crew;
	reeve_stream_t *out, *in;
	pthread_t writer, reader;
};

struct crew {
	struct rvp_beside *b;
	reeve_stream_t *client, *server;
	pthread_t asks, answers;
	struct lane lanes[BULK_MAX];
};

static bool
read_all(reeve_stream_t *s, uint8_t *p, size_t n)
{
	reeve_ssize got;

	for (size_t at = 0; at < n; at += (size_t)got)
		if ((got = reeve_read(s, p + at, n - at)) <= 0)
			return false;
	return true;
}

static void *
ask_main(void *arg)
{
	struct crew *c = arg;
	uint8_t bytes[RVP_BESIDE_PING] = {0};
	uint64_t from;
	bool more = true;

	for (uint64_t i = 1; more; i++) {
		memcpy(bytes, &i, sizeof(i));
		from = rvp_now_ns();
		rvp_must(reeve_write(c->client, bytes, sizeof(bytes)), "write");
		rvp_check(read_all(c->client, bytes, sizeof(bytes)), "read");
		more = rvp_beside_sample(c->b, rvp_now_ns() - from);
		rvp_check(memcmp(bytes, &i, sizeof(i)) == 0, "answer");
	}
	return NULL;
}

static void *
answer_main(void *arg)
{
	struct crew *c = arg;
	uint8_t bytes[RVP_BESIDE_PING];

	while (read_all(c->server, bytes, sizeof(bytes)))
		if (reeve_write(c->server, bytes, sizeof(bytes)) < 0)
			break;
	return NULL;
}

static void *
write_main(void *arg)
{
	struct lane *l = arg;
	uint8_t *bytes = malloc(RVP_BESIDE_BULK);
	uint64_t began = rvp_now_ns(), sent = 0;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, RVP_BESIDE_BULK);
	while (reeve_write(l->out, bytes, RVP_BESIDE_BULK) == (reeve_ssize)RVP_BESIDE_BULK) {
		sent += RVP_BESIDE_BULK;
		rvp_beside_pace(l->crew->b, began, sent);
	}
	free(bytes);
	return NULL;
}

static void *
read_main(void *arg)
{
	struct lane *l = arg;
	uint8_t *bytes = malloc(RVP_BESIDE_BULK);
	reeve_ssize n;

	rvp_check(bytes != NULL, "memory");
	while ((n = reeve_read(l->in, bytes, RVP_BESIDE_BULK)) > 0) {
		rvp_check(bytes[0] == 1 && bytes[n - 1] == 1, "bulk");
		(void)rvq_gauge_add(&l->crew->b->received, (uint64_t)n);
	}
	free(bytes);
	return NULL;
}

/* The streams come in the order in which they were opened. */
static void
pair(struct crew *c, reeve_stream_t **out, reeve_stream_t **in)
{
	rvp_must(reeve_open(c->b->nodes.ctl[0], out, -1), "open");
	rvp_must(reeve_accept(c->b->nodes.ctl[1], in, -1), "accept");
}

static void *
threads_start(struct rvp_beside *b)
{
	struct crew *c = calloc(1, sizeof(*c));

	rvp_check(c != NULL && b->bulk <= BULK_MAX, "memory");
	c->b = b;
	pair(c, &c->client, &c->server);
	rvp_thread(&c->answers, answer_main, c, RVP_ANY_CPU);
	for (unsigned i = 0; i < b->bulk; i++) {
		struct lane *l = &c->lanes[i];

		l->crew = c;
		pair(c, &l->out, &l->in);
		rvp_thread(&l->reader, read_main, l, RVP_ANY_CPU);
		rvp_thread(&l->writer, write_main, l, RVP_ANY_CPU);
	}
	rvp_thread(&c->asks, ask_main, c, RVP_ANY_CPU);
	return c;
}

static void
threads_stop(void *run)
{
	struct crew *c = run;

	pthread_join(c->asks, NULL);
	rvp_nodes_abort(&c->b->nodes);
	pthread_join(c->answers, NULL);
	for (unsigned i = 0; i < c->b->bulk; i++) {
		pthread_join(c->lanes[i].writer, NULL);
		pthread_join(c->lanes[i].reader, NULL);
		reeve_close(c->lanes[i].out);
		reeve_close(c->lanes[i].in);
	}
	reeve_close(c->client);
	reeve_close(c->server);
	rvp_nodes_close(&c->b->nodes);
	free(c);
}

const struct rvp_beside_kind rvp_beside_threads = {"threads", 0, threads_start, threads_stop};
