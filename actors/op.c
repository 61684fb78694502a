/* op.c - starting, claiming, cancelling and completing operations. */
#include <config.h>

#include "actors/op.h"

#include <string.h>

#include "actors/lend.h"
#include "actors/runtime.h"
#include "actors/user.h"
#include "actors/worker.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"

static void ask_done(reeve_op_t *op);
static char ours; /* its address in conn: see rva_op_ours */

void
rva_op_ours(reeve_op_t *op)
{
	op->conn = (reeve_conn_t *)(void *)&ours;
}

void
reeve_op_init(reeve_op_t *op, void (*fn)(reeve_op_t *op), void *arg)
{
	memset(op, 0, sizeof(*op));
	op->fn = fn;
	op->arg = arg;
	op->timeout_ms = -1;
}

void
rva_op_prepare(
    reeve_op_t *op, struct rva_actor *target, uintptr_t kind, void *ref, void (*unref)(void *))
{
	struct rva_op *p = rva_op(op);

	p->msg.kind = kind;
	p->cancel.kind = RVA_MSG_CANCEL;
	p->next = NULL;
	p->target = target;
	if (op->fn == ask_done)
		rva_container(op, struct rva_ask, op)->w =
		    target != NULL && target->ops->lend ? target->home : NULL;
	p->ref = ref;
	p->unref = unref;
	p->deadline = op->timeout_ms < 0 ? UINT64_MAX
					 : rv_deadline_us(rv_clock_us(), op->timeout_ms);
	rvq_latch_init(&p->done);
	rvq_cell32_put(&p->state, RVA_OP_PENDING);
}

void
rva_op_start(
    reeve_op_t *op, struct rva_actor *target, uintptr_t kind, void *ref, void (*unref)(void *))
{
	rva_op_prepare(op, target, kind, ref, unref);
	rva_post(target, &rva_op(op)->msg.node);
}

bool
rva_op_claim(reeve_op_t *op)
{
	return rvq_cell32_cas(&rva_op(op)->state, RVA_OP_PENDING, RVA_OP_CLAIMED);
}

static void
complete(reeve_op_t *op)
{
	struct rva_op *p = rva_op(op);
	void (*unref)(void *) = p->unref;
	void *ref = p->ref;

	if (op->actor != NULL) {
		p->msg.kind = RVA_MSG_DONE;
		rva_user_post(op->actor, &p->msg.node);
	} else if (op->fn != NULL) {
		op->fn(op);
	} else {
		rvq_latch_set(&p->done);
	}
	if (unref != NULL)
		unref(ref);
}

/* The application's functions are called by workers only, and completions that came before keep their place. */
static bool
has_to_wait(const reeve_op_t *op)
{
	struct rva_worker *w = rva_self;

	if (w == NULL || op->fn == ask_done || op->conn == (reeve_conn_t *)(void *)&ours)
		return false;
	return w->bounced > 0 || (w->lent && op->fn != NULL);
}

void
rva_op_finish(reeve_op_t *op, reeve_ssize res)
{
	op->res = res;
	if (!has_to_wait(op)) {
		complete(op);
		return;
	}
	rva_self->bounced++;
	rva_op(op)->msg.kind = RVA_MSG_BOUNCED;
	rva_post(&rva_self->clerk, &rva_op(op)->msg.node);
}

bool
rva_op_answer(reeve_op_t *op, reeve_ssize res)
{
	if (!rva_op_claim(op))
		return false;
	rva_op_finish(op, res);
	return true;
}

void
rva_op_refuse(reeve_rt_t *rt, reeve_op_t *op, int rc)
{
	rva_op_prepare(op, NULL, RVA_MSG_REFUSED, NULL, NULL);
	rvq_cell32_put(&rva_op(op)->state, RVA_OP_CLAIMED);
	if (rt == NULL || rc == REEVE_EFORKED) { /* in a forked child there is no worker */
		rva_op_finish(op, rc);
		return;
	}
	op->res = rc;
	rva_post(&rt->workers[0].clerk, &rva_op(op)->msg.node);
}

static void
clerk_on(struct rva_actor *a, struct rvq_node *n)
{
	reeve_op_t *op = rva_op_of_msg(n);

	if (rva_op(op)->msg.kind == RVA_MSG_BOUNCED)
		a->home->bounced--;
	complete(op);
}

static const struct rva_actor_ops clerk_ops = {.on = clerk_on};

void
rva_op_clerk_init(struct rva_actor *clerk, struct rva_worker *w)
{
	rva_actor_init(clerk, w, &clerk_ops);
}

bool
rva_op_cancel(reeve_op_t *op)
{
	struct rva_op *p = rva_op(op);

	if (!rvq_cell32_cas(&p->state, RVA_OP_PENDING, RVA_OP_CANCELLING))
		return false;
	rva_post(p->target, &p->cancel.node);
	return true;
}

