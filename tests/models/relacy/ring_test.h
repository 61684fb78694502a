/* ring_test.h - the part of mailbox_relacy.cc that runs queues/spsc.h. */
#ifndef REEVE_TESTS_MODELS_RELACY_RING_TEST_H
#define REEVE_TESTS_MODELS_RELACY_RING_TEST_H

#include "queues/spsc.h"

/* What a slot of the ring holds: copying one reads and writes a checked variable. */
struct slot {
	rl::var<int> value;

	slot()
	{
	}
	slot(const slot &from)
	{
		VAR(value) = int(from.VAR(value));
	}

	slot &operator=(const slot &from)
	{
		VAR(value) = int(from.VAR(value));
		return *this;
	}
};

RVQ_RING_DEFINE(slot, slot)

/* A ring of three places; singles and batches on both sides, all five values in order. */
struct ring : rl::test_suite<ring, 2> {
	static const int values = 5;
	rvq_ring r;
	slot slots[4];

	void before()
	{
		rvq_ring_init(&r, 4);
	}

	void producer(unsigned step)
	{
		rl::backoff wait;
		slot in[2];

		for (int n = 0; n < values;) {
			int got = 0;

			VAR(in[0].value) = n;
			VAR(in[1].value) = n + 1;
			if (step == 1 || n + 1 == values)
				got = slot_push_spsc(&r, slots, in);
			else
				got = slot_push_batch_spsc(&r, slots, in, 2);
			step = 3 - step;
			n += got;
			if (got == 0)
				wait.yield($);
		}
	}

	void consumer()
	{
		rl::backoff wait;
		slot out[2], *peeked;

		for (int n = 0, kind = 0; n < values; kind++) {
			int got = 0;

			switch (kind % 3) {
			case 0:
				got = slot_pop_batch_spsc(&r, slots, out, 2);
				break;
			case 1:
				got = slot_pop_spsc(&r, slots, out);
				break;
			default:
				peeked = slot_peek_spsc(&r, slots);
				if (peeked != NULL) {
					out[0] = *peeked;
					slot_drop_spsc(&r);
					got = 1;
				}
			}
			for (int i = 0; i < got; i++, n++) {
				int value = VAR(out[i].value);
				RL_ASSERT(value == n);
			}
			if (got == 0)
				wait.yield($);
		}
	}

	void thread(unsigned id)
	{
		if (id == 0)
			producer(1);
		else if (planted == 20)
			producer(2);
		else
			consumer();
	}
};

#endif
