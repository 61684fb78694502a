/* Scenarios 87, 93 and 98 to 105: mplex.  See README.md. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/mplex_peer.h"
#include "tests/kit/node.h"
#include "tests/kit/run.h"

#include <sched.h>
#include <stdlib.h>

static struct rvt_base base;
static struct rvt_raw r;
static reeve_cfg_t cfg;

static void
begin(void)
{
	base = rvt_base();
	rvt_mpp_cfg(&cfg);
}

static void
end(void)
{
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}

/* Everything caused before has been sent, and it is nothing: a new stream is answered at once. */
static void
quiet(uint64_t id)
{
	reeve_stream_t *s = rvt_mpp_inbound(&r, id);

	reeve_close(s);
	rvt_mpp_want(&r, RVT_MP_CLOSE_R, id);
	rvt_mpp_put(&r, RVT_MP_CLOSE_I, id, 0);
}

/* 0: 1 MiB passes; 1, 2: more is refused at its length; 3: a name of 1 MiB is skipped. */
START_TEST(scenario_87_frames_above_1_mib_end_the_connection_at_their_length)
{
	static const uint8_t more[2][6] = {
	    {4, 0x02, 0x81, 0x80, 0x40}, {5, 0x02, 0xff, 0xff, 0xff, 0xff}};
	struct rvt_flow f = {.kind = RVT_FLOW_READ, .total = 1u << 20, .open = true, .seed = 1};
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_mp_run run = {0, 1u << 20, 0};
	uint64_t rss = rvt_rss();
	reeve_stream_t *s, *named = NULL;

	begin();
	rvt_mpp_open(&r, &cfg);
	s = rvt_mpp_inbound(&r, 0);
	if (_i == 0) {
		f.s = s;
		rvt_flow_start(&f);
		rvt_mp_data_of(&r.p.out, RVT_MP_DATA_I, 0, run);
		rvt_peer_send(&r.p);
		rvt_flow_end(&f);
	} else if (_i == 3) {
		rvt_mp_put(&r.p.out, RVT_MP_OPEN, 1, 1u << 20);
		(void)rvt_bytes_more(&r.p.out, 1u << 20);
		rvt_peer_send(&r.p);
		ck_assert_int_eq(reeve_accept(r.k, &named, rvt_slow(RVT_WAIT_MS)), 0);
		quiet(2);
		reeve_close(named);
		ck_assert_uint_lt(rvt_stats(r.k).unread, 1);
	} else {
		memcpy(
		    rvt_bytes_more(&r.p.out, more[_i - 1][0]), more[_i - 1] + 1, more[_i - 1][0]);
		rvt_peer_send(&r.p);
		rvt_mpp_want_end(&r);
		rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
		ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
		ck_assert_str_eq(why.id, "REEVE-MPLEX-0004");
		ck_assert_uint_lt(rvt_rss(), rss + (16u << 20));
	}
	reeve_close(s);
	end();
}
END_TEST

START_TEST(scenario_93_the_largest_id_of_mplex_is_an_id_like_others)
{
	uint64_t id = (UINT64_C(1) << 60) - 1;
	reeve_stream_t *s;

	begin();
	rvt_mpp_open(&r, &cfg);
	s = rvt_mpp_inbound(&r, id);
	rvt_mpp_data(&r, RVT_MP_DATA_I, id, 1000, 0);
	rvt_want_read(s, 1000, 0);
	rvt_want_write(s, 10, 0);
	rvt_mpp_want_bytes(&r, RVT_MP_DATA_R, id, 10, 0);
	reeve_close(s);
	rvt_mpp_want(&r, RVT_MP_CLOSE_R, id);
	end();
}
END_TEST

