/* engine_rig.h - one engine on a bench: bytes and requests go in by hand, frames and events are
 * looked at one by one.  It serves both protocols; what is of yamux's frames is here, of mplex's in
 * mplex_rig.h. */
#ifndef REEVE_TESTS_KIT_ENGINE_RIG_H
#define REEVE_TESTS_KIT_ENGINE_RIG_H

#include "lib/config.h"
#include "lib/engine/gather.h"
#include "lib/engine/yamux_session.h"
#include "tests/kit/wire.h"

#include <check.h>

/* Runs a case, with a time limit for slow machines.  What main returns. */
int rvt_run_tcase(const char *name, TCase *t);

/* ck_assert without its note to the test's parent when all is well: for checks made millions of
 * times. */
#define RVT_CHECK(x)                            \
	do {                                    \
		if (!(x))                       \
			ck_abort_msg("%s", #x); \
	} while (0)

/* What a test knows of a stream, also after its record is gone. */
struct rvt_seen {
	struct rv_stream *st; /* NULL: gone */
	uint64_t id;          /* mplex: the key */
	uint64_t got;         /* bytes delivered, content checked */
	uint64_t taken;       /* reported taken */
	uint64_t queued;      /* given to send */
	uint64_t out;         /* bytes of bodies that rvt_want has seen */
	bool opened, fin, rst, gone, ended, refused, closing, slow, dropped;
	uint32_t code;
};

/* A record as the rig allocates it. */
struct rvt_rec {
	struct rv_stream st;
	uint32_t seen; /* index, 0: not yet */
};

struct rvt_rig {
	struct rv_engine *e;
	struct rv_arena *ar;
	struct rv_pool *pool;
	struct rv_gather *g;
	uint64_t now;
	unsigned room;    /* what the sink answers */
	unsigned fail_at; /* allocations until one fails, 0: never */
	bool fail_on;     /* and all after it */
	unsigned allocs;  /* asked for so far */
	bool consume;     /* every byte delivered is let go at once */
	struct rvt_bytes in, out;
	struct rv_event ev[4096]; /* all but TAKEN and DATA, since the last rvt_event */
	unsigned nev, at;
	struct rvt_seen *seen; /* [1..nseen] */
	unsigned nseen, capseen;
	unsigned bad; /* events out of order or with wrong content */
};

/* Defaults, before rvt_rig_init. */
void rvt_cfg(reeve_cfg_t *cfg);
/* yamux: the first ping has been sent and is not answered.  cfg NULL: defaults. */
void rvt_rig_init(struct rvt_rig *r, int role, const reeve_cfg_t *cfg, struct rv_budget *budget);
/* The same in two steps, for tests of the allocator: 0 or REEVE_ENOMEM. */
int rvt_rig_start(struct rvt_rig *r, int role, const reeve_cfg_t *cfg, struct rv_budget *budget);
/* Ends and frees; fails the test if something is left. */
void rvt_rig_fini(struct rvt_rig *r);
void rvt_rig_prepare(struct rvt_rig *r);

/* Feed r->in (built with rvt_put) whole, in pieces of at most chunk (0: all), and empty it.  0
 * or the fatal error. */
int rvt_feed(struct rvt_rig *r, size_t chunk);
/* Everything the engine has to send, at most max bytes a write (0: all), into r->out. */
void rvt_drain(struct rvt_rig *r, size_t max);
void rvt_notify(struct rvt_rig *r);

/* Every ping of the session's start is answered, each after us microseconds. */
void rvt_round_trips(struct rvt_rig *r, uint64_t us);

struct rv_stream *rvt_open(struct rvt_rig *r);
/* The peer opens id and it is accepted; all frames of that are consumed. */
struct rv_stream *rvt_inbound(struct rvt_rig *r, uint32_t id);
/* Opened here, the SYN is out and answered. */
struct rv_stream *rvt_outbound(struct rvt_rig *r);
/* Queue n bytes as one buffer, the stream's next ones. */
void rvt_send(struct rvt_rig *r, struct rv_stream *st, uint32_t n);
/* What is known of the newest stream with that id, or NULL; and of a stream that a test opened
 * itself. */
struct rvt_seen *rvt_seen(struct rvt_rig *r, uint64_t id);
void rvt_see(struct rvt_rig *r, struct rv_stream *st);

/* The next frame out is this one (DATA: its body is checked by content). */
void rvt_want(struct rvt_rig *r, unsigned type, unsigned flags, uint32_t id, uint32_t len);
/* Nothing more has come out. */
void rvt_want_none(struct rvt_rig *r);
/* The next event is this one. */
struct rv_event rvt_event(struct rvt_rig *r, enum rv_ev_kind kind, uint64_t id);
void rvt_no_event(struct rvt_rig *r);

#endif
