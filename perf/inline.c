/* inline.c - see inline.h. */
#include <config.h>

#include "perf/inline.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/config.h"
#include "lib/engine/engine.h"
#include "lib/engine/gather.h"
#include "lib/transport/transport.h"

/* As a connection has them. */
#define READ_BUDGET  (256u * 1024)
#define WRITE_BUDGET (1024u * 1024)
#define SLAB_MIN     16384
#define POLL_EVERY   16

#define ROOM 1024 /* an emit is a call: there is always room */

struct lane {
	struct rv_stream wire; /* first */
	struct lane *next;     /* touched: something follows from the events of this call */
	uint32_t queued;       /* with the engine, not taken */
	uint32_t got;          /* consumed and not yet told */
	bool touched, sends, fresh;
};

struct rvp_inline {
	/* immutable */
	struct rvp_inline_cfg cfg;
	pthread_t thread;
	struct rv_arena *arena;
	int poll, bell;
	/* the thread's */
	struct rv_engine *engine;
	struct rv_transport *transport;
	struct rv_pool *pool;
	struct rv_slab *slab;
	struct rv_gather *gather;
	struct lane *touched;
	uint64_t now;
	bool readable, writable, hup, over;
	/* any thread */
	struct rvq_cell32 stop __attribute__((aligned(64)));
	struct rvq_counter received, reads, writes __attribute__((aligned(64)));
};

static void
touch(struct rvp_inline *in, struct lane *l)
{
	if (l->touched)
		return;
	l->touched = true;
	l->next = in->touched;
	in->touched = l;
}

static unsigned
room(void *ctx)
{
	(void)ctx;
	return ROOM;
}

static void
emit(void *ctx, const struct rv_event *ev)
{
	struct rvp_inline *in = ctx;
	struct lane *l = (struct lane *)(void *)ev->st;

	switch (ev->kind) {
	case RV_EV_OPEN:
		l->fresh = true;
		touch(in, l);
		break;
	case RV_EV_DATA:
		(void)*(const volatile uint8_t *)(ev->slab->data + ev->off);
		rvq_counter_add(&in->received, ev->len);
		l->got += ev->len;
		touch(in, l);
		break;
	case RV_EV_TAKEN:
		l->queued -= ev->n;
		touch(in, l);
		break;
	case RV_EV_GONE:
		rv_free(in->arena, l, sizeof(*l));
		break;
	case RV_EV_RST:
	case RV_EV_GOAWAY:
		in->over = true;
		break;
	default:
		break;
	}
}

static void
fill(struct rvp_inline *in, struct lane *l)
{
	reeve_buf_t *b;

	while (l->queued < in->engine->cfg.user.send_budget) {
		b = rv_buf_alloc(in->pool, in->cfg.write);
		rvp_check(b != NULL, "memory");
		b->slab->data[b->off] = 1;
		l->queued += (uint32_t)in->cfg.write;
		in->engine->ops->send(in->engine, &l->wire, b);
	}
}

/* What follows from the events: accept, credit, more bytes. */
static void
settle(struct rvp_inline *in)
{
	const struct rv_engine_ops *ops = in->engine->ops;
	struct lane *l;
	uint32_t n;

	while ((l = in->touched) != NULL) {
		in->touched = l->next;
		l->touched = false;
		if (l->fresh)
			ops->accept(in->engine, &l->wire);
		l->fresh = false;
		n = l->got;
		l->got = 0;
		if (n > 0)
			ops->consumed(in->engine, &l->wire, n, in->now);
		if (l->sends)
			fill(in, l);
	}
}

static void
fresh_slab(struct rvp_inline *in)
{
	if (in->slab != NULL && in->slab->cap - in->slab->used >= SLAB_MIN)
		return;
	/* Nobody kept a slice of it: from the start again, while it is in the cache. */
	if (in->slab != NULL && rvq_ref_single(&in->slab->refs)) {
		in->slab->used = 0;
		return;
	}
	if (in->slab != NULL)
		rv_slab_unref(in->slab);
	in->slab = rv_slab_get(in->pool, 65536);
	rvp_check(in->slab != NULL, "memory");
}

