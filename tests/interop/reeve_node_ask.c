/* reeve_node_ask.c - a request-response protocol of our node: its commands, and what is told of it.  A thread takes the
 * requests that come; each command `request` has one that asks. */
#include <config.h>

#include "tests/interop/reeve_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_AT_ONCE 10000
#define REASONS      8

/* A request that came and is answered later, or never. */
struct held {
	struct held *next;
	reeve_inbound_t *in;
	uint64_t due; /* microseconds, UINT64_MAX: never */
};

struct job;

/* A request of ours. */
struct slot {
	reeve_request_t q;
	struct job *job;
	struct slot *next; /* of those that are free, or done */
	uint64_t index;
	bool under_way;
};

/* One command `request`. */
struct job {
	struct job *next; /* under the protocol's lock */
	struct node_ask *k;
	char peer[REEVE_PEER_TEXT], tag[32];
	uint64_t size, answer, count, par, seed, timeout_ms;
	bool dial;
	/* its own thread's */
	struct slot *slots, *unused;
	uint64_t since, started, under_way, differ, failed, cancelled;
	struct node_tally tally;
	const char *fallback;
	struct {
		char word[NODE_REASON];
		uint64_t count;
	} reasons[REASONS];
	/* under its lock */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct slot *done;
	bool give_up;
};

struct node_ask {
	struct node_proto o;
	reeve_reqs_t *r;
	struct held *held;    /* the taker's */
	pthread_mutex_t lock; /* everything below */
	char respond[24];
	struct node_tally asked;
	uint64_t differ, tags;
	struct job *jobs;
};

/* ---- what comes */

static void
hold(struct node_ask *k, reeve_inbound_t *in, uint64_t due)
{
	struct held *h = malloc(sizeof(*h));

	node_must(h != NULL, "out of memory", "a request");
	h->in = in;
	h->due = due;
	h->next = k->held;
	k->held = h;
}

static void
respond(struct node_ask *k, reeve_inbound_t *in)
{
	reeve_respond(in, node_response(k->o.rt, reeve_inbound_body(in)), NULL, NULL);
}

static void
asked(struct node_ask *k, reeve_inbound_t *in)
{
	reeve_buf_t *body = reeve_inbound_body(in);
	bool right = node_is_request(body);
	char mode[sizeof(k->respond)];
	uint64_t ms;

	pthread_mutex_lock(&k->lock);
	node_tally_add(&k->asked, body);
	k->differ += !right;
	memcpy(mode, k->respond, sizeof(mode));
	pthread_mutex_unlock(&k->lock);
	if (!k->o.quiet)
		node_say("request peer=%s protocol=%s fallback=%s size=%zu result=%s",
		    reeve_inbound_peer(in), k->o.names[0],
		    node_fallback(&k->o, reeve_inbound_name(in)), node_len(body),
		    right ? "ok" : "differs");
	if (strcmp(mode, "never") == 0)
		hold(k, in, UINT64_MAX);
	else if (strcmp(mode, "drop") == 0)
		reeve_refuse(in);
	else if (strncmp(mode, "later:", 6) == 0 && node_number(mode + 6, &ms))
		hold(k, in, node_us() + 1000 * ms);
	else
		respond(k, in);
}

/* Answers what is due; in milliseconds when the next one is, -1: there is none. */
static int64_t
answer_due(struct node_ask *k)
{
	struct held **at = &k->held, *h;
	uint64_t now = node_us(), next = UINT64_MAX;

	while ((h = *at) != NULL) {
		if (h->due > now) {
			next = h->due < next ? h->due : next;
			at = &h->next;
			continue;
		}
		*at = h->next;
		respond(k, h->in);
		free(h);
	}
	return next == UINT64_MAX ? -1 : (int64_t)((next - now + 999) / 1000);
}

static void *
take(void *arg)
{
	struct node_ask *k = arg;
	reeve_inbound_t *in;
	struct held *h;
	int rc;

	do {
		rc = reeve_inbound_next(k->r, &in, answer_due(k));
		if (rc == 0)
			asked(k, in);
	} while (rc == 0 || rc == REEVE_ETIMEDOUT);
	while ((h = k->held) != NULL) {
		k->held = h->next;
		reeve_refuse(h->in);
		free(h);
	}
	return NULL;
}

/* ---- asking */

static void
on_done(reeve_request_t *q)
{
	struct slot *s = q->arg;
	struct job *j = s->job;

	pthread_mutex_lock(&j->lock);
	s->under_way = false;
	s->next = j->done;
	j->done = s;
	pthread_cond_signal(&j->cond);
	pthread_mutex_unlock(&j->lock);
}

static void
ask_one(struct job *j)
{
	struct slot *s = j->unused;

	j->unused = s->next;
	memset(&s->q, 0, sizeof(s->q));
	s->q.fn = on_done;
	s->q.arg = s;
	s->q.timeout_ms = (int64_t)j->timeout_ms;
	s->q.flags = j->dial ? 0 : REEVE_REQUEST_NO_DIAL;
	s->index = j->started++;
	s->under_way = true;
	j->under_way++;
	reeve_request_async(j->k->r, j->peer,
	    node_request(j->k->o.rt, j->seed, s->index, j->size, j->answer), &s->q);
}

