/* test_nodes_ends.c - two nodes with either protocol: the last bytes before every kind of end, ends that cross, death of
 * one node. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include "queues/counter.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_nodes n;
static uint32_t proto;

/* Loop tests run their rows with yamux, then the same rows with mplex.  The row. */
static int
row(int i, int rows)
{
	proto = i < rows ? REEVE_YAMUX : REEVE_MPLEX;
	return i % rows;
}

static void
marry(int via)
{
	struct rvt_wedding w = {.via = (enum rvt_via)via, .seed = 1, .chunk = 13};
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = proto;
	cfg.max_in = 8192; /* with mplex too */
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
}

/* The server writes, closes the stream and the connection; the client reads late, in small pieces. */
START_TEST(bytes_written_before_the_close_all_arrive)
{
	int at_row = row(_i, RVT_VIAS);
	uint32_t size = at_row >= RVT_RECHUNK ? 20000 : 300000;
	struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = rvt_slow(5000)};
	struct rvt_flow w = {.kind = RVT_FLOW_WRITE, .total = size, .seed = 1};
	reeve_stream_t *s[2];

	for (unsigned run = 0; run < 5 * rvt_scale(); run++) {
		marry(at_row);
		rvt_stream_pair(&n, 0, s);
		w.s = s[1];
		w.key = (uint32_t)reeve_stream_id(s[1]);
		rvt_flow_start(&w);
		if (run % 2 == 0) { /* more than a window: the rest leaves while the close waits */
			rvt_want_read(s[0], 1000, 0);
			rvt_flow_end(&w);
			reeve_close(s[1]);
		}
		c.c = n.c[1];
		if (run % 2 == 0)
			rvt_call_start(&c);
		for (uint32_t at = run % 2 == 0 ? 1000 : 0; at < size; at += 1000)
			rvt_want_read(s[0], 1000, at);
		rvt_want_rc(s[0], 0);
		if (run % 2 != 0) {
			rvt_flow_end(&w);
			reeve_close(s[1]);
			rvt_call_start(&c);
		}
		reeve_close(s[0]);
		ck_assert_int_eq(rvt_call_end(&c), 0);
		rvt_divorce(&n);
	}
}
END_TEST

/* The connection is closed while megabytes are on their way: everything arrives, or the close says that not. */
START_TEST(close_with_full_queues_flushes_or_tells)
{
	int at_row = row(_i, 2 * RVT_RECHUNK);
	struct rvt_call c = {.kind = RVT_CALL_CLOSE};
	struct rvt_flow w = {.kind = RVT_FLOW_WRITE, .total = 4u << 20, .seed = 1};
	struct rvt_flow rd = {.kind = RVT_FLOW_READ, .total = 4u << 20, .seed = 2};
	reeve_stream_t *s[2];

	marry(at_row / 2);
	rvt_stream_pair(&n, 0, s);
	w.s = s[1];
	rd.s = s[0];
	rvt_flow_start(&w);
	while (rvt_stats(n.k[0]).bytes_in < 100000)
		sched_yield();
	c.c = n.c[1];
	c.timeout_ms = at_row % 2 ? 50 : rvt_slow(5000);
	rvt_call_start(&c);
	if (at_row % 2) { /* nobody reads */
		ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
		rvt_flow_join(&w);
		ck_assert(w.rc < 0 || w.done < w.total);
		reeve_close(s[0]);
	} else {
		rvt_flow_start(&rd);
		rvt_flow_join(&w); /* stopped by the close */
		rvt_flow_join(&rd);
		ck_assert(!rd.wrong);
		ck_assert_int_eq(rd.rc, 0);
		ck_assert_uint_eq(rd.done, w.done); /* what was accepted arrived, then the end */
		reeve_close(s[0]);
		ck_assert_int_eq(rvt_call_end(&c), 0);
	}
	reeve_close(s[1]);
	rvt_divorce(&n);
}
END_TEST

/* --- the direction is ended while threads write */

struct writer {
	pthread_t thread;
	reeve_stream_t *s;
	struct rvq_gauge *before;
	uint64_t done;
	size_t size;
	int rc;
};

static void *
writer(void *arg)
{
	struct writer *w = arg;
	uint8_t *p = calloc(1, w->size);
	reeve_ssize got;

	while ((got = reeve_write(w->s, p, w->size)) > 0) {
		w->done += (uint64_t)got;
		rvq_gauge_add(w->before, 1);
	}
	w->rc = (int)got;
	free(p);
	return NULL;
}

