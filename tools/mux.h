/* mux.h - the options --mux, --plaintext, --noise, --key and --peer of the installed programs: which protocol carries the streams, and whether
 * it is agreed with the peer. */
#ifndef REEVE_TOOLS_MUX_H
#define REEVE_TOOLS_MUX_H

#include <stdbool.h>
#include <stdint.h>

#include <reeve/reeve.h>

#define MUX_MOST 4

/* Zeroes: yamux, nothing agreed.  Stays where it is once mux_cfg has been called. */
struct mux {
	bool plaintext, noise;
	unsigned n;                  /* names given */
	uint32_t set[MUX_MOST];      /* enum reeve_proto, in order of preference */
	const char *key_file, *peer; /* NULL: a new key, anybody */
	uint8_t key[32];
	reeve_key_t *identity;
	reeve_upgrade_t upgrade;
	reeve_reason_t why; /* what was not agreed: after a failed dial; else its id is "" */
};

/* A list of names with commas between them, as --mux takes it.  False: it is not one. */
bool mux_parse(struct mux *m, const char *list);

/* What is wrong with the options together, or NULL. */
const char *mux_misuse(const struct mux *m);
/* How it is agreed: "plaintext", "noise", or NULL: not at all. */
const char *mux_agreed(const struct mux *m);

/* The configuration of connections; borrows m.  A key file that is not there is made.  REEVE_ENOTSUP: built without
 * Noise; a system error. */
int mux_cfg(struct mux *m, reeve_cfg_t *cfg);
void mux_end(struct mux *m);

#endif
