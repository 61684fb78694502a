/* test_node_end.c - how connections and nodes end: idle, on request, at limits, by a close, by the end of their runtime. */
#include <config.h>

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/net.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

static struct rvt_net t;

static int
open_one(unsigned i, struct rvt_opening *o)
{
	rvt_opening_init(o, 0, 5000);
	rvt_open(&t, i, 1 - i, o);
	RVT_UNTIL(rvt_opening_done(o));
	return o->o.rc;
}

START_TEST(an_idle_connection_closes_after_its_last_stream)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP, .node = {.idle_ms = 200}};
	struct rvt_opening o;
	uint64_t begin;

	rvt_net_start(&t, &cfg);
	rvt_net_connect(&t, 0, 1);
	ck_assert_int_eq(open_one(0, &o), 0);
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == 1);
	/* While there is a stream nothing ends. */
	begin = rvt_ms();
	ck_assert_int_eq(reeve_deadline(o.o.stream, REEVE_RD, 500), 0);
	ck_assert_int_eq(reeve_read(o.o.stream, &(char){0}, 1), REEVE_ETIMEDOUT);
	ck_assert_uint_eq(rvt_net_stats(&t, 0).peers, 1);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	rvt_fake_let_go(&t.node[1].fake);
	begin = rvt_ms();
	RVT_UNTIL(rvt_net_stats(&t, 0).conns + rvt_net_stats(&t, 1).conns == 0);
	ck_assert_uint_ge(rvt_ms() - begin, 190);
	ck_assert_uint_lt(rvt_ms() - begin, (uint64_t)rvt_slow(600));
	for (unsigned i = 0; i < 2; i++) {
		RVT_UNTIL(rvt_net_events(&t.node[i], REEVE_PEER_DISCONNECTED) == 1);
		ck_assert_msg(t.node[i].why.rc == 0 || t.node[i].why.rc == REEVE_EEND, "%s",
		    reeve_errname(t.node[i].why.rc));
	}
	/* And the next open dials again. */
	ck_assert_int_eq(open_one(0, &o), 0);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	rvt_net_end(&t);
}
END_TEST

START_TEST(idle_can_be_off)
{
	struct rvt_net_cfg cfg = {.node = {.idle_ms = REEVE_OFF}};
	struct rvt_opening o;

	rvt_net_start(&t, &cfg);
	rvt_net_connect(&t, 0, 1);
	ck_assert_int_eq(open_one(0, &o), 0);
	ck_assert_int_eq(reeve_deadline(o.o.stream, REEVE_RD, 100), 0);
	ck_assert_int_eq(reeve_read(o.o.stream, &(char){0}, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	ck_assert_uint_eq(rvt_net_stats(&t, 0).peers, 1);
	rvt_net_end(&t);
}
END_TEST

/* An open that comes while the connection closes for being idle uses another one. */
START_TEST(opens_around_the_idle_end_work)
{
	/* Where everything is slow a new connection would be idle before its first stream comes, time after time. */
	const unsigned slow = RVT_SANITIZED ? 12 : 4, rounds = 600 / slow;
	struct rvt_net_cfg cfg = {.via = RVT_TCP, .node = {.idle_ms = slow}};
	struct rvt_opening o;
	uint64_t until;

	rvt_net_start(&t, &cfg);
	rvt_net_introduce(&t, 0, 1);
	rvt_net_introduce(&t, 1, 0);
	for (unsigned i = 0; i < rounds; i++) {
		int rc = open_one(i % 2, &o);

		ck_assert_msg(rc == 0, "%u: %s", i, reeve_errname(rc));
		(void)rvt_opening_wait(&o);
		for (unsigned j = 0; j < 2; j++)
			rvt_fake_let_go(&t.node[j].fake);
		/* Shorter and longer than what makes it idle. */
		for (until = rv_clock_us() + i % 8 * 400 * slow; rv_clock_us() < until;)
			sched_yield();
	}
	ck_assert_uint_gt(rvt_net_stats(&t, 0).conns_total, 5);
	rvt_net_end(&t);
}
END_TEST

START_TEST(what_is_queued_is_sent_by_a_disconnect)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	char bytes[1000] = {0};
	struct rvt_opening o;

	rvt_net_start(&t, &cfg);
	ck_assert_int_eq(reeve_node_disconnect(t.node[0].n, t.node[1].id), REEVE_ENOTCONN);
	rvt_net_connect(&t, 0, 1);
	ck_assert_int_eq(open_one(0, &o), 0);
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == 1);
	ck_assert_int_eq(reeve_write(o.o.stream, bytes, sizeof(bytes)), sizeof(bytes));
	ck_assert_int_eq(rvt_opening_wait(&o), 0); /* closes the stream */
	ck_assert_int_eq(reeve_node_disconnect(t.node[0].n, t.node[1].id), 0);
	for (size_t got = 0; got < sizeof(bytes);) {
		reeve_ssize n = reeve_read(t.node[1].fake.kept[0], bytes, sizeof(bytes) - got);

		ck_assert_int_gt(n, 0);
		got += (size_t)n;
	}
	rvt_fake_let_go(&t.node[1].fake);
	RVT_UNTIL(rvt_net_stats(&t, 0).conns + rvt_net_stats(&t, 1).conns == 0);
	ck_assert_int_eq(reeve_node_disconnect(t.node[0].n, t.node[1].id), REEVE_ENOTCONN);
	rvt_net_end(&t);
}
END_TEST

