/* reeve_node_notify.c - a notification protocol of our node: its commands, and what is told of it.  A thread takes the events
 * one by one, so that `pause` leaves them where they are. */
#include <config.h>

#include "tests/interop/reeve_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 20 /* how soon the taker sees that it is to pause */

/* What came of a peer, since `expect` or from the first. */
struct receipt {
	struct receipt *next;
	char peer[REEVE_PEER_TEXT];
	uint64_t since; /* microseconds */
	struct node_tally tally;
	bool expects, differs;
	uint64_t expected, seed, differs_at;
	struct node_size size;
	uint64_t ticket; /* of the latest question */
};

struct node_notify {
	struct node_proto o;
	reeve_notif_t *p;
	pthread_mutex_t lock; /* everything below */
	pthread_cond_t cond;
	const char *validate;
	bool paused, resting; /* asked to pause, and done */
	struct receipt *receipts;
};

/* Notifications to be sent. */
struct job {
	struct node_notify *y;
	reeve_sink_t *sink;
	char peer[REEVE_PEER_TEXT];
	uint64_t first, count, seed; /* count 0: as many as are taken */
	struct node_size size;
};

static void
forget(struct receipt *r)
{
	r->since = node_us();
	node_tally_init(&r->tally);
	r->expects = r->differs = false;
}

/* Under the lock. */
static struct receipt *
receipt(struct node_notify *y, const char *peer)
{
	struct receipt *r;

	for (r = y->receipts; r != NULL; r = r->next)
		if (strcmp(r->peer, peer) == 0)
			return r;
	r = calloc(1, sizeof(*r));
	node_must(r != NULL, "out of memory", "a receipt");
	strncpy(r->peer, peer, sizeof(r->peer) - 1);
	forget(r);
	r->next = y->receipts;
	y->receipts = r;
	return r;
}

static void
tell(const struct node_notify *y, const struct receipt *r, const char *word)
{
	char sum[65], result[40] = "ok";

	node_tally_digest(&r->tally, sum);
	if (r->differs)
		snprintf(result, sizeof(result), "differs:%llu", (unsigned long long)r->differs_at);
	else if (r->expects && r->tally.count != r->expected)
		strcpy(result, r->tally.count < r->expected ? "short" : "more");
	node_say("%s peer=%s protocol=%s count=%llu bytes=%llu result=%s sha256=%s us=%llu", word,
	    r->peer, y->o.names[0], (unsigned long long)r->tally.count,
	    (unsigned long long)r->tally.bytes, result, sum,
	    (unsigned long long)(node_us() - r->since));
}

/* ---- what comes */

static void
received(struct node_notify *y, const reeve_notif_event_t *ev)
{
	struct receipt *r = receipt(y, ev->peer);
	uint64_t index = r->tally.count;

	node_tally_add(&r->tally, ev->data);
	if (!r->expects)
		return;
	if (!r->differs && !node_is_message(ev->data, r->seed, index, r->size)) {
		r->differs = true;
		r->differs_at = index;
	}
	if (r->tally.count == r->expected)
		tell(y, r, "received");
}

static void
asked(struct node_notify *y, const reeve_notif_event_t *ev, const char *handshake)
{
	receipt(y, ev->peer)->ticket = ev->ticket;
	node_say("validate peer=%s protocol=%s fallback=%s handshake=%s", ev->peer, y->o.names[0],
	    node_fallback(&y->o, ev->name), handshake);
	if (strcmp(y->validate, "never") != 0)
		(void)reeve_notif_answer(y->p, ev->ticket, strcmp(y->validate, "accept") == 0);
}

static void
ended(struct node_notify *y, const reeve_notif_event_t *ev)
{
	struct receipt *r = receipt(y, ev->peer);
	char reason[NODE_REASON];

	if (r->expects && r->tally.count < r->expected)
		tell(y, r, "received");
	node_say("closed peer=%s protocol=%s reason=%s lost=%llu", ev->peer, y->o.names[0],
	    node_reason(reason, ev->reason.rc, NODE_END), (unsigned long long)ev->lost);
}

static void
event(struct node_notify *y, const reeve_notif_event_t *ev)
{
	char reason[NODE_REASON];
	char *handshake = NULL;

	if (ev->type == REEVE_NOTIF_VALIDATE || ev->type == REEVE_NOTIF_OPENED)
		handshake = node_hex(
		    ev->data != NULL ? reeve_buf_data(ev->data) : NULL, node_len(ev->data));
	if (ev->type == REEVE_NOTIF_RECEIVED)
		received(y, ev);
	else if (ev->type == REEVE_NOTIF_VALIDATE)
		asked(y, ev, handshake);
	else if (ev->type == REEVE_NOTIF_OPENED)
		node_say("opened peer=%s protocol=%s fallback=%s direction=%s handshake=%s",
		    ev->peer, y->o.names[0], node_fallback(&y->o, ev->name),
		    ev->dir == REEVE_DIALER ? "out" : "in", handshake);
	else if (ev->type == REEVE_NOTIF_FAILED)
		node_say("open-failed peer=%s protocol=%s reason=%s", ev->peer, y->o.names[0],
		    node_reason(reason, ev->reason.rc, NODE_OPEN));
	else
		ended(y, ev);
	free(handshake);
}

