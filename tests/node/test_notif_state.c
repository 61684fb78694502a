/* test_notif_state.c - the machine of a notification stream: every cell, and everything that can happen. */
#include <config.h>

#include <reeve/error.h>
#include <stdio.h>
#include <string.h>

#include "node/notif_state.h"
#include "tests/kit/run.h"

/* What every event does in every state, in the order of the events: the next state (= the same) and a letter for each
 * action; what the application is answered; -: cannot come. */
static const char letters[] = "FCoinOIhVRJP";
static const struct {
	const char *state;
	const char *cell[RVN_NE_COUNT];
} matrix[] = {
    {"CLOSED",
	{"OPENING O", "none", "stale", "stale", "-", "-", "READ I", "-", "-", "-", "-", "-", "-",
	    "="}},
    {"OPENING",
	{"busy", "CLOSED Fo", "stale", "stale", "WAITING", "CLOSED Fo", "OPENING_READ I", "-", "-",
	    "-", "-", "-", "-", "CLOSED Fo"}},
    {"OPENING_READ",
	{"busy", "CLOSED Foi", "stale", "stale", "WAITING_READ", "READ Fo", "OPENING in",
	    "OPENING_VALID V", "OPENING_REPLY R", "-", "OPENING i", "-", "-", "CLOSED Foi"}},
    {"OPENING_VALID",
	{"busy", "CLOSED Foi", "OPENING_REPLY R", "CLOSED Foi", "WAITING_VALID", "VALID Fo",
	    "OPENING in", "-", "-", "-", "OPENING i", "-", "-", "CLOSED Foi"}},
    {"OPENING_REPLY",
	{"busy", "CLOSED Foi", "stale", "stale", "WAITING_REPLY", "CLOSED Foi", "= n", "-", "-",
	    "OPENING_IN", "CLOSED Foi", "-", "-", "CLOSED Foi"}},
    {"OPENING_IN",
	{"busy", "CLOSED Foi", "stale", "stale", "OPEN J", "CLOSED Foi", "= n", "-", "-", "-",
	    "CLOSED Foi", "-", "-", "CLOSED Foi"}},
    {"WAITING",
	{"busy", "CLOSED Fo", "stale", "stale", "-", "CLOSED Fo", "WAITING_READ I", "-", "-", "-",
	    "-", "CLOSED Fo", "-", "CLOSED Fo"}},
    {"WAITING_READ",
	{"busy", "CLOSED Foi", "stale", "stale", "-", "READ Fo", "CLOSED Foin", "WAITING_VALID V",
	    "WAITING_REPLY R", "-", "CLOSED Foi", "=", "-", "CLOSED Foi"}},
    {"WAITING_VALID",
	{"busy", "CLOSED Foi", "WAITING_REPLY R", "CLOSED Foi", "-", "VALID Fo", "CLOSED Foin", "-",
	    "-", "-", "CLOSED Foi", "=", "-", "CLOSED Foi"}},
    {"WAITING_REPLY",
	{"busy", "CLOSED Foi", "stale", "stale", "-", "CLOSED Foi", "= n", "-", "-", "OPEN J",
	    "CLOSED Foi", "=", "-", "CLOSED Foi"}},
    {"READ",
	{"OPENING_READ O", "none", "stale", "stale", "-", "-", "CLOSED in", "VALID V",
	    "ACCEPT_REPLY OR", "-", "CLOSED i", "-", "-", "CLOSED i"}},
    {"VALID",
	{"busy", "none", "ACCEPT_REPLY OR", "CLOSED i", "-", "-", "CLOSED in", "-", "-", "-",
	    "CLOSED i", "-", "-", "CLOSED i"}},
    {"ACCEPT_REPLY",
	{"busy", "CLOSED Foi", "stale", "stale", "ACCEPT_OUT", "CLOSED Foi", "= n", "-", "-",
	    "ACCEPT_IN", "CLOSED Foi", "-", "-", "CLOSED Foi"}},
    {"ACCEPT_IN",
	{"busy", "CLOSED Foi", "stale", "stale", "OPEN J", "CLOSED Foi", "= n", "-", "-", "-",
	    "CLOSED Foi", "-", "-", "CLOSED Foi"}},
    {"ACCEPT_OUT",
	{"busy", "CLOSED Foi", "stale", "stale", "-", "CLOSED Foi", "= n", "-", "-", "OPEN J",
	    "CLOSED Foi", "=", "-", "CLOSED Foi"}},
    {"OPEN",
	{"busy", "CLOSING P", "stale", "stale", "-", "-", "OPEN_HELD I", "-", "-", "-", "-", "-",
	    "CLOSED C", "CLOSING P"}},
    {"OPEN_HELD",
	{"busy", "CLOSING_HELD P", "stale", "stale", "-", "-", "OPEN in", "=", "=", "-", "OPEN i",
	    "-", "READ Ch", "CLOSING iP"}},
    {"CLOSING",
	{"busy", "= P", "stale", "stale", "-", "-", "CLOSING_HELD I", "-", "-", "-", "-", "-",
	    "CLOSED C", "= P"}},
    {"CLOSING_HELD",
	{"busy", "= P", "stale", "stale", "-", "-", "CLOSING in", "=", "=", "-", "CLOSING i", "-",
	    "READ Ch", "CLOSING iP"}},
};

