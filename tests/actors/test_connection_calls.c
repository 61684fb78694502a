/* test_connection_calls.c - blocking calls: what wakes them, deadlines that move, sizes of zero, partial writes. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <stdlib.h>
#include <string.h>

#define EACH    8
#define SOON_MS 1000 /* generous: what must happen at once has happened by then */

static struct rvt_raw r;
static uint8_t byte[16];

static void
reader(struct rvt_call *c, reeve_stream_t *s)
{
	*c = (struct rvt_call){.kind = RVT_CALL_READ, .s = s, .p = byte, .n = 1};
	rvt_call_start(c);
	rvt_call_asleep(c);
}

/* --- reset and death wake everybody, with one answer */

/* Threads in read, write (no credit), accept, open (none acknowledged) and ping. */
struct crowd {
	struct rvt_call c[5 * EACH];
	reeve_stream_t *s[2 * EACH + 1];
	void *big;
};

static void
crowd_begin(struct crowd *w, const reeve_cfg_t *cfg)
{
	struct rvt_call *c = w->c;

	w->big = calloc(1, 1u << 20);
	rvt_raw_open(&r, REEVE_DIALER, cfg);
	rvt_peer_settle(&r.p);
	r.p.pings = RVT_PINGS_MUTE;
	for (unsigned i = 0; i < 2 * EACH; i++)
		w->s[i] = rvt_raw_outbound(&r);
	ck_assert_int_eq(reeve_open(r.k, &w->s[2 * EACH], -1), 0); /* stays unacknowledged */
	for (unsigned i = 0; i < EACH; i++, c += 5) {
		c[0] = (struct rvt_call){.kind = RVT_CALL_READ, .s = w->s[i], .p = byte, .n = 1};
		c[1] = (struct rvt_call){
		    .kind = RVT_CALL_WRITE, .s = w->s[EACH + i], .p = w->big, .n = 1u << 20};
		c[2] = (struct rvt_call){.kind = RVT_CALL_ACCEPT, .k = r.k, .timeout_ms = -1};
		c[3] = (struct rvt_call){.kind = RVT_CALL_OPEN, .k = r.k, .timeout_ms = -1};
		c[4] = (struct rvt_call){.kind = RVT_CALL_PING, .k = r.k, .timeout_ms = -1};
		for (unsigned j = 0; j < 5; j++)
			rvt_call_start(&c[j]);
	}
	for (uint64_t got = 0; got < EACH * 262144;) {
		struct rvt_frame f;

		ck_assert(rvt_peer_next(&r.p, &f));
		got += f.type == RVT_DATA ? f.len : 0;
	}
	for (unsigned i = 0; i < 5 * EACH; i++)
		rvt_call_asleep(&w->c[i]);
}

static void
crowd_end(struct crowd *w, int rc, uint32_t by)
{
	uint64_t start = rvt_now_ms();

	for (unsigned i = 0; i < 5 * EACH; i++) {
		reeve_ssize got = rvt_call_end(&w->c[i]);

		if (w->c[i].kind == RVT_CALL_WRITE)
			ck_assert_int_ge(got, 262144); /* what was accepted before */
		else
			ck_assert_msg(
			    got == rc, "kind %d: %s", (int)w->c[i].kind, reeve_errname((int)got));
	}
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(SOON_MS));
	for (unsigned i = 0; i <= 2 * EACH; i++) {
		rvt_want_rc(w->s[i], rc);
		ck_assert_int_eq(reeve_write(w->s[i], byte, 1), rc);
		reeve_close(w->s[i]);
	}
	rvt_raw_want_reason(&r, rc, by);
	rvt_raw_fini(&r);
	free(w->big);
}

START_TEST(death_of_the_connection_wakes_every_call)
{
	static struct crowd w;
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_unacked = 1;
	if (_i == 4) {
		cfg.keepalive_ms = (uint32_t)rvt_slow(300);
		cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(100);
	}
	crowd_begin(&w, &cfg);
	switch (_i) {
	case 0:
		ck_assert_int_eq(reeve_abort(r.k, 0), 0);
		crowd_end(&w, REEVE_ECLOSED, REEVE_BY_US);
		break;
	case 1:
		rvt_peer_close(&r.p);
		crowd_end(&w, REEVE_EEND, REEVE_BY_PEER);
		break;
	case 2:
		rvt_peer_put(&r.p, RVT_GOAWAY, 0, 0, 2);
		crowd_end(&w, REEVE_EGOAWAY, REEVE_BY_PEER);
		break;
	case 3:
		rvt_peer_put(&r.p, 9, 0, 0, 0);
		crowd_end(&w, REEVE_EPROTO, REEVE_BY_PEER);
		break;
	default:
		crowd_end(&w, REEVE_EDEAD, REEVE_BY_PEER);
		break;
	}
}
END_TEST

