/* req_kit.c - see req_kit.h. */
#include <config.h>

#include "tests/node/req_kit.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "lib/upgrade/identity.h"
#include "lib/varint.h"

static const char *const names[] = {RQ_NAME};

static void
upgrade(reeve_upgrade_t *up, uint8_t key[32], uint8_t n)
{
	memset(key, n, 32);
	memset(up, 0, sizeof(*up));
	up->size = sizeof(*up);
	up->security = REEVE_PLAINTEXT;
	up->key = key;
}

/* --- nodes --- */

void
rq_cfg(reeve_reqs_cfg_t *cfg)
{
	reeve_reqs_cfg_init(cfg);
	cfg->names = names;
	cfg->nnames = 1;
}

void
rq_start_node(struct rq_node *p, uint8_t key, unsigned workers, const reeve_node_cfg_t *given)
{
	reeve_node_cfg_t cfg;
	reeve_rt_cfg_t rt;
	reeve_cfg_t conn;
	reeve_upgrade_t up;
	uint8_t bytes[32];

	memset(p, 0, sizeof(*p));
	rvt_alloc_init(&p->alloc);
	reeve_rt_cfg_init(&rt);
	rt.alloc = p->alloc.a;
	rt.workers = workers == 0 ? 1 : workers;
	rt.log_level = REEVE_LOG_ERROR;
	ck_assert_int_eq(reeve_rt_create(&p->rt, &rt), 0);
	reeve_cfg_init(&conn);
	if (given != NULL && given->conn != NULL)
		conn = *given->conn;
	upgrade(&up, bytes, key);
	conn.upgrade = &up;
	reeve_node_cfg_init(&cfg);
	if (given != NULL)
		cfg = *given;
	cfg.conn = &conn;
	ck_assert_int_eq(reeve_node_create(&p->n, p->rt, &cfg), 0);
	ck_assert_int_gt(reeve_node_id(p->n, p->id, sizeof(p->id)), 0);
	ck_assert_int_eq(reeve_node_listen(p->n, "tcp://127.0.0.1:0"), 0);
	ck_assert_int_gt(reeve_node_addr(p->n, 0, p->addr, sizeof(p->addr)), 0);
}

void
rq_install(struct rq_node *p, const reeve_reqs_cfg_t *given)
{
	reeve_reqs_cfg_t cfg;

	rq_cfg(&cfg);
	ck_assert_int_eq(reeve_reqs_install(&p->r, p->n, given != NULL ? given : &cfg), 0);
}

void
rq_start(struct rq_node *p, uint8_t key, const reeve_reqs_cfg_t *cfg)
{
	rq_start_node(p, key, 0, NULL);
	rq_install(p, cfg);
}

void
rq_know(struct rq_node *a, const struct rq_node *b)
{
	ck_assert_int_eq(reeve_node_add_address(a->n, b->id, b->addr), 0);
}

void
rq_dial(struct rq_node *a, const struct rq_node *b)
{
	rq_know(a, b);
	ck_assert_int_eq(reeve_node_dial(a->n, b->id, NULL, NULL, RVT_WAIT_MS), 0);
}

reeve_node_stats_t
rq_stats(struct rq_node *p)
{
	reeve_node_stats_t st;

	memset(&st, 0, sizeof(st));
	st.size = sizeof(st);
	ck_assert_int_eq(reeve_node_stats(p->n, &st), 0);
	return st;
}

void
rq_quiet(struct rq_node *p)
{
	RVT_UNTIL(rq_stats(p).requests_in == 0 && rq_stats(p).requests_out == 0);
	ck_assert_uint_eq(rq_stats(p).held, 0);
}

void
rq_stop(struct rq_node *p)
{
	reeve_node_stats_t st;

	(void)reeve_node_close(p->n, 2000);
	st = rq_stats(p);
	ck_assert_uint_eq(
	    st.requests_in + st.requests_out + st.held + st.opening + st.negotiating, 0);
	ck_assert_uint_eq(st.conns + st.dials + st.peers, 0);
	reeve_node_destroy(p->n);
	reeve_rt_destroy(p->rt);
	rvt_alloc_check(&p->alloc);
}

/* --- bodies --- */

static uint8_t
content(size_t i, unsigned seed)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + seed);
}

