/* The controller: opening, accepting, pinging, going away, aborting, and the reason afterwards. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

static const int64_t timeouts[] = {0, 10, 60};

START_TEST(accept_waits_as_long_as_it_was_told)
{
	struct rvt_duo d;
	reeve_stream_t *s = NULL;
	uint64_t start;

	rvt_duo_rt(&d, 1);
	rvt_duo_conns(&d, NULL);
	for (unsigned i = 0; i < 3; i++) {
		start = rvt_ms();
		ck_assert_int_eq(reeve_accept(d.k[1], &s, timeouts[i]), REEVE_ETIMEDOUT);
		ck_assert_uint_ge(rvt_ms() - start + 1, (uint64_t)timeouts[i]);
		ck_assert_uint_lt(rvt_ms() - start, 5000);
	}
	ck_assert_ptr_null(s);
	ck_assert_int_eq(reeve_open(d.k[0], &d.s[0], 0), 0); /* a try is enough */
	ck_assert_int_eq(reeve_accept(d.k[1], &d.s[1], -1), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(opens_wait_for_the_unacknowledged_ones)
{
	struct rvt_duo d;
	reeve_cfg_t cfg;
	reeve_stream_t *s[3] = {NULL}, *t;
	struct rvt_done third;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = 2;
	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, &cfg);
	ck_assert_int_eq(reeve_open(d.k[0], &s[0], 0), 0);
	ck_assert_int_eq(reeve_open(d.k[0], &s[1], 0), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_open(d.k[0], &s[2], timeouts[i]), REEVE_ETIMEDOUT);
	rvt_done_init(&third, 10);
	reeve_open_async(d.k[0], &third.op);
	ck_assert_int_eq(rvt_done_wait(&third), REEVE_ETIMEDOUT);
	rvt_done_init(&third, -1);
	reeve_open_async(d.k[0], &third.op);
	reeve_op_cancel(&third.op);
	ck_assert_int_eq(rvt_done_wait(&third), REEVE_ECANCELED);
	rvt_done_init(&third, -1);
	reeve_open_async(d.k[0], &third.op);
	ck_assert_int_eq(reeve_accept(d.k[1], &t, RVT_WAIT_MS), 0);
	ck_assert_int_eq(rvt_done_wait(&third), 0);
	reeve_close(t);
	reeve_close(s[0]);
	reeve_close(s[1]);
	reeve_close(third.op.stream);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(more_streams_than_max_out_are_refused_at_once)
{
	struct rvt_duo d;
	reeve_cfg_t cfg;
	reeve_stream_t *s[2], *more = NULL;

	reeve_cfg_init(&cfg);
	cfg.max_out = 2;
	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, &cfg);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_open(d.k[0], &s[i], -1), 0);
	ck_assert_int_eq(reeve_open(d.k[0], &more, -1), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(more_streams_than_the_peer_takes_are_refused_one_by_one)
{
	struct rvt_duo d;
	reeve_cfg_t cfg;
	reeve_stream_t *s[3];
	uint8_t byte;

	reeve_cfg_init(&cfg);
	cfg.accept_backlog = 2;
	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, &cfg);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(reeve_open(d.k[0], &s[i], -1), 0);
		(void)reeve_deadline(s[i], REEVE_RD, RVT_WAIT_MS);
	}
	ck_assert_int_eq(reeve_read(s[2], &byte, 1), REEVE_EREFUSED);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	for (int i = 0; i < 3; i++)
		reeve_close(s[i]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(many_threads_share_one_controller)
{
	struct rvt_duo d;
	static struct rvt_done open[64], accept[64];

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	for (int i = 0; i < 64; i++) {
		rvt_done_init(&open[i], -1);
		rvt_done_init(&accept[i], -1);
		reeve_open_async(d.k[0], &open[i].op);
		reeve_accept_async(d.k[1], &accept[i].op);
	}
	for (int i = 0; i < 64; i++) {
		ck_assert_int_eq(rvt_done_wait(&open[i]), 0);
		ck_assert_int_eq(rvt_done_wait(&accept[i]), 0);
		ck_assert_uint_eq(reeve_stream_id(open[i].op.stream), (uint64_t)(2 * i + 1));
		ck_assert_uint_eq(reeve_stream_id(accept[i].op.stream), (uint64_t)(2 * i + 1));
	}
	for (int i = 0; i < 64; i++) {
		reeve_close(open[i].op.stream);
		reeve_close(accept[i].op.stream);
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(both_sides_open)
{
	struct rvt_duo d;
	reeve_stream_t *a, *b;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_open(d.k[1], &a, RVT_WAIT_MS), 0);
	ck_assert_uint_eq(reeve_stream_id(a), 2);
	rvt_write_run(a, 100, 0);
	ck_assert_int_eq(reeve_accept(d.k[0], &b, RVT_WAIT_MS), 0);
	rvt_read_run(b, 100, 0);
	reeve_close(a);
	reeve_close(b);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(going_away_stops_new_streams_and_leaves_the_old)
{
	struct rvt_duo d;
	reeve_stream_t *s = NULL;
	int rc;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_goaway(d.k[1], 0), 0);
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, NULL), 0); /* it has arrived */
	ck_assert_int_eq(reeve_open(d.k[0], &s, RVT_WAIT_MS), REEVE_EGOAWAY);
	rc = reeve_open(d.k[1], &s, RVT_WAIT_MS);
	ck_assert_int_eq(rc, REEVE_EGOAWAY);
	rvt_write_run(d.s[0], 1000, 0);
	rvt_read_run(d.s[1], 1000, 0);
	rvt_write_run(d.s[1], 1000, 0);
	rvt_read_run(d.s[0], 1000, 0);
	ck_assert_int_eq(reeve_goaway(d.k[1], 0), 0);
	rvt_duo_end(&d);
}
END_TEST

