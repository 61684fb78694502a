/* test_ends.c - scenarios 19 to 29: bytes that are on their way when something ends. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WINDOW 262144u
#define MIB    1048576u

static struct rvt_nodes n;
static struct rvt_raw r;

static void
marry(int via)
{
	struct rvt_wedding w = {.via = (enum rvt_via)via, .seed = 1, .chunk = 13};

	rvt_marry(&n, &w);
}

/* --- 19: the connection is closed right behind the last write */

/* A server: it takes one stream, writes, and leaves altogether.  0, or what went wrong. */
static int
serve_and_leave(reeve_conn_t *c, uint32_t size)
{
	reeve_stream_t *s = NULL;
	uint8_t *p;
	int rc = reeve_accept(reeve_conn_ctl(c), &s, rvt_slow(RVT_WAIT_MS));

	if (rc != 0)
		return rc;
	p = malloc(size);
	for (uint32_t i = 0; i < size; i++)
		p[i] = rvt_byte((uint32_t)reeve_stream_id(s), i);
	rc = reeve_write(s, p, size) == (reeve_ssize)size ? 0 : REEVE_EAGAIN;
	reeve_close(s);
	free(p);
	if (rc == 0)
		rc = reeve_conn_close(c, rvt_slow(RVT_WAIT_MS));
	reeve_conn_destroy(c);
	return rc;
}

/* A client that reads a little at a time. */
static void
read_slowly(reeve_ctl_t *k, uint32_t size)
{
	reeve_stream_t *s = NULL;

	ck_assert_int_eq(reeve_open(k, &s, -1), 0);
	ck_assert_int_eq(reeve_shut(s), 0);
	for (uint32_t at = 0; at < size; at += 1000) {
		rvt_want_read(s, 1000, at);
		if (at % 20000 == 0)
			(void)poll(NULL, 0, 2);
	}
	rvt_want_rc(s, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
}

static void
child(int fd)
{
	reeve_rt_t *rt = NULL;
	reeve_conn_t *c = NULL;

	if (reeve_rt_create(&rt, NULL) != 0 ||
	    reeve_conn_open_fd(&c, rt, fd, REEVE_LISTENER, NULL) != 0)
		_exit(1);
	_exit(serve_and_leave(c, 300000) != 0 ? 2 : 0);
}

START_TEST(scenario_19_a_process_that_leaves_loses_nothing)
{
	struct rvt_base base = rvt_base();
	reeve_rt_t *rt = NULL;
	reeve_conn_t *c = NULL;
	int v[2], status;
	pid_t pid;

	for (unsigned run = 0; run < 5 * rvt_scale(); run++) {
		(_i ? rvt_tcp_pair : rvt_unix_pair)(v);
		pid = fork();
		if (pid == 0) {
			close(v[0]);
			child(v[1]);
		}
		close(v[1]);
		ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
		ck_assert_int_eq(reeve_conn_open_fd(&c, rt, v[0], REEVE_DIALER, NULL), 0);
		read_slowly(reeve_conn_ctl(c), 300000);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "the server ended with %d", status);
		reeve_conn_destroy(c);
		reeve_rt_destroy(rt);
		rvt_base_check(&base);
	}
}
END_TEST

static uint32_t size19;

static void *
leaving(void *arg)
{
	int rc = serve_and_leave(n.c[1], size19);

	(void)arg;
	n.c[1] = NULL;
	return rc == 0 ? NULL : &size19;
}

START_TEST(scenario_19_a_node_that_leaves_loses_nothing)
{
	pthread_t t;
	void *bad;

	size19 = _i >= RVT_RECHUNK ? 20000 : 300000;
	for (unsigned run = 0; run < rvt_scale(); run++) {
		marry(_i);
		ck_assert_int_eq(pthread_create(&t, NULL, leaving, NULL), 0);
		read_slowly(n.k[0], size19);
		pthread_join(t, &bad);
		ck_assert_ptr_null(bad);
		rvt_divorce(&n);
	}
}
END_TEST

