/*
 * notifications_nodes.c - the carrier that is ours: two nodes with a runtime each, one connection over TCP on 127.0.0.1;
 * and the making of such nodes, for all carriers of ours.
 *
 * Only public calls.  A message is a new buffer of the library's, set to zeros; what comes is a buffer that the receiver
 * owns.  (Memory of calloc, wrapped, is the same within a tenth: calloc gives back and takes pages.)  Requests are answered by a callback on a worker.
 */
#include <config.h>

#include "perf/notifications.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"
#include "perf/kit.h"
#include "queues/cell.h"

#define NEVER 3600000

struct nodes {
	struct rvp_node end[2];
	const struct rvp_wanted *wanted;
	reeve_sink_t *sink;
	int64_t timeout_ms;
	struct rvq_cell64 size; /* of a response */
};

static void
runtime_start(reeve_rt_t **rt, const struct rvp_wanted *w, unsigned cpu)
{
	cpu_set_t before;
	reeve_rt_cfg_t cfg;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = w->workers;
	rvp_check(sched_getaffinity(0, sizeof(before), &before) == 0, "affinity");
	if (w->pin)
		rvp_pin(cpu);
	rvp_must(reeve_rt_create(rt, &cfg), "runtime");
	(void)sched_setaffinity(0, sizeof(before), &before);
}

static void
node_start(struct rvp_node *e, const struct rvp_wanted *w, uint8_t number)
{
	uint8_t seed[32] = {number};
	reeve_node_cfg_t cfg;
	reeve_cfg_t conn;
	reeve_upgrade_t up = {.size = sizeof(up), .security = w->security, .muxers = {REEVE_YAMUX}};
	reeve_key_t *key = NULL;

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

/* A new buffer: a copy of from, or zeros. */
static reeve_buf_t *
fresh(struct rvp_node *e, const uint8_t *from, size_t size)
{
	reeve_buf_t *b = reeve_buf_alloc(e->rt, size);

	rvp_check(b != NULL, "memory");
	if (from != NULL)
		memcpy(reeve_buf_mut(b), from, size);
	else
		memset(reeve_buf_mut(b), 0, size);
	return b;
}

/* --- notifications --- */

void
rvp_nodes_install(struct rvp_node *e, reeve_notif_fn fn, void *arg)
{
	static const char *const names[] = {"/reeve/bench/notifications/1"};
	reeve_notif_cfg_t cfg;

	reeve_notif_cfg_init(&cfg);
	cfg.names = names;
	cfg.nnames = 1;
	cfg.max_size = RVP_MESSAGE_MAX;
	cfg.flags = REEVE_NOTIF_ACCEPT_ALL;
	cfg.fn = fn;
	cfg.arg = arg;
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
nodes_send(void *run, const uint8_t *from, size_t size)
{
	struct nodes *n = run;

	rvp_must(
	    reeve_sink_send(n->sink, size > 0 ? fresh(&n->end[0], from, size) : NULL, -1), "send");
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

	reeve_respond(in, fresh(&n->end[1], NULL, rvq_cell64_get(&n->size)), NULL, NULL);
}

static void
install_requests(struct nodes *n, struct rvp_node *e, const struct rvp_wanted *w)
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
	reeve_buf_t *b = fresh(&n->end[0], NULL, 2), *response;

	rvq_cell64_put(&n->size, size);
	rvp_must(
	    reeve_request(n->end[0].reqs, n->end[1].id, b, &response, n->timeout_ms), "request");
	rvp_check(response != NULL && reeve_buf_len(response) == size, "response");
	reeve_buf_unref(response);
}

/* --- both --- */

void
rvp_nodes_start(struct rvp_node end[2], const struct rvp_wanted *w,
    void (*install)(void *run, int i), void *run)
{
	char addr[64];

	for (int i = 0; i < 2; i++) {
		if (i == 0 || !w->callbacks)
			runtime_start(&end[i].rt, w, (unsigned)i);
		else
			end[i].rt = end[0].rt;
		node_start(&end[i], w, (uint8_t)(i + 1));
		install(run, i);
	}
	rvp_must(reeve_node_listen(end[1].node, "tcp://127.0.0.1:0"), "listen");
	rvp_check(reeve_node_addr(end[1].node, 0, addr, sizeof(addr)) > 0, "address");
	rvp_must(reeve_node_dial(end[0].node, end[1].id, addr, NULL, -1), "dial");
}

void
rvp_nodes_stop(struct rvp_node end[2])
{
	for (int i = 0; i < 2; i++)
		reeve_node_destroy(end[i].node);
	if (end[1].rt != end[0].rt)
		reeve_rt_destroy(end[1].rt);
	reeve_rt_destroy(end[0].rt);
}

static void
nodes_install(void *run, int i)
{
	struct nodes *n = run;

	if (n->wanted->requests)
		install_requests(n, &n->end[i], n->wanted);
	else
		rvp_nodes_install(&n->end[i], NULL, NULL);
}

static void *
nodes_open(const struct rvp_wanted *w)
{
	struct nodes *n = calloc(1, sizeof(*n));

	rvp_check(n != NULL, "memory");
	n->wanted = w;
	n->timeout_ms = w->timeout_ms;
	rvp_nodes_start(n->end, w, nodes_install, n);
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
	}
	rvp_nodes_stop(n->end);
	free(n);
}

const struct rvp_carrier rvp_carrier_nodes = {
    nodes_open, nodes_send, nodes_receive, nodes_let_go, nodes_ask, nodes_close, NULL};
