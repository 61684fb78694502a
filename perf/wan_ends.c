/* wan_ends.c - see wan.h. */
#include <config.h>

#include "perf/wan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <reeve/reeve.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf/flow.h"

#define PIECE 65536u

/* One sending stream of ours. */
struct hand {
	reeve_ctl_t *k;
	struct rvq_counter accepted;
};

/* What a sampling thread looks at. */
struct watch {
	reeve_ctl_t *k;
	struct rvp_wan_seen *seen;
	struct hand *hands; /* of a sender, or NULL */
	unsigned streams;
};

/* A child that does not outlive its parent. */
static pid_t
child(void)
{
	pid_t parent = getpid(), pid = fork();

	rvp_check(pid >= 0, "fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
	}
	return pid;
}

static struct sockaddr_in
address_of(const char *text)
{
	const char *colon = strrchr(text, ':');
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	rvp_check(colon != NULL, "an address without a port");
	a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	return a;
}

/* ---- raw TCP ---- */

static void
raw_serve(int out)
{
	static char piece[PIECE];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int fd, l = socket(AF_INET, SOCK_STREAM, 0);

	rvp_check(l >= 0 && bind(l, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(l, 1) == 0 &&
		getsockname(l, (struct sockaddr *)&a, &len) == 0,
	    "listen");
	dprintf(out, "listening 127.0.0.1:%u\n", ntohs(a.sin_port));
	fd = accept(l, NULL, NULL);
	while (recv(fd, piece, sizeof(piece), 0) > 0)
		;
}

static void
raw_dial(const char *addr)
{
	static char piece[PIECE];
	struct sockaddr_in a = address_of(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	rvp_check(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "connect");
	memset(piece, 1, sizeof(piece));
	while (send(fd, piece, sizeof(piece), MSG_NOSIGNAL) > 0)
		;
}

/* ---- ours ---- */

static void *
watch_main(void *arg)
{
	const struct timespec pause = {0, 1000000};
	struct watch *w = arg;
	reeve_stats_t st = {.size = sizeof(st)};
	uint64_t accepted;
	int side = w->hands == NULL;
	unsigned i;

	for (;;) {
		/* First what was accepted: bytes that leave in between must not count as waiting. */
		for (accepted = 0, i = 0; w->hands != NULL && i < w->streams; i++)
			accepted += rvq_counter_get(&w->hands[i].accepted);
		if (reeve_ctl_stats(w->k, &st) != 0)
			return NULL;
		if (accepted > st.bytes_out)
			rvq_counter_max(&w->seen->unsent, accepted - st.bytes_out);
		if (side == 1) {
			rvq_counter_max(&w->seen->held, st.held > st.unread ? st.held : st.unread);
			rvq_counter_max(&w->seen->window, st.window_max);
		}
		rvq_counter_set(&w->seen->rtt[side], st.rtt_us);
		rvq_counter_max(&w->seen->rtt_max[side], st.rtt_us);
		nanosleep(&pause, NULL);
	}
}

static void *
read_main(void *arg)
{
	reeve_stream_t *s = arg;
	char *piece = malloc(PIECE);

	rvp_check(piece != NULL, "memory");
	while (reeve_read(s, piece, PIECE) > 0)
		;
	reeve_close(s);
	free(piece);
	return NULL;
}

static void *
write_main(void *arg)
{
	struct hand *h = arg;
	char *piece = malloc(PIECE);
	reeve_stream_t *s;
	reeve_ssize n;

	rvp_check(piece != NULL, "memory");
	memset(piece, 1, PIECE);
	rvp_must(reeve_open(h->k, &s, -1), "open");
	while ((n = reeve_write(s, piece, PIECE)) > 0)
		rvq_counter_add(&h->accepted, (uint64_t)n);
	reeve_close(s);
	free(piece);
	return NULL;
}

static void
our_cfg(const struct rvp_wan_flow *f, reeve_cfg_t *cfg)
{
	reeve_cfg_init(cfg);
	cfg->max_window = f->kind->max_window;
}

static void
our_serve(const struct rvp_wan_flow *f, int out)
{
	reeve_listener_t *l;
	reeve_stream_t *s;
	reeve_conn_t *c;
	reeve_rt_t *rt;
	reeve_cfg_t cfg;
	pthread_t t;
	struct watch w = {.seen = f->seen, .streams = f->streams};
	char bound[128];

	our_cfg(f, &cfg);
	rvp_must(reeve_rt_create(&rt, NULL), "runtime");
	rvp_must(reeve_listen(&l, rt, "tcp://127.0.0.1:0", &cfg), "listen");
	rvp_must(reeve_listener_addr(l, bound, sizeof(bound)), "address");
	dprintf(out, "listening %s\n", bound + strlen("tcp://"));
	rvp_must(reeve_listener_accept(l, &c, -1), "accept");
	w.k = reeve_conn_ctl(c);
	rvp_thread(&t, watch_main, &w, RVP_ANY_CPU);
	while (reeve_accept(w.k, &s, -1) == 0)
		rvp_thread(&t, read_main, s, RVP_ANY_CPU);
}

static void
our_dial(const struct rvp_wan_flow *f, const char *addr)
{
	struct watch w = {.seen = f->seen, .streams = f->streams};
	reeve_conn_t *c;
	reeve_rt_t *rt;
	reeve_cfg_t cfg;
	pthread_t t;
	char url[128];
	unsigned i;

	our_cfg(f, &cfg);
	rvp_must(reeve_rt_create(&rt, NULL), "runtime");
	snprintf(url, sizeof(url), "tcp://%s", addr);
	rvp_must(reeve_dial(&c, rt, url, &cfg, 10000), "dial");
	w.k = reeve_conn_ctl(c);
	w.hands = calloc(f->streams, sizeof(w.hands[0]));
	rvp_check(w.hands != NULL, "memory");
	for (i = 0; i < f->streams; i++) {
		w.hands[i].k = w.k;
		rvp_thread(&t, write_main, &w.hands[i], RVP_ANY_CPU);
	}
	watch_main(&w);
}

/* ---- processes ---- */

/* Reads "listening ADDR" from a new end. */
static void
read_address(int fd, char *addr, size_t n)
{
	FILE *in = fdopen(fd, "r");
	char line[160];

	rvp_check(in != NULL && fgets(line, sizeof(line), in) != NULL &&
		strncmp(line, "listening ", 10) == 0,
	    "an end that does not listen");
	line[strcspn(line, "\n")] = '\0';
	snprintf(addr, n, "%s", line + 10);
	fclose(in);
}

pid_t
rvp_wan_serve(const struct rvp_wan_flow *f, char *addr, size_t n)
{
	int v[2];
	pid_t pid;

	rvp_check(pipe(v) == 0, "pipe");
	pid = child();
	if (pid == 0) {
		close(v[0]);
		if (f->kind->program != NULL) {
			dup2(v[1], STDOUT_FILENO);
			execl(f->kind->program, f->kind->program, "serve", "127.0.0.1:0",
			    (char *)NULL);
		} else if (f->kind->raw) {
			raw_serve(v[1]);
		} else {
			our_serve(f, v[1]);
		}
		_exit(EXIT_FAILURE);
	}
	close(v[1]);
	read_address(v[0], addr, n);
	return pid;
}

pid_t
rvp_wan_dial(const struct rvp_wan_flow *f, const char *addr)
{
	char streams[16], piece[16];
	pid_t pid = child();

	if (pid != 0)
		return pid;
	if (f->kind->program != NULL) {
		snprintf(streams, sizeof(streams), "%u", f->streams);
		snprintf(piece, sizeof(piece), "%u", PIECE);
		execl(f->kind->program, f->kind->program, "dial", addr, "bench", streams, piece,
		    "600", (char *)NULL);
	} else if (f->kind->raw) {
		raw_dial(addr);
	} else {
		our_dial(f, addr);
	}
	_exit(EXIT_FAILURE);
}

void
rvp_wan_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

uint64_t
rvp_wan_rss(pid_t pid, int peak)
{
	const char *what = peak ? "VmHWM:" : "VmRSS:";
	char name[64], line[256];
	unsigned long kib = 0;
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	in = fopen(name, "r");
	rvp_check(in != NULL, "an end is gone");
	while (fgets(line, sizeof(line), in) != NULL)
		if (strncmp(line, what, strlen(what)) == 0)
			kib = strtoul(line + strlen(what), NULL, 10);
	fclose(in);
	return (uint64_t)kib * 1024;
}
