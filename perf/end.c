/* end.c - see end.h. */
#include <config.h>

#include "perf/end.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/config.h"
#include "lib/transport/transport.h"

#define SLAB_MIN 16384
#define ROOM     1024 /* an emit is a call: there is always room */

static unsigned
room(void *ctx)
{
	(void)ctx;
	return ROOM;
}

static void
watch(struct rvp_end *e, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	rvp_check(fd >= 0 && epoll_ctl(e->poll, EPOLL_CTL_ADD, fd, &ev) == 0, "epoll");
}

void
rvp_end_open(struct rvp_end *e, const struct rvp_end_cfg *cfg)
{
	struct rv_engine_cfg engine = {
	    .role = cfg->role, .record_size = cfg->record, .sink = {cfg->emit, room, cfg->ctx}};
	reeve_cfg_t user;

	memset(e, 0, sizeof(*e));
	e->role = cfg->role;
	e->timer = -1;
	e->now = engine.now = rv_clock_us();
	e->arena = engine.arena = rv_arena_create(NULL);
	rvp_check(e->arena != NULL, "memory");
	rvp_must(rv_fd_transport(&e->transport, e->arena, cfg->fd), "transport");
	reeve_cfg_init(&user);
	user.max_window = cfg->window;
	user.send_budget = cfg->budget;
	rvp_must(rv_cfg_resolve(&engine.user, &user), "configuration");
	rvp_must(rv_engine_create(&e->engine, &engine), "engine");
	e->pool = rv_pool_create(e->arena);
	e->gather = rv_alloc(e->arena, sizeof(*e->gather), 64);
	rvp_check(e->pool != NULL && e->gather != NULL, "memory");
	rv_gather_reset(e->gather);
	e->poll = epoll_create1(EPOLL_CLOEXEC);
	e->bell = eventfd(0, EFD_CLOEXEC);
	rvp_check(e->poll >= 0, "epoll");
	watch(e, cfg->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	watch(e, e->bell, EPOLLIN | EPOLLET);
}

void
rvp_end_finish(struct rvp_end *e)
{
	rv_gather_abort(e->engine, e->gather);
	e->engine->ops->end(e->engine);
	while (!e->engine->ops->notify(e->engine))
		;
	e->transport->ops->close(e->transport);
	if (e->slab != NULL)
		rv_slab_unref(e->slab);
	rv_free(e->arena, e->gather, sizeof(*e->gather));
}

void
rvp_end_close(struct rvp_end *e)
{
	e->engine->ops->destroy(e->engine);
	rv_pool_close(e->pool);
	rv_arena_unref(e->arena);
	if (e->timer >= 0)
		close(e->timer);
	close(e->bell);
	close(e->poll);
}

void
rvp_end_tick(struct rvp_end *e, unsigned rate)
{
	struct timespec every = {0, 1000000000 / (long)rate};

	e->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	watch(e, e->timer, EPOLLIN);
	rvp_check(
	    timerfd_settime(e->timer, 0, &(struct itimerspec){every, every}, NULL) == 0, "timerfd");
}

void
rvp_end_ring(struct rvp_end *e)
{
	uint64_t one = 1;

	rvp_check(write(e->bell, &one, sizeof(one)) == sizeof(one), "eventfd");
}

static void
fresh_slab(struct rvp_end *e)
{
	if (e->slab != NULL && e->slab->cap - e->slab->used >= SLAB_MIN)
		return;
	/* Nobody kept a slice of it: from the start again, while it is in the cache. */
	if (e->slab != NULL && rvq_ref_single(&e->slab->refs)) {
		e->slab->used = 0;
		e->slab->udesc = 0;
		return;
	}
	if (e->slab != NULL)
		rv_slab_unref(e->slab);
	e->slab = rv_slab_get(e->pool, 65536);
	rvp_check(e->slab != NULL, "memory");
}

uint32_t
rvp_end_read(struct rvp_end *e, uint32_t *at)
{
	struct iovec v;
	reeve_ssize n;

	fresh_slab(e);
	*at = e->slab->used;
	v.iov_base = e->slab->data + *at;
	v.iov_len = e->slab->cap - *at;
	n = e->transport->ops->readv(e->transport, &v, 1);
	rvq_counter_add(&e->reads, 1);
	if (n == REEVE_EAGAIN) {
		e->readable = false;
		return 0;
	}
	if (n <= 0) {
		e->over = true;
		return 0;
	}
	e->slab->used += (uint32_t)n;
	if ((size_t)n < v.iov_len && e->transport->short_is_drained && !e->hup)
		e->readable = false;
	return (uint32_t)n;
}

bool
rvp_end_gather(struct rvp_end *e)
{
	if (!rv_gather_empty(e->gather))
		return true;
	if (!e->engine->ops->has_output(e->engine))
		return false;
	rv_gather_reset(e->gather);
	return e->engine->ops->drain(e->engine, e->gather, e->now) > 0;
}

size_t
rvp_end_write(struct rvp_end *e)
{
	struct rv_gather *g = e->gather;
	size_t left = g->bytes - g->done;
	reeve_ssize n;

	n = e->transport->ops->writev(e->transport, g->iov + g->iov_at, g->niov - g->iov_at);
	rvq_counter_add(&e->writes, 1);
	if (n < 0) {
		e->writable = false;
		e->over |= n != REEVE_EAGAIN;
		return 0;
	}
	if ((size_t)n < left && e->transport->short_is_drained)
		e->writable = false;
	return (size_t)n;
}

bool
rvp_end_busy(const struct rvp_end *e)
{
	return e->readable ||
	    (e->writable && (!rv_gather_empty(e->gather) || e->engine->ops->has_output(e->engine)));
}

uint64_t
rvp_end_due(const struct rvp_end *e)
{
	uint64_t at = e->engine->ops->next_deadline(e->engine);

	if (at == UINT64_MAX)
		return at;
	return at > e->now ? at - e->now : 0;
}

uint32_t
rvp_end_wait(struct rvp_end *e, uint64_t us)
{
	struct epoll_event ev[3];
	uint32_t events = 0;
	uint64_t ticks;
	int n, i, timeout = -1;

	if (us != UINT64_MAX)
		timeout = us > UINT64_C(3600000000) ? 3600000 : (int)((us + 999) / 1000);
	n = epoll_wait(e->poll, ev, 3, timeout);
	for (i = 0; i < n; i++) {
		if (ev[i].data.fd == e->bell)
			continue; /* its edge is all there is to it */
		if (ev[i].data.fd == e->timer)
			e->ticked = read(e->timer, &ticks, sizeof(ticks)) == sizeof(ticks);
		else
			events |= ev[i].events;
	}
	return events;
}

void
rvp_end_see(struct rvp_end *e, uint32_t events)
{
	const uint32_t hup = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

	e->readable |= (events & (EPOLLIN | hup)) != 0;
	e->hup |= (events & hup) != 0;
	e->writable |= (events & EPOLLOUT) != 0;
}

void
rvp_end_totals(const struct rvp_end *e, struct rvp_totals *t)
{
	const struct rv_engine_stats *s = &e->engine->stats;

	t->copied += rvq_counter_get(&s->copied_out);
	if (e->role == REEVE_DIALER) {
		t->frames_out += rvq_counter_get(&s->frames_out);
		t->writes += rvq_counter_get(&e->writes);
	} else {
		t->frames_in += rvq_counter_get(&s->frames_in);
		t->reads += rvq_counter_get(&e->reads);
		t->window_max = rvq_counter_get(&s->window_max);
	}
}
