/* peer_reset.c - the cases about resets, from either side and in every state of a stream. */
#include <config.h>

#include "tests/interop/peer_dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The error of a call on a stream is their reset, and the reason says so; returns its code. */
static uint32_t
their_reset(reeve_stream_t *s, int rc)
{
	reeve_reason_t reason = {.size = sizeof(reason)};

	peer_check(rc < 0, "the peer's reset never arrived");
	/* A reset that is the peer's first answer is a refusal. */
	if (rc != REEVE_ERESET && rc != REEVE_EREFUSED)
		peer_must(rc, "not a reset");
	peer_must(reeve_stream_reason(s, &reason), "reason");
	peer_check(
	    reason.rc == rc && reason.by == REEVE_BY_PEER, "the reason is not the peer's reset");
	return reason.wire_code;
}

/* Their reset reaches us: writing fails in the end, for the reason that is true. */
static uint32_t
until_reset(reeve_stream_t *s)
{
	uint64_t from = peer_now_ns();
	int rc;

	while ((rc = peer_write(s, "x", 1)) == 0 && peer_now_ns() - from < 10 * PEER_SECOND)
		peer_nap_ms(10);
	return their_reset(s, rc);
}

/* Ours reaches them: the stream is watched. */
static void
was_reset(reeve_ctl_t *k, const uint8_t token[8])
{
	uint64_t total;
	uint8_t kind;

	peer_query(k, token, &kind, &total);
	peer_check(kind == PEER_WAS_RESET, "the peer did not see our reset");
}

/* Libraries of mplex forget a stream at its end: what they note then is for the caller of this program to judge. */
static uint8_t after_end;

static void
reset_opened(reeve_ctl_t *k)
{
	reeve_stream_t *s;
	uint64_t us;
	int told;

	for (told = 0; told < 2; told++) {
		peer_must(reeve_open(k, &s, CALL_MS), "open");
		if (told && reeve_proto(k) == REEVE_YAMUX) /* the answer comes behind the SYN */
			peer_must(reeve_ping(k, 10000, &us), "ping");
		else if (told)
			peer_echo(k, (const uint8_t *)"told", 4);
		peer_must(reeve_reset(s, 7), "reset");
		reeve_close(s);
	}
}

static void
reset_written(reeve_ctl_t *k)
{
	uint8_t *payload = peer_payload(1000);
	reeve_stream_t *s = peer_start(k, PEER_ECHO, payload, 1000);

	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
	free(payload);
}

static void
reset_answered(reeve_ctl_t *k)
{
	uint8_t token[8], ready;
	reeve_stream_t *s;

	peer_new_token(token);
	s = peer_start(k, PEER_WATCH, token, sizeof(token));
	peer_must(peer_read(s, &ready, 1), "watch");
	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
	was_reset(k, token);
}

static void
reset_own_end(reeve_ctl_t *k)
{
	uint8_t token[8], ready[2];
	reeve_stream_t *s;
	uint64_t total;

	peer_new_token(token);
	s = peer_start(k, PEER_WATCH, token, sizeof(token));
	peer_must(reeve_shut(s), "shut");
	/* The second byte is written after our end was read. */
	peer_must(peer_read(s, ready, sizeof(ready)), "watch");
	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
	if (reeve_proto(k) == REEVE_MPLEX)
		peer_query(k, token, &after_end, &total);
	else
		was_reset(k, token);
}

static void
reset_their_end(reeve_ctl_t *k)
{
	uint8_t token[8], bye[3], over;
	reeve_stream_t *s;

	peer_new_token(token);
	s = peer_start(k, PEER_HALF, token, sizeof(token));
	peer_must(peer_read(s, bye, sizeof(bye)), "farewell");
	peer_check(reeve_read(s, &over, 1) == 0, "farewell");
	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
}

static void
reset_unread(reeve_ctl_t *k)
{
	uint8_t *payload = peer_payload(1000);
	uint64_t before = peer_bytes_in(k);
	reeve_stream_t *s = peer_start(k, PEER_ECHO, payload, 1000);

	peer_must(peer_arrived(k, before + 1000), "echo");
	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
	free(payload);
}

static void
reset_sending(reeve_ctl_t *k)
{
	uint8_t request[8], piece[4096];
	reeve_stream_t *s;

	peer_put64(request, UINT64_C(64) << 20);
	s = peer_start(k, PEER_GENERATE, request, sizeof(request));
	peer_must(reeve_shut(s), "shut");
	peer_must(peer_read(s, piece, sizeof(piece)), "fetch");
	peer_must(reeve_reset(s, 7), "reset");
	reeve_close(s);
}

/* Writes until the stream was reset: credit runs out before. */
static uint32_t
flood_until_reset(reeve_stream_t *s)
{
	uint8_t *piece = peer_payload(65536);
	int rc;

	do
		rc = (int)reeve_write(s, piece, 65536);
	while (rc > 0);
	free(piece);
	return their_reset(s, rc);
}

/* What comes before a server's reset in a state. */
static void
before_reset(reeve_stream_t *s, uint8_t state)
{
	uint8_t *payload, ready;
	uint64_t total;
	int rc;

	if (state == PEER_ANSWERED) {
		peer_must(peer_read(s, &ready, 1), "the answer before a reset");
	} else if (state == PEER_THEIR_END) {
		peer_must(reeve_shut(s), "shut");
	} else if (state == PEER_OWN_END) {
		peer_must(peer_drain(s, NULL, &total), "the end before a reset");
		if ((rc = peer_write(s, "x", 1)) < 0)
			their_reset(s, rc);
	} else if (state == PEER_UNREAD) {
		/* Who resets does not wait for all of it. */
		payload = peer_payload(1000);
		if ((rc = peer_write(s, payload, 1000)) < 0)
			their_reset(s, rc);
		free(payload);
	}
}

