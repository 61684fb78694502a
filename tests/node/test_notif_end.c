/* test_notif_end.c - how streams end: what was accepted is sent or counted, what came is delivered, one CLOSED. */
#include <config.h>

#include <pthread.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"
#include "tests/node/notif_duo.h"

/* What node i still receives, in order from number on, up to CLOSED (in *ev, to be released).  How many. */
static uint32_t
drain(unsigned i, size_t n, uint32_t number, reeve_notif_event_t *ev)
{
	uint32_t got = 0;

	for (;;) {
		ck_assert_int_eq(reeve_notif_next(t.p[i], ev, RVT_WAIT_MS), 0);
		if (ev->type == REEVE_NOTIF_CLOSED)
			return got;
		rvt_note_check(ev, n, number + got++);
		reeve_notif_release(t.p[i], ev);
	}
}

/* What was accepted before a close is received by the other end, whoever closes first. */
START_TEST(close_sends_what_was_accepted)
{
	static const size_t size[] = {1, 1000, 30000};
	size_t n = size[_i];
	reeve_notif_event_t ev;
	uint32_t all = 0, got;

	prepare();
	nc[1].recv_queue = 100000;
	begin();
	while (all < 5000 && reeve_sink_try_send(k[0], note(n, all)) == 0)
		all++;
	ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), -1), 0);
	ck_assert_int_eq(reeve_sink_try_send(k[0], note(n, 0)), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_sink_send(k[0], note(n, 0), 1000), REEVE_ECLOSED);
	ck_assert_ptr_null(reeve_notif_sink(t.p[0], id(1)));
	got = drain(1, n, 0, &ev);
	ck_assert_uint_eq(got, all);
	ck_assert_int_eq(ev.reason.rc, 0);
	ck_assert_uint_eq(ev.reason.by, REEVE_BY_PEER);
	reeve_notif_release(t.p[1], &ev);
	rvt_notes_next(&t, 0, REEVE_NOTIF_CLOSED, &ev);
	ck_assert_uint_eq(ev.lost + ev.lost_bytes, 0);
	ck_assert_uint_eq(ev.reason.by, REEVE_BY_US);
	reeve_notif_release(t.p[0], &ev);
	end();
}
END_TEST

/* The other end takes nothing: at the deadline the rest is dropped, and counted. */
START_TEST(close_gives_up_at_its_deadline)
{
	reeve_notif_event_t ev;
	uint32_t all = 0, got;
	uint64_t lost, at = rvt_ms();

	prepare();
	nc[0].send_queue = 2000000;
	nc[1].recv_queue = 10000;
	begin();
	while (reeve_sink_send(k[0], note(10000, all), rvt_slow(50)) == 0)
		all++;
	ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), _i == 0 ? 0 : 100), 0);
	rvt_notes_next(&t, 0, REEVE_NOTIF_CLOSED, &ev);
	if (_i == 1)
		ck_assert_uint_ge(rvt_ms() - at, 99);
	lost = ev.lost;
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_eq(ev.lost_bytes, lost * 10000);
	reeve_notif_release(t.p[0], &ev);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).notif_lost, lost);
	got = drain(1, 10000, 0, &ev);
	ck_assert_uint_le(got, all - lost);
	reeve_notif_release(t.p[1], &ev);
	end();
}
END_TEST

/* Both close at once, both with something to say. */
START_TEST(both_close_at_once)
{
	reeve_notif_event_t ev;

	prepare();
	begin();
	for (uint32_t i = 0; i < 50; i++)
		for (unsigned j = 0; j < 2; j++)
			ck_assert_int_eq(
			    reeve_sink_try_send(k[j], rvt_note(t.net.node[j].rt, 5000, i)), 0);
	for (unsigned j = 0; j < 2; j++) /* the second may hear of the first before */
		(void)reeve_notif_close(t.p[j], id(1 - j), -1);
	for (unsigned j = 0; j < 2; j++) {
		uint32_t got = drain(j, 5000, 0, &ev);

		ck_assert_uint_le(got, 50);
		ck_assert_int_le(ev.reason.rc, 0);
		reeve_notif_release(t.p[j], &ev);
		rvt_notes_quiet(&t, j, 0);
	}
	end();
}
END_TEST

/* --- scenario 115 */

