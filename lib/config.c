/* config.c - defaults and limits: see config.h and the comments of reeve_cfg_t. */
#include <config.h>

#include "lib/config.h"
#include "lib/check.h"
#include "lib/upgrade/handshake.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define RV_RECV_MIN   (1u << 20)
#define RV_SPLIT_MAX  (1u << 20)
#define RV_UNREAD_MIN (16u << 10)

void
reeve_cfg_init_sized(reeve_cfg_t *cfg, size_t size)
{
	if (cfg == NULL || size < sizeof(cfg->size) || size > RV_CFG_SIZE_MAX)
		return;
	memset(cfg, 0, size);
	cfg->size = (uint32_t)size;
}

/* What an older or newer caller gave, as far as we know it. */
static int
copy_known(reeve_cfg_t *out, const reeve_cfg_t *cfg)
{
	const unsigned char *bytes = (const unsigned char *)cfg;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	if (cfg == NULL)
		return 0;
	if (cfg->size < sizeof(cfg->size) || cfg->size > RV_CFG_SIZE_MAX)
		return REEVE_EINVAL;
	for (i = sizeof(*out); i < cfg->size; i++)
		if (bytes[i] != 0)
			return REEVE_EINVAL;
	memcpy(out, cfg, cfg->size < sizeof(*out) ? cfg->size : sizeof(*out));
	return 0;
}

static void
default32(uint32_t *field, uint32_t value)
{
	if (*field == 0)
		*field = value;
}

static void
default64(uint64_t *field, uint64_t value)
{
	if (*field == 0)
		*field = value;
	else if (*field == REEVE_OFF)
		*field = UINT64_MAX;
}

static void
apply_defaults(reeve_cfg_t *c)
{
	bool mplex = c->proto == REEVE_MPLEX;

	c->size = sizeof(*c);
	default32(&c->proto, REEVE_YAMUX);
	default32(&c->max_in, mplex ? 128 : 8192);
	default32(&c->max_out, UINT32_MAX);
	default32(&c->accept_backlog, 256);
	default32(&c->max_unacked, 256);
	default32(&c->max_window, mplex ? 256u << 10 : 16u << 20);
	default32(&c->send_budget, 256u << 10);
	default32(&c->keepalive_ms, 30000);
	default32(&c->keepalive_timeout_ms, 10000);
	default32(&c->write_ms, 10000);
	default32(&c->linger_ms, 300000);
	default32(&c->churn_burst, 1000);
	default32(&c->churn_per_s, 500);
	default64(&c->grow, 896u << 20);
	default64(&c->max_recv, mplex ? 4u << 20 : 256u << 20);
	default32(&c->slow_ms, 5000);
	if (mplex)
		default32(&c->split, 8192);
}

/* One protocol's defaults and limits. */
static int
resolve(reeve_cfg_t *out, const reeve_cfg_t *cfg, uint32_t proto)
{
	reeve_cfg_t c = *cfg;

	c.proto = proto;
	apply_defaults(&c);
	if (c.proto != REEVE_YAMUX && c.proto != REEVE_MPLEX)
		return REEVE_EINVAL;
	if ((c.flags & ~(REEVE_CFG_LAZY_ACK | REEVE_CFG_SLOW_RESET)) != 0)
		return REEVE_EINVAL;
	if (c.max_window < (c.proto == REEVE_MPLEX ? RV_UNREAD_MIN : RV_WINDOW0) ||
	    c.max_recv < RV_RECV_MIN || c.split > RV_SPLIT_MAX)
		return REEVE_EINVAL;
	*out = c;
	return 0;
}

int
rv_cfg_resolve(reeve_cfg_t *out, const reeve_cfg_t *cfg)
{
	struct rv_upgrade_cfg up;
	reeve_cfg_t c, one;
	int rc;

	REEVE_REQUIRE(copy_known(&c, cfg) == 0, REEVE_EINVAL);
	if (c.upgrade == NULL)
		return resolve(out, &c, c.proto);
	rc = rv_upgrade_resolve(&up, c.upgrade);
	REEVE_REQUIRE(rc == 0, rc);
	for (uint32_t i = up.nmuxers; i-- > 0;)
		REEVE_REQUIRE(resolve(&one, &c, up.muxers[i]) == 0, REEVE_EINVAL);
	*out = one;
	return 0;
}
