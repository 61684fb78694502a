/* notif_sink.c - sending, as the application calls it: reservations and posts, any thread.
 *
 * A message in the queue is its own buffer, linked by the buffer's link; what has no buffer of its own (a message without
 * bytes, an asynchronous send) is a mark.  Any number of threads post, the actor takes (notif_send.c); both without a lock. */
#include <config.h>

#include "node/notif_session.h"

#include "actors/lend.h"
#include "actors/runtime.h"
#include "actors/spin.h"
#include "actors/runtime.h"
#include "lib/check.h"
#include "lib/varint.h"

#define LARGE    16384u /* bytes; worth a write of its own */
#define PAUSE_US 5      /* between two sends that are not a run */

/* --- reservations, any thread --- */

enum reserve { RESERVED, FULL, ENDED };

static enum reserve
reserve(struct reeve_sink *k, uint32_t n)
{
	uint64_t was;

	do {
		was = rvq_cell64_get(&k->queued);
		if (was & RVN_K_CLOSED)
			return ENDED;
		if (was != 0 && (was >= k->limit || n > k->limit - was))
			return FULL;
	} while (!rvq_cell64_cas(&k->queued, was, was + n));
	return RESERVED;
}

/* n bytes are not queued any more. */
void
rvn_send_unreserve(struct reeve_sink *k, uint64_t n)
{
	uint64_t left;

	if (n == 0)
		return;
	left = (rvq_cell64_add(&k->queued, UINT64_MAX - n + 1) - n) & ~RVN_K_CLOSED;
	/* Not for every little room: who waits is woken when half is free. */
	if (left <= k->limit / 2)
		(void)rvq_parker_wake(&k->room);
}

/* What sends answer once it has ended. */
int
rvn_send_ended(const struct reeve_sink *k)
{
	int rc = (int32_t)rvq_cell32_get(&k->rc);

	return rc == RVA_RC_OPEN ? REEVE_ECLOSED : rc;
}

uint32_t
rvn_send_size(const reeve_buf_t *b)
{
	size_t n = b != NULL ? rv_buf_len(b) : 0;

	return (uint32_t)n + rv_varint_size(n);
}

/* --- posting, any thread --- */

static struct rvn_kmark *
mark_new(struct reeve_sink *k, reeve_buf_t *b, reeve_op_t *op)
{
	struct rvn_kmark *m = rv_zalloc(k->arena, sizeof(*m));

	if (m != NULL) {
		m->data = b;
		m->op = op;
		m->n = rvn_send_size(b);
	}
	return m;
}

void
rvn_send_mark_free(struct reeve_sink *k, struct rvn_kmark *m)
{
	rv_buf_unref(m->data);
	rv_free(k->arena, m, sizeof(*m));
}

static void
post(struct reeve_sink *k, struct reeve_buf *item)
{
	if (rvq_mailbox_post_mpsc(&k->sendq, (struct rvq_node *)(void *)&item->next))
		rvn_session_ring(k, RVN_K_SEND);
}

/* The buffer that goes into the queue for b: b itself when nobody else has it.  NULL: out of memory; b is let go. */
static struct reeve_buf *
item_of(struct reeve_sink *k, reeve_buf_t *b)
{
	struct rvn_kmark *m;
	reeve_buf_t *mine;

	if (b == NULL || rv_buf_len(b) == 0) {
		m = mark_new(k, NULL, NULL);
		rv_buf_unref(b);
		return m != NULL ? &m->head : NULL;
	}
	if (rvq_ref_single(&b->refs))
		return b;
	mine = rv_buf_slice(b, 0, (uint32_t)rv_buf_len(b));
	rv_buf_unref(b);
	return mine;
}

static int
check(const struct reeve_sink *k, const reeve_buf_t *b)
{
	int rc = (int32_t)rvq_cell32_get(&k->rc);

	if (rc != RVA_RC_OPEN)
		return rc;
	return b != NULL && rv_buf_len(b) > k->max_size ? REEVE_ETOOBIG : 0;
}

static int
post_reserved(struct reeve_sink *k, reeve_buf_t *b, uint32_t n)
{
	struct reeve_buf *item = item_of(k, b);

	if (item == NULL) {
		rvn_send_unreserve(k, n);
		rvn_session_ring(k, RVN_K_LOOK); /* it may be waiting for this very reservation */
		return REEVE_ENOMEM;
	}
	post(k, item);
	return 0;
}

