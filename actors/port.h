/* port.h - how threads use a stream: two rings between them and the substream, made at the first blocking call.
 *
 * Reading: the substream pushes buffers, threads pop them.  Writing: threads push blocks that they fill (many small writes
 * go into one block) and buffers handed over; `accepted` counts published bytes, `taken` those the transport took, so
 * the send budget needs no lock.  A thread takes a direction by its word, never holds it asleep, and looks again when woken.
 *
 * Order of publication, writer: block pushed, bytes stored, accepted put (release).  Substream: accepted get
 * (acquire), then the number of ring entries: with one entry every published byte beyond `drained` is in it; with
 * more, the first is complete and its final size is in the block. */
#ifndef REEVE_ACTORS_PORT_H
#define REEVE_ACTORS_PORT_H

#include <sys/uio.h>

#include "actors/substream.h"
#include "queues/parker.h"
#include "queues/spsc.h"

#define RVA_PORT_SLOTS 16

RVQ_RING_DEFINE(rva_bufring, reeve_buf_t *)

/* A word that a thread takes for a moment: 0 free, 1 held, 2 held and somebody sleeps. */
struct rva_word {
	struct rvq_cell32 held;
	struct rvq_parker park;
};

/* One entry of the write ring: a block that its writer may still be filling, or a buffer. */
struct rva_wentry {
	struct rv_slab *slab;
	reeve_buf_t *buf;
};
RVQ_RING_DEFINE(rva_wring, struct rva_wentry)

struct rva_port {
	/* reading: threads under the word */
	struct rva_word rword;
	reeve_buf_t *cur; /* half read by reeve_read */
	uint32_t cur_off;
	uint32_t unrung;            /* consumed since the bell was last rung */
	struct rvq_cell64 consumed; /* total; put by readers */
	struct rvq_cell32 more;     /* the substream has more than the ring holds */
	struct rvq_parker readers;  /* asleep: nothing to read */
	struct rvq_cell32 nreaders; /* threads inside a blocking read */
	struct rvq_cell32 waited;   /* one of them slept since something was written */
	/* reading: owner */
	uint64_t consumed_seen, given; /* bytes collected, bytes pushed so far */
	/* writing: threads under the word */
	struct rva_word wword;
	struct rv_slab *open;       /* the block that small writes go to (its own reference) */
	uint8_t open_class;         /* size of the next one: grows while blocks are filled up */
	struct rvq_cell64 accepted; /* total; put by writers */
	struct rvq_parker writers;  /* asleep: no budget or no room in the ring */
	/* writing: owner */
	struct rvq_cell64 taken; /* total; put by the substream */
	struct rvq_cell32 dry;   /* no more is taken until credit comes; put after taken */
	uint64_t drained;        /* total given to the connection */
	uint32_t head_off;       /* bytes of the ring's first block already given */
	/* rings */
	struct rvq_ring rring, wring;
	reeve_buf_t *rslots[RVA_PORT_SLOTS];
	struct rva_wentry wslots[RVA_PORT_SLOTS];
};

bool rva_word_try(struct rva_word *w);
/* Try, and let a holder know that somebody did. */
bool rva_word_claim(struct rva_word *w);
void rva_word_take(struct rva_word *w);
void rva_word_give(struct rva_word *w);
/* A stream's deadline as an absolute time. */
uint64_t rva_deadline_of(const struct rvq_cell64 *d);

/* The port of s, made now if there is none.  Any thread.  NULL: out of memory. */
struct rva_port *rva_port_of(struct reeve_stream *s);
static inline struct rva_port *
rva_port_peek(const struct reeve_stream *s)
{
	return rvq_cellptr_get(&s->port);
}
void rva_port_free(struct rva_port *p, struct rv_arena *ar);

/* Threads (they have checked that they may block). */
reeve_ssize rva_port_read(struct reeve_stream *s, struct rva_port *p, void *to, size_t n);
reeve_ssize rva_port_read_buf(struct reeve_stream *s, struct rva_port *p, reeve_buf_t **b);
reeve_ssize rva_port_write(
    struct reeve_stream *s, struct rva_port *p, const struct iovec *v, int n);
reeve_ssize rva_port_write_buf(struct reeve_stream *s, struct rva_port *p, reeve_buf_t *b);

/* Owner. */
void rva_port_fill(
    struct reeve_stream *s, struct rva_port *p); /* from s->in to the read ring; wakes readers */
uint32_t rva_port_collect(struct rva_port *p);   /* bytes consumed since the last call */
bool rva_port_drain(struct reeve_stream *s, struct rva_port *p,
    uint64_t limit); /* to the connection up to position limit */
/* wr_rc is answered: everything that threads were told is accepted goes to the connection.  False: a thread is
 * accepting bytes just now; it rings when it is done. */
bool rva_port_seal(struct reeve_stream *s, struct rva_port *p);
/* Take back what is in the read ring, for operations.  False: threads are reading. */
bool rva_port_pull_back(struct reeve_stream *s, struct rva_port *p);
/* The same, whoever waits to read.  False: a thread is taking some just now. */
bool rva_port_take_back(struct reeve_stream *s, struct rva_port *p);
/* What an operation is told that cannot read because a thread does: REEVE_EBUSY, or the answer behind what was read. */
int rva_port_busy(struct reeve_stream *s, struct rva_port *p);
bool rva_port_unread(const struct rva_port *p); /* was something pushed that was not consumed? */
void rva_port_taken(struct reeve_stream *s, struct rva_port *p, uint32_t n, bool dry);
bool rva_port_quiet(struct reeve_stream *s, struct rva_port *p); /* nothing to read and no answer */
void rva_port_wake(struct rva_port *p);    /* an answer changed: everybody looks again */
void rva_port_discard(struct rva_port *p); /* stop: drop what is unread, if no reader is inside */

#endif
