/* flow.c - see flow.h. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/peer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PIECE 65536u

uint32_t
rvt_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

uint32_t
rvt_seed(void)
{
	const char *s = getenv("REEVE_SEED");
	uint32_t seed = s != NULL ? (uint32_t)strtoul(s, NULL, 0) : (uint32_t)time(NULL);

	printf("REEVE_SEED=%u\n", seed);
	fflush(stdout);
	return seed;
}

unsigned
rvt_scale(void)
{
	const char *s = getenv("REEVE_SCALE");
	unsigned long n = s != NULL ? strtoul(s, NULL, 10) : 1;

	return n < 1 ? 1 : n > 1000 ? 1000 : (unsigned)n;
}

static size_t
size_of_call(struct rvt_flow *f)
{
	size_t max = f->max != 0 ? f->max : PIECE;

	/* Small ones as often as large ones. */
	if (max > 64 && rvt_random(&f->seed) % 4 == 0)
		max = 64;
	return 1 + rvt_random(&f->seed) % max;
}

static void
fill(const struct rvt_flow *f, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = rvt_byte(f->key, f->done + i);
}

static void
check(struct rvt_flow *f, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		f->wrong |= p[i] != rvt_byte(f->key, f->done + i);
}

static reeve_ssize
write_some(struct rvt_flow *f, uint8_t *p, size_t n)
{
	reeve_buf_t *b;

	if (f->rt == NULL) {
		fill(f, p, n);
		return reeve_write(f->s, p, n);
	}
	b = reeve_buf_alloc(f->rt, n);
	if (b == NULL)
		return REEVE_ENOMEM;
	fill(f, reeve_buf_mut(b), n);
	return reeve_write_buf(f->s, b);
}

static void
write_all(struct rvt_flow *f, uint8_t *p)
{
	reeve_ssize got;
	size_t n;

	while (f->done < f->total) {
		n = size_of_call(f);
		if (n > f->total - f->done)
			n = (size_t)(f->total - f->done);
		got = write_some(f, p, n);
		if (got > 0)
			f->done += (uint64_t)got;
		if (got != (reeve_ssize)n) {
			f->rc = got < 0 ? (int)got : REEVE_EAGAIN;
			return;
		}
	}
	if (!f->open)
		f->rc = reeve_shut(f->s);
}

static reeve_ssize
read_some(struct rvt_flow *f, uint8_t *p, size_t n, bool echo)
{
	reeve_buf_t *b = NULL;
	reeve_ssize got, put;

	if (f->rt != NULL) {
		got = reeve_read_buf(f->s, &b);
		if (got > 0)
			check(f, reeve_buf_data(b), (size_t)got);
		put = !echo || got <= 0 ? got : reeve_write_buf(f->s, reeve_buf_ref(b));
		reeve_buf_unref(b);
	} else {
		got = reeve_read(f->s, p, n);
		if (got > 0)
			check(f, p, (size_t)got);
		put = !echo || got <= 0 ? got : reeve_write(f->s, p, (size_t)got);
	}
	if (put != got)
		return put < 0 ? put : REEVE_EAGAIN;
	return got;
}

static void
read_all(struct rvt_flow *f, uint8_t *p, bool echo)
{
	reeve_ssize got;
	size_t n;

	while (!f->open || f->done < f->total) {
		n = size_of_call(f);
		if (f->open && n > f->total - f->done)
			n = (size_t)(f->total - f->done);
		got = read_some(f, p, n, echo);
		if (got <= 0) {
			f->rc = (int)got;
			break;
		}
		f->done += (uint64_t)got;
	}
	if (echo && f->rc == 0)
		f->rc = reeve_shut(f->s);
}

static void *
run(void *arg)
{
	struct rvt_flow *f = arg;
	uint8_t *p = malloc(f->max > PIECE ? f->max : PIECE);

	if (f->kind == RVT_FLOW_WRITE)
		write_all(f, p);
	else
		read_all(f, p, f->kind == RVT_FLOW_ECHO);
	free(p);
	return NULL;
}

void
rvt_flow_start(struct rvt_flow *f)
{
	f->done = 0;
	f->rc = 0;
	f->wrong = false;
	ck_assert_int_eq(pthread_create(&f->thread, NULL, run, f), 0);
}

void
rvt_flow_join(struct rvt_flow *f)
{
	pthread_join(f->thread, NULL);
}

void
rvt_flow_end(struct rvt_flow *f)
{
	rvt_flow_join(f);
	ck_assert_msg(!f->wrong, "kind %d: wrong bytes before %llu", (int)f->kind,
	    (unsigned long long)f->done);
	ck_assert_msg(f->rc == 0 && f->done == f->total, "kind %d: %s, %llu bytes of %llu",
	    (int)f->kind, reeve_errname(f->rc), (unsigned long long)f->done,
	    (unsigned long long)f->total);
}
