/* messages_usual.c - the usual channels beside ours: see messages.h.  Descriptors are made once and stay. */
#include <config.h>

#include "perf/messages_loops.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf/flow.h"
#include "queues/spsc.h"

RVQ_RING_DEFINE(word, uintptr_t)

/* A ring under a lock; mutex and spin lock never at once. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t filled, drained;
	pthread_spinlock_t spin;
	unsigned readers, writers; /* that sleep */
	unsigned head, tail;
	uintptr_t slots[RVP_QUEUE];
} locked[2] __attribute__((aligned(64)));

static inline unsigned
push(unsigned way, const uintptr_t *words, unsigned n)
{
	unsigned i;

	for (i = 0; i < n && locked[way].tail - locked[way].head < RVP_QUEUE; i++)
		locked[way].slots[locked[way].tail++ % RVP_QUEUE] = words[i];
	return i;
}

static inline unsigned
pop(unsigned way, uintptr_t *words, unsigned n)
{
	unsigned i;

	for (i = 0; i < n && locked[way].tail != locked[way].head; i++)
		words[i] = locked[way].slots[locked[way].head++ % RVP_QUEUE];
	return i;
}

/* --- a mutex and two condition variables; signals only when somebody sleeps, after the unlock --- */

static void
locked_begin(void)
{
	unsigned way;

	for (way = 0; way < 2; way++) {
		pthread_mutex_init(&locked[way].mutex, NULL);
		pthread_cond_init(&locked[way].filled, NULL);
		pthread_cond_init(&locked[way].drained, NULL);
		locked[way].readers = locked[way].writers = 0;
		locked[way].head = locked[way].tail = 0;
	}
}

static inline unsigned
locked_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	unsigned done, readers;

	(void)id;
	pthread_mutex_lock(&locked[way].mutex);
	while ((done = push(way, words, n)) == 0) {
		locked[way].writers++;
		pthread_cond_wait(&locked[way].drained, &locked[way].mutex);
		locked[way].writers--;
	}
	readers = locked[way].readers;
	pthread_mutex_unlock(&locked[way].mutex);
	if (readers > 0)
		pthread_cond_signal(&locked[way].filled);
	return done;
}

static inline unsigned
locked_take(unsigned way, uintptr_t *words, unsigned n)
{
	unsigned done, writers;

	pthread_mutex_lock(&locked[way].mutex);
	while ((done = pop(way, words, n)) == 0) {
		locked[way].readers++;
		pthread_cond_wait(&locked[way].filled, &locked[way].mutex);
		locked[way].readers--;
	}
	writers = locked[way].writers;
	pthread_mutex_unlock(&locked[way].mutex);
	if (writers > 0)
		pthread_cond_signal(&locked[way].drained);
	return done;
}

RVP_CHANNEL_DEFINE(locked, 400);

/* --- a pthread spin lock --- */

static void
spun_begin(void)
{
	unsigned way;

	for (way = 0; way < 2; way++) {
		pthread_spin_init(&locked[way].spin, PTHREAD_PROCESS_PRIVATE);
		locked[way].head = locked[way].tail = 0;
	}
}

static inline unsigned
spun_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	unsigned done;

	(void)id;
	pthread_spin_lock(&locked[way].spin);
	done = push(way, words, n);
	pthread_spin_unlock(&locked[way].spin);
	return done;
}

static inline unsigned
spun_take(unsigned way, uintptr_t *words, unsigned n)
{
	unsigned done;

	pthread_spin_lock(&locked[way].spin);
	done = pop(way, words, n);
	pthread_spin_unlock(&locked[way].spin);
	return done;
}

RVP_CHANNEL_DEFINE(spun, 200);

/* --- descriptors: words of 8 bytes, a system call a batch --- */

static inline unsigned
put_words(int fd, const uintptr_t *words, unsigned n)
{
	ssize_t done = write(fd, words, n * sizeof(*words));

	rvp_check(done == (ssize_t)(n * sizeof(*words)), "write");
	return n;
}

static inline unsigned
take_words(int fd, uintptr_t *words, unsigned n)
{
	ssize_t done = read(fd, words, n * sizeof(*words));

	rvp_check(done > 0 && (size_t)done % sizeof(*words) == 0, "read");
	return (unsigned)((size_t)done / sizeof(*words));
}

static int pipes[2][2], sockets[2][2], events[2];

static void
pipe_begin(void)
{
	if (pipes[0][1] == 0)
		rvp_check(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0, "pipe");
}

