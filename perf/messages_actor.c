/* messages_actor.c - messages between actors, through the public calls: see messages.h.
 *
 * One runtime with two workers.  Streams of messages are bounded by credit: the receiver gives a batch back with one
 * message.  Threads use a message again when its receiver has given it back. */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <reeve/actor.h>

#include "perf/messages.h"
#include "perf/nodes.h"
#include "queues/latch.h"

#define BATCH   64 /* messages answered by one credit */
#define BATCHES 8  /* batches on their way */
#define LINE    64

static struct rvp_nodes nodes; /* nodes.ctl[0] is at home on one worker, ctl[1] on the other */
static struct rvq_latch finished;

static void
wait_finished(void)
{
	(void)rvq_latch_wait(&finished, UINT64_MAX);
}

/* Every turn that began before is over, on both workers. */
static void
settle(void)
{
	uint64_t us;

	rvp_must(reeve_ping(nodes.ctl[0], -1, &us), "ping");
	rvp_must(reeve_ping(nodes.ctl[1], -1, &us), "ping");
}

static reeve_actor_t *
spawn(unsigned worker, reeve_actor_fn fn, void *arg)
{
	reeve_actor_t *a;

	rvp_must(reeve_actor_spawn(&a, nodes.rt[0], fn, arg, nodes.ctl[worker]), "actor");
	return a;
}

static void *
memory(size_t size)
{
	void *p = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);

	rvp_check(p != NULL, "memory");
	return memset(p, 0, size);
}

/* --- the workers' processors --- */

static cpu_set_t everywhere;

struct binding {
	unsigned cpu;
	bool bound;
};

static void
bind_here(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	const struct binding *b = arg;

	(void)self;
	if (msg == NULL)
		return;
	if (b->bound)
		rvp_pin(b->cpu);
	else
		(void)sched_setaffinity(0, sizeof(everywhere), &everywhere);
	rvq_latch_set(&finished);
}

/* Binds each worker to a processor of its own, or lets it run on all again. */
static void
bind_workers(bool bound)
{
	struct binding b = {0, bound};
	reeve_actor_t *a;
	reeve_msg_t msg;

	if (rvp_messages.pin && !bound)
		return;
	for (b.cpu = 0; b.cpu < 2; b.cpu++) {
		a = spawn(b.cpu, bind_here, &b);
		rvq_latch_init(&finished);
		reeve_actor_post(a, &msg);
		wait_finished();
		reeve_actor_unref(a);
		settle();
	}
}

void
rvp_actors_open(void)
{
	rvp_check(sched_getaffinity(0, sizeof(everywhere), &everywhere) == 0, "affinity");
	rvp_nodes_open(&nodes, RVP_MEMORY, NULL, false);
	if (rvp_messages.pin)
		bind_workers(true);
}

void
rvp_actors_close(void)
{
	rvp_nodes_close(&nodes);
}

/* --- one message, back and forth --- */

struct ball {
	reeve_msg_t msg; /* first */
	uint64_t touched;
};

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
	((struct ball *)(void *)msg)->touched++;
	if (p->left-- > 0)
		reeve_actor_post(p->other, msg);
	else
		rvq_latch_set(&finished);
}

double
rvp_run_actor_trip(void *arg)
{
	const struct rvp_actors *a = arg;
	unsigned n = a->there == 0 ? 400000 : 1600, i;
	struct ball ball = {.touched = 0};
	struct player p[2];
	uint64_t began;

	if (rvp_messages.quick)
		n /= 100;
	if (a->bound)
		bind_workers(true);
	for (i = 0; i < 2; i++) {
		p[i].left = n / 2;
		p[i].self = spawn(i * a->there, play, &p[i]);
	}
	p[0].other = p[1].self;
	p[1].other = p[0].self;
	rvq_latch_init(&finished);
	began = rvp_now_ns();
	reeve_actor_post(p[0].self, &ball.msg);
	wait_finished();
	began = rvp_now_ns() - began;
	reeve_actor_unref(p[0].self);
	reeve_actor_unref(p[1].self);
	settle();
	if (a->bound)
		bind_workers(false);
	rvp_check(ball.touched == n + 1, "a message came more or less often than it was sent");
	return (double)began * 2 / n;
}

/* --- one way: a sender that uses up its credit, a receiver that returns it by the batch --- */

struct way {
	reeve_actor_t *from, *to;
	unsigned batches, carry, stride;
	unsigned char *letters; /* BATCHES * BATCH of struct letter, stride apart */
	reeve_msg_t credits[BATCHES];
	uint64_t sent;                               /* words, the sender's */
	unsigned got __attribute__((aligned(LINE))); /* messages, the receiver's as the rest */
	uint64_t sum;
};

