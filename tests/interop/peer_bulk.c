/* peer_bulk.c - the cases that move many bytes or many streams. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AT_ONCE 64 /* short streams */
#define ASKERS  16 /* of pings */
#define ECHOES  4  /* streams that echo meanwhile */

static void
hex(const uint8_t digest[32], char out[65])
{
	int i;

	for (i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void
peer_file(struct peer_link *l, const char *path, char *out)
{
	reeve_stream_t *s = peer_start(l->k, PEER_SINK, NULL, 0);
	size_t chunk = l->o->chunk, n;
	uint8_t *piece, reply[40];
	FILE *f = fopen(path, "rb");
	struct sha256 sum;
	struct stat st;
	char text[65];

	peer_check(f != NULL && fstat(fileno(f), &st) == 0, "cannot read the file");
	if (chunk == 0)
		chunk = (size_t)st.st_size + 1;
	peer_check((piece = malloc(chunk)) != NULL, "out of memory");
	sha256_init(&sum);
	while ((n = fread(piece, 1, chunk, f)) > 0) {
		sha256_add(&sum, piece, n);
		reeve_deadline(s, REEVE_WR, CALL_MS);
		peer_must(peer_write(s, piece, n), "write");
	}
	peer_check(!ferror(f), "cannot read the file");
	fclose(f);
	free(piece);
	peer_sink_end(s, &sum, reply);
	hex(reply, text);
	snprintf(out, OUT_SIZE, "\"bytes\":%llu,\"sha256\":\"%s\"",
	    (unsigned long long)peer_get64(reply + 32), text);
}

void
peer_fetch(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint8_t request[8], over;
	reeve_stream_t *s;

	peer_put64(request, numbers[0]);
	s = peer_start(l->k, PEER_GENERATE, request, sizeof(request));
	peer_must(reeve_shut(s), "shut");
	peer_must(peer_read_generated(s, numbers[0]), "fetch");
	peer_check(reeve_read(s, &over, 1) == 0, "the fetched length differs");
	reeve_close(s);
	snprintf(out, OUT_SIZE, "\"bytes\":%llu", (unsigned long long)numbers[0]);
}

void
peer_single(struct peer_link *l, const uint64_t *numbers, char *out)
{
	size_t n = (size_t)numbers[0];
	uint8_t *payload = peer_payload(n), reply[40];
	reeve_stats_t before = {.size = sizeof(before)}, now = {.size = sizeof(now)};
	reeve_stream_t *s = peer_start(l->k, PEER_SINK, NULL, 0);
	struct sha256 sum;

	sha256_init(&sum);
	sha256_add(&sum, payload, n);
	peer_must(peer_write(s, payload, n), "write");
	peer_sink_end(s, &sum, reply);
	free(payload);
	reeve_ctl_stats(l->k, &before);
	peer_fetch(l, numbers, out);
	reeve_ctl_stats(l->k, &now);
	/* How many frames brought the fetched bytes, and the window that they came through. */
	snprintf(out + strlen(out), OUT_SIZE - strlen(out), ",\"frames\":%llu,\"window\":%llu",
	    (unsigned long long)(now.frames_in - before.frames_in),
	    (unsigned long long)now.window_max);
}

static void
short_task(struct peer_link *l, void *arg, unsigned i)
{
	uint8_t *payload = peer_payload(1000);

	(void)arg;
	payload[0] = (uint8_t)i;
	peer_echo(l->k, payload, 1 + i * 37 % 1000);
	free(payload);
}

void
peer_short(struct peer_link *l, const uint64_t *numbers, char *out)
{
	peer_together(l, (unsigned)numbers[0], AT_ONCE, short_task, NULL);
	snprintf(out, OUT_SIZE, "\"streams\":%llu", (unsigned long long)numbers[0]);
}

static void
open_task(struct peer_link *l, void *arg, unsigned i)
{
	(void)arg;
	(void)i;
	peer_echo(l->k, (const uint8_t *)"x", 1);
}

void
peer_opens(struct peer_link *l, const uint64_t *numbers, char *out)
{
	peer_together(l, (unsigned)numbers[0], AT_ONCE, open_task, NULL);
	snprintf(out, OUT_SIZE, "\"streams\":%llu,\"left\":%u", (unsigned long long)numbers[0],
	    peer_few_open(l->k));
}

/* What runs beside a case on a thread of its own, until it is told to stop. */
struct beside {
	pthread_t thread;
	pthread_mutex_t lock;
	reeve_ctl_t *k;
	unsigned done; /* rounds; read after the thread ended */
	int stop;      /* under lock */
};

static int
go_on(struct beside *b)
{
	int stop;

	pthread_mutex_lock(&b->lock);
	stop = b->stop;
	pthread_mutex_unlock(&b->lock);
	b->done++;
	return !stop;
}

static void
beside_start(struct beside *b, reeve_ctl_t *k, void *(*fn)(void *))
{
	pthread_mutex_init(&b->lock, NULL);
	b->k = k;
	b->done = 0;
	b->stop = 0;
	peer_check(pthread_create(&b->thread, NULL, fn, b) == 0, "no thread");
}

static void
beside_stop(struct beside *b)
{
	pthread_mutex_lock(&b->lock);
	b->stop = 1;
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	pthread_mutex_destroy(&b->lock);
}

static void *
echoing(void *arg)
{
	struct beside *b = arg;
	uint8_t *payload = peer_payload(10000);
	reeve_stream_t *s = peer_start(b->k, PEER_ECHO, NULL, 0);

	do
		peer_must(peer_echoes(s, payload, 10000), "echo while pings run");
	while (go_on(b));
	peer_must(reeve_shut(s), "shut");
	peer_expect(s, "", 0, "the end of an echo");
	free(payload);
	return NULL;
}

static void *
pinging(void *arg)
{
	struct beside *b = arg;

	do {
		peer_must(reeve_ping(b->k, CALL_MS, NULL), "ping");
		peer_nap_ms(1);
	} while (go_on(b));
	return NULL;
}

static void
ping_task(struct peer_link *l, void *arg, unsigned i)
{
	uint64_t us;

	(void)arg;
	(void)i;
	peer_must(reeve_ping(l->k, 10000, &us), "ping");
}

void
peer_pings(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint8_t *payload = peer_payload(PAYLOAD);
	struct beside b[ECHOES];
	int i;

	if (peer_is_mplex(l))
		peer_absent("mplex has no ping");
	for (i = 0; i < ECHOES; i++)
		beside_start(&b[i], l->k, echoing);
	peer_together(l, (unsigned)numbers[0], ASKERS, ping_task, NULL);
	for (i = 0; i < ECHOES; i++)
		beside_stop(&b[i]);
	peer_echo(l->k, payload, PAYLOAD);
	free(payload);
	snprintf(out, OUT_SIZE, "\"pings\":%llu", (unsigned long long)numbers[0]);
}

static void
cross_task(struct peer_link *l, void *arg, unsigned i)
{
	uint64_t length = *(const uint64_t *)arg;
	uint8_t request[8];
	reeve_stream_t *s;

	(void)i;
	peer_put64(request, length);
	s = peer_start(l->k, PEER_CROSS, request, sizeof(request));
	peer_must(peer_send_generated(s, length, 0), "write before reading");
	peer_must(peer_read_generated(s, length), "read after writing");
	peer_must(reeve_shut(s), "shut");
	peer_expect(s, "", 0, "the end of a crossing");
}

void
peer_cross(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint64_t length = numbers[1];
	struct beside b = {0};

	if (!peer_is_mplex(l))
		beside_start(&b, l->k, pinging);
	peer_together(l, (unsigned)numbers[0], (unsigned)numbers[0], cross_task, &length);
	if (!peer_is_mplex(l))
		beside_stop(&b);
	snprintf(out, OUT_SIZE, "\"bytes\":%llu,\"pings\":%u",
	    (unsigned long long)(numbers[0] * length), b.done);
}
