/* connection_api.c - the calls of reeve/conn.h, reeve/ctl.h, reeve/stats.h: any thread. */
#include <config.h>

#include <string.h>

#include "actors/connection.h"
#include "actors/memory.h"
#include "actors/upgrader.h"
#include "lib/upgrade/handshake.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"

/* --- connections --- */

int
reeve_conn_open_fd(reeve_conn_t **c, reeve_rt_t *rt, int fd, int role, const reeve_cfg_t *cfg)
{
	struct rva_upgrade up = {.rt = rt, .role = role, .cfg = cfg};
	int rc;

	REEVE_REQUIRE(c != NULL && rt != NULL && fd >= 0, REEVE_EINVAL);
	rc = rva_rt_alive(rt);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rv_fd_transport(&up.transport, rt->arena, fd);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rva_upgrade(c, &up);
	if (rc < 0)
		rv_fd_transport_forget(up.transport);
	return rc;
}

int
reeve_conn_pair(reeve_conn_t *pair[2], reeve_rt_t *rt, const reeve_cfg_t *cfg)
{
	struct rv_transport *t[2];
	struct rva_upgrade up = {.rt = rt, .cfg = cfg};
	reeve_conn_t *c[2];
	int rc;

	REEVE_REQUIRE(pair != NULL && rt != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(rt);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rva_memory_pipe(t, rt->arena, RVA_MEMORY_BYTES);
	REEVE_REQUIRE(rc == 0, rc);
	for (int i = 0; i < 2; i++) {
		up.transport = t[i];
		up.role = i == 0 ? REEVE_DIALER : REEVE_LISTENER;
		rc = rva_upgrade(&c[i], &up);
		if (rc == 0)
			continue;
		t[i]->ops->close(t[i]);
		if (i == 0)
			t[1]->ops->close(t[1]);
		else
			reeve_conn_destroy(c[0]);
		return rc;
	}
	pair[0] = c[0];
	pair[1] = c[1];
	return 0;
}

reeve_ctl_t *
reeve_conn_ctl(reeve_conn_t *c)
{
	return c != NULL ? &c->ctl : NULL;
}

static void
unkeep(void *k)
{
	rva_ctl_unkeep(k);
}

/* Ask the controller and wait for its answer. */
static reeve_ssize
ask(reeve_ctl_t *k, uintptr_t kind, int64_t timeout_ms, reeve_op_t *out)
{
	struct rva_ask *a;
	int rc = rva_rt_may_block(k->conn->rt);

	REEVE_REQUIRE(rc == 0, rc);
	a = rva_ask_new(k->conn->arena, timeout_ms);
	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	rva_ctl_keep(k);
	rva_op_start(&a->op, &k->actor, kind, k, unkeep);
	return rva_ask_wait(a, out);
}

int
reeve_conn_close(reeve_conn_t *c, int64_t timeout_ms)
{
	reeve_op_t out;
	struct rva_ask *a;
	int rc;

	REEVE_REQUIRE(c != NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(c->rt);
	REEVE_REQUIRE(rc == 0, rc);
	/* The connection ends at the deadline, and that answers; unless its worker is held up by the application. */
	a = rva_ask_new(c->arena,
	    timeout_ms < 0 || timeout_ms > INT64_MAX - RVA_HELD_UP_MS
		? -1
		: timeout_ms + RVA_HELD_UP_MS);
	REEVE_REQUIRE(a != NULL, REEVE_ENOMEM);
	rva_ctl_keep(&c->ctl);
	a->op.timeout_ms = timeout_ms;
	rva_op_start(&a->op, &c->ctl.actor, RVA_MSG_CLOSE, &c->ctl, unkeep);
	return (int)rva_ask_wait(a, &out);
}

void
rva_conn_close(struct reeve_conn *c, int64_t timeout_ms)
{
	if (timeout_ms == 0) {
		(void)reeve_abort(&c->ctl, REEVE_ECLOSED);
		return;
	}
	rvq_cell64_put(&c->close_at, rv_deadline_us(rv_clock_us(), timeout_ms));
	rva_ring(&c->actor, &c->bell, RVA_CONN_CLOSE);
}

void
reeve_conn_destroy(reeve_conn_t *c)
{
	reeve_op_t out;

	if (c == NULL)
		return;
	if (rvq_cell32_get(&c->ctl.over) == 0) {
		(void)reeve_abort(&c->ctl, REEVE_ECLOSED);
		if (rva_rt_may_wait(c->rt))
			(void)ask(&c->ctl, RVA_MSG_CLOSED, -1, &out);
	}
	rva_ctl_unkeep(&c->ctl);
}

void
reeve_conn_release(reeve_conn_t *c)
{
	if (c != NULL)
		rva_ctl_unkeep(&c->ctl);
}

void
reeve_transport_ready(reeve_ctl_t *k, int events)
{
	uint32_t bits = 0;

	if (k == NULL)
		return;
	if (events & REEVE_READABLE)
		bits |= RVA_CONN_READABLE;
	if (events & REEVE_WRITABLE)
		bits |= RVA_CONN_WRITABLE;
	if (bits != 0)
		rva_ring(&k->conn->actor, &k->conn->bell, bits);
}

/* --- controllers --- */

reeve_ctl_t *
reeve_ctl_ref(reeve_ctl_t *k)
{
	if (k != NULL)
		rva_ctl_keep(k);
	return k;
}

void
reeve_ctl_unref(reeve_ctl_t *k)
{
	if (k != NULL)
		rva_ctl_unkeep(k);
}

static int
ask_stream(reeve_ctl_t *k, uintptr_t kind, reeve_stream_t **s, int64_t timeout_ms)
{
	reeve_op_t out;
	reeve_ssize rc;

	REEVE_REQUIRE(k != NULL && s != NULL, REEVE_EINVAL);
	rc = ask(k, kind, timeout_ms, &out);
	if (rc == 0)
		*s = out.stream;
	return (int)rc;
}

int
reeve_open(reeve_ctl_t *k, reeve_stream_t **s, int64_t timeout_ms)
{
	return ask_stream(k, RVA_MSG_OPEN, s, timeout_ms);
}

int
reeve_accept(reeve_ctl_t *k, reeve_stream_t **s, int64_t timeout_ms)
{
	return ask_stream(k, RVA_MSG_ACCEPT, s, timeout_ms);
}

int
reeve_ping(reeve_ctl_t *k, int64_t timeout_ms, uint64_t *rtt_us)
{
	reeve_op_t out;
	reeve_ssize rc;

	REEVE_REQUIRE(k != NULL, REEVE_EINVAL);
	rc = ask(k, RVA_MSG_PING, timeout_ms, &out);
	if (rc < 0)
		return (int)rc;
	if (rtt_us != NULL)
		*rtt_us = (uint64_t)rc;
	return 0;
}

int
reeve_ready(reeve_ctl_t *k, int64_t timeout_ms)
{
	reeve_op_t out;

	REEVE_REQUIRE(k != NULL, REEVE_EINVAL);
	return (int)ask(k, RVA_MSG_READY, timeout_ms, &out);
}

int
reeve_proto(reeve_ctl_t *k)
{
	uint32_t proto;

	REEVE_REQUIRE(k != NULL, REEVE_EINVAL);
	proto = rvq_cell32_get(&k->conn->proto);
	return proto != 0 ? (int)proto : REEVE_EAGAIN;
}

int
reeve_peer_id(reeve_ctl_t *k, char *out, size_t n)
{
	const struct rv_peer_id *id;
	char text[RV_PEER_TEXT];
	size_t len;

	REEVE_REQUIRE(k != NULL && out != NULL, REEVE_EINVAL);
	REEVE_REQUIRE(rvq_cell32_get(&k->conn->proto) != 0, REEVE_EAGAIN);
	REEVE_REQUIRE(k->conn->handshake != NULL, REEVE_ENOTSUP);
	id = rv_handshake_peer(k->conn->handshake);
	REEVE_REQUIRE(id->len > 0, REEVE_ENOTSUP);
	len = rv_peer_id_text(id, text);
	REEVE_REQUIRE(len < n, REEVE_EINVAL);
	memcpy(out, text, len + 1);
	return (int)len;
}

int
reeve_goaway(reeve_ctl_t *k, uint32_t code)
{
	int rc;

	REEVE_REQUIRE(k != NULL, REEVE_EINVAL);
	rc = rva_rt_alive(k->conn->rt);
	REEVE_REQUIRE(rc == 0, rc);
	(void)rvq_cell64_cas(&k->conn->goaway, 0, (uint64_t)code + 1);
	rva_ring(&k->conn->actor, &k->conn->bell, RVA_CONN_GOAWAY);
	return 0;
}

int
reeve_abort(reeve_ctl_t *k, int rc)
{
	int alive;

	REEVE_REQUIRE(k != NULL && rc <= 0 && rc > INT32_MIN, REEVE_EINVAL);
	alive = rva_rt_alive(k->conn->rt);
	REEVE_REQUIRE(alive == 0, alive);
	(void)rvq_cell32_cas(&k->conn->abort_rc, 0, (uint32_t)(rc == 0 ? -REEVE_ECLOSED : -rc));
	rva_ring(&k->conn->actor, &k->conn->bell, RVA_CONN_ABORT);
	return 0;
}

int
reeve_ctl_reason(reeve_ctl_t *k, reeve_reason_t *out)
{
	REEVE_REQUIRE(k != NULL && out != NULL && out->size >= sizeof(*out), REEVE_EINVAL);
	if (rvq_cell32_get(&k->conn->ended) != 0)
		*out = k->conn->reason;
	else
		*out = (reeve_reason_t){.size = sizeof(*out), .id = ""};
	return 0;
}

/* --- operations --- */

static void
unref_conn(void *c)
{
	rva_conn_unref(c);
}

static void
start(reeve_ctl_t *k, reeve_op_t *op, uintptr_t kind)
{
	int rc;

	if (op == NULL)
		return;
	rc = k == NULL ? REEVE_EINVAL : op->cq != NULL ? REEVE_ENOTSUP : rva_rt_alive(k->conn->rt);
	if (rc < 0) {
		rva_op_refuse(k == NULL ? NULL : k->conn->rt, op, rc);
		return;
	}
	op->stream = NULL;
	if (kind == RVA_MSG_CLOSED) { /* waiting for the end does not keep it from coming */
		rva_conn_ref(k->conn);
		rva_op_start(op, &k->actor, kind, k->conn, unref_conn);
	} else {
		rva_ctl_keep(k);
		rva_op_start(op, &k->actor, kind, k, unkeep);
	}
}

void
reeve_open_async(reeve_ctl_t *k, reeve_op_t *op)
{
	start(k, op, RVA_MSG_OPEN);
}

void
reeve_accept_async(reeve_ctl_t *k, reeve_op_t *op)
{
	start(k, op, RVA_MSG_ACCEPT);
}

void
reeve_ready_async(reeve_ctl_t *k, reeve_op_t *op)
{
	start(k, op, RVA_MSG_READY);
}

void
reeve_ping_async(reeve_ctl_t *k, reeve_op_t *op)
{
	start(k, op, RVA_MSG_PING);
}

void
reeve_closed_async(reeve_ctl_t *k, reeve_op_t *op)
{
	start(k, op, RVA_MSG_CLOSED);
}
