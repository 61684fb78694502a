/* noise.c - the handshake of /noise.  See noise.h. */
#include <config.h>

#include "lib/upgrade/noise.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/check.h"

#define HEAD     2u
#define PREFIX   "noise-libp2p-static-key:"
#define NPREFIX  (sizeof(PREFIX) - 1)
#define NPAYLOAD (4 + RV_PUBKEY_MAX + RV_SIG_LEN)
_Static_assert(RV_NOISE_OUT >= HEAD + NPAYLOAD + RV_XX_OVERHEAD, "our longest message");

static void
finish(struct rv_noise *x, int rc, const char *why)
{
	x->done = true;
	x->rc = rc;
	x->why = why;
	if (rc != 0)
		x->out_at = x->out_end = 0;
}

/* What is signed: that the static key is the identity's. */
static void
statement(uint8_t out[NPREFIX + RV_KEY_LEN], const uint8_t key[RV_KEY_LEN])
{
	memcpy(out, PREFIX, NPREFIX);
	memcpy(out + NPREFIX, key, RV_KEY_LEN);
}

/* Our payload.  Its length, or an error. */
static reeve_ssize
introduce(struct rv_noise *x, uint8_t out[NPAYLOAD])
{
	uint8_t says[NPREFIX + RV_KEY_LEN], *p = out;
	struct rv_pubkey own = {.type = RV_KEY_ED25519, .len = RV_KEY_LEN};
	int rc = rv_xx_static(&x->xx);

	REEVE_REQUIRE(rc == 0, rc);
	memcpy(own.v, rv_key_public(x->key), RV_KEY_LEN);
	*p++ = 1 << 3 | 2;
	p += 1 + (*p = (uint8_t)rv_pubkey_put(p + 1, &own));
	*p++ = 2 << 3 | 2;
	*p++ = RV_SIG_LEN;
	statement(says, x->xx.sp);
	rc = rv_key_sign(x->key, p, says, sizeof(says));
	return rc != 0 ? rc : p + RV_SIG_LEN - out;
}

static void
say(struct rv_noise *x)
{
	uint8_t payload[NPAYLOAD];
	reeve_ssize n = 0;

	if (x->xx.step > 0)
		n = introduce(x, payload);
	if (n >= 0)
		n = rv_xx_write(&x->xx, x->out + HEAD, payload, (size_t)n);
	if (n < 0) {
		finish(x, (int)n, "noise: no memory");
		return;
	}
	rv_store_be16(x->out, (uint16_t)n);
	x->out_at = 0;
	x->out_end = HEAD + (uint32_t)n;
}

/* The id of a key in its one encoding, whatever encoding it came in. */
static int
identify(struct rv_peer_id *id, uint32_t type, struct rv_bytes key)
{
	uint8_t b[8], *p = b; /* what is in front of it */
	struct rv_pubkey small = {.type = type, .len = (uint32_t)key.n};

	if (key.n <= sizeof(small.v)) {
		memcpy(small.v, key.p, key.n);
		rv_peer_id_of(id, &small);
		return 0;
	}
	*p++ = 1 << 3;
	*p++ = (uint8_t)type;
	*p++ = 2 << 3 | 2;
	if (key.n >= 1 << 7)
		*p++ = (uint8_t)(key.n | 1 << 7);
	*p++ = (uint8_t)(key.n >= 1 << 7 ? key.n >> 7 : key.n);
	id->v[0] = 0x12; /* multihash: SHA-256 */
	id->v[1] = RV_HASH_LEN;
	id->len = 2 + RV_HASH_LEN;
	return rv_sha256(id->v + 2, b, (size_t)(p - b), key.p, key.n);
}

