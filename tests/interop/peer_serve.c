/* peer_serve.c - the serving side of our interop peer: the first byte of a stream selects what
 * is done with it. Handlers run on threads of their own and block; the ledger is what they
 * share, under its mutex. */
#include <config.h>

#include "tests/interop/peer.h"
#include "tests/interop/sha256.h"

#include <pthread.h>
#include <stdlib.h>

#define LEDGER 64 /* outcomes kept; a dialer asks right after it made one */
#define PIECE  65536

struct outcome {
	uint64_t token;
	uint64_t total;
	uint8_t kind;
};

static struct {
	pthread_mutex_t lock;
	struct outcome seen[LEDGER];
	unsigned next;
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

/* Reads to the end into a digest, if any: 0 for a clean end, else an error. */
static int
drain(reeve_stream_t *s, struct sha256 *sum, uint64_t *total)
{
	reeve_ssize n;
	reeve_buf_t *b;

	*total = 0;
	while ((n = reeve_read_buf(s, &b)) > 0) {
		if (sum != NULL)
			sha256_add(sum, reeve_buf_data(b), reeve_buf_len(b));
		reeve_buf_unref(b);
		*total += (uint64_t)n;
	}
	return (int)n;
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
	if ((rc = drain(s, with_digest ? &sum : NULL, &total)) < 0)
		return rc;
	sha256_end(&sum, reply);
	peer_put64(reply + 32, total);
	return with_digest ? peer_write(s, reply, 40) : peer_write(s, reply + 32, 8);
}

static int
serve_generate(reeve_stream_t *s)
{
	uint8_t request[8], *piece;
	uint64_t left, rest;
	struct peer_gen g;
	int rc;

	if ((rc = peer_read(s, request, sizeof(request))) < 0 || (rc = drain(s, NULL, &rest)) < 0)
		return rc;
	if ((piece = malloc(PIECE)) == NULL)
		return REEVE_ENOMEM;
	peer_gen_init(&g);
	for (left = peer_get64(request); left > 0 && rc == 0;) {
		size_t n = left < PIECE ? (size_t)left : PIECE;

		peer_gen_fill(&g, piece, n);
		rc = peer_write(s, piece, n);
		left -= n;
	}
	free(piece);
	return rc;
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
	rc = drain(s, NULL, &total);
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
	    (rc = reeve_shut(s)) < 0 || (rc = drain(s, NULL, &total)) < 0)
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

void
peer_handle(reeve_stream_t *s, void *arg)
{
	uint8_t what;
	int rc;

	(void)arg;
	if ((rc = peer_read(s, &what, 1)) < 0)
		what = 0;
	switch (what) {
	case PEER_ECHO:
		rc = serve_echo(s);
		break;
	case PEER_SINK:
	case PEER_DISCARD:
		rc = serve_sink(s, what == PEER_SINK);
		break;
	case PEER_GENERATE:
		rc = serve_generate(s);
		break;
	case PEER_RESET:
		rc = serve_reset(s);
		break;
	case PEER_WATCH:
		rc = serve_watch(s);
		break;
	case PEER_HALF:
		rc = serve_half(s);
		break;
	case PEER_QUERY:
		rc = serve_query(s);
		break;
	default:
		rc = REEVE_EPROTO;
	}
	if (rc < 0)
		reeve_reset(s, 0);
}
