/*
 * open.c - how fast streams and connections begin and end.
 *
 * usage: open [--quick] [--pin] [--rounds=N] [--echo]    --echo: only the streams that carry a byte there and back
 *
 * Streams: one side opens and closes, the other accepts and closes; microseconds per stream until the last
 * was accepted.  By operations with several opens on their way, and by blocking calls of one thread a side.
 * Connections: dialed by one thread, accepted by another, ended at once at both ends; beside them connect,
 * accept and close of plain sockets.
 */
#include <config.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/kit.h"
#include "perf/nodes.h"
#include "perf/open.h"
#include "queues/latch.h"

#define AHEAD 64 /* opens, and accepts, on their way */

static struct rvp_options options;

/* A case's unit is its contender here; its figure is microseconds. */

/* --- streams by operations --- */

struct mill {
	struct rvp_nodes nodes;
	reeve_op_t opens[AHEAD], accepts[AHEAD];
	unsigned n, started,
	    accepted; /* started: the dialing worker's, accepted: the listening worker's */
	struct rvq_latch done;
};

static void
opened(reeve_op_t *op)
{
	struct mill *m = op->arg;

	if (op->res < 0)
		return;
	reeve_close(op->stream);
	if (m->started < m->n) {
		m->started++;
		reeve_open_async(m->nodes.ctl[0], op);
	}
}

static void
accepted(reeve_op_t *op)
{
	struct mill *m = op->arg;

	if (op->res < 0)
		return;
	reeve_close(op->stream);
	if (++m->accepted == m->n)
		rvq_latch_set(&m->done);
	reeve_accept_async(m->nodes.ctl[1], op);
}

static double
run_operations(void *arg)
{
	struct mill *m = calloc(1, sizeof(*m));
	uint64_t began;
	unsigned i;

	rvp_check(m != NULL, "memory");
	m->n = options.quick ? 4000 : 200000;
	m->started = AHEAD;
	rvq_latch_init(&m->done);
	rvp_nodes_open(&m->nodes, *(enum rvp_transport *)arg, NULL, options.pin);
	for (i = 0; i < AHEAD; i++) {
		reeve_op_init(&m->accepts[i], accepted, m);
		reeve_accept_async(m->nodes.ctl[1], &m->accepts[i]);
	}
	began = rvp_now_ns();
	for (i = 0; i < AHEAD; i++) {
		reeve_op_init(&m->opens[i], opened, m);
		reeve_open_async(m->nodes.ctl[0], &m->opens[i]);
	}
	(void)rvq_latch_wait(&m->done, UINT64_MAX);
	began = rvp_now_ns() - began;
	i = m->n;
	rvp_nodes_close(&m->nodes);
	free(m);
	return (double)began / 1000 / i;
}

/* --- streams by blocking calls --- */

struct taker {
	reeve_ctl_t *ctl;
	unsigned n;
};

static void *
take_streams(void *arg)
{
	struct taker *t = arg;
	reeve_stream_t *s;

	for (; t->n > 0; t->n--) {
		rvp_must(reeve_accept(t->ctl, &s, -1), "accept");
		reeve_close(s);
	}
	return NULL;
}

static double
run_blocking(void *arg)
{
	unsigned n = options.quick ? 1000 : 10000, i;
	struct rvp_nodes nodes;
	struct taker t = {.n = n};
	reeve_stream_t *s;
	pthread_t thread;
	uint64_t began;

	rvp_nodes_open(&nodes, *(enum rvp_transport *)arg, NULL, options.pin);
	t.ctl = nodes.ctl[1];
	rvp_thread(&thread, take_streams, &t, options.pin ? 1 : RVP_ANY_CPU);
	began = rvp_now_ns();
	for (i = 0; i < n; i++) {
		rvp_must(reeve_open(nodes.ctl[0], &s, -1), "open");
		reeve_close(s);
	}
	pthread_join(thread, NULL);
	began = rvp_now_ns() - began;
	rvp_nodes_close(&nodes);
	return (double)began / 1000 / n;
}

/* --- connections --- */

struct door {
	reeve_listener_t *listener;
	int fd;
	unsigned n;
};

static void *
take_connections(void *arg)
{
	struct door *d = arg;
	reeve_conn_t *c;

	for (; d->n > 0; d->n--) {
		rvp_must(reeve_listener_accept(d->listener, &c, -1), "accept");
		reeve_conn_destroy(c);
	}
	return NULL;
}

