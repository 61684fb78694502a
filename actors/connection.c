/* connection.c - beginning and ending of a connection, its bell, its rings and its timer.
 *
 * Owner: the connection's worker.  Reading is in connection_rx.c, writing in connection_tx.c. */
#include <config.h>

#include "actors/connection.h"

#include <string.h>

#include "actors/substream.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"

#define PAUSE_US 5000 /* between two looks at a full receive budget, or for memory */
/* Pinned beyond twice what is unread before bodies below RVA_COPY_PINNED are copied too.  A stream of 256 KiB that nobody
 * reads holds 4.9 times that at worst (small bodies among others'; 5.4 with 512 KiB); bulk copies no more for it (perf/memory,
 * perf/stream). */
#define PIN_SLACK (256u * 1024)
#define CTL_RESERVE \
	4 /* places for what is not the engine's: the answer to the one open in flight, that there are no more, the end */

/* --- the engine's sink: events go to the substreams' ring, openings and answers to the controller's --- */

static unsigned
sink_room(void *ctx)
{
	struct reeve_conn *c = ctx;
	unsigned down = rvq_ring_room(&c->down), ctl = rvq_ring_room(&c->to_ctl);

	if (c->run.st != NULL) /* its place is taken */
		down--;
	ctl = ctl > CTL_RESERVE ? ctl - CTL_RESERVE : 0;
	return down < ctl ? down : ctl;
}

static void
push_ctl(struct reeve_conn *c, const struct rva_ctlmsg *m)
{
	bool pushed = rva_ctlring_push_spsc(&c->to_ctl, c->to_ctl_slots, m);

	REEVE_ASSERT(pushed);
	(void)pushed;
	rvq_counter_add(&c->messages, 1);
}

static void
push_down(struct reeve_conn *c, const struct rv_event *ev)
{
	(void)rva_down_push_spsc(&c->down, c->down_slots, ev);
	rvq_counter_add(&c->messages, 1);
}

static void
end_run(struct reeve_conn *c)
{
	if (c->run.st == NULL)
		return;
	push_down(c, &c->run);
	c->run.st = NULL;
}

/* Small bodies of one stream in a row become one, where they are: moved over the header that was between them, which
 * has been parsed.  Nobody else can see that part of the block yet. */
static void
on_data(struct reeve_conn *c, const struct rv_event *ev)
{
	struct rv_event *r = &c->run;

	if (r->st == ev->st && r->slab == ev->slab && ev->n < RVA_COPY_BELOW) {
		memmove(ev->slab->data + r->off + r->len, ev->slab->data + ev->off, ev->len);
		r->len += ev->len;
		r->n += ev->n;
		rvq_counter_add(&c->copied_in, ev->len);
		return;
	}
	end_run(c);
	if (ev->n < RVA_COPY_BELOW)
		*r = *ev;
	else
		push_down(c, ev);
}

static void
sink_emit(void *ctx, const struct rv_event *ev)
{
	struct reeve_conn *c = ctx;
	struct rva_ctlmsg m = {.n = ev->n};

	if (ev->kind == RV_EV_DATA) {
		on_data(c, ev);
		return;
	}
	end_run(c);
	switch (ev->kind) {
	case RV_EV_OPEN:
		m.kind = RVA_CTL_INBOUND;
		m.s = (struct reeve_stream *)(void *)ev->st;
		rva_stream_begin(m.s, c, true);
		break;
	case RV_EV_SLOT:
		m.kind = RVA_CTL_SLOT;
		break;
	case RV_EV_PONG:
		m.kind = RVA_CTL_PONG;
		break;
	case RV_EV_GOAWAY:
		/* Code 0: streams go on, waiting opens are tried again and refused.  Others: flush ends it. */
		c->peer_leaves = true;
		c->hard_goaway = ev->n != 0;
		rva_conn_dirty(c);
		m.kind = RVA_CTL_SLOT;
		break;
	default:
		if (ev->kind == RV_EV_GONE && c->engine->nstreams == 0)
			c->quiet_at = c->w->now;
		push_down(c, ev);
		return;
	}
	push_ctl(c, &m);
}

void
rva_conn_ready(struct reeve_conn *c)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_READY};

	push_ctl(c, &m);
	m.kind = RVA_CTL_SLOT; /* opens have waited */
	push_ctl(c, &m);
}

void
rva_conn_hand_on(struct reeve_conn *c)
{
	struct rva_ctlmsg m;
	struct rv_event ev;

	end_run(c);
	while (rva_ctlring_pop_spsc(&c->to_ctl, c->to_ctl_slots, &m))
		rva_ctl_on(&c->ctl, &m);
	while (rva_down_pop_spsc(&c->down, c->down_slots, &ev))
		rva_stream_on((struct reeve_stream *)(void *)ev.st, &ev);
}

