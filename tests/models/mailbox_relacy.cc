/*
 * mailbox_relacy.cc - the real queue headers under the Relacy race detector.
 *
 * Relacy runs random schedules under the C++11 memory model: a relaxed load may see old values,
 * every plain variable (RVQ_OWNED here) is checked for races, and a thread that waits for ever is
 * found.  The headers are the library's own; only the atomic types are Relacy's.  One build; the
 * bug is chosen when it is run: mailbox_relacy BUG [iterations].
 *
 * BUG 0 must pass.  The others must be found:
 *	1  release stores are relaxed (a published cell)
 *	2  acquire loads are relaxed (reading it)
 *	3  exchanges are relaxed (taking the far lane or a stack, the answer of a bell)
 *	4  compare-and-swaps are relaxed (a far post, going idle, pushing on a stack)
 *	5  a reference is given up relaxed
 *	6  a bell is rung relaxed
 *	7  no fence between announcing oneself and looking again
 *	8  no fence between publishing and looking for sleepers
 *	9  idle is tested for, then stored
 *	10 the mailbox goes idle before it is drained
 *	11 taking the far lane is a load and a store
 *	12 a bell's bits are looked at first and cleared afterwards
 *	13 the parking word is a bare flag, and two threads sleep on it
 *	14 taking from a stack is a load and a store
 *	15 closing a stack is a test and a store
 *	16 no fence between filling slots of a ring and publishing them
 *	17 no fence between reading how far a ring is filled and reading its slots
 *	18 no fence between reading slots of a ring and giving them back
 *	19 no fence between reading how much room a ring has and filling its slots
 *	20 a ring with two producers
 *	21 a near post does not take the far lane first
 *	22 a near post claims an idle mailbox by a store
 */
#include <relacy/relacy.hpp>

static int planted;

#include "queues/doorbell.h"
#include "queues/mailbox.h"
#include "queues/park.h"
#include "queues/ref.h"
#include "queues/stack.h"

#include "tests/models/relacy/mailbox_planted.h"
#include "tests/models/relacy/ring_test.h"

#include <cstdio>
#include <cstdlib>

struct letter {
	rvq_node node; /* first */
	rl::var<int> text;
	rl::atomic<int> out; /* 1 while posted and not popped */
};

/* Two posters, two workers that share a run queue of one entry.  A popped node is posted again at
 * once. */
struct owners : rl::test_suite<owners, 4> {
	static const int posts = 2;
	rvq_mailbox box;
	letter letters[2];
	rl::atomic<int> runnable, popped;
	rl::var<int> inside;

	void before()
	{
		rvq_mailbox_init(&box);
		runnable($) = 0;
		popped($) = 0;
		VAR(inside) = 0;
		for (letter &l : letters)
			l.out($) = 0;
	}

	void schedule()
	{
		RL_ASSERT(runnable.exchange(1, rl::mo_acq_rel, $) == 0);
	}

	void poster(letter *l)
	{
		rl::backoff wait;

		for (int i = 0; i < posts; i++) {
			while (l->out.load(rl::mo_acquire, $))
				wait.yield($);
			l->out.store(1, rl::mo_relaxed, $);
			VAR(l->text) = 41;
			if (rvq_mailbox_post_mpsc(&box, &l->node))
				schedule();
		}
	}

	void turn()
	{
		rvq_node *n;

		while ((n = pop(&box)) != NULL) {
			letter *l = reinterpret_cast<letter *>(n);
			uintptr_t empty = 0;

			if (planted == 10)
				rvq_cas_ar(&box.far, &empty, RVQ_MAILBOX_IDLE);
			VAR(inside)++;
			int text = VAR(l->text);
			RL_ASSERT(text == 41);
			VAR(l->text) = 0;
			popped.fetch_add(1, rl::mo_relaxed, $);
			l->out.store(0, rl::mo_release, $);
		}
		if (!go_idle(&box))
			schedule();
	}

	void thread(unsigned id)
	{
		rl::backoff wait;

		if (id < 2) {
			poster(&letters[id]);
			return;
		}
		while (popped.load(rl::mo_relaxed, $) < 2 * posts) {
			if (runnable.load(rl::mo_relaxed, $) &&
			    runnable.exchange(0, rl::mo_acq_rel, $))
				turn();
			else
				wait.yield($);
		}
	}
};

/* A home that posts near and runs the owner, and two threads that post far: one asks and tells the home, which
 * answers; the other waits for the answer and thanks.  Each comes out behind what it follows, and who finds the mailbox idle
 * schedules it, once. */
