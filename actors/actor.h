/* actor.h - one owner for each piece of mutable state, reached by messages.
 *
 * An actor belongs to one worker (home) for life.  Its handler gets one message at a time, there.  Any thread may post;
 * posting never blocks and never fails.  When the worker is gone (runtime destroyed) the thread whose post made the
 * actor runnable runs its turn itself: the handlers of an ended actor only answer and let go, so nobody waits for an
 * actor that nobody runs. */
#ifndef REEVE_ACTORS_ACTOR_H
#define REEVE_ACTORS_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queues/doorbell.h"
#include "queues/mailbox.h"
#include "queues/stack.h"

struct rva_actor;
struct rva_worker;

/* What a mailbox carries beside bells: any struct that begins with this. */
struct rva_msg {
	struct rvq_node node;
	uintptr_t kind; /* enum rva_msg_kind, or the receiver's own */
};

struct rva_actor_ops {
	/* One message.  Owner. */
	void (*on)(struct rva_actor *a, struct rvq_node *n);
	/* The mailbox was found empty after dead was set: free the actor.  Owner. */
	void (*free)(struct rva_actor *a);
	/* It never calls the application: a thread of the application may run its turn while the worker sleeps (lend.h). */
	bool lend;
};

struct rva_actor {
	struct rvq_mailbox mailbox; /* any thread posts */
	struct rvq_link link;    /* inbox or run list: whoever made it runnable, then the worker */
	struct rva_worker *home; /* immutable */
	const struct rva_actor_ops *ops; /* immutable */
	bool dead;    /* owner: nobody can post any more; free it at the end of this turn */
	bool watched; /* owner: the poller has known it */
};

/* The worker whose loop the calling thread is in, or NULL on an application thread. */
extern _Thread_local struct rva_worker *rva_self __attribute__((tls_model("initial-exec")));

#define rva_container(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

void rva_actor_init(struct rva_actor *a, struct rva_worker *home, const struct rva_actor_ops *ops);

/* Make a runnable: the one poster whose post answered true.  Any thread. */
void rva_schedule(struct rva_actor *a);
/* The same by way of the inbox always: signal-safe, also on the thread that runs an external runtime. */
void rva_schedule_inbox(struct rva_actor *a);

/* Any thread; not a signal handler, which may have interrupted the actor's worker (rva_schedule_inbox). */
static inline void
rva_post(struct rva_actor *a, struct rvq_node *n)
{
	if (a->home == rva_self ? rvq_mailbox_post_near(&a->mailbox, n)
				: rvq_mailbox_post_mpsc(&a->mailbox, n))
		rva_schedule(a);
}

/* Any thread: bits are or-ed into the bell, which is posted unless it already is. */
static inline void
rva_ring(struct rva_actor *a, struct rvq_bell *bell, uint32_t bits)
{
	if (rvq_bell_add(bell, bits))
		rva_post(a, &bell->node);
}

/* One turn of at most budget messages.  True: there is more to do, keep it on the run list; false: it is idle or gone.
 * Adds the number of messages to *handled. */
bool rva_actor_turn(struct rva_actor *a, unsigned budget, uint64_t *handled);

/* Is the calling thread the one that may touch a's state: its worker, or anybody once the worker is gone? */
bool rva_is_owner(const struct rva_actor *a);

#endif
