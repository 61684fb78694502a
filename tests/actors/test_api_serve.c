/* reeve_serve: a thread for each stream, not more than allowed, until the listener is stopped. */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "queues/cell.h"
#include "tests/kit/duo.h"
#include "tests/kit/run.h"

struct served {
	struct rvt_duo d;
	reeve_listener_t *l;
	pthread_t t;
	char addr[64];
	int rc;
	struct rvq_gauge now, all; /* handlers */
	struct rvq_cell32 most;    /* at once */
	struct rvq_cell32 gate;    /* handlers wait for it */
	reeve_handler fn;
};

static void
enter(struct served *v)
{
	uint32_t now = (uint32_t)rvq_gauge_add(&v->now, 1), most;

	rvq_gauge_add(&v->all, 1);
	while ((most = rvq_cell32_get(&v->most)) < now && !rvq_cell32_cas(&v->most, most, now))
		;
}

static void
echo(reeve_stream_t *s, void *arg)
{
	struct served *v = arg;
	reeve_buf_t *b;

	enter(v);
	while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
		;
	rvq_gauge_sub(&v->now, 1);
}

static void
wait_for_gate(reeve_stream_t *s, void *arg)
{
	struct served *v = arg;

	enter(v);
	while (rvq_cell32_get(&v->gate) == 0)
		sched_yield();
	(void)reeve_write(s, "x", 1);
	rvq_gauge_sub(&v->now, 1);
}

static void *
serve(void *arg)
{
	struct served *v = arg;

	v->rc = reeve_serve(v->l, v->fn, v);
	return NULL;
}

static void
start(struct served *v, const char *addr, reeve_handler fn, uint32_t handlers)
{
	reeve_rt_cfg_t cfg;

	memset(v, 0, sizeof(*v));
	v->fn = fn;
	v->rc = 1;
	rvt_alloc_init(&v->d.alloc);
	reeve_rt_cfg_init(&cfg);
	cfg.workers = 2;
	cfg.max_handlers = handlers;
	cfg.alloc = v->d.alloc.a;
	ck_assert_int_eq(reeve_rt_create(&v->d.rt, &cfg), 0);
	ck_assert_int_eq(reeve_listen(&v->l, v->d.rt, addr, NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(v->l, v->addr, sizeof(v->addr)), 0);
	ck_assert_int_eq(pthread_create(&v->t, NULL, serve, v), 0);
}

static void
end(struct served *v)
{
	pthread_join(v->t, NULL);
	ck_assert_int_eq(v->rc, 0);
	ck_assert_uint_eq(rvq_gauge_get(&v->now), 0);
	reeve_listener_destroy(v->l);
	rvt_duo_end(&v->d);
}

static void *
client(void *arg)
{
	struct served *v = arg;
	reeve_conn_t *c;
	reeve_stream_t *s[10];

	if (reeve_dial(&c, v->d.rt, v->addr, NULL, RVT_WAIT_MS) != 0)
		abort();
	for (int i = 0; i < 10; i++) {
		if (reeve_open(reeve_conn_ctl(c), &s[i], RVT_WAIT_MS) != 0)
			abort();
		(void)reeve_deadline(s[i], REEVE_RD | REEVE_WR, RVT_WAIT_MS);
	}
	for (int i = 0; i < 10; i++) {
		rvt_write_run(s[i], 20000, (uint64_t)i);
		(void)reeve_shut(s[i]);
	}
	for (int i = 0; i < 10; i++) {
		rvt_read_run(s[i], 20000, (uint64_t)i);
		rvt_read_end(s[i]);
		reeve_close(s[i]);
	}
	if (reeve_conn_close(c, RVT_WAIT_MS) != 0)
		abort();
	reeve_conn_destroy(c);
	return NULL;
}

START_TEST(many_streams_of_many_connections_are_served)
{
	static const char *const at[] = {"tcp://127.0.0.1:0", "mem://serve"};
	struct served v;
	pthread_t t[4];

	start(&v, at[_i], echo, 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, client, &v), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	reeve_listener_stop(v.l);
	end(&v);
	ck_assert_uint_eq(rvq_gauge_get(&v.all), 40);
}
END_TEST

START_TEST(fewer_handlers_than_streams_serve_them_one_after_the_other)
{
	struct served v;

	start(&v, "mem://few", echo, 3);
	(void)client(&v);
	(void)client(&v);
	reeve_listener_stop(v.l);
	end(&v);
	ck_assert_uint_eq(rvq_gauge_get(&v.all), 20);
	ck_assert_uint_le(rvq_cell32_get(&v.most), 3);
}
END_TEST

START_TEST(no_more_handlers_run_than_are_allowed)
{
	struct served v;
	reeve_stream_t *s[10];
	char byte;

	start(&v, "mem://bound", wait_for_gate, 4);
	ck_assert_int_eq(reeve_dial(&v.d.c[0], v.d.rt, v.addr, NULL, RVT_WAIT_MS), 0);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(reeve_open(reeve_conn_ctl(v.d.c[0]), &s[i], RVT_WAIT_MS), 0);
		(void)reeve_deadline(s[i], REEVE_RD, RVT_WAIT_MS);
	}
	RVT_UNTIL(rvq_gauge_get(&v.now) == 4);
	for (int i = 0; i < 10; i++) /* time for a fifth */
		ck_assert_int_eq(reeve_ping(reeve_conn_ctl(v.d.c[0]), RVT_WAIT_MS, NULL), 0);
	ck_assert_uint_eq(rvq_gauge_get(&v.now), 4);
	rvq_cell32_put(&v.gate, 1);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(reeve_read(s[i], &byte, 1), 1);
		rvt_read_end(s[i]);
		reeve_close(s[i]);
	}
	reeve_listener_stop(v.l);
	end(&v);
	ck_assert_uint_eq(rvq_cell32_get(&v.most), 4);
}
END_TEST

