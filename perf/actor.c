/*
 * actor.c - what a message between actors costs.
 *
 * Through the public calls: on one worker, across workers, from a thread, to a sleeping worker, to very
 * many actors; beside them the mailbox and a turn alone, and the round trip of a cache line in the same
 * rounds, which is what any message across processors must cost twice over.  Streams of messages are
 * bounded by credit: the receiver gives a batch back with one message.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <reeve/actor.h>

#include "actors/actor.h"
#include "perf/kit.h"
#include "perf/nodes.h"
#include "queues/latch.h"
#include "queues/spsc.h"

#define BATCH      64 /* messages answered by one credit */
#define BATCHES    8  /* batches on their way */
#define PARKED_MAX 4096

static struct rvp_options options;
static struct rvp_nodes
    nodes; /* one runtime, two workers: nodes.ctl[0] is at home on one, ctl[1] on the other */
static struct rvq_latch finished;

static void
wait_finished(void)
{
	(void)rvq_latch_wait(&finished, UINT64_MAX);
}

/* --- ping-pong: one message, back and forth --- */

struct player {
	reeve_actor_t *self, *other;
	unsigned left; /* posts to make */
};

static void
play(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct player *p = arg;

	(void)self;
	if (msg == NULL)
		return;
	if (p->left-- > 0)
		reeve_actor_post(p->other, msg);
	else
		rvq_latch_set(&finished);
}

/* Nanoseconds per message; arg: the second player's controller. */
static double
run_ping_pong(void *arg)
{
	reeve_ctl_t *homes[2] = {nodes.ctl[0], *(reeve_ctl_t **)arg};
	unsigned n = homes[0] == homes[1] ? 400000 : 20000, i;
	struct player p[2];
	reeve_msg_t msg;
	uint64_t began;

	if (options.quick)
		n /= 10;
	for (i = 0; i < 2; i++) {
		p[i].left = n / 2;
		rvp_must(
		    reeve_actor_spawn(&p[i].self, nodes.rt[0], play, &p[i], homes[i]), "actor");
	}
	p[0].other = p[1].self;
	p[1].other = p[0].self;
	rvq_latch_init(&finished);
	began = rvp_now_ns();
	reeve_actor_post(p[0].self, &msg);
	wait_finished();
	began = rvp_now_ns() - began;
	reeve_actor_unref(p[0].self);
	reeve_actor_unref(p[1].self);
	return (double)began / n;
}

/* --- one way: a sender that uses up its credit, a receiver that returns it by the batch --- */

struct way {
	reeve_actor_t *from, *to;
	reeve_msg_t messages[BATCHES][BATCH], credits[BATCHES];
	unsigned sent, got,
	    batches; /* sent: batches, the sender's; got: messages, the receiver's */
	uint64_t wakes;
};

static void
send_batch(struct way *w, unsigned slot)
{
	unsigned i;

	w->sent++;
	for (i = 0; i < BATCH; i++)
		reeve_actor_post(w->to, &w->messages[slot][i]);
}

static void
way_from(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct way *w = arg;

	(void)self;
	if (msg != NULL && w->sent < w->batches)
		send_batch(w, (unsigned)(msg - w->credits));
}

static void
way_to(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct way *w = arg;

	(void)self;
	if (msg == NULL)
		return;
	if (++w->got % BATCH == 0) /* the last one of a batch: its place says of which */
		reeve_actor_post(w->from, &w->credits[(msg - &w->messages[0][0]) / BATCH]);
	if (w->got == w->batches * BATCH)
		rvq_latch_set(&finished);
}

static uint64_t
wakes(void)
{
	reeve_stats_t s = {.size = sizeof(s)};

	rvp_must(reeve_rt_stats(nodes.rt[0], &s), "stats");
	return s.wakes;
}

static double wakes_per_1000; /* of the run before */

