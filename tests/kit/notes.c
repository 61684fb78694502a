/* notes.c - see notes.h. */
#include <config.h>

#include "tests/kit/notes.h"

#include <check.h>
#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/peer.h"

const char *const rvt_notes_names[] = {"/notes/2", "/notes/1"};

void
rvt_notes_cfg(reeve_notif_cfg_t *cfg, const char *handshake)
{
	reeve_notif_cfg_init(cfg);
	cfg->names = rvt_notes_names;
	cfg->nnames = 2;
	cfg->handshake = handshake;
	cfg->handshake_len = handshake != NULL ? strlen(handshake) : 0;
}

void
rvt_notes_start(struct rvt_notes *t, const struct rvt_notes_cfg *cfg)
{
	reeve_notif_cfg_t def;

	memset(t, 0, sizeof(*t));
	rvt_notes_cfg(&def, "hello");
	rvt_net_start(&t->net, &cfg->net);
	for (unsigned i = 0; i < t->net.n; i++) {
		const reeve_notif_cfg_t *c = cfg->cfg[i > 0 ? 1 : 0];

		ck_assert_int_eq(
		    reeve_notif_install(&t->p[i], t->net.node[i].n, c != NULL ? c : &def), 0);
		t->called[i] = c != NULL && c->fn != NULL;
		if (i > 0 && !cfg->net.deaf)
			rvt_net_introduce(&t->net, 0, i);
	}
}

void
rvt_notes_forget(struct rvt_notes *t, unsigned i)
{
	reeve_notif_event_t ev;

	while (reeve_notif_next(t->p[i], &ev, 0) == 0)
		reeve_notif_release(t->p[i], &ev);
}

void
rvt_notes_end(struct rvt_notes *t)
{
	reeve_node_stats_t st;

	for (unsigned i = 0; i < t->net.n; i++) {
		if (t->net.node[i].n == NULL)
			continue;
		ck_assert_int_eq(reeve_node_close(t->net.node[i].n, 0), 0);
		if (!t->called[i])
			rvt_notes_forget(t, i);
		st = rvt_net_stats(&t->net, i);
		ck_assert_uint_eq(st.streams + st.queued + st.held, 0);
	}
	rvt_net_end(&t->net);
}

void
rvt_notes_next(struct rvt_notes *t, unsigned i, uint32_t type, reeve_notif_event_t *ev)
{
	ck_assert_int_eq(reeve_notif_next(t->p[i], ev, RVT_WAIT_MS), 0);
	ck_assert_msg(ev->type == type, "event %u instead of %u: %s, step %d", ev->type, type,
	    reeve_errname(ev->reason.rc), ev->step);
	ck_assert_uint_eq(ev->size, sizeof(*ev));
	ck_assert_ptr_nonnull(ev->peer);
}

void
rvt_notes_expect(struct rvt_notes *t, unsigned i, uint32_t type, unsigned j)
{
	reeve_notif_event_t ev;

	rvt_notes_next(t, i, type, &ev);
	ck_assert_str_eq(ev.peer, t->net.node[j].id);
	reeve_notif_release(t->p[i], &ev);
}

void
rvt_notes_quiet(struct rvt_notes *t, unsigned i, int64_t ms)
{
	reeve_notif_event_t ev;

	ck_assert_int_eq(reeve_notif_next(t->p[i], &ev, ms), REEVE_ETIMEDOUT);
}