/* Megabytes wait in the send queue of the stream.  _i / 2: transport; _i % 2: nobody reads. */
START_TEST(scenario_19_close_flushes_or_tells)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE};
	uint32_t size = 4 * MIB;
	reeve_stream_t *s[2];
	reeve_buf_t *b;
	uint8_t *p;

	marry(_i / 2);
	rvt_stream_pair(&n, 0, s);
	b = reeve_buf_alloc(n.rt[1], size);
	ck_assert_ptr_nonnull(b);
	p = reeve_buf_mut(b);
	for (uint32_t i = 0; i < size; i++)
		p[i] = rvt_byte((uint32_t)reeve_stream_id(s[1]), i);
	ck_assert_int_eq(reeve_write_buf(s[1], b), (reeve_ssize)size);
	reeve_close(s[1]);
	c.c = n.c[1];
	c.timeout_ms = _i % 2 ? 50 : rvt_slow(RVT_WAIT_MS);
	rvt_call_start(&c);
	if (_i % 2 == 0) {
		rvt_want_read(s[0], size, 0);
		rvt_want_rc(s[0], 0);
		reeve_close(s[0]);
		ck_assert_int_eq(rvt_call_end(&c), 0);
	} else {
		ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
		reeve_close(s[0]);
	}
	rvt_divorce(&n);
}
END_TEST

/* --- 20: bytes and the end in one segment, with a reader asleep */

struct reader {
	pthread_t thread;
	uint32_t count, seed, bad; /* bad: the stream that was wrong, or 0 */
};

/* How many bytes a stream gets. */
static uint32_t
length_of(uint32_t seed, uint32_t id)
{
	seed += id;
	(void)rvt_random(&seed);
	return 1 + rvt_random(&seed) % 65536;
}

/* One stream after the other, to its end. */
static void *
read_streams(void *arg)
{
	struct reader *d = arg;
	uint8_t *p = malloc(65536);
	reeve_stream_t *s;
	reeve_ssize k;

	for (uint32_t i = 0; i < d->count; i++) {
		uint32_t id = 2 * i + 1, got = 0;

		if (reeve_accept(r.k, &s, -1) != 0)
			break;
		while ((k = reeve_read(s, p, 65536)) > 0)
			for (reeve_ssize j = 0; j < k; j++, got++)
				if (p[j] != rvt_byte(id, got))
					d->bad = id;
		if (k != 0 || got != length_of(d->seed, id) || reeve_read(s, p, 1) != 0 ||
		    reeve_read(s, p, 1) != 0)
			d->bad = id;
		reeve_close(s);
	}
	free(p);
	return NULL;
}

START_TEST(scenario_20_the_end_comes_behind_the_bytes)
{
	struct reader d = {.count = 1000 * rvt_scale(), .seed = rvt_seed()};

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	ck_assert_int_eq(pthread_create(&d.thread, NULL, read_streams, &d), 0);
	for (uint32_t id = 1; id < 2 * d.count; id += 2) {
		uint32_t k = length_of(d.seed, id);

		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, id, 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_ACK, id, 0);
		if (id % 64 == 1)
			rvt_peer_barrier(&r.p); /* time to fall asleep */
		rvt_put_data(&r.p.out, id % 4 == 1 ? RVT_FIN : 0, id, k, 0);
		if (id % 4 != 1)
			rvt_put(&r.p.out, RVT_WU, RVT_FIN, id, 0);
		rvt_peer_send(&r.p);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, id, 0);
	}
	pthread_join(d.thread, NULL);
	ck_assert_uint_eq(d.bad, 0);
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 21: everything has come and the connection is gone; then it is read */

