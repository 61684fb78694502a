/* test_js.c - what the tests of js-libp2p-yamux (and the compliance suite it runs) assert, where no other test of ours
 * does.  ../PORTED.md has the whole list. */
#include <config.h>

#include "tests/kit/engine_rig.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_nodes n;
static struct rvt_raw r;

static void
marry(enum rvt_via via)
{
	struct rvt_wedding w = {.via = via};

	rvt_marry(&n, &w);
}

/* --- decode: nothing comes of nothing, nor of part of a header, and what is behind one is kept */

static void
feed_part(struct rvt_rig *g, struct rvt_bytes *b, size_t k)
{
	if (k > 0)
		memcpy(rvt_bytes_more(&g->in, k), b->p + b->at, k);
	b->at += k;
	ck_assert_int_eq(rvt_feed(g, 0), 0);
	rvt_notify(g);
}

START_TEST(js_decode_takes_one_header_at_a_time)
{
	static struct rvt_rig g;
	struct rvt_bytes b = {0};

	rvt_rig_init(&g, REEVE_LISTENER, NULL, NULL);
	rvt_put(&b, RVT_WU, RVT_SYN, 1, 0);
	rvt_put_data(&b, RVT_SYN, 3, 100, 0);
	rvt_put(&b, RVT_WU, RVT_SYN, 5, 0);
	feed_part(&g, &b, 0);
	rvt_no_event(&g);
	for (unsigned i = 0; i < 11; i++) { /* a byte at a time, one is missing */
		feed_part(&g, &b, 1);
		rvt_no_event(&g);
	}
	feed_part(&g, &b, 1 + 5); /* the last, and five of the next */
	(void)rvt_event(&g, RV_EV_OPEN, 1);
	rvt_no_event(&g);
	feed_part(&g, &b, 7 + 50); /* its rest, half of the body */
	(void)rvt_event(&g, RV_EV_OPEN, 3);
	ck_assert_uint_eq(rvt_seen(&g, 3)->got, 50);
	feed_part(&g, &b, 50 + 12);
	ck_assert_uint_eq(rvt_seen(&g, 3)->got, 100);
	(void)rvt_event(&g, RV_EV_OPEN, 5);
	rvt_no_event(&g);
	ck_assert_uint_eq(b.at, b.n);
	rvt_bytes_fini(&b);
	rvt_rig_fini(&g);
}
END_TEST

/* --- multiple simultaneous pings: few frames, and those who share one get the same answer */

#define ASKS 8

START_TEST(js_simultaneous_pings)
{
	static reeve_op_t op[ASKS];
	unsigned frames = 0, groups = 1;
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_DIALER, NULL);
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_KEEP;
	for (unsigned i = 0; i < ASKS; i++) {
		reeve_op_init(&op[i], NULL, NULL);
		reeve_ping_async(r.k, &op[i]);
	}
	do { /* a ping of ours that is in flight is no answer to who asks later: another follows it */
		ck_assert(rvt_peer_next(&r.p, &f));
		ck_assert(f.type == RVT_PING && f.flags == RVT_SYN && f.id == 0);
		frames++;
		rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len);
		rvt_peer_barrier(&r.p);
	} while (r.p.in.at < r.p.in.n);
	for (unsigned i = 0; i < ASKS; i++) {
		ck_assert_int_gt(reeve_op_wait(&op[i]), 0);
		groups += i > 0 && op[i].res != op[i - 1].res;
	}
	ck_assert_uint_le(frames, 3);
	ck_assert_uint_le(groups, frames);
	rvt_raw_fini(&r);
}
END_TEST

/* --- many streams: a thousand are open on both ends */

#define MANY 1000

struct opener {
	pthread_t thread;
	reeve_stream_t **s;
	int rc;
};

static void *
open_all(void *arg)
{
	struct opener *o = arg;

	for (unsigned i = 0; i < MANY && o->rc == 0; i++)
		o->rc = reeve_open(n.k[0], &o->s[i], rvt_slow(RVT_WAIT_MS));
	return NULL;
}

START_TEST(js_many_streams)
{
	static reeve_stream_t *s[MANY], *t[MANY];
	struct opener o = {.s = s};

	marry(RVT_SOCKETPAIR);
	ck_assert_int_eq(pthread_create(&o.thread, NULL, open_all, &o), 0);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_int_eq(reeve_accept(n.k[1], &t[i], rvt_slow(RVT_WAIT_MS)), 0);
	pthread_join(o.thread, NULL);
	ck_assert_int_eq(o.rc, 0);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(rvt_stats(n.k[i]).streams_open, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		reeve_close(s[i]);
		reeve_close(t[i]);
	}
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- compliance/close */

#define FIVE 5

static void
five(reeve_stream_t *s[FIVE][2])
{
	for (unsigned i = 0; i < FIVE; i++)
		rvt_stream_pair(&n, (int)(i % 2), s[i]);
}

/* All streams of both ends end, used or not, and there will be no others.  _i: 0 the transport ends under one side, 1 the
 * connection is closed gracefully, 2 aborted. */
START_TEST(js_close_ends_every_stream)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = rvt_slow(5000)};
	struct rvt_call rd[FIVE];
	reeve_stream_t *s[FIVE][2], *t = NULL;
	uint8_t byte[FIVE];
	int rc = _i == 1 ? 0 : REEVE_EEND;

	marry(RVT_SOCKETPAIR);
	five(s);
	for (unsigned i = 0; i < FIVE; i++) {
		rd[i] = (struct rvt_call){
		    .kind = RVT_CALL_READ, .s = s[i][1], .p = &byte[i], .n = 1};
		rvt_call_start(&rd[i]);
		rvt_call_asleep(&rd[i]);
	}
	if (_i == 0) {
		reeve_conn_destroy(n.c[0]);
		n.c[0] = NULL;
	} else if (_i == 1) {
		c.c = n.c[0];
		rvt_call_start(&c);
	} else {
		ck_assert_int_eq(reeve_abort(n.k[0], 0), 0);
	}
	for (unsigned i = 0; i < FIVE; i++) {
		ck_assert_int_eq(rvt_call_end(&rd[i]), rc);
		reeve_close(s[i][1]);
		rvt_want_rc(s[i][0], _i == 1 ? 0 : REEVE_ECLOSED);
		reeve_close(s[i][0]);
	}
	if (_i == 1)
		ck_assert_int_eq(rvt_call_end(&c), 0);
	/* After a graceful end: a clean one, ours if we had begun to leave too. */
	ck_assert(rvt_closed(n.k[1]) == REEVE_EEND || (_i == 1 && rvt_closed(n.k[1]) == 0));
	for (int i = _i == 0 ? 1 : 0; i < 2; i++) {
		ck_assert_int_lt(reeve_open(n.k[i], &t, -1), 0);
		rvt_no_streams(n.k[i]);
	}
	rvt_divorce(&n);
}
END_TEST

