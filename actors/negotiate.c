/* negotiate.c - multistream-select on a stream.  See negotiate.h. */
#include <config.h>

#include "actors/negotiate.h"

#include <string.h>

#include "actors/port.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"

#define TIMEOUT_MS 10000
#define MAX_NAMES  1024u

/* --- owner --- */

static void
talk_free(struct rva_nego *g, struct rv_arena *ar)
{
	struct rva_talk *t = g->talk;

	g->talk = NULL;
	rvq_cell32_put(&g->held, 0);
	rvq_cell32_put(&g->over, 1);
	rv_free(ar, t, t->size);
}

/* The talk is over; its operation, which the caller answers. */
static reeve_op_t *
leave(struct reeve_stream *s)
{
	struct rva_nego *g = rva_nego_of(s);
	reeve_op_t *op = g->talk->op;

	rva_timer_clear(&s->conn->w->wheel, &g->talk->timer);
	talk_free(g, s->conn->arena);
	return op;
}

static void
answer(reeve_op_t *op, reeve_ssize res)
{
	if (op != NULL)
		(void)rva_op_answer(op, res);
}

/* What the talk has to say goes to the connection.  False: no memory. */
static bool
say(struct reeve_stream *s, struct rva_talk *t)
{
	struct rva_up m = {.s = s, .kind = RVA_UP_SEND};
	const uint8_t *p;
	size_t n = rv_ms_out(&t->ms, &p);

	if (n == 0 || s->gone)
		return true;
	m.buf = rv_buf_alloc(s->conn->w->pool, n);
	if (m.buf == NULL)
		return false;
	memcpy(m.buf->slab->data + m.buf->off, p, n);
	rv_ms_sent(&t->ms, n);
	rvq_cell32_put(&rva_nego_of(s)->held, 0);
	s->queued += (uint32_t)n;
	rva_conn_up(s->conn, &m);
	return true;
}

static void
fail(struct reeve_stream *s, int rc, const char *id)
{
	struct rva_nego *g = rva_nego_of(s);
	/* A listener's last "na" and a dialer's end are for the peer to read. */
	bool fin = rc == REEVE_ENOPROTO && !g->talk->lazy;
	reeve_op_t *op;

	if (fin)
		(void)say(s, g->talk);
	rvq_cell32_put(&g->agreed, 0);
	rvq_cellptr_put(&g->id, (void *)(uintptr_t)id);
	rvq_cell32_put(&g->rc, (uint32_t)rc);
	op = leave(s);
	rva_stream_fail(s, rc, fin);
	answer(op, rc);
}

static void
agree(struct reeve_stream *s)
{
	struct rva_nego *g = rva_nego_of(s);
	struct rva_talk *t = g->talk;
	unsigned at = t->ms.at;
	reeve_op_t *op;

	if (t->op != NULL && !rva_op_claim(t->op)) {
		fail(s, REEVE_ECANCELED, "REEVE-MS-0009"); /* its cancel message answers it */
		return;
	}
	if (!say(s, t)) {
		op = t->op;
		t->op = NULL;
		fail(s, REEVE_ENOMEM, "REEVE-MS-0010");
		if (op != NULL)
			rva_op_finish(op, REEVE_ENOMEM);
		return;
	}
	if (!t->lazy)
		memcpy(g->name, t->names[at], strlen(t->names[at]) + 1);
	rvq_cell32_put(&g->agreed, at + 1);
	op = leave(s);
	rva_stream_resume(s);
	if (op != NULL)
		rva_op_finish(op, (reeve_ssize)at);
}

/* The talk has heard something. */
static void
step(struct reeve_stream *s, struct rva_talk *t)
{
	if (t->ms.done && t->ms.rc == 0)
		agree(s);
	else if (t->ms.done)
		fail(s, t->ms.rc, t->ms.id);
	else if (rvq_cell32_get_relaxed(&rva_nego_of(s)->held) == 0 && !say(s, t))
		fail(s, REEVE_ENOMEM, "REEVE-MS-0010");
}

size_t
rva_nego_feed(struct reeve_stream *s, const uint8_t *p, size_t n)
{
	struct rva_talk *t = rva_nego_talk(s);
	size_t used = rv_ms_feed(&t->ms, p, n);

	step(s, t);
	return used;
}

void
rva_nego_end(struct reeve_stream *s)
{
	struct rva_talk *t = rva_nego_talk(s);

	if (t == NULL || !t->begun || (t->lazy && s->stopped))
		return;
	rv_ms_end(&t->ms);
	step(s, t);
}

void
rva_nego_flush(struct reeve_stream *s)
{
	struct rva_talk *t = rva_nego_talk(s);

	if (t == NULL || !t->lazy)
		return;
	t->wanted = true;
	if (t->begun && !say(s, t))
		fail(s, REEVE_ENOMEM, "REEVE-MS-0010");
}

void
rva_nego_over(struct reeve_stream *s, int rc)
{
	struct rva_talk *t = rva_nego_talk(s);

	if (t != NULL && t->begun) /* else it looks for itself */
		answer(leave(s), rc);
}