/* A writes 10 MiB to somebody who never reads; B asks and answers all the while. */
START_TEST(scenario_98_one_unread_stream_delays_the_others_for_its_time_only)
{
	uint64_t limit = 300, worst = 0, start, took;
	struct rvt_flow w = {.kind = RVT_FLOW_WRITE, .total = 10u << 20, .seed = 1};
	struct rvt_wedding wed = {.via = _i ? RVT_TCP : RVT_MEMORY, .cfg = {&cfg, &cfg}};
	struct rvt_nodes n;
	reeve_stream_t *a[2], *b[2];
	uint8_t p[65536];
	uint64_t got = 0;
	reeve_ssize k;

	begin();
	cfg.slow_ms = (uint32_t)limit;
	rvt_marry(&n, &wed);
	rvt_stream_pair(&n, 0, a);
	rvt_stream_pair(&n, 0, b);
	w.s = a[0];
	rvt_flow_start(&w);
	for (unsigned i = 0; i < 60 * rvt_scale(); i++) {
		start = rvt_now_ms();
		rvt_want_write(b[0], 100, 100 * i);
		rvt_want_read(b[1], 100, 100 * i);
		took = rvt_now_ms() - start;
		worst = took > worst ? took : worst;
	}
	rvt_flow_join(&w);
	ck_assert_int_lt(w.rc, 0);
	ck_assert_int_eq(reeve_write(a[0], p, 1), REEVE_ERESET);
	ck_assert_uint_lt(worst, limit + (uint64_t)rvt_slow(1000));
	/* what came before is there, and then the reason, which is not an end */
	while ((k = reeve_read(a[1], p, sizeof(p))) > 0)
		got += (uint64_t)k;
	ck_assert_int_eq(k, REEVE_ELIMIT);
	ck_assert_uint_eq(got, 256u << 10);
	for (int i = 0; i < 2; i++) {
		reeve_close(a[i]);
		reeve_close(b[i]);
	}
	rvt_divorce(&n);
	rvt_base_check(&base);
}
END_TEST

START_TEST(scenario_100_late_and_doubled_frames_are_ignored)
{
	static const unsigned flags[][2] = {{RVT_MP_CLOSE_I, RVT_MP_CLOSE_I},
	    {RVT_MP_CLOSE_I, RVT_MP_RESET_I}, {RVT_MP_RESET_I, RVT_MP_CLOSE_I},
	    {RVT_MP_RESET_I, RVT_MP_DATA_I}, {RVT_MP_RESET_I, RVT_MP_RESET_I},
	    {RVT_MP_CLOSE_I, RVT_MP_DATA_I}};
	reeve_stream_t *s;
	unsigned resets = 0;

	begin();
	rvt_mpp_open(&r, &cfg);
	for (unsigned i = 0; i < 6; i++) {
		s = rvt_mpp_inbound(&r, i);
		for (unsigned k = 0; k < 2; k++) {
			rvt_mp_put(&r.p.out, flags[i][k], i, 3); /* closes with bodies too */
			memcpy(rvt_bytes_more(&r.p.out, 3), "\x07\x00\xff", 3);
		}
		rvt_mp_put(&r.p.out, RVT_MP_DATA_I, 1000, 3); /* of nobody */
		memcpy(rvt_bytes_more(&r.p.out, 3), "\x07\x00\xff", 3);
		rvt_peer_send(&r.p);
		resets = flags[i][0] == RVT_MP_RESET_I || flags[i][1] == RVT_MP_RESET_I;
		rvt_want_rc(s, flags[i][0] == RVT_MP_RESET_I ? REEVE_ERESET : 0);
		if (resets) /* the reset has been seen, whichever of the two it was */
			while (rvt_stats(r.k).streams_open != 0)
				sched_yield();
		reeve_close(s);
		if (!resets)
			rvt_mpp_want(&r, RVT_MP_CLOSE_R, i);
	}
	quiet(50);
	end();
}
END_TEST

