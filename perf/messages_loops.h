/*
 * messages_loops.h - the loops of messages.h over a channel's put and take.
 *
 * Always inlined with a put and a take that are known, so the compiler makes direct code of both.
 */
#ifndef REEVE_PERF_MESSAGES_LOOPS_H
#define REEVE_PERF_MESSAGES_LOOPS_H

#include "perf/messages.h"

#define RVP_LOOP static inline __attribute__((always_inline))

/* Up to n words of producer id on a way; how many it took, perhaps 0. */
typedef unsigned (*rvp_put_fn)(unsigned way, unsigned id, const uintptr_t *words, unsigned n);
/* Up to n words; how many there were, perhaps 0. */
typedef unsigned (*rvp_take_fn)(unsigned way, uintptr_t *words, unsigned n);

RVP_LOOP void
rvp_put_all(rvp_put_fn put, unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	unsigned tries = 0, done;

	for (; n > 0; n -= done, words += done) {
		done = put(way, id, words, n);
		if (done == 0)
			rvp_relax(&tries);
	}
}

RVP_LOOP void
rvp_loop_produce(rvp_put_fn put, unsigned id, unsigned n, unsigned batch)
{
	uintptr_t words[RVP_MANY], word = 0;
	unsigned i;

	for (; n > 0; n -= batch) {
		for (i = 0; i < batch; i++)
			words[i] = ++word;
		rvp_put_all(put, 0, id, words, batch);
	}
}

RVP_LOOP uint64_t
rvp_loop_consume(rvp_take_fn take, unsigned way, unsigned n, unsigned batch)
{
	uintptr_t words[RVP_MANY];
	unsigned tries = 0, done, i;
	uint64_t sum = 0;

	for (; n > 0; n -= done) {
		done = take(way, words, batch < n ? batch : n);
		if (done == 0)
			rvp_relax(&tries);
		for (i = 0; i < done; i++)
			sum += words[i];
	}
	return sum;
}

RVP_LOOP uint64_t
rvp_loop_alone(rvp_put_fn put, rvp_take_fn take, unsigned n, unsigned depth)
{
	uintptr_t word = 0;
	uint64_t sum = 0;
	unsigned i;

	while (n-- > 0) {
		for (i = 0; i < depth; i++) {
			word++;
			rvp_put_all(put, 0, 0, &word, 1);
		}
		sum += rvp_loop_consume(take, 0, depth, 1);
	}
	return sum;
}

RVP_LOOP void
rvp_loop_echo(rvp_put_fn put, rvp_take_fn take, unsigned n)
{
	uintptr_t word;

	while (n-- > 0) {
		word = (uintptr_t)rvp_loop_consume(take, 0, 1, 1);
		rvp_put_all(put, 1, 0, &word, 1);
	}
}

RVP_LOOP uint64_t
rvp_loop_call(rvp_put_fn put, rvp_take_fn take, uintptr_t word, unsigned n)
{
	uint64_t sum = 0;

	for (; n > 0; n--, word++) {
		rvp_put_all(put, 0, 0, &word, 1);
		sum += rvp_loop_consume(take, 1, 1, 1);
	}
	return sum;
}

RVP_LOOP uint64_t
rvp_loop_flood(rvp_put_fn put, unsigned id, const struct rvq_cell32 *stop)
{
	uintptr_t word, last = 0;
	uint64_t sum = 0;

	for (word = 1; !rvq_cell32_get_relaxed(stop); word++) {
		rvp_put_all(put, 0, id, &word, 1);
		sum += word;
	}
	rvp_put_all(put, 0, id, &last, 1);
	return sum;
}

RVP_LOOP uint64_t
rvp_loop_drain(rvp_take_fn take, unsigned producers, struct rvq_cell64 *seen)
{
	uint64_t sum = 0, count = 0;
	unsigned tries = 0;
	uintptr_t word;

	while (producers > 0) {
		if (take(0, &word, 1) == 0) {
			rvp_relax(&tries);
			continue;
		}
		producers -= word == 0;
		sum += word;
		rvq_cell64_put(seen, ++count);
	}
	return sum;
}

/* rvp_NAME of NAME_begin, NAME_put and NAME_take; about ns nanoseconds a word. */
#define RVP_CHANNEL_DEFINE(name, about_ns)                                             \
	static void name##_produce(unsigned id, unsigned n, unsigned batch)            \
	{                                                                              \
		if (batch == 1)                                                        \
			rvp_loop_produce(name##_put, id, n, 1);                        \
		else                                                                   \
			rvp_loop_produce(name##_put, id, n, RVP_MANY);                 \
	}                                                                              \
	static uint64_t name##_consume(unsigned n, unsigned batch)                     \
	{                                                                              \
		if (batch == 1)                                                        \
			return rvp_loop_consume(name##_take, 0, n, 1);                 \
		return rvp_loop_consume(name##_take, 0, n, RVP_MANY);                  \
	}                                                                              \
	static uint64_t name##_alone(unsigned n, unsigned depth)                       \
	{                                                                              \
		if (depth == 1)                                                        \
			return rvp_loop_alone(name##_put, name##_take, n, 1);          \
		return rvp_loop_alone(name##_put, name##_take, n, depth);              \
	}                                                                              \
	static void name##_echo(unsigned n)                                            \
	{                                                                              \
		rvp_loop_echo(name##_put, name##_take, n);                             \
	}                                                                              \
	static uint64_t name##_call(uintptr_t word, unsigned n)                        \
	{                                                                              \
		return rvp_loop_call(name##_put, name##_take, word, n);                \
	}                                                                              \
	static uint64_t name##_flood(unsigned id, const struct rvq_cell32 *stop)       \
	{                                                                              \
		return rvp_loop_flood(name##_put, id, stop);                           \
	}                                                                              \
	static uint64_t name##_drain(unsigned producers, struct rvq_cell64 *seen)      \
	{                                                                              \
		return rvp_loop_drain(name##_take, producers, seen);                   \
	}                                                                              \
	const struct rvp_channel rvp_##name = {about_ns, name##_begin, name##_produce, \
	    name##_consume, name##_alone, name##_echo, name##_call, name##_flood, name##_drain}

#endif
