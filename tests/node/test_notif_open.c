/* test_notif_open.c - opening: who asks whom, who refuses, handshakes, names, peers that cannot be reached. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/notes.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

static struct rvt_notes t;
static reeve_sink_t *k[2];
static reeve_notif_cfg_t nc[2];

static void
let_go(void)
{
	reeve_sink_unref(k[0]);
	reeve_sink_unref(k[1]);
	k[0] = k[1] = NULL;
}

static const char *
id(unsigned i)
{
	return t.net.node[i].id;
}

/* Two nodes with the configurations of nc, changed by the test before. */
static void
prepare(void)
{
	rvt_notes_cfg(&nc[0], "from 0");
	rvt_notes_cfg(&nc[1], "from 1");
}

static void
start(void)
{
	const struct rvt_notes_cfg cfg = {.cfg = {&nc[0], &nc[1]}};

	rvt_notes_start(&t, &cfg);
}

static void
says(const reeve_notif_event_t *ev, const char *text)
{
	ck_assert_ptr_nonnull(ev->data);
	ck_assert_uint_eq(reeve_buf_len(ev->data), strlen(text));
	ck_assert(memcmp(reeve_buf_data(ev->data), text, strlen(text)) == 0);
}

static void
failed(unsigned i, int rc, int step)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, i, REEVE_NOTIF_FAILED, &ev);
	ck_assert_msg(ev.reason.rc == rc && (ev.step == step || step < 0), "%s at %d, not %s at %d",
	    reeve_errname(ev.reason.rc), ev.step, reeve_errname(rc), step);
	ck_assert_uint_ne(ev.reason.by, REEVE_BY_NONE);
	reeve_notif_release(t.p[i], &ev);
}

static void
closed(unsigned i, int rc)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, i, REEVE_NOTIF_CLOSED, &ev);
	ck_assert_msg(ev.reason.rc == rc, "%s", reeve_errname(ev.reason.rc));
	ck_assert_uint_eq(ev.lost, 0);
	reeve_notif_release(t.p[i], &ev);
}

START_TEST(both_are_asked_and_see_the_handshakes)
{
	reeve_notif_event_t ev;
	uint64_t ticket;

	prepare();
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), REEVE_EBUSY);
	for (unsigned i = 1; i < 2; i--) { /* 1, then 0 */
		rvt_notes_next(&t, i, REEVE_NOTIF_VALIDATE, &ev);
		says(&ev, i == 1 ? "from 0" : "from 1");
		ck_assert_uint_eq(ev.dir, i == 1 ? REEVE_LISTENER : REEVE_DIALER);
		ck_assert_uint_eq(ev.name, 0);
		ck_assert_str_eq(ev.peer, id(1 - i));
		ticket = ev.ticket;
		reeve_notif_release(t.p[i], &ev);
		ck_assert_int_eq(reeve_notif_open(t.p[i], id(1 - i)), REEVE_EBUSY);
		ck_assert_int_eq(reeve_notif_answer(t.p[i], ticket, 1), 0);
		ck_assert_int_eq(reeve_notif_answer(t.p[i], ticket, 1), REEVE_ESTALE);
		ck_assert_int_eq(reeve_notif_answer(t.p[i], ticket, 0), REEVE_ESTALE);
	}
	for (unsigned i = 0; i < 2; i++) {
		rvt_notes_next(&t, i, REEVE_NOTIF_OPENED, &ev);
		says(&ev, i == 1 ? "from 0" : "from 1");
		ck_assert_uint_eq(ev.dir, i == 1 ? REEVE_LISTENER : REEVE_DIALER);
		ck_assert_ptr_nonnull(ev.sink);
		reeve_notif_release(t.p[i], &ev);
		ck_assert_int_eq(reeve_notif_open(t.p[i], id(1 - i)), REEVE_EBUSY);
		ck_assert_uint_eq(rvt_net_stats(&t.net, i).streams, 1);
	}
	rvt_notes_end(&t);
}
END_TEST

START_TEST(a_refusal_is_told)
{
	prepare();
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_answer(&t, 1, 0);
	failed(0, REEVE_EREFUSED, REEVE_STEP_READ);
	/* It is as if nothing had been. */
	rvt_notes_open(&t, 0, 1, k);
	let_go();
	rvt_notes_quiet(&t, 1, 0);
	rvt_notes_end(&t);
}
END_TEST

