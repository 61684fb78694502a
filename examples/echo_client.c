/* echo_client.c - sends a text over one stream, half-closes it, and prints what comes back.
 *
 * usage: echo_client [--mux yamux|mplex] ADDR [TEXT]
 *        exit code 0: everything came back; 1: an error, named on stderr
 *
 * Shows: a deadline on everything that waits, one way out for every error, and why a stream ended.  Writing it all
 * before reading is right for a text of this size only: an echo of more than the two windows waits for its reader. */
#include <reeve/reeve.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS 5000

/* The text of an error, with the reason of the stream when it has one. */
static int
complain(const char *what, int rc, reeve_stream_t *s)
{
	reeve_reason_t why = {.size = sizeof(why), .id = ""};

	if (s != NULL && reeve_stream_reason(s, &why) == 0 && why.id[0] != '\0')
		fprintf(stderr, "echo_client: %s: %s (%s)\n", what, reeve_strerror(rc), why.id);
	else
		fprintf(stderr, "echo_client: %s: %s (%s)\n", what, reeve_strerror(rc),
		    reeve_errname(rc));
	return rc;
}

/* Prints what the peer sends until it ends its direction; n: how much it should be. */
static int
print_echo(reeve_stream_t *s, size_t n)
{
	char text[4096];
	reeve_ssize got;

	while ((got = reeve_read(s, text, sizeof(text))) > 0) {
		fwrite(text, 1, (size_t)got, stdout);
		n -= (size_t)got;
	}
	if (got < 0)
		return complain("read", (int)got, s);
	if (n != 0) {
		fprintf(stderr, "echo_client: the echo is not as long as the text\n");
		return REEVE_EPROTO;
	}
	printf("\n");
	return 0;
}

static int
talk(reeve_stream_t *s, const char *text)
{
	reeve_ssize n;
	int rc = reeve_deadline(s, REEVE_RD | REEVE_WR, WAIT_MS);

	if (rc < 0)
		return complain("deadline", rc, s);
	n = reeve_write(s, text, strlen(text));
	if (n < 0)
		return complain("write", (int)n, s);
	if ((size_t)n < strlen(text)) /* the deadline or an error came after a part */
		return complain("write", REEVE_ETIMEDOUT, s);
	rc = reeve_shut(s); /* no more from us: the server's read answers 0 */
	if (rc < 0)
		return complain("shut", rc, s);
	return print_echo(s, strlen(text));
}

static int
run(reeve_rt_t *rt, const reeve_cfg_t *cfg, const char *addr, const char *text)
{
	reeve_conn_t *c;
	reeve_stream_t *s;
	int rc, end;

	rc = reeve_dial(&c, rt, addr, cfg, WAIT_MS);
	if (rc < 0)
		return complain(addr, rc, NULL);
	rc = reeve_open(reeve_conn_ctl(c), &s, WAIT_MS);
	if (rc < 0) {
		complain("open", rc, NULL);
	} else {
		rc = talk(s, text);
		if (rc < 0)
			reeve_reset(s, 0); /* let the peer know that we gave up */
		reeve_close(s);
	}
	end = reeve_conn_close(c, WAIT_MS);
	if (rc == 0 && end < 0)
		rc = complain("close", end, NULL);
	reeve_conn_destroy(c);
	return rc;
}

/* --mux NAME before the other arguments: which protocol carries the streams.  Answers how many arguments it took. */
static int
take_mux(reeve_cfg_t *cfg, int argc, char **argv)
{
	reeve_cfg_init(cfg);
	if (argc < 3 || strcmp(argv[1], "--mux") != 0)
		return 0;
	if (strcmp(argv[2], "mplex") == 0)
		cfg->proto = REEVE_MPLEX;
	else if (strcmp(argv[2], "yamux") != 0) /* the default */
		return -1;
	return 2;
}

int
main(int argc, char **argv)
{
	reeve_rt_t *rt;
	reeve_cfg_t cfg;
	int taken = take_mux(&cfg, argc, argv), rc;

	if (taken < 0 || argc - taken < 2 || argc - taken > 3) {
		fprintf(stderr, "usage: echo_client [--mux yamux|mplex] ADDR [TEXT]\n");
		return 2;
	}
	rc = reeve_rt_create(&rt, NULL);
	if (rc < 0)
		return complain("runtime", rc, NULL) != 0;
	rc = run(
	    rt, &cfg, argv[1 + taken], argc - taken == 3 ? argv[2 + taken] : "hello from reeve");
	reeve_rt_destroy(rt);
	return rc < 0;
}
