/* messages_run.c - channels streamed between threads, used by one thread, and there and back: see messages.h. */
#include <config.h>

#include "perf/messages.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "actors/actor.h"
#include "perf/flow.h"
#include "queues/spsc.h"

#define STREAM_NS UINT64_C(40000000) /* about what one measurement takes */
#define QUICK     100                /* times less work */

struct rvp_messages rvp_messages;
static struct rvq_cell32 go __attribute__((aligned(64)));

void
rvp_relax(unsigned *tries)
{
	if (++*tries % 64 == 0)
		sched_yield();
	else
		ck_pr_stall();
}

void
rvp_expect(uint64_t sum, unsigned producers, unsigned each)
{
	uint64_t want = (uint64_t)producers * each * ((uint64_t)each + 1) / 2;

	if (sum == want)
		return;
	fprintf(stderr, "messages: the sum of %u x %u words is %llu instead of %llu\n", producers,
	    each, (unsigned long long)sum, (unsigned long long)want);
	exit(EXIT_FAILURE);
}

/* How many words make a measurement, a multiple of a batch and of the depth. */
static unsigned
words_of(const struct rvp_channel *c)
{
	uint64_t n = STREAM_NS / c->ns / (rvp_messages.quick ? QUICK : 1);

	return (unsigned)(n > 2000000 ? 2000000 : n) / RVP_DEPTH * RVP_DEPTH + RVP_DEPTH;
}

/* --- a consumer and producers, each on a thread; one producer and its consumer are bound to two processors --- */

struct party {
	const struct rvp_stream *stream;
	unsigned id, words; /* of a producer; what the consumer is to get */
	uint64_t sum;       /* the consumer's, and when it had all */
	uint64_t done;
};

static void *
produce(void *arg)
{
	struct party *p = arg;
	unsigned tries = 0;

	while (!rvq_cell32_get(&go))
		rvp_relax(&tries);
	p->stream->channel->produce(p->id, p->words, p->stream->batch);
	return NULL;
}

static void *
consume(void *arg)
{
	struct party *p = arg;

	p->sum = p->stream->channel->consume(p->words, p->stream->batch);
	p->done = rvp_now_ns();
	return NULL;
}

double
rvp_run_stream(void *arg)
{
	const struct rvp_stream *s = arg;
	unsigned i, each = words_of(s->channel) / s->producers / RVP_MANY * RVP_MANY + RVP_MANY;
	bool bound = rvp_messages.pin || s->producers == 1;
	struct party producers[RVP_PRODUCERS], consumer;
	pthread_t threads[RVP_PRODUCERS], t;
	uint64_t began;

	if (s->batch > 1)
		each *= 4;
	s->channel->begin();
	rvq_cell32_put(&go, 0);
	for (i = 0; i < s->producers; i++) {
		producers[i] = (struct party){s, i, each, 0, 0};
		rvp_thread(&threads[i], produce, &producers[i], bound ? (int)i + 1 : RVP_ANY_CPU);
	}
	consumer = (struct party){s, 0, each * s->producers, 0, 0};
	rvp_thread(&t, consume, &consumer, bound ? 0 : RVP_ANY_CPU);
	began = rvp_now_ns();
	rvq_cell32_put(&go, 1);
	pthread_join(t, NULL);
	for (i = 0; i < s->producers; i++)
		pthread_join(threads[i], NULL);
	rvp_expect(consumer.sum, s->producers, each);
	return (double)(consumer.done - began) / consumer.words;
}

/* --- one thread --- */

double
rvp_run_alone(void *arg)
{
	const struct rvp_alone *a = arg;
	unsigned n = words_of(a->channel) / a->depth;
	uint64_t began, sum;

	a->channel->begin();
	began = rvp_now_ns();
	sum = a->channel->alone(n, a->depth);
	began = rvp_now_ns() - began;
	rvp_expect(sum, 1, n * a->depth);
	return (double)began / (n * a->depth);
}