struct lanes : rl::test_suite<lanes, 3> {
	rvq_mailbox box;
	letter question, answer, thanks;
	rl::atomic<int> asked, answered, runnable;

	void before()
	{
		rvq_mailbox_init(&box);
		asked($) = answered($) = runnable($) = 0;
	}

	void schedule(bool first)
	{
		if (first)
			RL_ASSERT(runnable.exchange(1, rl::mo_acq_rel, $) == 0);
	}

	void far(letter *l, rl::atomic<int> *after, rl::atomic<int> *then)
	{
		rl::backoff wait;

		while (after != NULL && !after->load(rl::mo_acquire, $))
			wait.yield($);
		VAR(l->text) = 41;
		schedule(rvq_mailbox_post_mpsc(&box, &l->node));
		if (then != NULL)
			rvq_store_rel(then, 1);
	}

	void home()
	{
		letter *const order[] = {&question, &answer, &thanks};
		rl::backoff wait;
		bool said = false;
		int got = 0;

		while (got < 3) {
			if (!said && rvq_load_acq(&asked)) {
				said = true;
				VAR(answer.text) = 41;
				schedule(post_near(&box, &answer.node));
				answered.store(1, rl::mo_release, $);
			}
			if (!runnable.exchange(0, rl::mo_acq_rel, $)) {
				wait.yield($);
				continue;
			}
			while (rvq_node *n = pop(&box)) {
				RL_ASSERT(got < 3 && n == &order[got]->node);
				int text = VAR(order[got]->text);
				RL_ASSERT(text == 41);
				got++;
			}
			if (!go_idle(&box))
				schedule(true);
		}
	}

	void thread(unsigned id)
	{
		if (id == 0)
			far(&question, NULL, &asked);
		else if (id == 1)
			far(&thanks, &answered, NULL);
		else
			home();
	}
};

/* One pinned worker with an inbox; two threads make its two actors runnable, and it may be asleep.
 *  */
struct parking : rl::test_suite<parking, 3> {
	struct actor {
		rvq_link link; /* first */
		rl::var<int> news;
	} actors[2];
	rvq_stack inbox;
	rvq_park park;
	rl::atomic<int> event; /* the eventfd */

	void before()
	{
		rvq_stack_init(&inbox);
		park.word($) = 0;
		event($) = 0;
	}

	void waker(actor *a)
	{
		VAR(a->news) = 41;
		if (rvq_stack_push_mpsc(&inbox, &a->link) != RVQ_FIRST)
			return;
		if (rvq_park_claim(&park))
			event.store(1, rl::mo_release, $);
	}

	rvq_link *take()
	{
		rvq_link *l;

		if (planted != 14)
			return rvq_stack_take_mpsc(&inbox);
		l = (rvq_link *)rvq_load_acq(&inbox.head);
		rvq_store_rlx(&inbox.head, (uintptr_t)0);
		return l;
	}

	void worker()
	{
		rl::backoff wait;

		for (int seen = 0; seen < 2;) {
			for (rvq_link *l = take(); l != NULL; l = l->next, seen++) {
				int news = VAR(reinterpret_cast<actor *>(l)->news);
				RL_ASSERT(news == 41);
			}
			if (seen == 2)
				return;
			rvq_park_arm(&park);
			if (rvq_stack_empty(&inbox))
				while (!event.load(rl::mo_acquire, $))
					wait.yield($);
			rvq_park_disarm(&park);
			event.store(0, rl::mo_relaxed, $);
		}
	}

	void thread(unsigned id)
	{
		if (id < 2)
			waker(&actors[id]);
		else
			worker();
	}
};

/* Two threads sleep on one word until the news have come to 2, which both must learn. */
struct sleepers : rl::test_suite<sleepers, 3> {
	rl::atomic<int> news;
	rvq_park park;

	void before()
	{
		news($) = 0;
		park.word($) = 0;
	}

	void tell(int n)
	{
		news.store(n, rl::mo_release, $);
		if (planted != 13)
			rvq_park_claim(&park);
		else if (rvq_fence_sc(), rvq_load_rlx(&park.word))
			rvq_swap_ar(&park.word, 0U);
	}

	void thread(unsigned id)
	{
		rl::backoff wait;
		uint32_t ticket;

		if (id == 0) {
			tell(1);
			tell(2);
			return;
		}
		for (int known = 0; known < 2;) {
			ticket = rvq_park_arm(&park);
			int now = news.load(rl::mo_acquire, $);
			if (now == known)
				while (rvq_load_rlx(&park.word) == ticket)
					wait.yield($);
			known = now;
		}
	}
};

