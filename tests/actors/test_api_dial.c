/* Dialing: success, refusal, deadlines, cancellation, and the end of the runtime in between. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/connection.h"
#include "tests/kit/duo.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"

/* A TCP address whose connects neither succeed nor fail: a socket that listens, never accepts and whose queue is
 * full.  The kernel drops further SYNs and the caller's kernel sends them again for a long time. */
struct deaf {
	int fd, filler[8];
	char text[64];
};

static void
deaf_start(struct deaf *f)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);

	f->fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(f->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(f->fd, 0), 0);
	ck_assert_int_eq(getsockname(f->fd, (struct sockaddr *)&sa, &len), 0);
	snprintf(f->text, sizeof(f->text), "tcp://127.0.0.1:%u", ntohs(sa.sin_port));
	for (int i = 0; i < 8; i++) {
		f->filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(f->filler[i], (struct sockaddr *)&sa, sizeof(sa));
	}
}

static void
deaf_end(struct deaf *f)
{
	for (int i = 0; i < 8; i++)
		close(f->filler[i]);
	close(f->fd);
}

static const char *
nobody(int kind)
{
	static char text[64];

	if (kind == 0) { /* a port that was free a moment ago */
		struct deaf f;

		deaf_start(&f);
		snprintf(text, sizeof(text), "%s", f.text);
		deaf_end(&f);
		return text;
	}
	return kind == 1 ? "unix:///tmp/reeve-no-such-socket" : "mem://nobody";
}

