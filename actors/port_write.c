/* port_write.c - the writing half of a port. */
#include <config.h>

#include "actors/port.h"

#include <string.h>

#include "actors/lend.h"
#include "actors/negotiate.h"
#include "lib/check.h"

#define LARGE 16384u /* a write of so much gets a large block at once */

/* Sizes of the blocks that small writes go to: the next one while they are filled up. */
static const uint32_t open_sizes[] = {2048, 16384, 65536};
#define OPEN_LAST 2

/* --- threads --- */

/* How many bytes may be accepted now.  Under the word: exact; else a snapshot. */
static size_t
budget(struct reeve_stream *s, struct rva_port *p)
{
	uint64_t out = rvq_cell64_get_relaxed(&p->accepted) - rvq_cell64_get(&p->taken);

	return out >= s->conn->cfg.send_budget ? 0 : (size_t)(s->conn->cfg.send_budget - out);
}

/* Is it worth waking a writer?  Half of the budget is.  What is less is when there will be no more before the peer
 * reads: it may be the peer that waits for these bytes. */
static bool
roomy(struct reeve_stream *s, struct rva_port *p)
{
	uint32_t all = s->conn->cfg.send_budget;
	bool dry = rvq_cell32_get(&p->dry) != 0;
	size_t room = budget(s, p);

	return room >= all - all / 2 || (dry && room > 0);
}

/* Under the word: the block that small writes go to, with room in it; a new one is pushed first.  NULL: no room in the
 * ring, or (*rc) no memory. */
static struct rv_slab *
open_block(struct reeve_stream *s, struct rva_port *p, size_t want, int *rc)
{
	struct rva_wentry e = {NULL, NULL};
	struct rv_pool *pool;
	size_t size;

	if (p->open != NULL && p->open->used < p->open->cap)
		return p->open;
	if (rvq_ring_room(&p->wring) == 0)
		return NULL;
	if (p->open != NULL) {
		p->open_class += p->open_class < OPEN_LAST;
		rv_slab_unref(p->open);
		p->open = NULL;
	}
	size = open_sizes[want >= LARGE ? OPEN_LAST : p->open_class];
	pool = rva_rt_pool(s->conn->rt);
	e.slab = pool == NULL ? NULL : rv_slab_get(pool, size);
	if (e.slab == NULL) {
		*rc = REEVE_ENOMEM;
		return NULL;
	}
	rv_slab_ref(e.slab);
	p->open = e.slab;
	(void)rva_wring_push_spsc(&p->wring, p->wslots, &e);
	return p->open;
}

/* Under the word: accept at most n bytes; 0: the budget or the ring is full, or *rc. */
static size_t
copy_in(struct reeve_stream *s, struct rva_port *p, const uint8_t *from, size_t n, int *rc)
{
	size_t room = budget(s, p), done = 0, k;
	struct rv_slab *b;

	if (n > room)
		n = room;
	while (done < n && (b = open_block(s, p, n - done, rc)) != NULL) {
		k = b->cap - b->used;
		if (k > n - done)
			k = n - done;
		memcpy(b->data + b->used, from + done, k);
		b->used += (uint32_t)k;
		done += k;
		rvq_cell64_put(&p->accepted, rvq_cell64_get_relaxed(&p->accepted) + k);
	}
	return done;
}

/* Room in the ring, as a snapshot: rvq_ring_room is for who has the word. */
static unsigned
ring_room(const struct rva_port *p)
{
	return RVA_PORT_SLOTS - 1 - rvq_ring_count(&p->wring);
}

/* What a writer waits for. */
struct wait {
	struct reeve_stream *s;
	struct rva_port *p;
	uint64_t deadline;
};

static bool
no_wait(void *arg)
{
	struct wait *w = arg;

	return rva_rc(&w->s->wr_rc) != RVA_RC_OPEN ||
	    rva_deadline_of(&w->s->wr_deadline) != w->deadline || /* moved: wait anew */
	    (roomy(w->s, w->p) && ring_room(w->p) > RVA_PORT_SLOTS / 2);
}

