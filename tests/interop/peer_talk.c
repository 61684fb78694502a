/* peer_talk.c - the cases about who speaks and who ends first, and the end of a connection. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The SYN leaves although nothing is written: the other side speaks first. */
void
peer_first(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint8_t *payload = peer_payload(1000), hello[5];
	reeve_stream_t *s = peer_start(l->k, PEER_PRIMER, NULL, 0);

	(void)numbers;
	peer_must(reeve_shut(s), "shut");
	peer_expect(s, "k", 1, "primer");
	peer_must(reeve_open(l->k, &s, CALL_MS), "open");
	reeve_deadline(s, REEVE_RD | REEVE_WR, 10000);
	peer_must(peer_read(s, hello, sizeof(hello)), "greeting");
	peer_check(memcmp(hello, "hello", 5) == 0, "the greeting differs");
	peer_must(peer_write(s, "E", 1), "write");
	peer_must(peer_echoes(s, payload, 1000), "echo");
	peer_must(reeve_shut(s), "shut");
	peer_expect(s, "", 0, "the end of the echo");
	free(payload);
	snprintf(out, OUT_SIZE, "\"bytes\":1000");
}

void
peer_silent(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint64_t i, total, count = numbers[0] * 10;
	uint8_t token[8], kind;
	reeve_stream_t *s;

	peer_new_token(token);
	s = peer_start(l->k, PEER_SILENT, token, sizeof(token));
	for (i = 0; i < count; i++) {
		peer_must(peer_write(s, "x", 1), "write");
		peer_nap_ms(100);
	}
	peer_must(reeve_shut(s), "shut");
	peer_expect(s, "", 0, "the end of a silent stream");
	peer_query(l->k, token, &kind, &total);
	peer_check(kind == PEER_ENDED && total == count, "bytes to a silent server were lost");
	peer_echo(l->k, (const uint8_t *)"alive", 5);
	snprintf(out, OUT_SIZE, "\"bytes\":%llu", (unsigned long long)count);
}

/* Their end first: they read on, and everything that we write after it arrives. */
static void
half_theirs(reeve_ctl_t *k, const uint8_t *payload)
{
	uint8_t token[8], bye[3], over, kind;
	reeve_stream_t *s;
	uint64_t total;

	peer_new_token(token);
	s = peer_start(k, PEER_HALF, token, sizeof(token));
	peer_must(peer_read(s, bye, sizeof(bye)), "farewell");
	peer_check(memcmp(bye, "bye", 3) == 0 && reeve_read(s, &over, 1) == 0, "farewell");
	peer_must(peer_write(s, payload, PAYLOAD), "write after the peer's end");
	reeve_close(s);
	peer_query(k, token, &kind, &total);
	peer_check(kind == PEER_ENDED && total == PAYLOAD, "bytes after the peer's end were lost");
}

/* A clean end is not taken for a reset: the control of the reset case. */
static void
half_control(reeve_ctl_t *k)
{
	uint8_t token[8], kind, first = 0;
	reeve_stream_t *s;
	uint64_t total;

	peer_new_token(token);
	s = peer_start(k, PEER_WATCH, token, sizeof(token));
	peer_must(reeve_shut(s), "shut");
	peer_must(peer_read(s, &first, 1), "watch");
	peer_must(peer_drain(s, NULL, &total), "watch");
	reeve_close(s);
	peer_query(k, token, &kind, &total);
	peer_check(first == 'k' && kind == PEER_ENDED, "a clean end was seen as something else");
}

void
peer_half(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint8_t *payload = peer_payload(PAYLOAD), reply[40];
	reeve_stream_t *s;
	struct sha256 sum;

	(void)numbers;
	sha256_init(&sum);
	sha256_add(&sum, payload, PAYLOAD);
	s = peer_start(l->k, PEER_SINK, payload, PAYLOAD);
	peer_sink_end(s, &sum, reply);
	peer_echo(l->k, payload, PAYLOAD);
	half_theirs(l->k, payload);
	half_control(l->k);
	free(payload);
	snprintf(out, OUT_SIZE, "\"bytes\":%d", PAYLOAD);
}

/* Opens until that fails, for five seconds at most; returns why it failed. */
static int
open_until_refused(reeve_ctl_t *k)
{
	uint64_t from = peer_now_ns();
	reeve_stream_t *s;
	int rc;

	while ((rc = reeve_open(k, &s, CALL_MS)) == 0) {
		reeve_close(s);
		peer_check(peer_now_ns() - from < 5 * PEER_SECOND,
		    "streams can be opened five seconds after the other side's GO_AWAY");
		peer_nap_ms(5);
	}
	return rc;
}

