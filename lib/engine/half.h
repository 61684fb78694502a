/* half.h - the two halves of a stream as tables [state][event] -> {next state, action}.
 *
 * The halves are separate machines (a product of the two would have 25 states); what is owed and
 * who opened the stream are flags of the record.  States, events, names and the exhaustive test
 * come from the lists below.  A cell that is not listed is RV_BAD: the engine never lets that
 * event happen in that state.  Source: the stream record of yamux (SYN / ACK apart), with close
 * and drop as verbs of their own. */
#ifndef REEVE_LIB_ENGINE_HALF_H
#define REEVE_LIB_ENGINE_HALF_H

#include "lib/check.h"
#include "lib/engine/stream.h"

/* Our direction.  SHUT: FIN goes behind what is queued.  KILL: a reset does. */
#define RV_TX_STATES(X) X(OPEN) X(SHUT) X(KILL) X(FIN) X(RESET)
#define RV_TX_EVENTS(X)                                             \
	X(SEND)     /* the application queues bytes */              \
	X(SHUT)     /* no more bytes from the application */        \
	X(DROP)     /* the application is gone: end with a reset */ \
	X(SENT_FIN) /* a frame with FIN is in a gather */           \
	X(SENT_RST) /* a frame with RST is in a gather */           \
	X(RESET)    /* reset by the application or by a timer */    \
	X(RST)      /* reset by the peer */

/* The peer's direction.  STOPPED: nobody reads, we go on writing.  LINGER: nobody reads or
 * writes. */
#define RV_RX_STATES(X) X(OPEN) X(STOPPED) X(LINGER) X(FIN) X(RESET)
#define RV_RX_EVENTS(X)                                                 \
	X(DATA)  /* bytes of a body */                                  \
	X(FIN)   /* the peer has ended its direction */                 \
	X(RST)   /* reset by the peer */                                \
	X(STOP)  /* the application reads no more */                    \
	X(CLOSE) /* the application has closed or dropped the stream */ \
	X(RESET) /* we have reset it */

enum rv_tx_state {
#define X(n) RV_TX_##n,
	RV_TX_STATES(X)
#undef X
	    RV_TX_NSTATES
};
enum rv_tx_event {
#define X(n) RV_TXE_##n,
	RV_TX_EVENTS(X)
#undef X
	    RV_TX_NEVENTS
};
enum rv_rx_state {
#define X(n) RV_RX_##n,
	RV_RX_STATES(X)
#undef X
	    RV_RX_NSTATES
};
enum rv_rx_event {
#define X(n) RV_RXE_##n,
	RV_RX_EVENTS(X)
#undef X
	    RV_RX_NEVENTS
};

enum rv_half_action {
	RV_BAD,     /* cannot happen */
	RV_NONE,    /* nothing more to do */
	RV_QUEUE,   /* tx: keep the bytes */
	RV_DISCARD, /* tx, rx: the bytes go nowhere */
	RV_OWE_FIN, /* tx: FIN behind what is queued */
	RV_OWE_RST, /* tx, rx: a reset behind what is queued */
	RV_CLEAR,   /* tx: let go of what is queued */
	RV_DELIVER, /* rx: hand the bytes over */
	RV_TELL     /* rx: the application is told */
};

struct rv_half_step {
	uint8_t next, action;
};

extern const struct rv_half_step rv_tx_table[RV_TX_NSTATES][RV_TX_NEVENTS];
extern const struct rv_half_step rv_rx_table[RV_RX_NSTATES][RV_RX_NEVENTS];
extern const char *const rv_tx_state_name[RV_TX_NSTATES], *const rv_tx_event_name[RV_TX_NEVENTS];
extern const char *const rv_rx_state_name[RV_RX_NSTATES], *const rv_rx_event_name[RV_RX_NEVENTS];

/* Take the step; answers the action (enum rv_half_action). */
static inline unsigned
rv_tx_step(struct rv_stream *st, enum rv_tx_event ev)
{
	const struct rv_half_step *s = &rv_tx_table[st->tx][ev];

	REEVE_ASSERT(s->action != RV_BAD);
	st->tx = s->next;
	return s->action;
}

static inline unsigned
rv_rx_step(struct rv_stream *st, enum rv_rx_event ev)
{
	const struct rv_half_step *s = &rv_rx_table[st->rx][ev];

	REEVE_ASSERT(s->action != RV_BAD);
	st->rx = s->next;
	return s->action;
}

#endif
