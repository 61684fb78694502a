/* peer.c - see peer.h. */
#include <config.h>

#include "tests/kit/peer.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE 65536u

int
rvt_slow(int ms)
{
	const char *s = getenv("REEVE_TEST_SLOW");
	int by = s != NULL ? atoi(s) : 1;

	return by > 1 ? ms * by : ms;
}

uint64_t
rvt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
rvt_yield(unsigned times)
{
	for (uint64_t until = rvt_now_ms() + 1; times > 0 && rvt_now_ms() <= until; times--)
		sched_yield();
}

void
rvt_peer_init(struct rvt_peer *p, int fd)
{
	memset(p, 0, sizeof(*p));
	p->fd = fd;
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

void
rvt_peer_close(struct rvt_peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void
rvt_peer_fini(struct rvt_peer *p)
{
	rvt_peer_close(p);
	rvt_bytes_fini(&p->in);
	rvt_bytes_fini(&p->out);
}

void
rvt_peer_shut(struct rvt_peer *p)
{
	ck_assert_int_eq(shutdown(p->fd, SHUT_WR), 0);
}

/* Wait for one of events until the deadline; fails the test then. */
static void
wait_for(struct rvt_peer *p, short events, uint64_t deadline)
{
	struct pollfd pfd = {p->fd, events, 0};
	uint64_t now = rvt_now_ms();
	int rc = 0;

	if (now < deadline)
		do {
			rc = poll(&pfd, 1, (int)(deadline - now));
		} while (rc < 0 && errno == EINTR);
	ck_assert_msg(rc == 1, "the peer waited in vain (events %d)", events);
}

/* Receive what there is.  False: nothing now, or the end. */
static bool
receive(struct rvt_peer *p)
{
	uint8_t *to;
	ssize_t n;

	if (p->end)
		return false;
	if (p->in.at > PIECE)
		rvt_bytes_pack(&p->in);
	to = rvt_bytes_more(&p->in, PIECE);
	n = recv(p->fd, to, PIECE, 0);
	p->in.n -= PIECE - (n > 0 ? (size_t)n : 0);
	if (n > 0) {
		p->seen += (uint64_t)n;
		return true;
	}
	if (n < 0 && errno == EAGAIN)
		return false;
	ck_assert_msg(n == 0 || errno == ECONNRESET, "recv: %s", strerror(errno));
	p->end = true;
	return false;
}

bool
rvt_peer_try_send(struct rvt_peer *p)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);
	size_t at = 0;
	ssize_t n;

	while (at < p->out.n) {
		n = send(p->fd, p->out.p + at, p->out.n - at, MSG_NOSIGNAL);
		if (n > 0) {
			at += (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN)
			break;
		if (!receive(p))
			wait_for(p, p->end ? POLLOUT : POLLOUT | POLLIN, deadline);
	}
	n = (ssize_t)(p->out.n - at);
	p->out.n = p->out.at = 0;
	return n == 0;
}

void
rvt_peer_send(struct rvt_peer *p)
{
	ck_assert_msg(rvt_peer_try_send(p), "the peer cannot send: %s", strerror(errno));
}

void
rvt_peer_put(struct rvt_peer *p, unsigned type, unsigned flags, uint32_t id, uint32_t len)
{
	rvt_put(&p->out, type, flags, id, len);
	rvt_peer_send(p);
}

void
rvt_peer_data(struct rvt_peer *p, unsigned flags, uint32_t id, uint32_t n, uint64_t from)
{
	rvt_put_data(&p->out, flags, id, n, from);
	rvt_peer_send(p);
}

void
rvt_peer_receive(struct rvt_peer *p)
{
	while (receive(p))
		;
}

bool
rvt_peer_more(struct rvt_peer *p)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (!receive(p)) {
		if (p->end)
			return false;
		wait_for(p, POLLIN, deadline);
	}
	return true;
}

/* The next frame of any kind; false: the end. */
static bool
next_any(struct rvt_peer *p, struct rvt_frame *f)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (!rvt_next(&p->in, f)) {
		if (p->end) {
			ck_assert_msg(p->in.at == p->in.n, "the end came inside a frame");
			return false;
		}
		if (!receive(p) && !p->end)
			wait_for(p, POLLIN, deadline);
	}
	ck_assert_uint_eq(f->version, 0);
	return true;
}

/* Is f the test's to see?  Pings are dealt with as told. */
static bool
for_test(struct rvt_peer *p, const struct rvt_frame *f)
{
	uint32_t value = f->len;

	if (f->type != RVT_PING || p->pings == RVT_PINGS_KEEP)
		return true;
	if (p->pings == RVT_PINGS_ANSWER && (f->flags & RVT_SYN)) {
		rvt_put(&p->out, RVT_PING, RVT_ACK, 0, value);
		(void)rvt_peer_try_send(p);
	}
	return false;
}

bool
rvt_peer_next(struct rvt_peer *p, struct rvt_frame *f)
{
	while (next_any(p, f))
		if (for_test(p, f))
			return true;
	return false;
}

