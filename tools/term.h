/* term.h - what the installed programs say on a terminal: sizes, rates, a bar and one line that is drawn over. */
#ifndef REEVE_TOOLS_TERM_H
#define REEVE_TOOLS_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TERM_TEXT 256 /* room for a line */

/* A line that is drawn over and over.  On a terminal it stays where it is; elsewhere it is shown once in a while, as
 * a line of its own.  Owner: one thread. */
struct term_line {
	FILE *file;
	bool live;        /* the file is a terminal that can go back */
	bool shown;       /* something is there to be wiped */
	unsigned ticks;   /* calls of term_show */
	int width;        /* columns that may be used */
	uint64_t next_us; /* not a terminal: when to speak again */
};

/* Microseconds of a clock that only goes forward. */
uint64_t term_now_us(void);

/* Seconds of processor time used by the whole process. */
double term_cpu_s(void);

/* "17 B", "64 KiB", "1.4 MiB": at most 9 characters.  Returns out. */
const char *term_bytes(char out[16], double n);

/* "17", "4.2k", "1.31M": at most 6 characters.  Returns out. */
const char *term_count(char out[16], double n);

/* A bar of width characters with its brackets: part from 0 to 1, or negative when the end is not known (then the
 * mark moves with tick).  out has room for width + 1. */
void term_bar(char *out, int width, double part, unsigned tick);

/* The line for a file: looks whether it is a terminal and how wide. */
void term_init(struct term_line *l, FILE *file);

/* Draw the text over what is there, cut at the width. */
void term_show(struct term_line *l, const char *text);

/* Wipe the line; what was shown elsewhere than on a terminal stays. */
void term_clear(struct term_line *l);

/* Show the text for good and go to the next line. */
void term_finish(struct term_line *l, const char *text);

#endif
