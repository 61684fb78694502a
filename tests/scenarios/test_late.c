/* test_late.c - scenarios 36 to 41: what comes or is called too late, and calls that do half of what was asked. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define WINDOW 262144u
#define MIB    1048576u

static struct rvt_nodes n;
static struct rvt_raw r;

/* --- 36: frames of streams that are no more, or never were */

START_TEST(scenario_36_late_frames_are_skipped)
{
	uint32_t count = 10000 * rvt_scale();
	reeve_stream_t *s, *t;
	uint64_t before;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	t = rvt_raw_inbound(&r, 3);
	ck_assert_int_eq(reeve_reset(s, 0), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	for (uint32_t i = 0; i < 64; i++) /* on their way when the reset arrived */
		rvt_put_data(&r.p.out, 0, 1, 4096, 4096 * i);
	rvt_peer_send(&r.p);
	rvt_peer_data(&r.p, 0, 999, 1000, 0);
	rvt_peer_data(&r.p, 0, 2, 1000, 0); /* we never opened it */
	rvt_peer_put(&r.p, RVT_WU, 0, 999, 1000);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 999, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_RST, 999, 0);
	rvt_peer_want_none(&r.p);
	before = rvt_rss();
	for (uint32_t i = 0; i < count; i++) {
		rvt_put_data(&r.p.out, 0, 1 + i % 2 * 998, 100, 100 * i);
		if (i % 256 == 255)
			rvt_peer_send(&r.p);
	}
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).unread, 0);
	ck_assert_uint_le(rvt_stats(r.k).held, 65536);
	ck_assert(RVT_SANITIZED || rvt_rss() <= before + MIB);
	rvt_peer_data(&r.p, 0, 3, 10, 0);
	rvt_want_read(t, 10, 0);
	ck_assert_uint_eq(rvt_stats(r.k).resets_out, 1);
	reeve_close(s);
	reeve_close(t);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 3, 0);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 37: bytes behind the peer's FIN */

START_TEST(scenario_37_bytes_behind_the_end_are_dropped)
{
	reeve_stream_t *s = NULL, *t;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	t = rvt_raw_inbound(&r, 3);
	rvt_put_data(&r.p.out, RVT_SYN, 5, 10, 0);
	rvt_put(&r.p.out, RVT_WU, RVT_FIN, 5, 0);
	rvt_put_data(&r.p.out, 0, 5, 10, 10);
	rvt_peer_send(&r.p);
	ck_assert_int_eq(reeve_accept(r.k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_ACK, 5, 0);
	rvt_want_read(s, 10, 0);
	rvt_want_rc(s, 0);
	rvt_peer_data(&r.p, 0, 5, 10, 20);
	rvt_peer_want_none(&r.p);
	rvt_want_rc(s, 0);
	rvt_want_write(s, 10, 0); /* our direction goes on, and so do others */
	rvt_peer_want_data(&r.p, 0, 5, 10, 0);
	rvt_peer_data(&r.p, 0, 3, 10, 0);
	rvt_want_read(t, 10, 0);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 5, 0);
	reeve_close(t);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 3, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 38: writes whose deadline passes */

START_TEST(scenario_38_an_expired_write_leaves_no_hole)
{
	uint32_t words = MIB / 4, *p = malloc(MIB);
	struct rvt_call c = {.kind = RVT_CALL_WRITE};
	uint64_t at = 0, got = 0;
	unsigned expired = 0;
	reeve_stream_t *s, *t;
	struct rvt_frame f;
	reeve_ssize k;

	for (uint32_t i = 0; i < words; i++)
		p[i] = i;
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 2 * MIB); /* the window is not what stops it */
	for (unsigned i = 0; i < 20; i++) {        /* the peer does not read */
		ck_assert_int_eq(reeve_deadline(s, REEVE_WR, rvt_scale() > 1 ? 50 : 5), 0);
		k = reeve_write(s, (uint8_t *)p + at, MIB - at);
		ck_assert_msg(k > 0 || k == REEVE_ETIMEDOUT, "%s", reeve_errname((int)k));
		at += k > 0 ? (uint64_t)k : 0;
		expired += at < MIB;
		ck_assert_int_eq(reeve_open(r.k, &t, -1), 0);
		ck_assert_int_eq(reeve_reset(t, 0), 0);
		reeve_stream_unref(t);
	}
	ck_assert_uint_eq(expired, 20);
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, -1), 0);
	c.s = s;
	c.p = (uint8_t *)p + at;
	c.n = MIB - at;
	rvt_call_start(&c);
	while (got < MIB) {
		ck_assert(rvt_peer_next(&r.p, &f));
		if (f.id == 1) {
			ck_assert(f.type == RVT_DATA && f.flags == 0 && f.len <= MIB - got);
			ck_assert_int_eq(memcmp(f.body, (uint8_t *)p + got, f.len), 0);
			got += f.len;
		} else { /* the other streams: what they had to say before they were reset */
			ck_assert(f.type == RVT_WU && f.id % 2 == 0 && f.len == 0);
		}
	}
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	rvt_peer_want_none(&r.p);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	free(p);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 40: reads and writes of a few bytes */