START_TEST(refusing_what_was_asked_for_ends_both)
{
	prepare();
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_answer(&t, 1, 1);
	rvt_notes_answer(&t, 0, 0);
	failed(0, REEVE_EREFUSED, REEVE_STEP_VALIDATE);
	failed(1, REEVE_EREFUSED, -1); /* it had agreed; whichever half shows it first */
	rvt_notes_open(&t, 1, 0, k);
	let_go();
	rvt_notes_end(&t);
}
END_TEST

START_TEST(streams_are_opened_again_with_new_handshakes)
{
	reeve_notif_event_t ev;

	prepare();
	nc[0].flags = REEVE_NOTIF_AUTO_ACCEPT;
	nc[1].flags = REEVE_NOTIF_ACCEPT_ALL;
	start();
	for (unsigned i = 0; i < 3; i++) {
		char text[16];

		snprintf(text, sizeof(text), "round %u", i);
		ck_assert_int_eq(reeve_notif_set_handshake(t.p[0], text, strlen(text)), 0);
		ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
		rvt_notes_next(&t, 1, REEVE_NOTIF_OPENED, &ev);
		says(&ev, text);
		reeve_notif_release(t.p[1], &ev);
		rvt_notes_expect(&t, 0, REEVE_NOTIF_OPENED, 1);
		ck_assert_int_eq(reeve_notif_close(t.p[i % 2], id(1 - i % 2), -1), 0);
		closed(0, 0);
		closed(1, 0);
		ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), -1), REEVE_ENOTCONN);
	}
	ck_assert_int_eq(reeve_notif_set_handshake(t.p[0], NULL, 2000000), REEVE_EINVAL);
	rvt_notes_end(&t);
}
END_TEST

/* One of two that ask at once is asked for both; both say that they asked. */
START_TEST(both_open_at_once)
{
	reeve_notif_event_t ev;
	bool refuse = _i == 1;

	prepare();
	start();
	rvt_net_introduce(&t.net, 1, 0);
	if (_i == 2)
		rvt_net_connect(&t.net, 0, 1);
	/* Both are on their way before any is answered. */
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_int_eq(reeve_notif_open(t.p[1], id(0)), REEVE_EBUSY);
	reeve_notif_release(t.p[1], &ev);
	rvt_notes_end(&t);

	prepare();
	start();
	rvt_net_introduce(&t.net, 1, 0);
	rvt_net_connect(&t.net, 0, 1);
	RVT_UNTIL(rvt_net_stats(&t.net, 1).peers == 1);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	if (reeve_notif_open(t.p[1], id(0)) ==
	    0) { /* unless it was asked before: then that is that */
		uint64_t ticket;

		for (unsigned i = 0; i < 2; i++) {
			ck_assert_int_eq(reeve_notif_next(t.p[i], &ev, RVT_WAIT_MS), 0);
			if (refuse && i == 1 && ev.type == REEVE_NOTIF_FAILED)
				goto over;
			ck_assert_uint_eq(ev.type, REEVE_NOTIF_VALIDATE);
			ticket = ev.ticket;
			ck_assert_uint_eq(ev.dir, REEVE_DIALER);
			reeve_notif_release(t.p[i], &ev);
			ck_assert(reeve_notif_answer(t.p[i], ticket, !refuse || i == 1) == 0 ||
			    (refuse && i == 1));
		}
		if (refuse) {
			rvt_notes_next(&t, 1, REEVE_NOTIF_FAILED, &ev);
		over:
			reeve_notif_release(t.p[1], &ev);
		} else {
			for (unsigned i = 0; i < 2; i++) {
				rvt_notes_next(&t, i, REEVE_NOTIF_OPENED, &ev);
				ck_assert_uint_eq(ev.dir, REEVE_DIALER);
				reeve_notif_release(t.p[i], &ev);
			}
		}
		if (refuse)
			failed(0, REEVE_EREFUSED, REEVE_STEP_VALIDATE);
		for (unsigned i = 0; i < (refuse ? 1 : 2); i++) /* 1 may be asked once more */
			rvt_notes_quiet(&t, i, 0);
	}
	rvt_notes_end(&t);
}
END_TEST