/* A library that cannot reset behind an end, of its own or of ours, notes an end. */
static void
theirs_in(reeve_ctl_t *k, uint8_t state)
{
	uint8_t request[9], kind;
	uint64_t total;
	reeve_stream_t *s;
	int rc;

	peer_new_token(request);
	request[8] = state;
	s = peer_start(k, PEER_STATE, request, sizeof(request));
	before_reset(s, state);
	if (state == PEER_WRITTEN)
		flood_until_reset(s);
	else if (state != PEER_THEIR_END && state != PEER_OWN_END)
		until_reset(s);
	peer_query(k, request, &kind, &total);
	if (state == PEER_THEIR_END && (rc = peer_drain(s, NULL, &total)) < 0)
		their_reset(s, rc);
	else if (state == PEER_THEIR_END)
		peer_check(kind == PEER_ENDED, "a reset behind our end was lost");
	else if (state == PEER_OWN_END && kind == PEER_WAS_RESET)
		until_reset(s);
	peer_check(kind == PEER_WAS_RESET ||
		(kind == PEER_ENDED && (state == PEER_THEIR_END || state == PEER_OWN_END)),
	    "the server noted another end");
	reeve_close(s);
}

void
peer_reset(struct peer_link *l, const uint64_t *numbers, char *out)
{
	reeve_stream_t *s = peer_start(l->k, PEER_RESET, "x", 1);
	uint64_t from = peer_now_ns(), ms;
	uint32_t code = until_reset(s);

	(void)numbers;
	ms = (peer_now_ns() - from) / 1000000;
	reeve_close(s);
	reset_answered(l->k);
	peer_echo(l->k, (const uint8_t *)"alive", 5);
	snprintf(out, OUT_SIZE, "\"heard_ms\":%llu,\"code\":%u", (unsigned long long)ms, code);
}

/* Every state, ours and theirs; the line on standard error of a failure has no number, so each
 * is announced there. */
void
peer_resets(struct peer_link *l, const uint64_t *numbers, char *out)
{
	static void (*const ours[])(reeve_ctl_t * k) = {reset_opened, reset_written, reset_answered,
	    reset_own_end, reset_their_end, reset_unread, reset_sending};
	const int n = (int)(sizeof(ours) / sizeof(ours[0]));
	struct peer_link own = *l;
	int i;

	(void)numbers;
	for (i = 0; i < n + PEER_STATES; i++) {
		fprintf(stderr, "%s reset, state %d\n", i < n ? "our" : "their", i < n ? i : i - n);
		if (l->o->apart)
			peer_connect(&own, l->rt, l->o);
		if (i < n)
			ours[i](own.k);
		else
			theirs_in(own.k, (uint8_t)(i - n));
		peer_echo(own.k, (const uint8_t *)"alive", 5);
		if (l->o->apart)
			reeve_conn_destroy(own.conn);
	}
	snprintf(out, OUT_SIZE, "\"left\":%u", peer_few_open(l->k));
	if (after_end != 0)
		snprintf(
		    out + strlen(out), OUT_SIZE - strlen(out), ",\"after_end\":\"%c\"", after_end);
}

/* All bytes of a hasty answer arrive, whatever comes behind them. */
void
peer_reply(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint8_t request[8], over;
	reeve_stream_t *s;
	reeve_ssize rc;

	(void)numbers;
	peer_put64(request, PAYLOAD);
	s = peer_start(l->k, PEER_ABRUPT, request, sizeof(request));
	peer_must(peer_read_generated(s, PAYLOAD), "the bytes before a reset");
	rc = reeve_read(s, &over, 1);
	if (rc == 0)
		until_reset(s);
	else
		their_reset(s, (int)rc);
	reeve_close(s);
	peer_echo(l->k, (const uint8_t *)"alive", 5);
	snprintf(out, OUT_SIZE, "\"bytes\":%d,\"end\":\"%s\"", PAYLOAD, rc == 0 ? "FIN" : "RST");
}

/* The server does not read for so many milliseconds, which holds up every stream, until its library has enough and
 * resets that one; the others go on. */
void
peer_slow(struct peer_link *l, const uint64_t *numbers, char *out)
{
	uint8_t *payload = peer_payload(PAYLOAD), request[16], kind;
	reeve_stream_t *other, *s;
	uint64_t from, ms, total;

	if (!peer_is_mplex(l))
		peer_absent("a slow reader of yamux holds up nobody");
	other = peer_start(l->k, PEER_ECHO, NULL, 0);
	peer_must(peer_echoes(other, payload, 1000), "echo");
	peer_new_token(request);
	peer_put64(request + 8, numbers[0]);
	s = peer_start(l->k, PEER_LAZY, request, sizeof(request));
	peer_must(peer_read(s, &kind, 1), "the answer before the silence");
	from = peer_now_ns();
	flood_until_reset(s);
	ms = (peer_now_ns() - from) / 1000000;
	peer_check(ms < numbers[0], "the slow reader was not reset while it was slow");
	peer_must(peer_echoes(other, payload, PAYLOAD), "echo beside a slow reader");
	peer_must(reeve_shut(other), "shut");
	peer_expect(other, "", 0, "the end of the echo");
	peer_echo(l->k, payload, PAYLOAD);
	peer_query(l->k, request, &kind, &total);
	peer_check(kind == PEER_WAS_RESET, "the slow reader saw an end");
	reeve_close(s);
	free(payload);
	snprintf(out, OUT_SIZE, "\"held_ms\":%llu,\"read\":%llu", (unsigned long long)ms,
	    (unsigned long long)total);
}
