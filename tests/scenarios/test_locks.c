/* Calls that meet inside one stream, and failures that arrive while something is held: nobody waits for ever.
 * Scenarios 43, 44, 45 and 50. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queues/cell.h"
#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/scenarios/pace.h"

static struct rvt_base base;
static struct rvt_raw r;
static reeve_cfg_t cfg;

/* --- 43: a reader, one who ends, one who moves deadlines, one who looks */

struct torn {
	reeve_stream_t *s;
	struct rvq_cell32 got, stop;
	reeve_ssize rc; /* of the read that was the last */
	uint32_t seed;
	unsigned looks;
};

static void *
read_bytes(void *arg)
{
	struct torn *t = arg;
	uint8_t b;

	do {
		t->rc = reeve_read(t->s, &b, 1);
		if (t->rc == 1)
			(void)rvq_cell32_add(&t->got, 1);
	} while (t->rc == 1 || t->rc == REEVE_ETIMEDOUT);
	return NULL;
}

static void *
move_deadlines(void *arg)
{
	static const int64_t ms[] = {-1, 0, 1, 1000, -1};
	struct torn *t = arg;

	while (!rvq_cell32_get(&t->stop)) {
		(void)reeve_deadline(t->s, REEVE_RD | REEVE_WR, ms[rvt_random(&t->seed) % 5]);
		rvt_pace_us(20);
	}
	return NULL;
}

static void *
look(void *arg)
{
	struct torn *t = arg;
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stats_t st = {.size = sizeof(st)};

	while (!rvq_cell32_get(&t->stop)) {
		t->looks += reeve_ctl_stats(reeve_stream_ctl(t->s), &st) == 0 &&
		    reeve_stream_reason(t->s, &why) == 0 && st.streams_open < 100;
		rvt_pace_us(20);
	}
	return NULL;
}

static int
end_it(unsigned way, reeve_stream_t *s[2])
{
	switch (way) {
	case 0:
		reeve_close(reeve_stream_ref(s[0]));
		return REEVE_ECLOSED;
	case 1:
		ck_assert_int_eq(reeve_reset(s[0], 7), 0);
		return REEVE_ECLOSED;
	case 2:
		ck_assert_int_eq(reeve_stop(s[0]), 0);
		return REEVE_ECLOSED;
	default:
		ck_assert_int_eq(reeve_reset(s[1], 7), 0);
		return REEVE_ERESET;
	}
}

START_TEST(scenario_43_reading_and_ending_from_four_threads_never_locks_up)
{
	static void *(*const fn[])(void *) = {read_bytes, move_deadlines, look};
	struct rvt_wedding how = {.via = RVT_SOCKETPAIR};
	unsigned rounds = 10 * rvt_scale(), looks = 0;
	uint32_t seed = rvt_seed(), want;
	struct rvt_nodes n;
	pthread_t th[3];

	base = rvt_base();
	rvt_marry(&n, &how);
	for (unsigned i = 0; i < rounds; i++) {
		struct torn t = {.seed = seed + i};
		struct rvt_flow f = {.kind = RVT_FLOW_WRITE, .total = 1u << 30};
		reeve_stream_t *s[2];
		int rc;

		rvt_stream_pair(&n, 0, s);
		t.s = s[0];
		f.s = s[1];
		rvt_flow_start(&f);
		for (unsigned k = 0; k < 3; k++)
			ck_assert_int_eq(pthread_create(&th[k], NULL, fn[k], &t), 0);
		/* Now and then long enough for credit to have gone back. */
		want = rvt_random(&seed) % (i % 5 == 0 ? 200000 : 3000);
		while (rvq_cell32_get(&t.got) < want)
			rvt_pace_us(50);
		rc = end_it(rvt_random(&seed) % 4, s);
		pthread_join(th[0], NULL);
		ck_assert_int_eq(t.rc, rc);
		(void)reeve_reset(s[0], 0); /* a stopped stream's writer waits for credit */
		rvt_flow_join(&f);
		rvq_cell32_put(&t.stop, 1);
		pthread_join(th[1], NULL);
		pthread_join(th[2], NULL);
		looks += t.looks;
		reeve_close(s[0]);
		reeve_close(s[1]);
	}
	ck_assert_uint_gt(looks, 0);
	rvt_divorce(&n);
	rvt_base_check(&base);
}
END_TEST

