/* reeve_peer.c - our interop peer: the command line of README.md on the public blocking calls.
 * In the usual roles it goes through listeners and dialers; in the swapped ones through plain
 * sockets and reeve_conn_open_fd, where the role is an argument.  SIGTERM ends serving in order,
 * so that a leak shows. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTORS 16 /* threads that serve one connection in the swapped role; more streams wait */

/* A connection in the swapped serving role, with the threads that serve its streams. */
struct served {
	struct served *next;
	struct peer_options *o;
	reeve_conn_t *conn;
	pthread_t thread[ACCEPTORS];
};

/* What the signal handler stops: set before the handler is, and whole words. */
static reeve_listener_t *stop_listener;
static int stop_fd = -1;

static void
on_term(int sig)
{
	(void)sig;
	if (stop_listener != NULL)
		reeve_listener_stop(stop_listener);
	if (stop_fd >= 0)
		shutdown(stop_fd, SHUT_RD);
}

static void
catch_term(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_term;
	sigaction(SIGTERM, &action, NULL);
}

static void
announce(const char *address)
{
	printf("listening %s\n", address);
	fflush(stdout);
}

/* A number above 31 bits is no sensible value of any option. */
static uint32_t
number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	peer_check(*text != 0 && *end == 0 && n <= INT32_MAX, "an option needs a number");
	return (uint32_t)n;
}

static uint32_t
muxer(const char *name)
{
	peer_check(
	    strcmp(name, "yamux") == 0 || strcmp(name, "mplex") == 0, "--mux needs yamux or mplex");
	return strcmp(name, "mplex") == 0 ? REEVE_MPLEX : REEVE_YAMUX;
}

static void
option(struct peer_options *o, const char *name, const char *value)
{
	peer_check(value != NULL, "an option needs a value");
	if (strcmp(name, "--role") == 0)
		o->role = value;
	else if (strcmp(name, "--mux") == 0)
		o->cfg.proto = muxer(value);
	else if (strcmp(name, "--chunk") == 0)
		o->chunk = number(value);
	else if (strcmp(name, "--split") == 0)
		o->cfg.send_budget = 4 * (o->cfg.split = number(value));
	else if (strcmp(name, "--slow-ms") == 0)
		o->cfg.slow_ms = number(value);
	else if (strcmp(name, "--window") == 0)
		o->cfg.max_window = number(value);
	else if (strcmp(name, "--close-timeout-ms") == 0)
		o->cfg.linger_ms = number(value);
	else
		peer_check(strcmp(name, "--open-timeout-ms") == 0, "unknown option");
}

static void
parse(struct peer_options *o, int argc, char **argv)
{
	int i;

	memset(o, 0, sizeof(*o));
	reeve_cfg_init(&o->cfg);
	o->chunk = 65536;
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--apart") == 0) {
			o->apart = 1;
		} else if (strncmp(argv[i], "--", 2) == 0) {
			option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
			i++;
		} else if (o->n < 8) {
			o->words[o->n++] = argv[i];
		}
	}
	peer_check(
	    o->role == NULL || strcmp(o->role, "client") == 0 || strcmp(o->role, "server") == 0,
	    "--role needs client or server");
}

/* "A.B.C.D:PORT" to a socket address. */
static struct sockaddr_in
address_of(const char *text)
{
	struct sockaddr_in a;
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";

	memset(&a, 0, sizeof(a));
	a.sin_family = AF_INET;
	peer_check(
	    colon != NULL && (size_t)(colon - text) < sizeof(host), "an address is HOST:PORT");
	memcpy(host, text, (size_t)(colon - text));
	a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	peer_check(
	    inet_pton(AF_INET, host, &a.sin_addr) == 1, "the host has to be an IPv4 address");
	return a;
}

static int
new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	peer_check(fd >= 0, "no socket");
	return fd;
}

/* ---- serving, usual role: we are the yamux server ---- */

static void
serve_usual(reeve_rt_t *rt, struct peer_options *o)
{
	reeve_listener_t *l;
	char url[128], bound[128];

	snprintf(url, sizeof(url), "tcp://%s", o->words[1]);
	peer_must(reeve_listen(&l, rt, url, &o->cfg), "listen");
	peer_must(reeve_listener_addr(l, bound, sizeof(bound)), "address");
	stop_listener = l;
	catch_term();
	announce(bound + strlen("tcp://"));
	peer_must(reeve_serve(l, peer_handle, o), "serve");
	reeve_rt_shutdown(rt, 5000);
	reeve_listener_destroy(l);
}

/* ---- serving, swapped role: we accept on TCP and are the yamux client ---- */

static void *
accept_thread(void *arg)
{
	struct served *c = arg;
	reeve_stream_t *s;

	while (reeve_accept(reeve_conn_ctl(c->conn), &s, -1) == 0) {
		peer_handle(s, c->o);
		reeve_close(s);
	}
	return NULL;
}

