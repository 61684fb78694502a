/* test_changelog.c - the changelog of the Rust crate (yamux 0.12 to 0.14) row by row: windows and violations, on an
 * engine alone with a clock that the test moves.
 *
 * The crate's rule of growth is ours where the round trip is a millisecond or more and the peer never uses up all of its
 * credit; the crate's limits are grow = limit - streams * 256 KiB, and max_window = REEVE_OFF. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/window.h"

#include "lib/config.h"

#include <string.h>

#define RTT_US 50000u
#define MIB    (UINT64_C(1) << 20)

static struct rvt_rig r;

/* --- 0.13.0, auto-tuning: of halves that take at least half a round trip; of faster ones a window of at most 512 KiB
 * grows more than the crate's, and one that cannot grow goes back in eighths (doc/protocol-yamux.md, 2.7) */

/* A link of 40 MiB/s with a round trip of 50 ms, a reader that keeps up: four times what the path holds, then plain
 * refills. */
START_TEST(v0_13_0_window_follows_the_worked_example)
{
	static const struct rvt_win_row row[] = {
	    {128, 53, 384, 512, 256},
	    {256, 50, 768, 1024, 768},
	    {512, 50, 1536, 2048, 1792},
	    {1024, 50, 3072, 4096, 3840},
	    {2048, 51, 6144, 8192, 7936},
	    {4096, 102, 4096, 8192, 7936},
	};

	rvt_win_start(&r, REEVE_OFF, 0);
	rvt_win_round_trip(&r, RTT_US);
	rvt_win_rows(&r, rvt_inbound(&r, 1), row, 6);
	ck_assert_uint_eq(rvq_counter_get(&r.e->stats.window_max), 8192 * RVT_KIB);
	rvt_rig_fini(&r);
}
END_TEST

/* As the crate itself was seen to do it with 200 ms: the slow interval is a plain refill and ends nothing. */
START_TEST(v0_13_0_slow_interval_is_a_plain_refill)
{
	static const struct rvt_win_row row[] = {
	    {128, 250, 384, 512, 256},
	    {256, 250, 768, 1024, 768},
	    {512, 250, 1536, 2048, 1792},
	    {1024, 250, 3072, 4096, 3840},
	    {2048, 400, 2048, 4096, 3840},
	    {2048, 250, 6144, 8192, 7936},
	};

	rvt_win_start(&r, REEVE_OFF, 0);
	rvt_win_round_trip(&r, 200000);
	rvt_win_rows(&r, rvt_inbound(&r, 1), row, 6);
	rvt_rig_fini(&r);
}
END_TEST

/* The boundary: two round trips to the microsecond are slow, one less is fast. */
START_TEST(v0_13_0_fast_is_less_than_two_round_trips)
{
	struct rv_stream *st;

	rvt_win_start(&r, REEVE_OFF, 0);
	rvt_win_round_trip(&r, RTT_US);
	st = rvt_inbound(&r, 1);
	r.now += 2 * RTT_US - (_i ? 1 : 0);
	rvt_win_arrive(&r, 1, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), _i ? 384 : 128);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(v0_13_0_unread_bytes_are_not_granted)
{
	struct rv_stream *st;

	rvt_win_start(&r, REEVE_OFF, 0);
	rvt_win_round_trip(&r, RTT_US);
	st = rvt_inbound(&r, 1);
	r.now += RTT_US;
	rvt_win_arrive(&r, 1, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 128), 384); /* M = 512 */
	r.now += 1000000;
	rvt_win_arrive(&r, 1, 340);
	ck_assert_uint_eq(st->recv_credit, 172 * RVT_KIB);
	ck_assert_uint_eq(rvt_win_let_go(&r, st, 300), 300); /* 40 are unread */
	ck_assert_uint_eq(st->recv_credit, 472 * RVT_KIB);
	ck_assert_uint_eq(st->window, 512 * RVT_KIB);
	rvt_rig_fini(&r);
}
END_TEST

