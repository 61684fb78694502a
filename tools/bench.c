/* bench.c - reeve-bench: options, and the order of measuring.
 *
 * A row is one number of streams and one size.  Ours and the bare socket take turns after a warm-up of both, so that
 * a machine that slows down slows both; the row has the medians. */
#include <config.h>

#include "tools/bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/term.h"

/* Shares of a row's time: ours takes two in a round, the bare socket one, and the same to warm up. */
#define SHARES (3 * (BENCH_ROUNDS + 1))

static const char help[] =
    "usage: reeve-bench [OPTION...]\n"
    "\n"
    "Measures two nodes in this process, joined by one connection, against a bare\n"
    "socket.  Without --streams and --size: 1 and 8 streams of 64 KiB and 1 KiB.\n"
    "\n"
    "  --transport NAME   tcp (the default), unix or memory\n"
    "  --streams N        so many streams at once, 1 to 4096\n"
    "  --size BYTES       of one write; 1 to 16M, with K and M\n"
    "  --seconds S        for everything, about; 10\n"
    "  --threads          a thread for each end of a stream, blocking (default)\n"
    "  --callbacks        completions on the workers instead\n"
    "  --mux NAME         what carries the streams: yamux (default) or mplex\n"
    "  --plaintext        both ends agree on it first, by multistream-select and\n"
    "                     plaintext 2.0; --mux is then a list in order of preference.\n"
    "                     This protects nothing\n"
    "  --noise            the same with Noise: all is encrypted\n"
    "  --workers N        threads of each node's runtime; the library's choice\n"
    "  --json             print one JSON object instead of the table\n"
    "  --help, --version\n"
    "\n"
    "Exit code: 0 measured, 1 an error, 2 wrong usage.\n";

static const struct option options[] = {
    {"transport", required_argument, NULL, 't'},
    {"streams", required_argument, NULL, 'n'},
    {"size", required_argument, NULL, 's'},
    {"seconds", required_argument, NULL, 'S'},
    {"threads", no_argument, NULL, 'T'},
    {"callbacks", no_argument, NULL, 'C'},
    {"mux", required_argument, NULL, 'm'},
    {"plaintext", no_argument, NULL, 'P'},
    {"noise", no_argument, NULL, 'N'},
    {"workers", required_argument, NULL, 'w'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static struct term_line progress; /* on standard error, if that is a terminal */

void
bench_die(const char *what, int rc)
{
	fprintf(stderr, "%sreeve-bench: %s: %s (%s)\n", progress.shown ? "\n" : "", what,
	    reeve_strerror(rc), reeve_errname(rc));
	_Exit(1); /* other threads are still at it */
}

static void
misuse(const char *what)
{
	fprintf(stderr, "reeve-bench: %s\nTry 'reeve-bench --help'.\n", what);
	exit(2);
}

/* A whole number from 1 to most, with K and M if letters are allowed. */
static size_t
number(const char *text, size_t most, bool letters, const char *what)
{
	char *end;
	unsigned long long n;
	unsigned shift = 0;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (letters && (*end == 'K' || *end == 'k'))
		shift = 10;
	else if (letters && (*end == 'M' || *end == 'm'))
		shift = 20;
	if (end == text || end[shift != 0] != '\0' || *text == '-' || errno != 0 || n < 1 ||
	    n > most >> shift)
		misuse(what);
	return (size_t)n << shift;
}

static enum bench_transport
transport(const char *name)
{
	if (strcmp(name, "unix") == 0)
		return BENCH_UNIX;
	if (strcmp(name, "memory") == 0)
		return BENCH_MEMORY;
	if (strcmp(name, "tcp") != 0)
		misuse("--transport is tcp, unix or memory");
	return BENCH_TCP;
}

static double
seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end != '\0' || !(s >= 0.01 && s <= 86400))
		misuse("--seconds is a number from 0.01 to 86400");
	return s;
}

/* Flat dispatch. */
static void
parse(struct bench_options *o, int argc, char **argv)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 't':
			o->transport = transport(optarg);
			break;
		case 'n':
			o->streams = (unsigned)number(
			    optarg, BENCH_STREAMS, false, "--streams is 1 to 4096");
			break;
		case 's':
			o->size = number(optarg, 16 << 20, true, "--size is 1 to 16M bytes");
			break;
		case 'S':
			o->seconds = seconds(optarg);
			break;
		case 'T':
		case 'C':
			o->callbacks = c == 'C';
			break;
		case 'm':
			if (!mux_parse(&o->mux, optarg))
				misuse("--mux is yamux or mplex");
			break;
		case 'P':
			o->mux.plaintext = true;
			break;
		case 'N':
			o->mux.noise = true;
			break;
		case 'w':
			o->workers = (unsigned)number(optarg, 64, false, "--workers is 1 to 64");
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(fflush(stdout) != 0);
		case 'V':
			printf("reeve-bench %s\n", reeve_version());
			exit(fflush(stdout) != 0);
		default:
			misuse("unknown option, or one without its value");
		}
	}
	if (optind < argc)
		misuse("no arguments, please");
	if (mux_misuse(&o->mux) != NULL)
		misuse(mux_misuse(&o->mux));
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The lower one of two. */
static double
median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(v[0]), compare);
	return v[(n - 1) / 2];
}

