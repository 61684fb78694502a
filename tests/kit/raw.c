/* raw.c - see raw.h. */
#include <config.h>

#include "tests/kit/raw.h"
#include "tests/kit/sock.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void
open_on(struct rvt_raw *r, int role, const reeve_cfg_t *cfg, void (*joined)(int v[2]))
{
	reeve_rt_cfg_t rc;
	int v[2];

	memset(r, 0, sizeof(*r));
	r->base = rvt_base();
	joined(v);
	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	ck_assert_int_eq(reeve_rt_create(&r->rt, &rc), 0);
	rvt_peer_init(&r->p, v[1]);
	ck_assert_int_eq(reeve_conn_open_fd(&r->c, r->rt, v[0], role, cfg), 0);
	r->k = reeve_conn_ctl(r->c);
}

void
rvt_raw_open(struct rvt_raw *r, int role, const reeve_cfg_t *cfg)
{
	open_on(r, role, cfg, rvt_unix_pair);
}

void
rvt_raw_open_tcp(struct rvt_raw *r, int role, const reeve_cfg_t *cfg)
{
	open_on(r, role, cfg, rvt_tcp_pair);
}

void
rvt_raw_fini(struct rvt_raw *r)
{
	reeve_conn_destroy(r->c);
	reeve_rt_destroy(r->rt);
	rvt_peer_fini(&r->p);
	if (r->base.fds > 0) /* else it was made by hand */
		rvt_base_check(&r->base);
}

reeve_stream_t *
rvt_raw_inbound(struct rvt_raw *r, uint32_t id)
{
	reeve_stream_t *s = NULL;

	rvt_peer_put(&r->p, RVT_WU, RVT_SYN, id, 0);
	ck_assert_int_eq(reeve_accept(r->k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_uint_eq(reeve_stream_id(s), id);
	rvt_peer_want(&r->p, RVT_WU, RVT_ACK, id, 0);
	return s;
}

reeve_stream_t *
rvt_raw_outbound(struct rvt_raw *r)
{
	reeve_stream_t *s = NULL;
	uint32_t id;

	ck_assert_int_eq(reeve_open(r->k, &s, rvt_slow(RVT_WAIT_MS)), 0);
	id = (uint32_t)reeve_stream_id(s);
	rvt_peer_want(&r->p, RVT_WU, RVT_SYN, id, 0);
	rvt_peer_put(&r->p, RVT_WU, RVT_ACK, id, 0);
	return s;
}

reeve_stats_t
rvt_stats(reeve_ctl_t *k)
{
	reeve_stats_t st = {.size = sizeof(st)};

	ck_assert_int_eq(reeve_ctl_stats(k, &st), 0);
	return st;
}

void
rvt_no_streams(reeve_ctl_t *k)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (rvt_stats(k).streams_open != 0) {
		ck_assert_msg(rvt_now_ms() < deadline, "%llu streams stay",
		    (unsigned long long)rvt_stats(k).streams_open);
		sched_yield();
	}
}

int
rvt_closed(reeve_ctl_t *k)
{
	reeve_op_t op;

	reeve_op_init(&op, NULL, NULL);
	reeve_closed_async(k, &op);
	return (int)reeve_op_wait(&op);
}

void
rvt_raw_stalled(struct rvt_raw *r)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (rvt_stats(r->k).stalls_transport == 0) {
		ck_assert_msg(rvt_now_ms() < deadline, "the transport never fills");
		sched_yield();
	}
}

void
rvt_raw_want_reason(struct rvt_raw *r, int rc, uint32_t by)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stream_t *s = NULL;
	int later = rc == 0 ? REEVE_ECLOSED : rc;

	(void)rvt_closed(r->k);
	ck_assert_int_eq(reeve_ctl_reason(r->k, &why), 0);
	ck_assert_msg(why.rc == rc, "%s (%s) instead of %s", reeve_errname(why.rc), why.id,
	    reeve_errname(rc));
	ck_assert_msg(why.by == by, "by %u instead of %u (%s)", why.by, by, why.id);
	ck_assert_int_eq(strncmp(why.id, "REEVE-", 6), 0);
	ck_assert_int_eq(reeve_open(r->k, &s, -1), later);
	ck_assert_int_eq(reeve_accept(r->k, &s, -1), later);
	ck_assert_int_eq(reeve_ping(r->k, -1, NULL), later);
}

/* --- streams */

#define PIECE 65536u

uint8_t *
rvt_pattern(uint32_t id, size_t n)
{
	uint8_t *p = malloc(n);

	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < n; i++)
		p[i] = rvt_byte(id, i);
	return p;
}