static double
run_connections(void *arg)
{
	unsigned n = options.quick ? 200 : 2000, i;
	struct door d = {.n = n};
	reeve_rt_t *rt[2];
	char addr[64];
	reeve_conn_t *c;
	pthread_t thread;
	uint64_t began;

	(void)arg;
	for (i = 0; i < 2; i++)
		rvp_must(reeve_rt_create(&rt[i],
			     &(reeve_rt_cfg_t){.size = sizeof(reeve_rt_cfg_t), .workers = 1}),
		    "runtime");
	rvp_must(reeve_listen(&d.listener, rt[1], "tcp://127.0.0.1:0", NULL), "listen");
	rvp_must(reeve_listener_addr(d.listener, addr, sizeof(addr)), "address");
	rvp_thread(&thread, take_connections, &d, options.pin ? 1 : RVP_ANY_CPU);
	began = rvp_now_ns();
	for (i = 0; i < n; i++) {
		rvp_must(reeve_dial(&c, rt[0], addr, NULL, -1), "dial");
		reeve_conn_destroy(c);
	}
	pthread_join(thread, NULL);
	began = rvp_now_ns() - began;
	reeve_listener_destroy(d.listener);
	reeve_rt_destroy(rt[0]);
	reeve_rt_destroy(rt[1]);
	return (double)began / 1000 / n;
}

static void *
take_sockets(void *arg)
{
	struct door *d = arg;
	int fd;

	for (; d->n > 0; d->n--) {
		fd = accept(d->fd, NULL, NULL);
		rvp_check(fd >= 0, "accept");
		close(fd);
	}
	return NULL;
}

static double
run_sockets(void *arg)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	unsigned n = options.quick ? 200 : 2000, i;
	struct door d = {.n = n};
	socklen_t len = sizeof(at);
	pthread_t thread;
	uint64_t began;
	int fd;

	(void)arg;
	d.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rvp_check(d.fd >= 0 && bind(d.fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		listen(d.fd, SOMAXCONN) == 0 &&
		getsockname(d.fd, (struct sockaddr *)&at, &len) == 0,
	    "listen");
	rvp_thread(&thread, take_sockets, &d, options.pin ? 1 : RVP_ANY_CPU);
	began = rvp_now_ns();
	for (i = 0; i < n; i++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		rvp_check(
		    fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "connect");
		close(fd);
	}
	pthread_join(thread, NULL);
	began = rvp_now_ns() - began;
	close(d.fd);
	return (double)began / 1000 / n;
}

/* --- lines --- */

static void
cell(const char *row, const char *contender, const char *what, const char *unit, const double *v)
{
	struct rvp_cell c = {"opens", row, contender, what, unit, 0};

	rvp_cell_print(&c, v, options.rounds);
}

/* us each: time and rate. */
static void
report(const char *row, const char *contender, const double *us)
{
	double rate[RVP_ROUNDS_MAX];

	for (unsigned i = 0; i < options.rounds; i++)
		rate[i] = 1e6 / us[i];
	cell(row, contender, "time", "us", us);
	cell(row, contender, "rate", "opens/s", rate);
}

static void
echo_report(const char *contender, const struct rvp_echoes *e)
{
	static const char row[] = "streams with an echo, 64 at once";

	report(row, contender, e->us);
	cell(row, contender, "p50", "us", e->p50);
	cell(row, contender, "p99", "us", e->p99);
}

static int
echoes_only(void)
{
	static struct rvp_echoes one[2];

	for (unsigned i = 0; i < options.rounds; i++)
		for (unsigned k = 0; k < 2; k++)
			rvp_open_echo(&one[k], i, k, options.quick, options.pin);
	echo_report("operations", &one[0]);
	echo_report("one-worker", &one[1]);
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	static enum rvp_transport tcp = RVP_TCP, memory = RVP_MEMORY;
	static struct rvp_case cases[] = {
	    {"streams tcp, 64 at once", "operations", run_operations, &tcp, {0}},
	    {"streams memory, 64 at once", "operations", run_operations, &memory, {0}},
	    {"streams tcp, one by one", "calls", run_blocking, &tcp, {0}},
	    {"streams memory, one by one", "calls", run_blocking, &memory, {0}},
	    {"connections tcp", "calls", run_connections, NULL, {0}},
	    {"connections tcp", "sockets", run_sockets, NULL, {0}},
	};
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	double ratio[RVP_ROUNDS_MAX];
	const bool echoes = argc > 1 && strcmp(argv[argc - 1], "--echo") == 0;

	rvp_options(&options, argc - (echoes ? 1 : 0), argv);
	if (echoes)
		return echoes_only();
	rvp_rounds(cases, n, options.rounds);
	for (size_t i = 0; i < n; i++)
		report(cases[i].name, cases[i].unit, cases[i].values);
	for (unsigned i = 0; i < options.rounds; i++)
		ratio[i] = cases[4].values[i] / cases[5].values[i];
	cell("connections tcp", "calls/sockets", "time", "ratio", ratio);
	return echoes_only();
}
