/* handshake.c - the handshake of a connection as an engine.  See handshake.h. */
#include <config.h>

#include "lib/upgrade/handshake.h"

#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/engine/gather.h"
#include "lib/upgrade/multistream.h"
#include "lib/upgrade/noise.h"
#include "lib/upgrade/plaintext.h"

#include <string.h>

#define MS_US 1000

enum step { SECURITY, IDENTITY, MUXER, OVER };

static const char *const step_id[] = {[SECURITY] = "REEVE-UP-SECURITY",
    [IDENTITY] = "REEVE-UP-IDENTITY",
    [MUXER] = "REEVE-UP-MUXER",
    [OVER] = ""};
static const char *const proto_name[] = {
    [REEVE_YAMUX] = "/yamux/1.0.0", [REEVE_MPLEX] = "/mplex/6.7.0"};

struct handshake;

/* What runs in a step. */
struct machine {
	size_t (*feed)(struct handshake *h, const uint8_t *p, size_t n);
	void (*end)(struct handshake *h);
	size_t (*out)(const struct handshake *h, const uint8_t **p);
	void (*sent)(struct handshake *h, size_t n);
	int (*result)(
	    const struct handshake *h, const char **why); /* 1: not done, 0, or an error */
};

struct handshake {
	struct rv_engine e; /* first */
	struct rv_upgrade_cfg up;
	enum step step;
	bool failed;
	uint64_t deadline;
	const char *names[RV_MUXERS];
	const struct machine *now;
	struct rv_noise *noise; /* while it runs */
	struct rv_filter
	    *filter; /* what follows goes through it; from the end of noise until it is asked for */
	struct rv_peer_id peer;
	struct rv_plaintext plain;
	struct rv_ms ms;
};

static struct handshake *
of(const struct rv_engine *e)
{
	return (struct handshake *)(void *)(uintptr_t)e;
}

/* --- the machines */

static size_t
ms_feed(struct handshake *h, const uint8_t *p, size_t n)
{
	return rv_ms_feed(&h->ms, p, n);
}

static void
ms_end(struct handshake *h)
{
	rv_ms_end(&h->ms);
}

static size_t
ms_out(const struct handshake *h, const uint8_t **p)
{
	return rv_ms_out(&h->ms, p);
}

static void
ms_sent(struct handshake *h, size_t n)
{
	rv_ms_sent(&h->ms, n);
}

static int
ms_result(const struct handshake *h, const char **why)
{
	*why = NULL;
	return h->ms.done ? h->ms.rc : 1;
}

static size_t
plain_feed(struct handshake *h, const uint8_t *p, size_t n)
{
	size_t used = rv_plaintext_feed(&h->plain, p, n);

	h->peer = h->plain.peer;
	return used;
}

static void
plain_end(struct handshake *h)
{
	rv_plaintext_end(&h->plain);
}

static size_t
plain_out(const struct handshake *h, const uint8_t **p)
{
	return rv_plaintext_out(&h->plain, p);
}

static void
plain_sent(struct handshake *h, size_t n)
{
	rv_plaintext_sent(&h->plain, n);
}

static int
plain_result(const struct handshake *h, const char **why)
{
	*why = NULL;
	return h->plain.done ? h->plain.rc : 1;
}

static size_t
noise_feed(struct handshake *h, const uint8_t *p, size_t n)
{
	size_t used = rv_noise_feed(h->noise, p, n);

	if (!h->noise->done || h->noise->rc != 0)
		return used;
	h->peer = h->noise->peer;
	if (h->filter == NULL)
		h->noise->rc = rv_noise_filter(h->noise, &h->filter, h->e.cfg.arena);
	return used;
}

static void
noise_end(struct handshake *h)
{
	rv_noise_end(h->noise);
}

static size_t
noise_out(const struct handshake *h, const uint8_t **p)
{
	return rv_noise_out(h->noise, p);
}

static void
noise_sent(struct handshake *h, size_t n)
{
	rv_noise_sent(h->noise, n);
}

static int
noise_result(const struct handshake *h, const char **why)
{
	*why = h->noise->why;
	return h->noise->done ? h->noise->rc : 1;
}

static size_t
over_feed(struct handshake *h, const uint8_t *p, size_t n)
{
	(void)h;
	(void)p;
	(void)n;
	return 0;
}

static int
over_result(const struct handshake *h, const char **why)
{
	(void)h;
	*why = NULL;
	return 1;
}

static const struct machine ms_machine = {ms_feed, ms_end, ms_out, ms_sent, ms_result};
static const struct machine plain_machine = {
    plain_feed, plain_end, plain_out, plain_sent, plain_result};
static const struct machine noise_machine = {
    noise_feed, noise_end, noise_out, noise_sent, noise_result};
/* The last answer of the last negotiation may still be there to be sent. */
static const struct machine over_machine = {over_feed, ms_end, ms_out, ms_sent, over_result};

static enum rv_ms_mode
mode(const struct handshake *h)
{
	return h->e.cfg.role == REEVE_DIALER ? RV_MS_DIALER : RV_MS_LISTENER;
}

static void
noise_stop(struct handshake *h)
{
	if (h->noise == NULL)
		return;
	rv_noise_fini(h->noise);
	rv_free(h->e.cfg.arena, h->noise, sizeof(*h->noise));
	h->noise = NULL;
}

