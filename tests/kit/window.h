/* window.h - receive windows by hand on the rig: KiB arrive, are let go, and the updates that leave are looked at. */
#ifndef REEVE_TESTS_KIT_WINDOW_H
#define REEVE_TESTS_KIT_WINDOW_H

#include "tests/kit/engine_rig.h"

#define RVT_KIB 1024u

/* A listener with these bounds; 0: the default. */
void rvt_win_start(struct rvt_rig *r, uint32_t max_window, uint64_t grow);
/* The round trip is known. */
void rvt_win_round_trip(struct rvt_rig *r, uint32_t us);
/* So many KiB arrive on id in frames of at most 16 KiB, unread. */
void rvt_win_arrive(struct rvt_rig *r, uint32_t id, uint32_t kib);
/* So many KiB are let go; the update that leaves, in KiB (0: none). */
uint32_t rvt_win_let_go(struct rvt_rig *r, struct rv_stream *st, uint32_t kib);
/* The growth of all streams, KiB. */
uint64_t rvt_win_grown(const struct rvt_rig *r);

/* One update of a reader that keeps up: that many KiB come and are let go in pieces of 16 within ms, the update that
 * leaves with the last piece, and then the window, which the peer may use whole, and the growth of all.  KiB. */
struct rvt_win_row {
	uint32_t consumed, ms, delta, m, a;
};
void rvt_win_rows(
    struct rvt_rig *r, struct rv_stream *st, const struct rvt_win_row *row, unsigned n);

#endif
