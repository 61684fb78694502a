/* test_mplex_engine.c - streams of mplex: every frame and every request in every state, ids, names, late frames. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <string.h>

static struct rvt_rig r;

static void
setup(void)
{
	rvt_mp_init(&r, NULL, NULL);
}

static void
teardown(void)
{
	rvt_rig_fini(&r);
}

/* --- the state table, for a stream that either side has opened: rows are states, columns what happens to it */

enum { OPEN, SHUT, ENDED, BOTH, RESET, STATES };
enum { GETS_DATA, GETS_CLOSE, GETS_RESET, SENDS, SHUTS, CLOSES, DROPS, RESETS, EVENTS };

/* What is seen of it: bytes delivered, events, frames sent. */
struct outcome {
	bool got, fin, rst, data, close, reset, gone;
};

static const struct outcome table[STATES][EVENTS] = {
    /* open both ways */
    [OPEN] = {[GETS_DATA] = {.got = true},
	[GETS_CLOSE] = {.fin = true},
	[GETS_RESET] = {.rst = true, .gone = true},
	[SENDS] = {.data = true},
	[SHUTS] = {.close = true},
	[CLOSES] = {.close = true}, /* and waits for the peer's end */
	[DROPS] = {.reset = true, .gone = true},
	[RESETS] = {.reset = true, .gone = true}},
    /* we have closed our direction */
    [SHUT] = {[GETS_DATA] = {.got = true},
	[GETS_CLOSE] = {.fin = true, .gone = true},
	[GETS_RESET] = {.rst = true, .gone = true},
	[SENDS] = {0},
	[SHUTS] = {0},
	[CLOSES] = {0},
	[DROPS] = {.reset = true, .gone = true}, /* nobody reads: the peer is told */
	[RESETS] = {.reset = true, .gone = true}},
    /* the peer has closed its direction */
    [ENDED] = {[GETS_DATA] = {0},
	[GETS_CLOSE] = {0},
	[GETS_RESET] = {.rst = true, .gone = true},
	[SENDS] = {.data = true},
	[SHUTS] = {.close = true, .gone = true},
	[CLOSES] = {.close = true, .gone = true},
	[DROPS] = {.close = true, .gone = true},
	[RESETS] = {.reset = true, .gone = true}},
    /* both have: it is not in the table any more */
    [BOTH] = {[GETS_DATA] = {0}},
    /* the peer has reset it: nor this */
    [RESET] = {[GETS_DATA] = {0}},
};

static void
bring(struct rv_stream *st, int state, bool ours, uint64_t id)
{
	if (state == SHUT || state == BOTH) {
		r.e->ops->shut(r.e, st);
		rvt_drain(&r, 0);
		rvt_mp_want(&r, ours ? RVT_MP_CLOSE_I : RVT_MP_CLOSE_R, id, 0);
	}
	if (state == ENDED || state == BOTH) {
		rvt_mp_say(&r, ours ? RVT_MP_CLOSE_R : RVT_MP_CLOSE_I, id);
		(void)rvt_event(&r, RV_EV_FIN, rvt_mp_key(id, ours));
	}
	if (state == RESET) {
		rvt_mp_say(&r, ours ? RVT_MP_RESET_R : RVT_MP_RESET_I, id);
		(void)rvt_event(&r, RV_EV_RST, rvt_mp_key(id, ours));
	}
}

static void
happen(struct rv_stream *st, int event, bool ours, uint64_t id)
{
	const struct rv_engine_ops *o = r.e->ops;

	switch (event) {
	case GETS_DATA:
		rvt_mp_data(&r.in, ours ? RVT_MP_DATA_R : RVT_MP_DATA_I, id, 10, 0);
		rvt_mp_feed(&r);
		break;
	case GETS_CLOSE:
		rvt_mp_say(&r, ours ? RVT_MP_CLOSE_R : RVT_MP_CLOSE_I, id);
		break;
	case GETS_RESET:
		rvt_mp_say(&r, ours ? RVT_MP_RESET_R : RVT_MP_RESET_I, id);
		break;
	case SENDS:
		rvt_send(&r, st, 10);
		break;
	case SHUTS:
		o->shut(r.e, st);
		break;
	case CLOSES:
		o->close(r.e, st, false, r.now);
		break;
	case DROPS:
		o->drop(r.e, st);
		break;
	default:
		o->reset(r.e, st, 5);
		break;
	}
}

