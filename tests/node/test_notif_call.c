/* test_notif_call.c - events by a callback: not now, again, from inside. */
#include <config.h>

#include <pthread.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/peer.h"
#include "tests/kit/run.h"
#include "tests/node/notif_duo.h"

struct called {
	pthread_mutex_t lock;
	uint32_t opened, closed, next, refused;
	bool refuse, disorder, reenter;
	uint64_t lost;
};
static struct called c = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
on_event(reeve_notif_t *p, const reeve_notif_event_t *ev, void *arg)
{
	int rc = 0;

	(void)arg;
	pthread_mutex_lock(&c.lock);
	switch (ev->type) {
	case REEVE_NOTIF_VALIDATE:
		c.disorder |= reeve_notif_answer(p, ev->ticket, 1) != 0;
		break;
	case REEVE_NOTIF_OPENED:
		c.opened++;
		break;
	case REEVE_NOTIF_CLOSED:
		c.closed++;
		c.lost += ev->lost;
		if (c.reenter && c.closed < 5)
			c.disorder |= reeve_notif_open(p, ev->peer) != 0;
		break;
	case REEVE_NOTIF_RECEIVED:
		if (c.refuse) {
			c.refused++;
			rc = REEVE_EAGAIN;
			break;
		}
		c.disorder |= c.opened == c.closed || ev->data == NULL ||
		    reeve_buf_data(ev->data)[0] != (uint8_t)c.next;
		c.next++;
		break;
	default:
		c.disorder = true;
		break;
	}
	pthread_mutex_unlock(&c.lock);
	return rc;
}

static uint32_t
peek(const uint32_t *what)
{
	uint32_t n;

	pthread_mutex_lock(&c.lock);
	n = *what;
	pthread_mutex_unlock(&c.lock);
	return n;
}

static void
set_refuse(bool yes)
{
	pthread_mutex_lock(&c.lock);
	c.refuse = yes;
	pthread_mutex_unlock(&c.lock);
}

START_TEST(a_callback_that_says_not_now)
{
	prepare();
	nc[1].fn = on_event;
	nc[1].flags = 0;
	nc[0].flags = REEVE_NOTIF_AUTO_ACCEPT;
	nc[0].send_queue = 100000;
	rvt_notes_start(&t, &cfg);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	rvt_notes_expect(&t, 0, REEVE_NOTIF_OPENED, 1);
	k[0] = reeve_notif_sink(t.p[0], id(1));
	RVT_UNTIL(peek(&c.opened) == 1);
	set_refuse(true);
	for (uint32_t i = 0; i < 20; i++)
		ck_assert_int_eq(reeve_sink_send(k[0], note(3000, i), RVT_WAIT_MS), 0);
	RVT_UNTIL(peek(&c.refused) == 1);
	rvt_yield(50);
	ck_assert_uint_eq(peek(&c.refused), 1); /* not asked again by itself */
	reeve_notif_resume(t.p[1], id(0));
	RVT_UNTIL(peek(&c.refused) == 2);
	set_refuse(false);
	reeve_notif_resume(t.p[1], id(0));
	RVT_UNTIL(peek(&c.next) == 20);
	/* It says not now, the peer leaves: that comes behind what it does not want yet. */
	set_refuse(true);
	ck_assert_int_eq(reeve_sink_send(k[0], note(5, 20), RVT_WAIT_MS), 0);
	RVT_UNTIL(peek(&c.refused) == 3);
	ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), -1), 0);
	rvt_notes_expect(&t, 0, REEVE_NOTIF_CLOSED, 1);
	rvt_yield(50);
	ck_assert_uint_eq(peek(&c.closed), 0);
	set_refuse(false);
	reeve_notif_resume(t.p[1], id(0));
	RVT_UNTIL(peek(&c.closed) == 1);
	ck_assert_uint_eq(peek(&c.next), 21);
	ck_assert(!c.disorder);
	reeve_notif_resume(t.p[1], "nobody");
	reeve_sink_unref(k[0]);
	rvt_notes_end(&t);
}
END_TEST

START_TEST(a_callback_may_open_again)
{
	prepare();
	nc[0].fn = on_event;
	memset(&c.opened, 0, sizeof(c) - offsetof(struct called, opened));
	c.reenter = true;
	rvt_notes_start(&t, &cfg);
	ck_assert_int_eq(reeve_notif_open(t.p[0], id(1)), 0);
	for (uint32_t i = 1; i <= 5; i++) {
		rvt_notes_expect(&t, 1, REEVE_NOTIF_OPENED, 0);
		RVT_UNTIL(peek(&c.opened) == i);
		ck_assert_int_eq(reeve_notif_close(t.p[0], id(1), -1), 0);
		rvt_notes_expect(&t, 1, REEVE_NOTIF_CLOSED, 0);
		RVT_UNTIL(peek(&c.closed) == i);
	}
	ck_assert(!c.disorder);
	rvt_notes_end(&t);
}
END_TEST

RVT_MAIN("notif_call", &a_callback_that_says_not_now, &a_callback_may_open_again)
