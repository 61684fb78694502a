/* controller.c - the controller actor and the calls of reeve/ctl.h that are its messages.
 *
 * Owner: the connection's worker.  Every operation gets exactly one answer. */
#include <config.h>

#include "actors/controller.h"

#include "actors/connection.h"
#include "actors/substream.h"

static struct rva_wheel *
wheel(struct reeve_ctl *k)
{
	return &k->conn->w->wheel;
}

/* What calls answer once the connection has ended: its reason, REEVE_ECLOSED after a clean end. */
static int
ended_rc(const struct reeve_ctl *k)
{
	return k->conn->reason.rc != 0 ? k->conn->reason.rc : REEVE_ECLOSED;
}

/* Answer one who waited for the end: the reason; to a close of ours an end that somebody wanted is no error. */
static void
answer_end(const struct reeve_ctl *k, reeve_op_t *op)
{
	int rc = k->conn->reason.rc;

	if (rva_op(op)->msg.kind == RVA_MSG_CLOSE && (rc == REEVE_EEND || rc == REEVE_ECLOSED))
		rc = 0;
	(void)rva_op_answer(op, rc);
}

/* --- opening --- */

/* Ask the connection for the first waiting open; one at a time keeps them in order. */
static void
open_next(struct reeve_ctl *k)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_OPEN};

	if (k->opening || k->opens.head == NULL)
		return;
	k->opening = true;
	m.op = k->opens.head;
	rva_conn_tell(k->conn, &m);
}

static void
hand_over(struct reeve_ctl *k, reeve_op_t *op, struct reeve_stream *s)
{
	(void)k;
	rva_stream_hand_out(s);
	op->stream = s;
	rva_op_finish(op, 0);
}

static void
on_opened(struct reeve_ctl *k, const struct rva_ctlmsg *m)
{
	reeve_op_t *op = k->opens.head;

	k->opening = false;
	if (m->rc == REEVE_EAGAIN) {
		if (rva_op(op)->deadline <= k->conn->w->now && rva_op_claim(op)) {
			(void)rva_oplist_pop(&k->opens);
			rva_op_finish(op, REEVE_ETIMEDOUT);
			open_next(k);
		} else {
			k->waiting_slot = true;
		}
		return;
	}
	(void)rva_oplist_pop(&k->opens);
	if (!rva_op_claim(op)) { /* nobody waits any more: nothing was sent, nothing will be */
		if (m->rc == 0)
			rva_stream_refuse(m->s);
	} else if (m->rc == 0) {
		hand_over(k, op, m->s);
	} else {
		rva_op_finish(op, m->rc);
	}
	open_next(k);
}

/* --- accepting --- */

static void
accept_next(struct reeve_ctl *k)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_ACCEPTED};
	reeve_op_t *op;

	while (k->queue_head != NULL && k->accepts.head != NULL) {
		op = rva_oplist_pop(&k->accepts);
		if (!rva_op_claim(op))
			continue; /* the stream waits for the next one */
		m.s = k->queue_head;
		k->queue_head = m.s->accept_next;
		if (k->queue_head == NULL)
			k->queue_tail = &k->queue_head;
		k->nqueue--;
		/* One that the peer has reset may be freed before the connection would read of it. */
		if (!m.s->gone)
			rva_conn_tell(k->conn, &m);
		hand_over(k, op, m.s);
	}
}

/* Streams that the peer has reset are of no count for the engine's backlog: here they go when there are many. */
static void
prune_queue(struct reeve_ctl *k)
{
	struct reeve_stream **p = &k->queue_head, *s;

	while ((s = *p) != NULL) {
		if (s->gone) {
			*p = s->accept_next;
			k->nqueue--;
			rva_stream_refuse(s);
		} else {
			p = &s->accept_next;
		}
	}
	k->queue_tail = p;
}

static void
on_inbound(struct reeve_ctl *k, struct reeve_stream *s)
{
	if (k->nqueue / 2 >= k->conn->cfg.accept_backlog)
		prune_queue(k);
	s->accept_next = NULL;
	*k->queue_tail = s;
	k->queue_tail = &s->accept_next;
	k->nqueue++;
	accept_next(k);
}

/* Streams that nobody will accept: the connection closes or nobody is left. */
static void
refuse_queue(struct reeve_ctl *k)
{
	struct reeve_stream *s;

	while ((s = k->queue_head) != NULL) {
		k->queue_head = s->accept_next;
		rva_stream_refuse(s);
	}
	k->queue_tail = &k->queue_head;
	k->nqueue = 0;
}

/* --- pings --- */