struct letter {
	reeve_msg_t msg; /* first */
	uint64_t words[RVP_MANY];
};

static void
way_from(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct letter *l;
	struct way *w = arg;
	unsigned slot, i, k;

	(void)self;
	if (msg == NULL || w->sent == (uint64_t)w->batches * BATCH * w->carry)
		return;
	slot = (unsigned)(msg - w->credits) * BATCH;
	for (i = 0; i < BATCH; i++) {
		l = (struct letter *)(void *)(w->letters + (size_t)(slot + i) * w->stride);
		for (k = 0; k < w->carry; k++)
			l->words[k] = ++w->sent;
		reeve_actor_post(w->to, &l->msg);
	}
}

static void
way_to(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	const struct letter *l = (struct letter *)(void *)msg;
	struct way *w = arg;
	unsigned k;

	(void)self;
	if (msg == NULL)
		return;
	for (k = 0; k < w->carry; k++)
		w->sum += l->words[k];
	if (++w->got % BATCH == 0) /* the last one of a batch: its place says of which */
		reeve_actor_post(w->from,
		    &w->credits[(size_t)((const unsigned char *)l - w->letters) / w->stride /
			BATCH]);
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

/* Nanoseconds per word, and wakes per 1000 messages. */
static void
run_way(const struct rvp_actors *a, double *ns, double *woken)
{
	struct way *w = memory(sizeof(*w));
	uint64_t began, before;
	unsigned i;

	w->carry = a->carry;
	w->stride =
	    ((unsigned)(offsetof(struct letter, words) + a->carry * sizeof(uint64_t)) + LINE - 1) /
	    LINE * LINE;
	w->letters = memory((size_t)BATCHES * BATCH * w->stride);
	w->batches = (rvp_messages.quick ? 4000u : 200000u) / BATCH;
	w->from = spawn(0, way_from, w);
	w->to = spawn(a->there, way_to, w);
	if (a->bound)
		bind_workers(true);
	rvq_latch_init(&finished);
	before = wakes();
	began = rvp_now_ns();
	for (i = 0; i < BATCHES; i++)
		reeve_actor_post(w->from, &w->credits[i]);
	wait_finished();
	*ns = (double)(rvp_now_ns() - began) / (w->batches * BATCH * w->carry);
	*woken = (double)(wakes() - before) * 1000 / (w->batches * BATCH);
	reeve_actor_unref(w->from);
	reeve_actor_unref(w->to);
	settle();
	if (a->bound)
		bind_workers(false);
	rvp_expect(w->sum, 1, w->batches * BATCH * w->carry);
	free(w->letters);
	free(w);
}

double
rvp_run_actor_way(void *arg)
{
	double ns, woken;

	run_way(arg, &ns, &woken);
	return ns;
}

double
rvp_run_actor_wakes(void *arg)
{
	double ns, woken;

	run_way(arg, &ns, &woken);
	return woken;
}

/* --- from threads --- */

struct card {
	reeve_msg_t msg; /* first */
	uint64_t word;
	struct rvq_cell32 busy;
} __attribute__((aligned(LINE)));

static struct pool {
	struct card cards[RVP_QUEUE];
} pools[RVP_PRODUCERS];

static struct {
	reeve_actor_t *actor;
	struct rvq_cell64 *seen; /* or NULL */
	uint64_t sum, got;
	uint64_t words;      /* the last one ends it, or */
	unsigned last_words; /* the last of these */
} to;

static void
to_on(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct card *c = (struct card *)(void *)msg;
	uint64_t word;

	(void)self;
	(void)arg;
	if (msg == NULL)
		return;
	word = c->word;
	rvq_cell32_put(&c->busy, 0);
	to.sum += word;
	to.got++;
	if (to.seen != NULL)
		rvq_cell64_put(to.seen, to.got);
	if (word == 0 ? --to.last_words == 0 : to.got == to.words)
		rvq_latch_set(&finished);
}

static void
post_word(unsigned id, uint64_t word)
{
	struct card *c = &pools[id].cards[word % RVP_QUEUE];
	unsigned tries = 0;

	while (rvq_cell32_get(&c->busy))
		rvp_relax(&tries);
	rvq_cell32_put(&c->busy, 1);
	c->word = word;
	reeve_actor_post(to.actor, &c->msg);
}

struct poster {
	unsigned id, n;
};

static void *
post(void *arg)
{
	const struct poster *p = arg;
	unsigned i;

	for (i = 1; i <= p->n; i++)
		post_word(p->id, i);
	return NULL;
}

/* The turn that handled the last message is over when the actor is let go. */
static void
to_begin(uint64_t words, unsigned last_words, struct rvq_cell64 *seen)
{
	memset(&to, 0, sizeof(to));
	to.words = words;
	to.last_words = last_words;
	to.seen = seen;
	to.actor = spawn(0, to_on, NULL);
	rvq_latch_init(&finished);
}

static void
to_end(void)
{
	wait_finished();
	reeve_actor_unref(to.actor);
	settle();
}

double
rvp_run_actor_threads(void *arg)
{
	unsigned producers = *(unsigned *)arg, n = (rvp_messages.quick ? 2000 : 200000) / producers,
		 i;
	struct poster posters[RVP_PRODUCERS];
	pthread_t threads[RVP_PRODUCERS];
	bool bound = rvp_messages.pin || producers == 1;
	uint64_t began;

	if (bound)
		bind_workers(true);
	to_begin((uint64_t)n * producers, 0, NULL);
	began = rvp_now_ns();
	for (i = 0; i < producers; i++) {
		posters[i] = (struct poster){i, n};
		rvp_thread(&threads[i], post, &posters[i], bound ? (int)i + 1 : RVP_ANY_CPU);
	}
	wait_finished();
	began = rvp_now_ns() - began;
	for (i = 0; i < producers; i++)
		pthread_join(threads[i], NULL);
	to_end();
	if (bound)
		bind_workers(false);
	rvp_expect(to.sum, producers, n);
	return (double)began / (n * producers);
}

void
rvp_actor_flood_begin(unsigned producers, struct rvq_cell64 *seen)
{
	to_begin(0, producers, seen);
}

uint64_t
rvp_actor_flood(unsigned id, const struct rvq_cell32 *stop)
{
	uint64_t word, sum = 0;

	for (word = 1; !rvq_cell32_get_relaxed(stop); word++) {
		post_word(id, word);
		sum += word;
	}
	post_word(id, 0);
	return sum;
}

uint64_t
rvp_actor_flood_end(void)
{
	to_end();
	return to.sum;
}

/* --- to a worker that sleeps --- */

static struct {
	reeve_actor_t *actor;
	struct rvq_cell64 *ran;
	reeve_msg_t msg;
} sleeper;

static void
sleeper_on(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)arg;
	if (msg == &sleeper.msg)
		rvq_cell64_put(sleeper.ran, rvp_now_ns());
}

