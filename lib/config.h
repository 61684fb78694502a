/* config.h - defaults and limits of a connection's configuration, in one place. */
#ifndef REEVE_LIB_CONFIG_H
#define REEVE_LIB_CONFIG_H

#include <reeve/conn.h>

#define RV_WINDOW0 \
	262144u /* initial receive window of a stream: the protocol's, not configurable */

/* Copy min(cfg->size, sizeof) of cfg (NULL: nothing), apply defaults to zeroes, check.  Any thread.
 *
 * REEVE_EINVAL: a size that is too small to hold the size field or above RV_CFG_SIZE_MAX, non-zero
 * bytes behind the fields we know, an unknown protocol or flag, a bad upgrade, or a contradiction
 * (max_window below RV_WINDOW0 or for mplex 16 KiB, max_recv below 1 MiB, split above 1 MiB).
 * *out is written on success only.
 *
 * With an upgrade every protocol that it may choose is checked; proto is the first of them.
 *
 * Afterwards no field is 0 but flags, and split, where 0 means adaptive.  REEVE_OFF stays
 * REEVE_OFF for timers, which is UINT32_MAX for the limits of 32 bits, and becomes UINT64_MAX
 * for those of 64. */
int rv_cfg_resolve(reeve_cfg_t *out, const reeve_cfg_t *cfg);

#define RV_CFG_SIZE_MAX 4096u

#endif
