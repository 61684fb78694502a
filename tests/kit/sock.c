/* sock.c - see sock.h. */
#include <config.h>

#include "tests/kit/sock.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void
rvt_unix_pair(int v[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, v), 0);
}

void
rvt_pipe_pair(int v[2])
{
	ck_assert_int_eq(pipe(v), 0);
}

void
rvt_tcp_pair(int v[2])
{
	struct sockaddr_in in = {0};
	socklen_t len = sizeof(in);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	in.sin_family = AF_INET;
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(l, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(listen(l, 1), 0);
	ck_assert_int_eq(getsockname(l, (struct sockaddr *)&in, &len), 0);
	v[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(v[0], (struct sockaddr *)&in, sizeof(in)), 0);
	v[1] = accept(l, NULL, NULL);
	ck_assert_int_ge(v[1], 0);
	close(l);
}

void
rvt_poll(int fd, short events)
{
	struct pollfd p = {fd, events, 0};
	int rc;

	do {
		rc = poll(&p, 1, RVT_POLL_MS);
	} while (rc < 0 && errno == EINTR);
	ck_assert_int_eq(rc, 1);
}
