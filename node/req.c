/* req.c - installing a request-response protocol, and its end. */
#include <config.h>

#include "node/req.h"

#include <string.h>
#include <time.h>

#include "lib/alloc.h"
#include "lib/buf/pool.h"
#include "lib/check.h"
#include "lib/config.h"

#define TIMEOUT_MS   5000u
#define MAX_REQUEST  (UINT64_C(1) << 20)
#define MAX_RESPONSE (UINT64_C(16) << 20)
#define MAX_INBOUND  1000u
#define MAX_HELD     (UINT64_C(64) << 20)

void
reeve_reqs_cfg_init_sized(reeve_reqs_cfg_t *cfg, size_t size)
{
	if (cfg == NULL || size < sizeof(cfg->size))
		return;
	memset(cfg, 0, size);
	cfg->size = (uint32_t)size;
}

static int
resolve(reeve_reqs_cfg_t *to, const reeve_reqs_cfg_t *from)
{
	REEVE_REQUIRE(
	    from != NULL && from->size >= offsetof(reeve_reqs_cfg_t, timeout_ms), REEVE_EINVAL);
	REEVE_REQUIRE(from->size <= RV_CFG_SIZE_MAX, REEVE_EINVAL);
	for (size_t i = sizeof(*to); i < from->size; i++)
		REEVE_REQUIRE(((const char *)from)[i] == 0, REEVE_EINVAL);
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	REEVE_REQUIRE((to->flags & ~(REEVE_REQS_LAZY | REEVE_REQS_NO_SHUT)) == 0, REEVE_EINVAL);
	REEVE_REQUIRE(to->names != NULL && to->nnames > 0, REEVE_EINVAL);
	if (to->timeout_ms == 0)
		to->timeout_ms = TIMEOUT_MS;
	if (to->max_request == 0)
		to->max_request = MAX_REQUEST;
	if (to->max_response == 0)
		to->max_response = MAX_RESPONSE;
	if (to->max_inbound == 0)
		to->max_inbound = MAX_INBOUND;
	if (to->max_inbound_peer == 0)
		to->max_inbound_peer = to->max_inbound;
	if (to->max_held == 0)
		to->max_held = MAX_HELD;
	REEVE_REQUIRE(
	    to->max_request <= RV_BUF_MAX && to->max_response <= RV_BUF_MAX, REEVE_EINVAL);
	return 0;
}

uint64_t
rvn_reqs_until(const reeve_reqs_t *r, uint64_t now)
{
	return r->cfg.timeout_ms == REEVE_OFF ? UINT64_MAX : rv_deadline_us(now, r->cfg.timeout_ms);
}

static void
reqs_close(struct rvn_proto *p)
{
	reeve_reqs_t *r = (reeve_reqs_t *)p;

	rvn_req_cancel_all(r);
	rvn_in_close_all(r);
}

static void
destroy(reeve_reqs_t *r)
{
	struct rv_arena *ar = r->arena;

	for (unsigned i = 0; i < RVN_REQ_SHARDS; i++)
		pthread_mutex_destroy(&r->shard[i].lock);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->ready);
	rv_free(ar, r, sizeof(*r));
}

static void
reqs_free(struct rvn_proto *p)
{
	destroy((reeve_reqs_t *)p);
}

static const struct rvn_proto_ops reqs_ops = {
    .inbound = rvn_in_arrive, .close = reqs_close, .free = reqs_free};

static int
init_locks(reeve_reqs_t *r)
{
	pthread_condattr_t attr;

	if (pthread_condattr_init(&attr) != 0)
		return REEVE_ENOMEM;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->ready, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&r->lock, NULL);
	for (unsigned i = 0; i < RVN_REQ_SHARDS; i++)
		pthread_mutex_init(&r->shard[i].lock, NULL);
	return 0;
}

int
reeve_reqs_install(reeve_reqs_t **out, reeve_node_t *n, const reeve_reqs_cfg_t *ucfg)
{
	reeve_reqs_cfg_t cfg;
	reeve_reqs_t *r;
	reeve_rt_t *rt;
	int rc;

	REEVE_REQUIRE(out != NULL && n != NULL, REEVE_EINVAL);
	rc = resolve(&cfg, ucfg);
	REEVE_REQUIRE(rc == 0, rc);
	rt = rvn_rt(n);
	r = rv_zalloc(rt->arena, sizeof(*r));
	REEVE_REQUIRE(r != NULL, REEVE_ENOMEM);
	r->rt = rt;
	r->arena = rt->arena;
	r->gauges = rvn_gauges(n);
	r->cfg = cfg;
	r->proto.ops = &reqs_ops;
	rc = init_locks(r);
	if (rc < 0) {
		rv_free(r->arena, r, sizeof(*r));
		return rc;
	}
	rc = rvn_proto_install(n, &r->proto, cfg.names, cfg.nnames);
	if (rc < 0) {
		destroy(r);
		return rc;
	}
	*out = r;
	return 0;
}
