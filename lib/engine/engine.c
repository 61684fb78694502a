/* engine.c - which protocol's engine. */
#include <config.h>

#include "lib/engine/engine.h"

int
rv_engine_create(struct rv_engine **e, const struct rv_engine_cfg *cfg)
{
	switch (cfg->user.proto) {
	case REEVE_YAMUX:
		return rv_yamux_create(e, cfg);
	case REEVE_MPLEX:
		return rv_mplex_create(e, cfg);
	default:
		return REEVE_EINVAL;
	}
}
