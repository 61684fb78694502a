/* filter.h - the seam between transport and engine for encryption: everything received and sent goes through it.
 *
 * Pure; the owner is the connection's.  Receiving: bytes as they come from the transport are opened straight into blocks, and
 * what is proven becomes parts of them, which the engine parses in place.  Nothing received is kept but what is not proven
 * yet, in its place.  Sending: what was gathered is sealed into blocks, which wait here until the transport took them; it is
 * sealed once. */
#ifndef REEVE_LIB_UPGRADE_FILTER_H
#define REEVE_LIB_UPGRADE_FILTER_H

#include <sys/uio.h>
#include "lib/buf/slice.h"

struct rv_filter;
struct rv_gather;

#define RV_FILTER_BLOCK 65536u /* bytes of one open, at most */
#define RV_FILTER_PARTS 8u
#define RV_FILTER_IOV   16

struct rv_filter_ops {
	/* Open n bytes, all of them, into blocks of pool; only while no part waits.  An error ends the connection, after the
	 * parts that are there; id says which. */
	int (*open)(struct rv_filter *f, struct rv_pool *pool, const uint8_t *p, size_t n);
	/* Is the peer inside a message? */
	bool (*inside)(const struct rv_filter *f);
	/* Nothing more comes for now: give back what is not needed. */
	void (*rest)(struct rv_filter *f, struct rv_pool *pool);
	/* Seal all of g, which was not offered to anybody; only while nothing sealed waits.  REEVE_ENOMEM: nothing happened,
	 * it may be tried again. */
	int (*seal)(struct rv_filter *f, struct rv_pool *pool, const struct rv_gather *g);
	void (*destroy)(struct rv_filter *f);
};

/* len bytes of slab, which holds one reference. */
struct rv_part {
	struct rv_slab *slab;
	uint32_t off, len;
};

struct rv_filter {
	const struct rv_filter_ops *ops;
	uint32_t message; /* most bytes of one message, see rv_gather */
	const char *id;   /* of the reason, after an error */
	struct rv_part part[RV_FILTER_PARTS];
	unsigned nready, nparts; /* the first ones are proven */
	struct rvq_link *out, **out_tail;
	uint32_t out_off; /* taken of the first */
	size_t out_left;
};

void rv_filter_init(struct rv_filter *f, const struct rv_filter_ops *ops, uint32_t message);
/* Let go of all that waits. */
void rv_filter_fini(struct rv_filter *f);
/* The first proven part; the caller's reference now.  False: none. */
bool rv_filter_pop(struct rv_filter *f, struct rv_part *part);
/* Append bytes that the block's owner has just filled, not proven: to the last part if they are behind it.  REEVE_ELIMIT. */
int rv_filter_push(struct rv_filter *f, struct rv_slab *s, uint32_t off, uint32_t len);
/* All that is there is proven. */
void rv_filter_prove(struct rv_filter *f);
/* A block of s->used sealed bytes, the caller's reference. */
void rv_filter_out(struct rv_filter *f, struct rv_slab *s);
/* What is to be written: how many of v, at most RV_FILTER_IOV.  Then: the transport took n bytes. */
int rv_filter_iov(const struct rv_filter *f, struct iovec *v);
void rv_filter_sent(struct rv_filter *f, size_t n);

#endif
