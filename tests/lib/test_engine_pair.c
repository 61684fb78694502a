/* test_engine_pair.c - two engines back to back under a random application: bytes cut at awkward
 * places, credit conserved, nothing lost, everything gone at the end.  The seed is printed;
 * REEVE_SEED=n replays one. */
#include <config.h>

#include "tests/kit/engine_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NIDS 4096u

static struct rvt_rig side[2];
static bool dirty[NIDS]; /* somebody reset, dropped, closed or stopped it */
static bool shut[2][NIDS], held[2][NIDS];
static uint64_t rnd, seed;

static uint32_t
below(uint32_t n)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return (uint32_t)((rnd >> 20) % n);
}

static size_t
cut(int how)
{
	static const size_t fixed[] = {1, 2, 7, 11, 12, 13};

	return how < 6 ? fixed[how] : 1 + below(how == 6 ? 100 : 70000);
}

static void
begin(const reeve_cfg_t *cfg)
{
	for (int k = 0; k < 2; k++) {
		rvt_rig_prepare(&side[k]);
		ck_assert_int_eq(
		    rvt_rig_start(&side[k], k == 0 ? REEVE_DIALER : REEVE_LISTENER, cfg, NULL), 0);
	}
}

/* What one write takes goes to the other side at once.  False: nothing to write. */
static bool
move(int from, size_t n)
{
	struct rvt_rig *a = &side[from], *b = &side[!from];
	struct rv_gather *g = a->g;
	struct iovec *v;

	if (rv_gather_empty(g))
		rv_gather_reset(g);
	if (rv_gather_empty(g) || below(3) == 0)
		(void)a->e->ops->drain(a->e, g, a->now);
	if (rv_gather_empty(g))
		return false;
	v = &g->iov[g->iov_at];
	if (n > v->iov_len)
		n = v->iov_len;
	memcpy(rvt_bytes_more(&b->in, n), v->iov_base, n);
	rv_gather_sent(a->e, g, n);
	ck_assert_msg(
	    rvt_feed(b, 0) == 0, "seed %llu: %s", (unsigned long long)seed, b->e->reason.id);
	rvt_notify(a);
	rvt_notify(b);
	a->at = a->nev;
	b->at = b->nev;
	return true;
}

/* r + c + unread + what is still to come of a body == M; and no sender believes in more credit
 * than it was given. */
static void
conserved(void)
{
	for (int k = 0; k < 2; k++) {
		struct rv_yamux *y = (struct rv_yamux *)side[k].e;
		uint64_t sum = 0;

		for (unsigned i = 1; i <= side[k].nseen; i++) {
			struct rv_stream *st = side[k].seen[i].st, *peer;
			struct rvt_seen *other = rvt_seen(&side[!k], side[k].seen[i].id);

			if (st == NULL || !(st->flags & RV_ST_TABLED))
				continue;
			sum += st->window - RV_WINDOW0;
			if (st->rx == RV_RX_OPEN)
				RVT_CHECK((uint64_t)st->recv_credit + st->consumed + st->unread +
					(y->m.body_st == st ? y->m.body_left : 0) ==
				    st->window);
			peer = other == NULL ? NULL : other->st;
			if (peer != NULL)
				RVT_CHECK(peer->send_credit <= st->recv_credit);
		}
		RVT_CHECK(sum == y->win.grown);
		RVT_CHECK(side[k].e->nunacked <= side[k].e->cfg.user.max_unacked);
	}
}

static struct rv_stream *
any(int k)
{
	struct rvt_rig *r = &side[k];
	unsigned n = r->nseen < 40 ? r->nseen : 40;

	return n == 0 ? NULL : r->seen[r->nseen - below(n)].st;
}

static void
finish(int k, struct rv_stream *st, uint32_t how)
{
	const struct rv_engine_ops *o = side[k].e->ops;

	dirty[st->id] = true;
	held[k][st->id] = true;
	switch (how) {
	case 0:
		o->reset(side[k].e, st, st->id);
		break;
	case 1:
		o->drop(side[k].e, st);
		break;
	case 2:
		o->close(side[k].e, st, st->unread > 0, side[k].now);
		break;
	default:
		o->stop(side[k].e, st);
		break;
	}
}

