/* test_noise.c - the handshake of /noise: who is believed and who is not. */
#include <config.h>

#include "lib/upgrade/noise.h"

#include "tests/kit/run.h"

#include <string.h>

static reeve_key_t *key[2];
static struct rv_peer_id id[2];

static void
keys(void)
{
	uint8_t seed[32];
	struct rv_pubkey pub = {.type = RV_KEY_ED25519, .len = 32};

	for (int i = 0; i < 2; i++) {
		memset(seed, i + 1, sizeof(seed));
		ck_assert_int_eq(reeve_key_from_seed(&key[i], seed), 0);
		memcpy(pub.v, reeve_key_public(key[i]), 32);
		rv_peer_id_of(&id[i], &pub);
	}
}

static void
keys_away(void)
{
	reeve_key_free(key[0]);
	reeve_key_free(key[1]);
}

/* What the peer says leaves in pieces of at most piece bytes.  Everything that both have to say is said. */
static void
talk(struct rv_noise x[2], size_t piece)
{
	const uint8_t *p;
	size_t n;

	for (int i = 0; rv_noise_out(&x[0], &p) + rv_noise_out(&x[1], &p) > 0; i ^= 1) {
		while ((n = rv_noise_out(&x[i], &p)) > 0) {
			n = n < piece ? n : piece;
			(void)rv_noise_feed(&x[1 - i], p, n);
			rv_noise_sent(&x[i], n);
		}
	}
}

static void
init(struct rv_noise x[2], const struct rv_peer_id *expect)
{
	rv_noise_init(&x[0], true, key[0], expect);
	rv_noise_init(&x[1], false, key[1], NULL);
}

static void
fini(struct rv_noise x[2])
{
	rv_noise_fini(&x[0]);
	rv_noise_fini(&x[1]);
}

START_TEST(both_ends_prove_who_they_are)
{
	static const size_t pieces[] = {1000, 7, 1};
	uint8_t k[2][2][32];
	struct rv_noise x[2];

	keys();
	init(x, &id[1]);
	talk(x, pieces[_i]);
	for (int i = 0; i < 2; i++) {
		ck_assert(x[i].done);
		ck_assert_int_eq(x[i].rc, 0);
		ck_assert(rv_peer_id_same(&x[i].peer, &id[1 - i]));
		ck_assert_int_eq(rv_xx_split(&x[i].xx, k[i][0], k[i][1]), 0);
	}
	ck_assert_mem_eq(k[0][0], k[1][1], 32);
	ck_assert_mem_eq(k[0][1], k[1][0], 32);
	ck_assert_mem_ne(k[0][0], k[0][1], 32);
	fini(x);
	keys_away();
}
END_TEST

START_TEST(messages_have_the_sizes_of_the_specification)
{
	struct rv_noise x[2];
	const uint8_t *p;

	keys();
	init(x, NULL);
	ck_assert_uint_eq(rv_noise_out(&x[0], &p), 2 + 32);
	ck_assert_uint_eq(rv_noise_out(&x[1], &p), 0);
	rv_noise_out(&x[0], &p);
	ck_assert_uint_eq(rv_noise_feed(&x[1], p, 34), 34);
	rv_noise_sent(&x[0], 34);
	ck_assert_uint_eq(rv_noise_out(&x[1], &p), 2 + 200);
	ck_assert_uint_eq(rv_noise_feed(&x[0], p, 202), 202);
	ck_assert_uint_eq(rv_noise_out(&x[0], &p), 2 + 168);
	ck_assert(x[0].done && !x[1].done);
	fini(x);
	keys_away();
}
END_TEST

START_TEST(bytes_behind_the_handshake_are_left_alone)
{
	uint8_t last[170 + 5];
	struct rv_noise x[2];
	const uint8_t *p;

	keys();
	init(x, NULL);
	rv_noise_out(&x[0], &p);
	rv_noise_feed(&x[1], p, 34);
	rv_noise_out(&x[1], &p);
	rv_noise_feed(&x[0], p, 202);
	rv_noise_out(&x[0], &p);
	memcpy(last, p, 170);
	memset(last + 170, 0x55, 5);
	ck_assert_uint_eq(rv_noise_feed(&x[1], last, sizeof(last)), 170);
	ck_assert(x[1].done && x[1].rc == 0);
	ck_assert_uint_eq(rv_noise_feed(&x[1], last + 170, 5), 0);
	fini(x);
	keys_away();
}
END_TEST

/* Message m of three with one bit changed, or cut behind byte cut. */
static int
spoil(unsigned m, size_t bit, size_t cut)
{
	static const size_t whole[3] = {34, 202, 170};
	uint8_t copy[256];
	struct rv_noise x[2];
	const uint8_t *p;
	size_t n;
	int rc;

	init(x, NULL);
	for (unsigned i = 0; i <= m; i++) {
		n = rv_noise_out(&x[i % 2], &p);
		ck_assert_uint_eq(n, whole[i]);
		memcpy(copy, p, n);
		rv_noise_sent(&x[i % 2], n);
		if (i == m && bit != SIZE_MAX)
			copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rv_noise_feed(&x[1 - i % 2], copy, i == m ? cut : n);
	}
	/* A spoilt first message shows in what comes back. */
	if (m == 0 && (n = rv_noise_out(&x[1], &p)) > 0)
		rv_noise_feed(&x[0], p, n);
	m += m == 0 && n > 0;
	rv_noise_end(&x[1 - m % 2]);
	rc = x[1 - m % 2].rc;
	ck_assert_uint_eq(rv_noise_out(&x[1 - m % 2], &p), 0);
	fini(x);
	return rc;
}

