/* test_notif_flow.c - queues: full ones, those who wait, order over every kind of send, consumers that stop. */
#include <config.h>

#include <pthread.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"
#include "tests/node/notif_duo.h"

static void
receive(size_t n, uint32_t number)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, 1, REEVE_NOTIF_RECEIVED, &ev);
	rvt_note_check(&ev, n, number);
	reeve_notif_release(t.p[1], &ev);
}

/* Send until nothing more fits and nothing moves: the other end takes nothing.  How many. */
static uint32_t
fill(size_t n)
{
	uint64_t last = rvt_ms();
	uint32_t i = 0;
	int rc;

	while (rvt_ms() - last < (uint64_t)rvt_slow(100)) {
		rc = reeve_sink_try_send(k[0], note(n, i));
		if (rc == 0) {
			i++;
			last = rvt_ms();
			continue;
		}
		ck_assert_int_eq(rc, REEVE_ECLOGGED);
		rvt_yield(1);
	}
	return i;
}

START_TEST(a_full_queue_says_so_and_nothing_else_happens)
{
	uint32_t all, i;

	prepare();
	nc[0].send_queue = 100000;
	nc[1].recv_queue = 50000;
	begin();
	all = fill(10000);
	ck_assert_uint_gt(all, 10);
	ck_assert_uint_le(rvt_net_stats(&t.net, 0).queued, 100000 + 10003);
	ck_assert_uint_gt(rvt_net_stats(&t.net, 0).notif_clogged, 0);
	ck_assert_uint_le(rvt_net_stats(&t.net, 1).held, 50000 + 10000);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).peers, 1);
	ck_assert_int_eq(reeve_sink_send(k[0], note(10000, 0), 20), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_sink_send(k[0], note(10000, 0), 0), REEVE_ETIMEDOUT);
	for (i = 0; i < all; i++)
		receive(10000, i);
	rvt_notes_quiet(&t, 1, 0);
	RVT_UNTIL(rvt_net_stats(&t.net, 0).queued == 0);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 1).held, 0);
	RVT_UNTIL(rvt_net_stats(&t.net, 0).notif_sent == all);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 1).notif_received, all);
	end();
}
END_TEST

START_TEST(one_message_may_always_wait)
{
	prepare();
	nc[0].send_queue = 10;
	nc[1].recv_queue = 10;
	nc[1].recv_total = 10;
	begin();
	for (uint32_t i = 0; i < 20; i++) {
		ck_assert_int_eq(reeve_sink_send(k[0], note(100000, i), RVT_WAIT_MS), 0);
		if (i > 0)
			receive(100000, i - 1);
	}
	receive(100000, 19);
	ck_assert_int_eq(reeve_sink_send(k[0], note(1048577, 0), 0), REEVE_ETOOBIG);
	ck_assert_int_eq(reeve_sink_try_send(k[0], note(1048577, 0)), REEVE_ETOOBIG);
	ck_assert_int_eq(reeve_sink_send(k[0], note(1048576, 7), RVT_WAIT_MS), 0);
	receive(1048576, 7);
	end();
}
END_TEST

/* --- order */

struct sender {
	pthread_t thread;
	uint32_t n;
	struct rvt_done *done;
};

/* All three kinds of send by one thread keep their order, whatever waits. */
static void *
send_mixed(void *arg)
{
	struct sender *s = arg;
	int rc;

	for (uint32_t i = 0; i < s->n; i++) {
		size_t n = i % 5 == 0 ? 20000 : i % 97;

		if (i % 3 == 0) {
			ck_assert_int_eq(reeve_sink_send(k[0], note(n, i), RVT_WAIT_MS), 0);
		} else if (i % 3 == 1) {
			rvt_done_init(&s->done[i], -1);
			reeve_sink_send_async(k[0], note(n, i), &s->done[i].op);
		} else {
			while ((rc = reeve_sink_try_send(k[0], note(n, i))) == REEVE_ECLOGGED)
				sched_yield();
			ck_assert_int_eq(rc, 0);
		}
	}
	return NULL;
}

