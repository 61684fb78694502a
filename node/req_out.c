/* req_out.c - requests of ours: reeve_request_async and its kin.
 *
 * Life: submitted (any thread) -> opening (the core dials, opens and negotiates) -> talking (the connection's worker writes
 * the request, half-closes, reads the response) -> done.  The substream's operations are in the request; it is done when
 * its outcome is known and none of them is pending, so ending early is: note the outcome, reset the substream. */
#include <config.h>

#include <string.h>

#include "actors/negotiate.h"
#include "lib/alloc.h"
#include "lib/buf/slice.h"
#include "lib/check.h"
#include "node/req.h"

static struct rvn_req_shard *
shard_of(struct rvn_req *x)
{
	uintptr_t at = (uintptr_t)x;

	return &x->r->shard[(at >> 6 ^ at >> 12) % RVN_REQ_SHARDS];
}

/* --- the end --- */

static void
drop_payloads(reeve_request_t *q)
{
	for (uint32_t i = 0; i < q->npayloads; i++)
		rv_buf_unref(q->payloads[i].body);
}

/* The application's from here on. */
static void
tell(reeve_request_t *q)
{
	if (q->fn != NULL)
		q->fn(q);
	else
		rvq_latch_set(&rvn_req(q)->done);
}

static void
finish(struct rvn_req *x)
{
	reeve_request_t *q = rvn_request_of(x);
	struct rvn_req_shard *sh = shard_of(x);
	reeve_node_t *n = x->r->proto.node;
	struct rvn_gauges *g = x->r->gauges;

	pthread_mutex_lock(&sh->lock);
	if (x->next != NULL)
		x->next->pprev = x->pprev;
	*x->pprev = x->next;
	x->phase = RVN_REQ_DONE;
	pthread_mutex_unlock(&sh->lock);
	if (x->rc == 0)
		reeve_close(x->stream);
	else
		reeve_stream_unref(x->stream); /* reset, if there was one */
	q->rc = x->rc;
	q->response = x->rc == 0 ? rvn_frame_take(&x->in) : NULL;
	rvn_frame_drop(&x->in);
	rv_buf_unref(x->body);
	rv_buf_unref(x->rest);
	drop_payloads(q);
	(void)rvq_gauge_sub(&g->requests_out, 1);
	(void)rvq_gauge_add(x->rc == 0 ? &g->requests_ok : &g->requests_failed, 1);
	tell(q);
	rvn_drop(n);
}

/* The outcome is known; the first one counts. */
static void
end(struct rvn_req *x, int rc)
{
	if (x->over)
		return;
	x->over = true;
	x->rc = rc;
	rva_timer_clear(&x->stream->conn->w->wheel, &x->timer);
	if (rc < 0)
		(void)reeve_reset(x->stream, 0);
	else if (x->pending > 0) /* a response before the transport took all of the request */
		reeve_op_cancel(&x->u.io.wr);
}

static void
settle(struct rvn_req *x)
{
	if (x->over && x->pending == 0)
		finish(x);
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct rvn_req *x = rva_container(t, struct rvn_req, timer);

	(void)now;
	end(x, REEVE_ETIMEDOUT);
	settle(x);
}

/* Why no response comes, as the application knows it.  rc: what reading answered; 0: the peer's end. */
static int
why(struct rvn_req *x, int rc)
{
	reeve_request_t *q = rvn_request_of(x);
	reeve_reason_t reason = {.size = sizeof(reason)};
	bool begun = rvn_frame_begun(&x->in);
	int lost = rc == 0 ? 0 : rvn_error(x->stream, rc);

	if (rvq_cell32_get(&x->cancelled))
		return REEVE_ECANCELED;
	if (lost == REEVE_ELOST)
		return lost;
	if (rc < 0 && rva_nego_reason(x->stream, rc, &reason)) { /* a lazy one */
		q->step = REEVE_STEP_NEGOTIATE;
		return rc == REEVE_ETRUNC ? REEVE_ENOPROTO : rc; /* as one that is not lazy */
	}
	if (rc == 0 || rc == REEVE_ERESET || rc == REEVE_EREFUSED)
		return !begun ? REEVE_EREFUSED : rc == 0 ? REEVE_ETRUNC : REEVE_ERESET;
	return lost;
}

/* --- talking --- */

static void
read_more(struct rvn_req *x)
{
	x->pending++;
	reeve_read_async(x->stream, &x->u.io.rd);
}

/* Received bytes; consumes b.  1: the response is complete, 0: more is needed, or an error. */
static int
take(struct rvn_req *x, reeve_buf_t *b)
{
	int rc;

	if (!x->in.sized) {
		rc = rvn_frame_size(&x->in, b);
		if (rc == 1 && x->in.len > x->r->cfg.max_response)
			rc = REEVE_ETOOBIG;
		if (rc <= 0) {
			rv_buf_unref(b);
			return rc;
		}
	}
	return rvn_frame_fill(&x->in, x->r->rt, b);
}

