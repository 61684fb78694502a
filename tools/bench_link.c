/* bench_link.c - two nodes, one connection, streams one way.  Each stream has a lane: a writer that repeats one buffer
 * until the round is over, and a reader that counts and lets go.  With threads both are threads in blocking calls; with
 * callbacks both are completions on the workers, a few writes outstanding. */
#include <config.h>

#include "tools/bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/term.h"

#define WAIT_MS 10000
#define DEPTH   4 /* writes outstanding in a lane with callbacks */

struct lane {
	reeve_stream_t *tx, *rx;
	reeve_buf_t *buf;
	unsigned batch, count;
	uint64_t deadline;       /* microseconds */
	uint64_t sent;           /* the writer's until it is done */
	unsigned writing;        /* operations that come back, the writer's */
	struct bench_tally done; /* rounds the writer has finished (callbacks) */
	struct bench_tally got;
	pthread_t writer, reader;
	reeve_op_t writes[DEPTH], read;
};

struct bench_link {
	bool callbacks;
	unsigned streams;
	uint64_t rounds;
	reeve_rt_t *rt[2]; /* sending, receiving */
	reeve_conn_t *conn[2];
	reeve_stats_t marks[4]; /* of both connections, of both runtimes */
	uint64_t marked_us;
	struct lane *lanes;
};

static bool
time_is_up(struct lane *a)
{
	if (++a->count % a->batch != 0)
		return false;
	return term_now_us() >= a->deadline;
}

/* --- threads --- */

static void *
write_lane(void *arg)
{
	struct lane *a = arg;
	reeve_ssize n;

	do {
		n = reeve_write_buf(a->tx, reeve_buf_ref(a->buf));
		if (n < 0)
			bench_die("write", (int)n);
		a->sent += (uint64_t)n;
	} while (!time_is_up(a));
	return NULL;
}

static void *
read_lane(void *arg)
{
	struct lane *a = arg;
	reeve_buf_t *b;
	reeve_ssize n;

	while ((n = reeve_read_buf(a->rx, &b)) > 0) {
		reeve_buf_unref(b);
		bench_tally_add(&a->got, (uint64_t)n);
	}
	if (n < 0)
		bench_die("read", (int)n);
	return NULL;
}

/* --- callbacks --- */

static void
on_written(reeve_op_t *op)
{
	struct lane *a = op->arg;

	if (op->res < 0)
		bench_die("write", (int)op->res);
	a->sent += (uint64_t)op->res;
	if (a->count == 0 || time_is_up(a)) { /* once it is up, the other operations stop too */
		a->count = 0;
		if (--a->writing == 0)
			bench_tally_add(&a->done, 1);
		return;
	}
	reeve_op_init(op, on_written, a);
	reeve_write_async(a->tx, reeve_buf_ref(a->buf), op);
}

static void
start_lane(struct lane *a)
{
	a->count = 1;
	a->writing = DEPTH;
	for (int i = 0; i < DEPTH; i++) {
		reeve_op_init(&a->writes[i], on_written, a);
		reeve_write_async(a->tx, reeve_buf_ref(a->buf), &a->writes[i]);
	}
}

static void
on_read(reeve_op_t *op)
{
	struct lane *a = op->arg;
	reeve_ssize n = op->res;

	if (n < 0)
		bench_die("read", (int)n);
	if (n > 0) {
		reeve_buf_unref(op->buf);
		reeve_op_init(op, on_read, a);
		reeve_read_async(a->rx, op);
	}
	bench_tally_add(
	    &a->got, n > 0 ? (uint64_t)n : 1); /* the end counts too: the lane is free after it */
}

/* --- setting up --- */