void
rvp_actor_wake_begin(struct rvq_cell64 *ran)
{
	sleeper.ran = ran;
	sleeper.actor = spawn(0, sleeper_on, NULL);
}

void
rvp_actor_wake_post(void)
{
	reeve_actor_post(sleeper.actor, &sleeper.msg);
}

void
rvp_actor_wake_end(void)
{
	reeve_actor_unref(sleeper.actor);
	settle();
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

static double
speak_once(struct crowd *c)
{
	uint64_t began = rvp_now_ns();
	reeve_msg_t kick;

	c->got = 0;
	rvq_latch_init(&finished);
	reeve_actor_post(c->speaker, &kick);
	wait_finished();
	began = rvp_now_ns() - began;
	settle();
	rvp_check(c->got == c->size, "an actor heard something twice");
	return (double)began / c->size;
}

void
rvp_report_crowd(unsigned rounds)
{
	struct crowd c = {.size = rvp_messages.quick ? 2000 : 100000};
	struct rvp_cell cell = {
	    "messages", "many actors, first time", "actor", "time", "ns", c.size};
	double ns[RVP_ROUNDS_MAX], bytes;
	uint64_t rss, heap;
	unsigned i;

	c.actors = memory(c.size * sizeof(*c.actors));
	c.messages = memory(c.size * sizeof(*c.messages));
	rss = rvp_rss();
	heap = rvp_heap(nodes.rt[0]);
	for (i = 0; i < c.size; i++)
		c.actors[i] = spawn(0, hear, &c);
	heap = rvp_heap(nodes.rt[0]) - heap;
	rss = rvp_rss() - rss;
	c.speaker = spawn(0, speak, &c);
	ns[0] = speak_once(&c);
	rvp_cell_print(&cell, ns, 1);
	for (i = 0; i < rounds; i++)
		ns[i] = speak_once(&c);
	cell.row = "many actors";
	rvp_cell_print(&cell, ns, rounds);
	cell = (struct rvp_cell){"messages", "idle actor", "allocated", "bytes", "B", c.size};
	bytes = (double)heap / c.size;
	rvp_cell_print(&cell, &bytes, 1);
	cell.contender = "resident";
	bytes = (double)rss / c.size;
	rvp_cell_print(&cell, &bytes, 1);
	reeve_actor_unref(c.speaker);
	for (i = 0; i < c.size; i++)
		reeve_actor_unref(c.actors[i]);
	settle();
	free(c.actors);
	free(c.messages);
}
