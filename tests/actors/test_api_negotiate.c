/* test_api_negotiate.c - two applications agree on the protocol of a stream. */
#include <config.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

#include <stdio.h>
#include <string.h>

static const char *const ab[] = {"/a/1", "/b/1"};
static const char *const cb[] = {"/c/1", "/b/1"};
static const char *const d1[] = {"/d/1"};
#define LAZY (REEVE_DIALER | REEVE_LAZY)

static struct rvt_duo d;

/* The listener's half is an operation, the dialer's a call.  Returns the call's result. */
static int
agree(int how, const char *const *mine, unsigned n, reeve_ssize *theirs)
{
	struct rvt_done done;
	int rc;

	rvt_done_init(&done, RVT_WAIT_MS);
	reeve_negotiate_async(d.s[1], REEVE_LISTENER, ab, 2, &done.op);
	rc = reeve_negotiate(d.s[0], how, mine, n, RVT_WAIT_MS);
	if (how == LAZY)
		rvt_write_run(d.s[0], 10, 0);
	*theirs = rvt_done_wait(&done);
	return rc;
}

static void
exchange(size_t n)
{
	for (int i = 0; i < 2; i++) {
		rvt_write_run(d.s[i], n, 0);
		rvt_read_run(d.s[!i], n, 0);
	}
}

/* Both multiplexers; either end of the connection opens. */
START_TEST(the_first_common_name_is_agreed_on)
{
	reeve_stream_t *s;
	reeve_ssize at;

	rvt_duo_begin(&d, _i & 1);
	if (_i & 2) {
		s = d.s[0];
		d.s[0] = d.s[1];
		d.s[1] = s;
	}
	ck_assert_ptr_null(reeve_stream_proto(d.s[0]));
	ck_assert_int_eq(agree(REEVE_DIALER, cb, 2, &at), 1);
	ck_assert_int_eq(at, 1);
	for (int i = 0; i < 2; i++)
		ck_assert_str_eq(reeve_stream_proto(d.s[i]), "/b/1");
	exchange(100000);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
		    reeve_negotiate(d.s[i], REEVE_DIALER, ab, 2, RVT_WAIT_MS), REEVE_EBUSY);
	exchange(10);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_lazy_dialer_goes_on_at_once)
{
	reeve_ssize at;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(agree(LAZY, ab + 1, 1, &at), 0);
	ck_assert_int_eq(at, 1);
	rvt_read_run(d.s[1], 10, 0);
	for (int i = 0; i < 2; i++)
		ck_assert_str_eq(reeve_stream_proto(d.s[i]), "/b/1");
	exchange(100000);
	rvt_duo_end(&d);
}
END_TEST

static void
want_refusal(reeve_stream_t *s)
{
	reeve_reason_t why = {.size = sizeof(why)};
	char c;

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_read(s, &c, 1), REEVE_ENOPROTO);
		ck_assert_int_eq(reeve_write(s, &c, 1), REEVE_ENOPROTO);
	}
	ck_assert_ptr_null(reeve_stream_proto(s));
	ck_assert_int_eq(reeve_stream_reason(s, &why), 0);
	ck_assert_int_eq(why.rc, REEVE_ENOPROTO);
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
	ck_assert_int_eq(strncmp(why.id, "REEVE-MS-", 9), 0);
}

