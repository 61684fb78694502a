/* line_sock.c - see line_sock.h. */
#include <config.h>

#include "tests/kit/line_sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MSS 1448 /* as on an Ethernet: a loopback segment does not fit small buffers */

bool
rvt_line_parse(const char *text, struct sockaddr_in *a)
{
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	errno = EINVAL;
	if (colon == NULL || (size_t)(colon - text) >= sizeof(host))
		return false;
	memcpy(host, text, (size_t)(colon - text));
	a->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	return inet_pton(AF_INET, host, &a->sin_addr) == 1;
}

int
rvt_line_socket(size_t bufsize)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, mss = MSS, size = (int)bufsize;

	if (fd < 0)
		return -1;
	/* Before connect and listen: the window is negotiated there, and accepted sockets inherit. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss));
	/* One that paces by measured rates would be a second line behind this one. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	return fd;
}

int
rvt_line_listen(const char *at, size_t bufsize, char *addr, size_t n)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	char host[INET_ADDRSTRLEN];
	int fd, one = 1, rc;

	if (!rvt_line_parse(at != NULL ? at : "127.0.0.1:0", &a))
		return -1;
	fd = rvt_line_socket(bufsize);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 1024) != 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) != 0) {
		rc = errno;
		close(fd);
		errno = rc;
		return -1;
	}
	inet_ntop(AF_INET, &a.sin_addr, host, sizeof(host));
	snprintf(addr, n, "%s:%u", host, ntohs(a.sin_port));
	return fd;
}

void
rvt_line_reset(int fd)
{
	struct linger reset = {1, 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}
