/*
 * latency.c - how long a small message takes there and back.
 *
 * A plain socket with a blocking thread at each end is the yardstick (raw); the same with threads in epoll loops (loop), the
 * library's blocking calls, its callbacks on workers and its ping take turns with it.  Each round is a fresh connection and a fixed
 * number of trips after a warm-up; figures are medians over the rounds of the round's median and 99th
 * percentile.  Ratios are of the same round.  Part of the question that perf/limit asks: its cells are of that bench.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/kit.h"
#include "perf/nodes.h"
#include "queues/latch.h"

#define TRIPS     3000
#define WARM_UP   300
#define BYTES_MAX 64

struct trips {
	enum rvp_transport transport;
	size_t size;
	unsigned n; /* after the warm-up */
	bool pin;
	uint64_t ns[TRIPS + WARM_UP];
};

/* --- a plain socket --- */

struct echo {
	int fd;
	size_t size;
};

/* False at the end. */
static bool
recv_all(int fd, char *p, size_t n)
{
	size_t at = 0;
	ssize_t got;

	for (; at < n; at += (size_t)got)
		if ((got = recv(fd, p + at, n - at, 0)) <= 0)
			return false;
	return true;
}

static void *
echo_main(void *arg)
{
	struct echo *e = arg;
	char bytes[BYTES_MAX];

	while (recv_all(e->fd, bytes, e->size))
		rvp_check(send(e->fd, bytes, e->size, MSG_NOSIGNAL) == (ssize_t)e->size, "send");
	return NULL;
}

