/*
 * notifications.c - what notifications and requests between two nodes cost: our side of perf/peers/notifications.
 *
 * usage: notifications [--bench notifications|requests] [--security noise|plaintext|none] [--raw] [--lazy]
 *                      [--callbacks] [--workers N] [--timeout-ms N] [--pin]   answers lines "run serial|backpressure SIZE N" of its input
 *        notifications --quick                              a short run of everything
 *
 * The workload of polkadot-sdk's benches notifications_protocol and request_response_protocol: two nodes in one process,
 * one connection, a fresh buffer of zeros for each message, which its receiver frees.  Serial: the receiver hands a token
 * back in the process.  The thread that sends and the one that receives are made once and wait in between; with --callbacks
 * there are none, and one runtime carries both nodes.  Without
 * security nodes have no ids, so "none" is plaintext, which says who is there and then leaves the bytes alone.
 */
#include <config.h>

#include "perf/notifications.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flow.h"
#include "perf/kit.h"

#define PREHEAT (32u << 20)
#define CHECKED 200u

enum variant { SERIAL, BACKPRESSURE, CHECK };

struct bench {
	const struct rvp_carrier *carrier;
	void *run;
	struct rvp_wanted wanted;
	pthread_t sender, receiver;
	sem_t begin[2], end;
	sem_t token; /* serial: one more may be sent; backpressure: all have come */
	enum variant variant;
	size_t size;
	unsigned n; /* 0: the threads end */
};

uint8_t *
rvp_zeros(size_t n)
{
	uint8_t *bytes = calloc(1, n > 0 ? n : 1);

	rvp_check(bytes != NULL, "memory");
	return bytes;
}

static void
wait_for(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

/* --- content that differs in every byte's place and message --- */

static size_t
content_size(unsigned i)
{
	return i % 7 == 0 ? i / 7 : (i * 2654435761u) % 100000;
}

static void
content(unsigned i, uint8_t *out, size_t n)
{
	uint32_t x = i * 2654435761u + 1;

	for (size_t j = 0; j < n; j++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		out[j] = (uint8_t)x;
	}
}

static void
check_content(const struct rvp_message *m, unsigned i)
{
	size_t n = content_size(i);
	uint8_t *want = rvp_zeros(n + 1);

	content(i, want, n);
	rvp_check(m->n == n && (n == 0 || memcmp(m->bytes, want, n) == 0), "content");
	free(want);
}

/* --- the two threads --- */

static void
send_content(struct bench *b, unsigned i)
{
	size_t n = content_size(i);
	uint8_t *bytes = rvp_zeros(n + 1);

	content(i, bytes, n);
	b->carrier->send(b->run, bytes, n);
	free(bytes);
}

static void
send_all(struct bench *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		if (b->variant == SERIAL && i > 0 && !b->wanted.requests)
			wait_for(&b->token);
		if (b->wanted.requests)
			b->carrier->ask(b->run, b->size);
		else if (b->variant == CHECK)
			send_content(b, i);
		else
			b->carrier->send(b->run, NULL, b->size);
	}
	if (!b->wanted.requests)
		wait_for(&b->token);
}

static void
receive_all(struct bench *b)
{
	struct rvp_message m;

	for (unsigned i = 0; i < b->n && !b->wanted.requests; i++) {
		b->carrier->receive(b->run, &m);
		if (b->variant == CHECK)
			check_content(&m, i);
		else
			rvp_check(m.n == b->size && m.bytes[0] == 0 && m.bytes[m.n - 1] == 0,
			    "notification");
		b->carrier->let_go(b->run, &m);
		if (b->variant == SERIAL || i + 1 == b->n)
			sem_post(&b->token);
	}
}

static void *
sender_main(void *arg)
{
	struct bench *b = arg;

	for (;;) {
		wait_for(&b->begin[0]);
		if (b->n == 0)
			return NULL;
		send_all(b);
		sem_post(&b->end);
	}
}

static void *
receiver_main(void *arg)
{
	struct bench *b = arg;

	for (;;) {
		wait_for(&b->begin[1]);
		if (b->n == 0)
			return NULL;
		receive_all(b);
		sem_post(&b->end);
	}
}

static void
run(struct bench *b, enum variant variant, size_t size, unsigned n)
{
	if (b->carrier->flow != NULL) {
		b->carrier->flow(b->run, variant == SERIAL, size, n);
		return;
	}
	b->variant = variant;
	b->size = size;
	b->n = n;
	for (int i = 0; i < 2; i++)
		sem_post(&b->begin[i]);
	for (int i = 0; i < 2; i++)
		wait_for(&b->end);
}

static void
start(struct bench *b)
{
	sem_init(&b->begin[0], 0, 0);
	sem_init(&b->begin[1], 0, 0);
	sem_init(&b->end, 0, 0);
	sem_init(&b->token, 0, 0);
	b->run = b->carrier->open(&b->wanted);
	if (b->carrier->flow != NULL) {
		run(b, BACKPRESSURE, PREHEAT, 1);
		return;
	}
	rvp_thread(&b->receiver, receiver_main, b, b->wanted.pin ? 1 : RVP_ANY_CPU);
	rvp_thread(&b->sender, sender_main, b, b->wanted.pin ? 0 : RVP_ANY_CPU);
	if (!b->wanted.requests)
		run(b, CHECK, 0, CHECKED);
	run(b, BACKPRESSURE, PREHEAT, 1);
}