void
rvt_notes_answer(struct rvt_notes *t, unsigned i, int accept)
{
	reeve_notif_event_t ev;

	rvt_notes_next(t, i, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_int_eq(reeve_notif_answer(t->p[i], ev.ticket, accept), 0);
	reeve_notif_release(t->p[i], &ev);
}

static reeve_sink_t *
opened(struct rvt_notes *t, unsigned i)
{
	reeve_notif_event_t ev;
	reeve_sink_t *k;

	for (;;) {
		ck_assert_int_eq(reeve_notif_next(t->p[i], &ev, RVT_WAIT_MS), 0);
		if (ev.type != REEVE_NOTIF_VALIDATE)
			break;
		ck_assert_int_eq(reeve_notif_answer(t->p[i], ev.ticket, 1), 0);
		reeve_notif_release(t->p[i], &ev);
	}
	ck_assert_msg(ev.type == REEVE_NOTIF_OPENED, "event %u: %s, step %d", ev.type,
	    reeve_errname(ev.reason.rc), ev.step);
	k = reeve_sink_ref(ev.sink);
	reeve_notif_release(t->p[i], &ev);
	return k;
}

void
rvt_notes_open(struct rvt_notes *t, unsigned i, unsigned j, reeve_sink_t *k[2])
{
	reeve_notif_event_t ev;

	ck_assert_int_eq(reeve_notif_open(t->p[i], t->net.node[j].id), 0);
	ck_assert_int_eq(reeve_notif_next(t->p[j], &ev, RVT_WAIT_MS), 0);
	if (ev.type == REEVE_NOTIF_VALIDATE) {
		ck_assert_int_eq(reeve_notif_answer(t->p[j], ev.ticket, 1), 0);
		reeve_notif_release(t->p[j], &ev);
		k[0] = opened(t, i);
		k[1] = opened(t, j);
	} else {
		ck_assert_uint_eq(ev.type, REEVE_NOTIF_OPENED);
		k[1] = reeve_sink_ref(ev.sink);
		reeve_notif_release(t->p[j], &ev);
		k[0] = opened(t, i);
	}
}

reeve_buf_t *
rvt_note(reeve_rt_t *rt, size_t n, uint32_t number)
{
	reeve_buf_t *b;
	uint8_t *to;

	if (n == 0)
		return NULL;
	b = reeve_buf_alloc(rt, n);
	ck_assert_ptr_nonnull(b);
	to = reeve_buf_mut(b);
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(number + i / 7);
	return b;
}

void
rvt_note_check(const reeve_notif_event_t *ev, size_t n, uint32_t number)
{
	const uint8_t *p;
	size_t at = 0;

	ck_assert_uint_eq(ev->type, REEVE_NOTIF_RECEIVED);
	if (n == 0) {
		ck_assert_ptr_null(ev->data);
		return;
	}
	ck_assert_ptr_nonnull(ev->data);
	ck_assert_uint_eq(reeve_buf_len(ev->data), n);
	p = reeve_buf_data(ev->data);
	while (at < n && p[at] == (uint8_t)(number + at / 7))
		at++;
	ck_assert_msg(at == n, "message %u, byte %zu", number, at);
}

/* --- strangers */

void
rvt_wild_write(reeve_stream_t *s, const char *bytes, size_t n)
{
	ck_assert_int_eq(reeve_deadline(s, REEVE_WR, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_write(s, bytes, n), (reeve_ssize)n);
}

void
rvt_wild_read(reeve_stream_t *s, const char *bytes, size_t n)
{
	char got[256];
	reeve_ssize m;

	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
	while (n > 0) {
		m = reeve_read(s, got, n < sizeof(got) ? n : sizeof(got));
		ck_assert_msg(m > 0, "read: %s", reeve_errname((int)m));
		if (bytes != NULL) {
			ck_assert(memcmp(got, bytes, (size_t)m) == 0);
			bytes += m;
		}
		n -= (size_t)m;
	}
}

int
rvt_wild_end(reeve_stream_t *s)
{
	char got[256];
	reeve_ssize m;

	ck_assert_int_eq(reeve_deadline(s, REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
	while ((m = reeve_read(s, got, sizeof(got))) > 0)
		;
	return (int)m;
}

reeve_stream_t *
rvt_wild_open(struct rvt_stranger *s, const char *bytes, size_t n)
{
	reeve_stream_t *out;

	ck_assert_int_eq(reeve_open(s->k, &out, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(
	    reeve_negotiate(out, REEVE_DIALER, &rvt_notes_names[1], 1, rvt_slow(RVT_WAIT_MS)), 0);
	if (n > 0)
		rvt_wild_write(out, bytes, n);
	return out;
}

reeve_stream_t *
rvt_wild_accept(struct rvt_stranger *s, size_t len)
{
	reeve_stream_t *in;

	ck_assert_int_eq(reeve_accept(s->k, &in, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(
	    reeve_negotiate(in, REEVE_LISTENER, &rvt_notes_names[1], 1, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_wild_read(in, NULL, len + 1);
	return in;
}

void
rvt_wild_marry(
    struct rvt_notes *t, struct rvt_stranger *s, reeve_stream_t **out, reeve_stream_t **in)
{
	reeve_notif_event_t ev;

	rvt_stranger_start(s, t->net.node[1].rt, 77);
	ck_assert_int_eq(rvt_stranger_dial(s, t->net.node[1].rt, t->net.node[0].addr), 0);
	*out = rvt_wild_open(s, "\x03wll", 4);
	rvt_notes_next(t, 0, REEVE_NOTIF_VALIDATE, &ev);
	ck_assert_str_eq(ev.peer, s->id);
	ck_assert_int_eq(reeve_notif_answer(t->p[0], ev.ticket, 1), 0);
	reeve_notif_release(t->p[0], &ev);
	*in = rvt_wild_accept(s, 5);
	rvt_wild_write(*in, "\0", 1);
	rvt_wild_read(*out, "\x05hello", 6);
	rvt_notes_next(t, 0, REEVE_NOTIF_OPENED, &ev);
	reeve_notif_release(t->p[0], &ev);
}
