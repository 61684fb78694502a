/* Connections: over descriptors, pairs and transports of the application; closing, destroying, releasing. */
#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

static void
conns_over(struct rvt_duo *d, void (*pair)(int v[2]))
{
	int v[2];

	pair(v);
	ck_assert_int_eq(reeve_conn_open_fd(&d->c[0], d->rt, v[0], REEVE_DIALER, NULL), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&d->c[1], d->rt, v[1], REEVE_LISTENER, NULL), 0);
	d->k[0] = reeve_conn_ctl(d->c[0]);
	d->k[1] = reeve_conn_ctl(d->c[1]);
}

START_TEST(connected_sockets_carry_streams)
{
	struct rvt_duo d;

	for (int i = 0; i < 2; i++) {
		rvt_duo_rt(&d, 2);
		conns_over(&d, i == 0 ? rvt_unix_pair : rvt_tcp_pair);
		rvt_duo_stream(&d);
		for (uint64_t at = 0; at < 1000000; at += 50000) {
			rvt_write_run(d.s[0], 50000, at);
			rvt_read_run(d.s[1], 50000, at);
		}
		ck_assert_int_eq(reeve_shut(d.s[0]), 0);
		rvt_read_end(d.s[1]);
		rvt_duo_end(&d);
	}
}
END_TEST