/* One thing that an application may do. */
static void
act(int k)
{
	struct rvt_rig *r = &side[k];
	const struct rv_engine_ops *o = r->e->ops;
	struct rv_stream *st;
	uint32_t what = below(100);

	if (what < 8 && r->nseen < NIDS / 4) {
		if (o->open(r->e, &st, r->now) == 0)
			rvt_see(r, st);
		return;
	}
	st = any(k);
	if (st == NULL)
		return;
	if (what < 20) {
		o->accept(r->e, st);
	} else if (what < 50 && !shut[k][st->id] && !held[k][st->id] && st->out.bytes < 300000) {
		rvt_send(r, st, 1 + below(below(4) == 0 ? 100000 : 300));
	} else if (what < 85) {
		o->consumed(r->e, st, below(st->unread + 1), r->now);
	} else if (what < 88) {
		shut[k][st->id] = true;
		o->shut(r->e, st);
	} else if (what < 91) {
		finish(k, st, below(4));
	} else if (what < 94) {
		(void)o->ping(r->e, r->now);
	} else {
		ck_assert_int_eq(o->tick(r->e, r->now), 0);
	}
}

/* Everybody ends what they have, reads what comes. */
static void
wind_up(int how)
{
	bool busy = true;

	for (int k = 0; k < 2; k++)
		side[k].consume = true;
	for (int round = 0; busy; round++) {
		ck_assert_int_lt(round, 10000);
		busy = false;
		for (int k = 0; k < 2; k++) {
			struct rvt_rig *r = &side[k];

			for (unsigned i = 1; i <= r->nseen; i++) {
				struct rv_stream *st = r->seen[i].st;

				if (st == NULL)
					continue;
				if (st->rx == RV_RX_STOPPED)
					r->e->ops->reset(r->e, st, 0);
				r->e->ops->consumed(r->e, st, st->unread, r->now);
				r->e->ops->shut(r->e, st);
			}
			for (int n = 0; n < 20000 && move(k, cut(how)); n++)
				busy = true;
			busy = busy || r->e->ops->has_output(r->e);
		}
	}
}

static void
check_end(void)
{
	unsigned clean = 0;

	for (int k = 0; k < 2; k++) {
		struct rvt_rig *r = &side[k];

		rvt_notify(r);
		ck_assert_uint_eq(r->e->nstreams, 0);
		ck_assert_uint_eq(r->bad, 0);
		for (unsigned i = 1; i <= r->nseen; i++) {
			struct rvt_seen *s = &r->seen[i], *o = rvt_seen(&side[!k], s->id);

			ck_assert(s->gone && !s->ended);
			if (o == NULL || s->id >= NIDS) {
				/* Ended before the peer heard of it, or beyond its backlog. */
				ck_assert(dirty[s->id] || s->refused);
				continue;
			}
			ck_assert_uint_le(s->got, o->queued);
			if (dirty[s->id])
				continue;
			clean++;
			ck_assert(s->fin && !s->rst);
			ck_assert_uint_eq(s->got, o->queued);
		}
		ck_assert_uint_eq(rvq_counter_get(&r->e->stats.bytes_in),
		    rvq_counter_get(&side[!k].e->stats.bytes_out));
		ck_assert_uint_eq(rvq_counter_get(&r->e->stats.frames_in),
		    rvq_counter_get(&side[!k].e->stats.frames_out));
	}
	ck_assert_uint_gt(clean, 0);
}

static void
run(int how, uint64_t with, unsigned steps)
{
	reeve_cfg_t cfg;

	seed = with;
	rnd = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	memset(dirty, 0, sizeof(dirty));
	memset(shut, 0, sizeof(shut));
	memset(held, 0, sizeof(held));
	rvt_cfg(&cfg);
	cfg.max_unacked = 16;
	cfg.accept_backlog = 32;
	cfg.linger_ms = REEVE_OFF;
	cfg.flags = below(2) ? REEVE_CFG_LAZY_ACK : 0;
	cfg.grow = below(2) ? 2u << 20 : 0;
	begin(&cfg);
	for (unsigned i = 0; i < steps; i++) {
		act(below(2));
		for (uint32_t n = below(how < 6 ? 400 : 20); n > 0; n--)
			(void)move(below(2) != 0, cut(how));
		side[0].now += below(2000);
		side[1].now = side[0].now;
		if (i % 16 == 0)
			conserved();
	}
	wind_up(how);
	conserved();
	check_end();
	rvt_rig_fini(&side[0]);
	rvt_rig_fini(&side[1]);
}

