/* test_multistream.c - multistream-select: two machines against each other, and one against scripted bytes. */
#include <config.h>

#include "lib/upgrade/multistream.h"

#include "tests/kit/flow.h"
#include "tests/kit/run.h"

#include <stdio.h>
#include <string.h>

#define HEADER "\x13/multistream/1.0.0\n"
#define NA     "\x03na\n"
#define LS     "\x03ls\n"

static const char *const one_two[] = {"/proto1", "/proto2"};
static const char *const three_two[] = {"/proto3", "/proto2"};
static const char *const other[] = {"/proto4"};

/* Everything m has to say is n bytes at p. */
static void
want_out(struct rv_ms *m, const char *text, size_t n)
{
	const uint8_t *p;

	ck_assert_uint_eq(rv_ms_out(m, &p), n);
	ck_assert_mem_eq(p, text, n);
	rv_ms_sent(m, n);
}

/* Feed, in pieces of at most chunk bytes; returns what was used. */
static size_t
feed(struct rv_ms *m, const char *text, size_t n, size_t chunk)
{
	size_t used = 0, k, take;

	while (used < n) {
		take = n - used < chunk ? n - used : chunk;
		k = rv_ms_feed(m, (const uint8_t *)text + used, take);
		used += k;
		if (k < take)
			break;
	}
	return used;
}
#define SAY(m, text)  feed((m), text, sizeof(text) - 1, 1000)
#define WANT(m, text) want_out((m), text, sizeof(text) - 1)

static void
want_end(const struct rv_ms *m, int rc)
{
	ck_assert(m->done);
	ck_assert_int_eq(m->rc, rc);
	ck_assert_ptr_nonnull(m->id);
	ck_assert_int_eq(m->id[0] == '\0', rc == 0);
}

/* Carry bytes of at most chunk between the two until neither has any; extra is behind all that the dialer says. */
static void
negotiate(struct rv_ms *d, struct rv_ms *l, const char *extra, size_t chunk)
{
	size_t nextra = strlen(extra), n;
	const uint8_t *p;
	bool more = true;

	while (more) {
		more = false;
		n = rv_ms_out(d, &p);
		n = n < chunk ? n : chunk;
		if (n > 0) {
			rv_ms_sent(d, rv_ms_feed(l, p, n));
			more = !l->done;
		} else if (nextra > 0 && rv_ms_may_send(d) && !l->done) {
			n = rv_ms_feed(l, (const uint8_t *)extra, nextra < chunk ? nextra : chunk);
			extra += n;
			nextra -= n;
			more = n > 0;
		}
		n = rv_ms_out(l, &p);
		n = n < chunk ? n : chunk;
		if (n > 0 && !d->done) {
			rv_ms_sent(l, rv_ms_feed(d, p, n));
			more = true;
		}
	}
	if (d->done && d->rc != 0)
		rv_ms_end(l);
	if (l->done && l->rc != 0)
		rv_ms_end(d);
}

static const size_t chunks[] = {1, 2, 3, 7, 20, 1000};

START_TEST(both_ends_agree_on_the_first_common_name)
{
	struct rv_ms d, l;

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		ck_assert_int_eq(rv_ms_init(&d, RV_MS_DIALER, three_two, 2), 0);
		ck_assert_int_eq(rv_ms_init(&l, RV_MS_LISTENER, one_two, 2), 0);
		ck_assert(!rv_ms_may_send(&d));
		negotiate(&d, &l, "", chunks[i]);
		want_end(&d, 0);
		want_end(&l, 0);
		ck_assert_uint_eq(d.at, 1);
		ck_assert_uint_eq(l.at, 1);
		ck_assert(rv_ms_may_send(&d) && rv_ms_may_send(&l));
		ck_assert_int_eq(rv_ms_init(&d, RV_MS_LAZY, one_two + 1, 1), 0);
		ck_assert_int_eq(rv_ms_init(&l, RV_MS_LISTENER, one_two, 2), 0);
		ck_assert(rv_ms_may_send(&d));
		negotiate(&d, &l, "ping", chunks[i]);
		want_end(&d, 0);
		want_end(&l, 0);
		ck_assert_uint_eq(l.at, 1);
	}
}
END_TEST

START_TEST(header_and_proposal_leave_together)
{
	struct rv_ms m;

	ck_assert_int_eq(rv_ms_init(&m, RV_MS_DIALER, three_two, 2), 0);
	WANT(&m, HEADER "\x08/proto3\n");
	ck_assert_uint_eq(SAY(&m, HEADER), sizeof(HEADER) - 1);
	WANT(&m, "");
	SAY(&m, NA);
	WANT(&m, "\x08/proto2\n");
	ck_assert_uint_eq(SAY(&m, "\x08/proto2\nnext"), 9); /* what follows is not ours */
	want_end(&m, 0);
	ck_assert_int_eq(rv_ms_init(&m, RV_MS_LISTENER, one_two, 2), 0);
	WANT(&m, "");
	SAY(&m, HEADER "\x08/proto9\n");
	WANT(&m, HEADER NA);
	ck_assert_uint_eq(SAY(&m, "\x08/proto1\n\x00"), 9);
	WANT(&m, "\x08/proto1\n");
	want_end(&m, 0);
}
END_TEST