void
rva_conn_deliver(struct reeve_conn *c)
{
	rva_conn_hand_on(c);
	rva_stream_pump_fresh(c);
}

/* --- messages to the connection --- */

void
rva_conn_up(struct reeve_conn *c, const struct rva_up *m)
{
	if (c->state == RVA_CONN_ENDED) {
		if (m->buf != NULL)
			rv_buf_unref(m->buf);
		return;
	}
	rvq_counter_add(&c->messages, 1);
	if (!rva_upring_push_spsc(&c->up, c->up_slots, m)) {
		rva_conn_absorb(c);
		(void)rva_upring_push_spsc(&c->up, c->up_slots, m);
	}
	rva_conn_dirty(c);
}

void
rva_conn_tell(struct reeve_conn *c, const struct rva_ctlmsg *m)
{
	if (c->state == RVA_CONN_ENDED)
		return;
	rvq_counter_add(&c->messages, 1);
	if (!rva_ctlring_push_spsc(&c->from_ctl, c->from_ctl_slots, m)) {
		rva_conn_absorb(c);
		(void)rva_ctlring_push_spsc(&c->from_ctl, c->from_ctl_slots, m);
	}
	rva_conn_dirty(c);
}

/* There will be no more streams: opens that wait are tried again, and refused. */
static void
no_more_streams(struct reeve_conn *c)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_SLOT};

	push_ctl(c, &m);
}

void
rva_conn_begin_close(struct reeve_conn *c, uint64_t deadline)
{
	if (c->state == RVA_CONN_ENDED)
		return;
	if (c->state == RVA_CONN_OPEN) {
		c->state = RVA_CONN_CLOSING;
		c->engine->ops->closing(c->engine);
		no_more_streams(c);
	}
	if (deadline < c->close_deadline)
		c->close_deadline = deadline;
	rva_conn_dirty(c);
}

static void
open_stream(struct reeve_conn *c, const struct rva_ctlmsg *m)
{
	struct rva_ctlmsg answer = {.op = m->op, .kind = RVA_CTL_OPENED};
	struct rv_stream *st = NULL;

	if (c->state != RVA_CONN_OPEN)
		answer.rc = REEVE_ECLOSED;
	else if (rvq_cell64_get(&c->goaway) != 0)
		answer.rc = REEVE_EGOAWAY; /* also while its bell has not been heard */
	else
		answer.rc = c->engine->ops->open(c->engine, &st, c->w->now);
	if (answer.rc == 0) {
		answer.s = (struct reeve_stream *)(void *)st;
		rva_stream_begin(answer.s, c, false);
	}
	push_ctl(c, &answer);
}

static void
on_ctl(struct reeve_conn *c, const struct rva_ctlmsg *m)
{
	switch (m->kind) {
	case RVA_CTL_OPEN:
		open_stream(c, m);
		break;
	case RVA_CTL_ACCEPTED:
		if (!m->s->gone && c->state != RVA_CONN_ENDED)
			c->engine->ops->accept(c->engine, &m->s->wire);
		break;
	case RVA_CTL_PING:
		if (c->state != RVA_CONN_ENDED && c->engine->ops->ping != NULL)
			(void)c->engine->ops->ping(c->engine, c->w->now);
		break;
	case RVA_CTL_CLOSE:
		rva_conn_begin_close(c, m->n);
		break;
	default:
		break;
	}
}

static void
on_up(struct reeve_conn *c, const struct rva_up *m)
{
	const struct rv_engine_ops *ops = c->engine->ops;
	struct rv_stream *st = &m->s->wire;

	if (m->s->gone || c->state == RVA_CONN_ENDED) {
		if (m->buf != NULL)
			rv_buf_unref(m->buf);
		return;
	}
	switch (m->kind) {
	case RVA_UP_SEND:
		ops->send(c->engine, st, m->buf);
		break;
	case RVA_UP_CONSUMED:
		ops->consumed(c->engine, st, m->n, c->w->now);
		break;
	case RVA_UP_SHUT:
		ops->shut(c->engine, st);
		break;
	case RVA_UP_STOP:
		ops->stop(c->engine, st);
		break;
	case RVA_UP_RESET:
		ops->reset(c->engine, st, m->n);
		break;
	case RVA_UP_CLOSE:
		ops->close(c->engine, st, m->n != 0, c->w->now);
		break;
	case RVA_UP_DROP:
		ops->drop(c->engine, st);
		break;
	default:
		break;
	}
}

void
rva_conn_absorb(struct reeve_conn *c)
{
	struct rva_ctlmsg cm;
	struct rva_up um;

	while (rva_upring_pop_spsc(&c->up, c->up_slots, &um))
		on_up(c, &um);
	while (rva_ctlring_pop_spsc(&c->from_ctl, c->from_ctl_slots, &cm))
		on_ctl(c, &cm);
}

