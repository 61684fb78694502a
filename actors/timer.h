/* timer.h - a hierarchical timer wheel (Varghese and Lauck 1987, scheme 7): 4 levels of 64 slots, ticks of 1024 us.
 *
 * Owner: one worker.  Timers fire at or up to one tick after their time.  Adding, removing and firing are O(1). */
#ifndef REEVE_ACTORS_TIMER_H
#define REEVE_ACTORS_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVA_WHEEL_LEVELS 4
#define RVA_WHEEL_SLOTS  64

struct rva_timer {
	struct rva_timer *next, **pprev; /* pprev NULL: not armed */
	uint64_t when;                   /* us */
	void (*fn)(struct rva_timer *t, uint64_t now);
};

struct rva_wheel {
	uint64_t tick; /* every slot up to this one was emptied */
	uint64_t used[RVA_WHEEL_LEVELS];
	struct rva_timer *slot[RVA_WHEEL_LEVELS][RVA_WHEEL_SLOTS];
};

void rva_wheel_init(struct rva_wheel *w, uint64_t now);
/* Arm t for when (us), or move it there; UINT64_MAX disarms. */
void rva_timer_set(struct rva_wheel *w, struct rva_timer *t, uint64_t when);
void rva_timer_clear(struct rva_wheel *w, struct rva_timer *t);
static inline bool
rva_timer_armed(const struct rva_timer *t)
{
	return t->pprev != NULL;
}
/* Call fn of every timer that is due; fn may arm and disarm any timer.  Returns how many fired. */
unsigned rva_wheel_advance(struct rva_wheel *w, uint64_t now);
/* When advance has to be called next at the latest; UINT64_MAX: no timer. */
uint64_t rva_wheel_next(const struct rva_wheel *w);

#endif
