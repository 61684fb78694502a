/* engine_rig.c - see engine_rig.h. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void *
rig_alloc(void *ctx, size_t size, size_t align)
{
	struct rvt_rig *r = ctx;
	void *p;

	r->allocs++;
	if (r->fail_at > 0 && r->allocs >= r->fail_at && (r->fail_on || r->allocs == r->fail_at))
		return NULL;
	return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void
rig_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	(void)size;
	free(p);
}

static struct rvt_seen *
seen_of(struct rvt_rig *r, struct rv_stream *st)
{
	struct rvt_rec *rec = (struct rvt_rec *)st;

	if (rec->seen == 0) {
		if (++r->nseen >= r->capseen) {
			r->capseen = 2 * r->capseen + 64;
			r->seen = realloc(r->seen, r->capseen * sizeof(*r->seen));
			if (r->seen == NULL)
				abort();
		}
		rec->seen = r->nseen;
		memset(&r->seen[rec->seen], 0, sizeof(*r->seen));
		r->seen[rec->seen].st = st;
		r->seen[rec->seen].id = st->id;
	}
	return &r->seen[rec->seen];
}

void
rvt_see(struct rvt_rig *r, struct rv_stream *st)
{
	(void)seen_of(r, st);
}

struct rvt_seen *
rvt_seen(struct rvt_rig *r, uint64_t id)
{
	for (unsigned i = r->nseen; i > 0; i--)
		if (r->seen[i].id == id)
			return &r->seen[i];
	return NULL;
}

static void
on_data(struct rvt_rig *r, struct rvt_seen *s, const struct rv_event *ev)
{
	const uint8_t *p = ev->slab->data + ev->off;

	for (uint32_t i = 0; i < ev->len; i++)
		if (p[i] != rvt_byte(ev->st->id, s->got + i))
			r->bad++;
	s->got += ev->len;
	if (s->fin || s->rst || s->slow || s->gone || ev->n < ev->len)
		r->bad++;
	if (r->consume)
		r->e->ops->consumed(r->e, ev->st, ev->len, r->now);
}

static void
on_stream(struct rvt_rig *r, struct rvt_seen *s, const struct rv_event *ev)
{
	if (s->gone || (s->opened && ev->kind == RV_EV_OPEN))
		r->bad++;
	switch (ev->kind) {
	case RV_EV_OPEN:
		s->opened = true;
		break;
	case RV_EV_FIN:
		s->fin = true;
		break;
	case RV_EV_RST:
		s->rst = true;
		s->refused = (ev->flags & RV_EVF_REFUSED) != 0;
		s->code = ev->n;
		break;
	case RV_EV_CLOSING:
		s->closing = true;
		break;
	case RV_EV_SLOW:
		s->slow = true;
		s->dropped = ev->n != 0;
		break;
	case RV_EV_GONE:
		s->gone = true;
		s->ended = (ev->flags & RV_EVF_ENDED) != 0;
		if (!s->ended && s->taken != s->queued)
			r->bad++;
		rv_free(r->ar, s->st, sizeof(struct rvt_rec));
		s->st = NULL;
		break;
	default:
		break;
	}
}

static void
rig_emit(void *ctx, const struct rv_event *ev)
{
	struct rvt_rig *r = ctx;
	struct rvt_seen *s = ev->st == NULL ? NULL : seen_of(r, ev->st);
	struct rv_event *log;

	if (r->room != UINT32_MAX) {
		RVT_CHECK(r->room > 0);
		r->room--;
	}
	if (ev->kind == RV_EV_TAKEN) {
		s->taken += ev->n;
		if (s->gone || ev->n == 0)
			r->bad++;
		return;
	}
	if (ev->kind == RV_EV_DATA) {
		on_data(r, s, ev);
		return;
	}
	if (r->at == r->nev)
		r->at = r->nev = 0;
	RVT_CHECK(r->nev < 4096);
	log = &r->ev[r->nev++];
	*log = *ev;
	log->len = ev->st == NULL ? 0
				  : (uint32_t)ev->st->id; /* the id, for after the record is gone */
	if (s != NULL)
		on_stream(r, s, ev);
}

static unsigned
rig_room(void *ctx)
{
	return ((struct rvt_rig *)ctx)->room;
}

void
rvt_cfg(reeve_cfg_t *cfg)
{
	reeve_cfg_init(cfg);
}

void
rvt_rig_prepare(struct rvt_rig *r)
{
	reeve_alloc_t a = {.alloc = rig_alloc, .free = rig_free, .ctx = r};

	memset(r, 0, sizeof(*r));
	r->now = 1000000;
	r->room = UINT32_MAX;
	r->ar = rv_arena_create(&a);
	ck_assert_ptr_nonnull(r->ar);
	r->pool = rv_pool_create(r->ar);
	ck_assert_ptr_nonnull(r->pool);
	rv_pool_enter(r->pool);
	r->g = malloc(sizeof(*r->g));
	ck_assert_ptr_nonnull(r->g);
	rv_gather_reset(r->g);
}

