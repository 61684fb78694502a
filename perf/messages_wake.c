/* messages_wake.c - a message to a receiver that sleeps: see messages.h.
 *
 * Half a millisecond of quiet, then one message: what the call cost the sender, and when the receiver had it.  The
 * sender looks for that from a sleep of its own, so that a receiver may run on either processor. */
#include <config.h>

#include "perf/messages.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "perf/flow.h"

struct sleeper {
	const struct rvp_channel *channel;
	struct rvq_cell64 ran; /* when, or 0 */
	unsigned n;
};

static void *
receive(void *arg)
{
	struct sleeper *s = arg;
	uint64_t word;
	unsigned i;

	for (i = 1; i <= s->n; i++) {
		word = s->channel->consume(1, 1);
		rvp_check(word == 1, "a word that nobody sent");
		rvq_cell64_put(&s->ran, rvp_now_ns());
	}
	return NULL;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The p50 and p99 of n microseconds, into a round's place. */
static void
keep(double out[2][RVP_ROUNDS_MAX], unsigned round, double *values, unsigned n)
{
	qsort(values, n, sizeof(values[0]), compare);
	out[0][round] = values[n / 2];
	out[1][round] = values[n * 99 / 100];
}

double
rvp_run_wake(void *arg)
{
	static double cost[RVP_WAKES], delay[RVP_WAKES];
	static struct sleeper s __attribute__((aligned(64)));
	const struct timespec quiet = {0, 500000}, look = {0, 20000};
	struct rvp_wake *w = arg;
	unsigned n = rvp_messages.quick ? 15 : RVP_WAKES, i;
	uint64_t from, posted;
	pthread_t t;

	s.channel = w->channel;
	s.n = n;
	if (w->channel != NULL) {
		w->channel->begin();
		rvp_thread(&t, receive, &s, RVP_ANY_CPU);
	} else {
		rvp_actor_wake_begin(&s.ran);
	}
	for (i = 0; i < n; i++) {
		nanosleep(&quiet, NULL);
		rvq_cell64_put(&s.ran, 0);
		from = rvp_now_ns();
		if (w->channel != NULL)
			w->channel->produce(0, 1, 1);
		else
			rvp_actor_wake_post();
		posted = rvp_now_ns();
		while (rvq_cell64_get(&s.ran) == 0)
			nanosleep(&look, NULL);
		cost[i] = (double)(posted - from) / 1000;
		delay[i] = (double)(rvq_cell64_get(&s.ran) - from) / 1000;
	}
	if (w->channel != NULL)
		pthread_join(t, NULL);
	else
		rvp_actor_wake_end();
	keep(w->sender, w->round, cost, n);
	keep(w->until, w->round, delay, n);
	return w->until[0][w->round++];
}
