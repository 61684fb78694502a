/* fuzz_handshake.c - the whole handshake of a connection, as either end, against a peer that says nearly the right things.
 *
 * The first two bytes choose the configuration, how it ends and how the rest is cut; the rest is a program that makes
 * what the peer says: so many bytes as they are, a message that belongs there, a hundred of it, one with a byte
 * changed.  Looked for: crashes, bytes taken twice or lost, a handshake that stands still, output without a bound, an
 * end that is not told, a result that depends on how the bytes were cut, an id whose text is another id's. */
#include <config.h>

#include "fuzz/fuzz.h"
#include "lib/config.h"
#include "lib/engine/gather.h"
#include "lib/upgrade/handshake.h"
#include "lib/upgrade/plaintext.h"

#include <string.h>

#define SAID_MAX 32768

struct outcome {
	int rc;
	bool over;
	const char *id;
	uint32_t proto;
	size_t used, out;
	struct rv_peer_id peer;
};

struct line {
	struct rv_arena *ar;
	struct rv_pool *pool;
	struct rv_engine *e;
	struct rv_gather g;
};

/* --- what the peer says */

static size_t
exchange(uint8_t *to, uint32_t type)
{
	static struct rv_plaintext x;
	struct rv_pubkey key = {.type = type, .len = 32, .v = {7, 7, 7}};
	const uint8_t *p;
	size_t n;

	rv_plaintext_init(&x, &key, NULL);
	n = rv_plaintext_out(&x, &p);
	memcpy(to, p, n);
	return n;
}

static size_t
message(uint8_t *to, unsigned which)
{
	static const char *const text[] = {"\x13/multistream/1.0.0\n", "\x11/plaintext/2.0.0\n",
	    "\x0d/yamux/1.0.0\n", "\x0d/mplex/6.7.0\n", "\x03na\n", "\x03ls\n", "\x07/noise\n"};
	unsigned n = sizeof(text) / sizeof(text[0]);

	which %= n + 1;
	if (which == n)
		return exchange(to, RV_KEY_ED25519);
	memcpy(to, text[which], strlen(text[which]));
	return strlen(text[which]);
}

static size_t
say(uint8_t *to, const uint8_t *p, size_t n)
{
	size_t at = 0, len = 0, k = 1;
	unsigned times;

	while (at < n && len + 256 < SAID_MAX) {
		uint8_t op = p[at++];

		if (op < 0x40) {
			k = op < n - at ? op : n - at;
			memcpy(to + len, p + at, k);
			at += k;
			len += k;
		} else {
			times = op >= 0xb0 && op < 0xc0 ? 100 : 1;
			for (; times > 0 && len + 256 < SAID_MAX; times--) {
				k = message(to + len, op);
				len += k;
			}
			if (op >= 0xc0 && at + 2 <= n) {
				to[len - k + p[at] % k] = p[at + 1];
				at += 2;
			}
		}
	}
	return len;
}

/* --- the machine */

static void
start(struct line *l, const uint8_t *how)
{
	static const uint32_t muxers[4][RV_MUXERS] = {
	    {0}, {REEVE_YAMUX}, {REEVE_MPLEX}, {REEVE_MPLEX, REEVE_YAMUX}};
	static const uint8_t key[32] = {1, 2, 3};
	static const char other[] = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN";
	reeve_upgrade_t up = {.size = sizeof(up)};
	struct rv_engine_cfg cfg = {.role = how[0] & 1 ? REEVE_DIALER : REEVE_LISTENER};
	struct rv_upgrade_cfg checked;

	if (how[0] & 2) {
		up.security = REEVE_PLAINTEXT;
		up.key = key;
		up.expect = how[0] & 4 ? other : NULL;
	}
	memcpy(up.muxers, muxers[how[1] % 4], sizeof(up.muxers));
	must(rv_upgrade_resolve(&checked, &up) == 0);
	l->ar = rv_arena_create(NULL);
	must(l->ar != NULL);
	l->pool = rv_pool_create(l->ar);
	must(l->pool != NULL);
	rv_pool_enter(l->pool);
	cfg.arena = l->ar;
	cfg.now = 1;
	must(rv_handshake_create(&l->e, &cfg, &checked) == 0);
	rv_gather_reset(&l->g);
}

/* Everything it has to say leaves. */
static size_t
drain(struct line *l)
{
	size_t all = 0, n;

	do {
		n = l->e->ops->drain(l->e, &l->g, 1);
		all += n;
		must(all <= 65536);
		if (!rv_gather_empty(&l->g))
			rv_gather_sent(l->e, &l->g, l->g.bytes - l->g.done);
		rv_gather_reset(&l->g);
	} while (n > 0);
	must(!l->e->ops->has_output(l->e));
	return all;
}

static int
feed(struct line *l, const uint8_t *p, size_t n)
{
	struct rv_slab *s = rv_slab_get(l->pool, n);
	reeve_ssize rc;

	must(s != NULL);
	memcpy(s->data, p, n);
	rc = l->e->ops->feed(l->e, s, 0, (uint32_t)n, 1);
	must(rc <= (reeve_ssize)n);
	rv_slab_unref(s);
	return (int)rc;
}

static void
finish(struct line *l)
{
	l->e->ops->end(l->e);
	l->e->ops->destroy(l->e);
	rv_pool_enter(NULL);
	rv_pool_close(l->pool);
	must(rv_arena_bytes(l->ar) == 0);
	rv_arena_unref(l->ar);
}

static struct outcome
run(const uint8_t *how, const uint8_t *p, size_t n, size_t piece)
{
	static struct line l;
	struct outcome o = {0};
	unsigned still = 0;

	start(&l, how);
	while (!l.e->over && o.rc == 0 && o.used < n) {
		int rc = feed(&l, p + o.used, n - o.used < piece ? n - o.used : piece);

		o.rc = rc < 0 ? rc : 0;
		o.used += rc < 0 ? 0 : (size_t)rc;
		o.out += drain(&l);
		must(!l.e->blocked || o.rc < 0);
		still = rc == 0 ? still + 1 : 0;
		must(still < 3);
	}
	o.over = l.e->over;
	if (!o.over && o.rc == 0)
		o.rc = how[0] & 8 ? l.e->ops->tick(l.e, l.e->ops->next_deadline(l.e))
				  : l.e->ops->feed_end(l.e);
	must(o.over ? o.rc == 0 : o.rc < 0 && o.rc == l.e->reason.rc);
	o.id = l.e->reason.id;
	must(o.over || strncmp(o.id, "REEVE-UP-", 9) == 0);
	o.proto = o.over ? rv_handshake_proto(l.e) : 0;
	o.peer = *rv_handshake_peer(l.e);
	o.out += drain(&l);
	finish(&l);
	return o;
}

static void
check_id(const struct rv_peer_id *id)
{
	char text[RV_PEER_TEXT];
	struct rv_peer_id back;

	if (id->len == 0)
		return;
	must(rv_peer_id_text(id, text) == strlen(text));
	must(rv_peer_id_parse(&back, text) == 0 && rv_peer_id_same(&back, id));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static uint8_t said[SAID_MAX];
	struct outcome a, b;
	size_t len;

	if (n < 2)
		return 0;
	len = say(said, p + 2, n - 2);
	a = run(p, said, len, SIZE_MAX);
	b = run(p, said, len, p[0] / 16 + 1u);
	must(a.rc == b.rc && a.over == b.over && a.id == b.id && a.proto == b.proto);
	must(a.rc < 0 || (a.used == b.used && a.out == b.out));
	must(rv_peer_id_same(&a.peer, &b.peer));
	check_id(&a.peer);
	return 0;
}
