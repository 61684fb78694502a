/* reeve_node.c - our node, told what to do in the language of rust/nodes/README.md, on the public calls only: its command line,
 * its connections, and the loop over the lines of standard input.  SIGTERM and the end of input are `quit`. */
#include <config.h>

#include "tests/interop/reeve_node.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 65536
#define CLOSE_MS       1000

struct options {
	bool seeded, lazy, quiet;
	uint64_t seed, idle_ms;
	const char *listen;
	struct node_proto notifs[NODE_PROTOCOLS], asks[NODE_PROTOCOLS];
	unsigned nnotifs, nasks;
};

static reeve_rt_t *rt;
static reeve_node_t *node;
static struct node_notify *notifs[NODE_PROTOCOLS];
static struct node_ask *asks[NODE_PROTOCOLS];
static struct options options;
static int stop_pipe[2];

/* ---- threads */

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_cond = PTHREAD_COND_INITIALIZER;
static unsigned threads;

struct thread {
	void *(*fn)(void *arg);
	void *arg;
};

static void *
thread_main(void *arg)
{
	struct thread t = *(struct thread *)arg;

	free(arg);
	t.fn(t.arg);
	pthread_mutex_lock(&threads_lock);
	threads--;
	pthread_cond_signal(&threads_cond);
	pthread_mutex_unlock(&threads_lock);
	return NULL;
}

void
node_begin(void *(*fn)(void *arg), void *arg)
{
	struct thread *t = malloc(sizeof(*t));
	pthread_t thread;

	node_must(t != NULL, "out of memory", "a thread");
	t->fn = fn;
	t->arg = arg;
	pthread_mutex_lock(&threads_lock);
	threads++;
	pthread_mutex_unlock(&threads_lock);
	node_must(pthread_create(&thread, NULL, thread_main, t) == 0, "cannot begin", "a thread");
	pthread_detach(thread);
}

static void
wait_threads(void)
{
	pthread_mutex_lock(&threads_lock);
	while (threads > 0)
		pthread_cond_wait(&threads_cond, &threads_lock);
	pthread_mutex_unlock(&threads_lock);
}

/* ---- the command line */

const char *
node_fallback(const struct node_proto *p, unsigned index)
{
	return index > 0 && index < p->nnames ? p->names[index] : "-";
}

static struct node_proto *
add_protocol(struct node_proto *all, unsigned *n, char *names)
{
	struct node_proto *p = &all[*n];
	char *save;

	node_must(*n < NODE_PROTOCOLS, "too many protocols", names);
	(*n)++;
	p->max_size = 16 << 20;
	p->validate = "accept";
	p->respond = "answer";
	p->timeout_ms = 5000;
	for (names = strtok_r(names, ",", &save); names != NULL;
	     names = strtok_r(NULL, ",", &save)) {
		node_must(p->nnames < NODE_NAMES, "too many names", names);
		p->names[p->nnames++] = names;
	}
	return p;
}

static uint64_t
number(const char *option, const char *value)
{
	uint64_t n;

	node_must(node_number(value, &n), option, "needs a number");
	return n;
}

/* An option of the protocol before it. */
static void
of_protocol(struct node_proto *p, bool asks_it, const char *option, const char *value)
{
	node_must(p != NULL, option, "belongs to a protocol");
	if (strcmp(option, "--max-size") == 0)
		p->max_size = number(option, value);
	else if (!asks_it && strcmp(option, "--handshake") == 0)
		node_must(node_unhex(value, &p->handshake, &p->handshake_len), option, value);
	else if (!asks_it && strcmp(option, "--auto-accept") == 0)
		p->auto_accept = strcmp(value, "yes") == 0;
	else if (!asks_it && strcmp(option, "--validate") == 0)
		p->validate = value;
	else if (asks_it && strcmp(option, "--timeout-ms") == 0)
		p->timeout_ms = number(option, value);
	else if (asks_it && strcmp(option, "--respond") == 0)
		p->respond = value;
	else if (asks_it && strcmp(option, "--inbound") == 0)
		p->inbound = number(option, value);
	else /* our queues are counted in bytes */
		node_must(!asks_it &&
			(strcmp(option, "--sync-queue") == 0 ||
			    strcmp(option, "--async-queue") == 0),
		    option, "unknown option");
}

