/* window.h - receive windows, credit and auto-tuning.  All arithmetic that could overflow is 64
 * bits wide.
 *
 * Per stream: M (window) the most the peer may ever have outstanding, r (recv_credit) what it
 * may still send, c (consumed) what the application has let go since the last update, b = M - r
 * - c what is unread (or of a body still to come).  r + b + c == M always.  An update grants c
 * plus the growth of M.  M never shrinks.
 *
 * An update is due when half of M was consumed.  A window that cannot grow goes back in eighths
 * where the round trip is at least RV_NEAR_US: with halves of a window below four times what the
 * path needs, the peer waits for credit while the second half is still coming in.
 *
 * Growth: M doubles at an update that is due within two round trips after the last one (the rule
 * of rust-yamux PR 176, with a minimum-filtered round trip).  A young window (at most
 * RV_YOUNG_MAX) may go up to fourfold: at once to four times what the path holds at the rate of
 * the bytes of this update, which is where doubling ends too.  An older one grows only while the
 * reader keeps up (unread at most a quarter of M): more credit is no help to a slow one.
 *
 * M doubles also when the peer had used up its credit and the reader kept up and was faster than
 * that (or than RV_DRY_US: below it the round trip measures our own scheduling).  This second
 * rule needs no round trip: on a fast path half a window takes longer than two of them and the
 * first rule never fires. */
#ifndef REEVE_LIB_ENGINE_WINDOW_H
#define REEVE_LIB_ENGINE_WINDOW_H

#include <stdbool.h>
#include "lib/engine/stream.h"

#define RV_DRY_US 10000u
/* As far as the second rule goes, bytes.  The first rule ends at 4 to 8 times what a path needs; on a path shorter than
 * RV_NEAR_US, where the round trip is mostly our own scheduling, it goes no further than RV_NEAR_RATE (bytes per
 * microsecond, 32 Gbit/s) needs: more bytes in flight there only leave the processor's cache, which costs several streams
 * a quarter of the throughput (doc/performance.md). */
#define RV_DRY_MAX   (512u * 1024)
#define RV_NEAR_US   1000u
#define RV_NEAR_RATE 4096u
/* Beyond it one burst is too little evidence for more than doubling, bytes. */
#define RV_YOUNG_MAX (512u * 1024)

/* What the streams of a connection share. */
struct rv_winpool {
	uint64_t grown; /* A: sum of (M - 256 KiB) over the live streams */
	uint64_t grow;  /* its bound */
	uint32_t max;   /* ceiling of one M */
};

/* A new stream's window and credits, both 256 KiB. */
void rv_window_init(struct rv_stream *st, uint64_t now);
/* The stream's growth is given back. */
void rv_window_release(struct rv_winpool *p, struct rv_stream *st);

/* The peer announced a body of n bytes.  False: beyond its credit. */
static inline bool
rv_window_charge(struct rv_stream *st, uint32_t n)
{
	if (n > st->recv_credit)
		return false;
	st->recv_credit -= n;
	if (st->recv_credit == 0)
		st->flags |= RV_ST_DRY;
	return true;
}

/* The peer grants n bytes more.  False: beyond 2^32 - 1, nothing changed. */
static inline bool
rv_window_credit(struct rv_stream *st, uint32_t n)
{
	uint64_t sum = (uint64_t)st->send_credit + n;

	if (sum > UINT32_MAX)
		return false;
	st->send_credit = (uint32_t)sum;
	return true;
}

/* What has to be consumed for an update. */
static inline uint32_t
rv_window_due(const struct rv_stream *st)
{
	return st->flags & RV_ST_EIGHTHS ? st->window / 8 : st->window / 2;
}

/* Is it worth calling rv_window_update? */
static inline bool
rv_window_look(const struct rv_stream *st)
{
	return st->consumed >= rv_window_due(st) || (st->flags & RV_ST_DRY) != 0;
}

/* The credit to send now, already added to r, or 0 when none is due.  rtt: microseconds, 0
 * unknown.  may_grow: the budget allows it. */
uint32_t rv_window_update(
    struct rv_winpool *p, struct rv_stream *st, uint64_t rtt, uint64_t now, bool may_grow);

#endif