#define ECHOES 8

/* _i / 6: readiness by the poller or told by a thread; _i % 6: bytes at once. */
START_TEST(scenario_40_pieces_of_any_size_make_the_same_bytes)
{
	static const unsigned pieces[] = {1, 2, 7, 11, 12, 13};
	struct rvt_wedding w = {.via = _i / 6 ? RVT_RECHUNK_THREAD : RVT_RECHUNK};
	uint64_t needed = 0, calls = 0, total;
	struct rvt_flow f[3 * ECHOES];
	reeve_stream_t *s[ECHOES][2];

	w.chunk = pieces[_i % 6];
	w.seed = rvt_seed();
	total = (uint64_t)w.chunk * 300 * rvt_scale();
	rvt_marry(&n, &w);
	for (unsigned i = 0; i < ECHOES; i++) {
		rvt_stream_pair(&n, (int)(i % 2), s[i]);
		f[3 * i] = (struct rvt_flow){.kind = RVT_FLOW_WRITE, .s = s[i][0]};
		f[3 * i + 1] = (struct rvt_flow){.kind = RVT_FLOW_READ, .s = s[i][0]};
		f[3 * i + 2] = (struct rvt_flow){.kind = RVT_FLOW_ECHO, .s = s[i][1]};
		for (unsigned k = 0; k < 3; k++) {
			f[3 * i + k].total = total;
			f[3 * i + k].key = i;
			f[3 * i + k].seed = w.seed + 3 * i + k;
			rvt_flow_start(&f[3 * i + k]);
		}
	}
	for (unsigned i = 0; i < 3 * ECHOES; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < ECHOES; i++) {
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
	for (int i = 0; i < 2; i++) {
		reeve_stats_t st = rvt_stats(n.k[i]);

		rvt_no_streams(n.k[i]);
		ck_assert_uint_eq(st.resets_out, 0);
		needed += (st.bytes_in + st.bytes_out + 12 * (st.frames_in + st.frames_out)) /
		    w.chunk;
	}
	rvt_divorce(&n);
	for (int i = 0; i < 2; i++)
		calls += n.re[i].calls - n.re[i].lies;
	ck_assert_msg(calls <= 2 * needed + 1000, "%llu calls, %llu needed",
	    (unsigned long long)calls, (unsigned long long)needed);
}
END_TEST

/* A transport that says to have read or written a byte more than it could. */
struct liar {
	int fd;
	bool reads, closed;
};

static size_t
sum_of(const struct iovec *v, int k)
{
	size_t sum = 0;

	while (k-- > 0)
		sum += v[k].iov_len;
	return sum;
}

static reeve_ssize
liar_readv(void *ctx, const struct iovec *v, int k)
{
	const struct liar *l = ctx;
	ssize_t got = recv(l->fd, v[0].iov_base, v[0].iov_len, MSG_DONTWAIT);

	if (got < 0)
		return REEVE_EAGAIN;
	return l->reads && got > 0 ? (reeve_ssize)sum_of(v, k) + 1 : got;
}

static reeve_ssize
liar_writev(void *ctx, const struct iovec *v, int k)
{
	const struct liar *l = ctx;
	ssize_t put = writev(l->fd, v, k);

	return put < 0 ? REEVE_EAGAIN : l->reads ? put : (reeve_ssize)sum_of(v, k) + 1;
}

static int
liar_fd(void *ctx)
{
	return ((const struct liar *)ctx)->fd;
}

static void
liar_close(void *ctx)
{
	struct liar *l = ctx;

	close(l->fd);
	l->closed = true;
}

START_TEST(scenario_40_a_lying_transport_is_an_error_of_the_transport)
{
	struct rvt_base base = rvt_base();
	struct liar l = {.reads = _i == 0};
	reeve_transport_t t = {.readv = liar_readv,
	    .writev = liar_writev,
	    .fd = liar_fd,
	    .close = liar_close,
	    .ctx = &l};
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_peer p;
	reeve_rt_t *rt = NULL;
	reeve_conn_t *c = NULL;
	reeve_stream_t *s = NULL;
	int v[2], rc;

	rvt_unix_pair(v);
	l.fd = v[0];
	rvt_peer_init(&p, v[1]);
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_conn_open(&c, rt, &t, REEVE_LISTENER, NULL), 0);
	rvt_put(&p.out, RVT_WU, RVT_SYN, 1, 0);
	(void)rvt_peer_try_send(&p); /* its first write may have ended it already */
	rc = rvt_closed(reeve_conn_ctl(c));
	ck_assert_int_lt(rc, 0);
	ck_assert_int_eq(reeve_ctl_reason(reeve_conn_ctl(c), &why), 0);
	ck_assert_int_eq(why.rc, rc);
	ck_assert_uint_eq(why.by, REEVE_BY_TRANSPORT);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(c), &s, -1), rc);
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	ck_assert(l.closed);
	rvt_peer_fini(&p);
	rvt_base_check(&base);
}
END_TEST

