/*
 * crew.h - threads, time and the runner for the queue tests.
 *
 * Stress tests run for CREW_STRESS_US and check what was counted, not how much was done, so they
 * hold on one core, on many, and under a sanitizer.  Nothing sleeps to wait: a thread with nothing
 * to do yields.
 */
#ifndef REEVE_TESTS_QUEUES_CREW_H
#define REEVE_TESTS_QUEUES_CREW_H

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tests/kit/run.h"

#define CREW_STRESS_US 300000
#define CREW_MAX       8

struct crew {
	pthread_t thread[CREW_MAX];
	unsigned n;
};

static inline uint64_t
crew_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline void
crew_start(struct crew *c, void *(*fn)(void *), void *arg)
{
	ck_assert_uint_lt(c->n, CREW_MAX);
	ck_assert_int_eq(pthread_create(&c->thread[c->n++], NULL, fn, arg), 0);
}

static inline void
crew_join(struct crew *c)
{
	while (c->n > 0)
		ck_assert_int_eq(pthread_join(c->thread[--c->n], NULL), 0);
}

/* A small generator for lengths and choices; the sequence is the same in every run. */
static inline uint32_t
crew_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

#endif
