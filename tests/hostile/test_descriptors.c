/* test_descriptors.c - the process runs out of descriptors, or accept fails in other ways, while clients knock. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"
#include "queues/counter.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* --- accept that fails on request: the program's own comes before the system's */

static struct rvq_gauge accept_errno, accept_times, accepts;

int
accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	rvq_gauge_add(&accepts, 1);
	if (rvq_gauge_get(&accept_times) > 0) {
		rvq_gauge_sub(&accept_times, 1);
		errno = (int)rvq_gauge_get(&accept_errno);
		return -1;
	}
	return (int)syscall(SYS_accept4, fd, sa, len, flags);
}

/* --- a server that echoes */

static reeve_rt_t *rt;
static reeve_listener_t *l;
static pthread_t server;
static struct rvq_gauge warned;
static char path[128];
static int serve_rc;

static void
echo(reeve_stream_t *s, void *arg)
{
	reeve_buf_t *b;

	(void)arg;
	while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
		;
}

static void *
server_main(void *arg)
{
	(void)arg;
	serve_rc = reeve_serve(l, echo, NULL);
	return NULL;
}

static void
on_log(void *ctx, int level, const char *id, const char *text)
{
	(void)ctx;
	(void)level;
	(void)text;
	if (strcmp(id, "REEVE-SERVE-0001") == 0)
		rvq_gauge_add(&warned, 1);
}

static void
server_begin(void)
{
	reeve_rt_cfg_t rc;
	char addr[128];

	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	rc.log = on_log;
	rc.log_level = REEVE_LOG_WARN;
	ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
	rvt_scratch(RVT_UNIX, addr, sizeof(addr));
	strcpy(path, addr + strlen("unix://"));
	ck_assert_int_eq(reeve_listen(&l, rt, addr, NULL), 0);
	ck_assert_int_eq(pthread_create(&server, NULL, server_main, NULL), 0);
}

static void
server_end(void)
{
	reeve_listener_stop(l);
	pthread_join(server, NULL);
	ck_assert_int_eq(serve_rc, 0);
	reeve_listener_destroy(l);
	reeve_rt_destroy(rt);
	rvt_scratch_end();
}

/* A client with a descriptor and nothing else. */
static int
knock(struct rvt_peer *p)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	strcpy(sa.sun_path, path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		close(fd);
		return -1;
	}
	rvt_peer_init(p, fd);
	return 0;
}

/* It is served: an echo on stream id. */
static void
served(struct rvt_peer *p, uint32_t id)
{
	rvt_peer_data(p, RVT_SYN, id, 100, 0);
	rvt_peer_want(p, RVT_WU, RVT_ACK, id, 0);
	ck_assert_uint_eq(rvt_peer_want_bytes(p, id, 100, 0), 0);
}

#define CLIENTS 200

/* All descriptors are taken, by clients that are served and by clients that wait: nothing spins, nothing dies, those
 * who are served go on, and once some leave the others have their turn. */
START_TEST(scenario_96_descriptors_run_out_and_the_server_waits)
{
	struct rvt_peer p[CLIENTS];
	struct rlimit usual, few;
	uint64_t cpu, from, before;
	unsigned n = 0, live;

	server_begin();
	ck_assert_int_eq(knock(&p[0]), 0);
	served(&p[0], 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
	few = usual;
	few.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (n = 1; n < CLIENTS && knock(&p[n]) == 0; n++)
		;
	ck_assert_uint_gt(n, 4);
	ck_assert_uint_lt(n, 64);
	/* Connecting takes half of them, accepting the other half: at the end accept has none. */
	for (from = rvt_now_ms(); rvq_gauge_get(&warned) == 0;)
		ck_assert_uint_lt(rvt_now_ms() - from, (uint64_t)rvt_slow(RVT_WAIT_MS));
	live = (unsigned)rvq_gauge_get(&warned);
	from = rvt_now_ms();
	cpu = rvt_cpu_ms();
	before = rvq_gauge_get(&accepts);
	(void)poll(NULL, 0, 300); /* nothing is waited for: what happens meanwhile is counted */
	ck_assert_uint_le(rvt_cpu_ms() - cpu, (rvt_now_ms() - from) / 5);
	ck_assert_uint_le(rvq_gauge_get(&accepts) - before, 2 + (rvt_now_ms() - from) / 50);
	ck_assert_uint_eq(rvq_gauge_get(&warned), live); /* told once */
	served(&p[0], 3);
	/* Two of three go: the last is served within the second. */
	for (unsigned i = 1; i < n - 1; i++)
		rvt_peer_fini(&p[i]);
	from = rvt_now_ms();
	served(&p[n - 1], 1);
	ck_assert_uint_lt(rvt_now_ms() - from, (uint64_t)rvt_slow(1000));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
	rvt_peer_fini(&p[0]);
	rvt_peer_fini(&p[n - 1]);
	server_end();
}
END_TEST

/* Whatever accept says of one connection or of the machine, the listener goes on. */
START_TEST(scenario_96_accept_that_fails_is_tried_again)
{
	static const struct {
		int err;
		bool scarce;
	} row[] = {{ENOBUFS, true}, {ENOMEM, true}, {EMFILE, true}, {ENFILE, true},
	    {ECONNABORTED, false}, {EPROTO, false}, {EINTR, false}, {EPERM, false},
	    {ENETDOWN, false}, {EHOSTUNREACH, false}, {ENETUNREACH, false}};
	struct rvt_peer p;
	uint64_t from;

	server_begin();
	rvq_gauge_add(&accept_errno, (uint64_t)row[_i].err);
	rvq_gauge_add(&accept_times, 3);
	from = rvt_now_ms();
	ck_assert_int_eq(knock(&p), 0);
	served(&p, 1);
	ck_assert_uint_eq(rvq_gauge_get(&accept_times), 0);
	ck_assert_uint_lt(rvt_now_ms() - from, (uint64_t)rvt_slow(1000));
	ck_assert_uint_eq(rvq_gauge_get(&warned), row[_i].scarce);
	rvt_peer_fini(&p);
	server_end();
}
END_TEST

RVT_MAIN_TABLE("descriptors", {&scenario_96_descriptors_run_out_and_the_server_waits, 0},
    {&scenario_96_accept_that_fails_is_tried_again, 11})