static void
raw_trips(struct trips *t)
{
	char bytes[BYTES_MAX] = {1};
	struct echo e = {.size = t->size};
	pthread_t thread;
	uint64_t from;
	int fd[2];
	unsigned i;

	rvp_sockets(t->transport, fd);
	e.fd = fd[1];
	rvp_thread(&thread, echo_main, &e, t->pin ? 1 : RVP_ANY_CPU);
	for (i = 0; i < t->n + WARM_UP; i++) {
		from = rvp_now_ns();
		rvp_check(send(fd[0], bytes, t->size, MSG_NOSIGNAL) == (ssize_t)t->size, "send");
		rvp_check(recv_all(fd[0], bytes, t->size), "recv");
		t->ns[i] = rvp_now_ns() - from;
	}
	shutdown(fd[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(fd[0]);
	close(fd[1]);
}

/* --- a plain socket in an event loop, which is what a worker has to be --- */

/* False at the end. */
static bool
loop_recv(int ep, int fd, char *p, size_t n)
{
	struct epoll_event ev;
	size_t at = 0;
	ssize_t got;

	while (at < n) {
		got = recv(fd, p + at, n - at, 0);
		if (got < 0 && errno == EAGAIN)
			(void)epoll_wait(ep, &ev, 1, -1);
		else if (got <= 0)
			return false;
		else
			at += (size_t)got;
	}
	return true;
}

static int
loop_watch(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	rvp_check(ep >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0,
	    "epoll");
	return ep;
}

static void *
loop_main(void *arg)
{
	struct echo *e = arg;
	char bytes[BYTES_MAX];
	int ep = loop_watch(e->fd);

	while (loop_recv(ep, e->fd, bytes, e->size))
		rvp_check(send(e->fd, bytes, e->size, MSG_NOSIGNAL) == (ssize_t)e->size, "send");
	close(ep);
	return NULL;
}

static void
loop_trips(struct trips *t)
{
	char bytes[BYTES_MAX] = {1};
	struct echo e = {.size = t->size};
	pthread_t thread;
	uint64_t from;
	int fd[2], ep;
	unsigned i;

	rvp_sockets(t->transport, fd);
	e.fd = fd[1];
	rvp_thread(&thread, loop_main, &e, t->pin ? 1 : RVP_ANY_CPU);
	ep = loop_watch(fd[0]);
	for (i = 0; i < t->n + WARM_UP; i++) {
		from = rvp_now_ns();
		rvp_check(send(fd[0], bytes, t->size, MSG_NOSIGNAL) == (ssize_t)t->size, "send");
		rvp_check(loop_recv(ep, fd[0], bytes, t->size), "recv");
		t->ns[i] = rvp_now_ns() - from;
	}
	shutdown(fd[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(ep);
	close(fd[0]);
	close(fd[1]);
}

/* --- blocking calls --- */

static bool
read_all(reeve_stream_t *s, char *p, size_t n)
{
	size_t at = 0;
	reeve_ssize got;

	for (; at < n; at += (size_t)got)
		if ((got = reeve_read(s, p + at, n - at)) <= 0)
			return false;
	return true;
}

struct server {
	reeve_ctl_t *ctl;
	size_t size;
};

static void *
serve_main(void *arg)
{
	struct server *v = arg;
	char bytes[BYTES_MAX];
	reeve_stream_t *s;

	rvp_must(reeve_accept(v->ctl, &s, -1), "accept");
	while (read_all(s, bytes, v->size))
		rvp_must(reeve_write(s, bytes, v->size), "write");
	reeve_close(s);
	return NULL;
}

static void
thread_trips(struct trips *t)
{
	struct server v = {.size = t->size};
	char bytes[BYTES_MAX] = {1};
	struct rvp_nodes nodes;
	reeve_stream_t *s;
	pthread_t thread;
	uint64_t from;
	unsigned i;

	rvp_nodes_open(&nodes, t->transport, NULL, t->pin);
	v.ctl = nodes.ctl[1];
	rvp_thread(&thread, serve_main, &v, t->pin ? 1 : RVP_ANY_CPU);
	rvp_must(reeve_open(nodes.ctl[0], &s, -1), "open");
	for (i = 0; i < t->n + WARM_UP; i++) {
		from = rvp_now_ns();
		rvp_must(reeve_write(s, bytes, t->size), "write");
		rvp_check(read_all(s, bytes, t->size), "read");
		t->ns[i] = rvp_now_ns() - from;
	}
	reeve_close(s);
	pthread_join(thread, NULL);
	rvp_nodes_close(&nodes);
}

/* --- callbacks on workers --- */

struct talk {
	struct trips *t;
	struct rvp_nodes nodes;
	reeve_stream_t *client, *server;
	reeve_op_t accept, client_read, client_write, server_read, server_write;
	size_t client_got;
	uint64_t from;
	unsigned i;
	struct rvq_latch done;
};

static void
written(reeve_op_t *op)
{
	(void)op; /* the trip goes on when the answer is read; an error ends the read too */
}

static void
client_send(struct talk *k)
{
	reeve_buf_t *b = reeve_buf_alloc(k->nodes.rt[0], k->t->size);

	rvp_check(b != NULL, "memory");
	memset(reeve_buf_mut(b), 1, k->t->size);
	k->client_got = 0;
	k->from = rvp_now_ns();
	reeve_write_async(k->client, b, &k->client_write);
}

static void
client_read(reeve_op_t *op)
{
	struct talk *k = op->arg;

	if (op->res <= 0)
		return;
	k->client_got += (size_t)op->res;
	reeve_buf_unref(op->buf);
	if (k->client_got == k->t->size) {
		k->t->ns[k->i] = rvp_now_ns() - k->from;
		if (++k->i == k->t->n + WARM_UP) {
			rvq_latch_set(&k->done);
			return;
		}
		client_send(k);
	}
	reeve_read_async(k->client, op);
}

/* What was read is written back as it is. */
static void
server_read(reeve_op_t *op)
{
	struct talk *k = op->arg;

	if (op->res <= 0)
		return;
	reeve_write_async(k->server, op->buf, &k->server_write);
	reeve_read_async(k->server, op);
}

static void
server_accept(reeve_op_t *op)
{
	struct talk *k = op->arg;

	rvp_must(op->res, "accept");
	k->server = op->stream;
	reeve_read_async(k->server, &k->server_read);
}

static void
worker_trips(struct trips *t)
{
	struct talk *k = calloc(1, sizeof(*k));

	rvp_check(k != NULL, "memory");
	k->t = t;
	rvq_latch_init(&k->done);
	rvp_nodes_open(&k->nodes, t->transport, NULL, t->pin);
	reeve_op_init(&k->accept, server_accept, k);
	reeve_op_init(&k->client_read, client_read, k);
	reeve_op_init(&k->client_write, written, k);
	reeve_op_init(&k->server_read, server_read, k);
	reeve_op_init(&k->server_write, written, k);
	reeve_accept_async(k->nodes.ctl[1], &k->accept);
	rvp_must(reeve_open(k->nodes.ctl[0], &k->client, -1), "open");
	reeve_read_async(k->client, &k->client_read);
	client_send(k);
	(void)rvq_latch_wait(&k->done, UINT64_MAX);
	rvp_nodes_close(&k->nodes);
	reeve_stream_unref(k->client);
	reeve_stream_unref(k->server);
	free(k);
}

/* --- ping --- */

static void
ping_trips(struct trips *t)
{
	struct rvp_nodes nodes;
	uint64_t from, us;
	unsigned i;

	rvp_nodes_open(&nodes, t->transport, NULL, t->pin);
	for (i = 0; i < t->n + WARM_UP; i++) {
		from = rvp_now_ns();
		rvp_must(reeve_ping(nodes.ctl[0], -1, &us), "ping");
		t->ns[i] = rvp_now_ns() - from;
	}
	rvp_nodes_close(&nodes);
}

static const struct {
	const char *name;
	void (*run)(struct trips *t);
} contenders[] = {{"raw", raw_trips}, {"loop", loop_trips}, {"threads", thread_trips},
    {"callbacks", worker_trips}, {"ping", ping_trips}};
#define CASES (sizeof(contenders) / sizeof(contenders[0]))

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
line(const char *row, const char *contender, const char *what, const double *v, unsigned rounds)
{
	struct rvp_cell c = {"limit", row, contender, what, "us", 0};

	rvp_cell_print(&c, v, rounds);
}

/* A contender's figures divided by those of the raw socket in the same round. */
static void
ratio(const char *row, size_t c, const char *what, double v[][RVP_ROUNDS_MAX], unsigned rounds)
{
	char name[64];
	struct rvp_cell cell = {"limit", row, name, what, "ratio", 0};
	double r[RVP_ROUNDS_MAX];
	unsigned i;

	snprintf(name, sizeof(name), "%s/raw", contenders[c].name);
	for (i = 0; i < rounds; i++)
		r[i] = v[c][i] / v[0][i];
	rvp_cell_print(&cell, r, rounds);
}

static void
run(const char *row, struct trips *t, unsigned rounds)
{
	static double p50[CASES][RVP_ROUNDS_MAX], p99[CASES][RVP_ROUNDS_MAX];
	unsigned round;
	size_t i, c;

	/* There is no raw memory pipe, and a ping has one size. */
	bool socket = t->transport != RVP_MEMORY,
	     ran[CASES] = {socket, socket, true, true, t->size == 1};

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CASES; i++) {
			c = (i + round) % CASES;
			if (!ran[c])
				continue;
			contenders[c].run(t);
			qsort(t->ns + WARM_UP, t->n, sizeof(t->ns[0]), compare);
			p50[c][round] = (double)t->ns[WARM_UP + t->n / 2] / 1000;
			p99[c][round] = (double)t->ns[WARM_UP + t->n * 99 / 100] / 1000;
		}
	}
	for (c = 0; c < CASES; c++) {
		if (!ran[c])
			continue;
		line(row, contenders[c].name, "p50", p50[c], rounds);
		line(row, contenders[c].name, "p99", p99[c], rounds);
		if (c == 0 || !ran[0])
			continue;
		ratio(row, c, "p50", p50, rounds);
		ratio(row, c, "p99", p99, rounds);
	}
}

int
main(int argc, char **argv)
{
	static const char *const transports[] = {"tcp", "unix", "memory"};
	static const size_t sizes[] = {1, 64};
	static struct trips t;
	struct rvp_options options;
	char row[64];
	size_t i, k;

	rvp_options(&options, argc, argv);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 2; k++) {
			t.transport = (enum rvp_transport)i;
			t.size = sizes[k];
			t.n = options.quick ? TRIPS / 10 : TRIPS;
			t.pin = options.pin;
			snprintf(row, sizeof(row), "ping-pong %s %zu B", transports[i], sizes[k]);
			run(row, &t, options.rounds);
		}
	}
	return EXIT_SUCCESS;
}
