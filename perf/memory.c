/*
 * memory.c - what streams cost when nothing happens on them, and what a stream that nobody reads holds.
 *
 * Idle: 100 connections of 1000 streams each, both ends in this process over the memory pipe.  Bytes are
 * counted twice, as the growth of the resident set and as what the runtime has from its allocator, per
 * stream and side; at first untouched, then after every stream has carried a byte there and back by
 * asynchronous operations, then by blocking calls.  Each byte is checked.
 *
 * Dialed: connections over TCP, in the clear and with noise.  Active: streams with as much bulk as they can carry, by callbacks.
 *
 * Unread: a peer without the library (peer.c) sends one frame of the size in question on a stream that nobody
 * reads for every 64 KiB, the rest on a stream that is read, until the window of the first is full or
 * 4096 frames were sent.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf/kit.h"
#include "perf/nodes.h"
#include "perf/peer.h"
#include "queues/latch.h"

#define CONNECTIONS 100
#define STREAMS     1000 /* of each connection */
#define PART        100  /* opened before they are accepted: less than may be unanswered */
#define UNTIL_NS    UINT64_C(30000000000)

static unsigned streams_each = STREAMS;

struct pair {
	reeve_conn_t *conn[2];
	reeve_stream_t *s[2][STREAMS]; /* [0] opened, [1] accepted */
};

/* x: the number behind the row; 0: none. */
static void
line(const char *row, const char *what, const char *unit, double x, double value)
{
	struct rvp_cell c = {"memory", row, "ours", what, unit, x};

	rvp_cell_print(&c, &value, 1);
}

struct level {
	uint64_t rss, heap;
};

static struct level
level(reeve_rt_t *rt)
{
	return (struct level){rvp_rss(), rvp_heap(rt)};
}

/* Per one of n. */
static void
report(const char *row, struct level from, struct level to, unsigned n)
{
	line(row, "resident", "B", 0, (double)(int64_t)(to.rss - from.rss) / n);
	line(row, "allocated", "B", 0, (double)(int64_t)(to.heap - from.heap) / n);
}

static void
open_all(struct pair *p)
{
	unsigned i, k;

	for (i = 0; i < streams_each; i += PART) {
		for (k = i; k < i + PART; k++)
			rvp_must(reeve_open(reeve_conn_ctl(p->conn[0]), &p->s[0][k], -1), "open");
		for (k = i; k < i + PART; k++)
			rvp_must(
			    reeve_accept(reeve_conn_ctl(p->conn[1]), &p->s[1][k], -1), "accept");
	}
}

/* --- a byte there and back by operations, one stream after the other --- */

struct trip {
	reeve_rt_t *rt;
	reeve_op_t read[2], write[2];
	reeve_stream_t *s[2];
	uint8_t byte;
	bool right;
	struct rvq_latch done;
};

static void
trip_send(struct trip *t, int side, uint8_t byte)
{
	reeve_buf_t *b = reeve_buf_alloc(t->rt, 1);

	rvp_check(b != NULL, "memory");
	*reeve_buf_mut(b) = byte;
	reeve_write_async(t->s[side], b, &t->write[side]);
}

static void
trip_written(reeve_op_t *op)
{
	rvp_must(op->res, "write");
}

static void
trip_there(reeve_op_t *op)
{
	struct trip *t = op->arg;
	uint8_t byte;

	rvp_check(op->res == 1, "a byte");
	byte = *reeve_buf_data(op->buf);
	reeve_buf_unref(op->buf);
	trip_send(t, 1, byte);
}

static void
trip_back(reeve_op_t *op)
{
	struct trip *t = op->arg;

	t->right = op->res == 1 && *reeve_buf_data(op->buf) == t->byte;
	reeve_buf_unref(op->buf);
	rvq_latch_set(&t->done);
}

static void
echo_async(reeve_rt_t *rt, reeve_stream_t *opened, reeve_stream_t *accepted, uint8_t byte)
{
	struct trip t = {.rt = rt, .s = {opened, accepted}, .byte = byte};
	int i;

	rvq_latch_init(&t.done);
	for (i = 0; i < 2; i++) {
		reeve_op_init(&t.read[i], i == 0 ? trip_back : trip_there, &t);
		reeve_op_init(&t.write[i], trip_written, &t);
		reeve_read_async(t.s[i], &t.read[i]);
	}
	trip_send(&t, 0, byte);
	(void)rvq_latch_wait(&t.done, UINT64_MAX);
	rvp_check(t.right, "the byte that came back");
}

