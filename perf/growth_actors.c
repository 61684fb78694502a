/* growth_actors.c - very many actors: what one holds, and what a post to each in turn costs until all have run. */
#include <config.h>

#include "perf/growth.h"

#include <stdlib.h>
#include <string.h>

#include <reeve/actor.h>

#include "perf/nodes.h"
#include "queues/latch.h"

/* Posts of one measurement: several rounds over few actors, each of them waited for. */
#define POSTS 1000000u

struct crowd {
	reeve_rt_t *rt;
	unsigned n, got; /* got: the worker's */
	reeve_actor_t **actors, *speaker;
	reeve_msg_t *messages, kick;
	struct rvq_latch done;
};

static void
hear(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct crowd *c = arg;

	(void)self;
	if (msg != NULL && ++c->got == c->n)
		rvq_latch_set(&c->done);
}

static void
speak(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct crowd *c = arg;

	(void)self;
	for (unsigned i = 0; msg != NULL && i < c->n; i++)
		reeve_actor_post(c->actors[i], &c->messages[i]);
}

static double
speak_once(struct crowd *c)
{
	uint64_t began = rvp_now_ns();

	c->got = 0;
	rvq_latch_init(&c->done);
	reeve_actor_post(c->speaker, &c->kick);
	(void)rvq_latch_wait(&c->done, UINT64_MAX);
	return (double)(rvp_now_ns() - began) / c->n;
}

static void
crowd_open(struct crowd *c, unsigned n)
{
	reeve_rt_cfg_t cfg;

	memset(c, 0, sizeof(*c));
	reeve_rt_cfg_init(&cfg);
	cfg.workers = 1;
	rvp_must(reeve_rt_create(&c->rt, &cfg), "runtime");
	c->n = n;
	c->actors = calloc(n, sizeof(*c->actors));
	c->messages = calloc(n, sizeof(*c->messages));
	rvp_check(c->actors != NULL && c->messages != NULL, "memory");
	rvp_must(reeve_actor_spawn(&c->speaker, c->rt, speak, c, NULL), "actor");
}

static void
crowd_close(struct crowd *c)
{
	reeve_actor_unref(c->speaker);
	for (unsigned i = 0; i < c->n; i++)
		reeve_actor_unref(c->actors[i]);
	reeve_rt_destroy(c->rt);
	free(c->actors);
	free(c->messages);
}

void
rvp_growth_actors(void)
{
	struct rvp_curve posts = {.n = 0}, bytes = {.n = 0};

	for (unsigned n = 1; n <= (rvp_growth.quick ? 1000u : 1000000u); n *= 10) {
		static double ns[RVP_ROUNDS_MAX];
		unsigned rounds = 32;
		struct crowd c;
		uint64_t heap;

		crowd_open(&c, n);
		heap = rvp_heap(c.rt);
		for (unsigned i = 0; i < n; i++)
			rvp_must(reeve_actor_spawn(&c.actors[i], c.rt, hear, &c, NULL), "actor");
		heap = rvp_heap(c.rt) - heap;
		if (rounds > POSTS / n + 2)
			rounds = POSTS / n + 2;
		(void)speak_once(&c);
		for (unsigned r = 0; r < rounds; r++)
			ns[r] = speak_once(&c);
		rvp_check(c.got == n, "an actor heard something twice");
		rvp_grown(RVP_GROWN("actors", "post", "time", "ns", n),
		    rvp_quantile(ns, rounds, 0.5),
		    n >= 1000 ? &posts
			      : NULL); /* below, the one wake-up of a round is most of it */
		rvp_grown(RVP_GROWN("actors", "allocated", "bytes", "B", n), (double)heap / n,
		    n >= 100 ? &bytes : NULL);
		crowd_close(&c);
	}
	rvp_grown_exponent("actors", "post", &posts);
	rvp_grown_exponent("actors", "allocated", &bytes);
}
