/* test_connection_ends.c - shut, close, reset, stop and drop of a stream, as the peer sees them. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdlib.h>
#include <string.h>

static struct rvt_raw r;
static reeve_stream_t *s;

/* Stream 1, opened by the peer or by us. */
static void
begin(bool outbound, const reeve_cfg_t *cfg)
{
	rvt_raw_open(&r, outbound ? REEVE_DIALER : REEVE_LISTENER, cfg);
	s = outbound ? rvt_raw_outbound(&r) : rvt_raw_inbound(&r, 1);
}

/* The application has been handed (or could be) everything that the peer sent so far. */
static void
arrived(uint64_t unread)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (rvt_stats(r.k).unread != unread)
		ck_assert_msg(rvt_now_ms() < deadline, "%llu bytes unread",
		    (unsigned long long)rvt_stats(r.k).unread);
}

/* _i % 2: who opened; _i / 2: our direction had ended before. */
START_TEST(close_sends_the_bytes_and_one_fin)
{
	begin(_i % 2 != 0, NULL);
	rvt_want_write(s, 100000, 0);
	if (_i / 2)
		ck_assert_int_eq(reeve_shut(s), 0);
	else
		reeve_close(s);
	ck_assert_uint_eq(rvt_peer_want_bytes(&r.p, 1, 100000, 0), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	if (_i / 2)
		reeve_close(s);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 1000);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).streams_open, 0);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(close_waits_for_credit)
{
	begin(true, NULL);
	rvt_want_write(s, 262144, 0);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_want_write(s, 1000, 262144);
	reeve_close(s);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0); /* the peer ended its direction: ours goes on */
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 400);
	(void)rvt_peer_want_bytes(&r.p, 1, 400, 262144);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 600);
	(void)rvt_peer_want_bytes(&r.p, 1, 600, 262544);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(close_with_unread_bytes_resets_behind_the_fin)
{
	begin(_i != 0, NULL);
	rvt_peer_data(&r.p, 0, 1, 3000, 0);
	if (_i)
		rvt_want_read(s, 1000, 0); /* part of them */
	else
		arrived(3000);
	rvt_want_write(s, 10, 0);
	reeve_close(s);
	rvt_peer_want_data(&r.p, 0, 1, 10, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(bytes_after_close_are_answered_by_one_reset)
{
	begin(_i != 0, NULL);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	for (unsigned i = 0; i < 5; i++)
		rvt_put_data(&r.p.out, 0, 1, 10, 10 * i);
	rvt_peer_send(&r.p);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_data(&r.p, 0, 1, 10, 50);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(fin_or_reset_after_close_is_the_end)
{
	begin(true, NULL);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_put(&r.p, RVT_WU, _i ? RVT_FIN : RVT_RST, 1, 0);
	rvt_peer_data(&r.p, 0, 1, 10, 0);
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).streams_open, 0);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(peer_that_never_ends_is_reset_after_the_linger)
{
	reeve_cfg_t cfg;
	uint64_t start;

	reeve_cfg_init(&cfg);
	cfg.linger_ms = 100;
	begin(true, &cfg);
	start = rvt_now_ms();
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	ck_assert_uint_ge(rvt_now_ms() - start, 99);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(close_wakes_the_others)
{
	struct rvt_call rd = {.kind = RVT_CALL_READ}, wr = {.kind = RVT_CALL_WRITE, .n = 1u << 20};
	uint8_t p[10], *big = rvt_pattern(1, 1u << 20);

	begin(true, NULL);
	rd.s = wr.s = s;
	rd.p = p;
	rd.n = sizeof(p);
	wr.p = big;
	rvt_call_start(&rd);
	rvt_call_start(&wr);
	rvt_call_asleep(&rd);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_call_asleep(&wr);
	if (_i == 0) {
		reeve_close(reeve_stream_ref(s));
	} else if (_i == 1) {
		ck_assert_int_eq(reeve_reset(s, 3), 0);
	} else {
		ck_assert_int_eq(reeve_stop(s), 0);
		ck_assert_int_eq(reeve_shut(s), 0);
	}
	ck_assert_int_eq(rvt_call_end(&rd), REEVE_ECLOSED);
	ck_assert_int_ge(rvt_call_end(&wr), 262144); /* what was accepted before */
	ck_assert_int_eq(reeve_write(s, p, 1), _i == 2 ? REEVE_ESHUT : REEVE_ECLOSED);
	rvt_want_rc(s, REEVE_ECLOSED);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(big);
}
END_TEST

START_TEST(reset_drops_the_bytes_and_carries_the_code)
{
	begin(_i != 0, NULL);
	rvt_want_write(s, 262144, 0);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_want_write(s, 1000, 262144); /* no credit */
	rvt_peer_data(&r.p, 0, 1, 100, 0);
	ck_assert_int_eq(reeve_reset(s, 4711), 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 4711);
	ck_assert_int_eq(reeve_reset(s, 4712), 0);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 1000);
	rvt_peer_data(&r.p, RVT_FIN, 1, 100, 100);
	rvt_want_rc(s, REEVE_ECLOSED);
	reeve_close(s);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(reset_before_the_syn_left_sends_nothing)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 4u << 20};
	reeve_stream_t *t;
	struct rvt_frame f;
	uint64_t left = c.n;

	c.p = calloc(1, c.n);
	begin(true, NULL);
	c.s = s;
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 16u << 20);
	rvt_call_start(&c);
	rvt_raw_stalled(&r);
	ck_assert_int_eq(reeve_open(r.k, &t, -1), 0); /* 3 */
	rvt_want_write(t, 10, 0);
	ck_assert_int_eq(reeve_reset(t, 1), 0);
	reeve_stream_unref(t);
	ck_assert(!rvt_peer_next_but(&r.p, &f, 1, &left));
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

START_TEST(stop_discards_and_withholds_credit)
{
	begin(_i != 0, NULL);
	rvt_peer_data(&r.p, 0, 1, 100000, 0);
	arrived(100000);
	ck_assert_int_eq(reeve_stop(s), 0);
	rvt_want_rc(s, REEVE_ECLOSED);
	rvt_peer_data(&r.p, 0, 1, 162144, 100000); /* the whole window */
	rvt_want_write(s, 1000, 0);                /* writing goes on */
	rvt_peer_want_data(&r.p, 0, 1, 1000, 0);
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_write(s, 1000, 1000);
	rvt_peer_want_data(&r.p, 0, 1, 1000, 1000);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(drop_sends_the_bytes_and_a_reset)
{
	begin(_i != 0, NULL);
	for (unsigned i = 0; i < 3; i++)
		rvt_want_write(s, 11, 11 * i);
	reeve_stream_unref(s);
	(void)rvt_peer_want_bytes(&r.p, 1, 33, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_data(&r.p, 0, 1, 10, 0);
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).streams_open, 0);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(drop_after_the_peers_fin_sends_fin)
{
	begin(_i != 0, NULL);
	rvt_peer_data(&r.p, RVT_FIN, 1, 10, 0);
	rvt_want_read(s, 10, 0);
	rvt_want_rc(s, 0);
	rvt_want_write(s, 33, 0);
	reeve_stream_unref(s);
	rvt_peer_want_data(&r.p, 0, 1, 33, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(drop_after_shut_resets_behind_the_fin)
{
	begin(_i != 0, NULL);
	rvt_want_write(s, 33, 0);
	ck_assert_int_eq(reeve_shut(s), 0);
	reeve_stream_unref(s);
	rvt_peer_want_data(&r.p, 0, 1, 33, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_peer_want(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(last_of_several_handles_is_the_drop)
{
	begin(true, NULL);
	ck_assert_ptr_eq(reeve_stream_ref(s), s);
	reeve_stream_unref(s);
	rvt_peer_want_none(&r.p);
	rvt_want_write(s, 10, 0);
	rvt_peer_want_data(&r.p, 0, 1, 10, 0);
	reeve_stream_ref(s);
	reeve_close(s); /* for every user; the handle that is left is no drop */
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 1, 0);
	reeve_stream_unref(s);
	rvt_peer_want_none(&r.p);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(crossing_ends_leave_nothing)
{
	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 500; i++) {
		s = rvt_raw_inbound(&r, 2 * i + 1);
		rvt_put(&r.p.out, RVT_WU, RVT_FIN, 2 * i + 1, 0);
		if (i % 2)
			rvt_peer_send(&r.p);
		reeve_close(s);
		rvt_peer_send(&r.p);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, 2 * i + 1, 0);
	}
	rvt_peer_want_none(&r.p);
	ck_assert_uint_eq(rvt_stats(r.k).streams_open, 0);
	ck_assert_uint_eq(rvt_stats(r.k).resets_out, 0);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("connection_ends", {&close_sends_the_bytes_and_one_fin, 4},
    {&close_waits_for_credit, 0}, {&close_with_unread_bytes_resets_behind_the_fin, 2},
    {&bytes_after_close_are_answered_by_one_reset, 2}, {&fin_or_reset_after_close_is_the_end, 2},
    {&peer_that_never_ends_is_reset_after_the_linger, 0}, {&close_wakes_the_others, 3},
    {&reset_drops_the_bytes_and_carries_the_code, 2}, {&reset_before_the_syn_left_sends_nothing, 0},
    {&stop_discards_and_withholds_credit, 2}, {&drop_sends_the_bytes_and_a_reset, 2},
    {&drop_after_the_peers_fin_sends_fin, 2}, {&drop_after_shut_resets_behind_the_fin, 2},
    {&last_of_several_handles_is_the_drop, 0}, {&crossing_ends_leave_nothing, 0})