/* --- 44: a body that breaks off; no memory */

static void
hang_up(struct rvt_peer *p, bool reset)
{
	struct linger now = {1, 0};

	if (reset)
		ck_assert_int_eq(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	rvt_peer_close(p);
}

static void
destroy_quickly(reeve_conn_t **c)
{
	uint64_t start = rvt_now_ms();

	reeve_conn_destroy(*c);
	*c = NULL;
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(1000));
}

START_TEST(scenario_44_a_broken_off_body_ends_every_call)
{
	bool reset = _i != 0;
	int rc = reset ? REEVE_ESYS_BASE - ECONNRESET : REEVE_ETRUNC;
	struct rvt_call rd = {.kind = RVT_CALL_READ, .n = 16};
	struct rvt_call ac = {.kind = RVT_CALL_ACCEPT, .timeout_ms = -1};
	uint8_t p[16];

	base = rvt_base();
	rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
	rd.s = rvt_raw_inbound(&r, 1);
	rd.p = p;
	ac.k = r.k;
	rvt_peer_settle(&r.p);
	rvt_put(&r.p.out, RVT_DATA, 0, 1, 1000);
	for (unsigned i = 0; i < 500; i++)
		*rvt_bytes_more(&r.p.out, 1) = rvt_byte(1, i);
	rvt_peer_send(&r.p);
	rvt_want_read(rd.s, 500, 0);
	rvt_call_start(&rd);
	rvt_call_start(&ac);
	rvt_call_asleep(&rd);
	rvt_call_asleep(&ac);
	hang_up(&r.p, reset);
	ck_assert_int_eq(rvt_call_end(&rd), rc);
	ck_assert_int_eq(rvt_call_end(&ac), rc);
	rvt_raw_want_reason(&r, rc, REEVE_BY_TRANSPORT);
	destroy_quickly(&r.c);
	ck_assert_int_eq(reeve_write(rd.s, p, 1), rc);
	reeve_close(rd.s);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

/* Open, send, receive, end.  The number of calls that told of the lack of memory. */
static unsigned
short_life(reeve_rt_t *rt)
{
	unsigned nomem = 0;
	reeve_conn_t *c[2] = {NULL, NULL};
	reeve_stream_t *s[2] = {NULL, NULL};
	reeve_reason_t why = {.size = sizeof(why)};
	uint8_t p[5000] = {0};
	reeve_ssize sent = 0, rc = reeve_conn_pair(c, rt, NULL);

	nomem += rc == REEVE_ENOMEM;
	if (rc == 0) {
		rc = reeve_open(reeve_conn_ctl(c[0]), &s[0], 1000);
		nomem += rc == REEVE_ENOMEM;
	}
	for (unsigned i = 0; i < 4 && rc >= 0; i++) {
		rc = reeve_write(s[0], p, sizeof(p));
		nomem += rc == REEVE_ENOMEM;
		sent += rc > 0 ? rc : 0; /* a part, when there was memory for no more */
	}
	if (rc >= 0) {
		rc = reeve_accept(reeve_conn_ctl(c[1]), &s[1], 500);
		nomem += rc == REEVE_ENOMEM;
	}
	for (unsigned i = 0; i < 2; i++)
		if (s[i] != NULL)
			(void)reeve_deadline(s[i], REEVE_RD | REEVE_WR, 500);
	for (reeve_ssize got = 0; rc >= 0 && got < sent; got += rc) {
		rc = reeve_read(s[1], p, sizeof(p));
		nomem += rc == REEVE_ENOMEM;
		ck_assert_int_ne(rc, 0);
	}
	for (unsigned i = 0; i < 2; i++)
		if (c[i] != NULL && reeve_ctl_reason(reeve_conn_ctl(c[i]), &why) == 0)
			nomem += why.rc == REEVE_ENOMEM;
	/* Without memory for a new stream the peer is refused. */
	if (s[0] != NULL && reeve_stream_reason(s[0], &why) == 0)
		nomem += why.rc == REEVE_EREFUSED;
	for (unsigned i = 0; i < 2; i++) {
		reeve_close(s[i]);
		if (c[i] != NULL)
			destroy_quickly(&c[i]);
	}
	/* What fails is served later, or tells. */
	ck_assert_msg(
	    rc >= 0 || nomem > 0, "%s, and nobody told of memory", reeve_errname((int)rc));
	return nomem;
}

START_TEST(scenario_44_lack_of_memory_is_told_and_never_hangs)
{
	struct rvt_alloc alloc;
	reeve_rt_cfg_t rc;
	reeve_rt_t *rt;
	unsigned nth = 0, told = 0;
	bool failed = true;

	base = rvt_base();
	while (failed) {
		rvt_alloc_init(&alloc);
		reeve_rt_cfg_init(&rc);
		rc.workers = 1;
		rc.alloc = alloc.a;
		ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
		rvt_alloc_fail(&alloc, ++nth, false);
		told += short_life(rt) > 0;
		failed = rvt_alloc_failed(&alloc);
		rvt_alloc_fail(&alloc, 0, false);
		reeve_rt_destroy(rt);
		rvt_alloc_check(&alloc);
	}
	ck_assert_uint_gt(nth, 8);
	ck_assert_uint_gt(told, 3);
	rvt_base_check(&base);
}
END_TEST

/* --- 45: everything is full, then a violation and a reset at once */

static void
accept_all(unsigned n, uint32_t first)
{
	reeve_stream_t *s;

	for (unsigned i = 0; i < n; i++) {
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, first + 2 * i, 0);
		ck_assert_int_eq(reeve_accept(r.k, &s, rvt_slow(RVT_WAIT_MS)), 0);
		reeve_stream_unref(s); /* an ACK and a reset are owed */
	}
}

