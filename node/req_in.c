/* req_in.c - requests of peers: from their substream to the application, and the answer back.
 *
 * Owner: the worker of the connection.  Life: reading (the length is known: room for the body, or it waits unread) -> asked
 * (the application has it) -> answering -> ending (the response has left; the peer may keep its direction open until the
 * deadline) -> over.  As with our own requests the end is to note the outcome and to reset the substream; the record goes
 * when no operation is pending and the application has let go. */
#include <config.h>

#include <string.h>

#include "lib/alloc.h"
#include "lib/buf/slice.h"
#include "lib/check.h"
#include "node/req.h"

static void
ring(struct reeve_inbound *in, uint32_t bits)
{
	rva_ring(&in->actor, &in->bell, bits);
}

/* --- the end --- */

/* Out of the protocol's books: what it says of this request is true from here on. */
static void
detach(struct reeve_inbound *in)
{
	reeve_reqs_t *r = in->r;
	reeve_node_t *n = r->proto.node;

	rvn_in_leave(r, in);
	(void)rvq_gauge_sub(&r->gauges->requests_in, 1);
	(void)rvq_gauge_add(
	    in->rc == 0 ? &r->gauges->requests_served : &r->gauges->requests_refused, 1);
	in->r = NULL;
	rvn_drop(n);
}

static void
call_done(struct reeve_inbound *in)
{
	void (*done)(void *, int) = in->answered ? in->done : NULL;

	in->done = NULL;
	if (done != NULL)
		done(in->done_arg, in->rc);
}

/* Go as far towards the end as can be. */
static void
settle(struct reeve_inbound *in, bool closing)
{
	if (!in->over || in->pending > 0)
		return;
	if (in->stream != NULL) {
		if (in->rc == 0)
			reeve_close(in->stream);
		else
			reeve_stream_unref(in->stream); /* reset */
		in->stream = NULL;
	}
	if (in->answered)
		call_done(in);
	if (in->r != NULL && (!in->handed || closing))
		detach(in);
	if (in->r == NULL && !in->handed)
		ring(in, RVN_IN_FREE);
}

/* The outcome is known; the first one counts. */
static void
end(struct reeve_inbound *in, int rc)
{
	if (in->over)
		return;
	in->over = true;
	in->rc = rc;
	rva_timer_clear(&in->stream->conn->w->wheel, &in->timer);
	if (in->handed && rvn_in_unqueue(in->r, in))
		in->handed = false;
	if (rc < 0 && in->pending > 0)
		(void)reeve_reset(in->stream, 0); /* which ends the operation */
	else if (rc < 0)
		rvn_turn_away(in->stream);
}

/* What a requester's end means to who answers. */
static int
why(struct reeve_inbound *in, int rc)
{
	return rc == 0 ? REEVE_ETRUNC : rvn_error(in->stream, rc);
}

static void
on_timer(struct rva_timer *t, uint64_t now)
{
	struct reeve_inbound *in = rva_container(t, struct reeve_inbound, timer);
	int rc = rva_rc(&in->stream->wr_rc);

	(void)now;
	if (in->state == RVN_IN_ENDING)
		(void)reeve_reset(
		    in->stream, 0); /* the response has left: that stays the outcome */
	else if (rc != RVA_RC_OPEN && rc != REEVE_ESHUT)
		end(in, rvn_error(in->stream, rc));
	else
		end(in, REEVE_ETIMEDOUT);
	settle(in, false);
}

static void
set_timer(struct reeve_inbound *in)
{
	struct rva_worker *w = in->stream->conn->w;

	rva_timer_set(&w->wheel, &in->timer, rvn_reqs_until(in->r, rv_clock_us()));
}

/* --- reading --- */

static void
read_more(struct reeve_inbound *in)
{
	in->pending++;
	reeve_read_async(in->stream, &in->rd);
}

/* The request is complete.  In may be gone afterwards. */
static void
ask(struct reeve_inbound *in)
{
	reeve_reqs_t *r = in->r;

	in->body = rvn_frame_take(&in->frame);
	in->state = RVN_IN_ASKED;
	in->handed = true;
	if (r->cfg.fn != NULL)
		r->cfg.fn(in, r->cfg.arg);
	else
		rvn_in_queue(r, in);
}

/* Received bytes; consumes b.  1: the request is complete, 0: more is needed, REEVE_EAGAIN: not before there is room, or
 * an error. */
