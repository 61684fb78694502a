/* req_books.c - what a protocol counts of its peers' requests, and who waits for what: limits, room for bodies, the queue of
 * reeve_inbound_next.
 *
 * Everything here is under the protocol's lock, for a few stores each time; bells are rung under it, since only what is in
 * the books may be rung. */
#include <config.h>

#include <string.h>

#include "lib/check.h"
#include "node/req.h"

static struct reeve_inbound **
chain_of(reeve_reqs_t *r, const char *peer)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *peer != 0; peer++)
		h = (h ^ (uint8_t)*peer) * 16777619u;
	return &r->chain[(h ^ h >> 16) % RVN_REQ_CHAINS];
}

static void
push(struct rvn_in_list *l, struct reeve_inbound *in)
{
	in->wait_next = NULL;
	in->wait_prev = l->tail;
	if (l->tail != NULL)
		l->tail->wait_next = in;
	else
		l->head = in;
	l->tail = in;
}

static void
take_out(struct rvn_in_list *l, struct reeve_inbound *in)
{
	if (in->wait_next != NULL)
		in->wait_next->wait_prev = in->wait_prev;
	else
		l->tail = in->wait_prev;
	if (in->wait_prev != NULL)
		in->wait_prev->wait_next = in->wait_next;
	else
		l->head = in->wait_next;
	in->wait_next = in->wait_prev = NULL;
}

static bool
room_for(const reeve_reqs_t *r, uint64_t len)
{
	return r->held == 0 || (r->held <= r->cfg.max_held && len <= r->cfg.max_held - r->held);
}

static void
hold(reeve_reqs_t *r, struct reeve_inbound *in, uint64_t len)
{
	in->held = len;
	r->held += len;
	(void)rvq_gauge_add(&r->gauges->held, len);
}

/* Who waits for room gets it, in order. */
static void
let_in(reeve_reqs_t *r)
{
	struct reeve_inbound *in;

	while ((in = r->gate.head) != NULL && room_for(r, in->frame.len)) {
		take_out(&r->gate, in);
		in->parked = false;
		hold(r, in, in->frame.len);
		rva_ring(&in->actor, &in->bell, RVN_IN_RESUME);
	}
}

static void
give(reeve_reqs_t *r, struct reeve_inbound *in)
{
	r->held -= in->held;
	(void)rvq_gauge_sub(&r->gauges->held, in->held);
	in->held = 0;
}

static void
uncount(reeve_reqs_t *r, struct reeve_inbound *in)
{
	if (in->counted)
		r->active--;
	in->counted = false;
}

/* One peer's requests that count, at most so many are looked for. */
static uint32_t
of_peer(const struct reeve_inbound *first, const char *peer, uint32_t most)
{
	uint32_t n = 0;

	for (const struct reeve_inbound *in = first; in != NULL && n < most; in = in->next)
		n += in->counted && strcmp(in->peer, peer) == 0;
	return n;
}

bool
rvn_in_enter(reeve_reqs_t *r, struct reeve_inbound *in)
{
	struct reeve_inbound **chain = chain_of(r, in->peer);
	uint32_t most = r->cfg.max_inbound_peer;
	bool ok;

	pthread_mutex_lock(&r->lock);
	ok = !r->closed && r->active < r->cfg.max_inbound &&
	    (most >= r->cfg.max_inbound || of_peer(*chain, in->peer, most) < most);
	if (ok) {
		in->counted = true;
		r->active++;
		in->next = *chain;
		in->pprev = chain;
		if (in->next != NULL)
			in->next->pprev = &in->next;
		*chain = in;
	}
	pthread_mutex_unlock(&r->lock);
	return ok;
}

void
rvn_in_leave(reeve_reqs_t *r, struct reeve_inbound *in)
{
	pthread_mutex_lock(&r->lock);
	if (in->parked)
		take_out(&r->gate, in);
	in->parked = false;
	uncount(r, in);
	give(r, in);
	if (in->next != NULL)
		in->next->pprev = in->pprev;
	*in->pprev = in->next;
	let_in(r);
	pthread_mutex_unlock(&r->lock);
}

bool
rvn_in_admit(reeve_reqs_t *r, struct reeve_inbound *in, uint64_t len)
{
	bool ok;

	pthread_mutex_lock(&r->lock);
	ok = r->gate.head == NULL && room_for(r, len);
	if (ok)
		hold(r, in, len);
	else
		push(&r->gate, in);
	in->parked = !ok;
	pthread_mutex_unlock(&r->lock);
	return ok;
}