/* The peer's payload: whose static key is it? */
static void
judge(struct rv_noise *x, const uint8_t *p, size_t n)
{
	uint8_t says[NPREFIX + RV_KEY_LEN];
	const uint8_t *end = p + n;
	struct rv_bytes key = {0}, sig = {0}, id = {0}, msg = {says, sizeof(says)};
	struct rv_pb f;
	uint32_t type = 0;
	int rc;

	while ((rc = rv_pb_next(&f, &p, end)) > 0) {
		if (f.wire == 2 && f.field == 1)
			key = (struct rv_bytes){f.p, f.n};
		else if (f.wire == 2 && f.field == 2)
			sig = (struct rv_bytes){f.p, f.n};
	}
	if (rc < 0 || key.p == NULL || sig.p == NULL) {
		finish(x, REEVE_EPROTO, "noise: the payload is not what it should be");
		return;
	}
	rc = rv_pubkey_fields(&type, &id, key.p, key.n);
	if (rc == 0) {
		statement(says, x->xx.rs);
		rc = rv_verify(type, id, sig, msg);
	}
	if (rc == 0)
		rc = identify(&x->peer, type, id);
	if (rc != 0) {
		x->peer.len = 0;
		finish(x, rc,
		    rc == REEVE_EIDENTITY ? "noise: the static key is not signed by the identity"
			: rc == REEVE_ENOTSUP ? "noise: an identity key of a type that is not known"
			: rc == REEVE_ENOMEM  ? "noise: no memory"
					      : "noise: no identity key");
	} else if (x->expect.len > 0 && !rv_peer_id_same(&x->peer, &x->expect)) {
		x->peer.len = 0;
		finish(x, REEVE_EIDENTITY, "noise: not the peer that was expected");
	}
}

/* A whole message of the peer. */
static void
hear(struct rv_noise *x)
{
	uint8_t payload[RV_NOISE_MAX];
	unsigned step = x->xx.step;
	reeve_ssize n = rv_xx_read(&x->xx, x->in, x->need, payload);

	x->have = x->need = 0;
	if (n < 0) {
		finish(x, (int)n,
		    n == REEVE_EPROTO ? "noise: a message that does not open" : "noise: no memory");
		return;
	}
	if (step == 0 && n > 0) {
		finish(x, REEVE_EPROTO, "noise: a payload before there is a secret");
		return;
	}
	if (step > 0)
		judge(x, payload, (size_t)n);
	if (!x->done && rv_xx_writes(&x->xx))
		say(x);
	if (!x->done && x->xx.step == RV_XX_MESSAGES)
		finish(x, 0, "");
}

void
rv_noise_init(
    struct rv_noise *x, bool initiator, struct reeve_key *key, const struct rv_peer_id *expect)
{
	memset(x, 0, offsetof(struct rv_noise, out));
	x->why = "";
	x->key = key;
	rv_key_ref(key);
	if (expect != NULL)
		x->expect = *expect;
	if (rv_xx_init(&x->xx, initiator, "", 0) != 0)
		finish(x, REEVE_ENOMEM, "noise: no memory");
	else if (initiator)
		say(x);
}

size_t
rv_noise_feed(struct rv_noise *x, const uint8_t *p, size_t n)
{
	size_t used = 0, k;

	while (!x->done && used < n) {
		if (x->need == 0) {
			x->in[x->have++] = p[used++];
			if (x->have < HEAD)
				continue;
			x->need = rv_load_be16(x->in);
			x->have = 0;
			if (x->need == 0 || x->need > RV_NOISE_MAX)
				finish(x, REEVE_EPROTO, "noise: a message of this length is none");
			continue;
		}
		k = x->need - x->have < n - used ? x->need - x->have : n - used;
		memcpy(x->in + x->have, p + used, k);
		x->have += (uint32_t)k;
		used += k;
		if (x->have == x->need)
			hear(x);
	}
	return used;
}

void
rv_noise_end(struct rv_noise *x)
{
	if (!x->done)
		finish(x, REEVE_ETRUNC, "noise: the peer left during the handshake");
}

size_t
rv_noise_out(const struct rv_noise *x, const uint8_t **p)
{
	*p = x->out + x->out_at;
	return x->out_end - x->out_at;
}

void
rv_noise_sent(struct rv_noise *x, size_t n)
{
	x->out_at += (uint32_t)n;
}

int
rv_noise_filter(const struct rv_noise *x, struct rv_filter **f, struct rv_arena *ar)
{
	uint8_t send[RV_KEY_LEN], recv[RV_KEY_LEN];
	int rc = rv_xx_split(&x->xx, send, recv);

	if (rc == 0)
		rc = rv_noise_filter_create(f, ar, send, recv);
	rv_wipe(send, sizeof(send));
	rv_wipe(recv, sizeof(recv));
	return rc;
}

void
rv_noise_fini(struct rv_noise *x)
{
	rv_xx_wipe(&x->xx);
	rv_key_unref(x->key);
	rv_wipe(x, sizeof(*x));
}
