/* req_kit.h - nodes with a request-response protocol, and peers of theirs that are scripted with streams.
 *
 * Check assertions inside: main thread of a test; nothing waits without a deadline. */
#ifndef REEVE_TESTS_NODE_REQ_KIT_H
#define REEVE_TESTS_NODE_REQ_KIT_H

#include <reeve/reeve.h>
#include <reeve/node.h>
#include <reeve/request.h>

#include "queues/cell.h"
#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/duo.h"

#define RQ_NAME "/req/1"

/* A node of ours on a runtime of its own, listening, with the protocol r. */
struct rq_node {
	struct rvt_alloc alloc;
	reeve_rt_t *rt;
	reeve_node_t *n;
	reeve_reqs_t *r;
	char id[REEVE_PEER_TEXT];
	char addr[300];
};
/* What rq_cfg makes: RQ_NAME alone, fn NULL. */
void rq_cfg(reeve_reqs_cfg_t *cfg);
/* workers 0: one.  cfg NULL: rq_cfg's, or a node's defaults (its conn needs no upgrade).  key: a number, another for each. */
void rq_start(struct rq_node *p, uint8_t key, const reeve_reqs_cfg_t *cfg);
void rq_start_node(struct rq_node *p, uint8_t key, unsigned workers, const reeve_node_cfg_t *cfg);
void rq_install(struct rq_node *p, const reeve_reqs_cfg_t *cfg);
/* a knows where b is, and not the other way round; rq_dial also connects. */
void rq_know(struct rq_node *a, const struct rq_node *b);
void rq_dial(struct rq_node *a, const struct rq_node *b);
reeve_node_stats_t rq_stats(struct rq_node *p);
/* Neither requests nor bytes are left. */
void rq_quiet(struct rq_node *p);
/* Everything is given back, all gauges are 0. */
void rq_stop(struct rq_node *p);

/* n bytes with a content of that seed; NULL for 0. */
reeve_buf_t *rq_buf(reeve_rt_t *rt, size_t n, unsigned seed);
/* b has these bytes; it is let go. */
void rq_want(reeve_buf_t *b, size_t n, unsigned seed);

/* A request that counts its completions. */
struct rq_ask {
	reeve_request_t q;
	struct rvq_cell32 calls;
	uint64_t ms; /* when it came */
};
void rq_ask_init(struct rq_ask *a, int64_t timeout_ms);
void rq_ask_start(struct rq_ask *a, struct rq_node *p, const char *peer, reeve_buf_t *body);
bool rq_ask_is(const struct rq_ask *a);
/* Its rc; it came once. */
int rq_ask_wait(struct rq_ask *a);
/* It failed so, in that step; a negative step: any. */
void rq_ask_want(struct rq_ask *a, int rc, int step);

/* What reeve_respond's done was told. */
struct rq_done {
	struct rvq_cell32 calls;
	int rc;
};
void rq_done_fn(void *arg, int rc);
int rq_done_wait(struct rq_done *d);

/* The next inbound request of p. */
reeve_inbound_t *rq_next(struct rq_node *p);
/* Answers with as many bytes as the first four of the request say, of the seed in the fifth: an inbound fn. */
void rq_echo(reeve_inbound_t *in, void *arg);
reeve_buf_t *rq_echo_body(reeve_rt_t *rt, uint32_t n, uint8_t seed);

/* A peer by hand: an upgraded connection and its streams. */
struct rq_raw {
	reeve_rt_t *rt;
	reeve_listener_t *l;
	reeve_conn_t *c;
	reeve_ctl_t *k;
	char id[REEVE_PEER_TEXT];
	char addr[300];
};
/* It listens, and p knows where. */
void rq_raw_listen(struct rq_raw *w, struct rq_node *p);
/* It takes the connection of a dial. */
void rq_raw_accept(struct rq_raw *w);
/* It dials p. */
void rq_raw_dial(struct rq_raw *w, struct rq_node *p);
void rq_raw_stop(struct rq_raw *w);
/* The next stream of p, negotiated or not; one of its own, negotiated. */
reeve_stream_t *rq_raw_in(struct rq_raw *w);
reeve_stream_t *rq_raw_in_bare(struct rq_raw *w);
reeve_stream_t *rq_raw_out(struct rq_raw *w);
/* A message is written, or read to the end of it: its content has the seed. */
void rq_raw_put(struct rq_raw *w, reeve_stream_t *s, size_t n, unsigned seed);
void rq_raw_get(reeve_stream_t *s, size_t n, unsigned seed);
/* Bytes, whatever they are. */
void rq_raw_bytes(reeve_stream_t *s, const void *p, size_t n);
/* The next read answers this: 0 an end, or an error. */
void rq_raw_end(reeve_stream_t *s, int rc);

#endif