struct stream_of {
	pthread_t thread;
	uint32_t accepted;
	int rc;
};

static void *
send_on(void *arg)
{
	struct stream_of *s = arg;

	while ((s->rc = reeve_sink_send(k[0], note(200, s->accepted), RVT_WAIT_MS)) == 0)
		s->accepted++;
	return NULL;
}

/* We send as fast as we can when the peer closes the stream, or its connection, or ours is lost. */
START_TEST(scenario_115_nothing_vanishes)
{
	reeve_notif_event_t ev[2];
	struct stream_of s = {.accepted = 0};
	uint32_t got = 0;
	reeve_ctl_t *ctl;

	prepare();
	nc[0].send_queue = 20000;
	begin();
	ck_assert_int_eq(pthread_create(&s.thread, NULL, send_on, &s), 0);
	while (got < 500) {
		rvt_notes_next(&t, 1, REEVE_NOTIF_RECEIVED, &ev[1]);
		rvt_note_check(&ev[1], 200, got++);
		reeve_notif_release(t.p[1], &ev[1]);
	}
	switch (_i) {
	case 0:
		ck_assert_int_eq(reeve_notif_close(t.p[1], id(0), -1), 0);
		break;
	case 1:
		ck_assert_int_eq(reeve_node_disconnect(t.net.node[1].n, id(0)), 0);
		break;
	case 2:
		ctl = reeve_node_ctl(t.net.node[1].n, id(0));
		ck_assert_int_eq(reeve_abort(ctl, 0), 0);
		reeve_ctl_unref(ctl);
		break;
	default:
		ctl = reeve_node_ctl(t.net.node[0].n, id(1));
		ck_assert_int_eq(reeve_abort(ctl, 0), 0);
		reeve_ctl_unref(ctl);
		break;
	}
	pthread_join(s.thread, NULL);
	ck_assert_int_lt(s.rc, 0);
	ck_assert_int_ne(s.rc, REEVE_ETIMEDOUT);
	got += drain(1, 200, got, &ev[1]); /* in order: a prefix of what was accepted */
	rvt_notes_next(&t, 0, REEVE_NOTIF_CLOSED, &ev[0]);
	ck_assert_uint_le(got + ev[0].lost, s.accepted);
	ck_assert_uint_eq(ev[0].lost_bytes, ev[0].lost * 200);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).notif_sent + ev[0].lost, s.accepted);
	for (unsigned i = 0; i < 2; i++) {
		reeve_notif_release(t.p[i], &ev[i]);
		rvt_notes_quiet(&t, i, 0);
	}
	end();
}
END_TEST

/* --- ends of what is below */

/* The connection is lost in every phase of an open: one outcome. */
START_TEST(the_connection_is_lost_on_the_way)
{
	reeve_notif_event_t ev;
	reeve_ctl_t *ctl;
	uint64_t ticket = 0;
	unsigned phase = (unsigned)_i % 4, who = (unsigned)_i / 4;

	prepare();
	nc[0].flags = REEVE_NOTIF_NO_DIAL; /* the open may come after the end */
	nc[1].flags = 0;
	rvt_notes_start(&t, &cfg);
	rvt_net_connect(&t.net, 0, 1);
	RVT_UNTIL(rvt_net_stats(&t.net, 1).peers == 1);
	ctl = reeve_node_ctl(t.net.node[who].n, id(1 - who));
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	if (phase > 0) {
		rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
		ticket = ev.ticket;
		reeve_notif_release(t.p[1], &ev);
	}
	if (phase > 1) {
		ck_assert_int_eq(reeve_notif_answer(t.p[1], ticket, 1), 0);
		rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
		ck_assert_int_eq(phase > 2 ? reeve_notif_answer(t.p[0], ev.ticket, 1) : 0, 0);
		reeve_notif_release(t.p[0], &ev);
	}
	ck_assert_int_eq(reeve_abort(ctl, 0), 0);
	reeve_ctl_unref(ctl);
	ck_assert_int_eq(reeve_notif_next(t.p[0], &ev, RVT_WAIT_MS), 0);
	while (ev.type == REEVE_NOTIF_VALIDATE || ev.type == REEVE_NOTIF_OPENED) {
		reeve_notif_release(t.p[0], &ev);
		ck_assert_int_eq(reeve_notif_next(t.p[0], &ev, RVT_WAIT_MS), 0);
	}
	ck_assert(ev.type == REEVE_NOTIF_FAILED || (phase == 3 && ev.type == REEVE_NOTIF_CLOSED));
	if (phase > 0 || ev.reason.rc != REEVE_ENOTCONN)
		ck_assert_int_eq(ev.reason.rc, REEVE_ELOST);
	reeve_notif_release(t.p[0], &ev);
	rvt_notes_quiet(&t, 0, 0);
	/* All is well afterwards. */
	rvt_notes_forget(&t, 1);
	RVT_UNTIL(reeve_notif_answer(t.p[1], ticket, 0) == REEVE_ESTALE);
	RVT_UNTIL(rvt_net_stats(&t.net, 0).streams + rvt_net_stats(&t.net, 1).streams == 0);
	RVT_UNTIL(rvt_net_stats(&t.net, 0).peers + rvt_net_stats(&t.net, 1).peers == 0);
	rvt_notes_end(&t);
}
END_TEST

