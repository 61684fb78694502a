/* One stream: bytes, deadlines, budgets, sharing between threads. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

START_TEST(bytes_arrive_in_order_whatever_the_sizes)
{
	static const size_t sizes[] = {
	    1, 2, 7, 255, 256, 2047, 2048, 4096, 16384, 65536, 100000, 3};
	struct rvt_duo d;
	uint64_t at = 0;

	rvt_duo_begin(&d, _i);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rvt_write_run(d.s[0], sizes[i], at);
		rvt_read_run(d.s[1], sizes[i], at);
		rvt_write_run(d.s[1], sizes[i], at);
		rvt_read_run(d.s[0], sizes[i], at);
		at += sizes[i];
	}
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	rvt_read_end(d.s[1]);
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

struct run {
	reeve_stream_t *s;
	size_t n;
};

static void *
write_much(void *arg)
{
	struct run *r = arg;

	for (size_t at = 0; at < r->n; at += 50000)
		rvt_write_run(r->s, 50000, at);
	(void)reeve_shut(r->s);
	return NULL;
}

START_TEST(much_more_than_budget_and_window_goes_through)
{
	struct rvt_duo d;
	struct run r;
	pthread_t t;

	rvt_duo_begin(&d, _i);
	r.s = d.s[0];
	r.n = 10000000;
	ck_assert_int_eq(pthread_create(&t, NULL, write_much, &r), 0);
	rvt_read_run(d.s[1], r.n, 0);
	rvt_read_end(d.s[1]);
	pthread_join(t, NULL);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(writev_sends_its_pieces_in_order)
{
	struct rvt_duo d;
	char in[16], one[] = "one", two[] = "two", three[] = "three";
	struct iovec v[4] = {{one, 3}, {NULL, 0}, {two, 3}, {three, 5}};
	size_t n = 0;
	reeve_ssize got;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_writev(d.s[0], v, 4), 11);
	while (n < 11) {
		got = reeve_read(d.s[1], in + n, sizeof(in) - n);
		ck_assert_int_gt(got, 0);
		n += (size_t)got;
	}
	ck_assert_mem_eq(in, "onetwothree", 11);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_write_without_a_reader_stops_at_its_deadline_with_a_count)
{
	struct rvt_duo d;
	static uint8_t much[8000000];
	reeve_ssize n;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_deadline(d.s[0], REEVE_WR, 50), 0);
	n = reeve_write(d.s[0], much, sizeof(much));
	ck_assert_int_gt(n, 256 * 1024);
	ck_assert_int_lt(n, (reeve_ssize)sizeof(much));
	ck_assert_int_eq(reeve_write(d.s[0], much, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 10, 0)), REEVE_ETIMEDOUT);
	/* The stream stays usable. */
	ck_assert_int_eq(reeve_deadline(d.s[0], REEVE_WR, RVT_WAIT_MS), 0);
	for (reeve_ssize got, left = n; left > 0; left -= got) {
		got = reeve_read(d.s[1], much, sizeof(much));
		ck_assert_int_gt(got, 0);
	}
	rvt_write_run(d.s[0], 1000, 0);
	rvt_read_run(d.s[1], 1000, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_read_ends_at_its_deadline_and_the_stream_goes_on)
{
	struct rvt_duo d;
	uint64_t start;
	uint8_t byte;
	reeve_buf_t *b;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 20), 0);
	start = rvt_ms();
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(rvt_ms() - start, 19);
	ck_assert_int_eq(reeve_read_buf(d.s[1], &b), REEVE_ETIMEDOUT); /* it persists */
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 0), 0);
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, -1), 0);
	rvt_write_run(d.s[0], 100, 0);
	rvt_read_run(d.s[1], 100, 0);
	rvt_duo_end(&d);
}
END_TEST

struct reader {
	reeve_stream_t *s;
	struct rvq_gauge started;
	reeve_ssize rc;
};

static void *
read_one(void *arg)
{
	struct reader *r = arg;
	uint8_t byte;

	rvq_gauge_add(&r->started, 1);
	r->rc = reeve_read(r->s, &byte, 1);
	return NULL;
}