static void
spell(unsigned s, unsigned e, char *out)
{
	const struct rvn_nstep *t = &rvn_nstate_table[s][e];
	int n = 0;

	switch (t->rc) {
	case RVN_NS_NEVER:
		strcpy(out, "-");
		return;
	case REEVE_EBUSY:
		strcpy(out, "busy");
		return;
	case REEVE_ENOTCONN:
		strcpy(out, "none");
		return;
	case REEVE_ESTALE:
		strcpy(out, "stale");
		return;
	default:
		ck_assert_int_eq(t->rc, 0);
	}
	n = sprintf(out, "%s", t->next == s ? "=" : rvn_nstate_name[t->next]);
	if (t->act != 0)
		out[n++] = ' ';
	for (unsigned i = 0; i < strlen(letters); i++)
		if (t->act & (1u << i))
			out[n++] = letters[i];
	out[n] = '\0';
}

START_TEST(every_cell_is_as_written)
{
	char cell[64];

	ck_assert_uint_eq(sizeof(matrix) / sizeof(matrix[0]), RVN_NS_COUNT);
	for (unsigned s = 0; s < RVN_NS_COUNT; s++) {
		ck_assert_str_eq(matrix[s].state, rvn_nstate_name[s]);
		for (unsigned e = 0; e < RVN_NE_COUNT; e++) {
			spell(s, e, cell);
			ck_assert_msg(strcmp(cell, matrix[s].cell[e]) == 0, "%s %s: %s, not %s",
			    rvn_nstate_name[s], rvn_nevent_name[e], cell, matrix[s].cell[e]);
		}
	}
}
END_TEST

/* --- everything that can happen: the machine, and a world of what it started --- */

enum { NO, OPENING, UP };                        /* our half */
enum { NONE, READING, GREETED, REPLYING, SENT }; /* the peer's */
enum { APART, JOINED, PARTING };                 /* the session */

struct world {
	struct rvn_nmach m;
	uint8_t out, in, session, waited;
	bool owed;      /* the application waits for an outcome */
	bool opened;    /* it was told OPENED and not CLOSED */
	uint64_t stale; /* a ticket that was answered or is gone */
	uint64_t asked; /* the last ticket that it was told */
};

static struct world seen[20000], work[20000];
static unsigned nseen, nwork;
static bool visited[RVN_NS_COUNT];

/* Tickets are compared by what they are to the machine. */
static struct world
plain(struct world w)
{
	bool force = w.m.ticket != 0;

	ck_assert(!force || w.m.ticket == w.asked);
	w.m.ticket = force ? 2 : 0;
	w.asked = force ? 2 : 1;
	w.stale = w.stale != 0;
	return w;
}

static void
visit(struct world w)
{
	struct world clean;

	memset(&clean, 0, sizeof(clean));
	w = plain(w);
	clean.m.state = w.m.state;
	clean.m.owed = w.m.owed;
	clean.m.ticket = w.m.ticket;
	clean.out = w.out;
	clean.in = w.in;
	clean.session = w.session;
	clean.waited = w.waited;
	clean.owed = w.owed;
	clean.opened = w.opened;
	clean.stale = w.stale;
	clean.asked = w.asked;
	for (unsigned i = 0; i < nseen; i++)
		if (memcmp(&seen[i], &clean, sizeof(clean)) == 0)
			return;
	ck_assert_uint_lt(nseen, sizeof(seen) / sizeof(seen[0]));
	seen[nseen++] = clean;
	work[nwork++] = clean;
	visited[w.m.state] = true;
}