/* The small example of a limit of 2 MiB for 4 streams: a pool of 1 MiB. */
START_TEST(v0_13_0_pool_bounds_the_sum_and_comes_back)
{
	static const struct rvt_win_row row[] = {
	    {128, 50, 384, 512, 256},
	    {256, 50, 768, 1024, 768},
	    {512, 50, 512 + 256, 1280, 1024},
	    {160, 1, 160, 1280, 1024},
	};
	struct rv_stream *a, *b;

	rvt_win_start(&r, REEVE_OFF, 2 * MIB - (uint64_t)4 * RV_WINDOW0);
	rvt_win_round_trip(&r, RTT_US);
	a = rvt_inbound(&r, 1);
	rvt_win_rows(&r, a, row, 4);
	b = rvt_inbound(&r, 3);
	r.now += RTT_US;
	rvt_win_arrive(&r, 3, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, b, 128), 128); /* refills go on */
	r.e->ops->reset(r.e, a, 0);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 0);
	ck_assert_uint_eq(rvt_win_grown(&r), 0);
	r.now += RTT_US;
	rvt_win_arrive(&r, 3, 128);
	ck_assert_uint_eq(rvt_win_let_go(&r, b, 128), 384);
	rvt_rig_fini(&r);
}
END_TEST

/* n bytes are received, let go and looked at, at once. */
static uint32_t
refill(struct rv_winpool *p, struct rv_stream *st, uint32_t n)
{
	ck_assert(rv_window_charge(st, n));
	st->consumed += n;
	return rv_window_update(p, st, RTT_US, st->updated + RTT_US, true);
}

/* 1 GiB for 512 streams: one alone stops at 896.25 MiB, whatever else is configured. */
START_TEST(v0_13_0_default_pool_stops_one_stream_at_896_mib_and_a_quarter)
{
	struct rv_winpool p = {0};
	struct rv_stream st = {0}, other = {0};
	reeve_cfg_t cfg;
	uint64_t m = RV_WINDOW0, next;

	ck_assert_int_eq(rv_cfg_resolve(&cfg, NULL), 0);
	ck_assert_uint_eq(cfg.grow, 1024 * MIB - (uint64_t)512 * RV_WINDOW0);
	p.grow = cfg.grow;
	p.max = UINT32_MAX;
	rv_window_init(&st, 0);
	rv_window_init(&other, 0);
	for (unsigned i = 0; i < 20; i++, m = next) {
		next = 2 * m < 896 * MIB + RV_WINDOW0 ? 2 * m : 896 * MIB + RV_WINDOW0;
		ck_assert_uint_eq(refill(&p, &st, (uint32_t)(m / 2)), m / 2 + (next - m));
		ck_assert_uint_eq(st.window, next);
		ck_assert_uint_eq(p.grown, next - RV_WINDOW0);
	}
	ck_assert_uint_eq(st.window, 896 * MIB + RV_WINDOW0);
	ck_assert_uint_eq(refill(&p, &other, RV_WINDOW0 / 2), RV_WINDOW0 / 2);
	rv_window_release(&p, &st);
	ck_assert_uint_eq(p.grown, 0);
	ck_assert_uint_eq(refill(&p, &other, RV_WINDOW0 / 2), 3 * RV_WINDOW0 / 2);
}
END_TEST

/* Without a pool's bound the arithmetic saturates. */
START_TEST(v0_13_0_window_saturates_at_32_bits)
{
	struct rv_winpool p = {.grow = UINT64_MAX, .max = UINT32_MAX};
	struct rv_stream st = {0};

	rv_window_init(&st, 0);
	for (unsigned i = 0; i < 14; i++)
		(void)refill(&p, &st, st.window / 2);
	ck_assert_uint_eq(st.window, UINT32_MAX);
	ck_assert_uint_eq(st.recv_credit, UINT32_MAX);
	ck_assert_uint_eq(refill(&p, &st, UINT32_MAX / 2), UINT32_MAX / 2);
	ck_assert_uint_eq(st.window, UINT32_MAX);
}
END_TEST

#define STREAMS 8

/* What the budgets promise, after every step.  The crate's asserts: r + b <= M, M - W0 <= L - S * W0, M - W0 <= A. */
static void
within_the_budgets(const struct rv_winpool *p, const struct rv_stream *st, const uint32_t *unread)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < STREAMS; i++) {
		RVT_CHECK((uint64_t)st[i].recv_credit + st[i].consumed + unread[i] == st[i].window);
		RVT_CHECK(st[i].window >= RV_WINDOW0 && st[i].window <= p->max);
		sum += st[i].window - RV_WINDOW0;
	}
	RVT_CHECK(sum == p->grown);
	RVT_CHECK(p->grown <= p->grow);
}

