/* test_identity.c - public keys, peer ids and their texts; vectors of the libp2p TLS and peer id specifications. */
#include <config.h>

#include "lib/upgrade/identity.h"

#include "tests/kit/flow.h"
#include "tests/kit/run.h"

#include <stdio.h>
#include <string.h>

static size_t
unhex(uint8_t *out, const char *text)
{
	size_t n = 0;
	unsigned byte;

	for (; *text != '\0'; text += 2) {
		ck_assert_int_eq(sscanf(text, "%2x", &byte), 1);
		out[n++] = (uint8_t)byte;
	}
	return n;
}

START_TEST(published_keys_have_published_ids)
{
	static const struct {
		const char *key, *text;
	} row[] = {
	    {"080112201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e",
		"12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq"},
	    {"08011220a77f1d92fedb59dddaea5a1c4abd1ac2fbde7d7b879ed364501809923d7c11b9",
		"12D3KooWM6CgA9iBFZmcYAHA6A2qvbAxqfkmrYiRQuz3XEsk4Ksv"},
	};
	struct rv_peer_id id, back;
	uint8_t key[64], again[RV_PUBKEY_MAX];
	char text[RV_PEER_TEXT];
	struct rv_pubkey k;
	size_t n;

	for (size_t i = 0; i < 2; i++) {
		n = unhex(key, row[i].key);
		ck_assert_int_eq(rv_pubkey_get(&k, key, n), 0);
		ck_assert_uint_eq(k.type, RV_KEY_ED25519);
		ck_assert_uint_eq(rv_pubkey_put(again, &k), n);
		ck_assert_mem_eq(again, key, n);
		rv_peer_id_of(&id, &k);
		ck_assert_uint_eq(rv_peer_id_text(&id, text), strlen(row[i].text));
		ck_assert_str_eq(text, row[i].text);
		ck_assert_int_eq(rv_peer_id_parse(&back, text), 0);
		ck_assert(rv_peer_id_same(&id, &back));
	}
}
END_TEST

START_TEST(every_key_comes_back_from_its_text)
{
	struct rv_pubkey k = {.type = RV_KEY_ED25519, .len = 32};
	struct rv_peer_id id, back;
	char text[RV_PEER_TEXT];
	uint32_t seed = rvt_seed();

	for (int i = 0; i < 3000; i++) {
		k.type = i % 2 ? RV_KEY_ED25519 : RV_KEY_SECP256K1;
		k.len = i % 2 ? 32 : 33;
		for (uint32_t j = 0; j < k.len; j++)
			k.v[j] = i < 10 ? (uint8_t)(i / 2 * 51) : (uint8_t)rvt_random(&seed);
		rv_peer_id_of(&id, &k);
		ck_assert_uint_lt(rv_peer_id_text(&id, text), RV_PEER_TEXT);
		ck_assert_int_eq(strncmp(text, i % 2 ? "12D3KooW" : "16Uiu2H", i % 2 ? 8 : 7), 0);
		ck_assert_int_eq(rv_peer_id_parse(&back, text), 0);
		ck_assert(rv_peer_id_same(&id, &back));
		back.v[20] ^= 1;
		ck_assert(!rv_peer_id_same(&id, &back));
	}
}
END_TEST

START_TEST(hashed_and_content_ids_are_understood)
{
	struct rv_peer_id a, b;
	char text[RV_PEER_TEXT];

	ck_assert_int_eq(rv_peer_id_parse(&a, "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"), 0);
	ck_assert_uint_eq(a.len, 34);
	ck_assert_int_eq(
	    rv_peer_id_parse(&b, "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe"), 0);
	ck_assert(rv_peer_id_same(&a, &b));
	rv_peer_id_text(&b, text);
	ck_assert_str_eq(text, "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N");
}
END_TEST

START_TEST(what_is_no_id_is_refused)
{
	static const char *const bad[] = {"", "1", "0", "12D3KooW",
	    "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3p0",
	    "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pqq", "b", "bafz",
	    "bafybeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe",
	    "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqx",
	    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
	    "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5"};
	struct rv_peer_id id;
	char ones[100];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(rv_peer_id_parse(&id, bad[i]) == REEVE_EINVAL, "%s", bad[i]);
	memset(ones, '1', sizeof(ones)); /* zeroes without end */
	ones[sizeof(ones) - 1] = '\0';
	ck_assert_int_eq(rv_peer_id_parse(&id, ones), REEVE_EINVAL);
	ck_assert_int_eq(rv_peer_id_parse(&id, NULL), REEVE_EINVAL);
}
END_TEST

START_TEST(keys_of_any_other_form_are_refused)
{
	static const struct {
		const char *hex;
		int rc;
	} row[] = {
	    {"", REEVE_EPROTO},
	    {"0801", REEVE_EPROTO},
	    {"1220"
	     "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e",
		REEVE_EPROTO},
	    {"0801121f"
	     "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce2",
		REEVE_EPROTO},
	    {"08011220"
	     "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce2",
		REEVE_EPROTO}, /* cut */
	    {"08001200", REEVE_ENOTSUP},
	    {"08031200", REEVE_ENOTSUP},
	    {"08041200", REEVE_ENOTSUP},
	    {"0b", REEVE_EPROTO},
	    {"8000", REEVE_EPROTO},
	    {"12ffffffffffffffff7f", REEVE_EPROTO},
	    /* other order, a field that we do not know: the same key */
	    {"12201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e"
	     "1a0161"
	     "0801",
		0},
	};
	struct rv_pubkey k;
	uint8_t b[128];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		ck_assert_msg(
		    rv_pubkey_get(&k, b, unhex(b, row[i].hex)) == row[i].rc, "row %zu", i);
}
END_TEST

RVT_MAIN("identity", &published_keys_have_published_ids, &every_key_comes_back_from_its_text,
    &hashed_and_content_ids_are_understood, &what_is_no_id_is_refused,
    &keys_of_any_other_form_are_refused)
