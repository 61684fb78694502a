/* Transports of the application: the calls they get, and what happens when they lie. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

/* Two byte queues in memory that tell each other; calls are counted. */
struct pipe_side {
	struct pipe_side *peer;
	pthread_mutex_t *lock;
	uint8_t bytes[32768];
	size_t n; /* written by the peer, not read here */
	int wants_room, shut;
	reeve_ctl_t *k;
	unsigned attached, closed, after_close;
	reeve_ssize lie_read, lie_write; /* answered instead, if not 0 */
	int descriptor;
};

static void
tell(struct pipe_side *p, int events)
{
	if (p->k != NULL && !p->closed)
		reeve_transport_ready(p->k, events);
}

static reeve_ssize
side_readv(void *ctx, const struct iovec *v, int n)
{
	struct pipe_side *p = ctx;
	size_t k = v[0].iov_len < p->n ? v[0].iov_len : p->n;
	int end;

	ck_assert_int_ge(n, 1);
	pthread_mutex_lock(p->lock);
	p->after_close += p->closed;
	if (p->lie_read != 0) {
		pthread_mutex_unlock(p->lock);
		return p->lie_read;
	}
	k = v[0].iov_len < p->n ? v[0].iov_len : p->n;
	memcpy(v[0].iov_base, p->bytes, k);
	memmove(p->bytes, p->bytes + k, p->n - k);
	p->n -= k;
	end = p->shut;
	if (k > 0 && p->peer->wants_room) {
		p->peer->wants_room = 0;
		tell(p->peer, REEVE_WRITABLE);
	}
	pthread_mutex_unlock(p->lock);
	return k > 0 ? (reeve_ssize)k : end ? 0 : REEVE_EAGAIN;
}

static reeve_ssize
side_writev(void *ctx, const struct iovec *v, int n)
{
	struct pipe_side *p = ctx, *to = p->peer;
	size_t done = 0, k;

	pthread_mutex_lock(p->lock);
	p->after_close += p->closed;
	if (p->lie_write != 0) {
		pthread_mutex_unlock(p->lock);
		return p->lie_write;
	}
	for (int i = 0; i < n && to->n < sizeof(to->bytes); i++) {
		k = sizeof(to->bytes) - to->n < v[i].iov_len ? sizeof(to->bytes) - to->n
							     : v[i].iov_len;
		memcpy(to->bytes + to->n, v[i].iov_base, k);
		to->n += k;
		done += k;
		if (k < v[i].iov_len)
			break;
	}
	if (done > 0)
		tell(to, REEVE_READABLE);
	else
		p->wants_room = 1;
	pthread_mutex_unlock(p->lock);
	return done > 0 ? (reeve_ssize)done : REEVE_EAGAIN;
}

static void
side_attach(void *ctx, reeve_ctl_t *k)
{
	struct pipe_side *p = ctx;

	pthread_mutex_lock(p->lock);
	p->k = k;
	p->attached++;
	pthread_mutex_unlock(p->lock);
}

static void
side_close(void *ctx)
{
	struct pipe_side *p = ctx;

	pthread_mutex_lock(p->lock);
	p->closed++;
	p->peer->shut = 1;
	tell(p->peer, REEVE_READABLE | REEVE_WRITABLE);
	pthread_mutex_unlock(p->lock);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pipe_side side[2];

static reeve_transport_t
transport(int i)
{
	reeve_transport_t t = {.readv = side_readv,
	    .writev = side_writev,
	    .attach = side_attach,
	    .close = side_close,
	    .ctx = &side[i]};

	return t;
}

static void
joined(struct rvt_duo *d)
{
	memset(side, 0, sizeof(side));
	for (int i = 0; i < 2; i++) {
		side[i].peer = &side[1 - i];
		side[i].lock = &lock;
	}
	rvt_duo_rt(d, 2);
	for (int i = 0; i < 2; i++) {
		reeve_transport_t t = transport(i);

		ck_assert_int_eq(reeve_conn_open(&d->c[i], d->rt, &t,
				     i == 0 ? REEVE_DIALER : REEVE_LISTENER, NULL),
		    0);
		d->k[i] = reeve_conn_ctl(d->c[i]);
	}
}

static void
ended(struct rvt_duo *d)
{
	rvt_duo_end(d);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(side[i].closed, 1);
		ck_assert_uint_eq(side[i].attached, 1);
		ck_assert_uint_eq(side[i].after_close, 0);
	}
}

static void *
write_run(void *arg)
{
	reeve_stream_t *s = arg;

	for (uint64_t at = 0; at < 2000000; at += 100000)
		rvt_write_run(s, 100000, at);
	(void)reeve_shut(s);
	return NULL;
}

START_TEST(a_transport_without_a_descriptor_carries_streams)
{
	struct rvt_duo d;
	pthread_t t;

	joined(&d);
	rvt_duo_stream(&d);
	ck_assert_int_eq(pthread_create(&t, NULL, write_run, d.s[0]), 0);
	rvt_read_run(d.s[1], 2000000, 0);
	rvt_read_end(d.s[1]);
	pthread_join(t, NULL);
	ended(&d);
}
END_TEST

START_TEST(a_transport_is_closed_once_by_a_graceful_close)
{
	struct rvt_duo d;

	joined(&d);
	rvt_duo_stream(&d);
	rvt_write_run(d.s[0], 100, 0);
	rvt_read_run(d.s[1], 100, 0);
	for (int i = 0; i < 2; i++) {
		reeve_close(d.s[i]);
		d.s[i] = NULL;
	}
	ck_assert_int_eq(reeve_conn_close(d.c[0], RVT_WAIT_MS), 0);
	ended(&d);
}
END_TEST

