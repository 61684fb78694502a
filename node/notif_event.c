/* notif_event.c - events on their way to the application: to its callback at once, or to reeve_notif_next.
 *
 * Each peer has a mailbox of its own, with messages (buffers) and events in their order.  A peer whose mailbox has something
 * is in one list of those that are ready, once; whoever takes gets one thing of the first, which then goes behind the others.
 * So a message costs no allocation, and the thread that waits is woken once for all that comes while it is awake. */
#include <config.h>

#include "node/notif_session.h"

#include "actors/lend.h"
#include "actors/runtime.h"
#include "actors/spin.h"
#include "actors/runtime.h"
#include "lib/check.h"

#define FREED_AT_ONCE \
	(64u << 10) /* bytes taken before the session hears of it, unless nothing is left to take */

_Static_assert(
    sizeof(struct rvq_node) == sizeof(struct reeve_buf *), "a buffer's link can be a mailbox's");

struct rvn_nev *
rvn_nev_new(struct rv_arena *ar)
{
	struct rvn_nev *ev = rv_zalloc(ar, sizeof(*ev));

	if (ev != NULL)
		ev->arena = ar;
	return ev;
}

void
rvn_nev_free(struct rvn_nev *ev)
{
	if (ev == NULL)
		return;
	rv_buf_unref(ev->data);
	reeve_sink_unref(ev->sink);
	rv_free(ev->arena, ev, sizeof(*ev));
}

void
rvn_nev_show(const struct rvn_nev *ev, reeve_notif_event_t *out)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->type = ev->type;
	out->peer = ev->peer->name;
	out->name = ev->name;
	out->dir = ev->dir;
	out->data = ev->data;
	out->sink = ev->sink;
	out->ticket = ev->ticket;
	out->reason = ev->reason;
	out->step = ev->step;
	out->lost = ev->lost;
	out->lost_bytes = ev->lost_bytes;
}

void
rvn_nev_say(struct rvn_npeer *r, struct rvn_nev *ev)
{
	reeve_notif_event_t shown;

	if (r->p->cfg.fn == NULL) {
		if (rvn_events_post(r, &ev->item))
			rvn_events_ring(r);
		return;
	}
	rvn_nev_show(ev, &shown);
	(void)r->p->cfg.fn(r->p, &shown, r->p->cfg.arg);
	rvn_nev_free(ev);
	rvn_npeer_drop(r);
}

/* --- the queue, any thread --- */

bool
rvn_events_post(struct rvn_npeer *r, struct reeve_buf *item)
{
	return rvq_mailbox_post_mpsc(&r->evq, (struct rvq_node *)(void *)&item->next);
}

/* Who sleeps, on the parker or in a worker's poller. */
static void
wake(struct rvn_events *e)
{
	struct rva_worker *w;

	(void)rvq_parker_wake(&e->parker); /* with a full fence */
	w = rvq_cellptr_get(&e->leading);
	if (w != NULL && w != rva_self)
		rvq_waker_poke(&w->waker);
}

void
rvn_events_ring(struct rvn_npeer *r)
{
	struct rvn_events *e = &r->p->events;

	/* Nobody takes from an idle mailbox: it is ours until it is in the list. */
	if (rvq_stack_push_mpsc(&e->fresh, &r->ready) == RVQ_FIRST)
		wake(e);
}

int
rvn_events_init(struct rvn_events *e)
{
	rvq_stack_init(&e->fresh);
	rvq_parker_init(&e->parker);
	rvq_cell32_put(&e->done, 0);
	e->tail = &e->head;
	return pthread_mutex_init(&e->lock, NULL) == 0 ? 0 : REEVE_ENOMEM;
}

void
rvn_events_done(struct rvn_events *e)
{
	rvq_cell32_put(&e->done, 1);
	wake(e);
}

/* --- consumers, under the events' lock --- */

static void
ready_again(struct rvn_events *e, struct rvn_npeer *r)
{
	r->ready.next = NULL;
	*e->tail = &r->ready;
	e->tail = &r->ready.next;
}

static struct rvn_npeer *
first_ready(struct rvn_events *e)
{
	struct rvq_link *l, *next;

	for (l = rvq_stack_take_fifo_mpsc(&e->fresh); l != NULL; l = next) {
		next = l->next;
		ready_again(e, rva_container(l, struct rvn_npeer, ready));
	}
	l = e->head;
	if (l == NULL)
		return NULL;
	e->head = l->next;
	if (e->head == NULL)
		e->tail = &e->head;
	return rva_container(l, struct rvn_npeer, ready);
}

/* Tell the session whose messages were taken last how many bytes that were. */
static void
settle(struct reeve_notif *p)
{
	struct rvn_events *e = &p->events;

	if (e->taken > 0)
		rvn_recv_freed(p, e->last, e->taken);
	e->taken = 0;
}

static void
account(struct reeve_notif *p, struct reeve_sink *k, uint64_t n)
{
	struct rvn_events *e = &p->events;

	if (e->last != k) {
		settle(p);
		reeve_sink_unref(e->last);
		e->last = reeve_sink_ref(k);
		rvq_cellptr_put(&e->home, k->actor.home);
	}
	e->taken += n;
	if (e->taken >= FREED_AT_ONCE)
		settle(p);
}