START_TEST(peers_that_are_not_there)
{
	struct rvt_notes_cfg cfg = {.cfg = {&nc[0], &nc[1]}};

	prepare();
	nc[0].flags = _i == 1 ? REEVE_NOTIF_NO_DIAL : 0;
	cfg.net.deaf = true;
	rvt_notes_start(&t, &cfg);
	ck_assert_ptr_null(reeve_notif_sink(t.p[0], id(1)));
	ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), 0), REEVE_ENOTCONN);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	failed(0, _i == 1 ? REEVE_ENOTCONN : REEVE_EDIAL, REEVE_STEP_DIAL);
	ck_assert_int_eq(reeve_notif_open(t.p[0], "nobody at all"), 0);
	failed(0, REEVE_EINVAL, REEVE_STEP_NONE);
	if (_i == 0) { /* an address where nobody is */
		char addr[64];

		rvt_nobody(addr);
		ck_assert_int_eq(reeve_node_add_address(t.net.node[0].n, id(1), addr), 0);
		ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
		failed(0, REEVE_EDIAL, REEVE_STEP_DIAL);
	}
	rvt_notes_end(&t);
}
END_TEST

START_TEST(opening_connects)
{
	prepare();
	start();
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).peers, 0);
	rvt_notes_open(&t, 0, 1, k);
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).peers, 1);
	let_go();
	rvt_notes_end(&t);
}
END_TEST

START_TEST(no_protocol_in_common)
{
	static const char *const others[] = {"/somethingelse/1"};

	prepare();
	nc[1].names = others;
	nc[1].nnames = 1;
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	failed(0, REEVE_ENOPROTO, REEVE_STEP_NEGOTIATE);
	rvt_notes_quiet(&t, 1, 0);
	rvt_notes_end(&t);
}
END_TEST

/* Node 0 (_i 0) or 1 speaks only the older name. */
START_TEST(fallback_names)
{
	reeve_notif_event_t ev;
	unsigned old = (unsigned)_i;

	prepare();
	nc[old].names = &rvt_notes_names[1];
	nc[old].nnames = 1;
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_uint_eq(ev.name, old == 1 ? 0 : 1);
	ck_assert_int_eq(reeve_notif_answer(t.p[1], ev.ticket, 1), 0);
	reeve_notif_release(t.p[1], &ev);
	rvt_notes_next(&t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_uint_eq(ev.name, old == 1 ? 1 : 0);
	ck_assert_int_eq(reeve_notif_answer(t.p[0], ev.ticket, 1), 0);
	reeve_notif_release(t.p[0], &ev);
	for (unsigned i = 0; i < 2; i++) {
		rvt_notes_next(&t, i, REEVE_NOTIF_OPENED, &ev);
		ck_assert_uint_eq(ev.name, i == old ? 0 : 1);
		reeve_notif_release(t.p[i], &ev);
	}
	rvt_notes_end(&t);
}
END_TEST

START_TEST(handshakes_without_bytes)
{
	reeve_notif_event_t ev;

	prepare();
	nc[0].handshake = nc[1].handshake = NULL;
	nc[0].handshake_len = nc[1].handshake_len = 0;
	nc[0].flags = REEVE_NOTIF_ACCEPT_ALL;
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_ptr_null(ev.data);
	ck_assert_int_eq(reeve_notif_answer(t.p[1], ev.ticket, 1), 0);
	reeve_notif_release(t.p[1], &ev);
	for (unsigned i = 0; i < 2; i++) {
		rvt_notes_next(&t, i, REEVE_NOTIF_OPENED, &ev);
		ck_assert_ptr_null(ev.data);
		reeve_notif_release(t.p[i], &ev);
	}
	rvt_notes_end(&t);
}
END_TEST

/* With AUTO_ACCEPT only streams that we asked for are not asked about. */
START_TEST(auto_accept_is_for_what_was_asked_for)
{
	reeve_notif_event_t ev;

	prepare();
	nc[0].flags = REEVE_NOTIF_AUTO_ACCEPT;
	nc[1].flags = REEVE_NOTIF_AUTO_ACCEPT;
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_answer(&t, 1, 1);
	rvt_notes_next(&t, 0, REEVE_NOTIF_OPENED, &ev);
	reeve_notif_release(t.p[0], &ev);
	rvt_notes_next(&t, 1, REEVE_NOTIF_OPENED, &ev);
	reeve_notif_release(t.p[1], &ev);
	rvt_notes_end(&t);
}
END_TEST

/* Nobody answers: the asker's time is over; the answer is stale then, and the next stream is not affected. */
START_TEST(an_answer_that_is_too_late_is_stale)
{
	reeve_notif_event_t ev;
	uint64_t ticket, begin = rvt_ms();

	prepare();
	nc[0].handshake_ms = 100;
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
	ticket = ev.ticket;
	reeve_notif_release(t.p[1], &ev);
	failed(0, REEVE_ETIMEDOUT, REEVE_STEP_READ);
	ck_assert_uint_ge(rvt_ms() - begin, 99);
	if (_i == 0) { /* asked again meanwhile */
		ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
		rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
		ck_assert_int_eq(reeve_notif_answer(t.p[1], ticket, 1), REEVE_ESTALE);
		ck_assert_int_eq(reeve_notif_answer(t.p[1], ev.ticket, 1), 0);
		reeve_notif_release(t.p[1], &ev);
		rvt_notes_answer(&t, 0, 1);
		rvt_notes_expect(&t, 0, REEVE_NOTIF_OPENED, 1);
		rvt_notes_expect(&t, 1, REEVE_NOTIF_OPENED, 0);
	} else { /* or the other way round: it may be opened from here */
		RVT_UNTIL(reeve_notif_open(t.p[1], id(0)) == 0);
		ck_assert_int_eq(reeve_notif_answer(t.p[1], ticket, 1), REEVE_ESTALE);
		rvt_notes_answer(&t, 0, 1);
		rvt_notes_answer(&t, 1, 1);
		rvt_notes_expect(&t, 0, REEVE_NOTIF_OPENED, 1);
		rvt_notes_expect(&t, 1, REEVE_NOTIF_OPENED, 0);
	}
	rvt_notes_end(&t);
}
END_TEST

/* A close while it opens: FAILED, once, and the peer's question is void. */
START_TEST(an_open_is_called_off)
{
	reeve_notif_event_t ev;
	uint64_t ticket;

	prepare();
	start();
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), -1), 0); /* while it connects */
	failed(0, REEVE_ECANCELED, REEVE_STEP_NONE);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_next(&t, 1, REEVE_NOTIF_VALIDATE, &ev);
	ticket = ev.ticket;
	ck_assert_int_eq(reeve_notif_close(t.p[1], id(0), -1), REEVE_ENOTCONN); /* nothing of its */
	reeve_notif_release(t.p[1], &ev);
	ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), -1), 0); /* while it is asked */
	failed(0, REEVE_ECANCELED, REEVE_STEP_NONE);
	RVT_UNTIL(reeve_notif_answer(t.p[1], ticket, 1) == REEVE_ESTALE ||
	    (reeve_notif_answer(t.p[1], ticket, 0), 1));
	rvt_notes_forget(&t, 1);
	rvt_notes_end(&t);
}
END_TEST

