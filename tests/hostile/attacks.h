/* attacks.h - floods as data: which frames, how many a step, and what may become of the connection.
 *
 * Every attacked connection is our listener; the attacker has opened stream 1, which is accepted and read. */
#ifndef REEVE_TESTS_HOSTILE_ATTACKS_H
#define REEVE_TESTS_HOSTILE_ATTACKS_H

#include "queues/counter.h"
#include <reeve/reeve.h>

#include "tests/kit/peer.h"

struct attack {
	const char *name;
	void (*put)(struct rvt_bytes *out, uint32_t i); /* step i */
	unsigned frames;                                /* of a step */
	uint32_t body; /* bytes of stream 1's credit that a step uses */
	int rc;        /* how the connection ends; 0: it lives */
	const char *id;
	bool may;           /* or it lives, if the answers are read as fast as they come */
	unsigned memory_kb; /* it may take at most so much from the allocator */
	bool large;         /* bodies are: by the megabyte */
	unsigned ratio;     /* processor time of a byte: at most so many times that of plain data */
};
#define NATTACKS 20
extern const struct attack attacks[NATTACKS];
const struct attack *attack_named(const char *name);

/* A stream whose bytes are read and forgotten, on the worker. */
struct sink {
	reeve_op_t op;
	reeve_stream_t *s;
	struct rvq_gauge over; /* the last read was answered */
};
/* The attacker opens stream 1, it is accepted. */
void sink_begin(struct sink *k, reeve_ctl_t *ctl, struct rvt_peer *p);
/* The connection has ended, or is destroyed next: let go. */
void sink_end(struct sink *k);

/* Steps [from, to) of an attack, as fast as they are taken.  False: the connection has ended.  *bytes grows by what
 * was sent. */
struct assault {
	const struct attack *a;
	struct rvt_peer *p;
	bool read; /* what we answer is read */
	uint32_t credit;
	uint64_t bytes, frames;
};
bool assault(struct assault *t, uint64_t from, uint64_t to);

#endif