static int
take(struct reeve_inbound *in, reeve_buf_t *b)
{
	int rc;

	if (!in->frame.sized) {
		rc = rvn_frame_size(&in->frame, b);
		if (rc == 1 && in->frame.len > in->r->cfg.max_request)
			rc = REEVE_ETOOBIG;
		if (rc <= 0) {
			rv_buf_unref(b);
			return rc;
		}
		in->rest = b; /* before somebody may ring */
		if (!rvn_in_admit(in->r, in, in->frame.len))
			return REEVE_EAGAIN;
		in->rest = NULL;
	}
	return rvn_frame_fill(&in->frame, in->rt, b);
}

static void
took(struct reeve_inbound *in, int rc)
{
	if (rc == 0)
		read_more(in);
	else if (rc == 1)
		ask(in);
	else if (rc != REEVE_EAGAIN)
		end(in, rc);
}

static void
on_read(reeve_op_t *op)
{
	struct reeve_inbound *in = op->arg;
	reeve_buf_t *b = op->res > 0 ? op->buf : NULL;
	int rc = 0;

	in->pending--;
	if (in->over || in->state == RVN_IN_ENDING) {
		rv_buf_unref(b);
		end(in, 0);
	} else if (b == NULL) {
		end(in, why(in, (int)op->res));
	} else {
		for (; b != NULL && rc == 0; b = rc == 0 ? rva_stream_next(in->stream) : NULL)
			rc = take(in, b);
		if (rc == 1) {
			ask(in);
			return;
		}
		took(in, rc);
	}
	settle(in, false);
}

/* There is room. */
static void
resume(struct reeve_inbound *in)
{
	reeve_buf_t *b = in->rest;

	if (in->over || in->state != RVN_IN_READING || b == NULL)
		return;
	in->rest = NULL;
	took(in, rvn_frame_fill(&in->frame, in->rt, b));
}

/* --- answering --- */

static void
write_last(struct reeve_inbound *in, reeve_buf_t *b)
{
	in->pending++;
	rva_stream_write_sent(in->stream, b, &in->wr);
	(void)reeve_shut(in->stream);
}

/* The response has left.  Who keeps its direction open has until the deadline. */
static void
sent(struct reeve_inbound *in)
{
	in->rc = 0;
	rvn_in_uncount(in->r, in);
	call_done(in);
	if (rva_stream_at_end(in->stream)) {
		end(in, 0);
	} else {
		in->state = RVN_IN_ENDING;
		read_more(in);
	}
}

static void
on_written(reeve_op_t *op)
{
	struct reeve_inbound *in = op->arg;
	reeve_buf_t *b = in->rest;

	in->pending--;
	in->rest = NULL;
	if (in->over || op->res < 0) {
		rv_buf_unref(b);
		if (op->res < 0)
			end(in, rvn_error(in->stream, (int)op->res));
	} else if (b != NULL) {
		write_last(in, b);
	} else {
		sent(in);
	}
	settle(in, false);
}

/* The application's answer begins to leave. */
static void
answer(struct reeve_inbound *in)
{
	reeve_buf_t *out[2];
	int rc;

	rc = in->answer != NULL && rv_buf_len(in->answer) > in->r->cfg.max_response ? REEVE_ETOOBIG
										    : 0;
	if (rc == 0)
		rc = rvn_frame_make(in->rt, in->answer, out);
	else
		rv_buf_unref(in->answer);
	in->answer = NULL;
	if (rc < 0) {
		end(in, rc);
		return;
	}
	in->state = RVN_IN_ANSWERING;
	set_timer(in);
	in->rest = out[1];
	if (out[1] == NULL) {
		write_last(in, out[0]);
	} else {
		in->pending++;
		reeve_write_async(in->stream, out[0], &in->wr);
	}
}

/* The application has let go of the handle. */
static void
let_go(struct reeve_inbound *in, bool with_answer)
{
	in->handed = false;
	rv_buf_unref(in->body);
	in->body = NULL;
	if (in->r != NULL)
		rvn_in_give(in->r, in);
	in->answered = with_answer;
	if (with_answer && !in->over) {
		answer(in);
	} else if (with_answer) {
		rv_buf_unref(in->answer);
		in->answer = NULL;
	} else if (!in->over) {
		end(in, REEVE_EREFUSED);
	}
}

