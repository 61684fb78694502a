/* test_key.c - identities: their encoding, their files, their end. */
#include <config.h>

#include "lib/key.h"

#include "tests/kit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/upgrade/identity.h"
#include "lib/upgrade/noise_crypto.h"

/* The key of the first certificate vector in libp2p's TLS specification, and its peer id. */
static const uint8_t seed[32] = {0x7e, 0x08, 0x30, 0x61, 0x7c, 0x4a, 0x7d, 0xe8, 0x39, 0x25, 0xdf,
    0xb2, 0x69, 0x45, 0x56, 0xb1, 0x29, 0x36, 0xc4, 0x77, 0xa0, 0xe1, 0xfe, 0xb2, 0xe1, 0x48, 0xec,
    0x9d, 0xa6, 0x0f, 0xee, 0x7d};
static const char id_text[] = "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq";

static char dir[64], path[96];

static void
folder(void)
{
	snprintf(dir, sizeof(dir), "test_key.%d", (int)getpid());
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/key", dir);
}

static void
folder_away(void)
{
	(void)unlink(path);
	/* Nothing half written is left. */
	ck_assert_int_eq(rmdir(dir), 0);
}

static size_t
file(uint8_t out[256])
{
	FILE *f = fopen(path, "rb");
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(out, 1, 256, f);
	fclose(f);
	return n;
}

static void
put(const void *p, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, p, n), n);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

START_TEST(a_seed_has_the_public_half_and_the_id_of_the_specification)
{
	char text[80], small[52];
	reeve_key_t *k;

	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	ck_assert_uint_eq(reeve_key_public(k)[0], 0x1e);
	ck_assert_uint_eq(reeve_key_public(k)[31], 0x7e);
	ck_assert_int_eq(reeve_key_peer_id(k, text, sizeof(text)), 52);
	ck_assert_str_eq(text, id_text);
	ck_assert_int_eq(reeve_key_peer_id(k, small, sizeof(small)), REEVE_EINVAL);
	reeve_key_free(k);
	reeve_key_free(NULL);
	ck_assert_ptr_null(reeve_key_public(NULL));
}
END_TEST

START_TEST(the_file_is_what_other_implementations_read)
{
	static const uint8_t head[] = {0x08, 0x01, 0x12, 0x40};
	uint8_t b[256];
	struct stat st;
	reeve_key_t *k, *again;

	folder();
	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	ck_assert_int_eq(reeve_key_save(k, path), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_uint_eq(file(b), 68);
	ck_assert_mem_eq(b, head, sizeof(head));
	ck_assert_mem_eq(b + 4, seed, 32);
	ck_assert_mem_eq(b + 36, reeve_key_public(k), 32);
	ck_assert_int_eq(reeve_key_load(&again, path), 0);
	ck_assert_mem_eq(reeve_key_public(again), reeve_key_public(k), 32);
	reeve_key_free(again);
	reeve_key_free(k);
	folder_away();
}
END_TEST

START_TEST(two_generated_keys_differ)
{
	reeve_key_t *a, *b;

	ck_assert_int_eq(reeve_key_generate(&a), 0);
	ck_assert_int_eq(reeve_key_generate(&b), 0);
	ck_assert_mem_ne(reeve_key_public(a), reeve_key_public(b), 32);
	reeve_key_free(a);
	reeve_key_free(b);
}
END_TEST

START_TEST(a_file_of_the_same_kind_is_replaced_and_nothing_else)
{
	uint8_t b[256];
	reeve_key_t *k;

	folder();
	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	put("old", 3, 0600);
	ck_assert_int_eq(reeve_key_save(k, path), 0);
	ck_assert_uint_eq(file(b), 68);
	put("other", 5, 0644);
	ck_assert_int_eq(reeve_key_save(k, path), REEVE_ESYS_BASE - EEXIST);
	ck_assert_uint_eq(file(b), 5);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink("/dev/null", path), 0);
	ck_assert_int_eq(reeve_key_save(k, path), REEVE_ESYS_BASE - EEXIST);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0600), 0);
	ck_assert_int_eq(reeve_key_save(k, path), REEVE_ESYS_BASE - EEXIST);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(reeve_key_save(k, "no/such/folder"), REEVE_ESYS_BASE - ENOENT);
	ck_assert_int_eq(reeve_key_save(k, ""), REEVE_EINVAL);
	reeve_key_free(k);
	folder_away();
}
END_TEST

