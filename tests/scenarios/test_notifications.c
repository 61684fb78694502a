/* test_notifications.c - failures of notification protocols: see README.md. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/notes.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

static struct rvt_notes t;

static uint32_t
scale(void)
{
	const char *s = getenv("REEVE_SCALE");
	int n = s != NULL ? atoi(s) : 1;

	return n > 0 ? (uint32_t)n : 1;
}

/* Twenty peers, one of which does not read: its queue fills and says so; the other nineteen get everything, in order;
 * memory grows by its queue and no more. */
START_TEST(scenario_114_one_slow_peer_of_twenty)
{
	enum { PEERS = 19 };
	struct rvt_notes_cfg cfg = {.net = {.nodes = PEERS + 1, .workers = 1}};
	reeve_notif_cfg_t nc;
	reeve_notif_event_t ev;
	reeve_sink_t *k[PEERS + 1][2];
	uint32_t all = 200 * scale(), sent[PEERS + 1] = {0}, got[PEERS + 1] = {0}, clogged = 0, i,
		 m;
	int rc;

	rvt_notes_cfg(&nc, NULL);
	nc.flags = REEVE_NOTIF_ACCEPT_ALL;
	nc.send_queue = nc.recv_queue = 64 * 1024;
	cfg.cfg[0] = cfg.cfg[1] = &nc;
	rvt_notes_start(&t, &cfg);
	for (i = 1; i <= PEERS; i++)
		rvt_notes_open(&t, 0, i, k[i]);
	for (m = 0; m < all; m++) {
		for (i = 1; i <= PEERS; i++) {
			rc = reeve_sink_try_send(
			    k[i][0], rvt_note(t.net.node[0].rt, 1000, sent[i]));
			if (rc == 0)
				sent[i]++;
			else if (i == 1)
				clogged++;
			else
				ck_assert_int_eq(rc, REEVE_ECLOGGED);
			/* All but the first take what is there. */
			while (i > 1 && reeve_notif_next(t.p[i], &ev, rc == 0 ? 0 : 5) == 0) {
				rvt_note_check(&ev, 1000, got[i]++);
				reeve_notif_release(t.p[i], &ev);
			}
		}
		/* What is queued is at most a queue for each. */
		ck_assert_uint_le(rvt_net_stats(&t.net, 0).queued, PEERS * (nc.send_queue + 1002));
	}
	while (reeve_sink_try_send(k[1][0], rvt_note(t.net.node[0].rt, 1000, sent[1])) == 0)
		sent[1]++;
	ck_assert_uint_ge(rvt_net_stats(&t.net, 0).notif_clogged, clogged);
	ck_assert_uint_le(rvt_net_stats(&t.net, 1).held, nc.recv_queue + 1000);
	for (i = 2; i <= PEERS; i++) {
		for (; got[i] < sent[i]; got[i]++) {
			rvt_notes_next(&t, i, REEVE_NOTIF_RECEIVED, &ev);
			rvt_note_check(&ev, 1000, got[i]);
			reeve_notif_release(t.p[i], &ev);
		}
		ck_assert_uint_gt(sent[i], all / 2);
	}
	ck_assert_uint_eq(rvt_net_stats(&t.net, 0).peers, PEERS);
	for (i = 0; i < sent[1]; i++) { /* it was slow, it lost nothing */
		rvt_notes_next(&t, 1, REEVE_NOTIF_RECEIVED, &ev);
		rvt_note_check(&ev, 1000, i);
		reeve_notif_release(t.p[1], &ev);
	}
	for (i = 1; i <= PEERS; i++) {
		reeve_sink_unref(k[i][0]);
		reeve_sink_unref(k[i][1]);
	}
	rvt_notes_end(&t);
}
END_TEST

/* A stream that breaks, of each kind, while another protocol's stream with the same peer goes on. */
START_TEST(scenario_124_one_bad_stream_ends_alone)
{
	static const char *const names[] = {"/beside/1"};
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {{"\x80\x00", 2}, {"\xff\xff\xff\xff\x7f", 5}, {"\5hel", 4}, {"", 0}, {"", 0}};
	struct rvt_notes_cfg cfg = {.net = {.via = RVT_TCP}};
	struct rvt_stranger s;
	reeve_stream_t *out, *in, *beside;
	reeve_notif_cfg_t bc;
	reeve_notif_t *b;
	reeve_notif_event_t ev;

	rvt_notes_start(&t, &cfg);
	reeve_notif_cfg_init(&bc);
	bc.names = names;
	bc.nnames = 1;
	bc.flags = REEVE_NOTIF_ACCEPT_ALL;
	ck_assert_int_eq(reeve_notif_install(&b, t.net.node[0].n, &bc), 0);
	rvt_wild_marry(&t, &s, &out, &in);
	/* The other protocol's stream, by hand too. */
	ck_assert_int_eq(reeve_open(s.k, &beside, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_negotiate(beside, REEVE_DIALER, names, 1, RVT_WAIT_MS), 0);
	rvt_wild_write(beside, "\0", 1);
	rvt_wild_read(beside, "\0", 1);
	{
		reeve_stream_t *back;

		ck_assert_int_eq(reeve_accept(s.k, &back, RVT_WAIT_MS), 0);
		ck_assert_int_eq(reeve_negotiate(back, REEVE_LISTENER, names, 1, RVT_WAIT_MS), 0);
		rvt_wild_read(back, "\0", 1);
		rvt_wild_write(back, "\0", 1);
		ck_assert_int_eq(reeve_notif_next(b, &ev, RVT_WAIT_MS), 0);
		ck_assert_uint_eq(ev.type, REEVE_NOTIF_OPENED);
		reeve_notif_release(b, &ev);
		if (bad[_i].n > 0)
			rvt_wild_write(out, bad[_i].bytes, bad[_i].n);
		if (_i == 2 || _i == 3)
			(void)reeve_shut(out);
		if (_i == 4)
			(void)reeve_reset(out, 7);
		rvt_notes_next(&t, 0, REEVE_NOTIF_CLOSED, &ev);
		if (_i == 4)
			ck_assert_uint_eq(ev.reason.wire_code, 7);
		reeve_notif_release(t.p[0], &ev);
		ck_assert_int_le(rvt_wild_end(in), 0); /* the peer hears at once */
		for (uint32_t i = 0; i < 100; i++) {
			rvt_wild_write(beside, "\1B", 2);
			ck_assert_int_eq(reeve_notif_next(b, &ev, RVT_WAIT_MS), 0);
			ck_assert_uint_eq(ev.type, REEVE_NOTIF_RECEIVED);
			reeve_notif_release(b, &ev);
		}
		ck_assert_uint_eq(rvt_net_stats(&t.net, 0).conns, 1);
		reeve_close(back);
	}
	reeve_close(beside);
	reeve_close(out);
	reeve_close(in);
	rvt_stranger_end(&s);
	ck_assert_int_eq(reeve_node_close(t.net.node[0].n, 0), 0);
	while (reeve_notif_next(b, &ev, 0) == 0)
		reeve_notif_release(b, &ev);
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN_TABLE("notifications", {&scenario_114_one_slow_peer_of_twenty, 0},
    {&scenario_124_one_bad_stream_ends_alone, 5})