static void
begin(struct handshake *h, enum step step)
{
	const struct rv_peer_id *expect = h->up.expect.len > 0 ? &h->up.expect : NULL;
	uint32_t i;
	int rc = 0;

	h->step = step;
	h->now = &ms_machine;
	if (step == SECURITY) {
		h->names[0] = h->noise != NULL ? RV_NOISE_NAME : RV_PLAINTEXT_NAME;
		rc = rv_ms_init(&h->ms, mode(h), h->names, 1);
	} else if (step == IDENTITY && h->noise != NULL) {
		h->now = &noise_machine;
		rv_noise_init(h->noise, mode(h) == RV_MS_DIALER, h->up.identity, expect);
	} else if (step == IDENTITY) {
		h->now = &plain_machine;
		rv_plaintext_init(&h->plain, &h->up.key, expect);
	} else if (step == MUXER) {
		noise_stop(h);
		for (i = 0; i < h->up.nmuxers; i++)
			h->names[i] = proto_name[h->up.muxers[i]];
		rc = rv_ms_init(&h->ms, mode(h), h->names, h->up.nmuxers);
	} else {
		h->now = &over_machine;
		h->e.over = true;
	}
	REEVE_ASSERT(rc == 0);
	(void)rc;
}

/* --- the engine */

static int
fail(struct handshake *h, int rc, uint32_t by)
{
	reeve_reason_t *r = &h->e.reason;
	const char *why = NULL;

	h->failed = true;
	if (r->rc == 0) {
		(void)h->now->result(h, &why);
		r->rc = rc;
		r->by = by;
		r->id = step_id[h->step];
		h->e.why = why;
	}
	return rc;
}

static bool
done(const struct handshake *h)
{
	const char *why;

	return h->now->result(h, &why) <= 0;
}

/* It could not even begin: nobody has been told. */
static bool
stillborn(const struct handshake *h)
{
	const char *why;

	return !h->failed && h->now->result(h, &why) < 0;
}

/* Bytes that follow go through a filter that has not been asked for yet. */
static bool
unfiltered(const struct handshake *h)
{
	return h->filter != NULL && h->step > IDENTITY;
}

/* The current step has succeeded and said everything: on to the next.  A machine's own output has to leave before the
 * next one is put into its place. */
static void
advance(struct handshake *h)
{
	const uint8_t *p;

	if (done(h) && h->now->out(h, &p) == 0)
		begin(h, h->step + 1);
}

static reeve_ssize
hs_feed(struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now)
{
	struct handshake *h = of(e);
	const char *why;
	uint32_t pos = 0;
	int rc;

	(void)now;
	if (h->failed || e->ended)
		return h->failed ? e->reason.rc : REEVE_ECLOSED;
	while (pos < len && !e->over && !unfiltered(h)) {
		pos += (uint32_t)h->now->feed(h, slab->data + off + pos, len - pos);
		rc = h->now->result(h, &why);
		if (rc > 0)
			continue;
		if (rc < 0)
			return fail(h, rc, rc == REEVE_ENOMEM ? REEVE_BY_US : REEVE_BY_PEER);
		advance(h);
		rc = h->now->result(h, &why);
		if (rc < 0)
			return fail(h, rc, REEVE_BY_US);
		if (rc == 0)
			break; /* its last words first */
	}
	e->blocked = pos < len && !e->over && !unfiltered(h);
	return pos;
}

static int
hs_feed_end(struct rv_engine *e)
{
	struct handshake *h = of(e);
	const char *why;

	if (h->failed)
		return 0;
	h->now->end(h);
	return fail(h, h->now->result(h, &why), REEVE_BY_PEER);
}

static size_t
hs_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now)
{
	struct handshake *h = of(e);
	size_t before = g->bytes, n;
	const uint8_t *p;

	(void)now;
	while (!e->ended && !unfiltered(h) && (n = h->now->out(h, &p)) > 0 && rv_gather_room(g)) {
		n = n < RV_STAGE_MAX ? n : RV_STAGE_MAX;
		rv_gather_stage(g, p, n);
		h->now->sent(h, n);
		if (!h->failed)
			advance(h);
	}
	if (!done(h))
		e->blocked = false;
	return g->bytes - before;
}

static bool
hs_has_output(const struct rv_engine *e)
{
	const struct handshake *h = of(e);
	const uint8_t *p;

	return !e->ended && h->now->out(h, &p) > 0;
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
	if (stillborn(h))
		return fail(h, REEVE_ENOMEM, REEVE_BY_US);
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
	if (e->ended || of(e)->failed || e->over)
		return UINT64_MAX;
	return stillborn(of(e)) ? e->cfg.now : of(e)->deadline;
}

static void
hs_destroy(struct rv_engine *e)
{
	struct handshake *h = of(e);

	noise_stop(h);
	if (h->filter != NULL)
		h->filter->ops->destroy(h->filter);
	rv_key_unref(h->up.identity);
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
	if (up->security == REEVE_NOISE) {
		h->noise = rv_zalloc(cfg->arena, sizeof(*h->noise));
		if (h->noise == NULL) {
			rv_free(cfg->arena, h, sizeof(*h));
			return REEVE_ENOMEM;
		}
	}
	if (up->identity != NULL)
		rv_key_ref(up->identity);
	h->deadline = up->timeout_ms == REEVE_OFF ? UINT64_MAX
						  : cfg->now + (uint64_t)up->timeout_ms * MS_US;
	begin(h, up->security == REEVE_SECURITY_NONE ? MUXER : SECURITY);
	*out = &h->e;
	return 0;
}

struct rv_filter *
rv_handshake_filter(struct rv_engine *e)
{
	struct handshake *h = of(e);
	struct rv_filter *f = unfiltered(h) ? h->filter : NULL;

	if (f != NULL)
		h->filter = NULL;
	return f;
}

uint32_t
rv_handshake_proto(const struct rv_engine *e)
{
	return of(e)->up.muxers[of(e)->ms.at];
}

const struct rv_peer_id *
rv_handshake_peer(const struct rv_engine *e)
{
	return &of(e)->peer;
}
