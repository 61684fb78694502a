/* Scenario 51: every kind of callback makes every kind of call.  Each cell ends at once with success or with
 * REEVE_EWORKER, what was ended is gone afterwards, and everything comes back to the allocator. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/base.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"
#include "tests/scenarios/cell.h"

#define CONN_GONE   1u /* when the callback runs */
#define STREAM_GONE 2u
static const struct {
	const char *name;
	unsigned gone;
} where[WHERES] = {{"dialed", 0}, {"listener accepted", 0}, {"opened", 0}, {"accepted", 0},
    {"data", 0}, {"written", 0}, {"end of stream", 0}, {"reset", STREAM_GONE}, {"timeout", 0},
    {"cancelled", 0}, {"pong", 0}, {"connection closed", CONN_GONE | STREAM_GONE}, {"message", 0},
    {"actor stopped", 0}, {"transport readv", 0}, {"transport writev", 0},
    {"transport close", CONN_GONE | STREAM_GONE}, {"log", CONN_GONE | STREAM_GONE},
    {"buffer done", 0}};

/* --- the callbacks */

static void
fire(struct cell *c, enum where in)
{
	bool go;

	pthread_mutex_lock(&c->lock);
	go = c->armed && in == c->in;
	c->armed = c->armed && !go;
	pthread_mutex_unlock(&c->lock);
	if (!go)
		return;
	c->rc = call[c->call].fn(c);
	pthread_mutex_lock(&c->lock);
	c->fired = true;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

static void
arm(struct cell *c)
{
	pthread_mutex_lock(&c->lock);
	c->armed = true;
	pthread_mutex_unlock(&c->lock);
}

static void
on_op(reeve_op_t *op)
{
	struct cell *c = op->arg;

	reeve_buf_unref(op->buf);
	op->buf = NULL;
	if (op->conn != NULL)
		c->extra[0] = op->conn;
	reeve_close(op->stream);
	if (c->in < IN_MESSAGE)
		fire(c, c->in);
}

static void
on_message(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	fire(arg, msg != NULL ? IN_MESSAGE : IN_STOPPED);
}

static void
on_buf_done(void *arg)
{
	fire(arg, IN_BUF_DONE);
}

static void
on_log(void *arg, int level, const char *id, const char *text)
{
	(void)level;
	(void)id;
	(void)text;
	fire(arg, IN_LOG);
}

static reeve_ssize
fd_result(ssize_t n)
{
	return n >= 0 ? n : errno == EAGAIN ? REEVE_EAGAIN : REEVE_ESYS_BASE - errno;
}

static reeve_ssize
on_readv(void *ctx, const struct iovec *v, int n)
{
	struct cell *c = ctx;

	fire(c, IN_READV);
	return fd_result(readv(c->fd, v, n));
}

static reeve_ssize
on_writev(void *ctx, const struct iovec *v, int n)
{
	struct cell *c = ctx;
	struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n};

	fire(c, IN_WRITEV);
	return fd_result(sendmsg(c->fd, &m, MSG_NOSIGNAL));
}

static int
on_fd(void *ctx)
{
	return ((struct cell *)ctx)->fd;
}

static void
on_close(void *ctx)
{
	struct cell *c = ctx;

	fire(c, IN_TCLOSE);
	close(c->fd);
}

/* --- a cell */

static void
set_up(struct cell *c, enum where in, unsigned k)
{
	reeve_transport_t t = {on_readv, on_writev, on_fd, NULL, on_close, c};
	reeve_rt_cfg_t rc;
	int v[2];

	memset(c, 0, sizeof(*c));
	c->in = in;
	c->call = k;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->cond, NULL);
	rvt_alloc_init(&c->d.alloc);
	reeve_rt_cfg_init(&rc);
	rc.workers = 2;
	rc.alloc = c->d.alloc.a;
	rc.log = on_log;
	rc.log_ctx = c;
	rc.log_level = REEVE_LOG_TRACE;
	ck_assert_int_eq(reeve_rt_create(&c->d.rt, &rc), 0);
	snprintf(c->addr, sizeof(c->addr), "mem://cell");
	ck_assert_int_eq(reeve_listen(&c->l, c->d.rt, c->addr, NULL), 0);
	rvt_unix_pair(v);
	c->fd = v[0];
	ck_assert_int_eq(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(reeve_conn_open(&c->d.c[0], c->d.rt, &t, REEVE_DIALER, NULL), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&c->d.c[1], c->d.rt, v[1], REEVE_LISTENER, NULL), 0);
	for (int i = 0; i < 2; i++)
		c->d.k[i] = reeve_conn_ctl(c->d.c[i]);
	rvt_duo_stream(&c->d);
	c->k = reeve_ctl_ref(c->d.k[0]);
	c->s = reeve_stream_ref(c->d.s[0]);
	rvt_done_init(&c->bystander, -1);
	reeve_closed_async(c->k, &c->bystander.op);
	rvt_done_init(&c->more, RVT_WAIT_MS);
	reeve_op_init(&c->trigger, on_op, c);
	ck_assert_int_eq(reeve_actor_spawn(&c->a, c->d.rt, on_message, c, NULL), 0);
	arm(c);
}

static void
start_read(struct cell *c, int64_t timeout_ms)
{
	c->trigger.timeout_ms = timeout_ms;
	reeve_read_async(c->s, &c->trigger);
}