static void *
take(void *arg)
{
	struct node_notify *y = arg;
	reeve_notif_event_t ev;
	int rc;

	do {
		pthread_mutex_lock(&y->lock);
		y->resting = y->paused;
		pthread_cond_broadcast(&y->cond);
		while (y->paused)
			pthread_cond_wait(&y->cond, &y->lock);
		y->resting = false;
		pthread_mutex_unlock(&y->lock);
		rc = reeve_notif_next(y->p, &ev, LOOK_MS);
		if (rc != 0)
			continue;
		pthread_mutex_lock(&y->lock);
		event(y, &ev);
		pthread_mutex_unlock(&y->lock);
		reeve_notif_release(y->p, &ev);
	} while (rc == 0 || rc == REEVE_ETIMEDOUT);
	return NULL;
}

struct node_notify *
node_notify_begin(reeve_node_t *n, const struct node_proto *o)
{
	struct node_notify *y = calloc(1, sizeof(*y));
	reeve_notif_cfg_t cfg;
	int rc;

	node_must(y != NULL, "out of memory", "a protocol");
	y->o = *o;
	y->validate = o->validate;
	pthread_mutex_init(&y->lock, NULL);
	pthread_cond_init(&y->cond, NULL);
	reeve_notif_cfg_init(&cfg);
	cfg.names = (const char *const *)y->o.names;
	cfg.nnames = o->nnames;
	cfg.handshake = o->handshake;
	cfg.handshake_len = o->handshake_len;
	cfg.max_size = o->max_size;
	cfg.flags = o->auto_accept ? REEVE_NOTIF_AUTO_ACCEPT : 0;
	rc = reeve_notif_install(&y->p, n, &cfg);
	node_must(rc == 0, o->names[0], reeve_errname(rc));
	node_begin(take, y);
	return y;
}

void
node_notify_free(struct node_notify *y)
{
	struct receipt *r;

	if (y == NULL)
		return;
	while ((r = y->receipts) != NULL) {
		y->receipts = r->next;
		free(r);
	}
	pthread_mutex_destroy(&y->lock);
	pthread_cond_destroy(&y->cond);
	free(y);
}

/* ---- sending */

static void
tell_sent(const struct job *j, const struct node_tally *tally, const char *result, uint64_t since)
{
	char sum[65];

	node_tally_digest(tally, sum);
	node_say("sent peer=%s protocol=%s count=%llu bytes=%llu result=%s sha256=%s us=%llu",
	    j->peer, j->y->o.names[0], (unsigned long long)tally->count,
	    (unsigned long long)tally->bytes, result, sum, (unsigned long long)(node_us() - since));
}

/* Sends until all is sent or one is not taken. */
static void
send_all(struct job *j, bool waits)
{
	struct node_tally tally, before;
	const char *result = "ok";
	uint64_t since = node_us();
	reeve_buf_t *b;
	int rc;

	node_tally_init(&tally);
	while ((j->count == 0 && !waits) || tally.count < j->count) {
		b = node_message(j->y->o.rt, j->seed, j->first + tally.count, j->size);
		before = tally;
		node_tally_add(&tally, b);
		rc = waits ? reeve_sink_send(j->sink, b, -1) : reeve_sink_try_send(j->sink, b);
		if (rc == 0)
			continue;
		tally = before;
		result = rc == REEVE_ECLOGGED ? "clogged"
		    : rc == REEVE_ETOOBIG     ? "too-large"
					      : "closed";
		break;
	}
	tell_sent(j, &tally, result, since);
	reeve_sink_unref(j->sink);
	free(j);
}

static void *
send_job(void *arg)
{
	send_all(arg, true);
	return NULL;
}

static void
send_command(struct node_notify *y, const struct node_command *c, bool waits)
{
	struct job *j = calloc(1, sizeof(*j));

	node_must(j != NULL, "out of memory", "a job");
	j->y = y;
	strncpy(j->peer, node_arg(c, 0), sizeof(j->peer) - 1);
	if (!node_number(node_arg(c, 1), &j->count) || !node_size(node_arg(c, 2), &j->size) ||
	    !node_number(node_arg(c, 3), &j->seed) ||
	    !node_number(node_key(c, "first", "0"), &j->first)) {
		node_fail(c, "not valid");
		free(j);
		return;
	}
	j->sink = reeve_notif_sink(y->p, j->peer);
	if (j->sink == NULL) {
		node_fail(c, "not open");
		free(j);
	} else if (waits) {
		node_begin(send_job, j);
	} else {
		send_all(j, false);
	}
}

