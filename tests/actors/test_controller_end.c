/* test_controller_end.c - after the end of a connection: one reason, for every call of every caller. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/kit/duo.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

static struct rvt_raw r;
static reeve_stream_t *last;

static void
by_abort(void)
{
	ck_assert_int_eq(reeve_abort(r.k, 0), 0);
}

static void
abort_twice(void *arg)
{
	(void)arg;
	ck_assert_int_eq(reeve_abort(r.k, REEVE_EDEAD), 0);
	ck_assert_int_eq(reeve_abort(r.k, REEVE_ELIMIT), 0); /* too late */
}

/* Both before the connection, which is on the same worker, hears of one. */
static void
by_abort_with_a_code(void)
{
	rvt_on_worker(r.rt, abort_twice, NULL);
}

static void
by_end(void)
{
	rvt_peer_shut(&r.p);
}

static void
by_cut(void)
{
	rvt_put(&r.p.out, RVT_PING, RVT_SYN, 0, 0);
	r.p.out.n -= 5;
	rvt_peer_send(&r.p);
	rvt_peer_shut(&r.p);
}

static void
by_violation(void)
{
	rvt_put(&r.p.out, RVT_DATA, 0, 0, 1);
	rvt_put(&r.p.out, RVT_GOAWAY, 0, 0, 7); /* not looked at any more */
	(void)rvt_peer_try_send(&r.p);
}

static void
by_goaway(void)
{
	rvt_put(&r.p.out, RVT_GOAWAY, 0, 0, 7);
	rvt_put(&r.p.out, RVT_DATA, 0, 0, 1); /* nor is this */
	(void)rvt_peer_try_send(&r.p);
}

static void
by_silence(void)
{
	r.p.pings = RVT_PINGS_MUTE;
}

