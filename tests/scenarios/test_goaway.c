/* Ends in order: silent shutdowns, streams the peer never ends, a peer that goes away.  Scenarios 70, 74 and 76. */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queues/counter.h"
#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"
#include "tests/scenarios/pace.h"

static struct rvt_base base;
static struct rvt_raw r;
static reeve_cfg_t cfg;

/* --- 70 */

struct said {
	struct rvq_gauge lines, bad;
};

static void
on_log(void *ctx, int level, const char *id, const char *text)
{
	struct said *s = ctx;

	(void)level;
	rvq_gauge_add(&s->lines, 1);
	if (strncmp(id, "REEVE-", 6) != 0 || text[0] == '\0' || strchr(text, '\n') != NULL)
		rvq_gauge_add(&s->bad, 1);
}

/* Connect, echo, close: side first closes first, the other behind it. */
static void
cycle(reeve_rt_t *rt, int first)
{
	reeve_conn_t *c[2];
	reeve_stream_t *s[2];
	char b[5];
	int v[2];

	rvt_tcp_pair(v);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_conn_open_fd(
				     &c[i], rt, v[i], i == 0 ? REEVE_DIALER : REEVE_LISTENER, NULL),
		    0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(c[0]), &s[0], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_write(s[0], "hello", 5), 5);
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(c[1]), &s[1], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_read(s[1], b, 5), 5);
	ck_assert_int_eq(reeve_write(s[1], b, 5), 5);
	ck_assert_int_eq(reeve_shut(s[1]), 0);
	ck_assert_int_eq(reeve_read(s[0], b, 5), 5);
	ck_assert_int_eq(reeve_read(s[0], b, 5), 0);
	ck_assert_int_eq(reeve_read(s[1], b, 5), 0);
	reeve_close(s[0]);
	reeve_close(s[1]);
	ck_assert_int_eq(reeve_conn_close(c[first], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_conn_close(c[1 - first], rvt_slow(RVT_WAIT_MS)), 0);
	reeve_conn_destroy(c[first]);
	reeve_conn_destroy(c[1 - first]);
}

START_TEST(scenario_70_a_normal_life_says_nothing)
{
	unsigned rounds = 10 * rvt_scale();
	int v[2], out = dup(1), err = dup(2);
	struct said said;
	reeve_rt_cfg_t rc;
	reeve_rt_t *rt;
	char text[64];
	ssize_t n;

	base = rvt_base();
	memset(&said, 0, sizeof(said));
	rvt_pipe_pair(v);
	ck_assert_int_eq(fcntl(v[0], F_SETFL, O_NONBLOCK), 0);
	dup2(v[1], 1);
	dup2(v[1], 2);
	reeve_rt_cfg_init(&rc);
	rc.log = _i == 0 ? NULL : on_log;
	rc.log_ctx = &said;
	rc.log_level = _i;
	ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
	for (unsigned i = 0; i < rounds; i++)
		cycle(rt, (int)(i % 2));
	reeve_rt_destroy(rt);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	n = read(v[0], text, sizeof(text));
	close(v[0]);
	close(v[1]);
	ck_assert_int_lt(n, 0);
	ck_assert_uint_eq(rvq_gauge_get(&said.bad), 0);
	if (_i <= REEVE_LOG_WARN)
		ck_assert_uint_eq(rvq_gauge_get(&said.lines), 0);
	else if (_i >= REEVE_LOG_DEBUG)
		ck_assert_uint_ge(rvq_gauge_get(&said.lines), 2 * rounds);
	base.fds -= 2; /* the copies */
	rvt_base_check(&base);
}
END_TEST

/* --- 74 */

#define BATCH 64