static void
parse(int argc, char **argv)
{
	struct options *o = &options;
	struct node_proto *latest = NULL;
	bool asks_it = false;

	o->listen = "127.0.0.1:0";
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (strcmp(word, "--lazy") == 0 || strcmp(word, "--quiet") == 0) {
			*(word[2] == 'l' ? &o->lazy : &o->quiet) = true;
			continue;
		}
		node_must(++i < argc, word, "needs a value");
		if (strcmp(word, "--seed") == 0) {
			o->seeded = true;
			o->seed = number(word, argv[i]);
		} else if (strcmp(word, "--listen") == 0) {
			o->listen = argv[i];
		} else if (strcmp(word, "--idle-ms") == 0) {
			o->idle_ms = number(word, argv[i]);
		} else if (strcmp(word, "--notif") == 0) {
			latest = add_protocol(o->notifs, &o->nnotifs, argv[i]);
			asks_it = false;
		} else if (strcmp(word, "--request") == 0) {
			latest = add_protocol(o->asks, &o->nasks, argv[i]);
			asks_it = true;
		} else {
			of_protocol(latest, asks_it, word, argv[i]);
		}
	}
}

/* ---- connections */

static const char *
bare(const char *addr)
{
	if (addr == NULL)
		return "-";
	return strncmp(addr, "tcp://", 6) == 0 ? addr + 6 : addr;
}

/* Only an address that was dialed is known. */
static void
on_peer(void *arg, int event, const char *peer, const char *addr, const reeve_reason_t *reason)
{
	char word[NODE_REASON];

	(void)arg;
	if (event == REEVE_PEER_CONNECTED)
		node_say("connected peer=%s direction=%s address=%s", peer,
		    addr != NULL ? "out" : "in", bare(addr));
	else
		node_say("%s peer=%s reason=%s",
		    event == REEVE_PEER_DISCONNECTED ? "disconnected" : "dial-failed",
		    peer != NULL ? peer : "-", node_reason(word, reason->rc, NODE_END));
}

/* The event has told of it. */
static void
dialed(reeve_op_t *op)
{
	free(op);
}

static void
link_command(const struct node_command *c)
{
	const char *peer = node_arg(c, 1);
	reeve_op_t *op;
	char addr[128];
	int rc;

	snprintf(addr, sizeof(addr), "tcp://%s", node_arg(c, 0));
	if (strcmp(c->word, "disconnect") == 0) {
		rc = reeve_node_disconnect(node, node_arg(c, 0));
	} else if (strcmp(c->word, "know") == 0) {
		rc = reeve_node_add_address(node, peer, addr);
		if (rc == 0)
			node_say("ok know");
	} else {
		op = malloc(sizeof(*op));
		node_must(op != NULL, "out of memory", "a dial");
		reeve_op_init(op, dialed, NULL);
		reeve_node_dial_async(node, peer, addr, op);
		rc = 0;
	}
	if (rc < 0)
		node_fail(c, reeve_strerror(rc));
}

/* ---- the loop */

/* The protocol that the command is about: its main name is given, or it is the first. */
static unsigned
find(const struct node_proto *all, unsigned n, const struct node_command *c)
{
	const char *name = node_key(c, "protocol", NULL);
	unsigned i = 0;

	while (name != NULL && i < n && strcmp(all[i].names[0], name) != 0)
		i++;
	return i;
}

/* False: it was `quit`. */
static bool
obey(char *line)
{
	struct node_command c;
	unsigned i;

	if (!node_parse(&c, line))
		return true;
	if (strcmp(c.word, "quit") == 0)
		return false;
	if (strcmp(c.word, "know") == 0 || strcmp(c.word, "dial") == 0 ||
	    strcmp(c.word, "disconnect") == 0)
		link_command(&c);
	else if (!node_notify_has(c.word) && !node_ask_has(c.word))
		node_fail(&c, "unknown command");
	else if (node_notify_has(c.word) &&
	    (i = find(options.notifs, options.nnotifs, &c)) < options.nnotifs)
		node_notify_obey(notifs[i], &c);
	else if (node_ask_has(c.word) &&
	    (i = find(options.asks, options.nasks, &c)) < options.nasks)
		node_ask_obey(asks[i], &c);
	else
		node_fail(&c, "no such protocol");
	return true;
}

