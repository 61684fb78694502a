/* timer.c - the timer wheel.  Owner: one worker. */
#include <config.h>

#include "actors/timer.h"

#include <string.h>

#define TICK_SHIFT 10
#define LEVEL_BITS 6
#define LEVEL_MASK (RVA_WHEEL_SLOTS - 1)

/* First tick at which a time has come. */
static uint64_t
tick_of(uint64_t when)
{
	return (when >> TICK_SHIFT) + ((when & ((1u << TICK_SHIFT) - 1)) != 0);
}

void
rva_wheel_init(struct rva_wheel *w, uint64_t now)
{
	memset(w, 0, sizeof(*w));
	w->tick = now >> TICK_SHIFT;
}

static void
insert(struct rva_wheel *w, struct rva_timer *t)
{
	uint64_t at = tick_of(t->when), span = UINT64_C(1) << (LEVEL_BITS * RVA_WHEEL_LEVELS);
	unsigned level = 0, slot;
	struct rva_timer **head;

	if (at <= w->tick)
		at = w->tick + 1;
	if (at - w->tick >= span)
		at = w->tick + span - 1; /* looked at again when that comes */
	while (at - w->tick >= (UINT64_C(1) << (LEVEL_BITS * (level + 1))))
		level++;
	slot = (unsigned)(at >> (LEVEL_BITS * level)) & LEVEL_MASK;
	head = &w->slot[level][slot];
	t->next = *head;
	t->pprev = head;
	if (t->next != NULL)
		t->next->pprev = &t->next;
	*head = t;
	w->used[level] |= UINT64_C(1) << slot;
}

void
rva_timer_clear(struct rva_wheel *w, struct rva_timer *t)
{
	struct rva_timer **pprev = t->pprev;

	if (pprev == NULL)
		return;
	*pprev = t->next;
	if (t->next != NULL)
		t->next->pprev = pprev;
	t->pprev = NULL;
	if (*pprev == NULL && pprev >= &w->slot[0][0] &&
	    pprev < &w->slot[0][0] + RVA_WHEEL_LEVELS * RVA_WHEEL_SLOTS) {
		size_t i = (size_t)(pprev - &w->slot[0][0]);

		w->used[i / RVA_WHEEL_SLOTS] &= ~(UINT64_C(1) << (i % RVA_WHEEL_SLOTS));
	}
}

void
rva_timer_set(struct rva_wheel *w, struct rva_timer *t, uint64_t when)
{
	rva_timer_clear(w, t);
	t->when = when;
	if (when != UINT64_MAX)
		insert(w, t);
}

/* Take a slot's list; the timers keep their place in it until they fire or are put elsewhere. */
static struct rva_timer *
take_slot(struct rva_wheel *w, unsigned level, unsigned slot, struct rva_timer **list)
{
	*list = w->slot[level][slot];
	w->slot[level][slot] = NULL;
	w->used[level] &= ~(UINT64_C(1) << slot);
	if (*list != NULL)
		(*list)->pprev = list;
	return *list;
}

static unsigned
run_slot(struct rva_wheel *w, unsigned level, unsigned slot, uint64_t now)
{
	struct rva_timer *list, *t;
	unsigned fired = 0;

	take_slot(w, level, slot, &list);
	while ((t = list) != NULL) {
		rva_timer_clear(w, t);
		if (tick_of(t->when) > w->tick) {
			insert(w, t);
		} else {
			fired++;
			t->fn(t, now);
		}
	}
	return fired;
}

unsigned
rva_wheel_advance(struct rva_wheel *w, uint64_t now)
{
	uint64_t end = now >> TICK_SHIFT;
	unsigned fired = 0, level;

	while (w->tick < end) {
		if ((w->used[0] | w->used[1] | w->used[2] | w->used[3]) == 0) {
			w->tick = end;
			break;
		}
		if (w->used[0] == 0 &&
		    (w->tick | LEVEL_MASK) < end) /* nothing before the next turn of level 0 */
			w->tick |= LEVEL_MASK;
		else if (w->used[0] == 0 && (w->tick | LEVEL_MASK) >= end) {
			w->tick = end;
			break;
		}
		w->tick++;
		for (level = 1; level < RVA_WHEEL_LEVELS; level++) {
			if ((w->tick & ((UINT64_C(1) << (LEVEL_BITS * level)) - 1)) != 0)
				break;
			fired += run_slot(w, level,
			    (unsigned)(w->tick >> (LEVEL_BITS * level)) & LEVEL_MASK, now);
		}
		fired += run_slot(w, 0, (unsigned)w->tick & LEVEL_MASK, now);
	}
	return fired;
}

uint64_t
rva_wheel_next(const struct rva_wheel *w)
{
	uint64_t best = UINT64_MAX;

	for (unsigned level = 0; level < RVA_WHEEL_LEVELS; level++) {
		unsigned shift = LEVEL_BITS * level,
			 pos = (unsigned)(w->tick >> shift) & LEVEL_MASK;
		uint64_t used = w->used[level], turned, at;

		if (used == 0)
			continue;
		turned = pos == 63 ? used : (used >> (pos + 1)) | (used << (63 - pos));
		at = ((w->tick >> shift) + 1 + (unsigned)__builtin_ctzll(turned)) << shift;
		if (at < best)
			best = at;
	}
	return best == UINT64_MAX ? best : best << TICK_SHIFT;
}
