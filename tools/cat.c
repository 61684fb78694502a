/* cat.c - reeve-cat: standard input and output over one stream.  Options, connecting, errors. */
#include <config.h>

#include "tools/cat.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/term.h"

#define PART_MS \
	1000 /* after an error that left the connection alive: to part from the peer in order */

static const char help[] =
    "usage: reeve-cat [OPTION...] ADDR\n"
    "\n"
    "Carries standard input to the peer and what the peer sends to standard output,\n"
    "both at once over one stream.  The end of the input half-closes the stream, the\n"
    "peer's end closes the output.  Ends when both have ended and all is sent.\n"
    "\n"
    "ADDR is tcp://HOST:PORT (IPv6 in brackets) or unix:///PATH.\n"
    "\n"
    "  -l, --listen           wait for one connection and one stream, do not dial;\n"
    "                         prints \"listening ADDR\" on standard error (port 0: any)\n"
    "  -p, --progress[=WHEN]  show bytes and rate on standard error: auto (default:\n"
    "                         if that is a terminal), always, never\n"
    "  -t, --timeout SECONDS  give up when connecting takes longer, or when nothing\n"
    "                         has moved in either direction for so long\n"
    "  -r, --reset-code CODE  at the end of the input reset the stream with CODE, do\n"
    "                         not half-close it; what is not sent yet is dropped\n"
    "  -m, --mux NAME         what carries the streams: yamux (default) or mplex\n"
    "      --plaintext        agree with the peer on it first (multistream-select and\n"
    "                         plaintext 2.0, with a random key); --mux is then a list\n"
    "                         in order of preference, \"yamux,mplex\" by default.\n"
    "                         This protects nothing: anybody can read and change all\n"
    "      --noise            the same with Noise: encrypted, both ends prove who\n"
    "                         they are; a listener prints \"we are ID\", too\n"
    "      --key FILE         with --noise: our key, made and written if there is\n"
    "                         no FILE; without it a key of this run only\n"
    "      --peer ID          with --noise: the peer has to be this one\n"
    "  -h, --help             this text\n"
    "  -V, --version          the version\n"
    "\n"
    "Exit code: 0 both sides ended in order, 1 an error (one line on standard error),\n"
    "2 wrong usage.\n";

static const struct option options[] = {
    {"listen", no_argument, NULL, 'l'},
    {"progress", optional_argument, NULL, 'p'},
    {"timeout", required_argument, NULL, 't'},
    {"reset-code", required_argument, NULL, 'r'},
    {"mux", required_argument, NULL, 'm'},
    {"plaintext", no_argument, NULL, 'P'},
    {"noise", no_argument, NULL, 'N'},
    {"key", required_argument, NULL, 'k'},
    {"peer", required_argument, NULL, 'i'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
misuse(const char *what)
{
	fprintf(stderr, "reeve-cat: %s\nTry 'reeve-cat --help'.\n", what);
	exit(2);
}

/* One line: what failed, the text, and the reason's id or the name of the code. */
static int
complain(const char *what, int rc, const reeve_reason_t *why)
{
	char code[32] = "";

	if (why != NULL && why->wire_code != 0)
		snprintf(code, sizeof(code), ", code %u", (unsigned)why->wire_code);
	fprintf(stderr, "reeve-cat: %s: %s%s (%s)\n", what, reeve_strerror(rc), code,
	    why != NULL && why->id[0] != '\0' ? why->id : reeve_errname(rc));
	return 1;
}

static int64_t
parse_timeout(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end != '\0' || !(s >= 0.001 && s <= 1e9))
		misuse("--timeout needs a number of seconds");
	return (int64_t)(s * 1000);
}

static uint32_t
parse_code(const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (end == text || *end != '\0' || errno != 0 || n > UINT32_MAX || *text == '-')
		misuse("--reset-code needs a number from 0 to 4294967295");
	return (uint32_t)n;
}

static enum cat_progress
parse_when(const char *text)
{
	if (text == NULL || strcmp(text, "auto") == 0)
		return CAT_AUTO;
	if (strcmp(text, "always") == 0)
		return CAT_ALWAYS;
	if (strcmp(text, "never") != 0)
		misuse("--progress is auto, always or never");
	return CAT_NEVER;
}

static void
parse(struct cat_options *o, int argc, char **argv)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "lpt:r:m:hV", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			o->listen = true;
			break;
		case 'p':
			o->when = parse_when(optarg);
			o->show = o->when != CAT_NEVER;
			break;
		case 't':
			o->timeout_ms = parse_timeout(optarg);
			break;
		case 'r':
			o->reset_code = parse_code(optarg);
			o->reset = true;
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
		case 'k':
			o->mux.key_file = optarg;
			break;
		case 'i':
			o->mux.peer = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			exit(fflush(stdout) != 0);
		case 'V':
			printf("reeve-cat %s\n", reeve_version());
			exit(fflush(stdout) != 0);
		default:
			misuse("unknown option, or one without its value");
		}
	}
	if (argc - optind != 1)
		misuse(argc == optind ? "an address is missing" : "one address, please");
	if (mux_misuse(&o->mux) != NULL)
		misuse(mux_misuse(&o->mux));
	o->addr = argv[optind];
}

