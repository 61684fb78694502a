/* port.c - the two ends of a port: threads that block, and the substream that serves them. */
#include <config.h>

#include "actors/port.h"

#include <string.h>

#include "actors/lend.h"
#include "actors/negotiate.h"
#include "lib/alloc.h"
#include "lib/check.h"
#include "lib/clock.h"

#define RING_BELL_AT 65536u /* consumed bytes that are worth a message of their own */

struct rva_port *
rva_port_of(struct reeve_stream *s)
{
	struct rva_port *p = rva_port_peek(s);

	if (p != NULL)
		return p;
	p = rv_alloc(s->conn->arena, sizeof(*p), 64);
	if (p == NULL)
		return NULL;
	memset(p, 0, sizeof(*p));
	rvq_parker_init(&p->rword.park);
	rvq_parker_init(&p->wword.park);
	rvq_parker_init(&p->readers);
	rvq_parker_init(&p->writers);
	rvq_ring_init(&p->rring, RVA_PORT_SLOTS);
	rvq_ring_init(&p->wring, RVA_PORT_SLOTS);
	if (!rvq_cellptr_cas(&s->port, NULL, p)) { /* another thread was first */
		rv_free(s->conn->arena, p, sizeof(*p));
		return rva_port_peek(s);
	}
	rva_ring(&s->actor, &s->bell, RVA_S_PORT);
	return p;
}

void
rva_port_free(struct rva_port *p, struct rv_arena *ar)
{
	struct rva_wentry e;
	reeve_buf_t *b;

	rv_buf_unref(p->cur);
	while (rva_bufring_pop_spsc(&p->rring, p->rslots, &b))
		rv_buf_unref(b);
	while (rva_wring_pop_spsc(&p->wring, p->wslots, &e)) {
		if (e.slab != NULL)
			rv_slab_unref(e.slab);
		rv_buf_unref(e.buf);
	}
	if (p->open != NULL)
		rv_slab_unref(p->open);
	rv_free(ar, p, sizeof(*p));
}

/* --- the word of a direction --- */

bool
rva_word_try(struct rva_word *w)
{
	return rvq_cell32_cas(&w->held, 0, 1);
}

bool
rva_word_claim(struct rva_word *w)
{
	return rvq_cell32_swap(&w->held, 2) == 0;
}

void
rva_word_take(struct rva_word *w)
{
	if (rva_word_try(w))
		return;
	for (;;) {
		rvq_parker_arm(&w->park);
		if (rvq_cell32_swap(&w->held, 2) == 0) {
			rvq_parker_disarm(&w->park);
			return;
		}
		(void)rvq_parker_wait(&w->park, RVQ_FOREVER);
	}
}

void
rva_word_give(struct rva_word *w)
{
	if (rvq_cell32_swap(&w->held, 0) == 2)
		(void)rvq_parker_wake(&w->park);
}

uint64_t
rva_deadline_of(const struct rvq_cell64 *d)
{
	uint64_t at = rvq_cell64_get(d);

	return at == 0 ? RVQ_FOREVER : at;
}

/* --- reading: threads --- */

/* Something was consumed.  Who reads much does what follows from it, while the worker sleeps. */
static void
tell(struct reeve_stream *s)
{
	rva_lend_begin();
	rva_ring(&s->actor, &s->bell, RVA_S_READ);
	rva_lend_end();
}

/* Under the word: n more bytes are let go.  True: the owner has to be told. */
static bool
consume(struct rva_port *p, uint32_t n)
{
	rvq_cell64_put(&p->consumed, rvq_cell64_get_relaxed(&p->consumed) + n);
	p->unrung += n;
	if (p->unrung >= RING_BELL_AT ||
	    (rvq_cell32_get(&p->more) != 0 && rvq_ring_count(&p->rring) < RVA_PORT_SLOTS / 4)) {
		p->unrung = 0;
		return true;
	}
	return false;
}

/* Under the word: the next buffer, or NULL. */
static reeve_buf_t *
next_buf(struct rva_port *p)
{
	reeve_buf_t *b = p->cur;

	if (b == NULL)
		(void)rva_bufring_pop_spsc(&p->rring, p->rslots, &b);
	return b;
}