static void
show_message(reeve_notif_event_t *ev, struct reeve_sink *k, reeve_buf_t *b)
{
	memset(ev, 0, sizeof(*ev));
	ev->size = sizeof(*ev);
	ev->type = REEVE_NOTIF_RECEIVED;
	ev->peer = k->name;
	ev->dir = k->dir;
	ev->data = b;
	ev->priv[1] = reeve_sink_ref(k);
}

/* An item of r to ev. */
static void
show(struct reeve_notif *p, struct rvn_npeer *r, struct reeve_buf *item, reeve_notif_event_t *ev)
{
	struct rvn_nev *x = rva_container(item, struct rvn_nev, item);

	item->next = NULL;
	if (item->slab != NULL) {
		show_message(ev, r->cur, item);
		account(p, r->cur, item->len);
	} else if (x->type == REEVE_NOTIF_RECEIVED) {
		rvn_nev_free(x);
		show_message(ev, r->cur, NULL);
	} else {
		rvn_nev_show(x, ev);
		ev->priv[0] = x;
		if (x->type == REEVE_NOTIF_OPENED) {
			r->cur = reeve_sink_ref(x->sink);
		} else if (x->type == REEVE_NOTIF_CLOSED) {
			reeve_sink_unref(r->cur);
			r->cur = NULL;
		}
	}
}

/* The next thing that is there.  False: nothing.  A peer stays in the list only while its mailbox has something, for that is
 * what keeps its record. */
static bool
take(struct reeve_notif *p, reeve_notif_event_t *ev)
{
	struct rvn_events *e = &p->events;
	struct rvn_npeer *r;
	struct rvq_node *n;

	while ((r = first_ready(e)) != NULL) {
		n = rvq_mailbox_pop_mpsc(&r->evq);
		if (n != NULL)
			show(p, r, rva_container(n, struct reeve_buf, next), ev);
		if (!rvq_mailbox_idle_mpsc(&r->evq))
			ready_again(e, r);
		else
			settle(p);
		if (n != NULL)
			return true;
	}
	settle(p);
	return false;
}

static bool
arrived(void *arg)
{
	struct rvn_events *e = arg;

	return !rvq_stack_empty(&e->fresh) || rvq_cell32_get(&e->done) != 0;
}

/* Wait for something to look at: one thread of those that wait in the poller of the worker that had the last message, so
 * that what it waits for wakes it and nobody else.  REEVE_ETIMEDOUT. */
static int
wait_more(struct rvn_events *e, uint32_t spin_us, uint64_t deadline)
{
	struct rva_worker *w = rvq_cellptr_get(&e->home);
	bool led;
	int rc;

	if (w != NULL && rvq_cellptr_cas(&e->leading, NULL, w)) {
		led = rva_lend_lead(w, arrived, e, deadline);
		rvq_cellptr_put(&e->leading, NULL);
		if (led)
			return arrived(e) || rv_clock_us() < deadline ? 0 : REEVE_ETIMEDOUT;
	}
	rc = rva_spin_park(&e->parker, arrived, e, spin_us, deadline);
	return rc == REEVE_ETIMEDOUT && arrived(e) ? 0 : rc;
}

int
reeve_notif_next(reeve_notif_t *p, reeve_notif_event_t *ev, int64_t timeout_ms)
{
	uint64_t deadline;
	bool got, done;
	int rc;

	REEVE_REQUIRE(p != NULL && ev != NULL && p->cfg.fn == NULL, REEVE_EINVAL);
	rc = rva_rt_may_block(p->rt);
	REEVE_REQUIRE(rc == 0, rc);
	deadline = rv_deadline_us(rv_clock_us(), timeout_ms);
	for (;;) {
		done = rvq_cell32_get(&p->events.done) != 0;
		pthread_mutex_lock(&p->events.lock);
		got = take(p, ev);
		pthread_mutex_unlock(&p->events.lock);
		if (got || done)
			return got ? 0 : REEVE_ECLOSED;
		if (timeout_ms == 0 ||
		    wait_more(&p->events, p->rt->spin_us, deadline) == REEVE_ETIMEDOUT)
			return REEVE_ETIMEDOUT;
	}
}

void
reeve_notif_release(reeve_notif_t *p, reeve_notif_event_t *ev)
{
	struct rvn_nev *x;

	if (p == NULL || ev == NULL)
		return;
	x = ev->priv[0];
	if (x != NULL) {
		struct rvn_npeer *r = x->peer;

		rvn_nev_free(x);
		rvn_npeer_drop(r);
	} else if (ev->type == REEVE_NOTIF_RECEIVED) {
		rv_buf_unref(ev->data);
		reeve_sink_unref(ev->priv[1]);
	}
	memset(ev, 0, sizeof(*ev));
}

void
rvn_events_fini(struct reeve_notif *p)
{
	struct rvn_events *e = &p->events;
	reeve_notif_event_t ev;

	while (take(p, &ev))
		reeve_notif_release(p, &ev);
	reeve_sink_unref(e->last);
	e->last = NULL;
	pthread_mutex_destroy(&e->lock);
}
