/* test_noise_xx.c - the handshake pattern against published vectors, and the primitives against their RFCs. */
#include <config.h>

#include "lib/upgrade/noise_xx.h"

#include "tests/kit/run.h"

#include <stdlib.h>
#include <string.h>

static size_t
hex(uint8_t *out, const char *text)
{
	size_t n = strlen(text) / 2;
	char two[3] = "";

	for (size_t i = 0; i < n; i++) {
		memcpy(two, text + 2 * i, 2);
		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

struct vector {
	const char *prologue, *s[2], *e[2], *hash;
	const char *message
	    [6]
	    [2]; /* payload, bytes; the last ones in the transport phase, initiator first or behind it */
};

static const struct vector vectors[] = {
    /* cacophony's collection, as snow 0.9.6 ships it (tests/vectors/cacophony.txt) */
    {"4a6f686e2047616c74",
	{"e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
	    "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893"},
	{"893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
	    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"},
	"c8e5f64e846193be2a834104c2a009868d6c9f3bd3c186299888b488b2f1f58e",
	{{"4c756477696720766f6e204d69736573",
	     "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
	     "4c756477696720766f6e204d69736573"},
	    {"4d757272617920526f746862617264",
		"95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
		"81cbad1f276e038c48378ffce2b65285e08d6b68aaa3629a5a8639392490e5b9"
		"bd5269c2f1e4f488ed8831161f19b7815528f8982ffe09be9b5c412f8a0db50f"
		"8814c7194e83f23dbd8d162c9326ad"},
	    {"462e20412e20486179656b",
		"c7195ffacac1307ff99046f219750fc47693e23c3cb08b89c2af808b444850a8"
		"0ae475b9df0f169ae80a89be0865b57f58c9fea0d4ec82a286427402f113e4b6"
		"ae769a1d95941d49b25030"},
	    {"4361726c204d656e676572", "96763ed773f8e47bb3712f0e29b3060ffc956ffc146cee53d5e1df"},
	    {"4a65616e2d426170746973746520536179",
		"3e40f15f6f3a46ae446b253bf8b1d9ffb6ed9b174d272328ff91a7e2e5c79c07f5"},
	    {"457567656e2042f6686d20766f6e2042617765726b",
		"eb3f3515110702e047a6c9da4478b6ead94873c11c0f2d710ddb3f09fce024b3"
		"a58502ae3f"}}},
    /* github.com/flynn/noise v1.1.0, vectors.txt */
    {"",
	{"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
	    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"},
	{"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
	    "4142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60"},
	NULL,
	{{"", "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254"},
	    {"",
		"64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466"
		"3414af878d3e46a2f58911a816d6e8346d4ea17a6f2a0bb4ef4ed56c133cff45"
		"60a34e36ea82109f26cf2e5a5caf992b608d55c747f615e5a3425a7a19eefb8f"},
	    {"",
		"87f864c11ba449f46a0a4f4e2eacbb7b0457784f4fca1937f572c93603e9c4d9"
		"7e5ea11b16f3968710b23a3be3202dc1b5e1ce3c963347491e74f5c0768a9b42"},
	    {"79656c6c6f777375626d6172696e65",
		"a52ef02ba60e12696d1d6b9ef4245c88fca757b6134ad6e76b56e310a6adf6"},
	    {"7375626d6172696e6579656c6c6f77",
		"2445aa438ebd649281c636cc7269ca82f1d9023d72520943aeabf909cdf521"},
	    {NULL, NULL}}},
};

static void
begin(struct rv_xx x[2], const struct vector *v)
{
	uint8_t prologue[64];
	size_t n = hex(prologue, v->prologue);

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(rv_xx_init(&x[i], i == 0, prologue, n), 0);
		hex(x[i].s, v->s[i]);
		hex(x[i].e, v->e[i]);
		ck_assert_int_eq(rv_x25519_public(x[i].sp, x[i].s), 0);
		ck_assert_int_eq(rv_x25519_public(x[i].ep, x[i].e), 0);
		x[i].has_s = x[i].has_e = true;
	}
}

/* A transport message of one end is what the vector says, and opens at the other. */
static void
transport(struct rv_xx x[2], const struct vector *v, int i)
{
	uint8_t key[2][2][RV_KEY_LEN], plain[64], wire[96], out[96];
	size_t n = hex(plain, v->message[i][0]), m = hex(wire, v->message[i][1]);
	struct evp_cipher_ctx_st *c;
	/* In cacophony's vectors the turns go on behind the handshake's, in the other the initiator begins. */
	int from = v->hash != NULL ? i % 2 : (i + 1) % 2;
	uint64_t nonce = (uint64_t)(i - 3) / 2;

	ck_assert_uint_eq(m, n + RV_TAG_LEN);
	for (int k = 0; k < 2; k++)
		ck_assert_int_eq(rv_xx_split(&x[k], key[k][0], key[k][1]), 0);
	ck_assert_mem_eq(key[0][0], key[1][1], RV_KEY_LEN);
	ck_assert_mem_eq(key[0][1], key[1][0], RV_KEY_LEN);
	ck_assert_int_eq(rv_aead_create(&c, key[from][0], true), 0);
	ck_assert_int_eq(rv_aead_begin(c, nonce), 0);
	ck_assert_int_eq(rv_aead_update(c, out, plain, n), 0);
	ck_assert_int_eq(rv_aead_tag(c, out + n), 0);
	rv_aead_destroy(c);
	ck_assert_mem_eq(out, wire, m);
	ck_assert_int_eq(rv_aead_create(&c, key[1 - from][1], false), 0);
	ck_assert_int_eq(rv_aead_begin(c, nonce), 0);
	for (size_t k = 0; k < n; k++)
		ck_assert_int_eq(rv_aead_update(c, out + k, wire + k, 1), 0);
	ck_assert(rv_aead_check(c, wire + n));
	rv_aead_destroy(c);
	ck_assert_mem_eq(out, plain, n);
}

START_TEST(published_vectors_come_out)
{
	const struct vector *v = &vectors[_i];
	uint8_t payload[64], want[256], out[256], back[256], hash[RV_HASH_LEN];
	struct rv_xx x[2];
	reeve_ssize n;
	size_t len, m;
	int i;

	begin(x, v);
	for (i = 0; i < 3; i++) {
		len = hex(payload, v->message[i][0]);
		m = hex(want, v->message[i][1]);
		ck_assert(rv_xx_writes(&x[i % 2]) && !rv_xx_writes(&x[1 - i % 2]));
		n = rv_xx_write(&x[i % 2], out, payload, len);
		ck_assert_int_eq(n, m);
		ck_assert_mem_eq(out, want, m);
		n = rv_xx_read(&x[1 - i % 2], out, m, back);
		ck_assert_int_eq(n, len);
		ck_assert_mem_eq(back, payload, len);
	}
	ck_assert_mem_eq(x[0].h, x[1].h, RV_HASH_LEN);
	if (v->hash != NULL) {
		hex(hash, v->hash);
		ck_assert_mem_eq(x[0].h, hash, RV_HASH_LEN);
	}
	ck_assert_mem_eq(x[0].rs, x[1].sp, RV_KEY_LEN);
	ck_assert_mem_eq(x[1].rs, x[0].sp, RV_KEY_LEN);
	for (i = 3; i < 6 && v->message[i][0] != NULL; i++)
		transport(x, v, i);
	for (i = 0; i < 2; i++)
		rv_xx_wipe(&x[i]);
}
END_TEST

START_TEST(a_changed_bit_is_found_in_every_message)
{
	uint8_t out[256], back[256];
	struct rv_xx x[2];
	reeve_ssize n;

	for (unsigned message = 0; message < 3; message++) {
		/* The first message is in the clear: it shows in the second. */
		for (size_t bit = 0; bit < 8 *
			 (message == 0          ? 32u
				 : message == 1 ? 96u
						: 64u);
		     bit++) {
			begin(x, &vectors[1]);
			for (unsigned i = 0; i < 3; i++) {
				n = rv_xx_write(&x[i % 2], out, "", 0);
				ck_assert_int_gt(n, 0);
				if (i == message)
					out[bit / 8] ^= (uint8_t)(1u << bit % 8);
				n = rv_xx_read(&x[1 - i % 2], out, (size_t)n, back);
				if (n < 0)
					break;
			}
			ck_assert_int_eq(n, REEVE_EPROTO);
			rv_xx_wipe(&x[0]);
			rv_xx_wipe(&x[1]);
		}
	}
}
END_TEST

START_TEST(a_message_that_is_cut_is_found)
{
	static const unsigned whole[3] = {32, 96, 64};
	uint8_t out[256], back[256];
	struct rv_xx x[2];
	reeve_ssize n;

	for (unsigned message = 0; message < 3; message++) {
		for (unsigned len = 0; len < whole[message]; len++) {
			begin(x, &vectors[1]);
			for (unsigned i = 0; i <= message; i++) {
				n = rv_xx_write(&x[i % 2], out, "", 0);
				n = rv_xx_read(
				    &x[1 - i % 2], out, i == message ? len : (size_t)n, back);
			}
			ck_assert_int_eq(n, REEVE_EPROTO);
			rv_xx_wipe(&x[0]);
			rv_xx_wipe(&x[1]);
		}
	}
}
END_TEST

/* RFC 7748, section 5.2 and 6.1. */
START_TEST(x25519_is_that_of_the_rfc)
{
	uint8_t a[32], b[32], pub[32], want[32], got[32];
	static const uint8_t low[32]; /* a point of small order */

	hex(a, "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
	hex(b, "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
	hex(want, "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
	ck_assert_int_eq(rv_x25519(got, a, b), 0);
	ck_assert_mem_eq(got, want, 32);
	hex(a, "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
	hex(want, "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
	ck_assert_int_eq(rv_x25519_public(pub, a), 0);
	ck_assert_mem_eq(pub, want, 32);
	ck_assert_int_eq(rv_x25519(got, a, low), REEVE_EPROTO);
}
END_TEST

/* RFC 8439, section 2.8.2, with the nonce of Noise: A.5 needs one that begins with zeroes. */
START_TEST(the_cipher_is_that_of_the_rfc)
{
	uint8_t key[32], ad[12], wire[281], out[265], tag[16];
	struct evp_cipher_ctx_st *c;

	hex(key, "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0");
	hex(ad, "f33388860000000000004e91");
	hex(wire,
	    "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb2"
	    "4c6cfc18755d43eea09ee94e382d26b0bdb7b73c321b0100d4f03b7f355894cf"
	    "332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60f982b1ff37c855"
	    "9797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4"
	    "b9166c767b804d46a59b5216cde7a4e99040c5a40433225ee282a1b0a06c523e"
	    "af4534d7f83fa1155b0047718cbc546a0d072b04b3564eea1b422273f548271a"
	    "0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a10"
	    "49e617d91d361094fa68f0ff77987130305beaba2eda04df997b714d6c6f2c29"
	    "a6ad5cb4022b02709b");
	hex(tag, "eead9d67890cbb22392336fea1851f38");
	ck_assert_int_eq(rv_aead_create(&c, key, false), 0);
	ck_assert_int_eq(rv_aead_begin(c, 0x0807060504030201), 0);
	ck_assert_int_eq(rv_aead_ad(c, ad, sizeof(ad)), 0);
	ck_assert_int_eq(rv_aead_update(c, out, wire, 265), 0);
	ck_assert(rv_aead_check(c, tag));
	ck_assert_mem_eq(out, "Internet-Drafts are draft documents", 35);
	/* The same in other pieces, and with a wrong tag. */
	ck_assert_int_eq(rv_aead_begin(c, 0x0807060504030201), 0);
	ck_assert_int_eq(rv_aead_ad(c, ad, sizeof(ad)), 0);
	for (size_t i = 0; i < 265; i += 53)
		ck_assert_int_eq(rv_aead_update(c, out + i, wire + i, 53), 0);
	tag[15] ^= 1;
	ck_assert(!rv_aead_check(c, tag));
	rv_aead_destroy(c);
}
END_TEST

/* RFC 5869, test case 3: no salt is a salt of zeroes. */
START_TEST(hkdf_is_that_of_the_rfc)
{
	uint8_t ikm[22], salt[32] = {0}, out[2][32], want[42];

	memset(ikm, 0x0b, sizeof(ikm));
	hex(want,
	    "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
	    "9d201395faa4b61a96c8");
	ck_assert_int_eq(rv_hkdf2(out[0], out[1], salt, ikm, sizeof(ikm)), 0);
	ck_assert_mem_eq(out, want, sizeof(want));
}
END_TEST

RVT_MAIN_TABLE("noise_xx", {&published_vectors_come_out, 2},
    {&a_changed_bit_is_found_in_every_message, 0}, {&a_message_that_is_cut_is_found, 0},
    {&x25519_is_that_of_the_rfc, 0}, {&the_cipher_is_that_of_the_rfc, 0},
    {&hkdf_is_that_of_the_rfc, 0})
