/* A forked child: every call is refused or harmless, and the parent notices nothing. */
#include <config.h>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

/* The thread sanitizer lets a forked child make no threads. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

static void
handler(reeve_stream_t *s, void *arg)
{
	(void)s;
	(void)arg;
}

struct forked {
	struct rvt_duo d;
	reeve_listener_t *l;
	reeve_actor_t *a;
};

static void
actor(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)msg;
	(void)arg;
}

static void
start(struct forked *f)
{
	int v[2];

	rvt_duo_rt(&f->d, 2);
	rvt_tcp_pair(v);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_conn_open_fd(&f->d.c[i], f->d.rt, v[i],
				     i == 0 ? REEVE_DIALER : REEVE_LISTENER, NULL),
		    0);
		f->d.k[i] = reeve_conn_ctl(f->d.c[i]);
	}
	rvt_duo_stream(&f->d);
	rvt_write_run(f->d.s[0], 1000, 0);
	rvt_read_run(f->d.s[1], 1000, 0);
	ck_assert_int_eq(reeve_listen(&f->l, f->d.rt, "tcp://127.0.0.1:0", NULL), 0);
	ck_assert_int_eq(reeve_actor_spawn(&f->a, f->d.rt, actor, NULL, NULL), 0);
}

/* The parent's runtime works as before. */
static void
go_on(struct forked *f)
{
	rvt_write_run(f->d.s[0], 1000, 0);
	rvt_read_run(f->d.s[1], 1000, 0);
	ck_assert_int_eq(reeve_ping(f->d.k[0], RVT_WAIT_MS, NULL), 0);
	reeve_actor_unref(f->a);
	reeve_listener_destroy(f->l);
	rvt_duo_end(&f->d);
}

static void
child_ends(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "the child died of signal %d", WTERMSIG(status));
	ck_assert_msg(
	    WEXITSTATUS(status) == 0, "call %d of the child was not refused", WEXITSTATUS(status));
}

/* In the child: no assertion of Check, the number of the call that was wrong instead. */
#define CHILD(n, x)                       \
	do {                              \
		if ((x) != REEVE_EFORKED) \
			_exit(n);         \
	} while (0)

static void
blocking_calls(struct forked *f)
{
	reeve_stream_t *s = NULL;
	reeve_conn_t *c = NULL, *pair[2];
	reeve_listener_t *l = NULL;
	reeve_actor_t *a = NULL;
	reeve_buf_t *b = NULL;
	reeve_stats_t st = {.size = sizeof(st)};
	char byte = 0;
	struct iovec v = {&byte, 1};

	alarm(20);
	CHILD(1, reeve_open(f->d.k[0], &s, -1));
	CHILD(2, reeve_accept(f->d.k[1], &s, -1));
	CHILD(3, reeve_ping(f->d.k[0], -1, NULL));
	CHILD(4, reeve_goaway(f->d.k[0], 0));
	CHILD(5, reeve_abort(f->d.k[0], 0));
	CHILD(6, reeve_read(f->d.s[0], &byte, 1));
	CHILD(7, reeve_read_buf(f->d.s[0], &b));
	CHILD(8, reeve_write(f->d.s[0], &byte, 1));
	CHILD(9, reeve_writev(f->d.s[0], &v, 1));
	CHILD(10, reeve_shut(f->d.s[0]));
	CHILD(11, reeve_stop(f->d.s[0]));
	CHILD(12, reeve_reset(f->d.s[0], 0));
	CHILD(13, reeve_deadline(f->d.s[0], REEVE_RD, 0));
	CHILD(14, reeve_conn_close(f->d.c[0], -1));
	CHILD(15, reeve_conn_pair(pair, f->d.rt, NULL));
	CHILD(16, reeve_conn_open_fd(&c, f->d.rt, 0, REEVE_DIALER, NULL));
	CHILD(17, reeve_listen(&l, f->d.rt, "mem://x", NULL));
	CHILD(18, reeve_listener_accept(f->l, &c, -1));
	CHILD(19, reeve_serve(f->l, handler, NULL));
	CHILD(20, reeve_dial(&c, f->d.rt, "mem://x", NULL, -1));
	CHILD(21, reeve_rt_shutdown(f->d.rt, -1));
	CHILD(22, reeve_rt_stats(f->d.rt, &st));
	CHILD(23, reeve_actor_spawn(&a, f->d.rt, actor, NULL, NULL));
	if (reeve_buf_alloc(f->d.rt, 10) != NULL ||
	    reeve_buf_wrap(f->d.rt, "x", 1, NULL, NULL) != NULL)
		_exit(24);
}

