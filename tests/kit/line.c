/* line.c - see line.h.  The line's thread owns every connection; the figures are under a lock. */
#include <config.h>

#include "tests/kit/line.h"
#include "tests/kit/line_sock.h"
#include "tests/kit/line_way.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS          UINT64_C(1000000) /* nanoseconds */
#define BIN_NS      (RVT_LINE_BIN_MS * MS)
#define FLUSH_NS    (1000 * MS)  /* so long a cut waits for its receiver to have everything */
#define DRAIN_NS    (10000 * MS) /* and for both to end after its FINs */
#define NO_RATE     ((size_t)64 << 20)
#define QUEUE_MIN   65536u
#define SOCKBUF_MIN 65536u
#define SOCKBUF_MAX 262144u

enum link_state { LIVE, FLUSHING, DRAINING, OVER };

struct link {
	struct link *next;
	int fd[2];             /* [RVT_UP]: who connected.  way[d] goes from fd[d] to fd[!d] */
	struct rvt_way way[2]; /* over by FIN: passed[d] is final */
	uint64_t passed[2];
	bool done[2]; /* the end was passed on (draining: read to the end) */
	enum link_state state;
	uint64_t until;
};

struct rvt_line {
	struct rvt_line_cfg cfg;
	struct sockaddr_in to;
	char addr[32];
	int listener, stop;
	pthread_t thread;
	struct rvt_pace pace[2];
	size_t sockbuf;
	struct link *links;
	size_t nlinks;
	struct pollfd *fds;
	uint64_t from; /* the start */