START_TEST(order_over_every_kind_of_send)
{
	static struct rvt_done done[3000];
	struct sender s = {.n = 3000, .done = done};

	prepare();
	nc[0].send_queue = 60000;
	nc[1].recv_queue = 60000;
	begin();
	ck_assert_int_eq(pthread_create(&s.thread, NULL, send_mixed, &s), 0);
	for (uint32_t i = 0; i < s.n; i++)
		receive(i % 5 == 0 ? 20000 : i % 97, i);
	pthread_join(s.thread, NULL);
	for (uint32_t i = 1; i < s.n; i += 3)
		ck_assert_int_eq((int)rvt_done_wait(&done[i]), 0);
	rvt_notes_quiet(&t, 1, 0);
	end();
}
END_TEST

static void *
send_many(void *arg)
{
	struct sender *s = arg;

	for (uint32_t i = 0; i < 2000; i++)
		ck_assert_int_eq(reeve_sink_send(k[0], note(8 + s->n, s->n), RVT_WAIT_MS), 0);
	return NULL;
}

/* Several threads wait for room of one queue. */
START_TEST(many_senders_wait_for_one_queue)
{
	struct sender s[4];
	uint32_t count[4] = {0};
	reeve_notif_event_t ev;

	prepare();
	nc[0].send_queue = 1000;
	nc[1].recv_queue = 1000;
	begin();
	for (uint32_t i = 0; i < 4; i++) {
		s[i].n = i;
		ck_assert_int_eq(pthread_create(&s[i].thread, NULL, send_many, &s[i]), 0);
	}
	for (uint32_t i = 0; i < 8000; i++) {
		rvt_notes_next(&t, 1, REEVE_NOTIF_RECEIVED, &ev);
		count[reeve_buf_len(ev.data) - 8]++;
		reeve_notif_release(t.p[1], &ev);
	}
	for (uint32_t i = 0; i < 4; i++) {
		pthread_join(s[i].thread, NULL);
		ck_assert_uint_eq(count[i], 2000);
	}
	end();
}
END_TEST

/* --- asynchronous sends */

START_TEST(asynchronous_sends_wait_are_cancelled_and_expire)
{
	static struct rvt_done d[6];
	uint32_t all;

	prepare();
	nc[0].send_queue = 50000;
	nc[1].recv_queue = 50000;
	begin();
	all = fill(10000);
	for (unsigned i = 0; i < 6; i++) {
		rvt_done_init(&d[i], i == 2 ? 50 : -1);
		reeve_sink_send_async(k[0], note(60000, 1000 + i), &d[i].op);
	}
	ck_assert_int_eq((int)rvt_done_wait(&d[2]), REEVE_ETIMEDOUT);
	reeve_op_cancel(&d[4].op);
	ck_assert_int_eq((int)rvt_done_wait(&d[4]), REEVE_ECANCELED);
	ck_assert(!rvt_done_is(&d[0]) && !rvt_done_is(&d[5]));
	for (uint32_t i = 0; i < all; i++)
		receive(10000, i);
	for (uint32_t i = 0; i < 6; i++)
		if (i != 2 && i != 4) {
			receive(60000, 1000 + i);
			ck_assert_int_eq((int)rvt_done_wait(&d[i]), 0);
		}
	rvt_notes_quiet(&t, 1, 0);
	/* What cannot begin is answered too. */
	rvt_done_init(&d[0], -1);
	reeve_sink_send_async(k[0], note(2000000, 0), &d[0].op);
	ck_assert_int_eq((int)rvt_done_wait(&d[0]), REEVE_ETOOBIG);
	rvt_done_init(&d[0], -1);
	reeve_sink_send_async(NULL, note(2, 0), &d[0].op);
	RVT_UNTIL(rvt_done_is(&d[0]));
	ck_assert_int_eq((int)d[0].op.res, REEVE_EINVAL);
	end();
}
END_TEST

START_TEST(asynchronous_sends_end_with_the_stream)
{
	static struct rvt_done d[4];

	prepare();
	nc[0].send_queue = 50000;
	nc[1].recv_queue = 50000;
	begin();
	(void)fill(10000);
	for (unsigned i = 0; i < 3; i++) {
		rvt_done_init(&d[i], -1);
		reeve_sink_send_async(k[0], note(60000, 0), &d[i].op);
	}
	if (_i == 0)
		ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), 0), 0);
	else if (_i == 1)
		ck_assert_int_eq(reeve_notif_close(t.p[1], id(0), 0), 0);
	else
		ck_assert_int_eq(reeve_node_disconnect(t.net.node[0].n, id(1)), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_lt((int)rvt_done_wait(&d[i]), 0);
	rvt_done_init(&d[3], -1);
	reeve_sink_send_async(k[0], NULL, &d[3].op);
	ck_assert_int_lt((int)rvt_done_wait(&d[3]), 0);
	ck_assert_int_lt(reeve_sink_send(k[0], NULL, 0), 0);
	end();
}
END_TEST

