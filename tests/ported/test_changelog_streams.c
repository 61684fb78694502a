/* test_changelog_streams.c - the changelog of the Rust crate (yamux 0.12 to 0.14) row by row: lives of streams, readers
 * that stop, transports that lie. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/flow.h"
#include "tests/kit/run.h"
#include "tests/kit/wire.h"

#include <string.h>

/* --- 0.12.0: streams are reclaimed while the connection lives */

#define MILLION 1000000u
#define OPENERS 4
#define BATCH   32
#define SLACK \
	(2u << 20) /* what pools keep of a burst; the records of 10 000 streams are twice that */

static struct rvt_duo d;

static reeve_stats_t
stats(reeve_ctl_t *k)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_ctl_stats(k, &st), 0);
	return st;
}

/* Accept and let go of all there is, dropped and closed in turn. */
static void *
take_all(void *arg)
{
	reeve_ctl_t *k = arg;
	reeve_stream_t *s;

	for (unsigned i = 0; reeve_accept(k, &s, -1) == 0; i++) {
		if (i % 2)
			reeve_close(s);
		else
			reeve_stream_unref(s);
	}
	return NULL;
}

static void
live_on(pthread_t *taker)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.churn_burst = REEVE_OFF; /* a peer may reset what it opened as fast as it likes */
	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, &cfg);
	ck_assert_int_eq(pthread_create(taker, NULL, take_all, d.k[1]), 0);
}

/* No stream is left at either end. */
static void
settled(void)
{
	RVT_UNTIL(stats(d.k[0]).streams_open == 0 && stats(d.k[1]).streams_open == 0);
}

static void
flat_and_alive(uint64_t base, uint64_t opened, pthread_t taker)
{
	settled();
	RVT_UNTIL(rvq_gauge_get(&d.alloc.bytes) <= base + SLACK);
	ck_assert_uint_ge(stats(d.k[0]).streams_opened, opened);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_abort(d.k[1], 0), 0);
	pthread_join(taker, NULL);
	rvt_duo_end(&d);
}

/* Open, a byte, and drop (or close): n times. */
static void
open_and_drop(reeve_ctl_t *k, unsigned n)
{
	reeve_stream_t *s = NULL;
	unsigned bad = 0;

	for (unsigned i = 0; i < n; i++) {
		bad += reeve_open(k, &s, RVT_WAIT_MS) != 0;
		if (bad > 0)
			break;
		(void)reeve_write(s, "x", 1); /* may be refused: the backlog is full */
		if (i % 4 == 3)
			reeve_close(s);
		else
			reeve_stream_unref(s);
	}
	ck_assert_uint_eq(bad, 0);
}

START_TEST(v0_12_0_streams_are_reclaimed_while_the_connection_lives)
{
	unsigned n = MILLION / 100 * rvt_scale();
	pthread_t taker;
	uint64_t base;

	live_on(&taker);
	open_and_drop(d.k[0], n / 10);
	settled();
	base = rvq_gauge_get(&d.alloc.bytes);
	open_and_drop(d.k[0], n - n / 10);
	flat_and_alive(base, n, taker);
}
END_TEST

/* The same by operations of several threads that each have a handle of their own. */
struct opener {
	pthread_t thread;
	reeve_ctl_t *k;
	unsigned n, bad;
};

static void *
open_by_ops(void *arg)
{
	struct opener *o = arg;
	reeve_op_t op[BATCH];

	for (unsigned i = 0; i < o->n; i += BATCH) {
		for (unsigned j = 0; j < BATCH; j++) {
			reeve_op_init(&op[j], NULL, NULL);
			reeve_open_async(o->k, &op[j]);
		}
		for (unsigned j = 0; j < BATCH; j++) {
			if (reeve_op_wait(&op[j]) != 0) {
				o->bad++;
				continue;
			}
			if (j % 2)
				(void)reeve_write(op[j].stream, "x", 1);
			reeve_stream_unref(op[j].stream);
		}
	}
	reeve_ctl_unref(o->k);
	return NULL;
}

static void
open_with_all(unsigned n)
{
	struct opener o[OPENERS] = {0};

	for (unsigned i = 0; i < OPENERS; i++) {
		o[i].k = reeve_ctl_ref(d.k[0]);
		o[i].n = n / OPENERS;
		ck_assert_int_eq(pthread_create(&o[i].thread, NULL, open_by_ops, &o[i]), 0);
	}
	for (unsigned i = 0; i < OPENERS; i++) {
		pthread_join(o[i].thread, NULL);
		ck_assert_uint_eq(o[i].bad, 0);
	}
}

