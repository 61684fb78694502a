/* mux.h - what the engines of yamux and mplex have in common: lives and lists of streams, requests of the application,
 * events, bodies in and out.  A protocol adds its frames, its limits and what a stream owes (struct rv_mux_ops).
 *
 * Owner: whoever drives the engine.  Invariants:
 * - a stream is alive on the wire (RV_ST_TABLED) from its opening until both halves have ended
 *   and no reset is owed; then it leaves the id table at once, whatever still refers to it;
 * - the record is let go (RV_EV_GONE) when it is not alive, in no list, in no gather and
 *   everything taken was reported;
 * - the ready and the control list are singly linked: an ended stream leaves them at the next
 *   drain.  So that a peer that reads nothing cannot pile up ended records, their number
 *   (undead) is bounded as that of live ones is. */
#ifndef REEVE_LIB_ENGINE_MUX_H
#define REEVE_LIB_ENGINE_MUX_H

#include "lib/check.h"
#include "lib/engine/engine.h"
#include "lib/engine/gather.h"
#include "lib/engine/half.h"
#include "lib/engine/idtab.h"
#include "lib/engine/limits.h"

#define RV_MS_US 1000u

struct rv_mux;

/* Why a connection ends, where both protocols have the reason. */
enum rv_mux_why {
	RV_WHY_REFUSALS,   /* too many refusals owed */
	RV_WHY_REFUSE_MEM, /* no memory to refuse */
	RV_WHY_CHURN,      /* too many streams reset before they were accepted */
	RV_WHY_TRUNCATED   /* ended inside a frame */
};

struct rv_mux_ops {
	/* Note the reason, queue what the protocol says about it; answers the error. */
	int (*fail)(struct rv_mux *m, enum rv_mux_why why);
	/* A record was made: windows.  It is over: give them back. */
	void (*begin)(struct rv_mux *m, struct rv_stream *st);
	void (*over)(struct rv_mux *m, struct rv_stream *st);
	/* The control frames that a live stream owes; the gather has room for three. */
	void (*owed)(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st);
	/* A data frame of at most max bytes of body, or several of no more than turn together: how many bytes. */
	uint32_t (*frame)(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t max,
	    uint32_t turn);
};

struct rv_list {
	struct rv_stream *head, *tail;
};

struct rv_mux {
	struct rv_engine e; /* first */
	const struct rv_mux_ops *proto;

	/* in */
	uint32_t body_left, body_len; /* of the frame at hand */
	struct rv_stream *body_st;    /* NULL: drained */
	bool body_fin;
	bool dead;     /* a fatal error was answered: only the go-away leaves */
	unsigned room; /* emits that the sink allowed and we have not used */
	uint64_t now;

	/* streams */
	struct rv_idtab tab;
	struct rv_stream *last; /* found last, or NULL */
	uint64_t next_id;
	uint32_t nin, nout, undead;
	bool slot_wanted, slot_due;
	struct rv_bucket churn;
	struct rv_list notify, ready, ctl;
	struct rv_list lingering, withheld; /* doubly linked; lingering in order of time */
	struct rv_refusals refusals;
};

/* mux_stream.c */
int rv_mux_init(struct rv_mux *m, const struct rv_engine_cfg *cfg, const struct rv_mux_ops *proto);
void rv_mux_fini(struct rv_mux *m);
int rv_mux_budget(const struct rv_mux *m);
/* The record has something for notify. */
void rv_mux_note(struct rv_mux *m, struct rv_stream *st);
void rv_mux_ctl_add(struct rv_mux *m, struct rv_stream *st);
void rv_mux_ready_add(struct rv_mux *m, struct rv_stream *st);
void rv_mux_wait_add(struct rv_list *l, struct rv_stream *st);
void rv_mux_wait_del(struct rv_mux *m, struct rv_stream *st);
/* What is queued is dropped and counted as taken. */
void rv_mux_drop_queue(struct rv_mux *m, struct rv_stream *st);
/* A new record in the table, counted.  NULL: no memory. */
struct rv_stream *rv_mux_new(struct rv_mux *m, uint64_t id, uint32_t flags);
/* No longer counted as unanswered, unaccepted. */
void rv_mux_answered(struct rv_mux *m, struct rv_stream *st);
void rv_mux_accepted(struct rv_mux *m, struct rv_stream *st);
/* What the stream has unread leaves the count of unread bytes. */
void rv_mux_forget_unread(struct rv_mux *m, struct rv_stream *st);
/* The stream's life on the wire is over. */
void rv_mux_end_stream(struct rv_mux *m, struct rv_stream *st);
/* The same, if both halves have ended and nothing is owed. */
void rv_mux_check_end(struct rv_mux *m, struct rv_stream *st);