static unsigned answered;

static void
count(reeve_op_t *op)
{
	if (op->res == REEVE_EFORKED)
		answered++;
}

static void
operations(struct forked *f)
{
	reeve_op_t op[8];

	alarm(20);
	for (int i = 0; i < 8; i++)
		reeve_op_init(&op[i], count, NULL);
	reeve_open_async(f->d.k[0], &op[0]);
	reeve_accept_async(f->d.k[0], &op[1]);
	reeve_ping_async(f->d.k[0], &op[2]);
	reeve_closed_async(f->d.k[0], &op[3]);
	reeve_read_async(f->d.s[0], &op[4]);
	reeve_dial_async(f->d.rt, "mem://x", NULL, &op[5]);
	reeve_listener_accept_async(f->l, &op[6]);
	if (answered != 7)
		_exit(30 + (int)answered);
}

static void
let_go(struct forked *f)
{
	reeve_msg_t msg;

	alarm(20);
	reeve_transport_ready(f->d.k[0], REEVE_READABLE);
	reeve_actor_post(f->a, &msg);
	reeve_actor_stop(f->a);
	reeve_actor_unref(f->a);
	reeve_listener_stop(f->l);
	reeve_listener_destroy(f->l);
	reeve_close(f->d.s[0]);
	reeve_stream_unref(f->d.s[1]);
	reeve_conn_destroy(f->d.c[0]);
	reeve_conn_release(f->d.c[1]);
	reeve_rt_destroy(f->d.rt);
}

START_TEST(every_call_in_the_child_is_refused)
{
	static struct forked f;
	pid_t pid;

	start(&f);
	pid = fork();
	if (pid == 0) {
		blocking_calls(&f);
		_exit(0);
	}
	child_ends(pid);
	go_on(&f);
}
END_TEST

START_TEST(operations_in_the_child_complete_at_once)
{
	static struct forked f;
	pid_t pid;

	start(&f);
	pid = fork();
	if (pid == 0) {
		operations(&f);
		_exit(0);
	}
	child_ends(pid);
	go_on(&f);
}
END_TEST

START_TEST(letting_go_in_the_child_harms_nobody)
{
	static struct forked f;
	pid_t pid;

	start(&f);
	pid = fork();
	if (pid == 0) {
		let_go(&f);
		_exit(0);
	}
	child_ends(pid);
	go_on(&f);
}
END_TEST

START_TEST(a_child_makes_a_runtime_of_its_own)
{
	static struct forked f;
	struct rvt_duo own;
	pid_t pid;

#ifdef UNDER_TSAN
	return; /* it lets no child start threads */
#endif
	start(&f);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		rvt_duo_start(&own);
		rvt_write_run(own.s[0], 10000, 0);
		rvt_read_run(own.s[1], 10000, 0);
		rvt_duo_end(&own);
		reeve_rt_destroy(f.d.rt);
		_exit(0);
	}
	child_ends(pid);
	go_on(&f);
}
END_TEST

RVT_MAIN("fork", &every_call_in_the_child_is_refused, &operations_in_the_child_complete_at_once,
    &letting_go_in_the_child_harms_nobody, &a_child_makes_a_runtime_of_its_own)
