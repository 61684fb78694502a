/* engine.h - the seam between a connection and a protocol engine.
 *
 * An engine is pure: bytes, time and requests in; frames and events out.  No I/O, no clock, no
 * lock, no thread: the one caller (the connection actor, an inline driver, a fuzzer) owns it.
 * Time is microseconds of any monotonic clock.
 *
 * An engine keeps the wire state of both halves of every stream, ids, windows, owed answers and
 * the bytes to send until the transport took them.  What the application has not read is not
 * here, only its count.
 *
 * Events leave through the sink.  The engine emits at most what sink.room answers; what does not
 * fit stays pending and is emitted by a later call of notify (or feed, which parses no further
 * while fewer than RV_EV_PER_FRAME entries have room).
 *
 * A protocol without flow control (mplex) stops parsing when too much is unread: blocked is set, feed answers how far it
 * came, and goes on when consumed, close, drop, stop, reset or tick has cleared blocked.
 *
 * One allocation per stream: record_size bytes, zeroed, of which struct rv_stream is the first
 * part.  The engine lets go of a record by emitting RV_EV_GONE for it and never touches it
 * again; whoever got the event frees it with rv_free(arena, st, record_size). */
#ifndef REEVE_LIB_ENGINE_ENGINE_H
#define REEVE_LIB_ENGINE_ENGINE_H

#include <stdbool.h>
#include <reeve/conn.h>
#include "lib/buf/slice.h"
#include "lib/engine/stream.h"
#include "queues/counter.h"

struct rv_gather;

/* What comes of a stream (st) or of the connection.  The slab of RV_EV_DATA is borrowed: it stays
 * until the caller of feed lets go of it, which it does after the event was handled. */
enum rv_ev_kind {
	RV_EV_OPEN = 1, /* opened by the peer */
	RV_EV_DATA,     /* len bytes at slab->data + off; n: body length of the whole frame */
	RV_EV_FIN,      /* the peer ended its direction */
	RV_EV_RST,      /* reset by the peer, code n; RV_EVF_REFUSED: its first answer */
	RV_EV_TAKEN,    /* the transport took n of the queued bytes (or they were dropped) */
	RV_EV_CLOSING,  /* the connection closes gracefully: hand over what is queued, shut */
	RV_EV_GONE,     /* the engine has let go; RV_EVF_ENDED: because the connection ended */
	RV_EV_SLOT,     /* an open that answered REEVE_EAGAIN may be tried again */
	RV_EV_PONG,     /* the answer to ping came; n: round trip in microseconds */
	RV_EV_GOAWAY,   /* the peer takes no new streams; n: its code */
	RV_EV_SLOW /* reset by us: its reader held up the others (mplex); n != 0: drop its bytes */
};
#define RV_EVF_REFUSED  1u
#define RV_EVF_ENDED    2u
#define RV_EVF_DRY      4u /* of TAKEN: no more will be taken until the peer gives credit */
#define RV_EV_PER_FRAME 4

/* 32 bytes, by value through a ring. */
struct rv_event {
	struct rv_stream *st;
	struct rv_slab *slab;
	uint32_t off, len;
	uint32_t n;
	uint16_t kind, flags;
};

struct rv_sink {
	void (*emit)(void *ctx, const struct rv_event *ev);
	unsigned (*room)(void *ctx); /* how many emits are possible now */
	void *ctx;
};

/* Copied at creation; defaults already applied (no zeroes): see rv_cfg_resolve in lib/config.h. */
struct rv_engine_cfg {
	reeve_cfg_t user;
	int role; /* REEVE_DIALER: odd ids, REEVE_LISTENER: even ids */
	size_t record_size;
	struct rv_arena *arena;
	/* Held bytes: level 1 no growth, level 2 no credit and inbound refused.  May be NULL. */
	struct rv_budget *budget;
	struct rv_sink sink;
	uint64_t now;
};

/* Single-writer counters, read by any thread. */
struct rv_engine_stats {
	struct rvq_counter streams_open, opened, accepted, refused, resets_in, resets_out, bytes_in,
	    bytes_out, frames_in, frames_out, unread, window_max, stalls_window, pings_in,
	    pongs_dropped, rtt_us, copied_out;
};

struct rv_engine {
	const struct rv_engine_ops *ops;
	struct rv_engine_cfg cfg;
	struct rv_engine_stats stats;
	/* Why it ended: filled when a call answers a fatal error or the peer sent GO_AWAY(code). */
	reeve_reason_t reason;
	const char *why;      /* the reason's id in words, a static string; NULL: none */
	uint32_t nstreams;    /* not ended both ways, or with bytes still queued */
	uint32_t nunacked;    /* opened here, unanswered */
	uint32_t nunaccepted; /* opened by the peer, not accepted */
	bool refusing;        /* no new streams in either direction */
	bool bounds;          /* keeps the bounds of what is unread by itself (mplex) ... */
	bool blocked;         /* ... : feed uses nothing up until readers have caught up */
	bool over;            /* a handshake has done its work: another engine takes its place */
	bool pressed;         /* feed stopped short so that owed answers may leave first */
	bool ended;
};