/* --- the actor --- */

static void
on_bell(struct reeve_inbound *in, uint32_t bits)
{
	if (bits & RVN_IN_FREE) {
		in->actor.dead = true;
		return;
	}
	if (bits & RVN_IN_RESUME)
		resume(in);
	if (bits & (RVN_IN_ANSWER | RVN_IN_REFUSE))
		let_go(in, (bits & RVN_IN_ANSWER) != 0);
	if ((bits & RVN_IN_CLOSE) && in->state == RVN_IN_ENDING)
		reeve_op_cancel(&in->rd);
	else if ((bits & RVN_IN_CLOSE) && in->stream != NULL)
		end(in, REEVE_ECLOSED);
	settle(in, (bits & RVN_IN_CLOSE) != 0);
}

static void
inbound_on(struct rva_actor *a, struct rvq_node *n)
{
	struct reeve_inbound *in = rva_container(a, struct reeve_inbound, actor);

	(void)n;
	on_bell(in, rvq_bell_answer(&in->bell));
}

static void
inbound_free(struct rva_actor *a)
{
	struct reeve_inbound *in = rva_container(a, struct reeve_inbound, actor);
	struct rv_arena *ar = in->arena;

	rvn_frame_drop(&in->frame);
	rv_buf_unref(in->body); /* nobody took it from the queue */
	rv_buf_unref(in->rest);
	rv_free(ar, in, sizeof(*in));
}

static const struct rva_actor_ops inbound_ops = {.on = inbound_on, .free = inbound_free};

static struct reeve_inbound *
make(reeve_reqs_t *r, const char *peer, reeve_stream_t *s, unsigned name)
{
	struct reeve_inbound *in = rv_zalloc(r->arena, sizeof(*in));

	if (in == NULL)
		return NULL;
	rva_actor_init(&in->actor, s->conn->w, &inbound_ops);
	rvq_bell_init(&in->bell);
	in->rt = r->rt;
	in->arena = r->arena;
	in->r = r;
	in->stream = s;
	in->name = name;
	memcpy(in->peer, peer, strnlen(peer, sizeof(in->peer) - 1));
	in->state = RVN_IN_READING;
	in->timer.fn = on_timer;
	reeve_op_init(&in->rd, on_read, in);
	reeve_op_init(&in->wr, on_written, in);
	return in;
}

void
rvn_in_arrive(struct rvn_proto *p, const char *peer, reeve_stream_t *s, unsigned name)
{
	reeve_reqs_t *r = (reeve_reqs_t *)p;
	struct reeve_inbound *in = NULL;
	bool held = rvn_hold(p->node);

	REEVE_ASSERT(rva_is_owner(&s->actor));
	if (held)
		in = make(r, peer, s, name);
	if (in == NULL || !rvn_in_enter(r, in)) {
		(void)rvq_gauge_add(&r->gauges->requests_refused, 1);
		rvn_turn_away(s);
		reeve_stream_unref(s);
		if (in != NULL)
			inbound_free(&in->actor); /* nobody has heard of it */
		if (held)
			rvn_drop(p->node);
		return;
	}
	(void)rvq_gauge_add(&r->gauges->requests_in, 1);
	set_timer(in);
	read_more(in);
}

/* --- the application's calls --- */

const char *
reeve_inbound_peer(const reeve_inbound_t *in)
{
	return in != NULL ? in->peer : NULL;
}

unsigned
reeve_inbound_name(const reeve_inbound_t *in)
{
	return in != NULL ? in->name : 0;
}

reeve_buf_t *
reeve_inbound_body(const reeve_inbound_t *in)
{
	return in != NULL ? in->body : NULL;
}

void
reeve_respond(reeve_inbound_t *in, reeve_buf_t *body, void (*done)(void *arg, int rc), void *arg)
{
	if (in == NULL) {
		rv_buf_unref(body);
		return;
	}
	in->answer = body;
	in->done = done;
	in->done_arg = arg;
	if (rva_self != in->actor.home || in->over) {
		ring(in, RVN_IN_ANSWER);
		return;
	}
	let_go(in, true);
	if (in->over)
		ring(in, RVN_IN_LOOK); /* done is not called inside */
}

void
reeve_refuse(reeve_inbound_t *in)
{
	if (in != NULL)
		ring(in, RVN_IN_REFUSE);
}
