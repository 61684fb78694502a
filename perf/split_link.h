/*
 * split_link.h - a byte pipe of the contender `bare`: a blocking socket, or two bounded queues of blocks under a
 * mutex.  Copies: small pieces once into what is sent, large ones not at all (TCP); everything once (memory).
 */
#ifndef REEVE_PERF_SPLIT_LINK_H
#define REEVE_PERF_SPLIT_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RVP_BLOCK  65536u
#define RVP_BLOCKS 4u
#define RVP_PIECES 512
#define RVP_STAGE  (128u * 1024)

/* One direction of memory: a sender, a receiver. */
struct rvp_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned in, out; /* blocks filled, blocks emptied */
	bool ended;
	size_t used[RVP_BLOCKS];
	uint8_t block[RVP_BLOCKS][RVP_BLOCK];
};

void rvp_queue_init(struct rvp_queue *q);
void rvp_queue_fini(struct rvp_queue *q);

/* One end. */
struct rvp_link {
	int fd;                    /* memory: -1 */
	struct rvp_queue *rx, *tx; /* memory */
	/* received, not yet taken */
	uint8_t *in;
	size_t at, end;
	/* to be sent */
	uint8_t *stage;
	size_t staged;
	struct iovec piece[RVP_PIECES];
	int pieces;
	uint8_t *space; /* of in and stage */
};

/* The buffers of an end, kept over iterations. */
void rvp_link_init(struct rvp_link *k);
void rvp_link_fini(struct rvp_link *k);

void rvp_link_socket(struct rvp_link *k, int fd);
void rvp_link_queues(struct rvp_link *k, struct rvp_queue *rx, struct rvp_queue *tx);
/* The end of our direction, and of the socket. */
void rvp_link_close(struct rvp_link *k);

/* p stays as it is until the flush. */
void rvp_link_put(struct rvp_link *k, const uint8_t *p, size_t n);
void rvp_link_flush(struct rvp_link *k);
/* At least one byte, at most n. */
size_t rvp_link_get(struct rvp_link *k, uint8_t *to, size_t n);
uint8_t rvp_link_byte(struct rvp_link *k);

#endif
