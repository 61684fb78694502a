/* flow.c - see flow.h. */
#include <config.h>

#include "perf/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/transport/transport.h"
#include "perf/calls.h"
#include "perf/kit.h"

void
rvp_check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "perf: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

void
rvp_must(int64_t rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "perf: %s: %s\n", what, reeve_strerror((int)rc));
	exit(EXIT_FAILURE);
}

static void
tcp_pair(int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	rvp_check(l >= 0 && bind(l, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(l, 1) == 0 &&
		getsockname(l, (struct sockaddr *)&at, &len) == 0,
	    "listen");
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rvp_check(fd[0] >= 0 && connect(fd[0], (struct sockaddr *)&at, sizeof(at)) == 0, "connect");
	fd[1] = accept(l, NULL, NULL);
	rvp_check(fd[1] >= 0, "accept");
	close(l);
}

void
rvp_sockets_bare(enum rvp_transport t, int fd[2])
{
	if (t == RVP_UNIX)
		rvp_check(
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0, "socketpair");
	else
		tcp_pair(fd);
}

void
rvp_sockets(enum rvp_transport t, int fd[2])
{
	int i;

	rvp_sockets_bare(t, fd);
	for (i = 0; i < 2 && t == RVP_TCP; i++)
		rv_fd_tune_tcp(fd[i]);
}

void
rvp_thread(pthread_t *t, void *(*fn)(void *), void *arg, int cpu)
{
	cpu_set_t before;

	/* A new thread inherits where its maker may run. */
	if (cpu >= 0) {
		rvp_check(sched_getaffinity(0, sizeof(before), &before) == 0, "affinity");
		rvp_pin((unsigned)cpu);
	}
	errno = pthread_create(t, NULL, fn, arg);
	rvp_check(errno == 0, "thread");
	if (cpu >= 0)
		(void)sched_setaffinity(0, sizeof(before), &before);
}

uint64_t
rvp_rss(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long size = 0, resident = 0;

	rvp_check(f != NULL && fscanf(f, "%lu %lu", &size, &resident) == 2, "statm");
	fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Processor time of the process, user and system. */
static uint64_t
cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	    (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void
nap(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static uint64_t
switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_nvcsw + (uint64_t)u.ru_nivcsw;
}

static double
per(uint64_t a, uint64_t b)
{
	return b == 0 ? 0 : (double)a / (double)b;
}

static void
look(const struct rvp_flow *f, void *run, struct rvp_totals *t)
{
	*t = (struct rvp_totals){0};
	if (f->totals != NULL)
		f->totals(run, t);
}

static void
warm_up(const struct rvp_flow *f, const struct rvp_load *l, void *run)
{
	double most = (l->warm_up > 0 ? l->warm_up : RVP_WARM_UP_S) * 1e9;
	uint64_t began = rvp_now_ns();

	while (f->received(run) < RVP_WARM_UP && (double)(rvp_now_ns() - began) < most)
		nap(0.001);
	/* However short, it has begun. */
	while (f->received(run) == 0 && (double)(rvp_now_ns() - began) < RVP_WARM_UP_S * 1e9)
		nap(0.001);
}

void
rvp_flow_measure(const struct rvp_flow *f, const struct rvp_load *l, struct rvp_figure *out)
{
	int counter = l->calls ? rvp_calls_open()
			       : -1; /* the threads that are made now inherit it */
	void *run = f->start(l);
	uint64_t began, bytes, total, cpu, switched, calls;
	struct rvp_totals from, to;

	warm_up(f, l, run);
	look(f, run, &from);
	bytes = f->received(run);
	calls = rvp_calls_read(counter);
	switched = switches();
	began = rvp_now_ns();
	cpu = cpu_ns();
	do
		nap(l->seconds);
	while (f->received(run) == bytes && (double)(rvp_now_ns() - began) < RVP_WARM_UP_S * 1e9);
	total = f->received(run);
	bytes = total - bytes;
	began = rvp_now_ns() - began;
	cpu = cpu_ns() - cpu;
	switched = switches() - switched;
	calls = rvp_calls_read(counter) - calls;
	look(f, run, &to);
	f->stop(run);
	rvp_calls_close(counter);
	if (bytes == 0) {
		fprintf(stderr, "perf: %s carried nothing\n", f->name);
		exit(EXIT_FAILURE);
	}
	*out = (struct rvp_figure){
	    .gbps = per(bytes, began),
	    .cpu = per(cpu, bytes) * 1024,
	    .window = (double)to.window_max,
	    .copies = per(to.copied - from.copied, bytes),
	    .out_frames = per(to.frames_out - from.frames_out, to.writes - from.writes),
	    .in_frames = per(to.frames_in - from.frames_in, to.reads - from.reads),
	    .total = (double)total,
	    .switches = per(switched, bytes) * 1048576,
	    .calls = counter < 0 ? -1 : per(calls, bytes) * 1048576,
	};
}
