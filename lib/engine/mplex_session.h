/* mplex_session.h - the mplex engine's own state, shared by its three files: session, rx, tx.  What it has in common
 * with yamux is in mux.h.
 *
 * mplex has no credit: a sender sends as fast as the pipe takes it.  What the application does not read is bounded in
 * bytes, per stream (max_window) and for the connection (max_recv); memory that is held has its bounds too (budget).  At
 * a bound the engine stops parsing in the middle of a body (engine.blocked), so nobody's bytes are read; when that has
 * lasted for slow_ms the stream to blame is reset, at once with REEVE_CFG_SLOW_RESET.  Its bytes so far can be read,
 * then the reason; when memory is short they are dropped.
 *
 * Owner: whoever drives the engine.  Invariant: blocked only while body_st is open for reading and at a bound. */
#ifndef REEVE_LIB_ENGINE_MPLEX_SESSION_H
#define REEVE_LIB_ENGINE_MPLEX_SESSION_H

#include "lib/engine/mplex_frame.h"
#include "lib/engine/mplex_msg.h"
#include "lib/engine/mux.h"

/* Why parsing stops: a stream's bound, the connection's, that of held memory. */
enum rv_mp_bound { RV_MP_STREAM, RV_MP_CONN, RV_MP_MEMORY };

struct rv_mplex {
	struct rv_mux m; /* first */
	uint32_t hdr_have;
	uint8_t hdr[RV_MP_HDR_MAX];
	enum rv_mp_bound bound; /* while blocked */
	uint64_t blocked_at;
	int level; /* of the budget when feed began: nothing is charged before it is over */
};

int rv_mplex_fail(struct rv_mplex *x, enum rv_mpmsg msg);
/* The first id of a stream opened next: for tests of the end of the id space. */
void rv_mplex_set_next_id(struct rv_engine *e, uint64_t id);
/* Bytes that the application's side of st may be given now, at this level of the budget (rv_mux_budget). */
uint32_t rv_mplex_room(const struct rv_mplex *x, const struct rv_stream *st, int level);
/* The body at hand is at a bound: at which. */
enum rv_mp_bound rv_mplex_bound(const struct rv_mplex *x);
/* Whose reader is to blame for it, or NULL. */
struct rv_stream *rv_mplex_slowest(const struct rv_mplex *x, enum rv_mp_bound bound);
/* Reset st because its reader is slow; the application is told. */
void rv_mplex_slow(struct rv_mplex *x, struct rv_stream *st);
/* Something has changed: is parsing still stopped? */
void rv_mplex_recheck(struct rv_mplex *x);

/* mplex_rx.c */
reeve_ssize rv_mplex_feed(
    struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now);
int rv_mplex_feed_end(struct rv_engine *e);
bool rv_mplex_notify(struct rv_engine *e);

/* mplex_tx.c */
size_t rv_mplex_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now);
bool rv_mplex_has_output(const struct rv_engine *e);
void rv_mplex_owed(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st);
uint32_t rv_mplex_frame(
    struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t max, uint32_t turn);

#endif
