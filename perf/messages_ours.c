/* messages_ours.c - the library's queues as channels: see messages.h.
 *
 * Nodes of the mailboxes and of the stack come from a pool per producer and are used again when the receiver has given
 * them back through a word of their own, which is what an embedded message costs at the least. */
#include <config.h>

#include "perf/messages_loops.h"

#include "queues/doorbell.h"
#include "queues/mailbox.h"
#include "queues/parker.h"
#include "queues/spsc.h"
#include "queues/stack.h"

#define RING 8192

RVQ_RING_DEFINE(word, uintptr_t)

/* A message in either kind of list; its producer may use it again when busy is 0. */
struct letter {
	union {
		struct rvq_node node;
		struct rvq_link link;
	} u; /* first */
	uintptr_t word;
	struct rvq_cell32 busy;
} __attribute__((aligned(64)));

struct pool {
	struct letter letters[RVP_QUEUE];
	unsigned next; /* the producer's */
} __attribute__((aligned(64)));

static struct pool pools[2][RVP_PRODUCERS];

static void
pools_begin(void)
{
	unsigned way, id, i;

	for (way = 0; way < 2; way++)
		for (id = 0; id < RVP_PRODUCERS; id++)
			for (i = 0, pools[way][id].next = 0; i < RVP_QUEUE; i++)
				rvq_cell32_put(&pools[way][id].letters[i].busy, 0);
}

/* The next letter of a pool with a word in it, or NULL. */
static inline struct letter *
write_letter(unsigned way, unsigned id, uintptr_t word)
{
	struct pool *p = &pools[way][id];
	struct letter *l = &p->letters[p->next % RVP_QUEUE];

	if (rvq_cell32_get(&l->busy))
		return NULL;
	p->next++;
	rvq_cell32_put(&l->busy, 1);
	l->word = word;
	return l;
}

static inline uintptr_t
read_letter(struct letter *l)
{
	uintptr_t word = l->word;

	rvq_cell32_put(&l->busy, 0);
	return word;
}

/* --- a ring --- */

static struct {
	struct rvq_ring ring;
	uintptr_t slots[RING];
} rings[2];

static void
spsc_begin(void)
{
	rvq_ring_init(&rings[0].ring, RING);
	rvq_ring_init(&rings[1].ring, RING);
}

static inline unsigned
spsc_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	(void)id;
	if (n == 1)
		return word_push_spsc(&rings[way].ring, rings[way].slots, words);
	return word_push_batch_spsc(&rings[way].ring, rings[way].slots, words, n);
}

static inline unsigned
spsc_take(unsigned way, uintptr_t *words, unsigned n)
{
	if (n == 1)
		return word_pop_spsc(&rings[way].ring, rings[way].slots, words);
	return word_pop_batch_spsc(&rings[way].ring, rings[way].slots, words, n);
}

RVP_CHANNEL_DEFINE(spsc, 10);

/* --- the mailbox --- */

static struct {
	struct rvq_mailbox mailbox;
	struct rvq_bell bell __attribute__((aligned(64)));
	struct rvq_parker parker __attribute__((aligned(64)));
} boxes[2] __attribute__((aligned(64)));

static void
mailbox_begin(void)
{
	unsigned way;

	pools_begin();
	for (way = 0; way < 2; way++) {
		rvq_mailbox_init(&boxes[way].mailbox);
		rvq_bell_init(&boxes[way].bell);
		rvq_parker_init(&boxes[way].parker);
	}
}

/* post: one of the two lanes; inlined, so the compiler knows which. */
static inline unsigned
put_by(bool (*post)(struct rvq_mailbox *, struct rvq_node *), unsigned way, unsigned id,
    const uintptr_t *words, unsigned n)
{
	struct letter *l;
	unsigned i;

	for (i = 0; i < n && (l = write_letter(way, id, words[i])) != NULL; i++)
		(void)post(&boxes[way].mailbox, &l->u.node);
	return i;
}