/* Nanoseconds per message; arg: the receiver's controller. */
static double
run_one_way(void *arg)
{
	reeve_ctl_t *to = *(reeve_ctl_t **)arg;
	struct way *w = calloc(1, sizeof(*w));
	uint64_t began, woken;
	unsigned i;
	double took;

	rvp_check(w != NULL, "memory");
	w->batches = (options.quick ? 40000u : 400000u) / BATCH;
	rvp_must(reeve_actor_spawn(&w->from, nodes.rt[0], way_from, w, nodes.ctl[0]), "actor");
	rvp_must(reeve_actor_spawn(&w->to, nodes.rt[0], way_to, w, to), "actor");
	rvq_latch_init(&finished);
	woken = wakes();
	began = rvp_now_ns();
	for (i = 0; i < BATCHES; i++)
		reeve_actor_post(w->from, &w->credits[i]);
	wait_finished();
	took = (double)(rvp_now_ns() - began) / (w->batches * BATCH);
	wakes_per_1000 = (double)(wakes() - woken) * 1000 / (w->batches * BATCH);
	reeve_actor_unref(w->from);
	reeve_actor_unref(w->to);
	/* Their last turns look at w. */
	rvp_must(reeve_ping(nodes.ctl[0], -1, &woken), "ping");
	rvp_must(reeve_ping(nodes.ctl[1], -1, &woken), "ping");
	free(w);
	return took;
}

/* --- from a thread, streamed --- */

struct letter {
	reeve_msg_t msg; /* first */
	struct rvq_cell32 busy;
} __attribute__((aligned(64)));

struct post {
	reeve_actor_t *to;
	struct letter letters[BATCH * BATCHES];
	unsigned got, want;
};

static void
post_to(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct post *p = arg;

	(void)self;
	if (msg == NULL)
		return;
	rvq_cell32_put(&((struct letter *)(void *)msg)->busy, 0);
	if (++p->got == p->want)
		rvq_latch_set(&finished);
}

static double
run_from_thread(void *arg)
{
	struct post *p = aligned_alloc(64, sizeof(*p));
	uint64_t began, woken;
	struct letter *l;
	unsigned i;
	double took;

	(void)arg;
	rvp_check(p != NULL, "memory");
	memset(p, 0, sizeof(*p));
	p->want = options.quick ? 20000 : 200000;
	rvp_must(reeve_actor_spawn(&p->to, nodes.rt[0], post_to, p, nodes.ctl[0]), "actor");
	rvq_latch_init(&finished);
	began = rvp_now_ns();
	for (i = 0; i < p->want; i++) {
		l = &p->letters[i % (BATCH * BATCHES)];
		while (rvq_cell32_get(&l->busy))
			sched_yield();
		rvq_cell32_put(&l->busy, 1);
		reeve_actor_post(p->to, &l->msg);
	}
	wait_finished();
	took = (double)(rvp_now_ns() - began) / p->want;
	reeve_actor_unref(p->to);
	rvp_must(reeve_ping(nodes.ctl[0], -1, &woken), "ping");
	free(p);
	return took;
}

/* --- to a worker that sleeps --- */

struct call {
	struct rvq_cell64 ran; /* when, or 0 */
};

