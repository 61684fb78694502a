/* consumer.c - what a user of the installed library does first: built by make installcheck as C and as C++ from the
 * flags that pkg-config gives, then run. */
#include <reeve/reeve.h>
#include <stdio.h>
#include <string.h>

int
main(void)
{
	const char *text = reeve_strerror(REEVE_ERESET);

	if (strcmp(reeve_version(), REEVE_VERSION) != 0) {
		fprintf(stderr, "library %s, headers %s\n", reeve_version(), REEVE_VERSION);
		return 1;
	}
	if (text == NULL || text[0] == '\0' || strcmp(text, reeve_strerror(REEVE_OK)) == 0) {
		fprintf(stderr, "no text for REEVE_ERESET\n");
		return 1;
	}
	printf("installed reeve %s: %s\n", reeve_version(), text);
	return 0;
}
