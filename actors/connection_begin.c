/* connection_begin.c - making a connection: its engine, or its handshake first.  Any thread; from the START of its bell on
 * everything belongs to its worker. */
#include <config.h>

#include "actors/connection.h"

#include <string.h>

#include "actors/substream.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"
#include "lib/config.h"
#include "lib/upgrade/handshake.h"

#define HELD_PER_UNREAD 4u /* mplex */

static struct rv_engine_cfg
engine_cfg(struct reeve_conn *c)
{
	return (struct rv_engine_cfg){
	    .user = c->cfg,
	    .role = c->role,
	    .record_size = sizeof(struct reeve_stream),
	    .arena = c->arena,
	    .budget = c->budget,
	    .sink = {rva_conn_hooks.emit, rva_conn_hooks.room, c},
	    .now = rv_clock_us(),
	};
}

static void
use_engine(struct reeve_conn *c, struct rv_engine *e)
{
	c->engine = e;
	rvq_cellptr_put(&c->stats, &e->stats);
}

/* What may be held.  Bytes pin more memory than they are, and the engine of mplex has a bound of its own on what is
 * unread, which has to be met first: it knows whom to reset. */
static uint64_t
held_limit(const reeve_cfg_t *cfg)
{
	uint64_t max = cfg->max_recv;

	if (cfg->proto != REEVE_MPLEX)
		return max;
	return max > UINT64_MAX / HELD_PER_UNREAD ? UINT64_MAX : HELD_PER_UNREAD * max;
}

int
rva_conn_make_engine(struct reeve_conn *c)
{
	struct rv_engine_cfg cfg = engine_cfg(c);
	struct rv_engine *e;
	int rc = rv_engine_create(&e, &cfg);

	REEVE_REQUIRE(rc == 0, rc);
	c->budget->limit = held_limit(&c->cfg); /* nothing was held during a handshake */
	use_engine(c, e);
	rvq_cell32_put(&c->proto, c->cfg.proto);
	return 0;
}

static int
make_handshake(struct reeve_conn *c, const reeve_upgrade_t *up)
{
	struct rv_engine_cfg cfg = engine_cfg(c);
	struct rv_upgrade_cfg resolved;
	int rc = rv_upgrade_resolve(&resolved, up);

	REEVE_REQUIRE(rc == 0, rc);
	rc = rv_handshake_create(&c->handshake, &cfg, &resolved);
	REEVE_REQUIRE(rc == 0, rc);
	use_engine(c, c->handshake);
	if (resolved.security == REEVE_PLAINTEXT)
		rv_log(&c->rt->log, REEVE_LOG_WARN, "REEVE-UP-PLAINTEXT",
		    "plaintext: nothing is encrypted and no identity is proven");
	return 0;
}

static void
init_rings(struct reeve_conn *c)
{
	rvq_ring_init(&c->down, RVA_DOWN);
	rvq_ring_init(&c->up, RVA_UP);
	rvq_ring_init(&c->to_ctl, RVA_CTL);
	rvq_ring_init(&c->from_ctl, RVA_CTL);
}

int
rva_conn_create(struct reeve_conn **out, const struct rva_conn_args *args)
{
	struct reeve_conn *c;
	reeve_cfg_t cfg;
	int rc;

	REEVE_REQUIRE(args->role == REEVE_DIALER || args->role == REEVE_LISTENER, REEVE_EINVAL);
	rc = rv_cfg_resolve(&cfg, args->cfg);
	REEVE_REQUIRE(rc == 0, rc);
	c = rv_alloc(args->rt->arena, sizeof(*c), 64);
	REEVE_REQUIRE(c != NULL, REEVE_ENOMEM);
	memset(c, 0, sizeof(*c));
	c->rt = args->rt;
	c->arena = args->rt->arena;
	c->w = args->home != NULL ? args->home : rva_rt_place(args->rt);
	c->cfg = cfg;
	c->role = args->role;
	c->gather_limit = RVA_GATHER_FIRST;
	c->close_deadline = c->stall_deadline = c->linger_deadline = UINT64_MAX;
	c->timer.fn = rva_conn_hooks.timer;
	c->source.ready = rva_conn_hooks.ready;
	rva_actor_init(&c->actor, c->w, &rva_conn_ops);
	rvq_bell_init(&c->bell);
	rvq_ref_init(&c->refs, 2); /* the runtime's and the handles' */
	init_rings(c);
	rva_ctl_init(&c->ctl, c);
	if (args->cfg != NULL)
		memcpy(&c->raw, args->cfg,
		    args->cfg->size < sizeof(c->raw) ? args->cfg->size : sizeof(c->raw));
	c->budget = rv_budget_create(c->arena, held_limit(&c->cfg), args->rt->budget);
	rc = c->budget == NULL    ? REEVE_ENOMEM
	    : cfg.upgrade != NULL ? make_handshake(c, cfg.upgrade)
				  : rva_conn_make_engine(c);
	c->cfg.upgrade = c->raw.upgrade = NULL; /* the caller's */
	if (rc == 0)
		rc = rva_rt_add_conn(args->rt, c);
	if (rc < 0) {
		rva_conn_ops.free(&c->actor);
		return rc;
	}
	c->transport = args->transport;
	c->filter = args->filter;
	c->foreign = c->transport->foreign != 0;
	if (c->foreign)
		rvq_gauge_add(&c->w->custom, 1);
	if (args->unread != NULL) {
		c->unread = *args->unread;
		rv_chain_init(args->unread);
	}
	if (c->transport->ops->attach != NULL)
		c->transport->ops->attach(c->transport, &c->ctl);
	*out = c;
	rva_ring(&c->actor, &c->bell, RVA_CONN_START);
	return 0;
}
