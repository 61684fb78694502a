/*
 * split_send_size.c - what the size of mplex's data frames costs: the benchmark of this name that rust-libp2p got in 2020
 * (pull request 1834), with our library and with the least that moves the same bytes.
 *
 * full: everything from listening to the end of both connections, 1 MiB carried.  handshake: the same with one
 * byte.  steady: 32 MiB over a connection that is kept, per MiB.  Contenders take turns iteration by iteration.
 */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "perf/kit.h"
#include "perf/split.h"

#define KINDS      2
#define ROUNDS_MAX 4096
#define STEADY_MIB 32
#define MIB        (1u << 20)

enum work { FULL, HANDSHAKE, STEADY, WORKS };

static const char *const works[] = {"full", "handshake", "steady"};
static const size_t sizes[] = {256, 512, 1024, 8192, 16384, 65536, 262144, 1048576};
static const struct rvp_split_kind *const kinds[KINDS] = {&rvp_split_ours, &rvp_split_bare};

static struct {
	bool quick, pin;
	unsigned rounds, warm, workers, mib;
	size_t size;      /* 0: all */
	int transport;    /* -1: both */
	const char *work; /* NULL: all */
	const char *kind; /* NULL: all */
} options = {.transport = -1, .warm = 5};

/* Of one iteration, in steady state of a MiB. */
static struct figures {
	double us[ROUNDS_MAX], cpu[ROUNDS_MAX]; /* microseconds: by the clock, of the processors */
	double switches[ROUNDS_MAX]; /* times a thread of the process was put to sleep or aside */
} figures[KINDS];

static uint8_t payload[RVP_SPLIT_PAYLOAD];

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
quantile(const double *sorted, unsigned n, double q)
{
	double at = q * (double)(n - 1);
	unsigned low = (unsigned)at;

	if (low + 1 >= n)
		return sorted[n - 1];
	return sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]);
}

static void
report(unsigned k, enum work w, const struct rvp_split_load *l)
{
	struct figures *f = &figures[k];
	unsigned i, n = options.rounds;
	double sum = 0;

	for (i = 0; i < n; i++)
		sum += f->us[i];
	qsort(f->us, n, sizeof(f->us[0]), compare);
	qsort(f->cpu, n, sizeof(f->cpu[0]), compare);
	qsort(f->switches, n, sizeof(f->switches[0]), compare);
	printf("{\"bench\":\"split_send_size\",\"case\":\"%s\",\"work\":\"%s\",", kinds[k]->name,
	    works[w]);
	printf("\"transport\":\"%s\",\"split\":%zu,\"unit\":\"us\",",
	    l->transport == RVP_TCP ? "tcp" : "memory", l->split);
	printf("\"p10\":%.1f,\"median\":%.1f,\"p90\":%.1f,\"mean\":%.1f,", quantile(f->us, n, 0.1),
	    quantile(f->us, n, 0.5), quantile(f->us, n, 0.9), sum / n);
	printf("\"cpu\":%.1f,\"switches\":%.1f,\"n\":%u}\n", quantile(f->cpu, n, 0.5),
	    quantile(f->switches, n, 0.5), n);
	fflush(stdout);
}

static double
switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_nvcsw + u.ru_nivcsw);
}

static void
measure(unsigned k, void *run, enum work w, struct rvp_split_load *l, unsigned round)
{
	static unsigned turn;
	double per = w == STEADY ? options.mib : 1, before = switches();
	uint64_t from, to, cpu = rvp_cpu_ns();

	if (turn == 0)
		turn = (unsigned)getpid();
	l->turn = turn++;
	from = rvp_now_ns();
	if (w == STEADY)
		kinds[k]->carry(run, l, options.mib);
	else
		kinds[k]->once(run, l);
	to = rvp_now_ns();
	figures[k].us[round] = (double)(to - from) / 1000 / per;
	figures[k].cpu[round] = (double)(rvp_cpu_ns() - cpu) / 1000 / per;
	figures[k].switches[round] = (switches() - before) / per;
}

static bool
wanted(const char *name, const char *is)
{
	return name == NULL || strcmp(name, is) == 0;
}

