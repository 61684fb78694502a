/* Streams that wait for the peer: for credit, for an acknowledgement.  Scenarios 47, 48 and 49. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#define BACKLOG 256
#define BATCH   64

static struct rvt_base base;
static struct rvt_raw r;
static reeve_cfg_t cfg;

static uint64_t
late(uint64_t ms)
{
	return ms + ms / 10 + (uint64_t)rvt_slow(500);
}

/* --- 47 */

#define MEG (1u << 20)

START_TEST(scenario_47_two_who_only_write_stall_alone_and_are_told)
{
	struct rvt_wedding how = {.via = (enum rvt_via)_i};
	struct rvt_flow f[2];
	struct rvt_call w[2];
	struct rvt_nodes n;
	reeve_stream_t *s[2], *t[2];
	uint64_t rtt, start;

	base = rvt_base();
	rvt_marry(&n, &how);
	rvt_stream_pair(&n, 0, s);
	memset(w, 0, sizeof(w));
	start = rvt_now_ms();
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_deadline(s[i], REEVE_WR, 300), 0);
		w[i].kind = RVT_CALL_WRITE;
		w[i].s = s[i];
		w[i].p = rvt_pattern((uint32_t)i, MEG);
		w[i].n = MEG;
		rvt_call_start(&w[i]);
	}
	/* Stalled by design; another stream, pings and openings are not. */
	rvt_call_asleep(&w[0]);
	rvt_call_asleep(&w[1]);
	ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), &rtt), 0);
	rvt_stream_pair(&n, 1, t);
	rvt_want_write(t[0], 10000, 0);
	rvt_want_read(t[1], 10000, 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_gt(rvt_call_end(&w[i]), 256 * 1024 - 1);
		ck_assert_int_lt(w[i].rc, MEG);
		ck_assert_uint_ge(rvt_now_ms() - start, 299);
		ck_assert_uint_lt(rvt_now_ms() - start, late(300));
		/* What it waits for is told: credit, not the transport. */
		while (w[i].rc > 256 * 1024 && rvt_stats(n.k[i]).stalls_window == 0)
			ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(RVT_WAIT_MS));
	}
	/* Nothing was lost: once somebody reads, the rest goes through. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_deadline(s[i], REEVE_WR, -1), 0);
		f[i] = (struct rvt_flow){.kind = RVT_FLOW_READ, .s = s[1 - i], .key = (uint32_t)i};
		f[i].total = MEG;
		rvt_flow_start(&f[i]);
	}
	for (int i = 0; i < 2; i++) {
		uint8_t *p = w[i].p;

		ck_assert_int_eq(reeve_write(s[i], p + w[i].rc, MEG - (size_t)w[i].rc),
		    (reeve_ssize)MEG - w[i].rc);
		ck_assert_int_eq(reeve_shut(s[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		rvt_flow_end(&f[i]);
		free(w[i].p);
	}
	for (int i = 0; i < 2; i++) {
		reeve_close(s[i]);
		reeve_close(t[i]);
	}
	rvt_divorce(&n);
	rvt_base_check(&base);
}
END_TEST

/* --- 48 */

/* What happens to a stream that is not acknowledged. */
enum fate { RESET_BY_PEER, ACK_AFTER_CLOSE, FIN_ONLY, RESET_HERE, FATES };

static void
want_syn(reeve_stream_t *s)
{
	rvt_peer_want(&r.p, RVT_WU, RVT_SYN, (uint32_t)reeve_stream_id(s), 0);
}

static void
suffer(reeve_stream_t *s, enum fate fate)
{
	uint32_t id = (uint32_t)reeve_stream_id(s);

	switch (fate) {
	case RESET_BY_PEER:
		rvt_put(&r.p.out, RVT_WU, RVT_RST, id, 0);
		reeve_close(s);
		break;
	case ACK_AFTER_CLOSE:
		reeve_close(s);
		rvt_put(&r.p.out, RVT_WU, RVT_ACK, id, 0);
		rvt_put(&r.p.out, RVT_WU, RVT_FIN, id, 0);
		break;
	case FIN_ONLY:
		rvt_put(&r.p.out, RVT_WU, RVT_FIN, id, 0);
		reeve_close(s);
		break;
	default:
		ck_assert_int_eq(reeve_reset(s, 1), 0);
		reeve_close(s);
		break;
	}
}

/* Our answers to all that: FIN or reset, in some order. */
static void
drain_frames(void)
{
	uint64_t until = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_frame f;

	/* Many closes take several turns; what they send is read meanwhile. */
	do {
		rvt_peer_barrier(&r.p);
		ck_assert_uint_lt(rvt_now_ms(), until);
	} while (rvt_stats(r.k).streams_open > 0);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_msg(why.rc == 0, "%s: %s", why.id, reeve_errname(why.rc));
	rvt_peer_barrier(&r.p);
	while (r.p.in.at < r.p.in.n) {
		ck_assert(rvt_next(&r.p.in, &f));
		if (f.type == RVT_PING) { /* it took that long */
			rvt_peer_put(&r.p, RVT_PING, RVT_ACK, 0, f.len);
			continue;
		}
		ck_assert_uint_eq(f.type, RVT_WU);
		ck_assert_uint_eq(f.flags & ~(RVT_FIN | RVT_RST), 0);
	}
}