struct rv_engine_ops {
	/* Parse [off, off + len) of slab.  Returns how many bytes were used up: fewer than len
	 * only when the sink had no room, when blocked is set, or when half of what may be owed is owed (pressed:
	 * drain, then go on; without a drain it goes on to the bound).  A fatal error (< 0): reason is set, a GO_AWAY is
	 * queued if the protocol wants one; the caller drains once more, then ends.  Never
	 * called again after a fatal error. */
	reeve_ssize (*feed)(
	    struct rv_engine *e, struct rv_slab *slab, uint32_t off, uint32_t len, uint64_t now);
	/* The transport ended: 0, or REEVE_ETRUNC when inside a frame. */
	int (*feed_end)(struct rv_engine *e);
	/* Add frames to g until it is full or nothing is ready: control before data, round robin
	 * over streams.  Returns the bytes added. */
	size_t (*drain)(struct rv_engine *e, struct rv_gather *g, uint64_t now);
	bool (*has_output)(const struct rv_engine *e);
	/* Emit pending events as far as the sink has room.  True: nothing is left. */
	bool (*notify)(struct rv_engine *e);

	/* Open a stream: REEVE_EAGAIN (max_unacked reached, RV_EV_SLOT follows), REEVE_ELIMIT,
	 * REEVE_EEXHAUSTED, REEVE_EGOAWAY, REEVE_ENOMEM, REEVE_ECLOSED.  The connection survives
	 * every failure. */
	int (*open)(struct rv_engine *e, struct rv_stream **st, uint64_t now);
	/* The application has accepted an inbound stream: acknowledge (unless
	 * REEVE_CFG_LAZY_ACK: with the first own frame). */
	void (*accept)(struct rv_engine *e, struct rv_stream *st);
	/* Queue bytes; consumes b on every path.  After shut, close or reset they are dropped
	 * (and still reported taken). */
	void (*send)(struct rv_engine *e, struct rv_stream *st, reeve_buf_t *b);
	/* The application let go of n received bytes (0: look again): credit is due at half a
	 * window. */
	void (*consumed)(struct rv_engine *e, struct rv_stream *st, uint32_t n, uint64_t now);
	/* FIN behind what is queued; once. */
	void (*shut)(struct rv_engine *e, struct rv_stream *st);
	/* Discard later bytes, withhold credit. */
	void (*stop)(struct rv_engine *e, struct rv_stream *st);
	/* Drop what is queued, WU[RST] code. */
	void (*reset)(struct rv_engine *e, struct rv_stream *st, uint32_t code);
	/* shut, and nobody reads: one WU[RST] behind our FIN if unread (bytes were unread), if
	 * DATA comes later, or after linger_ms.  No event but TAKEN and GONE from here on. */
	void (*close)(struct rv_engine *e, struct rv_stream *st, bool unread, uint64_t now);
	/* Last handle gone without close: queued bytes, then WU[RST]; FIN instead if the peer
	 * has sent its FIN; nothing at all if never SYNed.  No event but TAKEN and GONE from
	 * here on. */
	void (*drop)(struct rv_engine *e, struct rv_stream *st);

	/* Ask for a round trip that begins now or later: RV_EV_PONG answers all who asked before its ping left.  False:
	 * one is in flight, which is no answer; another follows it by itself.  NULL: the protocol has no pings. */
	bool (*ping)(struct rv_engine *e, uint64_t now);
	/* Queue GO_AWAY(code) once, behind nothing; later calls are ignored.  Sets refusing. */
	void (*goaway)(struct rv_engine *e, uint32_t code);
	/* Graceful close begins: refusing; RV_EV_CLOSING for every stream. */
	void (*closing)(struct rv_engine *e);
	/* The connection has ended for the given reason: everything queued is dropped, every
	 * stream gets RV_EV_GONE. */
	void (*end)(struct rv_engine *e);

	/* Timers: keepalive, linger, rtt, withheld credit.  Fatal error (REEVE_EDEAD) or 0. */
	int (*tick)(struct rv_engine *e, uint64_t now);
	/* Bytes of the peer may be there that nobody has fed yet: its silence begins now. */
	void (*alive)(struct rv_engine *e, uint64_t now);
	/* UINT64_MAX: none. */
	uint64_t (*next_deadline)(const struct rv_engine *e);
	/* After end and when notify answered true.  Streams must all be GONE. */
	void (*destroy)(struct rv_engine *e);
};

/* REEVE_EINVAL, REEVE_ENOMEM. */
int rv_engine_create(struct rv_engine **e, const struct rv_engine_cfg *cfg);
int rv_yamux_create(struct rv_engine **e, const struct rv_engine_cfg *cfg);
int rv_mplex_create(struct rv_engine **e, const struct rv_engine_cfg *cfg);

#endif