static void
cell(enum rvp_transport t, enum work w, size_t size)
{
	struct rvp_split_load l = {.transport = t,
	    .split = size,
	    .bytes = w == HANDSHAKE ? 1 : RVP_SPLIT_PAYLOAD,
	    .payload = payload,
	    .workers = options.workers,
	    .pin = options.pin};
	void *run[KINDS] = {NULL};
	unsigned i, k, round;

	for (k = 0; k < KINDS; k++) {
		if (!wanted(options.kind, kinds[k]->name))
			continue;
		run[k] = kinds[k]->open(&l);
		if (w == STEADY)
			kinds[k]->keep(run[k], &l);
		l.check = true;
		measure(k, run[k], w, &l, 0);
		l.check = false;
	}
	for (round = 0; round < options.warm + options.rounds; round++) {
		for (i = 0; i < KINDS; i++) {
			k = (i + round) % KINDS;
			if (run[k] == NULL)
				continue;
			measure(k, run[k], w, &l, round < options.warm ? 0 : round - options.warm);
		}
	}
	for (k = 0; k < KINDS; k++) {
		if (run[k] == NULL)
			continue;
		kinds[k]->close(run[k]);
		report(k, w, &l);
	}
}

static void
usage(const char *program)
{
	fprintf(stderr,
	    "usage: %s [--quick] [--pin] [--rounds N] [--warm N] [--transport tcp|memory] [--size "
	    "N]\n"
	    "       [--work full|handshake|steady] [--case ours|bare] [--workers N] [--mib N]\n",
	    program);
	exit(EXIT_FAILURE);
}

static unsigned
number(const char *program, const char *text, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n == 0 || n > max)
		usage(program);
	return (unsigned)n;
}

static void
parse(int argc, char **argv)
{
	static const struct option known[] = {{"quick", 0, NULL, 'q'}, {"pin", 0, NULL, 'p'},
	    {"rounds", 1, NULL, 'r'}, {"warm", 1, NULL, 'a'}, {"transport", 1, NULL, 't'},
	    {"size", 1, NULL, 's'}, {"work", 1, NULL, 'w'}, {"case", 1, NULL, 'c'},
	    {"workers", 1, NULL, 'n'}, {"mib", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'q':
			options.quick = true;
			break;
		case 'p':
			options.pin = true;
			break;
		case 'r':
			options.rounds = number(argv[0], optarg, ROUNDS_MAX);
			break;
		case 'a':
			options.warm = number(argv[0], optarg, ROUNDS_MAX);
			break;
		case 's':
			options.size = number(argv[0], optarg, RVP_SPLIT_PAYLOAD);
			break;
		case 'n':
			options.workers = number(argv[0], optarg, 64);
			break;
		case 'm':
			options.mib = number(argv[0], optarg, 4096);
			break;
		case 'w':
			options.work = optarg;
			break;
		case 'c':
			options.kind = optarg;
			break;
		case 't':
			options.transport = strcmp(optarg, "tcp") == 0 ? RVP_TCP : RVP_MEMORY;
			if (strcmp(optarg, "tcp") == 0 || strcmp(optarg, "memory") == 0)
				break;
			usage(argv[0]);
			break;
		default:
			usage(argv[0]);
		}
	}
	if (optind != argc)
		usage(argv[0]);
}

int
main(int argc, char **argv)
{
	static const enum rvp_transport transports[] = {RVP_TCP, RVP_MEMORY};
	size_t i, t, w;

	parse(argc, argv);
	if (options.rounds == 0)
		options.rounds = options.quick ? 10 : 200;
	if (options.mib == 0)
		options.mib = options.quick ? 4 : STEADY_MIB;
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 31 + i / 251);
	for (t = 0; t < 2; t++) {
		if (options.transport >= 0 && options.transport != (int)transports[t])
			continue;
		for (w = 0; w < WORKS; w++)
			for (i = 0; wanted(options.work, works[w]) && i < 8; i++)
				if (options.size == 0 ? !options.quick || i % 3 == 0 : i == 0)
					cell(transports[t], (enum work)w,
					    options.size != 0 ? options.size : sizes[i]);
	}
	return EXIT_SUCCESS;
}