static inline unsigned
pipe_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	(void)id;
	return put_words(pipes[way][1], words, n);
}

static inline unsigned
pipe_take(unsigned way, uintptr_t *words, unsigned n)
{
	return take_words(pipes[way][0], words, n);
}

RVP_CHANNEL_DEFINE(pipe, 2000);

static void
socket_begin(void)
{
	unsigned way;

	for (way = 0; way < 2 && sockets[way][1] == 0; way++)
		rvp_check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[way]) == 0, "socketpair");
}

static inline unsigned
socket_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	(void)id;
	return put_words(sockets[way][1], words, n);
}

static inline unsigned
socket_take(unsigned way, uintptr_t *words, unsigned n)
{
	return take_words(sockets[way][0], words, n);
}

RVP_CHANNEL_DEFINE(socket, 2000);

/* --- a ring, and an eventfd that is read while the ring is empty --- */

static struct {
	struct rvq_ring ring;
	uintptr_t slots[RVP_QUEUE];
	uint64_t due; /* the reader's: words it was told of and has not taken */
} rings[2];

static void
event_begin(void)
{
	unsigned way;

	for (way = 0; way < 2; way++) {
		rvq_ring_init(&rings[way].ring, RVP_QUEUE);
		if (events[way] == 0)
			events[way] = eventfd(0, EFD_CLOEXEC);
		rvp_check(events[way] > 0, "eventfd");
	}
}

static inline unsigned
event_put(unsigned way, unsigned id, const uintptr_t *words, unsigned n)
{
	unsigned done = word_push_batch_spsc(&rings[way].ring, rings[way].slots, words, n);
	uint64_t count = done;

	(void)id;
	if (done > 0)
		rvp_check(write(events[way], &count, sizeof(count)) == sizeof(count), "write");
	return done;
}

static inline unsigned
event_take(unsigned way, uintptr_t *words, unsigned n)
{
	unsigned done;

	if (rings[way].due == 0)
		rvp_check(read(events[way], &rings[way].due, sizeof(rings[way].due)) ==
			sizeof(rings[way].due),
		    "read");
	done = word_pop_batch_spsc(&rings[way].ring, rings[way].slots, words,
	    n < rings[way].due ? n : (unsigned)rings[way].due);
	rings[way].due -= done;
	return done;
}

RVP_CHANNEL_DEFINE(event, 2000);

/* --- the least there is: one word, looked at all the time (line) or slept on (slot) --- */

static struct {
	struct rvq_cell32 word;
} __attribute__((aligned(64))) words[2];

static uint32_t last[2][64 / sizeof(uint32_t)]
    __attribute__((aligned(64))); /* the last word, by each way's reader */

static void
line_begin(void)
{
	unsigned way;

	for (way = 0; way < 2; way++) {
		rvq_cell32_put(&words[way].word, 0);
		last[way][0] = 0;
	}
}

/* Nobody puts before the last word was answered, so the reader need not give the place back: it keeps to words that
 * it has not seen, and the cache line goes there and back and nowhere else. */
static inline unsigned
line_put(unsigned way, unsigned id, const uintptr_t *from, unsigned n)
{
	(void)id;
	(void)n;
	rvq_cell32_put(&words[way].word, (uint32_t)*from);
	return 1;
}

static inline unsigned
line_take(unsigned way, uintptr_t *to, unsigned n)
{
	uint32_t word = rvq_cell32_get(&words[way].word);

	(void)n;
	if (word == last[way][0])
		return 0;
	*to = last[way][0] = word;
	return 1;
}

RVP_CHANNEL_DEFINE(line, 300);

static void
slot_begin(void)
{
	line_begin();
}

static inline unsigned
slot_put(unsigned way, unsigned id, const uintptr_t *from, unsigned n)
{
	(void)id;
	(void)n;
	rvq_cell32_put(&words[way].word, (uint32_t)*from);
	(void)syscall(SYS_futex, (void *)&words[way].word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return 1;
}

/* 0: woken for nothing, or the word was there before it slept. */
static inline unsigned
slot_take(unsigned way, uintptr_t *to, unsigned n)
{
	uint32_t word = rvq_cell32_swap(&words[way].word, 0);

	(void)n;
	if (word == 0)
		(void)syscall(
		    SYS_futex, (void *)&words[way].word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	*to = word;
	return word != 0;
}

RVP_CHANNEL_DEFINE(slot, 3000);
