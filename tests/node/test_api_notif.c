/* test_api_notif.c - the calls of reeve/notif.h: arguments, what they answer, from where they may be called. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/notes.h"
#include "tests/kit/run.h"

static struct rvt_net net;
static struct rvt_notes t;

START_TEST(install_checks_its_configuration)
{
	static const struct rvt_net_cfg nc;
	static const char *const bad[] = {"no slash"};
	struct {
		reeve_notif_cfg_t cfg;
		uint64_t more;
	} newer;
	reeve_notif_cfg_t cfg;
	reeve_notif_t *p, *q = NULL;
	reeve_node_t *n;

	rvt_net_start(&net, &nc);
	n = net.node[0].n;
	reeve_notif_cfg_init_sized(NULL, 8);
	rvt_notes_cfg(&cfg, "x");
	ck_assert_uint_eq(cfg.size, sizeof(cfg));
	ck_assert_int_eq(reeve_notif_install(NULL, n, &cfg), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_install(&p, NULL, &cfg), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_install(&p, n, NULL), REEVE_EINVAL);
	cfg.size = 0;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	rvt_notes_cfg(&cfg, "x");
	cfg.flags = 0x100;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	rvt_notes_cfg(&cfg, "x");
	cfg.nnames = 0;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	rvt_notes_cfg(&cfg, "x");
	cfg.names = bad;
	cfg.nnames = 1;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	rvt_notes_cfg(&cfg, "x");
	cfg.max_size = (UINT64_C(1) << 30) + 1;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	rvt_notes_cfg(&cfg, "longer than a message");
	cfg.max_size = 4;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	rvt_notes_cfg(&cfg, NULL);
	cfg.handshake_len = 1;
	ck_assert_int_eq(reeve_notif_install(&p, n, &cfg), REEVE_EINVAL);
	/* A newer caller's structure, with and without something that we do not know. */
	memset(&newer, 0, sizeof(newer));
	rvt_notes_cfg(&newer.cfg, "x");
	newer.cfg.size = sizeof(newer);
	newer.more = 1;
	ck_assert_int_eq(reeve_notif_install(&p, n, &newer.cfg), REEVE_EINVAL);
	newer.more = 0;
	ck_assert_int_eq(reeve_notif_install(&p, n, &newer.cfg), 0);
	ck_assert_int_eq(reeve_notif_install(&q, n, &newer.cfg), REEVE_EBUSY);
	ck_assert_ptr_null(q);
	ck_assert_int_eq(reeve_node_close(n, 0), 0);
	ck_assert_int_eq(reeve_notif_install(&q, n, &newer.cfg), REEVE_ECLOSED);
	rvt_net_end(&net);
}
END_TEST

