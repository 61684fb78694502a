/* config.h - defaults and limits of a connection's configuration, in one place. */
#ifndef REEVE_LIB_CONFIG_H
#define REEVE_LIB_CONFIG_H

#include <reeve/conn.h>

#define RV_WINDOW0 262144u /* initial receive window of a stream: the protocol's, not configurable */

/* Copy min(cfg->size, sizeof) of cfg (NULL: nothing), apply defaults to zeroes, check.  REEVE_EINVAL: a size that is too
 * small to hold the size field, unknown non-zero fields behind ours, or a contradiction (max_window below 256 KiB, max_recv below
 * 1 MiB, split above 1 MiB); REEVE_ENOTSUP: mplex.  REEVE_OFF stays REEVE_OFF for timers and becomes UINT32_MAX for limits. */
int rv_cfg_resolve(reeve_cfg_t *out, const reeve_cfg_t *cfg);

#endif
