/*
 * parker.c - the system calls behind parker.h: futex for threads, eventfd for workers.
 *
 * Any thread.  The ticket that a thread got when it armed a parker waits in thread-local storage
 * until the thread waits; a wait on another parker than the one armed last returns at once, as if
 * woken, so a misuse costs a turn of the caller's loop and never a wake-up.
 */
#include <config.h>

#include "queues/parker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <reeve/error.h>

static _Thread_local struct {
	const struct rvq_parker *parker;
	uint32_t ticket;
} armed;

/* The kernel's view of the word. */
static uint32_t *
futex_word(struct rvq_parker *p)
{
	return (uint32_t *)(void *)&p->park.word;
}

void
rvq_parker_init(struct rvq_parker *p)
{
	rvq_store_rlx(&p->park.word, UINT32_C(0));
}

void
rvq_parker_arm(struct rvq_parker *p)
{
	armed.parker = p;
	armed.ticket = rvq_park_arm(&p->park);
}

void
rvq_parker_disarm(struct rvq_parker *p)
{
	if (armed.parker == p)
		armed.parker = NULL;
}

int
rvq_parker_wait(struct rvq_parker *p, uint64_t deadline_us)
{
	struct timespec at, *timeout = NULL;
	long rc;

	if (armed.parker != p)
		return 0;
	armed.parker = NULL;
	if (deadline_us != RVQ_FOREVER) {
		at.tv_sec = (time_t)(deadline_us / 1000000);
		at.tv_nsec = (long)(deadline_us % 1000000) * 1000;
		timeout = &at;
	}
	do {
		/* The bitset form takes an absolute time, so a signal does not lengthen the wait.
		 *  */
		rc = syscall(SYS_futex, futex_word(p), FUTEX_WAIT_BITSET_PRIVATE, armed.ticket,
		    timeout, NULL, FUTEX_BITSET_MATCH_ANY);
	} while (rc == -1 && errno == EINTR);
	return rc == -1 && errno == ETIMEDOUT ? REEVE_ETIMEDOUT : 0;
}

bool
rvq_parker_wake(struct rvq_parker *p)
{
	if (!rvq_park_claim(&p->park))
		return false;
	(void)syscall(SYS_futex, futex_word(p), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	return true;
}

int
rvq_waker_init(struct rvq_waker *w)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd == -1)
		return REEVE_ESYS_BASE - errno;
	w->fd = fd;
	rvq_store_rlx(&w->loan.word, RVQ_LOAN_AWAKE);
	return 0;
}

void
rvq_waker_fini(struct rvq_waker *w)
{
	uint64_t count;
	ssize_t n = read(w->fd, &count, sizeof(count)); /* every wake comes before the close */

	(void)n;
	(void)close(w->fd);
	w->fd = -1;
}

void
rvq_waker_arm(struct rvq_waker *w)
{
	rvq_loan_sleep(&w->loan);
}

bool
rvq_waker_lent(const struct rvq_waker *w)
{
	uint32_t word = rvq_load_rlx(&w->loan.word);

	return word == RVQ_LOAN_LENT || word == RVQ_LOAN_LED;
}

/* The kernel's view of the word. */
static uint32_t *
loan_word(struct rvq_waker *w)
{
	return (uint32_t *)(void *)&w->loan.word;
}

static void
ring(struct rvq_waker *w)
{
	uint64_t one = 1;
	ssize_t n = write(w->fd, &one, sizeof(one));

	(void)n; /* the only failure is a counter at its maximum, after 2^64 wakes */
}

void
rvq_waker_disarm(struct rvq_waker *w)
{
	while (!rvq_loan_back(&w->loan)) {
		ring(w); /* it may be a leader that has it */
		while (rvq_load_acq(&w->loan.word) == RVQ_LOAN_WANTED)
			(void)syscall(SYS_futex, loan_word(w), FUTEX_WAIT_PRIVATE, RVQ_LOAN_WANTED,
			    NULL, NULL, 0);
	}
}

bool
rvq_waker_wake(struct rvq_waker *w)
{
	if (rvq_loan_claim(&w->loan, RVQ_LOAN_AWAKE) == RVQ_CLAIM_NONE)
		return false;
	ring(w);
	return true;
}

bool
rvq_waker_borrow(struct rvq_waker *w)
{
	enum rvq_claim claim = rvq_loan_claim(&w->loan, RVQ_LOAN_LENT);

	if (claim == RVQ_CLAIM_LEADER)
		ring(w);
	return claim == RVQ_CLAIM_MINE;
}

void
rvq_waker_poke(struct rvq_waker *w)
{
	uint32_t word = RVQ_LOAN_LED;

	rvq_fence_sc(); /* pairs with rvq_loan_lead */
	if (rvq_load_rlx(&w->loan.word) == word && rvq_cas_ar(&w->loan.word, &word, RVQ_LOAN_LENT))
		ring(w);
}

bool
rvq_waker_lead(struct rvq_waker *w)
{
	return rvq_loan_lead(&w->loan);
}

bool
rvq_waker_led(struct rvq_waker *w)
{
	return rvq_loan_led(&w->loan);
}

static void
unblock(struct rvq_waker *w)
{
	(void)syscall(SYS_futex, loan_word(w), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool
rvq_waker_give(struct rvq_waker *w)
{
	if (rvq_loan_give(&w->loan))
		return true;
	unblock(w);
	return false;
}

void
rvq_waker_hand(struct rvq_waker *w)
{
	if (rvq_loan_hand(&w->loan))
		ring(w);
	else
		unblock(w);
}
