/* test_api_key.c - the public calls of key.h, in a library with Noise and in one without. */
#include <config.h>

#include <reeve/reeve.h>

#include "tests/kit/run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint8_t seed[32] = {1, 2, 3};

#ifdef HAVE_NOISE

START_TEST(a_key_is_made_kept_and_found_again)
{
	static const uint8_t head[4] = {0x08, 0x01, 0x12, 0x40};
	reeve_key_t *k[4];
	char path[64], text[2][80];
	uint8_t bytes[68];

	snprintf(path, sizeof(path), "test_api_key.%d", (int)getpid());
	ck_assert_int_eq(reeve_key_from_seed(&k[0], seed), 0);
	ck_assert_int_eq(reeve_key_save(k[0], path), 0);
	ck_assert_int_eq(reeve_key_load(&k[1], path), 0);
	memcpy(bytes, head, 4);
	memcpy(bytes + 4, seed, 32);
	memcpy(bytes + 36, reeve_key_public(k[0]), 32);
	ck_assert_int_eq(reeve_key_from_bytes(&k[2], bytes, sizeof(bytes)), 0);
	ck_assert_int_eq(reeve_key_generate(&k[3]), 0);
	ck_assert_int_eq(reeve_key_peer_id(k[0], text[0], 80), 52);
	for (int i = 1; i < 4; i++) {
		ck_assert_int_eq(reeve_key_peer_id(k[i], text[1], 80), 52);
		ck_assert_int_eq(strcmp(text[0], text[1]) == 0, i != 3);
	}
	for (int i = 0; i < 4; i++)
		reeve_key_free(k[i]);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

#else

START_TEST(a_key_is_made_kept_and_found_again)
{
	reeve_upgrade_t up = {.size = sizeof(up), .security = REEVE_NOISE};
	reeve_conn_t *pair[2];
	reeve_cfg_t cfg;
	reeve_key_t *k;
	reeve_rt_t *rt;
	char text[80];

	ck_assert_int_eq(reeve_key_from_seed(&k, seed), REEVE_ENOTSUP);
	ck_assert_int_eq(reeve_key_from_bytes(&k, seed, 32), REEVE_ENOTSUP);
	ck_assert_int_eq(reeve_key_generate(&k), REEVE_ENOTSUP);
	ck_assert_int_eq(reeve_key_load(&k, "x"), REEVE_ENOTSUP);
	ck_assert_int_eq(reeve_key_save(NULL, "x"), REEVE_ENOTSUP);
	ck_assert_int_eq(reeve_key_peer_id(NULL, text, 80), REEVE_ENOTSUP);
	ck_assert_ptr_null(reeve_key_public(NULL));
	reeve_key_free(NULL);
	reeve_cfg_init(&cfg);
	cfg.upgrade = &up;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_conn_pair(pair, rt, &cfg), REEVE_ENOTSUP);
	reeve_rt_destroy(rt);
}
END_TEST

#endif

RVT_MAIN("api_key", &a_key_is_made_kept_and_found_again)
