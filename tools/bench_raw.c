/* bench_raw.c - the yardstick: the same writes on a bare socket, a thread that writes and one that reads. */
#include <config.h>

#include "tools/bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/term.h"

#define READ_SIZE (256 * 1024)

struct bench_raw {
	int fd[2]; /* written, read */
	size_t size;
	uint8_t *out, *in;
	uint64_t sent;
	struct bench_tally got;
	pthread_t reader;
};

void
bench_tally_init(struct bench_tally *t)
{
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->reached, NULL);
	t->n = 0;
	t->target = UINT64_MAX;
}

void
bench_tally_add(struct bench_tally *t, uint64_t n)
{
	pthread_mutex_lock(&t->lock);
	t->n += n;
	if (t->n >= t->target)
		pthread_cond_signal(&t->reached);
	pthread_mutex_unlock(&t->lock);
}

void
bench_tally_wait(struct bench_tally *t, uint64_t target)
{
	pthread_mutex_lock(&t->lock);
	t->target = target;
	while (t->n < target)
		pthread_cond_wait(&t->reached, &t->lock);
	t->target = UINT64_MAX;
	pthread_mutex_unlock(&t->lock);
}

unsigned
bench_batch(size_t size)
{
	size_t n = 256 * 1024 / size;

	return n < 1 ? 1 : n > 16 ? 16 : (unsigned)n;
}

static void *
read_raw(void *arg)
{
	struct bench_raw *r = arg;
	ssize_t n;

	while ((n = read(r->fd[1], r->in, READ_SIZE)) > 0)
		bench_tally_add(&r->got, (uint64_t)n);
	if (n < 0)
		bench_die("bare read", REEVE_ESYS_BASE - errno);
	return NULL;
}

/* A connection over loopback with the option that the library sets. */
static int
tcp_pair(int fd[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int on = 1, l = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (l < 0 || bind(l, (struct sockaddr *)&a, len) < 0 || listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&a, &len) < 0)
		return -1;
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (fd[0] < 0 || connect(fd[0], (struct sockaddr *)&a, len) < 0)
		return -1;
	fd[1] = accept(l, NULL, NULL);
	close(l);
	return fd[1] < 0 ? -1 : setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

struct bench_raw *
bench_raw_open(enum bench_transport t, size_t size)
{
	struct bench_raw *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL || (r->out = malloc(size)) == NULL || (r->in = malloc(READ_SIZE)) == NULL)
		bench_die("buffer", REEVE_ENOMEM);
	memset(r->out, 0x5a, size);
	r->size = size;
	bench_tally_init(&r->got);
	rc = t == BENCH_TCP ? tcp_pair(r->fd) : socketpair(AF_UNIX, SOCK_STREAM, 0, r->fd);
	if (rc < 0)
		bench_die("bare socket", REEVE_ESYS_BASE - errno);
	rc = pthread_create(&r->reader, NULL, read_raw, r);
	if (rc != 0)
		bench_die("thread", REEVE_ESYS_BASE - rc);
	return r;
}

static void
write_one(struct bench_raw *r)
{
	size_t at = 0;
	ssize_t n;

	while (at < r->size) {
		n = write(r->fd[0], r->out + at, r->size - at);
		if (n < 0 && errno != EINTR)
			bench_die("bare write", REEVE_ESYS_BASE - errno);
		at += n > 0 ? (size_t)n : 0;
	}
	r->sent += r->size;
}

void
bench_raw_round(struct bench_raw *r, double seconds, struct bench_round *out)
{
	uint64_t before = r->sent, begin = term_now_us(),
		 deadline = begin + (uint64_t)(seconds * 1e6);
	unsigned batch = bench_batch(r->size);
	double cpu = term_cpu_s();

	do {
		for (unsigned i = 0; i < batch; i++)
			write_one(r);
	} while (term_now_us() < deadline);
	bench_tally_wait(&r->got, r->sent);
	out->bytes = r->sent - before;
	out->seconds = (double)(term_now_us() - begin) / 1e6;
	out->cpu_s = term_cpu_s() - cpu;
}

void
bench_raw_close(struct bench_raw *r)
{
	shutdown(r->fd[0], SHUT_WR);
	pthread_join(r->reader, NULL);
	close(r->fd[0]);
	close(r->fd[1]);
	free(r->out);
	free(r->in);
	free(r);
}
