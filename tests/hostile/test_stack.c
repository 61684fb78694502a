/* test_stack.c - workers on small stacks: whatever length a peer or the application names, it is not on the stack.
 *
 * Built without variable-length arrays and with no frame of the library above 8 KiB (-Wvla, -Wframe-larger-than in
 * configure.ac); here the depth is measured. */
#include <config.h>

#include "queues/counter.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK  (RVT_SANITIZED ? 1024u * 1024 : 64u * 1024)
#define DEPTH  (32u * 1024)
#define WINDOW 262144u

static struct rvt_raw r;
static struct rvq_gauge depth; /* of the worker's stack, bytes */

static void
on_log(void *ctx, int level, const char *id, const char *text)
{
	(void)ctx;
	(void)level;
	(void)id;
	(void)text;
}

/* Threads that name no size of their own get a small stack. */
static void
small_stacks(size_t size)
{
	pthread_attr_t attr;

	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, size), 0);
	ck_assert_int_eq(pthread_setattr_default_np(&attr), 0);
	pthread_attr_destroy(&attr);
}

/* On the worker: how far down its stack was ever written.  It came zeroed from the system. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void
measure(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	const volatile uint8_t *low;
	pthread_attr_t attr;
	void *base = NULL;
	size_t size = 0, at = 0;

	(void)self;
	(void)arg;
	if (msg == NULL)
		return;
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		(void)pthread_attr_getstack(&attr, &base, &size);
		pthread_attr_destroy(&attr);
	}
	low = base;
	while (!RVT_SANITIZED && at < size && low[at] == 0)
		at++;
	rvq_gauge_add(&depth, size - at);
}

static size_t
depth_of_worker(void)
{
	reeve_actor_t *a;
	reeve_msg_t m = {0};

	ck_assert_int_eq(reeve_actor_spawn(&a, r.rt, measure, NULL, NULL), 0);
	reeve_actor_post(a, &m);
	while (rvq_gauge_get(&depth) == 0)
		sched_yield();
	reeve_actor_unref(a);
	return (size_t)rvq_gauge_get(&depth);
}

static void
begin(void)
{
	reeve_rt_cfg_t rc;
	reeve_cfg_t cfg;
	int v[2];

	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	rc.log = on_log;
	rc.log_level = REEVE_LOG_TRACE;
	ck_assert_int_eq(reeve_rt_create(&r.rt, &rc), 0);
	rvt_unix_pair(v);
	rvt_peer_init(&r.p, v[1]);
	reeve_cfg_init(&cfg);
	cfg.split = 1u << 20;
	ck_assert_int_eq(reeve_conn_open_fd(&r.c, r.rt, v[0], REEVE_LISTENER, &cfg), 0);
	r.k = reeve_conn_ctl(r.c);
}

/* Frames as large as the window in, writes of megabytes out, thousands of small things, a length of 2^32 - 1 at the
 * end: with 64 KiB of stack, of which half is enough. */
START_TEST(scenario_92_no_length_is_on_the_stack)
{
	uint32_t out = (rvt_scale() >= 100 ? 10u : 3u) << 20;
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = out};
	reeve_stream_t *s, *in[8];
	size_t deep;

	small_stacks(STACK);
	begin();
	s = rvt_raw_inbound(&r, 1);
	rvt_peer_settle(&r.p);
	for (uint32_t i = 0; i < 8; i++)
		rvt_put_data(&r.p.out, RVT_SYN, 2 * i + 3, WINDOW, 0);
	rvt_peer_send(&r.p);
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_int_eq(reeve_accept(r.k, &in[i], rvt_slow(RVT_WAIT_MS)), 0);
		rvt_want_read(in[i], WINDOW, 0);
		reeve_close(in[i]);
	}
	for (uint32_t i = 0; i < 2000; i++)
		rvt_put_data(&r.p.out, 0, 1, 1, i);
	rvt_peer_send(&r.p);
	rvt_want_read(s, 2000, 0);
	rvt_peer_barrier(&r.p);
	rvt_bytes_fini(&r.p.in);
	rvt_peer_put(&r.p, RVT_WU, 0, 1, 64u << 20);
	c.s = s;
	c.p = rvt_pattern(1, out);
	rvt_call_start(&c);
	(void)rvt_peer_want_bytes(&r.p, 1, out, 0);
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)out);
	rvt_peer_put(&r.p, RVT_DATA, 0, 1, 0xffffffff);
	rvt_peer_want_goaway_end(&r.p, 1);
	deep = depth_of_worker();
	printf("depth of the worker's stack: %zu bytes of %u\n", deep, STACK);
	if (!RVT_SANITIZED)
		ck_assert_uint_le(deep, DEPTH);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

RVT_MAIN_TABLE("stack", {&scenario_92_no_length_is_on_the_stack, 0})
