/* substream.h - the substream actor: the application's view of one stream.
 *
 * It owns what the application has not read, what it wrote and the connection has not taken, the waiting operations,
 * and the sticky answer of each direction.  It never touches the transport or a window.  Handler and turns run on the
 * connection's worker; threads that block use the port (port.h). */
#ifndef REEVE_ACTORS_SUBSTREAM_H
#define REEVE_ACTORS_SUBSTREAM_H

#include <reeve/stream.h>

#include "actors/connection.h"
#include "actors/op.h"
#include "actors/timer.h"
#include "lib/engine/stream.h"
#include "queues/cell.h"

/* Bits of the bell. */
#define RVA_S_WRITE 1u   /* the port's write ring has bytes */
#define RVA_S_READ  2u   /* the port's read ring has room, or bytes were consumed */
#define RVA_S_SHUT  4u   /* reeve_shut */
#define RVA_S_STOP  8u   /* reeve_stop */
#define RVA_S_RESET 16u  /* reeve_reset; code in rst_code */
#define RVA_S_CLOSE 32u  /* reeve_close */
#define RVA_S_DROP  64u  /* the last handle is gone */
#define RVA_S_PORT  128u /* a port was attached */
#define RVA_S_TIME  256u /* a deadline was set */
#define RVA_S_FREE  512u /* connection and handles have let go */

/* What the application has done; any thread, sticky. */
#define RVA_APP_SHUT  1u
#define RVA_APP_STOP  2u
#define RVA_APP_RESET 4u
#define RVA_APP_CLOSE 8u

#define RVA_RC_OPEN 1 /* rd_rc, wr_rc: the direction goes on */

/* Operations that wait, made at the first one. */
struct rva_waiting {
	struct rva_oplist reads, writes;
	struct rva_oplist sent; /* RVA_MSG_WRITE_SENT: accepted, not yet taken */
	struct rva_timer timer;
	struct reeve_stream *s;
};

/* Who writes to a stream without operations: an actor of the same worker, told of what becomes of its bytes by direct
 * calls.  Nobody else writes to that stream. */
enum rva_tap_event {
	RVA_TAP_TAKEN,   /* the transport took n bytes */
	RVA_TAP_CLOSING, /* the connection closes gracefully: what is put now is still sent */
	RVA_TAP_ENDED /* nothing is taken from now on, or (REEVE_ESHUT) nothing more can be put */
};
struct rva_tap {
	void (*on)(struct rva_tap *t, enum rva_tap_event ev, uint32_t n);
};

struct reeve_stream {
	struct rv_stream wire; /* the engine's; id is immutable, the rest is not ours */
	struct rva_actor actor;
	struct rvq_bell bell;
	struct reeve_conn *conn; /* immutable */
	/* any thread */
	struct rvq_ref handles;
	struct rvq_cell32 app;          /* RVA_APP_* */
	struct rvq_cell32 rd_rc, wr_rc; /* sticky answers (int32), RVA_RC_OPEN before */
	struct rvq_cell32 rst_code;     /* reeve_reset */
	struct rvq_cell32 peer_code;    /* of the peer's reset, before rd_rc */
	struct rvq_cell32 posted; /* writes on their way to the mailbox: a shut waits for them */
	struct rvq_cell32 async_reads;              /* asynchronous reads wait: threads stay away */
	struct rvq_cell64 rd_deadline, wr_deadline; /* us, 0 none */
	struct rvq_cellptr port, nego;              /* set once */
	void *data;                                 /* the application's */
	/* owner */
	struct rv_chain in; /* received, not yet read or given to the port */
	uint32_t queued;    /* bytes of operations with the connection, not yet taken */
	uint32_t consumed;  /* owed to the connection */
	int32_t in_rc;      /* answer behind the bytes in `in`, RVA_RC_OPEN before */
	bool inbound : 1;
	bool shut_wanted : 1; /* these two: once every write before it has been handed over */
	bool close_wanted : 1;
	bool shut : 1;    /* these three are told to the connection: no more bytes */
	bool closed : 1;  /* nobody there */
	bool stopped : 1; /* not reading */
	bool unread : 1;  /* bytes were unread when reading stopped */
	bool gone : 1;    /* the engine has let go */
	bool dropped : 1; /* the handles have */
	bool refused : 1; /* there never was a handle: nothing can be in the mailbox */
	bool used : 1;    /* there was a reading or writing operation */
	struct rva_waiting *waiting;
	struct rva_tap *tap;              /* or NULL */
	struct reeve_stream *accept_next; /* controller's queue */
	struct reeve_stream *fresh_next;  /* the connection's list of those with new bytes */
	bool fresh;
};

/* Owner.  The record of a stream begins (its memory is the engine's zeroed record). */
void rva_stream_begin(struct reeve_stream *s, struct reeve_conn *c, bool inbound);
/* Give it its first handle. */
void rva_stream_hand_out(struct reeve_stream *s);
/* Message from the connection. */
void rva_stream_on(struct reeve_stream *s, const struct rv_event *ev);
/* Nobody ever got a handle: refuse it.  The record may be gone afterwards. */
void rva_stream_refuse(struct reeve_stream *s);
/* Bytes go on: from `in` to waiting reads or the port; from port and waiting writes to the connection. */
void rva_stream_pump_in(struct reeve_stream *s);
void rva_stream_pump_out(struct reeve_stream *s);
/* Bytes in of every stream of c that got some: once per delivery, so that small bodies are handed on together. */
void rva_stream_pump_fresh(struct reeve_conn *c);
/* What the application has let go of is told to the connection. */
void rva_stream_settle(struct reeve_stream *s);
/* substream_wait.c: an operation begins, is known to fail, is cancelled; a deadline of the stream was moved. */
void rva_stream_read_op(struct reeve_stream *s, reeve_op_t *op);
void rva_stream_write_op(struct reeve_stream *s, reeve_op_t *op);
void rva_stream_refused_op(struct reeve_stream *s, reeve_op_t *op);
void rva_stream_cancel_op(struct reeve_stream *s, reeve_op_t *op);
void rva_stream_retime(struct reeve_stream *s);
/* negotiate.c: the talk is over, bytes go on; both directions end with rc, by FIN or a reset. */
void rva_stream_resume(struct reeve_stream *s);
void rva_stream_fail(struct reeve_stream *s, int rc, bool fin);
/* For the floor above, any thread: as reeve_write_async, but answered when the transport has taken all that was written so
 * far. */
void rva_stream_write_sent(reeve_stream_t *s, reeve_buf_t *b, reeve_op_t *op);
/* The next unread bytes, or NULL.  Only inside the completion of a read of s, which tells what was consumed. */
reeve_buf_t *rva_stream_next(struct reeve_stream *s);
/* The peer has ended its direction, and nothing is unread. */
static inline bool
rva_stream_at_end(const struct reeve_stream *s)
{
	return s->in_rc != RVA_RC_OPEN && s->in.head == NULL;
}
/* To the connection; the reference goes along. */
void rva_stream_send(struct reeve_stream *s, reeve_buf_t *b);
/* From the tap: bytes behind everything before; consumes b, which is not empty.  Not once it has ended. */
void rva_stream_put(struct reeve_stream *s, reeve_buf_t *b);
/* Send budget left, bytes. */
static inline size_t
rva_stream_budget(const struct reeve_stream *s)
{
	uint32_t all = s->conn->cfg.send_budget;

	return s->queued >= all ? 0 : all - s->queued;
}

static inline int
rva_rc(const struct rvq_cell32 *c)
{
	return (int32_t)rvq_cell32_get(c);
}

#endif
