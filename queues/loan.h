/*
 * loan.h - one worker's turn, which other threads may run while the worker sleeps.
 *
 * The word says who has the turn: the worker (AWAKE), nobody while it sleeps (ASLEEP), a borrower (LENT), a borrower that
 * sleeps in the poller in the worker's stead, as that does too (LED), or a borrower while the worker is back and waits for
 * it (WANTED).  Whoever published news and finds ASLEEP wakes the worker or takes its turn, and finding LED rings for the
 * leader; with any other word somebody is there who looks at the news before the word becomes ASLEEP or LED again, or right
 * after it did: the worker before it sleeps, the borrower after it gave the turn back or before it sleeps itself.  That is
 * the protocol of park.h with more ways out; tests/models/loan.pml checks it, with nine mistakes.
 *
 * Worker and leader sleep on the same descriptors and either may get an event or the bell's edge.  Nothing is lost: the
 * worker tells what it got when it has its turn back, and rings when it has to wait for that, so a leader comes.
 */
#ifndef REEVE_QUEUES_LOAN_H
#define REEVE_QUEUES_LOAN_H

#include <stdbool.h>
#include <stdint.h>

#include "queues/atomic.h"

#define RVQ_LOAN_AWAKE  UINT32_C(0)
#define RVQ_LOAN_ASLEEP UINT32_C(1)
#define RVQ_LOAN_LENT   UINT32_C(2)
#define RVQ_LOAN_WANTED UINT32_C(3)
#define RVQ_LOAN_LED    UINT32_C(4)

struct rvq_loan {
	RVQ_ATOMIC(uint32_t) word;
};

enum rvq_claim {
	RVQ_CLAIM_NONE,   /* somebody is there */
	RVQ_CLAIM_MINE,   /* the worker slept: the word is what the caller wanted */
	RVQ_CLAIM_LEADER, /* ring: a leader sleeps */
};

/* The worker: nobody has the turn from now on.  It looks again and then sleeps. */
static inline void
rvq_loan_sleep(struct rvq_loan *l)
{
	(void)rvq_swap_ar(&l->word, RVQ_LOAN_ASLEEP);
	rvq_fence_sc(); /* pairs with rvq_loan_claim:fence */
}

/* The worker, back from its sleep.  True: it has the turn; false: it is lent: ring, and sleep while the word is WANTED. */
static inline bool
rvq_loan_back(struct rvq_loan *l)
{
	uint32_t word = RVQ_LOAN_ASLEEP;

	if (rvq_cas_ar(&l->word, &word, RVQ_LOAN_AWAKE))
		return true;
	while (word == RVQ_LOAN_LENT || word == RVQ_LOAN_LED)
		if (rvq_cas_ar(&l->word, &word, RVQ_LOAN_WANTED))
			return false;
	if (word == RVQ_LOAN_ASLEEP) /* given back between the two */
		return rvq_cas_ar(&l->word, &word, RVQ_LOAN_AWAKE) || rvq_loan_back(l);
	return true;
}

/* Any thread, after publishing the news: wake the worker (to AWAKE) or take its turn (to LENT). */
static inline enum rvq_claim
rvq_loan_claim(struct rvq_loan *l, uint32_t to)
{
	uint32_t word;

	rvq_fence_sc(); /* fence: pairs with rvq_loan_sleep, rvq_loan_give and rvq_loan_lead */
	word = rvq_load_rlx(&l->word);
	if (RVQ_LIKELY(word != RVQ_LOAN_ASLEEP && word != RVQ_LOAN_LED))
		return RVQ_CLAIM_NONE;
	if (word == RVQ_LOAN_LED)
		return rvq_cas_ar(&l->word, &word, RVQ_LOAN_LENT) ? RVQ_CLAIM_LEADER
								  : RVQ_CLAIM_NONE;
	return rvq_cas_ar(&l->word, &word, to) ? RVQ_CLAIM_MINE : RVQ_CLAIM_NONE;
}

/* The borrower, with nothing left to do: true: the worker sleeps on, and the caller must look at the news once more;
 * false: the worker was waiting and has it: wake it. */
static inline bool
rvq_loan_give(struct rvq_loan *l)
{
	uint32_t word = RVQ_LOAN_LENT;

	if (rvq_cas_ar(&l->word, &word, RVQ_LOAN_ASLEEP)) {
		rvq_fence_sc(); /* pairs with rvq_loan_claim:fence */
		return true;
	}
	rvq_store_rel(&l->word, RVQ_LOAN_AWAKE);
	return false;
}

/* The borrower, with nothing left to do, means to sleep in the poller: it looks again first.  False: the worker waits for
 * its turn. */
static inline bool
rvq_loan_lead(struct rvq_loan *l)
{
	uint32_t word = RVQ_LOAN_LENT;

	if (!rvq_cas_ar(&l->word, &word, RVQ_LOAN_LED))
		return false;
	rvq_fence_sc(); /* pairs with rvq_loan_claim:fence */
	return true;
}

/* The leader is awake again.  False: the worker waits for its turn, which is the leader's until it hands it over. */
static inline bool
rvq_loan_led(struct rvq_loan *l)
{
	uint32_t word = RVQ_LOAN_LED;

	return rvq_cas_ar(&l->word, &word, RVQ_LOAN_LENT) || word == RVQ_LOAN_LENT;
}

/* The borrower, with something left for the worker.  True: it sleeps, wake it from that; false: it waits for the turn. */
static inline bool
rvq_loan_hand(struct rvq_loan *l)
{
	return rvq_swap_ar(&l->word, RVQ_LOAN_AWAKE) == RVQ_LOAN_LENT;
}

#endif
