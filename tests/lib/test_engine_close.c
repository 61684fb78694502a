/* test_engine_close.c - close, drop, reset and stop in every state of a stream: what leaves, in
 * what order, and the timer. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_rig r;

enum verb { CLOSE, CLOSE_UNREAD, DROP, RESET, STOP_CLOSE };
enum peer { PEER_OPEN, PEER_FIN, PEER_RST };

/* One row: a stream opened here; what had happened; the verb; what leaves then. */
struct row {
	bool synced;  /* its SYN had left */
	unsigned out; /* bytes queued */
	bool shut;    /* shut before, FIN sent unless bytes are queued */
	enum peer peer;
	enum verb verb;
	const char *wire; /* frames after the verb */
};

/* d: DATA, s: DATA[SYN], o: WU[SYN|FIN], f: WU[FIN], r: WU[RST] with 9 or 0 */
static const struct row rows[] = {
    {false, 0, false, PEER_OPEN, CLOSE, "o"},
    {false, 0, false, PEER_OPEN, DROP, ""},
    {false, 0, false, PEER_OPEN, RESET, ""},
    {false, 5, false, PEER_OPEN, CLOSE, "sf"},
    {false, 5, false, PEER_OPEN, DROP, "sr"},
    {false, 5, false, PEER_OPEN, RESET, ""},
    {false, 5, true, PEER_OPEN, DROP, "sfr"},
    {true, 0, false, PEER_OPEN, CLOSE, "f"},
    {true, 0, false, PEER_OPEN, CLOSE_UNREAD, "fr"},
    {true, 0, false, PEER_OPEN, DROP, "r"},
    {true, 0, false, PEER_OPEN, RESET, "r"},
    {true, 0, false, PEER_OPEN, STOP_CLOSE, "f"},
    {true, 5, false, PEER_OPEN, CLOSE, "df"},
    {true, 5, false, PEER_OPEN, CLOSE_UNREAD, "dfr"},
    {true, 5, false, PEER_OPEN, DROP, "dr"},
    {true, 5, false, PEER_OPEN, RESET, "r"},
    {true, 0, true, PEER_OPEN, CLOSE, ""},
    {true, 0, true, PEER_OPEN, CLOSE_UNREAD, "r"},
    {true, 0, true, PEER_OPEN, DROP, "r"},
    {true, 0, true, PEER_OPEN, RESET, "r"},
    {true, 5, true, PEER_OPEN, CLOSE, "df"},
    {true, 5, true, PEER_OPEN, DROP, "dfr"},
    {true, 5, true, PEER_OPEN, RESET, "r"},
    {true, 0, false, PEER_FIN, CLOSE, "f"},
    {true, 0, false, PEER_FIN, CLOSE_UNREAD, "f"},
    {true, 0, false, PEER_FIN, DROP, "f"},
    {true, 0, false, PEER_FIN, RESET, "r"},
    {true, 5, false, PEER_FIN, CLOSE, "df"},
    {true, 5, false, PEER_FIN, DROP, "df"},
    {true, 5, false, PEER_FIN, RESET, "r"},
    {true, 0, true, PEER_FIN, CLOSE, ""},
    {true, 0, true, PEER_FIN, DROP, ""},
    {true, 0, true, PEER_FIN, RESET, ""},
    {true, 5, true, PEER_FIN, DROP, "df"},
    {true, 0, false, PEER_RST, CLOSE, ""},
    {true, 5, false, PEER_RST, CLOSE_UNREAD, ""},
    {true, 5, false, PEER_RST, DROP, ""},
    {true, 0, true, PEER_RST, RESET, ""},
};
#define NROWS (int)(sizeof(rows) / sizeof(rows[0]))

static void
want_wire(const char *w, uint32_t id, uint32_t code)
{
	for (; *w != '\0'; w++) {
		switch (*w) {
		case 'd':
			rvt_want(&r, RVT_DATA, 0, id, 5);
			break;
		case 's':
			rvt_want(&r, RVT_DATA, RVT_SYN, id, 5);
			break;
		case 'o':
			rvt_want(&r, RVT_WU, RVT_SYN | RVT_FIN, id, 0);
			break;
		case 'f':
			rvt_want(&r, RVT_WU, RVT_FIN, id, 0);
			break;
		default:
			rvt_want(&r, RVT_WU, RVT_RST, id, code);
			break;
		}
	}
	rvt_want_none(&r);
}

