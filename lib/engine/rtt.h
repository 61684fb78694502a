/* rtt.h - our pings: one in flight, identified by a counter from 0, and the smallest of the last
 * few round trips.
 *
 * A round trip beside which the connection moved bytes also measures the queues that these bytes
 * stand in, and a long transfer keeps them standing: taken as it is it would enlarge the windows,
 * which enlarge the queues.  So it counts only if it is smaller than what is known. */
#ifndef REEVE_LIB_ENGINE_RTT_H
#define REEVE_LIB_ENGINE_RTT_H

#include <stdbool.h>
#include <stdint.h>

#define RV_RTT_SAMPLES 16
#define RV_RTT_BURST \
	4 /* round trips measured one after the other while the first windows are used up: the very
                                 first includes the time the peer took to come up */
#define RV_RTT_INTERVAL_US 10000000u
#define RV_RTT_LOADED      32768u /* bytes moved beside a ping of which it is not a measure any more */
#define RV_RTT_MISSED_US   10000u /* below it the peer may just not have come up yet */

struct rv_rtt {
	uint64_t sent;  /* when the ping in flight was handed to the writer */
	uint64_t moved; /* bytes that the connection had moved then */
	uint32_t value; /* what it carried */
	uint32_t next;  /* what the next one carries */
	bool inflight;
	uint8_t n, at;                   /* samples there are, and the next to replace */
	uint32_t sample[RV_RTT_SAMPLES]; /* microseconds, at least 1 */
};

/* A ping leaves now, after so many bytes were moved: what it carries. */
uint32_t rv_rtt_sent(struct rv_rtt *r, uint64_t now, uint64_t moved);
/* A pong came: its round trip in microseconds, or 0 when nobody waits for this one. */
uint32_t rv_rtt_pong(struct rv_rtt *r, uint32_t value, uint64_t now, uint64_t moved);
/* The pong will not come any more. */
void rv_rtt_forget(struct rv_rtt *r);
/* The smallest of the last samples, 0: none yet. */
uint32_t rv_rtt_min(const struct rv_rtt *r);
/* What a round trip takes at least: the smallest sample, before the first one how long its pong is
 * missing (from RV_RTT_MISSED_US on), 0: nothing is known. */
uint64_t rv_rtt_least(const struct rv_rtt *r, uint64_t now);

#endif
