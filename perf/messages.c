/*
 * messages.c - what a message costs: our rings, mailboxes, bells and actors, and the usual channels beside them.
 *
 * A row is a workload, and all that it compares take turns in the same rounds: with each other and with the round trip
 * of a cache line and of a futex between the two processors, which are what the machine itself takes.  Every receiver
 * checks how many words came and their sum; a word that is lost ends the program, by the alarm if by nothing else.
 * perf/README.md tells what the rows are.
 */
#include <config.h>

#include "perf/messages.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX  96
#define PATIENCE  60 /* seconds for one measurement */
#define WINDOWS   30 /* of 100 ms */
#define YARDSTICK 0  /* the cache line is the table's first */

#define STREAM(row, x, contender, channel, batch)                                     \
	{                                                                             \
		row, contender, "time", "ns", x, rvp_run_stream, &(struct rvp_stream) \
		{                                                                     \
			&(channel), (x), (batch)                                      \
		}                                                                     \
	}
#define ALONE(row, contender, channel, depth)                                           \
	{                                                                               \
		row, contender, "time", "ns", depth, rvp_run_alone, &(struct rvp_alone) \
		{                                                                       \
			&(channel), (depth)                                             \
		}                                                                       \
	}
#define TRIP(row, contender, channel, other, trips)                               \
	{                                                                         \
		row, contender, "time", "ns", 0, rvp_run_trip, &(struct rvp_trip) \
		{                                                                 \
			&(channel), {0, other}, trips                             \
		}                                                                 \
	}
#define ACTORS(row, contender, what, unit, fn, there, carry, bound)     \
	{                                                               \
		row, contender, what, unit, 0, fn, &(struct rvp_actors) \
		{                                                       \
			there, carry, bound                             \
		}                                                       \
	}
#define THREADS(row, x)                                                                        \
	{                                                                                      \
		row, "actor from threads", "time", "ns", x, rvp_run_actor_threads, &(unsigned) \
		{                                                                              \
			x                                                                      \
		}                                                                              \
	}

