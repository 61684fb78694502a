/* Listeners: addresses, accepting, stopping, what is left behind. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

static char path[64];

static const char *
unix_address(void)
{
	static char text[96];

	snprintf(path, sizeof(path), "/tmp/reeve-test-%ld.sock", (long)getpid());
	snprintf(text, sizeof(text), "unix://%s", path);
	(void)unlink(path);
	return text;
}

static const char *
address(int kind)
{
	return kind == 0 ? "tcp://127.0.0.1:0" : kind == 1 ? unix_address() : "mem://here";
}

START_TEST(every_kind_of_address_connects_and_carries_a_stream)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	char text[128];

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, address(_i), NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	ck_assert_int_eq(reeve_dial(&d.c[0], d.rt, text, NULL, RVT_WAIT_MS), 0);
	ck_assert_int_eq(reeve_listener_accept(l, &d.c[1], RVT_WAIT_MS), 0);
	d.k[0] = reeve_conn_ctl(d.c[0]);
	d.k[1] = reeve_conn_ctl(d.c[1]);
	rvt_duo_stream(&d);
	rvt_write_run(d.s[0], 100000, 0);
	rvt_read_run(d.s[1], 100000, 0);
	reeve_listener_destroy(l);
	rvt_write_run(d.s[1], 1000, 0); /* what was accepted outlives the listener */
	rvt_read_run(d.s[0], 1000, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(the_bound_address_has_its_port)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	char text[128], small[8];
	unsigned port = 0;
	int n;

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "tcp://127.0.0.1:0", NULL), 0);
	n = reeve_listener_addr(l, text, sizeof(text));
	ck_assert_int_eq(n, (int)strlen(text));
	ck_assert_int_eq(sscanf(text, "tcp://127.0.0.1:%u", &port), 1);
	ck_assert_uint_gt(port, 0);
	ck_assert_int_eq(reeve_listener_addr(l, small, sizeof(small)), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listener_addr(l, text, (size_t)n), REEVE_EINVAL);
	ck_assert_int_eq(reeve_listener_addr(l, text, (size_t)n + 1), n);
	reeve_listener_destroy(l);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "tcp://localhost:0", NULL), 0);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(malformed_addresses_are_bad_arguments)
{
	static const char *const bad[] = {"", "tcp://", "tcp://127.0.0.1",
	    "tcp://127.0.0.1:", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:x", "tcp://:80",
	    "tcp://[::1:80", "unix://", "unix://relative", "mem://", "mem://a b",
	    "udp://127.0.0.1:1", "127.0.0.1:1", "tcp//127.0.0.1:1"};
	struct rvt_duo d;
	reeve_listener_t *l = NULL;
	reeve_conn_t *c = NULL;
	struct rvt_done dial;

	rvt_duo_rt(&d, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(
		    reeve_listen(&l, d.rt, bad[i], NULL) == REEVE_EINVAL, "listen %s", bad[i]);
		ck_assert_msg(
		    reeve_dial(&c, d.rt, bad[i], NULL, 0) == REEVE_EINVAL, "dial %s", bad[i]);
		rvt_done_init(&dial, -1);
		reeve_dial_async(d.rt, bad[i], NULL, &dial.op);
		ck_assert_msg(rvt_done_wait(&dial) == REEVE_EINVAL, "dial_async %s", bad[i]);
	}
	ck_assert_ptr_null(l);
	ck_assert_ptr_null(c);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_second_listener_on_an_address_fails_and_harms_nobody)
{
	struct rvt_duo d;
	reeve_listener_t *l, *again = NULL;
	reeve_conn_t *c;
	char text[128];
	int rc;

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, address(_i), NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	ck_assert_int_eq(reeve_listen(&again, d.rt, text, NULL), REEVE_ESYS_BASE - EADDRINUSE);
	ck_assert_ptr_null(again);
	ck_assert_int_eq(reeve_dial(&c, d.rt, text, NULL, RVT_WAIT_MS), 0);
	reeve_conn_destroy(c);
	while ((rc = reeve_listener_accept(l, &c, 20)) == 0)
		reeve_conn_destroy(c);
	ck_assert_int_eq(rc, REEVE_ETIMEDOUT);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(an_address_is_free_when_destroy_returns)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	char text[128];

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, address(_i), NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	for (unsigned i = 0; i < 100; i++) {
		reeve_listener_destroy(l);
		if (_i == 1)
			ck_assert_int_lt(access(path, F_OK), 0);
		ck_assert_int_eq(reeve_listen(&l, d.rt, text, NULL), 0);
	}
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_stale_socket_file_is_replaced_and_the_file_goes_at_the_end)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *text = unix_address();
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(sa.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd); /* the file stays, nobody listens */
	ck_assert_int_eq(stat(path, &st), 0);
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, text, NULL), 0);
	ck_assert_int_eq(reeve_dial(&d.c[0], d.rt, text, NULL, RVT_WAIT_MS), 0);
	reeve_listener_destroy(l);
	RVT_UNTIL(stat(path, &st) < 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_left_alone)
{
	struct rvt_duo d;
	reeve_listener_t *l = NULL;
	const char *text = unix_address();
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs("precious", f);
	fclose(f);
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, text, NULL), REEVE_ESYS_BASE - EADDRINUSE);
	ck_assert_int_eq(access(path, R_OK), 0);
	unlink(path);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(a_listener_refused_by_the_runtime_leaves_nothing_behind)
{
	struct rvt_duo d;
	reeve_listener_t *l = NULL;
	const char *text = unix_address();

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_rt_shutdown(d.rt, 0), 0);
	ck_assert_int_eq(reeve_listen(&l, d.rt, text, NULL), REEVE_ECLOSED);
	ck_assert_int_lt(access(path, F_OK), 0);
	ck_assert_int_eq(reeve_listen(&l, d.rt, "mem://late", NULL), REEVE_ECLOSED);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(accept_waits_as_long_as_it_was_told)
{
	static const int64_t timeouts[] = {0, 10, 50};
	struct rvt_duo d;
	reeve_listener_t *l;
	reeve_conn_t *c = NULL;
	uint64_t start;

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, address(_i), NULL), 0);
	for (int i = 0; i < 3; i++) {
		start = rvt_ms();
		ck_assert_int_eq(reeve_listener_accept(l, &c, timeouts[i]), REEVE_ETIMEDOUT);
		ck_assert_uint_ge(rvt_ms() - start + 1, (uint64_t)timeouts[i]);
		ck_assert_uint_lt(rvt_ms() - start, 5000);
	}
	ck_assert_ptr_null(c);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

