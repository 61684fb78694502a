/* cell_calls.c - the calls of the matrix. */
#include <config.h>

#include "tests/scenarios/cell.h"

static reeve_ssize
close_stream(struct cell *c)
{
	reeve_close(c->d.s[0]);
	c->d.s[0] = NULL;
	return 0;
}

static reeve_ssize
reset_stream(struct cell *c)
{
	return reeve_reset(c->d.s[0], 3);
}

static reeve_ssize
drop_stream(struct cell *c)
{
	reeve_stream_unref(c->s);
	reeve_stream_unref(c->d.s[0]);
	c->s = c->d.s[0] = NULL;
	return 0;
}

static reeve_ssize
shut_stream(struct cell *c)
{
	return reeve_shut(c->d.s[0]);
}

static reeve_ssize
close_conn(struct cell *c)
{
	return reeve_conn_close(c->d.c[0], 1000);
}

static reeve_ssize
destroy_conn(struct cell *c)
{
	reeve_conn_destroy(c->d.c[0]);
	c->d.c[0] = NULL;
	return 0;
}

static reeve_ssize
abort_conn(struct cell *c)
{
	return reeve_abort(c->d.k[0], 0);
}

static reeve_ssize
go_away(struct cell *c)
{
	return reeve_goaway(c->d.k[0], 0);
}

static reeve_ssize
let_go(struct cell *c)
{
	(void)close_stream(c);
	reeve_stream_unref(c->s);
	reeve_conn_release(c->d.c[0]);
	reeve_ctl_unref(c->k);
	c->s = NULL;
	c->d.c[0] = NULL;
	c->k = NULL;
	return 0;
}

static reeve_ssize
stop_listener(struct cell *c)
{
	reeve_listener_stop(c->l);
	return 0;
}

static reeve_ssize
destroy_listener(struct cell *c)
{
	reeve_listener_destroy(c->l);
	c->l = NULL;
	return 0;
}

static reeve_ssize
shut_runtime(struct cell *c)
{
	return reeve_rt_shutdown(c->d.rt, 1000);
}

static reeve_ssize
destroy_runtime(struct cell *c)
{
	reeve_rt_destroy(c->d.rt); /* not on a worker: nothing happens */
	return 0;
}

static reeve_ssize
open_stream(struct cell *c)
{
	reeve_stream_t *s;

	return reeve_open(c->d.k[0], &s, 1000);
}

static reeve_ssize
open_later(struct cell *c)
{
	c->started = true;
	reeve_open_async(c->d.k[0], &c->more.op);
	return 0;
}

static reeve_ssize
write_now(struct cell *c)
{
	return reeve_write(c->d.s[0], "x", 1);
}

static reeve_ssize
request(struct cell *c)
{
	c->started = true;
	reeve_write_async(c->d.s[0], rvt_buf_run(c->d.rt, 100, 0), &c->more.op);
	return 0;
}

static reeve_ssize
read_now(struct cell *c)
{
	uint8_t b;

	return reeve_read(c->d.s[0], &b, 1);
}

static reeve_ssize
ping_later(struct cell *c)
{
	c->started = true;
	reeve_ping_async(c->d.k[0], &c->more.op);
	return 0;
}

const struct call call[CALLS] = {{"reeve_close", close_stream, 0, STREAM_CLOSED},
    {"reeve_reset", reset_stream, 0, STREAM_CLOSED},
    {"reeve_stream_unref", drop_stream, 0, STREAM_DROPPED}, {"reeve_shut", shut_stream, 0, NOTHING},
    {"reeve_conn_close", close_conn, REEVE_EWORKER, NOTHING},
    {"reeve_conn_destroy", destroy_conn, 0, CONN_ENDS}, {"reeve_abort", abort_conn, 0, CONN_ENDS},
    {"reeve_goaway", go_away, 0, NO_MORE_STREAMS}, {"all handles", let_go, 0, STREAM_DROPPED},
    {"reeve_listener_stop", stop_listener, 0, NO_LISTENER},
    {"reeve_listener_destroy", destroy_listener, 0, NO_LISTENER},
    {"reeve_rt_shutdown", shut_runtime, REEVE_EWORKER, NOTHING},
    {"reeve_rt_destroy", destroy_runtime, 0, NOTHING},
    {"reeve_open", open_stream, REEVE_EWORKER, NOTHING},
    {"reeve_open_async", open_later, 0, NOTHING},
    {"reeve_write", write_now, REEVE_EWORKER, NOTHING}, {"reeve_write_async", request, 0, NOTHING},
    {"reeve_read", read_now, REEVE_EWORKER, NOTHING}, {"reeve_ping_async", ping_later, 0, NOTHING}};
