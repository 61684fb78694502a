/* test_fd_tune.c - the options of a TCP socket. */
#include <config.h>

#include "lib/transport/transport.h"

#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <stdio.h>
#include <stdlib.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_BUF_LOCK /* Linux 5.14 */
#define SO_BUF_LOCK 72
#endif

static int
opt(int fd, int name)
{
	int v = 0;
	socklen_t len = sizeof(v);

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, name, &v, &len), 0);
	return v;
}

/* The kernel doubles what it is given, and leaves to us what nobody chose. */
START_TEST(a_near_peer_gets_a_bounded_send_buffer)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int v[2];

	rvt_tcp_pair(v);
	rv_fd_tune_tcp(v[0]);
	ck_assert_int_eq(getsockopt(v[0], IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	if (info.tcpi_rtt > 0 && info.tcpi_rtt < RV_NEAR_SNDBUF / RV_NEAR_SNDBUF_PER_US)
		ck_assert_int_eq(opt(v[0], SO_SNDBUF), 2 * RV_NEAR_SNDBUF);
	close(v[0]);
	close(v[1]);
}
END_TEST

/* net.core.rmem_max, bytes. */
static int
most(void)
{
	FILE *f = fopen("/proc/sys/net/core/rmem_max", "re");
	char line[32] = "";

	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
	fclose(f);
	return atoi(line);
}

/* Where the system allows as much as we ask for; else its own tuning goes on. */
START_TEST(a_near_peer_gets_a_bounded_receive_buffer_or_the_systems)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int v[2], locked = 0, got;
	socklen_t size = sizeof(locked);

	rvt_tcp_pair(v);
	ck_assert_int_eq(getsockopt(v[0], IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	if (info.tcpi_rtt > 0 && info.tcpi_rtt < RV_NEAR_RCVBUF / RV_NEAR_RCVBUF_PER_US &&
	    getsockopt(v[0], SOL_SOCKET, SO_BUF_LOCK, &locked, &size) == 0) {
		rv_fd_tune_tcp(v[0]);
		got = opt(v[0], SO_RCVBUF);
		if (most() >= RV_NEAR_RCVBUF)
			ck_assert_int_eq(got, 2 * RV_NEAR_RCVBUF);
		ck_assert_int_eq(opt(v[0], SO_BUF_LOCK) & 2, most() >= RV_NEAR_RCVBUF ? 2 : 0);
	}
	close(v[0]);
	close(v[1]);
}
END_TEST

START_TEST(a_buffer_that_was_chosen_stays)
{
	const int name = _i ? SO_RCVBUF : SO_SNDBUF;
	int v[2], chosen = 100000, was;

	rvt_tcp_pair(v);
	ck_assert_int_eq(setsockopt(v[0], SOL_SOCKET, name, &chosen, sizeof(chosen)), 0);
	was = opt(v[0], name);
	rv_fd_tune_tcp(v[0]);
	ck_assert_int_eq(opt(v[0], name), was);
	close(v[0]);
	close(v[1]);
}
END_TEST

RVT_MAIN_TABLE("fd_tune", {&a_near_peer_gets_a_bounded_send_buffer, 0},
    {&a_near_peer_gets_a_bounded_receive_buffer_or_the_systems, 0},
    {&a_buffer_that_was_chosen_stays, 2})
