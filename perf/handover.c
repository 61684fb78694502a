/*
 * handover.c - what it costs to hand received bytes over, against copying them.
 *
 * A receiving thread copies 64 KiB at a time from a source larger than its share of the caches, which stands for the
 * kernel's copy and is the same for all, and gives it to 1 or 8 streams in pieces of the row's size (a larger one goes in
 * pieces of 64 KiB).  hot: the consumer is the same thread, at once.  cold: it is another one on another processor, by a ring.  Either sums all
 * bytes.  The ways are those of handover_ways.c; handover_library.c measures the same choice in the library itself.
 */
#include <config.h>

#include "perf/handover.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"
#include "perf/kit.h"
#include "perf/rows.h"
#include "queues/parker.h"
#include "queues/spsc.h"

#define SLOTS   4096u
#define PENDING (512u * 1024) /* bytes on their way to a cold consumer */
#define ROUNDS  7

RVQ_RING_DEFINE(piece, struct rvp_piece)

static const struct rvp_way_kind *const kinds[] = {
    &rvp_way_slices, &rvp_way_in_place, &rvp_way_copy, &rvp_way_litep2p};
#define KINDS 4
static const size_t sizes[] = {64, 256, 1024, 2048, 4096, 16384, 65536, 262144, 1048576};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct rvp_options options;
static uint8_t *source;
static size_t source_size, carried; /* bytes of the source, of a measurement */
static uint64_t *block_sums;

struct figures {
	double ns[RVP_ROUNDS_MAX], cpu[RVP_ROUNDS_MAX];
};

struct run {
	const struct rvp_way_kind *kind;
	struct rvp_way *way;
	unsigned streams;
	size_t size;
	uint64_t sum; /* the consumer's */
	/* cold */
	struct rvq_ring ring;
	struct rvp_piece slots[SLOTS];
	struct rvq_parker consumer __attribute__((aligned(64)));
	struct rvq_parker receiver __attribute__((aligned(64)));
	struct rvq_cell64 taken __attribute__((aligned(64))); /* bytes */
	struct rvq_cell32 over;
	uint64_t given; /* the receiver's */
};

/* --- the consumer in another thread --- */

static unsigned
filled(struct run *r)
{
	unsigned n;

	while ((n = rvq_ring_filled(&r->ring)) == 0 && !rvq_cell32_get(&r->over)) {
		rvq_parker_arm(&r->consumer);
		if (rvq_ring_filled(&r->ring) > 0 || rvq_cell32_get(&r->over))
			rvq_parker_disarm(&r->consumer);
		else
			(void)rvq_parker_wait(&r->consumer, RVQ_FOREVER);
	}
	return n > 0 ? n : rvq_ring_filled(&r->ring);
}

static void *
consume_main(void *arg)
{
	struct run *r = arg;
	struct rvp_piece piece;
	uint64_t bytes;
	unsigned n;

	while ((n = filled(r)) > 0) {
		for (bytes = 0; n > 0 && bytes < PENDING / 4; n--) {
			rvp_check(piece_pop_spsc(&r->ring, r->slots, &piece), "ring");
			bytes += piece.n;
			r->sum += r->kind->take(r->way, &piece);
		}
		rvq_cell64_put(&r->taken, rvq_cell64_get(&r->taken) + bytes);
		(void)rvq_parker_wake(&r->receiver);
	}
	return NULL;
}

static bool
has_room(struct run *r, size_t n)
{
	return rvq_ring_room(&r->ring) > 0 && r->given - rvq_cell64_get(&r->taken) + n <= PENDING;
}

static void
wait_room(struct run *r, size_t n)
{
	(void)rvq_parker_wake(&r->consumer);
	while (!has_room(r, n)) {
		rvq_parker_arm(&r->receiver);
		if (has_room(r, n))
			rvq_parker_disarm(&r->receiver);
		else
			(void)rvq_parker_wait(&r->receiver, RVQ_FOREVER);
	}
}

