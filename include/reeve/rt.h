/* rt.h - the runtime: a few worker threads with pollers, timers and buffer pools. */
#ifndef REEVE_RT_H
#define REEVE_RT_H

#include <reeve/error.h>

REEVE_BEGIN

typedef struct reeve_rt reeve_rt_t;
typedef struct reeve_conn reeve_conn_t;         /* one carried connection: the owner's handle */
typedef struct reeve_ctl reeve_ctl_t;           /* its controller: the shared handle */
typedef struct reeve_stream reeve_stream_t;     /* one stream, shared */
typedef struct reeve_buf reeve_buf_t;           /* refcounted run of bytes */
typedef struct reeve_listener reeve_listener_t; /* where connections come in */
typedef struct reeve_actor reeve_actor_t;       /* a user's actor */
typedef struct reeve_op reeve_op_t;             /* an asynchronous operation, caller's storage */
typedef struct reeve_cq reeve_cq_t;             /* completion queue (not yet) */

/* Allocator of a runtime.  alloc returns NULL when it fails; free gets the size that alloc got.
 * Both may be called by any thread. */
typedef struct reeve_alloc {
	void *(*alloc)(void *ctx, size_t size, size_t align);
	void (*free)(void *ctx, void *p, size_t size);
	void *ctx;
} reeve_alloc_t;

enum reeve_log_level {
	REEVE_LOG_ERROR = 1,
	REEVE_LOG_WARN = 2,
	REEVE_LOG_INFO = 3,
	REEVE_LOG_DEBUG = 4,
	REEVE_LOG_TRACE = 5
};

/* One log record.  id is stable ("REEVE-CONN-0003"), text a line without newline; both valid for the call.  Called by workers,
 * and by threads that are inside a call of the library. */
typedef void (*reeve_log_fn)(void *ctx, int level, const char *id, const char *text);

#define REEVE_RT_EXTERNAL 0x1u /* no threads: the application calls reeve_rt_run */

/* Zero means default everywhere. */
typedef struct reeve_rt_cfg {
	uint32_t size;         /* set by reeve_rt_cfg_init */
	uint32_t flags;        /* REEVE_RT_* */
	uint32_t workers;      /* threads; 0 = number of processors, at most 8 */
	uint32_t max_handlers; /* threads for reeve_serve handlers; 0 = 1024 */
	uint64_t seed; /* reserved for deterministic scheduling: not 0 answers REEVE_ENOTSUP */
	uint64_t max_buffered; /* bytes of received data held by all connections; 0 = 1 GiB */
	const char *name;      /* thread name prefix, at most 9 bytes used; NULL = "reeve" */
	reeve_alloc_t alloc;   /* all NULL = malloc */
	reeve_log_fn log;      /* NULL = silent */
	void *log_ctx;
	int32_t log_level; /* the least important level that is reported; 0 = REEVE_LOG_WARN */
	uint32_t
	    spin_us; /* how long at most a thread looks for news before it sleeps, while that pays; 0 = 50 (none on one
			   * processor), at most 1000, REEVE_OFF = never */
} reeve_rt_cfg_t;

/* Fill a configuration with its size and zeroes.  Use the macro.
 * T: any B: no W: ok */
REEVE_API void reeve_rt_cfg_init_sized(reeve_rt_cfg_t *cfg, size_t size);
#define reeve_rt_cfg_init(c) reeve_rt_cfg_init_sized((c), sizeof(*(c)))

/* Make a runtime and start its workers.  cfg may be NULL.  *rt is written on success only.
 * REEVE_EINVAL, REEVE_ENOMEM, REEVE_ENOTSUP or a system error.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_rt_create(reeve_rt_t **rt, const reeve_rt_cfg_t *cfg);

/* Close every connection gracefully and wait at most timeout_ms (-1 for ever, 0 abort at once) for them, then
 * abort what is left.  Stops every listener first.  0, or REEVE_ETIMEDOUT when something had to be aborted.
 * T: any B: yes W: no */
REEVE_API int reeve_rt_shutdown(reeve_rt_t *rt, int64_t timeout_ms);

/* Abort what is left, join every thread, free.  Nothing of the library runs afterwards.  Handles that are still
 * held stay valid memory and answer REEVE_ECLOSED.  NULL is ignored.  In a forked child it joins nothing.
 * T: owner B: yes W: no */
REEVE_API void reeve_rt_destroy(reeve_rt_t *rt);

/* A descriptor that polls readable when reeve_rt_run has work (REEVE_RT_EXTERNAL only, else REEVE_ENOTSUP).
 * It belongs to the runtime: poll it, nothing else.
 * T: any B: no W: ok */
REEVE_API int reeve_rt_fd(reeve_rt_t *rt);

/* Run what there is to run, waiting at most timeout_ms for the first of it (0 do not wait, -1 for ever).
 * Returns the number of turns run, REEVE_ENOTSUP without REEVE_RT_EXTERNAL, REEVE_EBUSY when another thread
 * is inside, REEVE_EWORKER inside a callback.
 * T: owner B: yes W: no */
REEVE_API int reeve_rt_run(reeve_rt_t *rt, int64_t timeout_ms);

REEVE_END

#endif
