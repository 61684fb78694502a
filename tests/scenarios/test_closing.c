/* test_closing.c - scenarios 26 to 29: ends that wait for the other side, and ends that cross. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW  262144u
#define MIB     1048576u
#define SOON_MS 1000 /* generous: what must happen at once has happened by then */

static struct rvt_nodes n;
static struct rvt_raw r;

/* --- 26: the other side has stopped reading */

/* The whole window is used, part of it was read, and the stream is let go.  _i: 0 closed, 1 dropped. */
START_TEST(scenario_26_unread_bytes_reset_the_writer_at_once)
{
	reeve_stream_t *s;
	uint64_t start;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_data(&r.p, 0, 1, WINDOW, 0);
	rvt_want_read(s, WINDOW - 162144, 0);
	rvt_peer_want_none(&r.p); /* too little for credit: the peer cannot write */
	start = rvt_now_ms();
	if (_i)
		reeve_stream_unref(s);
	else
		reeve_close(s);
	if (_i == 0)
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(SOON_MS));
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(scenario_26_a_write_waits_no_longer_than_its_deadline)
{
	uint8_t *p = rvt_pattern(1, MIB);
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = MIB, .p = p};
	uint64_t at;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	c.s = rvt_raw_inbound(&r, 1);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0); /* says nothing of its reading */
	rvt_want_rc(c.s, 0);
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_WR, 100), 0);
	rvt_call_start(&c);
	(void)rvt_peer_want_bytes(&r.p, 1, WINDOW, 0);
	at = (uint64_t)rvt_call_end(&c);
	ck_assert_uint_lt(c.ms, (uint64_t)rvt_slow(100 + SOON_MS));
	ck_assert_uint_ge(at, WINDOW);
	ck_assert_uint_le(at, 2 * WINDOW);
	while (at < 2 * WINDOW && (c.rc = reeve_write(c.s, p + at, 2 * WINDOW - at)) > 0)
		at += (uint64_t)c.rc;
	ck_assert_int_eq(reeve_write(c.s, p + at, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_deadline(c.s, REEVE_WR, -1), 0);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, MIB); /* and yet it goes on */
	c.p = p + at;
	c.n = MIB - at;
	rvt_call_start(&c);
	(void)rvt_peer_want_bytes(&r.p, 1, MIB - WINDOW, WINDOW);
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	reeve_close(c.s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	free(p);
	rvt_raw_fini(&r);
}
END_TEST

/* --- 28: both ends at the same instant */

#define GROUP 100

struct closer {
	pthread_t thread;
	pthread_barrier_t *at;
	reeve_stream_t **s; /* pairs */
	unsigned end;
	int rc;
};

/* Stream i: 0 closed at once, 1 shut and read to the end; 2 and 3 the same with a window that [1] has filled. */
static int
close_one(const struct closer *c, unsigned i, uint8_t *p)
{
	reeve_stream_t *s = c->s[2 * i + c->end];
	reeve_ssize got = 0;
	int rc = 0;

	if (i % 4 >= 2 && c->end == 1 && reeve_write(s, p, WINDOW) != WINDOW)
		rc = REEVE_EAGAIN;
	pthread_barrier_wait(c->at);
	if (i % 4 != 0) {
		rc = rc == 0 ? reeve_shut(s) : rc;
		while ((got = reeve_read(s, p, WINDOW)) > 0)
			continue;
	}
	reeve_close(s);
	return rc != 0 ? rc : (int)got;
}

static void *
closer(void *arg)
{
	struct closer *c = arg;
	uint8_t *p = malloc(WINDOW);
	int rc;

	memset(p, 1, WINDOW);
	for (unsigned i = 0; i < GROUP; i++) {
		rc = close_one(c, i, p);
		if (rc != 0)
			c->rc = rc;
	}
	free(p);
	return NULL;
}

