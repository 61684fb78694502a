/* dial.h - dials, inside the node.  See dial.c. */
#ifndef REEVE_NODE_DIAL_H
#define REEVE_NODE_DIAL_H

#include "node/inner.h"

/* Under the lock: the dial with a peer (NULL: anybody) gets a waiter, and is begun if there is none.  addr NULL: the
 * remembered addresses.  want: us, the deadline asked for.  One reference for the caller.  REEVE_EINVAL (no address),
 * REEVE_ELIMIT, REEVE_ENOMEM. */
int rvn_dial_join(
    struct rvn_dial **d, reeve_node_t *n, struct rvn_peer *p, const char *addr, uint64_t want);
/* Under the lock: rvn_dial_wait will be called for it, after the unlock: op is answered when the dial ends. */
void rvn_dial_expect(struct rvn_dial *d);
void rvn_dial_wait(struct rvn_dial *d, reeve_op_t *op);
/* Whom it reached, once a waiter was answered by 0. */
const char *rvn_dial_who(const struct rvn_dial *d);
/* Something has changed that it must look at.  The lock is not held. */
void rvn_dial_look(struct rvn_dial *d);
void rvn_dial_ref(struct rvn_dial *d);
void rvn_dial_unref(struct rvn_dial *d);
/* The node closes: end every dial.  The lock is not held. */
void rvn_dials_end(reeve_node_t *n);

#endif
