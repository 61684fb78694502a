/* peer_dial.c - the dialing side of our interop peer: one case per process.  A case that fails
 * says why and leaves the process, so only the way of success cleans up. */
#include <config.h>

#include "tests/interop/peer.h"
#include "tests/interop/sha256.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MS 60000 /* no call of a case needs longer */
#define PAYLOAD 100000
#define SHORTS  64 /* short streams at once */
#define PIECE   65536

/* Opens a stream and writes its first byte and the request behind it. */
static reeve_stream_t *
start(reeve_ctl_t *k, uint8_t what, const void *request, size_t n)
{
	reeve_stream_t *s;

	peer_must(reeve_open(k, &s, CALL_MS), "open");
	reeve_deadline(s, REEVE_RD | REEVE_WR, CALL_MS);
	peer_must(peer_write(s, &what, 1), "write");
	if (n > 0)
		peer_must(peer_write(s, request, n), "write");
	return s;
}

/* Reads to the end; what comes has to be exactly these bytes.  Closes the stream. */
static void
expect(reeve_stream_t *s, const void *p, size_t n, const char *what)
{
	uint8_t *got = malloc(n + 1), over;

	peer_check(got != NULL, "out of memory");
	peer_must(peer_read(s, got, n), what);
	peer_check(memcmp(got, p, n) == 0, what);
	peer_check(reeve_read(s, &over, 1) == 0, what);
	free(got);
	reeve_close(s);
}

/* Writes a request, ends our half, compares all that comes back. */
static void
echo(reeve_ctl_t *k, const uint8_t *payload, size_t n)
{
	reeve_stream_t *s = start(k, PEER_ECHO, payload, n);

	peer_must(reeve_shut(s), "shut");
	expect(s, payload, n, "the echo differs");
}

static void
new_token(uint8_t token[8])
{
	peer_put64(token, peer_now_ns() ^ (uint64_t)getpid() << 32);
}

/* What the serving side saw of the stream with this token. */
static void
query(reeve_ctl_t *k, const uint8_t token[8], uint8_t *kind, uint64_t *total)
{
	reeve_stream_t *s = start(k, PEER_QUERY, token, 8);
	uint8_t answer[9];

	peer_must(peer_read(s, answer, sizeof(answer)), "query");
	reeve_close(s);
	*kind = answer[0];
	*total = peer_get64(answer + 1);
}