START_TEST(known_encodings)
{
	static const char *const names[] = {
	    "/plaintext/2.0.0", "/mplex/6.7.0", "/yamux/1.0.0", "/noise", "/tls/1.0.0"};
	static const char *const text[] = {"\x11/plaintext/2.0.0\n", "\x0d/mplex/6.7.0\n",
	    "\x0d/yamux/1.0.0\n", "\x07/noise\n", "\x0b/tls/1.0.0\n"};
	char all[64];
	struct rv_ms m;

	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(rv_ms_init(&m, RV_MS_DIALER, names + i, 1), 0);
		snprintf(all, sizeof(all), HEADER "%s", text[i]);
		want_out(&m, all, strlen(all));
	}
}
END_TEST

START_TEST(nothing_in_common_fails_and_is_no_violation)
{
	struct rv_ms d, l;
	uint32_t seed = rvt_seed();
	char early[256];

	for (int i = 0; i < 1000; i++) {
		uint32_t r = rvt_random(&seed);
		bool lazy = r & 1;
		size_t n = lazy ? (r >> 8) % 255 : 0;

		for (size_t k = 0; k < n; k++)
			early[k] = (char)(1 + rvt_random(&seed) % 254);
		early[n] = '\0';
		ck_assert_int_eq(rv_ms_init(&d, lazy ? RV_MS_LAZY : RV_MS_DIALER,
				     lazy ? other : three_two, lazy ? 1 : 1 + (r >> 2) % 2),
		    0);
		ck_assert_int_eq(rv_ms_init(&l, RV_MS_LISTENER, lazy ? one_two : other,
				     lazy ? 1 + (r >> 1) % 2 : 1),
		    0);
		negotiate(&d, &l, early, 1 + r % 40);
		want_end(&d, REEVE_ENOPROTO);
		if (!l.done)
			rv_ms_end(&l);
		want_end(&l, REEVE_ENOPROTO);
	}
}
END_TEST

/* What the other end says, and how that ends. */
START_TEST(every_answer_has_one_outcome)
{
	static const struct {
		enum rv_ms_mode mode;
		const char *in;
		size_t n;
		int rc; /* REEVE_EAGAIN: goes on */
	} row[] = {
#define ROW(mode, in, rc) {RV_MS_##mode, in, sizeof(in) - 1, rc}
	    ROW(DIALER, HEADER, REEVE_EAGAIN),
	    ROW(DIALER, HEADER "\x08/proto1\n", 0),
	    ROW(DIALER, HEADER NA, REEVE_EAGAIN),
	    ROW(DIALER, HEADER NA NA, REEVE_ENOPROTO),
	    ROW(DIALER, HEADER HEADER, REEVE_EPROTO),
	    ROW(DIALER, HEADER LS, REEVE_EPROTO),
	    ROW(DIALER, HEADER "\x08/proto2\n", REEVE_EPROTO),
	    ROW(DIALER, "\x08/proto1\n", REEVE_EPROTO),
	    ROW(DIALER, NA, REEVE_EPROTO),
	    ROW(DIALER, "\x13/multistream/2.0.0\n", REEVE_EPROTO),
	    ROW(DIALER, HEADER "\x00", REEVE_EPROTO),
	    ROW(DIALER, HEADER "\x80\x00", REEVE_EPROTO),
	    ROW(DIALER, HEADER "\x81\x08", REEVE_EPROTO), /* 1025 */
	    ROW(DIALER, HEADER "\xff\xff\x01", REEVE_EPROTO),
	    ROW(DIALER, HEADER "\x08/proto1x", REEVE_EPROTO),
	    ROW(LAZY, HEADER "\x08/proto1\n", 0),
	    ROW(LAZY, HEADER NA, REEVE_ENOPROTO),
	    ROW(LAZY, HEADER HEADER, REEVE_EPROTO),
	    ROW(LISTENER, HEADER, REEVE_EAGAIN),
	    ROW(LISTENER, HEADER "\x08/proto2\n", 0),
	    ROW(LISTENER, HEADER "\x08/proto3\n", REEVE_EAGAIN),
	    ROW(LISTENER, HEADER "\x08/proto3\n" HEADER,
		REEVE_EAGAIN), /* another name that we do not know */
	    ROW(LISTENER, HEADER "\x08/proto3\n\x05HTTP/", REEVE_ENOPROTO),
	    ROW(LISTENER, HEADER "\x08/proto3\n\x00", REEVE_ENOPROTO),
	    ROW(LISTENER,
		HEADER "\x04"
		       "foo\n",
		REEVE_EPROTO),
	    ROW(LISTENER, HEADER NA, REEVE_EPROTO),
	    ROW(LISTENER, "\x08/proto1\n", REEVE_EPROTO),
	    ROW(LISTENER, "GET / HTTP/1.1\r\n\r\n" HEADER HEADER HEADER HEADER, REEVE_EPROTO),
	};
	struct rv_ms m;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++) {
			ck_assert_int_eq(rv_ms_init(&m, row[i].mode, one_two, 2), 0);
			(void)feed(&m, row[i].in, row[i].n, chunks[c]);
			ck_assert_msg(m.done == (row[i].rc != REEVE_EAGAIN), "row %zu", i);
			if (m.done)
				ck_assert_msg(m.rc == row[i].rc, "row %zu: %d", i, m.rc);
			rv_ms_end(&m); /* changes nothing that is decided */
			if (row[i].rc != REEVE_EAGAIN)
				ck_assert_int_eq(m.rc, row[i].rc);
			else
				want_end(&m, REEVE_ENOPROTO);
		}
}
END_TEST