START_TEST(a_descriptor_is_still_the_callers_after_a_failure)
{
	struct rvt_duo d;
	reeve_conn_t *c = NULL;
	reeve_cfg_t cfg;
	int v[2];

	rvt_duo_rt(&d, 1);
	rvt_unix_pair(v);
	ck_assert_int_eq(reeve_conn_open_fd(&c, d.rt, v[0], 3, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_conn_open_fd(&c, d.rt, v[0], 0, NULL), REEVE_EINVAL);
	reeve_cfg_init(&cfg);
	cfg.proto = 3;
	ck_assert_int_eq(reeve_conn_open_fd(&c, d.rt, v[0], REEVE_DIALER, &cfg), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, 0), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&c, d.rt, v[0], REEVE_DIALER, NULL), REEVE_ECLOSED);
	ck_assert_int_ge(fcntl(v[0], F_GETFD), 0);
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, NULL), REEVE_ECLOSED);
	ck_assert_int_eq(write(v[0], "x", 1), 1);
	close(v[0]);
	close(v[1]);
	d.c[0] = d.c[1] = NULL;
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_descriptor_is_closed_with_its_connection)
{
	struct rvt_duo d;
	int v[2];

	rvt_duo_rt(&d, 1);
	rvt_unix_pair(v);
	ck_assert_int_eq(reeve_conn_open_fd(&d.c[0], d.rt, v[0], REEVE_DIALER, NULL), 0);
	reeve_conn_destroy(d.c[0]);
	d.c[0] = NULL;
	ck_assert_int_lt(fcntl(v[0], F_GETFD), 0);
	close(v[1]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_graceful_close_is_clean_on_both_sides)
{
	struct rvt_duo d;
	struct rvt_done closed;
	reeve_reason_t r = {.size = sizeof(r)};
	reeve_ssize rc;

	rvt_duo_start(&d);
	rvt_write_run(d.s[0], 100000, 0);
	rvt_done_init(&closed, -1);
	reeve_closed_async(d.k[0], &closed.op);
	reeve_close(d.s[0]);
	d.s[0] = NULL;
	rvt_read_run(d.s[1], 100000, 0);
	rvt_read_end(d.s[1]);
	reeve_close(d.s[1]);
	d.s[1] = NULL;
	ck_assert_int_eq(reeve_conn_close(d.c[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(rvt_done_wait(&closed), 0);
	ck_assert_int_eq(reeve_conn_close(d.c[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], &r), 0);
	ck_assert_int_eq(r.rc, 0);
	rvt_done_init(&closed, -1);
	reeve_closed_async(d.k[1], &closed.op);
	rc = rvt_done_wait(&closed);
	ck_assert(rc == 0 || rc == REEVE_EEND);
	ck_assert_int_eq(reeve_conn_close(d.c[1], RVT_WAIT_MS), 0);
	ck_assert_uint_eq(rvq_gauge_get(&d.warned), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(close_waits_for_the_streams_and_gives_up_at_its_deadline)
{
	struct rvt_duo d;
	reeve_stream_t *s = NULL;
	uint64_t start;

	rvt_duo_start(&d);
	start = rvt_ms();
	ck_assert_int_eq(reeve_conn_close(d.c[0], 50), REEVE_ETIMEDOUT); /* d.s[0] is open */
	ck_assert_uint_ge(rvt_ms() - start, 49);
	ck_assert_int_lt(reeve_open(d.k[0], &s, -1), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(close_without_time_does_not_wait)
{
	struct rvt_duo d;
	uint64_t start;
	int rc;

	rvt_duo_start(&d);
	start = rvt_ms();
	rc = reeve_conn_close(d.c[0], 0);
	ck_assert(rc == 0 || rc == REEVE_ETIMEDOUT);
	ck_assert_uint_lt(rvt_ms() - start, (uint64_t)rvt_slow(900));
	rvt_duo_end(&d);
}
END_TEST

static void *
finish_reading(void *arg)
{
	struct rvt_duo *d = arg;

	rvt_read_run(d->s[1], 3000000, 0);
	rvt_read_end(d->s[1]);
	reeve_close(d->s[1]);
	d->s[1] = NULL;
	return NULL;
}

/* What was written before the close arrives, however long it takes; no new streams meanwhile. */
START_TEST(close_without_a_deadline_loses_nothing)
{
	struct rvt_duo d;
	pthread_t t;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 3000000, 0)), 3000000);
	ck_assert_int_eq(pthread_create(&t, NULL, finish_reading, &d), 0);
	ck_assert_int_eq(reeve_conn_close(d.c[0], -1), 0);
	pthread_join(t, NULL);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_released_connection_lives_as_long_as_its_users)
{
	struct rvt_duo d;
	struct rvt_done closed;
	reeve_ctl_t *k;
	reeve_stream_t *s, *t;

	rvt_duo_start(&d);
	rvt_done_init(&closed, -1);
	reeve_closed_async(d.k[1], &closed.op);
	k = reeve_ctl_ref(d.k[0]);
	reeve_conn_release(d.c[0]);
	d.c[0] = NULL;
	rvt_write_run(d.s[0], 100, 0);
	rvt_read_run(d.s[1], 100, 0);
	ck_assert_int_eq(reeve_open(k, &s, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_accept(d.k[1], &t, RVT_WAIT_MS), 0);
	reeve_ctl_unref(k);
	rvt_write_run(s, 100, 0); /* streams still hold it */
	rvt_read_run(t, 100, 0);
	reeve_close(s);
	rvt_read_end(t);
	reeve_close(t);
	rvt_write_run(d.s[0], 5000, 100);
	ck_assert_int_eq(rvt_done_is(&closed), 0);
	reeve_close(d.s[0]);
	d.s[0] = NULL;
	rvt_read_run(d.s[1], 5000, 100);
	rvt_read_end(d.s[1]);
	reeve_close(d.s[1]);
	d.s[1] = NULL;
	ck_assert_int_le(rvt_done_wait(&closed), 0);
	ck_assert(closed.op.res == 0 || closed.op.res == REEVE_EEND);
	ck_assert_uint_eq(rvq_gauge_get(&d.warned), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_pending_operation_is_a_user_but_waiting_for_the_end_is_not)
{
	struct rvt_duo d;
	struct rvt_done closed, accept;

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	rvt_done_init(&closed, -1);
	rvt_done_init(&accept, -1);
	reeve_closed_async(d.k[0], &closed.op);
	reeve_accept_async(d.k[0], &accept.op);
	reeve_conn_release(d.c[0]);
	d.c[0] = NULL;
	ck_assert_int_eq(reeve_ping(d.k[1], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(rvt_done_is(&closed), 0);
	reeve_op_cancel(&accept.op);
	ck_assert_int_eq(rvt_done_wait(&accept), REEVE_ECANCELED);
	ck_assert_int_eq(rvt_done_wait(&closed), 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(everything_may_be_let_go_in_any_order)
{
	struct rvt_duo d;
	reeve_ctl_t *k;

	for (unsigned order = 0; order < 8; order++) {
		rvt_duo_start(&d);
		k = reeve_ctl_ref(d.k[0]);
		rvt_write_run(d.s[0], 1000, 0);
		if (order & 1)
			reeve_conn_destroy(d.c[0]);
		else
			reeve_conn_release(d.c[0]);
		d.c[0] = NULL;
		if (order & 2) {
			reeve_ctl_unref(k);
			reeve_stream_unref(d.s[0]);
		} else {
			reeve_stream_unref(d.s[0]);
			reeve_ctl_unref(k);
		}
		d.s[0] = NULL;
		if (order & 4) {
			reeve_conn_destroy(d.c[1]);
			d.c[1] = NULL;
		}
		rvt_duo_end(&d);
	}
}
END_TEST

START_TEST(configurations_are_checked)
{
	struct rvt_duo d;
	struct {
		reeve_cfg_t cfg;
		uint32_t more[4];
	} newer;
	reeve_cfg_t cfg;

	rvt_duo_rt(&d, 1);
	memset(&cfg, 0xa5, sizeof(cfg));
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &cfg), REEVE_EINVAL); /* never filled */
	memset(&cfg, 0, sizeof(cfg));
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &cfg), REEVE_EINVAL);
	reeve_cfg_init_sized(&cfg, offsetof(reeve_cfg_t, keepalive_ms)); /* an older caller */
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &cfg), 0);
	reeve_conn_destroy(d.c[0]);
	reeve_conn_destroy(d.c[1]);
	reeve_cfg_init_sized(&newer.cfg, sizeof(newer));
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &newer.cfg), 0);
	reeve_conn_destroy(d.c[0]);
	reeve_conn_destroy(d.c[1]);
	newer.more[3] = 1; /* asks for something that is not known here */
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &newer.cfg), REEVE_EINVAL);
	reeve_cfg_init(&cfg);
	cfg.flags = 0x80000000u;
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &cfg), REEVE_EINVAL);
	reeve_cfg_init(&cfg);
	cfg.max_window = 1000;
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &cfg), REEVE_EINVAL);
	reeve_cfg_init(&cfg);
	cfg.flags = REEVE_CFG_LAZY_ACK;
	ck_assert_int_eq(reeve_conn_pair(d.c, d.rt, &cfg), 0);
	reeve_conn_destroy(d.c[0]);
	reeve_conn_destroy(d.c[1]);
	d.c[0] = d.c[1] = NULL;
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN("api_conn", &connected_sockets_carry_streams,
    &a_descriptor_is_still_the_callers_after_a_failure, &a_descriptor_is_closed_with_its_connection,
    &a_graceful_close_is_clean_on_both_sides,
    &close_waits_for_the_streams_and_gives_up_at_its_deadline, &close_without_time_does_not_wait,
    &close_without_a_deadline_loses_nothing, &a_released_connection_lives_as_long_as_its_users,
    &a_pending_operation_is_a_user_but_waiting_for_the_end_is_not,
    &everything_may_be_let_go_in_any_order, &configurations_are_checked)
