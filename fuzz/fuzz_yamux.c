/* fuzz_yamux.c - one yamux engine against arbitrary bytes and an arbitrary application.
 *
 * The input is a program: world_run.  Looked for: crashes, streams whose credit does not add up, memory without a bound,
 * a deadline that has passed, output that nobody announced, records that are not let go. */
#include <config.h>

#include "fuzz/world.h"
#include "lib/engine/yamux_session.h"

static void
check(struct world *w)
{
	struct rv_yamux *y = (struct rv_yamux *)w->e;
	uint64_t grown = 0;

	for (unsigned i = 0; i < w->n; i++) {
		struct rv_stream *st = w->st[i];
		uint64_t sum = (uint64_t)st->recv_credit + st->consumed + st->unread;

		if (!(st->flags & RV_ST_TABLED))
			continue;
		grown += st->window - RV_WINDOW0;
		if (st->rx == RV_RX_OPEN && !w->dead)
			must(sum + (y->m.body_st == st ? y->m.body_left : 0) == st->window);
	}
	must(grown == y->win.grown && grown <= y->win.grow);
}

/* Mend what would end the connection at once: parity, a second SYN, too much. */
static void
mend(struct world *w, struct rv_yhdr *h)
{
	struct rv_yamux *y = (struct rv_yamux *)w->e;
	struct rv_stream *st;

	if (h->type >= RV_Y_PING)
		return;
	if (h->id == 0)
		h->id = 1;
	if ((h->flags & RV_YF_SYN) && (h->id & 1) == (w->e->cfg.role == REEVE_DIALER))
		h->id++;
	st = rv_idtab_get(&y->m.tab, h->id);
	if (st != NULL)
		h->flags &= (uint16_t)~RV_YF_SYN;
	if (h->type == RV_Y_WINDOW || h->len <= RV_WINDOW0)
		h->len %= 300000;
	if (h->type == RV_Y_DATA && h->len > (st == NULL ? RV_WINDOW0 : st->recv_credit))
		h->len = st == NULL ? 1000 : st->recv_credit;
}

/* A frame out of four bytes: what, flags, which stream, how long; and as much of a body as it
 * says, at most 64 KiB. */
static void
frame(struct world *w, const uint8_t *p)
{
	static const uint32_t len[] = {
	    0, 1, 5, 100, 1000, 16384, 65536, 262144, 262145, UINT32_MAX - 262144, UINT32_MAX};
	static uint8_t buf[RV_YHDR + 65536];
	struct rv_yhdr h = {.type = p[0] & 3};
	uint32_t body;

	h.flags = p[0] & 4 ? 0 : p[1] & 15;
	h.id = h.type >= RV_Y_PING ? 0 : p[2] & 63;
	h.len = len[p[3] % 11];
	if (h.type == RV_Y_GOAWAY && p[1] != 0)
		h.type = RV_Y_DATA;
	if (p[0] >= 0x18)
		mend(w, &h);
	rv_yhdr_put(buf, &h);
	body = h.type != RV_Y_DATA ? 0 : h.len < 65536 ? h.len : 65536;
	world_feed(w, buf, RV_YHDR + (p[3] & 128 ? body : body / 2));
	/* Mostly the rest too: bodies are all the same byte. */
	while (!w->dead && ((struct rv_yamux *)w->e)->m.body_left > 0 && (p[3] & 64) == 0) {
		body = ((struct rv_yamux *)w->e)->m.body_left;
		world_feed(w, buf + RV_YHDR, body < 65536 ? body : 65536);
		if (body > 1u << 20)
			break;
	}
}

static void
start(struct world *w, uint8_t how)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_in = MAX_STREAMS;
	cfg.flags = how & 2 ? REEVE_CFG_LAZY_ACK : 0;
	cfg.linger_ms = how & 4 ? REEVE_OFF : 1000;
	cfg.grow = how & 8 ? 0 : 1u << 20;
	cfg.split = how & 16 ? 100 : 0;
	if (how & 32) {
		cfg.max_in = 8;
		cfg.max_out = 4;
		cfg.max_unacked = 2;
		cfg.churn_burst = 3;
		cfg.churn_per_s = 2;
	}
	if (how & 64)
		cfg.keepalive_ms = REEVE_OFF;
	world_start(w, how & 1 ? REEVE_DIALER : REEVE_LISTENER, &cfg);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct world_target target = {start, frame, check};

	return world_run(&target, p, n);
}
