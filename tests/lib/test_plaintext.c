/* test_plaintext.c - the exchange of plaintext 2.0. */
#include <config.h>

#include "lib/upgrade/plaintext.h"

#include "tests/kit/run.h"

#include <string.h>

static struct rv_pubkey
key_of(unsigned n)
{
	struct rv_pubkey k = {.type = RV_KEY_ED25519, .len = 32};

	memset(k.v, (int)n, 32);
	return k;
}

static size_t
message(uint8_t *out, unsigned n)
{
	struct rv_pubkey k = key_of(n);
	struct rv_plaintext x;
	const uint8_t *p;
	size_t len;

	rv_plaintext_init(&x, &k, NULL);
	len = rv_plaintext_out(&x, &p);
	memcpy(out, p, len);
	return len;
}

START_TEST(the_message_is_the_one_of_the_specification)
{
	static const uint8_t head[] = {0x4e, 0x0a, 0x26, 0x00, 0x24, 0x08, 0x01, 0x12, 0x20},
			     mid[] = {0x12, 0x24, 0x08, 0x01, 0x12, 0x20};
	uint8_t m[128];

	ck_assert_uint_eq(message(m, 7), 79);
	ck_assert_mem_eq(m, head, sizeof(head));
	ck_assert_mem_eq(m + 41, mid, sizeof(mid));
	ck_assert_uint_eq(m[9], 7);
	ck_assert_uint_eq(m[78], 7);
}
END_TEST

START_TEST(both_ends_learn_who_the_other_is)
{
	struct rv_pubkey k[2] = {key_of(1), key_of(2)};
	struct rv_peer_id id[2];
	struct rv_plaintext x[2];
	const uint8_t *p;
	size_t n;
	int i;

	for (i = 0; i < 2; i++)
		rv_peer_id_of(&id[i], &k[i]);
	rv_plaintext_init(&x[0], &k[0], &id[1]);
	rv_plaintext_init(&x[1], &k[1], NULL);
	while (rv_plaintext_out(&x[0], &p) + rv_plaintext_out(&x[1], &p) > 0)
		for (i = 0; i < 2; i++) {
			n = rv_plaintext_out(&x[i], &p);
			if (n > 0)
				rv_plaintext_sent(&x[i], rv_plaintext_feed(&x[!i], p, 1));
		}
	for (i = 0; i < 2; i++) {
		ck_assert(x[i].done);
		ck_assert_int_eq(x[i].rc, 0);
		ck_assert(rv_peer_id_same(&x[i].peer, &id[!i]));
		ck_assert_str_eq(x[i].id, "");
	}
}
END_TEST

START_TEST(bytes_behind_the_message_are_left_alone)
{
	struct rv_pubkey k = key_of(1);
	struct rv_plaintext x;
	uint8_t m[128];
	size_t n = message(m, 3);

	memcpy(m + n, "next", 4);
	rv_plaintext_init(&x, &k, NULL);
	ck_assert_uint_eq(rv_plaintext_feed(&x, m, n + 4), n);
	ck_assert_int_eq(x.rc, 0);
	ck_assert_uint_eq(rv_plaintext_feed(&x, m + n, 4), 0);
}
END_TEST