/* The actions, against what is there. */
static void
carry_out(struct world *w, unsigned act, bool came)
{
	if (act & RVN_NA_FAIL) {
		ck_assert(w->owed && !w->opened);
		w->owed = false;
	}
	if (act & RVN_NA_OVER) {
		ck_assert(w->opened && w->session != APART);
		w->opened = false;
		w->session = APART;
	}
	if (act & RVN_NA_OUT_END) {
		ck_assert_uint_ne(w->out, NO);
		w->out = NO;
	}
	if (act & RVN_NA_OUT_START) {
		ck_assert_uint_eq(w->out, NO);
		w->out = OPENING;
		w->waited = 0;
	}
	if (act & RVN_NA_REPLY) {
		ck_assert_uint_eq(w->in, GREETED);
		w->in = REPLYING;
	}
	if (act & RVN_NA_IN_END) {
		ck_assert_uint_ne(w->in, NONE);
		w->in = NONE;
	}
	if (act & RVN_NA_NEW_END)
		ck_assert(came && !(act & RVN_NA_IN_START));
	if (act & RVN_NA_IN_START) {
		ck_assert(came);
		ck_assert_uint_eq(w->in, NONE);
		w->in = READING;
	} else if (came) {
		ck_assert(act & RVN_NA_NEW_END);
	}
	if (act & RVN_NA_ASK) {
		ck_assert_uint_eq(w->in, GREETED);
		ck_assert_uint_eq(w->session, APART);
		w->asked = w->m.ticket;
	}
	if (act & RVN_NA_JOIN) {
		ck_assert(w->out == UP && w->in == SENT && w->session == APART && !w->opened);
		w->out = NO;
		w->in = NONE;
		w->session = JOINED;
		w->opened = true;
		w->owed = false;
	}
	if (act & RVN_NA_PART) {
		ck_assert_uint_ne(w->session, APART);
		w->session = PARTING;
	}
}

static void
check(const struct world *w)
{
	unsigned s = w->m.state;

	ck_assert_uint_eq(w->owed, w->m.owed);
	ck_assert(!(w->owed && w->opened));
	ck_assert((w->session != APART) == w->opened);
	ck_assert((s >= RVN_NS_OPEN) == w->opened);
	if (s == RVN_NS_CLOSED)
		ck_assert(w->out == NO && w->in == NONE && !w->owed);
	ck_assert((w->m.ticket != 0) ==
	    (s == RVN_NS_VALID || s == RVN_NS_OPENING_VALID || s == RVN_NS_WAITING_VALID));
	if (rvn_nstate_asked(s))
		ck_assert(w->owed);
}

/* Feed an event to a copy.  The answer. */
static int
feed(struct world *w, enum rvn_ne_event ev, uint64_t ticket)
{
	bool came = ev == RVN_NE_INBOUND;
	uint64_t old = w->m.ticket;
	unsigned act;
	int rc;

	ck_assert_msg(rvn_nstate_table[w->m.state][ev].rc != RVN_NS_NEVER || ev == RVN_NE_ACCEPT ||
		ev == RVN_NE_REJECT,
	    "%s in %s cannot come, but does", rvn_nevent_name[ev], rvn_nstate_name[w->m.state]);
	rc = rvn_nmach_step(&w->m, ev, ticket, &act);
	if (rc != 0) {
		ck_assert_uint_eq(act, 0);
		return rc;
	}
	if (ev == RVN_NE_OPEN || ev == RVN_NE_ACCEPT) {
		ck_assert(!w->owed || ev == RVN_NE_ACCEPT); /* one outcome for both */
		w->owed = true;
	}
	carry_out(w, act, came);
	if (old != 0 && old != w->m.ticket)
		w->stale = old;
	check(w);
	return 0;
}

static void
then(const struct world *from, enum rvn_ne_event ev, uint64_t ticket)
{
	struct world w = *from;

	if (feed(&w, ev, ticket) == 0)
		visit(w);
}

/* What the application may do at any time. */
static void
application(const struct world *from)
{
	struct world w = *from;
	unsigned s = from->m.state;

	then(from, RVN_NE_STOP, 0);
	w = *from;
	if (feed(&w, RVN_NE_OPEN, 0) == 0) {
		ck_assert(s == RVN_NS_CLOSED || s == RVN_NS_READ);
		visit(w);
	} else {
		ck_assert(s != RVN_NS_CLOSED && s != RVN_NS_READ);
	}
	w = *from;
	if (feed(&w, RVN_NE_CLOSE, 0) == 0) {
		ck_assert(w.m.state == RVN_NS_CLOSED || w.m.state >= RVN_NS_CLOSING);
		visit(w);
	}
	for (int accept = 0; accept < 2; accept++) {
		enum rvn_ne_event ev = accept ? RVN_NE_ACCEPT : RVN_NE_REJECT;

		/* One that was never given, one that is gone, and the one in force: once. */
		w = *from;
		ck_assert_int_eq(feed(&w, ev, 77), REEVE_ESTALE);
		if (from->stale != 0)
			ck_assert_int_eq(feed(&w, ev, 1), REEVE_ESTALE);
		ck_assert(memcmp(&w.m, &from->m, sizeof(w.m)) == 0);
		if (from->m.ticket == 0)
			continue;
		ck_assert_int_eq(feed(&w, ev, from->m.ticket), 0);
		visit(w);
		ck_assert_int_eq(feed(&w, RVN_NE_ACCEPT, from->m.ticket), REEVE_ESTALE);
		ck_assert_int_eq(feed(&w, RVN_NE_REJECT, from->m.ticket), REEVE_ESTALE);
	}
}

