/* half.c - the transition tables of half.h. */
#include <config.h>

#include "lib/engine/half.h"

#define T(ev, to, act) [RV_TXE_##ev] = {RV_TX_##to, RV_##act}
#define R(ev, to, act) [RV_RXE_##ev] = {RV_RX_##to, RV_##act}

/* clang-format off */
const struct rv_half_step rv_tx_table[RV_TX_NSTATES][RV_TX_NEVENTS] = {
	[RV_TX_OPEN] = {
		T(SEND,     OPEN,  QUEUE),
		T(SHUT,     SHUT,  OWE_FIN),
		T(DROP,     KILL,  OWE_RST),
		T(RESET,    RESET, CLEAR),
		T(RST,      RESET, CLEAR) },
	[RV_TX_SHUT] = {
		T(SEND,     SHUT,  DISCARD),
		T(SHUT,     SHUT,  NONE),
		T(DROP,     SHUT,  OWE_RST),
		T(SENT_FIN, FIN,   NONE),
		T(RESET,    RESET, CLEAR),
		T(RST,      RESET, CLEAR) },
	[RV_TX_KILL] = {
		T(SEND,     KILL,  DISCARD),
		T(SHUT,     KILL,  NONE),
		T(DROP,     KILL,  NONE),
		T(SENT_RST, RESET, NONE),
		T(RESET,    RESET, CLEAR),
		T(RST,      RESET, CLEAR) },
	[RV_TX_FIN] = {
		T(SEND,     FIN,   DISCARD),
		T(SHUT,     FIN,   NONE),
		T(DROP,     FIN,   OWE_RST),
		T(SENT_RST, RESET, NONE),
		T(RESET,    RESET, NONE),
		T(RST,      RESET, NONE) },
	[RV_TX_RESET] = {
		T(SEND,     RESET, DISCARD),
		T(SHUT,     RESET, NONE),
		T(DROP,     RESET, NONE),
		T(SENT_RST, RESET, NONE),
		T(RESET,    RESET, NONE),
		T(RST,      RESET, NONE) },
};

const struct rv_half_step rv_rx_table[RV_RX_NSTATES][RV_RX_NEVENTS] = {
	[RV_RX_OPEN] = {
		R(DATA,  OPEN,    DELIVER),
		R(FIN,   FIN,     TELL),
		R(RST,   RESET,   TELL),
		R(STOP,  STOPPED, NONE),
		R(CLOSE, LINGER,  NONE),
		R(RESET, RESET,   NONE) },
	[RV_RX_STOPPED] = {
		R(DATA,  STOPPED, DISCARD),
		R(FIN,   FIN,     TELL),
		R(RST,   RESET,   TELL),
		R(STOP,  STOPPED, NONE),
		R(CLOSE, LINGER,  NONE),
		R(RESET, RESET,   NONE) },
	[RV_RX_LINGER] = {
		R(DATA,  LINGER,  OWE_RST),
		R(FIN,   FIN,     NONE),
		R(RST,   RESET,   NONE),
		R(STOP,  LINGER,  NONE),
		R(CLOSE, LINGER,  NONE),
		R(RESET, RESET,   NONE) },
	[RV_RX_FIN] = {
		R(DATA,  FIN,     DISCARD),
		R(FIN,   FIN,     NONE),
		R(RST,   RESET,   TELL),
		R(STOP,  FIN,     NONE),
		R(CLOSE, FIN,     NONE),
		R(RESET, RESET,   NONE) },
	[RV_RX_RESET] = {
		R(DATA,  RESET,   DISCARD),
		R(FIN,   RESET,   NONE),
		R(RST,   RESET,   NONE),
		R(STOP,  RESET,   NONE),
		R(CLOSE, RESET,   NONE),
		R(RESET, RESET,   NONE) },
};
/* clang-format on */

#define X(n) #n,
const char *const rv_tx_state_name[RV_TX_NSTATES] = {RV_TX_STATES(X)};
const char *const rv_tx_event_name[RV_TX_NEVENTS] = {RV_TX_EVENTS(X)};
const char *const rv_rx_state_name[RV_RX_NSTATES] = {RV_RX_STATES(X)};
const char *const rv_rx_event_name[RV_RX_NEVENTS] = {RV_RX_EVENTS(X)};
#undef X