static void
note_failure(struct job *j, int rc)
{
	char out[NODE_REASON];
	const char *word = node_reason(out, rc, NODE_REQUEST);
	unsigned i = 0;

	j->failed++;
	while (i < REASONS - 1 && j->reasons[i].count > 0 && strcmp(j->reasons[i].word, word) != 0)
		i++;
	snprintf(j->reasons[i].word, NODE_REASON, "%s", word);
	j->reasons[i].count++;
}

static void
ended(struct job *j, struct slot *s, bool give_up)
{
	reeve_request_t *q = &s->q;

	if (q->rc == 0) {
		node_tally_add(&j->tally, q->response);
		j->fallback = node_fallback(&j->k->o, q->name);
		j->differ += !node_is_response(q->response, j->seed, s->index, j->size, j->answer);
		reeve_buf_unref(q->response);
	} else if (q->rc == REEVE_ECANCELED && give_up) {
		j->cancelled++;
	} else {
		note_failure(j, q->rc);
	}
	j->under_way--;
	s->next = j->unused;
	j->unused = s;
}

static void
tell(const struct job *j)
{
	char sum[65], reasons[REASONS * (NODE_REASON + 24)] = "-";
	size_t at = 0;

	for (unsigned i = 0; i < REASONS && j->reasons[i].count > 0; i++)
		at += (size_t)snprintf(reasons + at, sizeof(reasons) - at, "%s%s:%llu",
		    i > 0 ? "," : "", j->reasons[i].word, (unsigned long long)j->reasons[i].count);
	node_tally_digest(&j->tally, sum);
	node_say("requests tag=%s peer=%s protocol=%s fallback=%s count=%llu answered=%llu "
		 "differ=%llu failed=%llu cancelled=%llu bytes=%llu reasons=%s sha256=%s us=%llu",
	    j->tag, j->peer, j->k->o.names[0], j->fallback, (unsigned long long)j->started,
	    (unsigned long long)j->tally.count, (unsigned long long)j->differ,
	    (unsigned long long)j->failed, (unsigned long long)j->cancelled,
	    (unsigned long long)j->tally.bytes, reasons, sum,
	    (unsigned long long)(node_us() - j->since));
}

/* What has ended since, or NULL: it was given up, which is done here, once. */
static struct slot *
wait_done(struct job *j, bool *give_up)
{
	struct slot *s;

	pthread_mutex_lock(&j->lock);
	while (j->done == NULL && j->give_up == *give_up)
		pthread_cond_wait(&j->cond, &j->lock);
	s = j->done;
	if (s != NULL)
		j->done = s->next;
	if (j->give_up && !*give_up) {
		*give_up = true;
		for (uint64_t i = 0; i < j->par; i++)
			if (j->slots[i].under_way)
				reeve_request_cancel(&j->slots[i].q);
	}
	pthread_mutex_unlock(&j->lock);
	return s;
}

static void *
ask_job(void *arg)
{
	struct job *j = arg, **at;
	struct node_ask *k = j->k;
	bool give_up = false;
	struct slot *s;

	for (;;) {
		while (!give_up && j->started < j->count && j->unused != NULL)
			ask_one(j);
		if (j->under_way == 0)
			break;
		s = wait_done(j, &give_up);
		if (s != NULL)
			ended(j, s, give_up);
	}
	pthread_mutex_lock(&k->lock);
	for (at = &k->jobs; *at != j; at = &(*at)->next)
		;
	*at = j->next;
	pthread_mutex_unlock(&k->lock);
	tell(j);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->cond);
	free(j->slots);
	free(j);
	return NULL;
}

/* ---- commands */

static const char *
parse(struct job *j, const struct node_command *c)
{
	char timeout[24];

	snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long)j->k->o.timeout_ms);
	strncpy(j->peer, node_arg(c, 0), sizeof(j->peer) - 1);
	j->dial = strcmp(node_key(c, "dial", "yes"), "yes") == 0;
	if (!node_number(node_arg(c, 1), &j->size) || !node_number(node_arg(c, 2), &j->answer) ||
	    !node_number(node_arg(c, 3), &j->count) ||
	    !node_number(node_key(c, "par", "1"), &j->par) ||
	    !node_number(node_key(c, "seed", "1"), &j->seed) ||
	    !node_number(node_key(c, "timeout", timeout), &j->timeout_ms))
		return "not valid";
	if (j->par == 0 || j->par > MOST_AT_ONCE)
		return "par is 1 to 10000";
	if (j->size < NODE_HEAD && j->answer != j->size)
		return "less than 16 bytes are answered with themselves";
	return NULL;
}

