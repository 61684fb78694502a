/* test_wakes.c - scenarios 30 to 35: what has to wake a call, and calls that must not sleep at all. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WINDOW  262144u
#define MIB     1048576u
#define SOON_MS 1000 /* generous: what must happen at once has happened by then */

static struct rvt_raw r;
static uint8_t byte[16];

/* Nothing more is accepted: the window is used up and the send budget too. */
static void
fill(reeve_stream_t *s)
{
	rvt_want_write(s, WINDOW, 0);
	(void)rvt_peer_want_bytes(&r.p, (uint32_t)reeve_stream_id(s), WINDOW, 0);
	rvt_want_write(s, WINDOW, WINDOW);
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, 0), 0);
	ck_assert_int_eq(reeve_write(s, byte, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, -1), 0);
}

/* --- 30: a reader sleeps and only FIN comes */

#define READERS 8

struct reader {
	pthread_t thread;
	uint32_t count;
	int rc; /* of the call that was wrong */
};

static void *
read_ends(void *arg)
{
	struct reader *d = arg;
	reeve_stream_t *s;
	reeve_ssize k;

	for (uint32_t i = 0; i < d->count; i++) {
		int rc = reeve_accept(r.k, &s, -1);

		if (rc != 0) {
			d->rc = rc;
			break;
		}
		k = reeve_read(s, byte, 1);
		if (k != 0)
			d->rc = k > 0 ? 1 : (int)k;
		reeve_close(s);
	}
	return NULL;
}

START_TEST(scenario_30_the_end_wakes_the_reader)
{
	uint32_t each = 1250 * rvt_scale(), total = READERS * each, opened = 0, ended = 0;
	struct reader d[READERS];
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (unsigned i = 0; i < READERS; i++) {
		d[i] = (struct reader){.count = each};
		ck_assert_int_eq(pthread_create(&d[i].thread, NULL, read_ends, &d[i]), 0);
	}
	for (; opened < 2 * READERS && opened < total; opened++)
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 2 * opened + 1, 0);
	while (ended < total) { /* each answer is followed by the next step of that stream */
		ck_assert(rvt_peer_next(&r.p, &f));
		ck_assert(f.type == RVT_WU && (f.flags == RVT_ACK || f.flags == RVT_FIN));
		if (f.flags == RVT_ACK) {
			if (f.id % 512 == 1)
				rvt_peer_barrier(&r.p); /* time to fall asleep */
			rvt_peer_put(&r.p, RVT_WU, RVT_FIN, f.id, 0);
			continue;
		}
		ended++;
		if (opened < total)
			rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 2 * opened++ + 1, 0);
	}
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(d[i].thread, NULL);
		ck_assert_msg(d[i].rc == 0, "%s", reeve_errname(d[i].rc));
	}
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 31: reset.  _i: 0 by the peer, 1 by another thread of ours. */

START_TEST(scenario_31_reset_wakes_reader_writer_and_close)
{
	struct rvt_call c[3] = {{.kind = RVT_CALL_READ, .p = byte, .n = 1},
	    {.kind = RVT_CALL_WRITE, .p = byte, .n = 1},
	    {.kind = RVT_CALL_CLOSE, .timeout_ms = -1}};
	int rc = _i ? REEVE_ECLOSED : REEVE_ERESET;
	reeve_stream_t *s, *t;
	uint64_t start;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	t = rvt_raw_inbound(&r, 3);
	fill(s);
	fill(t);
	rvt_peer_barrier(&r.p);
	c[0].s = c[1].s = s;
	c[2].c = r.c;
	for (unsigned i = 0; i < 2; i++) {
		rvt_call_start(&c[i]);
		rvt_call_asleep(&c[i]);
	}
	start = rvt_now_ms();
	if (_i)
		ck_assert_int_eq(reeve_reset(s, 0), 0);
	else
		rvt_peer_put(&r.p, RVT_WU, RVT_RST, 1, 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(rvt_call_end(&c[i]), rc);
	/* A close of the connection waits for bytes that cannot leave, until their stream is reset. */
	rvt_call_start(&c[2]);
	rvt_call_asleep(&c[2]);
	rvt_peer_barrier(&r.p);
	ck_assert(!rvt_call_done(&c[2]));
	if (_i)
		ck_assert_int_eq(reeve_reset(t, 0), 0);
	else
		rvt_peer_put(&r.p, RVT_WU, RVT_RST, 3, 0);
	do { /* until GO_AWAY */
		struct rvt_frame f;

		ck_assert(rvt_peer_next(&r.p, &f));
		if (f.type == RVT_GOAWAY)
			break;
	} while (true);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&c[2]), 0);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(2 * SOON_MS));
	rvt_want_rc(s, rc);
	ck_assert_int_eq(reeve_write(t, byte, 1), REEVE_ECLOSED); /* by the close */
	reeve_close(s);
	reeve_close(t);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 32: the connection dies under calls of every kind */

