/* echo_server.c - sends every stream back without a copy, until SIGINT or SIGTERM.
 * usage: echo_server [--mux yamux|mplex] ADDR */
#include <reeve/reeve.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
static reeve_listener_t *l;

static void
echo(reeve_stream_t *s, void *arg)
{
	reeve_buf_t *b;

	(void)arg;
	while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
		;
}

static void
stop(int sig)
{
	signal(sig, SIG_IGN);
	reeve_listener_stop(l);
}

static uint32_t
proto(const char *name)
{
	if (strcmp(name, "mplex") == 0)
		return REEVE_MPLEX;
	return strcmp(name, "yamux") == 0 ? REEVE_YAMUX : 0;
}

int
main(int argc, char **argv)
{
	char at[256];
	reeve_rt_t *rt;
	reeve_cfg_t cfg;

	reeve_cfg_init(&cfg);
	cfg.proto = argc == 2 ? REEVE_YAMUX : 0;
	if (argc == 4 && strcmp(argv[1], "--mux") == 0)
		cfg.proto = proto(argv[2]);
	if (cfg.proto == 0 || reeve_rt_create(&rt, NULL) < 0 ||
	    reeve_listen(&l, rt, argv[argc - 1], &cfg) < 0 ||
	    reeve_listener_addr(l, at, sizeof(at)) < 0)
		return 1;
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	if (printf("listening %s\n", at) < 0 || fflush(stdout) || reeve_serve(l, echo, NULL) < 0)
		return 1;
	reeve_listener_destroy(l);
	reeve_rt_destroy(rt);
	return 0;
}
