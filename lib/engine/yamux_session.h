/* yamux_session.h - the yamux engine's own state, shared by its three files: session (requests
 * and time), rx, tx.  What it has in common with mplex is in mux.h.
 *
 * Owner: whoever drives the engine. */
#ifndef REEVE_LIB_ENGINE_YAMUX_SESSION_H
#define REEVE_LIB_ENGINE_YAMUX_SESSION_H

#include "lib/engine/mux.h"
#include "lib/engine/rtt.h"
#include "lib/engine/window.h"
#include "lib/engine/yamux_frame.h"
#include "lib/engine/yamux_msg.h"

#define RV_Y_ALONE   65536u /* the largest body of a stream that is alone */
#define RV_Y_HELD_US 20000u /* withheld credit is looked at so often */
#define RV_Y_PING_DROP_US \
	10000000u /* a pong is waited for so long when the keepalive has no timeout */

struct rv_yamux {
	struct rv_mux m; /* first */

	/* in */
	uint32_t hdr_have;
	uint8_t hdr[RV_YHDR];
	uint64_t last_rx;

	/* windows */
	struct rv_winpool win;
	uint64_t held_at;

	/* owed by the session */
	struct rv_pongs pongs;
	struct rv_rtt rtt;
	uint64_t rtt_due;
	bool ping_owed, ping_asked, pong_due;
	bool
	    ping_again; /* asked while one was in flight: that one is no answer, another follows it */
	uint32_t pong_us;
	bool goaway_owed, goaway_sent;
	uint32_t goaway_code;
	bool away, away_due; /* the peer takes no new streams; not told yet */
	uint32_t away_code;
};

/* The error of msg, after noting it as the reason (the first one stays) and queueing the go-away
 * that it asks for. */
int rv_yamux_fail(struct rv_yamux *y, enum rv_ymsg msg);
/* The first id of a stream opened next: for tests of the end of the id space. */
void rv_yamux_set_next_id(struct rv_engine *e, uint64_t id);

/* rx.c */
reeve_ssize rv_yamux_feed(
    struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now);
void rv_yamux_alive(struct rv_engine *e, uint64_t now);
int rv_yamux_feed_end(struct rv_engine *e);
bool rv_yamux_notify(struct rv_engine *e);

/* tx.c */
size_t rv_yamux_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now);
bool rv_yamux_has_output(const struct rv_engine *e);
void rv_yamux_owed(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st);
uint32_t rv_yamux_frame(
    struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t max, uint32_t turn);

/* Bytes of bodies so far, both ways. */
static inline uint64_t
rv_yamux_moved(const struct rv_yamux *y)
{
	return rvq_counter_get(&y->m.e.stats.bytes_in) + rvq_counter_get(&y->m.e.stats.bytes_out);
}

#endif
