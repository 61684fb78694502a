/* test_ids.c - stream ids: used up, of the wrong side, used again. */
#include <config.h>

#include "actors/connection.h"
#include "lib/engine/yamux_session.h"
#include "tests/kit/flow.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <stdio.h>
#include <string.h>

static struct rvt_raw r;

static reeve_stream_t *
inbound_of_id(uint32_t id)
{
	reeve_stream_t *s = rvt_raw_inbound(&r, id);

	rvt_peer_data(&r.p, 0, id, 50, 0);
	rvt_want_read(s, 50, 0);
	return s;
}

/* The last ids work, then every open says so at once, for ever; what lives goes on in both directions. */
START_TEST(scenario_93_ids_that_are_used_up_have_an_answer_of_their_own)
{
	int role = _i == 0 ? REEVE_DIALER : REEVE_LISTENER;
	uint32_t first = _i == 0 ? 0xfffffff9 : 0xfffffffa, n = _i == 0 ? 4 : 3;
	struct rvt_call c = {.kind = RVT_CALL_OPEN, .timeout_ms = -1};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s[4], *in[3], *more = NULL;

	rvt_raw_open(&r, role, NULL);
	rv_yamux_set_next_id(r.c->engine, first);
	for (uint32_t i = 0; i < n; i++) {
		s[i] = rvt_raw_outbound(&r);
		ck_assert_uint_eq(reeve_stream_id(s[i]), first + 2 * i);
	}
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_open(r.k, &more, i == 0 ? 0 : -1), REEVE_EEXHAUSTED);
	c.k = r.k;
	rvt_call_start(&c);
	ck_assert_int_eq(rvt_call_end(&c), REEVE_EEXHAUSTED);
	ck_assert_str_eq(reeve_errname(REEVE_EEXHAUSTED), "REEVE_EEXHAUSTED");
	rvt_peer_want_none(&r.p);
	/* The peer's ids: the largest, and then lower ones. */
	in[0] = inbound_of_id(_i == 0 ? 0xfffffffe : 0xffffffff);
	in[1] = inbound_of_id(_i == 0 ? 0xfffffffc : 0xfffffffd);
	in[2] = inbound_of_id(_i == 0 ? 2 : 1);
	for (uint32_t i = 0; i < n; i++) {
		rvt_want_write(s[i], 100, 0);
		(void)rvt_peer_want_bytes(&r.p, first + 2 * i, 100, 0);
		rvt_peer_data(&r.p, RVT_FIN, first + 2 * i, 100, 0);
		rvt_want_read(s[i], 100, 0);
		reeve_close(s[i]);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, first + 2 * i, 0);
	}
	/* Ids of streams that have ended are not used again. */
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_open(r.k, &more, -1), REEVE_EEXHAUSTED);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_int_eq(why.rc, 0);
	for (int i = 0; i < 3; i++)
		reeve_close(in[i]);
	rvt_raw_fini(&r);
}
END_TEST

/* Streams up to the very last id carry their bytes, also when they are opened and closed one by one. */
START_TEST(scenario_93_no_id_is_zero_foreign_or_used_twice)
{
	uint32_t span = 400 * (rvt_scale() < 50 ? rvt_scale() : 50), last = 0;
	uint32_t id = (_i == 0 ? 0xffffffff : 0xfffffffe) - span;
	reeve_stream_t *s;
	struct rvt_frame f;
	unsigned n = 0;
	int rc;

	rvt_raw_open(&r, _i == 0 ? REEVE_DIALER : REEVE_LISTENER, NULL);
	rv_yamux_set_next_id(r.c->engine, id);
	while ((rc = reeve_open(r.k, &s, -1)) == 0) {
		ck_assert(rvt_peer_next(&r.p, &f) && f.type == RVT_WU && f.flags == RVT_SYN);
		ck_assert_uint_eq(f.id, reeve_stream_id(s));
		ck_assert(f.id > last && f.id % 2 == (_i == 0 ? 1 : 0));
		last = f.id;
		rvt_peer_put(&r.p, RVT_WU, RVT_ACK | RVT_FIN, f.id, 0);
		reeve_close(s);
		rvt_peer_want(&r.p, RVT_WU, RVT_FIN, last, 0);
		n++;
	}
	ck_assert_int_eq(rc, REEVE_EEXHAUSTED);
	ck_assert_uint_eq(last, _i == 0 ? 0xffffffff : 0xfffffffe);
	ck_assert_uint_eq(n, (last - id) / 2 + 1);
	rvt_raw_fini(&r);
}
END_TEST

/* --- two of one role */

static char told[256], told_id[64];
static struct rvq_gauge tellings;