static inline unsigned
mailbox_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	return put_by(rvq_mailbox_post_mpsc, way, id, words, n);
}

static inline unsigned
mailbox_take(unsigned way, uintptr_t *words, unsigned n)
{
	struct rvq_node *node;
	unsigned i;

	for (i = 0; i < n && (node = rvq_mailbox_pop_mpsc(&boxes[way].mailbox)) != NULL; i++)
		words[i] = read_letter((struct letter *)(void *)node);
	return i;
}

RVP_CHANNEL_DEFINE(mailbox, 50);

/* --- its near lane --- */

static void
near_begin(void)
{
	mailbox_begin();
}

static inline unsigned
near_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	return put_by(rvq_mailbox_post_near, way, id, words, n);
}

static inline unsigned
near_take(unsigned way, uintptr_t *words, unsigned n)
{
	return mailbox_take(way, words, n);
}

RVP_CHANNEL_DEFINE(near, 5);

/* --- the mailbox, and a reader that sleeps while it is empty --- */

static void
parked_begin(void)
{
	mailbox_begin();
}

static inline unsigned
parked_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	unsigned done = mailbox_put(way, id, words, n);

	if (done > 0)
		(void)rvq_parker_wake(&boxes[way].parker);
	return done;
}

static inline unsigned
parked_take(unsigned way, uintptr_t *words, unsigned n)
{
	unsigned done = mailbox_take(way, words, n);

	if (done > 0)
		return done;
	rvq_parker_arm(&boxes[way].parker);
	done = mailbox_take(way, words, n);
	if (done > 0)
		rvq_parker_disarm(&boxes[way].parker);
	else
		(void)rvq_parker_wait(&boxes[way].parker, RVQ_FOREVER);
	return done;
}

RVP_CHANNEL_DEFINE(parked, 200);

/* --- a ring that is announced by a bell in a mailbox: how the library's own parts talk --- */

static void
bell_begin(void)
{
	spsc_begin();
	mailbox_begin();
}

static inline unsigned
bell_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	unsigned done = spsc_put(way, id, words, n);

	if (done > 0)
		(void)rvq_bell_ring_mpsc(&boxes[way].bell, &boxes[way].mailbox, 1);
	return done;
}

/* A bell is answered before the ring is looked at, so what is pushed later rings again. */
static inline unsigned
bell_take(unsigned way, uintptr_t *words, unsigned n)
{
	struct rvq_node *node = rvq_mailbox_pop_mpsc(&boxes[way].mailbox);

	if (node != NULL)
		(void)rvq_bell_answer(rvq_bell_of(node));
	return spsc_take(way, words, n);
}

RVP_CHANNEL_DEFINE(bell, 60);

/* --- the other way to make a mailbox: a take-all stack, and what was taken of it, oldest first --- */

static struct {
	struct rvq_stack stack;
	struct rvq_link *taken;
} piles[2] __attribute__((aligned(64)));

static void
stack_begin(void)
{
	unsigned way;

	pools_begin();
	for (way = 0; way < 2; way++) {
		rvq_stack_init(&piles[way].stack);
		piles[way].taken = NULL;
	}
}

static inline unsigned
stack_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	struct letter *l;
	unsigned i;

	for (i = 0; i < n && (l = write_letter(way, id, words[i])) != NULL; i++)
		(void)rvq_stack_push_mpsc(&piles[way].stack, &l->u.link);
	return i;
}

static inline unsigned
stack_take(unsigned way, uintptr_t *words, unsigned n)
{
	struct rvq_link *l;
	unsigned i;

	for (i = 0; i < n; i++) {
		l = piles[way].taken;
		if (l == NULL)
			l = rvq_stack_take_fifo_mpsc(&piles[way].stack);
		if (l == NULL)
			break;
		piles[way].taken = l->next;
		words[i] = read_letter((struct letter *)(void *)l);
	}
	return i;
}

RVP_CHANNEL_DEFINE(stack, 50);
