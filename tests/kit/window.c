/* window.c - see window.h. */
#include <config.h>

#include "tests/kit/window.h"

#include <check.h>

void
rvt_win_start(struct rvt_rig *r, uint32_t max_window, uint64_t grow)
{
	reeve_cfg_t cfg;

	rvt_cfg(&cfg);
	cfg.max_window = max_window;
	cfg.grow = grow;
	rvt_rig_init(r, REEVE_LISTENER, &cfg, NULL);
}

void
rvt_win_round_trip(struct rvt_rig *r, uint32_t us)
{
	rvt_round_trips(r, us);
	ck_assert_uint_eq(rvq_counter_get(&r->e->stats.rtt_us), us);
}

void
rvt_win_arrive(struct rvt_rig *r, uint32_t id, uint32_t kib)
{
	uint64_t at = rvt_seen(r, id)->got;

	for (uint32_t n; kib > 0; kib -= n, at += n * RVT_KIB) {
		n = kib < 16 ? kib : 16;
		rvt_put_data(&r->in, 0, id, n * RVT_KIB, at);
	}
	ck_assert_int_eq(rvt_feed(r, 0), 0);
}

uint32_t
rvt_win_let_go(struct rvt_rig *r, struct rv_stream *st, uint32_t kib)
{
	struct rvt_frame f;

	r->e->ops->consumed(r->e, st, kib * RVT_KIB, r->now);
	rvt_drain(r, 0);
	if (!rvt_next(&r->out, &f))
		return 0;
	ck_assert_uint_eq(f.type, RVT_WU);
	ck_assert_uint_eq(f.id, st->id);
	ck_assert_uint_eq(f.flags, 0);
	rvt_want_none(r);
	ck_assert_uint_eq(f.len % RVT_KIB, 0);
	return f.len / RVT_KIB;
}

uint64_t
rvt_win_grown(const struct rvt_rig *r)
{
	return ((struct rv_yamux *)r->e)->win.grown / RVT_KIB;
}

void
rvt_win_rows(struct rvt_rig *r, struct rv_stream *st, const struct rvt_win_row *row, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		r->now += row[i].ms * 1000;
		for (uint32_t k = 0; k < row[i].consumed; k += 16) {
			rvt_win_arrive(r, st->id, 16);
			ck_assert_uint_eq(
			    rvt_win_let_go(r, st, 16), k + 16 < row[i].consumed ? 0 : row[i].delta);
		}
		ck_assert_uint_eq(st->window, row[i].m * RVT_KIB);
		ck_assert_uint_eq(st->recv_credit, row[i].m * RVT_KIB);
		ck_assert_uint_eq(rvt_win_grown(r), row[i].a);
	}
}