START_TEST(a_failed_open_calls_nothing_of_the_transport)
{
	struct rvt_duo d;
	reeve_transport_t t;
	reeve_conn_t *c = NULL;

	memset(side, 0, sizeof(side));
	side[0].peer = &side[1];
	side[0].lock = &lock;
	t = transport(0);
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_conn_open(&c, d.rt, &t, 9, NULL), REEVE_EINVAL);
	t.readv = NULL;
	ck_assert_int_eq(reeve_conn_open(&c, d.rt, &t, REEVE_DIALER, NULL), REEVE_EINVAL);
	rvt_duo_end(&d);
	ck_assert_uint_eq(side[0].attached, 0);
	ck_assert_uint_eq(side[0].closed, 0);
}
END_TEST

START_TEST(a_result_outside_the_contract_ends_the_connection)
{
	static const reeve_ssize lies[] = {
	    PTRDIFF_MAX, 100000000, -5000, PTRDIFF_MIN, REEVE_ESYS_BASE - EIO};
	struct rvt_duo d;
	reeve_stream_t *s = NULL;
	reeve_reason_t why = {.size = sizeof(why)};

	joined(&d);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	pthread_mutex_lock(&lock);
	if (_i < 5)
		side[0].lie_read = lies[_i];
	else
		side[0].lie_write = lies[_i - 5];
	pthread_mutex_unlock(&lock);
	reeve_transport_ready(d.k[0], REEVE_READABLE);
	(void)reeve_ping(d.k[0], RVT_WAIT_MS, NULL);
	ck_assert_int_lt(reeve_accept(d.k[0], &s, -1), 0);
	ck_assert_int_eq(reeve_ctl_reason(d.k[0], &why), 0);
	ck_assert_int_lt(why.rc, 0);
	ck_assert_uint_eq(why.by, REEVE_BY_TRANSPORT);
	ended(&d);
}
END_TEST

START_TEST(a_transport_that_takes_nothing_ends_the_connection)
{
	struct rvt_duo d;
	reeve_cfg_t cfg;
	reeve_transport_t t;
	reeve_reason_t why = {.size = sizeof(why)};

	memset(side, 0, sizeof(side));
	for (int i = 0; i < 2; i++) {
		side[i].peer = &side[1 - i];
		side[i].lock = &lock;
	}
	side[0].lie_write = REEVE_EAGAIN;
	t = transport(0);
	reeve_cfg_init(&cfg);
	cfg.write_ms = 50;
	rvt_duo_rt(&d, 1);
	ck_assert_int_eq(reeve_conn_open(&d.c[0], d.rt, &t, REEVE_DIALER, &cfg), 0);
	d.k[0] = reeve_conn_ctl(d.c[0]);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), REEVE_ETIMEDOUT);
	RVT_UNTIL(reeve_ctl_reason(d.k[0], &why) == 0 && why.rc != 0);
	ck_assert_int_eq(why.rc, REEVE_ETIMEDOUT);
	ck_assert_uint_eq(why.by, REEVE_BY_TRANSPORT);
	rvt_duo_end(&d);
	ck_assert_uint_eq(side[0].closed, 1);
}
END_TEST

/* The descriptor of the application's transport is watched by the library. */
static reeve_ssize
fd_readv(void *ctx, const struct iovec *v, int n)
{
	struct pipe_side *p = ctx;
	ssize_t k = readv(p->descriptor, v, n);

	return k >= 0 ? k : errno == EAGAIN ? REEVE_EAGAIN : REEVE_ESYS_BASE - errno;
}

static reeve_ssize
fd_writev(void *ctx, const struct iovec *v, int n)
{
	struct pipe_side *p = ctx;
	ssize_t k = writev(p->descriptor, v, n);

	return k >= 0 ? k : errno == EAGAIN ? REEVE_EAGAIN : REEVE_ESYS_BASE - errno;
}

static int
fd_fd(void *ctx)
{
	struct pipe_side *p = ctx;

	return p->descriptor;
}

static void
fd_close(void *ctx)
{
	struct pipe_side *p = ctx;

	p->closed++;
	close(p->descriptor);
}

START_TEST(a_transport_with_a_descriptor_needs_no_telling)
{
	struct rvt_duo d;
	reeve_transport_t t = {.readv = fd_readv,
	    .writev = fd_writev,
	    .fd = fd_fd,
	    .close = fd_close,
	    .ctx = &side[0]};
	pthread_t writer;
	int v[2];

	memset(side, 0, sizeof(side));
	rvt_unix_pair(v);
	ck_assert_int_eq(fcntl(v[0], F_SETFL, O_NONBLOCK), 0);
	side[0].descriptor = v[0];
	rvt_duo_rt(&d, 2);
	ck_assert_int_eq(reeve_conn_open(&d.c[0], d.rt, &t, REEVE_DIALER, NULL), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&d.c[1], d.rt, v[1], REEVE_LISTENER, NULL), 0);
	d.k[0] = reeve_conn_ctl(d.c[0]);
	d.k[1] = reeve_conn_ctl(d.c[1]);
	rvt_duo_stream(&d);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_run, d.s[0]), 0);
	rvt_read_run(d.s[1], 2000000, 0);
	rvt_read_end(d.s[1]);
	pthread_join(writer, NULL);
	rvt_duo_end(&d);
	ck_assert_uint_eq(side[0].closed, 1);
}
END_TEST

RVT_MAIN_TABLE("api_transport", {&a_transport_without_a_descriptor_carries_streams, 0},
    {&a_transport_is_closed_once_by_a_graceful_close, 0},
    {&a_failed_open_calls_nothing_of_the_transport, 0},
    {&a_transport_that_takes_nothing_ends_the_connection, 0},
    {&a_transport_with_a_descriptor_needs_no_telling, 0},
    {&a_result_outside_the_contract_ends_the_connection, 10})
