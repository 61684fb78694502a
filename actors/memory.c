/* memory.c - the memory pipe and its names. */
#include <config.h>

#include "actors/memory.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "actors/connection.h"
#include "actors/listener.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "queues/spsc.h"

#define PIPE_SLOTS 32

struct pipe_block {
	struct rv_slab *slab;
	uint32_t off, len;
};
RVQ_RING_DEFINE(pipe_ring, struct pipe_block)

/* One direction. */
struct pipe_way {
	struct rvq_ring ring;
	struct pipe_block slots[PIPE_SLOTS];
	struct rvq_cell64 in, out; /* bytes pushed, bytes taken: one writer each */
	struct rvq_cell32 reader_waits, writer_waits;
	struct rvq_cell32 shut; /* the writer's end is closed */
	struct rvq_cell32 gone; /* the reader's end is closed */
};

struct pipe_end {
	struct rv_transport t;
	struct pipe *pipe;
	struct pipe_way *rx, *tx;
	struct pipe_end *peer;
	struct rvq_cellptr ctl; /* whom to tell; set at attach, valid until the pipe is freed */
};

struct pipe {
	struct pipe_way way[2];
	struct pipe_end end[2];
	struct rvq_ref refs;
	struct rv_arena *arena;
	size_t bytes;
};

static struct pipe_end *
end_of(struct rv_transport *t)
{
	return rva_container(t, struct pipe_end, t);
}

static void
tell(struct pipe_end *e, int events)
{
	reeve_ctl_t *k = rvq_cellptr_get(&e->ctl);

	if (k != NULL)
		reeve_transport_ready(k, events);
}

/* After publishing: wake the other side if it announced that it waits.  pairs with the fence in announce. */
static void
wake(struct pipe_end *e, struct rvq_cell32 *waits, int events)
{
	rvq_fence_full();
	if (rvq_cell32_get(waits) != 0 && rvq_cell32_swap(waits, 0) != 0)
		tell(e, events);
}

static void
announce(struct rvq_cell32 *waits)
{
	rvq_cell32_put(waits, 1);
	rvq_fence_full();
}

static reeve_ssize
pipe_take(struct rv_transport *t, struct rv_slab **s, uint32_t *off)
{
	struct pipe_end *e = end_of(t);
	struct pipe_way *w = e->rx;
	struct pipe_block b;
	bool last = rvq_cell32_get(&w->shut) != 0;

	if (!pipe_ring_pop_spsc(&w->ring, w->slots, &b)) {
		if (last)
			return 0;
		announce(&w->reader_waits);
		last = rvq_cell32_get(&w->shut) != 0;
		if (!pipe_ring_pop_spsc(&w->ring, w->slots, &b))
			return last ? 0 : REEVE_EAGAIN;
	}
	rvq_cell64_put(&w->out, rvq_cell64_get_relaxed(&w->out) + b.len);
	wake(e->peer, &w->writer_waits, REEVE_WRITABLE);
	*s = b.slab;
	*off = b.off;
	return (reeve_ssize)b.len;
}

static reeve_ssize
pipe_readv(struct rv_transport *t, const struct iovec *v, int n)
{
	(void)t;
	(void)v;
	(void)n;
	return REEVE_ENOTSUP; /* take is there */
}

static size_t
pipe_room(const struct pipe_end *e)
{
	const struct pipe_way *w = e->tx;
	uint64_t used = rvq_cell64_get_relaxed(&w->in) - rvq_cell64_get(&w->out);

	if (rvq_ring_room(&w->ring) == 0 || used >= e->pipe->bytes)
		return 0;
	return e->pipe->bytes - (size_t)used;
}

/* Copy up to room bytes into one block. */
static struct rv_slab *
fill_block(const struct iovec *v, int n, size_t room)
{
	struct rv_pool *p = rv_pool_current();
	struct rv_slab *s;
	size_t want = 0, k;

	for (int i = 0; i < n && want < room; i++)
		want += v[i].iov_len;
	if (want > room)
		want = room;
	if (want > 65536)
		want = 65536;
	s = p == NULL ? NULL : rv_slab_get(p, want);
	for (int i = 0; s != NULL && i < n && s->used < want; i++) {
		k = v[i].iov_len < want - s->used ? v[i].iov_len : want - s->used;
		memcpy(s->data + s->used, v[i].iov_base, k);
		s->used += (uint32_t)k;
	}
	return s;
}

