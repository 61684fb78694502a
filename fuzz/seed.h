/* seed.h - where inputs of fuzz targets come from when nobody looks for new ones: numbers, and lines of fuzz/corpus. */
#ifndef REEVE_FUZZ_SEED_H
#define REEVE_FUZZ_SEED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SEED_MAX 65536u

/* The input of a number, less than 2 KiB.  Its length; p has room for SEED_MAX. */
size_t seed_make(uint8_t *p, uint64_t seed);

/* fuzz/corpus/NAME.hex of the source tree; NULL: there is none. */
FILE *seed_corpus(const char *name);
/* Its next input: a line of hexadecimal digits; empty lines and those that begin with # are skipped.  1, 0 at the end;
 * -1: a line is something else, or longer than SEED_MAX bytes. */
int seed_line(FILE *f, uint8_t *p, size_t *n);

#endif
