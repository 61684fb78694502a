/* notif_send.c - the sending side of a session's actor: what senders posted (notif_sink.c) goes to its substream. */
#include <config.h>

#include "node/notif_session.h"

#include "lib/check.h"
#include "lib/varint.h"

#define PACK_BELOW 2048u /* bytes; smaller messages are copied together */

static void
fifo_push(struct reeve_sink *k, struct reeve_buf *item)
{
	item->next = NULL;
	*k->fifo_tail = item;
	k->fifo_tail = &item->next;
}

static struct reeve_buf *
fifo_pop(struct reeve_sink *k)
{
	struct reeve_buf *item = k->fifo;

	k->fifo = item->next;
	if (k->fifo == NULL)
		k->fifo_tail = &k->fifo;
	item->next = NULL;
	return item;
}

/* A mark's operation is answered; m goes on as a plain message, or (rc < 0) not at all. */
static void
answer(struct reeve_sink *k, struct rvn_kmark *m, int rc)
{
	reeve_op_t *op = m->op;

	m->op = NULL;
	rva_op(op)->buf = NULL;
	if (rc < 0)
		rvn_send_mark_free(k, m);
	rva_op_finish(op, rc);
}

/* The operation of m was claimed by a canceller: its cancel message, which comes or has come, answers it. */
static void
withdraw(struct reeve_sink *k, struct rvn_kmark *m)
{
	reeve_op_t *op = m->op;
	bool come = m->cancelled;

	rva_op(op)->buf = NULL;
	if (m->reserved)
		rvn_send_unreserve(k, m->n);
	rvn_send_mark_free(k, m);
	if (come)
		rva_op_finish(op, REEVE_ECANCELED);
}

/* A mark came: accepted now if it has a reservation, else in its turn. */
static void
take_mark(struct reeve_sink *k, struct rvn_kmark *m)
{
	bool late = !m->reserved && k->phase >= RVN_KP_DRAIN;

	m->taken = true;
	if (m->op == NULL) { /* a message without bytes */
		k->popped += m->n;
		fifo_push(k, &m->head);
	} else if (m->cancelled) {
		withdraw(k, m);
	} else if (!m->reserved && !late) {
		if (rva_op(m->op)->deadline < k->op_due)
			k->op_due = rva_op(m->op)->deadline;
		k->waiting++;
		fifo_push(k, &m->head);
	} else if (!rva_op_claim(m->op)) {
		withdraw(k, m);
	} else if (late) {
		answer(k, m, rvn_send_ended(k));
	} else {
		k->popped += m->n;
		fifo_push(k, &m->head);
		answer(k, m, 0);
	}
}

void
rvn_send_take(struct reeve_sink *k)
{
	struct rvq_node *n;
	struct reeve_buf *item;

	while (k->owning) {
		n = rvq_mailbox_pop_mpsc(&k->sendq);
		if (n == NULL) {
			k->owning = !rvq_mailbox_idle_mpsc(&k->sendq);
			if (k->owning) /* more came */
				rvn_session_ring(k, RVN_K_SEND);
			break;
		}
		item = rva_container(n, struct reeve_buf, next);
		if (item->slab == NULL) {
			take_mark(k, rva_container(item, struct rvn_kmark, head));
		} else {
			k->popped += rvn_send_size(item);
			fifo_push(k, item);
		}
	}
}

static bool
record(struct reeve_sink *k, uint32_t size)
{
	struct rvn_krec *last = k->nrec > 0 ? &k->rec[(k->rec_at + k->nrec - 1) % RVN_K_RECORDS]
					    : NULL;

	if (last != NULL && last->size == size && last->count < UINT32_MAX) {
		last->count++;
		return true;
	}
	if (k->nrec == RVN_K_RECORDS)
		return false;
	last = &k->rec[(k->rec_at + k->nrec++) % RVN_K_RECORDS];
	last->size = size;
	last->count = 1;
	return true;
}

