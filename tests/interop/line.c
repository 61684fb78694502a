/* line.c - a TCP relay with distance (tests/kit/line.h) as a program, for peers in processes of their own. */
#include <config.h>

#include "tests/kit/line.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
usage(const char *program)
{
	fprintf(stderr,
	    "usage: %s --to HOST:PORT [--listen HOST:PORT] [--delay-us N] [--mbit N] [--queue "
	    "BYTES]\n"
	    "       [--buffer BYTES] [--cut UP|DOWN:BYTES [--cut-fin]]\n"
	    "delay: each way; up: from who connects to --to\n",
	    program);
	exit(2);
}

static bool
parse_cut(struct rvt_line_cfg *c, const char *text)
{
	const char *colon = strchr(text, ':');

	c->cut = true;
	if (strncmp(text, "UP:", 3) == 0)
		c->cut_dir = RVT_UP;
	else if (strncmp(text, "DOWN:", 5) == 0)
		c->cut_dir = RVT_DOWN;
	else
		return false;
	c->cut_bytes = strtoull(colon + 1, NULL, 10);
	return true;
}

static void
parse(struct rvt_line_cfg *c, int argc, char **argv)
{
	static const struct option known[] = {{"to", 1, NULL, 't'}, {"listen", 1, NULL, 'l'},
	    {"delay-us", 1, NULL, 'd'}, {"mbit", 1, NULL, 'm'}, {"queue", 1, NULL, 'q'},
	    {"buffer", 1, NULL, 'b'}, {"cut", 1, NULL, 'c'}, {"cut-fin", 0, NULL, 'f'},
	    {NULL, 0, NULL, 0}};
	bool ok = true;
	int o;

	while (ok && (o = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (o == 't')
			c->to = optarg;
		else if (o == 'l')
			c->listen = optarg;
		else if (o == 'd')
			c->delay_us = strtoull(optarg, NULL, 10);
		else if (o == 'm')
			c->mbit = strtoull(optarg, NULL, 10);
		else if (o == 'q')
			c->queue = strtoul(optarg, NULL, 10);
		else if (o == 'b')
			c->buffer = strtoul(optarg, NULL, 10);
		else if (o == 'f')
			c->cut_fin = true;
		else
			ok = o == 'c' && parse_cut(c, optarg);
	}
	if (!ok || c->to == NULL || optind != argc)
		usage(argv[0]);
}

int
main(int argc, char **argv)
{
	struct rvt_line_cfg cfg = {0};
	struct rvt_line *line;
	sigset_t ends;
	int sig;

	parse(&cfg, argc, argv);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	line = rvt_line_start(&cfg);
	if (line == NULL) {
		perror(argv[0]);
		return EXIT_FAILURE;
	}
	printf("listening %s\n", rvt_line_addr(line));
	fflush(stdout);
	sigwait(&ends, &sig);
	rvt_line_stop(line);
	return EXIT_SUCCESS;
}
