/* line_way.c - see line_way.h. */
#include <config.h>

#include "tests/kit/line_way.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Bytes at n Mbit/s take n * 8000 / mbit nanoseconds. */
static uint64_t
time_of(const struct rvt_pace *p, uint64_t bytes)
{
	return p->mbit == 0 ? 0 : bytes * 8000 / p->mbit;
}

uint64_t
rvt_pace_queued(const struct rvt_pace *p, uint64_t now)
{
	return p->clock > now ? (p->clock - now) * p->mbit / 8000 : 0;
}

bool
rvt_way_init(struct rvt_way *w, const struct rvt_pace *p)
{
	memset(w, 0, sizeof(*w));
	w->room = 64;
	/* Pages are only there once touched: most connections need few of them. */
	w->ring = mmap(NULL, p->hold, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->ring == MAP_FAILED)
		w->ring = NULL;
	w->marks = malloc(w->room * sizeof(w->marks[0]));
	return w->ring != NULL && w->marks != NULL;
}

void
rvt_way_free(struct rvt_way *w, const struct rvt_pace *p)
{
	if (w->ring != NULL)
		munmap(w->ring, p->hold);
	free(w->marks);
}

size_t
rvt_way_room(const struct rvt_way *w, const struct rvt_pace *p, uint64_t now, uint64_t *when)
{
	size_t held = (size_t)(w->in - w->out), room = p->hold - held, worth;
	uint64_t queued = rvt_pace_queued(p, now);

	*when = UINT64_MAX;
	worth = p->hold / 4 < p->piece ? p->hold / 4 : p->piece;
	if (room < worth || room == 0)
		return 0;
	worth = p->queue / 4 < p->piece ? p->queue / 4 : p->piece;
	if (p->mbit != 0 && queued + worth > p->queue) {
		*when = p->clock - time_of(p, p->queue - worth);
		return 0;
	}
	if (p->mbit != 0 && room > p->queue - queued)
		room = (size_t)(p->queue - queued);
	return room < 65536 ? room : 65536;
}

/* The ring's n bytes at a position, in one or two parts. */
static int
parts(const struct rvt_way *w, size_t size, uint64_t at, size_t n, struct iovec v[2])
{
	size_t from = (size_t)(at % size), first = n < size - from ? n : size - from;

	v[0].iov_base = w->ring + from;
	v[0].iov_len = first;
	v[1].iov_base = w->ring;
	v[1].iov_len = n - first;
	return n > first ? 2 : 1;
}

static bool
mark(struct rvt_way *w, uint64_t end, uint64_t due)
{
	struct rvt_mark *more;
	size_t i;

	if (w->nmarks == w->room) {
		more = malloc(2 * w->room * sizeof(w->marks[0]));
		if (more == NULL)
			return false;
		for (i = 0; i < w->nmarks; i++)
			more[i] = w->marks[(w->head + i) % w->room];
		free(w->marks);
		w->marks = more;
		w->head = 0;
		w->room *= 2;
	}
	w->marks[(w->head + w->nmarks++) % w->room] = (struct rvt_mark){end, due};
	return true;
}

static void
end_with(struct rvt_way *w, const struct rvt_pace *p, enum rvt_way_end end, uint64_t now)
{
	w->end = end;
	w->end_due = (p->clock > now ? p->clock : now) + p->delay;
}

void
rvt_way_read(struct rvt_way *w, struct rvt_pace *p, int fd, size_t n, uint64_t now)
{
	struct iovec v[2];
	ssize_t got;
	size_t piece;

	if (w->in == w->out) /* the same pages again while little is under way */
		w->in = w->out = w->ready = 0;
	got = readv(fd, v, parts(w, p->hold, w->in, n, v));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		end_with(w, p, got == 0 ? RVT_WAY_FIN : RVT_WAY_RST, now);
		return;
	}
	if (p->clock < now)
		p->clock = now;
	while (got > 0) {
		piece = (size_t)got < p->piece ? (size_t)got : p->piece;
		p->clock += time_of(p, piece);
		w->in += piece;
		got -= (ssize_t)piece;
		if (!mark(w, w->in, p->clock + p->delay)) {
			end_with(w, p, RVT_WAY_RST, now);
			return;
		}
	}
}

static void
ripen(struct rvt_way *w, uint64_t now)
{
	while (w->nmarks > 0 && w->marks[w->head].due <= now) {
		w->ready = w->marks[w->head].end;
		w->head = (w->head + 1) % w->room;
		w->nmarks--;
	}
}

long
rvt_way_write(struct rvt_way *w, const struct rvt_pace *p, int fd, size_t n, uint64_t now)
{
	struct msghdr m;
	struct iovec v[2];
	ssize_t put;

	ripen(w, now);
	w->blocked = false;
	if (n > w->ready - w->out)
		n = (size_t)(w->ready - w->out);
	if (n == 0)
		return 0;
	memset(&m, 0, sizeof(m));
	m.msg_iov = v;
	m.msg_iovlen = (size_t)parts(w, p->hold, w->out, n, v);
	put = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (put < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (put < 0)
		put = 0;
	w->out += (uint64_t)put;
	w->blocked = (size_t)put < n;
	return (long)put;
}

void
rvt_way_drop(struct rvt_way *w)
{
	w->out = w->ready = w->in;
	w->nmarks = 0;
	w->blocked = false;
}

void
rvt_way_break(struct rvt_way *w, const struct rvt_pace *p, uint64_t now)
{
	if (w->end != RVT_WAY_RST)
		end_with(w, p, RVT_WAY_RST, now);
}

bool
rvt_way_over(const struct rvt_way *w, uint64_t now)
{
	return w->end != RVT_WAY_OPEN && w->in == w->out && now >= w->end_due;
}

uint64_t
rvt_way_next(const struct rvt_way *w)
{
	if (w->nmarks > 0 && !w->blocked)
		return w->marks[w->head].due;
	if (w->end != RVT_WAY_OPEN && w->in == w->out)
		return w->end_due;
	return UINT64_MAX;
}