/* Whoever closes the connection gracefully sends what was accepted before. */
START_TEST(a_graceful_disconnect_sends_the_queue)
{
	reeve_notif_event_t ev;
	uint32_t all = 0, got;

	prepare();
	nc[0].send_queue = 800000;
	begin();
	while (all < 700 && reeve_sink_try_send(k[0], note(1000, all)) == 0)
		all++;
	ck_assert_int_eq(reeve_node_disconnect(t.net.node[0].n, id(1)), 0);
	got = drain(1, 1000, 0, &ev);
	reeve_notif_release(t.p[1], &ev);
	rvt_notes_next(&t, 0, REEVE_NOTIF_CLOSED, &ev);
	ck_assert_uint_eq(got + ev.lost, all);
	ck_assert_uint_eq(ev.lost, 0);
	reeve_notif_release(t.p[0], &ev);
	end();
}
END_TEST

/* The node closes: every stream has its CLOSED, every open its FAILED, then there is nothing more to come. */
START_TEST(a_node_that_closes)
{
	reeve_notif_event_t ev;
	unsigned closed = 0, failed = 0;
	int rc;

	prepare();
	cfg.net.nodes = 4;
	cfg.net.workers = 1;
	nc[1].flags = 0;
	rvt_notes_start(&t, &cfg);
	for (unsigned i = 1; i < 4; i++)
		ck_assert_int_eq(reeve_notif_open(t.p[0], id(i)), 0);
	rvt_notes_answer(&t, 1, 1);
	rvt_notes_answer(&t, 2, 1);
	rvt_notes_expect(&t, 3, REEVE_NOTIF_VALIDATE, 0); /* 3 does not answer */
	RVT_UNTIL(rvt_net_stats(&t.net, 0).streams == 2);
	ck_assert_int_eq(reeve_node_close(t.net.node[0].n, 1000), 0);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), REEVE_ECLOSED);
	while ((rc = reeve_notif_next(t.p[0], &ev, RVT_WAIT_MS)) == 0) {
		closed += ev.type == REEVE_NOTIF_CLOSED;
		failed += ev.type == REEVE_NOTIF_FAILED;
		reeve_notif_release(t.p[0], &ev);
	}
	ck_assert_int_eq(rc, REEVE_ECLOSED);
	ck_assert_uint_eq(closed, 2);
	ck_assert_uint_eq(failed, 1);
	rvt_notes_forget(&t, 1);
	rvt_notes_end(&t);
}
END_TEST

/* A sink that is kept longer than its stream, its node and its runtime. */
START_TEST(a_sink_may_outlive_everything)
{
	struct rvt_done d;

	prepare();
	begin();
	reeve_sink_unref(k[1]);
	ck_assert_int_eq(reeve_node_close(t.net.node[0].n, 0), 0);
	rvt_notes_forget(&t, 0);
	rvt_net_stop(&t.net, 0, 0);
	ck_assert_int_lt(reeve_sink_try_send(k[0], NULL), 0);
	rvt_done_init(&d, -1);
	reeve_sink_send_async(k[0], NULL, &d.op);
	ck_assert_int_lt((int)rvt_done_wait(&d), 0);
	ck_assert_ptr_eq(reeve_sink_ref(k[0]), k[0]);
	reeve_sink_unref(k[0]);
	reeve_rt_destroy(t.net.node[0].rt);
	t.net.node[0].rt = NULL;
	ck_assert_int_lt(reeve_sink_try_send(k[0], NULL), 0);
	ck_assert_int_lt(reeve_sink_send(k[0], NULL, 0), 0);
	reeve_sink_unref(k[0]);
	rvt_notes_end(&t);
}
END_TEST