START_TEST(scenario_45_a_full_connection_ends_within_a_second)
{
	struct rvt_call wr = {.kind = RVT_CALL_WRITE, .n = 16u << 20};
	struct rvt_call ping = {.kind = RVT_CALL_PING, .timeout_ms = -1};
	uint64_t start, until;
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_op_t op;
	struct rvt_base full;

	base = rvt_base();
	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = 100;
	cfg.keepalive_timeout_ms = 60000;
	cfg.write_ms = REEVE_OFF;
	rvt_raw_open_tcp(&r, REEVE_LISTENER, &cfg);
	wr.s = rvt_raw_inbound(&r, 1);
	wr.p = calloc(1, wr.n);
	ping.k = r.k;
	rvt_peer_settle(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 64u << 20);
	rvt_call_start(&wr);
	rvt_raw_stalled(&r);
	r.p.end = true; /* reads nothing from here on */
	accept_all(500, 3);
	rvt_call_start(&ping);
	rvt_call_asleep(&ping);
	/* Several keepalive intervals: no thread is added by any. */
	full = rvt_base();
	until = rvt_now_ms() + 400 + 100 * rvt_scale();
	while (rvt_now_ms() < until) {
		rvt_pace_us(20000);
		ck_assert_uint_eq(rvt_base().threads, full.threads);
	}
	ck_assert(!rvt_call_done(&wr) && !rvt_call_done(&ping));
	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(r.k, &op);
	start = rvt_now_ms();
	rvt_put_raw(&r.p.out, 0x0100, 0, 0, 0);
	rvt_peer_send(&r.p);
	hang_up(&r.p, true);
	(void)reeve_op_wait(&op);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(1000));
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_msg(why.rc == REEVE_EPROTO || why.rc == REEVE_ESYS_BASE - ECONNRESET ||
		why.rc == REEVE_ESYS_BASE - EPIPE,
	    "%s", reeve_errname(why.rc));
	(void)rvt_call_end(&wr);
	ck_assert_int_eq(rvt_call_end(&ping), why.rc);
	destroy_quickly(&r.c);
	reeve_close(wr.s);
	rvt_raw_fini(&r);
	free(wr.p);
	rvt_base_check(&base);
}
END_TEST

/* --- 50: a transport that nothing wakes */

struct mute {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool stuck, inside; /* readv waits while stuck */
	unsigned closed, after;
};