START_TEST(nothing_in_common_ends_the_stream_and_no_other)
{
	reeve_ssize at;
	int rc;

	rvt_duo_begin(&d, _i & 1);
	rc = agree(_i & 2 ? LAZY : REEVE_DIALER, d1, 1, &at);
	ck_assert_int_eq(rc, _i & 2 ? 0 : REEVE_ENOPROTO);
	ck_assert_int_eq(at, REEVE_ENOPROTO);
	for (int i = 0; i < 2; i++) {
		want_refusal(d.s[i]);
		ck_assert_int_eq(
		    reeve_negotiate(d.s[i], REEVE_DIALER, ab, 2, RVT_WAIT_MS), REEVE_EBUSY);
		reeve_close(d.s[i]);
	}
	rvt_duo_stream(&d);
	exchange(1000);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(what_is_wrong_is_told_at_once_and_changes_nothing)
{
	static const char *const bad[] = {"/a", "b"}, *const none[] = {"/a", NULL};
	static char lang[1025];
	const char *l = lang;
	reeve_stream_t *s;
	reeve_ssize at;

	memset(lang, 'x', 1024);
	lang[0] = '/';
	rvt_duo_start(&d);
	s = d.s[0];
	ck_assert_int_eq(reeve_negotiate(NULL, REEVE_DIALER, ab, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, NULL, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, ab, 0, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, ab, 1025, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, 0, ab, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, 3, ab, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, LAZY, ab, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_LISTENER | REEVE_LAZY, ab, 1, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, bad, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, none, 2, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, &l, 1, 0), REEVE_EINVAL);
	ck_assert_ptr_null(reeve_stream_proto(NULL));
	ck_assert_ptr_null(reeve_stream_proto(s));
	reeve_negotiate_async(s, REEVE_DIALER, ab, 2, NULL);
	lang[1023] = '\0'; /* the longest there is */
	ck_assert_int_eq(agree(REEVE_DIALER, cb, 2, &at), 1);
	exchange(10);
	rvt_duo_end(&d);
}
END_TEST

static reeve_ssize
refused(reeve_stream_t *s, int how, const char *const *names, unsigned n)
{
	struct rvt_done done;

	rvt_done_init(&done, RVT_WAIT_MS);
	reeve_negotiate_async(s, how, names, n, &done.op);
	return rvt_done_wait(&done);
}

START_TEST(a_stream_in_use_is_busy)
{
	struct rvt_done rd;
	reeve_ssize at;
	char c = 1;

	rvt_duo_start(&d);
	ck_assert_int_eq(refused(d.s[0], 7, ab, 2), REEVE_EINVAL);
	/* A read that found nothing does no harm; one that waits does, and so does every byte. */
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 0), 0);
	ck_assert_int_eq(reeve_read(d.s[1], &c, 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, RVT_WAIT_MS), 0);
	ck_assert_int_eq(agree(REEVE_DIALER, cb, 2, &at), 1);
	ck_assert_int_eq(at, 1);
	for (int i = 0; i < 2; i++)
		reeve_close(d.s[i]);
	rvt_duo_stream(&d);
	rvt_write_run(d.s[0], 1, 0);
	ck_assert_int_eq(reeve_negotiate(d.s[0], REEVE_DIALER, ab, 2, 100), REEVE_EBUSY);
	ck_assert_int_eq(refused(d.s[0], REEVE_DIALER, ab, 2), REEVE_EBUSY);
	rvt_read_run(d.s[1], 1, 0);
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, 100), REEVE_EBUSY);
	exchange(1000);
	for (int i = 0; i < 2; i++)
		reeve_close(d.s[i]);
	rvt_duo_stream(&d);
	rvt_done_init(&rd, RVT_WAIT_MS);
	reeve_read_async(d.s[0], &rd.op);
	ck_assert_int_eq(
	    reeve_negotiate(d.s[0], REEVE_DIALER | REEVE_LAZY, ab, 1, 100), REEVE_EBUSY);
	ck_assert_ptr_null(reeve_stream_proto(d.s[0]));
	rvt_write_run(d.s[1], 5, 0);
	ck_assert_int_eq(rvt_done_wait(&rd), 5);
	reeve_buf_unref(rd.op.buf);
	exchange(1000);
	rvt_duo_end(&d);
}
END_TEST

/* 0: nobody answers; 1: nothing has come by now. */
START_TEST(a_negotiation_ends_at_its_deadline_and_takes_the_stream_along)
{
	reeve_reason_t why = {.size = sizeof(why)};
	uint64_t start = rvt_ms();

	rvt_duo_start(&d);
	ck_assert_int_eq(
	    reeve_negotiate(d.s[0], REEVE_DIALER, ab, 2, _i ? 0 : 50), REEVE_ETIMEDOUT);
	if (!_i)
		ck_assert_uint_ge(rvt_ms() - start, 49);
	ck_assert_int_eq(reeve_stream_reason(d.s[0], &why), 0);
	ck_assert_int_eq(why.rc, REEVE_ETIMEDOUT);
	ck_assert_uint_eq(why.by, REEVE_BY_US);
	ck_assert_str_eq(why.id, "REEVE-MS-0008");
	ck_assert_int_eq(reeve_write(d.s[0], "x", 1), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, d1, 1, RVT_WAIT_MS),
	    REEVE_ERESET); /* nothing more comes */
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_cancelled_negotiation_resets_the_stream)
{
	struct rvt_done done;
	char c;

	rvt_duo_start(&d);
	rvt_done_init(&done, -1);
	reeve_negotiate_async(d.s[0], REEVE_DIALER, ab, 2, &done.op);
	reeve_op_cancel(&done.op);
	ck_assert_int_eq(rvt_done_wait(&done), REEVE_ECANCELED);
	ck_assert_int_eq(reeve_read(d.s[0], &c, 1), REEVE_ECANCELED);
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, d1, 1, RVT_WAIT_MS), REEVE_ERESET);
	rvt_duo_end(&d);
}
END_TEST

