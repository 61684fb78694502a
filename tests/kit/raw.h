/* raw.h - one connection of ours against the scripted peer, and calls that block in threads of their own.
 *
 * Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_RAW_H
#define REEVE_TESTS_KIT_RAW_H

#include <pthread.h>
#include <reeve/reeve.h>

#include "tests/kit/base.h"
#include "tests/kit/peer.h"

struct rvt_raw {
	reeve_rt_t *rt;
	reeve_conn_t *c;
	reeve_ctl_t *k; /* borrowed from c */
	struct rvt_peer p;
	struct rvt_base base;
};
/* Ours has the role; cfg NULL: defaults.  Joined by a socket pair, or by TCP. */
void rvt_raw_open(struct rvt_raw *r, int role, const reeve_cfg_t *cfg);
void rvt_raw_open_tcp(struct rvt_raw *r, int role, const reeve_cfg_t *cfg);
/* Descriptors and threads are what they were before. */
void rvt_raw_fini(struct rvt_raw *r);
/* The peer opens id, we accept; all frames of that are consumed. */
reeve_stream_t *rvt_raw_inbound(struct rvt_raw *r, uint32_t id);
/* We open, the peer acknowledges. */
reeve_stream_t *rvt_raw_outbound(struct rvt_raw *r);
/* The transport takes no more: what the peer does not read has filled it. */
void rvt_raw_stalled(struct rvt_raw *r);
/* Counters of the connection. */
reeve_stats_t rvt_stats(reeve_ctl_t *k);
/* Wait until the connection has no stream; and until it has ended: its reason. */
void rvt_no_streams(reeve_ctl_t *k);
int rvt_closed(reeve_ctl_t *k);
/* The connection ended for this reason, and every kind of call says so. */
void rvt_raw_want_reason(struct rvt_raw *r, int rc, uint32_t by);

/* The first n bytes of a stream; free it. */
uint8_t *rvt_pattern(uint32_t id, size_t n);
/* n bytes of the stream, from the given one, and then "no more" (0) or the error. */
void rvt_want_read(reeve_stream_t *s, uint64_t n, uint64_t from);
void rvt_want_write(reeve_stream_t *s, size_t n, uint64_t from);
/* The next read is 0 or an error. */
void rvt_want_rc(reeve_stream_t *s, reeve_ssize rc);

enum rvt_call_kind {
	RVT_CALL_READ,
	RVT_CALL_WRITE,
	RVT_CALL_OPEN,
	RVT_CALL_ACCEPT,
	RVT_CALL_PING,
	RVT_CALL_CLOSE,
};
/* One blocking call in a thread. */
struct rvt_call {
	enum rvt_call_kind kind;
	reeve_stream_t *s; /* read, write; result of open and accept */
	reeve_ctl_t *k;
	reeve_conn_t *c;
	int64_t timeout_ms;
	void *p;
	size_t n;
	reeve_ssize rc;
	uint64_t ms; /* how long it took */
	/* own */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int tid;
	bool done;
};
/* Fill in kind and what it needs, then start. */
void rvt_call_start(struct rvt_call *c);
/* It has begun to sleep (or is done). */
void rvt_call_asleep(struct rvt_call *c);
bool rvt_call_done(struct rvt_call *c);
/* Wait for its end (deadline RVT_WAIT_MS) and return its result. */
reeve_ssize rvt_call_end(struct rvt_call *c);

#endif