/* An asynchronous send at the head of the queue: everything before it is with the substream.  True: it is a message now. */
static bool
accept_mark(struct reeve_sink *k, struct rvn_kmark *m)
{
	if (k->pushed > 0 && (k->pushed >= k->limit || m->n > k->limit - k->pushed))
		return false;
	if (!rva_op_claim(m->op))
		return false; /* its cancel message takes it out */
	k->waiting--;
	(void)rvq_cell64_add(&k->queued, m->n);
	k->popped += m->n;
	answer(k, m, 0);
	return true;
}

/* n bytes of a buffer behind c: small ones are copied, large ones go as they are.  Consumes b. */
static int
pack_bytes(struct reeve_sink *k, struct rv_chain *c, reeve_buf_t *b)
{
	size_t len = rv_buf_len(b);
	int rc;

	if (len >= PACK_BELOW)
		return rv_chain_push(c, b);
	rc = rv_chain_copy(c, k->actor.home->pool, NULL, rv_buf_data(b), len);
	rv_buf_unref(b);
	return rc;
}

/* One message behind c, its length in front.  Consumes item.  False: no memory. */
static bool
pack(struct reeve_sink *k, struct rv_chain *c, struct reeve_buf *item)
{
	struct rvn_kmark *m = item->slab == NULL ? rva_container(item, struct rvn_kmark, head)
						 : NULL;
	reeve_buf_t *b = m != NULL ? m->data : item;
	size_t len = b != NULL ? rv_buf_len(b) : 0;
	uint8_t head[RV_VARINT_MAX];
	int rc;

	rc = rv_chain_copy(c, k->actor.home->pool, NULL, head, rv_varint_put(head, len));
	if (rc == 0 && len > 0)
		rc = pack_bytes(k, c, b);
	else
		rv_buf_unref(b);
	if (m != NULL) {
		m->data = NULL;
		rvn_send_mark_free(k, m);
	}
	return rc == 0;
}

static void
put_all(struct reeve_sink *k, struct rv_chain *c)
{
	reeve_buf_t *b;

	while ((b = rv_chain_pop(c)) != NULL) {
		k->pushed += rv_buf_len(b);
		rva_stream_put(k->out, b);
	}
}

void
rvn_send_push(struct reeve_sink *k, bool all)
{
	reeve_reason_t why;
	struct rv_chain c;
	struct rvn_kmark *m;
	struct reeve_buf *item;
	size_t room;

	if (!k->tapped || k->out_shut)
		return;
	rv_chain_init(&c);
	room = all ? SIZE_MAX : rva_stream_budget(k->out);
	while ((item = k->fifo) != NULL && c.bytes < room) {
		m = item->slab == NULL ? rva_container(item, struct rvn_kmark, head) : NULL;
		if (m != NULL && m->op != NULL && !accept_mark(k, m))
			break;
		if (!record(k, m != NULL ? m->n : rvn_send_size(item)))
			break;
		if (!pack(k, &c, fifo_pop(k))) {
			rv_chain_clear(&c);
			why = rvn_reason(REEVE_ENOMEM, REEVE_BY_US);
			rvn_session_fail(k, &why);
			return;
		}
	}
	put_all(k, &c);
}

/* The transport took n bytes of what was pushed: whole messages leave the records. */
void
rvn_send_taken(struct reeve_sink *k, uint32_t n)
{
	struct rvn_krec *r;
	uint64_t left = n, whole, sent = 0;

	while (left > 0 && k->nrec > 0) {
		r = &k->rec[k->rec_at];
		left += k->rec_part;
		k->rec_part = 0;
		whole = left / r->size;
		if (whole < r->count) {
			r->count -= (uint32_t)whole;
			sent += whole;
			k->rec_part = (uint32_t)(left - whole * r->size);
			break;
		}
		sent += r->count;
		left -= (uint64_t)r->count * r->size;
		k->rec_at = (k->rec_at + 1) % RVN_K_RECORDS;
		k->nrec--;
	}
	k->pushed -= n;
	k->popped -= n;
	rvq_gauge_add(&k->gauges->notif_sent, sent);
	rvn_send_unreserve(k, n);
}