static struct served *
serve_fd(reeve_rt_t *rt, struct peer_options *o, int fd, struct served *next)
{
	struct served *c = calloc(1, sizeof(*c));
	int i;

	peer_check(c != NULL, "out of memory");
	c->next = next;
	c->o = o;
	peer_must(reeve_conn_open_fd(&c->conn, rt, fd, REEVE_DIALER, &o->cfg), "open");
	for (i = 0; i < ACCEPTORS; i++)
		peer_check(pthread_create(&c->thread[i], NULL, accept_thread, c) == 0, "no thread");
	return c;
}

static void
serve_swapped(reeve_rt_t *rt, struct peer_options *o)
{
	struct sockaddr_in a = address_of(o->words[1]);
	socklen_t len = sizeof(a);
	struct served *c, *all = NULL;
	char text[INET_ADDRSTRLEN], bound[64];
	int i, fd;

	stop_fd = new_socket();
	peer_check(bind(stop_fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
		listen(stop_fd, 64) == 0 && getsockname(stop_fd, (struct sockaddr *)&a, &len) == 0,
	    "cannot listen");
	inet_ntop(AF_INET, &a.sin_addr, text, sizeof(text));
	snprintf(bound, sizeof(bound), "%s:%u", text, ntohs(a.sin_port));
	catch_term();
	announce(bound);
	while ((fd = accept(stop_fd, NULL, NULL)) >= 0 || errno == EINTR)
		if (fd >= 0)
			all = serve_fd(rt, o, fd, all);
	reeve_rt_shutdown(rt, 5000);
	while ((c = all) != NULL) {
		all = c->next;
		for (i = 0; i < ACCEPTORS; i++)
			pthread_join(c->thread[i], NULL);
		reeve_conn_destroy(c->conn);
		free(c);
	}
	close(stop_fd);
}

/* ---- dialing ---- */

void
peer_connect(struct peer_link *l, reeve_rt_t *rt, const struct peer_options *o)
{
	struct sockaddr_in a;
	char url[128];
	int fd;

	memset(l, 0, sizeof(*l));
	l->rt = rt;
	l->o = o;
	if (o->role == NULL || strcmp(o->role, "client") == 0) {
		snprintf(url, sizeof(url), "tcp://%s", o->words[1]);
		peer_must(reeve_dial(&l->conn, rt, url, &o->cfg, 10000), "dial");
	} else {
		a = address_of(o->words[1]);
		fd = new_socket();
		peer_check(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "cannot connect");
		peer_must(reeve_conn_open_fd(&l->conn, rt, fd, REEVE_LISTENER, &o->cfg), "open");
	}
	l->k = reeve_conn_ctl(l->conn);
}

static void
dial(reeve_rt_t *rt, const struct peer_options *o)
{
	struct peer_link l;
	int rc;

	peer_connect(&l, rt, o);
	peer_case(&l);
	rc = reeve_conn_close(l.conn, 10000);
	if (!l.over)
		peer_must(rc, "close");
	reeve_conn_destroy(l.conn);
}

/* ---- both ends in this process, over TCP loopback ---- */

static void *
pair_thread(void *arg)
{
	struct peer_options o = {0};

	peer_must(reeve_serve(arg, peer_handle, &o), "serve");
	return NULL;
}

static void
pair(reeve_rt_t *rt, struct peer_options *o)
{
	reeve_listener_t *l;
	reeve_conn_t *c;
	pthread_t thread;
	char bound[128], out[OUT_SIZE];

	peer_must(reeve_listen(&l, rt, "tcp://127.0.0.1:0", &o->cfg), "listen");
	peer_must(reeve_listener_addr(l, bound, sizeof(bound)), "address");
	peer_check(pthread_create(&thread, NULL, pair_thread, l) == 0, "no thread");
	peer_must(reeve_dial(&c, rt, bound, &o->cfg, 10000), "dial");
	peer_bench(reeve_conn_ctl(c), o->words + 1, out);
	printf("{\"peer\":\"reeve\",%s}\n", out);
	peer_must(reeve_conn_close(c, 10000), "close");
	reeve_conn_destroy(c);
	reeve_listener_stop(l);
	pthread_join(thread, NULL);
	reeve_listener_destroy(l);
}

int
main(int argc, char **argv)
{
	struct peer_options o;
	reeve_rt_t *rt;

	parse(&o, argc, argv);
	peer_must(reeve_rt_create(&rt, NULL), "runtime");
	if (o.n == 2 && strcmp(o.words[0], "serve") == 0) {
		if (o.role != NULL && strcmp(o.role, "client") == 0)
			serve_swapped(rt, &o);
		else
			serve_usual(rt, &o);
	} else if (o.n >= 3 && strcmp(o.words[0], "dial") == 0) {
		dial(rt, &o);
	} else if (o.n == 4 && strcmp(o.words[0], "pair") == 0) {
		pair(rt, &o);
	} else {
		peer_check(0,
		    "usage: serve ADDR | dial HOST:PORT CASE [ARG...] | pair STREAMS WRITE "
		    "SECONDS");
	}
	reeve_rt_destroy(rt);
	return 0;
}