static void
on_log(void *ctx, int level, const char *id, const char *text)
{
	(void)ctx;
	if (level > REEVE_LOG_WARN)
		return;
	snprintf(told, sizeof(told), "%s", text);
	snprintf(told_id, sizeof(told_id), "%s", id);
	rvq_gauge_add(&tellings, 1);
}

static void
open_with_log(int role)
{
	reeve_rt_cfg_t rc;
	int v[2];

	memset(&r, 0, sizeof(r));
	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	rc.log = on_log;
	ck_assert_int_eq(reeve_rt_create(&r.rt, &rc), 0);
	rvt_unix_pair(v);
	rvt_peer_init(&r.p, v[1]);
	ck_assert_int_eq(reeve_conn_open_fd(&r.c, r.rt, v[0], role, NULL), 0);
	r.k = reeve_conn_ctl(r.c);
}

/* A second dialer opens an id of ours, before or after we did: nothing of one stream reaches the other, and the reason
 * says what the matter is. */
START_TEST(scenario_94_two_dialers_are_told_apart)
{
	static const struct {
		bool opened, data; /* we opened id 1 before; the peer's first frame has a body */
		uint32_t id;
		const char *reason, *words;
	} row[] = {
	    {false, false, 1, "REEVE-YAMUX-0004", "two dialers"},
	    {true, false, 1, "REEVE-YAMUX-0004", "two dialers"},
	    {false, true, 1, "REEVE-YAMUX-0004", "two dialers"},
	    {true, true, 1, "REEVE-YAMUX-0004", "two dialers"},
	    {true, true, 3, "REEVE-YAMUX-0004", "two dialers"},
	    {false, false, 0, "REEVE-YAMUX-0003", "id of the session"},
	    {true, true, 0, "REEVE-YAMUX-0003", "id of the session"},
	};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s = NULL;
	uint8_t byte;

	open_with_log(REEVE_DIALER);
	rvt_peer_settle(&r.p);
	if (row[_i].opened) {
		ck_assert_int_eq(reeve_open(r.k, &s, -1), 0);
		rvt_peer_want(&r.p, RVT_WU, RVT_SYN, 1, 0);
	}
	if (row[_i].data)
		rvt_peer_data(&r.p, RVT_SYN, row[_i].id, 100, 0);
	else
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, row[_i].id, 0);
	rvt_peer_want_goaway_end(&r.p, 1);
	rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_str_eq(why.id, row[_i].reason);
	if (s != NULL) {
		ck_assert_int_eq(reeve_read(s, &byte, 1), REEVE_EPROTO);
		ck_assert_int_eq(reeve_write(s, &byte, 1), REEVE_EPROTO);
		reeve_close(s);
	}
	rvt_raw_fini(&r);
	ck_assert_uint_eq(rvq_gauge_get(&tellings), 1);
	ck_assert_str_eq(told_id, row[_i].reason);
	ck_assert_msg(strstr(told, row[_i].words) != NULL, "%s", told);
}
END_TEST

/* The role is what the caller says, whoever connected. */
START_TEST(scenario_94_role_is_the_callers_choice)
{
	reeve_stream_t *s;

	rvt_raw_open_tcp(&r, _i == 0 ? REEVE_DIALER : REEVE_LISTENER, NULL);
	s = rvt_raw_outbound(&r);
	ck_assert_uint_eq(reeve_stream_id(s), _i == 0 ? 1 : 2);
	reeve_close(s);
	rvt_peer_want(&r.p, RVT_WU, RVT_FIN, _i == 0 ? 1 : 2, 0);
	reeve_close(rvt_raw_inbound(&r, _i == 0 ? 2 : 1));
	rvt_raw_fini(&r);
}
END_TEST

/* An id may come again once its stream has ended, and only then. */
START_TEST(id_that_is_open_cannot_be_opened_again)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (int i = 0; i < 3; i++) {
		s = rvt_raw_inbound(&r, 7);
		rvt_peer_put(&r.p, RVT_WU, RVT_RST, 7, 0);
		rvt_want_rc(s, REEVE_ERESET);
		reeve_close(s);
	}
	s = rvt_raw_inbound(&r, 7);
	rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 7, 0);
	rvt_peer_want_goaway_end(&r.p, 1);
	rvt_raw_want_reason(&r, REEVE_EPROTO, REEVE_BY_PEER);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("ids", {&scenario_93_ids_that_are_used_up_have_an_answer_of_their_own, 2},
    {&scenario_93_no_id_is_zero_foreign_or_used_twice, 2},
    {&scenario_94_two_dialers_are_told_apart, 7}, {&scenario_94_role_is_the_callers_choice, 2},
    {&id_that_is_open_cannot_be_opened_again, 0})