#define MOST  100
#define KINDS 5

static reeve_stream_t *streams[2 * MOST + 1];
static struct rvt_call calls[KINDS * MOST];

static void
crowd_begin(unsigned each)
{
	for (unsigned i = 0; i < 2 * each; i++)
		streams[i] = rvt_raw_outbound(&r);
	for (unsigned i = 0; i < each; i++)
		fill(streams[each + i]);
	ck_assert_int_eq(reeve_open(r.k, &streams[2 * each], -1), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 4 * each + 1, 0); /* stays unacknowledged */
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_MUTE;
	for (unsigned i = 0; i < KINDS * each; i++) {
		static const enum rvt_call_kind kind[KINDS] = {
		    RVT_CALL_READ, RVT_CALL_WRITE, RVT_CALL_ACCEPT, RVT_CALL_OPEN, RVT_CALL_PING};

		calls[i] = (struct rvt_call){.kind = kind[i % KINDS],
		    .s = streams[i / KINDS + (i % KINDS == 1 ? each : 0)],
		    .k = r.k,
		    .timeout_ms = -1,
		    .p = byte,
		    .n = 1};
		rvt_call_start(&calls[i]);
	}
	for (unsigned i = 0; i < KINDS * each; i++)
		rvt_call_asleep(&calls[i]);
}

static void
crowd_end(unsigned each, int rc, uint32_t by)
{
	uint64_t start = rvt_now_ms();

	for (unsigned i = 0; i < KINDS * each; i++)
		ck_assert_msg(rvt_call_end(&calls[i]) == rc, "kind %d: %s", (int)calls[i].kind,
		    reeve_errname((int)calls[i].rc));
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(SOON_MS));
	for (unsigned i = 0; i <= 2 * each; i++) {
		for (unsigned twice = 0; twice < 2; twice++) {
			rvt_want_rc(streams[i], rc);
			ck_assert_int_eq(reeve_write(streams[i], byte, 1), rc);
		}
		reeve_close(streams[i]);
	}
	rvt_raw_want_reason(&r, rc, by);
	rvt_raw_want_reason(&r, rc, by);
	rvt_raw_fini(&r);
}

/* The other end of the socket also belongs to a process that is killed. */
static pid_t
other_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	ck_assert_int_gt(pid, 0);
	return pid;
}

START_TEST(scenario_32_death_of_the_connection_wakes_every_call)
{
	unsigned each = rvt_scale() > 1 ? MOST : 8;
	struct linger hard = {1, 0};
	reeve_cfg_t cfg;
	pid_t pid;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = 1;
	if (_i == 3) {
		cfg.keepalive_ms = (uint32_t)rvt_slow(300);
		cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(200);
	}
	(_i == 1 ? rvt_raw_open_tcp : rvt_raw_open)(&r, REEVE_DIALER, &cfg);
	crowd_begin(each);
	switch (_i) {
	case 0: /* by us */
		ck_assert_int_eq(reeve_abort(r.k, 0), 0);
		crowd_end(each, REEVE_ECLOSED, REEVE_BY_US);
		break;
	case 1: /* reset of the transport */
		ck_assert_int_eq(setsockopt(r.p.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
		rvt_peer_close(&r.p);
		crowd_end(each, REEVE_ESYS_BASE - ECONNRESET, REEVE_BY_TRANSPORT);
		break;
	case 2:                         /* the peer's process is killed */
		rvt_peer_barrier(&r.p); /* what it had not read would make a reset of the end */
		pid = other_process();
		rvt_peer_close(&r.p);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		crowd_end(each, REEVE_EEND, REEVE_BY_PEER);
		break;
	case 3: /* silence */
		crowd_end(each, REEVE_EDEAD, REEVE_BY_PEER);
		break;
	default: /* the peer breaks the protocol */
		rvt_peer_put(&r.p, 9, 0, 0, 0);
		crowd_end(each, REEVE_EPROTO, REEVE_BY_PEER);
		break;
	}
}
END_TEST

/* --- 33: accept */

START_TEST(scenario_33_accept_ends_with_the_connection)
{
	struct rvt_call c = {.kind = RVT_CALL_ACCEPT, .timeout_ms = 100};

	(_i ? rvt_raw_open_tcp : rvt_raw_open)(&r, REEVE_LISTENER, NULL);
	rvt_peer_settle(&r.p);
	c.k = r.k;
	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c.ms, 99);
	ck_assert_uint_lt(c.ms, (uint64_t)rvt_slow(100 + SOON_MS));
	c.timeout_ms = -1;
	rvt_call_start(&c);
	rvt_call_asleep(&c);
	rvt_peer_close(&r.p);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_EEND);
	rvt_raw_want_reason(&r, REEVE_EEND, REEVE_BY_PEER);
	rvt_raw_fini(&r);
}
END_TEST

