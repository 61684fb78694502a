/* peer.c - see peer.h. */
#include <config.h>

#include "perf/peer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/flow.h"

enum { DATA = 0, UPDATE = 1, PING = 2 };
enum { SYN = 1, ACK = 2 };

static uint32_t
get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static void
send_all(struct rvp_peer *p, const uint8_t *bytes, size_t n)
{
	struct pollfd pfd = {.fd = p->fd, .events = POLLOUT};
	size_t at = 0;
	ssize_t r;

	while (at < n) {
		r = send(p->fd, bytes + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (r > 0)
			at += (size_t)r;
		else if (errno == EAGAIN)
			(void)poll(&pfd, 1, -1);
		else
			rvp_check(false, "send");
	}
}

static void
header(struct rvp_peer *p, uint8_t type, uint16_t flags, uint32_t id, uint32_t length)
{
	uint8_t h[12] = {0, type, (uint8_t)(flags >> 8), (uint8_t)flags};

	put32(h + 4, id);
	put32(h + 8, length);
	send_all(p, h, sizeof(h));
}

static uint32_t
id_of(unsigned i)
{
	return 2 * i + 1;
}

static void
take(struct rvp_peer *p)
{
	uint32_t id = get32(p->in + 4), n = get32(p->in + 8);
	unsigned flags = (unsigned)p->in[2] << 8 | p->in[3];

	rvp_check(p->in[1] == UPDATE || p->in[1] == PING, "a frame that the peer did not expect");
	if (p->in[1] == UPDATE && (id == id_of(0) || id == id_of(1)))
		p->credit[id / 2] += n;
	else if (p->in[1] == PING && flags == SYN)
		header(p, PING, ACK, 0, n);
}

void
rvp_peer_listen(struct rvp_peer *p, int ms)
{
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
	ssize_t r;

	if (poll(&pfd, 1, ms) <= 0)
		return;
	while ((r = recv(p->fd, p->in + p->have, sizeof(p->in) - p->have, MSG_DONTWAIT)) > 0) {
		p->have += (size_t)r;
		if (p->have < sizeof(p->in))
			continue;
		p->have = 0;
		take(p);
	}
	rvp_check(r < 0 && errno == EAGAIN, "the connection ended");
}

int
rvp_peer_start(struct rvp_peer *p)
{
	int fd[2];
	unsigned i;

	rvp_sockets(RVP_UNIX, fd);
	*p = (struct rvp_peer){.fd = fd[0], .credit = {RVP_PEER_WINDOW, RVP_PEER_WINDOW}};
	for (i = 0; i < 2; i++)
		header(p, UPDATE, SYN, id_of(i), 0);
	return fd[1];
}

static void
data(struct rvp_peer *p, unsigned i, uint32_t n)
{
	static uint8_t body[RVP_PEER_UNIT];

	if (n == 0)
		return;
	while (p->credit[i] < n)
		rvp_peer_listen(p, -1);
	p->credit[i] -= n;
	p->sent[i] += n;
	header(p, DATA, 0, id_of(i), n);
	send_all(p, body, n);
}

uint64_t
rvp_peer_interleave(struct rvp_peer *p, uint32_t body, unsigned frames)
{
	while (frames-- > 0 && p->credit[0] >= body) {
		data(p, 0, body);
		data(p, 1, RVP_PEER_UNIT - body);
		rvp_peer_listen(p, 0);
	}
	return p->sent[0];
}

void
rvp_peer_stop(struct rvp_peer *p)
{
	close(p->fd);
}
