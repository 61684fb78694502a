/* cat.h - reeve-cat: what its files share.
 *
 * Three threads: one sends standard input, one writes to standard output, main watches over both, shows how far they
 * are and ends everything. */
#ifndef REEVE_TOOLS_CAT_H
#define REEVE_TOOLS_CAT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <reeve/reeve.h>

#include "tools/mux.h"

enum cat_progress { CAT_AUTO, CAT_ALWAYS, CAT_NEVER };

struct cat_options {
	const char *addr;
	bool listen;
	bool show;          /* progress wanted ... */
	int64_t timeout_ms; /* of connecting, and of silence both ways; -1 none */
	bool reset;         /* end of input: reset the stream with ... */
	uint32_t reset_code;
	enum cat_progress when; /* ... and where */
	struct mux mux;
};

struct cat {
	struct cat_options opt;
	reeve_cfg_t cfg;
	reeve_rt_t *rt;
	reeve_conn_t *conn;
	reeve_stream_t *stream;
	int wake[2];    /* becomes readable when the sender must stop waiting for input */
	uint64_t total; /* bytes of input if it is a file, else 0 */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under lock */
	uint64_t sent, received, moved_us; /* moved_us: when something moved last */
	int running;                       /* of the two pumps */
	int rc;                            /* the first error ... */
	const char *what;                  /* ... of this; NULL: the stream */
};

/* Note the first error and wake who watches.  Any thread. */
void cat_fail(struct cat *c, const char *what, int rc);

/* The threads: input to the stream, the stream to output.  arg: struct cat. */
void *cat_send(void *arg);
void *cat_receive(void *arg);

/* Wait until both pumps are through, showing progress, and end them early after an error or a silence.  Answers
 * whether both have ended.  main. */
bool cat_watch(struct cat *c);

#endif
