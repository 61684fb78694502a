/* exit_child.c - a process that ends in the middle of everything, in the way its argument says; with status 7.
 *
 * usage: exit_child atexit|return|callback|handler|quick
 *        exit_child dlclose LIBRARY */
#include <config.h>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <reeve/reeve.h>

#define STATUS 7

/* Global, so that what lives at the end is reachable. */
static struct {
	reeve_rt_t *rt;
	reeve_listener_t *l;
	reeve_conn_t *c[2], *dialed;
	reeve_stream_t *s[2], *served;
	reeve_op_t op;
} all;

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "exit_child: %s\n", what);
	_exit(1);
}

/* The handler of the served stream ends the process too, perhaps meanwhile: who comes second waits for the end. */
static void
stop(void)
{
	static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&ending);
	reeve_rt_destroy(all.rt);
}

static void
thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	need(pthread_create(&t, NULL, fn, arg) == 0 && pthread_detach(t) == 0, "thread");
}

static void *
pump(void *arg)
{
	static const char some[10000];

	while (reeve_write(arg, some, sizeof(some)) > 0)
		;
	return NULL;
}

static void *
drink(void *arg)
{
	char some[10000];

	while (reeve_read(arg, some, sizeof(some)) > 0)
		;
	return NULL;
}

static void
handle(reeve_stream_t *s, void *arg)
{
	(void)drink(s);
	(void)arg;
	exit(STATUS);
}

static void *
serve(void *arg)
{
	(void)arg;
	(void)reeve_serve(all.l, handle, NULL);
	return NULL;
}

/* A runtime with connections, bytes under way, calls that wait, and a stream that is served. */
static void
live(void)
{
	char addr[64];
	reeve_rt_cfg_t cfg;

	reeve_rt_cfg_init(&cfg);
	cfg.workers = 2;
	need(reeve_rt_create(&all.rt, &cfg) == 0, "runtime");
	need(reeve_conn_pair(all.c, all.rt, NULL) == 0, "pair");
	need(reeve_open(reeve_conn_ctl(all.c[0]), &all.s[0], 5000) == 0, "open");
	need(reeve_accept(reeve_conn_ctl(all.c[1]), &all.s[1], 5000) == 0, "accept");
	for (int i = 0; i < 2; i++) {
		thread(pump, all.s[i]);
		thread(drink, all.s[i]);
	}
	need(reeve_listen(&all.l, all.rt, "tcp://127.0.0.1:0", NULL) == 0, "listen");
	need(reeve_listener_addr(all.l, addr, sizeof(addr)) > 0, "address");
	thread(serve, NULL);
	need(reeve_dial(&all.dialed, all.rt, addr, NULL, 5000) == 0, "dial");
	need(reeve_open(reeve_conn_ctl(all.dialed), &all.served, 5000) == 0, "open to serve");
	need(reeve_write(all.served, "x", 1) == 1, "write");
	need(reeve_ping(reeve_conn_ctl(all.dialed), 5000, NULL) == 0, "ping");
}

static void
leave(reeve_op_t *op)
{
	(void)op;
	exit(STATUS);
}

/* --- the shared library, loaded, used and unloaded */

static struct {
	int (*rt_create)(reeve_rt_t **, const reeve_rt_cfg_t *);
	void (*rt_destroy)(reeve_rt_t *);
	int (*pair)(reeve_conn_t **, reeve_rt_t *, const reeve_cfg_t *);
	void (*conn_destroy)(reeve_conn_t *);
	reeve_ctl_t *(*ctl)(reeve_conn_t *);
	int (*open)(reeve_ctl_t *, reeve_stream_t **, int64_t);
	reeve_ssize (*write)(reeve_stream_t *, const void *, size_t);
	void (*close)(reeve_stream_t *);
} lib;
static pthread_barrier_t used, unloaded;

static void
symbol(void *dl, const char *name, void *to)
{
	void *p = dlsym(dl, name);

	need(p != NULL, name);
	memcpy(to, &p, sizeof(p));
}

static unsigned
threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	need(d != NULL, "/proc");
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

/* Has used the library, and ends when it is gone. */
static void *
outlive(void *arg)
{
	need(lib.write(arg, "x", 1) == 1, "write");
	pthread_barrier_wait(&used);
	pthread_barrier_wait(&unloaded);
	return NULL;
}

static int
unload(const char *path)
{
	void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	pthread_t t;

	need(dl != NULL, "dlopen");
	symbol(dl, "reeve_rt_create", &lib.rt_create);
	symbol(dl, "reeve_rt_destroy", &lib.rt_destroy);
	symbol(dl, "reeve_conn_pair", &lib.pair);
	symbol(dl, "reeve_conn_destroy", &lib.conn_destroy);
	symbol(dl, "reeve_conn_ctl", &lib.ctl);
	symbol(dl, "reeve_open", &lib.open);
	symbol(dl, "reeve_write", &lib.write);
	symbol(dl, "reeve_close", &lib.close);
	need(lib.rt_create(&all.rt, NULL) == 0, "runtime");
	need(lib.pair(all.c, all.rt, NULL) == 0, "pair");
	need(lib.open(lib.ctl(all.c[0]), &all.s[0], 5000) == 0, "open");
	pthread_barrier_init(&used, NULL, 2);
	pthread_barrier_init(&unloaded, NULL, 2);
	need(pthread_create(&t, NULL, outlive, all.s[0]) == 0, "thread");
	pthread_barrier_wait(&used);
	lib.close(all.s[0]);
	lib.conn_destroy(all.c[0]);
	lib.conn_destroy(all.c[1]);
	lib.rt_destroy(all.rt);
	need(dlclose(dl) == 0, "dlclose");
	pthread_barrier_wait(&unloaded);
	need(pthread_join(t, NULL) == 0, "join");
	need(threads() == 1, "threads are left");
	return STATUS;
}

int
main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "dlclose") == 0)
		return argc > 2 ? unload(argv[2]) : 1;
	live();
	if (strcmp(how, "return") == 0)
		return STATUS;
	need(atexit(stop) == 0 && at_quick_exit(stop) == 0, "atexit");
	if (strcmp(how, "atexit") == 0)
		exit(STATUS);
	if (strcmp(how, "quick") == 0)
		quick_exit(STATUS);
	if (strcmp(how, "handler") == 0) {
		need(reeve_shut(all.served) == 0, "shut");
	} else {
		need(strcmp(how, "callback") == 0, "usage");
		reeve_op_init(&all.op, leave, NULL);
		reeve_ping_async(reeve_conn_ctl(all.c[0]), &all.op);
	}
	for (;;)
		pause();
}
