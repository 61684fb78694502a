/* test_hashicorp.c - what the tests of hashicorp/yamux assert (and go-yamux with it), where no other test of ours does:
 * backlog, deadlines, and a transport that is kept from writing.  The others are in test_go.c, the whole list in
 * ../PORTED.md. */
#include <config.h>

#include "queues/counter.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/pipe.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 262144u
#define KIB    1024u
#define MIB    1048576u

static struct rvt_nodes n;
static struct rvt_pipe p;

/* --- TestClientClient, TestServerServer: two of one role.  _i: 0 dialers, 1 listeners. */

START_TEST(go_client_client)
{
	int v[2], role = _i == 0 ? REEVE_DIALER : REEVE_LISTENER;
	struct rvt_call c = {.kind = RVT_CALL_ACCEPT, .timeout_ms = -1};
	reeve_stream_t *s = NULL;

	memset(&n, 0, sizeof(n));
	n.base = rvt_base();
	rvt_unix_pair(v);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_rt_create(&n.rt[i], NULL), 0);
		ck_assert_int_eq(reeve_conn_open_fd(&n.c[i], n.rt[i], v[i], role, NULL), 0);
		n.k[i] = reeve_conn_ctl(n.c[i]);
	}
	c.k = n.k[1];
	rvt_call_start(&c);
	ck_assert_int_eq(reeve_open(n.k[0], &s, -1), 0);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_EPROTO);
	ck_assert_int_eq(rvt_closed(n.k[1]), REEVE_EPROTO);
	ck_assert_int_eq(rvt_closed(n.k[0]), REEVE_EGOAWAY); /* it was told */
	reeve_close(s);
	rvt_divorce(&n);
}
END_TEST

/* --- TestCloseBeforeAck: _i / 2 transport, _i % 2 who opens */

static const enum rvt_via vias[] = {RVT_PAIR, RVT_TCP, RVT_SOCKETPAIR, RVT_RECHUNK};
#define LOOPS 8

