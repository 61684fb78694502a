/*
 * growth_field.c - very many streams and connections in one process, both ends of each, over the memory pipe.
 *
 * Idle: what a stream holds, what opening one costs (100 at once on each connection, which has at most 1000), and what a ping-pong on
 * one of them takes beside all the others.  Active: every connection carries messages of 64 bytes, round robin over its
 * streams, as many at once as TOKENS says.
 */
#include <config.h>

#include "perf/growth.h"

#include <stdlib.h>
#include <string.h>

#include "perf/nodes.h"
#include "queues/latch.h"

#define EACH   1000u /* streams of a connection at most */
#define PART   100u  /* opened at once: less than may be unanswered */
#define TOKENS 256u  /* messages on their way, of all connections */
#define BYTES  64u
#define TRIPS  2000u

struct plot;

/* An open or an accept. */
struct door {
	reeve_op_t op;
	struct plot *plot;
	unsigned side;
};

/* A message on its way, and a read that waits for one. */
struct token {
	reeve_op_t op;
	struct plot *plot;
};

struct plot {
	reeve_conn_t *conn[2];
	struct field *field;
	reeve_stream_t **s[2]; /* [0] opened, [1] accepted */
	unsigned n, have[2];   /* each the worker's of its side */
	struct door doors[2 * PART];
	unsigned part;
	struct rvq_latch ready[2];
	/* of a run of messages */
	struct token *tokens, *reads;
	unsigned ntokens;
	uint64_t to_send, to_receive; /* bytes left: the sending worker's, the receiving one's */
	unsigned next;                /* the sending worker's */
	struct rvq_latch done;
};

struct field {
	reeve_rt_t *rt;
	struct plot *plots;
	unsigned nplots, each;
	uint64_t rss, heap; /* before the streams */
	double opened_us;   /* a stream */
	double joined_us;   /* a connection */
	uint64_t conn_heap, conn_rss;
};

/* --- opening --- */

static void
on_door(reeve_op_t *op)
{
	struct door *d = op->arg;
	struct plot *p = d->plot;

	rvp_must(op->res, "open or accept");
	p->s[d->side][p->have[d->side]++] = op->stream;
	if (p->have[d->side] == p->part)
		rvq_latch_set(&p->ready[d->side]);
}

static void
open_part(struct plot *p, unsigned n)
{
	p->part = p->have[0] + n;
	for (unsigned side = 0; side < 2; side++)
		rvq_latch_init(&p->ready[side]);
	for (unsigned i = 0; i < 2 * n; i++) {
		struct door *d = &p->doors[i];

		d->plot = p;
		d->side = i % 2;
		reeve_op_init(&d->op, on_door, d);
		if (d->side == 0)
			reeve_open_async(reeve_conn_ctl(p->conn[0]), &d->op);
		else
			reeve_accept_async(reeve_conn_ctl(p->conn[1]), &d->op);
	}
	for (unsigned side = 0; side < 2; side++)
		(void)rvq_latch_wait(&p->ready[side], UINT64_MAX);
}

static void
settle(struct field *f)
{
	uint64_t us;

	for (unsigned i = 0; i < f->nplots; i++)
		for (unsigned k = 0; k < 2; k++)
			rvp_must(reeve_ping(reeve_conn_ctl(f->plots[i].conn[k]), -1, &us), "ping");
}

/* streams: in all; each of the connections has the same number. */
static void
field_open(struct field *f, unsigned conns, unsigned each, unsigned workers)
{
	reeve_rt_cfg_t cfg;
	uint64_t began;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = workers;
	rvp_must(reeve_rt_create(&f->rt, &cfg), "runtime");
	f->nplots = conns;
	f->each = each;
	f->plots = calloc(conns, sizeof(*f->plots));
	rvp_check(f->plots != NULL, "memory");
	for (unsigned i = 0; i < conns; i++) {
		struct plot *p = &f->plots[i];

		p->field = f;
		p->n = each;
		for (unsigned k = 0; k < 2; k++) {
			p->s[k] = malloc(each * sizeof(reeve_stream_t *));
			rvp_check(p->s[k] != NULL, "memory");
			memset(p->s[k], 1,
			    each * sizeof(reeve_stream_t *)); /* resident from here on */
		}
		memset(p->doors, 0, sizeof(p->doors));
	}
	f->conn_heap = rvp_heap(f->rt);
	f->conn_rss = rvp_rss();
	began = rvp_now_ns();
	for (unsigned i = 0; i < conns; i++)
		rvp_must(reeve_conn_pair(f->plots[i].conn, f->rt, NULL), "pair");
	settle(f);
	f->joined_us = (double)(rvp_now_ns() - began) / 1e3 / conns;
	f->heap = rvp_heap(f->rt);
	f->rss = rvp_rss();
	f->conn_heap = f->heap - f->conn_heap;
	f->conn_rss = f->rss - f->conn_rss;
	began = rvp_now_ns();
	for (unsigned i = 0; i < conns; i++)
		for (unsigned have = 0; have < each; have += PART)
			open_part(&f->plots[i], each - have < PART ? each - have : PART);
	f->opened_us = (double)(rvp_now_ns() - began) / 1e3 / conns / each;
	settle(f);
}