static void
read_turn(struct rvp_inline *in)
{
	uint32_t got = 0, at;
	struct iovec v;
	reeve_ssize n;

	while (in->readable && got < READ_BUDGET && !in->over) {
		fresh_slab(in);
		at = in->slab->used;
		v.iov_base = in->slab->data + at;
		v.iov_len = in->slab->cap - at;
		n = in->transport->ops->readv(in->transport, &v, 1);
		rvq_counter_add(&in->reads, 1);
		if (n == REEVE_EAGAIN) {
			in->readable = false;
			return;
		}
		if (n <= 0) {
			in->over = true;
			return;
		}
		in->slab->used += (uint32_t)n;
		got += (uint32_t)n;
		if ((size_t)n < v.iov_len && in->transport->short_is_drained && !in->hup)
			in->readable = false;
		rvp_check(
		    in->engine->ops->feed(in->engine, in->slab, at, (uint32_t)n, in->now) == n,
		    "the engine refused bytes");
		settle(in);
	}
}

static bool
write_some(struct rvp_inline *in)
{
	struct rv_gather *g = in->gather;
	size_t left = g->bytes - g->done;
	reeve_ssize n;

	n = in->transport->ops->writev(in->transport, g->iov + g->iov_at, g->niov - g->iov_at);
	rvq_counter_add(&in->writes, 1);
	if (n < 0) {
		in->writable = false;
		in->over = n != REEVE_EAGAIN;
		return false;
	}
	rv_gather_sent(in->engine, g, (size_t)n);
	if ((size_t)n < left && in->transport->short_is_drained)
		in->writable = false;
	return in->writable;
}

static void
write_turn(struct rvp_inline *in)
{
	const struct rv_engine_ops *ops = in->engine->ops;
	size_t sent = 0, before;

	while (in->writable && sent < WRITE_BUDGET) {
		if (rv_gather_empty(in->gather)) {
			if (!ops->has_output(in->engine))
				break;
			rv_gather_reset(in->gather);
			if (ops->drain(in->engine, in->gather, in->now) == 0)
				break;
		}
		before = in->gather->done;
		(void)write_some(in);
		sent += in->gather->done - before;
		(void)ops->notify(in->engine);
		settle(in);
	}
}