static void
called(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct call *c = arg;

	(void)self;
	if (msg != NULL)
		rvq_cell64_put(&c->ran, rvp_now_ns());
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
report_parked(void)
{
	static double cost[PARKED_MAX], delay[PARKED_MAX];
	unsigned n = options.quick ? 200 : 2000, i;
	struct timespec quiet = {0, 500000}, look = {0, 20000};
	struct call c = {{0}};
	reeve_actor_t *a;
	reeve_msg_t msg;
	uint64_t from, posted;

	rvp_must(reeve_actor_spawn(&a, nodes.rt[0], called, &c, nodes.ctl[0]), "actor");
	for (i = 0; i < n; i++) {
		nanosleep(&quiet, NULL); /* the worker has nothing to do and parks */
		rvq_cell64_put(&c.ran, 0);
		from = rvp_now_ns();
		reeve_actor_post(a, &msg);
		posted = rvp_now_ns();
		while (rvq_cell64_get(&c.ran) == 0)
			nanosleep(&look, NULL);
		cost[i] = (double)(posted - from);
		delay[i] = (double)(rvq_cell64_get(&c.ran) - from);
	}
	reeve_actor_unref(a);
	qsort(cost, n, sizeof(cost[0]), compare);
	qsort(delay, n, sizeof(delay[0]), compare);
	rvp_print("actor", "post to a parked worker, sender p50", "ns", cost[n / 2], n);
	rvp_print("actor", "post to a parked worker, sender p99", "ns", cost[n * 99 / 100], n);
	rvp_print("actor", "post to a parked worker, until it runs p50", "ns", delay[n / 2], n);
	rvp_print(
	    "actor", "post to a parked worker, until it runs p99", "ns", delay[n * 99 / 100], n);
}

/* --- very many actors --- */

struct crowd {
	unsigned size, got;
	reeve_actor_t **actors, *speaker;
	reeve_msg_t *messages;
};

static void
hear(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct crowd *c = arg;

	(void)self;
	if (msg != NULL && ++c->got == c->size)
		rvq_latch_set(&finished);
}

static void
speak(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct crowd *c = arg;
	unsigned i;

	(void)self;
	for (i = 0; msg != NULL && i < c->size; i++)
		reeve_actor_post(c->actors[i], &c->messages[i]);
}

static void
report_crowd(void)
{
	struct crowd c = {.size = options.quick ? 10000 : 100000};
	unsigned i, round, rounds = options.rounds;
	double ns[RVP_ROUNDS_MAX + 1], first = 0;
	uint64_t rss, heap, us;
	reeve_msg_t kick;

	c.actors = calloc(c.size, sizeof(*c.actors));
	c.messages = calloc(c.size, sizeof(*c.messages));
	rvp_check(c.actors != NULL && c.messages != NULL, "memory");
	memset(c.messages, 1, c.size * sizeof(*c.messages));
	memset(c.actors, 1, c.size * sizeof(*c.actors));
	rss = rvp_rss();
	heap = rvp_heap(nodes.rt[0]);
	for (i = 0; i < c.size; i++)
		rvp_must(
		    reeve_actor_spawn(&c.actors[i], nodes.rt[0], hear, &c, nodes.ctl[0]), "actor");
	heap = rvp_heap(nodes.rt[0]) - heap;
	rss = rvp_rss() - rss;
	rvp_must(reeve_actor_spawn(&c.speaker, nodes.rt[0], speak, &c, nodes.ctl[0]), "actor");
	for (round = 0; round <= rounds; round++) {
		c.got = 0;
		rvq_latch_init(&finished);
		ns[round] = (double)rvp_now_ns();
		reeve_actor_post(c.speaker, &kick);
		wait_finished();
		ns[round] = ((double)rvp_now_ns() - ns[round]) / c.size;
		if (round == 0)
			first = ns[0];
	}
	rvp_print("actor", "to many actors, first time", "ns/message", first, 1);
	rvp_print(
	    "actor", "to many actors", "ns/message", rvp_quantile(ns + 1, rounds, 0.5), rounds);
	rvp_print("actor", "idle actor, allocated", "bytes", (double)heap / c.size, c.size);
	rvp_print("actor", "idle actor, resident", "bytes", (double)rss / c.size, c.size);
	reeve_actor_unref(c.speaker);
	for (i = 0; i < c.size; i++)
		reeve_actor_unref(c.actors[i]);
	rvp_must(reeve_ping(nodes.ctl[0], -1, &us), "ping");
	free(c.actors);
	free(c.messages);
}

/* --- the parts alone --- */

static unsigned handled_here;

static void
here(struct rva_actor *a, struct rvq_node *n)
{
	(void)a;
	(void)n;
	handled_here++;
}

/* Posts and runs turns of *depth messages on this thread, without a worker. */
static double
run_turns(void *arg)
{
	static const struct rva_actor_ops ops = {here, NULL, true};
	static struct rva_msg messages[64];
	unsigned depth = *(unsigned *)arg, n = (options.quick ? 100000 : 400000) / depth, i, k;
	struct rva_actor a;
	uint64_t began, count = 0;

	rva_actor_init(&a, NULL, &ops);
	handled_here = 0;
	began = rvp_now_ns();
	for (i = 0; i < n; i++) {
		for (k = 0; k < depth; k++)
			(void)rvq_mailbox_post_mpsc(&a.mailbox, &messages[k].node);
		while (rva_actor_turn(&a, 64, &count))
			;
	}
	began = rvp_now_ns() - began;
	rvp_check(handled_here == n * depth, "messages were lost");
	return (double)began / (n * depth);
}

static struct rvq_cell32 ball __attribute__((aligned(64)));

static void *
bounce(void *arg)
{
	uint32_t i, n = *(uint32_t *)arg;

	for (i = 0; i < n; i++) {
		while (rvq_cell32_get(&ball) != 2 * i + 1)
			ck_pr_stall();
		rvq_cell32_put(&ball, 2 * i + 2);
	}
	return NULL;
}

/* Nanoseconds of a cache line's way to another thread and back. */
static double
run_cache_line(void *arg)
{
	uint32_t i, n = options.quick ? 5000 : 20000;
	pthread_t t;
	uint64_t began;

	(void)arg;
	rvq_cell32_put(&ball, 0);
	rvp_thread(&t, bounce, &n, options.pin ? 1 : RVP_ANY_CPU);
	rvq_cell32_put(&ball, 1); /* it is there when the ball comes back */
	while (rvq_cell32_get(&ball) != 2)
		ck_pr_stall();
	began = rvp_now_ns();
	for (i = 1; i < n; i++) {
		rvq_cell32_put(&ball, 2 * i + 1);
		while (rvq_cell32_get(&ball) != 2 * i + 2)
			ck_pr_stall();
	}
	began = rvp_now_ns() - began;
	pthread_join(t, NULL);
	return (double)began / (n - 1);
}

static double
run_wakes(void *arg)
{
	(void)run_one_way(arg);
	return wakes_per_1000;
}

int
main(int argc, char **argv)
{
	static unsigned single = 1, many = 64;
	static struct rvp_case cases[] = {
	    {"cache-line round trip", "ns", run_cache_line, NULL, {0}},
	    {"mailbox and turn alone, depth 1", "ns/message", run_turns, &single, {0}},
	    {"mailbox and turn alone, depth 64", "ns/message", run_turns, &many, {0}},
	    {"same worker, ping-pong", "ns/message", run_ping_pong, &nodes.ctl[0], {0}},
	    {"same worker, one way", "ns/message", run_one_way, &nodes.ctl[0], {0}},
	    {"across workers, ping-pong", "ns/message", run_ping_pong, &nodes.ctl[1], {0}},
	    {"across workers, one way", "ns/message", run_one_way, &nodes.ctl[1], {0}},
	    {"across workers, one way", "wakes/1000 messages", run_wakes, &nodes.ctl[1], {0}},
	    {"from a thread, one way", "ns/message", run_from_thread, NULL, {0}},
	};
	const size_t n = sizeof(cases) / sizeof(cases[0]);

	rvp_options(&options, argc, argv);
	rvp_nodes_open(&nodes, RVP_MEMORY, NULL, false);
	rvp_rounds(cases, n, options.rounds);
	rvp_report("actor", cases, n, options.rounds);
	report_parked();
	report_crowd();
	rvp_nodes_close(&nodes);
	return EXIT_SUCCESS;
}
