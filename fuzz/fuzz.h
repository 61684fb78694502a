/* fuzz.h - the entry point of a fuzz target, which libFuzzer or replay.c calls. */
#ifndef REEVE_FUZZ_FUZZ_H
#define REEVE_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#endif
