/*
 * items.h - stamped messages at a modest pace: how long from the call that writes one until its bytes were read?
 *
 * A contender that is given items (struct rvp_load) carries them over its first stream instead of as many bytes as it can.
 * An item is RVP_ITEM bytes: its number and when the sender came to write it.  The pace is kept from the start, so a
 * sender that was held up writes the items that are due at once.  The receiver checks the numbers.
 */
#ifndef REEVE_PERF_ITEMS_H
#define REEVE_PERF_ITEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queues/latch.h"

#define RVP_ITEM       64
#define RVP_ITEMS_RATE 10000u /* a second */

struct rvp_items {
	/* immutable */
	unsigned warm_up, n; /* not measured, measured */
	/* the sender's */
	uint64_t due; /* ns */
	unsigned sent;
	/* the receiver's */
	uint8_t part[RVP_ITEM];
	size_t have;
	unsigned got;
	uint64_t *ns; /* of the n items; sorted when done */
	struct rvq_latch done;
};

void rvp_items_init(struct rvp_items *it, unsigned n);
void rvp_items_free(struct rvp_items *it);

/* The sender: how many are due now (0 and more); false: all were sent. */
bool rvp_items_due(struct rvp_items *it, unsigned *n);
/* The sender's thread, or one that ticks for it and does not make items: sleeps until the i-th is due. */
void rvp_items_sleep(uint64_t began, unsigned i);
/* The sender: the next one, RVP_ITEM bytes at p, stamped. */
void rvp_items_make(struct rvp_items *it, void *p);
/* The receiver has read these bytes. */
void rvp_items_take(struct rvp_items *it, const void *p, size_t n);

/* Waits until all have come; a contender that loses one ends the program. */
void rvp_items_wait(struct rvp_items *it);
/* The q-quantile, us. */
double rvp_items_us(const struct rvp_items *it, double q);

#endif
