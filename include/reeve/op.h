/* op.h - asynchronous operations.  The caller brings the storage (embed reeve_op_t in your own struct); every
 * started operation completes exactly once, also when starting it was a mistake; res is what the blocking twin
 * would have returned.  The library lets go of the operation just before it calls fn, so fn may start it again
 * or free it.  fn never runs inside the call that started the operation; calls for one stream never overlap. */
#ifndef REEVE_OP_H
#define REEVE_OP_H

#include <reeve/rt.h>
#include <reeve/conn.h>

REEVE_BEGIN

struct reeve_op {
	void (*fn)(
	    reeve_op_t *op); /* called on a worker; must not block; NULL: wait with reeve_op_wait */
	void *arg;           /* the application's */
	reeve_actor_t *
	    actor; /* not NULL: completion is a message to this actor (reeve_msg_op) instead of fn */
	reeve_cq_t *cq;         /* reserved, NULL */
	int64_t timeout_ms;     /* -1 none, counted from the start of the operation */
	reeve_ssize res;        /* result */
	reeve_buf_t *buf;       /* read: one reference for the caller when res > 0 */
	reeve_stream_t *stream; /* open, accept: one reference for the caller when res == 0 */
	reeve_conn_t *conn;     /* dial, listener accept: for the caller when res == 0 */
	void *priv[12];         /* the library's until completion */
};
#define REEVE_OP(fn, arg)                                         \
	{                                                         \
		(fn), (arg), NULL, NULL, -1, 0, NULL, NULL, NULL, \
		{                                                 \
			NULL                                      \
		}                                                 \
	}

/* Fill an operation with fn, arg, no timeout and zeroes (the macro REEVE_OP as a function, for bindings).
 * T: any B: no W: ok */
REEVE_API void reeve_op_init(reeve_op_t *op, void (*fn)(reeve_op_t *op), void *arg);

/* As reeve_open.
 * T: any B: no W: ok borrows k */
REEVE_API void reeve_open_async(reeve_ctl_t *k, reeve_op_t *op);

/* As reeve_accept.
 * T: any B: no W: ok borrows k */
REEVE_API void reeve_accept_async(reeve_ctl_t *k, reeve_op_t *op);

/* As reeve_ready.
 * T: any B: no W: ok borrows k */
REEVE_API void reeve_ready_async(reeve_ctl_t *k, reeve_op_t *op);

/* As reeve_ping; res is the round trip in microseconds.
 * T: any B: no W: ok borrows k */
REEVE_API void reeve_ping_async(reeve_ctl_t *k, reeve_op_t *op);

/* Completes once the connection has ended, with its reason (0 after a graceful close by us).
 * T: any B: no W: ok borrows k */
REEVE_API void reeve_closed_async(reeve_ctl_t *k, reeve_op_t *op);

/* As reeve_read_buf.  Several may be pending; they complete in order.
 * T: any B: no W: ok borrows s */
REEVE_API void reeve_read_async(reeve_stream_t *s, reeve_op_t *op);

/* As reeve_write_buf.  Several may be pending; they complete in order.
 * T: any B: no W: ok borrows s consumes b */
REEVE_API void reeve_write_async(reeve_stream_t *s, reeve_buf_t *b, reeve_op_t *op);

/* As reeve_negotiate, with the timeout of op; res is the index.  What is read and written behind it waits for it.
 * Cancelled: the stream is reset.
 * T: any B: no W: ok borrows s */
REEVE_API void reeve_negotiate_async(
    reeve_stream_t *s, int how, const char *const *names, unsigned n, reeve_op_t *op);

/* As reeve_dial, numeric addresses only (REEVE_EINVAL for names).
 * T: any B: no W: ok */
REEVE_API void reeve_dial_async(
    reeve_rt_t *rt, const char *addr, const reeve_cfg_t *cfg, reeve_op_t *op);

/* As reeve_listener_accept.
 * T: any B: no W: ok borrows l */
REEVE_API void reeve_listener_accept_async(reeve_listener_t *l, reeve_op_t *op);

/* Ask for an early end.  The completion still comes, exactly once: REEVE_ECANCELED, or the result if that was
 * first.  op must be started and its completion not yet delivered.
 * T: any B: no W: ok */
REEVE_API void reeve_op_cancel(reeve_op_t *op);

/* Wait for an operation whose fn and actor are NULL; returns res.
 * T: any B: yes W: no */
REEVE_API reeve_ssize reeve_op_wait(reeve_op_t *op);

REEVE_END

#endif
