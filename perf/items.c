/* items.c - see items.h. */
#include <config.h>

#include "perf/items.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "lib/clock.h"
#include "perf/flow.h"
#include "perf/kit.h"

#define PATIENCE_US UINT64_C(30000000)

struct item {
	uint64_t number, stamp;
};

void
rvp_items_init(struct rvp_items *it, unsigned n)
{
	memset(it, 0, sizeof(*it));
	it->warm_up = n / 10;
	it->n = n;
	it->ns = calloc(n, sizeof(it->ns[0]));
	rvp_check(it->ns != NULL, "memory");
	rvq_latch_init(&it->done);
}

void
rvp_items_free(struct rvp_items *it)
{
	free(it->ns);
}

bool
rvp_items_due(struct rvp_items *it, unsigned *n)
{
	uint64_t now = rvp_now_ns(), all = it->n + it->warm_up, due;

	if (it->due == 0)
		it->due = now;
	due = (now - it->due) * RVP_ITEMS_RATE / 1000000000 + 1;
	*n = (unsigned)((due < all ? due : all) - it->sent);
	return it->sent < all;
}

void
rvp_items_sleep(uint64_t began, unsigned i)
{
	uint64_t at = began + (uint64_t)i * 1000000000 / RVP_ITEMS_RATE;
	struct timespec t = {(time_t)(at / 1000000000), (long)(at % 1000000000)};

	if (i == 0)
		(void)prctl(PR_SET_TIMERSLACK, 1UL);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void
rvp_items_make(struct rvp_items *it, void *p)
{
	struct item item = {it->sent++, rvp_now_ns()};

	memset(p, 0, RVP_ITEM);
	memcpy(p, &item, sizeof(item));
}

static void
came(struct rvp_items *it)
{
	uint64_t now = rvp_now_ns();
	struct item item;

	memcpy(&item, it->part, sizeof(item));
	rvp_check(item.number == it->got, "an item is not the next one");
	if (it->got >= it->warm_up)
		it->ns[it->got - it->warm_up] = now - item.stamp;
	if (++it->got == it->n + it->warm_up)
		rvq_latch_set(&it->done);
}

void
rvp_items_take(struct rvp_items *it, const void *p, size_t n)
{
	const uint8_t *from = p;
	size_t some;

	for (; n > 0; n -= some, from += some) {
		some = RVP_ITEM - it->have < n ? RVP_ITEM - it->have : n;
		memcpy(it->part + it->have, from, some);
		it->have = (it->have + some) % RVP_ITEM;
		if (it->have == 0)
			came(it);
	}
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void
rvp_items_wait(struct rvp_items *it)
{
	rvp_must(rvq_latch_wait(&it->done, rv_clock_us() + PATIENCE_US), "items that are missing");
	qsort(it->ns, it->n, sizeof(it->ns[0]), compare);
}

double
rvp_items_us(const struct rvp_items *it, double q)
{
	return (double)it->ns[(size_t)(q * (double)(it->n - 1))] / 1000;
}