/* The crate's rule in words of its own, with what ours adds: the young window's step, the reader that is behind, and the
 * smaller parts of a window that cannot grow, for which fast is that much less. */
static void
update_as_documented(struct rv_winpool *p, struct rv_stream *st, uint64_t rtt, uint64_t now)
{
	uint64_t m = st->window, left = p->grow - p->grown, since = now - st->updated, delta = 0;
	uint64_t unread = m - st->recv_credit - st->consumed, path, step = 2 * m;
	bool due = st->consumed >= rv_window_due(st), young = m <= RV_YOUNG_MAX;
	bool fast = since < 2 * rtt && since * m < 4 * rtt * st->consumed;

	RVT_CHECK(rv_window_due(st) == m / 2 || rv_window_due(st) == m / 8);
	if (young && fast) {
		path = since == 0 ? UINT32_MAX : 4 * rtt * st->consumed / since;
		step = path < 2 * m ? 2 * m : path > 4 * m ? 4 * m : path;
	}
	if (due && fast && (young || unread <= m / 4)) {
		m = step < m + left ? step : m + left;
		m = m < p->max ? m : p->max;
	}
	if (due)
		delta = st->consumed + (m - st->window);
	RVT_CHECK(rv_window_update(p, st, rtt, now, true) == delta);
	RVT_CHECK(st->window == m);
	RVT_CHECK(delta == 0 || rv_window_due(st) == m / 2 || (m == p->max || p->grown == p->grow));
}

/* _i: 0 the rule exactly, the peer never runs dry; 1 ours with everything. */
START_TEST(v0_13_0_budgets_hold_whatever_happens)
{
	static struct rv_stream st[STREAMS];
	uint32_t unread[STREAMS] = {0}, seed = rvt_seed(), n, i, before;
	struct rv_winpool p = {.grow = 5 * MIB + 12345, .max = 3u << 20};
	uint64_t now = 0, rtt = 0, grew = 0;

	for (i = 0; i < STREAMS; i++)
		rv_window_init(&st[i], 0);
	for (unsigned step = 0; step < 200000 * rvt_scale(); step++) {
		i = rvt_random(&seed) % STREAMS;
		before = st[i].window;
		now += rvt_random(&seed) % 20000;
		switch (rvt_random(&seed) % 8) {
		case 0:
		case 1:
		case 2: /* bytes */
			n = rvt_random(&seed) % (st[i].recv_credit + 1);
			n -= _i == 0 && n > 0 && n == st[i].recv_credit;
			RVT_CHECK(rv_window_charge(&st[i], n));
			RVT_CHECK(!rv_window_charge(&st[i], st[i].recv_credit + 1));
			unread[i] += n;
			break;
		case 3:
		case 4:
		case 5: /* read */
			n = rvt_random(&seed) % (unread[i] + 1);
			unread[i] -= n;
			st[i].consumed += n;
			break;
		case 6:
			rtt = rvt_random(&seed) % 5 == 0 ? 0 : 1000 + rvt_random(&seed) % 100000;
			break;
		default: /* the end of a stream, now and then */
			if (rvt_random(&seed) % 50 != 0)
				break;
			rv_window_release(&p, &st[i]);
			rv_window_init(&st[i], now);
			st[i].consumed = unread[i] = before = st[i].flags = 0;
			break;
		}
		if (_i == 0)
			update_as_documented(&p, &st[i], rtt, now);
		else
			(void)rv_window_update(&p, &st[i], rtt, now, true);
		RVT_CHECK(st[i].window >= before); /* never shrinks */
		if (_i == 0 && rtt == 0)
			RVT_CHECK(st[i].window == (before > 0 ? before : RV_WINDOW0));
		grew += st[i].window > before;
		within_the_budgets(&p, st, unread);
	}
	ck_assert_uint_gt(grew, 100);
}
END_TEST

/* --- 0.13.9, 0.13.10, 0.14.0: headers that lie */

