/* clock.h - microseconds of CLOCK_MONOTONIC, and deadlines from timeouts.  Any thread. */
#ifndef REEVE_LIB_CLOCK_H
#define REEVE_LIB_CLOCK_H

#include <stdint.h>

uint64_t rv_clock_us(void);
/* Absolute deadline of a timeout in milliseconds counted from now_us: UINT64_MAX (none) for -1
 * or less, and for what would overflow. */
uint64_t rv_deadline_us(uint64_t now_us, int64_t timeout_ms);

#endif
