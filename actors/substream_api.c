/* substream_api.c - the calls of reeve/stream.h and the stream's part of reeve/op.h: any thread. */
#include <config.h>

#include "actors/negotiate.h"
#include "actors/port.h"
#include "lib/engine/mplex_frame.h"
#include "lib/engine/mplex_msg.h"
#include "lib/check.h"
#include "lib/clock.h"

static int
may_block(reeve_stream_t *s)
{
	return rva_rt_may_block(s->conn->rt);
}

/* Sets bits of what the application has done; true: the first time. */
static bool
app_set(reeve_stream_t *s, uint32_t bits)
{
	return (rvq_cell32_or(&s->app, bits) & bits) != bits;
}

static void
answer_wr(reeve_stream_t *s, int rc)
{
	struct rva_port *p = rva_port_peek(s);

	if (rvq_cell32_cas(&s->wr_rc, (uint32_t)RVA_RC_OPEN, (uint32_t)rc) && p != NULL)
		rva_port_wake(p);
}

static void
ring(reeve_stream_t *s, uint32_t bits)
{
	struct rva_port *p = rva_port_peek(s);

	rva_ring(&s->actor, &s->bell, bits);
	if (p != NULL)
		rva_port_wake(p);
}

reeve_ssize
reeve_read(reeve_stream_t *s, void *to, size_t n)
{
	struct rva_port *p;
	int rc;

	REEVE_REQUIRE(s != NULL && (to != NULL || n == 0) && n <= PTRDIFF_MAX, REEVE_EINVAL);
	rc = may_block(s);
	REEVE_REQUIRE(rc == 0, rc);
	if (n == 0) {
		if (rvq_cell32_get(&s->app) & (RVA_APP_STOP | RVA_APP_CLOSE | RVA_APP_RESET))
			return REEVE_ECLOSED;
		rc = rva_rc(&s->rd_rc);
		return rc == RVA_RC_OPEN ? 0 : rc;
	}
	p = rva_port_of(s);
	REEVE_REQUIRE(p != NULL, REEVE_ENOMEM);
	return rva_port_read(s, p, to, n);
}

reeve_ssize
reeve_read_buf(reeve_stream_t *s, reeve_buf_t **b)
{
	struct rva_port *p;
	int rc;

	REEVE_REQUIRE(s != NULL && b != NULL, REEVE_EINVAL);
	rc = may_block(s);
	REEVE_REQUIRE(rc == 0, rc);
	p = rva_port_of(s);
	REEVE_REQUIRE(p != NULL, REEVE_ENOMEM);
	return rva_port_read_buf(s, p, b);
}

reeve_ssize
reeve_writev(reeve_stream_t *s, const struct iovec *v, int n)
{
	struct rva_port *p;
	size_t total = 0;
	int rc;

	REEVE_REQUIRE(s != NULL && n >= 0 && (v != NULL || n == 0), REEVE_EINVAL);
	for (int i = 0; i < n; i++) {
		REEVE_REQUIRE(v[i].iov_base != NULL || v[i].iov_len == 0, REEVE_EINVAL);
		REEVE_REQUIRE(v[i].iov_len <= PTRDIFF_MAX - total, REEVE_EINVAL);
		total += v[i].iov_len;
	}
	rc = may_block(s);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rva_rc(&s->wr_rc);
	if (total == 0 || rc != RVA_RC_OPEN)
		return rc == RVA_RC_OPEN ? 0 : rc;
	p = rva_port_of(s);
	REEVE_REQUIRE(p != NULL, REEVE_ENOMEM);
	return rva_port_write(s, p, v, n);
}

reeve_ssize
reeve_write(reeve_stream_t *s, const void *from, size_t n)
{
	struct iovec v = {(void *)(uintptr_t)from, n};

	return reeve_writev(s, &v, 1);
}