static void
wait_events(struct rvp_inline *in, bool busy)
{
	uint64_t at = in->engine->ops->next_deadline(in->engine), ms;
	struct epoll_event ev[2];
	int n, i, timeout = -1;

	if (busy) {
		timeout = 0;
	} else if (at != UINT64_MAX) {
		ms = at > in->now ? (at - in->now + 999) / 1000 : 0;
		timeout = ms > 3600000 ? 3600000 : (int)ms;
	}
	n = epoll_wait(in->poll, ev, 2, timeout);
	for (i = 0; i < n; i++) {
		if (ev[i].data.fd == in->bell)
			continue; /* stop was set */
		if (ev[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			in->readable = true;
		if (ev[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			in->hup = true;
		if (ev[i].events & EPOLLOUT)
			in->writable = true;
	}
}

static void
open_streams(struct rvp_inline *in)
{
	struct rv_stream *st;
	struct lane *l;
	unsigned i;

	for (i = 0; i < in->cfg.streams; i++) {
		rvp_must(in->engine->ops->open(in->engine, &st, in->now), "open");
		l = (struct lane *)(void *)st;
		l->sends = true;
		touch(in, l);
	}
	settle(in);
}

static void
begin(struct rvp_inline *in)
{
	struct rv_engine_cfg cfg = {.role = in->cfg.role,
	    .record_size = sizeof(struct lane),
	    .arena = in->arena,
	    .sink = {emit, room, in},
	    .now = in->now};
	reeve_cfg_t user;

	reeve_cfg_init(&user);
	user.max_window = in->cfg.window;
	user.send_budget = in->cfg.budget;
	rvp_must(rv_cfg_resolve(&cfg.user, &user), "configuration");
	rvp_must(rv_engine_create(&in->engine, &cfg), "engine");
	in->pool = rv_pool_create(in->arena);
	in->gather = rv_alloc(in->arena, sizeof(*in->gather), 64);
	rvp_check(in->pool != NULL && in->gather != NULL, "memory");
	rv_gather_reset(in->gather);
}

static void
end(struct rvp_inline *in)
{
	rv_gather_abort(in->engine, in->gather);
	in->engine->ops->end(in->engine);
	while (!in->engine->ops->notify(in->engine))
		;
	in->transport->ops->close(in->transport);
	if (in->slab != NULL)
		rv_slab_unref(in->slab);
	rv_free(in->arena, in->gather, sizeof(*in->gather));
}

static void *
inline_main(void *arg)
{
	struct rvp_inline *in = arg;
	unsigned passes = 0;
	bool busy;

	rv_pool_enter(in->pool);
	open_streams(in);
	while (!rvq_cell32_get_relaxed(&in->stop) && !in->over) {
		in->now = rv_clock_us();
		read_turn(in);
		write_turn(in);
		if (in->engine->ops->next_deadline(in->engine) <= in->now)
			in->over |= in->engine->ops->tick(in->engine, in->now) < 0;
		busy = in->readable ||
		    (in->writable &&
			(!rv_gather_empty(in->gather) || in->engine->ops->has_output(in->engine)));
		if (!busy || ++passes % POLL_EVERY == 0)
			wait_events(in, busy);
	}
	end(in);
	rv_pool_enter(NULL);
	return NULL;
}

struct rvp_inline *
rvp_inline_start(const struct rvp_inline_cfg *cfg)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = cfg->fd};
	struct rvp_inline *in = aligned_alloc(64, (sizeof(*in) + 63) & ~(size_t)63);

	rvp_check(in != NULL, "memory");
	memset(in, 0, sizeof(*in));
	in->cfg = *cfg;
	in->arena = rv_arena_create(NULL);
	in->now = rv_clock_us();
	rvp_check(in->arena != NULL, "memory");
	rvp_must(rv_fd_transport(&in->transport, in->arena, cfg->fd), "transport");
	begin(in);
	in->poll = epoll_create1(EPOLL_CLOEXEC);
	in->bell = eventfd(0, EFD_CLOEXEC);
	rvp_check(
	    in->poll >= 0 && in->bell >= 0 && epoll_ctl(in->poll, EPOLL_CTL_ADD, cfg->fd, &ev) == 0,
	    "epoll");
	ev = (struct epoll_event){.events = EPOLLIN, .data.fd = in->bell};
	rvp_check(epoll_ctl(in->poll, EPOLL_CTL_ADD, in->bell, &ev) == 0, "epoll");
	rvp_thread(&in->thread, inline_main, in, cfg->cpu);
	return in;
}

uint64_t
rvp_inline_received(const struct rvp_inline *in)
{
	return rvq_counter_get(&in->received);
}

void
rvp_inline_totals(const struct rvp_inline *in, struct rvp_totals *t)
{
	const struct rv_engine_stats *s = &in->engine->stats;

	t->copied += rvq_counter_get(&s->copied_out);
	if (in->cfg.role == REEVE_DIALER) {
		t->frames_out += rvq_counter_get(&s->frames_out);
		t->writes += rvq_counter_get(&in->writes);
	} else {
		t->frames_in += rvq_counter_get(&s->frames_in);
		t->reads += rvq_counter_get(&in->reads);
		t->window_max = rvq_counter_get(&s->window_max);
	}
}

void
rvp_inline_stop(struct rvp_inline *in)
{
	uint64_t one = 1;

	rvq_cell32_put(&in->stop, 1);
	rvp_check(write(in->bell, &one, sizeof(one)) == sizeof(one), "eventfd");
	pthread_join(in->thread, NULL);
	in->engine->ops->destroy(in->engine);
	rv_pool_close(in->pool);
	rv_arena_unref(in->arena);
	close(in->bell);
	close(in->poll);
	free(in);
}

/* --- as a contender: two ends --- */

struct ends {
	struct rvp_inline *tx, *rx;
};

static void *
ends_start(const struct rvp_load *l)
{
	struct ends *e = malloc(sizeof(*e));
	int fd[2];

	rvp_check(e != NULL, "memory");
	rvp_sockets(l->transport, fd);
	e->rx = rvp_inline_start(&(struct rvp_inline_cfg){.fd = fd[1],
	    .role = REEVE_LISTENER,
	    .window = l->window,
	    .budget = l->budget,
	    .cpu = l->pin ? 1 : RVP_ANY_CPU});
	e->tx = rvp_inline_start(&(struct rvp_inline_cfg){.fd = fd[0],
	    .role = REEVE_DIALER,
	    .streams = l->streams,
	    .write = l->write,
	    .window = l->window,
	    .budget = l->budget,
	    .cpu = l->pin ? 0 : RVP_ANY_CPU});
	return e;
}

static uint64_t
ends_received(void *run)
{
	return rvp_inline_received(((struct ends *)run)->rx);
}

static void
ends_totals(void *run, struct rvp_totals *t)
{
	struct ends *e = run;

	rvp_inline_totals(e->tx, t);
	rvp_inline_totals(e->rx, t);
}

static void
ends_stop(void *run)
{
	struct ends *e = run;

	rvp_inline_stop(e->tx);
	rvp_inline_stop(e->rx);
	free(e);
}

const struct rvp_flow rvp_inline_flow = {
    "inline", ends_start, ends_received, ends_totals, ends_stop};
