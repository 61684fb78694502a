/* test_go.c - what the tests of libp2p/go-yamux assert, where no other test of ours does: bytes, streams and pings.  Most
 * of them are in hashicorp/yamux too, whose others and those with a transport that is kept from writing are in
 * test_hashicorp.c.  ../PORTED.md has the whole list. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 262144u
#define KIB    1024u
#define MIB    1048576u

static struct rvt_nodes n;
static struct rvt_raw r;

static void
marry(enum rvt_via via)
{
	struct rvt_wedding w = {.via = via};

	rvt_marry(&n, &w);
}

/* --- TestStreamAfterShutdown: calls on a stream race with the end of both connections */

enum race { RESETS, CLOSES, WRITES, READS, RACES };

struct racer {
	pthread_t thread;
	pthread_barrier_t *at;
	enum race what;
	reeve_stream_t *s; /* NULL: ends the connection instead */
	reeve_ctl_t *k;
	reeve_ssize rc;
};

static void *
racer(void *arg)
{
	struct racer *c = arg;
	uint8_t p[100] = {0};

	pthread_barrier_wait(c->at);
	if (c->s == NULL)
		c->rc = reeve_abort(c->k, 0);
	else if (c->what == RESETS)
		c->rc = reeve_reset(c->s, 1);
	else if (c->what == CLOSES)
		reeve_close(reeve_stream_ref(c->s));
	else if (c->what == WRITES)
		c->rc = reeve_write(c->s, p, sizeof(p));
	else
		c->rc = reeve_read(c->s, p, sizeof(p));
	return NULL;
}

START_TEST(go_stream_after_shutdown)
{
	unsigned rounds = 5 * rvt_scale() < 100 ? 5 * rvt_scale() : 100;
	struct racer c[4];
	pthread_barrier_t at;

	pthread_barrier_init(&at, NULL, 4);
	for (unsigned i = 0; i < rounds; i++) {
		reeve_stream_t *s[2];

		marry(i % 2 ? RVT_SOCKETPAIR : RVT_PAIR);
		rvt_stream_pair(&n, 0, s);
		for (unsigned k = 0; k < 4; k++) {
			c[k] = (struct racer){.at = &at, .what = (enum race)_i, .k = n.k[k % 2]};
			c[k].s = k < 2 ? s[k] : NULL;
			ck_assert_int_eq(pthread_create(&c[k].thread, NULL, racer, &c[k]), 0);
		}
		for (unsigned k = 0; k < 4; k++)
			pthread_join(c[k].thread, NULL);
		for (unsigned k = 0; k < 2; k++) {
			/* A read without bytes ends with the connection, everything else just answers. */
			ck_assert(_i != READS || c[k].rc < 0);
			ck_assert(_i != WRITES || c[k].rc == 100 || c[k].rc < 0);
			ck_assert(_i != RESETS || c[k].rc == 0);
			ck_assert_int_lt(rvt_closed(n.k[k]), 0);
			reeve_close(s[k]);
		}
		rvt_divorce(&n);
	}
	pthread_barrier_destroy(&at);
}
END_TEST

/* --- TestAccept: the first ids, and both sides agree */

START_TEST(go_accept)
{
	reeve_stream_t *a[2], *b[2];

	marry(RVT_PAIR);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(rvt_stats(n.k[i]).streams_open, 0);
	rvt_stream_pair(&n, 0, a); /* asserts that the ids are the same */
	rvt_stream_pair(&n, 1, b);
	ck_assert_uint_eq(reeve_stream_id(a[0]), 1);
	ck_assert_uint_eq(reeve_stream_id(b[0]), 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(rvt_stats(n.k[i]).streams_open, 2);
		reeve_close(a[i]);
		reeve_close(b[i]);
	}
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- TestNonNilInterface: no stream comes with an error */

START_TEST(go_no_stream_with_an_error)
{
	reeve_stream_t *s = NULL;
	reeve_op_t op[2];

	marry(RVT_PAIR);
	ck_assert_int_eq(reeve_abort(n.k[0], 0), 0);
	ck_assert_int_eq(rvt_closed(n.k[0]), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_accept(n.k[0], &s, -1), REEVE_ECLOSED);
	ck_assert_ptr_null(s);
	ck_assert_int_eq(reeve_open(n.k[0], &s, -1), REEVE_ECLOSED);
	ck_assert_ptr_null(s);
	for (int i = 0; i < 2; i++)
		reeve_op_init(&op[i], NULL, NULL);
	reeve_accept_async(n.k[0], &op[0]);
	reeve_open_async(n.k[0], &op[1]);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_op_wait(&op[i]), REEVE_ECLOSED);
		ck_assert_ptr_null(op[i].stream);
	}
	rvt_divorce(&n);
}
END_TEST

