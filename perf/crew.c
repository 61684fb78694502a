/* crew.c - see crew.h. */
#include <config.h>

#include "perf/crew.h"

#include <stdlib.h>
#include <string.h>

#include "perf/items.h"
#include "perf/kit.h"

#define READ_SIZE 65536u

struct crew;

struct hand {
	struct crew *crew;
	pthread_t writer, reader;
	struct rvq_counter received __attribute__((aligned(64))); /* the reader's */
};

struct crew {
	const struct rvp_crew_ops *ops;
	void *pair;
	struct rvp_load load;
	struct rvq_cell32 stopping;
	struct hand *hands;
};

static void
write_items(struct crew *c, void *stream)
{
	struct rvp_items *it = c->load.items;
	uint64_t began = rvp_now_ns();
	char item[RVP_ITEM];
	unsigned n;

	while (rvp_items_due(it, &n)) {
		for (; n > 0; n--) {
			rvp_items_make(it, item);
			rvp_check(c->ops->write(stream, item, RVP_ITEM), "write");
		}
		rvp_items_sleep(began, it->sent);
	}
}

/* A stream that there is not is no matter once it stops. */
static bool
got(struct crew *c, const void *stream)
{
	rvp_check(stream != NULL || rvq_cell32_get(&c->stopping), "no stream");
	return stream != NULL;
}

static void *
write_main(void *arg)
{
	struct hand *h = arg;
	struct crew *c = h->crew;
	size_t n = c->load.write;
	char *bytes = malloc(n);
	void *stream;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, n);
	stream = c->ops->open(c->pair);
	if (got(c, stream)) {
		if (c->load.items != NULL)
			write_items(c, stream);
		else
			while (c->ops->write(stream, bytes, n))
				;
		c->ops->close(stream);
	}
	free(bytes);
	return NULL;
}

static void *
read_main(void *arg)
{
	struct hand *h = arg;
	struct crew *c = h->crew;
	char *bytes = malloc(READ_SIZE);
	void *stream;
	ssize_t n;

	rvp_check(bytes != NULL, "memory");
	memset(bytes, 1, READ_SIZE);
	stream = c->ops->accept(c->pair);
	if (got(c, stream)) {
		while ((n = c->ops->read(stream, bytes, READ_SIZE)) > 0) {
			if (c->load.items != NULL)
				rvp_items_take(c->load.items, bytes, (size_t)n);
			rvq_counter_add(&h->received, (uint64_t)n);
		}
		c->ops->close(stream);
	}
	free(bytes);
	return NULL;
}

void *
rvp_crew_start(const struct rvp_load *l, const struct rvp_crew_ops *ops)
{
	struct crew *c = calloc(1, sizeof(*c));
	unsigned i;

	rvp_check(c != NULL, "memory");
	c->ops = ops;
	c->load = *l;
	c->hands = aligned_alloc(64, l->streams * sizeof(*c->hands));
	rvp_check(c->hands != NULL, "memory");
	memset(c->hands, 0, l->streams * sizeof(*c->hands));
	c->pair = ops->pair(l);
	for (i = 0; i < l->streams; i++) {
		c->hands[i].crew = c;
		rvp_thread(&c->hands[i].reader, read_main, &c->hands[i], l->pin ? 1 : RVP_ANY_CPU);
		rvp_thread(&c->hands[i].writer, write_main, &c->hands[i], l->pin ? 0 : RVP_ANY_CPU);
	}
	return c;
}

uint64_t
rvp_crew_received(void *run)
{
	struct crew *c = run;
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < c->load.streams; i++)
		sum += rvq_counter_get(&c->hands[i].received);
	return sum;
}

void
rvp_crew_totals(void *run, struct rvp_totals *t)
{
	struct crew *c = run;

	c->ops->totals(c->pair, t);
}

void
rvp_crew_stop(void *run)
{
	struct crew *c = run;
	unsigned i;

	rvq_cell32_put(&c->stopping, 1);
	c->ops->abort(c->pair);
	for (i = 0; i < c->load.streams; i++) {
		pthread_join(c->hands[i].writer, NULL);
		pthread_join(c->hands[i].reader, NULL);
	}
	c->ops->free(c->pair);
	free(c->hands);
	free(c);
}
