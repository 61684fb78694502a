/* notif_recv.c - the receiving side of a session: slices of the peer's substream become messages.
 *
 * A message that lies in one slice is handed out as it is, without a copy; one that does not is copied once.  A few reads are
 * under way at a time; none while the application holds more than its share, so that the peer's credit runs out, and nobody
 * else's. */
#include <config.h>

#include "node/notif_session.h"

#include "actors/connection.h"
#include "lib/check.h"
#include "lib/varint.h"

static void
on_read(reeve_op_t *op)
{
	struct reeve_sink *k = op->arg;

	(void)rvq_cell32_add(&k->rd_done, 1);
	rvn_session_ring(k, RVN_K_READ);
}

void
rvn_recv_begin(struct reeve_sink *k)
{
	for (unsigned i = 0; i < RVN_K_READS; i++) {
		reeve_op_init(&k->rd[i], on_read, k);
		rva_op_ours(&k->rd[i]);
	}
}

/* May more be taken in? */
static bool
full(struct reeve_sink *k)
{
	const struct reeve_notif *p = k->p;

	return rvq_cell64_get(&k->held) >= p->cfg.recv_queue ||
	    rvq_gauge_get(&p->held) >= p->cfg.recv_total;
}

static void
read_more(struct reeve_sink *k)
{
	while (k->in_rc == 1 && k->rd_out < RVN_K_READS &&
	    (k->phase == RVN_KP_RUN || k->phase == RVN_KP_DRAIN || k->phase == RVN_KP_DELIVER)) {
		reeve_op_t *op = &k->rd[(k->rd_head + k->rd_out) % RVN_K_READS];

		k->rd_out++;
		reeve_read_async(k->in, op);
	}
}

/* What reads brought, in order. */
void
rvn_recv_take(struct reeve_sink *k)
{
	uint32_t done = rvq_cell32_get(&k->rd_done);
	reeve_reason_t why;
	reeve_op_t *op;
	int rc;

	for (; k->rd_seen != done; k->rd_seen++) {
		op = &k->rd[k->rd_head];
		k->rd_head = (k->rd_head + 1) % RVN_K_READS;
		k->rd_out--;
		if (op->res > 0) {
			rc = k->phase >= RVN_KP_SETTLE ? REEVE_ECLOSED : 0;
			if (rc == 0)
				rc = rv_chain_push(&k->got, op->buf);
			else
				rv_buf_unref(op->buf);
			if (rc < 0 && k->phase < RVN_KP_SETTLE) {
				why = rvn_reason(rc, REEVE_BY_US);
				rvn_session_fail(k, &why);
				k->in_rc = rc;
			}
		} else if (op->res != REEVE_ECANCELED && k->in_rc == 1) {
			k->in_rc = (int)op->res;
		}
	}
}

/* --- messages --- */

/* Hand a message on; b NULL: one without bytes.  Consumes b.  False: the application wants it later. */
static bool
hand_on(struct reeve_sink *k, reeve_buf_t *b)
{
	struct reeve_notif *p = k->p;
	reeve_notif_event_t ev;
	struct rvn_nev *x;

	if (p->cfg.fn != NULL) {
		memset(&ev, 0, sizeof(ev));
		ev.size = sizeof(ev);
		ev.type = REEVE_NOTIF_RECEIVED;
		ev.peer = k->name;
		ev.dir = k->dir;
		ev.data = b;
		if (p->cfg.fn(p, &ev, p->cfg.arg) == REEVE_EAGAIN) {
			k->again = b;
			k->holding = true;
			return false;
		}
		rv_buf_unref(b);
		k->came++;
		return true;
	}
	if (b != NULL) {
		k->came_bytes += b->len;
		(void)rvq_cell64_add(&k->held, b->len);
		rvq_gauge_add(&p->held, b->len);
		k->due |= rvn_events_post(k->peer, b);
	} else {
		x = rvn_nev_new(k->arena);
		if (x == NULL)
			return false;
		x->type = REEVE_NOTIF_RECEIVED;
		k->due |= rvn_events_post(k->peer, &x->item);
	}
	k->came++;
	return true;
}