/* The connection in use ends, the other one takes over and nobody is told. */
START_TEST(the_second_connection_takes_over)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	struct rvt_opening o;
	reeve_ctl_t *k;

	rvt_net_start(&t, &cfg);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_node_dial(t.node[0].n, NULL, t.node[1].addr, NULL, 5000), 0);
	ck_assert_uint_eq(rvt_net_stats(&t, 0).conns, 2);
	k = reeve_node_ctl(t.node[0].n, t.node[1].id);
	ck_assert_ptr_nonnull(k);
	ck_assert_int_eq(reeve_abort(k, 0), 0);
	reeve_ctl_unref(k);
	RVT_UNTIL(rvt_net_stats(&t, 0).conns == 1);
	ck_assert_int_eq(open_one(0, &o), 0);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_DISCONNECTED), 0);
	ck_assert_uint_eq(rvt_net_events(&t.node[0], REEVE_PEER_CONNECTED), 1);
	k = reeve_node_ctl(t.node[0].n, t.node[1].id);
	ck_assert_int_eq(reeve_abort(k, 0), 0);
	reeve_ctl_unref(k);
	RVT_UNTIL(rvt_net_events(&t.node[0], REEVE_PEER_DISCONNECTED) == 1);
	ck_assert_ptr_null(reeve_node_ctl(t.node[0].n, t.node[1].id));
	rvt_net_end(&t);
}
END_TEST

/* Refused connections leave nothing behind that counts: again and again the same number fits. */
START_TEST(a_limit_of_connections_is_given_back)
{
	struct rvt_net_cfg cfg = {.nodes = 4, .via = RVT_TCP, .node = {.max_conns = 2}};

	rvt_net_start(&t, &cfg);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 1; i < 4; i++)
			(void)reeve_node_dial(
			    t.node[i].n, t.node[0].id, t.node[0].addr, NULL, 5000);
		RVT_UNTIL(rvt_net_stats(&t, 0).refused == round + 1);
		ck_assert_uint_eq(rvt_net_stats(&t, 0).conns, 2);
		ck_assert_int_eq(
		    reeve_node_dial(t.node[0].n, NULL, t.node[3].addr, NULL, 5000), REEVE_ELIMIT);
		for (unsigned i = 1; i < 4; i++)
			(void)reeve_node_disconnect(t.node[0].n, t.node[i].id);
		for (unsigned i = 0; i < 4; i++)
			RVT_UNTIL(rvt_net_stats(&t, i).conns == 0);
	}
	/* Failed dials give theirs back too. */
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(
		    reeve_node_dial(t.node[0].n, NULL, "mem://nobody", NULL, 5000), REEVE_EDIAL);
	rvt_net_connect(&t, 0, 1);
	rvt_net_connect(&t, 0, 2);
	rvt_net_end(&t);
}
END_TEST

/* accept(2) has no descriptor left for a while. */
START_TEST(a_node_without_descriptors_listens_on)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	struct rlimit before, none;
	uint64_t cpu;
	int rc, fd, first;

	rvt_net_start(&t, &cfg);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	first = dup(0); /* one is free: for the dialer */
	none.rlim_cur = (rlim_t)first + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	while ((fd = dup(0)) >= 0) /* whoever let go of one meanwhile */
		ck_assert_int_ne(fd, first);
	close(first);
	cpu = rvt_cpu_ms();
	rc = reeve_node_dial(t.node[0].n, t.node[1].id, t.node[1].addr, NULL, 400);
	cpu = rvt_cpu_ms() - cpu;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(rc, REEVE_ETIMEDOUT);
	ck_assert_uint_lt(cpu, (uint64_t)rvt_slow(200));
	rvt_net_connect(&t, 0, 1);
	rvt_net_end(&t);
}
END_TEST