START_TEST(every_event_in_every_state)
{
	bool ours = _i % 2;
	int event = _i / 2 % EVENTS, state = _i / 2 / EVENTS;
	const struct outcome *o = &table[state][event];
	struct rv_stream *st = ours ? rvt_mp_outbound(&r) : rvt_mp_inbound(&r, 0);
	uint64_t key = rvt_mp_key(0, ours);
	struct rvt_seen *s;

	bring(st, state, ours, 0);
	happen(st, event, ours, 0);
	rvt_mp_flush(&r);
	s = rvt_seen(&r, key);
	ck_assert_uint_eq(s->got, o->got ? 10 : 0);
	if (o->fin)
		(void)rvt_event(&r, RV_EV_FIN, key);
	if (o->rst)
		(void)rvt_event(&r, RV_EV_RST, key);
	if (o->data)
		rvt_mp_want(&r, ours ? RVT_MP_DATA_I : RVT_MP_DATA_R, 0, 10);
	if (o->close)
		rvt_mp_want(&r, ours ? RVT_MP_CLOSE_I : RVT_MP_CLOSE_R, 0, 0);
	if (o->reset)
		rvt_mp_want(&r, ours ? RVT_MP_RESET_I : RVT_MP_RESET_R, 0, 0);
	rvt_mp_want_none(&r);
	if (o->gone || state >= BOTH)
		(void)rvt_event(&r, RV_EV_GONE, key);
	rvt_no_event(&r);
	ck_assert_int_eq(s->gone, o->gone || state >= BOTH);
}
END_TEST

/* --- ids */

/* The same id opened by either end: two streams, and ends of one are not the other's. */
START_TEST(id_of_both_ends_is_two_streams)
{
	struct rv_stream *mine = rvt_mp_outbound(&r), *theirs = rvt_mp_inbound(&r, 0);

	ck_assert_uint_eq(rv_mp_id(mine->id), rv_mp_id(theirs->id));
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 1000, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_R, 0, 2000, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 0, 500, 1000);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_seen(&r, theirs->id)->got, 1500);
	ck_assert_uint_eq(rvt_seen(&r, mine->id)->got, 2000);
	rvt_send(&r, mine, 11);
	rvt_send(&r, theirs, 12);
	rvt_mp_flush(&r);
	rvt_mp_want(&r, RVT_MP_DATA_I, 0, 11);
	rvt_mp_want(&r, RVT_MP_DATA_R, 0, 12);
	rvt_mp_say(&r, RVT_MP_RESET_I, 0); /* theirs */
	(void)rvt_event(&r, RV_EV_RST, 2);
	rvt_mp_data(&r.in, RVT_MP_DATA_R, 0, 7, 2000);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(0, true))->got, 2007);
	r.e->ops->shut(r.e, mine);
	rvt_mp_say(&r, RVT_MP_CLOSE_R, 0);
	rvt_mp_flush(&r);
	rvt_mp_want(&r, RVT_MP_CLOSE_I, 0, 0);
	rvt_mp_want_none(&r);
}
END_TEST

START_TEST(ids_are_given_in_order_and_end)
{
	struct rv_stream *st = NULL;

	for (unsigned i = 0; i < 20; i++)
		ck_assert_uint_eq(rv_mp_id(rvt_open(&r)->id), i);
	rv_mplex_set_next_id(r.e, RV_MP_ID_LAST);
	st = rvt_open(&r);
	ck_assert_uint_eq(rv_mp_id(st->id), RV_MP_ID_LAST);
	rvt_send(&r, st, 3);
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_EEXHAUSTED);
	rvt_drain(&r, 0);
	for (unsigned i = 0; i < 20; i++)
		rvt_mp_want(&r, RVT_MP_OPEN, i, 0);
	rvt_mp_want(&r, RVT_MP_OPEN, RV_MP_ID_LAST, 0);
	rvt_mp_want(&r, RVT_MP_DATA_I, RV_MP_ID_LAST, 3);
}
END_TEST

START_TEST(ids_of_60_bits_are_told_apart)
{
	static const uint64_t ids[] = {0, 1, UINT64_C(1) << 29, (UINT64_C(1) << 32) - 1,
	    UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1, UINT64_C(1) << 59, RV_MP_ID_LAST};

	for (unsigned i = 0; i < 8; i++)
		(void)rvt_mp_inbound(&r, ids[i]);
	for (unsigned i = 0; i < 8; i++)
		rvt_mp_data(&r.in, RVT_MP_DATA_I, ids[i], 10 + i, 0);
	rvt_mp_feed(&r);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(ids[i], false))->got, 10 + i);
	for (unsigned i = 0; i < 8; i++) {
		rvt_mp_say(&r, RVT_MP_RESET_I, ids[i]);
		ck_assert(rvt_seen(&r, rvt_mp_key(ids[i], false))->rst);
		ck_assert_uint_eq(r.e->nstreams, 7 - i);
	}
}
END_TEST

START_TEST(opening_twice_ends_the_connection)
{
	(void)rvt_mp_inbound(&r, 9);
	if (_i == 1)
		rvt_mp_say(&r, RVT_MP_CLOSE_I, 9); /* half closed is open */
	rvt_mp_put(&r.in, RVT_MP_OPEN, 9, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_EPROTO);
	rvt_mp_want_reason(&r, REEVE_EPROTO, "REEVE-MPLEX-0003");
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert(!r.e->ops->has_output(r.e));
}
END_TEST