START_TEST(scenario_21_bytes_are_read_after_the_connection)
{
	reeve_stream_t *s;

	(_i ? rvt_raw_open_tcp : rvt_raw_open)(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_put_data(&r.p.out, 0, 1, 200000, 0);
	rvt_put(&r.p.out, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.p.out, RVT_GOAWAY, 0, 0, 0);
	rvt_peer_send(&r.p);
	rvt_peer_close(&r.p);
	(void)rvt_closed(r.k);
	for (uint32_t at = 0; at < 200000; at += 10000)
		rvt_want_read(s, 10000, at);
	rvt_want_rc(s, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 22: small messages, and the handle is let go.  _i / 2: transport; _i % 2: without a close. */

START_TEST(scenario_22_letting_go_does_not_overtake_the_bytes)
{
	unsigned runs = (_i / 2 == RVT_TCP ? 100 : 20) * rvt_scale();
	reeve_stream_t *s[2];
	uint64_t before;

	marry(_i / 2);
	for (unsigned run = 0; run < runs; run++) {
		rvt_stream_pair(&n, (int)(run % 2), s);
		before = rvt_stats(n.k[1]).bytes_in;
		for (unsigned i = 0; i < 3; i++)
			rvt_want_write(s[0], 11, 11 * i);
		if (_i % 2)
			reeve_stream_unref(s[0]);
		else
			reeve_close(s[0]);
		while (run % 2 && rvt_stats(n.k[1]).bytes_in != before + 33) /* late */
			sched_yield();
		rvt_want_read(s[1], 33, 0);
		rvt_want_rc(s[1], _i % 2 ? REEVE_ERESET : 0); /* a drop resets behind the bytes */
		reeve_close(s[1]);
	}
	for (int i = 0; i < 2; i++)
		rvt_no_streams(n.k[i]);
	ck_assert_uint_eq(rvt_stats(n.k[0]).resets_out, _i % 2 ? runs : 0);
	rvt_divorce(&n);
}
END_TEST

/* --- 23: credit arrives for a stream that was closed with bytes waiting */

START_TEST(scenario_23_credit_after_close_cancels_nothing)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 8 * MIB};
	uint64_t left = c.n, got = 0, frames;
	struct rvt_frame f;
	reeve_stream_t *s;
	bool fin = false;

	(_i ? rvt_raw_open_tcp : rvt_raw_open)(&r, REEVE_LISTENER, NULL);
	c.s = rvt_raw_inbound(&r, 1);
	s = rvt_raw_inbound(&r, 3);
	rvt_peer_settle(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 64 * MIB);
	c.p = calloc(1, c.n);
	rvt_call_start(&c);
	rvt_raw_stalled(&r); /* nothing leaves any more */
	rvt_want_write(s, 100000, 0);
	reeve_close(s);
	frames = rvt_stats(r.k).frames_in;
	r.p.end = true; /* the peer does not read */
	rvt_peer_put(&r.p, RVT_WU, 0, 3, 50000);
	rvt_peer_put(&r.p, RVT_WU, 0, 3, 50000);
	while (rvt_stats(r.k).frames_in < frames + 2)
		sched_yield();
	r.p.end = false;
	while (rvt_peer_next_but(&r.p, &f, 1, &left) || got < 100000 || !fin) {
		if (left == 0 && (got < 100000 || !fin))
			ck_assert(rvt_peer_next(&r.p, &f));
		ck_assert_msg(f.id == 3 && !(f.flags & RVT_RST), "type %u, flags %u, id %u", f.type,
		    f.flags, f.id);
		for (uint32_t i = 0; f.type == RVT_DATA && i < f.len; i++)
			ck_assert(f.body[i] == rvt_byte(3, got + i));
		got += f.type == RVT_DATA ? f.len : 0;
		fin |= (f.flags & RVT_FIN) != 0;
		ck_assert(!fin || got == 100000);
	}
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 3, 0);
	rvt_peer_put(&r.p, RVT_WU, 0, 3, 1000); /* nobody knows it any more */
	rvt_peer_data(&r.p, 0, 3, 10, 0);
	rvt_peer_want_none(&r.p);
	reeve_close(c.s);
	free(c.p);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 25: half-close */

START_TEST(scenario_25_half_close_leaves_the_other_half)
{
	reeve_stream_t *s[2];
	uint8_t byte = 0;

	marry(_i);
	rvt_ask_and_answer(&n, _i >= RVT_RECHUNK ? 20000 : MIB);
	/* The second verb: reading stops, writing goes on. */
	rvt_stream_pair(&n, 0, s);
	ck_assert_int_eq(reeve_stop(s[0]), 0);
	ck_assert_int_eq(reeve_stop(s[0]), 0);
	rvt_want_rc(s[0], REEVE_ECLOSED);
	rvt_want_write(s[0], 1000, 0);
	rvt_want_read(s[1], 1000, 0);
	/* The third: both end. */
	ck_assert_int_eq(reeve_reset(s[0], 5), 0);
	ck_assert_int_eq(reeve_write(s[0], &byte, 1), REEVE_ECLOSED);
	rvt_want_rc(s[1], REEVE_ERESET);
	reeve_close(s[0]);
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("scenarios: ends", {&scenario_19_a_process_that_leaves_loses_nothing, 2},
    {&scenario_19_a_node_that_leaves_loses_nothing, RVT_VIAS},
    {&scenario_19_close_flushes_or_tells, 2 * RVT_RECHUNK},
    {&scenario_20_the_end_comes_behind_the_bytes, 0},
    {&scenario_21_bytes_are_read_after_the_connection, 2},
    {&scenario_22_letting_go_does_not_overtake_the_bytes, 2 * RVT_VIAS},
    {&scenario_23_credit_after_close_cancels_nothing, 2},
    {&scenario_25_half_close_leaves_the_other_half, RVT_VIAS})
