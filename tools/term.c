/* term.c - one line of progress, sizes and rates.  Plain characters only. */
#include <config.h>

#include "tools/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PLAIN_US 1000000 /* not a terminal: a line a second */

uint64_t
term_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

double
term_cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

const char *
term_bytes(char out[16], double n)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t i = 0;

	while (n >= 1023.5 && i + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1024;
		i++;
	}
	snprintf(
	    out, 16, n < 10 && i > 0 && n != (double)(int)n ? "%.1f %s" : "%.0f %s", n, units[i]);
	return out;
}

const char *
term_count(char out[16], double n)
{
	static const char *const units[] = {"", "k", "M", "G"};
	size_t i = 0;

	while (n >= 999.5 && i + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1000;
		i++;
	}
	snprintf(out, 16,
	    i == 0 || n >= 100 ? "%.0f%s"
		: n >= 10      ? "%.1f%s"
			       : "%.2f%s",
	    n, units[i]);
	return out;
}

void
term_bar(char *out, int width, double part, unsigned tick)
{
	int inner = width - 2, i, mark;

	if (width < 5) {
		out[0] = '\0';
		return;
	}
	memset(out, ' ', (size_t)width);
	out[0] = '[';
	out[width - 1] = ']';
	out[width] = '\0';
	if (part < 0) { /* to and fro */
		i = (int)(tick % (unsigned)(2 * (inner - 2)));
		mark = i < inner - 2 ? i : 2 * (inner - 2) - i;
		memcpy(out + 1 + mark, "<=>", mark + 3 <= inner ? 3 : (size_t)(inner - mark));
		return;
	}
	mark = (int)((part > 1 ? 1 : part) * inner);
	memset(out + 1, '=', (size_t)mark);
	if (mark < inner)
		out[1 + mark] = '>';
}

void
term_init(struct term_line *l, FILE *file)
{
	struct winsize w;
	const char *kind = getenv("TERM");

	memset(l, 0, sizeof(*l));
	l->file = file;
	l->live = isatty(fileno(file)) && (kind == NULL || strcmp(kind, "dumb") != 0);
	l->width = 79; /* the last column makes some terminals go on to the next line */
	if (l->live && ioctl(fileno(file), TIOCGWINSZ, &w) == 0 && w.ws_col > 20)
		l->width = w.ws_col - 1;
	if (l->width > TERM_TEXT - 1)
		l->width = TERM_TEXT - 1;
}

void
term_show(struct term_line *l, const char *text)
{
	uint64_t now;

	l->ticks++;
	if (l->live) {
		fprintf(l->file, "\r%.*s\033[K", l->width, text);
		l->shown = true;
	} else {
		now = term_now_us();
		if (now < l->next_us)
			return;
		l->next_us = now + PLAIN_US;
		fprintf(l->file, "%s\n", text);
	}
	fflush(l->file);
}

void
term_clear(struct term_line *l)
{
	if (!l->shown)
		return;
	fputs("\r\033[K", l->file);
	fflush(l->file);
	l->shown = false;
}

void
term_finish(struct term_line *l, const char *text)
{
	term_clear(l);
	fprintf(l->file, "%s\n", text);
	fflush(l->file);
}