START_TEST(reset_wakes_reader_and_writer)
{
	struct rvt_call rd[2], wr = {.kind = RVT_CALL_WRITE, .n = 1u << 20};
	reeve_stream_t *s;
	int rc = _i ? REEVE_ERESET : REEVE_ECLOSED;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	wr.s = s;
	wr.p = rvt_pattern(1, wr.n);
	rvt_call_start(&wr);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_call_asleep(&wr);
	reader(&rd[0], s);
	reader(&rd[1], s);
	if (_i)
		rvt_peer_put(&r.p, RVT_WU, RVT_RST, 1, 5);
	else
		ck_assert_int_eq(reeve_reset(s, 5), 0);
	ck_assert_int_eq(rvt_call_end(&rd[0]), rc);
	ck_assert_int_eq(rvt_call_end(&rd[1]), rc);
	ck_assert_int_ge(rvt_call_end(&wr), 262144);
	ck_assert_int_eq(reeve_write(s, byte, 1), rc);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(wr.p);
}
END_TEST

/* --- accept */

START_TEST(accept_ends_at_its_deadline_and_loses_nothing)
{
	reeve_stream_t *s = NULL;
	reeve_op_t op;
	unsigned got = 0;
	uint64_t start;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	ck_assert_int_eq(reeve_accept(r.k, &s, 0), REEVE_ETIMEDOUT);
	start = rvt_now_ms();
	ck_assert_int_eq(reeve_accept(r.k, &s, 50), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(rvt_now_ms() - start, 49);
	for (uint32_t i = 0; i < 200; i++) { /* a stream comes while the wait is given up */
		reeve_op_init(&op, NULL, NULL);
		reeve_accept_async(r.k, &op);
		rvt_peer_put(&r.p, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		if (i % 2)
			rvt_peer_barrier(&r.p);
		reeve_op_cancel(&op);
		if (reeve_op_wait(&op) == 0) {
			s = op.stream;
		} else {
			ck_assert_int_eq(op.res, REEVE_ECANCELED);
			ck_assert_int_eq(reeve_accept(r.k, &s, -1), 0);
			got++;
		}
		ck_assert_uint_eq(reeve_stream_id(s), 2 * i + 1);
		reeve_close(s);
	}
	ck_assert_uint_le(got, 200);
	rvt_raw_fini(&r);
}
END_TEST

/* --- sizes of zero */

START_TEST(zero_sizes_answer_at_once)
{
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	ck_assert_int_eq(reeve_read(s, byte, 0), 0);
	ck_assert_int_eq(reeve_read(s, NULL, 0), 0);
	ck_assert_int_eq(reeve_read(s, NULL, 5), REEVE_EINVAL);
	ck_assert_int_eq(reeve_write(s, byte, 0), 0);
	ck_assert_int_eq(reeve_write(s, NULL, 0), 0);
	ck_assert_int_eq(reeve_write(s, NULL, 5), REEVE_EINVAL);
	ck_assert_int_eq(reeve_writev(s, NULL, 0), 0);
	rvt_peer_want_none(&r.p);
	rvt_peer_data(&r.p, 0, 1, 10, 0);
	rvt_want_read(s, 1, 0);
	ck_assert_int_eq(reeve_read(s, byte, 0), 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_FIN, 1, 0);
	rvt_want_read(s, 9, 1);
	rvt_want_rc(s, 0);
	ck_assert_int_eq(reeve_read(s, byte, 0), 0);
	rvt_peer_put(&r.p, RVT_WU, RVT_RST, 1, 0);
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_read(s, byte, 0), 0); /* the end had come before the reset */
	ck_assert_int_eq(reeve_write(s, byte, 0), REEVE_ERESET);
	reeve_close(s);
	s = rvt_raw_inbound(&r, 3);
	rvt_peer_put(&r.p, RVT_WU, RVT_RST, 3, 0);
	rvt_want_rc(s, REEVE_ERESET);
	ck_assert_int_eq(reeve_read(s, byte, 0), REEVE_ERESET);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

/* --- deadlines */

START_TEST(deadline_moves_under_a_sleeping_read)
{
	struct rvt_call c;
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	reader(&c, s);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, 0), 0); /* past */
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	rvt_want_rc(s, REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, 30), 0);
	reader(&c, s);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, 200), 0); /* later */
	ck_assert_int_eq(rvt_call_end(&c), REEVE_ETIMEDOUT);
	ck_assert_uint_ge(c.ms, 150);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, 30), 0);
	reader(&c, s);
	ck_assert_int_eq(reeve_deadline(s, REEVE_RD | REEVE_WR, -1), 0); /* none */
	rvt_peer_data(&r.p, 0, 1, 1, 0);
	ck_assert_int_ge(rvt_call_end(&c), REEVE_ETIMEDOUT); /* either came first */
	if (c.rc < 0)
		rvt_want_read(s, 1, 0);
	rvt_peer_data(&r.p, 0, 1, 1, 1);
	rvt_want_read(s, 1, 1);
	reeve_close(s);
	rvt_raw_fini(&r);
}
END_TEST

