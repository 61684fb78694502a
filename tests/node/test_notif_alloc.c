/* test_notif_alloc.c - a stream's life in which allocation number n fails, for every n, alone or with all behind it: every
 * call works or answers what follows from it, every open has its outcome, every OPENED its CLOSED, and nothing stays. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/notes.h"
#include "tests/kit/run.h"

static struct rvt_notes t;

static void
spare(struct rvt_notes *n, uint64_t nth, bool rest)
{
	rvt_alloc_fail(&n->net.alloc, nth, rest);
}

/* Events of both until the one of node i that ends it: OPENED (sink) or FAILED and CLOSED (NULL). */
static reeve_sink_t *
outcome(unsigned i, uint64_t until)
{
	reeve_notif_event_t ev;
	reeve_sink_t *k = NULL;
	bool over = false;

	while (!over) {
		ck_assert_uint_lt(rvt_ms(), until);
		for (unsigned j = 0; j < 2 && !over; j++) {
			if (reeve_notif_next(t.p[j], &ev, 2) != 0)
				continue;
			if (ev.type == REEVE_NOTIF_VALIDATE) {
				(void)reeve_notif_answer(t.p[j], ev.ticket, 1);
			} else if (j == i && ev.type == REEVE_NOTIF_OPENED) {
				k = reeve_sink_ref(ev.sink);
				over = true;
			} else if (j == i && ev.type != REEVE_NOTIF_RECEIVED) {
				over = true;
			}
			reeve_notif_release(t.p[j], &ev);
		}
	}
	return k;
}

static void
talk(void)
{
	uint64_t until = rvt_ms() + 10000;
	struct rvt_done d;
	reeve_buf_t *b;
	reeve_sink_t *k;

	if (reeve_notif_open(t.p[0], t.net.node[1].id) != 0)
		return;
	k = outcome(0, until);
	if (k == NULL)
		return;
	for (unsigned i = 0; i < 4; i++) {
		b = reeve_buf_alloc(t.net.node[0].rt, i % 2 == 0 ? 100 : 5000);
		if (b != NULL && i < 2)
			(void)reeve_sink_try_send(k, reeve_buf_ref(b));
		(void)reeve_sink_try_send(k, i == 3 ? NULL : reeve_buf_ref(b));
		reeve_buf_unref(b);
	}
	rvt_done_init(&d, -1);
	reeve_sink_send_async(k, NULL, &d.op);
	(void)rvt_done_wait(&d);
	(void)reeve_notif_close(t.p[0], t.net.node[1].id, 100);
	reeve_sink_unref(k);
	ck_assert_ptr_null(outcome(0, until));
}

/* False: it was over before allocation n. */
static bool
life(uint64_t n, bool rest)
{
	static struct rvt_notes_cfg cfg = {.net = {.workers = 1, .node = {.negotiate_ms = 300}}};
	reeve_notif_cfg_t nc;
	bool failed;

	rvt_notes_cfg(&nc, "hello");
	nc.handshake_ms = 200;
	cfg.cfg[0] = cfg.cfg[1] = &nc;
	rvt_notes_start(&t, &cfg);
	rvt_net_connect(&t.net, 0, 1);
	RVT_UNTIL(rvt_net_stats(&t.net, 1).peers == 1);
	spare(&t, n, rest);
	talk();
	failed = rvt_alloc_failed(&t.net.alloc);
	spare(&t, 0, false);
	rvt_notes_end(&t);
	return failed;
}

START_TEST(every_allocation_fails_once)
{
	uint64_t n = 1;

	while (life(n, false))
		n++;
	ck_assert_uint_gt(n, 20);
}
END_TEST

START_TEST(every_allocation_from_one_on_fails)
{
	for (uint64_t n = 1; life(n, true); n += 3)
		;
}
END_TEST

RVT_MAIN("notif_alloc", &every_allocation_fails_once, &every_allocation_from_one_on_fails)
