/* base.h - the standing check of every scenario: what a test took from the process it gives back.
 *
 * Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_BASE_H
#define REEVE_TESTS_KIT_BASE_H

#include <stdint.h>

struct rvt_base {
	unsigned fds;
	unsigned threads;
};

/* Now. */
struct rvt_base rvt_base(void);
/* Descriptors and threads are back at what they were, within RVT_WAIT_MS. */
void rvt_base_check(const struct rvt_base *b);

/* Of this process: resident memory in bytes, processor time in ms. */
uint64_t rvt_rss(void);
uint64_t rvt_cpu_ms(void);

#endif
