/*
 * queue.c - what an item costs to hand over: our queues, and the usual ones beside them.
 *
 * Unless the name says "same thread" each figure is nanoseconds per item from producers to one
 * consumer, in steady state.  The cache-line round trip of the same run is the yardstick for
 * those, an atomic exchange for the same-thread ones.  The last part runs four producers freely on
 * whatever processors there are and looks for windows of 100 ms in which the queue nearly stood
 * still.
 */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "perf/kit.h"
#include "queues/cell.h"
#include "queues/mailbox.h"
#include "queues/spsc.h"
#include "queues/stack.h"

#define RING      8192
#define SMALL     64
#define QUEUE     1024
#define BATCH     16
#define POOL      1024
#define PRODUCERS 4
#define WINDOW_NS UINT64_C(100000000)
#define WINDOWS   50

RVQ_RING_DEFINE(word, void *)

/* A message in either kind of list; its producer may use it again when busy is 0. */
struct letter {
	union {
		struct rvq_node node;
		struct rvq_link link;
	} u; /* first */
	struct rvq_cell32 busy;
} __attribute__((aligned(64)));

static struct rvp_options options;
static struct rvq_ring ring;
static void *slots[RING];
static struct rvq_mailbox mailbox __attribute__((aligned(64)));
static struct letter pools[PRODUCERS][POOL];
static struct rvq_cell32 go __attribute__((aligned(64))), stop;

/* The other way to make a mailbox: a take-all stack, and what was taken of it, oldest first. */
static struct {
	struct rvq_stack stack;
	struct rvq_link *taken;
} pile __attribute__((aligned(64)));

static struct rvq_cell32 ball __attribute__((aligned(64)));
static int pipe_fds[2], event_fd;

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t filled, drained;
	void *slots[QUEUE];
	unsigned head, tail;
} locked = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {NULL}, 0, 0};

/* Waits a moment: spins while that can help, gives the processor away when it does not. */
static void
relax(unsigned *tries)
{
	if (++*tries % 64 == 0)
		sched_yield();
	else
		ck_pr_stall();
}

static struct letter *
next_letter(unsigned producer, unsigned i)
{
	struct letter *l = &pools[producer][i % POOL];
	unsigned tries = 0;

	while (rvq_cell32_get(&l->busy)) {
		if (rvq_cell32_get_relaxed(&stop))
			return NULL;
		relax(&tries);
	}
	rvq_cell32_put(&l->busy, 1);
	return l;
}

static void
spsc_produce(unsigned id, unsigned n)
{
	void *item = &ring;
	unsigned tries = 0;

	(void)id;
	while (n > 0) {
		if (word_push_spsc(&ring, slots, &item))
			n--;
		else
			relax(&tries);
	}
}

static void
spsc_consume(unsigned n)
{
	unsigned tries = 0;
	void *item;

	while (n > 0) {
		if (word_pop_spsc(&ring, slots, &item))
			n--;
		else
			relax(&tries);
	}
}

static void
batch_produce(unsigned id, unsigned n)
{
	void *items[BATCH] = {&ring};
	unsigned tries = 0, done, left;

	(void)id;
	for (; n > 0; n -= BATCH) {
		for (left = BATCH; left > 0; left -= done) {
			done = word_push_batch_spsc(&ring, slots, items, left);
			if (done == 0)
				relax(&tries);
		}
	}
}

static void
batch_consume(unsigned n)
{
	unsigned tries = 0, done;
	void *items[BATCH];

	for (; n > 0; n -= done) {
		done = word_pop_batch_spsc(&ring, slots, items, BATCH);
		if (done == 0)
			relax(&tries);
	}
}

static void
mailbox_produce(unsigned id, unsigned n)
{
	struct letter *l;
	unsigned i;

	for (i = 0; i < n && (l = next_letter(id, i)) != NULL; i++)
		rvq_mailbox_post_mpsc(&mailbox, &l->u.node);
}

static void
mailbox_consume(unsigned n)
{
	struct rvq_node *node;
	unsigned tries = 0;

	while (n > 0) {
		node = rvq_mailbox_pop_mpsc(&mailbox);
		if (node == NULL) {
			relax(&tries);
			continue;
		}
		rvq_cell32_put(&((struct letter *)(void *)node)->busy, 0);
		n--;
	}
}

