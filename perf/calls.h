/* calls.h - how many system calls the process makes: the kernel's tracepoint raw_syscalls:sys_enter. */
#ifndef REEVE_PERF_CALLS_H
#define REEVE_PERF_CALLS_H

#include <stdint.h>

/* Counts the calling thread and all threads that are made from now on.  Negative: the kernel does not let us (it takes
 * root or a permissive perf_event_paranoid, and tracefs); said once on standard error. */
int rvp_calls_open(void);
/* So far; 0 without a counter. */
uint64_t rvp_calls_read(int counter);
void rvp_calls_close(int counter);

#endif
