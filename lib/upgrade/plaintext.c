/* plaintext.c - the exchange of plaintext 2.0.  See plaintext.h. */
#include <config.h>

#include "lib/upgrade/plaintext.h"

#include "lib/varint.h"

#include <string.h>

static void
finish(struct rv_plaintext *x, int rc, const char *id)
{
	x->done = true;
	x->rc = rc;
	x->id = id;
	if (rc != 0)
		x->out_at = x->out_end = 0;
}

void
rv_plaintext_init(
    struct rv_plaintext *x, const struct rv_pubkey *own, const struct rv_peer_id *expect)
{
	struct rv_peer_id id;
	uint8_t *p = x->out + 1;

	memset(x, 0, offsetof(struct rv_plaintext, out));
	x->id = "";
	if (expect != NULL)
		x->expect = *expect;
	rv_peer_id_of(&id, own);
	*p++ = 1 << 3 | 2;
	*p++ = (uint8_t)id.len;
	memcpy(p, id.v, id.len);
	p += id.len;
	*p++ = 2 << 3 | 2;
	*p++ = (uint8_t)(id.len - 2);
	p += rv_pubkey_put(p, own);
	x->out[0] = (uint8_t)(p - x->out - 1);
	x->out_end = (uint32_t)(p - x->out);
}

static void
judge(struct rv_plaintext *x)
{
	const uint8_t *p = x->in, *end = x->in + x->need, *id = NULL, *key = NULL;
	size_t nid = 0, nkey = 0;
	struct rv_peer_id claimed, own;
	struct rv_pubkey k;
	struct rv_pb f;
	int rc;

	while ((rc = rv_pb_next(&f, &p, end)) > 0) {
		if (f.wire == 2 && f.field == 1) {
			id = f.p;
			nid = f.n;
		} else if (f.wire == 2 && f.field == 2) {
			key = f.p;
			nkey = f.n;
		}
	}
	if (rc < 0 || id == NULL || key == NULL) {
		finish(x, REEVE_EPROTO, "REEVE-PLAIN-0001");
		return;
	}
	rc = rv_pubkey_get(&k, key, nkey);
	if (rc == 0)
		rc = rv_peer_id_get(&claimed, id, nid);
	if (rc < 0) {
		finish(x, rc, rc == REEVE_ENOTSUP ? "REEVE-PLAIN-0002" : "REEVE-PLAIN-0003");
		return;
	}
	rv_peer_id_of(&own, &k);
	if (!rv_peer_id_same(&own, &claimed)) {
		finish(x, REEVE_EIDENTITY, "REEVE-PLAIN-0004");
	} else if (x->expect.len > 0 && !rv_peer_id_same(&own, &x->expect)) {
		finish(x, REEVE_EIDENTITY, "REEVE-PLAIN-0005");
	} else {
		x->peer = own;
		finish(x, 0, "");
	}
}

static void
length(struct rv_plaintext *x)
{
	uint64_t v = 0;
	int rc = rv_varint_get(&v, x->in, x->have, 2);

	if (rc == REEVE_EAGAIN)
		return;
	if (rc < 0 || v == 0 || v > RV_PLAINTEXT_MAX) {
		finish(x, REEVE_EPROTO, "REEVE-PLAIN-0006");
		return;
	}
	x->need = (uint32_t)v;
	x->have = 0;
}

size_t
rv_plaintext_feed(struct rv_plaintext *x, const uint8_t *p, size_t n)
{
	size_t used = 0, k;

	while (!x->done && used < n) {
		if (x->need == 0) {
			x->in[x->have++] = p[used++];
			length(x);
			continue;
		}
		k = x->need - x->have < n - used ? x->need - x->have : n - used;
		memcpy(x->in + x->have, p + used, k);
		x->have += (uint32_t)k;
		used += k;
		if (x->have == x->need)
			judge(x);
	}
	return used;
}

void
rv_plaintext_end(struct rv_plaintext *x)
{
	if (!x->done)
		finish(x, REEVE_ETRUNC, "REEVE-PLAIN-0007");
}

size_t
rv_plaintext_out(const struct rv_plaintext *x, const uint8_t **p)
{
	*p = x->out + x->out_at;
	return x->out_end - x->out_at;
}

void
rv_plaintext_sent(struct rv_plaintext *x, size_t n)
{
	x->out_at += (uint32_t)n;
}
