/* conn.h - a connection: a byte pipe that carries streams.  The connection handle belongs to whoever closes it;
 * its controller (ctl.h) may be shared freely. */
#ifndef REEVE_CONN_H
#define REEVE_CONN_H

#include <reeve/key.h>
#include <reeve/rt.h>
#include <sys/uio.h>

REEVE_BEGIN

enum reeve_proto { REEVE_YAMUX = 1, REEVE_MPLEX = 2 };
enum reeve_role {
	REEVE_DIALER = 1,
	REEVE_LISTENER = 2
}; /* yamux client (odd ids), yamux server (even ids) */

/* What protects a connection.  REEVE_NOISE (libp2p's Noise XX): both ends prove who they are, and nobody else can read,
 * change, repeat or leave out anything but the end.  REEVE_PLAINTEXT protects nothing: each end says who it is (libp2p's plaintext 2.0) and
 * anybody can say anything.  For tests, and for networks that are trusted as a whole; the log hook is warned. */
enum reeve_security { REEVE_SECURITY_NONE = 0, REEVE_PLAINTEXT = 1, REEVE_NOISE = 2 };

/* What is agreed with the peer before there are streams, by multistream-select: security, then which protocol carries
 * the streams.  Copied by whatever it is given to, with all it points to.  REEVE_ENOTSUP for REEVE_NOISE: the library was
 * built without it. */
typedef struct reeve_upgrade {
	uint32_t size;     /* sizeof(reeve_upgrade_t) */
	uint32_t security; /* enum reeve_security */
	uint32_t
	    muxers[4]; /* enum reeve_proto, in order of preference, 0 ends; all 0: yamux, mplex */
	uint32_t timeout_ms; /* for all of it, from the connected transport on; 10 000; REEVE_OFF */
	uint32_t reserved;
	const uint8_t
	    *key; /* our Ed25519 public key, 32 bytes, for REEVE_PLAINTEXT; NULL: identity's */
	const char *expect;  /* text of the id that the peer has to have; NULL: anybody */
	reeve_reason_t *why; /* filled before a dial answers an error: id names the step that failed
			        * (REEVE-UP-SECURITY, REEVE-UP-IDENTITY, REEVE-UP-MUXER); or NULL */
	const reeve_key_t *identity; /* who we are; needed by REEVE_NOISE */
} reeve_upgrade_t;

/* Zero means default, REEVE_OFF means no limit or off where that makes sense. */
typedef struct reeve_cfg {
	uint32_t size;   /* set by reeve_cfg_init */
	uint32_t proto;  /* enum reeve_proto; REEVE_YAMUX */
	uint32_t max_in; /* streams opened by the peer, at once; 8192 (mplex 128); more are reset */
	uint32_t max_out;        /* streams opened here, at once; no limit but the ids */
	uint32_t accept_backlog; /* inbound streams nobody accepted yet; 256; more are reset */
	uint32_t max_unacked; /* outbound streams the peer has not acknowledged; 256; opens wait */
	uint32_t
	    max_window; /* bytes; ceiling of a stream's receive window; 16 MiB; at least 256 KiB.  mplex, which has no
			 * windows: what may be unread of a stream; 256 KiB; at least 16 KiB */
	uint32_t
	    send_budget; /* bytes accepted from the application per stream, not yet sent; 256 KiB */
	uint32_t
	    split; /* bytes; largest body of a data frame; 64 KiB alone, 16 KiB among others; mplex 8 KiB */
	uint32_t keepalive_ms;         /* silence before a ping is sent; 30 000; REEVE_OFF */
	uint32_t keepalive_timeout_ms; /* silence after it that ends the connection; 10 000 */
	uint32_t
	    write_ms; /* a transport that takes no byte for so long ends the connection; 10 000 */
	uint32_t linger_ms; /* wait for the peer's FIN after reeve_close before a reset; 300 000 */
	uint32_t churn_burst; /* inbound streams reset before they were accepted: burst; 1000 */
	uint32_t churn_per_s; /* and rate; 500; above both the connection ends with REEVE_ELIMIT */
	uint32_t flags;       /* REEVE_CFG_* */
	uint64_t grow;        /* bytes; sum of window growth over 256 KiB a stream; 896 MiB */
	uint64_t
	    max_recv; /* bytes of received data held by the connection; 256 MiB.  mplex: unread of all streams that may
			   * still receive; 4 MiB */
	uint32_t
	    slow_ms; /* mplex: how long a reader at its bound may hold up the connection before its stream is
			       * reset; 5000; REEVE_OFF: for ever */
	uint32_t reserved;
	const reeve_upgrade_t
	    *upgrade; /* NULL: nothing is negotiated, proto carries the streams; else proto is not
					 * looked at */
} reeve_cfg_t;

