/* rtt.c - see rtt.h. */
#include <config.h>

#include "lib/engine/rtt.h"

uint32_t
rv_rtt_sent(struct rv_rtt *r, uint64_t now, uint64_t moved)
{
	r->sent = now;
	r->moved = moved;
	r->value = r->next++;
	r->inflight = true;
	return r->value;
}

uint32_t
rv_rtt_pong(struct rv_rtt *r, uint32_t value, uint64_t now, uint64_t moved)
{
	uint64_t us;

	if (!r->inflight || value != r->value)
		return 0;
	r->inflight = false;
	us = now > r->sent ? now - r->sent : 1;
	if (us > UINT32_MAX)
		us = UINT32_MAX;
	if (moved - r->moved > RV_RTT_LOADED && r->n > 0 && us >= rv_rtt_min(r))
		return (uint32_t)us;
	r->sample[r->at] = (uint32_t)us;
	r->at = (uint8_t)((r->at + 1) % RV_RTT_SAMPLES);
	if (r->n < RV_RTT_SAMPLES)
		r->n++;
	return (uint32_t)us;
}

void
rv_rtt_forget(struct rv_rtt *r)
{
	r->inflight = false;
}

uint32_t
rv_rtt_min(const struct rv_rtt *r)
{
	uint32_t min = r->n == 0 ? 0 : r->sample[0];

	for (unsigned i = 1; i < r->n; i++)
		if (r->sample[i] < min)
			min = r->sample[i];
	return min;
}

uint64_t
rv_rtt_least(const struct rv_rtt *r, uint64_t now)
{
	if (r->n > 0)
		return rv_rtt_min(r);
	return r->inflight && now > r->sent + RV_RTT_MISSED_US ? now - r->sent : 0;
}