START_TEST(a_close_cuts_what_does_not_end_in_time)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	struct rvt_opening o;
	uint64_t begin;

	rvt_net_start(&t, &cfg);
	rvt_net_connect(&t, 0, 1);
	ck_assert_int_eq(open_one(0, &o), 0);
	RVT_UNTIL(rvt_fake_inbound(&t.node[1]) == 1);
	ck_assert_int_eq(rvt_opening_wait(&o), 0);
	begin = rvt_ms();
	ck_assert_int_eq(reeve_node_close(t.node[0].n, 200), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(rvt_ms() - begin, 199);
	ck_assert_uint_lt(rvt_ms() - begin, (uint64_t)rvt_slow(1000));
	ck_assert_int_eq(reeve_node_close(t.node[0].n, 200), 0);
	ck_assert_int_eq(reeve_node_listen(t.node[0].n, "mem://late"), REEVE_ECLOSED);
	ck_assert_int_eq(
	    reeve_node_dial(t.node[0].n, NULL, t.node[1].addr, NULL, 100), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_node_addr(t.node[0].n, 0, t.node[0].addr, 256), REEVE_EINVAL);
	rvt_net_end(&t);
}
END_TEST

START_TEST(a_destroyed_node_was_closed)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	struct rvt_silent mute;
	struct rvt_done d;

	rvt_silent_start(&mute, RVT_MUTE);
	rvt_net_start(&t, &cfg);
	rvt_net_connect(&t, 0, 1);
	rvt_done_init(&d, -1);
	reeve_node_dial_async(t.node[0].n, NULL, mute.addr, &d.op);
	reeve_node_destroy(t.node[0].n);
	ck_assert(t.node[0].fake.freed);
	ck_assert_int_eq(rvt_done_wait(&d), REEVE_ECLOSED);
	ck_assert_uint_eq(t.node[0].disconnected, 1);
	pthread_mutex_destroy(&t.node[0].fake.lock);
	t.node[0].n = NULL;
	reeve_node_destroy(NULL);
	rvt_net_end(&t);
	rvt_silent_end(&mute);
}
END_TEST

/* By mistake: the runtime goes first, or is shut down under the node. */
START_TEST(a_runtime_that_ends_first)
{
	struct rvt_net_cfg cfg = {.via = RVT_TCP};
	struct rvt_silent mute;
	struct rvt_opening o[3];
	struct rvt_done d;
	reeve_rt_t *rt;

	rvt_silent_start(&mute, RVT_MUTE);
	rvt_net_start(&t, &cfg);
	rt = t.node[0].rt;
	rvt_net_connect(&t, 0, 1);
	for (unsigned i = 0; i < 3; i++) {
		rvt_opening_init(&o[i], 0, -1);
		o[i].anywhere = true;
		rvt_open(&t, 0, 1, &o[i]);
	}
	rvt_done_init(&d, -1);
	reeve_node_dial_async(t.node[0].n, NULL, mute.addr, &d.op);
	if (_i == 0)
		reeve_rt_destroy(rt);
	else
		ck_assert_int_eq(reeve_rt_shutdown(rt, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		int rc = rvt_opening_wait(&o[i]);

		ck_assert_msg(
		    rc == 0 || rc == REEVE_ELOST || rc == REEVE_ECLOSED, "%s", reeve_errname(rc));
	}
	ck_assert_int_lt(rvt_done_wait(&d), 0);
	rvt_opening_init(&o[0], 0, 1000);
	rvt_open(&t, 0, 1, &o[0]);
	RVT_UNTIL(rvt_opening_done(&o[0]));
	ck_assert_int_lt(o[0].o.rc, 0);
	rvt_net_stop(&t, 0, 100);
	if (_i == 0)
		t.node[0].rt = NULL;
	rvt_net_end(&t);
	rvt_silent_end(&mute);
}
END_TEST

RVT_MAIN_TABLE("node_end", {&an_idle_connection_closes_after_its_last_stream, 0},
    {&idle_can_be_off, 0}, {&opens_around_the_idle_end_work, 0},
    {&what_is_queued_is_sent_by_a_disconnect, 0}, {&the_second_connection_takes_over, 0},
    {&a_limit_of_connections_is_given_back, 0}, {&a_node_without_descriptors_listens_on, 0},
    {&a_close_cuts_what_does_not_end_in_time, 0}, {&a_destroyed_node_was_closed, 0},
    {&a_runtime_that_ends_first, 2})
