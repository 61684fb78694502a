/* upgrader.c - the entry where connections begin, the end of their handshake, and transports made by the application. */
#include <config.h>

#include "actors/upgrader.h"

#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/config.h"
#include "lib/upgrade/handshake.h"

int
rva_upgrade(struct reeve_conn **c, const struct rva_upgrade *up)
{
	struct rva_conn_args args = {
	    .rt = up->rt,
	    .home = up->home,
	    .transport = up->transport,
	    .role = up->role,
	    .cfg = up->cfg,
	    .unread = up->unread,
	    .filter = up->filter,
	};

	return rva_conn_create(c, &args);
}

bool
rva_conn_upgraded(struct reeve_conn *c)
{
	struct rv_engine *h = c->handshake;
	reeve_cfg_t raw = c->raw;
	int rc;

	raw.proto = rv_handshake_proto(h);
	rc = rv_cfg_resolve(&c->cfg, &raw);
	if (rc == 0)
		rc = rva_conn_make_engine(c);
	if (rc < 0) {
		rva_conn_end(c, rc, REEVE_BY_US, "REEVE-CONN-0012");
		return false;
	}
	if (c->state == RVA_CONN_CLOSING)
		c->engine->ops->closing(c->engine);
	if (rvq_cell64_get(&c->goaway) != 0)
		c->engine->ops->goaway(c->engine, (uint32_t)(rvq_cell64_get(&c->goaway) - 1));
	rva_conn_ready(c);
	return true;
}

struct custom {
	struct rv_transport t;
	reeve_transport_t u;
	struct rv_arena *arena;
};

static struct custom *
custom_of(struct rv_transport *t)
{
	return rva_container(t, struct custom, t);
}

static reeve_ssize
custom_readv(struct rv_transport *t, const struct iovec *v, int n)
{
	return custom_of(t)->u.readv(custom_of(t)->u.ctx, v, n);
}

static reeve_ssize
custom_writev(struct rv_transport *t, const struct iovec *v, int n)
{
	return custom_of(t)->u.writev(custom_of(t)->u.ctx, v, n);
}

static int
custom_fd(struct rv_transport *t)
{
	struct custom *c = custom_of(t);

	return c->u.fd != NULL ? c->u.fd(c->u.ctx) : -1;
}

static void
custom_attach(struct rv_transport *t, reeve_ctl_t *k)
{
	struct custom *c = custom_of(t);

	if (c->u.attach != NULL)
		c->u.attach(c->u.ctx, k);
}

static void
custom_close(struct rv_transport *t)
{
	struct custom *c = custom_of(t);

	if (c->u.close != NULL)
		c->u.close(c->u.ctx);
	rv_free(c->arena, c, sizeof(*c));
}

static const struct rv_transport_ops custom_ops = {
    .readv = custom_readv,
    .writev = custom_writev,
    .fd = custom_fd,
    .attach = custom_attach,
    .close = custom_close,
};

int
rva_custom_transport(struct rv_transport **t, struct rv_arena *ar, const reeve_transport_t *u)
{
	struct custom *c = rv_zalloc(ar, sizeof(*c));

	REEVE_REQUIRE(c != NULL, REEVE_ENOMEM);
	c->t.ops = &custom_ops;
	c->t.foreign = 1;
	c->u = *u;
	c->arena = ar;
	*t = &c->t;
	return 0;
}

int
reeve_conn_open(
    reeve_conn_t **c, reeve_rt_t *rt, const reeve_transport_t *t, int role, const reeve_cfg_t *cfg)
{
	struct rva_upgrade up = {.rt = rt, .role = role, .cfg = cfg};
	int rc;

	REEVE_REQUIRE(c != NULL && rt != NULL && t != NULL && t->readv != NULL && t->writev != NULL,
	    REEVE_EINVAL);
	rc = rva_rt_alive(rt);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rva_custom_transport(&up.transport, rt->arena, t);
	REEVE_REQUIRE(rc == 0, rc);
	rc = rva_upgrade(c, &up);
	if (rc < 0)
		rv_free(rt->arena, custom_of(up.transport), sizeof(struct custom));
	return rc;
}