/* The length in front of a message.  Bytes used, 0: more has to come, or an error. */
static int
length(struct rv_chain *c, uint64_t *len)
{
	uint8_t head[RV_VARINT_MAX];
	const reeve_buf_t *b = c->head;
	size_t n = 0;
	int used;

	if (b == NULL)
		return 0;
	used = rv_varint_get(len, b->slab->data + b->off, b->len, RV_VARINT_MAX);
	if (used == REEVE_EAGAIN && b->next != NULL) {
		for (; b != NULL && n < sizeof(head); b = b->next)
			for (uint32_t i = 0; i < b->len && n < sizeof(head); i++)
				head[n++] = b->slab->data[b->off + i];
		used = rv_varint_get(len, head, n, RV_VARINT_MAX);
	}
	return used == REEVE_EAGAIN ? 0 : used;
}

/* The first n bytes of the first buffer, which has them.  NULL: out of memory. */
static reeve_buf_t *
whole(struct reeve_sink *k, uint32_t n)
{
	struct rv_chain *c = &k->got;
	reeve_buf_t *b = c->head, *m;
	bool small = n < RVA_COPY_BELOW && b->slab->cap > RVA_COPY_BELOW;

	if (b->len == n && !small)
		return rv_chain_pop(c);
	if (small) {
		m = rv_buf_alloc(k->actor.home->pool, n);
		if (m != NULL)
			memcpy(m->slab->data, b->slab->data + b->off, n);
	} else if (k->in->conn->w == k->actor.home) { /* who fills the block is this thread */
		m = rv_buf_cut(b->slab, b->off, n);
	} else {
		m = rv_buf_slice(b, 0, n);
	}
	if (m != NULL)
		rv_chain_skip(c, n);
	return m;
}

/* Copy to the message that is being put together.  True: it is complete. */
static bool
fill(struct reeve_sink *k)
{
	struct rv_chain *c = &k->got;
	reeve_buf_t *b;
	uint32_t n;

	while ((b = c->head) != NULL && k->fill < k->msg->len) {
		n = k->msg->len - k->fill < b->len ? k->msg->len - k->fill : b->len;
		memcpy(k->msg->slab->data + k->msg->off + k->fill, b->slab->data + b->off, n);
		k->fill += n;
		rv_chain_skip(c, n);
	}
	return k->fill == k->msg->len;
}

/* The next message.  1: *b (NULL: empty), 0: more has to come, or an error. */
static int
next_message(struct reeve_sink *k, reeve_buf_t **b)
{
	uint64_t len;
	int used;

	*b = NULL;
	if (k->msg == NULL) {
		used = length(&k->got, &len);
		if (used <= 0)
			return used;
		if (len > k->max_size)
			return REEVE_ETOOBIG;
		rv_chain_skip(&k->got, (size_t)used);
		if (len == 0)
			return 1;
		if (k->got.head != NULL && k->got.head->len >= len) {
			*b = whole(k, (uint32_t)len);
			return *b != NULL ? 1 : REEVE_ENOMEM;
		}
		k->msg = rv_buf_alloc(k->actor.home->pool, (size_t)len);
		if (k->msg == NULL)
			return REEVE_ENOMEM;
		k->fill = 0;
	}
	if (!fill(k))
		return 0;
	*b = k->msg;
	k->msg = NULL;
	return 1;
}

/* What the callback refused.  False: it still does. */
static bool
retry(struct reeve_sink *k)
{
	reeve_buf_t *b = k->again;

	if (!k->holding)
		return true;
	if (!k->resumed)
		return false;
	k->resumed = k->holding = false;
	k->again = NULL;
	return hand_on(k, b);
}