static void
read_one_byte(reeve_stream_t *s, void *arg)
{
	struct served *v = arg;
	char byte;

	enter(v);
	(void)reeve_read(s, &byte, 1);
	rvq_gauge_sub(&v->now, 1);
}

START_TEST(stop_ends_what_is_being_served_after_a_while)
{
	struct served v;
	uint64_t began;

	start(&v, "mem://stuck", read_one_byte, 0);
	ck_assert_int_eq(reeve_dial(&v.d.c[0], v.d.rt, v.addr, NULL, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(v.d.c[0]), &v.d.s[0], RVT_WAIT_MS), 0);
	RVT_UNTIL(rvq_gauge_get(&v.now) == 1);
	began = rvt_ms();
	reeve_listener_stop(v.l);
	end(&v); /* the handler got the end of the connection */
	ck_assert_uint_lt(rvt_ms() - began, RVT_WAIT_MS);
}
END_TEST

static reeve_listener_t *signalled;

static void
on_signal(int sig)
{
	(void)sig;
	reeve_listener_stop(signalled);
}

START_TEST(a_signal_ends_serving)
{
	struct served v;
	struct sigaction sa = {.sa_handler = on_signal};

	start(&v, "tcp://127.0.0.1:0", echo, 0);
	(void)client(&v);
	signalled = v.l;
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	ck_assert_int_eq(pthread_kill(v.t, SIGUSR1), 0);
	end(&v);
}
END_TEST

START_TEST(a_stopped_listener_serves_nothing)
{
	struct rvt_duo d;
	reeve_listener_t *l;

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://stopped", NULL), 0);
	reeve_listener_stop(l);
	ck_assert_int_eq(reeve_serve(l, echo, NULL), 0);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

/* The peer goes away in the middle: its handlers end, the rest goes on. */
START_TEST(a_lost_connection_ends_its_handlers_only)
{
	struct served v;
	reeve_stream_t *s[3];

	start(&v, "tcp://127.0.0.1:0", echo, 0);
	ck_assert_int_eq(reeve_dial(&v.d.c[0], v.d.rt, v.addr, NULL, RVT_WAIT_MS), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(reeve_open(reeve_conn_ctl(v.d.c[0]), &s[i], RVT_WAIT_MS), 0);
	RVT_UNTIL(rvq_gauge_get(&v.now) == 3);
	reeve_conn_destroy(v.d.c[0]);
	v.d.c[0] = NULL;
	RVT_UNTIL(rvq_gauge_get(&v.now) == 0);
	for (int i = 0; i < 3; i++)
		reeve_close(s[i]);
	(void)client(&v);
	reeve_listener_stop(v.l);
	end(&v);
}
END_TEST

START_TEST(shutdown_of_the_runtime_ends_serving)
{
	struct served v;

	start(&v, "mem://shutdown", echo, 0);
	(void)client(&v);
	ck_assert_int_eq(reeve_rt_shutdown(v.d.rt, RVT_WAIT_MS), 0);
	end(&v);
}
END_TEST

RVT_MAIN_TABLE("api_serve", {&fewer_handlers_than_streams_serve_them_one_after_the_other, 0},
    {&no_more_handlers_run_than_are_allowed, 0}, {&stop_ends_what_is_being_served_after_a_while, 0},
    {&a_signal_ends_serving, 0}, {&a_stopped_listener_serves_nothing, 0},
    {&a_lost_connection_ends_its_handlers_only, 0}, {&shutdown_of_the_runtime_ends_serving, 0},
    {&many_streams_of_many_connections_are_served, 2})
