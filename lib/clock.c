/* clock.c - see clock.h. */
#include <config.h>

#include "lib/clock.h"

#include <time.h>

uint64_t
rv_clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
rv_deadline_us(uint64_t now_us, int64_t timeout_ms)
{
	if (timeout_ms < 0 || (uint64_t)timeout_ms > (UINT64_MAX - now_us) / 1000)
		return UINT64_MAX;
	return now_us + (uint64_t)timeout_ms * 1000;
}