static struct rvq_link *
pile_pop(void)
{
	struct rvq_link *l = pile.taken;

	if (l == NULL)
		l = rvq_stack_take_fifo_mpsc(&pile.stack);
	if (l != NULL)
		pile.taken = l->next;
	return l;
}

static void
pile_produce(unsigned id, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		rvq_stack_push_mpsc(&pile.stack, &next_letter(id, i)->u.link);
}

static void
pile_consume(unsigned n)
{
	unsigned tries = 0;
	struct rvq_link *l;

	while (n > 0) {
		l = pile_pop();
		if (l == NULL) {
			relax(&tries);
			continue;
		}
		rvq_cell32_put(&((struct letter *)(void *)l)->busy, 0);
		n--;
	}
}

static void
locked_produce(unsigned id, unsigned n)
{
	(void)id;
	while (n-- > 0) {
		pthread_mutex_lock(&locked.mutex);
		while (locked.tail - locked.head == QUEUE)
			pthread_cond_wait(&locked.drained, &locked.mutex);
		locked.slots[locked.tail++ % QUEUE] = &locked;
		pthread_cond_signal(&locked.filled);
		pthread_mutex_unlock(&locked.mutex);
	}
}

static void
locked_consume(unsigned n)
{
	while (n-- > 0) {
		pthread_mutex_lock(&locked.mutex);
		while (locked.tail == locked.head)
			pthread_cond_wait(&locked.filled, &locked.mutex);
		locked.head++;
		pthread_cond_signal(&locked.drained);
		pthread_mutex_unlock(&locked.mutex);
	}
}

static void
pipe_produce(unsigned id, unsigned n)
{
	void *item = &ring;

	(void)id;
	while (n-- > 0)
		if (write(pipe_fds[1], &item, sizeof(item)) != sizeof(item))
			abort();
}

static void
pipe_consume(unsigned n)
{
	void *item;

	while (n-- > 0)
		if (read(pipe_fds[0], &item, sizeof(item)) != sizeof(item))
			abort();
}

/* A ring whose every push is announced on an eventfd. */
static void
event_produce(unsigned id, unsigned n)
{
	uint64_t one = 1;

	while (n-- > 0) {
		spsc_produce(id, 1);
		if (write(event_fd, &one, sizeof(one)) != sizeof(one))
			abort();
	}
}

static void
event_consume(unsigned n)
{
	uint64_t count;

	for (; n > 0; n -= (unsigned)count) {
		if (read(event_fd, &count, sizeof(count)) != sizeof(count))
			abort();
		spsc_consume((unsigned)count);
	}
}

/* The ball is odd when it is the other side's turn. */
static void
bounce_produce(unsigned id, unsigned n)
{
	uint32_t i;

	(void)id;
	for (i = 0; i < n; i++) {
		while (rvq_cell32_get(&ball) != 2 * i + 1)
			ck_pr_stall();
		rvq_cell32_put(&ball, 2 * i + 2);
	}
}

static void
bounce_consume(unsigned n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		rvq_cell32_put(&ball, 2 * i + 1);
		while (rvq_cell32_get(&ball) != 2 * i + 2)
			ck_pr_stall();
	}
	rvq_cell32_put(&ball, 0);
}

struct channel {
	void (*produce)(unsigned id, unsigned n);
	void (*consume)(unsigned n);
	unsigned producers, items;
	unsigned slots; /* of the ring, if it uses that */
};

struct producer {
	const struct channel *channel;
	unsigned id, items;
};

static void *
produce(void *arg)
{
	struct producer *p = arg;
	unsigned tries = 0;

	if (options.pin)
		rvp_pin(p->id + 1);
	while (!rvq_cell32_get(&go))
		relax(&tries);
	p->channel->produce(p->id, p->items);
	return NULL;
}

static void
start(pthread_t *threads, struct producer *producers, const struct channel *c, unsigned items)
{
	unsigned i;

	rvq_cell32_put(&go, 0);
	for (i = 0; i < c->producers; i++) {
		producers[i] = (struct producer){c, i, items};
		if (pthread_create(&threads[i], NULL, produce, &producers[i]) != 0)
			abort();
	}
}