reeve_buf_t *
rq_buf(reeve_rt_t *rt, size_t n, unsigned seed)
{
	reeve_buf_t *b;
	uint8_t *p;

	if (n == 0)
		return NULL;
	b = reeve_buf_alloc(rt, n);
	ck_assert_ptr_nonnull(b);
	p = reeve_buf_mut(b);
	for (size_t i = 0; i < n; i++)
		p[i] = content(i, seed);
	return b;
}

static bool
same(const uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != content(i, seed))
			return false;
	}
	return true;
}

void
rq_want(reeve_buf_t *b, size_t n, unsigned seed)
{
	if (n == 0) {
		ck_assert_ptr_null(b);
		return;
	}
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_eq(reeve_buf_len(b), n);
	ck_assert(same(reeve_buf_data(b), n, seed));
	reeve_buf_unref(b);
}

/* --- requests --- */

static void
asked(reeve_request_t *q)
{
	struct rq_ask *a = q->arg;

	a->ms = rvt_ms();
	(void)rvq_cell32_add(&a->calls, 1);
}

void
rq_ask_init(struct rq_ask *a, int64_t timeout_ms)
{
	memset(a, 0, sizeof(*a));
	a->q.fn = asked;
	a->q.arg = a;
	a->q.timeout_ms = timeout_ms;
}

void
rq_ask_start(struct rq_ask *a, struct rq_node *p, const char *peer, reeve_buf_t *body)
{
	reeve_request_async(p->r, peer, body, &a->q);
}

bool
rq_ask_is(const struct rq_ask *a)
{
	return rvq_cell32_get(&a->calls) > 0;
}

int
rq_ask_wait(struct rq_ask *a)
{
	RVT_UNTIL(rq_ask_is(a));
	ck_assert_uint_eq(rvq_cell32_get(&a->calls), 1);
	return a->q.rc;
}

void
rq_ask_want(struct rq_ask *a, int rc, int step)
{
	ck_assert_str_eq(reeve_errname(rq_ask_wait(a)), reeve_errname(rc));
	if (step >= 0)
		ck_assert_int_eq(a->q.step, step);
	ck_assert_ptr_null(a->q.response);
}

void
rq_done_fn(void *arg, int rc)
{
	struct rq_done *d = arg;

	d->rc = rc;
	(void)rvq_cell32_add(&d->calls, 1);
}

int
rq_done_wait(struct rq_done *d)
{
	RVT_UNTIL(rvq_cell32_get(&d->calls) > 0);
	ck_assert_uint_eq(rvq_cell32_get(&d->calls), 1);
	return d->rc;
}

reeve_inbound_t *
rq_next(struct rq_node *p)
{
	reeve_inbound_t *in = NULL;

	ck_assert_int_eq(reeve_inbound_next(p->r, &in, RVT_WAIT_MS), 0);
	return in;
}

/* --- an echo --- */

reeve_buf_t *
rq_echo_body(reeve_rt_t *rt, uint32_t n, uint8_t seed)
{
	reeve_buf_t *b = reeve_buf_alloc(rt, 5);
	uint8_t *p = b != NULL ? reeve_buf_mut(b) : NULL;

	if (p != NULL) {
		memcpy(p, &n, sizeof(n));
		p[4] = seed;
	}
	return b;
}

void
rq_echo(reeve_inbound_t *in, void *arg)
{
	struct rq_node *p = arg;
	const uint8_t *body = reeve_buf_data(reeve_inbound_body(in));
	reeve_buf_t *b;
	uint32_t n;
	uint8_t *to;

	memcpy(&n, body, sizeof(n));
	b = n > 0 ? reeve_buf_alloc(p->rt, n) : NULL;
	to = b != NULL ? reeve_buf_mut(b) : NULL;
	for (size_t i = 0; i < n && to != NULL; i++)
		to[i] = content(i, body[4]);
	if (n > 0 && b == NULL)
		reeve_refuse(in);
	else
		reeve_respond(in, b, NULL, NULL);
}

/* --- peers by hand --- */

static void
raw_cfg(reeve_cfg_t *cfg, reeve_upgrade_t *up, uint8_t bytes[32])
{
	reeve_cfg_init(cfg);
	upgrade(up, bytes, 99);
	cfg->upgrade = up;
}

static void
raw_rt(struct rq_raw *w)
{
	memset(w, 0, sizeof(*w));
	ck_assert_int_eq(reeve_rt_create(&w->rt, NULL), 0);
}

