/* reeve_node_words.c - the lines of our node: taken apart, put together, and the words for results. */
#include <config.h>

#include "tests/interop/reeve_node.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void
node_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	flockfile(stdout);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
	va_end(args);
}

void
node_fail(const struct node_command *c, const char *reason)
{
	char text[160];

	snprintf(text, sizeof(text), "%s", reason);
	for (char *at = text; *at != '\0'; at++)
		if (isspace((unsigned char)*at))
			*at = '_';
	node_say("error command=%s reason=%s", c->word, text);
}

void
node_must(bool ok, const char *what, const char *more)
{
	if (ok)
		return;
	fprintf(stderr, "reeve_node: %s: %s\n", what, more);
	exit(EXIT_FAILURE);
}

bool
node_parse(struct node_command *c, char *line)
{
	char *save, *word = strtok_r(line, " \t\r\n", &save);
	char *equals;

	memset(c, 0, sizeof(*c));
	if (word == NULL || word[0] == '#')
		return false;
	c->word = word;
	while ((word = strtok_r(NULL, " \t\r\n", &save)) != NULL) {
		equals = strchr(word, '=');
		if (equals == NULL && c->nargs < NODE_WORDS) {
			c->arg[c->nargs++] = word;
		} else if (equals != NULL && c->nkeys < NODE_WORDS) {
			*equals = '\0';
			c->key[c->nkeys] = word;
			c->value[c->nkeys++] = equals + 1;
		}
	}
	return true;
}

const char *
node_arg(const struct node_command *c, unsigned i)
{
	return i < c->nargs ? c->arg[i] : "";
}

const char *
node_key(const struct node_command *c, const char *key, const char *otherwise)
{
	for (unsigned i = 0; i < c->nkeys; i++)
		if (strcmp(c->key[i], key) == 0)
			return c->value[i];
	return otherwise;
}

bool
node_number(const char *text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

bool
node_unhex(const char *text, uint8_t **out, size_t *n)
{
	size_t len = strlen(text);
	unsigned byte;

	*n = len / 2;
	*out = malloc(len / 2 + 1);
	for (size_t i = 0; *out != NULL && i < len / 2; i++) {
		if (!isxdigit((unsigned char)text[2 * i]) ||
		    sscanf(text + 2 * i, "%2x", &byte) != 1)
			len = 1;
		(*out)[i] = (uint8_t)byte;
	}
	if (*out != NULL && len % 2 == 0)
		return true;
	free(*out);
	*out = NULL;
	return false;
}

char *
node_hex(const uint8_t *p, size_t n)
{
	char *out = malloc(2 * n + 1);

	node_must(out != NULL, "out of memory", "hexadecimal text");
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
	out[2 * n] = '\0';
	return out;
}

const char *
node_reason(char out[NODE_REASON], int rc, enum node_what what)
{
	static const struct {
		int rc;
		const char *word;
	} known[] = {{0, "ended"}, {REEVE_EREFUSED, "rejected"}, {REEVE_ETIMEDOUT, "timeout"},
	    {REEVE_EDIAL, "dial-failed"}, {REEVE_ENOPROTO, "unsupported"},
	    {REEVE_ETOOBIG, "too-large"}, {REEVE_ELOST, "connection-closed"},
	    {REEVE_ECANCELED, "cancelled"}, {REEVE_ECLOGGED, "clogged"}};
	const char *name = reeve_errname(rc);
	size_t i;

	if (rc == REEVE_ENOTCONN)
		return what == NODE_OPEN ? "no-connection" : "not-connected";
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].rc == rc)
			return known[i].word;
	if (strncmp(name, "REEVE_E", 7) == 0)
		name += 7;
	for (i = 0; name[i] != '\0' && i < NODE_REASON - 1; i++)
		out[i] = (char)tolower((unsigned char)name[i]);
	out[i] = '\0';
	return out;
}

uint64_t
node_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
