/*
 * notifications.h - messages from one end to the other and requests that are answered, whoever carries them.
 *
 * One thread sends or asks, another one receives; both are the program's.  A carrier's failure ends the program.
 */
#ifndef REEVE_PERF_NOTIFICATIONS_H
#define REEVE_PERF_NOTIFICATIONS_H

#include <reeve/reeve.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVP_MESSAGE_MAX (1u << 30)

struct rvp_wanted {
	bool requests;      /* else notifications */
	uint32_t security;  /* enum reeve_security */
	bool lazy;          /* requests are negotiated optimistically */
	unsigned workers;   /* of each node */
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
	/* The sending thread.  Consumes bytes (of malloc); n may be 0, bytes NULL then. */
	void (*send)(void *run, uint8_t *bytes, size_t n);
	/* The receiving thread. */
	void (*receive)(void *run, struct rvp_message *m);
	void (*let_go)(void *run, struct rvp_message *m);
	/* The asking thread: two bytes there, n zeros back, and freed. */
	void (*ask)(void *run, size_t n);
	void (*close)(void *run);
};

extern const struct rvp_carrier rvp_carrier_nodes, rvp_carrier_raw;

/* n zeros of malloc. */
uint8_t *rvp_zeros(size_t n);

#endif