/* Asynchronous sends that were not accepted will not be. */
void
rvn_send_refuse(struct reeve_sink *k)
{
	struct reeve_buf **at = &k->fifo, *item;
	struct rvn_kmark *m;

	while (k->waiting > 0 && (item = *at) != NULL) {
		m = item->slab == NULL ? rva_container(item, struct rvn_kmark, head) : NULL;
		if (m == NULL || m->op == NULL) {
			at = &item->next;
			continue;
		}
		if ((*at = item->next) == NULL)
			k->fifo_tail = at;
		k->waiting--;
		if (rva_op_claim(m->op))
			answer(k, m, rvn_send_ended(k));
		else
			withdraw(k, m);
		at = &k->fifo; /* the completion may have done anything */
	}
}

/* Bytes of the length in front of a message of so many bytes with it. */
static uint32_t
prefix_of(uint32_t size)
{
	uint32_t n = 1;

	while (n < RV_VARINT_MAX && (size - n) >> (7 * n) != 0)
		n++;
	return n;
}

/* Nothing of what is left will be sent: it is counted.  What senders have reserved and not posted yet comes later. */
void
rvn_send_drop(struct reeve_sink *k)
{
	struct rvn_kmark *m;
	struct reeve_buf *item;

	rvn_send_refuse(k);
	for (; k->nrec > 0; k->nrec--, k->rec_at = (k->rec_at + 1) % RVN_K_RECORDS) {
		struct rvn_krec *r = &k->rec[k->rec_at];

		k->lost += r->count;
		k->lost_bytes += (uint64_t)r->count * (r->size - prefix_of(r->size));
	}
	k->rec_part = 0;
	k->pushed = 0;
	while (k->fifo != NULL) {
		item = fifo_pop(k);
		m = item->slab == NULL ? rva_container(item, struct rvn_kmark, head) : NULL;
		k->lost++;
		k->lost_bytes +=
		    m != NULL && m->data == NULL ? 0 : rv_buf_len(m != NULL ? m->data : item);
		if (m != NULL)
			rvn_send_mark_free(k, m);
		else
			rv_buf_unref(item);
	}
	rvn_send_unreserve(k, k->popped);
	k->popped = 0;
}

void
rvn_send_cancel(struct reeve_sink *k, reeve_op_t *op)
{
	struct rvn_kmark *m;
	struct reeve_buf **at;

	rvn_send_take(k);
	if (rva_op(op)->buf != NULL) { /* else it was taken out */
		m = rva_container(rva_op(op)->buf, struct rvn_kmark, head);
		m->cancelled = true;
		if (!m->taken) /* its turn is still to come */
			return;
		at = &k->fifo;
		while (*at != &m->head)
			at = &(*at)->next;
		if ((*at = m->head.next) == NULL)
			k->fifo_tail = at;
		k->waiting--;
		withdraw(k, m);
		return;
	}
	rva_op_finish(op, REEVE_ECANCELED);
}

uint64_t
rvn_send_expire(struct reeve_sink *k, uint64_t now)
{
	struct reeve_buf **at = &k->fifo, *item;
	uint64_t next = UINT64_MAX;
	struct rvn_kmark *m;

	while (k->waiting > 0 && (item = *at) != NULL) {
		m = item->slab == NULL ? rva_container(item, struct rvn_kmark, head) : NULL;
		if (m == NULL || m->op == NULL) {
			at = &item->next;
		} else if (rva_op(m->op)->deadline <= now && rva_op_claim(m->op)) {
			if ((*at = item->next) == NULL)
				k->fifo_tail = at;
			k->waiting--;
			answer(k, m, REEVE_ETIMEDOUT);
			at = &k->fifo; /* the completion may have done anything */
		} else {
			if (rva_op(m->op)->deadline > now && rva_op(m->op)->deadline < next)
				next = rva_op(m->op)->deadline;
			at = &item->next;
		}
	}
	return next;
}