START_TEST(bytes_accepted_before_the_shut_all_arrive)
{
	int at_row = row(_i, 2);
	static struct rvq_gauge calls;
	uint8_t *p = malloc(65536);
	struct writer w[3] = {{.size = 100}, {.size = 1}, {.size = 20000}};
	reeve_stream_t *s[2];
	uint64_t sum, got;
	reeve_ssize k;

	marry(RVT_PAIR);
	for (unsigned run = 0; run < 200 * rvt_scale(); run++) {
		rvt_stream_pair(&n, 0, s);
		rvq_gauge_sub(&calls, rvq_gauge_get(&calls));
		sum = got = 0;
		for (unsigned i = 0; i < 3; i++) {
			w[i].s = s[0];
			w[i].before = &calls;
			w[i].done = 0;
			ck_assert_int_eq(pthread_create(&w[i].thread, NULL, writer, &w[i]), 0);
		}
		while (rvq_gauge_get(&calls) < 5)
			sched_yield();
		if (at_row)
			reeve_close(reeve_stream_ref(s[0]));
		else
			ck_assert_int_eq(reeve_shut(s[0]), 0);
		while ((k = reeve_read(s[1], p, 65536)) > 0)
			got += (uint64_t)k;
		ck_assert_int_eq(k, 0);
		for (unsigned i = 0; i < 3; i++) {
			pthread_join(w[i].thread, NULL);
			ck_assert_int_eq(w[i].rc, at_row ? REEVE_ECLOSED : REEVE_ESHUT);
			sum += w[i].done;
		}
		ck_assert_uint_eq(got, sum);
		reeve_close(s[0]);
		reeve_close(s[1]);
	}
	rvt_divorce(&n);
	free(p);
}
END_TEST

/* Three small messages, then (a) close, (b) let go. */
START_TEST(letting_go_does_not_overtake_the_bytes)
{
	int at_row = row(_i, 2 * RVT_VIAS);
	reeve_stream_t *s[2];
	uint8_t p[64];
	reeve_ssize got;
	uint64_t before;
	size_t sum;

	marry(at_row / 2);
	for (unsigned run = 0; run < 100 * rvt_scale(); run++) {
		rvt_stream_pair(&n, (int)(run % 2), s);
		before = rvt_stats(n.k[1]).bytes_in;
		for (unsigned i = 0; i < 3; i++)
			rvt_want_write(s[0], 11, 11 * i);
		if (at_row % 2) {
			reeve_stream_unref(s[0]);
		} else {
			ck_assert_int_eq(reeve_shut(s[0]), 0);
			reeve_close(s[0]);
		}
		if (run % 4 > 1) /* late */
			while (rvt_stats(n.k[1]).bytes_in != before + 33)
				sched_yield();
		sum = 0;
		while ((got = reeve_read(s[1], p, sizeof(p))) > 0)
			sum += (size_t)got;
		ck_assert_uint_eq(sum, 33);
		ck_assert_int_eq(got, at_row % 2 ? REEVE_ERESET : 0);
		reeve_close(s[1]);
	}
	rvt_no_streams(n.k[0]);
	rvt_no_streams(n.k[1]);
	rvt_divorce(&n);
}
END_TEST

/* A request, half-close, and a long answer. */
START_TEST(request_and_answer_over_one_stream)
{
	int at_row = row(_i, RVT_VIAS);

	marry(at_row);
	rvt_ask_and_answer(&n, at_row >= RVT_RECHUNK ? 20000 : 1u << 20);
	rvt_divorce(&n);
}
END_TEST

/* --- both ends close at the same instant */

struct closer {
	pthread_barrier_t *at;
	reeve_stream_t **s;
	unsigned n, end;
	bool full;
	int rc;
};

static void *
closer(void *arg)
{
	struct closer *c = arg;
	uint8_t *p = malloc(262144), byte;
	reeve_ssize got = 0;

	for (unsigned i = 0; i < c->n; i++) {
		reeve_stream_t *s = c->s[2 * i + c->end];

		if (c->full && c->end == 1) {
			got = reeve_write(s, p, 262144);
			if (got != 262144)
				c->rc = REEVE_EAGAIN;
		}
		pthread_barrier_wait(c->at);
		(void)reeve_shut(s);
		while ((got = reeve_read(s, c->full && c->end == 0 ? p : &byte,
			    c->full && c->end == 0 ? 262144 : 1)) > 0)
			continue;
		if (got != 0)
			c->rc = (int)got;
		reeve_close(s);
		pthread_barrier_wait(c->at);
	}
	free(p);
	return NULL;
}

