/* fuzz_yamux.c - one yamux engine against arbitrary bytes and an arbitrary application.
 *
 * The input is a program: a byte below 8 feeds eight times that many of the next bytes as they
 * are, one below 0xc0 feeds a frame made of the next bytes (most of them nearly right, so that a
 * connection lives for a while), 0xc0 and above is something that the application does.  Looked
 * for: crashes, streams whose credit does not add up, memory without a bound, records that are
 * not let go. */
#include <config.h>

#include "fuzz/fuzz.h"
#include "lib/config.h"
#include "lib/engine/gather.h"
#include "lib/engine/yamux_session.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_BOUND (4u << 20)
#define MAX_STREAMS  128u

struct world {
	struct rv_engine *e;
	struct rv_arena *ar;
	struct rv_pool *pool;
	struct rv_gather g;
	struct rv_stream *st[2 * MAX_STREAMS];
	unsigned n, room;
	uint64_t now, unread;
	bool dead;
};

static void
must(bool ok)
{
	if (!ok)
		abort();
}

static void
forget(struct world *w, struct rv_stream *st)
{
	for (unsigned i = 0; i < w->n; i++) {
		if (w->st[i] != st)
			continue;
		w->st[i] = w->st[--w->n];
		rv_free(w->ar, st, sizeof(*st));
		return;
	}
	abort();
}

static void
emit(void *ctx, const struct rv_event *ev)
{
	struct world *w = ctx;

	must(w->room > 0);
	w->room--;
	switch (ev->kind) {
	case RV_EV_OPEN:
		must(w->n < 2 * MAX_STREAMS);
		w->st[w->n++] = ev->st;
		break;
	case RV_EV_DATA:
		must(ev->len > 0 && ev->len <= ev->n && ev->off + ev->len <= ev->slab->cap);
		break;
	case RV_EV_GONE:
		forget(w, ev->st);
		break;
	default:
		break;
	}
}

static unsigned
room(void *ctx)
{
	return ((struct world *)ctx)->room;
}

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
	must(rv_arena_bytes(w->ar) < MEMORY_BOUND);
}

static void
feed(struct world *w, const uint8_t *p, size_t n)
{
	struct rv_slab *s = rv_slab_get(w->pool, n + 1);
	reeve_ssize rc = 0;
	size_t at = 0;

	must(s != NULL);
	memcpy(s->data, p, n);
	while (!w->dead && at < n) {
		w->room = (unsigned)(n + at) % 7 + RV_EV_PER_FRAME;
		rc = w->e->ops->feed(w->e, s, (uint32_t)at, (uint32_t)(n - at), w->now);
		w->dead = rc < 0;
		at += rc < 0 ? 0 : (size_t)rc;
		w->room = 1000;
		must(w->e->ops->notify(w->e));
	}
	rv_slab_unref(s);
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
	feed(w, buf, RV_YHDR + (p[3] & 128 ? body : body / 2));
	/* Mostly the rest too: bodies are all the same byte. */
	while (!w->dead && ((struct rv_yamux *)w->e)->m.body_left > 0 && (p[3] & 64) == 0) {
		body = ((struct rv_yamux *)w->e)->m.body_left;
		feed(w, buf + RV_YHDR, body < 65536 ? body : 65536);
		if (body > 1u << 20)
			break;
	}
}

static void
write_out(struct world *w, size_t max)
{
	struct rv_gather *g = &w->g;
	size_t n;

	if (rv_gather_empty(g))
		rv_gather_reset(g);
	(void)w->e->ops->drain(w->e, g, w->now);
	for (; max > 0 && !rv_gather_empty(g); max -= n) {
		n = g->iov[g->iov_at].iov_len < max ? g->iov[g->iov_at].iov_len : max;
		rv_gather_sent(w->e, g, n);
	}
}

static void
send(struct world *w, struct rv_stream *st, size_t n)
{
	reeve_buf_t *b;

	if (st->out.bytes > 65536 || rv_arena_bytes(w->ar) > MEMORY_BOUND / 2)
		return;
	b = rv_buf_alloc(w->pool, n);
	must(b != NULL);
	memset(b->slab->data, 'x', n);
	w->e->ops->send(w->e, st, b);
}