static void
give_cold(struct run *r, unsigned stream, uint32_t off, uint32_t n)
{
	struct rvp_piece piece;

	if (!has_room(r, n))
		wait_room(r, n);
	/* A stream's buffer holds half of what may be pending in all: it may be full before. */
	while (!r->kind->give(r->way, stream, off, n, &piece)) {
		(void)rvq_parker_wake(&r->consumer);
		sched_yield();
	}
	rvp_check(piece_push_spsc(&r->ring, r->slots, &piece), "ring");
	r->given += n;
}

/* --- the receiver --- */

static void
give_hot(struct run *r, unsigned stream, uint32_t off, uint32_t n)
{
	struct rvp_piece piece;

	rvp_check(r->kind->give(r->way, stream, off, n, &piece), "room");
	r->sum += r->kind->take(r->way, &piece);
}

/* Returns the sum of what was given. */
static uint64_t
receive(struct run *r, void (*give)(struct run *r, unsigned stream, uint32_t off, uint32_t n))
{
	size_t blocks = source_size / RVP_HAND_BLOCK;
	static size_t next; /* goes on where the last measurement ended */
	unsigned stream = 0;
	uint64_t sum = 0;
	uint32_t n;

	for (size_t done = 0, of_piece = 0; done < carried; done += RVP_HAND_BLOCK) {
		size_t b = next++ % blocks;
		uint8_t *block = r->kind->block(r->way);

		memcpy(block, source + b * RVP_HAND_BLOCK, RVP_HAND_BLOCK);
		sum += block_sums[b];
		for (uint32_t off = 0; off < RVP_HAND_BLOCK; off += n) {
			n = r->size < RVP_HAND_BLOCK ? (uint32_t)r->size : RVP_HAND_BLOCK;
			give(r, stream, off, n);
			of_piece += n;
			if (of_piece == r->size) {
				of_piece = 0;
				stream = (stream + 1) % r->streams;
			}
		}
	}
	return sum;
}

/* What is measured. */
struct trial {
	const struct rvp_way_kind *kind;
	size_t size;
	unsigned streams;
	bool cold;
};

static void
measure(const struct trial *t, struct figures *f, unsigned round)
{
	struct run *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	uint64_t wall, cpu, sum;
	pthread_t consumer;

	rvp_check(r != NULL, "memory");
	memset(r, 0, sizeof(*r));
	r->kind = t->kind;
	r->size = t->size;
	r->streams = t->streams;
	r->way = rvp_way_open();
	rvq_ring_init(&r->ring, SLOTS);
	rvq_parker_init(&r->consumer);
	rvq_parker_init(&r->receiver);
	if (t->cold)
		rvp_thread(&consumer, consume_main, r, 1);
	wall = rvp_now_ns();
	cpu = rvp_cpu_ns();
	sum = receive(r, t->cold ? give_cold : give_hot);
	if (t->cold) {
		rvq_cell32_put(&r->over, 1);
		(void)rvq_parker_wake(&r->consumer);
		pthread_join(consumer, NULL);
	}
	wall = rvp_now_ns() - wall;
	cpu = rvp_cpu_ns() - cpu;
	rvp_check(sum == r->sum, "the bytes that were consumed are not those that were received");
	f->ns[round] = (double)wall / ((double)carried / 1024);
	f->cpu[round] = (double)cpu / (double)carried;
	rvp_way_close(r->way);
	free(r);
}

/* --- lines --- */

static void
cell(struct rvp_cell c, const double *v)
{
	rvp_cell_print(&c, v, options.rounds);
}

static void
report(const char *row, double x, const struct figures *f)
{
	double v[RVP_ROUNDS_MAX];
	char name[32];

	for (unsigned k = 0; k < KINDS; k++) {
		cell((struct rvp_cell){"handover", row, kinds[k]->name, "time", "ns/KiB", x},
		    f[k].ns);
		cell(
		    (struct rvp_cell){"handover", row, kinds[k]->name, "cpu", "s/GB", x}, f[k].cpu);
		for (unsigned i = 0; i < options.rounds; i++)
			v[i] = 1024 / f[k].ns[i];
		cell((struct rvp_cell){"handover", row, kinds[k]->name, "rate", "GB/s", x}, v);
		for (unsigned i = 0; i < options.rounds; i++)
			v[i] = f[0].ns[i] / f[k].ns[i];
		snprintf(name, sizeof(name), "%s/%s", kinds[0]->name, kinds[k]->name);
		if (k > 0)
			cell((struct rvp_cell){"handover", row, name, "time", "ratio", x}, v);
	}
}