START_TEST(ends_that_cross_leave_nothing)
{
	int at_row = row(_i, 2 * RVT_RECHUNK);
	unsigned count = at_row % 2 ? 20 * rvt_scale() : 500 * rvt_scale();
	reeve_stream_t **s = calloc(2 * (size_t)count, sizeof(*s)), *pair[2];
	struct closer c[2];
	pthread_barrier_t at;
	pthread_t t[2];

	marry(at_row / 2);
	pthread_barrier_init(&at, NULL, 2);
	for (unsigned i = 0; i < count; i++) {
		rvt_stream_pair(&n, (int)(i % 2), pair);
		s[2 * i] = pair[0];
		s[2 * i + 1] = pair[1];
	}
	for (unsigned i = 0; i < 2; i++) {
		c[i] = (struct closer){&at, s, count, i, at_row % 2 != 0, 0};
		ck_assert_int_eq(pthread_create(&t[i], NULL, closer, &c[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		ck_assert_msg(c[i].rc == 0, "%s", reeve_errname(c[i].rc));
	}
	rvt_settled_clean(&n);
	pthread_barrier_destroy(&at);
	rvt_divorce(&n);
	free(s);
}
END_TEST

/* --- one node dies */

static void
ended(int end)
{
	reeve_op_t op;

	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(n.k[end], &op);
	(void)reeve_op_wait(&op);
}

/* Threads asleep in every kind of call, two of each. */
START_TEST(death_of_a_node_wakes_the_other)
{
	int at_row = row(_i, 2 * RVT_VIAS);
	struct rvt_call c[8];
	reeve_stream_t *s[2], *t[2];
	static uint8_t byte;
	void *big = calloc(1, 1u << 20);
	int rc = REEVE_EEND;

	marry(at_row / 2);
	rvt_stream_pair(&n, 0, s);
	rvt_stream_pair(&n, 1, t);
	for (unsigned i = 0; i < 8; i++) {
		c[i] = (struct rvt_call){.kind = RVT_CALL_READ, .s = s[0], .p = &byte, .n = 1};
		if (i % 4 == 1)
			c[i] = (struct rvt_call){
			    .kind = RVT_CALL_WRITE, .s = t[0], .p = big, .n = 1u << 20};
		else if (i % 4 == 2)
			c[i] = (struct rvt_call){
			    .kind = RVT_CALL_ACCEPT, .k = n.k[0], .timeout_ms = -1};
		else if (i % 4 == 3)
			c[i] = (struct rvt_call){
			    .kind = RVT_CALL_ACCEPT, .k = n.k[0], .timeout_ms = rvt_slow(4000)};
		rvt_call_start(&c[i]);
	}
	for (unsigned i = 0; i < 8; i++)
		rvt_call_asleep(&c[i]);
	if (at_row % 2) {
		ck_assert_int_eq(reeve_abort(n.k[1], 0), 0);
		ended(1);
	} else {
		reeve_conn_destroy(n.c[1]);
		n.c[1] = NULL;
	}
	/* A socket that is closed with bytes of ours in it is reset: but then that is everybody's answer. */
	if (at_row / 2 >= RVT_UNIX && rvt_call_end(&c[0]) != REEVE_EEND)
		rc = REEVE_ESYS_BASE - ECONNRESET;
	for (unsigned i = at_row / 2 >= RVT_UNIX; i < 8; i++) {
		if (i % 4 == 1) /* what was accepted before, if any */
			ck_assert(rvt_call_end(&c[i]) > 0 || c[i].rc == rc);
		else
			ck_assert_int_eq(rvt_call_end(&c[i]), rc);
		ck_assert_uint_lt(c[i].ms, (uint64_t)rvt_slow(3000));
	}
	rvt_want_rc(s[0], rc);
	ck_assert_int_eq(reeve_write(t[0], &byte, 1), rc);
	ck_assert_int_eq(reeve_write(s[1], &byte, 1), REEVE_ECLOSED);
	for (unsigned i = 0; i < 2; i++) {
		reeve_close(s[i]);
		reeve_close(t[i]);
	}
	rvt_divorce(&n);
	free(big);
}
END_TEST

/* Shutting a runtime down closes its connections gracefully. */
START_TEST(shutdown_of_a_runtime_loses_nothing)
{
	int at_row = row(_i, RVT_VIAS);
	reeve_stream_t *s[2], *late = NULL;

	marry(at_row);
	rvt_stream_pair(&n, 0, s);
	rvt_want_write(s[1], 10000, 0);
	reeve_close(s[1]);
	reeve_close(reeve_stream_ref(s[0])); /* as if read: both directions end */
	if (at_row == RVT_PAIR) {
		ck_assert_int_eq(reeve_rt_shutdown(n.rt[0], rvt_slow(5000)), 0);
	} else {
		ck_assert_int_eq(reeve_rt_shutdown(n.rt[1], rvt_slow(5000)), 0);
		ended(0);
		ck_assert_int_lt(reeve_open(n.k[0], &late, rvt_slow(1000)), 0);
	}
	reeve_stream_unref(s[0]);
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("nodes_ends", {&bytes_written_before_the_close_all_arrive, 2 * RVT_VIAS},
    {&close_with_full_queues_flushes_or_tells, 4 * RVT_RECHUNK},
    {&bytes_accepted_before_the_shut_all_arrive, 2 * 2},
    {&letting_go_does_not_overtake_the_bytes, 4 * RVT_VIAS},
    {&request_and_answer_over_one_stream, 2 * RVT_VIAS},
    {&ends_that_cross_leave_nothing, 4 * RVT_RECHUNK},
    {&death_of_a_node_wakes_the_other, 4 * RVT_VIAS},
    {&shutdown_of_a_runtime_loses_nothing, 2 * RVT_VIAS})
