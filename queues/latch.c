/* latch.c - the system calls behind latch.h. */
#include <config.h>

#include "queues/latch.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <reeve/error.h>

void
rvq_latch_set(struct rvq_latch *l)
{
	/* pairs with rvq_latch_isset and the compare-and-swap in rvq_latch_wait */
	if (rvq_swap_ar(&l->word, UINT32_C(2)) == 1)
		(void)syscall(
		    SYS_futex, (void *)&l->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int
rvq_latch_wait(struct rvq_latch *l, uint64_t deadline_us)
{
	struct timespec at, *timeout = NULL;
	uint32_t seen = 0;

	if (deadline_us != UINT64_MAX) {
		at.tv_sec = (time_t)(deadline_us / 1000000);
		at.tv_nsec = (long)(deadline_us % 1000000) * 1000;
		timeout = &at;
	}
	while (!rvq_latch_isset(l)) {
		seen = 0;
		(void)rvq_cas_ar(&l->word, &seen, UINT32_C(1));
		if (seen == 2)
			break;
		if (syscall(SYS_futex, (void *)&l->word, FUTEX_WAIT_BITSET_PRIVATE, 1, timeout,
			NULL, FUTEX_BITSET_MATCH_ANY) == -1 &&
		    errno == ETIMEDOUT)
			return rvq_latch_isset(l) ? 0 : REEVE_ETIMEDOUT;
	}
	return 0;
}