int
rvt_rig_start(struct rvt_rig *r, int role, const reeve_cfg_t *cfg, struct rv_budget *budget)
{
	struct rv_engine_cfg c = {
	    .role = role, .record_size = sizeof(struct rvt_rec), .now = r->now};
	int rc;

	ck_assert_int_eq(rv_cfg_resolve(&c.user, cfg), 0);
	c.arena = r->ar;
	c.budget = budget;
	c.sink.emit = rig_emit;
	c.sink.room = rig_room;
	c.sink.ctx = r;
	rc = rv_engine_create(&r->e, &c);
	if (rc != 0)
		r->e = NULL;
	return rc;
}

void
rvt_rig_init(struct rvt_rig *r, int role, const reeve_cfg_t *cfg, struct rv_budget *budget)
{
	rvt_rig_prepare(r);
	ck_assert_int_eq(rvt_rig_start(r, role, cfg, budget), 0);
	rvt_drain(r, 0);
	if (r->e->cfg.user.proto == REEVE_YAMUX)
		rvt_want(r, RVT_PING, RVT_SYN, 0, 0);
	rvt_want_none(r);
}

void
rvt_rig_fini(struct rvt_rig *r)
{
	r->room = UINT32_MAX;
	if (r->e != NULL) {
		r->e->ops->end(r->e);
		rv_gather_abort(r->e, r->g);
		ck_assert(r->e->ops->notify(r->e));
		ck_assert_uint_eq(r->e->nstreams, 0);
		ck_assert_uint_eq(r->e->nunacked, 0);
		ck_assert_uint_eq(r->e->nunaccepted, 0);
		ck_assert_uint_eq(rvq_counter_get(&r->e->stats.unread), 0);
		ck_assert_uint_eq(rv_mux_of(r->e)->undead, 0);
		if (r->e->cfg.user.proto == REEVE_YAMUX)
			ck_assert_uint_eq(((struct rv_yamux *)r->e)->win.grown, 0);
		r->e->ops->destroy(r->e);
	}
	for (unsigned i = 1; i <= r->nseen; i++)
		ck_assert_msg(
		    r->seen[i].gone, "stream %llu is not gone", (unsigned long long)r->seen[i].id);
	ck_assert_uint_eq(r->bad, 0);
	rv_pool_enter(NULL);
	rv_pool_close(r->pool);
	ck_assert_uint_eq(rv_arena_bytes(r->ar), 0);
	rv_arena_unref(r->ar);
	rvt_bytes_fini(&r->in);
	rvt_bytes_fini(&r->out);
	free(r->seen);
	free(r->g);
}

int
rvt_feed(struct rvt_rig *r, size_t chunk)
{
	reeve_ssize rc = 0;
	size_t n;

	while (rc >= 0 && r->in.at < r->in.n) {
		struct rv_slab *s = rv_slab_get(r->pool, 65536);
		uint32_t at = 0;

		RVT_CHECK(s != NULL);
		n = r->in.n - r->in.at;
		if (n > s->cap)
			n = s->cap;
		if (chunk > 0 && n > chunk)
			n = chunk;
		memcpy(s->data, r->in.p + r->in.at, n);
		r->in.at += n;
		while (rc >= 0 && at < n) {
			rc = r->e->ops->feed(r->e, s, at, (uint32_t)n - at, r->now);
			if (rc == 0)
				break;
			at += rc > 0 ? (uint32_t)rc : 0;
		}
		rv_slab_unref(s);
		if (rc >= 0 && at < n) { /* no room: the rest again next time */
			r->in.at -= n - at;
			return 0;
		}
	}
	r->in.n = r->in.at = 0;
	return rc < 0 ? (int)rc : 0;
}

void
rvt_drain(struct rvt_rig *r, size_t max)
{
	struct rv_gather *g = r->g;

	while (r->e->ops->has_output(r->e) || !rv_gather_empty(g)) {
		size_t n;

		if (rv_gather_empty(g))
			rv_gather_reset(g);
		(void)r->e->ops->drain(r->e, g, r->now);
		if (rv_gather_empty(g))
			continue;
		n = g->iov[g->iov_at].iov_len;
		if (max > 0 && n > max)
			n = max;
		memcpy(rvt_bytes_more(&r->out, n), g->iov[g->iov_at].iov_base, n);
		rv_gather_sent(r->e, g, n);
	}
	rv_gather_reset(g);
}

void
rvt_notify(struct rvt_rig *r)
{
	RVT_CHECK(r->e->ops->notify(r->e));
}