static void
join(pthread_t *threads, unsigned n)
{
	while (n-- > 0)
		pthread_join(threads[n], NULL);
}

/* Nanoseconds per item. */
static double
run_channel(void *arg)
{
	const struct channel *c = arg;
	unsigned each = (options.quick ? c->items / 4 : c->items) / c->producers / BATCH * BATCH;
	struct producer producers[PRODUCERS];
	pthread_t threads[PRODUCERS];
	uint64_t began, took;

	if (c->slots > 0)
		rvq_ring_init(&ring, c->slots);
	start(threads, producers, c, each);
	began = rvp_now_ns();
	rvq_cell32_put(&go, 1);
	c->consume(each * c->producers);
	took = rvp_now_ns() - began;
	join(threads, c->producers);
	return (double)took / (each * c->producers);
}

/* Fills and empties a list of *depth items on this thread: nanoseconds per item, both ways. */
static double
run_mailbox_alone(void *arg)
{
	unsigned depth = *(unsigned *)arg, round,
		 rounds = (options.quick ? 100000 : 400000) / depth;
	uint64_t began = rvp_now_ns();
	unsigned i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < depth; i++)
			rvq_mailbox_post_mpsc(&mailbox, &pools[0][i].u.node);
		for (i = 0; i < depth; i++)
			rvq_mailbox_pop_mpsc(&mailbox);
	}
	return (double)(rvp_now_ns() - began) / (rounds * depth);
}

static double
run_pile_alone(void *arg)
{
	unsigned depth = *(unsigned *)arg, round,
		 rounds = (options.quick ? 100000 : 400000) / depth;
	uint64_t began = rvp_now_ns();
	unsigned i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < depth; i++)
			rvq_stack_push_mpsc(&pile.stack, &pools[0][i].u.link);
		for (i = 0; i < depth; i++)
			pile_pop();
	}
	return (double)(rvp_now_ns() - began) / (rounds * depth);
}

static double
run_exchange(void *arg)
{
	unsigned i, n = options.quick ? 100000 : 400000;
	uint64_t began = rvp_now_ns();

	(void)arg;
	for (i = 0; i < n; i++)
		rvq_cell32_swap(&ball, 0);
	return (double)(rvp_now_ns() - began) / n;
}

/* Free-running producers: items per second, and the windows in which fewer than 0.3 of the mean
 * came. */
static double
run_freely(unsigned count, unsigned windows, unsigned *starved)
{
	struct channel c = {mailbox_produce, mailbox_consume, count, 0, 0};
	unsigned seen[WINDOWS] = {0}, tries = 0, i;
	struct producer producers[PRODUCERS];
	pthread_t threads[PRODUCERS];
	struct rvq_node *node;
	uint64_t began, at, total = 0;

	start(threads, producers, &c, UINT32_MAX);
	began = rvp_now_ns();
	rvq_cell32_put(&go, 1);
	while ((at = (rvp_now_ns() - began) / WINDOW_NS) < windows) {
		for (i = 0; i < 64; i++) {
			node = rvq_mailbox_pop_mpsc(&mailbox);
			if (node == NULL) {
				relax(&tries);
				break;
			}
			rvq_cell32_put(&((struct letter *)(void *)node)->busy, 0);
			seen[at]++;
		}
	}
	rvq_cell32_put(&stop, 1);
	join(threads, count);
	rvq_cell32_put(&stop, 0);
	while ((node = rvq_mailbox_pop_mpsc(&mailbox)) != NULL)
		rvq_cell32_put(&((struct letter *)(void *)node)->busy, 0);
	for (i = 0; i < windows; i++)
		total += seen[i];
	for (i = 0, *starved = 0; i < windows; i++)
		*starved += (double)seen[i] * windows < 0.3 * (double)total;
	return (double)total / windows * 1e9 / WINDOW_NS;
}

static void
oversubscribe(void)
{
	unsigned windows = options.quick ? 10 : WINDOWS, starved, ignored;
	double one = run_freely(1, windows / 2, &ignored);
	double four = run_freely(PRODUCERS, windows, &starved);

	one = (one + run_freely(1, windows / 2, &ignored)) / 2;
	rvp_print("queue", "mailbox free-running 1 producer", "items/s", one, windows);
	rvp_print("queue", "mailbox free-running 4 producers", "items/s", four, windows);
	rvp_print("queue", "mailbox free-running 4 against 1", "ratio", four / one, windows);
	rvp_print("queue", "mailbox windows under 0.3", "windows", starved, windows);
}

