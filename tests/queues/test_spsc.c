/* test_spsc.c - the ring: capacity, order, batches across the end of the array, two threads. */
#include <config.h>

#include "queues/cell.h"
#include "queues/spsc.h"

#include "tests/queues/crew.h"

#define SIZE 8

struct item {
	uint64_t seq;
	const uint64_t *box; /* plain memory that the push has to publish */
};

RVQ_RING_DEFINE(item, struct item)
RVQ_RING_DEFINE(word, void *)

static struct item
item_at(uint64_t seq)
{
	return (struct item){.seq = seq};
}

START_TEST(ring_layout_has_one_line_per_side)
{
	ck_assert_uint_eq(sizeof(struct rvq_ring), 192);
	ck_assert_uint_eq(_Alignof(struct rvq_ring), 64);
}
END_TEST

START_TEST(full_ring_holds_size_minus_one)
{
	struct rvq_ring r;
	struct item slots[SIZE], e = item_at(0);
	unsigned n;

	rvq_ring_init(&r, SIZE);
	for (n = 0; n < SIZE - 1; n++) {
		ck_assert_uint_eq(rvq_ring_count(&r), n);
		ck_assert_uint_eq(rvq_ring_room(&r), SIZE - 1 - n);
		ck_assert(item_push_spsc(&r, slots, &e));
	}
	ck_assert_uint_eq(rvq_ring_room(&r), 0);
	ck_assert_uint_eq(rvq_ring_count(&r), SIZE - 1);
	ck_assert(!item_push_spsc(&r, slots, &e));
	ck_assert(item_pop_spsc(&r, slots, &e));
	ck_assert(item_push_spsc(&r, slots, &e));
}
END_TEST

START_TEST(empty_ring_gives_nothing_and_keeps_out)
{
	struct rvq_ring r;
	struct item slots[SIZE], e = item_at(77);

	rvq_ring_init(&r, SIZE);
	ck_assert(!item_pop_spsc(&r, slots, &e));
	ck_assert_uint_eq(item_pop_batch_spsc(&r, slots, &e, 1), 0);
	ck_assert_ptr_null(item_peek_spsc(&r, slots));
	ck_assert_uint_eq(e.seq, 77);
}
END_TEST

START_TEST(pointers_go_by_value)
{
	struct rvq_ring r;
	void *slots[SIZE], *in = &r, *out = NULL;

	rvq_ring_init(&r, SIZE);
	ck_assert(word_push_spsc(&r, slots, &in));
	in = NULL;
	ck_assert(word_pop_spsc(&r, slots, &out));
	ck_assert_ptr_eq(out, &r);
}
END_TEST

START_TEST(peeked_item_stays_until_dropped)
{
	struct rvq_ring r;
	struct item slots[SIZE], e = item_at(1);

	rvq_ring_init(&r, SIZE);
	ck_assert(item_push_spsc(&r, slots, &e));
	e.seq = 2;
	ck_assert(item_push_spsc(&r, slots, &e));
	ck_assert_uint_eq(item_peek_spsc(&r, slots)->seq, 1);
	ck_assert_uint_eq(item_peek_spsc(&r, slots)->seq, 1);
	ck_assert_uint_eq(rvq_ring_count(&r), 2);
	item_drop_spsc(&r);
	ck_assert_uint_eq(item_peek_spsc(&r, slots)->seq, 2);
	item_drop_spsc(&r);
	ck_assert_ptr_null(item_peek_spsc(&r, slots));
}
END_TEST

/* Every batch length from every place in the array, the indices running over their own end too. */
START_TEST(batches_wrap_at_every_offset)
{
	struct item in[SIZE + 2], out[SIZE + 2], slots[SIZE];
	unsigned start, len, i, want;
	struct rvq_ring r;

	for (i = 0; i < SIZE + 2; i++)
		in[i] = item_at(i);
	for (start = 0; start < 2 * SIZE; start++) {
		for (len = 0; len <= SIZE + 2; len++) {
			rvq_ring_init(&r, SIZE);
			r.ck.c_head = r.ck.p_tail = 0U - SIZE + start;
			want = len < SIZE ? len : SIZE - 1;
			ck_assert_uint_eq(item_push_batch_spsc(&r, slots, in, len), want);
			ck_assert_uint_eq(rvq_ring_count(&r), want);
			ck_assert_uint_eq(rvq_ring_room(&r), SIZE - 1 - want);
			ck_assert_uint_eq(item_pop_batch_spsc(&r, slots, out, SIZE + 2), want);
			for (i = 0; i < want; i++)
				ck_assert_uint_eq(out[i].seq, i);
			ck_assert_uint_eq(rvq_ring_count(&r), 0);
		}
	}
}
END_TEST