static struct rvp_row rows[] = {
    TRIP("round trip", "cache line", rvp_line, 1, 20000),
    TRIP("round trip", "futex", rvp_slot, 1, 600),
    TRIP("round trip", "spsc", rvp_spsc, 1, 20000),
    TRIP("round trip", "mailbox", rvp_mailbox, 1, 20000),
    TRIP("round trip", "mailbox+futex", rvp_parked, 1, 600),
    ACTORS("round trip", "actor", "time", "ns", rvp_run_actor_trip, 1, 1, true),
    TRIP("round trip", "mutex+condvar", rvp_locked, 1, 600),
    TRIP("round trip", "spin lock", rvp_spun, 1, 20000),
    TRIP("round trip", "pipe", rvp_pipe, 1, 600),
    TRIP("round trip", "eventfd", rvp_event, 1, 600),
    TRIP("round trip", "socketpair", rvp_socket, 1, 600),
    TRIP("round trip one processor", "futex", rvp_slot, 0, 10000),
    TRIP("round trip one processor", "mailbox+futex", rvp_parked, 0, 10000),
    TRIP("round trip one processor", "mutex+condvar", rvp_locked, 0, 10000),
    TRIP("round trip one processor", "pipe", rvp_pipe, 0, 10000),
    TRIP("round trip one processor", "eventfd", rvp_event, 0, 10000),
    TRIP("round trip one processor", "socketpair", rvp_socket, 0, 10000),
    ACTORS("round trip same worker", "actor", "time", "ns", rvp_run_actor_trip, 0, 1, false),
    ACTORS("same worker", "actor", "time", "ns", rvp_run_actor_way, 0, 1, false),
    {"same thread", "direct call", "time", "ns", 1, rvp_run_direct, NULL},
    {"same thread", "callback", "time", "ns", 1, rvp_run_callback, NULL},
    {"same thread", "exchange", "time", "ns", 1, rvp_run_exchange, NULL},
    ALONE("same thread", "spsc", rvp_spsc, 1),
    ALONE("same thread", "bell", rvp_bell, 1),
    ALONE("same thread", "mailbox", rvp_mailbox, 1),
    ALONE("same thread", "mailbox near", rvp_near, 1),
    ALONE("same thread", "stack", rvp_stack, 1),
    {"same thread", "turn", "time", "ns", 1, rvp_run_turns, &(unsigned){1}},
    ALONE("same thread", "mutex+condvar", rvp_locked, 1),
    ALONE("same thread", "spin lock", rvp_spun, 1),
    ALONE("same thread", "pipe", rvp_pipe, 1),
    ALONE("same thread", "eventfd", rvp_event, 1),
    ALONE("same thread", "socketpair", rvp_socket, 1),
    ALONE("same thread 64 deep", "spsc", rvp_spsc, RVP_DEPTH),
    ALONE("same thread 64 deep", "mailbox", rvp_mailbox, RVP_DEPTH),
    ALONE("same thread 64 deep", "mailbox near", rvp_near, RVP_DEPTH),
    ALONE("same thread 64 deep", "stack", rvp_stack, RVP_DEPTH),
    {"same thread 64 deep", "turn", "time", "ns", RVP_DEPTH, rvp_run_turns, &(unsigned){RVP_DEPTH}},
    STREAM("1 producer", 1, "spsc", rvp_spsc, 1),
    STREAM("1 producer", 1, "bell", rvp_bell, 1),
    STREAM("1 producer", 1, "mailbox", rvp_mailbox, 1),
    STREAM("1 producer", 1, "stack", rvp_stack, 1),
    ACTORS("1 producer", "actor", "time", "ns", rvp_run_actor_way, 1, 1, true),
    ACTORS("1 producer", "actor", "wakes", "/1000", rvp_run_actor_wakes, 1, 1, true),
    THREADS("1 producer", 1),
    STREAM("1 producer", 1, "mutex+condvar", rvp_locked, 1),
    STREAM("1 producer", 1, "spin lock", rvp_spun, 1),
    STREAM("1 producer", 1, "pipe", rvp_pipe, 1),
    STREAM("1 producer", 1, "eventfd", rvp_event, 1),
    STREAM("1 producer", 1, "socketpair", rvp_socket, 1),
    STREAM("batched 16", 1, "spsc", rvp_spsc, RVP_MANY),
    STREAM("batched 16", 1, "bell", rvp_bell, RVP_MANY),
    ACTORS("batched 16", "actor", "time", "ns", rvp_run_actor_way, 1, RVP_MANY, true),
    STREAM("batched 16", 1, "mutex+condvar", rvp_locked, RVP_MANY),
    STREAM("batched 16", 1, "spin lock", rvp_spun, RVP_MANY),
    STREAM("batched 16", 1, "pipe", rvp_pipe, RVP_MANY),
    STREAM("batched 16", 1, "eventfd", rvp_event, RVP_MANY),
    STREAM("batched 16", 1, "socketpair", rvp_socket, RVP_MANY),
    STREAM("2 producers", 2, "mailbox", rvp_mailbox, 1),
    STREAM("2 producers", 2, "stack", rvp_stack, 1),
    THREADS("2 producers", 2),
    STREAM("2 producers", 2, "mutex+condvar", rvp_locked, 1),
    STREAM("2 producers", 2, "spin lock", rvp_spun, 1),
    STREAM("2 producers", 2, "pipe", rvp_pipe, 1),
    STREAM("2 producers", 2, "socketpair", rvp_socket, 1),
    STREAM("4 producers", 4, "mailbox", rvp_mailbox, 1),
    STREAM("4 producers", 4, "stack", rvp_stack, 1),
    THREADS("4 producers", 4),
    STREAM("4 producers", 4, "mutex+condvar", rvp_locked, 1),
    STREAM("4 producers", 4, "spin lock", rvp_spun, 1),
    STREAM("4 producers", 4, "pipe", rvp_pipe, 1),
    STREAM("4 producers", 4, "socketpair", rvp_socket, 1),
};

static struct rvp_wake actor_wake = {.channel = NULL}, parked_wake = {.channel = &rvp_parked},
		       slot_wake = {.channel = &rvp_slot}, locked_wake = {.channel = &rvp_locked},
		       pipe_wake = {.channel = &rvp_pipe}, event_wake = {.channel = &rvp_event},
		       socket_wake = {.channel = &rvp_socket};