/* Both ends open id 0 and send different bytes; the peer resets its own stream, we close ours. */
START_TEST(scenario_102_the_same_id_of_both_ends_is_two_streams)
{
	uint32_t n = 1u << 20;
	struct rvt_flow f[2] = {
	    {.kind = RVT_FLOW_READ, .total = n, .open = true, .key = 1, .seed = 1},
	    {.kind = RVT_FLOW_READ, .total = n, .open = true, .key = 2, .seed = 2}};
	struct rvt_mp_run run[2] = {{1, 8192, 0}, {2, 8192, 0}};
	uint8_t byte = 0;

	begin();
	rvt_mpp_open(&r, &cfg);
	f[0].s = rvt_mpp_inbound(&r, 0);
	f[1].s = rvt_mpp_outbound(&r);
	ck_assert_uint_eq(reeve_stream_id(f[1].s), 0);
	rvt_flow_start(&f[0]);
	rvt_flow_start(&f[1]);
	for (uint32_t at = 0; at < n; at += 8192) {
		run[0].from = run[1].from = at;
		rvt_mp_data_of(&r.p.out, RVT_MP_DATA_I, 0, run[0]);
		rvt_mp_data_of(&r.p.out, RVT_MP_DATA_R, 0, run[1]);
		rvt_peer_send(&r.p);
	}
	rvt_flow_end(&f[0]);
	rvt_flow_end(&f[1]);
	rvt_mpp_put(&r, RVT_MP_RESET_I, 0, 0);
	rvt_want_rc(f[0].s, REEVE_ERESET);
	rvt_want_write(f[1].s, 1000, 0);
	rvt_mpp_want_bytes(&r, RVT_MP_DATA_I, 0, 1000, 0);
	ck_assert_int_eq(reeve_write(f[0].s, &byte, 1), REEVE_ERESET);
	reeve_close(f[1].s);
	rvt_mpp_want(&r, RVT_MP_CLOSE_I, 0);
	rvt_mpp_put(&r, RVT_MP_CLOSE_R, 0, 0);
	reeve_close(f[0].s);
	quiet(1);
	end();
}
END_TEST

START_TEST(scenario_103_a_reset_after_the_peers_close_is_sent_once)
{
	reeve_stream_t *s;

	begin();
	rvt_mpp_open(&r, &cfg);
	s = rvt_mpp_inbound(&r, 3);
	rvt_mpp_put(&r, RVT_MP_CLOSE_I, 3, 0);
	rvt_want_rc(s, 0);
	ck_assert_int_eq(reeve_reset(s, 0), 0);
	reeve_close(s);
	while (r.p.in.n < 2)
		ck_assert(rvt_peer_more(&r.p));
	ck_assert_mem_eq(r.p.in.p, "\x1d\x00", 2);
	rvt_mpp_want(&r, RVT_MP_RESET_R, 3);
	quiet(4);
	end();
}
END_TEST

/* The peer reads nothing: to close and to reset waits for nobody; then the whole connection has its time. */
START_TEST(scenario_104_closes_and_resets_do_not_wait_for_a_stalled_transport)
{
	static uint8_t big[65536];
	reeve_stream_t *s[100], *full;
	uint64_t start, took;

	begin();
	cfg.write_ms = (uint32_t)rvt_slow(1500);
	rvt_mpp_open(&r, &cfg);
	for (unsigned i = 0; i < 100; i++)
		s[i] = rvt_mpp_inbound(&r, i);
	full = rvt_mpp_inbound(&r, 100);
	ck_assert_int_eq(reeve_deadline(full, REEVE_WR, 50), 0);
	while (reeve_write(full, big, sizeof(big)) > 0)
		continue;
	rvt_raw_stalled(&r);
	start = rvt_now_ms();
	for (unsigned i = 0; i < 100; i++) {
		if (i % 2)
			(void)reeve_reset(s[i], 0);
		reeve_close(s[i]);
	}
	took = rvt_now_ms() - start;
	ck_assert_uint_lt(took, (uint64_t)rvt_slow(1000));
	rvt_raw_want_reason(&r, REEVE_ETIMEDOUT, REEVE_BY_TRANSPORT);
	reeve_close(full);
	end();
}
END_TEST

/* --- 105 */

#define ASKERS 16

struct asker {
	pthread_t thread;
	struct rvt_nodes *n;
	unsigned pairs, fresh; /* fresh: a stream for each request, half-closed behind it */
	uint32_t seed;
	int rc;
};