void
rva_nego_free(struct reeve_stream *s)
{
	struct rva_nego *g = rva_nego_of(s);

	if (g == NULL)
		return;
	if (g->talk != NULL)
		talk_free(g, s->conn->arena);
	rv_free(s->conn->arena, g, g->size);
}

static void
on_timer(struct rva_timer *timer, uint64_t now)
{
	(void)now;
	fail(rva_container(timer, struct rva_talk, timer)->s, REEVE_ETIMEDOUT, "REEVE-MS-0008");
}

/* What came before the talk began; a peer that has said everything may be gone. */
static void
feed_unread(struct reeve_stream *s, struct rva_talk *t)
{
	size_t used;

	while (!t->ms.done && s->in.head != NULL) {
		used = rv_ms_feed(&t->ms, rv_buf_data(s->in.head), s->in.head->len);
		rv_chain_skip(&s->in, used);
		s->consumed += (uint32_t)used;
	}
	if (!t->ms.done && s->in_rc == 0)
		rv_ms_end(&t->ms);
	if (!t->ms.done && (s->gone || (s->in_rc < 0 && !s->stopped)))
		rva_nego_over(s, s->in_rc < 0 ? s->in_rc : REEVE_ECLOSED);
	else
		step(s, t);
}

/* Nothing was read or written before: the calls that came before this one have been looked at. */
static bool
fresh(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);

	if (s->used || (p != NULL && p->drained != 0))
		return false;
	/* Threads that read now wait: they take nothing. */
	return p == NULL || p->given == 0 ||
	    (rva_port_take_back(s, p) && rvq_cell64_get(&p->consumed) == 0);
}

/* Why it cannot begin. */
static int
hindered(struct reeve_stream *s)
{
	if (s->closed)
		return REEVE_ECLOSED;
	if (s->shut && s->in_rc >= 0 && !s->gone)
		return rva_rc(&s->wr_rc);
	return fresh(s) ? 0 : REEVE_EBUSY;
}

void
rva_nego_begin(struct reeve_stream *s, reeve_op_t *op)
{
	struct rva_talk *t = rva_nego_talk(s);
	int rc = hindered(s);

	t->begun = true;
	t->op = op;
	if (rc < 0) {
		rvq_cell32_put(&rva_nego_of(s)->agreed, 0); /* of a lazy one */
		rva_nego_over(s, rc);
	} else {
		if (!s->gone)
			rva_timer_set(&s->conn->w->wheel, &t->timer, rva_op(op)->deadline);
		feed_unread(s, t);
	}
	t = rva_nego_talk(s);
	if (t != NULL && t->lazy && rva_op_claim(op)) {
		rva_timer_clear(&s->conn->w->wheel, &t->timer);
		t->op = NULL;
		rva_op_finish(op, 0);
		if (t->wanted)
			rva_nego_flush(s);
	}
	if (!rva_nego_mute(s))
		rva_stream_resume(s);
	rva_stream_settle(s);
}

void
rva_nego_cancel(struct reeve_stream *s, reeve_op_t *op)
{
	struct rva_talk *t = rva_nego_talk(s);
	bool late = rva_op(op)->deadline <= rv_clock_us();

	if (t == NULL || t->op != op)
		return;
	t->op = NULL;
	if (late)
		fail(s, REEVE_ETIMEDOUT, "REEVE-MS-0008");
	else
		fail(s, REEVE_ECANCELED, "REEVE-MS-0009");
}

/* --- any thread --- */

bool
rva_nego_reason(const struct reeve_stream *s, int rc, reeve_reason_t *out)
{
	struct rva_nego *g = rva_nego_of(s);

	if (g == NULL || rva_rc(&g->rc) != rc)
		return false;
	out->by = rc == REEVE_ETIMEDOUT || rc == REEVE_ECANCELED || rc == REEVE_ENOMEM
	    ? REEVE_BY_US
	    : REEVE_BY_PEER;
	out->id = rvq_cellptr_get(&g->id);
	return true;
}

/* Bytes that copies of the names take, of the longest *longest.  0: bad names. */
static size_t
measure(const char *const *names, unsigned n, size_t *longest)
{
	size_t all = 0, len;

	*longest = 0;
	for (unsigned i = 0; i < n; i++) {
		len = names[i] == NULL ? RV_MS_MESSAGE : strnlen(names[i], RV_MS_MESSAGE);
		if (len == RV_MS_MESSAGE)
			return 0;
		all += len + 1;
		*longest = len > *longest ? len : *longest;
	}
	return all;
}

/* A talk with copies of the names, text bytes in all. */
static struct rva_talk *
talk_new(struct reeve_stream *s, const char *const *names, unsigned n, size_t text)
{
	size_t size = sizeof(struct rva_talk) + n * sizeof(names[0]) + text, len;
	struct rva_talk *t = rv_zalloc(s->conn->arena, size);
	char *at;

	if (t == NULL)
		return NULL;
	t->s = s;
	t->size = size;
	t->timer.fn = on_timer;
	at = (char *)(t->names + n);
	for (unsigned i = 0; i < n; i++) {
		len = strlen(names[i]) + 1;
		memcpy(at, names[i], len);
		t->names[i] = at;
		at += len;
	}
	return t;
}

