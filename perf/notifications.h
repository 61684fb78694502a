/*
 * notifications.h - messages from one end to the other and requests that are answered, whoever carries them.
 *
 * One thread sends or asks, another one receives; both are the program's, unless a carrier does without.  A carrier's
 * failure ends the program.
 */
#ifndef REEVE_PERF_NOTIFICATIONS_H
#define REEVE_PERF_NOTIFICATIONS_H

#include <reeve/reeve.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVP_MESSAGE_MAX (1u << 30)

struct rvp_wanted {
	bool requests;     /* else notifications */
	uint32_t security; /* enum reeve_security */
	bool lazy;         /* requests are negotiated optimistically */
	bool
	    pin; /* a node and the thread that uses it on one processor, the other two on the next */
	bool callbacks;     /* one runtime for both nodes, no threads of the program's */
	unsigned workers;   /* of each runtime */
	int64_t timeout_ms; /* of a request */
};

/* A message that came: contiguous, and the receiver's until it is let go of. */
struct rvp_message {
	const uint8_t *bytes;
	size_t n;
	void *own;
	reeve_notif_event_t ev;
};

struct rvp_carrier {
	void *(*open)(const struct rvp_wanted *w);
	/* The sending thread: a fresh message, a copy of from, or zeros when that is NULL. */
	void (*send)(void *run, const uint8_t *from, size_t n);
	/* The receiving thread. */
	void (*receive)(void *run, struct rvp_message *m);
	void (*let_go)(void *run, struct rvp_message *m);
	/* The asking thread: two bytes there, n zeros back, and freed. */
	void (*ask)(void *run, size_t n);
	void (*close)(void *run);
	/* NULL, or instead of the above: n notifications of zeros, each checked; returns when all have come. */
	void (*flow)(void *run, bool serial, size_t size, unsigned n);
};

extern const struct rvp_carrier rvp_carrier_nodes, rvp_carrier_calls, rvp_carrier_raw;

/* A node of ours. */
struct rvp_node {
	reeve_rt_t *rt; /* with callbacks that of both */
	reeve_node_t *node;
	reeve_notif_t *notes;
	reeve_reqs_t *reqs;
	char id[REEVE_PEER_TEXT];
};

/* Makes both nodes, has install(run, i) install protocols on each, and connects them: [0] dials. */
void rvp_nodes_start(struct rvp_node end[2], const struct rvp_wanted *w,
    void (*install)(void *run, int i), void *run);
/* fn NULL: reeve_notif_next. */
void rvp_nodes_install(struct rvp_node *e, reeve_notif_fn fn, void *arg);
void rvp_nodes_stop(struct rvp_node end[2]);

/* n zeros, for free. */
uint8_t *rvp_zeros(size_t n);

#endif
