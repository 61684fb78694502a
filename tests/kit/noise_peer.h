/* noise_peer.h - one connection of ours against a peer that speaks Noise by hand, at the other end of a socket.
 *
 * One at a time.  Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_NOISE_PEER_H
#define REEVE_TESTS_KIT_NOISE_PEER_H

#include <reeve/reeve.h>
#include <stdbool.h>

#include "lib/upgrade/noise.h"
#include "tests/kit/wire.h"

#define HELLO  "\x13/multistream/1.0.0\n"
#define NOISE  "\x07/noise\n"
#define YAMUX  "\x0d/yamux/1.0.0\n"
#define STR(s) (s), sizeof(s) - 1

struct rvt_np {
	reeve_rt_t *rt;
	reeve_conn_t *c;
	reeve_ctl_t *k;
	reeve_key_t *key[2]; /* ours, the peer's */
	struct rv_arena *arena;
	struct rv_pool *pool;
	struct rv_noise x;
	struct rv_filter *f;
	struct rv_gather *g;
	int fd;
	struct rvt_bytes in, out, plain; /* received, to be sent, received and opened */
};
extern struct rvt_np rvt_np;

/* Ours has the role and expects that id; yamux. */
void rvt_np_begin(int role, const char *expect);
void rvt_np_finish(void);

/* Bytes as they are: to be sent; send all that was put, in pieces; these come next; receive (false: the end). */
void rvt_np_put(const void *p, size_t n);
void rvt_np_flush(size_t piece);
void rvt_np_want(const void *p, size_t n);
bool rvt_np_more(void);

/* The handshake's messages, in and out; and what follows from them. */
void rvt_np_noise_out(void);
void rvt_np_noise_in(size_t n);
void rvt_np_filter(void);
/* The peer dials: up to and with the last message of noise, which is put but not sent. */
void rvt_np_dial_noise(void);
/* And all that is behind it: the connection is ready. */
void rvt_np_dial(void);

/* Seal n bytes into one message, behind what was put; a stream of the peer's with n bytes in one. */
void rvt_np_seal(const void *p, size_t n);
void rvt_np_stream(uint32_t id, uint32_t n);
/* Open what has come; these bytes come next. */
void rvt_np_open_in(void);
void rvt_np_want_plain(const void *p, size_t n);

/* The next stream that the peer has opened. */
reeve_stream_t *rvt_np_accepted(void);
/* The connection ends like that. */
void rvt_np_want_reason(int rc, uint32_t by, const char *id);

#endif