static void
pull_trigger(struct cell *c)
{
	static const uint8_t some[5000];
	reeve_stream_t *t = NULL;

	switch (c->in) {
	case IN_DIALED:
		reeve_dial_async(c->d.rt, c->addr, NULL, &c->trigger);
		break;
	case IN_LISTENED:
		reeve_listener_accept_async(c->l, &c->trigger);
		(void)!reeve_dial(&c->extra[1], c->d.rt, c->addr, NULL, RVT_WAIT_MS);
		break;
	case IN_OPENED:
		reeve_open_async(c->k, &c->trigger);
		break;
	case IN_ACCEPTED:
		reeve_accept_async(c->k, &c->trigger);
		(void)!reeve_open(c->d.k[1], &t, RVT_WAIT_MS);
		reeve_close(t);
		break;
	case IN_DATA:
		start_read(c, -1);
		rvt_write_run(c->d.s[1], 10, 0);
		break;
	case IN_WRITTEN:
		reeve_write_async(c->s, rvt_buf_run(c->d.rt, 10, 0), &c->trigger);
		break;
	case IN_END:
		start_read(c, -1);
		(void)reeve_shut(c->d.s[1]);
		break;
	case IN_RESET:
		start_read(c, -1);
		(void)reeve_reset(c->d.s[1], 1);
		break;
	case IN_TIMEOUT:
		start_read(c, 1);
		break;
	case IN_CANCELED:
		start_read(c, -1);
		reeve_op_cancel(&c->trigger);
		break;
	case IN_PONG:
		reeve_ping_async(c->k, &c->trigger);
		break;
	case IN_CLOSED:
		reeve_closed_async(c->k, &c->trigger);
		(void)reeve_abort(c->d.k[1], 0);
		break;
	case IN_MESSAGE:
		reeve_actor_post(c->a, &c->msg);
		break;
	case IN_STOPPED:
		reeve_actor_stop(c->a);
		break;
	case IN_READV:
	case IN_WRITEV:
		reeve_ping_async(c->d.k[1], &c->trigger); /* its pong passes both */
		break;
	case IN_TCLOSE:
	case IN_LOG:
		(void)reeve_abort(c->d.k[1], 0);
		break;
	default:
		reeve_write_async(
		    c->s, reeve_buf_wrap(c->d.rt, some, sizeof(some), on_buf_done, c), &c->trigger);
		break;
	}
}

/* What the call ended is gone; what it did not end works. */
static void
look_after(struct cell *c)
{
	unsigned gone = where[c->in].gone;
	reeve_conn_t *nc = NULL;
	reeve_stream_t *ns = NULL;
	enum after after = call[c->call].after;
	uint8_t b[8000];
	reeve_ssize n;

	if (after == STREAM_CLOSED && gone == 0) {
		do
			n = reeve_read(c->s, b, sizeof(b));
		while (n > 0);
		ck_assert(n == REEVE_ECLOSED || c->in == IN_END);
	}
	if ((after == STREAM_CLOSED || after == STREAM_DROPPED) && gone == 0) {
		do
			n = reeve_read(c->d.s[1], b, sizeof(b));
		while (n > 0);
		ck_assert_msg(n == 0 || n == REEVE_ERESET || n == REEVE_EEND || n == REEVE_ECLOSED,
		    "%s", reeve_errname((int)n));
	}
	if (after == CONN_ENDS) {
		(void)rvt_done_wait(&c->bystander);
		ck_assert_int_lt(reeve_open(c->k, &ns, RVT_WAIT_MS), 0);
	} else if (after == NO_MORE_STREAMS && !(gone & CONN_GONE)) {
		/* Without a stream the peer may have closed at once: an end by it, or by both in one turn. */
		n = reeve_open(c->k, &ns, RVT_WAIT_MS);
		ck_assert_msg(n == REEVE_EGOAWAY ||
			((gone != 0 || c->in == IN_RESET) &&
			    (n == REEVE_EEND || n == REEVE_ECLOSED)),
		    "%s", reeve_errname((int)n));
	} else if (c->k != NULL && !(gone & CONN_GONE)) {
		ck_assert_int_eq(reeve_ping(c->k, RVT_WAIT_MS, NULL), 0);
	}
	if (after == NO_LISTENER) {
		ck_assert_int_lt(reeve_dial(&nc, c->d.rt, c->addr, NULL, RVT_WAIT_MS), 0);
	}
	if (c->started)
		ck_assert(rvt_done_wait(&c->more) >= 0 || gone != 0);
}

static void
tear_down(struct cell *c)
{
	for (int i = 0; i < 2; i++)
		reeve_conn_destroy(c->extra[i]);
	reeve_actor_unref(c->a);
	reeve_listener_destroy(c->l);
	if (c->started)
		reeve_close(c->more.op.stream);
	reeve_close(c->s);
	reeve_ctl_unref(c->k);
	rvt_duo_end(&c->d);
	(void)rvt_done_wait(&c->bystander); /* once */
}

static void
run_cell(enum where in, unsigned k)
{
	struct rvt_base base = rvt_base();
	struct timespec until;
	struct cell c;
	int rc = 0;

	set_up(&c, in, k);
	pull_trigger(&c);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RVT_WAIT_MS / 1000;
	pthread_mutex_lock(&c.lock);
	while (!c.fired && rc == 0)
		rc = pthread_cond_timedwait(&c.cond, &c.lock, &until);
	pthread_mutex_unlock(&c.lock);
	ck_assert_msg(rc == 0, "%s in \"%s\" does not return", call[k].name, where[in].name);
	ck_assert_msg(c.rc == call[k].rc, "%s in \"%s\": %s", call[k].name, where[in].name,
	    reeve_errname((int)c.rc));
	look_after(&c);
	tear_down(&c);
	rvt_base_check(&base);
}

START_TEST(scenario_51_every_call_in_every_callback_returns)
{
	for (unsigned k = 0; k < CALLS; k++)
		run_cell((enum where)_i, k);
}
END_TEST

RVT_MAIN_TABLE("scenarios: callbacks", {&scenario_51_every_call_in_every_callback_returns, WHERES})
