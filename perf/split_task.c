/* split_task.c - see split.h. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/split.h"

static void *
serve(void *arg)
{
	struct rvp_split_task *t = arg;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (t->fn == NULL && !t->leave)
			pthread_cond_wait(&t->changed, &t->lock);
		if (t->fn == NULL)
			break;
		pthread_mutex_unlock(&t->lock);
		t->fn(t->arg);
		pthread_mutex_lock(&t->lock);
		t->fn = NULL;
		pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

void
rvp_split_task_start(struct rvp_split_task *t, bool pin)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	rvp_thread(&t->thread, serve, t, pin ? 1 : RVP_ANY_CPU);
}

void
rvp_split_task_run(struct rvp_split_task *t, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&t->lock);
	t->arg = arg;
	t->fn = fn;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void
rvp_split_task_wait(struct rvp_split_task *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->fn != NULL)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

void
rvp_split_task_stop(struct rvp_split_task *t)
{
	pthread_mutex_lock(&t->lock);
	t->leave = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
}

void
rvp_split_box_init(struct rvp_split_box *b)
{
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	b->full = false;
}

void
rvp_split_box_fini(struct rvp_split_box *b)
{
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
}

void
rvp_split_box_put(struct rvp_split_box *b, const char *addr)
{
	pthread_mutex_lock(&b->lock);
	snprintf(b->addr, sizeof(b->addr), "%s", addr);
	b->full = true;
	pthread_cond_signal(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

void
rvp_split_box_take(struct rvp_split_box *b, char addr[RVP_SPLIT_ADDR])
{
	pthread_mutex_lock(&b->lock);
	while (!b->full)
		pthread_cond_wait(&b->changed, &b->lock);
	b->full = false;
	memcpy(addr, b->addr, sizeof(b->addr));
	pthread_mutex_unlock(&b->lock);
}

unsigned
rvp_split_host(const struct rvp_split_load *l)
{
	return 0x7f000000u + 2 + l->turn % 250;
}

void
rvp_split_same(const uint8_t *got, const struct rvp_split_load *l)
{
	if (memcmp(got, l->payload, l->bytes) == 0)
		return;
	fprintf(stderr, "perf: other bytes than were sent\n");
	exit(EXIT_FAILURE);
}
