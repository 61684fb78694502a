/* yamux_session.h - the yamux engine's own state, shared by its three files: session (requests
 * and time), rx, tx.
 *
 * Owner: whoever drives the engine.  Invariants:
 * - a stream is alive on the wire (RV_ST_TABLED) from its opening until both halves have ended
 *   and no reset is owed; then it leaves the id table at once, whatever still refers to it;
 * - the record is let go (RV_EV_GONE) when it is not alive, in no list, in no gather and
 *   everything taken was reported;
 * - the ready and the control list are singly linked: an ended stream leaves them at the next
 *   drain.  So that a peer that reads nothing cannot pile up ended records, their number
 *   (undead) is bounded as that of live ones is. */
#ifndef REEVE_LIB_ENGINE_YAMUX_SESSION_H
#define REEVE_LIB_ENGINE_YAMUX_SESSION_H

#include "lib/engine/engine.h"
#include "lib/engine/gather.h"
#include "lib/engine/half.h"
#include "lib/engine/idtab.h"
#include "lib/engine/limits.h"
#include "lib/engine/rtt.h"
#include "lib/engine/window.h"
#include "lib/engine/yamux_frame.h"
#include "lib/engine/yamux_msg.h"

#define RV_Y_ALONE   65536u /* the largest body of a stream that is alone */
#define RV_Y_HELD_US 20000u /* withheld credit is looked at so often */
#define RV_Y_PING_DROP_US \
	10000000u /* a pong is waited for so long when the keepalive has no timeout */

struct rv_ylist {
	struct rv_stream *head, *tail;
};

struct rv_yamux {
	struct rv_engine e; /* first */

	/* in */
	uint32_t hdr_have;
	uint8_t hdr[RV_YHDR];
	uint32_t body_left, body_len; /* of the frame at hand */
	struct rv_stream *body_st;    /* NULL: drained */
	bool body_fin;
	bool dead;     /* a fatal error was answered: only the go-away leaves */
	unsigned room; /* emits that the sink allowed and we have not used */
	uint64_t now, last_rx;

	/* streams */
	struct rv_idtab tab;
	struct rv_stream *last; /* found last, or NULL */
	uint64_t next_id;
	uint32_t nin, nout, undead;
	bool slot_wanted, slot_due;
	struct rv_winpool win;
	struct rv_bucket churn;
	struct rv_ylist notify, ready, ctl;
	struct rv_ylist lingering, withheld; /* doubly linked; lingering in order of time */
	uint64_t held_at;

	/* owed by the session */
	struct rv_pongs pongs;
	struct rv_refusals refusals;
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

/* session.c and stream.c, for all */
int rv_yamux_budget(const struct rv_yamux *y);
/* The record has something for notify. */
void rv_yamux_note(struct rv_yamux *y, struct rv_stream *st);
void rv_yamux_ctl_add(struct rv_yamux *y, struct rv_stream *st);
void rv_yamux_ready_add(struct rv_yamux *y, struct rv_stream *st);
void rv_yamux_wait_add(struct rv_ylist *l, struct rv_stream *st);
void rv_yamux_wait_del(struct rv_yamux *y, struct rv_stream *st);
/* What is queued is dropped and counted as taken. */
void rv_yamux_drop_queue(struct rv_yamux *y, struct rv_stream *st);
/* A new record in the table, counted.  NULL: no memory. */
struct rv_stream *rv_yamux_new(struct rv_yamux *y, uint32_t id, uint32_t flags);
/* No longer counted as unanswered, unaccepted. */
void rv_yamux_answered(struct rv_yamux *y, struct rv_stream *st);
void rv_yamux_accepted(struct rv_yamux *y, struct rv_stream *st);
/* What the stream has unread leaves the count of unread bytes. */
void rv_yamux_forget_unread(struct rv_yamux *y, struct rv_stream *st);
/* The stream's life on the wire is over. */
void rv_yamux_end_stream(struct rv_yamux *y, struct rv_stream *st);
/* The same, if both halves have ended and nothing is owed. */
void rv_yamux_check_end(struct rv_yamux *y, struct rv_stream *st);

/* rx.c */
reeve_ssize rv_yamux_feed(
    struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now);
void rv_yamux_alive(struct rv_engine *e, uint64_t now);
int rv_yamux_feed_end(struct rv_engine *e);
bool rv_yamux_notify(struct rv_engine *e);

/* tx.c */
size_t rv_yamux_drain(struct rv_engine *e, struct rv_gather *g, uint64_t now);
bool rv_yamux_has_output(const struct rv_engine *e);

static inline struct rv_stream *
rv_yamux_find(struct rv_yamux *y, uint32_t id)
{
	if (y->last == NULL || y->last->id != id) {
		struct rv_stream *st = rv_idtab_get(&y->tab, id);

		if (st == NULL)
			return NULL;
		y->last = st;
	}
	return y->last;
}

/* Bytes of bodies so far, both ways. */
static inline uint64_t
rv_yamux_moved(const struct rv_yamux *y)
{
	return rvq_counter_get(&y->e.stats.bytes_in) + rvq_counter_get(&y->e.stats.bytes_out);
}

/* Has bytes that may leave now? */
static inline bool
rv_yamux_sendable(const struct rv_stream *st)
{
	return st->out.bytes > 0 && st->send_credit > 0 && st->tx <= RV_TX_KILL;
}

#endif
