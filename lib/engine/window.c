/* window.c - see window.h. */
#include <config.h>

#include "lib/engine/window.h"
#include "lib/check.h"
#include "lib/config.h"

void
rv_window_init(struct rv_stream *st, uint64_t now)
{
	st->window = st->recv_credit = st->send_credit = RV_WINDOW0;
	st->updated = now;
}

void
rv_window_release(struct rv_winpool *p, struct rv_stream *st)
{
	REEVE_ASSERT(st->window - RV_WINDOW0 <= p->grown);
	p->grown -= st->window - RV_WINDOW0;
	st->window = RV_WINDOW0;
}

/* M_new = min(what is asked for, M + what is left of the pool, the ceiling). */
static uint32_t
grown(const struct rv_winpool *p, uint32_t m, uint64_t to, uint32_t max)
{
	uint64_t left = p->grow > p->grown ? p->grow - p->grown : 0;

	if (to - m > left) /* to >= m, and left may be 2^64 - 1 */
		to = m + left;
	if (to > max)
		to = max;
	return to > m ? (uint32_t)to : m;
}

/* What an update asks for that came so long after the last one. */
static uint64_t
asked(const struct rv_stream *st, uint64_t rtt, uint64_t since)
{
	uint64_t m = st->window, need;

	if (m > RV_YOUNG_MAX || rtt < RV_NEAR_US)
		return 2 * m;
	need = 4 * rtt * st->consumed;
	if (need >= 4 * m * since)
		return 4 * m;
	return need > 2 * m * since ? need / since : 2 * m;
}

/* Within two round trips; of less than half a window, less. */
static bool
fast(const struct rv_stream *st, uint64_t rtt, uint64_t since)
{
	return since < 2 * rtt && since * st->window < 4 * rtt * st->consumed;
}

/* The most that two round trips may ask for. */
static uint32_t
ceiling(const struct rv_winpool *p, uint64_t rtt)
{
	uint64_t near = rtt * RV_NEAR_RATE;

	if (rtt >= RV_NEAR_US)
		return p->max;
	if (near < RV_DRY_MAX)
		near = RV_DRY_MAX;
	return near < p->max ? (uint32_t)near : p->max;
}

uint32_t
rv_window_update(
    struct rv_winpool *p, struct rv_stream *st, uint64_t rtt, uint64_t now, bool may_grow)
{
	uint64_t since = now - st->updated, quick = 2 * rtt > RV_DRY_US ? 2 * rtt : RV_DRY_US;
	uint32_t unread = st->window - st->recv_credit - st->consumed;
	bool due = st->consumed >= rv_window_due(st);
	bool kept_up = unread <= st->window / 4;
	bool dry = (st->flags & RV_ST_DRY) != 0 && kept_up && since < quick;
	uint32_t m = st->window, delta;

	if (may_grow && due && fast(st, rtt, since) && (kept_up || m <= RV_YOUNG_MAX))
		m = grown(p, m, asked(st, rtt, since), ceiling(p, rtt));
	else if (may_grow && dry)
		m = grown(p, m, 2 * (uint64_t)m, p->max < RV_DRY_MAX ? p->max : RV_DRY_MAX);
	if (!due && m == st->window)
		return 0;
	p->grown += m - st->window;
	delta = st->consumed + (m - st->window);
	/* The peer has been dry up to this update at the latest: what it does with this credit
	 * shows whether it still is. */
	if (m != st->window || st->recv_credit != 0)
		st->flags &= ~RV_ST_DRY;
	st->window = m;
	if (rtt >= RV_NEAR_US && grown(p, m, UINT64_MAX, p->max) == m)
		st->flags |= RV_ST_EIGHTHS;
	else
		st->flags &= ~RV_ST_EIGHTHS;
	st->recv_credit += delta;
	st->consumed = 0;
	st->updated = now;
	REEVE_ASSERT((uint64_t)st->recv_credit + unread == st->window);
	return delta;
}
