/* fuzz_mplex.c - one mplex engine against arbitrary bytes and an arbitrary application.
 *
 * The input is a program: world_run.  Looked for: crashes, memory without a bound, bytes unread that are counted wrongly
 * or beyond their bounds, an engine that is blocked without a reason or for ever, a deadline that has passed, output
 * that nobody announced, records that are not let go. */
#include <config.h>

#include "fuzz/world.h"
#include "lib/engine/mplex_session.h"

#include <string.h>

static void
check(struct world *w)
{
	const struct rv_mux *m = rv_mux_of(w->e);
	const reeve_cfg_t *c = &w->e->cfg.user;
	uint64_t sum = 0, open = 0;

	for (unsigned i = 0; i < w->n; i++) {
		const struct rv_stream *st = w->st[i];

		sum += st->unread;
		if (st->rx != RV_RX_OPEN)
			continue;
		open += st->unread;
		must(st->unread <= c->max_window);
	}
	must(sum == rvq_counter_get(&w->e->stats.unread) && open <= c->max_recv);
	if (w->dead || !w->e->blocked)
		return;
	must(m->body_left > 0 && m->body_st != NULL && m->body_st->rx == RV_RX_OPEN);
	/* Where nobody waits for readers, only memory that nobody has much of stops the parsing. */
	must(!(c->flags & REEVE_CFG_SLOW_RESET) ||
	    ((const struct rv_mplex *)w->e)->bound == RV_MP_MEMORY);
	must(c->slow_ms == REEVE_OFF ||
	    w->e->ops->next_deadline(w->e) <= w->now + (uint64_t)c->slow_ms * 1000);
}

/* Of four bytes: kind and side, which stream, how long a body, of what.  Half of the bodies come in two parts. */
static void
frame(struct world *w, const uint8_t *p)
{
	static const uint32_t len[] = {
	    0, 0, 1, 5, 100, 1000, 8192, 16384, 65536, 300000, 1048576, 1048577};
	static uint8_t buf[PIECE_MAX];
	uint64_t id = p[1] & 128 ? RV_MP_ID_LAST - (p[1] & 3) : p[1] & 63;
	enum rv_mp_kind kind = (enum rv_mp_kind)(p[0] & 3);
	bool ours = p[0] & 4;
	uint32_t left = len[p[2] % 12];
	unsigned n;

	if (p[0] >=
	    0x18) { /* mostly right: data of streams that are, whose closes and openings have no bodies */
		bool known = rv_idtab_get(&rv_mux_of(w->e)->tab,
				 rv_mp_key(id &= ~UINT64_C(0x38), ours)) != NULL;

		left = kind == RV_MP_DATA ? len[p[2] % 11] : len[p[2] % 4];
		if (kind == RV_MP_OPEN && known)
			kind = RV_MP_DATA;
		if (kind == RV_MP_DATA && !known && !ours) {
			n = rv_mphdr_put(buf, rv_mp_key(id, true), RV_MP_OPEN, 0);
			world_feed(w, buf, n);
		}
	}
	/* a header as the peer's engine would write it */
	n = rv_mphdr_put(buf, rv_mp_key(id, !ours || kind == RV_MP_OPEN), kind, left);
	if (p[0] < 2)
		buf[0] |= 7;
	memset(buf + n, p[3], left < 65536 ? left : 65536);
	if (p[3] & 1) {
		world_feed(w, buf, n / 2);
		world_feed(w, buf + n / 2, n - n / 2);
	} else {
		uint32_t k = left < 65536 ? left : 65536;

		world_feed(w, buf, n + k);
		left -= k;
	}
	for (; left > 0 && !w->dead && (p[3] & 6) != 0;) {
		uint32_t k = left < 65536 ? left : 65536;

		world_feed(w, buf + n, k);
		left -= k;
	}
}

static void
start(struct world *w, uint8_t how)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = REEVE_MPLEX;
	cfg.max_in = MAX_STREAMS;
	cfg.max_window = how & 32 ? 0 : 16384;
	cfg.max_recv = 1u << 20;
	cfg.flags = how & 2 ? REEVE_CFG_SLOW_RESET : 0;
	cfg.slow_ms = how & 4 ? REEVE_OFF : 100;
	cfg.linger_ms = how & 8 ? REEVE_OFF : 1000;
	cfg.split = how & 64 ? 100 : 0;
	if (how & 16) {
		cfg.max_in = 8;
		cfg.max_out = 4;
		cfg.churn_burst = 3;
		cfg.churn_per_s = 2;
	}
	world_start(w, how & 1 ? REEVE_DIALER : REEVE_LISTENER, &cfg);
	if (how & 128) /* less than an application may say: few inputs reach that */
		w->e->cfg.user.max_recv = w->e->cfg.user.max_window * 3;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct world_target target = {start, frame, check};

	return world_run(&target, p, n);
}