/* A stream that has ended both ways, was closed or reset, is no more; one that has ended one way stays, reads and writes;
 * the others do not notice. */
START_TEST(js_ended_streams_leave_and_others_stay)
{
	reeve_stream_t *s[FIVE][2];

	marry(RVT_SOCKETPAIR);
	five(s);
	ck_assert_int_eq(reeve_reset(s[0][0], 0), 0);
	rvt_want_rc(s[0][1], REEVE_ERESET);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_shut(s[1][i]), 0);
		ck_assert_int_eq(reeve_shut(s[2][0]), 0); /* half: twice is once */
	}
	rvt_want_rc(s[1][0], 0);
	rvt_want_rc(s[1][1], 0);
	rvt_want_rc(s[2][1], 0);
	for (int i = 0; i < 2; i++) {
		uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

		while (rvt_stats(n.k[i]).streams_open != 3) {
			ck_assert_uint_lt(rvt_now_ms(), deadline);
			sched_yield();
		}
		ck_assert_int_eq(reeve_ping(n.k[i], rvt_slow(RVT_WAIT_MS), NULL), 0);
		ck_assert_uint_eq(rvt_stats(n.k[i]).streams_open, 3);
	}
	rvt_want_write(s[2][1], 1000, 0);
	rvt_want_read(s[2][0], 1000, 0);
	for (unsigned i = 3; i < FIVE; i++)
		for (unsigned k = 0; k < 2; k++) {
			rvt_want_write(s[i][k], 1000, 0);
			rvt_want_read(s[i][1 - k], 1000, 0);
		}
	for (unsigned i = 0; i < FIVE; i++)
		for (unsigned k = 0; k < 2; k++)
			reeve_close(s[i][k]);
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- compliance/stress: {1, 10, 100, 1000} streams of {1, 10, 100} messages */

struct stress {
	pthread_t thread;
	unsigned streams, messages;
	int rc;
};
#define SIZE 32u

/* Reads every stream to its end and answers with one byte. */
static void *
serve_all(void *arg)
{
	struct stress *c = arg;
	uint8_t p[SIZE * 100];
	reeve_stream_t *s;
	reeve_ssize got;

	for (unsigned i = 0; i < c->streams && c->rc == 0; i++) {
		uint64_t have = 0;

		c->rc = reeve_accept(n.k[1], &s, rvt_slow(RVT_WAIT_MS));
		if (c->rc != 0)
			break;
		while ((got = reeve_read(s, p, sizeof(p))) > 0)
			for (reeve_ssize k = 0; k < got; k++, have++)
				if (p[k] != rvt_byte((uint32_t)reeve_stream_id(s), have))
					c->rc = REEVE_EPROTO;
		if (got != 0 || have != SIZE * c->messages || reeve_write(s, "x", 1) != 1)
			c->rc = REEVE_ETRUNC;
		reeve_close(s);
	}
	return NULL;
}

START_TEST(js_stress)
{
	static const unsigned streams[] = {1, 10, 100, 1000}, messages[] = {1, 10, 100};
	struct stress c = {.streams = streams[_i / 3], .messages = messages[_i % 3]};
	static reeve_stream_t *s[1000];
	uint8_t byte;

	marry(RVT_SOCKETPAIR);
	ck_assert_int_eq(pthread_create(&c.thread, NULL, serve_all, &c), 0);
	for (unsigned i = 0; i < c.streams; i++) {
		ck_assert_int_eq(reeve_open(n.k[0], &s[i], rvt_slow(RVT_WAIT_MS)), 0);
		for (unsigned k = 0; k < c.messages; k++)
			rvt_want_write(s[i], SIZE, SIZE * k);
		ck_assert_int_eq(reeve_shut(s[i]), 0);
	}
	for (unsigned i = 0; i < c.streams; i++) {
		ck_assert_int_eq(reeve_read(s[i], &byte, 1), 1);
		rvt_want_rc(s[i], 0);
		reeve_close(s[i]);
	}
	pthread_join(c.thread, NULL);
	ck_assert_msg(c.rc == 0, "%s", reeve_errname(c.rc));
	rvt_settled(&n);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(rvt_stats(n.k[i]).resets_out, 0);
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("ported: js", {&js_decode_takes_one_header_at_a_time, 0},
    {&js_simultaneous_pings, 0}, {&js_many_streams, 0}, {&js_close_ends_every_stream, 3},
    {&js_ended_streams_leave_and_others_stay, 0}, {&js_stress, 12})
