/* mux.h - the options --mux and --plaintext of the installed programs: which protocol carries the streams, and whether
 * it is agreed with the peer. */
#ifndef REEVE_TOOLS_MUX_H
#define REEVE_TOOLS_MUX_H

#include <stdbool.h>
#include <stdint.h>

#include <reeve/reeve.h>

#define MUX_MOST 4

/* Zeroes: yamux, nothing agreed.  Stays where it is once mux_cfg has been called. */
struct mux {
	bool plaintext;
	unsigned n;             /* names given */
	uint32_t set[MUX_MOST]; /* enum reeve_proto, in order of preference */
	uint8_t key[32];
	reeve_upgrade_t upgrade;
	reeve_reason_t why; /* what was not agreed: after a failed dial; else its id is "" */
};

/* A list of names with commas between them, as --mux takes it.  False: it is not one. */
bool mux_parse(struct mux *m, const char *list);

/* The configuration of connections; borrows m.  REEVE_EINVAL: a list, and no peer to choose from it; a system error. */
int mux_cfg(struct mux *m, reeve_cfg_t *cfg);

#endif
