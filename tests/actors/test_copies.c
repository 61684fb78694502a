/* test_copies.c - what a byte costs: copies in user space, system calls, blocks from the allocator. */
#include <config.h>

#include "tests/kit/node.h"
#include "tests/kit/run.h"

#include <pthread.h>
#include <string.h>

#define PIECE 65536u

struct load {
	reeve_rt_t *rt;
	reeve_stream_t *s;
	size_t pieces;
	bool copying;
};

/* Writes pieces, handed over or copied. */
static void *
writer(void *arg)
{
	static const uint8_t zeroes[PIECE];
	struct load *l = arg;
	reeve_buf_t *b;

	for (size_t i = 0; i < l->pieces; i++) {
		if (l->copying) {
			if (reeve_write(l->s, zeroes, PIECE) != PIECE)
				return (void *)(uintptr_t) "write";
			continue;
		}
		b = reeve_buf_alloc(l->rt, PIECE);
		if (b == NULL || reeve_write_buf(l->s, b) != PIECE)
			return (void *)(uintptr_t) "write_buf";
	}
	return NULL;
}

/* Reads n bytes, as buffers or by copying. */
static void
consume(reeve_stream_t *s, size_t n, bool copying)
{
	static uint8_t into[PIECE];
	reeve_buf_t *b;
	reeve_ssize got;

	for (size_t done = 0; done < n; done += (size_t)got) {
		if (copying) {
			got = reeve_read(s, into, sizeof(into));
		} else if ((got = reeve_read_buf(s, &b)) > 0) {
			reeve_buf_unref(b);
		}
		ck_assert_msg(got > 0, "read: %s", reeve_errname((int)got));
	}
}

static void
transfer(struct rvt_nodes *n, reeve_stream_t *s[2], size_t pieces, bool copying)
{
	struct load l = {.rt = n->rt[0], .s = s[0], .pieces = pieces, .copying = copying};
	pthread_t t;
	void *failed;

	ck_assert_int_eq(pthread_create(&t, NULL, writer, &l), 0);
	consume(s[1], pieces * PIECE, copying);
	pthread_join(t, &failed);
	ck_assert_msg(failed == NULL, "%s", (const char *)failed);
}

static reeve_stats_t
stats(reeve_ctl_t *k)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_ctl_stats(k, &st), 0);
	return st;
}

static uint64_t
blocks(struct rvt_nodes *n)
{
	reeve_stats_t a = {.size = sizeof(a)}, b = {.size = sizeof(b)};

	ck_assert_int_eq(reeve_rt_stats(n->rt[0], &a), 0);
	ck_assert_int_eq(reeve_rt_stats(n->rt[1], &b), 0);
	return a.blocks_allocated + b.blocks_allocated;
}

static const enum rvt_via vias[] = {RVT_UNIX, RVT_TCP, RVT_SOCKETPAIR};

/* Frames that the window cuts may be short; within the first window there are none. */
START_TEST(large_bodies_reach_a_zero_copy_reader_uncopied)
{
	struct rvt_nodes n;
	reeve_stream_t *s[2];

	rvt_marry(&n, &(struct rvt_wedding){.via = vias[_i]});
	rvt_stream_pair(&n, 0, s);
	transfer(&n, s, 3, false);
	ck_assert_uint_eq(stats(n.k[0]).bytes_out, 3 * PIECE);
	ck_assert_uint_eq(stats(n.k[0]).bytes_copied_out, 0);
	ck_assert_uint_eq(stats(n.k[1]).bytes_in, 3 * PIECE);
	ck_assert_uint_eq(stats(n.k[1]).bytes_copied_in, 0);
	/* And over many windows only what was cut short is copied. */
	transfer(&n, s, 500, false);
	ck_assert_uint_lt(stats(n.k[0]).bytes_copied_out, 5 * PIECE);
	ck_assert_uint_lt(stats(n.k[1]).bytes_copied_in, 5 * PIECE);
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

/* reeve_read's own copy is the caller's to count; before it there is none either, and reeve_write makes one. */
START_TEST(copying_calls_copy_once)
{
	struct rvt_nodes n;
	reeve_stream_t *s[2];

	rvt_marry(&n, &(struct rvt_wedding){.via = vias[_i]});
	rvt_stream_pair(&n, 0, s);
	transfer(&n, s, 500, true);
	ck_assert_uint_lt(stats(n.k[1]).bytes_copied_in, 5 * PIECE);
	ck_assert_uint_ge(stats(n.k[0]).bytes_copied_out, 500 * PIECE);
	ck_assert_uint_lt(stats(n.k[0]).bytes_copied_out, 505 * PIECE);
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

/* Somebody who forwards holds what he has read until it is written: those are whole blocks, so the bytes behind them gain nothing by
 * being copied. */
START_TEST(held_buffers_do_not_make_the_rest_copied)
{
	static reeve_buf_t *held[64];
	struct rvt_nodes n;
	reeve_stream_t *s[2];
	struct load l = {.pieces = 400};
	size_t done = 0, i = 0;
	reeve_ssize got;
	pthread_t t;
	void *failed;

	rvt_marry(&n, &(struct rvt_wedding){.via = vias[_i]});
	rvt_stream_pair(&n, 0, s);
	l.rt = n.rt[0];
	l.s = s[0];
	ck_assert_int_eq(pthread_create(&t, NULL, writer, &l), 0);
	for (; done < l.pieces * PIECE; done += (size_t)got, i = (i + 1) % 64) {
		reeve_buf_unref(held[i]);
		held[i] = NULL;
		got = reeve_read_buf(s[1], &held[i]);
		ck_assert_msg(got > 0, "read: %s", reeve_errname((int)got));
	}
	pthread_join(t, &failed);
	ck_assert_msg(failed == NULL, "%s", (const char *)failed);
	/* Pieces cut short by windows and ends of blocks. */
	ck_assert_uint_lt(stats(n.k[1]).bytes_copied_in, l.pieces * PIECE / 10);
	for (i = 0; i < 64; i++) {
		reeve_buf_unref(held[i]);
		held[i] = NULL;
	}
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

START_TEST(steady_state_takes_nothing_from_the_allocator)
{
	struct rvt_nodes n;
	reeve_stream_t *s[2];
	uint64_t before, frames;
	bool copying = _i % 2 != 0;

	rvt_marry(&n, &(struct rvt_wedding){.via = vias[_i / 2]});
	rvt_stream_pair(&n, 0, s);
	transfer(&n, s, 500, copying);
	before = blocks(&n);
	frames = stats(n.k[1]).frames_in;
	transfer(&n, s, 2000, copying);
	frames = stats(n.k[1]).frames_in - frames;
	ck_assert_uint_ge(frames, 2000);
	/* The pools may still find their depth (a thread was never so far ahead before); frames must not cost. */
	ck_assert_uint_le(blocks(&n) - before, frames / 20);
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("copies", {&large_bodies_reach_a_zero_copy_reader_uncopied, 3},
    {&copying_calls_copy_once, 3}, {&held_buffers_do_not_make_the_rest_copied, 3},
    {&steady_state_takes_nothing_from_the_allocator, 6})
