/* negotiate.h - two applications agree on the protocol of a stream: multistream-select between the substream and its
 * users.
 *
 * Owner: the connection's worker, as the substream's other state; the calls are for any thread.  While a talk goes on
 * received bytes go to it first and what it leaves belongs to the reads; writes wait for it, unless it is lazy: then its
 * words go in front of the first bytes.  The large part is there for the talk only. */
#ifndef REEVE_ACTORS_NEGOTIATE_H
#define REEVE_ACTORS_NEGOTIATE_H

#include "actors/substream.h"
#include "lib/upgrade/multistream.h"

/* While it goes on. */
struct rva_talk {
	struct reeve_stream *s;
	reeve_op_t *op; /* NULL: answered */
	struct rva_timer timer;
	size_t size;
	bool begun;  /* the owner has heard of it */
	bool lazy;   /* the dialer goes on without the answer */
	bool wanted; /* lazy: somebody reads, nothing may be held back */
	struct rv_ms ms;
	const char *names[]; /* their text is behind them */
};

/* What stays: the outcome. */
struct rva_nego {
	struct rva_talk *talk;    /* owner; NULL: over */
	struct rvq_cell32 over;   /* the talk is: threads may take what comes */
	struct rvq_cell32 agreed; /* index + 1; 0: not yet, or not after all */
	struct rvq_cell32 held;   /* lazy: header and name are held back for the first bytes */
	struct rvq_cell32 rc;     /* why it failed; 0: it has not */
	struct rvq_cellptr id;    /* of that reason, before rc */
	size_t size;
	char name[]; /* the agreed one, before agreed */
};

static inline struct rva_nego *
rva_nego_of(const struct reeve_stream *s)
{
	return rvq_cellptr_get(&s->nego);
}
/* Any thread, about to sleep in a read: the owner has to be told. */
static inline bool
rva_nego_held(const struct reeve_stream *s)
{
	struct rva_nego *g = rva_nego_of(s);

	return g != NULL && rvq_cell32_get(&g->held) != 0;
}
/* Any thread, about to take received bytes: they may be the talk's. */
static inline bool
rva_nego_takes(const struct reeve_stream *s)
{
	struct rva_nego *g = rva_nego_of(s);

	return g != NULL && rvq_cell32_get(&g->over) == 0;
}
/* Any thread: if a failed talk is why the stream answers rc, who and what it was goes to *out. */
bool rva_nego_reason(const struct reeve_stream *s, int rc, reeve_reason_t *out);

/* All below: owner. */
static inline struct rva_talk *
rva_nego_talk(const struct reeve_stream *s)
{
	struct rva_nego *g = rva_nego_of(s);

	return g != NULL ? g->talk : NULL;
}
/* Nothing may be sent yet. */
static inline bool
rva_nego_mute(const struct reeve_stream *s)
{
	struct rva_talk *t = rva_nego_talk(s);

	return t != NULL && !(t->begun && t->lazy);
}
/* The message that starts it, and one that cancels it. */
void rva_nego_begin(struct reeve_stream *s, reeve_op_t *op);
void rva_nego_cancel(struct reeve_stream *s, reeve_op_t *op);
/* Received bytes: how many were used.  The talk may be over afterwards, and the stream too. */
size_t rva_nego_feed(struct reeve_stream *s, const uint8_t *p, size_t n);
/* The peer sends no more. */
void rva_nego_end(struct reeve_stream *s);
/* What is held back leaves now. */
void rva_nego_flush(struct reeve_stream *s);
/* The stream has ended for that reason, or nobody reads any more: nothing is said. */
void rva_nego_over(struct reeve_stream *s, int rc);
void rva_nego_free(struct reeve_stream *s);

#endif