static void
field_close(struct field *f)
{
	for (unsigned i = 0; i < f->nplots; i++) {
		struct plot *p = &f->plots[i];

		for (unsigned k = 0; k < 2; k++)
			(void)reeve_abort(reeve_conn_ctl(p->conn[k]), 0);
		for (unsigned k = 0; k < 2; k++)
			reeve_conn_destroy(p->conn[k]);
	}
	reeve_rt_destroy(
	    f->rt); /* completes what is pending: what is the operations' goes behind it */
	for (unsigned i = 0; i < f->nplots; i++) {
		struct plot *p = &f->plots[i];

		for (unsigned k = 0; k < 2; k++) {
			for (unsigned j = 0; j < p->n; j++)
				reeve_stream_unref(p->s[k][j]);
			free(p->s[k]);
		}
		free(p->tokens);
		free(p->reads);
	}
	free(f->plots);
}

/* The median of a ping-pong of a byte on one stream, microseconds. */
static double
trip_us(struct field *f)
{
	static double us[TRIPS];
	struct plot *p = &f->plots[f->nplots / 2];
	reeve_stream_t *a = p->s[0][p->n / 2], *b = p->s[1][p->n / 2];
	unsigned n = rvp_growth.quick ? 100 : TRIPS;

	for (unsigned i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)i, there = 0, back = 0;
		uint64_t from = rvp_now_ns();

		rvp_must(reeve_write(a, &byte, 1), "write");
		rvp_check(reeve_read(b, &there, 1) == 1, "read");
		rvp_must(reeve_write(b, &there, 1), "write");
		rvp_check(reeve_read(a, &back, 1) == 1 && back == byte, "the byte that came back");
		us[i] = (double)(rvp_now_ns() - from) / 1e3;
	}
	qsort(us, n, sizeof(us[0]), rvp_compare);
	return us[n / 2];
}

/* --- messages --- */

static void
send_next(struct token *t)
{
	struct plot *p = t->plot;
	reeve_buf_t *b;

	if (p->to_send == 0)
		return;
	p->to_send -= BYTES;
	b = reeve_buf_alloc(p->field->rt, BYTES);
	rvp_check(b != NULL, "memory");
	memset(reeve_buf_mut(b), 7, BYTES);
	reeve_write_async(p->s[0][p->next], b, &t->op);
	p->next = (p->next + 1) % p->n;
}

static void
on_written(reeve_op_t *op)
{
	if (op->res > 0)
		send_next(op->arg);
}

static void
on_read(reeve_op_t *op)
{
	struct token *t = op->arg;
	struct plot *p = t->plot;

	if (op->res <= 0)
		return;
	rvp_check(reeve_buf_data(op->buf)[op->res - 1] == 7, "message");
	reeve_buf_unref(op->buf);
	rvp_check((uint64_t)op->res <= p->to_receive, "more than was sent");
	p->to_receive -= (uint64_t)op->res;
	if (p->to_receive == 0)
		rvq_latch_set(&p->done);
	reeve_read_async(p->s[1][t - p->reads], op);
}

static void
arm(struct plot *p, unsigned tokens)
{
	p->ntokens = tokens;
	p->tokens = calloc(tokens, sizeof(*p->tokens));
	p->reads = calloc(p->n, sizeof(*p->reads));
	rvp_check(p->tokens != NULL && p->reads != NULL, "memory");
	for (unsigned i = 0; i < p->n; i++) {
		p->reads[i].plot = p;
		reeve_op_init(&p->reads[i].op, on_read, &p->reads[i]);
		reeve_read_async(p->s[1][i], &p->reads[i].op);
	}
	for (unsigned i = 0; i < tokens; i++) {
		p->tokens[i].plot = p;
		reeve_op_init(&p->tokens[i].op, on_written, &p->tokens[i]);
	}
}

/* Starts the tokens on the sending worker: the completion of an operation of its own. */
static void
on_start(reeve_op_t *op)
{
	struct plot *p = op->arg;

	rvp_must(op->res, "ping");
	for (unsigned i = 0; i < p->ntokens; i++)
		send_next(&p->tokens[i]);
}