START_TEST(hashicorp_close_before_ack)
{
	struct rvt_call next = {.kind = RVT_CALL_OPEN, .timeout_ms = rvt_slow(5000)};
	struct rvt_wedding w = {.via = vias[_i / 2], .chunk = 13};
	reeve_stream_t *s;
	reeve_cfg_t cfg;
	int a = _i % 2, b = 1 - a;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = cfg.accept_backlog = 8;
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
	for (unsigned round = 0; round < 2 * rvt_scale(); round++) {
		for (unsigned i = 0; i < 8; i++) {
			ck_assert_int_eq(reeve_open(n.k[a], &s, rvt_slow(RVT_WAIT_MS)), 0);
			reeve_close(s);
		}
		for (unsigned i = 0; i < 8; i++) {
			ck_assert_int_eq(reeve_accept(n.k[b], &s, rvt_slow(RVT_WAIT_MS)), 0);
			rvt_want_rc(s, 0);
			reeve_close(s);
		}
		next.k = n.k[a];
		rvt_call_start(&next);
		ck_assert_int_eq(reeve_accept(n.k[b], &s, rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(rvt_call_end(&next), 0); /* no permit was lost */
		reeve_close(next.s);
		reeve_close(s);
		rvt_settled(&n);
	}
	rvt_divorce(&n);
}
END_TEST

/* --- TestBacklogExceeded_Accept: five backlogs of streams, while the peer keeps accepting */

struct acceptor {
	pthread_t thread;
	unsigned count;
	int rc;
};

static void *
accept_all(void *arg)
{
	struct acceptor *a = arg;
	reeve_stream_t *s;
	uint8_t byte[4];

	for (; a->count > 0 && a->rc == 0; a->count--) {
		a->rc = reeve_accept(n.k[1], &s, rvt_slow(RVT_WAIT_MS));
		if (a->rc != 0)
			break;
		if (reeve_read(s, byte, sizeof(byte)) <= 0)
			a->rc = REEVE_ETRUNC;
		reeve_close(s);
	}
	return NULL;
}

START_TEST(hashicorp_backlog_exceeded_accept)
{
	unsigned count = 5 * 64 * rvt_scale();
	struct acceptor a = {.count = count};
	struct rvt_wedding w = {.via = RVT_SOCKETPAIR};
	reeve_cfg_t cfg;
	reeve_stream_t *s;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = cfg.accept_backlog = 64;
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
	ck_assert_int_eq(pthread_create(&a.thread, NULL, accept_all, &a), 0);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_int_eq(reeve_open(n.k[0], &s, rvt_slow(RVT_WAIT_MS)), 0);
		rvt_want_write(s, 4, 0);
		reeve_close(s);
	}
	pthread_join(a.thread, NULL);
	ck_assert_msg(a.rc == 0, "%s", reeve_errname(a.rc));
	ck_assert_uint_eq(rvt_stats(n.k[1]).streams_refused, 0);
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- TestClose_closeTimeout: the peer never ends its direction; after linger_ms nothing is left on either side */

START_TEST(hashicorp_close_timeout)
{
	struct rvt_wedding w = {.via = RVT_SOCKETPAIR};
	reeve_stream_t *s[2];
	uint64_t deadline;
	reeve_cfg_t cfg;
	uint8_t byte = 0;
	reeve_ssize rc;

	reeve_cfg_init(&cfg);
	cfg.linger_ms = 10;
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
	rvt_stream_pair(&n, _i, s);
	rvt_want_write(s[1], 1, 0); /* else the reset is a refusal: the first answer */
	rvt_want_read(s[0], 1, 0);
	reeve_close(s[0]);
	deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	do {
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		rc = reeve_write(s[1], &byte, 1);
	} while (rc == 1);
	ck_assert_int_eq(rc, REEVE_ERESET);
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

/* --- pings; the transport is stopped for a while */

static void
pipe_up(const reeve_cfg_t *near, const reeve_cfg_t *far, const reeve_rt_cfg_t *rt_cfg)
{
	const reeve_cfg_t *cfg[2] = {near, far};

	rvt_pipe_marry(&p, &n, 64 * KIB, rt_cfg, cfg);
	for (int i = 0; i < 2; i++) /* what a beginning has to say is said */
		ck_assert_int_eq(reeve_ping(n.k[i], rvt_slow(RVT_WAIT_MS), NULL), 0);
}

/* TestPing.  _i: who asks. */
START_TEST(go_ping)
{
	uint64_t us = 0;
	reeve_op_t op;

	pipe_up(NULL, NULL, NULL);
	for (unsigned i = 0; i < 10; i++) {
		rvt_pipe_stop(&p, _i);
		reeve_op_init(&op, NULL, NULL);
		op.timeout_ms = rvt_slow(RVT_WAIT_MS);
		reeve_ping_async(n.k[_i], &op);
		sched_yield();
		rvt_pipe_go(&p, _i);
		ck_assert_int_gt(reeve_op_wait(&op), 0);
	}
	ck_assert_int_eq(reeve_ping(n.k[_i], rvt_slow(RVT_WAIT_MS), &us), 0);
	ck_assert_uint_gt(us, 0);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* TestPing_Timeout.  _i: 0 our ping does not leave, 1 the answer does not. */
START_TEST(hashicorp_ping_timeout)
{
	struct rvt_call c = {.kind = RVT_CALL_PING, .timeout_ms = 50};

	pipe_up(NULL, NULL, NULL);
	for (unsigned i = 0; i < 3; i++) {
		rvt_pipe_stop(&p, _i);
		c.k = n.k[0];
		rvt_call_start(&c);
		ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
		ck_assert_uint_ge(c.ms, 49);
		ck_assert_uint_lt(c.ms, (uint64_t)rvt_slow(1000));
		rvt_pipe_go(&p, _i);
		ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), 0);
	}
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* TestSession_PingOfDeath: pings arrive while our answers cannot leave, behind a send queue that is full.  We go on
 * reading, and afterwards pings work. */
START_TEST(hashicorp_ping_of_death)
{
	struct rvt_flow f = {.kind = RVT_FLOW_WRITE, .total = MIB, .seed = 1};
	struct rvt_flow rd = {.kind = RVT_FLOW_READ, .total = MIB, .seed = 2};
	reeve_stream_t *s[2], *t[2];

	pipe_up(NULL, NULL, NULL);
	rvt_stream_pair(&n, 0, s);
	rvt_stream_pair(&n, 1, t);
	rvt_pipe_stop(&p, 0);
	f.s = s[0];
	rd.s = s[1];
	rvt_flow_start(&f);
	for (uint64_t i = 0; i < 5; i++) {
		ck_assert_int_eq(reeve_ping(n.k[1], 20, NULL), REEVE_ETIMEDOUT);
		rvt_want_write(t[1], 10000, 10000 * i);
		rvt_want_read(t[0], 10000, 10000 * i);
	}
	rvt_pipe_go(&p, 0);
	ck_assert_int_eq(reeve_ping(n.k[1], rvt_slow(RVT_WAIT_MS), NULL), 0);
	rvt_flow_start(&rd);
	rvt_flow_end(&f);
	rvt_flow_end(&rd);
	ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), 0);
	rvt_close_both(s);
	rvt_close_both(t);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* TestKeepAlive.  Ours counts any byte as a sign of life, so that one side's pings may be enough for both. */
START_TEST(go_keepalive)
{
	uint64_t before, deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = 20;
	cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(5000);
	pipe_up(&cfg, &cfg, NULL);
	before = rvt_stats(n.k[0]).pings_in + rvt_stats(n.k[1]).pings_in;
	while (rvt_stats(n.k[0]).pings_in + rvt_stats(n.k[1]).pings_in < before + 10) {
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		sched_yield();
	}
	rvt_pipe_divorce(&p, &n);
}
END_TEST

static struct rvq_gauge told;

static void
count_record(void *ctx, int level, const char *id, const char *text)
{
	(void)ctx;
	(void)level;
	(void)id;
	(void)text;
	rvq_gauge_add(&told, 1);
}

/* TestKeepAlive_Timeout: the peer cannot write.  An accept fails with the reason, which is logged once. */
START_TEST(go_keepalive_timeout)
{
	struct rvt_call c = {.kind = RVT_CALL_ACCEPT, .timeout_ms = -1};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_rt_cfg_t rt_cfg;
	reeve_cfg_t cfg;

	reeve_rt_cfg_init(&rt_cfg);
	rt_cfg.log = count_record;
	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = (uint32_t)rvt_slow(50);
	cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(100);
	pipe_up(&cfg, NULL, &rt_cfg);
	rvt_pipe_stop(&p, 1);
	c.k = n.k[0];
	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_EDEAD);
	ck_assert_uint_lt(c.ms, (uint64_t)rvt_slow(1000));
	ck_assert_int_eq(rvt_closed(n.k[0]), REEVE_EDEAD);
	ck_assert_int_eq(reeve_ctl_reason(n.k[0], &why), 0);
	ck_assert_str_eq(why.id, "REEVE-YAMUX-0012");
	ck_assert_uint_eq(rvq_gauge_get(&told), 1);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* --- a receiver whose transport takes nothing */

/* TestSession_WindowUpdateWriteDuringRead.  Theirs fails the read whose credit cannot leave; ours reads what there is, and
 * ends the connection when nothing has been taken for write_ms.  Then both sides' calls fail. */
START_TEST(go_window_update_write_during_read)
{
	struct rvt_call wr = {.kind = RVT_CALL_WRITE, .n = 3 * WINDOW};
	reeve_stream_t *s[2];
	reeve_cfg_t cfg;
	uint8_t byte = 0;

	reeve_cfg_init(&cfg);
	cfg.write_ms = (uint32_t)rvt_slow(200);
	pipe_up(NULL, &cfg, NULL);
	rvt_stream_pair(&n, 0, s);
	ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), 0);
	rvt_pipe_stop(&p, 1);
	wr.s = s[0];
	wr.p = rvt_pattern(1, wr.n);
	rvt_call_start(&wr);
	rvt_want_read(s[1], WINDOW, 0);
	rvt_want_rc(s[1], REEVE_ETIMEDOUT);
	ck_assert_int_eq(rvt_closed(n.k[1]), REEVE_ETIMEDOUT);
	ck_assert_int_ge(rvt_call_end(&wr), WINDOW); /* what was accepted before */
	ck_assert_int_lt(wr.rc, (reeve_ssize)wr.n);
	ck_assert_int_eq(reeve_write(s[0], &byte, 1), REEVE_EEND);
	ck_assert_int_eq(reeve_write(s[1], &byte, 1), REEVE_ETIMEDOUT);
	rvt_close_both(s);
	free(wr.p);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* TestLotsOfWritesWithStreamDeadline: one stream has filled the connection; what the other could not write in time is
 * never sent later.  Ours accepts a send budget before that. */
START_TEST(go_lots_of_writes_with_stream_deadline)
{
	uint8_t *bytes = rvt_pattern(3, 4 * WINDOW);
	struct rvt_flow f = {.kind = RVT_FLOW_WRITE, .total = MIB, .seed = 1};
	struct rvt_flow rd = {.kind = RVT_FLOW_READ, .total = MIB, .seed = 2};
	reeve_stream_t *s[2], *t[2];
	reeve_ssize got, sum = 0;

	pipe_up(NULL, NULL, NULL);
	rvt_stream_pair(&n, 0, s);
	rvt_stream_pair(&n, 0, t);
	rvt_pipe_stop(&p, 0);
	f.s = s[0];
	rd.s = s[1];
	rvt_flow_start(&f);
	ck_assert_int_eq(reeve_deadline(t[0], REEVE_WR, rvt_slow(50)), 0);
	while ((got = reeve_write(t[0], bytes + sum, 10000)) > 0) {
		sum += got;
		ck_assert_int_le(sum, 2 * WINDOW);
	}
	ck_assert_int_eq(got, REEVE_ETIMEDOUT);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_int_eq(reeve_deadline(t[0], REEVE_WR, 2), 0);
		ck_assert_int_eq(reeve_write(t[0], bytes + 3 * WINDOW, 100), REEVE_ETIMEDOUT);
	}
	ck_assert_int_eq(reeve_shut(t[0]), 0);
	rvt_pipe_go(&p, 0);
	rvt_want_read(t[1], (uint64_t)sum, 0);
	rvt_want_rc(t[1], 0); /* and not a byte of the others */
	rvt_flow_start(&rd);
	rvt_flow_end(&f);
	rvt_flow_end(&rd);
	rvt_close_both(s);
	rvt_close_both(t);
	free(bytes);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

RVT_MAIN_TABLE("ported: hashicorp", {&go_client_client, 2}, {&hashicorp_close_before_ack, LOOPS},
    {&hashicorp_backlog_exceeded_accept, 0}, {&hashicorp_close_timeout, 2}, {&go_ping, 2},
    {&hashicorp_ping_timeout, 2}, {&hashicorp_ping_of_death, 0}, {&go_keepalive, 0},
    {&go_keepalive_timeout, 0}, {&go_window_update_write_during_read, 0},
    {&go_lots_of_writes_with_stream_deadline, 0})