static void
on_read(reeve_op_t *op)
{
	struct rvn_req *x = op->arg;
	reeve_buf_t *b = op->res > 0 ? op->buf : NULL;
	int rc = 0;

	x->pending--;
	if (x->over) {
		rv_buf_unref(b);
	} else if (b == NULL) {
		end(x, why(x, (int)op->res));
	} else {
		rvn_request_of(x)->step = REEVE_STEP_READ;
		for (; b != NULL && rc == 0; b = rc == 0 ? rva_stream_next(x->stream) : NULL)
			rc = take(x, b);
		if (rc == 0)
			read_more(x);
		else
			end(x, rc == 1 ? 0 : rc);
	}
	settle(x);
}

/* The last buffer goes out; our direction ends behind it. */
static void
write_last(struct rvn_req *x, reeve_buf_t *b)
{
	x->pending++;
	rva_stream_write_sent(x->stream, b, &x->u.io.wr);
	if (!(x->r->cfg.flags & REEVE_REQS_NO_SHUT))
		(void)reeve_shut(x->stream);
}

/* A write that fails decides nothing: the response may be there all the same, and reading tells. */
static void
on_written(reeve_op_t *op)
{
	struct rvn_req *x = op->arg;
	reeve_request_t *q = rvn_request_of(x);
	reeve_buf_t *b = x->rest;

	x->pending--;
	x->rest = NULL;
	if (b != NULL && !x->over && op->res >= 0)
		write_last(x, b);
	else if (b != NULL)
		rv_buf_unref(b);
	else if (op->res >= 0 && q->step == REEVE_STEP_WRITE)
		q->step = REEVE_STEP_READ;
	settle(x);
}

/* What is sent to a peer that agreed on this name, taken out of the request. */
static reeve_buf_t *
choose(struct rvn_req *x)
{
	reeve_request_t *q = rvn_request_of(x);
	reeve_buf_t *b = x->body;

	for (uint32_t i = 0; i < q->npayloads; i++) {
		if (q->payloads[i].name == q->name)
			return q->payloads[i].body != NULL ? reeve_buf_ref(q->payloads[i].body)
							   : NULL;
	}
	x->body = NULL;
	return b;
}

static void
talk(struct rvn_req *x)
{
	reeve_buf_t *out[2];
	int rc;

	reeve_op_init(&x->u.io.rd, on_read, x);
	reeve_op_init(&x->u.io.wr, on_written, x);
	rc = rvn_frame_make(x->r->rt, choose(x), out);
	if (rc < 0) {
		end(x, rc);
		return;
	}
	if (x->deadline != UINT64_MAX)
		rva_timer_set(&x->stream->conn->w->wheel, &x->timer, x->deadline);
	x->rest = out[1];
	if (out[1] == NULL) {
		write_last(x, out[0]);
	} else {
		x->pending++;
		reeve_write_async(x->stream, out[0], &x->u.io.wr);
	}
	read_more(x);
}

/* The core is done with it; what it failed by is the request's outcome, but for how a peer refuses. */
static int
open_error(const struct rvn_req *x, const struct rvn_open *o)
{
	if (rvq_cell32_get(&x->cancelled))
		return REEVE_ECANCELED;
	if (o->step >= REEVE_STEP_OPEN && (o->rc == REEVE_ERESET || o->rc == REEVE_ETRUNC))
		return REEVE_EREFUSED;
	return o->rc;
}

static void
opened(struct rvn_open *o)
{
	struct rvn_req *x = rva_container(o, struct rvn_req, u.open);
	reeve_request_t *q = rvn_request_of(x);
	struct rvn_req_shard *sh = shard_of(x);

	if (o->rc < 0) {
		q->step = o->step;
		x->rc = open_error(x, o);
		x->over = true;
		finish(x);
		return;
	}
	q->name = o->name;
	q->step = REEVE_STEP_WRITE;
	pthread_mutex_lock(&sh->lock);
	x->stream = o->stream;
	x->phase = RVN_REQ_TALKING; /* o is gone */
	pthread_mutex_unlock(&sh->lock);
	REEVE_ASSERT(rva_is_owner(&x->stream->actor));
	if (rvq_cell32_get(&x->cancelled))
		end(x, REEVE_ECANCELED);
	else
		talk(x);
	settle(x);
}

/* --- starting --- */

static void
on_refused(reeve_op_t *op)
{
	struct rvn_req *x = op->arg;
	reeve_request_t *q = rvn_request_of(x);

	rv_buf_unref(x->body);
	drop_payloads(q);
	tell(q);
}

/* It cannot be started. */
static void
refuse(reeve_rt_t *rt, struct rvn_req *x, int rc)
{
	reeve_request_t *q = rvn_request_of(x);

	x->r = NULL;
	x->phase = RVN_REQ_DONE;
	q->rc = rc;
	reeve_op_init(&x->u.io.rd, on_refused, x);
	rva_op_refuse(rt, &x->u.io.rd, rc);
}

