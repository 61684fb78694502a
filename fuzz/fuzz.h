/* fuzz.h - the entry point of a fuzz target, which libFuzzer or replay.c calls, and how it says no. */
#ifndef REEVE_FUZZ_FUZZ_H
#define REEVE_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static inline void
must(bool ok)
{
	if (!ok)
		abort();
}

#endif