static void
loop(void)
{
	static char text[LINE_MAX_BYTES];
	struct pollfd p[2] = {
	    {.fd = STDIN_FILENO, .events = POLLIN}, {.fd = stop_pipe[0], .events = POLLIN}};
	size_t have = 0;
	ssize_t got;
	char *end;

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue; /* the signal: the pipe has it */
		if (p[1].revents != 0)
			return;
		got = read(STDIN_FILENO, text + have, sizeof(text) - have);
		if (got <= 0)
			return;
		have += (size_t)got;
		while ((end = memchr(text, '\n', have)) != NULL) {
			*end = '\0';
			if (!obey(text))
				return;
			have -= (size_t)(end + 1 - text);
			memmove(text, end + 1, have);
		}
	}
}

static void
on_term(int sig)
{
	(void)sig;
	if (write(stop_pipe[1], "", 1) < 0)
		abort();
}

/* ---- beginning and end */

static reeve_key_t *
identity(void)
{
	uint8_t seed[32] = {0};
	reeve_key_t *key;
	int rc;

	for (int i = 0; i < 8; i++)
		seed[24 + i] = (uint8_t)(options.seed >> (56 - 8 * i));
	rc = options.seeded ? reeve_key_from_seed(&key, seed) : reeve_key_generate(&key);
	node_must(rc == 0, "key", reeve_strerror(rc));
	return key;
}

static void
create(void)
{
	reeve_key_t *key = identity();
	reeve_upgrade_t up = {
	    .size = sizeof(up), .security = REEVE_NOISE, .muxers = {REEVE_YAMUX}, .identity = key};
	reeve_cfg_t conn;
	reeve_node_cfg_t cfg;
	reeve_rt_cfg_t rc_cfg;
	int rc;

	reeve_rt_cfg_init(&rc_cfg);
	rc = reeve_rt_create(&rt, &rc_cfg);
	node_must(rc == 0, "runtime", reeve_strerror(rc));
	reeve_cfg_init(&conn);
	conn.upgrade = &up;
	reeve_node_cfg_init(&cfg);
	cfg.conn = &conn;
	cfg.idle_ms = (uint32_t)options.idle_ms;
	cfg.fn = on_peer;
	rc = reeve_node_create(&node, rt, &cfg);
	node_must(rc == 0, "node", reeve_strerror(rc));
	reeve_key_free(key);
}

static void
begin(void)
{
	char addr[128] = "-", url[128], id[REEVE_PEER_TEXT];
	int rc;

	create();
	for (unsigned i = 0; i < options.nnotifs; i++) {
		options.notifs[i].rt = rt;
		notifs[i] = node_notify_begin(node, &options.notifs[i]);
	}
	for (unsigned i = 0; i < options.nasks; i++) {
		options.asks[i].rt = rt;
		options.asks[i].lazy = options.lazy;
		options.asks[i].quiet = options.quiet;
		asks[i] = node_ask_begin(node, &options.asks[i]);
	}
	if (strcmp(options.listen, "none") != 0) {
		snprintf(url, sizeof(url), "tcp://%s", options.listen);
		rc = reeve_node_listen(node, url);
		node_must(rc == 0, "listen", reeve_strerror(rc));
		node_must(reeve_node_addr(node, 0, addr, sizeof(addr)) > 0, "listen", "no address");
	}
	node_must(reeve_node_id(node, id, sizeof(id)) > 0, "id", "none");
	node_say("listening %s", bare(addr));
	node_say("id %s", id);
}

/* Whatever is under way ends with the node, then its threads do. */
static void
end(void)
{
	unsigned i;

	(void)reeve_node_close(node, CLOSE_MS);
	for (i = 0; i < options.nnotifs; i++) {
		char resume[] = "resume";
		struct node_command c = {.word = resume};

		node_notify_obey(notifs[i], &c);
	}
	wait_threads();
	reeve_node_destroy(node);
	reeve_rt_destroy(rt);
	for (i = 0; i < options.nnotifs; i++) {
		node_notify_free(notifs[i]);
		free(options.notifs[i].handshake);
	}
	for (i = 0; i < options.nasks; i++)
		node_ask_free(asks[i]);
}

int
main(int argc, char **argv)
{
	struct sigaction action;

	parse(argc, argv);
	node_must(pipe(stop_pipe) == 0, "no pipe", "");
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_term;
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN); /* who told us what to do may be gone before us */
	begin();
	loop();
	end();
	return EXIT_SUCCESS;
}