/* --- scheduling on the worker --- */

void
rva_conn_dirty(struct reeve_conn *c)
{
	if (c->in_dirty)
		return;
	c->in_dirty = true;
	c->dirty_next = NULL;
	*c->w->dirty_tail = c;
	c->w->dirty_tail = &c->dirty_next;
}

void
rva_conn_want_read(struct reeve_conn *c)
{
	if (c->in_read)
		return;
	c->in_read = true;
	c->read_next = NULL;
	*c->w->read_tail = c;
	c->w->read_tail = &c->read_next;
}

void
rva_conn_off_list(struct reeve_conn *c)
{
	if (c->freeing && !c->in_dirty && !c->in_read)
		rva_ring(&c->actor, &c->bell, RVA_CONN_FREE);
}

static void
on_ready(struct rva_source *s, int events)
{
	struct reeve_conn *c = rva_container(s, struct reeve_conn, source);

	if (c->state == RVA_CONN_ENDED)
		return;
	if (events & RVA_HUP)
		c->hup = true;
	if (events & RVA_READ) {
		c->readable = true;
		rva_conn_want_read(c);
	}
	if ((events & RVA_WRITE) && c->write_error == 0) {
		c->writable = true;
		rva_conn_dirty(c);
	}
}

/* --- timer --- */

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct reeve_conn *c = rva_container(t, struct reeve_conn, timer);

	if (c->state == RVA_CONN_ENDED)
		return;
	if (c->readable) /* what is not read is no silence of the peer */
		c->engine->ops->alive(c->engine, now);
	if (now >= c->linger_deadline) { /* all was sent, the peer just does not close */
		rva_conn_end(c, 0, REEVE_BY_US, "REEVE-CONN-0010");
	} else if (now >= c->close_deadline) {
		if (rvq_cell32_get(&c->rt->stopping) != 0)
			rvq_cell32_put(&c->rt->cut, 1); /* before it leaves the register */
		rva_conn_end(c, REEVE_ETIMEDOUT, REEVE_BY_US, "REEVE-CONN-0002");
	} else if (now >= c->stall_deadline) {
		rva_conn_end(c, REEVE_ETIMEDOUT, REEVE_BY_TRANSPORT, "REEVE-CONN-0003");
	} else if (c->engine->ops->tick(c->engine, now) < 0) {
		rva_conn_end(c, c->engine->reason.rc, REEVE_BY_PEER, c->engine->reason.id);
	} else {
		if (c->paused)
			rva_conn_want_read(c);
		rva_conn_dirty(c);
	}
}

void
rva_conn_rearm(struct reeve_conn *c)
{
	uint64_t at = c->engine->ops->next_deadline(c->engine);

	if (c->close_deadline < at)
		at = c->close_deadline;
	if (c->stall_deadline < at)
		at = c->stall_deadline;
	if (c->linger_deadline < at)
		at = c->linger_deadline;
	/* Memory that is let go of tells nobody. */
	if ((c->paused || c->starved || (c->engine->blocked && rv_budget_level(c->budget) >= 3)) &&
	    c->w->now + PAUSE_US < at)
		at = c->w->now + PAUSE_US;
	/* A deadline that has moved away is found out when the old one comes: it moves with every byte received. */
	if (!rva_timer_armed(&c->timer) || at < c->timer.when)
		rva_timer_set(&c->w->wheel, &c->timer, at);
}

/* --- end --- */

static void
let_go_of_io(struct reeve_conn *c)
{
	int fd = c->transport->ops->fd(c->transport);

	if (fd >= 0)
		rva_poller_remove(&c->w->poller, fd);
	if (c->gather != NULL) {
		rv_gather_abort(c->engine, c->gather);
		rva_gather_put(c->w, c->gather);
		c->gather = NULL;
	}
	if (c->slab != NULL)
		rv_slab_unref(c->slab);
	if (c->held != NULL)
		rv_slab_unref(c->held);
	c->slab = c->held = NULL;
	if (c->filter != NULL)
		c->filter->ops->destroy(c->filter);
	c->filter = NULL;
	rv_chain_clear(&c->unread);
	c->transport->ops->close(c->transport);
	c->transport = NULL;
	rva_timer_clear(&c->w->wheel, &c->timer);
}

/* Streams that have ended and been told need no engine any more. */
static void
finish(struct reeve_conn *c)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_ENDED};

	rva_conn_absorb(c);
	while (!c->engine->ops->notify(c->engine) || rvq_ring_count(&c->down) != 0)
		rva_conn_deliver(c);
	rva_conn_absorb(c);
	push_ctl(c, &m);
	rva_conn_deliver(c);
	rva_rt_remove_conn(c->rt, c);
	rva_conn_unref(c); /* the runtime's */
}

