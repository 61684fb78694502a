/* notifications_raw.c - the carrier that has no library: a socket, four bytes of length in front of each message. */
#include <config.h>

#include "perf/notifications.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "perf/flow.h"
#include "queues/cell.h"

#define AHEAD 65536u /* bytes of a read that is not straight into a message */

struct raw_end {
	int fd;
	size_t at, n; /* what was read ahead */
	uint8_t ahead[AHEAD];
};

struct raw {
	struct raw_end end[2];
	bool requests;
	pthread_t responder;
	struct rvq_cell64 size; /* of a response */
};

static void
put(struct raw_end *e, const uint8_t *bytes, size_t n)
{
	uint32_t head = (uint32_t)n;
	struct iovec v[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)bytes, n}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = n > 0 ? 2 : 1};
	size_t left = sizeof(head) + n, part;
	ssize_t put;

	while (left > 0) {
		put = sendmsg(e->fd, &m, MSG_NOSIGNAL);
		rvp_check(put > 0, "send");
		left -= (size_t)put;
		for (; put > 0 && left > 0; put -= (ssize_t)part) {
			part = (size_t)put < m.msg_iov->iov_len ? (size_t)put : m.msg_iov->iov_len;
			m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + part;
			m.msg_iov->iov_len -= part;
			if (m.msg_iov->iov_len == 0) {
				m.msg_iov++;
				m.msg_iovlen--;
			}
		}
	}
}

/* False at the end. */
static bool
get(struct raw_end *e, uint8_t *out, size_t n)
{
	ssize_t got;
	size_t m;

	while (n > 0) {
		if (e->at < e->n) {
			m = e->n - e->at < n ? e->n - e->at : n;
			memcpy(out, e->ahead + e->at, m);
			e->at += m;
		} else if (n >= AHEAD) {
			if ((got = recv(e->fd, out, n, 0)) <= 0)
				return false;
			m = (size_t)got;
		} else {
			if ((got = recv(e->fd, e->ahead, AHEAD, 0)) <= 0)
				return false;
			e->at = 0;
			e->n = (size_t)got;
			m = 0;
		}
		out += m;
		n -= m;
	}
	return true;
}

static bool
get_message(struct raw_end *e, uint8_t **bytes, size_t *n)
{
	uint32_t head;

	if (!get(e, (uint8_t *)&head, sizeof(head)))
		return false;
	*n = head;
	*bytes = malloc(head > 0 ? head : 1);
	rvp_check(*bytes != NULL, "memory");
	return get(e, *bytes, head);
}

static void *
responder_main(void *arg)
{
	struct raw *r = arg;
	uint8_t *bytes;
	size_t n;

	while (get_message(&r->end[1], &bytes, &n)) {
		free(bytes);
		n = rvq_cell64_get(&r->size);
		bytes = rvp_zeros(n);
		put(&r->end[1], bytes, n);
		free(bytes);
	}
	return NULL;
}

static void *
raw_open(const struct rvp_wanted *w)
{
	struct raw *r = calloc(1, sizeof(*r));
	int fd[2];

	rvp_check(r != NULL, "memory");
	rvp_sockets(RVP_TCP, fd);
	r->end[0].fd = fd[0];
	r->end[1].fd = fd[1];
	r->requests = w->requests;
	if (w->requests)
		rvp_thread(&r->responder, responder_main, r, RVP_ANY_CPU);
	return r;
}

static void
raw_send(void *run, const uint8_t *from, size_t n)
{
	struct raw *r = run;
	uint8_t *bytes = rvp_zeros(n);

	if (from != NULL)
		memcpy(bytes, from, n);
	put(&r->end[0], bytes, n);
	free(bytes);
}

static void
raw_receive(void *run, struct rvp_message *m)
{
	struct raw *r = run;
	uint8_t *bytes;

	rvp_check(get_message(&r->end[1], &bytes, &m->n), "receive");
	m->own = bytes;
	m->bytes = bytes;
}

static void
raw_let_go(void *run, struct rvp_message *m)
{
	(void)run;
	free(m->own);
}

static void
raw_ask(void *run, size_t n)
{
	static const uint8_t two[2];
	struct raw *r = run;
	uint8_t *bytes;
	size_t got;

	rvq_cell64_put(&r->size, n);
	put(&r->end[0], two, sizeof(two));
	rvp_check(get_message(&r->end[0], &bytes, &got) && got == n, "response");
	free(bytes);
}

static void
raw_close(void *run)
{
	struct raw *r = run;

	close(r->end[0].fd);
	if (r->requests)
		pthread_join(r->responder, NULL);
	close(r->end[1].fd);
	free(r);
}

const struct rvp_carrier rvp_carrier_raw = {
    raw_open, raw_send, raw_receive, raw_let_go, raw_ask, raw_close, NULL};