static void
by_reset_of_the_transport(void)
{
	struct linger hard = {1, 0};

	ck_assert_int_eq(setsockopt(r.p.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	rvt_peer_close(&r.p);
}

static void
by_churn(void)
{
	for (uint32_t id = 3; id < 20; id += 2) {
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, id, 0);
		rvt_put(&r.p.out, RVT_WU, RVT_RST, id, 0);
	}
	(void)rvt_peer_try_send(&r.p);
}

static void
by_close_without_patience(void)
{
	ck_assert_int_eq(reeve_conn_close(r.c, 1), REEVE_ETIMEDOUT);
}

static const struct {
	void (*cause)(void);
	int rc;
	uint32_t by;
} ends[] = {
    {by_abort, REEVE_ECLOSED, REEVE_BY_US},
    {by_abort_with_a_code, REEVE_EDEAD, REEVE_BY_US},
    {by_end, REEVE_EEND, REEVE_BY_PEER},
    {by_cut, REEVE_ETRUNC, REEVE_BY_TRANSPORT},
    {by_violation, REEVE_EPROTO, REEVE_BY_PEER},
    {by_goaway, REEVE_EGOAWAY, REEVE_BY_PEER},
    {by_silence, REEVE_EDEAD, REEVE_BY_PEER},
    {by_reset_of_the_transport, REEVE_ESYS_BASE - ECONNRESET, REEVE_BY_TRANSPORT},
    {by_churn, REEVE_ELIMIT, REEVE_BY_PEER},
    {by_close_without_patience, REEVE_ETIMEDOUT, REEVE_BY_US},
};
#define ENDS ((int)(sizeof(ends) / sizeof(ends[0])))

struct witness {
	pthread_t thread;
	int rc, wr;
	unsigned bad, asked;
	char first[80]; /* answer that was not rc */
};

static void
says(struct witness *w, const char *call, reeve_ssize rc, reeve_ssize want)
{
	w->asked++;
	if (rc != want && w->bad++ == 0)
		snprintf(w->first, sizeof(w->first), "%s: %s", call, reeve_errname((int)rc));
}

static void
ask_by_call(struct witness *w)
{
	struct iovec v = {(void *)"x", 1};
	reeve_stream_t *s = NULL;
	reeve_buf_t *b = NULL;
	uint8_t byte;

	says(w, "open", reeve_open(r.k, &s, -1), w->rc);
	/* Streams that came before may still be taken. */
	while (reeve_accept(r.k, &s, -1) == 0)
		reeve_close(s);
	says(w, "accept", reeve_accept(r.k, &s, -1), w->rc);
	says(w, "ping", reeve_ping(r.k, -1, NULL), w->rc);
	says(w, "close", reeve_conn_close(r.c, -1),
	    w->rc == REEVE_ECLOSED || w->rc == REEVE_EEND ? 0 : w->rc);
	says(w, "read", reeve_read(last, &byte, 1), w->rc);
	says(w, "read_buf", reeve_read_buf(last, &b), w->rc);
	says(w, "write", reeve_write(last, "x", 1), w->wr);
	says(w, "writev", reeve_writev(last, &v, 1), w->wr);
	says(w, "write_buf", reeve_write_buf(last, reeve_buf_alloc(r.rt, 10)), w->wr);
}

static void
ask_by_operation(struct witness *w)
{
	static const char *const name[] = {"open", "accept", "ping", "closed", "read", "write"};
	void (*const start[])(reeve_ctl_t * k, reeve_op_t * op) = {
	    reeve_open_async, reeve_accept_async, reeve_ping_async, reeve_closed_async};
	reeve_op_t op;

	for (unsigned i = 0; i < 6; i++) {
		reeve_op_init(&op, NULL, NULL);
		if (i < 4)
			start[i](r.k, &op);
		else if (i == 4)
			reeve_read_async(last, &op);
		else
			reeve_write_async(last, reeve_buf_alloc(r.rt, 10), &op);
		says(w, name[i], reeve_op_wait(&op), i == 5 ? w->wr : w->rc);
	}
}

/* The reasons, which nothing changes any more. */
static void
ask_why(struct witness *w)
{
	reeve_reason_t k = {.size = sizeof(k)}, s = {.size = sizeof(s)};

	(void)reeve_abort(r.k, REEVE_EINVAL);
	(void)reeve_goaway(r.k, 3);
	says(w, "ctl_reason", reeve_ctl_reason(r.k, &k), 0);
	says(w, "stream_reason", reeve_stream_reason(last, &s), 0);
	says(w, "ctl_reason", k.rc, w->rc);
	says(w, "stream_reason", s.rc, w->rc);
	says(w, "by", s.by, (reeve_ssize)k.by);
	says(w, "id", strncmp(k.id, "REEVE-", 6), 0);
}

static void *
ask_everything(void *arg)
{
	struct witness *w = arg;

	for (int i = 0; i < 20; i++) {
		ask_by_call(w);
		ask_by_operation(w);
		ask_why(w);
	}
	return NULL;
}

START_TEST(one_reason_for_every_caller_and_every_call)
{
	struct witness w[2] = {0};
	struct rvt_call rd = {.kind = RVT_CALL_READ};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_cfg_t cfg;
	uint8_t byte;

	reeve_cfg_init(&cfg);
	cfg.churn_burst = cfg.churn_per_s = 1;
	if (ends[_i].cause == by_silence)
		cfg.keepalive_ms = cfg.keepalive_timeout_ms = (uint32_t)rvt_slow(700);
	rvt_raw_open_tcp(&r, REEVE_LISTENER, &cfg);
	last = rvt_raw_inbound(&r, 1);
	rvt_peer_settle(&r.p);
	rd.s = last;
	rd.p = &byte;
	rd.n = 1;
	rvt_call_start(&rd);
	rvt_call_asleep(&rd);
	ends[_i].cause();
	ck_assert_int_eq(rvt_call_end(&rd), ends[_i].rc); /* woken: it has ended */
	for (int i = 0; i < 2; i++) { /* a close ends writing before it gives up */
		w[i].rc = ends[_i].rc;
		w[i].wr = ends[_i].cause == by_close_without_patience ? REEVE_ECLOSED : ends[_i].rc;
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, ask_everything, &w[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(w[i].thread, NULL);
		ck_assert_msg(w[i].bad == 0, "%u of %u answers, the first is %s, not %s", w[i].bad,
		    w[i].asked, w[i].first, reeve_errname(w[i].rc));
	}
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_uint_eq(why.by, ends[_i].by);
	reeve_close(last);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("controller_end", {&one_reason_for_every_caller_and_every_call, ENDS})
