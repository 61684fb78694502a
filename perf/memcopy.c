/*
 * memcopy.c - memory alone, which no stream of bytes through memory can beat.
 *
 * copy: one thread copies from one area to another in pieces of the row's size; the areas are larger than the caches.
 * ring: one thread fills the first byte of blocks of the row's size and hands them to another through a ring; that copies
 * out of them into 64 KiB of its own and hands them back.  Each works off what is there before it looks again, wakes the
 * other one once for it, and sleeps when there is nothing.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"
#include "queues/parker.h"
#include "queues/spsc.h"

#define AREA      (64u << 20)
#define IN_FLIGHT (1u << 20) /* bytes of blocks, so that they stay in the cache */
#define BLOCKS    1024u      /* at most, and at least 4 */
#define OUT       65536u

RVQ_RING_DEFINE(block, char *)

/* --- copy --- */

struct copy {
	size_t piece;
	char *from, *to;
	pthread_t thread;
	struct rvq_cell32 stop;
	struct rvq_counter received __attribute__((aligned(64)));
};

static void *
copy_main(void *arg)
{
	struct copy *c = arg;
	size_t at = 0;

	while (!rvq_cell32_get_relaxed(&c->stop)) {
		memcpy(c->to + at, c->from + at, c->piece);
		rvp_check(*(const volatile char *)(c->to + at) == 1, "what was copied");
		rvq_counter_add(&c->received, c->piece);
		at = at + 2 * c->piece > AREA ? 0 : at + c->piece;
	}
	return NULL;
}

static void *
copy_start(const struct rvp_load *l)
{
	struct copy *c = aligned_alloc(64, (sizeof(*c) + 63) & ~(size_t)63);

	rvp_check(c != NULL, "memory");
	memset(c, 0, sizeof(*c));
	c->piece = l->write;
	c->from = aligned_alloc(64, AREA);
	c->to = aligned_alloc(64, AREA);
	rvp_check(c->from != NULL && c->to != NULL, "memory");
	memset(c->from, 1, AREA);
	memset(c->to, 0, AREA);
	rvp_thread(&c->thread, copy_main, c, l->pin ? 0 : RVP_ANY_CPU);
	return c;
}

static uint64_t
copy_received(void *run)
{
	return rvq_counter_get(&((struct copy *)run)->received);
}

static void
copy_stop(void *run)
{
	struct copy *c = run;

	rvq_cell32_put(&c->stop, 1);
	pthread_join(c->thread, NULL);
	free(c->from);
	free(c->to);
	free(c);
}

/* --- ring --- */

struct way {
	struct rvq_ring ring;
	char *slots[BLOCKS * 2];
	struct rvq_parker parker __attribute__((aligned(64))); /* the consumer's */
};

struct ring {
	struct way full, empty;
	size_t piece;
	char *blocks;
	pthread_t threads[2];
	struct rvq_cell32 stop __attribute__((aligned(64)));
	struct rvq_counter received __attribute__((aligned(64)));
};

/* Waits until there is something in w.  Returns how much; 0: over. */
static unsigned
await(struct ring *r, struct way *w)
{
	unsigned n;

	while ((n = rvq_ring_filled(&w->ring)) == 0 && !rvq_cell32_get(&r->stop)) {
		rvq_parker_arm(&w->parker);
		if (rvq_ring_filled(&w->ring) > 0 || rvq_cell32_get(&r->stop))
			rvq_parker_disarm(&w->parker);
		else
			(void)rvq_parker_wait(&w->parker, RVQ_FOREVER);
	}
	return n;
}

static void *
fill_main(void *arg)
{
	struct ring *r = arg;
	char *b = NULL;
	unsigned n;

	while ((n = await(r, &r->empty)) > 0 && !rvq_cell32_get_relaxed(&r->stop)) {
		for (; n > 0; n--) {
			rvp_check(block_pop_spsc(&r->empty.ring, r->empty.slots, &b), "ring");
			*b = 1;
			(void)block_push_spsc(&r->full.ring, r->full.slots, &b);
		}
		(void)rvq_parker_wake(&r->full.parker);
	}
	return NULL;
}

static void
take(struct ring *r, char *out, char *b)
{
	size_t at, n;

	for (at = 0; at < r->piece; at += n) {
		n = r->piece - at < OUT ? r->piece - at : OUT;
		memcpy(out, b + at, n);
		rvp_check(at > 0 || *(const volatile char *)out == 1, "what was handed over");
	}
	*b = 0;
	rvq_counter_add(&r->received, r->piece);
}

static void *
take_main(void *arg)
{
	struct ring *r = arg;
	char *out = malloc(OUT), *b = NULL;
	unsigned n;

	rvp_check(out != NULL, "memory");
	while ((n = await(r, &r->full)) > 0 && !rvq_cell32_get_relaxed(&r->stop)) {
		for (; n > 0; n--) {
			rvp_check(block_pop_spsc(&r->full.ring, r->full.slots, &b), "ring");
			take(r, out, b);
			(void)block_push_spsc(&r->empty.ring, r->empty.slots, &b);
		}
		(void)rvq_parker_wake(&r->empty.parker);
	}
	free(out);
	return NULL;
}

static void
way_init(struct way *w)
{
	rvq_ring_init(&w->ring, BLOCKS * 2);
	rvq_parker_init(&w->parker);
}

static void *
ring_start(const struct rvp_load *l)
{
	struct ring *r = aligned_alloc(64, (sizeof(*r) + 63) & ~(size_t)63);
	size_t n = IN_FLIGHT / l->write, i;
	char *b;

	rvp_check(r != NULL, "memory");
	memset(r, 0, sizeof(*r));
	r->piece = l->write;
	n = n < 4 ? 4 : n > BLOCKS ? BLOCKS : n;
	r->blocks = aligned_alloc(64, n * ((l->write + 63) & ~(size_t)63));
	rvp_check(r->blocks != NULL, "memory");
	way_init(&r->full);
	way_init(&r->empty);
	for (i = 0; i < n; i++) {
		b = r->blocks + i * ((l->write + 63) & ~(size_t)63);
		memset(b, 0, l->write);
		(void)block_push_spsc(&r->empty.ring, r->empty.slots, &b);
	}
	rvp_thread(&r->threads[1], take_main, r, l->pin ? 1 : RVP_ANY_CPU);
	rvp_thread(&r->threads[0], fill_main, r, l->pin ? 0 : RVP_ANY_CPU);
	return r;
}

static uint64_t
ring_received(void *run)
{
	return rvq_counter_get(&((struct ring *)run)->received);
}

static void
ring_stop(void *run)
{
	struct ring *r = run;

	rvq_cell32_put(&r->stop, 1);
	(void)rvq_parker_wake(&r->full.parker);
	(void)rvq_parker_wake(&r->empty.parker);
	pthread_join(r->threads[0], NULL);
	pthread_join(r->threads[1], NULL);
	free(r->blocks);
	free(r);
}

const struct rvp_flow rvp_copy_flow = {"copy", copy_start, copy_received, NULL, copy_stop};
const struct rvp_flow rvp_ring_flow = {"ring", ring_start, ring_received, NULL, ring_stop};
