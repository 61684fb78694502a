/*
 * handover_library.c - to be handed received bytes, or to have them copied, in the library: reads by reeve_read_buf and by
 * reeve_read, and a thread between two connections that forwards by the one or the other.
 *
 * A thread a stream and end; writers hand the same buffer over again and again, readers sum every byte.  Copies are those of
 * the library, both ends, by the bytes that the last reader got.
 */
#include <config.h>

#include "perf/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/crew.h"
#include "perf/nodes.h"
#include "perf/rows.h"

#define READ_SIZE   65536u
#define STREAMS_MAX 8u

struct net {
	struct rvp_nodes from, to; /* to: of those who forward */
	bool forwards, copies;
	pthread_t between[STREAMS_MAX];
	unsigned nbetween;
	pthread_mutex_t lock; /* openers come together */
};

static _Thread_local reeve_buf_t *handed;

static bool
write_handed(void *stream, const void *p, size_t n)
{
	(void)p;
	return reeve_write_buf(stream, reeve_buf_ref(handed)) == (reeve_ssize)n;
}

static void
check_sum(const uint8_t *p, size_t n)
{
	/* All bytes are 1, and words of them are summed. */
	uint64_t words = n / 8, rest = n % 8;

	rvp_check(rvp_hand_sum(p, n) == words * UINT64_C(0x0101010101010101) + rest, "bytes");
}

static ssize_t
read_copied(void *stream, void *p, size_t n)
{
	reeve_ssize got = reeve_read(stream, p, n);

	if (got > 0)
		check_sum(p, (size_t)got);
	return (ssize_t)got;
}

static ssize_t
read_handed(void *stream, void *p, size_t n)
{
	reeve_buf_t *b;
	reeve_ssize got = reeve_read_buf(stream, &b);

	(void)p;
	(void)n;
	if (got <= 0)
		return (ssize_t)got;
	check_sum(reeve_buf_data(b), (size_t)got);
	reeve_buf_unref(b);
	return (ssize_t)got;
}

/* --- between two connections --- */

static void
forward_copied(reeve_stream_t *in, reeve_stream_t *out)
{
	uint8_t *bytes = malloc(READ_SIZE);
	reeve_ssize n;

	rvp_check(bytes != NULL, "memory");
	while (
	    (n = reeve_read(in, bytes, READ_SIZE)) > 0 && reeve_write(out, bytes, (size_t)n) == n)
		;
	free(bytes);
}

static void
forward_handed(reeve_stream_t *in, reeve_stream_t *out)
{
	reeve_buf_t *b;

	while (reeve_read_buf(in, &b) > 0 && reeve_write_buf(out, b) > 0)
		;
}

static void *
between_main(void *arg)
{
	struct net *n = arg;
	reeve_stream_t *in, *out;

	if (reeve_accept(n->from.ctl[1], &in, -1) < 0)
		return NULL;
	if (reeve_open(n->to.ctl[0], &out, -1) == 0) {
		if (n->copies)
			forward_copied(in, out);
		else
			forward_handed(in, out);
		reeve_close(out);
	}
	reeve_close(in);
	return NULL;
}

/* --- a crew's pair --- */

static void *
net_open(const struct rvp_load *l, bool forwards, bool copies)
{
	struct net *n = calloc(1, sizeof(*n));

	rvp_check(n != NULL, "memory");
	pthread_mutex_init(&n->lock, NULL);
	n->forwards = forwards;
	n->copies = copies;
	rvp_nodes_open_load(&n->from, l);
	if (forwards)
		rvp_nodes_open_load(&n->to, l);
	return n;
}

static void *
read_pair(const struct rvp_load *l)
{
	return net_open(l, false, false);
}

static void *
forward_pair_copied(const struct rvp_load *l)
{
	return net_open(l, true, true);
}

static void *
forward_pair_handed(const struct rvp_load *l)
{
	return net_open(l, true, false);
}

static size_t write_size; /* of the row: set before its threads are */

static void *
open_one(void *net)
{
	struct net *n = net;
	reeve_stream_t *s;

	if (n->forwards) {
		pthread_mutex_lock(&n->lock);
		rvp_thread(&n->between[n->nbetween++], between_main, n, RVP_ANY_CPU);
		pthread_mutex_unlock(&n->lock);
	}
	if (reeve_open(n->from.ctl[0], &s, -1) < 0)
		return NULL;
	handed = reeve_buf_alloc(n->from.rt[0], write_size);
	rvp_check(handed != NULL, "memory");
	memset(reeve_buf_mut(handed), 1, write_size);
	return s;
}

