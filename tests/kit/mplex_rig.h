/* mplex_rig.h - mplex on the bench of engine_rig.h.
 *
 * The content of a stream's bytes is rvt_byte(key, i), with the key as the engine under test sees the stream, so streams
 * with the same id opened by either end differ. */
#ifndef REEVE_TESTS_KIT_MPLEX_RIG_H
#define REEVE_TESTS_KIT_MPLEX_RIG_H

#include "lib/engine/mplex_session.h"
#include "tests/kit/engine_rig.h"
#include "tests/kit/mplex_wire.h"

/* Defaults of mplex, before rvt_rig_init. */
void rvt_mp_cfg(reeve_cfg_t *cfg);
/* A rig with cfg, or defaults. */
void rvt_mp_init(struct rvt_rig *r, const reeve_cfg_t *cfg, struct rv_budget *budget);
/* The peer opens id and it is accepted. */
struct rv_stream *rvt_mp_inbound(struct rvt_rig *r, uint64_t id);
/* Opened here, the opening is out. */
struct rv_stream *rvt_mp_outbound(struct rvt_rig *r);
/* n bytes from the peer to a stream it opened: frames of at most 64 KiB.  Fed; the engine may have used only a part. */
void rvt_mp_feed_data(struct rvt_rig *r, uint64_t id, uint32_t n, uint64_t from);
/* Fed what is in r->in; no error. */
void rvt_mp_feed(struct rvt_rig *r);
/* The peer says a frame without a body; everything that is due leaves and is told. */
void rvt_mp_say(struct rvt_rig *r, unsigned flag, uint64_t id);
void rvt_mp_flush(struct rvt_rig *r);
/* What may happen to a stream that holds up the others; the last two: its reader reads a window, 5 s pass. */
enum rvt_mp_by {
	RVT_BY_CLOSE,
	RVT_BY_CLOSE_UNREAD,
	RVT_BY_DROP,
	RVT_BY_STOP,
	RVT_BY_RESET,
	RVT_BY_CONSUMED,
	RVT_BY_TIME,
	RVT_BYS
};
void rvt_mp_unblock(struct rvt_rig *r, int by, struct rv_stream *st);
/* Bytes of the peer's stream id that were delivered; bytes of the connection that are unread. */
uint64_t rvt_mp_got(struct rvt_rig *r, uint64_t id);
uint64_t rvt_mp_unread(const struct rvt_rig *r);
/* Time passes and is looked at. */
void rvt_mp_tick(struct rvt_rig *r, uint64_t ms);
/* What waits in r->in is parsed again. */
void rvt_mp_go_on(struct rvt_rig *r);
/* The next frame out is this one (data: its body is checked by content). */
void rvt_mp_want(struct rvt_rig *r, unsigned flag, uint64_t id, uint32_t len);
void rvt_mp_want_none(struct rvt_rig *r);
/* The bytes out are these, and no more. */
void rvt_mp_want_raw(struct rvt_rig *r, const char *hex);
void rvt_mp_put_raw(struct rvt_rig *r, const char *hex);
/* The reason id of the connection. */
void rvt_mp_want_reason(struct rvt_rig *r, int rc, const char *id);

#endif