/* A connection whose memory is counted. */
static void
open_counted(struct rvt_alloc *alloc)
{
	reeve_rt_cfg_t rc;
	int v[2];

	memset(&r, 0, sizeof(r));
	rvt_alloc_init(alloc);
	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	rc.alloc = alloc->a;
	ck_assert_int_eq(reeve_rt_create(&r.rt, &rc), 0);
	rvt_unix_pair(v);
	rvt_peer_init(&r.p, v[1]);
	ck_assert_int_eq(reeve_conn_open_fd(&r.c, r.rt, v[0], REEVE_DIALER, &cfg), 0);
	r.k = reeve_conn_ctl(r.c);
	rvt_peer_settle(&r.p);
}

struct seen {
	unsigned syn, fin, rst;
};

/* Frames until so many of each have come. */
static void
watch(struct seen *got, const struct seen *want)
{
	struct rvt_frame f;

	while (got->syn < want->syn || got->fin < want->fin || got->rst < want->rst) {
		ck_assert(rvt_peer_next(&r.p, &f));
		ck_assert_uint_eq(f.type, RVT_WU);
		got->syn += (f.flags & RVT_SYN) != 0;
		got->fin += (f.flags & RVT_FIN) != 0;
		got->rst += (f.flags & RVT_RST) != 0;
	}
}

enum leave { CLOSED_LINGERS, DROPPED_AFTER_FIN, DROPPED, LEAVES };

START_TEST(scenario_74_streams_the_peer_never_ends_do_not_stay)
{
	unsigned n = 1000 * rvt_scale() / BATCH * BATCH;
	struct seen got = {0}, want = {0};
	reeve_stream_t *s[BATCH];
	struct rvt_alloc alloc;
	uint64_t before = 0, ms;

	base = rvt_base();
	reeve_cfg_init(&cfg);
	/* Who lets go without a close needs no timer. */
	cfg.linger_ms = _i == CLOSED_LINGERS ? (uint32_t)rvt_slow(50) : REEVE_OFF;
	open_counted(&alloc);
	for (unsigned i = 0; i < n; i += BATCH) {
		for (unsigned k = 0; k < BATCH; k++)
			ck_assert_int_eq(reeve_open(r.k, &s[k], rvt_slow(RVT_WAIT_MS)), 0);
		want.syn += BATCH;
		watch(&got, &want);
		for (unsigned k = 0; k < BATCH; k++)
			rvt_put(&r.p.out, RVT_WU,
			    _i == DROPPED_AFTER_FIN ? RVT_ACK | RVT_FIN : RVT_ACK,
			    (uint32_t)reeve_stream_id(s[k]), 0);
		rvt_peer_send(&r.p);
		rvt_peer_barrier(&r.p);
		for (unsigned k = 0; k < BATCH; k++)
			if (_i == CLOSED_LINGERS)
				reeve_close(s[k]);
			else
				reeve_stream_unref(s[k]);
		want.fin += _i == DROPPED ? 0 : BATCH;
		want.rst += _i == DROPPED ? BATCH : 0;
		watch(&got, &want);
		if (i == 0) /* with the first ones still lingering */
			before = rvq_gauge_get(&alloc.bytes);
	}
	if (_i == CLOSED_LINGERS) {
		want.rst = n;
		watch(&got, &want);
	}
	ck_assert_uint_eq(got.rst + (_i == DROPPED_AFTER_FIN ? n : 0), n);
	ck_assert_uint_eq(got.fin, want.fin);
	for (ms = rvt_now_ms(); rvt_stats(r.k).streams_open > 0;)
		ck_assert_uint_lt(rvt_now_ms() - ms, (uint64_t)rvt_slow(RVT_WAIT_MS));
	ck_assert_uint_lt(rvq_gauge_get(&alloc.bytes), before + (256u << 10));
	/* Late frames of them are skipped. */
	for (uint32_t i = 0; i < 100; i++) {
		rvt_put_data(&r.p.out, 0, 1 + 2 * i, 50, 0);
		rvt_put(&r.p.out, RVT_WU, i % 2 ? RVT_FIN : RVT_RST, 1 + 2 * i, 0);
	}
	rvt_peer_send(&r.p);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
	rvt_alloc_check(&alloc);
	rvt_base_check(&base);
}
END_TEST

/* --- 76 */

