/* cat_watch.c - what main does while the pumps run: the progress line, the silence that is too long, the end. */
#include <config.h>

#include "tools/cat.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/term.h"

#define MAX_BAR 30
#define TICK_US 200000
#define END_US  1000000 /* after an error: how long the pumps may take to notice */

/* What is shown; rates are of the last moments, a little smoothed. */
struct view {
	struct term_line line;
	bool on;
	uint64_t begin_us, last_us, last_bytes;
	double rate; /* bytes a second */
};

/* The counters at one moment. */
struct moment {
	uint64_t sent, received, now_us;
};

static void
view_init(struct view *v, const struct cat *c)
{
	memset(v, 0, sizeof(*v));
	term_init(&v->line, stderr);
	v->on = c->opt.show && (c->opt.when == CAT_ALWAYS || v->line.live);
	v->begin_us = v->last_us = term_now_us();
}

/* "sent 12 MiB [====>    ]  45%  received 3 MiB  120 MiB/s  0:02", as wide as the terminal. */
static void
view_text(struct view *v, const struct cat *c, const struct moment *m, char out[TERM_TEXT])
{
	char head[64], tail[96], bar[MAX_BAR + 1], percent[8] = "", a[16], b[16], r[16];
	double part = c->total > 0 ? (double)m->sent / (double)c->total : -1;
	unsigned s = (unsigned)((m->now_us - v->begin_us) / 1000000);
	int room;

	snprintf(head, sizeof(head), "sent %s", term_bytes(a, (double)m->sent));
	if (part >= 0)
		snprintf(percent, sizeof(percent), " %3.0f%%", part > 1 ? 100.0 : part * 100);
	snprintf(tail, sizeof(tail), "%s  received %s  %s/s  %u:%02u", percent,
	    term_bytes(b, (double)m->received), term_bytes(r, v->rate), s / 60, s % 60);
	room = v->line.width -
	    (int)(sizeof("sent 1023 MiB ") + sizeof(" 100%  received 1023 MiB  1023 MiB/s  00:00"));
	term_bar(bar, room < MAX_BAR ? room : MAX_BAR, part, v->line.ticks);
	snprintf(out, TERM_TEXT, "%-13s %s%s", head, bar, tail);
}

static void
view_tick(struct view *v, const struct cat *c, const struct moment *m)
{
	char text[TERM_TEXT];
	uint64_t bytes = m->sent + m->received;
	double rate;

	if (!v->on || m->now_us <= v->last_us)
		return;
	rate = (double)(bytes - v->last_bytes) * 1e6 / (double)(m->now_us - v->last_us);
	v->rate = v->rate > 0 ? v->rate * 0.6 + rate * 0.4 : rate;
	v->last_us = m->now_us;
	v->last_bytes = bytes;
	view_text(v, c, m, text);
	term_show(&v->line, text);
}

/* The last line has the average. */
static void
view_end(struct view *v, const struct cat *c, const struct moment *m)
{
	char text[TERM_TEXT];

	if (!v->on)
		return;
	v->rate = m->now_us > v->begin_us
	    ? (double)(m->sent + m->received) * 1e6 / (double)(m->now_us - v->begin_us)
	    : 0;
	view_text(v, c, m, text);
	term_finish(&v->line, text);
}

/* Under the lock. */
static void
wait_until(struct cat *c, uint64_t us)
{
	struct timespec t = {
	    .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};

	pthread_cond_timedwait(&c->changed, &c->lock, &t);
}

/* Under the lock: when to look again. */
static uint64_t
next_look(const struct cat *c, const struct view *v, uint64_t now)
{
	uint64_t next = now + (v->on ? TICK_US : 3600 * (uint64_t)1000000);
	uint64_t limit = c->moved_us + (uint64_t)c->opt.timeout_ms * 1000;

	return c->opt.timeout_ms >= 0 && limit < next ? limit : next;
}

/* Under the lock: after an error, end what still waits. */
static void
stop_pumps(struct cat *c)
{
	uint64_t limit = term_now_us() + END_US;
	uint32_t code = c->opt.reset ? c->opt.reset_code : 0;

	pthread_mutex_unlock(&c->lock);
	if (write(c->wake[1], "", 1) < 0)
		limit = 0;
	reeve_reset(c->stream, code);
	pthread_mutex_lock(&c->lock);
	while (c->running > 0 && term_now_us() < limit)
		wait_until(c, limit);
}

bool
cat_watch(struct cat *c)
{
	struct view v;
	struct moment m;
	bool ended;

	view_init(&v, c);
	pthread_mutex_lock(&c->lock);
	for (;;) {
		m = (struct moment){c->sent, c->received, term_now_us()};
		if (c->running == 0 || c->rc != 0)
			break;
		if (c->opt.timeout_ms >= 0 &&
		    m.now_us >= c->moved_us + (uint64_t)c->opt.timeout_ms * 1000) {
			c->rc = REEVE_ETIMEDOUT;
			c->what = c->opt.addr;
			break;
		}
		pthread_mutex_unlock(&c->lock);
		view_tick(&v, c, &m);
		pthread_mutex_lock(&c->lock);
		if (c->running > 0 && c->rc == 0)
			wait_until(c, next_look(c, &v, m.now_us));
	}
	if (c->running > 0)
		stop_pumps(c);
	ended = c->running == 0;
	pthread_mutex_unlock(&c->lock);
	view_end(&v, c, &m);
	return ended;
}
