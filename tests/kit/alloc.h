/* alloc.h - an allocator that counts, fails on request and knows what was not given back.
 *
 * Any thread may allocate, free and say what fails. */
#ifndef REEVE_TESTS_KIT_ALLOC_H
#define REEVE_TESTS_KIT_ALLOC_H

#include <reeve/rt.h>
#include "queues/cell.h"
#include "queues/counter.h"

struct rvt_alloc {
	reeve_alloc_t a;                       /* give this to the code under test */
	struct rvq_gauge calls, blocks, bytes; /* allocations asked for; out now */
	struct rvq_cell64 fail_at;             /* the call that fails, counted from 1; 0: none */
	struct rvq_cell32 fail_rest;           /* and all after it */
};

void rvt_alloc_init(struct rvt_alloc *t);
/* Start counting calls again; the nth from now fails (0: none), and with rest those after it. */
void rvt_alloc_fail(struct rvt_alloc *t, uint64_t nth, bool rest);
/* Did the failure happen? */
bool rvt_alloc_failed(const struct rvt_alloc *t);
/* Check assertion: everything was given back. */
void rvt_alloc_check(const struct rvt_alloc *t);

#endif