void
rvt_round_trips(struct rvt_rig *r, uint64_t us)
{
	for (uint32_t i = 0; i < RV_RTT_BURST; i++) {
		if (i > 0) { /* the first leaves by itself */
			ck_assert(r->e->ops->ping(r->e, r->now));
			rvt_drain(r, 0);
			rvt_want(r, RVT_PING, RVT_SYN, 0, i);
		}
		r->now += us;
		rvt_put(&r->in, RVT_PING, RVT_ACK, 0, i);
		ck_assert_int_eq(rvt_feed(r, 0), 0);
		rvt_notify(r);
		if (i > 0)
			(void)rvt_event(r, RV_EV_PONG, 0);
	}
	rvt_want_none(r);
}

struct rv_stream *
rvt_open(struct rvt_rig *r)
{
	struct rv_stream *st = NULL;

	ck_assert_int_eq(r->e->ops->open(r->e, &st, r->now), 0);
	(void)seen_of(r, st);
	return st;
}

struct rv_stream *
rvt_inbound(struct rvt_rig *r, uint32_t id)
{
	struct rv_stream *st;

	rvt_put(&r->in, RVT_WU, RVT_SYN, id, 0);
	ck_assert_int_eq(rvt_feed(r, 0), 0);
	st = rvt_event(r, RV_EV_OPEN, id).st;
	r->e->ops->accept(r->e, st);
	rvt_drain(r, 0);
	rvt_want(r, RVT_WU, RVT_ACK, id, 0);
	return st;
}

struct rv_stream *
rvt_outbound(struct rvt_rig *r)
{
	struct rv_stream *st = rvt_open(r);

	rvt_drain(r, 0);
	rvt_want(r, RVT_WU, RVT_SYN, st->id, 0);
	rvt_put(&r->in, RVT_WU, RVT_ACK, st->id, 0);
	ck_assert_int_eq(rvt_feed(r, 0), 0);
	return st;
}

void
rvt_send(struct rvt_rig *r, struct rv_stream *st, uint32_t n)
{
	struct rvt_seen *s = seen_of(r, st);
	reeve_buf_t *b = rv_buf_alloc(r->pool, n);
	uint8_t *p;

	ck_assert_ptr_nonnull(b);
	p = b->slab->data + b->off;
	for (uint32_t i = 0; i < n; i++)
		p[i] = rvt_byte(st->id, s->queued + i);
	s->queued += n;
	r->e->ops->send(r->e, st, b);
}

static void
want_body(struct rvt_seen *s, const struct rvt_frame *f)
{
	ck_assert_ptr_nonnull(s);
	for (uint32_t i = 0; i < f->len; i++)
		RVT_CHECK(f->body[i] == rvt_byte(f->id, s->out + i));
	s->out += f->len;
}

void
rvt_want(struct rvt_rig *r, unsigned type, unsigned flags, uint32_t id, uint32_t len)
{
	struct rvt_frame f;

	ck_assert_msg(rvt_next(&r->out, &f), "no frame, wanted type %u flags %u id %u len %u", type,
	    flags, id, len);
	ck_assert_msg(
	    f.version == 0 && f.type == type && f.flags == flags && f.id == id && f.len == len,
	    "frame type %u flags %u id %u len %u, wanted type %u flags %u id %u len %u", f.type,
	    f.flags, f.id, f.len, type, flags, id, len);
	if (type == RVT_DATA)
		want_body(rvt_seen(r, id), &f);
}

void
rvt_want_none(struct rvt_rig *r)
{
	struct rvt_frame f;

	ck_assert_msg(!rvt_next(&r->out, &f), "unwanted frame type %u flags %u id %u len %u",
	    f.type, f.flags, f.id, f.len);
	ck_assert_uint_eq(r->out.at, r->out.n);
}

struct rv_event
rvt_event(struct rvt_rig *r, enum rv_ev_kind kind, uint64_t id)
{
	ck_assert_msg(
	    r->at < r->nev, "no event, wanted kind %u id %llu", kind, (unsigned long long)id);
	ck_assert_msg(r->ev[r->at].kind == kind && r->ev[r->at].len == (uint32_t)id,
	    "event kind %u id %u, wanted kind %u id %llu", r->ev[r->at].kind, r->ev[r->at].len,
	    kind, (unsigned long long)id);
	return r->ev[r->at++];
}

void
rvt_no_event(struct rvt_rig *r)
{
	ck_assert_msg(
	    r->at == r->nev, "unwanted event kind %u id %u", r->ev[r->at].kind, r->ev[r->at].len);
}

int
rvt_run_tcase(const char *name, TCase *t)
{
	Suite *s = suite_create(name);
	SRunner *sr;
	int failed;

	tcase_set_timeout(t, 60); /* nothing waits; machines may be slow */
	suite_add_tcase(s, t);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