static size_t
copy_out(struct rva_port *p, uint8_t *to, size_t n)
{
	size_t done = 0, k;
	reeve_buf_t *b;

	while (done < n && (b = next_buf(p)) != NULL) {
		k = b->len - p->cur_off;
		if (k > n - done)
			k = n - done;
		memcpy(to + done, rv_buf_data(b) + p->cur_off, k);
		done += k;
		p->cur_off += (uint32_t)k;
		p->cur = b;
		if (p->cur_off == b->len) {
			p->cur = NULL;
			p->cur_off = 0;
			rv_buf_unref(b);
		}
	}
	return done;
}

static size_t
hand_out(struct rva_port *p, reeve_buf_t **out)
{
	reeve_buf_t *b = next_buf(p);
	size_t n;

	if (b == NULL)
		return 0;
	p->cur = NULL;
	if (p->cur_off !=
	    0) { /* the unread part of one that reeve_read began; nobody else has it */
		b->off += p->cur_off;
		b->len -= p->cur_off;
		p->cur_off = 0;
	}
	n = b->len;
	*out = b;
	return n;
}

/* Copy at most n bytes to to, or hand out a buffer when that is NULL.  0: nothing is there, or it is a negotiation's: then
 * the word is left alone, too, for its owner takes back what the ring holds. */
static reeve_ssize
take_some(struct reeve_stream *s, struct rva_port *p, void *to, size_t n, reeve_buf_t **b)
{
	size_t got;
	bool ring;

	if (rva_nego_takes(s))
		return 0;
	rva_word_take(&p->rword);
	got = to != NULL ? copy_out(p, to, n) : hand_out(p, b);
	ring = got > 0 && consume(p, (uint32_t)got);
	rva_word_give(&p->rword);
	if (ring)
		tell(s);
	return (reeve_ssize)got;
}

/* About to sleep: what was consumed must not wait for more, nor what a negotiation holds back. */
static void
ring_before_sleep(struct reeve_stream *s, struct rva_port *p)
{
	bool ring = rva_nego_held(s);

	if (!rva_nego_takes(s)) {
		rva_word_take(&p->rword);
		ring = p->unrung != 0 || rvq_cell32_get(&p->more) != 0;
		p->unrung = 0;
		rva_word_give(&p->rword);
	}
	if (ring)
		tell(s);
}

/* What a reader that leads waits for. */
struct wait {
	struct reeve_stream *s;
	struct rva_port *p;
	uint64_t deadline;
};

static bool
over(void *arg)
{
	struct wait *w = arg;

	return !rva_port_quiet(w->s, w->p) || rvq_cell32_get(&w->s->async_reads) != 0 ||
	    (rvq_cell32_get(&w->s->app) & (RVA_APP_STOP | RVA_APP_CLOSE | RVA_APP_RESET)) != 0 ||
	    rva_deadline_of(&w->s->rd_deadline) != w->deadline;
}

/* Wait for something to look at.  REEVE_ETIMEDOUT: there was nothing until the deadline. */
static int
wait_more(struct reeve_stream *s, struct rva_port *p)
{
	struct wait w = {s, p, rva_deadline_of(&s->rd_deadline)};
	bool late;

	if (rva_lend_lead(s->conn->w, over, &w, w.deadline)) {
		late = w.deadline != RVQ_FOREVER && rv_clock_us() >= w.deadline;
	} else {
		late = rva_spin_park(&p->readers, over, &w, s->conn->rt->spin_us, w.deadline) ==
		    REEVE_ETIMEDOUT;
	}
	return late && w.deadline == rva_deadline_of(&s->rd_deadline) && rva_port_quiet(s, p)
	    ? REEVE_ETIMEDOUT
	    : 0;
}

/* to != NULL: copy at most n bytes; else hand out a buffer. */
static reeve_ssize
read_either(struct reeve_stream *s, struct rva_port *p, void *to, size_t n, reeve_buf_t **b)
{
	reeve_ssize got = 0;
	int rc;

	for (;;) {
		if (rvq_cell32_get(&s->app) & (RVA_APP_STOP | RVA_APP_CLOSE | RVA_APP_RESET))
			return REEVE_ECLOSED;
		if (rvq_cell32_get(&s->async_reads) != 0)
			return REEVE_EBUSY;
		rc = rva_rc(
		    &s->rd_rc); /* before the ring: what was pushed before it is seen then */
		got = take_some(s, p, to, n, b);
		if (got > 0)
			return got;
		if (rc != RVA_RC_OPEN)
			return rc;
		ring_before_sleep(s, p);
		rvq_cell32_put(&p->waited, 1);
		rc = wait_more(s, p);
		if (rc < 0)
			return rc;
	}
}