/* Tell the gauges, and who waits for events. */
static void
publish(struct reeve_sink *k)
{
	if (k->came > 0)
		rvq_gauge_add(&k->gauges->notif_received, k->came);
	if (k->came_bytes > 0)
		rvq_gauge_add(&k->gauges->held, k->came_bytes);
	k->came = k->came_bytes = 0;
	if (k->due)
		rvn_events_ring(k->peer);
	k->due = false;
}

/* Reading stops; whoever takes messages rings.  True: there is room after all. */
static bool
hungry(struct reeve_sink *k)
{
	struct reeve_notif *p = k->p;

	rvq_cell32_put(&k->hungry, 1);
	if (rvq_gauge_get(&p->held) >= p->cfg.recv_total) {
		rvn_nlock(p);
		if (!k->starved) {
			k->starved = true;
			k->snext = p->starved;
			p->starved = reeve_sink_ref(k);
			rvq_cell32_put(&p->starving, 1);
		}
		rvn_nunlock(p);
	}
	rvq_fence_full(); /* pairs with rvn_recv_freed: either it sees hungry or this sees what was freed */
	return !full(k);
}

void
rvn_recv_deliver(struct reeve_sink *k)
{
	reeve_reason_t why;
	reeve_buf_t *b;
	int rc = 1;

	k->stuck = false;
	if (k->phase != RVN_KP_RUN && k->phase != RVN_KP_DRAIN && k->phase != RVN_KP_DELIVER)
		return;
	while (retry(k) && !k->broken) {
		if (full(k) && !hungry(k)) {
			k->stuck = true;
			break;
		}
		rc = next_message(k, &b);
		if (rc <= 0)
			break;
		if (!hand_on(k, b) && !k->holding)
			rc = REEVE_ENOMEM;
		if (rc < 0)
			break;
	}
	if (rc < 0) {
		why = rvn_reason(rc, rc == REEVE_ENOMEM ? REEVE_BY_US : REEVE_BY_PEER);
		k->broken = true;
		rvn_session_fail(k, &why);
	}
	publish(k);
	if (!k->stuck && !k->holding && !k->broken)
		read_more(k);
}

void
rvn_recv_drop(struct reeve_sink *k)
{
	rv_buf_unref(k->again);
	rv_buf_unref(k->msg);
	k->again = k->msg = NULL;
	k->holding = k->stuck = false;
	rv_chain_clear(&k->got);
}

/* Those that stopped because of what all hold together go on. */
static void
feed_starved(struct reeve_notif *p)
{
	struct reeve_sink *k, *next;

	rvn_nlock(p);
	k = p->starved;
	p->starved = NULL;
	rvq_cell32_put(&p->starving, 0);
	rvn_nunlock(p);
	for (; k != NULL; k = next) {
		rvn_nlock(p);
		next = k->snext;
		k->starved =
		    false; /* from now on it may be starved again, and its link is its own */
		rvn_nunlock(p);
		rvn_session_ring(k, RVN_K_ROOM);
		reeve_sink_unref(k);
	}
}

void
rvn_recv_freed(struct reeve_notif *p, struct reeve_sink *k, uint64_t n)
{
	uint64_t mine = rvq_cell64_add(&k->held, UINT64_MAX - n + 1) - n;
	uint64_t all = rvq_gauge_sub(&p->held, n);

	rvq_gauge_sub(&p->gauges->held, n);
	rvq_fence_full();
	if (mine <= p->cfg.recv_queue / 2 && rvq_cell32_get_relaxed(&k->hungry) != 0 &&
	    rvq_cell32_swap(&k->hungry, 0) != 0)
		rvn_session_ring(k, RVN_K_ROOM);
	if (all <= p->cfg.recv_total / 4 * 3 && rvq_cell32_get_relaxed(&p->starving) != 0)
		feed_starved(p);
}

void
rvn_recv_forget(struct reeve_notif *p)
{
	feed_starved(p);
}
