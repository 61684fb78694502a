/* Nodes that ask each other at random: requests of every size, cancelled, timed out, refused, answered late or by other
 * threads, while connections end.  Afterwards every gauge is 0 and all memory is back. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "tests/kit/flow.h"
#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

#define NODES   3
#define THREADS 3
#define SLOTS   16
#define SOAK_MS (RVT_SANITIZED ? 1000 : 2000)
#define LATE    8

static struct rq_node node[NODES];
static uint64_t until;
static struct rvq_cellptr late[LATE];
static struct rvq_cell64 asked, answered, told;
static reeve_reqs_t *second[NODES]; /* fn NULL: taken by threads */

static const char *const names2[] = {"/queue/2", "/queue/1"};

/* On a worker: answer at once, refuse, or leave it to a later call. */
static void
on_request(reeve_inbound_t *in, void *arg)
{
	static _Thread_local uint32_t seed = 1;
	uint32_t x = rvt_random(&seed);
	reeve_inbound_t *before;

	(void)rvq_cell64_add(&answered, 1);
	if (x % 16 == 0) {
		reeve_refuse(in);
	} else if (x % 16 < 3) {
		before = rvq_cellptr_swap(&late[x / 16 % LATE], in);
		reeve_respond(before, NULL, NULL, NULL);
	} else {
		rq_echo(in, arg);
	}
}

static void *
serve(void *arg)
{
	struct rq_node *p = arg;
	reeve_reqs_t *r = second[p - node];
	reeve_inbound_t *in = NULL;

	while (reeve_inbound_next(r, &in, -1) == 0)
		reeve_respond(in, reeve_buf_ref(reeve_inbound_body(in)), NULL, NULL);
	return NULL;
}

static bool
fair(int rc)
{
	return rc == 0 || rc == REEVE_ETIMEDOUT || rc == REEVE_EREFUSED || rc == REEVE_ECANCELED ||
	    rc == REEVE_ELOST || rc == REEVE_ENOTCONN || rc == REEVE_ETOOBIG || rc == REEVE_EDIAL ||
	    rc == REEVE_ERESET || rc == REEVE_ETRUNC || rc == REEVE_ENOPROTO || rc == REEVE_ELIMIT;
}

static void
check(struct rq_ask *a)
{
	ck_assert_msg(fair(a->q.rc), "%s in step %d", reeve_errname(a->q.rc), a->q.step);
	ck_assert_uint_eq(rvq_cell32_get(&a->calls), 1);
	reeve_buf_unref(a->q.response);
	(void)rvq_cell64_add(&told, 1);
}

static void
ask(struct rq_ask *a, uint32_t *seed)
{
	uint32_t x = rvt_random(seed), size = rvt_random(seed) % (x % 8 == 0 ? 200000 : 3000);
	struct rq_node *from = &node[x % NODES], *to = &node[(x + 1 + x / 8 % (NODES - 1)) % NODES];

	rq_ask_init(a, x / 64 % 8 == 0 ? 1 + x / 512 % 20 : 3000);
	a->q.flags = x / 4096 % 4 == 0 ? REEVE_REQUEST_NO_DIAL : 0;
	(void)rvq_cell64_add(&asked, 1);
	if (x / 32768 % 2 == 0)
		reeve_request_async(
		    from->r, to->id, rq_echo_body(from->rt, size, (uint8_t)x), &a->q);
	else
		reeve_request_async(
		    second[from - node], to->id, rq_buf(from->rt, size + 1, x), &a->q);
}

static void *
askers(void *arg)
{
	static _Thread_local struct rq_ask a[SLOTS];
	bool used[SLOTS] = {false};
	uint32_t seed = *(uint32_t *)arg;

	while (rvt_ms() < until) {
		uint32_t x = rvt_random(&seed), i = x % SLOTS;

		if (x / 64 % 512 == 0)
			(void)reeve_node_disconnect(node[x % NODES].n, node[(x + 1) % NODES].id);
		if (!used[i]) {
			ask(&a[i], &seed);
			used[i] = true;
		} else if (rq_ask_is(&a[i])) {
			check(&a[i]);
			used[i] = false;
		} else if (x / 64 % 16 == 0) {
			reeve_request_cancel(&a[i].q);
		} else {
			sched_yield();
		}
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		if (used[i]) {
			(void)rq_ask_wait(&a[i]);
			check(&a[i]);
		}
	}
	return NULL;
}

static void
begin(void)
{
	reeve_reqs_cfg_t cfg;

	for (unsigned i = 0; i < NODES; i++) {
		rq_start_node(&node[i], (uint8_t)(i + 1), 2, NULL);
		rq_cfg(&cfg);
		cfg.fn = on_request;
		cfg.arg = &node[i];
		cfg.flags = REEVE_REQS_LAZY;
		cfg.timeout_ms = 1000;
		rq_install(&node[i], &cfg);
		rq_cfg(&cfg);
		cfg.names = i == 0 ? names2 + 1 : names2;
		cfg.nnames = i == 0 ? 1 : 2;
		cfg.max_inbound_peer = 10;
		cfg.max_held = 300000;
		ck_assert_int_eq(reeve_reqs_install(&second[i], node[i].n, &cfg), 0);
	}
	for (unsigned i = 0; i < NODES; i++) {
		for (unsigned k = 0; k < NODES; k++) {
			if (k != i)
				rq_know(&node[i], &node[k]);
		}
	}
}

START_TEST(whatever_happens_everything_ends)
{
	pthread_t t[THREADS], s[NODES];
	uint32_t seed[THREADS], first = rvt_seed();

	begin();
	until = rvt_ms() + SOAK_MS * (uint64_t)rvt_scale();
	for (unsigned i = 0; i < NODES; i++)
		pthread_create(&s[i], NULL, serve, &node[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		seed[i] = first + i;
		pthread_create(&t[i], NULL, askers, &seed[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(rvq_cell64_get(&told), rvq_cell64_get(&asked));
	ck_assert_uint_gt(rvq_cell64_get(&answered), 100);
	for (unsigned i = 0; i < NODES; i++)
		ck_assert_uint_gt(rq_stats(&node[i]).requests_ok, 50);
	for (unsigned i = 0; i < LATE; i++)
		reeve_refuse(rvq_cellptr_swap(&late[i], NULL));
	for (unsigned i = 0; i < NODES; i++)
		rq_quiet(&node[i]);
	for (unsigned i = 0; i < NODES; i++)
		(void)reeve_node_close(node[i].n, 1000);
	for (unsigned i = 0; i < NODES; i++)
		pthread_join(s[i], NULL);
	for (unsigned i = 0; i < NODES; i++)
		rq_stop(&node[i]);
}
END_TEST

RVT_MAIN_TABLE("req_soak", {&whatever_happens_everything_ends, 0})
