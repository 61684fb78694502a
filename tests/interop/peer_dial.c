/* peer_dial.c - the dialing side of our interop peer: one case per process.  A case that fails
 * says why and leaves the process, so only the way of success cleans up. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

reeve_stream_t *
peer_start(reeve_ctl_t *k, uint8_t what, const void *request, size_t n)
{
	reeve_stream_t *s;

	peer_must(reeve_open(k, &s, CALL_MS), "open");
	reeve_deadline(s, REEVE_RD | REEVE_WR, CALL_MS);
	peer_must(peer_write(s, &what, 1), "write");
	if (n > 0)
		peer_must(peer_write(s, request, n), "write");
	return s;
}

void
peer_expect(reeve_stream_t *s, const void *p, size_t n, const char *what)
{
	uint8_t *got = malloc(n + 1), over;

	peer_check(got != NULL, "out of memory");
	peer_must(peer_read(s, got, n), what);
	peer_check(memcmp(got, p, n) == 0, what);
	peer_check(reeve_read(s, &over, 1) == 0, what);
	free(got);
	reeve_close(s);
}

void
peer_echo(reeve_ctl_t *k, const uint8_t *payload, size_t n)
{
	reeve_stream_t *s = peer_start(k, PEER_ECHO, payload, n);

	peer_must(reeve_shut(s), "shut");
	peer_expect(s, payload, n, "the echo differs");
}

int
peer_echoes(reeve_stream_t *s, const uint8_t *payload, size_t n)
{
	uint8_t *got = malloc(n);
	int rc;

	peer_check(got != NULL, "out of memory");
	if ((rc = peer_write(s, payload, n)) == 0 && (rc = peer_read(s, got, n)) == 0)
		peer_check(memcmp(got, payload, n) == 0, "the echo differs");
	free(got);
	return rc;
}

uint8_t *
peer_payload(size_t n)
{
	uint8_t *payload = malloc(n + 1);
	struct peer_gen g;

	peer_check(payload != NULL, "out of memory");
	peer_gen_init(&g);
	peer_gen_fill(&g, payload, n);
	return payload;
}

void
peer_sink_end(reeve_stream_t *s, struct sha256 *sum, uint8_t reply[40])
{
	uint64_t total = sum->total;

	peer_must(reeve_shut(s), "shut");
	sha256_end(sum, reply);
	peer_put64(reply + 32, total);
	peer_expect(s, reply, 40, "the peer's digest or length differs");
}

int
peer_is_mplex(const struct peer_link *l)
{
	return l->o->cfg.proto == REEVE_MPLEX;
}

void
peer_new_token(uint8_t token[8])
{
	peer_put64(token, peer_now_ns() ^ (uint64_t)getpid() << 32);
}

void
peer_query(reeve_ctl_t *k, const uint8_t token[8], uint8_t *kind, uint64_t *total)
{
	reeve_stream_t *s = peer_start(k, PEER_QUERY, token, 8);
	uint8_t answer[9];

	peer_must(reeve_shut(s), "shut");
	peer_must(peer_read(s, answer, sizeof(answer)), "query");
	reeve_close(s);
	*kind = answer[0];
	*total = peer_get64(answer + 1);
}

unsigned
peer_few_open(reeve_ctl_t *k)
{
	uint64_t from = peer_now_ns(), n;
	uint8_t answer[8];
	reeve_stream_t *s;

	for (;;) {
		s = peer_start(k, PEER_OPEN, NULL, 0);
		peer_must(reeve_shut(s), "shut");
		peer_must(peer_read(s, answer, sizeof(answer)), "open streams");
		reeve_close(s);
		n = peer_get64(answer);
		if (n <= 4)
			return (unsigned)n;
		peer_check(
		    peer_now_ns() - from < 5 * PEER_SECOND, "streams stay open at the other side");
		peer_nap_ms(50);
	}
}

/* What the threads of peer_together share. */
struct team {
	pthread_mutex_t lock;
	unsigned next, count; /* next under lock */
	struct peer_link *l;
	void (*task)(struct peer_link *l, void *arg, unsigned i);
	void *arg;
};

static void *
member(void *arg)
{
	struct team *team = arg;
	unsigned i;

	for (;;) {
		pthread_mutex_lock(&team->lock);
		i = team->next++;
		pthread_mutex_unlock(&team->lock);
		if (i >= team->count)
			return NULL;
		team->task(team->l, team->arg, i);
	}
}

void
peer_together(struct peer_link *l, unsigned count, unsigned threads,
    void (*task)(struct peer_link *l, void *arg, unsigned i), void *arg)
{
	struct team team = {PTHREAD_MUTEX_INITIALIZER, 0, count, l, task, arg};
	pthread_t *thread = calloc(threads, sizeof(*thread));
	unsigned i;

	peer_check(thread != NULL, "out of memory");
	for (i = 0; i < threads; i++)
		peer_check(pthread_create(&thread[i], NULL, member, &team) == 0, "no thread");
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

static const struct {
	const char *name;
	int numbers;
	void (*run)(struct peer_link *l, const uint64_t *numbers, char *out);
} cases[] = {
    {"fetch", 1, peer_fetch},
    {"single", 1, peer_single},
    {"short", 1, peer_short},
    {"first", 0, peer_first},
    {"silent", 1, peer_silent},
    {"half", 0, peer_half},
    {"reset", 0, peer_reset},
    {"resets", 0, peer_resets},
    {"reply", 0, peer_reply},
    {"pings", 1, peer_pings},
    {"cross", 2, peer_cross},
    {"opens", 1, peer_opens},
    {"hold", 1, peer_hold},
    {"slow", 1, peer_slow},
    {"names", 0, peer_names},
};

static void
run_case(struct peer_link *l, int n, char **words, char *out)
{
	uint64_t numbers[2] = {0, 0};
	size_t i;
	int k;

	if (n == 2 && strcmp(words[0], "file") == 0) {
		peer_file(l, words[1], out);
	} else if (n == 2 && strcmp(words[0], "goaway") == 0 && strcmp(words[1], "theirs") == 0) {
		peer_goaway_theirs(l, out);
	} else if (n == 2 && strcmp(words[0], "goaway") == 0 && strcmp(words[1], "ours") == 0) {
		peer_goaway_ours(l, out);
	} else if (n == 4 && strcmp(words[0], "bench") == 0) {
		peer_bench(l->k, words + 1, out);
	} else {
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			if (strcmp(cases[i].name, words[0]) == 0 && cases[i].numbers == n - 1)
				break;
		peer_check(i < sizeof(cases) / sizeof(cases[0]), "no such case, see README.md");
		for (k = 0; k < n - 1; k++)
			numbers[k] = strtoull(words[k + 1], NULL, 10);
		cases[i].run(l, numbers, out);
	}
}

void
peer_case(struct peer_link *l)
{
	char **words = (char **)l->o->words + 2;
	uint64_t from = peer_now_ns();
	char out[OUT_SIZE] = "";

	run_case(l, l->o->n - 2, words, out);
	printf("{\"peer\":\"reeve\",\"case\":\"%s\",\"ms\":%llu,%s}\n", words[0],
	    (unsigned long long)((peer_now_ns() - from) / 1000000), out);
}