START_TEST(a_deadline_set_while_a_read_waits_ends_it)
{
	struct rvt_duo d;
	struct reader r = {0};
	pthread_t t;

	rvt_duo_begin(&d, _i);
	for (int ms = 0; ms <= 20; ms += 20) {
		ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, -1), 0);
		r.s = d.s[1];
		rvq_gauge_sub(&r.started, rvq_gauge_get(&r.started));
		ck_assert_int_eq(pthread_create(&t, NULL, read_one, &r), 0);
		RVT_UNTIL(rvq_gauge_get(&r.started) == 1);
		ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, ms), 0);
		pthread_join(t, NULL);
		ck_assert_int_eq(r.rc, REEVE_ETIMEDOUT);
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_deadline_moved_away_while_a_read_waits_lets_it_wait)
{
	struct rvt_duo d;
	struct reader r = {0};
	pthread_t t;
	uint64_t start;

	rvt_duo_begin(&d, _i);
	r.s = d.s[1];
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 300), 0);
	start = rvt_ms();
	ck_assert_int_eq(pthread_create(&t, NULL, read_one, &r), 0);
	RVT_UNTIL(rvq_gauge_get(&r.started) == 1);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, -1), 0);
	RVT_UNTIL(rvt_ms() > start + 350);
	rvt_write_run(d.s[0], 1, 0);
	pthread_join(t, NULL);
	ck_assert_int_eq(r.rc, 1);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(read_buf_hands_over_what_arrived_and_the_rest_of_a_read)
{
	struct rvt_duo d;
	reeve_buf_t *b = NULL, *out;
	reeve_ssize n, total = 0;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 30000, 0)), 30000);
	rvt_read_run(d.s[1], 10, 0);
	while (total < 30000 - 10) {
		n = reeve_read_buf(d.s[1], &b);
		ck_assert_int_gt(n, 0);
		ck_assert_uint_eq(reeve_buf_len(b), (size_t)n);
		out = rvt_buf_run(d.rt, (size_t)n, (uint64_t)(10 + total));
		ck_assert_mem_eq(reeve_buf_data(b), reeve_buf_data(out), (size_t)n);
		reeve_buf_unref(out);
		reeve_buf_unref(b);
		total += n;
	}
	rvt_duo_end(&d);
}
END_TEST

/* A write is accepted whole as soon as there is any room: far beyond the budget. */
START_TEST(a_buffer_larger_than_the_budget_is_taken_whole)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 5000000, 0)), 5000000);
	rvt_read_run(d.s[1], 5000000, 0);
	rvt_duo_end(&d);
}
END_TEST

struct crowd {
	reeve_stream_t *s;
	reeve_rt_t *rt;
	struct rvq_gauge bytes;
	int whole; /* use buffers */
};
#define LINE  512
#define LINES 400

static void *
write_lines(void *arg)
{
	struct crowd *c = arg;
	static const uint8_t letters[] = "abcd";
	uint8_t line[LINE];
	uint8_t mine = letters[rvq_gauge_add(&c->bytes, 1) % 4];
	reeve_buf_t *b;

	memset(line, mine, sizeof(line));
	for (int i = 0; i < LINES; i++) {
		if (!c->whole) {
			if (reeve_write(c->s, line, LINE) != LINE)
				abort();
			continue;
		}
		b = reeve_buf_alloc(c->rt, LINE);
		ck_assert_ptr_nonnull(b);
		memcpy(reeve_buf_mut(b), line, LINE);
		ck_assert_int_eq(reeve_write_buf(c->s, b), LINE);
	}
	return NULL;
}

