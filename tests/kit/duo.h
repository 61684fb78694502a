/* duo.h - two connections joined in memory on a runtime whose allocator counts, one stream between them, and
 * operations whose completion can be waited for.  Check assertions inside; nothing here waits without a deadline. */
#ifndef REEVE_TESTS_KIT_DUO_H
#define REEVE_TESTS_KIT_DUO_H

#include <pthread.h>
#include <sched.h>

#include <reeve/reeve.h>
#include "tests/kit/alloc.h"

#define RVT_WAIT_MS 10000

struct rvt_duo {
	struct rvt_alloc alloc;
	struct rvq_gauge warned; /* log records at level warn or worse */
	reeve_rt_t *rt;
	reeve_conn_t *c[2]; /* [0] dials */
	reeve_ctl_t *k[2];
	reeve_stream_t *s[2]; /* [0] was opened, [1] accepted */
};

/* A runtime of so many workers; 0: an external one. */
void rvt_duo_rt(struct rvt_duo *d, unsigned workers);
/* The same with a configuration, whose allocator and log become ours. */
void rvt_duo_rt_cfg(struct rvt_duo *d, reeve_rt_cfg_t *cfg);
void rvt_duo_conns(struct rvt_duo *d, const reeve_cfg_t *cfg);
void rvt_duo_stream(struct rvt_duo *d);
/* One of each, with defaults. */
void rvt_duo_start(struct rvt_duo *d);
/* The same with mplex, or not. */
void rvt_duo_begin(struct rvt_duo *d, int mplex);
/* Let go of what is left; everything came back to the allocator. */
void rvt_duo_end(struct rvt_duo *d);

/* Two threads of calls on one stream: bytes with a known content. */
void rvt_write_run(reeve_stream_t *s, size_t n, uint64_t from);
void rvt_read_run(reeve_stream_t *s, size_t n, uint64_t from);
reeve_buf_t *rvt_buf_run(reeve_rt_t *rt, size_t n, uint64_t from);
/* The peer has ended its direction and nothing is left. */
void rvt_read_end(reeve_stream_t *s);

/* An operation that counts its completions. */
struct rvt_done {
	reeve_op_t op; /* first: arg is not used */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t starter;
	unsigned calls;
	int inside;     /* completed on the thread that made it */
	unsigned order; /* which completion it was, over all operations of the program */
};
void rvt_done_init(struct rvt_done *d, int64_t timeout_ms);
/* The result; fails when it does not come, came twice, or came inside the starting call. */
reeve_ssize rvt_done_wait(struct rvt_done *d);
/* Has it completed? */
int rvt_done_is(struct rvt_done *d);

/* Run fn on a worker and wait for its end. */
void rvt_on_worker(reeve_rt_t *rt, void (*fn)(void *arg), void *arg);

uint64_t rvt_ms(void);
/* Wait for a condition that other threads make true. */
#define RVT_UNTIL(cond)                                                                   \
	do {                                                                              \
		uint64_t until_ = rvt_ms() + RVT_WAIT_MS;                                 \
		while (!(cond)) {                                                         \
			ck_assert_msg(rvt_ms() < until_, "never became true: %s", #cond); \
			sched_yield();                                                    \
		}                                                                         \
	} while (0)

#endif