/* One request and its answer, which is the same bytes.  0 or what went wrong. */
static int
ask(reeve_stream_t *s, uint32_t *seed, bool end)
{
	uint8_t out[5000], in[5000];
	size_t n = rvt_random(seed) % 5000 + 1, at = 0;
	reeve_ssize k;

	memset(out, (int)(n & 255), n);
	if ((k = reeve_write(s, out, n)) != (reeve_ssize)n)
		return k < 0 ? (int)k : REEVE_EAGAIN;
	if (end && (k = reeve_shut(s)) < 0)
		return (int)k;
	for (; at < n; at += (size_t)k)
		if ((k = reeve_read(s, in + at, n - at)) <= 0)
			return k < 0 ? (int)k : REEVE_ETRUNC;
	return memcmp(in, out, n) == 0 ? 0 : REEVE_EPROTO;
}

static void *
asker(void *arg)
{
	struct asker *a = arg;
	int64_t ms = rvt_slow(RVT_WAIT_MS);
	reeve_stream_t *s = NULL;

	for (unsigned i = 0; a->rc == 0 && i < a->pairs; i++) {
		if (s == NULL)
			a->rc = reeve_open(a->n->k[0], &s, ms);
		if (a->rc == 0) {
			(void)reeve_deadline(s, REEVE_RD | REEVE_WR, ms);
			a->rc = ask(s, &a->seed, a->fresh != 0);
		}
		if (a->fresh) {
			reeve_close(s);
			s = NULL;
		}
	}
	reeve_close(s);
	return NULL;
}

/* Serves one stream after the other until the connection ends. */
static void *
echo(void *arg)
{
	reeve_ctl_t *k = arg;
	reeve_stream_t *s;
	uint8_t p[4096];
	reeve_ssize n;

	while (reeve_accept(k, &s, -1) == 0) {
		while ((n = reeve_read(s, p, sizeof(p))) > 0)
			if (reeve_write(s, p, (size_t)n) != n)
				break;
		reeve_close(s);
	}
	return NULL;
}

START_TEST(scenario_105_requests_and_answers_of_many_threads_all_come)
{
	struct rvt_wedding wed = {.via = _i / 2 ? RVT_TCP : RVT_MEMORY, .cfg = {&cfg, &cfg}};
	static struct asker a[ASKERS];
	pthread_t e[ASKERS];
	struct rvt_nodes n;

	begin();
	rvt_marry(&n, &wed);
	for (unsigned i = 0; i < ASKERS; i++) {
		a[i] = (struct asker){
		    .n = &n, .pairs = 60 * rvt_scale(), .fresh = _i % 2, .seed = i + 1};
		ck_assert_int_eq(pthread_create(&e[i], NULL, echo, n.k[1]), 0);
		ck_assert_int_eq(pthread_create(&a[i].thread, NULL, asker, &a[i]), 0);
	}
	for (unsigned i = 0; i < ASKERS; i++) {
		pthread_join(a[i].thread, NULL);
		ck_assert_msg(a[i].rc == 0, "thread %u: %s", i, reeve_errname(a[i].rc));
	}
	ck_assert_uint_eq(rvt_stats(n.k[0]).resets_in + rvt_stats(n.k[0]).resets_out, 0);
	ck_assert_int_eq(reeve_abort(n.k[1], 0), 0);
	for (unsigned i = 0; i < ASKERS; i++)
		pthread_join(e[i], NULL);
	rvt_divorce(&n);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios_mplex",
    {&scenario_87_frames_above_1_mib_end_the_connection_at_their_length, 4},
    {&scenario_93_the_largest_id_of_mplex_is_an_id_like_others, 0},
    {&scenario_98_one_unread_stream_delays_the_others_for_its_time_only, 2},
    {&scenario_100_late_and_doubled_frames_are_ignored, 0},
    {&scenario_102_the_same_id_of_both_ends_is_two_streams, 0},
    {&scenario_103_a_reset_after_the_peers_close_is_sent_once, 0},
    {&scenario_104_closes_and_resets_do_not_wait_for_a_stalled_transport, 0},
    {&scenario_105_requests_and_answers_of_many_threads_all_come, 4})