static void
make_nodes(struct bench_link *l, const struct bench_options *o)
{
	reeve_rt_cfg_t cfg;
	reeve_listener_t *listener;
	char addr[128] = "tcp://127.0.0.1:0";
	int rc = 0;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = o->workers;
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = reeve_rt_create(&l->rt[i], &cfg);
	if (rc < 0)
		bench_die("runtime", rc);
	if (o->transport == BENCH_UNIX)
		snprintf(addr, sizeof(addr), "unix:///tmp/reeve-bench.%ld", (long)getpid());
	else if (o->transport == BENCH_MEMORY)
		snprintf(addr, sizeof(addr), "mem://reeve-bench");
	rc = reeve_listen(&listener, l->rt[1], addr, &o->cfg);
	if (rc < 0)
		bench_die(addr, rc);
	(void)reeve_listener_addr(listener, addr, sizeof(addr));
	rc = reeve_dial(&l->conn[0], l->rt[0], addr, &o->cfg, WAIT_MS);
	if (rc == 0)
		rc = reeve_listener_accept(listener, &l->conn[1], WAIT_MS);
	if (rc < 0)
		bench_die(addr, rc);
	reeve_listener_destroy(listener);
}

static void
open_lane(struct bench_link *l, struct lane *a, reeve_buf_t *buf)
{
	int rc = reeve_open(reeve_conn_ctl(l->conn[0]), &a->tx, WAIT_MS);

	if (rc == 0)
		rc = reeve_accept(reeve_conn_ctl(l->conn[1]), &a->rx, WAIT_MS);
	if (rc < 0)
		bench_die("stream", rc);
	a->buf = reeve_buf_ref(buf);
	a->batch = bench_batch(reeve_buf_len(buf));
	bench_tally_init(&a->got);
	bench_tally_init(&a->done);
	if (l->callbacks) {
		reeve_op_init(&a->read, on_read, a);
		reeve_read_async(a->rx, &a->read);
	} else if ((rc = pthread_create(&a->reader, NULL, read_lane, a)) != 0) {
		bench_die("thread", REEVE_ESYS_BASE - rc);
	}
}

struct bench_link *
bench_link_open(const struct bench_options *o, unsigned streams, size_t size)
{
	struct bench_link *l = calloc(1, sizeof(*l));
	reeve_buf_t *buf;

	if (l == NULL || (l->lanes = calloc(streams, sizeof(*l->lanes))) == NULL)
		bench_die("lanes", REEVE_ENOMEM);
	l->callbacks = o->callbacks;
	l->streams = streams;
	make_nodes(l, o);
	buf = reeve_buf_alloc(l->rt[0], size);
	if (buf == NULL)
		bench_die("buffer", REEVE_ENOMEM);
	memset(reeve_buf_mut(buf), 0x5a, size);
	for (unsigned i = 0; i < streams; i++)
		open_lane(l, &l->lanes[i], buf);
	reeve_buf_unref(buf);
	return l;
}

/* --- a round --- */

static void
write_round(struct bench_link *l, uint64_t deadline)
{
	int rc;

	l->rounds++;
	for (unsigned i = 0; i < l->streams; i++) {
		l->lanes[i].deadline = deadline;
		if (l->callbacks)
			start_lane(&l->lanes[i]);
		else if ((rc = pthread_create(
			      &l->lanes[i].writer, NULL, write_lane, &l->lanes[i])) != 0)
			bench_die("thread", REEVE_ESYS_BASE - rc);
	}
	for (unsigned i = 0; i < l->streams; i++) {
		if (l->callbacks)
			bench_tally_wait(&l->lanes[i].done, l->rounds);
		else
			pthread_join(l->lanes[i].writer, NULL);
	}
}

void
bench_link_round(struct bench_link *l, double seconds, struct bench_round *out)
{
	uint64_t before = 0, after = 0, begin;
	double cpu = term_cpu_s();

	for (unsigned i = 0; i < l->streams; i++)
		before += l->lanes[i].sent;
	begin = term_now_us();
	write_round(l, begin + (uint64_t)(seconds * 1e6));
	for (unsigned i = 0; i < l->streams; i++) {
		after += l->lanes[i].sent;
		bench_tally_wait(&l->lanes[i].got, l->lanes[i].sent);
	}
	out->bytes = after - before;
	out->seconds = (double)(term_now_us() - begin) / 1e6;
	out->cpu_s = term_cpu_s() - cpu;
}

/* --- counters --- */

static void
look(struct bench_link *l, reeve_stats_t st[4])
{
	for (int i = 0; i < 2; i++) {
		st[i].size = st[2 + i].size = sizeof(st[i]);
		if (reeve_ctl_stats(reeve_conn_ctl(l->conn[i]), &st[i]) < 0 ||
		    reeve_rt_stats(l->rt[i], &st[2 + i]) < 0)
			bench_die("counters", REEVE_EINVAL);
	}
}