static struct rvp_row wakes[] = {
    {"parked", "actor", "p50", "us", 0, rvp_run_wake, &actor_wake},
    {"parked", "mailbox+futex", "p50", "us", 0, rvp_run_wake, &parked_wake},
    {"parked", "futex", "p50", "us", 0, rvp_run_wake, &slot_wake},
    {"parked", "mutex+condvar", "p50", "us", 0, rvp_run_wake, &locked_wake},
    {"parked", "pipe", "p50", "us", 0, rvp_run_wake, &pipe_wake},
    {"parked", "eventfd", "p50", "us", 0, rvp_run_wake, &event_wake},
    {"parked", "socketpair", "p50", "us", 0, rvp_run_wake, &socket_wake},
};

static const struct rvp_free frees[] = {
    {&rvp_mailbox, "mailbox"},
    {&rvp_stack, "stack"},
    {NULL, "actor from threads"},
    {&rvp_locked, "mutex+condvar"},
    {&rvp_spun, "spin lock"},
};

static const char *only; /* "row,row/contender,...", or NULL: everything */
static const struct rvp_row *now;

static void
out_of_patience(int ignored)
{
	static const char why[] = "messages: nothing more came; lost in: ";

	(void)ignored;
	(void)!write(STDERR_FILENO, why, sizeof(why) - 1);
	(void)!write(STDERR_FILENO, now->row, strlen(now->row));
	(void)!write(STDERR_FILENO, ", ", 2);
	(void)!write(STDERR_FILENO, now->contender, strlen(now->contender));
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(EXIT_FAILURE);
}

static void
begin(const struct rvp_row *r)
{
	now = r;
	(void)alarm(PATIENCE);
}

static double
run(void *arg)
{
	struct rvp_row *r = arg;

	begin(r);
	return r->run(r->arg);
}

static bool
wanted(const char *row, const char *contender)
{
	size_t n = strlen(row), m = strlen(contender);
	const char *at;

	if (only == NULL)
		return true;
	for (at = only; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, row, n) != 0)
			continue;
		if (at[n] == ',' || at[n] == '\0')
			return true;
		if (at[n] == '/' && strncmp(at + n + 1, contender, m) == 0 &&
		    (at[n + 1 + m] == ',' || at[n + 1 + m] == '\0'))
			return true;
	}
	return false;
}

/* Takes --only=LIST out of the arguments. */
static int
take_only(int argc, char **argv)
{
	int i, n = 0;

	for (i = 0; i < argc; i++) {
		if (strncmp(argv[i], "--only=", 7) == 0)
			only = argv[i] + 7;
		else
			argv[n++] = argv[i];
	}
	argv[n] = NULL;
	return n;
}

static void
print(const struct rvp_row *r, const char *row, const char *what, const double *values, unsigned n)
{
	struct rvp_cell cell = {"messages", row, r->contender, what, r->unit, r->x};

	rvp_cell_print(&cell, values, n);
}

/* a's figures by b's, round by round. */
static void
print_ratio(const struct rvp_case *a, const struct rvp_case *b, unsigned n)
{
	const struct rvp_row *r = a->arg, *s = b->arg;
	struct rvp_cell cell = {"messages", r->row, NULL, r->what, "ratio", r->x};
	double ratios[RVP_ROUNDS_MAX];
	char contender[64];
	unsigned i;

	for (i = 0; i < n; i++)
		ratios[i] = a->values[i] / b->values[i];
	(void)snprintf(contender, sizeof(contender), "%s/%s", r->contender, s->contender);
	cell.contender = contender;
	rvp_cell_print(&cell, ratios, n);
}

static bool
same_row(const struct rvp_case *a, const struct rvp_case *b)
{
	const struct rvp_row *r = a->arg, *s = b->arg;

	return strcmp(r->row, s->row) == 0 && strcmp(r->what, s->what) == 0;
}

static bool
is(const struct rvp_case *c, const char *contender)
{
	const struct rvp_row *r = c->arg;

	return strcmp(r->contender, contender) == 0;
}

