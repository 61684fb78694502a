/* Messages with their length in front: cut anywhere, put together once. */
#include <config.h>

#include <string.h>

#include "lib/buf/slice.h"
#include "node/req_frame.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

struct rig {
	struct rvt_duo d;
	uint8_t wire[70000];
	size_t n;
};

static void
start(struct rig *g)
{
	memset(&g->d, 0, sizeof(g->d));
	rvt_duo_rt(&g->d, 1);
	g->n = 0;
}

/* A message of n bytes on the wire. */
static void
put(struct rig *g, size_t n)
{
	g->n += rv_varint_put(g->wire + g->n, n);
	for (size_t i = 0; i < n; i++)
		g->wire[g->n + i] = (uint8_t)(i * 7 + n);
	g->n += n;
}

static reeve_buf_t *
piece(struct rig *g, size_t from, size_t n)
{
	reeve_buf_t *b = reeve_buf_alloc(g->d.rt, n);

	ck_assert_ptr_nonnull(b);
	memcpy(reeve_buf_mut(b), g->wire + from, n);
	return b;
}

/* 1, 0 or an error, as a receiver does it; consumes b. */
static int
feed(struct rig *g, struct rvn_frame *f, reeve_buf_t *b)
{
	int rc;

	if (!f->sized) {
		rc = rvn_frame_size(f, b);
		if (rc <= 0) {
			rv_buf_unref(b);
			return rc;
		}
	}
	return rvn_frame_fill(f, g->d.rt, b);
}

static void
want(struct rvn_frame *f, size_t n)
{
	reeve_buf_t *b = rvn_frame_take(f);

	ck_assert_uint_eq(f->len, n);
	if (n == 0) {
		ck_assert_ptr_null(b);
		return;
	}
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_eq(rv_buf_len(b), n);
	for (size_t i = 0; i < n; i++) {
		if (rv_buf_data(b)[i] != (uint8_t)(i * 7 + n))
			ck_abort_msg("byte %zu of %zu", i, n);
	}
	rv_buf_unref(b);
}

static const size_t sizes[] = {0, 1, 2, 127, 128, 300, 1024, 16383, 16384, 66000};
#define SIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

START_TEST(a_message_arrives_whole_however_it_is_cut)
{
	static const size_t cuts[] = {1, 2, 3, 512, 1023, 70000};
	static struct rig g;

	start(&g);
	put(&g, sizes[_i]);
	for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		struct rvn_frame f = {0};
		int rc = 0;

		for (size_t at = 0, n; at < g.n; at += n) {
			ck_assert_int_eq(rc, 0);
			n = g.n - at < cuts[c] ? g.n - at : cuts[c];
			rc = feed(&g, &f, piece(&g, at, n));
		}
		ck_assert_int_eq(rc, 1);
		want(&f, sizes[_i]);
	}
	rvt_duo_end(&g.d);
}
END_TEST

START_TEST(what_is_behind_a_message_is_not_in_it)
{
	static struct rig g;
	struct rvn_frame f = {0};

	start(&g);
	put(&g, 1000);
	put(&g, 500);
	ck_assert_int_eq(feed(&g, &f, piece(&g, 0, g.n)), 1);
	want(&f, 1000);
	rvt_duo_end(&g.d);
}
END_TEST

START_TEST(a_message_in_one_large_buffer_is_that_buffer)
{
	static struct rig g;
	struct rvn_frame f = {0};
	reeve_buf_t *b;

	start(&g);
	put(&g, 60000);
	b = piece(&g, 0, g.n);
	ck_assert_int_eq(feed(&g, &f, b), 1);
	ck_assert_ptr_eq(f.buf, b);
	want(&f, 60000);
	rvt_duo_end(&g.d);
}
END_TEST

START_TEST(a_small_message_does_not_keep_a_large_block)
{
	static struct rig g;
	struct rvn_frame f = {0};

	start(&g);
	put(&g, 3000);
	put(&g, 60000);
	ck_assert_int_eq(feed(&g, &f, piece(&g, 0, g.n)), 1);
	ck_assert_uint_le(f.buf->slab->cap, 16384);
	want(&f, 3000);
	rvt_duo_end(&g.d);
}
END_TEST

START_TEST(a_length_that_is_none_is_refused)
{
	static const uint8_t bad[][12] = {{0x80, 0x00}, /* not the shortest form */
	    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, /* no end */
	    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}};      /* above 64 bits */
	static const size_t len[] = {2, 11, 10};
	static struct rig g;

	start(&g);
	for (size_t step = 1; step <= 12; step += 11) {
		struct rvn_frame f = {0};
		int rc = 0;

		memcpy(g.wire, bad[_i], sizeof(bad[_i]));
		for (size_t at = 0; at < len[_i] && rc == 0; at += step) {
			size_t n = len[_i] - at < step ? len[_i] - at : step;

			rc = feed(&g, &f, piece(&g, at, n));
		}
		ck_assert_int_eq(rc, REEVE_EPROTO);
		rvn_frame_drop(&f);
	}
	rvt_duo_end(&g.d);
}
END_TEST

START_TEST(no_memory_for_a_message_is_told)
{
	static struct rig g;
	struct rvn_frame f = {0};
	reeve_buf_t *b;

	start(&g);
	put(&g, 66000);
	b = piece(&g, 0, 100);
	rvt_alloc_fail(&g.d.alloc, 1, true);
	ck_assert_int_eq(feed(&g, &f, b), REEVE_ENOMEM);
	rvt_alloc_fail(&g.d.alloc, 0, false);
	ck_assert_ptr_null(f.buf);
	rvt_duo_end(&g.d);
}
END_TEST

START_TEST(what_is_made_is_what_is_read)
{
	static struct rig g;
	struct rvn_frame f = {0};
	reeve_buf_t *out[2], *body;
	uint8_t head[RV_VARINT_MAX];
	size_t n = sizes[_i];
	int rc;

	start(&g);
	put(&g, n);
	body = n == 0 ? NULL : piece(&g, rv_varint_put(head, n), n);
	ck_assert_int_eq(rvn_frame_make(g.d.rt, body, out), 0);
	ck_assert_int_eq(out[1] != NULL, n > 4096); /* by reference */
	ck_assert(out[1] == NULL || out[1] == body);
	rc = feed(&g, &f, out[0]);
	ck_assert_int_eq(rc, out[1] == NULL);
	if (out[1] != NULL)
		ck_assert_int_eq(feed(&g, &f, out[1]), 1);
	want(&f, n);
	rvt_duo_end(&g.d);
}
END_TEST

RVT_MAIN_TABLE("req_frame", {&a_message_arrives_whole_however_it_is_cut, SIZES},
    {&what_is_behind_a_message_is_not_in_it, 0}, {&a_message_in_one_large_buffer_is_that_buffer, 0},
    {&a_small_message_does_not_keep_a_large_block, 0}, {&a_length_that_is_none_is_refused, 3},
    {&no_memory_for_a_message_is_told, 0}, {&what_is_made_is_what_is_read, SIZES})