START_TEST(scenario_28_ends_that_cross_leave_nothing)
{
	struct rvt_wedding w = {.via = _i ? RVT_TCP : RVT_PAIR};
	reeve_stream_t *s[2 * GROUP], *pair[2];
	pthread_barrier_t at;
	struct closer c[2];

	rvt_marry(&n, &w);
	pthread_barrier_init(&at, NULL, 2);
	for (unsigned run = 0; run < 5 * rvt_scale(); run++) {
		for (unsigned i = 0; i < GROUP; i++) {
			rvt_stream_pair(&n, (int)(i / 4 % 2), pair);
			s[2 * i] = pair[0];
			s[2 * i + 1] = pair[1];
		}
		for (unsigned i = 0; i < 2; i++) {
			c[i] = (struct closer){.at = &at, .s = s, .end = i};
			ck_assert_int_eq(pthread_create(&c[i].thread, NULL, closer, &c[i]), 0);
		}
		for (unsigned i = 0; i < 2; i++) {
			pthread_join(c[i].thread, NULL);
			ck_assert_msg(c[i].rc == 0, "%s", reeve_errname(c[i].rc));
		}
	}
	for (int i = 0; i < 2; i++) {
		rvt_no_streams(n.k[i]);
		ck_assert_uint_eq(rvt_stats(n.k[i]).resets_out, 0);
	}
	pthread_barrier_destroy(&at);
	rvt_divorce(&n);
}
END_TEST

/* --- 29: a graceful close with more bytes than credit */

/* A mebibyte is accepted and our direction ends; a window of it has left. */
static reeve_stream_t *
ending(const reeve_cfg_t *cfg)
{
	reeve_stream_t *s;
	reeve_buf_t *b;
	uint8_t *p;

	rvt_raw_open(&r, REEVE_LISTENER, cfg);
	s = rvt_raw_inbound(&r, 1);
	b = reeve_buf_alloc(r.rt, MIB);
	ck_assert_ptr_nonnull(b);
	p = reeve_buf_mut(b);
	for (uint32_t i = 0; i < MIB; i++)
		p[i] = rvt_byte(1, i);
	ck_assert_int_eq(reeve_write_buf(s, b), (reeve_ssize)MIB);
	ck_assert_int_eq(reeve_shut(s), 0);
	(void)rvt_peer_want_bytes(&r.p, 1, WINDOW, 0);
	return s;
}

/* _i: 0 the stream is shut, 1 closed too. */
START_TEST(scenario_29_everything_leaves_as_credit_comes)
{
	reeve_stream_t *s = ending(NULL);
	uint32_t at, k;

	if (_i)
		reeve_close(s);
	for (at = WINDOW; at < MIB; at += k) {
		k = MIB - at < 10000 ? MIB - at : 10000;
		rvt_peer_put(&r.p, RVT_WU, 0, 1, k);
		ck_assert_uint_eq(rvt_peer_want_bytes(&r.p, 1, k, at), 0);
	}
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	if (_i == 0) {
		rvt_want_rc(s, 0);
		reeve_close(s);
	}
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

/* Credit never comes.  _i: 0 the stream was closed and lingers, 1 the application resets it, 2 it closes the
 * connection. */
START_TEST(scenario_29_without_credit_the_end_is_told)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = 100};
	reeve_stream_t *s;
	reeve_cfg_t cfg;
	uint64_t start;

	reeve_cfg_init(&cfg);
	cfg.linger_ms = 100;
	s = ending(&cfg);
	start = rvt_now_ms();
	if (_i == 0) {
		reeve_close(s);
		rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
		ck_assert_uint_ge(rvt_now_ms() - start, 99);
	} else if (_i == 1) {
		ck_assert_int_eq(reeve_reset(s, 9), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 9);
		ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(SOON_MS));
		reeve_close(s);
	} else {
		c.c = r.c;
		rvt_call_start(&c);
		ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
		rvt_want_rc(s, REEVE_ETIMEDOUT);
		reeve_close(s);
	}
	rvt_no_streams(r.k);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("scenarios: closing", {&scenario_26_unread_bytes_reset_the_writer_at_once, 2},
    {&scenario_26_a_write_waits_no_longer_than_its_deadline, 0},
    {&scenario_28_ends_that_cross_leave_nothing, 2},
    {&scenario_29_everything_leaves_as_credit_comes, 2},
    {&scenario_29_without_credit_the_end_is_told, 3})