START_TEST(v0_12_0_streams_are_reclaimed_when_many_handles_open)
{
	unsigned n = MILLION / 100 * rvt_scale();
	pthread_t taker;
	uint64_t base;

	live_on(&taker);
	open_with_all(n / 5);
	settled();
	base = rvq_gauge_get(&d.alloc.bytes);
	open_with_all(n - n / 5);
	flat_and_alive(base, n, taker);
}
END_TEST

/* --- 0.12.1, 0.13.0: credit only for what was read */

#define WINDOW 262144u

/* The connection has done all it can do now. */
static void
quiet(void)
{
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
}

START_TEST(v0_12_1_reader_that_stops_stops_its_sender_at_the_window)
{
	reeve_stream_t *s, *t;
	uint64_t at;

	rvt_duo_start(&d);
	ck_assert_int_eq(reeve_write_buf(d.s[0], rvt_buf_run(d.rt, 4 * WINDOW, 0)), 4 * WINDOW);
	RVT_UNTIL(stats(d.k[1]).unread >= WINDOW);
	quiet();
	ck_assert_uint_eq(stats(d.k[0]).bytes_out, WINDOW);
	ck_assert_uint_eq(stats(d.k[1]).unread, WINDOW);
	/* Another stream does not notice. */
	ck_assert_int_eq(reeve_open(d.k[0], &s, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_accept(d.k[1], &t, RVT_WAIT_MS), 0);
	for (at = 0; at < 4 * WINDOW; at += WINDOW / 2) {
		rvt_write_run(s, WINDOW / 2, at);
		rvt_read_run(t, WINDOW / 2, at);
		rvt_write_run(t, 1000, at);
		rvt_read_run(s, 1000, at);
	}
	quiet();
	ck_assert_uint_eq(stats(d.k[0]).bytes_out, 5 * WINDOW);
	/* Less than half a window read is no credit yet; half is exactly half. */
	rvt_read_run(d.s[1], WINDOW / 2 - 1, 0);
	quiet();
	ck_assert_uint_eq(stats(d.k[0]).bytes_out, 5 * WINDOW);
	rvt_read_run(d.s[1], 3 * WINDOW + WINDOW / 2 + 1, WINDOW / 2 - 1);
	ck_assert_uint_eq(stats(d.k[0]).bytes_out, 8 * WINDOW);
	reeve_close(s);
	reeve_close(t);
	rvt_duo_end(&d);
}
END_TEST

/* --- 0.13.6, 0.13.8: transports that lie about what they took */

enum lie {
	LIE_ONE_MORE,
	LIE_TWICE,
	LIE_HUGE,
	LIE_NOTHING,
	LIES,
	/* Takes everything, says that it would block, and next time reports what it had taken. */
	LATE
};

struct liar {
	pthread_mutex_t lock;
	enum lie lie;
	bool armed, late;
	size_t kept; /* taken and not reported */
	struct rvt_bytes got;
	unsigned writes_after, closed;
	reeve_ctl_t *k;
};

static struct liar liar = {.lock = PTHREAD_MUTEX_INITIALIZER};

static reeve_ssize
liar_readv(void *ctx, const struct iovec *v, int n)
{
	(void)ctx;
	(void)v;
	(void)n;
	return REEVE_EAGAIN;
}

static reeve_ssize
liar_late(const uint8_t *p, size_t n)
{
	size_t old = liar.kept;

	if (liar.late) { /* what was offered before is offered again, and not less of it */
		ck_assert_uint_ge(n, old);
		ck_assert_int_eq(memcmp(liar.got.p + liar.got.n - old, p, old), 0);
		liar.late = false;
		return (reeve_ssize)old;
	}
	memcpy(rvt_bytes_more(&liar.got, n), p, n);
	liar.kept = n;
	liar.late = true;
	return REEVE_EAGAIN;
}

static reeve_ssize
liar_writev(void *ctx, const struct iovec *v, int n)
{
	static const reeve_ssize more[] = {1, 0, PTRDIFF_MAX / 2, 0};
	struct rvt_bytes all = {0};
	reeve_ssize rc;

	(void)ctx;
	for (int i = 0; i < n; i++)
		if (v[i].iov_len > 0)
			memcpy(rvt_bytes_more(&all, v[i].iov_len), v[i].iov_base, v[i].iov_len);
	pthread_mutex_lock(&liar.lock);
	liar.writes_after += liar.closed > 0;
	rc = (reeve_ssize)all.n;
	if (liar.armed && liar.lie == LATE) {
		rc = liar_late(all.p, all.n);
	} else if (liar.armed) {
		liar.writes_after += liar.late; /* a call after the lie */
		liar.late = true;
		rc = liar.lie == LIE_NOTHING ? 0
		    : liar.lie == LIE_TWICE  ? 2 * rc
					     : rc + more[liar.lie];
	} else {
		memcpy(rvt_bytes_more(&liar.got, all.n), all.p, all.n);
	}
	pthread_mutex_unlock(&liar.lock);
	rvt_bytes_fini(&all);
	return rc;
}

static void
liar_attach(void *ctx, reeve_ctl_t *k)
{
	(void)ctx;
	liar.k = k;
}

static void
liar_close(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&liar.lock);
	liar.closed++;
	pthread_mutex_unlock(&liar.lock);
}