bool
rvt_peer_next_but(struct rvt_peer *p, struct rvt_frame *f, uint32_t id, uint64_t *left)
{
	while (*left > 0) {
		ck_assert_msg(rvt_peer_next(p, f), "the end with %llu bytes missing",
		    (unsigned long long)*left);
		if (f->type != RVT_DATA || f->id != id)
			return true;
		ck_assert_uint_le(f->len, *left);
		*left -= f->len;
	}
	return false;
}

static void
want(struct rvt_peer *p, struct rvt_frame *f, unsigned type, uint32_t id)
{
	ck_assert_msg(rvt_peer_next(p, f), "the end instead of type %u, id %u", type, id);
	ck_assert_msg(f->type == type && f->id == id,
	    "type %u, flags %u, id %u, length %u instead of type %u, id %u", f->type, f->flags,
	    f->id, f->len, type, id);
}

void
rvt_peer_want(struct rvt_peer *p, unsigned type, unsigned flags, uint32_t id, uint32_t len)
{
	struct rvt_frame f;

	want(p, &f, type, id);
	ck_assert_msg(f.flags == flags && f.len == len,
	    "type %u, id %u: flags %u, length %u instead of flags %u, length %u", type, id, f.flags,
	    f.len, flags, len);
}

static void
check_body(const struct rvt_frame *f, uint64_t from)
{
	for (uint32_t i = 0; i < f->len; i++)
		if (f->body[i] != rvt_byte(f->id, from + i))
			ck_abort_msg(
			    "id %u: byte %llu is wrong", f->id, (unsigned long long)(from + i));
}

void
rvt_peer_want_data(struct rvt_peer *p, unsigned flags, uint32_t id, uint32_t n, uint64_t from)
{
	struct rvt_frame f;

	want(p, &f, RVT_DATA, id);
	ck_assert_msg(f.flags == flags && f.len == n,
	    "DATA %u: flags %u, length %u instead of flags %u, length %u", id, f.flags, f.len,
	    flags, n);
	check_body(&f, from);
}

unsigned
rvt_peer_want_bytes(struct rvt_peer *p, uint32_t id, uint64_t n, uint64_t from)
{
	struct rvt_frame f;
	unsigned flags = 0;

	while (n > 0) {
		want(p, &f, RVT_DATA, id);
		ck_assert_msg(f.len <= n, "DATA %u: %u bytes, at most %llu", id, f.len,
		    (unsigned long long)n);
		check_body(&f, from);
		from += f.len;
		n -= f.len;
		ck_assert_msg(!(f.flags & RVT_FIN) || n == 0, "FIN before the last byte");
		flags |= f.flags;
	}
	return flags;
}

void
rvt_peer_want_end(struct rvt_peer *p)
{
	struct rvt_frame f;

	if (rvt_peer_next(p, &f))
		ck_abort_msg("type %u, flags %u, id %u, length %u instead of the end", f.type,
		    f.flags, f.id, f.len);
}

void
rvt_peer_want_goaway_end(struct rvt_peer *p, uint32_t code)
{
	rvt_peer_want(p, RVT_GOAWAY, 0, 0, code);
	rvt_peer_want_end(p);
}

/* Two pings: what was owed when the first was answered leaves before the second is. */
void
rvt_peer_barrier(struct rvt_peer *p)
{
	struct rvt_bytes kept = {0};
	struct rvt_frame f;
	size_t from;

	for (int i = 0; i < 2; i++) {
		rvt_peer_put(p, RVT_PING, RVT_SYN, 0, ++p->token);
		for (;;) {
			ck_assert_msg(next_any(p, &f), "the end instead of a pong");
			if (f.type == RVT_PING && f.flags == RVT_ACK && f.len == p->token)
				break;
			from = 12 + (f.type == RVT_DATA ? f.len : 0);
			memcpy(rvt_bytes_more(&kept, from), f.body - 12, from);
		}
	}
	from = p->in.n - p->in.at;
	if (from > 0)
		memcpy(rvt_bytes_more(&kept, from), p->in.p + p->in.at, from);
	rvt_bytes_fini(&p->in);
	p->in = kept;
}

void
rvt_peer_want_none(struct rvt_peer *p)
{
	struct rvt_frame f;

	rvt_peer_barrier(p);
	while (rvt_next(&p->in, &f))
		if (for_test(p, &f))
			ck_abort_msg("type %u, flags %u, id %u, length %u, but nothing was due",
			    f.type, f.flags, f.id, f.len);
}

void
rvt_peer_settle(struct rvt_peer *p)
{
	struct rvt_frame f;
	unsigned pings;

	do {
		pings = 0;
		rvt_peer_barrier(p);
		for (; rvt_next(&p->in, &f); pings++) {
			ck_assert_msg(f.type == RVT_PING && f.flags == RVT_SYN, "type %u, flags %u",
			    f.type, f.flags);
			rvt_peer_put(p, RVT_PING, RVT_ACK, 0, f.len);
		}
	} while (pings > 0);
}