reeve_ssize
reeve_write_buf(reeve_stream_t *s, reeve_buf_t *b)
{
	struct rva_port *p;
	int rc;

	REEVE_REQUIRE(b != NULL, REEVE_EINVAL);
	rc = s == NULL ? REEVE_EINVAL : may_block(s);
	if (rc == 0 && rv_buf_len(b) == 0) {
		rv_buf_unref(b);
		rc = rva_rc(&s->wr_rc);
		return rc == RVA_RC_OPEN ? 0 : rc;
	}
	p = rc == 0 ? rva_port_of(s) : NULL;
	if (p == NULL) {
		rv_buf_unref(b);
		return rc < 0 ? rc : REEVE_ENOMEM;
	}
	return rva_port_write_buf(s, p, b);
}

int
reeve_shut(reeve_stream_t *s)
{
	int rc;

	REEVE_REQUIRE(s != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(s->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	if (!app_set(s, RVA_APP_SHUT))
		return 0;
	answer_wr(s, REEVE_ESHUT);
	ring(s, RVA_S_SHUT);
	return 0;
}

int
reeve_stop(reeve_stream_t *s)
{
	int rc;

	REEVE_REQUIRE(s != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(s->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	if (app_set(s, RVA_APP_STOP))
		ring(s, RVA_S_STOP);
	return 0;
}

int
reeve_reset(reeve_stream_t *s, uint32_t code)
{
	int rc;

	REEVE_REQUIRE(s != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(s->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	if (!app_set(s, RVA_APP_RESET))
		return 0;
	rvq_cell32_put(&s->rst_code, code);
	answer_wr(s, REEVE_ECLOSED);
	ring(s, RVA_S_RESET);
	return 0;
}

void
reeve_close(reeve_stream_t *s)
{
	if (s == NULL)
		return;
	if (rva_rt_alive(s->conn->rt) == 0 && app_set(s, RVA_APP_CLOSE)) {
		answer_wr(s, REEVE_ECLOSED);
		ring(s, RVA_S_CLOSE);
	}
	reeve_stream_unref(s);
}

reeve_stream_t *
reeve_stream_ref(reeve_stream_t *s)
{
	if (s != NULL)
		rvq_ref_get(&s->handles);
	return s;
}

void
reeve_stream_unref(reeve_stream_t *s)
{
	if (s != NULL && rvq_ref_put(&s->handles))
		rva_ring(&s->actor, &s->bell, RVA_S_DROP);
}

int
reeve_deadline(reeve_stream_t *s, int dir, int64_t timeout_ms)
{
	uint64_t at;
	int rc;

	REEVE_REQUIRE(s != NULL && (dir & ~(REEVE_RD | REEVE_WR)) == 0 && dir != 0, REEVE_EINVAL);
	rc = rva_rt_alive(s->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	at = timeout_ms < 0 ? 0 : rv_deadline_us(rv_clock_us(), timeout_ms);
	if (dir & REEVE_RD)
		rvq_cell64_put(&s->rd_deadline, at);
	if (dir & REEVE_WR)
		rvq_cell64_put(&s->wr_deadline, at);
	ring(s, RVA_S_TIME);
	return 0;
}

uint64_t
reeve_stream_id(const reeve_stream_t *s)
{
	if (s == NULL)
		return 0;
	return s->conn->cfg.proto == REEVE_MPLEX ? rv_mp_id(s->wire.id) : s->wire.id;
}

reeve_ctl_t *
reeve_stream_ctl(reeve_stream_t *s)
{
	return s != NULL ? &s->conn->ctl : NULL;
}

void
reeve_stream_set_data(reeve_stream_t *s, void *p)
{
	if (s != NULL)
		s->data = p;
}

void *
reeve_stream_data(const reeve_stream_t *s)
{
	return s != NULL ? s->data : NULL;
}

int
reeve_stream_reason(reeve_stream_t *s, reeve_reason_t *out)
{
	bool ended;
	int rd, wr;

	REEVE_REQUIRE(s != NULL && out != NULL && out->size >= sizeof(*out), REEVE_EINVAL);
	rd = rva_rc(&s->rd_rc);
	wr = rva_rc(&s->wr_rc);
	out->rc = rd < 0 ? rd : wr < 0 && wr != REEVE_ESHUT ? wr : 0;
	out->by = REEVE_BY_NONE;
	out->wire_code = 0;
	out->id = "";
	if (out->rc == 0)
		return 0;
	ended = rvq_cell32_get(&s->conn->ended) != 0;
	if (rva_nego_reason(s, out->rc, out))
		return 0;
	if (out->rc == REEVE_ERESET || out->rc == REEVE_EREFUSED) {
		out->by = REEVE_BY_PEER;
		out->wire_code = rvq_cell32_get(&s->peer_code);
		out->id = out->rc == REEVE_ERESET ? "REEVE-STREAM-0001" : "REEVE-STREAM-0002";
	} else if (out->rc == REEVE_ELIMIT && (!ended || s->conn->reason.rc != REEVE_ELIMIT)) {
		out->by = REEVE_BY_US;
		out->id = rv_mpmsg_text[RV_MPMSG_SLOW].id;
	} else if (ended) {
		out->by = s->conn->reason.by;
		out->wire_code = s->conn->reason.wire_code;
		out->id = s->conn->reason.id;
	} else {
		out->by = REEVE_BY_US;
	}
	return 0;
}

/* --- operations --- */

static void
unref_stream(void *s)
{
	reeve_stream_unref(s);
}

void
reeve_read_async(reeve_stream_t *s, reeve_op_t *op)
{
	int rc;

	if (op == NULL)
		return;
	if (s == NULL || op->cq != NULL || (rc = rva_rt_alive(s->conn->rt)) < 0) {
		rva_op_refuse(s == NULL ? NULL : s->conn->rt, op,
		    s == NULL            ? REEVE_EINVAL
			: op->cq != NULL ? REEVE_ENOTSUP
					 : rc);
		return;
	}
	op->buf = NULL;
	rva_op_start(op, &s->actor, RVA_MSG_READ, reeve_stream_ref(s), unref_stream);
}

/* Completed by the stream's own actor, behind the writes before it: completions of one stream never overlap, and come in
 * order. */
static void
refuse_write(reeve_stream_t *s, reeve_op_t *op, int rc)
{
	rva_op_prepare(op, &s->actor, RVA_MSG_REFUSED, reeve_stream_ref(s), unref_stream);
	rva_op(op)->deadline = UINT64_MAX;
	rva_op(op)->buf = NULL;
	op->res = rc;
	rva_post(&s->actor, &rva_op(op)->msg.node);
}

static void
start_write(reeve_stream_t *s, reeve_buf_t *b, reeve_op_t *op, uintptr_t kind)
{
	struct rva_port *p;
	int rc = s == NULL || b == NULL ? REEVE_EINVAL : rva_rt_alive(s->conn->rt);

	if (op == NULL) {
		rv_buf_unref(b);
		return;
	}
	if (rc == 0 && op->cq != NULL)
		rc = REEVE_ENOTSUP;
	if (rc == 0 && (rc = rva_rc(&s->wr_rc)) != RVA_RC_OPEN) {
		rv_buf_unref(b);
		refuse_write(s, op, rc);
		return;
	}
	if (rc < 0) {
		rv_buf_unref(b);
		rva_op_refuse(s == NULL ? NULL : s->conn->rt, op, rc);
		return;
	}
	p = rva_port_peek(s);
	rva_op_prepare(op, &s->actor, kind, reeve_stream_ref(s), unref_stream);
	rva_op(op)->buf = b;
	rva_op(op)->pos = p != NULL ? rvq_cell64_get(&p->accepted) : 0;
	(void)rvq_cell32_add(&s->posted, 1);
	rva_post(&s->actor, &rva_op(op)->msg.node);
}

void
reeve_write_async(reeve_stream_t *s, reeve_buf_t *b, reeve_op_t *op)
{
	start_write(s, b, op, RVA_MSG_WRITE);
}

void
rva_stream_write_sent(reeve_stream_t *s, reeve_buf_t *b, reeve_op_t *op)
{
	start_write(s, b, op, RVA_MSG_WRITE_SENT);
}
