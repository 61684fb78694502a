/*
 * flow.h - a stream of bytes from one end to the other, measured the same way whoever carries it.
 *
 * A contender starts its threads over a fresh connection and sends as fast as it can; its receiver counts
 * the bytes that it has consumed.  The measuring thread warms up (until RVP_WARM_UP bytes were received or
 * RVP_WARM_UP_S has passed), looks at the count and at the processor time of the process, sleeps, and
 * looks again.  Every contender that uses sockets gets them from rvp_sockets, with the same options.
 */
#ifndef REEVE_PERF_FLOW_H
#define REEVE_PERF_FLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queues/cell.h"
#include "queues/counter.h"

struct rvp_items;

#define RVP_WARM_UP   (32u << 20)
#define RVP_WARM_UP_S 2.0

enum rvp_transport { RVP_TCP, RVP_UNIX, RVP_MEMORY };

struct rvp_load {
	enum rvp_transport transport;
	unsigned streams;
	size_t write;     /* bytes of one write of the application */
	double seconds;   /* of one measured period */
	uint32_t window;  /* max_window of ours; 0: the default */
	uint32_t budget;  /* send_budget of ours; 0: the default */
	bool pin;         /* sending threads on one processor, receiving ones on the next */
	unsigned workers; /* of a runtime of ours; 0: 1 */
	uint32_t proto;   /* enum reeve_proto of ours; 0: yamux */
	double warm_up;   /* seconds at most; 0: RVP_WARM_UP_S */
	bool calls;       /* count system calls; makes them dearer, so for rounds of their own */
	struct rvp_items *items; /* carry these instead (items.h); NULL: as many bytes as it can */
};

/* What a contender counts beside bytes: running totals of both ends, zeroes where it has none. */
struct rvp_totals {
	uint64_t copied;             /* payload bytes copied in user space, both ends */
	uint64_t frames_out, writes; /* of the sender */
	uint64_t frames_in, reads;   /* of the receiver */
	uint64_t window_max;         /* largest receive window so far */
};

struct rvp_figure {
	double gbps;       /* 1e9 bytes a second */
	double cpu;        /* processor ns per KiB, all threads of the process */
	double window;     /* bytes */
	double copies;     /* copied bytes per byte carried, both ends */
	double out_frames; /* per system call of the sender */
	double in_frames;  /* per system call of the receiver */
	double total;    /* bytes, from the connection's first to the end of the measured period */
	double switches; /* of context, per MiB, all threads */
	double calls;    /* system calls per MiB, all threads; negative: not counted */
};

struct rvp_flow {
	const char *name;
	void *(*start)(const struct rvp_load *l);
	uint64_t (*received)(
	    void *run); /* bytes consumed by the receiver so far; the measuring thread */
	void (*totals)(void *run, struct rvp_totals *t); /* NULL: nothing counted */
	void (*stop)(void *run);                         /* ends every thread and frees run */
};

/* One measurement over a fresh connection. */
void rvp_flow_measure(const struct rvp_flow *f, const struct rvp_load *l, struct rvp_figure *out);

/* A joined pair of blocking sockets (tcp over loopback, or unix): [0] of the sender, [1] of the receiver.
 * TCP has TCP_NODELAY and TCP_NOTSENT_LOWAT as the library sets them; buffers are the system's defaults. */
void rvp_sockets(enum rvp_transport t, int fd[2]);
/* The same as the system makes them. */
void rvp_sockets_bare(enum rvp_transport t, int fd[2]);

/* Starts a thread, on processor cpu (counted round) if pin.  Failure ends the program. */
void rvp_thread(pthread_t *t, void *(*fn)(void *), void *arg, int cpu);
#define RVP_ANY_CPU (-1)

/* Bytes of memory that the process has resident. */
uint64_t rvp_rss(void);

/* Ends the program with a message if ok is not true. */
void rvp_check(bool ok, const char *what);
/* The same for a result of the library. */
void rvp_must(int64_t rc, const char *what);

/* The contenders.  plain: 64 KiB writes; strong: 1 MiB writes; bare: strong without our socket options; all
 * one connection, reads of 64 KiB, whatever the load's streams and writes are.  same: plain with the load's
 * size of write. */
extern const struct rvp_flow rvp_raw_plain, rvp_raw_same, rvp_raw_strong, rvp_raw_bare; /* raw.c */
extern const struct rvp_flow rvp_inline_flow; /* inline.c */
/* A lock around the engine and threads that call in: with the library's buffers; copying (mutex.c). */
extern const struct rvp_flow rvp_mutex_flow, rvp_mutex_copy_flow;
/* Operations completed by callbacks on the worker; by messages to user actors on the connection's worker; to ones on
 * another worker of the same runtime (ops.c). */
extern const struct rvp_flow rvp_worker_flow, rvp_actors_flow, rvp_spread_flow;
/* A thread a stream in blocking calls (threads.c). */
extern const struct rvp_flow rvp_threads_flow;
/* Memory alone: one thread copies; one hands blocks to another through a ring, which copies out of them (memcopy.c). */
extern const struct rvp_flow rvp_copy_flow, rvp_ring_flow;

#endif
