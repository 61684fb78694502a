/*
 * open_echo.c - streams that are opened, carry a byte there and back, and are closed by both, 64 at once, by operations.
 */
#include <config.h>

#include "perf/open.h"

#include <stdlib.h>
#include <string.h>

#include "perf/nodes.h"
#include "queues/latch.h"

#define AHEAD   64
#define STREAMS 50000u

struct shop;

/* Of the opening end. */
struct guest {
	struct shop *shop;
	reeve_op_t open, write, read;
	reeve_stream_t *s;
	uint64_t from;
};

/* Of the accepting one. */
struct host {
	struct shop *shop;
	reeve_op_t accept, write, read;
	reeve_stream_t *s;
};

struct shop {
	struct rvp_nodes nodes;
	struct guest guests[AHEAD];
	struct host hosts[AHEAD];
	unsigned n, begun, ended; /* the opening worker's */
	struct rvq_latch done;
	double us[STREAMS];
};

static void
begin(struct guest *g)
{
	g->shop->begun++;
	g->from = rvp_now_ns();
	reeve_open_async(g->shop->nodes.ctl[0], &g->open);
}

static void
on_opened(reeve_op_t *op)
{
	struct guest *g = op->arg;
	reeve_buf_t *b;

	if (op->res < 0)
		return;
	g->s = op->stream;
	b = reeve_buf_alloc(g->shop->nodes.rt[0], 1);
	rvp_check(b != NULL, "memory");
	*reeve_buf_mut(b) = 7;
	reeve_write_async(g->s, b, &g->write);
	reeve_read_async(g->s, &g->read);
}

static void
on_sent(reeve_op_t *op)
{
	(void)op; /* the answer tells */
}

static void
on_answered(reeve_op_t *op)
{
	struct guest *g = op->arg;
	struct shop *shop = g->shop;

	if (op->res < 0)
		return;
	rvp_check(op->res == 1 && *reeve_buf_data(op->buf) == 7, "answer");
	reeve_buf_unref(op->buf);
	shop->us[shop->ended++] = (double)(rvp_now_ns() - g->from) / 1e3;
	reeve_close(g->s);
	if (shop->ended == shop->n)
		rvq_latch_set(&shop->done);
	else if (shop->begun < shop->n)
		begin(g);
}

static void
on_accepted(reeve_op_t *op)
{
	struct host *h = op->arg;

	if (op->res < 0)
		return;
	h->s = op->stream;
	reeve_read_async(h->s, &h->read);
}

static void
on_asked(reeve_op_t *op)
{
	struct host *h = op->arg;

	if (op->res <= 0)
		return;
	reeve_write_async(h->s, op->buf, &h->write);
}

/* Closed when its byte has left; then the next one is taken. */
static void
on_told(reeve_op_t *op)
{
	struct host *h = op->arg;

	reeve_close(h->s);
	if (op->res > 0)
		reeve_accept_async(h->shop->nodes.ctl[1], &h->accept);
}

static void
prepare(struct shop *shop)
{
	for (unsigned i = 0; i < AHEAD; i++) {
		struct guest *g = &shop->guests[i];
		struct host *h = &shop->hosts[i];

		g->shop = h->shop = shop;
		reeve_op_init(&g->open, on_opened, g);
		reeve_op_init(&g->write, on_sent, g);
		reeve_op_init(&g->read, on_answered, g);
		reeve_op_init(&h->accept, on_accepted, h);
		reeve_op_init(&h->read, on_asked, h);
		reeve_op_init(&h->write, on_told, h);
		reeve_accept_async(shop->nodes.ctl[1], &h->accept);
	}
}

void
rvp_open_echo(struct rvp_echoes *e, unsigned round, unsigned shared, bool quick, bool pin)
{
	struct shop *shop = calloc(1, sizeof(*shop));
	uint64_t began;

	rvp_check(shop != NULL, "memory");
	shop->n = quick ? 2000 : STREAMS;
	rvq_latch_init(&shop->done);
	if (shared > 0)
		rvp_nodes_open_shared(&shop->nodes, shared);
	else
		rvp_nodes_open(&shop->nodes, RVP_TCP, NULL, pin);
	prepare(shop);
	began = rvp_now_ns();
	/* The first ones are begun before any answer is looked at: nobody else counts yet. */
	for (unsigned i = 0; i < AHEAD; i++)
		shop->guests[i].from = began;
	shop->begun = AHEAD;
	for (unsigned i = 0; i < AHEAD; i++)
		reeve_open_async(shop->nodes.ctl[0], &shop->guests[i].open);
	(void)rvq_latch_wait(&shop->done, UINT64_MAX);
	e->us[round] = (double)(rvp_now_ns() - began) / 1e3 / shop->n;
	rvp_nodes_close(&shop->nodes);
	qsort(shop->us, shop->n, sizeof(shop->us[0]), rvp_compare);
	e->p50[round] = shop->us[shop->n / 2];
	e->p99[round] = shop->us[(uint64_t)shop->n * 99 / 100];
	free(shop);
}