/* --- everything at once */

struct churn {
	pthread_t thread;
	unsigned i;
	uint32_t rounds, opened, closed, failed, received;
	bool disorder;
};

static void *
churn_events(void *arg)
{
	struct churn *c = arg;
	reeve_notif_event_t ev;
	bool open = false;

	while (reeve_notif_next(t.p[c->i], &ev, RVT_WAIT_MS) == 0) {
		switch (ev.type) {
		case REEVE_NOTIF_VALIDATE:
			(void)reeve_notif_answer(t.p[c->i], ev.ticket, ev.ticket % 4 != 0);
			break;
		case REEVE_NOTIF_OPENED:
			c->disorder |= open;
			open = true;
			c->opened++;
			break;
		case REEVE_NOTIF_CLOSED:
			c->disorder |= !open;
			open = false;
			c->closed++;
			break;
		case REEVE_NOTIF_RECEIVED:
			c->disorder |= !open;
			c->received++;
			break;
		default:
			c->failed++;
			break;
		}
		reeve_notif_release(t.p[c->i], &ev);
	}
	return NULL;
}

static void *
churn_calls(void *arg)
{
	struct churn *c = arg;
	const char *peer = id(1 - c->i);
	uint32_t seed = c->i + 1;
	reeve_sink_t *sink;

	for (uint32_t n = 0; n < c->rounds; n++) {
		seed = seed * 1664525u + 1013904223u;
		switch ((seed >> 24) % 8) {
		case 0:
		case 1:
		case 2:
			(void)reeve_notif_open(t.p[c->i], peer);
			break;
		case 3:
			(void)reeve_notif_close(t.p[c->i], peer, (seed >> 16) % 3);
			break;
		case 4:
			if ((seed >> 16) % 16 == 0)
				(void)reeve_node_disconnect(t.net.node[c->i].n, peer);
			break;
		default:
			sink = reeve_notif_sink(t.p[c->i], peer);
			if (sink != NULL)
				(void)reeve_sink_try_send(
				    sink, rvt_note(t.net.node[c->i].rt, seed % 3000, n));
			reeve_sink_unref(sink);
			rvt_yield(1);
			break;
		}
	}
	return NULL;
}

/* Opens, closes, answers, sends and disconnects from both ends at once: every OPENED has its CLOSED, in turn. */
START_TEST(opens_closes_and_disconnects_at_once)
{
	struct churn ev[2] = {{.i = 0}, {.i = 1}}, call[2] = {{.i = 0}, {.i = 1}};

	prepare();
	nc[0].flags = _i == 0 ? REEVE_NOTIF_ACCEPT_ALL : 0;
	nc[1].flags = REEVE_NOTIF_AUTO_ACCEPT;
	rvt_notes_start(&t, &cfg);
	rvt_net_introduce(&t.net, 1, 0);
	for (unsigned i = 0; i < 2; i++) {
		call[i].rounds = 2000;
		ck_assert_int_eq(pthread_create(&ev[i].thread, NULL, churn_events, &ev[i]), 0);
		ck_assert_int_eq(pthread_create(&call[i].thread, NULL, churn_calls, &call[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(call[i].thread, NULL);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_node_close(t.net.node[i].n, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(ev[i].thread, NULL);
		ck_assert(!ev[i].disorder);
		ck_assert_uint_eq(ev[i].opened, ev[i].closed);
		ck_assert_uint_gt(ev[i].opened + ev[i].failed, 0);
	}
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN_TABLE("notif_end", {&close_sends_what_was_accepted, 3},
    {&close_gives_up_at_its_deadline, 2}, {&both_close_at_once, 0},
    {&scenario_115_nothing_vanishes, 4}, {&the_connection_is_lost_on_the_way, 8},
    {&a_graceful_disconnect_sends_the_queue, 0}, {&a_node_that_closes, 0},
    {&a_sink_may_outlive_everything, 0}, {&opens_closes_and_disconnects_at_once, 2})