/* --- TestSendData_Small, _Large, _VeryLarge */

START_TEST(go_send_data_small)
{
	reeve_stream_t *s[2];

	marry(RVT_SOCKETPAIR);
	rvt_stream_pair(&n, 0, s);
	for (uint32_t at = 0; at < 4000; at += 4) {
		rvt_want_write(s[0], 4, at);
		rvt_want_read(s[1], 4, at);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(rvt_stats(n.k[i]).streams_open, 1);
		ck_assert_int_eq(reeve_shut(s[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		rvt_want_rc(s[i], 0);
		reeve_close(s[i]);
	}
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* One write of 250 MiB (the hundredth in make check), read by 4 KiB. */
START_TEST(go_send_data_large)
{
	uint64_t size = 250 * (uint64_t)MIB * (rvt_scale() < 100 ? rvt_scale() : 100) / 100;
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = size};
	reeve_stream_t *s[2];

	marry(RVT_SOCKETPAIR);
	rvt_stream_pair(&n, 0, s);
	c.s = s[0];
	c.p = rvt_pattern(1, size);
	rvt_call_start(&c);
	for (uint64_t at = 0; at < size; at += 4096)
		rvt_want_read(s[1], size - at < 4096 ? size - at : 4096, at);
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)size);
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	rvt_want_rc(s[1], 0);
	for (int i = 0; i < 2; i++)
		reeve_close(s[i]);
	rvt_settled(&n);
	rvt_divorce(&n);
	free(c.p);
}
END_TEST

/* 16 streams of 1 GiB; here the hundredth of a tenth: a check of bytes costs more than carrying them. */
START_TEST(go_send_data_very_large)
{
	static struct rvt_flow f[32];
	reeve_stream_t *s[16][2];

	marry(RVT_SOCKETPAIR);
	for (unsigned i = 0; i < 16; i++) {
		rvt_stream_pair(&n, 0, s[i]);
		for (unsigned k = 0; k < 2; k++) {
			f[2 * i + k] = (struct rvt_flow){
			    .kind = k == 0 ? RVT_FLOW_WRITE : RVT_FLOW_READ,
			    .s = s[i][k],
			    .total = MIB * (uint64_t)rvt_scale(),
			    .key = i,
			    .seed = 2 * i + k};
			rvt_flow_start(&f[2 * i + k]);
		}
	}
	for (unsigned i = 0; i < 32; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < 16; i++) {
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- TestManyStreams_PingPong */

#define PLAYERS 50

struct player {
	pthread_t thread;
	reeve_stream_t *s;
	uint32_t key, rounds;
	bool serves, bad;
};

static bool
read_four(reeve_stream_t *s, uint8_t *p)
{
	for (size_t have = 0; have < 4;) {
		reeve_ssize got = reeve_read(s, p + have, 4 - have);

		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	return true;
}

static void *
play(void *arg)
{
	struct player *d = arg;
	uint8_t ball[4], back[4];

	for (uint32_t i = 0; i < d->rounds && !d->bad; i++) {
		for (unsigned k = 0; k < 4; k++)
			ball[k] = rvt_byte(d->key, 4 * i + k);
		if (d->serves)
			d->bad = reeve_write(d->s, ball, 4) != 4;
		d->bad |= !read_four(d->s, back) || memcmp(ball, back, 4) != 0;
		if (!d->serves)
			d->bad |= reeve_write(d->s, back, 4) != 4;
	}
	return NULL;
}

START_TEST(go_many_streams_ping_pong)
{
	static struct player d[2 * PLAYERS];
	reeve_stream_t *s[PLAYERS][2];

	marry(RVT_SOCKETPAIR);
	for (unsigned i = 0; i < PLAYERS; i++) {
		rvt_stream_pair(&n, (int)(i % 2), s[i]);
		for (unsigned k = 0; k < 2; k++) {
			d[2 * i + k] = (struct player){
			    .s = s[i][k], .key = i, .rounds = 10 * rvt_scale(), .serves = k == 0};
			ck_assert_int_eq(
			    pthread_create(&d[2 * i + k].thread, NULL, play, &d[2 * i + k]), 0);
		}
	}
	for (unsigned i = 0; i < 2 * PLAYERS; i++) {
		pthread_join(d[i].thread, NULL);
		ck_assert_msg(!d[i].bad, "player %u", i);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(rvt_stats(n.k[i]).streams_open, PLAYERS);
	for (unsigned i = 0; i < PLAYERS; i++) {
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- TestStreamResetWithError: the code arrives, and each side knows whose it was.  _i: who opened the stream. */

START_TEST(go_stream_reset_with_error)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s[2];
	uint8_t byte = 0;

	marry(RVT_PAIR);
	rvt_stream_pair(&n, _i, s);
	rvt_want_write(s[1], 1, 0); /* else the reset is a refusal: the first answer */
	rvt_want_read(s[0], 1, 0);
	ck_assert_int_eq(reeve_reset(s[1], 42), 0);
	rvt_want_rc(s[0], REEVE_ERESET);
	ck_assert_int_eq(reeve_write(s[0], &byte, 1), REEVE_ERESET);
	ck_assert_int_eq(reeve_stream_reason(s[0], &why), 0);
	ck_assert_int_eq(why.rc, REEVE_ERESET);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	ck_assert_uint_eq(why.wire_code, 42);
	rvt_want_rc(s[1], REEVE_ECLOSED);
	ck_assert_int_eq(reeve_stream_reason(s[1], &why), 0);
	ck_assert_int_eq(why.rc, REEVE_ECLOSED);
	ck_assert_uint_eq(why.by, REEVE_BY_US);
	ck_assert_uint_eq(why.wire_code, 0); /* the peer's only */
	for (int i = 0; i < 2; i++)
		reeve_close(s[i]);
	rvt_settled(&n);
	rvt_divorce(&n);
}
END_TEST

/* --- TestInitialStreamWindow: whatever window each side has, a transfer never stalls */

START_TEST(go_initial_stream_window)
{
	uint32_t seed = rvt_seed();
	uint64_t total = 12 * (uint64_t)MIB * rvt_scale() / 100;

	total = total < 3 * MIB / 2 ? 3 * MIB / 2 : total > 12 * MIB ? 12 * MIB : total;
	for (unsigned round = 0; round < 10; round++) {
		reeve_cfg_t cfg[2];
		struct rvt_wedding w = {.via = RVT_SOCKETPAIR, .cfg = {&cfg[0], &cfg[1]}};
		struct rvt_flow f[4];
		reeve_stream_t *s[2];

		for (int i = 0; i < 2; i++) {
			reeve_cfg_init(&cfg[i]);
			cfg[i].max_window = WINDOW + rvt_random(&seed) % MIB;
		}
		rvt_marry(&n, &w);
		rvt_stream_pair(&n, (int)(round % 2), s);
		for (unsigned i = 0; i < 4; i++) {
			f[i] = (struct rvt_flow){.kind = i < 2 ? RVT_FLOW_WRITE : RVT_FLOW_READ,
			    .s = s[i % 2],
			    .total = total,
			    .key = i == 1 || i == 2,
			    .seed = seed + i};
			rvt_flow_start(&f[i]);
		}
		for (unsigned i = 0; i < 4; i++)
			rvt_flow_end(&f[i]);
		for (int i = 0; i < 2; i++) {
			ck_assert_uint_le(rvt_stats(n.k[i]).window_max, cfg[i].max_window);
			reeve_close(s[i]);
		}
		rvt_settled(&n);
		rvt_divorce(&n);
	}
}
END_TEST

/* --- TestSession_PingOfDeath: any number of pings at once, from both sides */

#define PINGS 10000

START_TEST(go_ping_of_death)
{
	unsigned count = 100 * rvt_scale() < PINGS ? 100 * rvt_scale() : PINGS;
	static reeve_op_t op[2][PINGS];

	marry(RVT_SOCKETPAIR);
	for (unsigned i = 0; i < count; i++)
		for (int k = 0; k < 2; k++) {
			reeve_op_init(&op[k][i], NULL, NULL);
			op[k][i].timeout_ms = rvt_slow(RVT_WAIT_MS);
			reeve_ping_async(n.k[k], &op[k][i]);
		}
	for (unsigned i = 0; i < count; i++)
		for (int k = 0; k < 2; k++)
			ck_assert_int_gt(reeve_op_wait(&op[k][i]), 0);
	rvt_divorce(&n);
}
END_TEST

/* --- TestLargeWindow: a write of a window, and of anything up to a window and a send budget, needs no reader.  In any
 * time, where theirs takes 10 ms: the machine is shared.  _i: quarters of a window. */

START_TEST(go_large_window)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = (size_t)(_i + 1) * WINDOW / 4};
	reeve_stream_t *s[2];

	c.p = rvt_pattern(1, c.n);
	for (unsigned round = 0; round < 10 * rvt_scale(); round++) {
		marry(RVT_SOCKETPAIR);
		rvt_stream_pair(&n, 0, s);
		c.s = s[0];
		rvt_call_start(&c); /* without a deadline */
		ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
		rvt_want_read(s[1], c.n, 0);
		for (int i = 0; i < 2; i++)
			reeve_close(s[i]);
		rvt_settled(&n);
		rvt_divorce(&n);
	}
	free(c.p);
}
END_TEST

/* --- TestSessionCloseDeadlock: the peer breaks off inside a body while many threads write */

#define WRITERS 1000

struct writer {
	pthread_t thread;
	reeve_ssize rc;
};

static reeve_stream_t *shared;

static void *
write_bytes(void *arg)
{
	struct writer *w = arg;
	uint8_t byte = 0;

	do
		w->rc = reeve_write(shared, &byte, 1);
	while (w->rc == 1);
	return NULL;
}

START_TEST(go_session_close_deadlock)
{
	static struct writer w[WRITERS];
	unsigned count = 10 * rvt_scale() < WRITERS ? 10 * rvt_scale() : WRITERS;
	unsigned rounds = rvt_scale() < 10 ? 2 : 10;

	for (unsigned round = 0; round < rounds; round++) {
		rvt_raw_open_tcp(&r, REEVE_LISTENER, NULL);
		shared = rvt_raw_inbound(&r, 1);
		rvt_put(&r.p.out, RVT_DATA, 0, 1, 1000);
		memset(rvt_bytes_more(&r.p.out, 500), 0, 500);
		rvt_peer_send(&r.p);
		r.p.end = true; /* and reads nothing */
		for (unsigned i = 0; i < count; i++)
			ck_assert_int_eq(pthread_create(&w[i].thread, NULL, write_bytes, &w[i]), 0);
		while (rvt_stats(r.k).bytes_out < 100)
			sched_yield();
		rvt_peer_shut(&r.p);
		for (unsigned i = 0; i < count; i++) {
			pthread_join(w[i].thread, NULL);
			ck_assert_int_eq(w[i].rc, REEVE_ETRUNC);
		}
		rvt_raw_want_reason(&r, REEVE_ETRUNC, REEVE_BY_TRANSPORT);
		reeve_close(shared);
		rvt_raw_fini(&r);
	}
}
END_TEST

RVT_MAIN_TABLE("ported: go", {&go_stream_after_shutdown, RACES}, {&go_accept, 0},
    {&go_no_stream_with_an_error, 0}, {&go_send_data_small, 0}, {&go_send_data_large, 0},
    {&go_send_data_very_large, 0}, {&go_many_streams_ping_pong, 0},
    {&go_stream_reset_with_error, 2}, {&go_initial_stream_window, 0}, {&go_ping_of_death, 0},
    {&go_large_window, 8}, {&go_session_close_deadlock, 0})
