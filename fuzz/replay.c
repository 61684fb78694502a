/* replay.c - runs a fuzz target with any compiler: over the files given as arguments, or else
 * over inputs made from seeds 1 to REEVE_FUZZ_N (2000).  REEVE_SEED=n runs that one only. */
#include <config.h>

#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX 65536u

static uint8_t input[INPUT_MAX];

static int
replay_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	size_t n;

	if (f == NULL) {
		perror(name);
		return EXIT_FAILURE;
	}
	n = fread(input, 1, sizeof(input), f);
	fclose(f);
	(void)LLVMFuzzerTestOneInput(input, n);
	return EXIT_SUCCESS;
}

/* Half of the inputs are any bytes, half lean to the upper values, where targets keep their
 * structured commands. */
static void
replay_seed(uint64_t seed)
{
	uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	size_t n;

	x ^= x >> 29;
	n = x % 2048;
	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		input[i] = (uint8_t)(x >> 32);
		if (seed % 2 == 0 && (x & 3) != 0)
			input[i] |= 0x20;
	}
	(void)LLVMFuzzerTestOneInput(input, n);
}

int
main(int argc, char **argv)
{
	const char *one = getenv("REEVE_SEED"), *count = getenv("REEVE_FUZZ_N");
	uint64_t n = count == NULL ? 2000 : strtoull(count, NULL, 10);
	int rc = EXIT_SUCCESS;

	for (int i = 1; i < argc; i++)
		if (replay_file(argv[i]) != EXIT_SUCCESS)
			rc = EXIT_FAILURE;
	if (argc > 1)
		return rc;
	if (one != NULL) {
		replay_seed(strtoull(one, NULL, 10));
		return rc;
	}
	for (uint64_t seed = 1; seed <= n; seed++) {
		/* The last line of a crash names its seed. */
		printf("seed %llu\n", (unsigned long long)seed);
		fflush(stdout);
		replay_seed(seed);
	}
	return rc;
}
