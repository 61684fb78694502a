/*
 * park.h - the wake-up protocol of parker.h without its system calls, so that it can be
 * model-checked.
 *
 * The sleeper announces itself, fences, looks once more at what it waits for, and only then
 * sleeps.  The waker publishes, fences, and then looks for an announcement.  Of two threads that
 * each store, fence and load (E. W. Dijkstra's report on T. J. Dekker's algorithm) at least one
 * sees the other's store, so either the sleeper sees the news or the waker sees the sleeper.
 * Leave out either fence and both can miss: on the sleeper's side on every machine, on the waker's
 * on weakly ordered ones.
 *
 * The word counts wake-ups in its upper 31 bits; bit 0 is the announcement.  The count lets several
 * threads share one word.  With a bare flag, a thread that announced itself, was woken before it
 * slept, and then saw a third thread announce *itself*, would fall asleep on the third one's flag
 * and miss its own wake-up.  Its ticket, the word as it announced itself, is never seen again
 * after a wake-up.
 */
#ifndef REEVE_QUEUES_PARK_H
#define REEVE_QUEUES_PARK_H

#include "queues/atomic.h"

#define RVQ_PARK_ARMED UINT32_C(1)

struct rvq_park {
	RVQ_ATOMIC(uint32_t) word;
};

/* Any thread that means to sleep; returns its ticket: sleep only while the word is equal to it,
 * and only after looking again at what is waited for. */
static inline uint32_t
rvq_park_arm(struct rvq_park *p)
{
	uint32_t ticket = rvq_fetch_or_ar(&p->word, RVQ_PARK_ARMED) | RVQ_PARK_ARMED;

	rvq_fence_sc(); /* pairs with rvq_park_claim:fence */
	return ticket;
}

/* The only sleeper of a word: takes its announcement back.  False: a waker claimed it before. */
static inline bool
rvq_park_disarm(struct rvq_park *p)
{
	return (rvq_fetch_and_ar(&p->word, ~RVQ_PARK_ARMED) & RVQ_PARK_ARMED) != 0;
}

/* Any thread, after publishing the news: true when somebody is announced and the caller, and
 * nobody else, must wake all that sleep on the word.  If the compare-and-swap loses, another waker
 * woke everybody who was announced at our load, and who announced itself later sees our news. */
static inline bool
rvq_park_claim(struct rvq_park *p)
{
	uint32_t word;

	rvq_fence_sc(); /* fence: pairs with rvq_park_arm */
	word = rvq_load_rlx(&p->word);
	if (RVQ_LIKELY((word & RVQ_PARK_ARMED) == 0))
		return false;
	return rvq_cas_ar(&p->word, &word, word + 1);
}

#endif