static void
liar_start(enum lie lie)
{
	reeve_transport_t t = {
	    .readv = liar_readv, .writev = liar_writev, .attach = liar_attach, .close = liar_close};

	liar.lie = lie;
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_conn_open(&d.c[0], d.rt, &t, REEVE_DIALER, NULL), 0);
	d.k[0] = reeve_conn_ctl(d.c[0]);
	ck_assert_int_eq(reeve_open(d.k[0], &d.s[0], RVT_WAIT_MS), 0);
}

static bool
liar_is_late(void)
{
	bool late;

	pthread_mutex_lock(&liar.lock);
	late = liar.late;
	pthread_mutex_unlock(&liar.lock);
	return late;
}

static void
liar_arm(bool armed)
{
	pthread_mutex_lock(&liar.lock);
	liar.armed = armed;
	pthread_mutex_unlock(&liar.lock);
}

/* More than was offered, or nothing: one reason for everything, and the transport is written no more. */
START_TEST(v0_13_6_writer_is_poisoned_by_a_transport_that_lies)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s = NULL;
	struct rvt_done closed;

	liar_start((enum lie)_i);
	rvt_done_init(&closed, -1);
	reeve_closed_async(d.k[0], &closed.op);
	liar_arm(true);
	(void)reeve_write(d.s[0], "abc", 3);
	ck_assert_int_eq(rvt_done_wait(&closed), REEVE_EPROTO);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(reeve_write(d.s[0], "abc", 3), REEVE_EPROTO);
		ck_assert_int_eq(reeve_open(d.k[0], &s, -1), REEVE_EPROTO);
		ck_assert_int_eq(reeve_ping(d.k[0], -1, NULL), REEVE_EPROTO);
		ck_assert_int_eq(reeve_conn_close(d.c[0], -1), REEVE_EPROTO);
		reeve_transport_ready(d.k[0], REEVE_WRITABLE);
	}
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], &why), 0);
	ck_assert_uint_eq(why.by, REEVE_BY_TRANSPORT);
	rvt_duo_end(&d);
	ck_assert_uint_eq(liar.writes_after, 0);
	ck_assert_uint_eq(liar.closed, 1);
	rvt_bytes_fini(&liar.got);
}
END_TEST

/* The frames in liar.got: is there one that ends stream 1?  Data must be the stream's. */
static bool
liar_got_end(unsigned flag)
{
	struct rvt_bytes b;
	struct rvt_frame f;
	bool end = false;

	pthread_mutex_lock(&liar.lock);
	b = liar.got;
	while (rvt_next(&b, &f)) {
		ck_assert(f.version == 0 && f.type <= RVT_PING);
		ck_assert(f.type == RVT_PING || f.id == 1);
		end |= f.type == RVT_WU && (f.flags & flag) != 0;
	}
	pthread_mutex_unlock(&liar.lock);
	return end;
}

/* What was offered once is offered again, whole, whatever happened to the stream meanwhile.  _i: 1, it was reset. */
START_TEST(v0_13_8_what_would_block_is_offered_again_unchanged)
{
	uint64_t until = rvt_ms() + RVT_WAIT_MS;

	liar_start(LATE);
	liar_arm(true);
	rvt_write_run(d.s[0], 100000, 0);
	RVT_UNTIL(liar_is_late());
	if (_i)
		ck_assert_int_eq(reeve_reset(d.s[0], 7), 0);
	else
		ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	while (!liar_got_end(_i ? RVT_RST : RVT_FIN)) {
		ck_assert_uint_lt(rvt_ms(), until);
		reeve_transport_ready(d.k[0], REEVE_WRITABLE);
		sched_yield();
	}
	rvt_duo_end(&d);
	ck_assert_uint_eq(liar.writes_after, 0);
	rvt_bytes_fini(&liar.got);
}
END_TEST

RVT_MAIN_TABLE("changelog_streams", {&v0_12_0_streams_are_reclaimed_while_the_connection_lives, 0},
    {&v0_12_0_streams_are_reclaimed_when_many_handles_open, 0},
    {&v0_12_1_reader_that_stops_stops_its_sender_at_the_window, 0},
    {&v0_13_6_writer_is_poisoned_by_a_transport_that_lies, LIES},
    {&v0_13_8_what_would_block_is_offered_again_unchanged, 2})