static void
none_is_pending(void)
{
	reeve_stream_t *s[BACKLOG], *more;

	for (unsigned i = 0; i < BACKLOG; i++)
		ck_assert_int_eq(reeve_open(r.k, &s[i], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_open(r.k, &more, 0), REEVE_ETIMEDOUT);
	for (unsigned i = 0; i < BACKLOG; i++) {
		want_syn(s[i]);
		ck_assert_int_eq(reeve_reset(s[i], 0), 0);
		reeve_close(s[i]);
	}
	drain_frames();
	ck_assert_uint_eq(rvt_stats(r.k).streams_open, 0);
}

/* With _i the transport takes few bytes at once and pretends to be full now and then. */
static void
open_raw(struct rvt_rechunk *re, bool lying)
{
	reeve_rt_cfg_t rc;
	reeve_transport_t t;
	int v[2];

	if (!lying) {
		rvt_raw_open(&r, REEVE_DIALER, NULL);
		return;
	}
	memset(&r, 0, sizeof(r));
	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	ck_assert_int_eq(reeve_rt_create(&r.rt, &rc), 0);
	rvt_unix_pair(v);
	*re = (struct rvt_rechunk){.fd = v[0], .n = 7, .seed = rvt_seed()};
	rvt_rechunk_init(re, &t);
	rvt_peer_init(&r.p, v[1]);
	ck_assert_int_eq(reeve_conn_open(&r.c, r.rt, &t, REEVE_DIALER, NULL), 0);
	r.k = reeve_conn_ctl(r.c);
}

START_TEST(scenario_48_permits_come_back_on_every_path)
{
	unsigned batches = 10000 * rvt_scale() / BATCH / (_i ? 10 : 1);
	uint32_t seed = rvt_seed();
	reeve_stream_t *s[BATCH];
	struct rvt_rechunk re;

	base = rvt_base();
	open_raw(&re, _i != 0);
	rvt_peer_settle(&r.p);
	for (unsigned b = 0; b < batches; b++) {
		for (unsigned i = 0; i < BATCH; i++)
			ck_assert_int_eq(reeve_open(r.k, &s[i], rvt_slow(1000)), 0);
		for (unsigned i = 0; i < BATCH; i++)
			want_syn(s[i]);
		for (unsigned i = 0; i < BATCH; i++)
			suffer(s[i], (enum fate)(rvt_random(&seed) % FATES));
		rvt_peer_send(&r.p);
		drain_frames();
	}
	none_is_pending();
	rvt_raw_fini(&r);
	if (_i)
		rvt_rechunk_fini(&re);
	rvt_base_check(&base);
}
END_TEST

/* Opens that nobody waits for any more take no permit with them. */
START_TEST(scenario_48_opens_given_up_leave_nothing)
{
	reeve_stream_t *s[BACKLOG], *more;

	base = rvt_base();
	rvt_raw_open(&r, REEVE_DIALER, NULL);
	rvt_peer_settle(&r.p);
	for (unsigned i = 0; i < BACKLOG; i++) {
		ck_assert_int_eq(reeve_open(r.k, &s[i], rvt_slow(RVT_WAIT_MS)), 0);
		want_syn(s[i]);
	}
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(reeve_open(r.k, &more, i % 2), REEVE_ETIMEDOUT);
	rvt_peer_want_none(&r.p);
	for (unsigned i = 0; i < BACKLOG; i++)
		suffer(s[i], FIN_ONLY);
	rvt_peer_send(&r.p);
	drain_frames();
	none_is_pending();
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

/* --- 49 */

START_TEST(scenario_49_streams_nobody_acknowledges_are_used_and_bounded)
{
	uint64_t ms = rvt_scale() > 1 ? 1000 : 300;
	struct rvt_call c = {.kind = RVT_CALL_OPEN, .timeout_ms = (int64_t)ms};
	reeve_stream_t *s[BACKLOG];

	base = rvt_base();
	reeve_cfg_init(&cfg);
	rvt_raw_open(&r, REEVE_DIALER, &cfg);
	rvt_peer_settle(&r.p);
	for (unsigned i = 0; i < BACKLOG; i++) {
		ck_assert_int_eq(reeve_open(r.k, &s[i], rvt_slow(RVT_WAIT_MS)), 0);
		want_syn(s[i]);
		/* No round trip is needed before the first bytes. */
		rvt_want_write(s[i], 1000, 0);
		rvt_peer_want_bytes(&r.p, (uint32_t)reeve_stream_id(s[i]), 1000, 0);
	}
	c.k = r.k;
	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c.ms, ms - 1);
	ck_assert_uint_lt(c.ms, late(ms));
	rvt_peer_want_none(&r.p);
	rvt_peer_put(&r.p, RVT_WU, RVT_ACK, (uint32_t)reeve_stream_id(s[9]), 0);
	ck_assert_int_eq(reeve_open(r.k, &c.s, rvt_slow(RVT_WAIT_MS)), 0);
	want_syn(c.s);
	reeve_close(c.s);
	for (unsigned i = 0; i < BACKLOG; i++)
		reeve_close(s[i]);
	rvt_raw_fini(&r);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: opens",
    {&scenario_47_two_who_only_write_stall_alone_and_are_told, RVT_RECHUNK},
    {&scenario_48_permits_come_back_on_every_path, 2},
    {&scenario_48_opens_given_up_leave_nothing, 0},
    {&scenario_49_streams_nobody_acknowledges_are_used_and_bounded, 0})
