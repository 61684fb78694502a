/* split_link.c - see split_link.h. */
#include <config.h>

#include "perf/split_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/flow.h"

#define SMALL 4096u /* a piece below it is copied */

void
rvp_queue_init(struct rvp_queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	q->in = q->out = 0;
	q->ended = false;
}

void
rvp_queue_fini(struct rvp_queue *q)
{
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}

void
rvp_link_init(struct rvp_link *k)
{
	memset(k, 0, sizeof(*k));
	k->fd = -1;
	k->space = malloc(RVP_BLOCK + RVP_STAGE);
	rvp_check(k->space != NULL, "memory");
}

void
rvp_link_fini(struct rvp_link *k)
{
	free(k->space);
}

static void
fresh(struct rvp_link *k)
{
	k->at = k->end = k->staged = 0;
	k->pieces = 0;
	k->in = k->space;
	k->stage = k->space + RVP_BLOCK;
}

void
rvp_link_socket(struct rvp_link *k, int fd)
{
	fresh(k);
	k->fd = fd;
}

void
rvp_link_queues(struct rvp_link *k, struct rvp_queue *rx, struct rvp_queue *tx)
{
	fresh(k);
	k->fd = -1;
	k->rx = rx;
	k->tx = tx;
	k->stage = NULL;
	k->in = NULL;
}

void
rvp_link_close(struct rvp_link *k)
{
	if (k->fd >= 0) {
		close(k->fd);
		return;
	}
	pthread_mutex_lock(&k->tx->lock);
	k->tx->ended = true;
	pthread_cond_signal(&k->tx->changed);
	pthread_mutex_unlock(&k->tx->lock);
}

/* --- sending --- */

static void
send_pieces(struct rvp_link *k)
{
	struct msghdr m = {.msg_iov = k->piece, .msg_iovlen = (size_t)k->pieces};
	ssize_t n;

	while (m.msg_iovlen > 0) {
		n = sendmsg(k->fd, &m, MSG_NOSIGNAL);
		rvp_check(n > 0, "send");
		while (m.msg_iovlen > 0 && (size_t)n >= m.msg_iov->iov_len) {
			n -= (ssize_t)m.msg_iov->iov_len;
			m.msg_iov++;
			m.msg_iovlen--;
		}
		if (m.msg_iovlen > 0) {
			m.msg_iov->iov_base = (uint8_t *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= (size_t)n;
		}
	}
	k->pieces = 0;
	k->staged = 0;
}

/* The block that is filled goes to the receiver. */
static void
publish(struct rvp_link *k)
{
	struct rvp_queue *q = k->tx;

	pthread_mutex_lock(&q->lock);
	q->used[q->in++ % RVP_BLOCKS] = k->staged;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
	k->stage = NULL;
	k->staged = 0;
}

static void
take_block(struct rvp_link *k)
{
	struct rvp_queue *q = k->tx;

	pthread_mutex_lock(&q->lock);
	while (q->in - q->out == RVP_BLOCKS)
		pthread_cond_wait(&q->changed, &q->lock);
	k->stage = q->block[q->in % RVP_BLOCKS];
	pthread_mutex_unlock(&q->lock);
}

static void
put_memory(struct rvp_link *k, const uint8_t *p, size_t n)
{
	size_t some;

	for (; n > 0; p += some, n -= some) {
		if (k->stage == NULL)
			take_block(k);
		some = n < RVP_BLOCK - k->staged ? n : RVP_BLOCK - k->staged;
		memcpy(k->stage + k->staged, p, some);
		k->staged += some;
		if (k->staged == RVP_BLOCK)
			publish(k);
	}
}

void
rvp_link_put(struct rvp_link *k, const uint8_t *p, size_t n)
{
	struct iovec *last = k->pieces > 0 ? &k->piece[k->pieces - 1] : NULL;
	const uint8_t *from = p;

	if (k->fd < 0) {
		put_memory(k, p, n);
		return;
	}
	if (k->pieces == RVP_PIECES || (n < SMALL && k->staged + n > RVP_STAGE)) {
		send_pieces(k);
		last = NULL;
	}
	if (n < SMALL) {
		from = memcpy(k->stage + k->staged, p, n);
		k->staged += n;
	}
	if (last != NULL && (const uint8_t *)last->iov_base + last->iov_len == from)
		last->iov_len += n;
	else
		k->piece[k->pieces++] = (struct iovec){(void *)(uintptr_t)from, n};
}

void
rvp_link_flush(struct rvp_link *k)
{
	if (k->fd >= 0)
		send_pieces(k);
	else if (k->staged > 0)
		publish(k);
}

/* --- receiving --- */

static void
next_block(struct rvp_link *k)
{
	struct rvp_queue *q = k->rx;

	pthread_mutex_lock(&q->lock);
	if (k->in != NULL) {
		q->out++;
		pthread_cond_signal(&q->changed);
	}
	while (q->in == q->out && !q->ended)
		pthread_cond_wait(&q->changed, &q->lock);
	rvp_check(q->in != q->out, "an early end");
	k->in = q->block[q->out % RVP_BLOCKS];
	k->end = q->used[q->out % RVP_BLOCKS];
	pthread_mutex_unlock(&q->lock);
}

static void
fill(struct rvp_link *k)
{
	ssize_t n;

	if (k->at < k->end)
		return;
	k->at = 0;
	if (k->fd < 0) {
		next_block(k);
		return;
	}
	n = recv(k->fd, k->in, RVP_BLOCK, 0);
	rvp_check(n > 0, "receive");
	k->end = (size_t)n;
}

size_t
rvp_link_get(struct rvp_link *k, uint8_t *to, size_t n)
{
	fill(k);
	if (n > k->end - k->at)
		n = k->end - k->at;
	memcpy(to, k->in + k->at, n);
	k->at += n;
	return n;
}

uint8_t
rvp_link_byte(struct rvp_link *k)
{
	fill(k);
	return k->in[k->at++];
}