static void
act(struct rv_stream *st, enum verb v)
{
	const struct rv_engine_ops *o = r.e->ops;

	if (v == STOP_CLOSE)
		o->stop(r.e, st);
	if (v == DROP)
		o->drop(r.e, st);
	else if (v == RESET)
		o->reset(r.e, st, 9);
	else
		o->close(r.e, st, v == CLOSE_UNREAD, r.now);
}

START_TEST(verb_in_state_sends_exactly)
{
	const struct row *w = &rows[_i];
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_DIALER, NULL, NULL);
	st = w->synced ? rvt_outbound(&r) : rvt_open(&r);
	if (w->shut && w->out == 0) {
		r.e->ops->shut(r.e, st);
		rvt_drain(&r, 0);
		rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
	}
	if (w->out > 0)
		rvt_send(&r, st, w->out);
	if (w->shut)
		r.e->ops->shut(r.e, st);
	if (w->peer != PEER_OPEN)
		rvt_put(&r.in, RVT_WU, w->peer == PEER_FIN ? RVT_FIN : RVT_RST, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	r.at = r.nev;
	act(st, w->verb);
	rvt_drain(&r, 0);
	want_wire(w->wire, 1, w->verb == RESET ? 9 : 0);
	/* After close or drop: no event but TAKEN and GONE, whatever comes. */
	rvt_put(&r.in, RVT_WU, 0, 1, 5);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	rvt_put(&r.in, RVT_WU, RVT_RST, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
	rvt_no_event(&r);
	ck_assert_uint_eq(r.e->nstreams, 0);
	ck_assert_uint_eq(r.e->nunacked, 0);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e) < r.now + 10000000, 0);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(data_for_a_closed_stream_is_reset_once)
{
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_DIALER, NULL, NULL);
	st = rvt_outbound(&r);
	r.e->ops->close(r.e, st, false, r.now);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
	rvt_put_data(&r.in, 0, 1, 1000, 0);
	rvt_put_data(&r.in, 0, 1, 1000, 1000);
	ck_assert_int_eq(rvt_feed(&r, 100), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 0);
	rvt_put_data(&r.in, RVT_FIN, 1, 100000, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
	rvt_no_event(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(close_inside_a_body_resets_at_the_next_part)
{
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	st = rvt_inbound(&r, 1);
	rvt_put_data(&r.in, RVT_FIN, 1, 1000, 0);
	r.in.n -= 500;
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 500);
	if (_i == 0)
		r.e->ops->close(r.e, st, false, r.now);
	else
		r.e->ops->drop(r.e, st);
	memset(rvt_bytes_more(&r.in, 500), 1, 500);
	ck_assert_int_eq(rvt_feed(&r, 3), 0);
	rvt_drain(&r, 0);
	if (_i == 0)
		rvt_want(&r, RVT_WU, RVT_FIN, 1, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 0);
	rvt_want_none(&r);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
	rvt_no_event(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(reset_inside_a_body_drains_the_rest)
{
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	st = rvt_inbound(&r, 1);
	rvt_put_data(&r.in, 0, 1, 1000, 0);
	r.in.n -= 500;
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	r.e->ops->reset(r.e, st, 3);
	if (_i == 1)
		rvt_drain(&r, 0); /* the record leaves before the body ends */
	rvt_notify(&r);
	memset(rvt_bytes_more(&r.in, 500), 1, 500);
	rvt_put(&r.in, RVT_PING, RVT_SYN, 0, 1);
	ck_assert_int_eq(rvt_feed(&r, 7), 0);
	rvt_drain(&r, 0);
	if (_i == 1)
		rvt_want(&r, RVT_WU, RVT_RST, 1, 3);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 1);
	if (_i == 0)
		rvt_want(&r, RVT_WU, RVT_RST, 1, 3);
	rvt_want_none(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 500);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(lingering_stream_is_reset_after_its_time)
{
	reeve_cfg_t cfg;
	struct rv_stream *st;

	rvt_cfg(&cfg);
	cfg.linger_ms = 1000;
	cfg.keepalive_ms = REEVE_OFF;
	rvt_rig_init(&r, REEVE_DIALER, &cfg, NULL);
	for (uint32_t id = 1; id <= 5; id += 2) {
		st = rvt_outbound(&r);
		if (id == 3) /* the peer grants nothing for the rest: FIN never leaves */
			rvt_send(&r, st, RV_WINDOW0 + 5);
		if (id == 5)
			r.e->ops->drop(r.e, st);
		else
			r.e->ops->close(r.e, st, false, r.now);
		rvt_drain(&r, 0);
		r.out.at = r.out.n;
		r.now += 1000;
	}
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(r.e->nstreams, 2); /* the dropped one was reset at once */
	r.now += 997000;
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now);
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now - 1), 0);
	ck_assert(!r.e->ops->has_output(r.e));
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 0);
	rvt_want_none(&r);
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now + 1000), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 3, 0);
	rvt_want_none(&r);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 3)->taken, RV_WINDOW0 + 5);
	ck_assert_uint_eq(r.e->nstreams, 0);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(linger_off_waits_for_ever)
{
	reeve_cfg_t cfg;

	rvt_cfg(&cfg);
	cfg.linger_ms = cfg.keepalive_ms = REEVE_OFF;
	rvt_rig_init(&r, REEVE_DIALER, &cfg, NULL);
	rvt_put(&r.in, RVT_PING, RVT_ACK, 0, 0);
	r.e->ops->close(r.e, rvt_outbound(&r), false, r.now);
	rvt_drain(&r, 0);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), UINT64_MAX);
	ck_assert_int_eq(r.e->ops->tick(r.e, UINT64_MAX / 2), 0);
	ck_assert_uint_eq(r.e->nstreams, 1);
	rvt_rig_fini(&r);
}
END_TEST

