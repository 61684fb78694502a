/* clock.h - microseconds of CLOCK_MONOTONIC, and deadlines from timeouts. */
#ifndef REEVE_LIB_CLOCK_H
#define REEVE_LIB_CLOCK_H

#include <stdint.h>

uint64_t rv_clock_us(void);
/* Absolute deadline of a timeout in milliseconds counted from now_us: UINT64_MAX for -1 (or less), never overflows. */
uint64_t rv_deadline_us(uint64_t now_us, int64_t timeout_ms);

#endif