static void
hex(const uint8_t digest[32], char out[65])
{
	int i;

	for (i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* The reply of a sink is 32 bytes of digest and 8 of length. */
static void
sink_end(reeve_stream_t *s, struct sha256 *sum, uint8_t reply[40])
{
	uint64_t total = sum->total;

	peer_must(reeve_shut(s), "shut");
	sha256_end(sum, reply);
	peer_put64(reply + 32, total);
	expect(s, reply, 40, "the peer's digest or length differs");
}

static void
case_file(reeve_ctl_t *k, const char *path, size_t chunk, char *out, size_t size)
{
	reeve_stream_t *s = start(k, PEER_SINK, NULL, 0);
	uint8_t *piece = malloc(chunk), reply[40];
	FILE *f = fopen(path, "rb");
	struct sha256 sum;
	char text[65];
	size_t n;

	peer_check(piece != NULL && f != NULL, "cannot read the file");
	sha256_init(&sum);
	while ((n = fread(piece, 1, chunk, f)) > 0) {
		sha256_add(&sum, piece, n);
		reeve_deadline(s, REEVE_WR, CALL_MS);
		peer_must(peer_write(s, piece, n), "write");
	}
	peer_check(!ferror(f), "cannot read the file");
	fclose(f);
	free(piece);
	sink_end(s, &sum, reply);
	hex(reply, text);
	snprintf(out, size, "\"bytes\":%llu,\"sha256\":\"%s\"",
	    (unsigned long long)peer_get64(reply + 32), text);
}

static void
case_fetch(reeve_ctl_t *k, uint64_t count, char *out, size_t size)
{
	uint8_t request[8], *got = malloc(PIECE), *want = malloc(PIECE);
	reeve_stream_t *s;
	struct peer_gen g;
	uint64_t total = 0;
	reeve_ssize n;

	peer_check(got != NULL && want != NULL, "out of memory");
	peer_put64(request, count);
	s = start(k, PEER_GENERATE, request, sizeof(request));
	peer_must(reeve_shut(s), "shut");
	peer_gen_init(&g);
	while ((n = reeve_read(s, got, PIECE)) > 0) {
		peer_gen_fill(&g, want, (size_t)n);
		peer_check(memcmp(got, want, (size_t)n) == 0, "the fetched bytes differ");
		total += (uint64_t)n;
		reeve_deadline(s, REEVE_RD, CALL_MS);
	}
	peer_must((int)n, "read");
	peer_check(total == count, "the fetched length differs");
	free(got);
	free(want);
	reeve_close(s);
	snprintf(out, size, "\"bytes\":%llu", (unsigned long long)total);
}

/* What the threads of the short case share. */
struct shorts {
	pthread_mutex_t lock;
	reeve_ctl_t *k;
	unsigned next, count;
};

static void *
short_thread(void *arg)
{
	struct shorts *all = arg;
	uint8_t payload[1000];
	struct peer_gen g;
	unsigned i;

	for (;;) {
		pthread_mutex_lock(&all->lock);
		i = all->next++;
		pthread_mutex_unlock(&all->lock);
		if (i >= all->count)
			return NULL;
		peer_gen_init(&g);
		peer_gen_fill(&g, payload, sizeof(payload));
		payload[0] = (uint8_t)i;
		echo(all->k, payload, 1 + i * 37 % 1000);
	}
}

static void
case_short(reeve_ctl_t *k, unsigned count, char *out, size_t size)
{
	struct shorts all = {PTHREAD_MUTEX_INITIALIZER, k, 0, count};
	pthread_t thread[SHORTS];
	int i;

	for (i = 0; i < SHORTS; i++)
		peer_check(pthread_create(&thread[i], NULL, short_thread, &all) == 0, "no thread");
	for (i = 0; i < SHORTS; i++)
		pthread_join(thread[i], NULL);
	snprintf(out, size, "\"streams\":%u", count);
}

/* Their end first: they read on, and everything that we write after it arrives. */
static void
half_theirs(reeve_ctl_t *k, const uint8_t *payload)
{
	uint8_t token[8], bye[3], over, kind;
	reeve_stream_t *s;
	uint64_t total;

	new_token(token);
	s = start(k, PEER_HALF, token, sizeof(token));
	peer_must(peer_read(s, bye, sizeof(bye)), "farewell");
	peer_check(memcmp(bye, "bye", 3) == 0 && reeve_read(s, &over, 1) == 0, "farewell");
	peer_must(peer_write(s, payload, PAYLOAD), "write after the peer's end");
	reeve_close(s);
	query(k, token, &kind, &total);
	peer_check(kind == PEER_ENDED && total == PAYLOAD, "bytes after the peer's end were lost");
}

/* A clean end is not taken for a reset: the control of the reset case. */
static void
half_control(reeve_ctl_t *k)
{
	uint8_t token[8], kind, first = 0, more[128];
	reeve_stream_t *s;
	uint64_t total;
	reeve_ssize n;

	new_token(token);
	s = start(k, PEER_WATCH, token, sizeof(token));
	peer_must(reeve_shut(s), "shut");
	peer_must(peer_read(s, &first, 1), "watch");
	while ((n = reeve_read(s, more, sizeof(more))) > 0)
		;
	peer_must((int)n, "watch");
	reeve_close(s);
	query(k, token, &kind, &total);
	peer_check(first == 'k' && kind == PEER_ENDED, "a clean end was seen as something else");
}

static void
case_half(reeve_ctl_t *k, char *out, size_t size)
{
	uint8_t *payload = malloc(PAYLOAD), reply[40];
	reeve_stream_t *s;
	struct sha256 sum;
	struct peer_gen g;

	peer_check(payload != NULL, "out of memory");
	peer_gen_init(&g);
	peer_gen_fill(&g, payload, PAYLOAD);
	sha256_init(&sum);
	sha256_add(&sum, payload, PAYLOAD);

	s = start(k, PEER_SINK, payload, PAYLOAD);
	sink_end(s, &sum, reply);
	echo(k, payload, PAYLOAD);
	half_theirs(k, payload);
	half_control(k);
	free(payload);
	snprintf(out, size, "\"bytes\":%d", PAYLOAD);
}

/* Their reset reaches us: writing fails in the end, for the reason that is true. */
static unsigned
reset_theirs(reeve_ctl_t *k)
{
	reeve_stream_t *s = start(k, PEER_RESET, "x", 1);
	reeve_reason_t reason = {.size = sizeof(reason)};
	uint64_t from = peer_now_ns();
	unsigned ms;
	int rc;

	do {
		peer_nap_ms(10);
		ms = (unsigned)((peer_now_ns() - from) / 1000000);
		rc = peer_write(s, "x", 1);
	} while (rc == 0 && ms < 10000);
	peer_check(rc < 0, "the peer's reset never arrived");
	/* A reset that is the peer's first answer is a refusal. */
	if (rc != REEVE_ERESET && rc != REEVE_EREFUSED)
		peer_must(rc, "not a reset");
	peer_must(reeve_stream_reason(s, &reason), "reason");
	peer_check(
	    reason.rc == rc && reason.by == REEVE_BY_PEER, "the reason is not the peer's reset");
	reeve_close(s);
	return ms;
}

static void
case_reset(reeve_ctl_t *k, char *out, size_t size)
{
	unsigned ms = reset_theirs(k);
	uint8_t token[8], ready, kind;
	reeve_stream_t *s;
	uint64_t total;

	new_token(token);
	s = start(k, PEER_WATCH, token, sizeof(token));
	peer_must(peer_read(s, &ready, 1), "watch");
	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
	query(k, token, &kind, &total);
	peer_check(kind == PEER_WAS_RESET, "the peer did not see our reset");

	echo(k, (const uint8_t *)"alive", 5);
	snprintf(out, size, "\"heard_ms\":%u", ms);
}

void
peer_case(reeve_ctl_t *k, size_t chunk, int n, char **words)
{
	uint64_t from = peer_now_ns();
	char out[256];

	if (n == 2 && strcmp(words[0], "file") == 0)
		case_file(k, words[1], chunk, out, sizeof(out));
	else if (n == 2 && strcmp(words[0], "fetch") == 0)
		case_fetch(k, strtoull(words[1], NULL, 10), out, sizeof(out));
	else if (n == 2 && strcmp(words[0], "short") == 0)
		case_short(k, (unsigned)strtoul(words[1], NULL, 10), out, sizeof(out));
	else if (n == 1 && strcmp(words[0], "half") == 0)
		case_half(k, out, sizeof(out));
	else if (n == 1 && strcmp(words[0], "reset") == 0)
		case_reset(k, out, sizeof(out));
	else if (n == 4 && strcmp(words[0], "bench") == 0)
		peer_bench(k, words + 1, out, sizeof(out));
	else
		peer_check(0, "cases: file PATH, fetch N, short N, half, reset, bench S W T");
	printf("{\"peer\":\"reeve\",\"case\":\"%s\",\"ms\":%llu,%s}\n", words[0],
	    (unsigned long long)((peer_now_ns() - from) / 1000000), out);
}