/* They end: what came before can be read, no stream can be opened; whether those that there are
 * go on is theirs to decide. */
void
peer_goaway_theirs(struct peer_link *l, char *out)
{
	enum { N = 3, BYTES = 10000 };
	uint8_t *payload = peer_payload(BYTES), *got = malloc(BYTES);
	reeve_stream_t *s[N], *end;
	uint64_t before;
	int i, rc;

	if (peer_is_mplex(l))
		peer_absent("mplex has no GO_AWAY");
	for (i = 0; i < N; i++) {
		s[i] = peer_start(l->k, PEER_ECHO, NULL, 0);
		peer_must(peer_echoes(s[i], payload, BYTES), "echo");
	}
	before = peer_bytes_in(l->k);
	peer_must(peer_write(s[N - 1], payload, BYTES), "write");
	peer_must(peer_arrived(l->k, before + BYTES), "echo before GO_AWAY");
	end = peer_start(l->k, PEER_GOAWAY, "g", 1);
	rc = open_until_refused(l->k);
	if (rc != REEVE_EGOAWAY && rc != REEVE_EEND)
		peer_must(rc, "open after GO_AWAY");
	peer_must(peer_read(s[N - 1], got, BYTES), "bytes that came before GO_AWAY");
	peer_check(memcmp(got, payload, BYTES) == 0, "bytes that came before GO_AWAY");
	l->over = peer_echoes(s[0], payload, BYTES) != 0;
	for (i = 0; i < N; i++)
		reeve_close(s[i]);
	reeve_close(end);
	free(payload);
	free(got);
	snprintf(out, OUT_SIZE, "\"streams\":\"%s\",\"open\":\"%s\"", l->over ? "over" : "on",
	    reeve_errname(rc));
}

/* We end gracefully with streams open: all that was written arrives. */
void
peer_goaway_ours(struct peer_link *l, char *out)
{
	uint8_t *payload = peer_payload(PAYLOAD), token[8], kind;
	struct peer_link again;
	reeve_stream_t *s;
	uint64_t total;

	peer_new_token(token);
	s = peer_start(l->k, PEER_SILENT, token, sizeof(token));
	peer_must(peer_write(s, payload, PAYLOAD), "write");
	peer_must(reeve_conn_close(l->conn, 5000), "close with a stream open");
	reeve_close(s);
	peer_connect(&again, l->rt, l->o);
	peer_query(again.k, token, &kind, &total);
	peer_check(kind == PEER_ENDED && total == PAYLOAD, "bytes before the close were lost");
	peer_must(reeve_conn_close(again.conn, 5000), "close");
	reeve_conn_destroy(again.conn);
	free(payload);
	snprintf(out, OUT_SIZE, "\"bytes\":%d", PAYLOAD);
}

/* Waits for the end of the connection, which has a reason. */
void
peer_hold(struct peer_link *l, const uint64_t *numbers, char *out)
{
	reeve_reason_t reason = {.size = sizeof(reason)};
	unsigned i, n = (unsigned)numbers[0];
	reeve_stream_t **s = calloc(n, sizeof(reeve_stream_t *));
	reeve_ssize rc = 0;
	uint8_t byte;

	peer_check(s != NULL && n > 0, "hold N");
	for (i = 0; i < n; i++) {
		s[i] = peer_start(l->k, PEER_ECHO, NULL, 0);
		peer_must(peer_echoes(s[i], (const uint8_t *)"x", 1), "echo");
		reeve_deadline(s[i], REEVE_RD, -1);
	}
	puts("holding");
	fflush(stdout);
	for (i = 0; i < n; i++) {
		rc = reeve_read(s[i], &byte, 1);
		peer_check(rc < 0, "a stream ended cleanly when the connection was cut");
		reeve_close(s[i]);
	}
	free(s);
	l->over = 1;
	peer_must(reeve_ctl_reason(l->k, &reason), "reason");
	peer_check(reason.rc != 0 && reason.by != REEVE_BY_US, "the reason is not the cut");
	snprintf(out, OUT_SIZE, "\"reason\":\"%s\"", reeve_errname((int)rc));
}

void
peer_names(struct peer_link *l, const uint64_t *numbers, char *out)
{
	(void)l;
	(void)numbers;
	(void)out;
	peer_absent("this library names no stream");
}
