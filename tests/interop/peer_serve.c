/* peer_serve.c - the serving side of our interop peer: the first byte of a stream selects what
 * is done with it. Handlers run on threads of their own and block; the ledger is what they
 * share, under its mutex. */
#include <config.h>

#include "tests/interop/peer.h"

#include <pthread.h>
#include <stdlib.h>

#define LEDGER 64 /* outcomes kept; a dialer asks right after it made one */

struct outcome {
	uint64_t token;
	uint64_t total;
	uint8_t kind;
};

static struct {
	pthread_mutex_t lock;
	struct outcome seen[LEDGER];
	unsigned next;
	reeve_ctl_t *primed; /* whose next stream is greeted; only compared */
} ledger = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
ledger_put(uint64_t token, uint8_t kind, uint64_t total)
{
	pthread_mutex_lock(&ledger.lock);
	ledger.seen[ledger.next++ % LEDGER] = (struct outcome){token, total, kind};
	pthread_mutex_unlock(&ledger.lock);
}

/* Waits at most five seconds for the outcome of a token; PEER_UNKNOWN when there is none by
 * then. */
static struct outcome
ledger_wait(uint64_t token)
{
	struct outcome found = {token, 0, PEER_UNKNOWN};
	int i, tries;

	for (tries = 0; tries < 500 && found.kind == PEER_UNKNOWN; tries++) {
		if (tries > 0)
			peer_nap_ms(10);
		pthread_mutex_lock(&ledger.lock);
		for (i = 0; i < LEDGER; i++)
			if (ledger.seen[i].token == token && ledger.seen[i].kind != 0)
				found = ledger.seen[i];
		pthread_mutex_unlock(&ledger.lock);
	}
	return found;
}

static int
serve_echo(reeve_stream_t *s)
{
	reeve_buf_t *b;
	reeve_ssize n;

	while ((n = reeve_read_buf(s, &b)) > 0)
		if ((n = reeve_write_buf(s, b)) < 0)
			break;
	return (int)n;
}

/* Without a digest the reply is the length alone. */
static int
serve_sink(reeve_stream_t *s, int with_digest)
{
	struct sha256 sum;
	uint64_t total;
	uint8_t reply[40];
	int rc;

	sha256_init(&sum);
	if ((rc = peer_drain(s, with_digest ? &sum : NULL, &total)) < 0)
		return rc;
	sha256_end(&sum, reply);
	peer_put64(reply + 32, total);
	return with_digest ? peer_write(s, reply, 40) : peer_write(s, reply + 32, 8);
}

static int
serve_generate(reeve_stream_t *s, size_t chunk)
{
	uint8_t request[8];
	uint64_t rest;
	int rc;

	if ((rc = peer_read(s, request, sizeof(request))) < 0 ||
	    (rc = peer_drain(s, NULL, &rest)) < 0)
		return rc;
	return peer_send_generated(s, peer_get64(request), chunk);
}

static int
serve_reset(reeve_stream_t *s)
{
	uint8_t byte;
	int rc = peer_read(s, &byte, 1);

	return rc < 0 ? rc : reeve_reset(s, 7);
}

/* A peer that cannot reset at once ends its half first and resets later: after a clean end the
 * stream is written for a second more, and only a write that fails with REEVE_ERESET makes it a
 * reset. */
static int
serve_watch(reeve_stream_t *s)
{
	uint8_t token[8], kind = PEER_UNKNOWN;
	uint64_t total;
	int rc, tries;

	if ((rc = peer_read(s, token, sizeof(token))) < 0 || (rc = peer_write(s, "k", 1)) < 0)
		return rc;
	rc = peer_drain(s, NULL, &total);
	for (tries = 0; tries < 50 && rc == 0; tries++) {
		rc = peer_write(s, "p", 1);
		if (rc == 0)
			peer_nap_ms(20);
	}
	if (rc == 0)
		kind = PEER_ENDED;
	else if (rc == REEVE_ERESET)
		kind = PEER_WAS_RESET;
	ledger_put(peer_get64(token), kind, total);
	return rc;
}

