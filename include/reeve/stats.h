/* stats.h - counters of a connection and of a runtime, always on. */
#ifndef REEVE_STATS_H
#define REEVE_STATS_H

#include <reeve/rt.h>

REEVE_BEGIN

#define REEVE_STAT_MAP(X)                                                                      \
	X(streams_open, "streams open now")                                                    \
	X(streams_opened, "streams opened here")                                               \
	X(streams_accepted, "streams opened by the peer")                                      \
	X(streams_refused, "inbound streams refused")                                          \
	X(resets_in, "resets received")                                                        \
	X(resets_out, "resets sent")                                                           \
	X(bytes_in, "payload bytes received")                                                  \
	X(bytes_out, "payload bytes sent")                                                     \
	X(frames_in, "frames received")                                                        \
	X(frames_out, "frames sent")                                                           \
	X(reads, "read calls on the transport")                                                \
	X(writes, "write calls on the transport")                                              \
	X(bytes_copied_in,                                                                     \
	    "received payload bytes copied after the kernel's copy, without reeve_read's own") \
	X(bytes_copied_out, "sent payload bytes copied before the kernel's copy")              \
	X(held, "received bytes held, memory pinned by them")                                  \
	X(unread, "received bytes not yet read; those of threads are told late")               \
	X(window_max, "largest receive window of any stream, bytes")                           \
	X(stalls_window, "times a stream with bytes to send had no credit")                    \
	X(stalls_transport, "times the transport took no more")                                \
	X(pings_in, "pings answered")                                                          \
	X(pongs_dropped, "pings not answered because too many were owed")                      \
	X(rtt_us, "smallest recent round trip, microseconds")                                  \
	X(messages, "messages between actors")                                                 \
	X(wakes, "sleeping threads woken")                                                     \
	X(connections, "connections open now (runtime)")                                       \
	X(blocks_allocated, "memory blocks taken from the allocator (runtime)")

/* size is set by the caller to sizeof(reeve_stats_t); fields beyond it are not written. */
typedef struct reeve_stats {
	uint64_t size;
#define X(name, text) uint64_t name;
	REEVE_STAT_MAP(X)
#undef X
} reeve_stats_t;

/* Counters of one connection, read without stopping it.  0 or REEVE_EINVAL.
 * T: any B: no W: ok borrows k */
REEVE_API int reeve_ctl_stats(reeve_ctl_t *k, reeve_stats_t *out);

/* Counters of the runtime: sums over its connections, past and present, and its own.
 * T: any B: no W: ok */
REEVE_API int reeve_rt_stats(reeve_rt_t *rt, reeve_stats_t *out);

REEVE_END

#endif
