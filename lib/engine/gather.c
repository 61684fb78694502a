/* gather.c - see gather.h.  Bytes are only ever appended; what the transport took moves iov_at,
 * acct_at and done. */
#include <config.h>

#include "lib/engine/gather.h"
#include "lib/check.h"

#include <string.h>

#define FIT_MIN 4096u /* a body that is cut at a message's end has at least so much in it */

void
rv_gather_reset(struct rv_gather *g)
{
	g->niov = g->iov_at = 0;
	g->bytes = g->done = 0;
	g->limit = RV_GATHER_BYTES;
	g->turn = RV_TURN;
	g->message = 0;
	g->ncuts = 0;
	g->nacct = g->acct_at = 0;
	g->stage_used = 0;
}

uint32_t
rv_gather_fit(struct rv_gather *g, uint32_t head, uint32_t want)
{
	size_t used;

	if (g->message == 0)
		return want;
	used = (g->bytes - (g->ncuts > 0 ? g->cut[g->ncuts - 1] : 0)) % g->message;
	if (used + head + want <= g->message)
		return want;
	if (used + head + FIT_MIN > g->message) {
		REEVE_ASSERT(g->ncuts < RV_CUTS_MAX);
		g->cut[g->ncuts++] = g->bytes;
		used = 0;
	}
	return want < g->message - head - used ? want : g->message - head - (uint32_t)used;
}

uint8_t *
rv_gather_reserve(struct rv_gather *g, size_t n)
{
	uint8_t *p = g->stage + g->stage_used;
	struct iovec *last = g->niov > g->iov_at ? &g->iov[g->niov - 1] : NULL;

	REEVE_ASSERT(g->stage_used + n <= RV_STAGE_SIZE);
	g->stage_used += n;
	g->bytes += n;
	if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
		return p;
	}
	REEVE_ASSERT(g->niov < RV_IOV_MAX);
	g->iov[g->niov].iov_base = p;
	g->iov[g->niov++].iov_len = n;
	return p;
}

void
rv_gather_stage(struct rv_gather *g, const void *p, size_t n)
{
	memcpy(rv_gather_reserve(g, n), p, n);
}

void
rv_gather_ref(struct rv_gather *g, const uint8_t *p, size_t n)
{
	REEVE_ASSERT(g->niov < RV_IOV_MAX && n > 0);
	g->iov[g->niov].iov_base = (void *)(uintptr_t)p;
	g->iov[g->niov++].iov_len = n;
	g->bytes += n;
}

void
rv_gather_account(struct rv_gather *g, struct rv_stream *st, uint32_t n, reeve_buf_t *buf)
{
	struct rv_acct *a = g->nacct > g->acct_at ? &g->acct[g->nacct - 1] : NULL;

	/* Small frames of one stream in a row are one account. */
	if (a != NULL && a->st == st && a->buf == NULL && buf == NULL) {
		a->end = g->bytes;
		a->n += n;
		return;
	}
	REEVE_ASSERT(g->nacct < RV_ACCT_MAX);
	a = &g->acct[g->nacct++];
	a->st = st;
	a->buf = buf;
	a->end = g->bytes;
	a->n = n;
	st->inflight++;
}

static void
settle(struct rv_engine *e, struct rv_gather *g)
{
	struct rv_acct *a = &g->acct[g->acct_at++];

	rv_buf_unref(a->buf);
	a->st->inflight--;
	rv_engine_settle(e, a->st, a->n);
}

void
rv_gather_sent(struct rv_engine *e, struct rv_gather *g, size_t n)
{
	struct iovec *v;

	REEVE_ASSERT(n <= g->bytes - g->done);
	g->done += n;
	while (n > 0) {
		v = &g->iov[g->iov_at];
		if (n < v->iov_len) {
			v->iov_base = (uint8_t *)v->iov_base + n;
			v->iov_len -= n;
			break;
		}
		n -= v->iov_len;
		g->iov_at++;
	}
	while (g->acct_at < g->nacct && g->acct[g->acct_at].end <= g->done)
		settle(e, g);
}

void
rv_gather_abort(struct rv_engine *e, struct rv_gather *g)
{
	while (g->acct_at < g->nacct)
		settle(e, g);
	rv_gather_reset(g);
}