/* What the others of c's row are compared with: the actor, or the mailbox where there is none. */
static const struct rvp_case *
reference(const struct rvp_case *cases, size_t n, const struct rvp_case *c)
{
	const struct rvp_case *mailbox = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!same_row(&cases[i], c))
			continue;
		if (is(&cases[i], "actor"))
			return &cases[i];
		if (is(&cases[i], "mailbox"))
			mailbox = &cases[i];
	}
	return mailbox;
}

/* Is c to be read beside the round trip of a cache line?  Ours between processors. */
static bool
crosses(const struct rvp_case *c)
{
	const struct rvp_row *r = c->arg;

	return strcmp(r->what, "time") == 0 &&
	    (is(c, "actor") || is(c, "spsc") || is(c, "mailbox") || is(c, "futex")) &&
	    (strcmp(r->row, "round trip") == 0 || strcmp(r->row, "batched 16") == 0 ||
		strstr(r->row, "producer") != NULL);
}

static void
report(const struct rvp_case *cases, size_t n, unsigned rounds)
{
	const struct rvp_case *other;
	const struct rvp_row *r;
	size_t i;

	for (i = 0; i < n; i++) {
		r = cases[i].arg;
		print(r, r->row, r->what, cases[i].values, rounds);
	}
	for (i = 0; i < n; i++) {
		other = reference(cases, n, &cases[i]);
		if (other != NULL && other != &cases[i])
			print_ratio(&cases[i], other, rounds);
		if (cases[0].arg == &rows[YARDSTICK] && crosses(&cases[i]))
			print_ratio(&cases[i], &cases[0], rounds);
	}
}

static void
report_wakes(const struct rvp_case *cases, size_t n, unsigned rounds)
{
	const struct rvp_wake *w;
	size_t i;

	for (i = 0; i < n; i++) {
		w = ((const struct rvp_row *)cases[i].arg)->arg;
		print(cases[i].arg, "parked, sender", "p50", w->sender[0], rounds);
		print(cases[i].arg, "parked, sender", "p99", w->sender[1], rounds);
		print(cases[i].arg, "parked, until it runs", "p50", w->until[0], rounds);
		print(cases[i].arg, "parked, until it runs", "p99", w->until[1], rounds);
	}
}

/* The wanted ones of a table as cases. */
static size_t
choose(struct rvp_case *cases, struct rvp_row *table, size_t n)
{
	size_t i, chosen = 0;

	for (i = 0; i < n; i++)
		if (wanted(table[i].row, table[i].contender))
			cases[chosen++] = (struct rvp_case){
			    table[i].contender, table[i].unit, run, &table[i], {0}};
	return chosen;
}

int
main(int argc, char **argv)
{
	static struct rvp_case cases[ROWS_MAX];
	struct rvp_row end = {"free", NULL, NULL, NULL, 0, NULL, NULL};
	struct rvp_options options;
	size_t n, i;

	argc = take_only(argc, argv);
	rvp_options(&options, argc, argv);
	rvp_messages = (struct rvp_messages){options.quick, options.pin};
	if (signal(SIGALRM, out_of_patience) == SIG_ERR)
		return EXIT_FAILURE;
	rvp_actors_open();
	n = choose(cases, rows, sizeof(rows) / sizeof(rows[0]));
	rvp_rounds(cases, n, options.rounds);
	report(cases, n, options.rounds);
	n = choose(cases, wakes, sizeof(wakes) / sizeof(wakes[0]));
	rvp_rounds(cases, n, options.rounds);
	report_wakes(cases, n, options.rounds);
	for (i = 0; i < sizeof(frees) / sizeof(frees[0]); i++) {
		if (!wanted("free", frees[i].contender))
			continue;
		end.contender = frees[i].contender;
		begin(&end);
		rvp_report_free(&frees[i], options.quick ? 4 : WINDOWS);
	}
	end = (struct rvp_row){"many actors", "actor", NULL, NULL, 0, NULL, NULL};
	begin(&end);
	if (wanted(end.row, end.contender))
		rvp_report_crowd(options.rounds);
	rvp_actors_close();
	return EXIT_SUCCESS;
}