static void
stop(struct bench *b)
{
	b->n = 0;
	for (int i = 0; i < 2; i++)
		sem_post(&b->begin[i]);
	if (b->carrier->flow == NULL) {
		pthread_join(b->sender, NULL);
		pthread_join(b->receiver, NULL);
	}
	b->carrier->close(b->run);
	sem_destroy(&b->begin[0]);
	sem_destroy(&b->begin[1]);
	sem_destroy(&b->end);
	sem_destroy(&b->token);
}

/* --- lines --- */

static int
serve(struct bench *b)
{
	static const char *const names[] = {"serial", "backpressure"};
	uint64_t wall, cpu;
	char line[256], word[32];
	unsigned long size;
	unsigned v, n;

	start(b);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "quit\n") != 0) {
		rvp_check(sscanf(line, "run %31s %lu %u", word, &size, &n) == 3 && size > 0 &&
			size <= RVP_MESSAGE_MAX && n > 0,
		    "run serial|backpressure SIZE N");
		for (v = 0; v < 2 && strcmp(word, names[v]) != 0; v++)
			;
		rvp_check(v < 2 && (v == SERIAL || !b->wanted.requests), "variant");
		wall = rvp_now_ns();
		cpu = rvp_cpu_ns();
		run(b, (enum variant)v, size, n);
		wall = rvp_now_ns() - wall;
		cpu = rvp_cpu_ns() - cpu;
		printf("{\"bench\":\"%s\",\"size\":%lu,\"n\":%u,\"variant\":\"%s\",\"seconds\":%."
		       "9f,\"cpu_seconds\":%.6f}\n",
		    b->wanted.requests ? "requests" : "notifications", size, n, word,
		    (double)wall / 1e9, (double)cpu / 1e9);
		fflush(stdout);
	}
	stop(b);
	return 0;
}

static void
quick_figure(struct bench *b, const char *name, enum variant variant, size_t size)
{
	const unsigned n = 20;
	char title[64];
	uint64_t wall = rvp_now_ns();

	run(b, variant, size, n);
	snprintf(title, sizeof(title), "%s %zu %s", name, size,
	    b->wanted.requests      ? "request"
		: variant == SERIAL ? "serial"
				    : "backpressure");
	rvp_print("notifications", title, "us", (double)(rvp_now_ns() - wall) / 1e3 / n, n);
}

static bool
has_noise(void)
{
	reeve_key_t *key = NULL;
	bool yes = reeve_key_generate(&key) == 0;

	reeve_key_free(key);
	return yes;
}

static int
quick(struct bench *b)
{
	static const char *const names[] = {"raw", "plain", "noise"};
	static const size_t sizes[] = {64, 32768};

	for (unsigned i = 0; i < 3; i++) {
		if (i == 2 && !has_noise())
			continue;
		b->carrier = i == 0 ? &rvp_carrier_raw : &rvp_carrier_nodes;
		b->wanted.security = i == 2 ? REEVE_NOISE : REEVE_PLAINTEXT;
		for (int requests = 0; requests < 2; requests++) {
			b->wanted.requests = requests != 0;
			start(b);
			for (unsigned s = 0; s < 2; s++) {
				quick_figure(b, names[i], SERIAL, sizes[s]);
				if (!requests)
					quick_figure(b, names[i], BACKPRESSURE, sizes[s]);
			}
			stop(b);
		}
	}
	return 0;
}

static int
usage(void)
{
	fputs(
	    "usage: notifications [--bench notifications|requests] [--security "
	    "noise|plaintext|none] [--raw] [--lazy]\n"
	    "                     [--callbacks] [--workers N] [--timeout-ms N] [--pin] | --quick\n",
	    stderr);
	return 2;
}

int
main(int argc, char **argv)
{
	static struct bench b = {.carrier = &rvp_carrier_nodes,
	    .wanted = {.security = REEVE_NOISE, .workers = 1, .timeout_ms = 2000}};
	bool short_run = false;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(word, "--raw") == 0) {
			b.carrier = &rvp_carrier_raw;
			continue;
		}
		if (strcmp(word, "--callbacks") == 0) {
			b.carrier = &rvp_carrier_calls;
			b.wanted.callbacks = true;
			continue;
		}
		if (strcmp(word, "--pin") == 0) {
			b.wanted.pin = true;
			continue;
		}
		if (strcmp(word, "--lazy") == 0 || strcmp(word, "--quick") == 0) {
			b.wanted.lazy = b.wanted.lazy || word[2] == 'l';
			short_run = short_run || word[2] == 'q';
			continue;
		}
		i++;
		if (strcmp(word, "--bench") == 0 && strcmp(value, "requests") == 0)
			b.wanted.requests = true;
		else if (strcmp(word, "--bench") == 0 && strcmp(value, "notifications") == 0)
			b.wanted.requests = false;
		else if (strcmp(word, "--security") == 0 && strcmp(value, "noise") == 0)
			b.wanted.security = REEVE_NOISE;
		else if (strcmp(word, "--security") == 0 &&
		    (strcmp(value, "plaintext") == 0 || strcmp(value, "none") == 0))
			b.wanted.security = REEVE_PLAINTEXT;
		else if (strcmp(word, "--workers") == 0 && atoi(value) > 0)
			b.wanted.workers = (unsigned)atoi(value);
		else if (strcmp(word, "--timeout-ms") == 0 && atoi(value) > 0)
			b.wanted.timeout_ms = atoi(value);
		else
			return usage();
	}
	return short_run ? quick(&b) : serve(&b);
}