static void
request(struct node_ask *k, const struct node_command *c)
{
	struct job *j = calloc(1, sizeof(*j));
	const char *wrong;
	char tag[24];

	node_must(j != NULL, "out of memory", "a job");
	j->k = k;
	wrong = parse(j, c);
	if (wrong != NULL) {
		node_fail(c, wrong);
		free(j);
		return;
	}
	j->slots = calloc(j->par, sizeof(*j->slots));
	node_must(j->slots != NULL, "out of memory", "requests");
	for (uint64_t i = 0; i < j->par; i++) {
		j->slots[i].job = j;
		j->slots[i].next = j->unused;
		j->unused = &j->slots[i];
	}
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->cond, NULL);
	node_tally_init(&j->tally);
	j->fallback = "-";
	j->since = node_us();
	pthread_mutex_lock(&k->lock);
	snprintf(tag, sizeof(tag), "%llu", (unsigned long long)++k->tags);
	snprintf(j->tag, sizeof(j->tag), "%s", node_key(c, "tag", tag));
	j->next = k->jobs;
	k->jobs = j;
	pthread_mutex_unlock(&k->lock);
	node_say("ok request tag=%s", j->tag);
	node_begin(ask_job, j);
}

static void
cancel(struct node_ask *k, const struct node_command *c)
{
	struct job *j;

	pthread_mutex_lock(&k->lock);
	for (j = k->jobs; j != NULL && strcmp(j->tag, node_arg(c, 0)) != 0; j = j->next)
		;
	if (j != NULL) {
		pthread_mutex_lock(&j->lock);
		j->give_up = true;
		pthread_cond_signal(&j->cond);
		pthread_mutex_unlock(&j->lock);
	}
	pthread_mutex_unlock(&k->lock);
	if (j == NULL)
		node_fail(c, "no such requests");
}

static bool
known_mode(const char *mode)
{
	uint64_t ms;

	return strcmp(mode, "answer") == 0 || strcmp(mode, "never") == 0 ||
	    strcmp(mode, "drop") == 0 || strcmp(mode, "reset") == 0 ||
	    (strncmp(mode, "later:", 6) == 0 && node_number(mode + 6, &ms) && strlen(mode) < 20);
}

static void
set_respond(struct node_ask *k, const struct node_command *c)
{
	const char *mode = node_arg(c, 0);

	if (!known_mode(mode)) {
		node_fail(c, "no way to respond");
		return;
	}
	pthread_mutex_lock(&k->lock);
	snprintf(k->respond, sizeof(k->respond), "%s", mode);
	pthread_mutex_unlock(&k->lock);
	node_say(strcmp(mode, "reset") == 0 ? "ok respond always-ends" : "ok respond");
}

static void
tell_asked(struct node_ask *k)
{
	char sum[65];

	pthread_mutex_lock(&k->lock);
	node_tally_digest(&k->asked, sum);
	node_say("asked protocol=%s count=%llu bytes=%llu differ=%llu sha256=%s", k->o.names[0],
	    (unsigned long long)k->asked.count, (unsigned long long)k->asked.bytes,
	    (unsigned long long)k->differ, sum);
	pthread_mutex_unlock(&k->lock);
}

bool
node_ask_has(const char *word)
{
	return strcmp(word, "request") == 0 || strcmp(word, "cancel") == 0 ||
	    strcmp(word, "respond") == 0 || strcmp(word, "asked") == 0;
}

bool
node_ask_obey(struct node_ask *k, const struct node_command *c)
{
	if (strcmp(c->word, "request") == 0)
		request(k, c);
	else if (strcmp(c->word, "cancel") == 0)
		cancel(k, c);
	else if (strcmp(c->word, "respond") == 0)
		set_respond(k, c);
	else if (strcmp(c->word, "asked") == 0)
		tell_asked(k);
	else
		return false;
	return true;
}

struct node_ask *
node_ask_begin(reeve_node_t *n, const struct node_proto *o)
{
	struct node_ask *k = calloc(1, sizeof(*k));
	reeve_reqs_cfg_t cfg;
	int rc;

	node_must(k != NULL, "out of memory", "a protocol");
	node_must(known_mode(o->respond), "no way to respond", o->respond);
	k->o = *o;
	snprintf(k->respond, sizeof(k->respond), "%s", o->respond);
	node_tally_init(&k->asked);
	pthread_mutex_init(&k->lock, NULL);
	reeve_reqs_cfg_init(&cfg);
	cfg.names = (const char *const *)k->o.names;
	cfg.nnames = o->nnames;
	cfg.timeout_ms = (uint32_t)o->timeout_ms;
	cfg.max_request = cfg.max_response = o->max_size;
	cfg.max_inbound = (uint32_t)o->inbound;
	cfg.flags = o->lazy ? REEVE_REQS_LAZY : 0;
	rc = reeve_reqs_install(&k->r, n, &cfg);
	node_must(rc == 0, o->names[0], reeve_errname(rc));
	node_begin(take, k);
	return k;
}

void
node_ask_free(struct node_ask *k)
{
	if (k == NULL)
		return;
	pthread_mutex_destroy(&k->lock);
	free(k);
}