/* One change to a good message. */
START_TEST(lies_and_garbage_are_told_apart)
{
	static const struct {
		unsigned at;
		uint8_t to;
		int rc;
	} row[] = {
	    {50, 9, REEVE_EIDENTITY}, /* the key is not the id's */
	    {10, 9, REEVE_EIDENTITY}, /* the id is not the key's */
	    {0, 0, REEVE_EPROTO},     /* empty */
	    {0, 0x4d, REEVE_EPROTO},  /* a byte short */
	    {1, 0x12, REEVE_EPROTO},  /* no id */
	    {41, 0x0a, REEVE_EPROTO}, /* no key */
	    {41, 0x1a, REEVE_EPROTO}, /* no key: an unknown field */
	    {2, 0x7f, REEVE_EPROTO},  /* longer than the message */
	    {3, 0x12, REEVE_EPROTO},  /* a hash of the wrong length */
	    {4, 0x23, REEVE_EPROTO},
	    {44, 0x03, REEVE_ENOTSUP}, /* another type of key */
	    {44, 0x05, REEVE_ENOTSUP},
	    {46, 0x1f, REEVE_EPROTO},
	};
	struct rv_pubkey k = key_of(1);
	struct rv_plaintext x;
	uint8_t m[128];
	size_t n, i, j;
	const uint8_t *p;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		n = message(m, 3);
		m[row[i].at] = row[i].to;
		rv_plaintext_init(&x, &k, NULL);
		for (j = 0; j < n && !x.done; j++)
			(void)rv_plaintext_feed(&x, m + j, 1);
		ck_assert_msg(x.done && x.rc == row[i].rc, "row %zu: %d", i, x.rc);
		ck_assert_uint_gt(strlen(x.id), 0);
		ck_assert_uint_eq(rv_plaintext_out(&x, &p), 0);
	}
}
END_TEST

START_TEST(somebody_else_than_expected_is_refused)
{
	struct rv_pubkey k = key_of(1), other = key_of(4);
	struct rv_peer_id expect;
	struct rv_plaintext x;
	uint8_t m[128];

	rv_peer_id_of(&expect, &other);
	rv_plaintext_init(&x, &k, &expect);
	(void)rv_plaintext_feed(&x, m, message(m, 3));
	ck_assert_int_eq(x.rc, REEVE_EIDENTITY);
	rv_plaintext_init(&x, &k, &expect);
	(void)rv_plaintext_feed(&x, m, message(m, 4));
	ck_assert_int_eq(x.rc, 0);
}
END_TEST

START_TEST(length_is_judged_before_the_message_comes)
{
	static const uint8_t exact[] = {0x80, 0x08}, over[] = {0x81, 0x08},
			     huge[] = {0xff, 0xff, 0x7f};
	struct rv_pubkey k = key_of(1);
	struct rv_plaintext x;

	rv_plaintext_init(&x, &k, NULL);
	ck_assert_uint_eq(rv_plaintext_feed(&x, exact, 2), 2);
	ck_assert(!x.done);
	rv_plaintext_end(&x);
	ck_assert_int_eq(x.rc, REEVE_ETRUNC);
	rv_plaintext_init(&x, &k, NULL);
	(void)rv_plaintext_feed(&x, over, 2);
	ck_assert_int_eq(x.rc, REEVE_EPROTO);
	rv_plaintext_init(&x, &k, NULL);
	ck_assert_uint_eq(rv_plaintext_feed(&x, huge, 3), 2);
	ck_assert_int_eq(x.rc, REEVE_EPROTO);
	rv_plaintext_end(&x);
	ck_assert_int_eq(x.rc, REEVE_EPROTO);
}
END_TEST

START_TEST(fields_that_are_not_known_are_skipped)
{
	struct rv_pubkey k = key_of(1);
	struct rv_plaintext x;
	uint8_t m[128];
	size_t n = message(m, 3);

	memcpy(m + n,
	    "\x1a\x03"
	    "abc"
	    "\x20\x01"
	    "\x2d"
	    "1234",
	    12);
	m[0] = (uint8_t)(m[0] + 12);
	rv_plaintext_init(&x, &k, NULL);
	ck_assert_uint_eq(rv_plaintext_feed(&x, m, n + 12), n + 12);
	ck_assert_int_eq(x.rc, 0);
}
END_TEST

RVT_MAIN("plaintext", &the_message_is_the_one_of_the_specification,
    &both_ends_learn_who_the_other_is, &bytes_behind_the_message_are_left_alone,
    &lies_and_garbage_are_told_apart, &somebody_else_than_expected_is_refused,
    &length_is_judged_before_the_message_comes, &fields_that_are_not_known_are_skipped)