int
reeve_sink_try_send(reeve_sink_t *k, reeve_buf_t *b)
{
	uint32_t n;
	int rc = k == NULL ? REEVE_EINVAL : check(k, b);

	if (rc == 0) {
		n = rvn_send_size(b);
		switch (reserve(k, n)) {
		case RESERVED:
			return post_reserved(k, b, n);
		case FULL:
			rvq_gauge_add(&k->gauges->notif_clogged, 1);
			rc = REEVE_ECLOGGED;
			break;
		case ENDED:
			rc = rvn_send_ended(k);
			break;
		}
	}
	rv_buf_unref(b);
	return rc;
}

/* A large message, or one that is not one of a run, leaves on this thread if the worker sleeps; a run of small ones goes to
 * the worker, which sends what has come together meanwhile at once. */
static int
send_reserved(struct reeve_sink *k, reeve_buf_t *b, uint32_t n)
{
	bool alone = rvq_cell64_get(&k->queued) == n;
	bool lend = n >= LARGE ||
	    (alone && rv_clock_us() - rvq_cell64_get_relaxed(&k->sent_at) > PAUSE_US);
	int rc;

	if (lend)
		rva_lend_begin();
	rc = post_reserved(k, b, n);
	if (lend)
		rva_lend_end();
	if (alone)
		rvq_cell64_put(&k->sent_at, rv_clock_us());
	return rc;
}

struct wanted {
	struct reeve_sink *k;
	uint32_t n;
};

/* Worth another look: half is free, and n bytes fit; or it has ended. */
static bool
roomy(void *arg)
{
	const struct wanted *want = arg;
	uint64_t was = rvq_cell64_get(&want->k->queued), limit = want->k->limit;

	return (was & RVN_K_CLOSED) || was == 0 || (was <= limit / 2 && want->n <= limit - was);
}

/* Wait until a look is worth it: in the poller of the sink's worker if that sleeps, so that what makes room wakes this
 * thread and nobody else.  0 or REEVE_ETIMEDOUT. */
static int
wait_room(struct reeve_sink *k, uint32_t n, uint64_t deadline)
{
	struct wanted want = {k, n};

	if (deadline != 0 && rva_lend_lead(k->actor.home, roomy, &want, deadline))
		return roomy(&want) || rv_clock_us() < deadline ? 0 : REEVE_ETIMEDOUT;
	return rva_spin_park(&k->room, roomy, &want, k->actor.home->rt->spin_us, deadline);
}

int
reeve_sink_send(reeve_sink_t *k, reeve_buf_t *b, int64_t timeout_ms)
{
	uint64_t deadline = UINT64_MAX;
	enum reserve got = FULL;
	bool timed = false;
	uint32_t n = rvn_send_size(b);
	int rc = k == NULL ? REEVE_EINVAL : check(k, b);

	if (rc == 0)
		rc = rva_rt_may_block(k->rt);
	while (rc == 0 && (got = reserve(k, n)) == FULL) {
		if (!timed)
			deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
		timed = true;
		rc = wait_room(k, n, deadline);
	}
	if (rc == 0 && got == RESERVED)
		return send_reserved(k, b, n);
	rv_buf_unref(b);
	return rc < 0 ? rc : rvn_send_ended(k);
}

static void
unref_sink(void *k)
{
	reeve_sink_unref(k);
}

void
reeve_sink_send_async(reeve_sink_t *k, reeve_buf_t *b, reeve_op_t *op)
{
	struct rvn_kmark *m = NULL;
	enum reserve got;
	int rc = k == NULL ? REEVE_EINVAL : check(k, b);

	if (op == NULL) {
		rv_buf_unref(b);
		return;
	}
	if (rc == 0 && op->cq != NULL)
		rc = REEVE_ENOTSUP;
	if (rc == 0 && (m = mark_new(k, b, op)) == NULL)
		rc = REEVE_ENOMEM;
	if (rc < 0 || m == NULL) {
		rv_buf_unref(b);
		rva_op_refuse(k != NULL ? k->rt : NULL, op, rc);
		return;
	}
	got = reserve(k, m->n);
	m->reserved = got == RESERVED;
	rva_op_prepare(op, &k->actor, RVA_MSG_WRITE, reeve_sink_ref(k), unref_sink);
	rva_op(op)->buf = &m->head;
	post(k, &m->head); /* also when it has ended: answered by the actor, never in here */
}
