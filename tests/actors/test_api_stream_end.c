/* How a stream ends: shut, stop, reset, close, drop, and what each side is told. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

static uint8_t byte;

static reeve_reason_t
why(reeve_stream_t *s)
{
	reeve_reason_t r = {.size = sizeof(r)};

	ck_assert_int_eq(reeve_stream_reason(s, &r), 0);
	return r;
}

static uint64_t
unread(reeve_ctl_t *k)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_ctl_stats(k, &st), 0);
	return st.unread;
}

START_TEST(shut_ends_writing_and_leaves_reading)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[0], 1000, 0);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	ck_assert_int_eq(reeve_write(d.s[0], &byte, 1), REEVE_ESHUT);
	ck_assert_int_eq(reeve_write(d.s[0], NULL, 0), REEVE_ESHUT);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 5, 0)), REEVE_ESHUT);
	rvt_read_run(d.s[1], 1000, 0);
	rvt_read_end(d.s[1]);
	ck_assert_int_eq(reeve_read(d.s[1], NULL, 0), 0);
	rvt_write_run(d.s[1], 1000, 0);
	rvt_read_run(d.s[0], 1000, 0);
	ck_assert_int_eq(why(d.s[0]).rc, 0);
	ck_assert_uint_eq(why(d.s[0]).by, REEVE_BY_NONE);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(stop_ends_reading_and_leaves_writing)
{
	struct rvt_duo d;
	reeve_buf_t *b;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[0], 1000, 0);
	ck_assert_int_eq(reeve_stop(d.s[1]), 0);
	ck_assert_int_eq(reeve_stop(d.s[1]), 0);
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_read_buf(d.s[1], &b), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_read(d.s[1], NULL, 0), REEVE_ECLOSED);
	rvt_write_run(d.s[1], 1000, 0);
	rvt_read_run(d.s[0], 1000, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(reset_drops_everything_and_carries_its_code)
{
	struct rvt_duo d;
	reeve_reason_t r;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[0], 1000, 0);
	rvt_read_run(d.s[1], 1000, 0);
	ck_assert_int_eq(reeve_reset(d.s[0], 7), 0);
	ck_assert_int_eq(reeve_reset(d.s[0], 8), 0);
	ck_assert_int_eq(reeve_write(d.s[0], &byte, 1), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_read(d.s[0], &byte, 1), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_ERESET);
	ck_assert_int_eq(reeve_read(d.s[1], NULL, 0), REEVE_ERESET);
	ck_assert_int_eq(reeve_write(d.s[1], &byte, 1), REEVE_ERESET);
	r = why(d.s[1]);
	ck_assert_int_eq(r.rc, REEVE_ERESET);
	ck_assert_uint_eq(r.by, REEVE_BY_PEER);
	r = why(d.s[0]);
	ck_assert_int_eq(r.rc, REEVE_ECLOSED);
	ck_assert_uint_eq(r.by, REEVE_BY_US);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(bytes_before_a_reset_are_read_before_it)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[0], 1000, 0);
	RVT_UNTIL(unread(d.k[1]) == 1000);
	ck_assert_int_eq(reeve_reset(d.s[0], 0), 0);
	rvt_read_run(d.s[1], 1000, 0);
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_ERESET);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(close_sends_what_was_accepted)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[0], 200000, 0);
	reeve_close(d.s[0]);
	d.s[0] = NULL;
	rvt_read_run(d.s[1], 200000, 0);
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(close_is_for_every_handle)
{
	struct rvt_duo d;
	reeve_stream_t *second;

	rvt_duo_begin(&d, _i);
	second = reeve_stream_ref(d.s[0]);
	reeve_close(d.s[0]);
	d.s[0] = second;
	ck_assert_int_eq(reeve_write(second, &byte, 1), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_read(second, &byte, 1), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_shut(second), 0);
	ck_assert_int_eq(reeve_stop(second), 0);
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(close_with_unread_bytes_is_a_reset_behind_the_fin)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[1], 100, 0);
	rvt_read_run(d.s[0], 50, 0); /* they are here, half of them unread */
	rvt_write_run(d.s[0], 100, 0);
	reeve_close(d.s[0]);
	d.s[0] = NULL;
	rvt_read_run(d.s[1], 100, 0);
	RVT_UNTIL(reeve_write(d.s[1], &byte, 1) == REEVE_ERESET);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_dropped_handle_sends_what_was_accepted_then_resets)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	rvt_write_run(d.s[0], 5000, 0);
	reeve_stream_unref(d.s[0]);
	d.s[0] = NULL;
	rvt_read_run(d.s[1], 5000, 0);
	ck_assert_int_eq(reeve_read(d.s[1], &byte, 1), REEVE_ERESET);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_handle_dropped_after_the_peers_end_is_a_clean_end)
{
	struct rvt_duo d;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_shut(d.s[1]), 0);
	rvt_read_end(d.s[0]);
	rvt_write_run(d.s[0], 5000, 0);
	reeve_stream_unref(d.s[0]);
	d.s[0] = NULL;
	rvt_read_run(d.s[1], 5000, 0);
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

struct waiter {
	reeve_stream_t *s;
	struct rvq_gauge started;
	reeve_ssize rd, wr;
};

static void *
wait_to_read(void *arg)
{
	struct waiter *w = arg;
	uint8_t b;

	rvq_gauge_add(&w->started, 1);
	w->rd = reeve_read(w->s, &b, 1);
	return NULL;
}

