/* flow.h - threads that pump numbered bytes through streams and check them.
 *
 * What a thread finds is kept in its record and judged by rvt_flow_end on the main thread of a test. */
#ifndef REEVE_TESTS_KIT_FLOW_H
#define REEVE_TESTS_KIT_FLOW_H

#include <pthread.h>
#include <reeve/reeve.h>
#include <stdbool.h>

enum rvt_flow_kind {
	RVT_FLOW_WRITE, /* total bytes, then reeve_shut unless open is set */
	RVT_FLOW_READ,  /* to the end: total bytes are expected; with open: stop after them */
	RVT_FLOW_ECHO   /* read and write back to the end, then reeve_shut */
};

struct rvt_flow {
	enum rvt_flow_kind kind;
	reeve_stream_t *s;
	uint64_t total;
	uint32_t key;  /* of the bytes: rvt_byte(key, i) */
	uint32_t seed; /* of the sizes of calls */
	size_t max;    /* the largest call; 0: 64 KiB */
	bool open;
	reeve_rt_t *rt; /* not NULL: by reeve_read_buf and reeve_write_buf, with its buffers */
	/* results */
	uint64_t done;
	int rc;     /* 0 or what ended it */
	bool wrong; /* a byte was not what it should be */
	pthread_t thread;
};
void rvt_flow_start(struct rvt_flow *f);
/* Wait for it; fails the test unless it did everything. */
void rvt_flow_end(struct rvt_flow *f);
/* Wait for it only. */
void rvt_flow_join(struct rvt_flow *f);
/* The next of a row of numbers. */
uint32_t rvt_random(uint32_t *seed);
/* REEVE_SEED of the environment or one of the time, printed. */
uint32_t rvt_seed(void);
/* REEVE_SCALE of the environment, 1 to 1000. */
unsigned rvt_scale(void);

#endif