reeve_ssize
rva_port_read(struct reeve_stream *s, struct rva_port *p, void *to, size_t n)
{
	reeve_ssize got;

	(void)rvq_cell32_add(&p->nreaders, 1);
	got = read_either(s, p, to, n, NULL);
	(void)rvq_cell32_add(&p->nreaders, UINT32_MAX);
	return got;
}

reeve_ssize
rva_port_read_buf(struct reeve_stream *s, struct rva_port *p, reeve_buf_t **b)
{
	reeve_ssize got;

	(void)rvq_cell32_add(&p->nreaders, 1);
	got = read_either(s, p, NULL, 0, b);
	(void)rvq_cell32_add(&p->nreaders, UINT32_MAX);
	return got;
}

/* --- reading: owner --- */

void
rva_port_fill(struct reeve_stream *s, struct rva_port *p)
{
	bool pushed = false;
	reeve_buf_t *b;

	do {
		rvq_cell32_put(&p->more, 0);
		while (s->in.head != NULL && rvq_ring_room(&p->rring) > 0) {
			b = rv_chain_pop(&s->in);
			p->given += b->len;
			(void)rva_bufring_push_spsc(&p->rring, p->rslots, &b);
			pushed = true;
		}
		if (s->in.head == NULL)
			break;
		/* Readers ring when they find this and the ring nearly empty; they may have emptied it already. */
		rvq_cell32_put(&p->more, 1);
		rvq_fence_full();
	} while (rvq_ring_count(&p->rring) < RVA_PORT_SLOTS / 4);
	if (pushed)
		(void)rvq_parker_wake(&p->readers);
}

uint32_t
rva_port_collect(struct rva_port *p)
{
	uint64_t now = rvq_cell64_get(&p->consumed);
	uint32_t n = (uint32_t)(now - p->consumed_seen);

	p->consumed_seen = now;
	return n;
}

bool
rva_port_unread(const struct rva_port *p)
{
	return p->given != rvq_cell64_get(&p->consumed);
}

bool
rva_port_quiet(struct reeve_stream *s, struct rva_port *p)
{
	return rvq_ring_count(&p->rring) == 0 && rva_rc(&s->rd_rc) == RVA_RC_OPEN;
}

bool
rva_port_pull_back(struct reeve_stream *s, struct rva_port *p)
{
	return rvq_cell32_get(&p->nreaders) == 0 && rva_port_take_back(s, p);
}

bool
rva_port_take_back(struct reeve_stream *s, struct rva_port *p)
{
	struct rv_chain back;
	reeve_buf_t *b;

	if (!rva_word_try(&p->rword))
		return false;
	rv_chain_init(&back);
	if (p->cur != NULL) {
		p->cur->off += p->cur_off;
		p->cur->len -= p->cur_off;
		p->given -= p->cur->len;
		(void)rv_chain_push(&back, p->cur);
		p->cur = NULL;
		p->cur_off = 0;
	}
	while (rva_bufring_pop_spsc(&p->rring, p->rslots, &b)) {
		p->given -= b->len;
		(void)rv_chain_push(&back, b);
	}
	while ((b = rv_chain_pop(&s->in)) != NULL)
		(void)rv_chain_push(&back, b);
	s->in = back;
	rva_word_give(&p->rword);
	return true;
}

int
rva_port_busy(struct reeve_stream *s, struct rva_port *p)
{
	int rc = rva_rc(&s->rd_rc);

	return rc == RVA_RC_OPEN || rva_port_unread(p) ? REEVE_EBUSY : rc;
}

void
rva_port_discard(struct rva_port *p)
{
	reeve_buf_t *b;

	if (!rva_word_try(&p->rword))
		return; /* a reader is inside: it goes with the stream */
	rv_buf_unref(p->cur);
	p->cur = NULL;
	p->cur_off = 0;
	while (rva_bufring_pop_spsc(&p->rring, p->rslots, &b))
		rv_buf_unref(b);
	rva_word_give(&p->rword);
}

void
rva_port_wake(struct rva_port *p)
{
	(void)rvq_parker_wake(&p->readers);
	(void)rvq_parker_wake(&p->writers);
}