START_TEST(deadline_moves_under_a_sleeping_write)
{
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = 1u << 20};
	reeve_stream_t *s;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	c.s = s;
	c.p = rvt_pattern(1, c.n);
	rvt_call_start(&c);
	(void)rvt_peer_want_bytes(&r.p, 1, 262144, 0);
	rvt_call_asleep(&c);
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, _i ? 50 : 0), 0);
	ck_assert_int_ge(rvt_call_end(&c), 262144); /* a short count */
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, 0), 0);
	while (reeve_write(s, c.p, c.n) > 0) /* what is left of the send budget */
		continue;
	ck_assert_int_eq(reeve_write(s, c.p, c.n), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_read(s, byte, 0), 0); /* the other direction has none */
	reeve_close(s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

/* Numbered bytes with an expired deadline again and again: what was counted is what arrives, once. */
START_TEST(expired_writes_leave_no_hole)
{
	uint64_t at = 0, total = 1u << 20, deadline;
	struct rvt_call c = {.kind = RVT_CALL_WRITE};
	uint8_t *p = rvt_pattern(1, total);
	reeve_stream_t *s, *t;
	reeve_ssize n;
	unsigned expired = 0;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, 10), 0);
	deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	for (unsigned i = 0; expired < 20; i++) {
		ck_assert_uint_lt(rvt_now_ms(), deadline);
		n = reeve_write(s, p + at, total - at);
		ck_assert_msg(n > 0 || n == REEVE_ETIMEDOUT, "%s", reeve_errname((int)n));
		at += n > 0 ? (uint64_t)n : 0;
		expired += n < 0 || (uint64_t)n < total - at;
		t = NULL;
		ck_assert_int_eq(reeve_open(r.k, &t, -1), 0);
		ck_assert_int_eq(reeve_reset(t, 0), 0);
		reeve_stream_unref(t);
		ck_assert_int_eq(reeve_deadline(s, REEVE_WR, 5), 0);
	}
	ck_assert_uint_lt(at, total);
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, -1), 0);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, (uint32_t)total);
	c.s = s;
	c.p = p + at;
	c.n = total - at;
	rvt_call_start(&c);
	for (uint64_t got = 0; got < total;) {
		struct rvt_frame f;

		ck_assert(rvt_peer_next(&r.p, &f));
		if (f.id != 1)
			continue; /* the other streams' */
		ck_assert(f.type == RVT_DATA && f.flags == 0);
		ck_assert_int_eq(memcmp(f.body, p + got, f.len), 0);
		got += f.len;
	}
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)c.n);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(p);
}
END_TEST

RVT_MAIN_TABLE("connection_calls", {&death_of_the_connection_wakes_every_call, 5},
    {&reset_wakes_reader_and_writer, 2}, {&accept_ends_at_its_deadline_and_loses_nothing, 0},
    {&zero_sizes_answer_at_once, 0}, {&deadline_moves_under_a_sleeping_read, 0},
    {&deadline_moves_under_a_sleeping_write, 2}, {&expired_writes_leave_no_hole, 0})