static void *
accept_one(void *net)
{
	struct net *n = net;
	reeve_stream_t *s;

	return reeve_accept((n->forwards ? &n->to : &n->from)->ctl[1], &s, -1) < 0 ? NULL : s;
}

static void
close_one(void *stream)
{
	reeve_close(stream);
	reeve_buf_unref(handed); /* NULL in a reader */
	handed = NULL;
}

static void
abort_net(void *net)
{
	struct net *n = net;

	rvp_nodes_abort(&n->from);
	if (n->forwards)
		rvp_nodes_abort(&n->to);
}

static void
free_net(void *net)
{
	struct net *n = net;

	for (unsigned i = 0; i < n->nbetween; i++)
		pthread_join(n->between[i], NULL);
	rvp_nodes_close(&n->from);
	if (n->forwards)
		rvp_nodes_close(&n->to);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

static void
totals(void *net, struct rvp_totals *t)
{
	struct net *n = net;
	struct rvp_totals more = {0};

	rvp_nodes_totals(&n->from, t);
	if (!n->forwards)
		return;
	rvp_nodes_totals(&n->to, &more);
	t->copied += more.copied;
}

static const struct rvp_crew_ops copied_ops = {read_pair, open_one, accept_one, write_handed,
    read_copied, close_one, abort_net, free_net, totals};
static const struct rvp_crew_ops handed_ops = {read_pair, open_one, accept_one, write_handed,
    read_handed, close_one, abort_net, free_net, totals};
static const struct rvp_crew_ops forward_copied_ops = {forward_pair_copied, open_one, accept_one,
    write_handed, read_handed, close_one, abort_net, free_net, totals};
static const struct rvp_crew_ops forward_handed_ops = {forward_pair_handed, open_one, accept_one,
    write_handed, read_handed, close_one, abort_net, free_net, totals};

static void *
copied_start(const struct rvp_load *l)
{
	return rvp_crew_start(l, &copied_ops);
}

static void *
handed_start(const struct rvp_load *l)
{
	return rvp_crew_start(l, &handed_ops);
}

static void *
forward_copied_start(const struct rvp_load *l)
{
	return rvp_crew_start(l, &forward_copied_ops);
}

static void *
forward_handed_start(const struct rvp_load *l)
{
	return rvp_crew_start(l, &forward_handed_ops);
}

#define REST rvp_crew_received, rvp_crew_totals, rvp_crew_stop
static const struct rvp_flow copied = {"read", copied_start, REST};
static const struct rvp_flow handed_flow = {"read_buf", handed_start, REST};
static const struct rvp_flow forwards_copied = {"copied", forward_copied_start, REST};
static const struct rvp_flow forwards_handed = {"handed", forward_handed_start, REST};

void
rvp_handover_library(bool quick, unsigned rounds)
{
	static const struct rvp_flow *const reads[] = {&copied, &handed_flow};
	static const struct rvp_flow *const forwards[] = {&forwards_copied, &forwards_handed};
	static const struct rvp_pair read_pairs[] = {{"read_buf", "read"}, {NULL, NULL}};
	static const struct rvp_pair forward_pairs[] = {{"handed", "copied"}, {NULL, NULL}};
	static const char *const transports[] = {"tcp", "unix", "memory"};
	static const size_t sizes[] = {1024, 16384, 262144};
	const struct rvp_rows rows[] = {
	    {.bench = "handover", .flows = reads, .n = 2, .pairs = read_pairs, .copies = true},
	    {.bench = "handover",
		.flows = forwards,
		.n = 2,
		.pairs = forward_pairs,
		.copies = true}};
	struct rvp_load l = {.seconds = quick ? 0.01 : 0.1, .warm_up = quick ? 0.02 : 0.1};
	char row[96];

	for (unsigned k = 0; k < 2; k++)
		for (unsigned t = 0; t < 3; t += 2)
			for (l.streams = 1; l.streams <= STREAMS_MAX; l.streams += 7)
				for (size_t i = 0; i < 3; i++) {
					l.transport = (enum rvp_transport)t;
					l.write = write_size = sizes[i];
					snprintf(row, sizeof(row), "%s %s %s x %u",
					    k == 0 ? "library" : "forward", transports[t],
					    rvp_size(sizes[i]), l.streams);
					rvp_row(&rows[k], row, (double)sizes[i], &l, rounds);
				}
}