/* Started at once behind the negotiation: all wait for it, and so does the end. */
START_TEST(calls_behind_it_wait_for_it)
{
	struct rvt_done n[2], rd, wr;
	bool lazy = _i & 1;

	rvt_duo_begin(&d, _i & 2);
	for (int i = 0; i < 2; i++)
		rvt_done_init(&n[i], RVT_WAIT_MS);
	rvt_done_init(&rd, RVT_WAIT_MS);
	rvt_done_init(&wr, RVT_WAIT_MS);
	reeve_negotiate_async(
	    d.s[0], lazy ? LAZY : REEVE_DIALER, cb + lazy, lazy ? 1 : 2, &n[0].op);
	if (_i & 4) {
		rvt_write_run(d.s[0], 5000, 0);
	} else {
		reeve_write_async(d.s[0], rvt_buf_run(d.rt, 5000, 0), &wr.op);
		reeve_read_async(d.s[0], &rd.op);
	}
	ck_assert_int_eq(reeve_shut(d.s[0]), 0);
	reeve_negotiate_async(d.s[1], REEVE_LISTENER, ab, 2, &n[1].op);
	rvt_read_run(d.s[1], 5000, 0);
	rvt_read_end(d.s[1]);
	rvt_write_run(d.s[1], 10, 0);
	ck_assert_int_eq(rvt_done_wait(&n[0]), !lazy);
	ck_assert_int_eq(rvt_done_wait(&n[1]), 1);
	if (_i & 4) {
		rvt_read_run(d.s[0], 10, 0);
	} else {
		ck_assert_int_eq(rvt_done_wait(&wr), 5000);
		ck_assert_int_eq(rvt_done_wait(&rd), 10);
		reeve_buf_unref(rd.op.buf);
	}
	rvt_duo_end(&d);
}
END_TEST

/* What ends a stream ends its negotiation, with the answer that a read would get. */
START_TEST(every_end_answers)
{
	static const int rc[] = {
	    REEVE_ECLOSED, REEVE_ERESET, REEVE_EPROTO, REEVE_ENOPROTO, REEVE_EEND, REEVE_ECLOSED};
	struct rvt_done n;

	rvt_duo_begin(&d, 0);
	rvt_done_init(&n, RVT_WAIT_MS);
	reeve_negotiate_async(d.s[0], REEVE_DIALER, ab, 2, &n.op);
	if (_i == 0)
		ck_assert_int_eq(reeve_reset(d.s[0], 0), 0);
	else if (_i == 1)
		ck_assert_int_eq(reeve_reset(d.s[1], 0), 0);
	else if (_i == 2)
		ck_assert_int_eq(reeve_write(d.s[1], "\x05HTTP/", 6), 6);
	else if (_i == 3)
		ck_assert_int_eq(reeve_shut(d.s[1]), 0);
	else
		ck_assert_int_eq(reeve_abort(d.k[_i == 4], 0), 0);
	ck_assert_int_eq(rvt_done_wait(&n), rc[_i]);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_runtime_that_goes_answers_and_leaves_nothing)
{
	struct rvt_done n[2];

	rvt_duo_start(&d);
	for (int i = 0; i < 2; i++) {
		rvt_done_init(&n[i], -1);
		reeve_negotiate_async(d.s[i], REEVE_LISTENER, ab, 2, &n[i].op);
	}
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_lt(rvt_done_wait(&n[i]), 0);
		ck_assert_int_lt(reeve_negotiate(d.s[i], REEVE_DIALER, ab, 2, 100), 0);
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(closing_sends_what_was_accepted_once_there_is_agreement)
{
	struct rvt_done n, wr;

	rvt_duo_begin(&d, _i);
	rvt_done_init(&n, RVT_WAIT_MS);
	rvt_done_init(&wr, RVT_WAIT_MS);
	reeve_negotiate_async(d.s[0], REEVE_DIALER, cb, 2, &n.op);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 5000, 0), &wr.op);
	reeve_close(d.s[0]);
	d.s[0] = NULL;
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, RVT_WAIT_MS), 1);
	rvt_read_run(d.s[1], 5000, 0);
	ck_assert_int_eq(rvt_done_wait(&n), 1);
	ck_assert_int_eq(rvt_done_wait(&wr), 5000);
	rvt_read_end(d.s[1]);
	rvt_duo_end(&d);
}
END_TEST

