/* handshake.c - the handshake of a connection as an engine.  See handshake.h. */
#include <config.h>

#include "lib/upgrade/handshake.h"

#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/engine/gather.h"
#include "lib/upgrade/multistream.h"
#include "lib/upgrade/plaintext.h"

#include <string.h>

#define TIMEOUT_MS 10000
#define MS_US      1000

enum step { SECURITY, IDENTITY, MUXER, OVER };

static const char *const step_id[] = {[SECURITY] = "REEVE-UP-SECURITY",
    [IDENTITY] = "REEVE-UP-IDENTITY",
    [MUXER] = "REEVE-UP-MUXER",
    [OVER] = ""};
static const char *const proto_name[] = {
    [REEVE_YAMUX] = "/yamux/1.0.0", [REEVE_MPLEX] = "/mplex/6.7.0"};

struct handshake {
	struct rv_engine e; /* first */
	struct rv_upgrade_cfg up;
	enum step step;
	bool failed;
	uint64_t deadline;
	const char *names[RV_MUXERS];
	struct rv_plaintext plain;
	struct rv_ms ms;
};

static struct handshake *
of(const struct rv_engine *e)
{
	return (struct handshake *)(void *)(uintptr_t)e;
}

int
rv_upgrade_resolve(struct rv_upgrade_cfg *out, const reeve_upgrade_t *up)
{
	uint32_t i;

	memset(out, 0, sizeof(*out));
	REEVE_REQUIRE(up->size == sizeof(*up) && up->security <= REEVE_PLAINTEXT, REEVE_EINVAL);
	out->security = up->security;
	out->timeout_ms = up->timeout_ms == 0 ? TIMEOUT_MS : up->timeout_ms;
	for (i = 0; i < RV_MUXERS && up->muxers[i] != 0; i++) {
		REEVE_REQUIRE(
		    up->muxers[i] == REEVE_YAMUX || up->muxers[i] == REEVE_MPLEX, REEVE_EINVAL);
		out->muxers[i] = up->muxers[i];
	}
	out->nmuxers = i;
	if (i == 0) {
		out->muxers[0] = REEVE_YAMUX;
		out->muxers[1] = REEVE_MPLEX;
		out->nmuxers = 2;
	}
	if (out->security == REEVE_SECURITY_NONE)
		return up->key == NULL && up->expect == NULL ? 0 : REEVE_EINVAL;
	REEVE_REQUIRE(up->key != NULL, REEVE_EINVAL);
	out->key.type = RV_KEY_ED25519;
	out->key.len = 32;
	memcpy(out->key.v, up->key, 32);
	return up->expect == NULL ? 0 : rv_peer_id_parse(&out->expect, up->expect);
}

void
rv_upgrade_copy(struct rv_upgrade_copy *to, reeve_cfg_t *cfg)
{
	if (cfg->upgrade == NULL)
		return;
	to->up = *cfg->upgrade;
	if (to->up.key != NULL) {
		memcpy(to->key, to->up.key, sizeof(to->key));
		to->up.key = to->key;
	}
	if (to->up.expect != NULL) {
		/* Longer ones are no ids: what is cut is refused too. */
		strncpy(to->expect, to->up.expect, sizeof(to->expect) - 1);
		to->expect[sizeof(to->expect) - 1] = '\0';
		to->up.expect = to->expect;
	}
	cfg->upgrade = &to->up;
}

static enum rv_ms_mode
mode(const struct handshake *h)
{
	return h->e.cfg.role == REEVE_DIALER ? RV_MS_DIALER : RV_MS_LISTENER;
}

static void
begin(struct handshake *h, enum step step)
{
	uint32_t i;
	int rc = 0;

	h->step = step;
	if (step == SECURITY) {
		h->names[0] = RV_PLAINTEXT_NAME;
		rc = rv_ms_init(&h->ms, mode(h), h->names, 1);
	} else if (step == IDENTITY) {
		rv_plaintext_init(
		    &h->plain, &h->up.key, h->up.expect.len > 0 ? &h->up.expect : NULL);
	} else if (step == MUXER) {
		for (i = 0; i < h->up.nmuxers; i++)
			h->names[i] = proto_name[h->up.muxers[i]];
		rc = rv_ms_init(&h->ms, mode(h), h->names, h->up.nmuxers);
	} else {
		h->e.over = true;
	}
	REEVE_ASSERT(rc == 0);
	(void)rc;
}

static int
fail(struct handshake *h, int rc, uint32_t by)
{
	reeve_reason_t *r = &h->e.reason;

	h->failed = true;
	if (r->rc == 0) {
		r->rc = rc;
		r->by = by;
		r->id = step_id[h->step];
	}
	return rc;
}

/* What the current machine has to say. */
static size_t
output(const struct handshake *h, const uint8_t **p)
{
	*p = NULL;
	if (h->step == OVER && h->ms.mode == 0)
		return 0;
	return h->step == IDENTITY ? rv_plaintext_out(&h->plain, p) : rv_ms_out(&h->ms, p);
}

static void
sent(struct handshake *h, size_t n)
{
	if (h->step == IDENTITY)
		rv_plaintext_sent(&h->plain, n);
	else
		rv_ms_sent(&h->ms, n);
}

/* The current step has succeeded and said everything: on to the next.  A machine's own output has to leave before the
 * next one is put into its place. */
static void
advance(struct handshake *h)
{
	bool done = h->step == IDENTITY ? h->plain.done : h->step != OVER && h->ms.done;
	const uint8_t *p;

	if (done && output(h, &p) == 0)
		begin(h, h->step + 1);
}