/* Sleep until there is room, an answer or the deadline.  0: look again. */
static int
wait_room(struct reeve_stream *s, struct rva_port *p)
{
	uint64_t deadline = rva_deadline_of(&s->wr_deadline);
	struct wait w = {s, p, deadline};

	if (rva_spin_park(&p->writers, no_wait, &w, s->conn->rt->spin_us, deadline) ==
		REEVE_ETIMEDOUT &&
	    deadline == rva_deadline_of(&s->wr_deadline) &&
	    (budget(s, p) == 0 || ring_room(p) == 0))
		return REEVE_ETIMEDOUT;
	return 0;
}

/* Let go of the word.  Who answered wr_rc meanwhile waits for its holder to ring. */
static void
give(struct reeve_stream *s, struct rva_port *p)
{
	rva_word_give(&p->wword);
	if (rva_rc(&s->wr_rc) != RVA_RC_OPEN)
		rva_ring(&s->actor, &s->bell, RVA_S_WRITE);
}

/* n bytes more are accepted.  Many, or the first after a thread had waited for the peer, leave on this thread if the
 * worker sleeps; a run of small ones goes to the worker, which sends what has come together meanwhile at once. */
static void
tell(struct reeve_stream *s, struct rva_port *p, size_t n)
{
	bool lend = n >= LARGE || rvq_cell32_get(&p->waited) != 0;

	if (lend) {
		rvq_cell32_put(&p->waited, 0);
		rva_lend_begin();
	}
	rva_ring(&s->actor, &s->bell, RVA_S_WRITE);
	if (lend)
		rva_lend_end();
}

reeve_ssize
rva_port_write(struct reeve_stream *s, struct rva_port *p, const struct iovec *v, int n)
{
	size_t total = 0, done, off;
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		for (off = 0; off < v[i].iov_len && rc == 0; off += done) {
			rva_word_take(&p->wword);
			rc = rva_rc(&s->wr_rc); /* under the word: see rva_port_seal */
			done = 0;
			if (rc == RVA_RC_OPEN) {
				rc = 0;
				done = copy_in(s, p, (const uint8_t *)v[i].iov_base + off,
				    v[i].iov_len - off, &rc);
			}
			give(s, p);
			total += done;
			if (done > 0)
				tell(s, p, done);
			if (done < v[i].iov_len - off && rc == 0)
				rc = wait_room(s, p);
		}
	}
	rvq_gauge_add(&s->conn->copied_out, total);
	return total > 0 ? (reeve_ssize)total : rc;
}

reeve_ssize
rva_port_write_buf(struct reeve_stream *s, struct rva_port *p, reeve_buf_t *b)
{
	struct rva_wentry e = {NULL, b};
	size_t n = rv_buf_len(b);
	int rc;

	for (;;) {
		rva_word_take(&p->wword);
		rc = rva_rc(&s->wr_rc); /* under the word: see rva_port_seal */
		if (rc != RVA_RC_OPEN) {
			give(s, p);
			break;
		}
		if (budget(s, p) > 0 && rvq_ring_room(&p->wring) > 0) {
			if (p->open !=
			    NULL) /* what comes later goes behind b: the block is complete */
				rv_slab_unref(p->open);
			p->open = NULL;
			(void)rva_wring_push_spsc(&p->wring, p->wslots, &e);
			rvq_cell64_put(&p->accepted, rvq_cell64_get_relaxed(&p->accepted) + n);
			give(s, p);
			tell(s, p, n);
			return (reeve_ssize)n;
		}
		give(s, p);
		rc = wait_room(s, p);
		if (rc < 0)
			break;
	}
	rv_buf_unref(b);
	return rc;
}

/* --- owner --- */

static void
drop_head(struct rva_port *p, struct rva_wentry *e)
{
	if (e->slab != NULL)
		rv_slab_unref(e->slab);
	rva_wring_drop_spsc(&p->wring);
	p->head_off = 0;
}