/* An id is free when its stream has ended; an old handle does not see the new one. */
START_TEST(id_that_is_used_again_is_a_new_stream)
{
	struct rv_stream *old = rvt_mp_inbound(&r, 4), *st;
	struct rvt_seen *was;

	rvt_send(&r, old, 100);
	(void)r.e->ops->drain(r.e, r.g, r.now); /* in a gather: the record stays */
	rvt_mp_say(&r, RVT_MP_RESET_I, 4);
	(void)rvt_event(&r, RV_EV_RST, rvt_mp_key(4, false));
	was = rvt_seen(&r, rvt_mp_key(4, false));
	ck_assert(!was->gone);
	rvt_mp_put(&r.in, RVT_MP_OPEN, 4, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 4, 50, 0);
	rvt_mp_feed(&r);
	st = rvt_event(&r, RV_EV_OPEN, rvt_mp_key(4, false)).st;
	ck_assert_ptr_ne(st, old);
	r.e->ops->reset(r.e, old, 0); /* late: nothing */
	r.e->ops->consumed(r.e, old, 50, r.now);
	rvt_mp_flush(&r);
	(void)rvt_event(&r, RV_EV_GONE, rvt_mp_key(4, false));
	r.out.at = r.out.n; /* the data of the old one */
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(4, false))->got, 50);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.unread), 50);
	ck_assert_uint_eq(r.e->nstreams, 1);
}
END_TEST

/* --- frames that say more than they should */

START_TEST(names_are_skipped)
{
	static const uint32_t len[] = {1, 5, 127, 128, 70000, 1048576};
	uint32_t n = len[_i / 2];

	rvt_mp_put(&r.in, RVT_MP_OPEN, 3, n);
	memset(rvt_bytes_more(&r.in, n), 0xff, n); /* no UTF-8, and it looks like anything */
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 3, 10, 0);
	ck_assert_int_eq(rvt_feed(&r, _i % 2 ? n / 3 + 1 : 0), 0);
	(void)rvt_event(&r, RV_EV_OPEN, rvt_mp_key(3, false));
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(3, false))->got, 10);
}
END_TEST

START_TEST(bodies_of_closes_and_resets_are_skipped)
{
	unsigned flag = _i ? RVT_MP_RESET_I : RVT_MP_CLOSE_I;

	(void)rvt_mp_inbound(&r, 1);
	(void)rvt_mp_inbound(&r, 2);
	rvt_mp_put(&r.in, flag, 1, 3);
	memcpy(rvt_bytes_more(&r.in, 3), "\x10\x00\x07", 3);
	rvt_mp_put(&r.in, flag, 77, 2); /* of nobody */
	memcpy(rvt_bytes_more(&r.in, 2), "\x07\x00", 2);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 2, 10, 0);
	ck_assert_int_eq(rvt_feed(&r, 1), 0);
	rvt_notify(&r);
	(void)rvt_event(&r, _i ? RV_EV_RST : RV_EV_FIN, rvt_mp_key(1, false));
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(2, false))->got, 10);
	ck_assert_uint_eq(r.e->nstreams, _i ? 1 : 2);
}
END_TEST

START_TEST(frames_of_the_largest_size_pass)
{
	(void)rvt_mp_inbound(&r, 1);
	r.consume = true;
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 1, RV_MP_BODY_MAX, 0);
	rvt_mp_data(&r.in, RVT_MP_DATA_I, 1, 1, RV_MP_BODY_MAX);
	rvt_mp_feed(&r);
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(1, false))->got, RV_MP_BODY_MAX + 1);
	rvt_mp_put(&r.in, RVT_MP_DATA_I, 1, RV_MP_BODY_MAX + 1);
	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_EPROTO);
	rvt_mp_want_reason(&r, REEVE_EPROTO, "REEVE-MPLEX-0004");
}
END_TEST

START_TEST(empty_data_says_nothing)
{
	(void)rvt_mp_inbound(&r, 1);
	for (unsigned i = 0; i < 10; i++) {
		rvt_mp_put(&r.in, RVT_MP_DATA_I, 1, 0);
		rvt_mp_put(&r.in, RVT_MP_DATA_I, 55, 0);
	}
	ck_assert_int_eq(rvt_feed(&r, 1), 0);
	rvt_no_event(&r);
	ck_assert_uint_eq(rvt_seen(&r, rvt_mp_key(1, false))->got, 0);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("mplex_engine");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, every_event_in_every_state, 0, 2 * EVENTS * STATES);
	tcase_add_test(t, id_of_both_ends_is_two_streams);
	tcase_add_test(t, ids_are_given_in_order_and_end);
	tcase_add_test(t, ids_of_60_bits_are_told_apart);
	tcase_add_loop_test(t, opening_twice_ends_the_connection, 0, 2);
	tcase_add_test(t, id_that_is_used_again_is_a_new_stream);
	tcase_add_loop_test(t, names_are_skipped, 0, 12);
	tcase_add_loop_test(t, bodies_of_closes_and_resets_are_skipped, 0, 2);
	tcase_add_test(t, frames_of_the_largest_size_pass);
	tcase_add_test(t, empty_data_says_nothing);
	return rvt_run_tcase("mplex_engine", t);
}
