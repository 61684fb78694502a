/* test_controller.c - the controller as many hold it: handles, closing, fairness between what comes and what is asked
 * for. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

static struct rvt_raw r;
static struct rvt_duo d;

/* --- handles */

#define USERS 8
#define EACH  100

struct user {
	pthread_t thread;
	reeve_ctl_t *k;
	uint64_t id[EACH];
	unsigned bad;
};

/* Open, say the id, hear it back, and clone the handle on the way. */
static void *
use(void *arg)
{
	struct user *u = arg;
	reeve_ctl_t *k;
	reeve_stream_t *s;
	uint64_t back;

	for (unsigned i = 0; i < EACH; i++) {
		k = reeve_ctl_ref(u->k);
		if (reeve_open(k, &s, RVT_WAIT_MS) != 0) {
			u->bad++;
			break;
		}
		u->id[i] = reeve_stream_id(s);
		(void)reeve_deadline(s, REEVE_RD, RVT_WAIT_MS);
		u->bad += reeve_write(s, &u->id[i], sizeof(back)) != sizeof(back);
		u->bad += reeve_read(s, &back, sizeof(back)) != sizeof(back) || back != u->id[i];
		u->bad += i % 10 == 0 && reeve_ping(k, RVT_WAIT_MS, NULL) != 0;
		reeve_close(s);
		reeve_ctl_unref(k);
	}
	reeve_ctl_unref(u->k);
	return NULL;
}

static void *
echo_ids(void *arg)
{
	reeve_ctl_t *k = arg;
	reeve_stream_t *s;
	uint64_t id;

	while (reeve_accept(k, &s, -1) == 0) {
		if (reeve_read(s, &id, sizeof(id)) == sizeof(id))
			(void)reeve_write(s, &id, sizeof(id));
		reeve_close(s);
	}
	return NULL;
}

static int
by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

START_TEST(handles_are_cloned_and_used_by_many_threads)
{
	static struct user u[USERS];
	static uint64_t all[USERS * EACH];
	pthread_t echo[2];

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&echo[i], NULL, echo_ids, d.k[1]), 0);
	for (unsigned i = 0; i < USERS; i++) {
		u[i].k = reeve_ctl_ref(d.k[0]);
		ck_assert_int_eq(pthread_create(&u[i].thread, NULL, use, &u[i]), 0);
	}
	for (unsigned i = 0; i < USERS; i++) {
		pthread_join(u[i].thread, NULL);
		ck_assert_uint_eq(u[i].bad, 0);
		memcpy(all + i * EACH, u[i].id, sizeof(u[i].id));
		for (unsigned j = 1; j < EACH; j++)
			ck_assert_uint_lt(u[i].id[j - 1], u[i].id[j]);
	}
	qsort(all, USERS * EACH, sizeof(all[0]), by_id);
	for (unsigned i = 0; i < USERS * EACH; i++) /* every id once */
		ck_assert_uint_eq(all[i], 2 * i + 1);
	ck_assert_int_eq(reeve_conn_close(d.c[0], RVT_WAIT_MS), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(echo[i], NULL);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(last_handle_is_the_graceful_close)
{
	reeve_ctl_t *k[3];
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	for (int i = 0; i < 3; i++)
		k[i] = reeve_ctl_ref(r.k);
	reeve_conn_release(r.c);
	r.c = NULL;
	rvt_want_write(s, 262144, 0);
	rvt_want_write(s, 1000, 262144); /* no credit for it yet */
	reeve_close(s);
	for (int i = 0; i < 3; i++) {
		rvt_peer_barrier(&r.p);
		reeve_ctl_unref(k[i]);
	}
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 1000); /* bytes first, however late */
	(void)rvt_peer_want_bytes(&r.p, 1, 1000, 262144);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_goaway_end(&r.p, 0);
	rvt_raw_fini(&r);
}
END_TEST

/* --- closing */

/* Several at once and one after: all wait for the last byte and the GO_AWAY, all answer the same. */
START_TEST(close_answers_everybody_after_the_flush)
{
	struct rvt_call c[4];
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	rvt_want_write(s, 262144, 0);
	rvt_want_write(s, 1000, 262144);
	for (unsigned i = 0; i < 4; i++) {
		c[i] = (struct rvt_call){.kind = RVT_CALL_CLOSE, .c = r.c, .timeout_ms = -1};
		c[i].timeout_ms = i % 2 ? 60000 : -1;
		rvt_call_start(&c[i]);
		rvt_call_asleep(&c[i]);
	}
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 1000);
	(void)rvt_peer_want_bytes(&r.p, 1, 1000, 262144);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	for (unsigned i = 0; i < 4; i++)
		ck_assert(!rvt_call_done(&c[i]));
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_goaway_end(&r.p, 0);
	for (unsigned i = 0; i < 4; i++) /* and for the peer's end */
		ck_assert(!rvt_call_done(&c[i]) || c[i].ms >= 900);
	rvt_peer_close(&r.p);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rvt_call_end(&c[i]), 0);
	ck_assert_int_eq(reeve_conn_close(r.c, 0), 0);
	ck_assert_int_eq(reeve_conn_close(r.c, -1), 0);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* A closer with less patience ends it for all. */
START_TEST(shortest_deadline_of_the_closers_counts)
{
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = -1};
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	c.c = r.c;
	rvt_call_start(&c);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(reeve_conn_close(r.c, 20), REEVE_ETIMEDOUT);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- fairness */

#define FLOODERS 4
#define ROUNDS   100
#define SOON_MS  1000 /* generous; without fairness it is for ever */

