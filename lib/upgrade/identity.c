/* identity.c - public keys and peer ids.  See identity.h. */
#include <config.h>

#include "lib/upgrade/identity.h"

#include "lib/check.h"
#include "lib/varint.h"

#include <string.h>

#define MH_IDENTITY 0x00
#define MH_SHA256   0x12
#define CID_V1      0x01
#define CID_KEY     0x72 /* libp2p-key */

/* --- protobuf */

int
rv_pb_next(struct rv_pb *f, const uint8_t **p, const uint8_t *end)
{
	uint64_t key;
	int n;

	if (*p == end)
		return 0;
	n = rv_varint_get(&key, *p, (size_t)(end - *p), RV_VARINT_MAX);
	REEVE_REQUIRE(n > 0 && key >> 3 != 0 && key >> 3 < 1u << 29, REEVE_EPROTO);
	*p += n;
	f->field = (uint32_t)(key >> 3);
	f->wire = (uint32_t)(key & 7);
	f->n = 0;
	f->p = NULL;
	f->value = 0;
	if (f->wire == 0 || f->wire == 2) {
		n = rv_varint_get(&f->value, *p, (size_t)(end - *p), RV_VARINT_MAX);
		REEVE_REQUIRE(n > 0, REEVE_EPROTO);
		*p += n;
		if (f->wire == 0)
			return 1;
	} else if (f->wire == 1 || f->wire == 5) {
		f->value = f->wire == 1 ? 8 : 4;
	} else {
		return REEVE_EPROTO;
	}
	REEVE_REQUIRE(f->value <= (uint64_t)(end - *p), REEVE_EPROTO);
	f->p = *p;
	f->n = (size_t)f->value;
	*p += f->n;
	return 1;
}

/* --- keys */

static uint32_t
key_length(uint32_t type)
{
	return type == RV_KEY_ED25519 ? 32 : type == RV_KEY_SECP256K1 ? 33 : 0;
}

size_t
rv_pubkey_put(uint8_t *p, const struct rv_pubkey *key)
{
	p[0] = 1 << 3;
	p[1] = (uint8_t)key->type;
	p[2] = 2 << 3 | 2;
	p[3] = (uint8_t)key->len;
	memcpy(p + 4, key->v, key->len);
	return 4 + key->len;
}

int
rv_pubkey_fields(uint32_t *type, struct rv_bytes *data, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	bool typed = false;
	struct rv_pb f;
	int rc;

	data->p = NULL;
	while ((rc = rv_pb_next(&f, &p, end)) > 0) {
		if (f.field == 1 && f.wire == 0) {
			REEVE_REQUIRE(f.value <= RV_KEY_ECDSA, REEVE_ENOTSUP);
			*type = (uint32_t)f.value;
			typed = true;
		} else if (f.field == 2 && f.wire == 2) {
			data->p = f.p;
			data->n = f.n;
		}
	}
	return rc == 0 && typed && data->p != NULL ? 0 : REEVE_EPROTO;
}

int
rv_pubkey_get(struct rv_pubkey *key, const uint8_t *p, size_t n)
{
	struct rv_bytes data;
	int rc = rv_pubkey_fields(&key->type, &data, p, n);

	REEVE_REQUIRE(rc == 0, rc);
	key->len = key_length(key->type);
	REEVE_REQUIRE(key->len != 0, REEVE_ENOTSUP);
	REEVE_REQUIRE(data.n == key->len, REEVE_EPROTO);
	memcpy(key->v, data.p, data.n);
	return 0;
}

void
rv_peer_id_of(struct rv_peer_id *id, const struct rv_pubkey *key)
{
	size_t n = rv_pubkey_put(id->v + 2, key);

	id->v[0] = MH_IDENTITY;
	id->v[1] = (uint8_t)n;
	id->len = (uint32_t)n + 2;
}

