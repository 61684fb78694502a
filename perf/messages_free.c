/* messages_free.c - producers that run freely for a while, more of them than processors: see messages.h.
 *
 * The receiver counts; the main thread looks at the count every 100 ms.  A window that brought less than 0.1 of the
 * mean is one in which the channel nearly stood still.  One that brought less than 0.3 may only be one in which both ends
 * were on different processors: on one, taking turns, a message costs a fifth. */
#include <config.h>

#include "perf/messages.h"

#include <pthread.h>
#include <time.h>

#include "perf/flow.h"

#define WINDOW_NS  100000000
#define QUICK_NS   10000000
#define SLOW       0.3 /* of the mean */
#define STILL      0.1
#define WINDOW_MAX RVP_ROUNDS_MAX

struct runner {
	const struct rvp_channel *channel;
	unsigned id; /* a drain: how many producers */
	uint64_t sum;
};

static struct rvq_cell32 stop __attribute__((aligned(64)));
static struct rvq_cell64 seen __attribute__((aligned(64)));

static void *
flood(void *arg)
{
	struct runner *r = arg;

	r->sum = r->channel != NULL ? r->channel->flood(r->id, &stop)
				    : rvp_actor_flood(r->id, &stop);
	return NULL;
}

static void *
drain(void *arg)
{
	struct runner *r = arg;

	r->sum = r->channel->drain(r->id, &seen);
	return NULL;
}

/* Millions of words a second in each window. */
static void
watch(double *rates, unsigned windows)
{
	const struct timespec window = {0, rvp_messages.quick ? QUICK_NS : WINDOW_NS};
	uint64_t at = rvp_now_ns(), count = rvq_cell64_get(&seen), then, before;
	unsigned i;

	for (i = 0; i < windows; i++) {
		then = at;
		before = count;
		nanosleep(&window, NULL);
		count = rvq_cell64_get(&seen);
		at = rvp_now_ns();
		rates[i] = (double)(count - before) * 1e3 / (double)(at - then);
	}
}

static void
run_freely(const struct rvp_free *f, unsigned producers, double *rates, unsigned windows)
{
	struct runner r[RVP_PRODUCERS], reader = {f->channel, producers, 0};
	pthread_t threads[RVP_PRODUCERS], t;
	uint64_t sent = 0;
	unsigned i;

	rvq_cell32_put(&stop, 0);
	rvq_cell64_put(&seen, 0);
	if (f->channel != NULL) {
		f->channel->begin();
		rvp_thread(&t, drain, &reader, RVP_ANY_CPU);
	} else {
		rvp_actor_flood_begin(producers, &seen);
	}
	for (i = 0; i < producers; i++) {
		r[i] = (struct runner){f->channel, i, 0};
		rvp_thread(&threads[i], flood, &r[i], RVP_ANY_CPU);
	}
	watch(rates, windows);
	rvq_cell32_put(&stop, 1);
	for (i = 0; i < producers; i++) {
		pthread_join(threads[i], NULL);
		sent += r[i].sum;
	}
	if (f->channel != NULL)
		pthread_join(t, NULL);
	else
		reader.sum = rvp_actor_flood_end();
	rvp_check(reader.sum == sent, "the sum of what was sent is not that of what came");
}

static void
print_count(
    struct rvp_cell *cell, const char *what, const double *rates, unsigned windows, double least)
{
	double count = 0;
	unsigned i;

	for (i = 0; i < windows; i++)
		count += rates[i] < least;
	cell->what = what;
	cell->unit = "windows";
	rvp_cell_print(cell, &count, 1);
}

void
rvp_report_free(const struct rvp_free *f, unsigned windows)
{
	struct rvp_cell cell = {"messages", "free, 1 producer", f->contender, "rate", "Mmsg/s", 1};
	double one[WINDOW_MAX], four[WINDOW_MAX], mean = 0, figure;
	unsigned i;

	run_freely(f, 1, one, windows / 2);
	run_freely(f, RVP_PRODUCERS, four, windows);
	for (i = 0; i < windows; i++)
		mean += four[i] / windows;
	rvp_cell_print(&cell, one, windows / 2);
	cell.row = "free, 4 producers";
	cell.x = RVP_PRODUCERS;
	rvp_cell_print(&cell, four, windows);
	cell.what = "slowest 100 ms";
	figure = rvp_quantile(four, windows, 0);
	rvp_cell_print(&cell, &figure, 1);
	cell.unit = "ratio";
	cell.what = "rate/1 producer";
	figure = mean / rvp_quantile(one, windows / 2, 0.5);
	rvp_cell_print(&cell, &figure, 1);
	print_count(&cell, "100 ms under 0.3", four, windows, SLOW * mean);
	print_count(&cell, "100 ms under 0.1", four, windows, STILL * mean);
}
