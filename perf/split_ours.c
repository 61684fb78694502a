/* split_ours.c - the library, by its public calls: two threads that block, one runtime. */
#include <config.h>

#include <reeve/reeve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/split.h"

#define WAIT_MS 10000

struct ours {
	reeve_rt_t *rt;
	reeve_cfg_t cfg;
	reeve_upgrade_t up;
	uint8_t key[32];
	struct rvp_split_task task;
	struct rvp_split_box box;
	const struct rvp_split_load *load;
	/* of an iteration, or of the connection that is kept */
	reeve_listener_t *listener;
	reeve_conn_t *conn[2];
	reeve_stream_t *stream[2]; /* the sender's, the receiver's */
	uint8_t *buf;
	unsigned mib;
};

static void *
ours_open(const struct rvp_split_load *l)
{
	struct ours *o = calloc(1, sizeof(*o));
	reeve_rt_cfg_t rc;

	rvp_check(o != NULL, "memory");
	reeve_rt_cfg_init(&rc);
	rc.workers = l->workers;
	rvp_must(reeve_rt_create(&o->rt, &rc), "runtime");
	/* No signature is made with it: any 32 bytes are a key. */
	memset(o->key, 7, sizeof(o->key));
	o->up = (reeve_upgrade_t){.size = sizeof(o->up),
	    .security = REEVE_PLAINTEXT,
	    .muxers = {REEVE_MPLEX},
	    .timeout_ms = 5000,
	    .key = o->key};
	reeve_cfg_init(&o->cfg);
	o->cfg.split = (uint32_t)l->split;
	o->cfg.upgrade = &o->up;
	rvp_split_box_init(&o->box);
	rvp_split_task_start(&o->task, l->pin);
	return o;
}

static void
listen_at(struct ours *o)
{
	unsigned host = rvp_split_host(o->load);
	char addr[RVP_SPLIT_ADDR];

	if (o->load->transport == RVP_TCP)
		snprintf(addr, sizeof(addr), "tcp://%u.%u.%u.%u:0", host >> 24, host >> 16 & 255,
		    host >> 8 & 255, host & 255);
	else
		snprintf(addr, sizeof(addr), "mem://split-%u", o->load->turn);
	rvp_must(reeve_listen(&o->listener, o->rt, addr, &o->cfg), "listen");
}

/* The receiver's thread: what is accepted. */
static void
meet(struct ours *o)
{
	char addr[RVP_SPLIT_ADDR];

	rvp_must(reeve_listener_addr(o->listener, addr, sizeof(addr)), "address");
	rvp_split_box_put(&o->box, addr);
	rvp_must(reeve_listener_accept(o->listener, &o->conn[1], WAIT_MS), "connection");
	rvp_must(reeve_accept(reeve_conn_ctl(o->conn[1]), &o->stream[1], WAIT_MS), "stream");
}

/* The sender's: what is dialed. */
static void
dial(struct ours *o)
{
	char addr[RVP_SPLIT_ADDR];

	rvp_split_box_take(&o->box, addr);
	rvp_must(reeve_dial(&o->conn[0], o->rt, addr, &o->cfg, WAIT_MS), "dial");
	rvp_must(reeve_open(reeve_conn_ctl(o->conn[0]), &o->stream[0], WAIT_MS), "open");
}

static void
write_all(struct ours *o, size_t bytes)
{
	size_t off = 0;
	reeve_ssize n;

	while (off < bytes) {
		n = reeve_write(o->stream[0], o->load->payload + off, bytes - off);
		rvp_must(n, "write");
		off += (size_t)n;
	}
}

static void
read_all(struct ours *o, size_t bytes)
{
	size_t off = 0, want;
	reeve_ssize n;

	while (off < bytes) {
		want = bytes - off < RVP_SPLIT_READ ? bytes - off : RVP_SPLIT_READ;
		n = reeve_read(o->stream[1], o->buf + off, want);
		rvp_must(n, "read");
		rvp_check(n > 0, "an early end");
		off += (size_t)n;
	}
}

static void
let_go(struct ours *o, int end)
{
	reeve_close(o->stream[end]);
	if (end == 0) /* a graceful end: what was accepted leaves */
		(void)reeve_conn_close(o->conn[0], WAIT_MS);
	reeve_conn_destroy(o->conn[end]);
}

static void
receive(void *arg)
{
	struct ours *o = arg;

	meet(o);
	o->buf = calloc(1, o->load->bytes);
	rvp_check(o->buf != NULL, "memory");
	read_all(o, o->load->bytes);
	if (o->load->check)
		rvp_split_same(o->buf, o->load);
	free(o->buf);
	let_go(o, 1);
	reeve_listener_destroy(o->listener);
}

static void
ours_once(void *run, const struct rvp_split_load *l)
{
	struct ours *o = run;

	o->load = l;
	listen_at(o);
	rvp_split_task_run(&o->task, receive, o);
	dial(o);
	write_all(o, l->bytes);
	let_go(o, 0);
	rvp_split_task_wait(&o->task);
}

static void
meet_task(void *arg)
{
	meet(arg);
}

static void
ours_keep(void *run, const struct rvp_split_load *l)
{
	struct ours *o = run;

	o->load = l;
	o->buf = calloc(1, RVP_SPLIT_PAYLOAD);
	rvp_check(o->buf != NULL, "memory");
	listen_at(o);
	rvp_split_task_run(&o->task, meet_task, o);
	dial(o);
	write_all(o, 1); /* the opening leaves with the first byte at the latest */
	rvp_split_task_wait(&o->task);
	read_all(o, 1);
}

static void
receive_kept(void *arg)
{
	struct ours *o = arg;

	for (unsigned i = 0; i < o->mib; i++)
		read_all(o, RVP_SPLIT_PAYLOAD);
	if (o->load->check)
		rvp_split_same(o->buf, o->load);
}

static void
ours_carry(void *run, const struct rvp_split_load *l, unsigned mib)
{
	struct ours *o = run;

	o->load = l;
	o->mib = mib;
	rvp_split_task_run(&o->task, receive_kept, o);
	for (unsigned i = 0; i < mib; i++)
		write_all(o, RVP_SPLIT_PAYLOAD);
	rvp_split_task_wait(&o->task);
}

static void
ours_close(void *run)
{
	struct ours *o = run;

	if (o->mib != 0) {
		reeve_close(o->stream[0]);
		reeve_close(o->stream[1]);
		reeve_conn_destroy(o->conn[0]);
		reeve_conn_destroy(o->conn[1]);
		reeve_listener_destroy(o->listener);
		free(o->buf);
	}
	rvp_split_task_stop(&o->task);
	rvp_split_box_fini(&o->box);
	reeve_rt_destroy(o->rt);
	free(o);
}

const struct rvp_split_kind rvp_split_ours = {
    "ours", ours_open, ours_once, ours_keep, ours_carry, ours_close};