void
rvt_want_read(reeve_stream_t *s, uint64_t n, uint64_t from)
{
	uint32_t id = (uint32_t)reeve_stream_id(s);
	uint8_t *p = malloc(PIECE);
	reeve_ssize got;

	while (n > 0) {
		got = reeve_read(s, p, n < PIECE ? (size_t)n : PIECE);
		ck_assert_msg(got > 0, "stream %u: %s, %llu bytes short", id,
		    got < 0 ? reeve_errname((int)got) : "end", (unsigned long long)n);
		for (reeve_ssize i = 0; i < got; i++)
			if (p[i] != rvt_byte(id, from + (uint64_t)i))
				ck_abort_msg("stream %u: byte %llu is wrong", id,
				    (unsigned long long)(from + (uint64_t)i));
		n -= (uint64_t)got;
		from += (uint64_t)got;
	}
	free(p);
}

void
rvt_want_write(reeve_stream_t *s, size_t n, uint64_t from)
{
	uint32_t id = (uint32_t)reeve_stream_id(s);
	uint8_t *p = malloc(n);

	for (size_t i = 0; i < n; i++)
		p[i] = rvt_byte(id, from + i);
	ck_assert_int_eq(reeve_write(s, p, n), (reeve_ssize)n);
	free(p);
}

void
rvt_want_rc(reeve_stream_t *s, reeve_ssize rc)
{
	uint8_t p[16];
	reeve_ssize got = reeve_read(s, p, sizeof(p));

	ck_assert_msg(got == rc, "read: %td (%s) instead of %td (%s)", got,
	    got < 0 ? reeve_errname((int)got) : "", rc, rc < 0 ? reeve_errname((int)rc) : "");
}

/* --- calls */

static void *
call(void *arg)
{
	struct rvt_call *c = arg;
	uint64_t start = rvt_now_ms();

	pthread_mutex_lock(&c->lock);
	c->tid = (int)syscall(SYS_gettid);
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
	switch (c->kind) {
	case RVT_CALL_READ:
		c->rc = reeve_read(c->s, c->p, c->n);
		break;
	case RVT_CALL_WRITE:
		c->rc = reeve_write(c->s, c->p, c->n);
		break;
	case RVT_CALL_OPEN:
		c->rc = reeve_open(c->k, &c->s, c->timeout_ms);
		break;
	case RVT_CALL_ACCEPT:
		c->rc = reeve_accept(c->k, &c->s, c->timeout_ms);
		break;
	case RVT_CALL_PING:
		c->rc = reeve_ping(c->k, c->timeout_ms, NULL);
		break;
	case RVT_CALL_CLOSE:
		c->rc = reeve_conn_close(c->c, c->timeout_ms);
		break;
	}
	c->ms = rvt_now_ms() - start;
	pthread_mutex_lock(&c->lock);
	c->done = true;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void
rvt_call_start(struct rvt_call *c)
{
	pthread_condattr_t attr;

	c->tid = 0;
	c->done = false;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->cond, &attr);
	pthread_condattr_destroy(&attr);
	ck_assert_int_eq(pthread_create(&c->thread, NULL, call, c), 0);
	pthread_mutex_lock(&c->lock);
	while (c->tid == 0)
		pthread_cond_wait(&c->cond, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

bool
rvt_call_done(struct rvt_call *c)
{
	bool done;

	pthread_mutex_lock(&c->lock);
	done = c->done;
	pthread_mutex_unlock(&c->lock);
	return done;
}

/* What the kernel says of the thread: S is asleep. */
static char
state_of(int tid)
{
	char name[64], line[256], *p;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
	f = fopen(name, "r");
	if (f == NULL)
		return 'X';
	p = fgets(line, sizeof(line), f);
	fclose(f);
	p = p == NULL ? NULL : strrchr(line, ')');
	return p == NULL ? 'X' : p[2];
}

void
rvt_call_asleep(struct rvt_call *c)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (!rvt_call_done(c) && state_of(c->tid) != 'S') {
		ck_assert_msg(rvt_now_ms() < deadline, "the call neither sleeps nor ends");
		sched_yield();
	}
}

reeve_ssize
rvt_call_end(struct rvt_call *c)
{
	struct timespec ts;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += rvt_slow(RVT_WAIT_MS) / 1000;
	pthread_mutex_lock(&c->lock);
	while (!c->done && rc == 0)
		rc = pthread_cond_timedwait(&c->cond, &c->lock, &ts);
	pthread_mutex_unlock(&c->lock);
	ck_assert_msg(rc == 0, "a call (kind %d) does not return", (int)c->kind);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->cond);
	return c->rc;
}
