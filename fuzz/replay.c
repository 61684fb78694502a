/* replay.c - runs a fuzz target with any compiler: over the files given as arguments, or else over the corpus of the
 * target and inputs made from seeds 1 to REEVE_FUZZ_N (2000).  REEVE_SEED=n runs that one only. */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/seed.h"

#include <stdlib.h>

static uint8_t input[SEED_MAX];

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

/* What the last line of the output names is what crashed. */
static void
replay(const char *what, uint64_t i, size_t n)
{
	printf("%s %llu\n", what, (unsigned long long)i);
	fflush(stdout);
	(void)LLVMFuzzerTestOneInput(input, n);
}

static int
replay_corpus(const char *name)
{
	FILE *f = seed_corpus(name);
	size_t n;
	int rc;

	if (f == NULL) {
		printf("no corpus for %s\n", name);
		return EXIT_FAILURE;
	}
	for (unsigned i = 1; (rc = seed_line(f, input, &n)) > 0; i++)
		replay("input", i, n);
	fclose(f);
	if (rc < 0)
		printf("the corpus for %s is not lines of hexadecimal digits\n", name);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
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
		n = strtoull(one, NULL, 10);
		replay("seed", n, seed_make(input, n));
		return rc;
	}
	rc = replay_corpus(REEVE_FUZZ_TARGET);
	for (uint64_t seed = 1; seed <= n; seed++)
		replay("seed", seed, seed_make(input, seed));
	return rc;
}