static reeve_ssize
pipe_writev(struct rv_transport *t, const struct iovec *v, int n)
{
	struct pipe_end *e = end_of(t);
	struct pipe_way *w = e->tx;
	struct pipe_block b = {NULL, 0, 0};
	size_t room;

	if (rvq_cell32_get(&w->gone) != 0)
		return REEVE_ESYS_BASE - EPIPE;
	room = pipe_room(e);
	if (room == 0) {
		announce(&w->writer_waits);
		room = pipe_room(e);
		if (room == 0)
			return rvq_cell32_get(&w->gone) != 0 ? REEVE_ESYS_BASE - EPIPE
							     : REEVE_EAGAIN;
	}
	b.slab = fill_block(v, n, room);
	if (b.slab == NULL)
		return REEVE_ENOMEM;
	b.len = b.slab->used;
	(void)pipe_ring_push_spsc(&w->ring, w->slots, &b);
	rvq_cell64_put(&w->in, rvq_cell64_get_relaxed(&w->in) + b.len);
	wake(e->peer, &w->reader_waits, REEVE_READABLE);
	return (reeve_ssize)b.len;
}

static int
pipe_fd(struct rv_transport *t)
{
	(void)t;
	return -1;
}

static void
pipe_attach(struct rv_transport *t, reeve_ctl_t *k)
{
	rva_conn_ref(
	    k->conn); /* until both ends are closed: the other side may be telling us just now */
	rvq_cellptr_put(&end_of(t)->ctl, k);
}

static int
pipe_shut(struct rv_transport *t)
{
	struct pipe_end *e = end_of(t);

	rvq_cell32_put(&e->tx->shut, 1);
	rvq_fence_full();
	tell(e->peer, REEVE_READABLE);
	return 0;
}

static void
pipe_free(struct pipe *p)
{
	struct pipe_block b;
	reeve_ctl_t *k;

	for (int i = 0; i < 2; i++)
		while (pipe_ring_pop_spsc(&p->way[i].ring, p->way[i].slots, &b))
			rv_slab_unref(b.slab);
	for (int i = 0; i < 2; i++)
		if ((k = rvq_cellptr_get(&p->end[i].ctl)) != NULL)
			rva_conn_unref(k->conn);
	rv_free(p->arena, p, sizeof(*p));
}

static void
pipe_close(struct rv_transport *t)
{
	struct pipe_end *e = end_of(t);

	rvq_cell32_put(&e->tx->shut, 1);
	rvq_cell32_put(&e->rx->gone, 1);
	rvq_fence_full();
	tell(e->peer, REEVE_READABLE | REEVE_WRITABLE);
	if (rvq_ref_put(&e->pipe->refs))
		pipe_free(e->pipe);
}

static const struct rv_transport_ops pipe_ops = {
    .readv = pipe_readv,
    .writev = pipe_writev,
    .take = pipe_take,
    .attach = pipe_attach,
    .fd = pipe_fd,
    .shut = pipe_shut,
    .close = pipe_close,
};

int
rva_memory_pipe(struct rv_transport *t[2], struct rv_arena *ar, size_t bytes)
{
	struct pipe *p = rv_alloc(ar, sizeof(*p), 64);

	REEVE_REQUIRE(p != NULL, REEVE_ENOMEM);
	memset(p, 0, sizeof(*p));
	p->arena = ar;
	p->bytes = bytes;
	rvq_ref_init(&p->refs, 2);
	for (int i = 0; i < 2; i++) {
		rvq_ring_init(&p->way[i].ring, PIPE_SLOTS);
		p->end[i].t.ops = &pipe_ops;
		p->end[i].pipe = p;
		p->end[i].tx = &p->way[i];
		p->end[i].rx = &p->way[1 - i];
		p->end[i].peer = &p->end[1 - i];
		t[i] = &p->end[i].t;
	}
	return 0;
}

/* --- names: process-wide, touched when listeners begin and end and when somebody dials --- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reeve_listener *names;

static struct reeve_listener *
lookup(const char *name)
{
	struct reeve_listener *l = names;

	while (l != NULL && strcmp(l->addr.name, name) != 0)
		l = l->name_next;
	return l;
}

int
rva_memory_bind(const char *name, struct reeve_listener *l)
{
	int rc = 0;

	pthread_mutex_lock(&names_lock);
	if (lookup(name) != NULL) {
		rc = REEVE_ESYS_BASE - EADDRINUSE;
	} else {
		l->name_next = names;
		names = l;
	}
	pthread_mutex_unlock(&names_lock);
	return rc;
}

void
rva_memory_unbind(struct reeve_listener *l)
{
	pthread_mutex_lock(&names_lock);
	for (struct reeve_listener **p = &names; *p != NULL; p = &(*p)->name_next) {
		if (*p == l) {
			*p = l->name_next;
			break;
		}
	}
	pthread_mutex_unlock(&names_lock);
}

int
rva_memory_find(const char *name, int (*fn)(struct reeve_listener *l, void *arg), void *arg)
{
	struct reeve_listener *l;
	int rc;

	pthread_mutex_lock(&names_lock);
	l = lookup(name);
	rc = l == NULL ? REEVE_ESYS_BASE - ECONNREFUSED : fn(l, arg);
	pthread_mutex_unlock(&names_lock);
	return rc;
}