/* Two ringers publish and ring; the owner looks only when a bit says so and must learn everything.
 *  */
struct bells : rl::test_suite<bells, 3> {
	static const int rings = 2;
	rvq_mailbox box;
	rvq_bell bell;
	rl::atomic<int> news[2];
	rl::atomic<int> runnable;

	void before()
	{
		rvq_mailbox_init(&box);
		rvq_bell_init(&bell);
		news[0]($) = news[1]($) = 0;
		runnable($) = 0;
	}

	void ringer(unsigned id)
	{
		for (int i = 1; i <= rings; i++) {
			/* relaxed: it is the bell that has to publish it */
			news[id].store(i, rl::mo_relaxed, $);
			if (rvq_bell_ring_mpsc(&bell, &box, 1U << id))
				runnable.store(1, rl::mo_release, $);
		}
	}

	void look(uint32_t bits, int seen[2])
	{
		for (int i = 0; i < 2; i++)
			if (bits & (1U << i))
				seen[i] = news[i].load(rl::mo_relaxed, $);
	}

	void thread(unsigned id)
	{
		rl::backoff wait;
		int seen[2] = {0, 0};

		if (id < 2) {
			ringer(id);
			return;
		}
		while (seen[0] < rings || seen[1] < rings) {
			if (!runnable.load(rl::mo_acquire, $)) {
				wait.yield($);
				continue;
			}
			runnable.store(0, rl::mo_relaxed, $);
			do {
				while (rvq_mailbox_pop_mpsc(&box) != NULL) {
					if (planted == 12)
						look(rvq_load_acq(&bell.bits), seen);
					uint32_t bits = rvq_bell_answer(&bell);
					if (planted != 12)
						look(bits, seen);
				}
				wait.yield($);
			} while (!rvq_mailbox_idle_mpsc(&box));
		}
	}
};

/* Two pushers and a taker that closes: each link is taken or refused, and what is shared is freed
 * once. */
struct closing : rl::test_suite<closing, 3> {
	struct parcel {
		rvq_link link; /* first */
		rl::var<int> state;
	} parcels[2];
	rvq_stack stack;
	rvq_ref ref;
	rl::var<int> object;
	rl::atomic<int> accounted;

	void before()
	{
		rvq_stack_init(&stack);
		rvq_ref_init(&ref, 3);
		accounted($) = 0;
		VAR(object) = 0;
	}

	void after()
	{
		RL_ASSERT(accounted($) == 2);
	}

	void unload(rvq_link *l)
	{
		for (; l != NULL; l = l->next) {
			int state = VAR(reinterpret_cast<parcel *>(l)->state);
			RL_ASSERT(state == 1);
			accounted.fetch_add(1, rl::mo_relaxed, $);
		}
	}

	rvq_link *close()
	{
		rvq_link *l;

		if (planted != 15)
			return rvq_stack_close(&stack);
		l = (rvq_link *)rvq_load_acq(&stack.head);
		rvq_store_rel(&stack.head, RVQ_STACK_CLOSED);
		return l;
	}

	void thread(unsigned id)
	{
		if (id < 2) {
			VAR(parcels[id].state) = 1;
			if (rvq_stack_push_mpsc(&stack, &parcels[id].link) == RVQ_CLOSED)
				accounted.fetch_add(1, rl::mo_relaxed, $);
		} else {
			unload(rvq_stack_take_fifo_mpsc(&stack));
			unload(close());
		}
		int seen = VAR(object); /* every holder reads, the last one writes */
		RL_ASSERT(seen == 0);
		if (rvq_ref_put(&ref))
			VAR(object) = 1;
	}
};

template <typename test>
static bool
holds(const char *name, unsigned long iterations)
{
	rl::test_params params;
	rl::ostringstream out;
	bool ok;

	params.iteration_count = iterations;
	params.output_stream = &out;
	params.progress_stream = &out;
	ok = rl::simulate<test>(params);
	std::printf("%s: %s after %lu schedules\n", name, rl::test_result_str(params.test_result),
	    (unsigned long)params.stop_iteration);
	return ok;
}

int
main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? std::strtoul(argv[2], NULL, 10) : 100000;
	bool ok;

	planted = argc > 1 ? std::atoi(argv[1]) : 0;
	ok = holds<owners>("owners", n);
	ok = holds<lanes>("lanes", n) && ok;
	ok = holds<parking>("parking", n) && ok;
	ok = holds<sleepers>("sleepers", n) && ok;
	ok = holds<bells>("bells", n) && ok;
	ok = holds<closing>("closing", n) && ok;
	ok = holds<ring>("ring", n) && ok;
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