/* ---- commands */

static void
expect(struct node_notify *y, const struct node_command *c)
{
	uint64_t count, seed;
	struct node_size size;
	struct receipt *r;

	if (!node_number(node_arg(c, 1), &count) || !node_size(node_arg(c, 2), &size) ||
	    !node_number(node_arg(c, 3), &seed)) {
		node_fail(c, "not valid");
		return;
	}
	pthread_mutex_lock(&y->lock);
	r = receipt(y, node_arg(c, 0));
	forget(r);
	r->expects = true;
	r->expected = count;
	r->size = size;
	r->seed = seed;
	node_say("ok expect");
	pthread_mutex_unlock(&y->lock);
}

static void
set_handshake(struct node_notify *y, const struct node_command *c)
{
	uint8_t *bytes;
	size_t n;
	int rc = REEVE_EINVAL;

	if (node_unhex(node_arg(c, 0), &bytes, &n)) {
		rc = reeve_notif_set_handshake(y->p, bytes, n);
		free(bytes);
	}
	if (rc == 0)
		node_say("ok set-handshake");
	else
		node_fail(c, reeve_strerror(rc));
}

static void
validate(struct node_notify *y, const struct node_command *c)
{
	static const char *const modes[] = {"accept", "reject", "never"};

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(modes[i], node_arg(c, 0)) != 0)
			continue;
		pthread_mutex_lock(&y->lock);
		y->validate = modes[i];
		pthread_mutex_unlock(&y->lock);
		node_say("ok validate");
		return;
	}
	node_fail(c, "neither accept, reject nor never");
}

static int
answer(struct node_notify *y, const struct node_command *c)
{
	uint64_t ticket;

	pthread_mutex_lock(&y->lock);
	ticket = receipt(y, node_arg(c, 0))->ticket;
	pthread_mutex_unlock(&y->lock);
	return reeve_notif_answer(y->p, ticket, strcmp(node_arg(c, 1), "accept") == 0);
}

/* Answered once the taker rests, or has been told to go on. */
static void
pause_or_resume(struct node_notify *y, bool pause)
{
	pthread_mutex_lock(&y->lock);
	y->paused = pause;
	pthread_cond_broadcast(&y->cond);
	while (pause && !y->resting)
		pthread_cond_wait(&y->cond, &y->lock);
	pthread_mutex_unlock(&y->lock);
	node_say(pause ? "ok pause" : "ok resume");
}

static void
counts(struct node_notify *y, const struct node_command *c)
{
	pthread_mutex_lock(&y->lock);
	tell(y, receipt(y, node_arg(c, 0)), "counts");
	pthread_mutex_unlock(&y->lock);
}

static int
end_stream(struct node_notify *y, const struct node_command *c)
{
	const char *text = node_key(c, "timeout", NULL);
	uint64_t ms = 0;

	if (text != NULL && (!node_number(text, &ms) || ms > INT32_MAX))
		return REEVE_EINVAL;
	return reeve_notif_close(y->p, node_arg(c, 0), text != NULL ? (int64_t)ms : -1);
}

bool
node_notify_has(const char *word)
{
	static const char *const known[] = {"open", "close", "send", "sync-send", "expect",
	    "counts", "set-handshake", "validate", "answer", "pause", "resume"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i], word) == 0)
			return true;
	return false;
}

bool
node_notify_obey(struct node_notify *y, const struct node_command *c)
{
	int rc = 0;

	if (strcmp(c->word, "open") == 0)
		rc = reeve_notif_open(y->p, node_arg(c, 0));
	else if (strcmp(c->word, "close") == 0)
		rc = end_stream(y, c);
	else if (strcmp(c->word, "send") == 0)
		send_command(y, c, true);
	else if (strcmp(c->word, "sync-send") == 0)
		send_command(y, c, false);
	else if (strcmp(c->word, "expect") == 0)
		expect(y, c);
	else if (strcmp(c->word, "counts") == 0)
		counts(y, c);
	else if (strcmp(c->word, "set-handshake") == 0)
		set_handshake(y, c);
	else if (strcmp(c->word, "validate") == 0)
		validate(y, c);
	else if (strcmp(c->word, "answer") == 0)
		rc = answer(y, c);
	else if (strcmp(c->word, "pause") == 0 || strcmp(c->word, "resume") == 0)
		pause_or_resume(y, c->word[0] == 'p');
	else
		return false;
	if (rc < 0)
		node_fail(c, reeve_strerror(rc));
	return true;
}