START_TEST(batch_pop_takes_no_more_than_asked)
{
	struct item in[3] = {{.seq = 0}, {.seq = 1}, {.seq = 2}}, out[3], slots[SIZE];
	struct rvq_ring r;

	rvq_ring_init(&r, SIZE);
	ck_assert_uint_eq(item_push_batch_spsc(&r, slots, in, 3), 3);
	ck_assert_uint_eq(item_pop_batch_spsc(&r, slots, out, 2), 2);
	ck_assert_uint_eq(out[1].seq, 1);
	ck_assert_uint_eq(item_pop_batch_spsc(&r, slots, out, 2), 1);
	ck_assert_uint_eq(out[0].seq, 2);
}
END_TEST

#define BOXES 64

struct pair {
	struct rvq_ring ring;
	struct item slots[16];
	uint64_t
	    box[BOXES]; /* producer writes, then publishes; re-used once the consumer is past */
	struct rvq_cell64 pushed, popped;
	struct rvq_cell32 done;
};

static void *
push_all(void *arg)
{
	struct pair *p = arg;
	uint64_t end = crew_now_us() + CREW_STRESS_US, seq = 0;
	uint32_t rng = 1;
	struct item batch[7];
	unsigned i, n;

	while (crew_now_us() < end || seq <= 100) {
		n = crew_random(&rng) % 7 + 1;
		while (seq + n > rvq_cell64_get(&p->popped) + BOXES)
			sched_yield();
		for (i = 0; i < n; i++) {
			batch[i] = item_at(seq + i);
			batch[i].box = &p->box[(seq + i) % BOXES];
			p->box[(seq + i) % BOXES] = seq + i;
		}
		if (n == 1)
			n = item_push_spsc(&p->ring, p->slots, batch);
		else
			n = item_push_batch_spsc(&p->ring, p->slots, batch, n);
		seq += n;
		if (n == 0)
			sched_yield();
	}
	rvq_cell64_put(&p->pushed, seq);
	rvq_cell32_put(&p->done, 1);
	return NULL;
}

static unsigned
pop_some(struct pair *p, uint32_t *rng, struct item *out)
{
	struct item *peeked;

	switch (crew_random(rng) % 3) {
	case 0:
		return item_pop_spsc(&p->ring, p->slots, out);
	case 1:
		return item_pop_batch_spsc(&p->ring, p->slots, out, crew_random(rng) % 8);
	default:
		peeked = item_peek_spsc(&p->ring, p->slots);
		if (peeked == NULL)
			return 0;
		*out = *peeked;
		item_drop_spsc(&p->ring);
		return 1;
	}
}

START_TEST(two_threads_keep_order_and_lose_nothing)
{
	static struct pair p;
	struct crew crew = {.n = 0};
	struct item out[8];
	uint64_t seq = 0;
	uint32_t rng = 2;
	unsigned i, n;

	rvq_ring_init(&p.ring, 16);
	crew_start(&crew, push_all, &p);
	while (!rvq_cell32_get(&p.done) || rvq_ring_count(&p.ring) > 0) {
		n = pop_some(&p, &rng, out);
		for (i = 0; i < n; i++, seq++) {
			ck_assert_uint_eq(out[i].seq, seq);
			ck_assert_uint_eq(*out[i].box, seq);
		}
		rvq_cell64_put(&p.popped, seq);
		if (n == 0)
			sched_yield();
	}
	crew_join(&crew);
	ck_assert_uint_eq(seq, rvq_cell64_get(&p.pushed));
	ck_assert_uint_gt(seq, 100);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {ring_layout_has_one_line_per_side,
	    full_ring_holds_size_minus_one, empty_ring_gives_nothing_and_keeps_out,
	    pointers_go_by_value, peeked_item_stays_until_dropped, batches_wrap_at_every_offset,
	    batch_pop_takes_no_more_than_asked, two_threads_keep_order_and_lose_nothing};

	return rvt_run("spsc", tests, sizeof(tests) / sizeof(tests[0]));
}