/* In words, as exactly as they are known. */
static const char *
why_of(const struct reeve_conn *c, int rc)
{
	return c->engine->why != NULL && c->reason.id == c->engine->reason.id ? c->engine->why
									      : reeve_strerror(rc);
}

void
rva_conn_end(struct reeve_conn *c, int rc, uint32_t by, const char *id)
{
	if (c->state == RVA_CONN_ENDED)
		return;
	rva_conn_absorb(c);
	rva_conn_deliver(c); /* bytes that came before the end are delivered before it */
	c->state = RVA_CONN_ENDED;
	c->reason = c->engine->reason;
	c->reason.size = sizeof(c->reason);
	c->reason.rc = rc;
	c->reason.by = by;
	c->reason.id = id != NULL ? id : "";
	rv_log(&c->rt->log,
	    rc < 0 && rc != REEVE_EEND && rc != REEVE_ECLOSED ? REEVE_LOG_WARN : REEVE_LOG_DEBUG,
	    c->reason.id, "connection ended: %s", why_of(c, rc));
	let_go_of_io(c);
	c->engine->ops->end(c->engine);
	rvq_cell32_put(&c->ended, 1);
	finish(c);
}

/* --- bell --- */

static void
start(struct reeve_conn *c)
{
	int fd = c->transport->ops->fd(c->transport), rc = 0;

	c->actor.watched = fd >= 0;
	if (fd >= 0)
		rc = rva_poller_add(&c->w->poller, fd, &c->source);
	if (rc < 0) {
		rva_conn_end(c, rc, REEVE_BY_US, "REEVE-CONN-0004");
		return;
	}
	c->writable = true;
	c->readable = true;
	rva_conn_want_read(c);
	rva_conn_dirty(c);
}

static void
conn_on(struct rva_actor *a, struct rvq_node *n)
{
	struct reeve_conn *c = rva_container(a, struct reeve_conn, actor);
	uint32_t bits = rvq_bell_answer(&c->bell);
	int events = 0;

	(void)n; /* nothing but the bell is ever posted */
	if (bits & RVA_CONN_FREE) {
		c->freeing = true;
		a->dead = !c->in_dirty && !c->in_read; /* else see rva_conn_off_list */
	}
	if (c->state == RVA_CONN_ENDED)
		return;
	if (bits & RVA_CONN_START)
		start(c);
	if (bits & RVA_CONN_ABORT) {
		rva_conn_end(c, -(int)rvq_cell32_get(&c->abort_rc), REEVE_BY_US, "REEVE-CONN-0001");
		return;
	}
	if (bits & RVA_CONN_CLOSE)
		rva_conn_begin_close(c, rvq_cell64_get(&c->close_at));
	if (bits & RVA_CONN_GOAWAY) {
		if (!c->engine->refusing)
			no_more_streams(c);
		c->engine->ops->goaway(c->engine, (uint32_t)(rvq_cell64_get(&c->goaway) - 1));
		rva_conn_dirty(c);
	}
	if (bits & RVA_CONN_READABLE)
		events |= RVA_READ;
	if (bits & RVA_CONN_WRITABLE)
		events |= RVA_WRITE;
	if (events != 0)
		on_ready(&c->source, events);
}

static void
conn_free(struct rva_actor *a)
{
	struct reeve_conn *c = rva_container(a, struct reeve_conn, actor);
	struct rv_arena *ar = c->arena;

	if (c->handshake != NULL && c->handshake != c->engine)
		c->handshake->ops->destroy(c->handshake);
	if (c->engine != NULL)
		c->engine->ops->destroy(c->engine);
	rv_budget_unref(c->budget);
	rv_free(ar, c, sizeof(*c));
}

const struct rva_actor_ops rva_conn_ops = {conn_on, conn_free, true};
const struct rva_conn_hooks rva_conn_hooks = {sink_emit, sink_room, on_timer, on_ready};

void
rva_conn_ref(struct reeve_conn *c)
{
	rvq_ref_get(&c->refs);
}

void
rva_conn_unref(struct reeve_conn *c)
{
	/* The controller goes first, then the connection: neither is on a run list when the memory goes. */
	if (rvq_ref_put(&c->refs))
		rva_ring(&c->ctl.actor, &c->ctl.bell, RVA_CTL_FREE);
}

bool
rva_conn_pinned_hard(const struct reeve_conn *c)
{
	return rvq_gauge_get(&c->budget->held) >
	    2 * rvq_counter_get(&c->engine->stats.unread) + PIN_SLACK;
}