/* --- 41: calls after a fatal error */

#define ASKS 11
#define ENDS 3

struct user {
	pthread_t thread;
	pthread_barrier_t *asked;
	reeve_stream_t *s;
	int ask[2][ASKS], end[2][ENDS];
};

static void
ask_all(reeve_stream_t *s, int *rc)
{
	uint8_t byte = 0;
	struct iovec v = {&byte, 1};
	reeve_stream_t *t = NULL;
	reeve_buf_t *b = NULL;

	rc[0] = (int)reeve_read(s, &byte, 1);
	rc[1] = (int)reeve_read_buf(s, &b);
	rc[2] = (int)reeve_write(s, &byte, 1);
	rc[3] = (int)reeve_writev(s, &v, 1);
	rc[4] = (int)reeve_write_buf(s, reeve_buf_alloc(r.rt, 10));
	rc[5] = reeve_open(r.k, &t, -1);
	rc[6] = reeve_accept(r.k, &t, -1);
	rc[7] = reeve_ping(r.k, -1, NULL);
	rc[8] = reeve_conn_close(r.c, -1);
	rc[9] = reeve_goaway(r.k, 3);
	rc[10] = reeve_abort(r.k, REEVE_ELIMIT);
}

static void *
user(void *arg)
{
	struct user *u = arg;

	for (unsigned i = 0; i < 2; i++)
		ask_all(u->s, u->ask[i]);
	pthread_barrier_wait(u->asked); /* reads answer to a stop of our own from then on */
	for (unsigned i = 0; i < 2; i++) {
		u->end[i][0] = reeve_shut(u->s);
		u->end[i][1] = reeve_stop(u->s);
		u->end[i][2] = reeve_reset(u->s, 1);
	}
	return NULL;
}

static void
want_same(const struct user *u, int rc)
{
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < ASKS; k++) {
			int got = u[i / 2].ask[i % 2][k];

			ck_assert_msg(got == (k <= 8 ? rc : u[0].ask[0][k]), "call %u, time %u: %s",
			    k, i, reeve_errname(got));
		}
		for (unsigned k = 0; k < ENDS; k++)
			ck_assert_int_eq(u[i / 2].end[i % 2][k], u[0].end[0][k]);
	}
}

/* _i: 0 the peer's GO_AWAY(1), 1 a reset of the transport, 2 a version that there is not. */
START_TEST(scenario_41_every_call_answers_what_ended_the_connection)
{
	const int why[] = {REEVE_EGOAWAY, REEVE_ESYS_BASE - ECONNRESET, REEVE_EPROTO};
	struct linger hard = {1, 0};
	pthread_barrier_t asked;
	struct user u[2];
	reeve_stream_t *s;

	pthread_barrier_init(&asked, NULL, 2);
	rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_settle(&r.p);
	if (_i == 0) {
		rvt_peer_put(&r.p, RVT_GOAWAY, 0, 0, 1);
	} else if (_i == 1) {
		ck_assert_int_eq(setsockopt(r.p.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
		rvt_peer_close(&r.p);
	} else {
		rvt_put_raw(&r.p.out, 0x0100, 0, 1, 0);
		rvt_peer_send(&r.p);
	}
	(void)rvt_closed(r.k);
	for (unsigned i = 0; i < 2; i++) {
		u[i] = (struct user){.s = s, .asked = &asked};
		ck_assert_int_eq(pthread_create(&u[i].thread, NULL, user, &u[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(u[i].thread, NULL);
	want_same(u, why[_i]);
	rvt_raw_want_reason(&r, why[_i], _i == 1 ? REEVE_BY_TRANSPORT : REEVE_BY_PEER);
	if (_i == 0) /* and nothing was sent */
		rvt_peer_want_end(&r.p);
	else if (_i == 2)
		rvt_peer_want_goaway_end(&r.p, 1);
	reeve_close(s);
	pthread_barrier_destroy(&asked);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("scenarios: late", {&scenario_36_late_frames_are_skipped, 0},
    {&scenario_37_bytes_behind_the_end_are_dropped, 0},
    {&scenario_38_an_expired_write_leaves_no_hole, 0},
    {&scenario_40_pieces_of_any_size_make_the_same_bytes, 12},
    {&scenario_40_a_lying_transport_is_an_error_of_the_transport, 2},
    {&scenario_41_every_call_answers_what_ended_the_connection, 3})