static reeve_ssize
hs_feed(struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now)
{
	struct handshake *h = of(e);
	uint32_t pos = 0;
	bool done;
	int rc;

	(void)now;
	if (h->failed || e->ended)
		return h->failed ? e->reason.rc : REEVE_ECLOSED;
	while (pos < len && !e->over) {
		const uint8_t *p = slab->data + off + pos;
		uint32_t n = len - pos;

		if (h->step == IDENTITY) {
			pos += (uint32_t)rv_plaintext_feed(&h->plain, p, n);
			done = h->plain.done;
			rc = h->plain.rc;
		} else {
			pos += (uint32_t)rv_ms_feed(&h->ms, p, n);
			done = h->ms.done;
			rc = h->ms.rc;
		}
		if (!done)
			continue;
		if (rc != 0)
			return fail(h, rc, REEVE_BY_PEER);
		advance(h);
		if (h->step != OVER && (h->step == IDENTITY ? h->plain.done : h->ms.done))
			break; /* its last words first */
	}
	e->blocked = pos < len && !e->over;
	return pos;
}

static int
hs_feed_end(struct rv_engine *e)
{
	struct handshake *h = of(e);

	if (h->failed)
		return 0;
	if (h->step == IDENTITY)
		rv_plaintext_end(&h->plain);
	else
		rv_ms_end(&h->ms);
	return fail(h, h->step == IDENTITY ? h->plain.rc : h->ms.rc, REEVE_BY_PEER);
}

static size_t
hs_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now)
{
	struct handshake *h = of(e);
	size_t before = g->bytes, n;
	const uint8_t *p;

	(void)now;
	while (!e->ended && (n = output(h, &p)) > 0 && rv_gather_room(g)) {
		n = n < RV_STAGE_MAX ? n : RV_STAGE_MAX;
		rv_gather_stage(g, p, n);
		sent(h, n);
		if (!h->failed)
			advance(h);
	}
	if (h->step == OVER || !(h->step == IDENTITY ? h->plain.done : h->ms.done))
		e->blocked = false;
	return g->bytes - before;
}

static bool
hs_has_output(const struct rv_engine *e)
{
	const uint8_t *p;

	return !e->ended && output(of(e), &p) > 0;
}

static bool
hs_notify(struct rv_engine *e)
{
	(void)e;
	return true;
}

/* Streams come when it is over. */
static int
hs_open(struct rv_engine *e, struct rv_stream **st, uint64_t now)
{
	(void)st;
	(void)now;
	return e->ended || of(e)->failed ? REEVE_ECLOSED
	    : e->refusing                ? REEVE_EGOAWAY
					 : REEVE_EAGAIN;
}

static bool
hs_ping(struct rv_engine *e, uint64_t now)
{
	(void)e;
	(void)now;
	return false;
}

static void
hs_goaway(struct rv_engine *e, uint32_t code)
{
	(void)code;
	e->refusing = true;
}

static void
hs_closing(struct rv_engine *e)
{
	e->refusing = true;
}

static void
hs_end(struct rv_engine *e)
{
	e->ended = e->refusing = true;
	e->blocked = false;
}

static int
hs_tick(struct rv_engine *e, uint64_t now)
{
	struct handshake *h = of(e);

	if (h->failed || e->ended)
		return h->failed ? e->reason.rc : 0;
	return now >= h->deadline ? fail(h, REEVE_ETIMEDOUT, REEVE_BY_US) : 0;
}

static void
hs_alive(struct rv_engine *e, uint64_t now)
{
	(void)e;
	(void)now;
}

static uint64_t
hs_next_deadline(const struct rv_engine *e)
{
	return e->ended || of(e)->failed || e->over ? UINT64_MAX : of(e)->deadline;
}

static void
hs_destroy(struct rv_engine *e)
{
	rv_free(e->cfg.arena, e, sizeof(struct handshake));
}

static const struct rv_engine_ops hs_ops = {
    .feed = hs_feed,
    .feed_end = hs_feed_end,
    .drain = hs_drain,
    .has_output = hs_has_output,
    .notify = hs_notify,
    .open = hs_open,
    .ping = hs_ping,
    .goaway = hs_goaway,
    .closing = hs_closing,
    .end = hs_end,
    .tick = hs_tick,
    .alive = hs_alive,
    .next_deadline = hs_next_deadline,
    .destroy = hs_destroy,
};

int
rv_handshake_create(
    struct rv_engine **out, const struct rv_engine_cfg *cfg, const struct rv_upgrade_cfg *up)
{
	struct handshake *h = rv_zalloc(cfg->arena, sizeof(*h));

	REEVE_REQUIRE(h != NULL, REEVE_ENOMEM);
	h->e.ops = &hs_ops;
	h->e.cfg = *cfg;
	h->e.reason.size = sizeof(h->e.reason);
	h->e.reason.id = "";
	h->up = *up;
	h->deadline = up->timeout_ms == REEVE_OFF ? UINT64_MAX
						  : cfg->now + (uint64_t)up->timeout_ms * MS_US;
	begin(h, up->security == REEVE_SECURITY_NONE ? MUXER : SECURITY);
	*out = &h->e;
	return 0;
}

uint32_t
rv_handshake_proto(const struct rv_engine *e)
{
	return of(e)->up.muxers[of(e)->ms.at];
}

const struct rv_peer_id *
rv_handshake_peer(const struct rv_engine *e)
{
	return &of(e)->plain.peer;
}