static reeve_reason_t
reason(reeve_ctl_t *k)
{
	reeve_reason_t r = {.size = sizeof(r)};

	ck_assert_int_eq(reeve_ctl_reason(k, &r), 0);
	ck_assert_uint_eq(r.size, sizeof(r));
	ck_assert_ptr_nonnull(r.id);
	return r;
}

START_TEST(the_first_abort_is_the_reason_of_everything)
{
	struct rvt_duo d;
	reeve_stream_t *s = NULL;
	uint8_t byte;

	rvt_duo_start(&d);
	ck_assert_int_eq(reason(d.k[0]).rc, 0);
	ck_assert_uint_eq(reason(d.k[0]).by, REEVE_BY_NONE);
	ck_assert_int_eq(reeve_abort(d.k[0], REEVE_ELIMIT), 0);
	ck_assert_int_eq(reeve_abort(d.k[0], REEVE_EDEAD), 0);
	ck_assert_int_eq(reeve_conn_close(d.c[0], -1), REEVE_ELIMIT);
	ck_assert_int_eq(reason(d.k[0]).rc, REEVE_ELIMIT);
	ck_assert_uint_eq(reason(d.k[0]).by, REEVE_BY_US);
	ck_assert_int_eq(reeve_open(d.k[0], &s, -1), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_accept(d.k[0], &s, -1), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_ping(d.k[0], -1, NULL), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_read(d.s[0], &byte, 1), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_write(d.s[0], &byte, 1), REEVE_ELIMIT);
	ck_assert_int_eq(reeve_goaway(d.k[0], 0), 0);
	ck_assert_int_lt(reeve_read(d.s[1], &byte, 1), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(abort_with_nothing_means_closed)
{
	struct rvt_duo d;
	struct rvt_done closed, before;
	reeve_stream_t *s = NULL;

	rvt_duo_start(&d);
	rvt_done_init(&before, -1);
	reeve_closed_async(d.k[0], &before.op);
	ck_assert_int_eq(reeve_abort(d.k[0], 0), 0);
	ck_assert_int_eq(rvt_done_wait(&before), REEVE_ECLOSED);
	rvt_done_init(&closed, -1);
	reeve_closed_async(d.k[0], &closed.op);
	ck_assert_int_eq(rvt_done_wait(&closed), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_open(d.k[0], &s, -1), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_conn_close(d.c[0], -1), 0); /* an end of our own is clean */
	rvt_duo_end(&d);
}
END_TEST

START_TEST(queued_streams_are_accepted_after_the_end)
{
	struct rvt_duo d;
	reeve_stream_t *s[2], *t = NULL;
	struct rvt_done closed;

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_open(d.k[0], &s[i], -1), 0);
		rvt_write_run(s[i], 100, 0);
	}
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	rvt_done_init(&closed, -1);
	reeve_closed_async(d.k[1], &closed.op);
	ck_assert_int_eq(reeve_abort(d.k[1], REEVE_EDEAD), 0);
	ck_assert_int_eq(rvt_done_wait(&closed), REEVE_EDEAD);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_accept(d.k[1], &t, -1), 0);
		rvt_read_run(t, 100, 0);
		ck_assert_int_eq(reeve_read(t, &closed, 1), REEVE_EDEAD);
		reeve_close(t);
		reeve_close(s[i]);
	}
	ck_assert_int_eq(reeve_accept(d.k[1], &t, -1), REEVE_EDEAD);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN("api_ctl", &accept_waits_as_long_as_it_was_told, &opens_wait_for_the_unacknowledged_ones,
    &more_streams_than_max_out_are_refused_at_once,
    &more_streams_than_the_peer_takes_are_refused_one_by_one, &many_threads_share_one_controller,
    &both_sides_open, &going_away_stops_new_streams_and_leaves_the_old,
    &the_first_abort_is_the_reason_of_everything, &abort_with_nothing_means_closed,
    &queued_streams_are_accepted_after_the_end)