/* The application asks its questions in another state of the peer's half: greeted. */
static void
greet(const struct world *from, enum rvn_ne_event ev)
{
	struct world w = *from;

	w.in = GREETED;
	if (feed(&w, ev, from->asked + 1) == 0)
		visit(w);
}

/* What was held has its handshake already: it is looked at again when the old end is over. */
static void
end_session(const struct world *from)
{
	struct world w = *from, v;

	if (feed(&w, RVN_NE_ENDED, 0) != 0)
		return;
	if (w.in != GREETED) {
		visit(w);
		return;
	}
	v = w;
	ck_assert_int_eq(feed(&v, RVN_NE_IN_HS, from->asked + 1), 0);
	visit(v);
	ck_assert_int_eq(feed(&w, RVN_NE_IN_AUTO, 0), 0);
	visit(w);
}

static void
world(const struct world *from)
{
	struct world w;

	then(from, RVN_NE_INBOUND, 0);
	if (from->out == OPENING) {
		w = *from;
		w.out = UP;
		if (feed(&w, RVN_NE_OUT_OK, 0) == 0)
			visit(w);
	}
	if (from->out != NO)
		then(from, RVN_NE_OUT_FAIL, 0);
	if (from->out == UP && !from->waited) {
		w = *from;
		w.waited = 1;
		if (feed(&w, RVN_NE_WAITED, 0) == 0)
			visit(w);
	}
	if (from->in == READING) {
		greet(from, RVN_NE_IN_HS);
		greet(from, RVN_NE_IN_AUTO);
	}
	if (from->in == REPLYING) {
		w = *from;
		w.in = SENT;
		if (feed(&w, RVN_NE_IN_SENT, 0) == 0)
			visit(w);
	}
	if (from->in != NONE)
		then(from, RVN_NE_IN_FAIL, 0);
	if (from->session != APART)
		end_session(from);
}

/* Whatever it has started comes to its end, and the application does nothing: everything was answered, nothing is left. */
static void
runs_down(struct world w)
{
	for (unsigned steps = 0; w.m.state != RVN_NS_CLOSED; steps++) {
		ck_assert_uint_lt(steps, 8);
		if (w.out == OPENING)
			(void)feed(&w, RVN_NE_OUT_FAIL, 0);
		else if (w.out == UP && w.in == NONE)
			(void)feed(&w, RVN_NE_WAITED, 0);
		else if (w.session != APART && w.in == NONE)
			(void)feed(&w, RVN_NE_ENDED, 0);
		else
			(void)feed(&w, RVN_NE_IN_FAIL, 0);
	}
	ck_assert(!w.owed && !w.opened && w.out == NO && w.in == NONE && w.session == APART);
}

START_TEST(everything_that_can_happen)
{
	struct world w;

	memset(&w, 0, sizeof(w));
	visit(w);
	while (nwork > 0) {
		w = work[--nwork];
		application(&w);
		world(&w);
		runs_down(w);
	}
	for (unsigned s = 0; s < RVN_NS_COUNT; s++)
		ck_assert_msg(visited[s], "%s is never reached", rvn_nstate_name[s]);
}
END_TEST

START_TEST(both_at_once_is_ours)
{
	struct rvn_nmach m = {.state = RVN_NS_CLOSED};
	static const enum rvn_ne_event seq[] = {
	    RVN_NE_INBOUND, RVN_NE_OPEN, RVN_NE_IN_HS, RVN_NE_ACCEPT, RVN_NE_IN_SENT};
	unsigned act;

	for (unsigned i = 0; i < sizeof(seq) / sizeof(seq[0]); i++)
		ck_assert_int_eq(rvn_nmach_step(&m, seq[i], 5, &act), 0);
	ck_assert(rvn_nstate_asked(m.state)); /* dialer, although the peer was first */
	ck_assert_int_eq(rvn_nmach_step(&m, RVN_NE_OUT_OK, 0, &act), 0);
	ck_assert_uint_eq(act, RVN_NA_JOIN);
}
END_TEST

RVT_MAIN(
    "notif_state", &every_cell_is_as_written, &everything_that_can_happen, &both_at_once_is_ours)
