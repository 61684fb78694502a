/*
 * notifications_nodes.c - the carrier that is ours: two nodes with a runtime each, one connection over TCP on 127.0.0.1.
 *
 * Only public calls.  A message is the application's memory, wrapped and freed by the library when it has gone; what
 * comes is a buffer that the receiver owns.  Requests are answered by a callback on a worker.
 */
#include <config.h>

#include "perf/notifications.h"

#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"
#include "queues/cell.h"

#define NEVER 3600000

struct end {
	reeve_rt_t *rt;
	reeve_node_t *node;
	reeve_notif_t *notes;
	reeve_reqs_t *reqs;
	char id[REEVE_PEER_TEXT];
};

struct nodes {
	struct end end[2];
	reeve_sink_t *sink;
	int64_t timeout_ms;
	struct rvq_cell64 size; /* of a response */
};

static void
node_start(struct end *e, const struct rvp_wanted *w, uint8_t number)
{
	uint8_t seed[32] = {number};
	reeve_node_cfg_t cfg;
	reeve_rt_cfg_t rt;
	reeve_cfg_t conn;
	reeve_upgrade_t up = {.size = sizeof(up), .security = w->security, .muxers = {REEVE_YAMUX}};
	reeve_key_t *key = NULL;

	reeve_rt_cfg_init(&rt);
	rt.workers = w->workers;
	rvp_must(reeve_rt_create(&e->rt, &rt), "runtime");
	if (w->security == REEVE_NOISE)
		rvp_must(reeve_key_from_seed(&key, seed), "key");
	up.identity = key;
	up.key = key == NULL ? seed : NULL;
	reeve_cfg_init(&conn);
	conn.upgrade = &up;
	reeve_node_cfg_init(&cfg);
	cfg.conn = &conn;
	cfg.idle_ms = NEVER;
	rvp_must(reeve_node_create(&e->node, e->rt, &cfg), "node");
	reeve_key_free(key);
	rvp_check(reeve_node_id(e->node, e->id, sizeof(e->id)) > 0, "id");
}

/* --- notifications --- */

static void
install_notes(struct end *e)
{
	static const char *const names[] = {"/reeve/bench/notifications/1"};
	reeve_notif_cfg_t cfg;

	reeve_notif_cfg_init(&cfg);
	cfg.names = names;
	cfg.nnames = 1;
	cfg.max_size = RVP_MESSAGE_MAX;
	cfg.flags = REEVE_NOTIF_ACCEPT_ALL;
	rvp_must(reeve_notif_install(&e->notes, e->node, &cfg), "protocol");
}

static void
open_notes(struct nodes *n)
{
	reeve_notif_event_t ev;

	rvp_must(reeve_notif_open(n->end[0].notes, n->end[1].id), "open");
	for (int i = 0; i < 2; i++) {
		rvp_must(reeve_notif_next(n->end[i].notes, &ev, -1), "event");
		rvp_check(ev.type == REEVE_NOTIF_OPENED, "stream");
		if (i == 0)
			n->sink = reeve_sink_ref(ev.sink);
		reeve_notif_release(n->end[i].notes, &ev);
	}
}

static void
nodes_send(void *run, uint8_t *bytes, size_t size)
{
	struct nodes *n = run;
	reeve_buf_t *b = NULL;

	if (size > 0) {
		b = reeve_buf_wrap(n->end[0].rt, bytes, size, free, bytes);
		rvp_check(b != NULL, "memory");
	}
	rvp_must(reeve_sink_send(n->sink, b, -1), "send");
}

static void
nodes_receive(void *run, struct rvp_message *m)
{
	struct nodes *n = run;

	rvp_must(reeve_notif_next(n->end[1].notes, &m->ev, -1), "event");
	rvp_check(m->ev.type == REEVE_NOTIF_RECEIVED, "notification");
	m->n = m->ev.data != NULL ? reeve_buf_len(m->ev.data) : 0;
	m->bytes = m->n > 0 ? reeve_buf_data(m->ev.data) : NULL;
}

static void
nodes_let_go(void *run, struct rvp_message *m)
{
	struct nodes *n = run;

	reeve_notif_release(n->end[1].notes, &m->ev);
}

/* --- requests --- */

static void
on_request(reeve_inbound_t *in, void *arg)
{
	struct nodes *n = arg;
	size_t size = rvq_cell64_get(&n->size);
	uint8_t *bytes = rvp_zeros(size);
	reeve_buf_t *b = reeve_buf_wrap(n->end[1].rt, bytes, size, free, bytes);

	rvp_check(b != NULL, "memory");
	reeve_respond(in, b, NULL, NULL);
}

static void
install_requests(struct nodes *n, struct end *e, const struct rvp_wanted *w)
{
	static const char *const names[] = {"/reeve/bench/requests/1"};
	reeve_reqs_cfg_t cfg;

	reeve_reqs_cfg_init(&cfg);
	cfg.names = names;
	cfg.nnames = 1;
	cfg.flags = w->lazy ? REEVE_REQS_LAZY : 0;
	cfg.max_response = RVP_MESSAGE_MAX;
	cfg.max_inbound = 10;
	cfg.fn = on_request;
	cfg.arg = n;
	rvp_must(reeve_reqs_install(&e->reqs, e->node, &cfg), "protocol");
}

static void
nodes_ask(void *run, size_t size)
{
	struct nodes *n = run;
	uint8_t *two = rvp_zeros(2);
	reeve_buf_t *b = reeve_buf_wrap(n->end[0].rt, two, 2, free, two), *response;

	rvp_check(b != NULL, "memory");
	rvq_cell64_put(&n->size, size);
	rvp_must(
	    reeve_request(n->end[0].reqs, n->end[1].id, b, &response, n->timeout_ms), "request");
	rvp_check(response != NULL && reeve_buf_len(response) == size, "response");
	reeve_buf_unref(response);
}

/* --- both --- */

static void *
nodes_open(const struct rvp_wanted *w)
{
	struct nodes *n = calloc(1, sizeof(*n));
	char addr[64];

	rvp_check(n != NULL, "memory");
	n->timeout_ms = w->timeout_ms;
	for (int i = 0; i < 2; i++) {
		node_start(&n->end[i], w, (uint8_t)(i + 1));
		if (w->requests)
			install_requests(n, &n->end[i], w);
		else
			install_notes(&n->end[i]);
	}
	rvp_must(reeve_node_listen(n->end[1].node, "tcp://127.0.0.1:0"), "listen");
	rvp_check(reeve_node_addr(n->end[1].node, 0, addr, sizeof(addr)) > 0, "address");
	rvp_must(reeve_node_dial(n->end[0].node, n->end[1].id, addr, NULL, -1), "dial");
	if (!w->requests)
		open_notes(n);
	return n;
}

static void
nodes_close(void *run)
{
	struct nodes *n = run;
	reeve_notif_event_t ev;

	reeve_sink_unref(n->sink);
	for (int i = 0; i < 2; i++) {
		(void)reeve_node_close(n->end[i].node, 0);
		while (n->end[i].notes != NULL && reeve_notif_next(n->end[i].notes, &ev, 0) == 0)
			reeve_notif_release(n->end[i].notes, &ev);
		reeve_node_destroy(n->end[i].node);
	}
	for (int i = 0; i < 2; i++)
		reeve_rt_destroy(n->end[i].rt);
	free(n);
}

const struct rvp_carrier rvp_carrier_nodes = {
    nodes_open, nodes_send, nodes_receive, nodes_let_go, nodes_ask, nodes_close};
