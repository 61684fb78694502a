/* mux_tx.c - what engines have in common: bodies by deficit round robin, and the list of streams that owe control
 * frames.
 *
 * Bodies can be cut anywhere, so a round is exactly a quantum and the deficit is only what a full gather left over. */
#include <config.h>

#include "lib/engine/mux.h"

void
rv_mux_tx_control(struct rv_mux *m, struct rv_gather *g)
{
	struct rv_stream *st;

	while ((st = m->ctl.head) != NULL && rv_gather_room(g)) {
		m->ctl.head = st->ctl_next;
		if (m->ctl.head == NULL)
			m->ctl.tail = NULL;
		st->flags &= ~RV_ST_IN_CTL;
		if (st->flags & RV_ST_TABLED)
			m->proto->owed(m, g, st);
		else
			rv_mux_note(m, st);
	}
}

/* The first n bytes of the first buffer of st are copied; held: bytes copied since the last
 * account. */
static void
tx_copy(struct rv_gather *g, struct rv_stream *st, uint32_t n, uint32_t *held)
{
	reeve_buf_t *b = st->out.head;

	rv_gather_stage(g, rv_buf_data(b), n);
	*held += n;
	if (n < b->len) {
		rv_chain_skip(&st->out, n);
		return;
	}
	(void)rv_chain_pop(&st->out);
	if (st->flags & RV_ST_PART) {
		/* An earlier part was referenced and may still be on its way. */
		st->flags &= ~RV_ST_PART;
		rv_gather_account(g, st, *held, b);
		*held = 0;
	} else {
		rv_buf_unref(b);
	}
}

static void
tx_ref(struct rv_gather *g, struct rv_stream *st, uint32_t n, uint32_t *held)
{
	reeve_buf_t *b = st->out.head;

	rv_gather_ref(g, rv_buf_data(b), n);
	if (n < b->len) {
		rv_chain_skip(&st->out, n);
		st->flags |= RV_ST_PART;
		b = NULL;
	} else {
		(void)rv_chain_pop(&st->out);
		st->flags &= ~RV_ST_PART;
	}
	rv_gather_account(g, st, *held + n, b);
	*held = 0;
}

/* Every piece is counted as if it took an iovec and an account of its own. */
uint32_t
rv_mux_tx_fit(const struct rv_gather *g, const struct rv_stream *st, uint32_t max, uint32_t header)
{
	size_t stage = g->stage_used + header;
	unsigned nacct = g->nacct;
	int niov = g->niov + 1;
	const reeve_buf_t *b;
	uint32_t done = 0, n;

	for (b = st->out.head; b != NULL && done < max; b = b->next) {
		n = b->len < max - done ? b->len : max - done;
		if (niov + 2 > RV_IOV_MAX || nacct + 2 > RV_ACCT_MAX)
			break;
		if (n < RV_STAGE_MAX && stage + n > RV_STAGE_SIZE)
			break;
		if (n < RV_STAGE_MAX)
			stage += n;
		niov++;
		nacct++;
		done += n;
	}
	return done;
}

/* Up to want bytes of st into g, as many as it has room for.  Returns how many. */
uint32_t
rv_mux_tx_body(struct rv_mux *m, struct rv_gather *g, struct rv_stream *st, uint32_t want)
{
	uint32_t done = 0, held = 0, n;

	while (done < want && st->out.head != NULL) {
		n = st->out.head->len < want - done ? st->out.head->len : want - done;
		/* The header took one of the three that rv_gather_room saw: a first piece always
		 * fits. */
		if (g->niov + 2 > RV_IOV_MAX || g->nacct + 2 > RV_ACCT_MAX)
			break;
		if (n >= RV_STAGE_MAX) {
			tx_ref(g, st, n, &held);
		} else {
			if (g->stage_used + n > RV_STAGE_SIZE)
				break;
			tx_copy(g, st, n, &held);
			rvq_counter_add(&m->e.stats.copied_out, n);
		}
		done += n;
	}
	if (held > 0)
		rv_gather_account(g, st, held, NULL);
	return done;
}

/* The first of the ready list has nothing more to send, or may not. */
static void
tx_unready(struct rv_mux *m, struct rv_stream *st)
{
	m->ready.head = st->ready_next;
	if (m->ready.head == NULL)
		m->ready.tail = NULL;
	st->flags &= ~RV_ST_IN_READY;
	st->deficit = 0;
	if (!(st->flags & RV_ST_TABLED)) {
		rv_mux_note(m, st);
		return;
	}
	if (st->out.bytes > 0 && st->send_credit == 0 && !(st->flags & RV_ST_STALLED)) {
		st->flags |= RV_ST_STALLED;
		rvq_counter_add(&m->e.stats.stalls_window, 1);
	}
	if ((st->flags & RV_ST_RST) || (st->tx == RV_TX_SHUT && st->out.bytes == 0))
		rv_mux_ctl_add(m, st);
	rv_mux_check_end(m, st);
}

static void
tx_rotate(struct rv_mux *m, struct rv_stream *st)
{
	if (st->ready_next == NULL)
		return;
	m->ready.head = st->ready_next;
	m->ready.tail->ready_next = st;
	m->ready.tail = st;
	st->ready_next = NULL;
}

/* Deficit round robin: M. Shreedhar, G. Varghese, "Efficient fair queueing using deficit round
 * robin" (1995). */
void
rv_mux_tx_data(struct rv_mux *m, struct rv_gather *g, uint32_t max)
{
	uint32_t quantum = max > g->turn ? max : g->turn, n;
	struct rv_stream *st;

	while ((st = m->ready.head) != NULL && rv_gather_room(g)) {
		if (!rv_mux_sendable(st)) {
			tx_unready(m, st);
			continue;
		}
		if (st->deficit == 0 || st->deficit > quantum)
			st->deficit = quantum;
		n = m->proto->frame(m, g, st, st->deficit < max ? st->deficit : max, st->deficit);
		st->deficit -= n;
		/* What a message's end has left of a turn is not worth a frame of its own. */
		if (g->message != 0 && st->deficit < RV_STAGE_MAX)
			st->deficit = 0;
		if (!rv_mux_sendable(st))
			tx_unready(m, st);
		else if (st->deficit == 0)
			tx_rotate(m, st);
	}
}