START_TEST(every_changed_bit_is_a_clean_error)
{
	static const size_t whole[3] = {34, 202, 170};
	int rc;

	keys();
	for (size_t bit = 0; bit < 8 * whole[_i]; bit++) {
		rc = spoil((unsigned)_i, bit, whole[_i]);
		/* A longer length waits for more, until the end. */
		ck_assert_msg(rc == REEVE_EPROTO || (bit < 16 && rc == REEVE_ETRUNC), "bit %zu: %s",
		    bit, reeve_errname(rc));
	}
	keys_away();
}
END_TEST

START_TEST(every_truncation_is_told)
{
	static const size_t whole[3] = {34, 202, 170};

	keys();
	for (size_t cut = 0; cut < whole[_i]; cut++)
		ck_assert_int_eq(spoil((unsigned)_i, SIZE_MAX, cut), REEVE_ETRUNC);
	keys_away();
}
END_TEST

START_TEST(somebody_else_than_expected_is_refused_and_told_nothing)
{
	struct rv_noise x[2];
	const uint8_t *p;

	keys();
	init(x, &id[0]); /* our own */
	talk(x, 1000);
	ck_assert(x[0].done);
	ck_assert_int_eq(x[0].rc, REEVE_EIDENTITY);
	ck_assert_uint_eq(rv_noise_out(&x[0], &p), 0);
	ck_assert_uint_eq(x[0].peer.len, 0);
	ck_assert(!x[1].done);
	rv_noise_end(&x[1]);
	ck_assert_int_eq(x[1].rc, REEVE_ETRUNC);
	fini(x);
	/* The listener may expect somebody too. */
	rv_noise_init(&x[0], true, key[0], NULL);
	rv_noise_init(&x[1], false, key[1], &id[1]);
	talk(x, 1000);
	ck_assert_int_eq(x[1].rc, REEVE_EIDENTITY);
	fini(x);
	keys_away();
}
END_TEST

/* The first message is in the clear: a payload in it could be anybody's. */
START_TEST(a_payload_before_there_is_a_secret_is_refused)
{
	uint8_t m[34 + 4] = {0, 36};
	struct rv_noise x;
	struct rv_xx xx;

	keys();
	rv_noise_init(&x, false, key[1], NULL);
	ck_assert_int_eq(rv_xx_init(&xx, true, "", 0), 0);
	ck_assert_int_eq(rv_xx_write(&xx, m + 2, "abcd", 4), 36);
	rv_noise_feed(&x, m, sizeof(m));
	ck_assert(x.done);
	ck_assert_int_eq(x.rc, REEVE_EPROTO);
	rv_xx_wipe(&xx);
	rv_noise_fini(&x);
	keys_away();
}
END_TEST

START_TEST(lengths_are_judged_before_the_message_comes)
{
	static const uint8_t heads[][2] = {{0, 0}, {0x10, 0x01}, {0xff, 0xff}};
	struct rv_noise x;

	keys();
	rv_noise_init(&x, false, key[1], NULL);
	ck_assert_uint_eq(rv_noise_feed(&x, heads[_i], 2), 2);
	ck_assert(x.done);
	ck_assert_int_eq(x.rc, REEVE_EPROTO);
	rv_noise_fini(&x);
	keys_away();
}
END_TEST

/* A peer whose key makes the same secret with everybody is no peer. */
START_TEST(a_point_of_small_order_is_refused)
{
	uint8_t m[34] = {0, 32};
	struct rv_noise x;

	keys();
	rv_noise_init(&x, false, key[1], NULL);
	m[2] = (uint8_t)_i; /* 0 or 1 */
	rv_noise_feed(&x, m, sizeof(m));
	ck_assert(x.done);
	ck_assert_int_eq(x.rc, REEVE_EPROTO);
	rv_noise_fini(&x);
	keys_away();
}
END_TEST

START_TEST(nothing_secret_is_left)
{
	static const struct rv_noise zero;
	struct rv_noise x[2];

	keys();
	init(x, NULL);
	talk(x, 1000);
	ck_assert_int_eq(x[0].rc, 0);
	fini(x);
	ck_assert_mem_eq(&x[0], &zero, sizeof(zero));
	ck_assert_mem_eq(&x[1], &zero, sizeof(zero));
	keys_away();
}
END_TEST

RVT_MAIN_TABLE("noise", {&both_ends_prove_who_they_are, 3},
    {&messages_have_the_sizes_of_the_specification, 0},
    {&bytes_behind_the_handshake_are_left_alone, 0}, {&every_changed_bit_is_a_clean_error, 3},
    {&every_truncation_is_told, 3}, {&somebody_else_than_expected_is_refused_and_told_nothing, 0},
    {&a_payload_before_there_is_a_secret_is_refused, 0},
    {&lengths_are_judged_before_the_message_comes, 3}, {&a_point_of_small_order_is_refused, 2},
    {&nothing_secret_is_left, 0})
