/* test_engine_window.c - receive windows: the update rule, the worked example of auto-tuning,
 * the pool, budgets. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define KIB    1024u
#define RTT_MS 50u

static struct rvt_rig r;

static void
start(uint32_t max_window, uint64_t grow, struct rv_budget *bud)
{
	reeve_cfg_t cfg;

	rvt_cfg(&cfg);
	cfg.max_window = max_window;
	cfg.grow = grow;
	rvt_rig_init(&r, REEVE_LISTENER, &cfg, bud);
}

/* The round trip is known. */
static void
round_trip(uint32_t us)
{
	rvt_round_trips(&r, us);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.rtt_us), us);
}

/* n KiB arrive on id in frames of at most 16 KiB, unread. */
static void
arrive(uint32_t id, uint32_t kib)
{
	struct rvt_seen *s = rvt_seen(&r, id);
	uint64_t at = s->got;

	for (uint32_t n; kib > 0; kib -= n, at += n * KIB) {
		n = kib < 16 ? kib : 16;
		rvt_put_data(&r.in, 0, id, n * KIB, at);
	}
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
}

/* n KiB are let go; the update that leaves, in KiB. */
static uint32_t
let_go(struct rv_stream *st, uint32_t kib)
{
	struct rvt_frame f;

	r.e->ops->consumed(r.e, st, kib * KIB, r.now);
	rvt_drain(&r, 0);
	if (!rvt_next(&r.out, &f))
		return 0;
	ck_assert_uint_eq(f.type, RVT_WU);
	ck_assert_uint_eq(f.id, st->id);
	ck_assert_uint_eq(f.flags, 0);
	rvt_want_none(&r);
	ck_assert_uint_eq(f.len % KIB, 0);
	return f.len / KIB;
}

static uint64_t
grown(void)
{
	return ((struct rv_yamux *)r.e)->win.grown / KIB;
}

