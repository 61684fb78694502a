/* controller.h - the controller actor: opens that wait for the backlog, streams that wait to be accepted, pings, the
 * close protocol, and the count of those who use the connection.  It never holds up I/O: the connection goes on while
 * opens wait (a controller that stopped reading to wait for an acknowledgement would wait for ever). */
#ifndef REEVE_ACTORS_CONTROLLER_H
#define REEVE_ACTORS_CONTROLLER_H

#include <reeve/ctl.h>

#include "actors/messages.h"
#include "actors/op.h"
#include "actors/timer.h"

struct reeve_conn;

/* Bits of the bell. */
#define RVA_CTL_UNUSED 1u /* the last controller reference and stream handle are gone */
#define RVA_CTL_FREE   2u

struct reeve_ctl {
	struct rva_actor actor;
	struct rvq_bell bell;
	struct reeve_conn *conn; /* immutable */
	struct rvq_ref keep;     /* any thread: controller references and streams with handles */
	struct rvq_cell32 over;  /* any thread: whoever waited for the end has been told */
	/* owner */
	bool ended;
	bool opening;      /* an OPEN is with the connection */
	bool waiting_slot; /* the first open waits for RVA_CTL_SLOT */
	bool pinging;      /* pings_sent wait for the pong that is on its way */
	struct rva_oplist
	    opens; /* in order; the first is with the connection or waits for a slot */
	struct rva_oplist accepts;
	struct rva_oplist pings, pings_sent;
	struct rva_oplist readies;                     /* told when the handshake is over */
	struct rva_oplist closers;                     /* told when the connection has ended */
	struct reeve_stream *queue_head, **queue_tail; /* inbound, not accepted */
	unsigned nqueue;
	struct rva_timer timer; /* earliest deadline of the operations */
};

void rva_ctl_init(struct reeve_ctl *k, struct reeve_conn *c);
/* Message from the connection.  Owner. */
void rva_ctl_on(struct reeve_ctl *k, const struct rva_ctlmsg *m);
/* Any thread: one user of the connection more or less. */
void rva_ctl_keep(struct reeve_ctl *k);
void rva_ctl_unkeep(struct reeve_ctl *k);

#endif