/* Processor ns of a message when all streams carry some; *wall: by the clock. */
static double
message_ns(struct field *f, double *wall)
{
	unsigned tokens = TOKENS / f->nplots > 0 ? TOKENS / f->nplots : 1;
	uint64_t total = rvp_growth.quick ? 20000 : 600000, each = total / f->nplots, began, cpu;

	/* Every stream once at least. */
	if (each < f->each)
		each = f->each;
	for (unsigned i = 0; i < f->nplots; i++) {
		struct plot *p = &f->plots[i];

		p->to_send = p->to_receive = each * BYTES;
		rvq_latch_init(&p->done);
		arm(p, tokens);
	}
	began = rvp_now_ns();
	cpu = rvp_cpu_ns();
	for (unsigned i = 0; i < f->nplots; i++) {
		struct door *d = &f->plots[i].doors[0];

		reeve_op_init(&d->op, on_start, &f->plots[i]);
		reeve_ping_async(reeve_conn_ctl(f->plots[i].conn[0]), &d->op);
	}
	for (unsigned i = 0; i < f->nplots; i++)
		(void)rvq_latch_wait(&f->plots[i].done, UINT64_MAX);
	*wall = (double)(rvp_now_ns() - began) / (double)(each * f->nplots);
	return (double)(rvp_cpu_ns() - cpu) / (double)(each * f->nplots);
}

/* --- parts --- */

static unsigned
most(unsigned full)
{
	return rvp_growth.quick && full > 1000 ? 1000 : full;
}

void
rvp_growth_idle(void)
{
	struct rvp_curve opens = {.n = 0}, bytes = {.n = 0}, trips = {.n = 0};
	uint64_t resident = 0;

	for (unsigned n = 1; n <= most(1000000); n *= 10) {
		struct field f;
		unsigned each = n < EACH ? n : EACH;

		field_open(&f, n / each, each, 2);
		resident = rvp_rss() - f.conn_rss;
		rvp_grown(RVP_GROWN("idle streams", "open", "time", "us", n), f.opened_us, &opens);
		rvp_grown(RVP_GROWN("idle streams", "allocated", "bytes", "B", n),
		    (double)(int64_t)(rvp_heap(f.rt) - f.heap) / 2 / n, n >= 100 ? &bytes : NULL);
		rvp_grown(RVP_GROWN("idle streams", "ping-pong on one", "p50", "us", n),
		    trip_us(&f), &trips);
		field_close(&f);
	}
	rvp_grown_exponent("idle streams", "open", &opens);
	rvp_grown_exponent("idle streams", "allocated", &bytes);
	rvp_grown_exponent("idle streams", "ping-pong on one", &trips);
	/* Of one side: both are here. */
	rvp_grown(
	    RVP_GROWN("idle streams", "resident, all of one side", "bytes", "MiB", most(1000000)),
	    (double)resident / 2 / 1048576, NULL);
}

/* What messages are carried over. */
struct ground {
	unsigned conns, each, workers;
};

static void
messages(const char *row, unsigned x, const struct ground *g, struct rvp_curve *c)
{
	struct field f;
	double wall, cpu;

	field_open(&f, g->conns, g->each, g->workers);
	cpu = message_ns(&f, &wall);
	rvp_grown(RVP_GROWN(row, "message", "cpu", "ns", x), cpu, c);
	rvp_grown(RVP_GROWN(row, "message", "rate", "Mmsg/s", x), 1e3 / wall, NULL);
	field_close(&f);
}

void
rvp_growth_active(void)
{
	struct rvp_curve c = {.n = 0};

	for (unsigned n = 1; n <= most(100000); n *= 10)
		messages("active streams", n,
		    &(struct ground){n < EACH ? 1 : n / EACH, n < EACH ? n : EACH, 2}, &c);
	rvp_grown_exponent("active streams", "message", &c);
}

void
rvp_growth_connections(void)
{
	static const unsigned counts[] = {1, 10, 100, 300, 1000, 3000, 9000};
	struct rvp_curve joins = {.n = 0}, bytes = {.n = 0}, c = {.n = 0};

	for (unsigned i = 0; i < 7 && counts[i] <= most(9000); i++) {
		struct field f;
		double wall, cpu;

		field_open(&f, counts[i], 1, 2);
		rvp_grown(
		    RVP_GROWN("connections", "join", "time", "us", counts[i]), f.joined_us, &joins);
		rvp_grown(
		    RVP_GROWN("connections", "allocated, both sides", "bytes", "B", counts[i]),
		    (double)f.conn_heap / counts[i], &bytes);
		cpu = message_ns(&f, &wall);
		rvp_grown(RVP_GROWN("connections", "message", "cpu", "ns", counts[i]), cpu, &c);
		rvp_grown(RVP_GROWN("connections", "message", "rate", "Mmsg/s", counts[i]),
		    1e3 / wall, NULL);
		field_close(&f);
	}
	rvp_grown_exponent("connections", "join", &joins);
	rvp_grown_exponent("connections", "allocated, both sides", &bytes);
	rvp_grown_exponent("connections", "message", &c);
}

void
rvp_growth_workers(void)
{
	for (unsigned n = 1; n <= 8; n *= 2)
		messages("workers", n, &(struct ground){8, 8, n}, NULL);
}