static void
ping_next(struct reeve_ctl *k)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_PING};

	if (k->pinging || k->pings.head == NULL)
		return;
	k->pinging = true;
	k->pings_sent = k->pings;
	if (k->pings.tail == &k->pings.head)
		k->pings_sent.tail = &k->pings_sent.head;
	rva_oplist_init(&k->pings);
	rva_conn_tell(k->conn, &m);
}

static void
on_pong(struct reeve_ctl *k, uint64_t rtt)
{
	struct rva_oplist all = k->pings_sent;
	reeve_op_t *op;

	if (all.head == NULL)
		all.tail = &all.head;
	rva_oplist_init(&k->pings_sent);
	k->pinging = false;
	while ((op = rva_oplist_pop(&all)) != NULL)
		(void)rva_op_answer(op, (reeve_ssize)rtt);
	ping_next(k);
}

/* --- end --- */

static void
on_ended(struct reeve_ctl *k)
{
	struct rva_oplist closes;
	reeve_op_t *op;

	k->ended = true;
	k->opening = false;
	rva_timer_clear(wheel(k), &k->timer);
	accept_next(k);
	rva_oplist_fail(&k->opens, ended_rc(k));
	rva_oplist_fail(&k->accepts, ended_rc(k));
	rva_oplist_fail(&k->pings, ended_rc(k));
	rva_oplist_fail(&k->pings_sent, ended_rc(k));
	rva_oplist_fail(&k->readies, ended_rc(k));
	rva_oplist_init(&closes);
	while ((op = rva_oplist_pop(&k->closers)) != NULL) {
		if (rva_op(op)->msg.kind == RVA_MSG_CLOSE)
			rva_oplist_push(&closes, op);
		else
			answer_end(k, op);
	}
	/* Now nothing of the application's is called any more, and who has closed may destroy without asking again. */
	rvq_cell32_put(&k->over, 1);
	while ((op = rva_oplist_pop(&closes)) != NULL)
		answer_end(k, op);
	if (rvq_ref_count(&k->keep) == 0)
		refuse_queue(k);
}

void
rva_ctl_on(struct reeve_ctl *k, const struct rva_ctlmsg *m)
{
	switch (m->kind) {
	case RVA_CTL_INBOUND:
		on_inbound(k, m->s);
		break;
	case RVA_CTL_OPENED:
		on_opened(k, m);
		break;
	case RVA_CTL_SLOT:
		if (k->waiting_slot) {
			k->waiting_slot = false;
			open_next(k);
		}
		break;
	case RVA_CTL_PONG:
		on_pong(k, m->n);
		break;
	case RVA_CTL_READY:
		rva_oplist_fail(&k->readies, 0);
		if (k->conn->engine->ops->ping == NULL) {
			rva_oplist_fail(&k->pings_sent, REEVE_ENOTSUP);
			rva_oplist_fail(&k->pings, REEVE_ENOTSUP);
			k->pinging = false;
		} else if (k->pinging)
			(void)k->conn->engine->ops->ping(k->conn->engine, k->conn->w->now);
		break;
	case RVA_CTL_ENDED:
		on_ended(k);
		break;
	default:
		break;
	}
}

/* --- deadlines --- */

static void
rearm(struct reeve_ctl *k, uint64_t at)
{
	if (at < (rva_timer_armed(&k->timer) ? k->timer.when : UINT64_MAX))
		rva_timer_set(wheel(k), &k->timer, at);
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct reeve_ctl *k = rva_container(t, struct reeve_ctl, timer);
	struct rva_oplist *lists[] = {&k->accepts, &k->pings, &k->pings_sent, &k->readies};
	reeve_op_t *first = k->opening ? rva_oplist_pop(&k->opens) : NULL;
	uint64_t next = rva_oplist_expire(&k->opens, now), at;

	if (first != NULL) { /* with the connection: answered there */
		rva_op(first)->next = k->opens.head;
		if (k->opens.head == NULL)
			k->opens.tail = &rva_op(first)->next;
		k->opens.head = first;
	}
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		at = rva_oplist_expire(lists[i], now);
		if (at < next)
			next = at;
	}
	if (next != UINT64_MAX)
		rearm(k, next);
	if (k->opens.head != NULL && !k->waiting_slot)
		open_next(k);
}

/* --- mailbox --- */

static void
on_close(struct reeve_ctl *k, reeve_op_t *op)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_CLOSE};

	m.n = rva_op(op)->deadline;
	rva_op(op)->deadline = UINT64_MAX; /* the connection ends at it, which answers */
	rva_oplist_push(&k->closers, op);
	refuse_queue(k);
	rva_conn_tell(k->conn, &m);
}