/* mux_request.c: engine.h tells what they do */
void rv_mux_accept(struct rv_engine *e, struct rv_stream *st);
void rv_mux_send(struct rv_engine *e, struct rv_stream *st, reeve_buf_t *b);
void rv_mux_shut(struct rv_engine *e, struct rv_stream *st);
void rv_mux_stop(struct rv_engine *e, struct rv_stream *st);
void rv_mux_reset(struct rv_engine *e, struct rv_stream *st, uint32_t code);
void rv_mux_close(struct rv_engine *e, struct rv_stream *st, bool unread, uint64_t now);
void rv_mux_drop(struct rv_engine *e, struct rv_stream *st);
void rv_mux_closing(struct rv_engine *e);
void rv_mux_end(struct rv_engine *e);
/* n bytes of st were let go by the application: counted. */
void rv_mux_consumed(struct rv_mux *m, struct rv_stream *st, uint32_t n, uint64_t now);
/* Closed streams whose peer did not end in time are reset. */
void rv_mux_linger(struct rv_mux *m, uint64_t now);

/* mux_rx.c */
void rv_mux_emit(
    struct rv_mux *m, struct rv_stream *st, enum rv_ev_kind kind, uint32_t n, unsigned flags);
/* The peer opens a stream for which there is no reason to fail: made (accepted by us as far as limits go) or refused. */
int rv_mux_rx_open(struct rv_mux *m, uint64_t id, uint32_t flags, struct rv_stream **out);
int rv_mux_rx_rst(struct rv_mux *m, struct rv_stream *st, uint32_t code);
void rv_mux_rx_fin(struct rv_mux *m, struct rv_stream *st);
/* Part of a body: n bytes at off.  What follows the body when it is whole is done too. */
void rv_mux_rx_body(struct rv_mux *m, struct rv_slab *slab, uint32_t off, uint32_t n);
/* Pending events of streams.  False: the sink is full. */
bool rv_mux_notify(struct rv_mux *m);

/* mux_tx.c */
/* Up to want bytes of st into g, as many as it has room for behind a header that was reserved.  How many. */
uint32_t rv_mux_tx_body(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t want);
/* How many bytes of st, at most max, fit behind a header of so many bytes. */
uint32_t rv_mux_tx_fit(
    const struct rv_gather *g, const struct rv_stream *st, uint32_t max, uint32_t header);
void rv_mux_tx_control(struct rv_mux *m, struct rv_gather *g);
/* Bodies, max bytes a frame. */
void rv_mux_tx_data(struct rv_mux *m, struct rv_gather *g, uint32_t max);

static inline struct rv_mux *
rv_mux_of(struct rv_engine *e)
{
	return (struct rv_mux *)e;
}

/* At least n emits are possible? */
static inline bool
rv_mux_room(struct rv_mux *m, unsigned n)
{
	if (m->room < n)
		m->room = m->e.cfg.sink.room(m->e.cfg.sink.ctx);
	return m->room >= n;
}

static inline struct rv_stream *
rv_mux_find(struct rv_mux *m, uint64_t id)
{
	if (m->last == NULL || m->last->id != id) {
		struct rv_stream *st = rv_idtab_get(&m->tab, id);

		if (st == NULL)
			return NULL;
		m->last = st;
	}
	return m->last;
}

/* Has bytes that may leave now? */
static inline bool
rv_mux_sendable(const struct rv_stream *st)
{
	return st->out.bytes > 0 && st->send_credit > 0 && st->tx <= RV_TX_KILL;
}

#endif
