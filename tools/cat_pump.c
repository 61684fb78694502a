/* cat_pump.c - the two directions of reeve-cat.  Input is read straight into the buffers that are sent; what is
 * received is written from the buffers it arrived in. */
#include <config.h>

#include "tools/cat.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/term.h"

#define PIPE_READ (64 * 1024) /* a pipe gives no more at once */
#define FILE_READ (256 * 1024)

void
cat_fail(struct cat *c, const char *what, int rc)
{
	pthread_mutex_lock(&c->lock);
	if (c->rc == 0) {
		c->rc = rc;
		c->what = what;
	}
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void
pump_ended(struct cat *c)
{
	pthread_mutex_lock(&c->lock);
	c->running--;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void
count(struct cat *c, uint64_t *counter, size_t n)
{
	uint64_t now = term_now_us();

	pthread_mutex_lock(&c->lock);
	*counter += n;
	c->moved_us = now;
	pthread_mutex_unlock(&c->lock);
}

/* Wait for input.  false: we are told to stop. */
static bool
input_ready(struct cat *c)
{
	struct pollfd p[2] = {
	    {.fd = STDIN_FILENO, .events = POLLIN}, {.fd = c->wake[0], .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return true; /* let read say what is wrong */
		if (p[1].revents != 0)
			return false;
		if (p[0].revents != 0)
			return true;
	}
}

/* The next piece of input; NULL at its end, after an error (noted), or when told to stop. */
static reeve_buf_t *
next_input(struct cat *c, size_t size)
{
	reeve_buf_t *b, *part;
	ssize_t n;

	if (!input_ready(c))
		return NULL;
	b = reeve_buf_alloc(c->rt, size);
	if (b == NULL) {
		cat_fail(c, "standard input", REEVE_ENOMEM);
		return NULL;
	}
	do
		n = read(STDIN_FILENO, reeve_buf_mut(b), size);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)size)
		return b;
	if (n < 0)
		cat_fail(c, "standard input", REEVE_ESYS_BASE - errno);
	part = n > 0 ? reeve_buf_slice(b, 0, (size_t)n) : NULL;
	if (n > 0 && part == NULL)
		cat_fail(c, "standard input", REEVE_ENOMEM);
	reeve_buf_unref(b);
	return part;
}

/* Our end of the stream, unless something failed. */
static void
end_input(struct cat *c)
{
	bool failed;

	pthread_mutex_lock(&c->lock);
	failed = c->rc != 0;
	pthread_mutex_unlock(&c->lock);
	if (failed)
		return;
	if (c->opt.reset)
		reeve_reset(c->stream, c->opt.reset_code);
	else
		reeve_shut(c->stream);
}

void *
cat_send(void *arg)
{
	struct cat *c = arg;
	size_t size = c->total > 0 ? FILE_READ : PIPE_READ;
	reeve_buf_t *b;
	reeve_ssize n;

	while ((b = next_input(c, size)) != NULL) {
		n = reeve_write_buf(c->stream, b);
		if (n < 0) {
			cat_fail(c, NULL, (int)n);
			break;
		}
		count(c, &c->sent, (size_t)n);
	}
	if (b == NULL)
		end_input(c);
	pump_ended(c);
	return NULL;
}

static int
write_all(const reeve_buf_t *b)
{
	struct iovec v = {
	    .iov_base = (void *)(uintptr_t)reeve_buf_data(b), .iov_len = reeve_buf_len(b)};
	ssize_t n;

	while (v.iov_len > 0) {
		n = writev(STDOUT_FILENO, &v, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return REEVE_ESYS_BASE - errno;
		v.iov_base = (char *)v.iov_base + n;
		v.iov_len -= (size_t)n;
	}
	return 0;
}

/* The reader of our output learns that the peer has ended while we go on; the number stays taken. */
static int
end_output(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return REEVE_ESYS_BASE - errno;
	close(fd);
	return 0;
}

void *
cat_receive(void *arg)
{
	struct cat *c = arg;
	reeve_buf_t *b;
	reeve_ssize n;
	int rc = 0;

	while (rc == 0 && (n = reeve_read_buf(c->stream, &b)) > 0) {
		count(c, &c->received, (size_t)n);
		rc = write_all(b);
		reeve_buf_unref(b);
	}
	if (rc == 0 && n == 0)
		rc = end_output();
	if (rc < 0)
		cat_fail(c, "standard output", rc);
	else if (n < 0 &&
	    !(c->opt.reset && n == REEVE_ECLOSED)) /* our own reset ends reading too */
		cat_fail(c, NULL, (int)n);
	pump_ended(c);
	return NULL;
}
