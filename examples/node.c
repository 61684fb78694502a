/* node.c - a node among others: it listens, dials, gossips and answers requests.
 *
 * usage: node [--listen ADDR] [--every MS] [ADDR...]     until SIGINT or SIGTERM
 *
 * Every tick it tells all peers a rumour, who pass on what is news to them, and asks each a question.  What peers do comes
 * in callbacks on the runtime's workers; only main waits. */
#include <reeve/reeve.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_PEERS 64
#define SEEN      4096 /* rumours remembered */

static reeve_rt_t *rt;
static reeve_node_t *node;
static reeve_notif_t *gossip;
static reeve_reqs_t *census;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for these: */
static uint64_t seen[SEEN];
static unsigned heard;

static reeve_buf_t *
text_buf(const char *text)
{
	reeve_buf_t *b = reeve_buf_alloc(rt, strlen(text));

	if (b != NULL)
		memcpy(reeve_buf_mut(b), text, strlen(text));
	return b;
}

/* To every peer that there is a stream with, but to the one that it came from. */
static void
spread(reeve_buf_t *rumour, const char *from)
{
	char peer[MAX_PEERS][REEVE_PEER_TEXT];
	unsigned n = reeve_node_peers(node, peer, MAX_PEERS);

	for (unsigned i = 0; i < n && i < MAX_PEERS; i++) {
		reeve_sink_t *k = strcmp(peer[i], from) != 0 ? reeve_notif_sink(gossip, peer[i])
							     : NULL;

		if (k != NULL) /* whose queue is full misses this one */
			(void)reeve_sink_try_send(k, reeve_buf_ref(rumour));
		reeve_sink_unref(k);
	}
}

static int
is_news(const reeve_buf_t *rumour)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
	int news;

	for (size_t i = 0; i < reeve_buf_len(rumour); i++)
		h = (h ^ reeve_buf_data(rumour)[i]) * UINT64_C(1099511628211);
	pthread_mutex_lock(&lock);
	news = seen[h % SEEN] != h;
	seen[h % SEEN] = h;
	heard += news != 0;
	pthread_mutex_unlock(&lock);
	return news;
}

static void
on_peer(void *arg, int event, const char *peer, const char *addr, const reeve_reason_t *why)
{
	(void)arg;
	if (event == REEVE_PEER_DIAL_FAILED)
		printf("no answer at %s: %s\n", addr, reeve_strerror(why->rc));
	else
		printf("%sconnected %s\n", event == REEVE_PEER_CONNECTED ? "" : "dis", peer);
	if (event == REEVE_PEER_CONNECTED)
		(void)reeve_notif_open(gossip, peer); /* REEVE_EBUSY: the peer was faster */
}

static int
on_gossip(reeve_notif_t *p, const reeve_notif_event_t *ev, void *arg)
{
	(void)p, (void)arg;
	if (ev->type == REEVE_NOTIF_RECEIVED && ev->data != NULL && is_news(ev->data))
		spread(ev->data, ev->peer);
	return 0;
}

static void
on_question(reeve_inbound_t *in, void *arg)
{
	(void)arg;
	reeve_respond(in, text_buf("well"), NULL, NULL);
}

/* 0, or the first error. */
static int
start(const char *listen_at)
{
	static const char *const names[] = {"/example/gossip/1", "/example/census/1"};
	reeve_upgrade_t up = {.size = sizeof(up), .security = REEVE_NOISE};
	reeve_node_cfg_t cfg;
	reeve_notif_cfg_t notif;
	reeve_reqs_cfg_t reqs;
	reeve_cfg_t conn;
	reeve_key_t *key = NULL;
	int rc = reeve_key_generate(&key);

	up.identity = key;
	reeve_cfg_init(&conn);
	conn.upgrade = &up;
	reeve_node_cfg_init(&cfg);
	cfg.conn = &conn;
	cfg.fn = on_peer;
	reeve_notif_cfg_init(&notif);
	reeve_reqs_cfg_init(&reqs);
	notif.names = &names[0];
	notif.nnames = reqs.nnames = 1;
	notif.flags = REEVE_NOTIF_ACCEPT_ALL;
	notif.fn = on_gossip;
	reqs.names = &names[1];
	reqs.fn = on_question;
	rc = rc < 0 ? rc : reeve_rt_create(&rt, NULL);
	rc = rc < 0 ? rc : reeve_node_create(&node, rt, &cfg);
	reeve_key_free(key);
	rc = rc < 0 ? rc : reeve_notif_install(&gossip, node, &notif);
	rc = rc < 0 ? rc : reeve_reqs_install(&census, node, &reqs);
	return rc < 0 ? rc : reeve_node_listen(node, listen_at);
}

static void
tick(const char *id, unsigned count)
{
	char peer[MAX_PEERS][REEVE_PEER_TEXT], text[REEVE_PEER_TEXT + 16];
	reeve_node_stats_t st = {.size = sizeof(st)};
	unsigned n, asked = 0;
	reeve_buf_t *b, *response = NULL;

	snprintf(text, sizeof(text), "%s %u", id, count);
	if ((b = text_buf(text)) != NULL && is_news(b))
		spread(b, "");
	reeve_buf_unref(b);
	n = reeve_node_peers(node, peer, MAX_PEERS);
	for (unsigned i = 0; i < n && i < MAX_PEERS; i++) {
		asked += reeve_request(census, peer[i], NULL, &response, 1000) == 0;
		reeve_buf_unref(response);
		response = NULL;
	}
	(void)reeve_node_stats(node, &st);
	pthread_mutex_lock(&lock);
	printf("peers %u heard %u asked %u answered %u\n", n, heard, asked,
	    (unsigned)st.requests_served);
	heard = 0;
	pthread_mutex_unlock(&lock);
}

int
main(int argc, char **argv)
{
	const char *listen_at = "tcp://127.0.0.1:0";
	char addr[300], id[REEVE_PEER_TEXT];
	struct timespec every;
	long ms = 1000;
	sigset_t ends;
	int i, rc;

	for (i = 1; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (strcmp(argv[i], "--listen") == 0)
			listen_at = argv[i + 1];
		else
			ms = strcmp(argv[i], "--every") == 0 ? atol(argv[i + 1]) : -1;
	}
	if ((i < argc && argv[i][0] == '-') || ms <= 0) {
		fprintf(stderr, "usage: node [--listen ADDR] [--every MS] [ADDR...]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&ends); /* blocked: main takes them where it waits */
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	if ((rc = start(listen_at)) < 0) {
		fprintf(stderr, "node: %s: %s\n", listen_at, reeve_strerror(rc));
		return 1;
	}
	(void)reeve_node_addr(node, 0, addr, sizeof(addr));
	(void)reeve_node_id(node, id, sizeof(id));
	printf("listening %s\n", addr);
	for (; i < argc; i++)
		(void)reeve_node_dial(node, NULL, argv[i], NULL, -1); /* on_peer is told */
	every = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	for (unsigned count = 0; sigtimedwait(&ends, NULL, &every) < 0; count++)
		tick(id, count);
	rc = reeve_node_close(node, 1000);
	reeve_node_destroy(node);
	reeve_rt_destroy(rt);
	return rc < 0;
}