/* --- consumers that stop */

/* The consumer of one protocol with one peer stops: requests of others go on, and so does another protocol's stream. */
START_TEST(a_stalled_consumer_stalls_only_its_own_stream)
{
	static const char *const names[] = {"/beside/1"};
	reeve_notif_cfg_t bc;
	reeve_notif_t *b[2];
	reeve_notif_event_t ev;
	reeve_sink_t *beside;
	uint32_t all;

	prepare();
	nc[0].send_queue = 200000;
	nc[1].recv_queue = 50000;
	rvt_notes_start(&t, &cfg);
	reeve_notif_cfg_init(&bc);
	bc.names = names;
	bc.nnames = 1;
	bc.flags = REEVE_NOTIF_ACCEPT_ALL;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_notif_install(&b[i], t.net.node[i].n, &bc), 0);
	rvt_notes_open(&t, 0, 1, k);
	ck_assert_int_eq(reeve_notif_open(b[0], id(1)), 0);
	ck_assert_int_eq(reeve_notif_next(b[0], &ev, RVT_WAIT_MS), 0);
	beside = reeve_sink_ref(ev.sink);
	reeve_notif_release(b[0], &ev);
	ck_assert_int_eq(reeve_notif_next(b[1], &ev, RVT_WAIT_MS), 0);
	reeve_notif_release(b[1], &ev);
	all = fill(10000); /* nobody takes them */
	for (uint32_t i = 0; i < 200; i++) {
		ck_assert_int_eq(reeve_sink_send(beside, note(50000, i), RVT_WAIT_MS), 0);
		ck_assert_int_eq(reeve_notif_next(b[1], &ev, RVT_WAIT_MS), 0);
		rvt_note_check(&ev, 50000, i);
		reeve_notif_release(b[1], &ev);
	}
	for (uint32_t i = 0; i < all; i++)
		receive(10000, i);
	reeve_sink_unref(beside);
	end();
}
END_TEST

/* All peers together hold recv_total; when that is taken they go on. */
START_TEST(what_all_peers_hold_is_bounded)
{
	reeve_notif_event_t ev;
	reeve_sink_t *all[5][2] = {{NULL}};
	unsigned got[5] = {0}, sum = 0;

	prepare();
	nc[0].recv_total = 100000;
	cfg.net.nodes = 5;
	cfg.net.workers = 1;
	rvt_notes_start(&t, &cfg);
	for (unsigned i = 1; i < 5; i++)
		rvt_notes_open(&t, 0, i, all[i]);
	for (unsigned m = 0; m < 10; m++)
		for (unsigned i = 1; i < 5; i++)
			ck_assert_int_eq(reeve_sink_send(all[i][1],
					     rvt_note(t.net.node[i].rt, 30000, m), RVT_WAIT_MS),
			    0);
	RVT_UNTIL(rvt_net_stats(&t.net, 0).held >= 100000);
	rvt_yield(50);
	ck_assert_uint_le(rvt_net_stats(&t.net, 0).held, 100000 + 4 * 30000);
	while (sum < 40) {
		rvt_notes_next(&t, 0, REEVE_NOTIF_RECEIVED, &ev);
		for (unsigned i = 1; i < 5; i++)
			if (strcmp(ev.peer, id(i)) == 0)
				rvt_note_check(&ev, 30000, got[i]++);
		sum++;
		reeve_notif_release(t.p[0], &ev);
	}
	for (unsigned i = 1; i < 5; i++) {
		ck_assert_uint_eq(got[i], 10);
		reeve_sink_unref(all[i][0]);
		reeve_sink_unref(all[i][1]);
	}
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN_TABLE("notif_flow", {&a_full_queue_says_so_and_nothing_else_happens, 0},
    {&one_message_may_always_wait, 0}, {&order_over_every_kind_of_send, 0},
    {&many_senders_wait_for_one_queue, 0}, {&asynchronous_sends_wait_are_cancelled_and_expire, 0},
    {&asynchronous_sends_end_with_the_stream, 3},
    {&a_stalled_consumer_stalls_only_its_own_stream, 0}, {&what_all_peers_hold_is_bounded, 0})