/* Cancelled while a stream arrives: this accept has it, or the next one. */
START_TEST(scenario_33_a_cancelled_accept_loses_no_stream)
{
	uint32_t count = 500 * rvt_scale(), cancelled = 0;
	reeve_stream_t *s;
	reeve_op_t op;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t id = 1; id < 2 * count; id += 2) {
		reeve_op_init(&op, NULL, NULL);
		reeve_accept_async(r.k, &op);
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, id, 0);
		for (unsigned spin = 0; spin < id % 64; spin++)
			(void)rvt_now_ms();
		reeve_op_cancel(&op);
		if (reeve_op_wait(&op) == 0) {
			s = op.stream;
		} else {
			ck_assert_int_eq(op.res, REEVE_ECANCELED);
			cancelled++;
			ck_assert_int_eq(reeve_accept(r.k, &s, rvt_slow(RVT_WAIT_MS)), 0);
		}
		ck_assert_uint_eq(reeve_stream_id(s), id);
		rvt_peer_want(&r.p, RVT_WU, RVT_ACK, id, 0);
		reeve_close(s);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, id, 0);
		rvt_peer_put(&r.p, RVT_WU, RVT_FIN, id, 0);
	}
	printf("%u of %u cancelled\n", cancelled, count);
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 35: sizes of zero */

static void
want_zero(reeve_stream_t *s, int read, int write)
{
	ck_assert_int_eq(reeve_read(s, byte, 0), read);
	ck_assert_int_eq(reeve_read(s, NULL, 0), read);
	ck_assert_int_eq(reeve_write(s, byte, 0), write);
	ck_assert_int_eq(reeve_write(s, NULL, 0), write);
	ck_assert_int_eq(reeve_writev(s, NULL, 0), write);
	ck_assert_int_eq(reeve_write(s, NULL, 5), REEVE_EINVAL);
	ck_assert_int_eq(reeve_read(s, NULL, 5), REEVE_EINVAL);
}

START_TEST(scenario_35_sizes_of_zero_answer_at_once)
{
	reeve_stream_t *s, *t;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	t = rvt_raw_inbound(&r, 3);
	want_zero(s, 0, 0); /* empty */
	rvt_peer_want_none(&r.p);
	rvt_peer_data(&r.p, 0, 1, WINDOW, 0);
	rvt_want_read(s, 1, 0);
	want_zero(s, 0, 0); /* full */
	fill(s);
	want_zero(s, 0, 0); /* and no room to write */
	rvt_peer_barrier(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).bytes_out, WINDOW);
	rvt_peer_put(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_want_read(s, WINDOW - 1, 1);
	rvt_want_rc(s, REEVE_ERESET);
	want_zero(s, REEVE_ERESET, REEVE_ERESET);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 3, 0);
	rvt_want_rc(t, 0);
	want_zero(t, 0, 0); /* at the end */
	ck_assert_int_eq(reeve_shut(t), 0);
	want_zero(t, 0, REEVE_ESHUT);
	reeve_close(s);
	reeve_close(t);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("scenarios: wakes", {&scenario_30_the_end_wakes_the_reader, 0},
    {&scenario_31_reset_wakes_reader_writer_and_close, 2},
    {&scenario_32_death_of_the_connection_wakes_every_call, 5},
    {&scenario_33_accept_ends_with_the_connection, 2},
    {&scenario_33_a_cancelled_accept_loses_no_stream, 0},
    {&scenario_35_sizes_of_zero_answer_at_once, 0})