START_TEST(the_end_while_lazy_is_a_cut)
{
	struct rv_ms m;

	ck_assert_int_eq(rv_ms_init(&m, RV_MS_LAZY, one_two, 1), 0);
	SAY(&m, HEADER);
	rv_ms_end(&m);
	want_end(&m, REEVE_ETRUNC);
}
END_TEST

START_TEST(ls_is_answered_once)
{
	static const char *const names[] = {"/a/1", "/b/2"};
	struct rv_ms m;

	ck_assert_int_eq(rv_ms_init(&m, RV_MS_LISTENER, names, 2), 0);
	SAY(&m, HEADER LS);
	WANT(&m, HEADER "\x0d\x05/a/1\n\x05/b/2\n\n");
	SAY(&m, LS);
	WANT(&m, NA);
	SAY(&m, "\x05/b/2\n");
	WANT(&m, "\x05/b/2\n");
	want_end(&m, 0);
	ck_assert_uint_eq(m.at, 1);
}
END_TEST

START_TEST(proposals_and_bytes_are_bounded)
{
	char name[RV_MS_MESSAGE + 2];
	struct rv_ms m;
	unsigned i;

	ck_assert_int_eq(rv_ms_init(&m, RV_MS_LISTENER, one_two, 2), 0);
	SAY(&m, HEADER);
	for (i = 0; i < RV_MS_PROPOSALS && !m.done; i++)
		SAY(&m, "\x08/proto3\n");
	ck_assert(!m.done);
	SAY(&m, "\x08/proto1\n");
	want_end(&m, REEVE_ELIMIT);

	ck_assert_int_eq(rv_ms_init(&m, RV_MS_LISTENER, one_two, 2), 0);
	SAY(&m, HEADER);
	memset(name, 'x', sizeof(name));
	name[0] = (char)0x80;
	name[1] = 0x08;
	name[2] = '/';
	name[sizeof(name) - 1] = '\n';
	for (i = 0; i <= RV_MS_BYTES / RV_MS_MESSAGE && !m.done; i++)
		feed(&m, name, sizeof(name), 100);
	want_end(&m, REEVE_ELIMIT);
}
END_TEST

START_TEST(names_are_judged_before_they_are_used)
{
	static const char *const bad[] = {"", "proto", "/a\nb", "\n"};
	char longest[RV_MS_MESSAGE + 1];
	const char *name = longest;
	struct rv_ms m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(rv_ms_init(&m, RV_MS_DIALER, bad + i, 1), REEVE_EINVAL);
	ck_assert_int_eq(rv_ms_init(&m, RV_MS_DIALER, one_two, 0), REEVE_EINVAL);
	memset(longest, 'n', sizeof(longest));
	longest[0] = '/';
	longest[RV_MS_MESSAGE] = '\0';
	ck_assert_int_eq(rv_ms_init(&m, RV_MS_DIALER, &name, 1), REEVE_EINVAL);
	longest[RV_MS_MESSAGE - 1] = '\0';
	ck_assert_int_eq(rv_ms_init(&m, RV_MS_DIALER, &name, 1), 0);
	ck_assert_int_eq(rv_ms_init(&m, RV_MS_LISTENER, &name, 1), 0);
}
END_TEST

START_TEST(the_longest_names_are_negotiated)
{
	static char text[3][RV_MS_MESSAGE];
	const char *name[3] = {text[0], text[1], text[2]};
	struct rv_ms d, l;

	for (int i = 0; i < 3; i++) {
		memset(text[i], 'a' + i, RV_MS_MESSAGE - 1);
		text[i][0] = '/';
		text[i][RV_MS_MESSAGE - 1] = '\0';
	}
	ck_assert_int_eq(rv_ms_init(&d, RV_MS_DIALER, name, 3), 0);
	ck_assert_int_eq(rv_ms_init(&l, RV_MS_LISTENER, name + 2, 1), 0);
	negotiate(&d, &l, "", 100000);
	want_end(&d, 0);
	want_end(&l, 0);
	ck_assert_uint_eq(d.at, 2);
}
END_TEST

RVT_MAIN("multistream", &both_ends_agree_on_the_first_common_name,
    &header_and_proposal_leave_together, &known_encodings,
    &nothing_in_common_fails_and_is_no_violation, &every_answer_has_one_outcome,
    &the_end_while_lazy_is_a_cut, &ls_is_answered_once, &proposals_and_bytes_are_bounded,
    &names_are_judged_before_they_are_used, &the_longest_names_are_negotiated)