/* How many bytes of the first block are published, of avail that are published in all. */
static uint32_t
block_bytes(struct rva_port *p, const struct rva_wentry *e, uint64_t avail)
{
	uint32_t left;

	if (rvq_ring_count(&p->wring) == 1)
		return (uint32_t)avail;
	left = e->slab->used - p->head_off; /* complete: another entry was pushed behind it */
	return left < avail ? left : (uint32_t)avail;
}

/* Hand n bytes of the first block on.  False: no memory, tried again later. */
static bool
send_block(struct reeve_stream *s, struct rva_port *p, struct rva_wentry *e, uint32_t n)
{
	reeve_buf_t *b = rv_buf_cut(e->slab, p->head_off, n);

	if (b == NULL) {
		rva_ring(&s->actor, &s->bell, RVA_S_WRITE);
		return false;
	}
	p->head_off += n;
	p->drained += n;
	rva_stream_send(s, b);
	return true;
}

bool
rva_port_drain(struct reeve_stream *s, struct rva_port *p, uint64_t limit)
{
	uint64_t accepted = rvq_cell64_get(&p->accepted);
	uint64_t before = p->drained;
	struct rva_wentry *e;
	uint32_t n;

	if (accepted > limit)
		accepted = limit;
	if (accepted <=
	    before) /* an operation may name a position that other threads' bytes have passed */
		return true;
	while ((e = rva_wring_peek_spsc(&p->wring, p->wslots)) != NULL) {
		if (e->buf != NULL) {
			if (p->drained >= accepted)
				break;
			p->drained += rv_buf_len(e->buf);
			rva_stream_send(s, e->buf);
			drop_head(p, e);
			continue;
		}
		n = block_bytes(p, e, accepted - p->drained);
		if (n > 0 && !send_block(s, p, e, n))
			return false;
		if (rvq_ring_count(&p->wring) > 1 && p->head_off == e->slab->used) {
			drop_head(p, e);
			continue;
		}
		if (p->head_off == e->slab->cap)
			drop_head(p, e);
		break;
	}
	/* A writer may sleep because the ring was full while the budget was not. */
	if (p->drained != before && roomy(s, p))
		(void)rvq_parker_wake(&p->writers);
	return p->drained >= accepted;
}

bool
rva_port_seal(struct reeve_stream *s, struct rva_port *p)
{
	/* Exchanges on one word order this: a thread that takes it later finds wr_rc answered and accepts nothing, one
	 * that has it now finds that when it gives the word, and rings. */
	if (!rva_word_claim(&p->wword))
		return false;
	if (rva_nego_mute(s)) { /* begun meanwhile; its end comes here again */
		rva_word_give(&p->wword);
		return false;
	}
	(void)rva_port_drain(s, p, UINT64_MAX);
	rva_word_give(&p->wword);
	return true;
}

/* Everything was taken: an idle stream does not keep a block. */
static void
let_go_of_open(struct rva_port *p)
{
	struct rva_wentry *e;

	if (!rva_word_try(&p->wword))
		return; /* a writer is inside */
	e = rva_wring_peek_spsc(&p->wring, p->wslots);
	if (p->open != NULL && rvq_cell64_get_relaxed(&p->accepted) == p->drained) {
		if (e != NULL && e->slab == p->open)
			drop_head(p, e);
		rv_slab_unref(p->open);
		p->open = NULL;
	}
	rva_word_give(&p->wword);
}

void
rva_port_taken(struct reeve_stream *s, struct rva_port *p, uint32_t n, bool dry)
{
	uint64_t taken = rvq_cell64_get_relaxed(&p->taken) + n;
	uint64_t out = rvq_cell64_get(&p->accepted) - taken;

	rvq_cell64_put(&p->taken, taken);
	rvq_cell32_put(&p->dry, dry);
	if (out == 0)
		let_go_of_open(p);
	if (roomy(s, p))
		(void)rvq_parker_wake(&p->writers);
}
