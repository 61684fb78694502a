/* Buffers: sharing, slices, bytes of the application's own, and life after the runtime. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

START_TEST(a_buffer_has_its_size_and_is_writable_alone)
{
	static const size_t sizes[] = {1, 255, 256, 257, 2048, 16384, 65536, 65537, 3000000};
	struct rvt_duo d;
	reeve_buf_t *b;

	rvt_duo_rt(&d, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		b = reeve_buf_alloc(d.rt, sizes[i]);
		ck_assert_ptr_nonnull(b);
		ck_assert_uint_eq(reeve_buf_len(b), sizes[i]);
		ck_assert_ptr_eq(reeve_buf_mut(b), reeve_buf_data(b));
		memset(reeve_buf_mut(b), 1, sizes[i]);
		reeve_buf_unref(b);
	}
	ck_assert_ptr_null(reeve_buf_alloc(d.rt, 0));
	ck_assert_ptr_null(reeve_buf_alloc(d.rt, ((size_t)1 << 30) + 1));
	ck_assert_ptr_null(reeve_buf_alloc(d.rt, SIZE_MAX));
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_shared_buffer_is_not_writable_until_it_is_alone_again)
{
	struct rvt_duo d;
	reeve_buf_t *b, *part;

	rvt_duo_rt(&d, 1);
	b = rvt_buf_run(d.rt, 100, 0);
	ck_assert_ptr_eq(reeve_buf_ref(b), b);
	ck_assert_ptr_null(reeve_buf_mut(b));
	reeve_buf_unref(b);
	ck_assert_ptr_nonnull(reeve_buf_mut(b));
	part = reeve_buf_slice(b, 10, 20);
	ck_assert_ptr_null(reeve_buf_mut(b));
	ck_assert_ptr_null(reeve_buf_mut(part));
	reeve_buf_unref(part);
	ck_assert_ptr_nonnull(reeve_buf_mut(b));
	reeve_buf_unref(b);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(slices_share_bytes_and_outlive_their_parent)
{
	struct rvt_duo d;
	reeve_buf_t *b, *part, *inner;

	rvt_duo_rt(&d, 1);
	b = rvt_buf_run(d.rt, 5000, 0);
	part = reeve_buf_slice(b, 1000, 2000);
	ck_assert_ptr_nonnull(part);
	ck_assert_uint_eq(reeve_buf_len(part), 2000);
	ck_assert_ptr_eq(reeve_buf_data(part), reeve_buf_data(b) + 1000);
	ck_assert_ptr_null(reeve_buf_slice(b, 0, 5001));
	ck_assert_ptr_null(reeve_buf_slice(b, 5000, 1));
	ck_assert_ptr_null(reeve_buf_slice(b, SIZE_MAX, 2));
	ck_assert_ptr_null(reeve_buf_slice(b, 1, SIZE_MAX));
	reeve_buf_unref(b);
	inner = reeve_buf_slice(part, 500, 1500);
	ck_assert_ptr_nonnull(inner);
	ck_assert_ptr_null(reeve_buf_slice(part, 500, 1501));
	reeve_buf_unref(part);
	b = rvt_buf_run(d.rt, 1500, 1500);
	ck_assert_mem_eq(reeve_buf_data(inner), reeve_buf_data(b), 1500);
	reeve_buf_unref(b);
	reeve_buf_unref(inner);
	rvt_duo_end(&d);
}
END_TEST

/* A slice may be empty; writing it sends nothing. */
START_TEST(an_empty_buffer_is_written_as_nothing)
{
	struct rvt_duo d;
	struct rvt_done wr;
	reeve_buf_t *b, *empty;
	reeve_stats_t st = {.size = sizeof(st)};

	rvt_duo_start(&d);
	b = rvt_buf_run(d.rt, 10, 0);
	ck_assert_int_eq(reeve_write_buf(d.s[0], reeve_buf_slice(b, 10, 0)), 0);
	rvt_done_init(&wr, -1);
	reeve_write_async(d.s[0], reeve_buf_slice(b, 5, 0), &wr.op);
	ck_assert_int_eq(rvt_done_wait(&wr), 0);
	empty = reeve_buf_slice(b, 0, 0);
	ck_assert_int_eq(reeve_write_buf(d.s[0], b), 10);
	rvt_read_run(d.s[1], 10, 0);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), 0);
	ck_assert_uint_eq(st.bytes_out, 10);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	rvt_read_end(d.s[1]);
	ck_assert_int_eq(reeve_write_buf(d.s[0], empty), REEVE_ESHUT);
	rvt_duo_end(&d);
}
END_TEST

static unsigned done_calls;

