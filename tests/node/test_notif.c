/* test_notif.c - two nodes and a stream: it opens, messages go both ways in order, it ends. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/notes.h"
#include "tests/kit/run.h"

static struct rvt_notes t;
static reeve_sink_t *k[2];

static void
let_go(void)
{
	reeve_sink_unref(k[0]);
	reeve_sink_unref(k[1]);
	k[0] = k[1] = NULL;
}

static void
send_to(unsigned i, size_t n, uint32_t number)
{
	ck_assert_int_eq(
	    reeve_sink_send(k[i], rvt_note(t.net.node[i].rt, n, number), RVT_WAIT_MS), 0);
}

static void
receive(unsigned i, size_t n, uint32_t number)
{
	reeve_notif_event_t ev;

	rvt_notes_next(&t, i, REEVE_NOTIF_RECEIVED, &ev);
	ck_assert_str_eq(ev.peer, t.net.node[1 - i].id);
	rvt_note_check(&ev, n, number);
	reeve_notif_release(t.p[i], &ev);
}

START_TEST(a_stream_opens_carries_and_ends)
{
	static const struct rvt_notes_cfg cfg;
	static const size_t size[] = {
	    0, 1, 127, 128, 2047, 2048, 16384, 70000, 0, 262144, 1048576, 5};
	reeve_notif_event_t ev;

	rvt_notes_start(&t, &cfg);
	rvt_notes_open(&t, 0, 1, k);
	for (uint32_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		send_to(0, size[i], i);
		send_to(1, size[i], i + 100);
	}
	for (uint32_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		receive(1, size[i], i);
		receive(0, size[i], i + 100);
	}
	ck_assert_int_eq(reeve_notif_close(t.p[0], t.net.node[1].id, -1), 0);
	for (unsigned i = 0; i < 2; i++) {
		rvt_notes_next(&t, i, REEVE_NOTIF_CLOSED, &ev);
		ck_assert_int_eq(ev.reason.rc, 0);
		ck_assert_uint_eq(ev.reason.by, i == 0 ? REEVE_BY_US : REEVE_BY_PEER);
		ck_assert_uint_eq(ev.lost, 0);
		reeve_notif_release(t.p[i], &ev);
	}
	let_go();
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN("notif", &a_stream_opens_carries_and_ends)
