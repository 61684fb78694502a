/* A runtime without threads: the application polls one descriptor and runs what there is. */
#include <config.h>

#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include "tests/kit/duo.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

static int
readable(reeve_rt_t *rt, int ms)
{
	struct pollfd p = {reeve_rt_fd(rt), POLLIN, 0};

	return poll(&p, 1, ms);
}

/* Turn the application's loop until the operations are complete. */
#define LOOP_UNTIL(rt, cond)                                                              \
	do {                                                                              \
		uint64_t until_ = rvt_ms() + RVT_WAIT_MS;                                 \
		while (!(cond)) {                                                         \
			ck_assert_msg(rvt_ms() < until_, "never became true: %s", #cond); \
			if (readable(rt, 100) > 0)                                        \
				ck_assert_int_ge(reeve_rt_run(rt, 0), 0);                 \
		}                                                                         \
	} while (0)

struct step {
	reeve_op_t op;
	unsigned calls;
	unsigned starting;
};

static void
on_step(reeve_op_t *op)
{
	struct step *s = (struct step *)(void *)op;

	ck_assert_uint_eq(s->starting, 0);
	s->calls++;
}

static void
step_init(struct step *s, int64_t timeout_ms)
{
	reeve_op_init(&s->op, on_step, NULL);
	s->op.timeout_ms = timeout_ms;
	s->calls = 0;
	s->starting = 0;
}

static void
pair_up(struct rvt_duo *d, struct step *open, struct step *accept)
{
	rvt_duo_rt(d, 0);
	rvt_duo_conns(d, NULL);
	step_init(open, -1);
	step_init(accept, -1);
	open->starting = accept->starting = 1;
	reeve_open_async(d->k[0], &open->op);
	reeve_accept_async(d->k[1], &accept->op);
	open->starting = accept->starting = 0;
	LOOP_UNTIL(d->rt, open->calls == 1 && accept->calls == 1);
	ck_assert_int_eq(open->op.res, 0);
	ck_assert_int_eq(accept->op.res, 0);
	d->s[0] = open->op.stream;
	d->s[1] = accept->op.stream;
}

START_TEST(a_poll_loop_serves_a_whole_echo)
{
	struct rvt_duo d;
	struct step open, accept, rd, wr, back, got;
	size_t echoed = 0;

	pair_up(&d, &open, &accept);
	step_init(&wr, -1);
	reeve_write_async(d.s[0], rvt_buf_run(d.rt, 200000, 0), &wr.op);
	LOOP_UNTIL(d.rt, wr.calls == 1);
	while (echoed < 200000) {
		step_init(&rd, -1);
		reeve_read_async(d.s[1], &rd.op);
		LOOP_UNTIL(d.rt, rd.calls == 1);
		ck_assert_int_gt(rd.op.res, 0);
		step_init(&back, -1);
		reeve_write_async(d.s[1], rd.op.buf, &back.op);
		for (reeve_ssize n = 0; n < rd.op.res; n += got.op.res) {
			step_init(&got, -1);
			reeve_read_async(d.s[0], &got.op);
			LOOP_UNTIL(d.rt, got.calls == 1);
			ck_assert_int_gt(got.op.res, 0);
			reeve_buf_unref(got.op.buf);
		}
		ck_assert_uint_eq(back.calls, 1);
		echoed += (size_t)rd.op.res;
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_descriptor_is_readable_when_there_is_work_and_only_then)
{
	struct rvt_duo d;
	struct step open, accept, ping;

	pair_up(&d, &open, &accept);
	while (readable(d.rt, 30) > 0)
		ck_assert_int_ge(reeve_rt_run(d.rt, 0), 0);
	ck_assert_int_eq(readable(d.rt, 0), 0);
	step_init(&ping, -1);
	reeve_ping_async(d.k[0], &ping.op);
	ck_assert_int_eq(readable(d.rt, 1000), 1);
	ck_assert_uint_eq(ping.calls, 0);
	LOOP_UNTIL(d.rt, ping.calls == 1);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_descriptor_is_readable_when_a_timer_is_due)
{
	struct rvt_duo d;
	struct step open, accept, rd;
	uint64_t start;

	pair_up(&d, &open, &accept);
	step_init(&rd, 50);
	start = rvt_ms();
	reeve_read_async(d.s[1], &rd.op);
	LOOP_UNTIL(d.rt, rd.calls == 1);
	ck_assert_int_eq(rd.op.res, REEVE_ETIMEDOUT);
	ck_assert_uint_ge(rvt_ms() - start, 49);
	ck_assert_uint_lt(rvt_ms() - start, 5000);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(run_waits_as_long_as_it_was_told)
{
	struct rvt_duo d;
	struct step open, accept, rd;
	uint64_t start = 0;
	int total = 0;

	pair_up(&d, &open, &accept);
	while (readable(d.rt, 30) > 0)
		ck_assert_int_ge(reeve_rt_run(d.rt, 0), 0);
	for (int i = 0; i == 0 || rvt_ms() - start >= 20; i++) { /* a busy machine takes its time */
		ck_assert_int_lt(i, 10);
		start = rvt_ms();
		ck_assert_int_eq(reeve_rt_run(d.rt, 0), 0);
	}
	(void)reeve_rt_run(d.rt, 40);
	ck_assert_uint_ge(rvt_ms() - start, 39);
	step_init(&rd, 30);
	reeve_read_async(d.s[1], &rd.op);
	for (int i = 0; i < 100 && rd.calls == 0; i++)
		total += reeve_rt_run(d.rt, -1);
	ck_assert_uint_eq(rd.calls, 1);
	ck_assert_int_gt(total, 0);
	rvt_duo_end(&d);
}
END_TEST

struct inside {
	struct step step;
	struct rvt_duo *d;
	int rc;
};

static void
run_inside(reeve_op_t *op)
{
	struct inside *in = (struct inside *)(void *)op;

	in->rc = reeve_rt_run(in->d->rt, 0);
	in->step.calls++;
}

START_TEST(run_inside_a_callback_answers_eworker)
{
	struct rvt_duo d;
	struct step open, accept;
	struct inside in = {.d = &d};

	pair_up(&d, &open, &accept);
	reeve_op_init(&in.step.op, run_inside, NULL);
	reeve_ping_async(d.k[0], &in.step.op);
	LOOP_UNTIL(d.rt, in.step.calls == 1);
	ck_assert_int_eq(in.rc, REEVE_EWORKER);
	rvt_duo_end(&d);
}
END_TEST

static struct rvq_gauge stop_running;

static void *
run_loop(void *arg)
{
	struct rvt_duo *d = arg;

	while (rvq_gauge_get(&stop_running) == 0)
		(void)reeve_rt_run(d->rt, 50);
	return NULL;
}

/* Then other threads may block, and a second runner is told so. */
START_TEST(another_thread_runs_the_loop)
{
	struct rvt_duo d;
	pthread_t t;
	int rc = 0;

	rvt_duo_rt(&d, 0);
	rvt_duo_conns(&d, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, run_loop, &d), 0);
	rvt_duo_stream(&d);
	rvt_write_run(d.s[0], 100000, 0);
	rvt_read_run(d.s[1], 100000, 0);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	for (int i = 0; i < 10000 && rc != REEVE_EBUSY; i++)
		rc = reeve_rt_run(d.rt, 0);
	ck_assert_int_eq(rc, REEVE_EBUSY);
	for (int i = 0; i < 2; i++) { /* this waits for the loop's turn */
		reeve_close(d.s[i]);
		reeve_conn_destroy(d.c[i]);
		d.s[i] = NULL;
		d.c[i] = NULL;
	}
	rvq_gauge_add(&stop_running, 1);
	pthread_join(t, NULL);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_runners_thread_cannot_block)
{
	struct rvt_duo d;
	struct step open, accept;
	reeve_stream_t *s = NULL;
	uint8_t byte;

	pair_up(&d, &open, &accept);
	ck_assert_int_eq(reeve_open(d.k[0], &s, -1), REEVE_EWORKER);
	ck_assert_int_eq(reeve_read(d.s[0], &byte, 1), REEVE_EWORKER);
	ck_assert_int_eq(reeve_conn_close(d.c[0], -1), REEVE_EWORKER);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(handles_are_let_go_before_the_first_run)
{
	struct rvt_duo d;
	reeve_listener_t *l;

	rvt_duo_rt(&d, 0);
	rvt_duo_conns(&d, NULL);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://early", NULL), 0);
	reeve_listener_destroy(l);
	reeve_conn_destroy(d.c[0]);
	reeve_conn_destroy(d.c[1]);
	d.c[0] = d.c[1] = NULL;
	rvt_duo_end(&d);
}
END_TEST

static reeve_listener_t *signalled;

static void
on_alarm(int sig)
{
	(void)sig;
	reeve_listener_stop(signalled);
}

START_TEST(a_signal_handler_on_the_runners_thread_stops_a_listener)
{
	struct rvt_duo d;
	struct step accept;
	struct sigaction sa = {.sa_handler = on_alarm};
	struct itimerval soon = {{0, 0}, {0, 1000}};

	ck_assert_int_eq(sigaction(SIGALRM, &sa, NULL), 0);
	for (int i = 0; i < 50; i++) {
		rvt_duo_rt(&d, 0);
		ck_assert_int_eq(reeve_listen(&signalled, d.rt, "mem://signal", NULL), 0);
		step_init(&accept, -1);
		reeve_listener_accept_async(signalled, &accept.op);
		ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
		for (int k = 0; k < 1000 && accept.calls == 0; k++)
			ck_assert_int_ge(reeve_rt_run(d.rt, 100), 0);
		ck_assert_uint_eq(accept.calls, 1);
		ck_assert_int_eq(accept.op.res, REEVE_ECLOSED);
		reeve_listener_destroy(signalled);
		rvt_duo_end(&d);
	}
}
END_TEST

START_TEST(shutdown_runs_the_loop_itself)
{
	struct rvt_duo d;
	struct step open, accept, closed;

	pair_up(&d, &open, &accept);
	step_init(&closed, -1);
	reeve_closed_async(d.k[0], &closed.op);
	reeve_close(d.s[0]);
	reeve_close(d.s[1]);
	d.s[0] = d.s[1] = NULL;
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, RVT_WAIT_MS), 0);
	ck_assert_uint_eq(closed.calls, 1);
	rvt_duo_end(&d);
}
END_TEST

static struct rvt_duo leaving;
static struct step late;

static void *
leave_and_open(void *arg)
{
	(void)arg;
	ck_assert_int_eq(reeve_goaway(leaving.k[0], 0), 0);
	reeve_open_async(leaving.k[0], &late.op);
	return NULL;
}

/* In the controller's turn: what another thread asks of it now is heard at once, what it asks of the connection in the
 * next turn. */
static void
on_accepted(reeve_op_t *op)
{
	pthread_t t;

	on_step(op);
	ck_assert_int_eq(pthread_create(&t, NULL, leave_and_open, NULL), 0);
	pthread_join(t, NULL);
}

START_TEST(an_open_behind_goaway_is_refused)
{
	struct step open, accept;

	pair_up(&leaving, &open, &accept);
	step_init(&late, -1);
	step_init(&open, -1);
	step_init(&accept, -1);
	accept.op.fn = on_accepted;
	reeve_open_async(leaving.k[1], &open.op);
	LOOP_UNTIL(leaving.rt, open.calls == 1 && rvt_stats(leaving.k[0]).streams_accepted == 1);
	reeve_accept_async(leaving.k[0], &accept.op);
	LOOP_UNTIL(leaving.rt, late.calls == 1);
	ck_assert_int_eq(late.op.res, REEVE_EGOAWAY);
	reeve_close(open.op.stream);
	reeve_close(accept.op.stream);
	rvt_duo_end(&leaving);
}
END_TEST

RVT_MAIN("runtime_external", &a_poll_loop_serves_a_whole_echo,
    &the_descriptor_is_readable_when_there_is_work_and_only_then,
    &the_descriptor_is_readable_when_a_timer_is_due, &run_waits_as_long_as_it_was_told,
    &run_inside_a_callback_answers_eworker, &another_thread_runs_the_loop,
    &the_runners_thread_cannot_block, &handles_are_let_go_before_the_first_run,
    &shutdown_runs_the_loop_itself, &a_signal_handler_on_the_runners_thread_stops_a_listener,
    &an_open_behind_goaway_is_refused)