/* What is in r.in ends the connection with GO_AWAY(1) for the named reason; no stream but 1 has ever been there. */
static void
violation(const char *id)
{
	ck_assert_int_eq(rvt_feed(&r, 0), REEVE_EPROTO);
	ck_assert_str_eq(r.e->reason.id, id);
	ck_assert_uint_eq(r.e->nstreams, 1);
	rvt_no_event(&r);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_GOAWAY, 0, 0, 1);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}

/* A live stream's credit reaches 2^32 - 1 and not one more; _i: in one update, in two, in many. */
START_TEST(v0_13_9_credit_beyond_32_bits_is_a_violation)
{
	static const uint32_t parts[] = {1, 2, 1000};
	uint32_t left = UINT32_MAX - RV_WINDOW0, n = left / parts[_i];
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	st = rvt_inbound(&r, 1);
	for (; left > 0; left -= n) {
		n = n < left ? n : left;
		rvt_put(&r.in, RVT_WU, 0, 1, n);
	}
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(st->send_credit, UINT32_MAX);
	rvt_put(&r.in, RVT_WU, _i == 2 ? RVT_FIN : 0, 1, _i == 0 ? UINT32_MAX : 1);
	violation("REEVE-YAMUX-0008");
}
END_TEST

/* The header alone is enough: a body that would never fit is not waited for.  With FIN too. */
START_TEST(v0_13_10_oversize_syn_is_a_violation_before_its_body)
{
	static const uint32_t len[] = {RV_WINDOW0 + 1, RV_WINDOW0 + 1, UINT32_MAX, 1u << 20};

	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	(void)rvt_inbound(&r, 1);
	rvt_put(&r.in, RVT_DATA, RVT_SYN | (_i == 1 ? RVT_FIN : 0), 3, len[_i]);
	violation("REEVE-YAMUX-0006");
}
END_TEST

START_TEST(v0_13_10_largest_syn_is_taken)
{
	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	rvt_put_data(&r.in, RVT_SYN, 3, RV_WINDOW0, 0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	(void)rvt_event(&r, RV_EV_OPEN, 3);
	ck_assert_uint_eq(rvt_seen(&r, 3)->got, RV_WINDOW0);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(v0_14_0_syn_with_credit_beyond_32_bits_is_a_violation)
{
	static const uint32_t len[] = {UINT32_MAX - RV_WINDOW0 + 1, UINT32_MAX - 1, UINT32_MAX};

	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	(void)rvt_inbound(&r, 1);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 3, len[_i]);
	violation("REEVE-YAMUX-0008");
}
END_TEST

START_TEST(v0_14_0_syn_with_all_the_credit_there_is_is_taken)
{
	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	rvt_put(&r.in, RVT_WU, RVT_SYN, 3, UINT32_MAX - RV_WINDOW0);
	ck_assert_int_eq(rvt_feed(&r, 0), 0);
	ck_assert_uint_eq(rvt_event(&r, RV_EV_OPEN, 3).st->send_credit, UINT32_MAX);
	rvt_rig_fini(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("changelog");

	tcase_add_test(t, v0_13_0_window_follows_the_worked_example);
	tcase_add_test(t, v0_13_0_slow_interval_is_a_plain_refill);
	tcase_add_loop_test(t, v0_13_0_fast_is_less_than_two_round_trips, 0, 2);
	tcase_add_test(t, v0_13_0_unread_bytes_are_not_granted);
	tcase_add_test(t, v0_13_0_pool_bounds_the_sum_and_comes_back);
	tcase_add_test(t, v0_13_0_default_pool_stops_one_stream_at_896_mib_and_a_quarter);
	tcase_add_test(t, v0_13_0_window_saturates_at_32_bits);
	tcase_add_loop_test(t, v0_13_0_budgets_hold_whatever_happens, 0, 2);
	tcase_add_loop_test(t, v0_13_9_credit_beyond_32_bits_is_a_violation, 0, 3);
	tcase_add_loop_test(t, v0_13_10_oversize_syn_is_a_violation_before_its_body, 0, 4);
	tcase_add_test(t, v0_13_10_largest_syn_is_taken);
	tcase_add_loop_test(t, v0_14_0_syn_with_credit_beyond_32_bits_is_a_violation, 0, 3);
	tcase_add_test(t, v0_14_0_syn_with_all_the_credit_there_is_is_taken);
	return rvt_run_tcase("changelog", t);
}
