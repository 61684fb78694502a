/*
 * tsan_planted.c - programs with a planted race, which ThreadSanitizer must report.
 *
 * Built once for each value of PLANT, in ThreadSanitizer builds only; tsan_planted.sh requires a
 * report from each but 0, and none from that one.
 *	0  the same rig without a bug
 *	1  an object is written after the push that published it
 *	2  two producers on a single-producer ring
 *	3  the mailbox goes idle before it is drained, so two workers run the owner
 */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "queues/cell.h"
#include "queues/mailbox.h"
#include "queues/spsc.h"

#define ROUNDS 20000
#define SLOTS  8
#define TRIES  5
#define TURNS  100000 /* a mailbox that two workers have run may be broken: give up on it */

RVQ_RING_DEFINE(box, unsigned *)

static struct rvq_ring ring;
static unsigned *slots[SLOTS];
static unsigned boxes[ROUNDS];

static void *
produce(void *arg)
{
	unsigned i, *box;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		box = &boxes[i];
		*box = i;
		while (!box_push_spsc(&ring, slots, &box))
			sched_yield();
		if (PLANT == 1)
			*box = i;
	}
	return NULL;
}

/* The second producer's boxes are its own: only the ring is shared. */
static void *
produce_too(void *arg)
{
	static unsigned other;
	unsigned *box = &other;

	for (;;) {
		while (!box_push_spsc(&ring, slots, &box)) {
			if (rvq_cell32_get(arg))
				return NULL;
			sched_yield();
		}
	}
}

static void
consume(unsigned n)
{
	unsigned *box, sum = 0;

	while (n > 0) {
		if (!box_pop_spsc(&ring, slots, &box)) {
			sched_yield();
			continue;
		}
		sum += *box;
		n--;
	}
	boxes[0] = sum;
}

static void
ring_rig(void)
{
	static struct rvq_cell32 stop;
	pthread_t one, two;

	rvq_ring_init(&ring, SLOTS);
	pthread_create(&one, NULL, produce, NULL);
	if (PLANT == 2)
		pthread_create(&two, NULL, produce_too, &stop);
	consume(ROUNDS);
	rvq_cell32_put(&stop, 1);
	if (PLANT == 2)
		pthread_join(two, NULL);
	else
		pthread_join(one, NULL);
}

static struct rvq_mailbox mailbox;
static struct rvq_cell32 runnable, finished;
static unsigned turns; /* plain: the owner's */

static void *
post(void *arg)
{
	static struct rvq_node nodes[ROUNDS];
	unsigned i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++)
		if (rvq_mailbox_post_mpsc(&mailbox, &nodes[i]))
			rvq_cell32_add(&runnable, 1);
	rvq_cell32_put(&finished, 1);
	return NULL;
}

static void
run_owner(void)
{
	unsigned budget;
	uintptr_t empty;

	for (budget = 0; budget < 8; budget++) {
		turns++;
		sched_yield(); /* meet the other worker here */
		if (rvq_mailbox_pop_mpsc(&mailbox) == NULL)
			break;
		empty = 0;
		if (PLANT == 3)
			rvq_cas_ar(&mailbox.far, &empty, RVQ_MAILBOX_IDLE);
	}
	if (!rvq_mailbox_idle_mpsc(&mailbox))
		rvq_cell32_add(&runnable, 1);
}

static void *
work(void *arg)
{
	uint32_t n;
	unsigned i;

	(void)arg;
	for (i = 0; i < TURNS; i++) {
		n = rvq_cell32_get(&runnable);
		if (n > 0 && rvq_cell32_cas(&runnable, n, n - 1))
			run_owner();
		else if (rvq_cell32_get(&finished) &&
		    rvq_load_acq(&mailbox.far) == RVQ_MAILBOX_IDLE)
			break;
		else
			sched_yield();
	}
	return NULL;
}

static void
mailbox_rig(void)
{
	pthread_t poster, worker;

	rvq_mailbox_init(&mailbox);
	rvq_cell32_put(&runnable, 0);
	rvq_cell32_put(&finished, 0);
	pthread_create(&poster, NULL, post, NULL);
	pthread_create(&worker, NULL, work, NULL);
	work(NULL);
	pthread_join(worker, NULL);
	pthread_join(poster, NULL);
}

int
main(void)
{
	unsigned i;

	if (PLANT != 3)
		ring_rig();
	if (PLANT == 0 || PLANT == 3)
		for (i = 0; i < TRIES; i++)
			mailbox_rig();
	return EXIT_SUCCESS;
}