int
rv_peer_id_get(struct rv_peer_id *id, const uint8_t *p, size_t n)
{
	REEVE_REQUIRE(n > 2 && n <= RV_PEER_ID && p[1] == n - 2, REEVE_EPROTO);
	REEVE_REQUIRE(p[0] == MH_IDENTITY || (p[0] == MH_SHA256 && p[1] == 32), REEVE_EPROTO);
	memcpy(id->v, p, n);
	id->len = (uint32_t)n;
	return 0;
}

bool
rv_peer_id_same(const struct rv_peer_id *a, const struct rv_peer_id *b)
{
	return a->len == b->len && memcmp(a->v, b->v, a->len) == 0;
}

/* --- text */

static const char base58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const char base32[] = "abcdefghijklmnopqrstuvwxyz234567";

size_t
rv_peer_id_text(const struct rv_peer_id *id, char out[RV_PEER_TEXT])
{
	uint8_t digit[RV_PEER_TEXT];
	unsigned n = 0, carry, j;
	size_t zeros = 0, len = 0;
	uint32_t i;

	while (zeros < id->len && id->v[zeros] == 0)
		zeros++;
	for (i = (uint32_t)zeros; i < id->len; i++) {
		carry = id->v[i];
		for (j = 0; j < n; j++) {
			carry += (unsigned)digit[j] << 8;
			digit[j] = (uint8_t)(carry % 58);
			carry /= 58;
		}
		for (; carry > 0; carry /= 58)
			digit[n++] = (uint8_t)(carry % 58);
	}
	while (len < zeros)
		out[len++] = base58[0];
	while (n > 0)
		out[len++] = base58[digit[--n]];
	out[len] = '\0';
	return len;
}

/* The bytes that a base58 text of at most RV_PEER_TEXT - 1 characters says; their number, or 0. */
static size_t
from_base58(uint8_t *out, size_t max, const char *text)
{
	uint8_t byte[RV_PEER_TEXT];
	size_t n = 0, zeros = 0, i, j;
	const char *c;
	unsigned carry;

	while (text[zeros] == base58[0])
		zeros++;
	for (i = zeros; text[i] != '\0'; i++) {
		c = strchr(base58, text[i]);
		if (c == NULL)
			return 0;
		carry = (unsigned)(c - base58);
		for (j = 0; j < n; j++) {
			carry += byte[j] * 58u;
			byte[j] = (uint8_t)carry;
			carry >>= 8;
		}
		for (; carry > 0; carry >>= 8)
			byte[n++] = (uint8_t)carry;
	}
	if (zeros + n > max)
		return 0;
	memset(out, 0, zeros);
	for (i = 0; i < n; i++)
		out[zeros + i] = byte[n - 1 - i];
	return zeros + n;
}

static size_t
from_base32(uint8_t *out, size_t max, const char *text)
{
	uint32_t bits = 0, have = 0;
	const char *c;
	size_t n = 0;

	for (; *text != '\0'; text++) {
		c = strchr(base32, *text);
		if (c == NULL)
			return 0;
		bits = bits << 5 | (uint32_t)(c - base32);
		have += 5;
		if (have < 8)
			continue;
		have -= 8;
		if (n == max)
			return 0;
		out[n++] = (uint8_t)(bits >> have);
		bits &= (1u << have) - 1;
	}
	return bits == 0 && have < 5 ? n : 0;
}

int
rv_peer_id_parse(struct rv_peer_id *id, const char *text)
{
	uint8_t b[RV_PEER_ID + 2];
	size_t n, skip = 0;

	REEVE_REQUIRE(text != NULL && strlen(text) < RV_PEER_TEXT, REEVE_EINVAL);
	if (text[0] == 'b') {
		n = from_base32(b, sizeof(b), text + 1);
		skip = 2;
		REEVE_REQUIRE(n > 2 && b[0] == CID_V1 && b[1] == CID_KEY, REEVE_EINVAL);
	} else {
		n = from_base58(b, sizeof(b), text);
	}
	REEVE_REQUIRE(n > skip && rv_peer_id_get(id, b + skip, n - skip) == 0, REEVE_EINVAL);
	return 0;
}
