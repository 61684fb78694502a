/* duo.c - see duo.h. */
#include <config.h>

#include "tests/kit/duo.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t
rvt_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
on_log(void *ctx, int level, const char *id, const char *text)
{
	struct rvt_duo *d = ctx;

	ck_assert_ptr_nonnull(id);
	ck_assert_ptr_nonnull(text);
	if (level <= REEVE_LOG_WARN)
		rvq_gauge_add(&d->warned, 1);
}

void
rvt_duo_rt_cfg(struct rvt_duo *d, reeve_rt_cfg_t *cfg)
{
	memset(d, 0, sizeof(*d));
	rvt_alloc_init(&d->alloc);
	cfg->alloc = d->alloc.a;
	cfg->log = on_log;
	cfg->log_ctx = d;
	ck_assert_int_eq(reeve_rt_create(&d->rt, cfg), 0);
}

void
rvt_duo_rt(struct rvt_duo *d, unsigned workers)
{
	reeve_rt_cfg_t cfg;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = workers;
	if (workers == 0)
		cfg.flags = REEVE_RT_EXTERNAL;
	rvt_duo_rt_cfg(d, &cfg);
}

void
rvt_duo_conns(struct rvt_duo *d, const reeve_cfg_t *cfg)
{
	ck_assert_int_eq(reeve_conn_pair(d->c, d->rt, cfg), 0);
	d->k[0] = reeve_conn_ctl(d->c[0]);
	d->k[1] = reeve_conn_ctl(d->c[1]);
}

void
rvt_duo_stream(struct rvt_duo *d)
{
	ck_assert_int_eq(reeve_open(d->k[0], &d->s[0], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_accept(d->k[1], &d->s[1], RVT_WAIT_MS), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_deadline(d->s[i], REEVE_RD | REEVE_WR, RVT_WAIT_MS), 0);
}

void
rvt_duo_begin(struct rvt_duo *d, int mplex)
{
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = mplex ? REEVE_MPLEX : REEVE_YAMUX;
	rvt_duo_rt(d, 2);
	rvt_duo_conns(d, &cfg);
	rvt_duo_stream(d);
}

void
rvt_duo_start(struct rvt_duo *d)
{
	rvt_duo_begin(d, 0);
}

void
rvt_duo_end(struct rvt_duo *d)
{
	for (int i = 0; i < 2; i++)
		reeve_close(d->s[i]);
	for (int i = 0; i < 2; i++)
		reeve_conn_destroy(d->c[i]);
	reeve_rt_destroy(d->rt);
	rvt_alloc_check(&d->alloc);
}

static uint8_t
run_byte(uint64_t i)
{
	return (uint8_t)(((i + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static void
fill(uint8_t *p, size_t n, uint64_t from)
{
	for (size_t i = 0; i < n; i++)
		p[i] = run_byte(from + i);
}

void
rvt_write_run(reeve_stream_t *s, size_t n, uint64_t from)
{
	uint8_t *p = malloc(n);

	ck_assert_ptr_nonnull(p);
	fill(p, n, from);
	ck_assert_int_eq(reeve_write(s, p, n), (reeve_ssize)n);
	free(p);
}

void
rvt_read_run(reeve_stream_t *s, size_t n, uint64_t from)
{
	uint8_t part[16384];
	reeve_ssize got = 0;
	size_t done, wrong = 0;

	/* One assertion for all: each of them is a message to the runner. */
	for (done = 0; done < n; done += (size_t)got) {
		got = reeve_read(s, part, n - done < sizeof(part) ? n - done : sizeof(part));
		if (got <= 0)
			break;
		for (reeve_ssize i = 0; i < got; i++)
			wrong += part[i] != run_byte(from + done + (size_t)i);
	}
	ck_assert_msg(done == n, "read answers %s after %zu bytes", reeve_errname((int)got), done);
	ck_assert_uint_eq(wrong, 0);
}

reeve_buf_t *
rvt_buf_run(reeve_rt_t *rt, size_t n, uint64_t from)
{
	reeve_buf_t *b = reeve_buf_alloc(rt, n);

	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_nonnull(reeve_buf_mut(b));
	fill(reeve_buf_mut(b), n, from);
	return b;
}

void
rvt_read_end(reeve_stream_t *s)
{
	uint8_t byte;

	ck_assert_int_eq(reeve_read(s, &byte, 1), 0);
}

/* --- operations --- */

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned next_order;

static void
on_done(reeve_op_t *op)
{
	struct rvt_done *d = (struct rvt_done *)(void *)op;

	pthread_mutex_lock(&order_lock);
	d->order = next_order++;
	pthread_mutex_unlock(&order_lock);
	pthread_mutex_lock(&d->lock);
	d->calls++;
	d->inside = pthread_equal(d->starter, pthread_self());
	pthread_cond_broadcast(&d->cond);
	pthread_mutex_unlock(&d->lock);
}

void
rvt_done_init(struct rvt_done *d, int64_t timeout_ms)
{
	memset(d, 0, sizeof(*d));
	reeve_op_init(&d->op, on_done, NULL);
	d->op.timeout_ms = timeout_ms;
	d->starter = pthread_self();
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->cond, NULL);
}

reeve_ssize
rvt_done_wait(struct rvt_done *d)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RVT_WAIT_MS / 1000;
	pthread_mutex_lock(&d->lock);
	while (d->calls == 0 && rc == 0)
		rc = pthread_cond_timedwait(&d->cond, &d->lock, &until);
	pthread_mutex_unlock(&d->lock);
	ck_assert_msg(rc == 0, "an operation never completed");
	ck_assert_uint_eq(d->calls, 1);
	ck_assert_int_eq(d->inside, 0);
	return d->op.res;
}

int
rvt_done_is(struct rvt_done *d)
{
	int is;

	pthread_mutex_lock(&d->lock);
	is = d->calls != 0;
	pthread_mutex_unlock(&d->lock);
	return is;
}

/* --- on a worker --- */

struct errand {
	reeve_msg_t msg;
	void (*fn)(void *arg);
	void *arg;
	struct rvt_done done;
};

static void
on_errand(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	struct errand *e = arg;

	(void)self;
	if (msg == NULL)
		return;
	e->fn(e->arg);
	on_done(&e->done.op);
}

void
rvt_on_worker(reeve_rt_t *rt, void (*fn)(void *arg), void *arg)
{
	struct errand e = {.fn = fn, .arg = arg};
	reeve_actor_t *a;

	rvt_done_init(&e.done, -1);
	ck_assert_int_eq(reeve_actor_spawn(&a, rt, on_errand, &e, NULL), 0);
	reeve_actor_post(a, &e.msg);
	(void)rvt_done_wait(&e.done);
	reeve_actor_unref(a);
}