/* Many peers at once, one of which cannot be reached. */
START_TEST(many_peers)
{
	struct rvt_notes_cfg cfg = {.cfg = {&nc[0], &nc[1]}, .net = {.nodes = 6, .workers = 1}};
	reeve_notif_event_t ev;
	unsigned opens = 0, fails = 0;

	prepare();
	nc[0].flags = nc[1].flags = REEVE_NOTIF_ACCEPT_ALL;
	rvt_notes_start(&t, &cfg);
	for (unsigned i = 1; i < 6; i++)
		ck_assert_int_eq(reeve_notif_open(t.p[0], id(i)), 0);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(3)), REEVE_EBUSY);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(0)), 0); /* ourselves */
	while (opens < 5 || fails < 1) {
		ck_assert_int_eq(reeve_notif_next(t.p[0], &ev, RVT_WAIT_MS), 0);
		if (ev.type == REEVE_NOTIF_OPENED)
			opens++;
		else if (ev.type == REEVE_NOTIF_FAILED && ev.reason.rc == REEVE_EDIAL)
			fails++;
		reeve_notif_release(t.p[0], &ev);
	}
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).streams, 5);
	rvt_notes_quiet(&t, 0, 0);
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN_TABLE("notif_open", {&both_are_asked_and_see_the_handshakes, 0}, {&a_refusal_is_told, 0},
    {&refusing_what_was_asked_for_ends_both, 0}, {&streams_are_opened_again_with_new_handshakes, 0},
    {&both_open_at_once, 3}, {&peers_that_are_not_there, 2}, {&opening_connects, 0},
    {&no_protocol_in_common, 0}, {&fallback_names, 2}, {&handshakes_without_bytes, 0},
    {&auto_accept_is_for_what_was_asked_for, 0}, {&an_answer_that_is_too_late_is_stale, 2},
    {&an_open_is_called_off, 0}, {&many_peers, 0})