void
reeve_op_cancel(reeve_op_t *op)
{
	if (op != NULL)
		(void)rva_op_cancel(op);
}

reeve_ssize
reeve_op_wait(reeve_op_t *op)
{
	REEVE_REQUIRE(op != NULL && op->fn == NULL && op->actor == NULL, REEVE_EINVAL);
	REEVE_REQUIRE(rva_self == NULL, REEVE_EWORKER);
	(void)rvq_latch_wait(&rva_op(op)->done, UINT64_MAX);
	return op->res;
}

void
rva_oplist_init(struct rva_oplist *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

void
rva_oplist_push(struct rva_oplist *l, reeve_op_t *op)
{
	rva_op(op)->next = NULL;
	*l->tail = op;
	l->tail = &rva_op(op)->next;
}

reeve_op_t *
rva_oplist_pop(struct rva_oplist *l)
{
	reeve_op_t *op = l->head;

	if (op != NULL && (l->head = rva_op(op)->next) == NULL)
		l->tail = &l->head;
	return op;
}

bool
rva_oplist_remove(struct rva_oplist *l, reeve_op_t *op)
{
	for (reeve_op_t **p = &l->head; *p != NULL; p = &rva_op(*p)->next) {
		if (*p != op)
			continue;
		if ((*p = rva_op(op)->next) == NULL)
			l->tail = p;
		return true;
	}
	return false;
}

uint64_t
rva_oplist_expire(struct rva_oplist *l, uint64_t now)
{
	struct rva_oplist due;
	uint64_t next = UINT64_MAX;
	reeve_op_t *op, **p = &l->head;

	rva_oplist_init(&due);
	while ((op = *p) != NULL) {
		if (rva_op(op)->deadline <= now) {
			*p = rva_op(op)->next;
			rva_oplist_push(&due, op);
			continue;
		}
		if (rva_op(op)->deadline < next)
			next = rva_op(op)->deadline;
		p = &rva_op(op)->next;
	}
	l->tail = p;
	rva_oplist_fail(&due, REEVE_ETIMEDOUT); /* completions may push to l: it is whole again */
	return next;
}

void
rva_oplist_fail(struct rva_oplist *l, reeve_ssize rc)
{
	struct rva_oplist all = *l;
	reeve_op_t *op;

	if (all.head == NULL)
		return;
	if (all.tail == &l->head)
		all.tail = &all.head;
	rva_oplist_init(l);
	while ((op = rva_oplist_pop(&all)) != NULL) /* one that was refused has its answer */
		(void)rva_op_answer(op, rva_op(op)->msg.kind == RVA_MSG_REFUSED ? op->res : rc);
}

/* --- blocking twins --- */

static void
ask_put(struct rva_ask *k)
{
	if (rvq_ref_put(&k->refs))
		rv_free(k->arena, k, sizeof(*k));
}

static void
ask_done(reeve_op_t *op)
{
	struct rva_ask *k = rva_container(op, struct rva_ask, op);

	rvq_latch_set(&k->done);
	ask_put(k);
}

struct rva_ask *
rva_ask_new(struct rv_arena *ar, int64_t timeout_ms)
{
	struct rva_ask *k = rv_zalloc(ar, sizeof(*k));

	if (k == NULL)
		return NULL;
	reeve_op_init(&k->op, ask_done, NULL);
	k->op.timeout_ms = timeout_ms == 0 ? 0 : -1;
	k->deadline = timeout_ms == 0 ? UINT64_MAX : rv_deadline_us(rv_clock_us(), timeout_ms);
	k->arena = ar;
	rvq_ref_init(&k->refs, 2);
	rvq_latch_init(&k->done);
	rva_lend_begin();
	return k;
}

void
rva_ask_drop(struct rva_ask *k)
{
	rva_lend_end();
	rv_free(k->arena, k, sizeof(*k));
}

static bool
answered(void *arg)
{
	return rvq_latch_isset(&((struct rva_ask *)arg)->done);
}

reeve_ssize
rva_ask_wait(struct rva_ask *k, reeve_op_t *out)
{
	reeve_ssize rc;

	rva_lend_end();
	while (k->w != NULL && !rvq_latch_isset(&k->done) && rv_clock_us() < k->deadline &&
	    rva_lend_lead(k->w, answered, k, k->deadline))
		;
	if (rvq_latch_wait(&k->done, k->deadline) == REEVE_ETIMEDOUT && rva_op_cancel(&k->op)) {
		ask_put(k); /* whoever gets the cancel message ends the record */
		return REEVE_ETIMEDOUT;
	}
	(void)rvq_latch_wait(&k->done, UINT64_MAX); /* claimed: the answer is on its way */
	rc = k->op.res;
	out->stream = k->op.stream;
	out->conn = k->op.conn;
	out->buf = k->op.buf;
	ask_put(k);
	return rc;
}