void
rvn_in_give(reeve_reqs_t *r, struct reeve_inbound *in)
{
	pthread_mutex_lock(&r->lock);
	give(r, in);
	let_in(r);
	pthread_mutex_unlock(&r->lock);
}

void
rvn_in_uncount(reeve_reqs_t *r, struct reeve_inbound *in)
{
	pthread_mutex_lock(&r->lock);
	uncount(r, in);
	pthread_mutex_unlock(&r->lock);
}

void
rvn_in_queue(reeve_reqs_t *r, struct reeve_inbound *in)
{
	pthread_mutex_lock(&r->lock);
	push(&r->queue, in);
	in->queued = true;
	pthread_cond_signal(&r->ready);
	pthread_mutex_unlock(&r->lock);
}

bool
rvn_in_unqueue(reeve_reqs_t *r, struct reeve_inbound *in)
{
	bool was;

	pthread_mutex_lock(&r->lock);
	was = in->queued;
	if (was)
		take_out(&r->queue, in);
	in->queued = false;
	pthread_mutex_unlock(&r->lock);
	return was;
}

void
rvn_in_close_all(reeve_reqs_t *r)
{
	pthread_mutex_lock(&r->lock);
	r->closed = true;
	pthread_cond_broadcast(&r->ready);
	for (unsigned i = 0; i < RVN_REQ_CHAINS; i++) {
		for (struct reeve_inbound *in = r->chain[i]; in != NULL; in = in->next)
			rva_ring(&in->actor, &in->bell, RVN_IN_CLOSE);
	}
	pthread_mutex_unlock(&r->lock);
}

/* --- reeve_inbound_next --- */

/* Whoever asked is still there. */
static bool
wanted(const struct reeve_inbound *in)
{
	int rc = rva_rc(&in->stream->wr_rc);

	return rc == RVA_RC_OPEN;
}

/* Under the lock: the first whose requester has not left; those who have go to *gone. */
static struct reeve_inbound *
next_wanted(reeve_reqs_t *r, struct rvn_in_list *gone)
{
	struct reeve_inbound *in;

	while ((in = r->queue.head) != NULL) {
		take_out(&r->queue, in);
		in->queued = false;
		if (wanted(in))
			break;
		push(gone, in);
	}
	return in;
}

/* Under the lock, which is let go of meanwhile. */
static void
refuse_all(reeve_reqs_t *r, struct rvn_in_list *l)
{
	struct reeve_inbound *in;

	pthread_mutex_unlock(&r->lock);
	while ((in = l->head) != NULL) {
		take_out(l, in);
		reeve_refuse(in);
	}
	pthread_mutex_lock(&r->lock);
}

/* Under the lock.  0, REEVE_ETIMEDOUT, REEVE_ECLOSED. */
static int
wait_next(reeve_reqs_t *r, struct reeve_inbound **out, uint64_t until)
{
	struct timespec ts = {
	    .tv_sec = (time_t)(until / 1000000), .tv_nsec = (long)(until % 1000000) * 1000};
	struct rvn_in_list gone = {NULL, NULL};
	struct reeve_inbound *in;
	int rc = 0;

	for (;;) {
		in = r->closed ? NULL : next_wanted(r, &gone);
		if (gone.head != NULL)
			refuse_all(r, &gone);
		else if (in == NULL && r->closed)
			return REEVE_ECLOSED;
		else if (in == NULL && rc != 0)
			return REEVE_ETIMEDOUT;
		else if (in == NULL && until == UINT64_MAX)
			(void)pthread_cond_wait(&r->ready, &r->lock);
		else if (in == NULL)
			rc = pthread_cond_timedwait(&r->ready, &r->lock, &ts);
		if (in != NULL) {
			*out = in;
			return 0;
		}
	}
}

int
reeve_inbound_next(reeve_reqs_t *r, reeve_inbound_t **out, int64_t timeout_ms)
{
	reeve_node_t *n;
	int rc;

	REEVE_REQUIRE(r != NULL && out != NULL && r->cfg.fn == NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(r->rt);
	REEVE_REQUIRE(rc == 0, rc);
	n = r->proto.node;
	if (!rvn_hold(n))
		return REEVE_ECLOSED;
	pthread_mutex_lock(&r->lock);
	rc = wait_next(r, out, rv_deadline_us(rv_clock_us(), timeout_ms));
	pthread_mutex_unlock(&r->lock);
	rvn_drop(n);
	return rc;
}