START_TEST(random_life_loses_nothing)
{
	const char *env = getenv("REEVE_SEED");
	uint64_t s = env == NULL ? (uint64_t)_i * 1000 + 1 : strtoull(env, NULL, 10);

	for (int k = 0; k < (_i < 3 ? 1 : 3); k++) {
		printf("cut %d seed %llu\n", _i, (unsigned long long)s + (unsigned)k);
		fflush(stdout);
		run(_i, s + (unsigned)k, _i < 3 ? 200 : 600);
	}
}
END_TEST

/* At rest both ends agree about every byte of credit. */
START_TEST(credit_at_rest_is_equal_on_both_ends)
{
	struct rv_stream *a, *b;

	rnd = 77 + (uint64_t)_i;
	begin(NULL);
	a = rvt_open(&side[0]);
	for (int i = 0; i < 300; i++) {
		rvt_send(&side[0], a, 1 + below(60000));
		while (move(0, 1 + below(90000)) || move(1, 13)) {
			if (rvt_seen(&side[1], 1) == NULL)
				continue;
			b = rvt_seen(&side[1], 1)->st;
			side[1].e->ops->consumed(side[1].e, b, below(b->unread + 1), side[1].now);
		}
		b = rvt_seen(&side[1], 1)->st;
		ck_assert_uint_eq(a->send_credit, b->recv_credit);
		ck_assert_uint_eq((uint64_t)b->recv_credit + b->consumed + b->unread, b->window);
		side[1].now += below(3000);
		side[0].now = side[1].now;
	}
	ck_assert_uint_gt(rvt_seen(&side[1], 1)->got, 1000000);
	rvt_rig_fini(&side[0]);
	rvt_rig_fini(&side[1]);
}
END_TEST

/* Both applications write a megabyte before they read: the stream stalls, pings and other
 * streams do not. */
START_TEST(both_sides_writing_first_stall_only_their_stream)
{
	struct rv_stream *st[2];

	rnd = 5;
	begin(NULL);
	st[0] = rvt_open(&side[0]);
	while (move(0, 1000) || move(1, 1000))
		;
	st[1] = rvt_seen(&side[1], 1)->st;
	for (int k = 0; k < 2; k++)
		rvt_send(&side[k], st[k], 1u << 20);
	for (int i = 0; i < 10000; i++)
		(void)move(i % 2, 1000);
	for (int k = 0; k < 2; k++) {
		ck_assert_uint_eq(rvt_seen(&side[k], 1)->got, RV_WINDOW0);
		ck_assert_uint_gt(rvq_counter_get(&side[k].e->stats.stalls_window), 0);
		ck_assert(side[k].e->ops->ping(side[k].e, side[k].now));
	}
	rvt_send(&side[0], rvt_open(&side[0]), 5000);
	while (move(0, 1000) || move(1, 1000))
		;
	ck_assert_uint_eq(rvt_seen(&side[1], 3)->got, 5000);
	for (int k = 0; k < 2; k++) {
		side[k].consume = true;
		side[k].e->ops->consumed(side[k].e, st[k], st[k]->unread, side[k].now);
	}
	while (move(0, 5000) || move(1, 7000))
		;
	for (int k = 0; k < 2; k++) {
		ck_assert_uint_eq(rvt_seen(&side[k], 1)->got, 1u << 20);
		rvt_rig_fini(&side[k]);
	}
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_pair");

	tcase_add_loop_test(t, random_life_loses_nothing, 0, 8);
	tcase_add_loop_test(t, credit_at_rest_is_equal_on_both_ends, 0, 3);
	tcase_add_test(t, both_sides_writing_first_stall_only_their_stream);
	return rvt_run_tcase("engine_pair", t);
}
