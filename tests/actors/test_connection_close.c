/* test_connection_close.c - how a whole connection ends: gracefully, by GO_AWAY, by the transport. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rvt_raw r;

/* --- graceful, by us */

START_TEST(close_of_an_idle_connection)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = 3000};

	rvt_raw_open(&r, _i ? REEVE_LISTENER : REEVE_DIALER, NULL);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_raw_want_reason(&r, 0, REEVE_BY_US);
	ck_assert_int_eq(reeve_conn_close(r.c, 0), 0);
	rvt_raw_fini(&r);
}
END_TEST

/* Two streams, one with more bytes than credit: FINs, everything is read and written, GO_AWAY, the end. */
START_TEST(close_waits_for_every_stream)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};
	struct rvt_call rd = {.kind = RVT_CALL_READ};
	reeve_stream_t *a, *b, *n = NULL;
	uint8_t p[100];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	a = rvt_raw_inbound(&r, 1);
	b = rvt_raw_inbound(&r, 3);
	rvt_want_write(a, 262144, 0);
	rvt_want_write(a, 1000, 262144);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rd.s = b;
	rd.p = p;
	rd.n = sizeof(p);
	rvt_call_start(&rd);
	rvt_call_asleep(&rd);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 3, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 5, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 5, 0);
	ck_assert_int_lt(reeve_open(r.k, &n, 1000), 0);
	ck_assert_int_eq(reeve_write(b, p, 1), REEVE_ECLOSED);
	rvt_peer_data(&r.p, 0, 3, 50, 0); /* it still reads */
	ck_assert_int_eq(rvt_call_end(&rd), 50);
	rvt_peer_data(&r.p, RVT_FIN, 3, 50, 50);
	rvt_want_read(b, 50, 50);
	rvt_want_rc(b, 0);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 1000);
	(void)rvt_peer_want_bytes(&r.p, 1, 1000, 262144);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	ck_assert(!rvt_call_done(&c));
	rvt_peer_data(&r.p, RVT_FIN, 1, 200, 0);
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_want_read(a, 200, 0); /* what came is there after the end */
	rvt_want_rc(a, 0);
	rvt_raw_want_reason(&r, 0, REEVE_BY_US);
	reeve_close(a);
	reeve_close(b);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(close_refuses_streams_that_nobody_accepted)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	rvt_peer_data(&r.p, RVT_SYN, 1, 100, 0);
	rvt_peer_want_none(&r.p);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(close_gives_up_at_its_deadline)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = 100};
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0); /* and the peer never ends */
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c.ms, 99);
	rvt_want_rc(s, REEVE_ETIMEDOUT);
	rvt_raw_want_reason(&r, REEVE_ETIMEDOUT, REEVE_BY_US);
	rvt_peer_want_end(&r.p);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(close_does_not_wait_for_a_peer_that_keeps_its_end_open)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want_goaway_end(&r.p, 0);
	ck_assert_int_eq(rvt_call_end(&c), 0);
	ck_assert_uint_lt(c.ms, (uint64_t)rvt_slow(3000));
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(released_connection_closes_with_its_last_stream)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	reeve_conn_release(r.c);
	r.c = NULL;
	rvt_want_write(s, 10, 0);
	rvt_peer_want_data(&r.p, 0, 1, 10, 0);
	rvt_peer_want_none(&r.p);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(abort_ends_everything_at_once)
{
	struct rvt_call c = {.kind = RVT_CALL_READ};
	reeve_stream_t *s;
	uint8_t p[10];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	c.s = s;
	c.p = p;
	c.n = sizeof(p);
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	ck_assert_int_eq(reeve_abort(r.k, _i ? REEVE_ELIMIT : 0), 0);
	ck_assert_int_eq(rvt_call_end(&c), _i ? REEVE_ELIMIT : REEVE_ECLOSED);
	rvt_peer_want_end(&r.p);
	rvt_raw_want_reason(&r, _i ? REEVE_ELIMIT : REEVE_ECLOSED, REEVE_BY_US);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- GO_AWAY */

START_TEST(our_goaway_refuses_new_streams_only)
{
	reeve_stream_t *s, *n = NULL;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	ck_assert_int_eq(reeve_goaway(r.k, 17), 0);
	rvt_peer_want(&r.p, RVT_GOAWAY, 0, 0, 17);
	ck_assert_int_eq(reeve_goaway(r.k, 18), 0);
	ck_assert_int_eq(reeve_open(r.k, &n, -1), REEVE_EGOAWAY);
	rvt_peer_data(&r.p, RVT_SYN, 3, 1000, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 3, 0);
	rvt_peer_data(&r.p, RVT_FIN, 1, 100, 0);
	rvt_want_read(s, 100, 0);
	rvt_want_write(s, 100, 0);
	rvt_peer_want_data(&r.p, 0, 1, 100, 0);
	rvt_peer_want_none(&r.p);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(soft_goaway_lets_streams_finish)
{
	reeve_stream_t *s, *n = NULL;
	struct rvt_call open = {.kind = RVT_CALL_OPEN, .timeout_ms = -1};
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = 1;
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	ck_assert_int_eq(reeve_open(r.k, &s, -1), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 1, 0);
	open.k = r.k;
	rvt_call_start(&open); /* waits for an ACK */
	rvt_call_asleep(&open);
	rvt_peer_put(&r.p, RVT_GOAWAY, 0, 0, 0);
	ck_assert_int_eq(rvt_call_end(&open), REEVE_EGOAWAY);
	ck_assert_int_eq(reeve_open(r.k, &n, -1), REEVE_EGOAWAY);
	rvt_peer_data(&r.p, RVT_ACK, 1, 100, 0);
	rvt_want_read(s, 100, 0);
	rvt_want_write(s, 100, 0);
	rvt_peer_want_data(&r.p, 0, 1, 100, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_rc(s, 0);
	rvt_peer_want_none(&r.p);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_goaway_end(&r.p, 0); /* the last stream has ended */
	rvt_peer_close(&r.p);
	ck_assert_int_eq(reeve_conn_close(r.c, -1), 0);
	rvt_raw_fini(&r);
}
END_TEST

/* _i / 4: the peer ends its direction right behind it, as most do. */
START_TEST(hard_goaway_ends_with_its_code)
{
	static const uint32_t codes[] = {1, 2, 99, UINT32_MAX, 1, 2, 99, UINT32_MAX};
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_call rd = {.kind = RVT_CALL_READ};
	reeve_stream_t *s, *t;
	uint8_t p[10];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	t = rvt_raw_inbound(&r, 3);
	rd.s = t;
	rd.p = p;
	rd.n = sizeof(p);
	rvt_call_start(&rd);
	rvt_call_asleep(&rd);
	rvt_put_data(&r.p.out, 0, 1, 100000, 0);
	rvt_put(&r.p.out, RVT_GOAWAY, 0, _i == 2 ? 5 : 0, codes[_i]);
	rvt_peer_send(&r.p);
	if (_i / 4)
		rvt_peer_shut(&r.p);
	ck_assert_int_eq(rvt_call_end(&rd), REEVE_EGOAWAY);
	rvt_want_read(s, 100000, 0);
	rvt_want_rc(s, REEVE_EGOAWAY);
	ck_assert_int_eq(reeve_write(s, p, 1), REEVE_EGOAWAY);
	rvt_raw_want_reason(&r, REEVE_EGOAWAY, REEVE_BY_PEER);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_uint_eq(why.wire_code, codes[_i]);
	ck_assert_int_eq(reeve_stream_reason(t, &why), 0);
	ck_assert_uint_eq(why.wire_code, codes[_i]);
	rvt_peer_want_end(&r.p);
	reeve_close(s);
	reeve_close(t);
	rvt_raw_fini(&r);
}
END_TEST

/* 200 KB, FIN, GO_AWAY(0) and the end, and only then the application reads. */
START_TEST(everything_before_the_end_is_read_late)
{
	reeve_stream_t *s;

	if (_i)
		rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
	else
		rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_put_data(&r.p.out, 0, 1, 200000, 0);
	rvt_put(&r.p.out, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.p.out, RVT_GOAWAY, 0, 0, 0);
	rvt_peer_send(&r.p);
	rvt_peer_shut(&r.p);
	rvt_raw_want_reason(&r, REEVE_EEND, REEVE_BY_PEER);
	for (unsigned i = 0; i < 20; i++)
		rvt_want_read(s, 10000, 10000 * i);
	rvt_want_rc(s, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- the transport */

START_TEST(end_between_frames_is_eend)
{
	struct rvt_call rd = {.kind = RVT_CALL_READ},
			acc = {.kind = RVT_CALL_ACCEPT, .timeout_ms = -1};
	reeve_stream_t *s, *t, *n = NULL;
	uint8_t p[10];

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	t = rvt_raw_inbound(&r, 3);
	rd.s = t;
	rd.p = p;
	rd.n = sizeof(p);
	acc.k = r.k;
	rvt_call_start(&rd);
	rvt_call_start(&acc);
	rvt_call_asleep(&rd);
	rvt_call_asleep(&acc);
	rvt_put_data(&r.p.out, 0, 1, 1000, 0);
	rvt_put_data(&r.p.out, RVT_SYN, 5, 1000, 0); /* for the acceptor */
	rvt_put_data(&r.p.out, RVT_SYN, 7, 1000, 0); /* for the queue */
	rvt_peer_send(&r.p);
	rvt_peer_shut(&r.p); /* closing resets when the last ACK is not read */
	ck_assert_int_eq(rvt_call_end(&rd), REEVE_EEND);
	ck_assert_int_eq(rvt_call_end(&acc), 0);
	ck_assert_int_eq(reeve_accept(r.k, &n, -1), 0);
	ck_assert_uint_eq(reeve_stream_id(n), 7);
	rvt_want_read(n, 1000, 0);
	rvt_want_rc(n, REEVE_EEND);
	reeve_close(n);
	rvt_want_read(acc.s, 1000, 0);
	rvt_want_rc(acc.s, REEVE_EEND);
	reeve_stream_unref(acc.s);
	rvt_want_read(s, 1000, 0);
	rvt_want_rc(s, REEVE_EEND);
	ck_assert_int_eq(reeve_write(s, p, 1), REEVE_EEND);
	rvt_raw_want_reason(&r, REEVE_EEND, REEVE_BY_PEER);
	reeve_close(s);
	reeve_close(t);
	rvt_raw_fini(&r);
}
END_TEST

/* --- a write that fails must not cost what is still to be read: nothing runs until the peer has closed */

static void
nothing(void *p)
{
	(void)p;
}

static void
run_until(reeve_rt_t *rt, const bool *done)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (!*done) {
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		ck_assert_int_ge(reeve_rt_run(rt, 10), 0);
	}
}

static void
set(reeve_op_t *op)
{
	*(bool *)op->arg = true;
}

START_TEST(failed_write_does_not_cost_received_bytes)
{
	reeve_rt_cfg_t rcfg;
	reeve_op_t acc, rd, wr, end;
	bool accepted = false, read = false, written = false, ended = false;
	uint64_t got = 0, size = _i ? 30000 : 200000; /* what the kernel holds on our side */
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_conn_t *c;
	reeve_rt_t *rt;
	struct rvt_peer p;
	int v[2];

	if (_i)
		rvt_tcp_pair(v);
	else
		rvt_unix_pair(v);
	reeve_rt_cfg_init(&rcfg);
	rcfg.flags = REEVE_RT_EXTERNAL;
	ck_assert_int_eq(reeve_rt_create(&rt, &rcfg), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&c, rt, v[0], REEVE_LISTENER, NULL), 0);
	rvt_peer_init(&p, v[1]);
	reeve_op_init(&acc, set, &accepted);
	reeve_accept_async(reeve_conn_ctl(c), &acc);
	rvt_peer_put(&p, RVT_WU, RVT_SYN, 1, 0);
	run_until(rt, &accepted);
	while (reeve_rt_run(rt, 0) > 0)
		continue;
	rvt_peer_want(&p, RVT_WU, RVT_ACK, 1, 0);
	rvt_put_data(&p.out, 0, 1, (uint32_t)size, 0);
	rvt_put(&p.out, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_send(&p);
	rvt_peer_close(&p);
	for (int i = 0; i < 2; i++) { /* on TCP the first is answered by a reset */
		reeve_op_init(&wr, set, &written);
		written = false;
		reeve_write_async(acc.stream, reeve_buf_wrap(rt, "x", 1, nothing, NULL), &wr);
		run_until(rt, &written);
	}
	reeve_op_init(&end, set, &ended);
	reeve_closed_async(reeve_conn_ctl(c), &end);
	run_until(rt, &ended);
	do {
		reeve_op_init(&rd, set, &read);
		read = false;
		reeve_read_async(acc.stream, &rd);
		run_until(rt, &read);
		for (reeve_ssize i = 0; i < rd.res; i++)
			ck_assert_uint_eq(
			    reeve_buf_data(rd.buf)[i], rvt_byte(1, got + (uint64_t)i));
		got += rd.res > 0 ? (uint64_t)rd.res : 0;
		reeve_buf_unref(rd.buf);
	} while (rd.res > 0);
	ck_assert_uint_eq(got, size);
	ck_assert_int_eq(rd.res, 0); /* its FIN came before everything else */
	ck_assert_int_eq(reeve_ctl_reason(reeve_conn_ctl(c), &why), 0);
	if (_i == 0)
		ck_assert_int_eq(why.rc, REEVE_EEND);
	reeve_stream_unref(acc.stream);
	reeve_conn_release(c);
	reeve_rt_destroy(rt);
	rvt_peer_fini(&p);
}
END_TEST

START_TEST(end_inside_a_frame_is_etrunc)
{
	static const size_t cut[] = {1, 11, 12, 13, 1011};
	reeve_stream_t *s;
	size_t body = cut[_i] > 12 ? cut[_i] - 12 : 0;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_put_data(&r.p.out, 0, 1, 1000, 0);
	rvt_put_data(&r.p.out, 0, 1, 1000, 1000);
	r.p.out.n -= 1012 - cut[_i];
	rvt_peer_send(&r.p);
	rvt_peer_shut(&r.p);
	rvt_want_read(s, 1000 + body, 0);
	rvt_want_rc(s, REEVE_ETRUNC);
	rvt_raw_want_reason(&r, REEVE_ETRUNC, REEVE_BY_TRANSPORT);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(reset_of_the_transport_is_its_error)
{
	struct linger hard = {1, 0};
	struct rvt_call rd = {.kind = RVT_CALL_READ};
	reeve_stream_t *s;
	uint8_t p[10];

	rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rd.s = s;
	rd.p = p;
	rd.n = sizeof(p);
	rvt_call_start(&rd);
	rvt_call_asleep(&rd);
	ck_assert_int_eq(setsockopt(r.p.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&rd), REEVE_ESYS_BASE - ECONNRESET);
	ck_assert_int_eq(reeve_write(s, p, 1), REEVE_ESYS_BASE - ECONNRESET);
	rvt_raw_want_reason(&r, REEVE_ESYS_BASE - ECONNRESET, REEVE_BY_TRANSPORT);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("connection_close", {&close_of_an_idle_connection, 2},
    {&close_waits_for_every_stream, 0}, {&close_refuses_streams_that_nobody_accepted, 0},
    {&close_gives_up_at_its_deadline, 0},
    {&close_does_not_wait_for_a_peer_that_keeps_its_end_open, 0},
    {&released_connection_closes_with_its_last_stream, 0}, {&abort_ends_everything_at_once, 2},
    {&our_goaway_refuses_new_streams_only, 0}, {&soft_goaway_lets_streams_finish, 0},
    {&hard_goaway_ends_with_its_code, 8}, {&everything_before_the_end_is_read_late, 2},
    {&end_between_frames_is_eend, 0}, {&failed_write_does_not_cost_received_bytes, 2},
    {&end_inside_a_frame_is_etrunc, 5}, {&reset_of_the_transport_is_its_error, 0})