/* The size from which slices cost less than another way, between two rows in proportion of the logarithms; 0: always. */
static void
break_even(const char *row, unsigned k, struct figures f[SIZES][KINDS])
{
	double v[RVP_ROUNDS_MAX], before, ratio;
	char name[32];
	size_t s;

	for (unsigned i = 0; i < options.rounds; i++) {
		v[i] = 0;
		for (s = SIZES, before = 0; s-- > 0; before = ratio) {
			ratio = log(f[s][0].ns[i] / f[s][k].ns[i]);
			if (ratio <= 0)
				continue;
			v[i] = s + 1 == SIZES ? (double)sizes[s]
					      : exp(log((double)sizes[s]) +
						    log((double)sizes[s + 1] / (double)sizes[s]) *
							ratio / (ratio - before));
			break;
		}
	}
	snprintf(name, sizeof(name), "%s/%s", kinds[0]->name, kinds[k]->name);
	cell((struct rvp_cell){"handover", row, name, "break-even", "B", 0}, v);
}

static void
part(unsigned streams, bool cold)
{
	static struct figures f[SIZES][KINDS];
	char row[64];

	for (unsigned round = 0; round < options.rounds; round++)
		for (size_t i = 0; i < SIZES * KINDS; i++) {
			size_t at = (i + round) % (SIZES * KINDS);

			measure(
			    &(struct trial){kinds[at % KINDS], sizes[at / KINDS], streams, cold},
			    &f[at / KINDS][at % KINDS], round);
		}
	for (size_t s = 0; s < SIZES; s++) {
		snprintf(row, sizeof(row), "%s x %u %s", rvp_size(sizes[s]), streams,
		    cold ? "cold" : "hot");
		report(row, (double)sizes[s], f[s]);
	}
	snprintf(row, sizeof(row), "break-even x %u %s", streams, cold ? "cold" : "hot");
	for (unsigned k = 1; k < KINDS; k++)
		break_even(row, k, f);
}

static void
make_source(void)
{
	uint64_t x = 88172645463325252u;
	uint8_t *p;

	source_size = options.quick ? 4u << 20 : 512u << 20;
	carried = options.quick ? 1u << 20 : 48u << 20;
	source = malloc(source_size);
	block_sums = malloc(source_size / RVP_HAND_BLOCK * sizeof(*block_sums));
	rvp_check(source != NULL && block_sums != NULL, "memory");
	for (p = source; p < source + source_size; p += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p, &x, sizeof(x));
	}
	for (size_t b = 0; b < source_size / RVP_HAND_BLOCK; b++)
		block_sums[b] = rvp_hand_sum(source + b * RVP_HAND_BLOCK, RVP_HAND_BLOCK);
}

int
main(int argc, char **argv)
{
	cpu_set_t before;

	rvp_options(&options, argc, argv);
	if (!options.quick && options.rounds > ROUNDS)
		options.rounds = ROUNDS;
	if (options.quick)
		options.rounds = 1;
	make_source();
	/* A cold consumer is on the other processor, or it would not be cold. */
	rvp_check(sched_getaffinity(0, sizeof(before), &before) == 0, "affinity");
	rvp_pin(0);
	for (unsigned streams = 1; streams <= 8; streams += 7)
		for (int cold = 0; cold < 2; cold++)
			part(streams, cold != 0);
	(void)sched_setaffinity(0, sizeof(before), &before);
	free(source);
	free(block_sums);
	rvp_handover_library(options.quick, options.quick ? 1 : 3);
	return EXIT_SUCCESS;
}
