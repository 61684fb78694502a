/* base.h - the standing check of every scenario: what a test took from the process it gives back.
 *
 * Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_BASE_H
#define REEVE_TESTS_KIT_BASE_H

#include <stdint.h>

/* Under a sanitizer memory that was given back is kept for a while: resident memory tells nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RVT_SANITIZED 1
#elif defined(__has_feature)
#define RVT_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define RVT_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define RVT_TSAN 1
#elif defined(__has_feature)
#define RVT_TSAN (__has_feature(thread_sanitizer))
#else
#define RVT_TSAN 0
#endif

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

/* Of n > 0 numbers, which are sorted by it; the higher one of two. */
double rvt_median(double *v, unsigned n);

#endif