START_TEST(buffers_of_several_writers_are_not_mixed)
{
	struct rvt_duo d;
	struct crowd c = {0};
	pthread_t t[4];
	uint8_t line[LINE];
	size_t n;
	reeve_ssize got;

	rvt_duo_begin(&d, _i);
	c.s = d.s[0];
	c.rt = d.rt;
	c.whole = 1;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, write_lines, &c), 0);
	for (int i = 0; i < 4 * LINES; i++) {
		for (n = 0; n < LINE; n += (size_t)got) {
			got = reeve_read(d.s[1], line + n, LINE - n);
			ck_assert_int_gt(got, 0);
		}
		ck_assert(memcmp(line, line + 1, LINE - 1) == 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	rvt_duo_end(&d);
}
END_TEST

static void *
read_share(void *arg)
{
	struct crowd *c = arg;
	uint8_t part[700];
	reeve_ssize got;

	while ((got = reeve_read(c->s, part, sizeof(part))) > 0)
		rvq_gauge_add(&c->bytes, (uint64_t)got);
	ck_assert_int_eq(got, 0);
	return NULL;
}

START_TEST(several_readers_and_writers_share_every_byte_once)
{
	struct rvt_duo d;
	struct crowd in = {0}, out = {0};
	pthread_t t[6];

	rvt_duo_begin(&d, _i);
	in.s = d.s[1];
	out.s = d.s[0];
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(pthread_create(&t[i], NULL, write_lines, &out), 0);
		ck_assert_int_eq(pthread_create(&t[3 + i], NULL, read_share, &in), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	for (int i = 3; i < 6; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(rvq_gauge_get(&in.bytes), 3 * LINE * LINES);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(identity_and_data_of_a_stream)
{
	struct rvt_duo d;
	int mine;

	rvt_duo_begin(&d, _i);
	ck_assert_uint_eq(reeve_stream_id(d.s[0]), _i ? 0 : 1);
	ck_assert_uint_eq(reeve_stream_id(d.s[1]), _i ? 0 : 1);
	ck_assert_ptr_eq(reeve_stream_ctl(d.s[0]), d.k[0]);
	ck_assert_ptr_eq(reeve_stream_ctl(d.s[1]), d.k[1]);
	ck_assert_ptr_null(reeve_stream_data(d.s[0]));
	reeve_stream_set_data(d.s[0], &mine);
	ck_assert_ptr_eq(reeve_stream_data(d.s[0]), &mine);
	ck_assert_ptr_null(reeve_stream_data(d.s[1]));
	ck_assert_ptr_eq(reeve_stream_ref(d.s[0]), d.s[0]);
	reeve_stream_unref(d.s[0]);
	rvt_write_run(d.s[0], 10, 0);
	rvt_read_run(d.s[1], 10, 0);
	rvt_duo_end(&d);
}
END_TEST

/* One buffer to two streams, and its slice to a third: nobody changes what the others see. */
START_TEST(one_buffer_goes_out_on_several_streams)
{
	struct rvt_duo d;
	reeve_stream_t *a, *b;
	reeve_buf_t *buf, *part;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_open(d.k[0], &a, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_accept(d.k[1], &b, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_deadline(b, REEVE_RD, RVT_WAIT_MS), 0);
	buf = rvt_buf_run(d.rt, 50000, 0);
	part = reeve_buf_slice(buf, 1000, 2000);
	ck_assert_int_eq(reeve_write_buf(d.s[0], reeve_buf_ref(buf)), 50000);
	ck_assert_int_eq(reeve_write_buf(a, reeve_buf_ref(buf)), 50000);
	ck_assert_int_eq(reeve_write_buf(a, part), 2000);
	reeve_buf_unref(buf);
	rvt_read_run(b, 50000, 0);
	rvt_read_run(b, 2000, 1000);
	rvt_read_run(d.s[1], 50000, 0);
	reeve_close(a);
	reeve_close(b);
	rvt_duo_end(&d);
}
END_TEST

/* Each with yamux and with mplex. */
RVT_MAIN_TABLE("api_stream", {&bytes_arrive_in_order_whatever_the_sizes, 2},
    {&much_more_than_budget_and_window_goes_through, 2}, {&writev_sends_its_pieces_in_order, 2},
    {&a_write_without_a_reader_stops_at_its_deadline_with_a_count, 2},
    {&a_read_ends_at_its_deadline_and_the_stream_goes_on, 2},
    {&a_deadline_set_while_a_read_waits_ends_it, 2},
    {&a_deadline_moved_away_while_a_read_waits_lets_it_wait, 2},
    {&read_buf_hands_over_what_arrived_and_the_rest_of_a_read, 2},
    {&a_buffer_larger_than_the_budget_is_taken_whole, 2},
    {&buffers_of_several_writers_are_not_mixed, 2},
    {&several_readers_and_writers_share_every_byte_once, 2}, {&identity_and_data_of_a_stream, 2},
    {&one_buffer_goes_out_on_several_streams, 2})
