/* pipe.c - see pipe.h. */
#include <config.h>

#include "tests/kit/pipe.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With the lock held: the controller is there as long as its end is not closed. */
static void
tell(const struct rvt_pipe_end *e, int event)
{
	if (e->k != NULL)
		reeve_transport_ready(e->k, event);
}

static reeve_ssize
pipe_readv(void *ctx, const struct iovec *v, int n)
{
	struct rvt_pipe_end *e = ctx, *from = &e->p->end[1 - e->me];
	reeve_ssize got = 0;

	pthread_mutex_lock(&e->p->lock);
	for (int i = 0; i < n && from->n > 0; i++) {
		uint8_t *to = v[i].iov_base;

		for (size_t k = 0; k < v[i].iov_len && from->n > 0; k++, from->n--, got++) {
			to[k] = from->bytes[from->at];
			from->at = (from->at + 1) % e->p->size;
		}
	}
	if (got > 0)
		tell(from, REEVE_WRITABLE);
	else if (!from->ended)
		got = REEVE_EAGAIN;
	pthread_mutex_unlock(&e->p->lock);
	return got;
}

static reeve_ssize
pipe_writev(void *ctx, const struct iovec *v, int n)
{
	struct rvt_pipe_end *e = ctx, *to = &e->p->end[1 - e->me];
	reeve_ssize put = 0;

	pthread_mutex_lock(&e->p->lock);
	for (int i = 0; i < n && !e->stopped; i++) {
		const uint8_t *from = v[i].iov_base;

		for (size_t k = 0; k < v[i].iov_len && e->n < e->p->size; k++, e->n++, put++)
			e->bytes[(e->at + e->n) % e->p->size] = from[k];
	}
	if (to->ended)
		put = REEVE_ESYS_BASE - EPIPE;
	else if (put > 0)
		tell(to, REEVE_READABLE);
	else
		put = REEVE_EAGAIN;
	pthread_mutex_unlock(&e->p->lock);
	return put;
}

static void
pipe_attach(void *ctx, reeve_ctl_t *k)
{
	struct rvt_pipe_end *e = ctx;

	pthread_mutex_lock(&e->p->lock);
	e->k = k;
	pthread_mutex_unlock(&e->p->lock);
}

static void
pipe_close(void *ctx)
{
	struct rvt_pipe_end *e = ctx;

	pthread_mutex_lock(&e->p->lock);
	e->k = NULL;
	e->ended = true;
	tell(&e->p->end[1 - e->me], REEVE_READABLE | REEVE_WRITABLE);
	pthread_mutex_unlock(&e->p->lock);
}

void
rvt_pipe_marry(struct rvt_pipe *p, struct rvt_nodes *n, size_t size, const reeve_rt_cfg_t *rt_cfg,
    const reeve_cfg_t *const cfg[2])
{
	reeve_transport_t t = {
	    .readv = pipe_readv, .writev = pipe_writev, .attach = pipe_attach, .close = pipe_close};
	reeve_rt_cfg_t one;

	memset(n, 0, sizeof(*n));
	memset(p, 0, sizeof(*p));
	n->base = rvt_base();
	pthread_mutex_init(&p->lock, NULL);
	p->size = size;
	reeve_rt_cfg_init(&one);
	if (rt_cfg != NULL)
		one = *rt_cfg;
	one.workers = 1;
	for (int i = 0; i < 2; i++) {
		p->end[i].p = p;
		p->end[i].me = i;
		p->end[i].bytes = malloc(size);
		ck_assert_ptr_nonnull(p->end[i].bytes);
	}
	for (int i = 0; i < 2; i++) {
		t.ctx = &p->end[i];
		ck_assert_int_eq(reeve_rt_create(&n->rt[i], &one), 0);
		ck_assert_int_eq(
		    reeve_conn_open(&n->c[i], n->rt[i], &t, i == 0 ? REEVE_DIALER : REEVE_LISTENER,
			cfg != NULL ? cfg[i] : NULL),
		    0);
		n->k[i] = reeve_conn_ctl(n->c[i]);
	}
}

void
rvt_pipe_divorce(struct rvt_pipe *p, struct rvt_nodes *n)
{
	rvt_divorce(n);
	for (int i = 0; i < 2; i++)
		free(p->end[i].bytes);
	pthread_mutex_destroy(&p->lock);
}

void
rvt_pipe_stop(struct rvt_pipe *p, int end)
{
	pthread_mutex_lock(&p->lock);
	p->end[end].stopped = true;
	pthread_mutex_unlock(&p->lock);
}

void
rvt_pipe_go(struct rvt_pipe *p, int end)
{
	pthread_mutex_lock(&p->lock);
	p->end[end].stopped = false;
	tell(&p->end[end], REEVE_WRITABLE);
	pthread_mutex_unlock(&p->lock);
}