static double
rate(const struct bench_round *r)
{
	return (double)r->bytes / r->seconds;
}

static double
cpu(const struct bench_round *r)
{
	return r->cpu_s * 1e9 / (double)r->bytes;
}

/* part: of everything that reeve-bench does. */
static void
show(const struct bench_row *row, double part, double ours, double raw)
{
	char text[TERM_TEXT], bar[32], size[16], rates[64] = "warming up";

	if (!progress.live)
		return;
	term_bar(bar, 24, part, 0);
	if (ours > 0)
		snprintf(
		    rates, sizeof(rates), "reeve %.2f GB/s  raw %.2f GB/s", ours / 1e9, raw / 1e9);
	snprintf(text, sizeof(text), "%4u x %-8s %s %3.0f%%  %s", row->streams,
	    term_bytes(size, (double)row->size), bar, part * 100, rates);
	term_show(&progress, text);
}

/* Fills in the row; done and share: of all rows, for the progress line.  Answers the cost of a message. */
static double
measure(
    const struct bench_options *o, struct bench_row *row, double time, double done, double share)
{
	struct bench_raw *raw = bench_raw_open(o->transport, row->size);
	struct bench_link *link = bench_link_open(o, row->streams, row->size);
	struct bench_round a, b;
	double ours_rates[BENCH_ROUNDS], raw_rates[BENCH_ROUNDS], ours_cpu[BENCH_ROUNDS],
	    raw_cpu[BENCH_ROUNDS];
	double message_ns, unit = time / SHARES;

	show(row, done, 0, 0);
	bench_raw_round(raw, unit, &a);
	bench_link_round(link, unit * 2, &b);
	bench_link_mark(link);
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		show(row, done + share * (i + 1) / (BENCH_ROUNDS + 1), rate(&b), rate(&a));
		bench_raw_round(raw, unit, &a);
		bench_link_round(link, unit * 2, &b);
		raw_rates[i] = rate(&a);
		ours_rates[i] = rate(&b);
		raw_cpu[i] = cpu(&a);
		ours_cpu[i] = cpu(&b);
	}
	bench_link_counters(link, row);
	row->raw = median(raw_rates, BENCH_ROUNDS);
	row->ours = median(ours_rates, BENCH_ROUNDS);
	row->cpu_raw = median(raw_cpu, BENCH_ROUNDS);
	row->cpu_ours = median(ours_cpu, BENCH_ROUNDS);
	message_ns = bench_link_message_ns(link, unit < 0.1 ? unit : 0.1);
	bench_link_close(link);
	bench_raw_close(raw);
	return message_ns;
}

int
main(int argc, char **argv)
{
	static const unsigned streams[] = {1, 8};
	static const size_t sizes[] = {64 * 1024, 1024};
	struct bench_options o = {.seconds = 10};
	struct bench_row rows[BENCH_ROWS];
	double message_ns[BENCH_ROWS];
	int n = 0, rc;

	parse(&o, argc, argv);
	rc = mux_cfg(&o.mux, &o.cfg);
	if (rc < 0)
		bench_die("key", rc);
	term_init(&progress, stderr);
	memset(rows, 0, sizeof(rows));
	for (int i = 0; i < (o.size > 0 ? 1 : 2); i++) {
		for (int j = 0; j < (o.streams > 0 ? 1 : 2); j++) {
			rows[n].size = o.size > 0 ? o.size : sizes[i];
			rows[n++].streams = o.streams > 0 ? o.streams : streams[j];
		}
	}
	for (int i = 0; i < n; i++)
		message_ns[i] = measure(&o, &rows[i], o.seconds / n, (double)i / n, 1.0 / n);
	term_clear(&progress);
	mux_end(&o.mux);
	if (o.json)
		bench_report_json(&o, rows, n, median(message_ns, n));
	else
		bench_report_table(&o, rows, n, median(message_ns, n));
	return fflush(stdout) != 0;
}