int
main(int argc, char **argv)
{
	static struct channel spsc = {spsc_produce, spsc_consume, 1, 1000000, RING},
			      batch = {batch_produce, batch_consume, 1, 4000000, RING},
			      small = {batch_produce, batch_consume, 1, 400000, SMALL},
			      mailbox1 = {mailbox_produce, mailbox_consume, 1, 1000000, 0},
			      mailbox2 = {mailbox_produce, mailbox_consume, 2, 1000000, 0},
			      mailbox4 = {mailbox_produce, mailbox_consume, 4, 1000000, 0},
			      pile1 = {pile_produce, pile_consume, 1, 1000000, 0},
			      pile2 = {pile_produce, pile_consume, 2, 1000000, 0},
			      pile4 = {pile_produce, pile_consume, 4, 1000000, 0},
			      mutex = {locked_produce, locked_consume, 1, 100000, 0},
			      pipes = {pipe_produce, pipe_consume, 1, 20000, 0},
			      event = {event_produce, event_consume, 1, 20000, QUEUE},
			      bounce = {bounce_produce, bounce_consume, 1, 20000, 0};
	static unsigned single = 1, many = 64;
	static struct rvp_case cases[] = {
	    {"cache-line round trip", "ns", run_channel, &bounce, {0}},
	    {"spsc ring", "ns/item", run_channel, &spsc, {0}},
	    {"spsc ring batched by 16", "ns/item", run_channel, &batch, {0}},
	    {"spsc ring of 64 batched by 16", "ns/item", run_channel, &small, {0}},
	    {"exchange same thread", "ns", run_exchange, NULL, {0}},
	    {"mailbox same thread depth 1", "ns/item", run_mailbox_alone, &single, {0}},
	    {"take-all stack same thread depth 1", "ns/item", run_pile_alone, &single, {0}},
	    {"mailbox same thread depth 64", "ns/item", run_mailbox_alone, &many, {0}},
	    {"take-all stack same thread depth 64", "ns/item", run_pile_alone, &many, {0}},
	    {"mailbox 1 producer", "ns/item", run_channel, &mailbox1, {0}},
	    {"take-all stack 1 producer", "ns/item", run_channel, &pile1, {0}},
	    {"mailbox 2 producers", "ns/item", run_channel, &mailbox2, {0}},
	    {"take-all stack 2 producers", "ns/item", run_channel, &pile2, {0}},
	    {"mailbox 4 producers", "ns/item", run_channel, &mailbox4, {0}},
	    {"take-all stack 4 producers", "ns/item", run_channel, &pile4, {0}},
	    {"mutex and condvar", "ns/item", run_channel, &mutex, {0}},
	    {"pipe", "ns/item", run_channel, &pipes, {0}},
	    {"ring and eventfd", "ns/item", run_channel, &event, {0}}};
	const size_t n = sizeof(cases) / sizeof(cases[0]);

	rvp_options(&options, argc, argv);
	if (options.pin)
		rvp_pin(0);
	rvq_mailbox_init(&mailbox);
	rvq_stack_init(&pile.stack);
	event_fd = eventfd(0, EFD_CLOEXEC);
	if (event_fd == -1 || pipe(pipe_fds) != 0)
		abort();
	rvp_rounds(cases, n, options.rounds);
	rvp_report("queue", cases, n, options.rounds);
	rvp_print("queue", "mailbox 4 producers against 1", "ratio",
	    rvp_ratio(&cases[9], &cases[13], options.rounds), options.rounds);
	rvp_print("queue", "mailbox against take-all stack 1 producer", "ratio",
	    rvp_ratio(&cases[9], &cases[10], options.rounds), options.rounds);
	rvp_print("queue", "mailbox against take-all stack 4 producers", "ratio",
	    rvp_ratio(&cases[13], &cases[14], options.rounds), options.rounds);
	oversubscribe();
	return EXIT_SUCCESS;
}