static void *
wait_to_write(void *arg)
{
	struct waiter *w = arg;
	static uint8_t much[1000];

	rvq_gauge_add(&w->started, 1);
	while ((w->wr = reeve_write(w->s, much, sizeof(much))) > 0)
		;
	return NULL;
}

/* Somebody reads and somebody writes (and fills every window) while `end` happens. */
static struct waiter
while_waiting(struct rvt_duo *d, void (*end)(struct rvt_duo *d))
{
	struct waiter w = {.s = d->s[1]};
	pthread_t r, t;

	ck_assert_int_eq(pthread_create(&r, NULL, wait_to_read, &w), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, wait_to_write, &w), 0);
	RVT_UNTIL(rvq_gauge_get(&w.started) == 2);
	(void)reeve_ping(d->k[1], RVT_WAIT_MS, NULL); /* a turn of the connection */
	end(d);
	pthread_join(r, NULL);
	pthread_join(t, NULL);
	return w;
}

static void
by_peer_reset(struct rvt_duo *d)
{
	(void)reeve_reset(d->s[0], 3);
}

static void
by_own_reset(struct rvt_duo *d)
{
	(void)reeve_reset(d->s[1], 3);
}

static void
by_close(struct rvt_duo *d)
{
	reeve_close(reeve_stream_ref(d->s[1]));
}

static void
by_abort(struct rvt_duo *d)
{
	(void)reeve_abort(d->k[1], REEVE_EDEAD);
}

static void
by_peers_abort(struct rvt_duo *d)
{
	(void)reeve_abort(d->k[0], REEVE_EDEAD);
}

static void
by_shutdown(struct rvt_duo *d)
{
	(void)reeve_rt_shutdown(d->rt, 0);
}

START_TEST(every_end_wakes_who_waits_with_its_reason)
{
	static const struct {
		void (*end)(struct rvt_duo *d);
		int rd, wr;
	} ends[] = {
	    {by_peer_reset, REEVE_ERESET, REEVE_ERESET},
	    {by_own_reset, REEVE_ECLOSED, REEVE_ECLOSED},
	    {by_close, REEVE_ECLOSED, REEVE_ECLOSED},
	    {by_abort, REEVE_EDEAD, REEVE_EDEAD},
	    {by_peers_abort, REEVE_EEND, REEVE_EEND},
	    {by_shutdown, REEVE_ECLOSED, REEVE_ECLOSED},
	};
	struct rvt_duo d;
	struct waiter w;
	int row = _i % 6;

	rvt_duo_begin(&d, _i >= 6);
	w = while_waiting(&d, ends[row].end);
	ck_assert_msg(w.rd == ends[row].rd || (row == 4 && w.rd < 0), "%d: read %s", row,
	    reeve_errname((int)w.rd));
	ck_assert_msg(w.wr == ends[row].wr || (row == 4 && w.wr < 0), "%d: write %s", row,
	    reeve_errname((int)w.wr));
	rvt_duo_end(&d);
}
END_TEST

START_TEST(shut_wakes_a_waiting_writer)
{
	struct rvt_duo d;
	struct waiter w = {0};
	pthread_t t;

	rvt_duo_begin(&d, _i);
	w.s = d.s[0];
	ck_assert_int_eq(pthread_create(&t, NULL, wait_to_write, &w), 0);
	RVT_UNTIL(rvq_gauge_get(&w.started) == 1);
	(void)reeve_ping(d.k[0], RVT_WAIT_MS, NULL);
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	pthread_join(t, NULL);
	ck_assert_int_eq(w.wr, REEVE_ESHUT);
	while ((w.rd = reeve_read(d.s[1], &byte, 1)) > 0)
		;
	ck_assert_int_eq(w.rd, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(thousands_of_streams_come_and_go)
{
	struct rvt_duo d;
	reeve_stream_t *a, *b;
	reeve_stats_t st = {.size = sizeof(st)};

	rvt_duo_begin(&d, _i);
	for (unsigned i = 0; i < 2000; i++) {
		ck_assert_int_eq(reeve_open(d.k[0], &a, RVT_WAIT_MS), 0);
		rvt_write_run(a, 10, i);
		ck_assert_int_eq(reeve_accept(d.k[1], &b, RVT_WAIT_MS), 0);
		(void)reeve_deadline(b, REEVE_RD, RVT_WAIT_MS);
		rvt_read_run(b, 10, i);
		reeve_close(a);
		rvt_read_end(b);
		reeve_close(b);
	}
	RVT_UNTIL(reeve_ctl_stats(d.k[0], &st) == 0 && st.streams_open == 1);
	ck_assert_uint_eq(st.streams_opened, 2001);
	rvt_duo_end(&d);
}
END_TEST

/* Each with yamux and with mplex. */
RVT_MAIN_TABLE("api_stream_end", {&shut_ends_writing_and_leaves_reading, 2},
    {&stop_ends_reading_and_leaves_writing, 2}, {&reset_drops_everything_and_carries_its_code, 2},
    {&bytes_before_a_reset_are_read_before_it, 2}, {&close_sends_what_was_accepted, 2},
    {&close_is_for_every_handle, 2}, {&close_with_unread_bytes_is_a_reset_behind_the_fin, 2},
    {&a_dropped_handle_sends_what_was_accepted_then_resets, 2},
    {&a_handle_dropped_after_the_peers_end_is_a_clean_end, 2}, {&shut_wakes_a_waiting_writer, 2},
    {&thousands_of_streams_come_and_go, 2}, {&every_end_wakes_who_waits_with_its_reason, 12})