static void
done(void *ctx)
{
	(void)__atomic_fetch_add((unsigned *)ctx, 1, __ATOMIC_SEQ_CST);
}

START_TEST(wrapped_bytes_are_given_back_once)
{
	struct rvt_duo d;
	static uint8_t mine[100000];
	reeve_buf_t *b, *part;

	rvt_duo_start(&d);
	ck_assert_ptr_null(reeve_buf_wrap(d.rt, NULL, 1, done, &done_calls));
	ck_assert_ptr_null(reeve_buf_wrap(d.rt, mine, 0, done, &done_calls));
	ck_assert_ptr_null(reeve_buf_wrap(d.rt, mine, SIZE_MAX, done, &done_calls));
	ck_assert_uint_eq(done_calls, 0);
	b = reeve_buf_wrap(d.rt, mine, sizeof(mine), done, &done_calls);
	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_eq(reeve_buf_data(b), mine);
	ck_assert_ptr_null(reeve_buf_mut(b));
	part = reeve_buf_slice(b, 5, 5);
	reeve_buf_unref(b);
	ck_assert_uint_eq(done_calls, 0);
	reeve_buf_unref(part);
	ck_assert_uint_eq(done_calls, 1);
	b = reeve_buf_wrap(d.rt, mine, 10, NULL, NULL);
	reeve_buf_unref(b);
	rvt_duo_end(&d);
	ck_assert_uint_eq(done_calls, 1);
}
END_TEST

START_TEST(wrapped_bytes_are_sent_and_given_back)
{
	struct rvt_duo d;
	static uint8_t mine[100000];
	reeve_buf_t *run;

	rvt_duo_start(&d);
	run = rvt_buf_run(d.rt, sizeof(mine), 0);
	memcpy(mine, reeve_buf_data(run), sizeof(mine));
	reeve_buf_unref(run);
	ck_assert_int_eq(
	    reeve_write_buf(d.s[0], reeve_buf_wrap(d.rt, mine, sizeof(mine), done, &done_calls)),
	    sizeof(mine));
	rvt_read_run(d.s[1], sizeof(mine), 0);
	RVT_UNTIL(__atomic_load_n(&done_calls, __ATOMIC_SEQ_CST) == 1);
	/* And when it cannot be sent any more. */
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	ck_assert_int_eq(
	    reeve_write_buf(d.s[0], reeve_buf_wrap(d.rt, mine, sizeof(mine), done, &done_calls)),
	    REEVE_ESHUT);
	ck_assert_uint_eq(done_calls, 2);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(buffers_outlive_everything)
{
	struct rvt_duo d;
	reeve_buf_t *b[5], *part;
	reeve_ssize n;

	rvt_duo_start(&d);
	for (int i = 0; i < 4; i++)
		b[i] = rvt_buf_run(d.rt, (size_t)1000 << (2 * i), 0);
	rvt_write_run(d.s[0], 5000, 0);
	n = reeve_read_buf(d.s[1], &b[4]);
	ck_assert_int_gt(n, 0);
	for (int i = 0; i < 2; i++) {
		reeve_close(d.s[i]);
		reeve_conn_destroy(d.c[i]);
		d.s[i] = NULL;
		d.c[i] = NULL;
	}
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	part = reeve_buf_slice(b[4], 0, 10);
	ck_assert_ptr_nonnull(part);
	ck_assert_mem_eq(reeve_buf_data(b[0]), reeve_buf_data(part), 10);
	for (int i = 0; i < 5; i++)
		reeve_buf_unref(b[i]);
	ck_assert_uint_gt(rvq_gauge_get(&d.alloc.blocks), 0);
	reeve_buf_unref(part);
	rvt_duo_end(&d);
}
END_TEST

static void *
drop(void *arg)
{
	reeve_buf_t **b = arg;

	for (int i = 0; i < 100; i++)
		reeve_buf_unref(b[i]);
	return NULL;
}

START_TEST(buffers_may_be_made_and_let_go_by_different_threads)
{
	struct rvt_duo d;
	static reeve_buf_t *b[100];
	pthread_t t[2];

	rvt_duo_rt(&d, 1);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++)
			b[i] = reeve_buf_ref(rvt_buf_run(d.rt, 3000, 0));
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(pthread_create(&t[i], NULL, drop, b), 0);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
	}
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN("api_buf", &a_buffer_has_its_size_and_is_writable_alone,
    &a_shared_buffer_is_not_writable_until_it_is_alone_again,
    &slices_share_bytes_and_outlive_their_parent, &an_empty_buffer_is_written_as_nothing,
    &wrapped_bytes_are_given_back_once, &wrapped_bytes_are_sent_and_given_back,
    &buffers_outlive_everything, &buffers_may_be_made_and_let_go_by_different_threads)