/* Nobody reads: a negotiation is heard all the same. */
START_TEST(stopping_to_read_does_not_stop_the_negotiation)
{
	struct rvt_done n;
	bool lazy = _i & 1;
	char c;

	rvt_duo_begin(&d, _i & 2);
	rvt_done_init(&n, RVT_WAIT_MS);
	reeve_negotiate_async(d.s[0], lazy ? LAZY : REEVE_DIALER, cb + lazy, lazy ? 1 : 2, &n.op);
	ck_assert_int_eq(reeve_stop(d.s[0]), 0);
	rvt_write_run(d.s[0], 10, 0);
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, RVT_WAIT_MS), 1);
	ck_assert_int_eq(rvt_done_wait(&n), !lazy);
	rvt_read_run(d.s[1], 10, 0);
	rvt_write_run(d.s[1], 10, 0);
	ck_assert_int_eq(reeve_read(d.s[0], &c, 1), REEVE_ECLOSED);
	rvt_write_run(d.s[0], 10, 10);
	rvt_read_run(d.s[1], 10, 10);
	rvt_duo_end(&d);
}
END_TEST

/* A lazy stream of which nobody wants anything says nothing; one that is only read says its name. */
START_TEST(a_lazy_stream_speaks_when_it_is_used)
{
	struct rvt_done n, rd;

	rvt_duo_begin(&d, _i);
	ck_assert_int_eq(reeve_negotiate(d.s[0], LAZY, cb + 1, 1, -1), 0);
	rvt_done_init(&n, 50);
	reeve_negotiate_async(d.s[1], REEVE_LISTENER, ab, 2, &n.op);
	ck_assert_int_eq(rvt_done_wait(&n), REEVE_ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		reeve_close(d.s[i]);
	rvt_duo_stream(&d);
	ck_assert_int_eq(reeve_negotiate(d.s[0], LAZY, cb + 1, 1, -1), 0);
	rvt_done_init(&rd, RVT_WAIT_MS);
	reeve_read_async(d.s[0], &rd.op);
	ck_assert_int_eq(reeve_negotiate(d.s[1], REEVE_LISTENER, ab, 2, RVT_WAIT_MS), 1);
	rvt_write_run(d.s[1], 10, 0);
	ck_assert_int_eq(rvt_done_wait(&rd), 10);
	reeve_buf_unref(rd.op.buf);
	exchange(100);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("api_negotiate", {&the_first_common_name_is_agreed_on, 4},
    {&a_lazy_dialer_goes_on_at_once, 2}, {&nothing_in_common_ends_the_stream_and_no_other, 4},
    {&what_is_wrong_is_told_at_once_and_changes_nothing, 0}, {&a_stream_in_use_is_busy, 0},
    {&a_negotiation_ends_at_its_deadline_and_takes_the_stream_along, 2},
    {&a_cancelled_negotiation_resets_the_stream, 0}, {&calls_behind_it_wait_for_it, 8},
    {&every_end_answers, 6}, {&a_runtime_that_goes_answers_and_leaves_nothing, 0},
    {&closing_sends_what_was_accepted_once_there_is_agreement, 2},
    {&stopping_to_read_does_not_stop_the_negotiation, 4},
    {&a_lazy_stream_speaks_when_it_is_used, 2})