static void *
accept_for_ever(void *arg)
{
	reeve_conn_t *c = NULL;

	return (void *)(intptr_t)reeve_listener_accept(arg, &c, -1);
}

START_TEST(stop_ends_every_waiting_accept)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	reeve_conn_t *c = NULL;
	struct rvt_done accept;
	pthread_t t;
	void *rc;

	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_listen(&l, d.rt, address(_i), NULL), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, accept_for_ever, l), 0);
	rvt_done_init(&accept, -1);
	reeve_listener_accept_async(l, &accept.op);
	reeve_listener_stop(l);
	reeve_listener_stop(l);
	pthread_join(t, &rc);
	ck_assert_int_eq((intptr_t)rc, REEVE_ECLOSED);
	ck_assert_int_eq(rvt_done_wait(&accept), REEVE_ECLOSED);
	ck_assert_int_eq(reeve_listener_accept(l, &c, -1), REEVE_ECLOSED);
	rvt_done_init(&accept, -1);
	reeve_listener_accept_async(l, &accept.op);
	ck_assert_int_eq(rvt_done_wait(&accept), REEVE_ECLOSED);
	reeve_listener_destroy(l);
	rvt_duo_end(&d);
}
END_TEST

static reeve_listener_t *signalled;

static void
on_signal(int sig)
{
	(void)sig;
	reeve_listener_stop(signalled);
}

START_TEST(stop_may_be_called_by_a_signal_handler)
{
	struct rvt_duo d;
	struct sigaction sa = {.sa_handler = on_signal};
	pthread_t t;
	void *rc;

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&signalled, d.rt, address(_i), NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, accept_for_ever, signalled), 0);
	ck_assert_int_eq(pthread_kill(t, SIGUSR1), 0);
	pthread_join(t, &rc);
	ck_assert_int_eq((intptr_t)rc, REEVE_ECLOSED);
	reeve_listener_destroy(signalled);
	rvt_duo_end(&d);
}
END_TEST

/* Dialed and never accepted: the end of the listener ends them. */
START_TEST(connections_nobody_accepted_end_with_the_listener)
{
	struct rvt_duo d;
	reeve_listener_t *l;
	char text[128];
	struct rvt_done closed;
	reeve_stream_t *s = NULL;

	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_listen(&l, d.rt, address(_i), NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l, text, sizeof(text)), 0);
	ck_assert_int_eq(reeve_dial(&d.c[0], d.rt, text, NULL, RVT_WAIT_MS), 0);
	rvt_done_init(&closed, -1);
	reeve_closed_async(reeve_conn_ctl(d.c[0]), &closed.op);
	ck_assert_int_eq(
	    reeve_open(reeve_conn_ctl(d.c[0]), &s, -1), 0); /* queued bytes at the other side */
	reeve_listener_destroy(l);
	(void)rvt_done_wait(&closed);
	reeve_close(s);
	rvt_duo_end(&d);
}
END_TEST

int
main(void)
{
	static const TTest *const *const list[] = {&the_bound_address_has_its_port,
	    &malformed_addresses_are_bad_arguments,
	    &a_stale_socket_file_is_replaced_and_the_file_goes_at_the_end,
	    &a_file_that_is_no_socket_is_left_alone,
	    &a_listener_refused_by_the_runtime_leaves_nothing_behind};
	static const TTest *const *const kinds[] = {
	    &every_kind_of_address_connects_and_carries_a_stream,
	    &a_second_listener_on_an_address_fails_and_harms_nobody,
	    &an_address_is_free_when_destroy_returns, &accept_waits_as_long_as_it_was_told,
	    &stop_ends_every_waiting_accept, &stop_may_be_called_by_a_signal_handler,
	    &connections_nobody_accepted_end_with_the_listener};
	Suite *suite = suite_create("api_listen");
	TCase *tcase = tcase_create("api_listen");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, RVT_TIMEOUT_S);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		tcase_add_test(tcase, *list[i]);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		tcase_add_loop_test(tcase, *kinds[i], 0, 3);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
