/* open.h - opens for protocols, inside the node.  See open.c. */
#ifndef REEVE_NODE_OPEN_H
#define REEVE_NODE_OPEN_H

#include "node/inner.h"

enum rvn_stage { RVN_AT_NONE, RVN_AT_HELD, RVN_AT_OPEN, RVN_AT_NEGOTIATE, RVN_AT_DONE };

/* Find a link or a dial for it, or fail it.  The lock is not held. */
void rvn_open_route(struct rvn_open *o);
/* Messages to a link and to the clerk (l NULL) that are an open's.  Owner. */
void rvn_open_on(reeve_node_t *n, struct rvn_link *l, struct rva_msg *m);
/* The link goes: begin what was held. */
void rvn_open_go(struct rvn_link *l);
/* Under the lock: those that wait for a dial go to l.  Returns their list, to be started after the unlock. */
struct rvn_open *rvn_open_move(struct rvn_peer *p, struct rvn_link *l);
void rvn_open_start_list(struct rvn_open *list);
/* Under the lock: take out those whose deadline has come (all: every one); *next gets the earliest that stays. */
struct rvn_open *rvn_open_take(struct rvn_peer *p, uint64_t now, bool all, uint64_t *next);
/* Complete each of a list that was taken out.  The lock is not held. */
void rvn_open_fail_list(struct rvn_open *list, int rc);

#endif
