/* notif_state.h - the life of a notification stream with one peer, as a table [state][event] -> {next state, answer,
 * actions}.  Pure: no pointers, no clock, no locks.
 *
 * A stream has two halves, each a substream of its own.  OUT is ours: opened, negotiated, our handshake sent and answered.
 * IN is the peer's: its handshake read, validated, answered by ours.  When both are open they are joined (a session,
 * notif_session.c), and the halves are free for what comes behind it.  The names of states say how far both are:
 *
 *	OPENING_*  we asked, our half is on its way      WAITING_*  we asked, our half is open
 *	*_READ     the peer's handshake is being read    *_VALID    the application is asked
 *	*_REPLY    our answer is being sent              *_IN       the peer's half is open
 *	ACCEPT_*   the peer asked and was accepted       *_HELD     a new substream of the peer waits for the old end
 *
 * What litep2p calls ValidationPending is not a state here: a ticket names the one question that it answers, so a late
 * answer is told that it is stale, and the peer may ask again meanwhile. */
#ifndef REEVE_NODE_NOTIF_STATE_H
#define REEVE_NODE_NOTIF_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define RVN_NS_STATES(X) \
	X(CLOSED)        \
	X(OPENING)       \
	X(OPENING_READ)  \
	X(OPENING_VALID) \
	X(OPENING_REPLY) \
	X(OPENING_IN)    \
	X(WAITING)       \
	X(WAITING_READ)  \
	X(WAITING_VALID) \
	X(WAITING_REPLY) \
	X(READ)          \
	X(VALID)         \
	X(ACCEPT_REPLY) X(ACCEPT_IN) X(ACCEPT_OUT) X(OPEN) X(OPEN_HELD) X(CLOSING) X(CLOSING_HELD)

#define RVN_NE_EVENTS(X)                                                                   \
	X(OPEN)   /* the application asks for a stream */                                  \
	X(CLOSE)  /* the application ends it */                                            \
	X(ACCEPT) /* the application answers the ticket in force */                        \
	X(REJECT)                                                                          \
	X(OUT_OK)   /* our half is open */                                                 \
	X(OUT_FAIL) /* it will not be, or is no more */                                    \
	X(INBOUND)  /* the peer opened a substream */                                      \
	X(IN_HS)    /* its handshake is there; the application has to be asked */          \
	X(IN_AUTO)  /* its handshake is there; nobody has to be asked */                   \
	X(IN_SENT)  /* our answer was sent */                                              \
	X(IN_FAIL)  /* the peer's half has ended, or the handshake did not come in time */ \
	X(WAITED)   /* handshake_ms after OUT_OK */                                        \
	X(ENDED)    /* the session has ended */                                            \
	X(STOP)     /* the node closes */

enum rvn_ns_state {
#define X(n) RVN_NS_##n,
	RVN_NS_STATES(X)
#undef X
	    RVN_NS_COUNT
};
enum rvn_ne_event {
#define X(n) RVN_NE_##n,
	RVN_NE_EVENTS(X)
#undef X
	    RVN_NE_COUNT
};

/* Actions; several of one step are taken in this order. */
#define RVN_NA_FAIL      0x001u /* FAILED, where somebody was promised an outcome */
#define RVN_NA_OVER      0x002u /* CLOSED */
#define RVN_NA_OUT_END   0x004u /* our half: cancel or close it */
#define RVN_NA_IN_END    0x008u /* the peer's half: close it */
#define RVN_NA_NEW_END   0x010u /* the substream that came: close it */
#define RVN_NA_OUT_START 0x020u /* open our half */
#define RVN_NA_IN_START  0x040u /* the substream that came is the peer's half: read the handshake */
#define RVN_NA_IN_AGAIN  0x080u /* the held one is the peer's half from now on */
#define RVN_NA_ASK       0x100u /* VALIDATE with a new ticket */
#define RVN_NA_REPLY     0x200u /* answer the peer's handshake */
#define RVN_NA_JOIN      0x400u /* both are open: OPENED, the session begins */
#define RVN_NA_PART      0x800u /* tell the session to end */

/* Answers: 0; REEVE_EBUSY, REEVE_ENOTCONN, REEVE_ESTALE to the application; RVN_NS_NEVER: what the event tells of does
 * not exist in that state, so it cannot come (nothing is done). */
#define RVN_NS_NEVER 1

struct rvn_nstep {
	uint8_t next;
	int8_t rc;
	uint16_t act;
};
extern const struct rvn_nstep rvn_nstate_table[RVN_NS_COUNT][RVN_NE_COUNT];
extern const char *const rvn_nstate_name[RVN_NS_COUNT], *const rvn_nevent_name[RVN_NE_COUNT];

struct rvn_nmach {
	uint8_t state; /* enum rvn_ns_state */
	bool owed; /* OPENED or FAILED was promised: by an open, or by an answer that accepted */
	uint64_t ticket; /* of the question in force, 0: none */
};

/* Take the step.  Answers as above; the actions go to *act.  ticket: of an ACCEPT or REJECT, which is stale unless it is
 * the one in force; of an event that may ask: the new one. */
int rvn_nmach_step(struct rvn_nmach *m, enum rvn_ne_event ev, uint64_t ticket, unsigned *act);

/* Did we ask for the stream (also when both did)? */
bool rvn_nstate_asked(unsigned state);

#endif