START_TEST(what_is_no_key_is_told_apart)
{
	uint8_t b[300] = {0x08, 0x01, 0x12, 0x40};
	reeve_key_t *k, *out = NULL;

	folder();
	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	memcpy(b + 4, seed, 32);
	memcpy(b + 36, reeve_key_public(k), 32);
	for (size_t n = 0; n < 68; n++)
		ck_assert_int_eq(reeve_key_from_bytes(&out, b, n), REEVE_EPROTO);
	ck_assert_int_eq(reeve_key_from_bytes(&out, b, 69), REEVE_EPROTO);
	b[40] ^= 1; /* the halves do not fit */
	ck_assert_int_eq(reeve_key_from_bytes(&out, b, 68), REEVE_EPROTO);
	b[40] ^= 1;
	b[1] = 2; /* secp256k1 */
	ck_assert_int_eq(reeve_key_from_bytes(&out, b, 68), REEVE_ENOTSUP);
	b[1] = 9;
	ck_assert_int_eq(reeve_key_from_bytes(&out, b, 68), REEVE_ENOTSUP);
	b[1] = 1;
	put(b, sizeof(b), 0600);
	ck_assert_int_eq(reeve_key_load(&out, path), REEVE_EPROTO);
	put(b, 0, 0600);
	ck_assert_int_eq(reeve_key_load(&out, path), REEVE_EPROTO);
	ck_assert_int_eq(reeve_key_load(&out, "no such file"), REEVE_ESYS_BASE - ENOENT);
	ck_assert_int_eq(reeve_key_load(&out, dir), REEVE_ESYS_BASE - EISDIR);
	ck_assert_int_eq(reeve_key_load(&out, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_key_from_bytes(&out, NULL, 0), REEVE_EINVAL);
	ck_assert_int_eq(reeve_key_from_seed(NULL, seed), REEVE_EINVAL);
	ck_assert_int_eq(reeve_key_generate(NULL), REEVE_EINVAL);
	ck_assert_ptr_null(out);
	reeve_key_free(k);
	folder_away();
}
END_TEST

START_TEST(the_older_form_with_the_public_half_twice_is_read)
{
	uint8_t b[100] = {0x08, 0x01, 0x12, 0x60};
	reeve_key_t *k, *again;

	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	memcpy(b + 4, seed, 32);
	memcpy(b + 36, reeve_key_public(k), 32);
	memcpy(b + 68, reeve_key_public(k), 32);
	ck_assert_int_eq(reeve_key_from_bytes(&again, b, sizeof(b)), 0);
	reeve_key_free(again);
	b[99] ^= 1;
	ck_assert_int_eq(reeve_key_from_bytes(&again, b, sizeof(b)), REEVE_EPROTO);
	reeve_key_free(k);
}
END_TEST

START_TEST(signatures_are_verified)
{
	static const char text[] = "some words";
	struct rv_bytes msg = {(const uint8_t *)text, sizeof(text)}, s, pub;
	uint8_t sig[64];
	reeve_key_t *k;

	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	ck_assert_int_eq(rv_key_sign(k, sig, text, sizeof(text)), 0);
	pub = (struct rv_bytes){reeve_key_public(k), 32};
	s = (struct rv_bytes){sig, 64};
	ck_assert_int_eq(rv_verify(RV_KEY_ED25519, pub, s, msg), 0);
	for (unsigned bit = 0; bit < 512; bit++) {
		sig[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_eq(rv_verify(RV_KEY_ED25519, pub, s, msg), REEVE_EIDENTITY);
		sig[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (s.n = 0; s.n < 64; s.n++)
		ck_assert_int_eq(rv_verify(RV_KEY_ED25519, pub, s, msg), REEVE_EIDENTITY);
	msg.n--;
	ck_assert_int_eq(rv_verify(RV_KEY_ED25519, pub, s, msg), REEVE_EIDENTITY);
	pub.n--;
	ck_assert_int_eq(rv_verify(RV_KEY_ED25519, pub, s, msg), REEVE_EPROTO);
	ck_assert_int_eq(rv_verify(99, pub, s, msg), REEVE_ENOTSUP);
	reeve_key_free(k);
}
END_TEST

/* A user of it keeps it alive: freeing is letting go. */
START_TEST(a_key_lives_as_long_as_its_last_user)
{
	uint8_t sig[64];
	reeve_key_t *k;

	ck_assert_int_eq(reeve_key_from_seed(&k, seed), 0);
	rv_key_ref(k);
	reeve_key_free(k);
	ck_assert_int_eq(rv_key_sign(k, sig, "x", 1), 0);
	rv_key_unref(k);
}
END_TEST

RVT_MAIN("key", &a_seed_has_the_public_half_and_the_id_of_the_specification,
    &the_file_is_what_other_implementations_read, &two_generated_keys_differ,
    &a_file_of_the_same_kind_is_replaced_and_nothing_else, &what_is_no_key_is_told_apart,
    &the_older_form_with_the_public_half_twice_is_read, &signatures_are_verified,
    &a_key_lives_as_long_as_its_last_user)