static void
echo_blocking(reeve_stream_t *opened, reeve_stream_t *accepted, uint8_t byte)
{
	uint8_t back = 0, there = 0;

	rvp_must(reeve_write(opened, &byte, 1), "write");
	rvp_check(reeve_read(accepted, &there, 1) == 1, "read");
	rvp_must(reeve_write(accepted, &there, 1), "write");
	rvp_check(reeve_read(opened, &back, 1) == 1 && back == byte, "the byte that came back");
}

/* How many streams were usable at both ends, by one kind of call or the other. */
static unsigned
use_all(reeve_rt_t *rt, struct pair *pairs, unsigned n, bool blocking)
{
	unsigned i, k, used = 0;

	for (i = 0; i < n; i++) {
		for (k = 0; k < streams_each; k++, used++) {
			uint8_t byte = (uint8_t)(i + k + 1);

			if (blocking)
				echo_blocking(pairs[i].s[0][k], pairs[i].s[1][k], byte);
			else
				echo_async(rt, pairs[i].s[0][k], pairs[i].s[1][k], byte);
		}
	}
	return used;
}

/* A round trip on every connection: what was posted to its workers before is done. */
static void
settle(struct pair *pairs, unsigned n)
{
	uint64_t us;
	unsigned i;

	for (i = 0; i < n; i++) {
		rvp_must(reeve_ping(reeve_conn_ctl(pairs[i].conn[0]), -1, &us), "ping");
		rvp_must(reeve_ping(reeve_conn_ctl(pairs[i].conn[1]), -1, &us), "ping");
	}
}

static void
idle(const struct rvp_options *o)
{
	unsigned conns = o->quick ? CONNECTIONS / 10 : CONNECTIONS, i, k, sides;
	struct pair *pairs = malloc(conns * sizeof(*pairs));
	struct level none, connected, opened, used;
	reeve_rt_t *rt;

	rvp_check(pairs != NULL, "memory");
	memset(pairs, 1, conns * sizeof(*pairs)); /* resident from here on */
	sides = 2 * conns * streams_each;
	rvp_must(reeve_rt_create(&rt, NULL), "runtime");
	/* The first connection brings what is there once: pools, stacks, code. */
	rvp_must(reeve_conn_pair(pairs[0].conn, rt, NULL), "pair");
	settle(pairs, 1);
	none = level(rt);
	for (i = 1; i < conns; i++)
		rvp_must(reeve_conn_pair(pairs[i].conn, rt, NULL), "pair");
	settle(pairs, conns);
	connected = level(rt);
	report("idle connection, memory pipe, a side", none, connected, 2 * (conns - 1));
	for (i = 0; i < conns; i++)
		open_all(&pairs[i]);
	settle(pairs, conns);
	opened = level(rt);
	report("idle stream, a side", connected, opened, sides);
	rvp_check(use_all(rt, pairs, conns, false) == sides / 2, "a stream is not usable");
	settle(pairs, conns);
	used = level(rt);
	report("used stream, a side, by operations", connected, used, sides);
	rvp_check(use_all(rt, pairs, conns, true) == sides / 2, "a stream is not usable");
	settle(pairs, conns);
	used = level(rt);
	report("used stream, a side, by operations and calls", connected, used, sides);
	for (i = 0; i < conns; i++) {
		for (k = 0; k < streams_each; k++) {
			reeve_close(pairs[i].s[0][k]);
			reeve_close(pairs[i].s[1][k]);
		}
		reeve_conn_destroy(pairs[i].conn[0]);
		reeve_conn_destroy(pairs[i].conn[1]);
	}
	reeve_rt_destroy(rt);
	free(pairs);
}

/* --- a stream that nobody reads --- */

struct sink {
	reeve_op_t accept, read;
	reeve_ctl_t *ctl;
	reeve_stream_t *s[2]; /* [0] is not read, [1] is */
	unsigned accepted;
	struct rvq_counter read_bytes;
	struct rvq_latch ready;
};

static void
sink_read(reeve_op_t *op)
{
	struct sink *k = op->arg;

	if (op->res <= 0)
		return;
	rvq_counter_add(&k->read_bytes, (uint64_t)op->res);
	reeve_buf_unref(op->buf);
	reeve_read_async(k->s[1], op);
}

static void
sink_accept(reeve_op_t *op)
{
	struct sink *k = op->arg;

	if (op->res < 0)
		return;
	k->s[k->accepted++] = op->stream;
	if (k->accepted < 2) {
		reeve_accept_async(k->ctl, op);
		return;
	}
	reeve_read_async(k->s[1], &k->read);
	rvq_latch_set(&k->ready);
}