/* Times of a link of 40 MiB/s with a round trip of 50 ms and a reader that keeps up. */
START_TEST(worked_example_is_reproduced)
{
	static const struct {
		uint32_t consumed, ms, delta, m, a;
	} row[] = {
	    {128, 53, 384, 512, 256},
	    {256, 50, 768, 1024, 768},
	    {512, 50, 1536, 2048, 1792},
	    {1024, 50, 3072, 4096, 3840},
	    {2048, 51, 6144, 8192, 7936},
	    {4096, 102, 4096, 8192, 7936},
	};
	struct rv_stream *st;

	start(REEVE_OFF, 0, NULL);
	round_trip(RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	for (unsigned i = 0; i < 6; i++) {
		r.now += row[i].ms * 1000;
		for (uint32_t k = 0; k < row[i].consumed; k += 16) {
			arrive(1, 16);
			ck_assert_uint_eq(
			    let_go(st, 16), k + 16 < row[i].consumed ? 0 : row[i].delta);
		}
		ck_assert_uint_eq(st->window, row[i].m * KIB);
		ck_assert_uint_eq(st->recv_credit, row[i].m * KIB);
		ck_assert_uint_eq(grown(), row[i].a);
	}
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.window_max), 8192 * KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(unread_bytes_are_not_granted_again)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	round_trip(RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	r.now += RTT_MS * 1000;
	arrive(1, 128);
	ck_assert_uint_eq(let_go(st, 128), 384); /* M = 512 */
	r.now += 1000000;                        /* slow from here */
	arrive(1, 340);
	ck_assert_uint_eq(let_go(st, 255), 0);
	ck_assert_uint_eq(let_go(st, 1), 256);
	ck_assert_uint_eq(let_go(st, 84), 0); /* the rest waits for the next half */
	ck_assert_uint_eq(st->recv_credit, (512 - 340 + 256) * KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(one_large_read_grants_all_it_took)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	round_trip(RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	r.now += RTT_MS * 1000;
	arrive(1, 128);
	ck_assert_uint_eq(let_go(st, 128), 384);
	r.now += 1000000;
	arrive(1, 340);
	ck_assert_uint_eq(st->recv_credit, 172 * KIB);
	ck_assert_uint_eq(let_go(st, 300), 300);
	ck_assert_uint_eq(st->recv_credit, 472 * KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(update_leaves_with_the_read_that_completes_half)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	st = rvt_inbound(&r, 1);
	arrive(1, 128);
	r.e->ops->consumed(r.e, st, 128 * KIB - 1, r.now);
	ck_assert(!r.e->ops->has_output(r.e));
	r.e->ops->consumed(r.e, st, 1, r.now);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, 0, 1, 128 * KIB); /* no round trip known: no growth */
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(updates_not_yet_sent_are_one)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	st = rvt_inbound(&r, 1);
	arrive(1, 128);
	r.e->ops->consumed(r.e, st, 128 * KIB, r.now);
	arrive(1, 128);
	r.e->ops->consumed(r.e, st, 128 * KIB, r.now);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, 0, 1, 256 * KIB);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(pool_bounds_the_sum_and_comes_back)
{
	struct rv_stream *a, *b;
	static const uint32_t delta[] = {384, 768, 512 + 256};
	uint32_t half = 128;

	/* A pool of 1 MiB: 256 -> 512 -> 1024 -> 1280 KiB, then nothing for another stream. */
	start(REEVE_OFF, 1u << 20, NULL);
	round_trip(RTT_MS * 1000);
	a = rvt_inbound(&r, 1);
	for (unsigned i = 0; i < 3; i++, half *= 2) {
		r.now += RTT_MS * 1000;
		arrive(1, half);
		ck_assert_uint_eq(let_go(a, half), delta[i]);
	}
	ck_assert_uint_eq(a->window, 1280 * KIB);
	ck_assert_uint_eq(grown(), 1024);
	b = rvt_inbound(&r, 3);
	r.now += 1000;
	arrive(3, 128);
	ck_assert_uint_eq(let_go(b, 128), 128);
	r.e->ops->reset(r.e, a, 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 0);
	ck_assert_uint_eq(grown(), 0);
	r.now += RTT_MS * 1000;
	arrive(3, 128);
	ck_assert_uint_eq(let_go(b, 128), 384);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(window_stops_at_its_ceiling)
{
	struct rv_stream *st;

	start(300 * KIB, 0, NULL);
	round_trip(RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	arrive(1, 128);
	ck_assert_uint_eq(let_go(st, 128), 128 + 44);
	arrive(1, 150);
	ck_assert_uint_eq(let_go(st, 37), 0);
	ck_assert_uint_eq(let_go(st, 113), 150); /* and goes back in eighths from then on */
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(young_window_goes_where_its_rate_shows)
{
	/* What halves took, in ms of a round trip of 50, and then M: fourfold at most, above 1 MiB double. */
	static const uint32_t ms[] = {40, 5, 5, 49}, m[] = {640, 2560, 5120, 10240};
	struct rv_stream *st;

	start(0, 0, NULL);
	round_trip(RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	for (int i = 0; i < 4; i++) {
		r.now += ms[i] * 1000;
		arrive(1, st->window / 2 / KIB);
		(void)let_go(st, st->window / 2 / KIB);
		ck_assert_uint_eq(st->window, m[i] * KIB);
	}
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(first_credit_frames_do_not_grow)
{
	/* Streams that carry no data, and one with a byte now and then, keep 256 KiB. */
	start(0, 0, NULL);
	round_trip(100);
	for (uint32_t id = 1; id < 400; id += 2) {
		r.e->ops->reset(r.e, rvt_inbound(&r, id), 0);
		rvt_drain(&r, 0);
		rvt_want(&r, RVT_WU, RVT_RST, id, 0);
		rvt_notify(&r);
		(void)rvt_event(&r, RV_EV_GONE, id);
	}
	(void)rvt_inbound(&r, 401);
	r.consume = true;
	for (uint32_t i = 0; i < 300; i++) {
		r.now += 100000;
		rvt_put_data(&r.in, 0, 401, 1, i);
		ck_assert_int_eq(rvt_feed(&r, 0), 0);
	}
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.window_max), 256 * KIB);
	ck_assert_uint_eq(grown(), 0);
	rvt_rig_fini(&r);
}
END_TEST

/* _i: 0 a round trip of 50 us, 1 of 500 us, 2 of 1 ms; everything is always used up at once. */
START_TEST(near_path_stops_where_its_rate_is_served)
{
	static const uint32_t rtt[] = {50, 500, 1000}, end[] = {512, 2000, 16384};
	struct rv_stream *st;
	uint32_t m;

	start(0, 0, NULL);
	round_trip(rtt[_i]);
	st = rvt_inbound(&r, 1);
	for (int i = 0; i < 12; i++) {
		m = st->window / KIB;
		arrive(1, m / 2);
		r.now += 10;
		(void)let_go(st, m / 2);
	}
	ck_assert_uint_eq(st->window / KIB, end[_i]);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(dry_peer_with_a_quick_reader_grows_without_round_trip)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	st = rvt_inbound(&r, 1);
	arrive(1, 256);
	ck_assert_uint_eq(st->recv_credit, 0);
	r.now += 100;
	ck_assert_uint_eq(let_go(st, 128), 128); /* half is unread: a plain update */
	r.now += 100;
	ck_assert_uint_eq(let_go(st, 32), 0);
	ck_assert_uint_eq(let_go(st, 32), 64 + 256); /* a quarter: kept up */
	ck_assert_uint_eq(st->window, 512 * KIB);
	ck_assert_uint_eq(st->recv_credit, 448 * KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(dry_peer_with_a_slow_reader_does_not_grow)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	round_trip(100);
	st = rvt_inbound(&r, 1);
	for (int i = 0; i < 20; i++) {
		arrive(1, st->recv_credit / KIB);
		ck_assert_uint_eq(st->recv_credit, 0);
		for (int k = 0; k < 4; k++) {
			r.now += RV_DRY_US;
			(void)let_go(st, 32);
		}
	}
	/* The end of a burst, read slowly, is no reason either. */
	while (st->unread > 0) {
		r.now += RV_DRY_US;
		(void)let_go(st, 16);
	}
	ck_assert_uint_eq(st->window, 256 * KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(having_been_dry_is_forgotten_with_the_next_credit)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	round_trip(100);
	st = rvt_inbound(&r, 1);
	arrive(1, 256);
	r.now += RV_DRY_US;
	ck_assert_uint_eq(let_go(st, 128), 128); /* dry until now */
	r.now += RV_DRY_US;
	ck_assert_uint_eq(let_go(st, 128), 128); /* and not since */
	arrive(1, 16);
	ck_assert_uint_eq(let_go(st, 16), 0); /* quick, but no sign of a dry peer */
	ck_assert_uint_eq(st->window, 256 * KIB);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(credit_is_withheld_from_a_stream_that_is_not_read)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	st = rvt_inbound(&r, 1);
	arrive(1, 100);
	r.e->ops->stop(r.e, st);
	r.e->ops->consumed(r.e, st, 100 * KIB, r.now);
	arrive(1, 156); /* discarded */
	ck_assert_uint_eq(rvt_seen(&r, 1)->got, 100 * KIB);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(no_credit_after_the_peers_fin)
{
	struct rv_stream *st;

	start(0, 0, NULL);
	st = rvt_inbound(&r, 1);
	arrive(1, 128);
	r.e->ops->consumed(r.e, st, 128 * KIB, r.now); /* owed, not sent yet */
	arrive(1, 128);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	r.e->ops->consumed(r.e, st, 128 * KIB, r.now);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

/* --- budget */

static struct rv_slab *
hold(struct rv_budget *bud, size_t n)
{
	struct rv_slab *s = rv_slab_get(r.pool, n);

	rv_slab_charge(s, bud);
	return s;
}

START_TEST(budget_stops_growth_then_credit_then_streams)
{
	struct rv_budget *bud;
	struct rv_slab *half, *more;
	struct rv_stream *st;

	rvt_rig_prepare(&r);
	bud = rv_budget_create(r.ar, 16 * 65536, NULL);
	ck_assert_int_eq(rvt_rig_start(&r, REEVE_LISTENER, NULL, bud), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 0);
	round_trip(RTT_MS * 1000);
	st = rvt_inbound(&r, 1);
	half = hold(bud, 9 * 65536);
	ck_assert_int_eq(rv_budget_level(bud), 1);
	arrive(1, 128);
	ck_assert_uint_eq(let_go(st, 128), 128); /* fast, but no growth */
	more = hold(bud, 4 * 65536);
	ck_assert_int_eq(rv_budget_level(bud), 2);
	arrive(1, 128);
	ck_assert_uint_eq(let_go(st, 128), 0); /* withheld */
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + RV_Y_HELD_US);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 3, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 3, 0);
	r.now += RV_Y_HELD_US;
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_drain(&r, 0);
	rvt_want_none(&r);
	ck_assert_uint_eq(r.e->ops->next_deadline(r.e), r.now + RV_Y_HELD_US);
	rv_slab_unref(more);
	ck_assert_int_eq(r.e->ops->tick(r.e, r.now), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, 0, 1, 128 * KIB);
	rv_slab_unref(half);
	rv_budget_unref(bud);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(withheld_stream_may_end)
{
	struct rv_budget *bud;
	struct rv_slab *s;
	struct rv_stream *st;

	rvt_rig_prepare(&r);
	bud = rv_budget_create(r.ar, 65536, NULL);
	ck_assert_int_eq(rvt_rig_start(&r, REEVE_LISTENER, NULL, bud), 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_SYN, 0, 0);
	for (uint32_t id = 1; id <= 9; id += 2) {
		st = rvt_inbound(&r, id);
		arrive(id, 128);
		s = hold(bud, 65536);
		ck_assert_uint_eq(let_go(st, 128), 0);
		ck_assert(st->flags & RV_ST_WAITING);
		rv_slab_unref(s);
	}
	/* from the middle, the head, the tail; by the peer, by us, by the end */
	rvt_put(&r.in, RVT_WU, RVT_RST, 5, 0);
	rvt_put(&r.in, RVT_WU, RVT_FIN, 1, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	r.e->ops->close(r.e, rvt_seen(&r, 9)->st, true, r.now);
	r.e->ops->stop(r.e, rvt_seen(&r, 3)->st);
	ck_assert_ptr_eq(((struct rv_yamux *)r.e)->withheld.head, rvt_seen(&r, 7)->st);
	ck_assert_ptr_eq(((struct rv_yamux *)r.e)->withheld.tail, rvt_seen(&r, 7)->st);
	rv_budget_unref(bud);
	rvt_rig_fini(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_window");

	tcase_add_test(t, worked_example_is_reproduced);
	tcase_add_test(t, unread_bytes_are_not_granted_again);
	tcase_add_test(t, one_large_read_grants_all_it_took);
	tcase_add_test(t, update_leaves_with_the_read_that_completes_half);
	tcase_add_test(t, updates_not_yet_sent_are_one);
	tcase_add_test(t, pool_bounds_the_sum_and_comes_back);
	tcase_add_test(t, window_stops_at_its_ceiling);
	tcase_add_test(t, young_window_goes_where_its_rate_shows);
	tcase_add_test(t, first_credit_frames_do_not_grow);
	tcase_add_loop_test(t, near_path_stops_where_its_rate_is_served, 0, 3);
	tcase_add_test(t, dry_peer_with_a_quick_reader_grows_without_round_trip);
	tcase_add_test(t, dry_peer_with_a_slow_reader_does_not_grow);
	tcase_add_test(t, having_been_dry_is_forgotten_with_the_next_credit);
	tcase_add_test(t, credit_is_withheld_from_a_stream_that_is_not_read);
	tcase_add_test(t, no_credit_after_the_peers_fin);
	tcase_add_test(t, budget_stops_growth_then_credit_then_streams);
	tcase_add_test(t, withheld_stream_may_end);
	return rvt_run_tcase("engine_window", t);
}