struct flood {
	pthread_t thread;
	reeve_ctl_t *k;
	struct rvq_gauge *stop;
	struct rvq_gauge n;
};

/* Open and let go as fast as it goes, or ping. */
static void *
flood(void *arg)
{
	struct flood *f = arg;
	reeve_stream_t *s;

	while (rvq_gauge_get(f->stop) == 0) {
		if (reeve_open(f->k, &s, RVT_WAIT_MS) != 0)
			break;
		(void)reeve_write(s, "x", 1);
		reeve_stream_unref(s);
		if (rvq_gauge_add(&f->n, 1) % 16 == 0)
			(void)reeve_ping(f->k, RVT_WAIT_MS, NULL);
	}
	return NULL;
}

static void *
drop_inbound(void *arg)
{
	reeve_ctl_t *k = arg;
	reeve_stream_t *s;

	while (reeve_accept(k, &s, -1) == 0)
		reeve_stream_unref(s);
	return NULL;
}

/* Flood from one side; d.k[0] is used by the test meanwhile.  _i: 0 the flood comes in at it, 1 it is asked of it. */
START_TEST(neither_inbound_streams_nor_commands_starve_the_other)
{
	struct flood f[FLOODERS] = {0};
	struct rvq_gauge stop = {0};
	pthread_t drain[2];
	reeve_stream_t *s = NULL;
	uint64_t start, before, longest = 0;
	reeve_cfg_t cfg;
	int rc;

	reeve_cfg_init(&cfg);
	cfg.churn_burst = REEVE_OFF;
	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, &cfg);
	for (int i = 0; i < 2; i++)
		if (i == _i)
			ck_assert_int_eq(pthread_create(&drain[i], NULL, drop_inbound, d.k[i]), 0);
	for (unsigned i = 0; i < FLOODERS; i++) {
		f[i].k = d.k[1 - _i];
		f[i].stop = &stop;
		ck_assert_int_eq(pthread_create(&f[i].thread, NULL, flood, &f[i]), 0);
	}
	for (unsigned i = 0; i < FLOODERS; i++)
		RVT_UNTIL(rvq_gauge_get(&f[i].n) > 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		start = rvt_ms();
		if (_i) { /* the other side opens one, and it gets through to an accept */
			rc = reeve_open(d.k[1], &s, RVT_WAIT_MS);
			ck_assert_int_eq(rc, 0);
			(void)reeve_write(s, "x", 1);
			reeve_stream_unref(s);
			rc = reeve_accept(d.k[0], &s, RVT_WAIT_MS);
		} else {
			rc = reeve_open(d.k[0], &s, RVT_WAIT_MS);
		}
		ck_assert_int_eq(rc, 0);
		reeve_stream_unref(s);
		if (rvt_ms() - start > longest)
			longest = rvt_ms() - start;
	}
	for (unsigned i = 0; i < FLOODERS; i++) { /* and the flood gets on too */
		before = rvq_gauge_get(&f[i].n);
		RVT_UNTIL(rvq_gauge_get(&f[i].n) > before);
	}
	rvq_gauge_add(&stop, 1);
	for (unsigned i = 0; i < FLOODERS; i++)
		pthread_join(f[i].thread, NULL);
	ck_assert_uint_lt(longest, (uint64_t)rvt_slow(SOON_MS));
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_abort(d.k[i], 0), 0);
	pthread_join(drain[_i], NULL);
	rvt_duo_end(&d);
}
END_TEST

static void *
accept_all(void *arg)
{
	reeve_ctl_t *k = arg;
	reeve_stream_t *t;
	uint8_t byte;
	uintptr_t n = 0;

	for (; reeve_accept(k, &t, -1) == 0; reeve_close(t))
		n += reeve_read(t, &byte, 1) == 1 && reeve_read(t, &byte, 1) == 0;
	return (void *)n;
}

/* A closed stream counts as long as the peer has not answered: beyond its backlog the peer would refuse streams, and what
 * they carry would be lost without a word to anybody. */
START_TEST(closed_streams_are_not_more_than_the_peer_takes)
{
	reeve_stream_t *t = NULL;
	pthread_t acceptor;
	void *n;

	rvt_duo_rt(&d, 2);
	rvt_duo_conns(&d, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		if (i == 256) { /* nobody has accepted one: the next would be refused */
			ck_assert_int_eq(reeve_open(d.k[0], &t, 10), REEVE_ETIMEDOUT);
			ck_assert_int_eq(pthread_create(&acceptor, NULL, accept_all, d.k[1]), 0);
		}
		ck_assert_int_eq(reeve_open(d.k[0], &t, RVT_WAIT_MS), 0);
		ck_assert_int_eq(reeve_write(t, "x", 1), 1);
		reeve_close(t);
	}
	ck_assert_int_eq(reeve_conn_close(d.c[0], RVT_WAIT_MS), 0);
	pthread_join(acceptor, &n);
	ck_assert_uint_eq((uintptr_t)n, 1000);
	ck_assert_uint_eq(rvt_stats(d.k[1]).streams_refused, 0);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("controller", {&handles_are_cloned_and_used_by_many_threads, 0},
    {&last_handle_is_the_graceful_close, 0}, {&close_answers_everybody_after_the_flush, 0},
    {&shortest_deadline_of_the_closers_counts, 0},
    {&neither_inbound_streams_nor_commands_starve_the_other, 2},
    {&closed_streams_are_not_more_than_the_peer_takes, 0})