static int
check(const reeve_reqs_t *r, const char *peer, const reeve_buf_t *body, const reeve_request_t *q)
{
	size_t len = body != NULL ? rv_buf_len(body) : 0;
	int rc;

	REEVE_REQUIRE(peer != NULL && q->timeout_ms >= -1, REEVE_EINVAL);
	REEVE_REQUIRE((q->flags & ~REEVE_REQUEST_NO_DIAL) == 0, REEVE_EINVAL);
	rc = rva_rt_alive(r->rt);
	REEVE_REQUIRE(rc == 0, rc);
	for (uint32_t i = 0; i < q->npayloads; i++) {
		REEVE_REQUIRE(q->payloads[i].name < r->proto.nnames, REEVE_EINVAL);
		if (q->payloads[i].body != NULL && rv_buf_len(q->payloads[i].body) > len)
			len = rv_buf_len(q->payloads[i].body);
	}
	return len <= r->cfg.max_request ? 0 : REEVE_ETOOBIG;
}

static uint64_t
deadline(const reeve_reqs_t *r, int64_t timeout_ms)
{
	uint64_t now = rv_clock_us();

	return timeout_ms == 0 ? rvn_reqs_until(r, now) : rv_deadline_us(now, timeout_ms);
}

static void
submit(struct rvn_req *x, const char *peer)
{
	reeve_request_t *q = rvn_request_of(x);
	reeve_reqs_t *r = x->r;
	struct rvn_req_shard *sh = shard_of(x);
	struct rvn_open *o = &x->u.open;

	(void)rvq_gauge_add(&r->gauges->requests_out, 1);
	x->deadline = deadline(r, q->timeout_ms);
	o->fn = opened;
	o->names = r->proto.names;
	o->nnames = r->proto.nnames;
	o->flags = q->flags & REEVE_REQUEST_NO_DIAL ? RVN_NO_DIAL : 0;
	if ((r->cfg.flags & REEVE_REQS_LAZY) && r->proto.nnames == 1)
		o->flags |= RVN_LAZY;
	o->deadline = x->deadline;
	/* Over the start: who cancels finds an open that was started, or none. */
	pthread_mutex_lock(&sh->lock);
	x->phase = RVN_REQ_OPENING;
	x->next = sh->first;
	x->pprev = &sh->first;
	if (x->next != NULL)
		x->next->pprev = &x->next;
	sh->first = x;
	rvn_open(r->proto.node, peer, o);
	pthread_mutex_unlock(&sh->lock);
}

void
reeve_request_async(reeve_reqs_t *r, const char *peer, reeve_buf_t *body, reeve_request_t *q)
{
	struct rvn_req *x;
	int rc;

	if (q == NULL) {
		rv_buf_unref(body);
		return;
	}
	x = rvn_req(q);
	memset(x, 0, sizeof(*x));
	q->rc = q->step = 0;
	q->name = 0;
	q->response = NULL;
	x->r = r;
	x->body = body;
	x->timer.fn = on_timer;
	rvq_latch_init(&x->done);
	rc = r == NULL ? REEVE_EINVAL : check(r, peer, body, q);
	if (rc == 0 && !rvn_hold(r->proto.node))
		rc = REEVE_ECLOSED;
	if (rc < 0)
		refuse(r == NULL ? NULL : r->rt, x, rc);
	else
		submit(x, peer);
}

/* Under the shard's lock. */
static void
cancel(struct rvn_req *x)
{
	if (!rvq_cell32_cas(&x->cancelled, 0, 1))
		return;
	if (x->phase == RVN_REQ_OPENING)
		rvn_open_cancel(&x->u.open);
	else if (x->phase == RVN_REQ_TALKING)
		(void)reeve_reset(x->stream, 0);
}

void
reeve_request_cancel(reeve_request_t *q)
{
	struct rvn_req_shard *sh;
	struct rvn_req *x;

	if (q == NULL || (x = rvn_req(q))->r == NULL)
		return;
	sh = shard_of(x);
	pthread_mutex_lock(&sh->lock);
	cancel(x);
	pthread_mutex_unlock(&sh->lock);
}

void
rvn_req_cancel_all(reeve_reqs_t *r)
{
	for (unsigned i = 0; i < RVN_REQ_SHARDS; i++) {
		pthread_mutex_lock(&r->shard[i].lock);
		for (struct rvn_req *x = r->shard[i].first; x != NULL; x = x->next)
			cancel(x);
		pthread_mutex_unlock(&r->shard[i].lock);
	}
}

int
reeve_request_wait(reeve_request_t *q)
{
	REEVE_REQUIRE(q != NULL && q->fn == NULL, REEVE_EINVAL);
	REEVE_REQUIRE(rva_self == NULL, REEVE_EWORKER);
	(void)rvq_latch_wait(&rvn_req(q)->done, UINT64_MAX);
	return q->rc;
}

int
reeve_request(reeve_reqs_t *r, const char *peer, reeve_buf_t *body, reeve_buf_t **response,
    int64_t timeout_ms)
{
	reeve_request_t q;
	int rc = r == NULL || response == NULL ? REEVE_EINVAL : rva_rt_may_block(r->rt);

	if (rc < 0) {
		rv_buf_unref(body);
		return rc;
	}
	memset(&q, 0, offsetof(reeve_request_t, priv));
	q.timeout_ms = timeout_ms;
	reeve_request_async(r, peer, body, &q);
	rc = reeve_request_wait(&q);
	if (rc == 0)
		*response = q.response;
	return rc;
}