#define REEVE_CFG_LAZY_ACK \
	0x1u /* acknowledge a stream with its first own frame only, not when it is accepted */

#define REEVE_CFG_SLOW_RESET \
	0x2u /* mplex: a stream at its bound is reset at once, nobody waits for its reader */

/* Fill a configuration with its size and zeroes.  Use the macro.
 * T: any B: no W: ok */
REEVE_API void reeve_cfg_init_sized(reeve_cfg_t *cfg, size_t size);
#define reeve_cfg_init(c) reeve_cfg_init_sized((c), sizeof(*(c)))

/* A byte pipe made by the application.  All calls come from one worker at a time and must not block.
 * readv:  bytes read (> 0), 0 at the end, REEVE_EAGAIN, or another error code; must not read more than asked.
 * writev: bytes taken (> 0), REEVE_EAGAIN and nothing taken, or another error code.
 * fd:     a descriptor for the poller, or -1: the transport calls reeve_transport_ready itself.
 * attach: optional; called once before anything else with the controller to give to reeve_transport_ready; the
 *         reference is borrowed until close is called.
 * close:  the last call, exactly once.  Any readv or writev result outside the contract ends the connection. */
typedef struct reeve_transport {
	reeve_ssize (*readv)(void *ctx, const struct iovec *v, int n);
	reeve_ssize (*writev)(void *ctx, const struct iovec *v, int n);
	int (*fd)(void *ctx);
	void (*attach)(void *ctx, reeve_ctl_t *k);
	void (*close)(void *ctx);
	void *ctx;
} reeve_transport_t;

#define REEVE_READABLE 1
#define REEVE_WRITABLE 2

/* Tell the connection that its transport may be read or written again (REEVE_READABLE | REEVE_WRITABLE).
 * T: any B: no W: ok borrows k */
REEVE_API void reeve_transport_ready(reeve_ctl_t *k, int events);

/* Carry streams over a transport.  t is copied; its close is called exactly once after success, never after
 * failure.  REEVE_EINVAL, REEVE_ENOMEM, REEVE_ENOTSUP, REEVE_ECLOSED (runtime shut down), a system error.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_conn_open(
    reeve_conn_t **c, reeve_rt_t *rt, const reeve_transport_t *t, int role, const reeve_cfg_t *cfg);

/* Carry streams over a connected stream socket (TCP, unix, socketpair).  The descriptor is the library's after
 * success and still the caller's after failure.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_conn_open_fd(
    reeve_conn_t **c, reeve_rt_t *rt, int fd, int role, const reeve_cfg_t *cfg);

/* Two connections joined in memory: pair[0] dialer, pair[1] listener.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_conn_pair(
    reeve_conn_t *pair[2], reeve_rt_t *rt, const reeve_cfg_t *cfg);

/* The controller, borrowed: take a reference to keep it longer than the connection handle.
 * T: any B: no W: ok borrows c */
REEVE_API reeve_ctl_t *reeve_conn_ctl(reeve_conn_t *c);

/* Close gracefully: no new streams, queued bytes and FINs leave, wait until every stream has ended both ways,
 * GO_AWAY(0), close; all within timeout_ms (-1 for ever), then abort.  0, REEVE_ETIMEDOUT (also, a little later, when
 * its worker is stuck in the application), or what ended the connection before (any error but a clean end).  The
 * handle stays: destroy it.
 * T: any B: yes W: no borrows c */
REEVE_API int reeve_conn_close(reeve_conn_t *c, int64_t timeout_ms);

/* Abort if still open, wait for the connection's last turn, let go of the handle.  NULL is ignored.
 * T: owner B: yes W: no consumes c */
REEVE_API void reeve_conn_destroy(reeve_conn_t *c);

/* Give up the owner's right to close: the connection lives until the last controller reference and the last
 * stream handle are gone, then closes gracefully.  NULL is ignored.
 * T: owner B: no W: ok consumes c */
REEVE_API void reeve_conn_release(reeve_conn_t *c);

REEVE_END

#endif