/* Nothing was read or written by threads. */
static bool
untouched(const struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);

	return p == NULL ||
	    (rvq_cell64_get(&p->consumed) == 0 && rvq_cell64_get(&p->accepted) == 0);
}

/* The record is published: from now on bytes wait for the talk.  0, REEVE_EINVAL, REEVE_EBUSY, REEVE_ENOMEM. */
static int
publish(struct reeve_stream *s, int how, const char *const *names, unsigned n)
{
	enum rv_ms_mode mode = how == REEVE_DIALER ? RV_MS_DIALER
	    : how == REEVE_LISTENER                ? RV_MS_LISTENER
						   : RV_MS_LAZY;
	struct rv_arena *ar = s->conn->arena;
	size_t longest, text;
	struct rva_nego *g;
	int rc;

	text = measure(names, n, &longest);
	REEVE_REQUIRE(text > 0, REEVE_EINVAL);
	REEVE_REQUIRE(rva_nego_of(s) == NULL && untouched(s), REEVE_EBUSY);
	g = rv_zalloc(ar, sizeof(*g) + longest + 1);
	REEVE_REQUIRE(g != NULL, REEVE_ENOMEM);
	g->size = sizeof(*g) + longest + 1;
	g->talk = talk_new(s, names, n, text);
	rc = g->talk == NULL ? REEVE_ENOMEM : rv_ms_init(&g->talk->ms, mode, g->talk->names, n);
	if (rc == 0 && mode == RV_MS_LAZY) {
		g->talk->lazy = true;
		memcpy(g->name, names[0], longest + 1);
		rvq_cell32_put(&g->agreed, 1);
		rvq_cell32_put(&g->held, 1);
	}
	if (rc == 0 && rvq_cellptr_cas(&s->nego, NULL, g))
		return 0;
	if (g->talk != NULL)
		talk_free(g, ar);
	rv_free(ar, g, g->size);
	return rc < 0 ? rc : REEVE_EBUSY;
}

static int
prepare(struct reeve_stream *s, int how, const char *const *names, unsigned n)
{
	uint32_t app;
	int rc;

	REEVE_REQUIRE(names != NULL && n > 0 && n <= MAX_NAMES, REEVE_EINVAL);
	REEVE_REQUIRE(how == REEVE_DIALER || how == REEVE_LISTENER ||
		(how == (REEVE_DIALER | REEVE_LAZY) && n == 1),
	    REEVE_EINVAL);
	rc = rva_rt_alive(s->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	app = rvq_cell32_get(&s->app);
	REEVE_REQUIRE((app & (RVA_APP_STOP | RVA_APP_CLOSE | RVA_APP_RESET)) == 0, REEVE_ECLOSED);
	REEVE_REQUIRE((app & RVA_APP_SHUT) == 0, REEVE_ESHUT);
	return publish(s, how, names, n);
}

static void
unref_stream(void *s)
{
	reeve_stream_unref(s);
}

static void
start(struct reeve_stream *s, reeve_op_t *op)
{
	rva_op_prepare(op, &s->actor, RVA_MSG_NEGOTIATE, reeve_stream_ref(s), unref_stream);
	if (op->timeout_ms < 0)
		rva_op(op)->deadline = rv_deadline_us(rv_clock_us(), TIMEOUT_MS);
	rva_post(&s->actor, &rva_op(op)->msg.node);
}

int
reeve_negotiate(
    reeve_stream_t *s, int how, const char *const *names, unsigned n, int64_t timeout_ms)
{
	struct rva_ask *a;
	reeve_op_t out;
	int rc;

	REEVE_REQUIRE(s != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(s->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	if (timeout_ms < 0)
		timeout_ms = TIMEOUT_MS;
	/* The owner ends the talk at its deadline, and that answers; unless the worker is held up by the application. */
	a = rva_ask_new(s->conn->arena,
	    timeout_ms > INT64_MAX - RVA_HELD_UP_MS ? -1 : timeout_ms + RVA_HELD_UP_MS);
	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	rc = prepare(s, how, names, n);
	if (rc < 0) {
		rva_ask_drop(a);
		return rc;
	}
	a->op.timeout_ms = timeout_ms;
	start(s, &a->op);
	return (int)rva_ask_wait(a, &out);
}

void
reeve_negotiate_async(
    reeve_stream_t *s, int how, const char *const *names, unsigned n, reeve_op_t *op)
{
	int rc;

	if (op == NULL)
		return;
	rc = s == NULL ? REEVE_EINVAL : op->cq != NULL ? REEVE_ENOTSUP : prepare(s, how, names, n);
	if (rc < 0)
		rva_op_refuse(s == NULL ? NULL : s->conn->rt, op, rc);
	else
		start(s, op);
}

const char *
reeve_stream_proto(const reeve_stream_t *s)
{
	struct rva_nego *g = s != NULL ? rva_nego_of(s) : NULL;

	return g != NULL && rvq_cell32_get(&g->agreed) != 0 ? g->name : NULL;
}