/* The peer has said GO_AWAY: opens are refused at once and nothing of them is sent. */
static void
no_opens(int rc)
{
	uint64_t start = rvt_now_ms();
	reeve_stream_t *s;

	ck_assert_int_eq(reeve_open(r.k, &s, -1), rc);
	ck_assert_int_eq(reeve_open(r.k, &s, 0), rc);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(500));
}

static void
serve(reeve_stream_t *s)
{
	uint32_t id = (uint32_t)reeve_stream_id(s);

	rvt_want_write(s, 1000, 0);
	rvt_peer_want_bytes(&r.p, id, 1000, 0);
	rvt_peer_data(&r.p, 0, id, 1000, 0);
	rvt_want_read(s, 1000, 0);
}

START_TEST(scenario_76_a_peer_that_drains_is_left_to_finish)
{
	static const struct {
		uint32_t id;
		unsigned times;
	} how[] = {{0, 1}, {0, 2}, {5, 1}};
	struct rvt_call ac = {.kind = RVT_CALL_ACCEPT, .timeout_ms = -1};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s[3];
	reeve_op_t ended;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_DIALER, NULL);
	rvt_peer_settle(&r.p);
	for (int i = 0; i < 3; i++)
		s[i] = rvt_raw_outbound(&r);
	reeve_op_init(&ended, NULL, NULL);
	reeve_closed_async(r.k, &ended);
	ac.k = r.k;
	rvt_call_start(&ac);
	for (unsigned i = 0; i < how[_i].times; i++)
		rvt_peer_put(&r.p, RVT_GOAWAY, 0, how[_i].id, 0);
	rvt_peer_barrier(&r.p);
	no_opens(REEVE_EGOAWAY);
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_int_eq(why.rc, 0); /* it goes on */
	for (int i = 0; i < 3; i++)
		serve(s[i]);
	for (int i = 0; i < 3; i++) {
		uint32_t id = (uint32_t)reeve_stream_id(s[i]);

		ck_assert(!rvt_call_done(&ac));
		rvt_peer_put(&r.p, RVT_WU, RVT_FIN, id, 0);
		rvt_want_rc(s[i], 0);
		reeve_close(s[i]);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, id, 0);
	}
	/* The last stream was the last of the connection: it closes, and whoever waits is told. */
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_peer_close(&r.p);
	ck_assert_int_lt(rvt_call_end(&ac), 0);
	ck_assert_msg(ac.rc == REEVE_EEND || ac.rc == REEVE_ECLOSED || ac.rc == REEVE_EGOAWAY, "%s",
	    reeve_errname((int)ac.rc));
	ck_assert_int_le(reeve_op_wait(&ended), 0);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

START_TEST(scenario_76_any_other_code_is_told_and_ends)
{
	static const uint32_t code[] = {1, 2, 99};
	struct rvt_call ac = {.kind = RVT_CALL_ACCEPT, .timeout_ms = -1};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_DIALER, NULL);
	rvt_peer_settle(&r.p);
	s = rvt_raw_outbound(&r);
	ac.k = r.k;
	rvt_call_start(&ac);
	rvt_peer_data(&r.p, 0, 1, 100, 0);
	rvt_peer_put(&r.p, RVT_GOAWAY, 0, 0, code[_i]);
	ck_assert_int_eq(rvt_call_end(&ac), REEVE_EGOAWAY);
	rvt_want_read(s, 100, 0); /* what came before */
	rvt_want_rc(s, REEVE_EGOAWAY);
	no_opens(REEVE_EGOAWAY);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_int_eq(why.rc, REEVE_EGOAWAY);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	ck_assert_uint_eq(why.wire_code, code[_i]);
	reeve_close(s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: going away", {&scenario_70_a_normal_life_says_nothing, 6},
    {&scenario_74_streams_the_peer_never_ends_do_not_stay, LEAVES},
    {&scenario_76_a_peer_that_drains_is_left_to_finish, 3},
    {&scenario_76_any_other_code_is_told_and_ends, 3})