	pthread_mutex_t lock; /* what follows, and pace[].clock for other threads */
	uint32_t *bins[2];
	size_t nbins[2], room[2];
	uint64_t total[2], clock[2];
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- connections ---- */

static void
link_free(struct rvt_line *l, struct link *k)
{
	int d;

	for (d = 0; d < 2; d++) {
		if (k->fd[d] >= 0)
			rvt_line_reset(k->fd[d]);
		rvt_way_free(&k->way[d], &l->pace[d]);
	}
	free(k);
}

static void
link_new(struct rvt_line *l)
{
	struct link *k;
	struct pollfd *more;
	int fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	k = calloc(1, sizeof(*k));
	more = realloc(l->fds, (2 * (l->nlinks + 1) + 2) * sizeof(l->fds[0]));
	if (more != NULL)
		l->fds = more;
	if (k == NULL || more == NULL) {
		rvt_line_reset(fd);
		free(k);
		return;
	}
	k->fd[RVT_UP] = fd;
	k->fd[RVT_DOWN] = rvt_line_socket(l->sockbuf);
	if (!rvt_way_init(&k->way[RVT_UP], &l->pace[RVT_UP]) ||
	    !rvt_way_init(&k->way[RVT_DOWN], &l->pace[RVT_DOWN]) || k->fd[RVT_DOWN] < 0 ||
	    (connect(k->fd[RVT_DOWN], (struct sockaddr *)&l->to, sizeof(l->to)) != 0 &&
		errno != EINPROGRESS)) {
		link_free(l, k);
		return;
	}
	k->next = l->links;
	l->links = k;
	l->nlinks++;
}

/* With the lock. */
static void
account(struct rvt_line *l, enum rvt_dir d, uint64_t n, uint64_t now)
{
	size_t bin = (size_t)((now - l->from) / BIN_NS), room = l->room[d];
	uint32_t *more;

	l->total[d] += n;
	if (bin >= room) {
		room = 2 * bin + 1024;
		more = realloc(l->bins[d], room * sizeof(more[0]));
		if (more != NULL) {
			memset(more + l->room[d], 0, (room - l->room[d]) * sizeof(more[0]));
			l->bins[d] = more;
			l->room[d] = room;
		}
	}
	if (bin < l->room[d]) {
		l->bins[d][bin] += (uint32_t)n;
		l->nbins[d] = bin + 1;
	}
}

/* The connection has passed the bytes after which it is to be cut. */
static void
cut(struct rvt_line *l, struct link *k, uint64_t now)
{
	if (!l->cfg.cut_fin) {
		k->state = FLUSHING;
		k->until = now + FLUSH_NS;
		return;
	}
	k->state = DRAINING;
	k->until = now + DRAIN_NS;
	shutdown(k->fd[0], SHUT_WR);
	shutdown(k->fd[1], SHUT_WR);
	k->done[0] = k->done[1] = false;
}

static void
link_write(struct rvt_line *l, struct link *k, enum rvt_dir d, uint64_t now)
{
	bool cuts = l->cfg.cut && l->cfg.cut_dir == d;
	size_t most = SIZE_MAX;
	long put;

	if (cuts)
		most = (size_t)(l->cfg.cut_bytes - k->passed[d]);
	/* Who got the bytes finds them counted. */
	pthread_mutex_lock(&l->lock);
	put = rvt_way_write(&k->way[d], &l->pace[d], k->fd[!d], most, now);
	if (put > 0) {
		k->passed[d] += (uint64_t)put;
		account(l, d, (uint64_t)put, now);
	}
	pthread_mutex_unlock(&l->lock);
	if (cuts && k->passed[d] == l->cfg.cut_bytes) {
		cut(l, k, now);
		return;
	}
	if (put < 0) {
		/* What the receiver sent before it went still goes back. */
		rvt_way_drop(&k->way[d]);
		if (k->done[!d])
			k->state = OVER;
		else
			rvt_way_break(&k->way[!d], &l->pace[!d], now);
		return;
	}
	if (k->done[d] || !rvt_way_over(&k->way[d], now))
		return;
	k->done[d] = true;
	if (k->way[d].end == RVT_WAY_RST) {
		k->state = OVER;
	} else {
		shutdown(k->fd[!d], SHUT_WR);
		if (k->done[!d]) {
			close(k->fd[0]);
			close(k->fd[1]);
			k->fd[0] = k->fd[1] = -1;
			k->state = OVER;
		}
	}
}

/* After a cut: until the receiver's system has everything, or until both have ended. */
static void
link_end(struct rvt_line *l, struct link *k, uint64_t now)
{
	static char trash[65536];
	int d, left = 0;
	ssize_t got;

	if (now >= k->until) {
		k->state = OVER;
	} else if (k->state == FLUSHING) {
		if (ioctl(k->fd[!l->cfg.cut_dir], SIOCOUTQ, &left) != 0 || left == 0)
			k->state = OVER;
	} else {
		for (d = 0; d < 2; d++) {
			got = k->done[d] ? 0 : recv(k->fd[d], trash, sizeof(trash), MSG_DONTWAIT);
			if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
				k->done[d] = true;
		}
		if (k->done[0] && k->done[1])
			k->state = OVER;
	}
}

/* ---- the thread ---- */

static void
sooner(uint64_t *next, uint64_t at)
{
	if (at < *next)
		*next = at;
}

/* What to wait for: events of the connection's two sockets; next: the time at the latest. */
static void
link_wait(struct rvt_line *l, struct link *k, struct pollfd fds[2], uint64_t now, uint64_t *next)
{
	uint64_t when;
	int d;

	for (d = 0; d < 2; d++)
		fds[d] = (struct pollfd){-1, 0, 0};
	if (k->state != LIVE) {
		sooner(next, now + MS);
		return;
	}
	for (d = 0; d < 2; d++) {
		if (k->way[d].end == RVT_WAY_OPEN) {
			if (rvt_way_room(&k->way[d], &l->pace[d], now, &when) > 0)
				fds[d].events |= POLLIN;
			sooner(next, when);
		}
		if (k->way[d].blocked)
			fds[!d].events |= POLLOUT;
		if (!k->done[d])
			sooner(next, rvt_way_next(&k->way[d]));
	}
	for (d = 0; d < 2; d++)
		if (fds[d].events != 0)
			fds[d].fd = k->fd[d];
}

static void
link_step(struct rvt_line *l, struct link *k, const struct pollfd fds[2], uint64_t now)
{
	uint64_t when;
	size_t room;
	int d;

	for (d = 0; d < 2 && k->state == LIVE; d++) {
		if ((fds[d].events & POLLIN) != 0 && fds[d].revents != 0 &&
		    k->way[d].end == RVT_WAY_OPEN) {
			room = rvt_way_room(&k->way[d], &l->pace[d], now, &when);
			if (room > 0)
				rvt_way_read(&k->way[d], &l->pace[d], k->fd[d], room, now);
		}
		link_write(l, k, (enum rvt_dir)d, now);
	}
	if (k->state == FLUSHING || k->state == DRAINING)
		link_end(l, k, now);
}

/* Waits for something to do: false when it is time to stop. */
static bool
wait_for(struct rvt_line *l)
{
	uint64_t now = now_ns(), next = UINT64_MAX, left;
	struct timespec t;
	struct link *k;
	size_t n = 2;

	l->fds[0] = (struct pollfd){l->stop, POLLIN, 0};
	l->fds[1] = (struct pollfd){l->listener, POLLIN, 0};
	for (k = l->links; k != NULL; k = k->next, n += 2)
		link_wait(l, k, l->fds + n, now, &next);
	pthread_mutex_lock(&l->lock);
	l->clock[0] = l->pace[0].clock;
	l->clock[1] = l->pace[1].clock;
	pthread_mutex_unlock(&l->lock);
	left = next > now ? next - now : 0;
	t.tv_sec = (time_t)(left / 1000000000);
	t.tv_nsec = (long)(left % 1000000000);
	if (ppoll(l->fds, n, next == UINT64_MAX ? NULL : &t, NULL) < 0)
		for (size_t i = 0; i < n; i++)
			l->fds[i].revents = 0;
	return l->fds[0].revents == 0;
}

static void *
run(void *arg)
{
	struct rvt_line *l = arg;
	struct link *k, **at;
	uint64_t now;
	size_t n;

	/* Waits end when they are due and not up to 50 us later. */
	(void)prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	while (wait_for(l)) {
		now = now_ns();
		for (k = l->links, n = 2; k != NULL; k = k->next, n += 2)
			link_step(l, k, l->fds + n, now);
		for (at = &l->links; (k = *at) != NULL;) {
			if (k->state != OVER) {
				at = &k->next;
				continue;
			}
			*at = k->next;
			l->nlinks--;
			link_free(l, k);
		}
		/* Who was first is last: the rate that is left goes round. */
		if (l->links != NULL && l->links->next != NULL) {
			k = l->links;
			l->links = k->next;
			for (at = &l->links; *at != NULL; at = &(*at)->next)
				;
			*at = k;
			k->next = NULL;
		}
		if (l->fds[1].revents != 0)
			link_new(l);
	}
	return NULL;
}

/* ---- start and end ---- */

static void
plan(struct rvt_line *l)
{
	const struct rvt_line_cfg *c = &l->cfg;
	uint64_t rate = c->mbit * 125, bdp = rate * 2 * c->delay_us / 1000; /* bytes/ms, bytes */
	struct rvt_pace p = {.delay = c->delay_us * 1000, .mbit = c->mbit};
	uint64_t least;

	p.queue = c->queue != 0 ? c->queue : 2 * bdp > QUEUE_MIN ? 2 * bdp : QUEUE_MIN;
	/* Half a millisecond's bytes leave together: smooth, and not many turns. */
	p.piece = c->mbit == 0 || rate / 2 > 65536 ? 65536
	    : rate / 2 < 2048                      ? 2048
						   : (size_t)(rate / 2);
	p.hold = (size_t)(p.queue + bdp / 2 + 65536);
	if (c->mbit == 0)
		p.hold = c->queue != 0 ? c->queue : NO_RATE;
	least = c->mbit == 0 ? SOCKBUF_MAX * 4 : 2 * rate;
	l->sockbuf = least < SOCKBUF_MIN          ? SOCKBUF_MIN
	    : least > SOCKBUF_MAX && c->mbit != 0 ? SOCKBUF_MAX
						  : (size_t)least;
	if (c->buffer != 0)
		p.hold = (size_t)(p.queue = l->sockbuf = c->buffer);
	l->pace[0] = l->pace[1] = p;
}

static void
line_free(struct rvt_line *l)
{
	struct link *k;

	while ((k = l->links) != NULL) {
		l->links = k->next;
		link_free(l, k);
	}
	if (l->listener >= 0)
		close(l->listener);
	if (l->stop >= 0)
		close(l->stop);
	pthread_mutex_destroy(&l->lock);
	free(l->bins[0]);
	free(l->bins[1]);
	free(l->fds);
	free(l);
}

struct rvt_line *
rvt_line_start(const struct rvt_line_cfg *cfg)
{
	struct rvt_line *l = calloc(1, sizeof(*l));
	int rc;

	if (l == NULL)
		return NULL;
	l->cfg = *cfg;
	l->listener = -1;
	l->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->fds = calloc(2, sizeof(l->fds[0]));
	l->from = now_ns();
	pthread_mutex_init(&l->lock, NULL);
	plan(l);
	if (l->stop >= 0 && l->fds != NULL && rvt_line_parse(cfg->to, &l->to))
		l->listener = rvt_line_listen(cfg->listen, l->sockbuf, l->addr, sizeof(l->addr));
	if (l->listener >= 0) {
		rc = pthread_create(&l->thread, NULL, run, l);
		if (rc == 0)
			return l;
		errno = rc;
	}
	rc = errno;
	line_free(l);
	errno = rc;
	return NULL;
}

void
rvt_line_stop(struct rvt_line *l)
{
	if (l == NULL)
		return;
	(void)eventfd_write(l->stop, 1);
	pthread_join(l->thread, NULL);
	line_free(l);
}

const char *
rvt_line_addr(const struct rvt_line *l)
{
	return l->addr;
}

/* ---- figures ---- */

uint64_t
rvt_line_total(struct rvt_line *l, enum rvt_dir dir)
{
	uint64_t n;

	pthread_mutex_lock(&l->lock);
	n = l->total[dir];
	pthread_mutex_unlock(&l->lock);
	return n;
}

size_t
rvt_line_bins(struct rvt_line *l, enum rvt_dir dir, uint32_t *out, size_t max)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->nbins[dir];
	if (n > 0 && max > 0)
		memcpy(out, l->bins[dir], (n < max ? n : max) * sizeof(out[0]));
	pthread_mutex_unlock(&l->lock);
	return n;
}

size_t
rvt_line_bin(const struct rvt_line *l)
{
	return (size_t)((now_ns() - l->from) / BIN_NS);
}

uint64_t
rvt_line_queued(struct rvt_line *l, enum rvt_dir dir)
{
	struct rvt_pace p = {.mbit = l->pace[dir].mbit};

	pthread_mutex_lock(&l->lock);
	p.clock = l->clock[dir];
	pthread_mutex_unlock(&l->lock);
	return rvt_pace_queued(&p, now_ns());
}