void
bench_link_mark(struct bench_link *l)
{
	look(l, l->marks);
	l->marked_us = term_now_us();
}

static double
per(double a, double b)
{
	return b > 0 ? a / b : 0;
}

void
bench_link_counters(struct bench_link *l, struct bench_row *row)
{
	reeve_stats_t st[4];
	const reeve_stats_t *m = l->marks;
	double seconds = (double)(term_now_us() - l->marked_us) / 1e6;
	double bytes, frames = 0, calls = 0;

	look(l, st);
	bytes = (double)(st[0].bytes_out - m[0].bytes_out);
	row->copies = per((double)(st[0].bytes_copied_out - m[0].bytes_copied_out +
			      st[1].bytes_copied_in - m[1].bytes_copied_in),
	    bytes);
	row->frames_per_write = per(
	    (double)(st[0].frames_out - m[0].frames_out), (double)(st[0].writes - m[0].writes));
	row->frames_per_read = per(
	    (double)(st[1].frames_in - m[1].frames_in), (double)(st[1].reads - m[1].reads));
	for (int i = 0; i < 2; i++) {
		frames +=
		    (double)(st[i].frames_out - m[i].frames_out + st[i].frames_in - m[i].frames_in);
		calls += (double)(st[i].writes - m[i].writes + st[i].reads - m[i].reads);
		row->actor_messages += per(
		    (double)(st[2 + i].messages - m[2 + i].messages), seconds);
		row->wakes += per((double)(st[2 + i].wakes - m[2 + i].wakes), seconds);
	}
	row->frames_per_call = per(frames, calls);
	row->window = st[1].window_max;
	row->proto = reeve_proto(reeve_conn_ctl(l->conn[0]));
}

/* --- the end --- */

void
bench_link_close(struct bench_link *l)
{
	struct lane *a;

	for (unsigned i = 0; i < l->streams; i++) {
		a = &l->lanes[i];
		(void)reeve_shut(a->tx);
		if (l->callbacks)
			bench_tally_wait(&a->got, a->sent + 1);
		else
			pthread_join(a->reader, NULL);
		reeve_close(a->rx);
		reeve_close(a->tx);
		reeve_buf_unref(a->buf);
	}
	for (int i = 0; i < 2; i++)
		reeve_conn_destroy(l->conn[i]);
	for (int i = 0; i < 2; i++)
		reeve_rt_destroy(l->rt[i]);
	free(l->lanes);
	free(l);
}

/* --- the cost of a message --- */

struct pair {
	reeve_actor_t *side[2];
	reeve_msg_t msg;
	uint64_t messages, begin, end, deadline;
	struct bench_tally over; /* counts the two last calls and the end of the game */
};

static void
on_ball(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct pair *p = arg;

	if (msg == NULL) {
		bench_tally_add(&p->over, 1);
		return;
	}
	if (p->messages++ == 0)
		p->begin = term_now_us();
	if (p->messages % 1024 == 0 && (p->end = term_now_us()) >= p->deadline)
		bench_tally_add(&p->over, 1);
	else
		reeve_actor_post(p->side[self == p->side[0]], msg);
}

double
bench_link_message_ns(struct bench_link *l, double seconds)
{
	struct pair p;
	reeve_ctl_t *k = reeve_conn_ctl(l->conn[0]);
	int rc = 0;

	memset(&p, 0, sizeof(p));
	bench_tally_init(&p.over);
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = reeve_actor_spawn(&p.side[i], l->rt[0], on_ball, &p, k);
	if (rc < 0)
		bench_die("actor", rc);
	p.deadline = term_now_us() + (uint64_t)(seconds * 1e6);
	reeve_actor_post(p.side[0], &p.msg);
	bench_tally_wait(&p.over, 1);
	for (int i = 0; i < 2; i++)
		reeve_actor_unref(p.side[i]);
	bench_tally_wait(&p.over, 3);
	return (double)(p.end - p.begin) * 1e3 / (double)(p.messages - 1);
}
