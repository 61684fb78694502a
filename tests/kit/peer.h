/* peer.h - a scripted peer: yamux frames by hand at the other end of a socket, without a thread of its own.
 *
 * Every wait has a deadline of RVT_WAIT_MS times the environment's REEVE_TEST_SLOW.  Check assertions inside: main
 * thread of a test.  Pings of the connection under test are answered and skipped unless told otherwise. */
#ifndef REEVE_TESTS_KIT_PEER_H
#define REEVE_TESTS_KIT_PEER_H

#include "tests/kit/wire.h"

#define RVT_WAIT_MS 10000

enum rvt_pings {
	RVT_PINGS_ANSWER, /* and skip */
	RVT_PINGS_MUTE,   /* skip */
	RVT_PINGS_KEEP    /* they are frames like others */
};

struct rvt_peer {
	int fd; /* non-blocking; -1: closed */
	struct rvt_bytes in, out;
	enum rvt_pings pings;
	uint32_t token; /* of the last barrier */
	uint64_t seen;  /* bytes received */
	bool end;       /* the end of the bytes was seen */
};

/* ms, times REEVE_TEST_SLOW. */
int rvt_slow(int ms);
/* The time, in ms, of no particular clock. */
uint64_t rvt_now_ms(void);
/* Others may run, up to so many times and for a millisecond: on a busy machine each time may take as long as theirs. */
void rvt_yield(unsigned times);

/* fd is the peer's from now on. */
void rvt_peer_init(struct rvt_peer *p, int fd);
/* Close and forget everything. */
void rvt_peer_fini(struct rvt_peer *p);
void rvt_peer_close(struct rvt_peer *p);
/* Our direction ends, reading goes on. */
void rvt_peer_shut(struct rvt_peer *p);

/* Send what rvt_put put into p->out, all in one run if the socket takes it.  What comes meanwhile is received. */
void rvt_peer_send(struct rvt_peer *p);
/* The same, without insisting: false, the other end is gone. */
bool rvt_peer_try_send(struct rvt_peer *p);
/* One header, at once. */
void rvt_peer_put(struct rvt_peer *p, unsigned type, unsigned flags, uint32_t id, uint32_t len);
/* DATA with n bytes, the stream's from the given one, at once. */
void rvt_peer_data(struct rvt_peer *p, unsigned flags, uint32_t id, uint32_t n, uint64_t from);

/* Receive what there is, without waiting. */
void rvt_peer_receive(struct rvt_peer *p);
/* Wait until more has come (in p->in); false: the other end has closed. */
bool rvt_peer_more(struct rvt_peer *p);
/* The next frame; false: the other end closed before one. */
bool rvt_peer_next(struct rvt_peer *p, struct rvt_frame *f);
/* The next frame that is not DATA of id; false: the last of *left bytes of id came first. */
bool rvt_peer_next_but(struct rvt_peer *p, struct rvt_frame *f, uint32_t id, uint64_t *left);
/* The next frame is this one.  The body of DATA is not looked at. */
void rvt_peer_want(struct rvt_peer *p, unsigned type, unsigned flags, uint32_t id, uint32_t len);
/* The next frame is DATA with these n bytes of the stream. */
void rvt_peer_want_data(struct rvt_peer *p, unsigned flags, uint32_t id, uint32_t n, uint64_t from);
/* The next frames are DATA of id with n bytes in all, from the given one.  Returns all their flags. */
unsigned rvt_peer_want_bytes(struct rvt_peer *p, uint32_t id, uint64_t n, uint64_t from);
/* No further frame, the other end closes (or resets). */
void rvt_peer_want_end(struct rvt_peer *p);
/* GO_AWAY(code), then the end. */
void rvt_peer_want_goaway_end(struct rvt_peer *p, uint32_t code);
/* Everything that was caused before has been sent, and there is no frame in it: pings are answered in order. */
void rvt_peer_want_none(struct rvt_peer *p);
/* The same, with frames: they stay to be looked at. */
void rvt_peer_barrier(struct rvt_peer *p);
/* The pings of a connection's beginning are answered until it asks no more; nothing else has come. */
void rvt_peer_settle(struct rvt_peer *p);

#endif