static void
act(struct world *w, unsigned what, unsigned arg)
{
	const struct rv_engine_ops *o = w->e->ops;
	struct rv_stream *st = w->n > 0 ? w->st[arg % w->n] : NULL;

	switch (what % 16) {
	case 0:
		if (w->n < MAX_STREAMS && o->open(w->e, &st, w->now) == 0)
			w->st[w->n++] = st;
		return;
	case 1:
		write_out(w, (size_t)arg * 512 + 1);
		return;
	case 2:
		w->now += (uint64_t)arg * arg * 1000;
		w->dead = w->dead || o->tick(w->e, w->now) < 0;
		return;
	case 3:
		(void)o->ping(w->e, w->now);
		return;
	case 4:
		if (arg == 0)
			o->goaway(w->e, arg);
		else if (arg == 1)
			o->closing(w->e);
		return;
	default:
		break;
	}
	if (st == NULL)
		return;
	switch (what % 16) {
	case 5:
		o->accept(w->e, st);
		break;
	case 6:
		send(w, st, 1 + arg * 3);
		break;
	case 7:
		send(w, st, 1 + arg * 300);
		break;
	case 8:
		o->consumed(w->e, st, arg * 1000, w->now);
		break;
	case 9:
		o->shut(w->e, st);
		break;
	case 10:
		o->stop(w->e, st);
		break;
	case 11:
		o->reset(w->e, st, arg);
		break;
	case 12:
		o->close(w->e, st, arg & 128, w->now);
		break;
	case 13:
		o->drop(w->e, st);
		break;
	default:
		o->consumed(w->e, st, UINT32_MAX, w->now);
		break;
	}
}

static void
start(struct world *w, uint8_t how)
{
	struct rv_engine_cfg c = {.role = how & 1 ? REEVE_DIALER : REEVE_LISTENER,
	    .record_size = sizeof(struct rv_stream)};
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.max_in = MAX_STREAMS;
	cfg.flags = how & 2 ? REEVE_CFG_LAZY_ACK : 0;
	cfg.linger_ms = how & 4 ? REEVE_OFF : 1000;
	cfg.grow = 1u << 20;
	w->ar = rv_arena_create(NULL);
	must(w->ar != NULL);
	w->pool = rv_pool_create(w->ar);
	must(w->pool != NULL && rv_cfg_resolve(&c.user, &cfg) == 0);
	rv_pool_enter(w->pool);
	c.arena = w->ar;
	c.sink.emit = emit;
	c.sink.room = room;
	c.sink.ctx = w;
	c.now = w->now = 1;
	must(rv_engine_create(&w->e, &c) == 0);
}

static void
finish(struct world *w)
{
	w->room = 1000;
	w->e->ops->end(w->e);
	rv_gather_abort(w->e, &w->g);
	must(w->e->ops->notify(w->e));
	must(w->n == 0 && w->e->nstreams == 0 && w->e->nunacked == 0 && w->e->nunaccepted == 0);
	w->e->ops->destroy(w->e);
	rv_pool_enter(NULL);
	rv_pool_close(w->pool);
	must(rv_arena_bytes(w->ar) == 0);
	rv_arena_unref(w->ar);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct world w;
	size_t at = 1, k;

	if (n == 0)
		return 0;
	memset(&w, 0, offsetof(struct world, g));
	w.n = 0;
	w.dead = false;
	rv_gather_reset(&w.g);
	start(&w, p[0]);
	while (at + 5 <= n) {
		uint8_t op = p[at++];

		if (op < 8) {
			k = op * 8u < n - at ? op * 8u : n - at;
			feed(&w, p + at, k);
			at += k;
		} else if (op < 0xc0) {
			frame(&w, p + at);
			at += 4;
		} else {
			act(&w, op, p[at++]);
		}
		w.room = 1000;
		must(w.e->ops->notify(w.e));
		check(&w);
	}
	finish(&w);
	return 0;
}