/* Whoever takes the blocks that were let go writes over them. */
static void
scribble(void)
{
	reeve_buf_t *b[8];

	for (int i = 0; i < 8; i++) {
		b[i] = rv_buf_alloc(r.pool, 10000);
		memset(b[i]->slab->data, 0xee, b[i]->slab->cap);
	}
	for (int i = 0; i < 8; i++)
		rv_buf_unref(b[i]);
}

/* Queued bytes go, bytes in a gather stay: what is half in a gather stays readable until it was
 * taken. */
START_TEST(reset_keeps_what_is_in_a_gather)
{
	struct rv_stream *st;
	struct rvt_frame f;

	rvt_rig_init(&r, REEVE_DIALER, NULL, NULL);
	st = rvt_outbound(&r);
	(void)rvt_outbound(&r); /* so that there are two to serve */
	rvt_send(&r, rvt_seen(&r, 3)->st, 100000);
	rvt_send(&r, st, 200000);
	rvt_send(&r, st, 50000);
	(void)r.e->ops->drain(r.e, r.g, r.now); /* all of it fits: 300 KiB */
	rvt_send(&r, st, 10000);                /* beyond the credit left: 12144 fit */
	rvt_send(&r, st, 10000);
	rv_gather_sent(r.e, r.g, 1000);
	(void)r.e->ops->drain(r.e, r.g, r.now);
	ck_assert_uint_gt(st->inflight, 0);
	ck_assert(st->out.bytes > 0);
	ck_assert(st->flags & RV_ST_PART);
	if (_i == 0) {
		r.e->ops->reset(r.e, st, 6);
	} else {
		rvt_put(&r.in, RVT_WU, RVT_RST, 1, 0);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
		(void)rvt_event(&r, RV_EV_RST, 1);
	}
	scribble();
	rvt_notify(&r);
	rvt_no_event(&r);
	rvt_bytes_pack(&r.out);
	/* What was handed out of the gather before: its first 1000 bytes. */
	rvt_put_data(&r.out, 0, 3, 16384, 0);
	r.out.n = 1000;
	rvt_drain(&r, 777);
	rvt_notify(&r);
	(void)rvt_event(&r, RV_EV_GONE, 1);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, rvt_seen(&r, 1)->queued);
	while (rvt_next(&r.out, &f)) {
		if (f.type == RVT_DATA) {
			struct rvt_seen *s = rvt_seen(&r, f.id);

			for (uint32_t i = 0; i < f.len; i++)
				RVT_CHECK(f.body[i] == rvt_byte(f.id, s->out + i));
			s->out += f.len;
		} else {
			ck_assert(_i == 0 && f.flags == RVT_RST && f.len == 6);
		}
	}
	ck_assert_uint_eq(r.out.at, r.out.n);
	ck_assert_uint_eq(rvt_seen(&r, 1)->out, RV_WINDOW0);
	rvt_rig_fini(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_close");

	tcase_add_loop_test(t, verb_in_state_sends_exactly, 0, NROWS);
	tcase_add_test(t, data_for_a_closed_stream_is_reset_once);
	tcase_add_loop_test(t, close_inside_a_body_resets_at_the_next_part, 0, 2);
	tcase_add_loop_test(t, reset_inside_a_body_drains_the_rest, 0, 2);
	tcase_add_test(t, lingering_stream_is_reset_after_its_time);
	tcase_add_test(t, linger_off_waits_for_ever);
	tcase_add_loop_test(t, reset_keeps_what_is_in_a_gather, 0, 2);
	return rvt_run_tcase("engine_close", t);
}