static reeve_ssize
mute_readv(void *ctx, const struct iovec *v, int n)
{
	struct mute *m = ctx;

	(void)v;
	(void)n;
	pthread_mutex_lock(&m->lock);
	m->after += m->closed;
	m->inside = true;
	pthread_cond_broadcast(&m->cond);
	while (m->stuck)
		pthread_cond_wait(&m->cond, &m->lock);
	pthread_mutex_unlock(&m->lock);
	return REEVE_EAGAIN;
}

static reeve_ssize
mute_writev(void *ctx, const struct iovec *v, int n)
{
	struct mute *m = ctx;
	size_t sum = 0;

	m->after += m->closed;
	for (int i = 0; i < n; i++)
		sum += v[i].iov_len;
	return (reeve_ssize)sum;
}

static void
mute_close(void *ctx)
{
	struct mute *m = ctx;

	m->closed++;
}

/* In its own runtime of one worker, inside readv. */
static void
mute_open(struct mute *m)
{
	reeve_transport_t t = {
	    .readv = mute_readv, .writev = mute_writev, .close = mute_close, .ctx = m};
	reeve_rt_cfg_t rc;

	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->cond, NULL);
	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	ck_assert_int_eq(reeve_rt_create(&r.rt, &rc), 0);
	ck_assert_int_eq(reeve_conn_open(&r.c, r.rt, &t, REEVE_DIALER, NULL), 0);
	r.k = reeve_conn_ctl(r.c);
	pthread_mutex_lock(&m->lock);
	while (!m->inside)
		pthread_cond_wait(&m->cond, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

static void
close_at_its_deadline(void)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .c = r.c, .timeout_ms = 150};

	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c.ms, 149);
	ck_assert_uint_lt(c.ms, (uint64_t)rvt_slow(1150));
}

START_TEST(scenario_50_close_ends_at_its_deadline_on_a_silent_transport)
{
	struct mute m = {.stuck = false};
	reeve_stream_t *s;
	reeve_ctl_t *k;

	base = rvt_base();
	mute_open(&m);
	k = reeve_ctl_ref(r.k);
	ck_assert_int_eq(reeve_open(r.k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	close_at_its_deadline();
	ck_assert_uint_eq(m.closed, 1);
	destroy_quickly(&r.c);
	reeve_transport_ready(k, REEVE_READABLE | REEVE_WRITABLE); /* too late */
	ck_assert_int_eq(reeve_ping(k, 100, NULL), REEVE_ETIMEDOUT);
	reeve_close(s);
	reeve_ctl_unref(k);
	reeve_rt_destroy(r.rt);
	ck_assert_uint_eq(m.closed, 1);
	ck_assert_uint_eq(m.after, 0);
	rvt_base_check(&base);
}
END_TEST

/* readv must not block; when one does, those who gave a deadline still get their answer. */
START_TEST(scenario_50_close_ends_at_its_deadline_while_a_read_is_stuck)
{
	struct mute m = {.stuck = true};
	reeve_stream_t *s = NULL;

	base = rvt_base();
	mute_open(&m);
	ck_assert_int_eq(reeve_open(r.k, &s, 10), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_ping(r.k, 10, NULL), REEVE_ETIMEDOUT);
	close_at_its_deadline();
	ck_assert_uint_eq(m.closed, 0);
	pthread_mutex_lock(&m.lock);
	m.stuck = false;
	pthread_cond_broadcast(&m.cond);
	pthread_mutex_unlock(&m.lock);
	destroy_quickly(&r.c);
	reeve_rt_destroy(r.rt);
	ck_assert_uint_eq(m.closed, 1);
	ck_assert_uint_eq(m.after, 0);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: locks",
    {&scenario_43_reading_and_ending_from_four_threads_never_locks_up, 0},
    {&scenario_44_a_broken_off_body_ends_every_call, 2},
    {&scenario_44_lack_of_memory_is_told_and_never_hangs, 0},
    {&scenario_45_a_full_connection_ends_within_a_second, 0},
    {&scenario_50_close_ends_at_its_deadline_on_a_silent_transport, 0},
    {&scenario_50_close_ends_at_its_deadline_while_a_read_is_stuck, 0})
