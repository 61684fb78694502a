/* node.h - a node: many peers, known by their ids, behind one runtime.  It listens, dials, keeps at most one connection
 * in use for each peer, and carries protocols over it: notifications (notif.h) and request-response (request.h), as
 * litep2p and rust-libp2p speak them.
 *
 * Peers are named by the text of their id (base58).  Callbacks run on workers and must not block; the strings and
 * structures that they are given are valid for the call. */
#ifndef REEVE_NODE_H
#define REEVE_NODE_H

#include <reeve/conn.h>
#include <reeve/op.h>

REEVE_BEGIN

typedef struct reeve_node reeve_node_t;

#define REEVE_PEER_TEXT 80 /* of any peer id, with its zero */

enum reeve_peer_event {
	REEVE_PEER_CONNECTED = 1,    /* the first usable connection: opens work from now on */
	REEVE_PEER_DISCONNECTED = 2, /* the last one has ended; reason says why */
	REEVE_PEER_DIAL_FAILED = 3   /* a dial that the application or a protocol asked for */
};

/* peer may be NULL when a dial without an expected id failed. */
typedef void (*reeve_peer_fn)(
    void *arg, int event, const char *peer, const char *addr, const reeve_reason_t *reason);

/* Zero means default, REEVE_OFF means off. */
typedef struct reeve_node_cfg {
	uint32_t size; /* set by reeve_node_cfg_init */
	uint32_t flags;
	const reeve_cfg_t *
	    conn; /* of every connection, copied; its upgrade is needed and has a security: peers have ids */
	uint32_t idle_ms; /* a connection without substreams and requests closes after; 10 000 */
	uint32_t dial_ms; /* for one dial, all addresses and the whole upgrade; 10 000 */
	uint32_t negotiate_ms; /* for a substream's protocol, in either direction; 10 000 */
	uint32_t max_conns;    /* connections at once, in both directions; 1000; more are refused */
	uint32_t max_negotiating; /* inbound substreams of one connection being negotiated; 256 */
	uint32_t max_peers;       /* ids whose addresses are remembered; 10 000 */
	reeve_peer_fn fn;         /* or NULL */
	void *arg;
} reeve_node_cfg_t;

/* Fill a configuration with its size and zeroes.  Use the macro.
 * T: any B: no W: ok */
REEVE_API void reeve_node_cfg_init_sized(reeve_node_cfg_t *cfg, size_t size);
#define reeve_node_cfg_init(c) reeve_node_cfg_init_sized((c), sizeof(*(c)))

/* Make a node on a runtime, which must live longer.  REEVE_EINVAL, REEVE_ENOMEM, REEVE_ECLOSED, REEVE_ENOTSUP.
 * T: any B: no W: ok returns ref */
REEVE_API REEVE_CHECKED int reeve_node_create(
    reeve_node_t **n, reeve_rt_t *rt, const reeve_node_cfg_t *cfg);

/* Listen on one more address (reeve_listen).
 * T: any B: yes W: no borrows n */
REEVE_API int reeve_node_listen(reeve_node_t *n, const char *addr);

/* The i-th address listened on, port filled in: its length, REEVE_EINVAL when there is none or size is too small.
 * T: any B: no W: ok borrows n */
REEVE_API int reeve_node_addr(reeve_node_t *n, unsigned i, char *out, size_t size);

/* Our own id: its length.
 * T: any B: no W: ok borrows n */
REEVE_API int reeve_node_id(reeve_node_t *n, char *out, size_t size);

/* Remember where a peer can be dialed (at most 8 addresses of each; the one that worked last is tried first).
 * T: any B: no W: ok borrows n */
REEVE_API int reeve_node_add_address(reeve_node_t *n, const char *peer, const char *addr);

/* Connect.  peer NULL: whoever answers at addr.  addr NULL: the remembered addresses, several at once.  Joins a dial that
 * is under way.  0 also when connected already; out (REEVE_PEER_TEXT bytes, or NULL) gets the id.  REEVE_ETIMEDOUT,
 * REEVE_EDIAL (no address answered; the log hook has each reason), REEVE_EIDENTITY, REEVE_ELIMIT (max_conns), REEVE_EINVAL (ourselves,
 * or no address).  timeout_ms -1: dial_ms.
 * T: any B: yes W: no borrows n */
REEVE_API int reeve_node_dial(
    reeve_node_t *n, const char *peer, const char *addr, char *out, int64_t timeout_ms);

/* As reeve_node_dial, numeric addresses only; op->timeout_ms -1: dial_ms.
 * T: any B: no W: ok borrows n */
REEVE_API void reeve_node_dial_async(
    reeve_node_t *n, const char *peer, const char *addr, reeve_op_t *op);

/* Close the connections with a peer gracefully (what is queued is sent, within a second).  REEVE_ENOTCONN.
 * T: any B: no W: ok borrows n */
REEVE_API int reeve_node_disconnect(reeve_node_t *n, const char *peer);

/* How many peers are connected; their ids go to out, at most max of them.
 * T: any B: no W: ok borrows n */
REEVE_API unsigned reeve_node_peers(reeve_node_t *n, char (*out)[REEVE_PEER_TEXT], unsigned max);

/* The controller of the connection in use with a peer, to open streams of one's own.  NULL: not connected.
 * T: any B: no W: ok borrows n returns ref */
REEVE_API reeve_ctl_t *reeve_node_ctl(reeve_node_t *n, const char *peer);

/* What a node holds.  All gauges are 0 after reeve_node_close. */
typedef struct reeve_node_stats {
	uint32_t size; /* set by the caller */
	uint32_t reserved;
	uint64_t peers, conns, dials;  /* gauges: connected, connections, attempts under way */
	uint64_t negotiating, opening; /* gauges: inbound substreams, opens of ours not decided */
	uint64_t streams, requests_in, requests_out; /* gauges: notification streams, requests */
	uint64_t queued,
	    held; /* gauges: bytes of notifications to be sent, received and not taken */
	uint64_t conns_total, dials_failed, refused; /* counters */
	uint64_t notif_sent, notif_received, notif_lost, notif_clogged;
	uint64_t requests_ok, requests_failed, requests_served, requests_refused;
} reeve_node_stats_t;

/* 0, or REEVE_EINVAL when out->size is not set.
 * T: any B: no W: ok borrows n */
REEVE_API int reeve_node_stats(reeve_node_t *n, reeve_node_stats_t *out);

/* End: no new connections, protocols end as if each stream were closed and each request cancelled, connections close
 * gracefully within timeout_ms (then are cut).  Every completion and closing event has been delivered when it returns.
 * 0 or REEVE_ETIMEDOUT.
 * T: any B: yes W: no borrows n */
REEVE_API int reeve_node_close(reeve_node_t *n, int64_t timeout_ms);

/* reeve_node_close(n, 0) unless that was done, and free; protocols installed on it are freed with it.  NULL is ignored.
 * T: owner B: yes W: no consumes n */
REEVE_API void reeve_node_destroy(reeve_node_t *n);

REEVE_END

#endif