static void
on_start(struct reeve_ctl *k, reeve_op_t *op)
{
	uint64_t deadline = rva_op(op)->deadline;

	switch (rva_op(op)->msg.kind) {
	case RVA_MSG_OPEN:
		rva_oplist_push(&k->opens, op);
		if (!k->waiting_slot)
			open_next(k);
		break;
	case RVA_MSG_ACCEPT:
		rva_oplist_push(&k->accepts, op);
		accept_next(k);
		break;
	case RVA_MSG_PING:
		if (k->conn->engine->ops->ping == NULL) {
			(void)rva_op_answer(op, REEVE_ENOTSUP);
			return;
		}
		rva_oplist_push(&k->pings, op);
		ping_next(k);
		break;
	case RVA_MSG_READY:
		if (k->conn->engine == k->conn->handshake) {
			rva_oplist_push(&k->readies, op);
			break;
		}
		(void)rva_op_answer(op, 0);
		return;
	case RVA_MSG_CLOSED:
		rva_oplist_push(&k->closers, op);
		return;
	default:
		on_close(k, op);
		return;
	}
	if (deadline != UINT64_MAX)
		rearm(k, deadline);
}

/* After the end nothing waits: the queue is served, everything else gets the reason. */
static void
on_start_ended(struct reeve_ctl *k, reeve_op_t *op)
{
	uintptr_t kind = rva_op(op)->msg.kind;

	if (kind == RVA_MSG_ACCEPT && k->queue_head != NULL) {
		rva_oplist_push(&k->accepts, op);
		accept_next(k);
		return;
	}
	if (kind == RVA_MSG_CLOSED || kind == RVA_MSG_CLOSE)
		answer_end(k, op);
	else
		(void)rva_op_answer(op, ended_rc(k));
}

static void
on_cancel(struct reeve_ctl *k, reeve_op_t *op)
{
	struct rva_oplist *lists[] = {
	    &k->opens, &k->accepts, &k->pings, &k->pings_sent, &k->closers, &k->readies};

	if (k->opening && k->opens.head == op) {
		/* With the connection: its answer comes first, then this message again. */
		rva_post(&k->actor, &rva_op(op)->cancel.node);
		rva_conn_dirty(k->conn);
		return;
	}
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (rva_oplist_remove(lists[i], op))
			break;
	rva_op_finish(op, REEVE_ECANCELED);
}

static void
on_unused(struct reeve_ctl *k)
{
	struct rva_ctlmsg m = {.kind = RVA_CTL_CLOSE, .n = UINT64_MAX};

	refuse_queue(k);
	if (!k->ended)
		rva_conn_tell(k->conn, &m);
	rva_conn_unref(k->conn); /* the handles' */
}

static void
ctl_on(struct rva_actor *a, struct rvq_node *n)
{
	struct reeve_ctl *k = rva_container(a, struct reeve_ctl, actor);
	struct rva_msg *m = (struct rva_msg *)(void *)n;
	uint32_t bits;

	if (n == &k->bell.node) {
		bits = rvq_bell_answer(&k->bell);
		if (bits & RVA_CTL_UNUSED)
			on_unused(k);
		if (bits & RVA_CTL_FREE)
			a->dead = true;
	} else if (m->kind == RVA_MSG_CANCEL) {
		on_cancel(k, rva_op_of_cancel(n));
	} else if (k->ended) {
		on_start_ended(k, rva_op_of_msg(n));
	} else {
		on_start(k, rva_op_of_msg(n));
	}
}

static void
ctl_free(struct rva_actor *a)
{
	struct reeve_conn *c = rva_container(a, struct reeve_ctl, actor)->conn;

	rva_ring(&c->actor, &c->bell, RVA_CONN_FREE);
}

static const struct rva_actor_ops ctl_ops = {ctl_on, ctl_free, true};

void
rva_ctl_init(struct reeve_ctl *k, struct reeve_conn *c)
{
	rva_actor_init(&k->actor, c->w, &ctl_ops);
	rvq_bell_init(&k->bell);
	k->conn = c;
	rvq_ref_init(&k->keep, 1);
	rva_oplist_init(&k->opens);
	rva_oplist_init(&k->accepts);
	rva_oplist_init(&k->pings);
	rva_oplist_init(&k->readies);
	rva_oplist_init(&k->pings_sent);
	rva_oplist_init(&k->closers);
	k->queue_tail = &k->queue_head;
	k->timer.fn = on_timer;
}

void
rva_ctl_keep(struct reeve_ctl *k)
{
	rvq_ref_get(&k->keep);
}

void
rva_ctl_unkeep(struct reeve_ctl *k)
{
	if (rvq_ref_put(&k->keep))
		rva_ring(&k->actor, &k->bell, RVA_CTL_UNUSED);
}