START_TEST(nobody_there_is_a_refusal)
{
	static const int codes[] = {ECONNREFUSED, ENOENT, ECONNREFUSED};
	struct rvt_duo d;
	struct rvt_done dial;
	reeve_conn_t *c = NULL;

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(
	    reeve_dial(&c, d.rt, nobody(_i), NULL, RVT_WAIT_MS), REEVE_ESYS_BASE - codes[_i]);
	ck_assert_int_eq(reeve_dial(&c, d.rt, nobody(_i), NULL, -1), REEVE_ESYS_BASE - codes[_i]);
	ck_assert_ptr_null(c);
	rvt_done_init(&dial, -1);
	reeve_dial_async(d.rt, nobody(_i), NULL, &dial.op);
	ck_assert_int_eq(rvt_done_wait(&dial), REEVE_ESYS_BASE - codes[_i]);
	ck_assert_ptr_null(dial.op.conn);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(an_attempt_ends_at_its_deadline)
{
	static const int64_t timeouts[] = {0, 10, 60};
	struct rvt_duo d;
	struct deaf f;
	struct rvt_done dial;
	reeve_conn_t *c = NULL;
	uint64_t start;

	rvt_duo_rt(&d, 1);
	deaf_start(&f);
	for (int i = 0; i < 3; i++) {
		start = rvt_ms();
		ck_assert_int_eq(reeve_dial(&c, d.rt, f.text, NULL, timeouts[i]), REEVE_ETIMEDOUT);
		ck_assert_uint_ge(rvt_ms() - start + 1, (uint64_t)timeouts[i]);
		ck_assert_uint_lt(rvt_ms() - start, (uint64_t)rvt_slow(900));
		rvt_done_init(&dial, timeouts[i]);
		reeve_dial_async(d.rt, f.text, NULL, &dial.op);
		ck_assert_int_eq(rvt_done_wait(&dial), REEVE_ETIMEDOUT);
	}
	ck_assert_ptr_null(c);
	deaf_end(&f);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(an_attempt_can_be_cancelled)
{
	struct rvt_duo d;
	struct deaf f;
	struct rvt_done dial;

	rvt_duo_rt(&d, 1);
	deaf_start(&f);
	for (int i = 0; i < 20; i++) {
		rvt_done_init(&dial, -1);
		reeve_dial_async(d.rt, f.text, NULL, &dial.op);
		reeve_op_cancel(&dial.op);
		ck_assert_int_eq(rvt_done_wait(&dial), REEVE_ECANCELED);
	}
	deaf_end(&f);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(cancelling_what_connects_leaves_nothing)
{
	static const char *const at[] = {"tcp://127.0.0.1:0", "mem://race"};
	struct rvt_duo d;
	struct rvt_done dial;
	reeve_listener_t *l;
	reeve_conn_t *c;
	char text[64];

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, at[_i], NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	for (int i = 0; i < 100; i++) {
		rvt_done_init(&dial, -1);
		reeve_dial_async(d.rt, text, NULL, &dial.op);
		reeve_op_cancel(&dial.op);
		if (rvt_done_wait(&dial) == 0)
			reeve_conn_destroy(dial.op.conn);
		else
			ck_assert_int_eq(dial.op.res, REEVE_ECANCELED);
		while (reeve_listener_accept(l, &c, 0) == 0)
			reeve_conn_destroy(c);
	}
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(names_are_for_the_blocking_call)
{
	struct rvt_duo d;
	struct rvt_done dial;
	reeve_listener_t *l;
	char text[64], name[64];
	unsigned port = 0;

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "tcp://127.0.0.1:0", NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	ck_assert_int_eq(sscanf(text, "tcp://127.0.0.1:%u", &port), 1);
	snprintf(name, sizeof(name), "tcp://localhost:%u", port);
	ck_assert_int_eq(reeve_dial(&d.c[0], d.rt, name, NULL, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_listener_accept(l, &d.c[1], RVT_WAIT_MS), 0);
	rvt_done_init(&dial, -1);
	reeve_dial_async(d.rt, name, NULL, &dial.op);
	ck_assert_int_eq(rvt_done_wait(&dial), REEVE_EINVAL);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(dialing_and_accepting_without_blocking)
{
	static const char *const at[] = {"tcp://127.0.0.1:0", "mem://async"};
	struct rvt_duo d;
	struct rvt_done dial[10], accept[10];
	reeve_listener_t *l;
	char text[64];

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, at[_i], NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	for (int i = 0; i < 10; i++) {
		rvt_done_init(&dial[i], RVT_WAIT_MS);
		rvt_done_init(&accept[i], RVT_WAIT_MS);
		reeve_listener_accept_async(l, &accept[i].op);
		reeve_dial_async(d.rt, text, NULL, &dial[i].op);
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(rvt_done_wait(&dial[i]), 0);
		ck_assert_int_eq(rvt_done_wait(&accept[i]), 0);
		ck_assert_int_eq(reeve_ping(reeve_conn_ctl(dial[i].op.conn), RVT_WAIT_MS, NULL), 0);
	}
	for (int i = 0; i < 10; i++) { /* who met whom is not known */
		reeve_conn_destroy(dial[i].op.conn);
		reeve_conn_destroy(accept[i].op.conn);
	}
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_bad_configuration_is_told_before_anything_is_dialed)
{
	struct rvt_duo d;
	struct rvt_done dial;
	reeve_conn_t *c = NULL;
	reeve_listener_t *l = NULL;
	reeve_cfg_t cfg;

	rvt_duo_rt(&d, 1);
	reeve_cfg_init(&cfg);
	cfg.proto = 3;
	ck_assert_int_eq(reeve_dial(&c, d.rt, "mem://x", &cfg, -1), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://x", &cfg), REEVE_EINVAL);
	rvt_done_init(&dial, -1);
	reeve_dial_async(d.rt, "mem://x", &cfg, &dial.op);
	ck_assert_int_eq(rvt_done_wait(&dial), REEVE_EINVAL);
	rvt_duo_end(&d);
}
END_TEST

/* More than the listener holds: a refusal, not a hang, and the ones before it are good. */
START_TEST(a_full_memory_backlog_refuses)
{
	struct rvt_duo d;
	static reeve_conn_t *c[300];
	reeve_listener_t *l;
	int n = 0, rc = 0;

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://full", NULL), 0);
	while (n < 300 && (rc = reeve_dial(&c[n], d.rt, "mem://full", NULL, RVT_WAIT_MS)) == 0)
		n++;
	ck_assert_int_eq(rc, REEVE_ESYS_BASE - ECONNREFUSED);
	ck_assert_int_gt(n, 10);
	ck_assert_int_eq(reeve_listener_accept(l, &d.c[1], RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_ping(reeve_conn_ctl(c[0]), RVT_WAIT_MS, NULL), 0);
	while (n > 0)
		reeve_conn_destroy(c[--n]);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_end_of_the_runtime_answers_an_attempt)
{
	struct rvt_duo d;
	struct deaf f;
	struct rvt_done dial[3];

	rvt_duo_rt(&d, _i == 0 ? 1 : 2);
	deaf_start(&f);
	for (int i = 0; i < 3; i++) {
		rvt_done_init(&dial[i], -1);
		reeve_dial_async(d.rt, f.text, NULL, &dial[i].op);
	}
	reeve_rt_destroy(d.rt);
	d.rt = NULL;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rvt_done_wait(&dial[i]), REEVE_ECLOSED);
	deaf_end(&f);
	rvt_duo_end(&d);
}
END_TEST

/* The ends of a memory pipe talk at home; the next pair goes where there is more room. */
START_TEST(memory_pairs_live_together)
{
	struct rvt_duo d;
	reeve_conn_t *c[4][2];
	reeve_listener_t *l;

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://pairs", NULL), 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(reeve_dial(&c[i][0], d.rt, "mem://pairs", NULL, RVT_WAIT_MS), 0);
		ck_assert_int_eq(reeve_listener_accept(l, &c[i][1], RVT_WAIT_MS), 0);
		ck_assert_ptr_eq(c[i][0]->w, c[i][1]->w);
		if (i % 2 == 1)
			ck_assert_ptr_ne(c[i][0]->w, c[i - 1][0]->w);
	}
	for (int i = 0; i < 4; i++) {
		reeve_conn_destroy(c[i][0]);
		reeve_conn_destroy(c[i][1]);
	}
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

RVT_MAIN_TABLE("api_dial", {&an_attempt_ends_at_its_deadline, 0}, {&an_attempt_can_be_cancelled, 0},
    {&names_are_for_the_blocking_call, 0},
    {&a_bad_configuration_is_told_before_anything_is_dialed, 0},
    {&a_full_memory_backlog_refuses, 0}, {&nobody_there_is_a_refusal, 3},
    {&cancelling_what_connects_leaves_nothing, 2}, {&dialing_and_accepting_without_blocking, 2},
    {&the_end_of_the_runtime_answers_an_attempt, 2}, {&memory_pairs_live_together, 0})
