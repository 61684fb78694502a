/* test_fd_tune.c - the options of a TCP socket. */
#include <config.h>

#include "lib/transport/transport.h"

#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static int
sndbuf(int fd)
{
	int v = 0;
	socklen_t len = sizeof(v);

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &v, &len), 0);
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
		ck_assert_int_eq(sndbuf(v[0]), 2 * RV_NEAR_SNDBUF);
	close(v[0]);
	close(v[1]);
}
END_TEST

START_TEST(a_send_buffer_that_was_chosen_stays)
{
	int v[2], chosen = 100000, was;

	rvt_tcp_pair(v);
	ck_assert_int_eq(setsockopt(v[0], SOL_SOCKET, SO_SNDBUF, &chosen, sizeof(chosen)), 0);
	was = sndbuf(v[0]);
	rv_fd_tune_tcp(v[0]);
	ck_assert_int_eq(sndbuf(v[0]), was);
	close(v[0]);
	close(v[1]);
}
END_TEST

RVT_MAIN("fd_tune", &a_near_peer_gets_a_bounded_send_buffer, &a_send_buffer_that_was_chosen_stays)