static int
serve_half(reeve_stream_t *s)
{
	uint8_t token[8];
	uint64_t total;
	int rc;

	if ((rc = peer_read(s, token, sizeof(token))) < 0 || (rc = peer_write(s, "bye", 3)) < 0 ||
	    (rc = reeve_shut(s)) < 0 || (rc = peer_drain(s, NULL, &total)) < 0)
		return rc;
	ledger_put(peer_get64(token), PEER_ENDED, total);
	return 0;
}

static int
serve_query(reeve_stream_t *s)
{
	uint8_t token[8], reply[9];
	struct outcome found;
	int rc;

	if ((rc = peer_read(s, token, sizeof(token))) < 0)
		return rc;
	found = ledger_wait(peer_get64(token));
	reply[0] = found.kind;
	peer_put64(reply + 1, found.total);
	return peer_write(s, reply, sizeof(reply));
}

/* Whatever the end is, it is noted. */
static int
serve_silent(reeve_stream_t *s)
{
	uint8_t token[8];
	uint64_t total;
	int rc;

	if ((rc = peer_read(s, token, sizeof(token))) < 0)
		return rc;
	rc = peer_drain(s, NULL, &total);
	ledger_put(peer_get64(token), rc == 0 ? PEER_ENDED : PEER_WAS_RESET, total);
	return rc;
}

/* Reads nothing for as long as it is told; then to whatever end there is, which is noted. */
static int
serve_lazy(reeve_stream_t *s)
{
	uint8_t request[16];
	uint64_t total;
	int rc;

	if ((rc = peer_read(s, request, sizeof(request))) < 0 || (rc = peer_write(s, "k", 1)) < 0)
		return rc;
	peer_nap_ms((unsigned)peer_get64(request + 8));
	rc = peer_drain(s, NULL, &total);
	ledger_put(peer_get64(request), rc == 0 ? PEER_ENDED : PEER_WAS_RESET, total);
	return rc;
}

/* Writes that have left when this returns: the library counts bytes as sent when their frame is
 * made, and a reset after that drops none.  Nothing else may write on the connection. */
static int
send_all(reeve_stream_t *s, const void *p, size_t n)
{
	reeve_ctl_t *k = reeve_stream_ctl(s);
	reeve_stats_t before = {.size = sizeof(before)}, now = {.size = sizeof(now)};
	uint64_t from;
	int rc;

	reeve_ctl_stats(k, &before);
	if ((rc = peer_write(s, p, n)) < 0)
		return rc;
	from = peer_now_ns();
	do {
		peer_nap_ms(1);
		reeve_ctl_stats(k, &now);
		if (peer_now_ns() - from > 5 * PEER_SECOND)
			return REEVE_ETIMEDOUT;
	} while (now.bytes_out - before.bytes_out < n);
	return 0;
}

static int
serve_abrupt(reeve_stream_t *s)
{
	uint8_t request[8], *all;
	struct peer_gen g;
	size_t n;
	int rc;

	if ((rc = peer_read(s, request, sizeof(request))) < 0)
		return rc;
	n = (size_t)peer_get64(request);
	if ((all = malloc(n + 1)) == NULL)
		return REEVE_ENOMEM;
	peer_gen_init(&g);
	peer_gen_fill(&g, all, n);
	rc = send_all(s, all, n);
	free(all);
	return rc < 0 ? rc : reeve_reset(s, 7);
}

