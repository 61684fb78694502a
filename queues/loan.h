/*
 * loan.h - one worker's turn, which other threads may run while the worker sleeps.
 *
 * The word says who has the turn: the worker (AWAKE), nobody while it sleeps (ASLEEP), a borrower (LENT), or a borrower
 * while the worker is back and waits for it (WANTED).  Whoever published news and finds ASLEEP either wakes the worker or
 * takes its turn; with any other word somebody is there who looks at the news before the word becomes ASLEEP again, or
 * right after it did: the worker before it sleeps, the borrower after it gave the turn back.  That is the protocol of
 * park.h with one more way out of ASLEEP; tests/models/loan.pml checks it, with its mistakes.
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

struct rvq_loan {
	RVQ_ATOMIC(uint32_t) word;
};

/* The worker: nobody has the turn from now on.  It looks again and then sleeps. */
static inline void
rvq_loan_sleep(struct rvq_loan *l)
{
	(void)rvq_swap_ar(&l->word, RVQ_LOAN_ASLEEP);
	rvq_fence_sc(); /* pairs with rvq_loan_claim:fence */
}

/* The worker, back from its sleep.  True: it has the turn; false: it is lent, sleep while the word is WANTED. */
static inline bool
rvq_loan_back(struct rvq_loan *l)
{
	uint32_t word = RVQ_LOAN_ASLEEP;

	if (rvq_cas_ar(&l->word, &word, RVQ_LOAN_AWAKE) || word == RVQ_LOAN_AWAKE)
		return true;
	return rvq_cas_ar(&l->word, &word, RVQ_LOAN_WANTED) ? false : word == RVQ_LOAN_AWAKE;
}

/* Any thread, after publishing the news: true when the worker sleeps and the caller, and nobody else, must wake it
 * (to AWAKE) or has its turn (to LENT). */
static inline bool
rvq_loan_claim(struct rvq_loan *l, uint32_t to)
{
	uint32_t word;

	rvq_fence_sc(); /* fence: pairs with rvq_loan_sleep and rvq_loan_give */
	word = rvq_load_rlx(&l->word);
	if (RVQ_LIKELY(word != RVQ_LOAN_ASLEEP))
		return false;
	return rvq_cas_ar(&l->word, &word, to);
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

/* The borrower, with something left for the worker.  True: it sleeps, wake it from that; false: it waits for the turn. */
static inline bool
rvq_loan_hand(struct rvq_loan *l)
{
	return rvq_swap_ar(&l->word, RVQ_LOAN_AWAKE) == RVQ_LOAN_LENT;
}

#endif