static uint64_t handled;

static __attribute__((noinline)) void
handle(uintptr_t word)
{
	handled += word;
}

double
rvp_run_direct(void *arg)
{
	unsigned n = rvp_messages.quick ? 20000 : 2000000, i;
	uint64_t began = rvp_now_ns();

	(void)arg;
	for (i = 1, handled = 0; i <= n; i++)
		handle(i);
	began = rvp_now_ns() - began;
	rvp_expect(handled, 1, n);
	return (double)began / n;
}

double
rvp_run_callback(void *arg)
{
	static void (*volatile call)(uintptr_t) = handle; /* read each time */
	unsigned n = rvp_messages.quick ? 20000 : 2000000, i;
	uint64_t began = rvp_now_ns();

	(void)arg;
	for (i = 1, handled = 0; i <= n; i++)
		call(i);
	began = rvp_now_ns() - began;
	rvp_expect(handled, 1, n);
	return (double)began / n;
}

double
rvp_run_exchange(void *arg)
{
	static struct rvq_cell32 cell __attribute__((aligned(64)));
	unsigned n = rvp_messages.quick ? 10000 : 1000000, i;
	uint64_t began = rvp_now_ns(), sum = 0;

	(void)arg;
	for (i = 1; i <= n; i++)
		sum += rvq_cell32_swap(&cell, i);
	sum += rvq_cell32_swap(&cell, 0);
	began = rvp_now_ns() - began;
	rvp_expect(sum, 1, n);
	return (double)began / n;
}

/* --- there and back: two threads, each bound to a processor --- */

struct caller {
	const struct rvp_channel *channel;
	unsigned n;
	uint64_t sum, took;
};

static void *
echo(void *arg)
{
	const struct caller *c = arg;

	c->channel->echo(c->n);
	return NULL;
}

static void *
call(void *arg)
{
	struct caller *c = arg;

	c->sum = c->channel->call(1, 1); /* the echo is there when the word comes back */
	c->took = rvp_now_ns();
	c->sum += c->channel->call(2, c->n - 1);
	c->took = rvp_now_ns() - c->took;
	return NULL;
}

double
rvp_run_trip(void *arg)
{
	const struct rvp_trip *t = arg;
	struct caller c = {
	    t->channel, (rvp_messages.quick ? t->trips / QUICK : t->trips) + 2, 0, 0};
	pthread_t threads[2];

	t->channel->begin();
	rvp_thread(&threads[1], echo, &c, t->cpu[1]);
	rvp_thread(&threads[0], call, &c, t->cpu[0]);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	rvp_expect(c.sum, 1, c.n);
	return (double)c.took / (c.n - 1);
}

/* --- an actor's mailbox and turns, without a worker --- */

static uint64_t handled_here;

struct note {
	struct rva_msg msg; /* first */
	uint64_t word;
};

static void
here(struct rva_actor *a, struct rvq_node *n)
{
	(void)a;
	handled_here += ((struct note *)(void *)n)->word;
}

/* Posts and runs turns of *depth messages on this thread, without a worker. */
double
rvp_run_turns(void *arg)
{
	static const struct rva_actor_ops ops = {here, NULL, true};
	static struct note notes[RVP_DEPTH];
	unsigned depth = *(unsigned *)arg, n = (rvp_messages.quick ? 4000 : 400000) / depth, i, k;
	uint64_t began, count = 0, word = 0;
	struct rva_actor a;

	rva_actor_init(&a, NULL, &ops);
	handled_here = 0;
	began = rvp_now_ns();
	for (i = 0; i < n; i++) {
		for (k = 0; k < depth; k++) {
			notes[k].word = ++word;
			(void)rvq_mailbox_post_near(&a.mailbox, &notes[k].msg.node);
		}
		while (rva_actor_turn(&a, 64, &count))
			;
	}
	began = rvp_now_ns() - began;
	rvp_expect(handled_here, 1, n * depth);
	return (double)began / (n * depth);
}