/* Brings the stream into a state and resets it there. */
static int
serve_state(reeve_stream_t *s)
{
	uint8_t request[9], piece[4096];
	uint64_t total = 0;
	reeve_ssize n;
	int rc;

	if ((rc = peer_read(s, request, sizeof(request))) < 0)
		return rc;
	switch (request[8]) {
	case PEER_ANSWERED:
		rc = send_all(s, "k", 1);
		break;
	case PEER_THEIR_END:
		rc = peer_drain(s, NULL, &total);
		break;
	case PEER_OWN_END:
		/* Who has read the end writes; who does not has time to read it. */
		reeve_deadline(s, REEVE_RD, 500);
		if ((rc = reeve_shut(s)) == 0 && (n = reeve_read(s, piece, 1)) > 0)
			total = 1;
		break;
	case PEER_UNREAD:
		peer_nap_ms(100); /* they follow the request at once, and stay unread */
		break;
	case PEER_WRITTEN:
		n = reeve_read(s, piece, sizeof(piece));
		total = n > 0 ? (uint64_t)n : 0;
		rc = n < 0 ? (int)n : 0;
		break;
	}
	if (rc < 0 || (rc = reeve_reset(s, 7)) < 0)
		return rc;
	ledger_put(peer_get64(request), PEER_WAS_RESET, total);
	return 0;
}

static int
serve_cross(reeve_stream_t *s)
{
	uint8_t request[8];
	uint64_t length, rest;
	int rc;

	if ((rc = peer_read(s, request, sizeof(request))) < 0)
		return rc;
	length = peer_get64(request);
	if ((rc = peer_send_generated(s, length, 0)) < 0 ||
	    (rc = peer_read_generated(s, length)) < 0)
		return rc;
	return peer_drain(s, NULL, &rest);
}

static int
serve_open(reeve_stream_t *s)
{
	reeve_stats_t stats = {.size = sizeof(stats)};
	uint8_t reply[8];

	reeve_ctl_stats(reeve_stream_ctl(s), &stats);
	peer_put64(reply, stats.streams_open);
	return peer_write(s, reply, sizeof(reply));
}

static int
serve_primer(reeve_stream_t *s)
{
	pthread_mutex_lock(&ledger.lock);
	ledger.primed = reeve_stream_ctl(s);
	pthread_mutex_unlock(&ledger.lock);
	return peer_write(s, "k", 1);
}

/* The stream behind a primer is greeted before anything of it is read. */
static int
greet(reeve_stream_t *s)
{
	int primed;

	pthread_mutex_lock(&ledger.lock);
	if ((primed = ledger.primed != NULL && ledger.primed == reeve_stream_ctl(s)))
		ledger.primed = NULL;
	pthread_mutex_unlock(&ledger.lock);
	return primed ? peer_write(s, "hello", 5) : 0;
}

static int
serve_goaway(reeve_stream_t *s)
{
	uint8_t byte;
	int rc = peer_read(s, &byte, 1);

	return rc < 0 ? rc : reeve_goaway(reeve_stream_ctl(s), 0);
}

/* A flat dispatch over the requests: 0 or an error. */
static int
serve_request(reeve_stream_t *s, uint8_t what, const struct peer_options *o)
{
	switch (what) {
	case PEER_ECHO:
		return serve_echo(s);
	case PEER_SINK:
	case PEER_DISCARD:
		return serve_sink(s, what == PEER_SINK);
	case PEER_GENERATE:
		return serve_generate(s, o->chunk);
	case PEER_RESET:
		return serve_reset(s);
	case PEER_WATCH:
		return serve_watch(s);
	case PEER_HALF:
		return serve_half(s);
	case PEER_QUERY:
		return serve_query(s);
	case PEER_PRIMER:
		return serve_primer(s);
	case PEER_SILENT:
		return serve_silent(s);
	case PEER_ABRUPT:
		return serve_abrupt(s);
	case PEER_STATE:
		return serve_state(s);
	case PEER_CROSS:
		return serve_cross(s);
	case PEER_GOAWAY:
		return serve_goaway(s);
	case PEER_OPEN:
		return serve_open(s);
	case PEER_LAZY:
		return serve_lazy(s);
	default:
		return REEVE_EPROTO;
	}
}

void
peer_handle(reeve_stream_t *s, void *arg)
{
	uint8_t what;

	if (greet(s) < 0 || peer_read(s, &what, 1) < 0 || serve_request(s, what, arg) < 0)
		reeve_reset(s, 0);
}