START_TEST(calls_check_their_arguments)
{
	static const struct rvt_notes_cfg nc;
	reeve_notif_event_t ev;
	reeve_notif_t *p;
	char longer[REEVE_PEER_TEXT + 1];
	const char *peer;

	rvt_notes_start(&t, &nc);
	p = t.p[0];
	peer = t.net.node[1].id;
	memset(longer, 'a', sizeof(longer));
	longer[REEVE_PEER_TEXT] = '\0';
	ck_assert_int_eq(reeve_notif_open(NULL, peer), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_open(p, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_open(p, longer), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_close(NULL, peer, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_close(p, NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_close(p, peer, 0), REEVE_ENOTCONN);
	ck_assert_int_eq(reeve_notif_answer(NULL, 1, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_answer(p, 1, 1), REEVE_ESTALE);
	ck_assert_int_eq(reeve_notif_set_handshake(NULL, "x", 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_set_handshake(p, NULL, 1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_set_handshake(p, "x", 1u << 30), REEVE_ETOOBIG);
	ck_assert_int_eq(reeve_notif_set_handshake(p, NULL, 0), 0);
	ck_assert_ptr_null(reeve_notif_sink(NULL, peer));
	ck_assert_ptr_null(reeve_notif_sink(p, NULL));
	ck_assert_ptr_null(reeve_notif_sink(p, peer));
	ck_assert_ptr_null(reeve_sink_ref(NULL));
	reeve_sink_unref(NULL);
	ck_assert_int_eq(reeve_sink_try_send(NULL, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_sink_try_send(NULL, rvt_note(t.net.node[0].rt, 9, 0)), REEVE_EINVAL);
	ck_assert_int_eq(reeve_sink_send(NULL, rvt_note(t.net.node[0].rt, 9, 0), 0), REEVE_EINVAL);
	reeve_sink_send_async(NULL, rvt_note(t.net.node[0].rt, 9, 0), NULL);
	ck_assert_int_eq(reeve_notif_next(NULL, &ev, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_next(p, NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_notif_next(p, &ev, 0), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_notif_next(p, &ev, 5), REEVE_ETIMEDOUT);
	reeve_notif_release(NULL, NULL);
	reeve_notif_release(p, NULL);
	reeve_notif_resume(NULL, peer);
	reeve_notif_resume(p, NULL);
	reeve_notif_resume(p, peer);
	rvt_notes_end(&t);
}
END_TEST

static int blocked[2];
static reeve_sink_t *sink;

static void
block(void *arg)
{
	reeve_notif_event_t ev;

	(void)arg;
	blocked[0] = reeve_notif_next(t.p[0], &ev, 1000);
	blocked[1] = reeve_sink_send(sink, NULL, 1000);
}

START_TEST(what_blocks_is_refused_on_a_worker)
{
	static const struct rvt_notes_cfg nc;
	reeve_sink_t *k[2];
	reeve_notif_event_t ev;

	rvt_notes_start(&t, &nc);
	rvt_notes_open(&t, 0, 1, k);
	sink = k[0];
	rvt_on_worker(t.net.node[0].rt, block, NULL);
	ck_assert_int_eq(blocked[0], REEVE_EWORKER);
	ck_assert_int_eq(blocked[1], REEVE_EWORKER);
	ck_assert_int_eq(reeve_sink_try_send(k[0], rvt_note(t.net.node[0].rt, 9, 1)), 0);
	rvt_notes_next(&t, 1, REEVE_NOTIF_RECEIVED, &ev);
	rvt_note_check(&ev, 9, 1);
	ck_assert_ptr_eq(reeve_buf_ref(ev.data), ev.data); /* kept longer than the event */
	{
		reeve_buf_t *kept = ev.data;

		reeve_notif_release(t.p[1], &ev);
		ck_assert_uint_eq(reeve_buf_len(kept), 9);
		reeve_buf_unref(kept);
	}
	reeve_sink_unref(k[0]);
	reeve_sink_unref(k[1]);
	rvt_notes_end(&t);
}
END_TEST

/* A buffer that others see too, and one of the application's own bytes. */
START_TEST(any_buffer_can_be_sent)
{
	static const struct rvt_notes_cfg nc;
	static const char own[3000] = {0};
	reeve_sink_t *k[2];
	reeve_notif_event_t ev;
	reeve_buf_t *b, *part;

	rvt_notes_start(&t, &nc);
	rvt_notes_open(&t, 0, 1, k);
	b = rvt_note(t.net.node[0].rt, 5000, 3);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_sink_try_send(k[0], reeve_buf_ref(b)), 0);
	part = reeve_buf_slice(b, 0, 100);
	ck_assert_int_eq(reeve_sink_try_send(k[0], part), 0);
	ck_assert_int_eq(reeve_sink_try_send(
			     k[0], reeve_buf_wrap(t.net.node[0].rt, own, sizeof(own), NULL, NULL)),
	    0);
	for (unsigned i = 0; i < 5; i++) {
		rvt_notes_next(&t, 1, REEVE_NOTIF_RECEIVED, &ev);
		if (i < 3)
			rvt_note_check(&ev, 5000, 3);
		else if (i == 3)
			rvt_note_check(&ev, 100, 3);
		else
			ck_assert(memcmp(reeve_buf_data(ev.data), own, sizeof(own)) == 0);
		reeve_notif_release(t.p[1], &ev);
	}
	reeve_buf_unref(b);
	reeve_sink_unref(k[0]);
	reeve_sink_unref(k[1]);
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN("api_notif", &install_checks_its_configuration, &calls_check_their_arguments,
    &what_blocks_is_refused_on_a_worker, &any_buffer_can_be_sent)
