/* echo_async.c - the echo server with callbacks: no thread waits for anything, nothing is copied.
 *
 * usage: echo_async [--mux yamux|mplex] ADDR
 *        prints "listening ADDR", serves until SIGINT or SIGTERM
 *
 * Four operations, each started again by its own completion: accept a connection, accept a stream of it, read a
 * buffer, write it.  An operation lies in the struct it belongs to; fn is called once for every start, also at the
 * end, so that is where the struct is freed.  The stream is read again when the write was accepted: a peer that does
 * not read its echo stops being read. */
#include <reeve/reeve.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static reeve_listener_t *listener;
static sem_t accept_over;     /* the chain of accepts has ended ... */
static reeve_ssize accept_rc; /* ... with this */

struct conn {
	reeve_op_t accept;
	reeve_conn_t *conn;
};

struct echo {
	reeve_op_t op; /* the read, then the write, then the read */
	reeve_stream_t *stream;
};

static void next_read(struct echo *e);

static void
end_echo(struct echo *e, reeve_ssize rc)
{
	if (rc < 0)
		reeve_reset(e->stream, 0);
	reeve_close(e->stream); /* the peer's end was read: our end follows what was written */
	free(e);
}

static void
on_written(reeve_op_t *op)
{
	struct echo *e = op->arg;

	if (op->res < 0)
		end_echo(e, op->res);
	else
		next_read(e);
}

static void
on_read(reeve_op_t *op)
{
	struct echo *e = op->arg;

	if (op->res <= 0) {
		end_echo(e, op->res);
		return;
	}
	reeve_buf_t *b = op->buf; /* ours; the write takes it over */
	reeve_op_init(op, on_written, e);
	reeve_write_async(e->stream, b, op);
}

static void
next_read(struct echo *e)
{
	reeve_op_init(&e->op, on_read, e);
	reeve_read_async(e->stream, &e->op);
}

static void
on_stream(reeve_op_t *op)
{
	struct conn *c = op->arg;
	struct echo *e;

	if (op->res < 0) { /* the connection has ended */
		reeve_conn_release(c->conn);
		free(c);
		return;
	}
	e = calloc(1, sizeof(*e));
	if (e == NULL) {
		reeve_reset(op->stream, 0);
		reeve_close(op->stream);
	} else {
		e->stream = op->stream;
		next_read(e);
	}
	reeve_op_init(op, on_stream, c);
	reeve_accept_async(reeve_conn_ctl(c->conn), op);
}

static void
on_conn(reeve_op_t *op)
{
	struct conn *c;

	if (op->res <
	    0) { /* stopped, or out of descriptors: a server that goes on would wait first */
		accept_rc = op->res;
		sem_post(&accept_over);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		reeve_conn_release(op->conn);
	} else {
		c->conn = op->conn;
		reeve_op_init(&c->accept, on_stream, c);
		reeve_accept_async(reeve_conn_ctl(c->conn), &c->accept);
	}
	reeve_op_init(op, on_conn, NULL);
	reeve_listener_accept_async(listener, op);
}

static void
stop(int sig)
{
	signal(sig, SIG_IGN);
	reeve_listener_stop(listener); /* the pending accept ends with REEVE_ECLOSED */
}

static void
serve(void)
{
	char addr[256] = "";
	reeve_op_t accept = REEVE_OP(on_conn, NULL);

	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	reeve_listener_addr(listener, addr, sizeof(addr));
	printf("listening %s\n", addr);
	fflush(stdout);
	reeve_listener_accept_async(listener, &accept);
	while (sem_wait(&accept_over) < 0)
		; /* a signal */
}

/* --mux NAME before the other arguments: which protocol carries the streams.  Answers how many arguments it took. */
static int
take_mux(reeve_cfg_t *cfg, int argc, char **argv)
{
	reeve_cfg_init(cfg);
	if (argc < 3 || strcmp(argv[1], "--mux") != 0)
		return 0;
	if (strcmp(argv[2], "mplex") == 0)
		cfg->proto = REEVE_MPLEX;
	else if (strcmp(argv[2], "yamux") != 0) /* the default */
		return -1;
	return 2;
}

int
main(int argc, char **argv)
{
	reeve_rt_t *rt;
	reeve_cfg_t cfg;
	int taken = take_mux(&cfg, argc, argv), rc;
	const char *addr;

	if (taken < 0 || argc - taken != 2) {
		fprintf(stderr, "usage: echo_async [--mux yamux|mplex] ADDR\n");
		return 2;
	}
	addr = argv[1 + taken];
	sem_init(&accept_over, 0, 0);
	rc = reeve_rt_create(&rt, NULL);
	if (rc == 0) {
		rc = reeve_listen(&listener, rt, addr, &cfg);
		if (rc == 0) {
			serve();
			rc = accept_rc == REEVE_ECLOSED ? 0 : (int)accept_rc;
			reeve_listener_destroy(listener);
		}
		reeve_rt_shutdown(rt, 3000); /* what is being echoed may end by itself */
		reeve_rt_destroy(rt);
	}
	if (rc < 0)
		fprintf(stderr, "echo_async: %s: %s (%s)\n", addr, reeve_strerror(rc),
		    reeve_errname(rc));
	return rc < 0;
}
