/*
 * fixed.c - the same work every time, on one thread: what perf/instructions counts the instructions of.
 *
 * An external runtime, so that nothing depends on the scheduler; two connections joined in memory.  Only public
 * calls, so that the library of another commit can be linked to it.  What each part did is checked, and printed.
 * usage: fixed [--quick] [PART]
 */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reeve/reeve.h>

#define LANES   64
#define PENDING 2
#define ACTORS  16
#define AHEAD   32

struct lane {
	struct world *w;
	reeve_op_t open, accept, read;
	reeve_op_t writes[PENDING];
	reeve_stream_t *out, *in;
	unsigned started, written; /* writes */
};

/* What a part works with; the one thread's. */
struct world {
	reeve_rt_t *rt;
	reeve_conn_t *conn[2];
	reeve_ctl_t *ctl[2];
	struct lane lanes[LANES];
	reeve_op_t opens[AHEAD], accepts[AHEAD];
	reeve_actor_t *actors[ACTORS];
	reeve_msg_t messages[ACTORS];
	size_t size;    /* of a write */
	unsigned n;     /* writes a lane, streams, or messages */
	unsigned begun; /* streams, or lanes with both ends */
	unsigned done;  /* lanes that ended, streams accepted, or messages */
	uint64_t bytes; /* received */
};

static void
must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fixed: %s\n", what);
	exit(EXIT_FAILURE);
}

static void
run_until(struct world *w, const unsigned *count, unsigned n)
{
	while (*count < n)
		must(reeve_rt_run(w->rt, 10000) > 0, "nothing happens");
}

/* --- bytes over streams --- */

static void
write_more(struct lane *l, reeve_op_t *op)
{
	reeve_buf_t *b;

	if (l->started == l->w->n)
		return;
	l->started++;
	b = reeve_buf_alloc(l->w->rt, l->w->size);
	must(b != NULL, "memory");
	reeve_buf_mut(b)[0] = 1;
	reeve_write_async(l->out, b, op);
}

static void
written(reeve_op_t *op)
{
	struct lane *l = op->arg;

	must(op->res == (reeve_ssize)l->w->size, "write");
	if (++l->written == l->w->n)
		(void)reeve_shut(l->out);
	write_more(l, op);
}

static void
received(reeve_op_t *op)
{
	struct lane *l = op->arg;

	must(op->res >= 0, "read");
	if (op->res == 0) {
		l->w->done++;
		return;
	}
	l->w->bytes += (uint64_t)op->res;
	reeve_buf_unref(op->buf);
	reeve_read_async(l->in, op);
}

static void
lane_opened(reeve_op_t *op)
{
	struct lane *l = op->arg;

	must(op->res == 0, "open");
	l->out = op->stream;
	l->w->begun++;
}

static void
lane_accepted(reeve_op_t *op)
{
	struct lane *l = op->arg;

	must(op->res == 0, "accept");
	l->in = op->stream;
	l->w->begun++;
}

static void
lanes_open(struct world *w)
{
	struct lane *l;
	unsigned i, k;

	for (i = 0; i < LANES; i++) {
		l = &w->lanes[i];
		l->w = w;
		reeve_op_init(&l->accept, lane_accepted, l);
		reeve_op_init(&l->open, lane_opened, l);
		reeve_op_init(&l->read, received, l);
		for (k = 0; k < PENDING; k++)
			reeve_op_init(&l->writes[k], written, l);
		reeve_accept_async(w->ctl[1], &l->accept);
		reeve_open_async(w->ctl[0], &l->open);
	}
	run_until(w, &w->begun, 2 * LANES);
}

static void
carry(struct world *w)
{
	unsigned i, k;

	for (i = 0; i < LANES; i++) {
		reeve_read_async(w->lanes[i].in, &w->lanes[i].read);
		for (k = 0; k < PENDING; k++)
			write_more(&w->lanes[i], &w->lanes[i].writes[k]);
	}
	run_until(w, &w->done, LANES);
	must(w->bytes == (uint64_t)LANES * w->n * w->size, "bytes are missing");
}

static void
lanes_close(struct world *w)
{
	unsigned i;

	for (i = 0; i < LANES; i++) {
		reeve_close(w->lanes[i].out);
		reeve_close(w->lanes[i].in);
	}
}

