/* seed.c - see seed.h. */
#include <config.h>

#include "fuzz/seed.h"

#include <ctype.h>
#include <stdlib.h>

/* Half of the inputs are any bytes, half lean to the upper values, where targets keep their structured commands. */
size_t
seed_make(uint8_t *p, uint64_t seed)
{
	uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	size_t n;

	x ^= x >> 29;
	n = x % 2048;
	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x >> 32);
		if (seed % 2 == 0 && (x & 3) != 0)
			p[i] |= 0x20;
	}
	return n;
}

FILE *
seed_corpus(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/fuzz/corpus/%s.hex", srcdir != NULL ? srcdir : ".", name);
	return fopen(path, "r");
}

static int
digit(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

int
seed_line(FILE *f, uint8_t *p, size_t *n)
{
	size_t k = 0; /* digits */
	int c = getc(f);

	while (c == '#' || c == '\n') {
		while (c != '\n' && c != EOF)
			c = getc(f);
		c = getc(f);
	}
	if (c == EOF)
		return 0;
	for (; c != '\n' && c != EOF; c = getc(f), k++) {
		if (digit(c) < 0 || k == 2 * SEED_MAX)
			return -1;
		p[k / 2] = (uint8_t)((k % 2 ? p[k / 2] << 4 : 0) | digit(c));
	}
	*n = k / 2;
	return k % 2 == 0 ? 1 : -1;
}