/* Who we are, for the peer's --peer. */
static void
introduce(struct cat *c)
{
	char id[80];

	(void)reeve_key_peer_id(c->opt.mux.identity, id, sizeof(id));
	fprintf(stderr, "we are %s\n", id);
}

/* One connection and one stream from the first peer that comes. */
static int
take_peer(struct cat *c)
{
	reeve_listener_t *l;
	char addr[256];
	int rc = reeve_listen(&l, c->rt, c->opt.addr, &c->cfg);

	if (rc < 0)
		return rc;
	rc = reeve_listener_addr(l, addr, sizeof(addr));
	fprintf(stderr, "listening %s\n", rc < 0 ? c->opt.addr : addr);
	if (c->opt.mux.noise)
		introduce(c);
	rc = reeve_listener_accept(l, &c->conn, c->opt.timeout_ms);
	reeve_listener_destroy(l);
	return rc < 0 ? rc : reeve_accept(reeve_conn_ctl(c->conn), &c->stream, c->opt.timeout_ms);
}

static int
call_peer(struct cat *c)
{
	int rc = reeve_dial(&c->conn, c->rt, c->opt.addr, &c->cfg, c->opt.timeout_ms);

	return rc < 0 ? rc : reeve_open(reeve_conn_ctl(c->conn), &c->stream, c->opt.timeout_ms);
}

static int
init(struct cat *c)
{
	pthread_condattr_t attr;
	struct stat st;
	int rc;

	if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		c->total = (uint64_t)st.st_size;
	if (pipe(c->wake) < 0)
		return REEVE_ESYS_BASE - errno;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = mux_cfg(&c->opt.mux, &c->cfg);
	return rc < 0 ? rc : reeve_rt_create(&c->rt, NULL);
}

/* Run both directions.  Answers whether both threads are gone. */
static bool
carry(struct cat *c)
{
	void *(*const pumps[2])(void *) = {cat_send, cat_receive};
	pthread_t threads[2];
	bool ended;
	int rc;

	c->moved_us = term_now_us();
	c->running = 2;
	for (int i = 0; i < 2; i++) {
		rc = pthread_create(&threads[i], NULL, pumps[i], c);
		if (rc != 0)
			exit(complain("thread", REEVE_ESYS_BASE - rc, NULL));
	}
	ended = cat_watch(c);
	for (int i = 0; i < 2 && ended; i++)
		pthread_join(threads[i], NULL);
	return ended;
}

static int
finish(struct cat *c)
{
	reeve_reason_t why = {.size = sizeof(why), .id = ""};
	int rc;

	if (c->rc < 0) {
		reeve_stream_reason(c->stream, &why);
		rc = complain(
		    c->what != NULL ? c->what : c->opt.addr, c->rc, c->what != NULL ? NULL : &why);
		reeve_close(c->stream);
		(void)reeve_conn_close(c->conn, PART_MS);
		return rc;
	}
	reeve_close(c->stream);
	rc = reeve_conn_close(c->conn, c->opt.timeout_ms);
	if (rc < 0 && !c->opt.reset) { /* what a peer does after a reset is its own affair */
		reeve_ctl_reason(reeve_conn_ctl(c->conn), &why);
		return complain(c->opt.addr, rc, &why);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static struct cat c = {.opt = {.timeout_ms = -1}};
	int rc, code;

	parse(&c.opt, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	rc = init(&c);
	if (rc < 0)
		return complain("start", rc, NULL);
	rc = c.opt.listen ? take_peer(&c) : call_peer(&c);
	if (rc < 0) {
		code = complain(c.opt.addr, rc, &c.opt.mux.why);
	} else {
		if (!carry(
			&c)) { /* a thread still waits for the other side of a pipe: the exit ends it */
			complain(c.what != NULL ? c.what : c.opt.addr, c.rc, NULL);
			return 1;
		}
		code = finish(&c);
	}
	reeve_conn_destroy(c.conn);
	reeve_rt_destroy(c.rt);
	mux_end(&c.opt.mux);
	return code;
}