static void
unread(uint32_t body)
{
	struct sink k = {.accepted = 0};
	reeve_stats_t stats = {.size = sizeof(stats)};
	struct rvp_peer peer;
	reeve_conn_t *conn;
	reeve_rt_t *rt;
	char name[96];
	uint64_t sent, until = rvp_now_ns() + UNTIL_NS;
	unsigned i;

	rvp_must(reeve_rt_create(&rt, NULL), "runtime");
	rvp_must(reeve_conn_open_fd(&conn, rt, rvp_peer_start(&peer), REEVE_LISTENER, NULL),
	    "connection");
	k.ctl = reeve_conn_ctl(conn);
	rvq_latch_init(&k.ready);
	reeve_op_init(&k.accept, sink_accept, &k);
	reeve_op_init(&k.read, sink_read, &k);
	reeve_accept_async(k.ctl, &k.accept);
	sent = rvp_peer_interleave(&peer, body, 4096);
	/* Everything was sent; it has arrived when the counts say so. */
	(void)rvq_latch_wait(&k.ready, UINT64_MAX);
	do {
		rvp_peer_listen(&peer, 1);
		rvp_must(reeve_ctl_stats(k.ctl, &stats), "stats");
		rvp_check(rvp_now_ns() < until, "bytes did not arrive");
	} while (rvq_counter_get(&k.read_bytes) != peer.sent[1] || stats.unread != sent);
	snprintf(name, sizeof(name), "unread, bodies of %u B", body);
	line(name, "held", "B", body, (double)stats.held);
	line(name, "held/sent", "ratio", body, (double)stats.held / (double)sent);
	line(name, "held/window", "ratio", body, (double)stats.held / RVP_PEER_WINDOW);
	reeve_conn_destroy(conn);
	reeve_rt_destroy(rt);
	for (i = 0; i < 2; i++)
		reeve_stream_unref(k.s[i]);
	rvp_peer_stop(&peer);
}

/* --- a connection over TCP --- */

static void
dialed(const char *row, uint32_t security, unsigned n)
{
	static const uint8_t seed[32] = {9};
	reeve_upgrade_t up = {
	    .size = sizeof(up), .security = security, .muxers = {REEVE_YAMUX}, .key = seed};
	reeve_conn_t **conn = calloc(2 * (size_t)n, sizeof(*conn));
	struct level before = {0, 0};
	reeve_listener_t *l;
	reeve_key_t *key = NULL;
	reeve_rt_t *rt;
	reeve_cfg_t cfg;
	char addr[64];

	rvp_check(conn != NULL, "memory");
	if (security == REEVE_NOISE) {
		if (reeve_key_from_seed(&key, seed) < 0) {
			free(conn);
			return; /* built without it */
		}
		up.key = NULL;
		up.identity = key;
	}
	reeve_cfg_init(&cfg);
	cfg.upgrade = security != 0 ? &up : NULL;
	rvp_must(reeve_rt_create(&rt, NULL), "runtime");
	rvp_must(reeve_listen(&l, rt, "tcp://127.0.0.1:0", &cfg), "listen");
	rvp_must(reeve_listener_addr(l, addr, sizeof(addr)), "address");
	for (unsigned i = 0; i < n; i++) {
		rvp_must(reeve_dial(&conn[2 * i], rt, addr, &cfg, -1), "dial");
		rvp_must(reeve_listener_accept(l, &conn[2 * i + 1], -1), "accept");
		if (i == 0)
			before = level(rt);
	}
	report(row, before, level(rt), 2 * (n - 1));
	for (unsigned i = 0; i < 2 * n; i++)
		reeve_conn_destroy(conn[i]);
	reeve_listener_destroy(l);
	reeve_rt_destroy(rt);
	reeve_key_free(key);
	free(conn);
}

/* --- streams that carry --- */

static void
active(unsigned streams, double seconds)
{
	struct rvp_load l = {.transport = RVP_TCP, .streams = streams, .write = 65536};
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	uint64_t before = rvp_rss();
	char row[64];
	void *run = rvp_worker_flow.start(&l);

	(void)nanosleep(&t, NULL);
	snprintf(row, sizeof(row), "active stream, %u of them, both sides", streams);
	line(row, "resident", "B", streams, (double)(int64_t)(rvp_rss() - before) / streams);
	rvp_check(rvp_worker_flow.received(run) > 0, "nothing was carried");
	rvp_worker_flow.stop(run);
}

int
main(int argc, char **argv)
{
	static const uint32_t bodies[] = {1, 64, 1024, 2048, 4096, 16384, 65536};
	struct rvp_options options;
	size_t i;

	rvp_options(&options, argc, argv);
	idle(&options);
	dialed("idle connection, TCP, a side", 0, options.quick ? 20 : 200);
	dialed("idle connection, TCP and noise, a side", REEVE_NOISE, options.quick ? 20 : 200);
	for (i = 1; i <= 64; i *= 8)
		active((unsigned)i, options.quick ? 0.05 : 0.5);
	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		unread(bodies[i]);
	return EXIT_SUCCESS;
}
