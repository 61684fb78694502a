/* pace.h - small pauses that are part of what a scenario does to the library; nothing is waited for with them. */
#ifndef REEVE_TESTS_SCENARIOS_PACE_H
#define REEVE_TESTS_SCENARIOS_PACE_H

#include <poll.h>
#include <stdint.h>

static inline void
rvt_pace_us(uint32_t us)
{
	struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

	(void)ppoll(NULL, 0, &t, NULL);
}

#endif
