/* net.h - several nodes with a protocol that keeps what it gets, and opens that can be waited for.
 *
 * Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_NET_H
#define REEVE_TESTS_KIT_NET_H

#include <pthread.h>
#include <reeve/reeve.h>

#include "node/core.h"
#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/node.h"

#define RVT_NET_MAX   20
#define RVT_FAKE_KEEP 4096

/* A protocol without words: streams that are agreed on are kept until it is told to close. */
struct rvt_fake {
	struct rvn_proto p;
	pthread_mutex_t lock;
	bool drop; /* close each stream at once */
	bool cut;  /* end the connection of each */
	/* under the lock */
	reeve_stream_t *kept[RVT_FAKE_KEEP];
	unsigned nkept, inbound, ups, downs, names[4];
	int balance;   /* ups without downs, over all peers */
	bool disorder; /* an inbound stream or a second event that should not be */
	bool closed, freed;
	struct rvt_fake_peer {
		char id[REEVE_PEER_TEXT];
		bool up;
	} peer[64];
	unsigned npeers;
};

struct rvt_net_node {
	reeve_rt_t *rt;
	reeve_node_t *n;
	char id[REEVE_PEER_TEXT], addr[256];
	uint8_t key[32];
	struct rvt_fake fake;
	/* what its peer function was told, under fake.lock */
	unsigned connected, disconnected, dial_failed;
	reeve_reason_t why; /* of the last */
	char last[REEVE_PEER_TEXT];
	void (*hook)(struct rvt_net_node *m, int event, const char *peer);
};

struct rvt_net {
	struct rvt_alloc alloc;
	unsigned n;
	struct rvt_net_node node[RVT_NET_MAX];
	struct rvt_base base;
};

/* Zeroed: one runtime of two workers for each node, memory addresses, either muxer. */
struct rvt_net_cfg {
	unsigned nodes, workers;
	enum rvt_via via; /* RVT_MEMORY, RVT_UNIX, RVT_TCP */
	uint32_t muxer;
	bool deaf;               /* nobody listens */
	bool noise;              /* else plaintext */
	reeve_node_cfg_t node;   /* conn, fn and arg are not looked at */
	const reeve_cfg_t *conn; /* but its upgrade, or NULL */
};
extern const char *const rvt_fake_names[]; /* "/fake/2", "/fake/1" */

void rvt_net_start(struct rvt_net *t, const struct rvt_net_cfg *cfg);
/* One node, made or made again (with key number key): its runtime must be there. */
int rvt_net_node(struct rvt_net *t, unsigned i, const struct rvt_net_cfg *cfg, unsigned key);
/* Close and destroy one node: every gauge is 0. */
void rvt_net_stop(struct rvt_net *t, unsigned i, int64_t timeout_ms);
/* Every node, every runtime; nothing is left of them. */
void rvt_net_end(struct rvt_net *t);
/* Node i knows where j is; and is connected with it. */
void rvt_net_introduce(struct rvt_net *t, unsigned i, unsigned j);
void rvt_net_connect(struct rvt_net *t, unsigned i, unsigned j);
reeve_node_stats_t rvt_net_stats(struct rvt_net *t, unsigned i);
/* Under its lock. */
unsigned rvt_fake_inbound(struct rvt_net_node *m);
unsigned rvt_net_events(struct rvt_net_node *m, int event);
/* Close what the protocol keeps. */
void rvt_fake_let_go(struct rvt_fake *f);

/* An open that counts its completions. */
struct rvt_opening {
	struct rvn_open o; /* first */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t starter;
	unsigned calls;
	bool inside, anywhere; /* anywhere: the runtime may be gone, then there is no worker */
	uint64_t ms;           /* when it was completed */
};
/* The two names of the fake; deadline in ms from now, -1: none.  Start it with rvt_open. */
void rvt_opening_init(struct rvt_opening *o, unsigned flags, int64_t timeout_ms);
void rvt_open(struct rvt_net *t, unsigned i, unsigned j, struct rvt_opening *o);
bool rvt_opening_done(struct rvt_opening *o);
/* Its rc; fails when it does not come, came twice, or came inside the starting call.  The stream is closed. */
int rvt_opening_wait(struct rvt_opening *o);

/* Somebody who speaks the protocols below a node's, as a test tells him; on a runtime of the net. */
struct rvt_stranger {
	reeve_listener_t *l;
	reeve_conn_t *c;
	reeve_ctl_t *k; /* borrowed from c */
	char id[REEVE_PEER_TEXT], addr[256];
	uint8_t key[32];
};
void rvt_stranger_start(struct rvt_stranger *s, reeve_rt_t *rt, unsigned key);
/* Take the connection that a node has dialed. */
void rvt_stranger_accept(struct rvt_stranger *s);
/* Dial one. */
int rvt_stranger_dial(struct rvt_stranger *s, reeve_rt_t *rt, const char *addr);
void rvt_stranger_end(struct rvt_stranger *s);

/* A TCP address where it is quiet: connections come into being and nothing is said; not even that, connects stay
 * unanswered; connects are refused. */
enum rvt_quiet { RVT_MUTE, RVT_DEAF, RVT_NOBODY };
struct rvt_silent {
	int fd, filler[8];
	char addr[64];
};
void rvt_silent_start(struct rvt_silent *s, enum rvt_quiet how);
void rvt_silent_end(struct rvt_silent *s);
/* An address where nobody can be. */
void rvt_nobody(char addr[64]);

#endif