void
rq_raw_listen(struct rq_raw *w, struct rq_node *p)
{
	struct rv_pubkey key = {.type = RV_KEY_ED25519, .len = 32};
	struct rv_peer_id id;
	reeve_upgrade_t up;
	reeve_cfg_t cfg;
	uint8_t bytes[32];

	raw_rt(w);
	raw_cfg(&cfg, &up, bytes);
	ck_assert_int_eq(reeve_listen(&w->l, w->rt, "tcp://127.0.0.1:0", &cfg), 0);
	ck_assert_int_gt(reeve_listener_addr(w->l, w->addr, sizeof(w->addr)), 0);
	memcpy(key.v, bytes, 32);
	rv_peer_id_of(&id, &key);
	(void)rv_peer_id_text(&id, w->id);
	ck_assert_int_eq(reeve_node_add_address(p->n, w->id, w->addr), 0);
}

void
rq_raw_accept(struct rq_raw *w)
{
	ck_assert_int_eq(reeve_listener_accept(w->l, &w->c, RVT_WAIT_MS), 0);
	w->k = reeve_conn_ctl(w->c);
}

void
rq_raw_dial(struct rq_raw *w, struct rq_node *p)
{
	reeve_upgrade_t up;
	reeve_cfg_t cfg;
	uint8_t bytes[32];

	raw_rt(w);
	raw_cfg(&cfg, &up, bytes);
	ck_assert_int_eq(reeve_dial(&w->c, w->rt, p->addr, &cfg, RVT_WAIT_MS), 0);
	w->k = reeve_conn_ctl(w->c);
}

void
rq_raw_stop(struct rq_raw *w)
{
	reeve_conn_destroy(w->c);
	reeve_listener_destroy(w->l);
	reeve_rt_destroy(w->rt);
}

reeve_stream_t *
rq_raw_in_bare(struct rq_raw *w)
{
	reeve_stream_t *s = NULL;

	ck_assert_int_eq(reeve_accept(w->k, &s, RVT_WAIT_MS), 0);
	(void)reeve_deadline(s, REEVE_RD | REEVE_WR, RVT_WAIT_MS);
	return s;
}

reeve_stream_t *
rq_raw_in(struct rq_raw *w)
{
	reeve_stream_t *s = rq_raw_in_bare(w);

	ck_assert_int_eq(reeve_negotiate(s, REEVE_LISTENER, names, 1, RVT_WAIT_MS), 0);
	return s;
}

reeve_stream_t *
rq_raw_out(struct rq_raw *w)
{
	reeve_stream_t *s = NULL;

	ck_assert_int_eq(reeve_open(w->k, &s, RVT_WAIT_MS), 0);
	(void)reeve_deadline(s, REEVE_RD | REEVE_WR, RVT_WAIT_MS);
	ck_assert_int_eq(reeve_negotiate(s, REEVE_DIALER, names, 1, RVT_WAIT_MS), 0);
	return s;
}

void
rq_raw_bytes(reeve_stream_t *s, const void *p, size_t n)
{
	ck_assert_int_eq(reeve_write(s, p, n), (reeve_ssize)n);
}

void
rq_raw_put(struct rq_raw *w, reeve_stream_t *s, size_t n, unsigned seed)
{
	uint8_t head[RV_VARINT_MAX];

	rq_raw_bytes(s, head, rv_varint_put(head, n));
	if (n > 0)
		ck_assert_int_eq(reeve_write_buf(s, rq_buf(w->rt, n, seed)), (reeve_ssize)n);
}

void
rq_raw_get(reeve_stream_t *s, size_t n, unsigned seed)
{
	uint8_t head[RV_VARINT_MAX], want[RV_VARINT_MAX], part[4096];
	unsigned size = rv_varint_put(want, n);

	for (unsigned i = 0; i < size; i++)
		ck_assert_int_eq(reeve_read(s, head + i, 1), 1);
	ck_assert_mem_eq(head, want, size);
	for (size_t at = 0; at < n;) {
		reeve_ssize got = reeve_read(
		    s, part, n - at < sizeof(part) ? n - at : sizeof(part));

		ck_assert_int_gt(got, 0);
		for (reeve_ssize i = 0; i < got; i++) {
			if (part[i] != content(at + (size_t)i, seed))
				ck_abort_msg("byte %zu of %zu", at + (size_t)i, n);
		}
		at += (size_t)got;
	}
}

void
rq_raw_end(reeve_stream_t *s, int rc)
{
	uint8_t b;

	ck_assert_int_eq(reeve_read(s, &b, 1), rc);
}