/* --- streams that begin and end --- */

static void
opened(reeve_op_t *op)
{
	struct world *w = op->arg;

	must(op->res == 0, "open");
	reeve_close(op->stream);
	if (w->begun == w->n)
		return;
	w->begun++;
	reeve_open_async(w->ctl[0], op);
}

static void
accepted(reeve_op_t *op)
{
	struct world *w = op->arg;

	if (op->res != 0)
		return; /* the end of the connection */
	reeve_close(op->stream);
	w->done++;
	reeve_accept_async(w->ctl[1], op);
}

static void
churn(struct world *w)
{
	unsigned i;

	w->begun = AHEAD;
	for (i = 0; i < AHEAD; i++) {
		reeve_op_init(&w->accepts[i], accepted, w);
		reeve_accept_async(w->ctl[1], &w->accepts[i]);
		reeve_op_init(&w->opens[i], opened, w);
		reeve_open_async(w->ctl[0], &w->opens[i]);
	}
	run_until(w, &w->done, w->n);
}

/* --- messages --- */

/* A message goes on to the next actor; there are as many as actors. */
static void
passed(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct world *w = arg;

	(void)self;
	if (msg == NULL || w->done >= w->n)
		return;
	w->done++;
	reeve_actor_post(w->actors[w->done % ACTORS], msg);
}

static void
actors_spawn(struct world *w)
{
	unsigned i;

	for (i = 0; i < ACTORS; i++)
		must(reeve_actor_spawn(&w->actors[i], w->rt, passed, w, NULL) == 0, "actor");
}

static void
post(struct world *w)
{
	unsigned i;

	for (i = 0; i < ACTORS; i++)
		reeve_actor_post(w->actors[i], &w->messages[i]);
	run_until(w, &w->done, w->n);
}

static void
actors_end(struct world *w)
{
	unsigned i;

	for (i = 0; i < ACTORS; i++)
		reeve_actor_unref(w->actors[i]);
}

/* --- the parts --- */

static const struct part {
	const char *name;
	void (*before)(struct world *w);
	void (*run)(struct world *w);
	void (*after)(struct world *w);
	size_t size;
	unsigned n;
} parts[] = {
    {"bulk", lanes_open, carry, lanes_close, 16384, 200},
    {"small", lanes_open, carry, lanes_close, 64, 500},
    {"opens", NULL, churn, NULL, 0, 8000},
    {"posts", actors_spawn, post, actors_end, 0, 100000},
};

static void
run(const struct part *p, bool quick)
{
	struct world *w = calloc(1, sizeof(*w));
	reeve_rt_cfg_t cfg;

	must(w != NULL, "memory");
	reeve_rt_cfg_init(&cfg);
	cfg.flags = REEVE_RT_EXTERNAL;
	must(reeve_rt_create(&w->rt, &cfg) == 0, "runtime");
	must(reeve_conn_pair(w->conn, w->rt, NULL) == 0, "connections");
	w->ctl[0] = reeve_conn_ctl(w->conn[0]);
	w->ctl[1] = reeve_conn_ctl(w->conn[1]);
	w->size = p->size;
	w->n = quick ? p->n / 10 : p->n;
	if (p->before != NULL)
		p->before(w);
	p->run(w);
	if (p->after != NULL)
		p->after(w);
	printf("{\"bench\":\"fixed\",\"case\":\"%s\",\"unit\":\"%s\",\"value\":%llu,\"n\":1}\n",
	    p->name, p->size > 0 ? "bytes carried" : "done",
	    (unsigned long long)(p->size > 0 ? w->bytes : w->done));
	reeve_conn_release(w->conn[0]);
	reeve_conn_release(w->conn[1]);
	reeve_rt_destroy(w->rt);
	free(w);
}

int
main(int argc, char **argv)
{
	bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
	const char *only = argc > 1 + quick ? argv[1 + quick] : NULL;
	bool ran = false;
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (only != NULL && strcmp(only, parts[i].name) != 0)
			continue;
		run(&parts[i], quick);
		ran = true;
	}
	must(ran, "usage: fixed [--quick] [bulk|small|opens|posts]");
	return EXIT_SUCCESS;
}
