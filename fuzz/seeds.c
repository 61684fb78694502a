/* seeds.c - writes the inputs that make check replays into a folder, a file each, for a fuzzer to begin with.
 *
 * usage: seeds TARGET FOLDER */
#include <config.h>

#include "fuzz/seed.h"

#include <stdlib.h>

#define NUMBERS 64 /* more of them tell a fuzzer nothing new */

static uint8_t input[SEED_MAX];

static void
put(const char *folder, const char *kind, unsigned i, size_t n)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s-%u", folder, kind, i);
	f = fopen(path, "wb");
	if (f == NULL || fwrite(input, 1, n, f) != n || fclose(f) != 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
}

int
main(int argc, char **argv)
{
	FILE *f;
	size_t n;
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: seeds TARGET FOLDER\n");
		return 2;
	}
	for (unsigned i = 1; i <= NUMBERS; i++)
		put(argv[2], "seed", i, seed_make(input, i));
	f = seed_corpus(argv[1]);
	if (f == NULL)
		return EXIT_SUCCESS;
	for (unsigned i = 1; (rc = seed_line(f, input, &n)) > 0; i++)
		put(argv[2], "corpus", i, n);
	fclose(f);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
