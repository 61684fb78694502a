/* reeve_node.h - what the files of our node share.  Its language is that of rust/nodes/README.md.  Commands are taken by the main
 * thread; each protocol has a thread that takes what comes, each `send` and each `request` one that carries it out. */
#ifndef REEVE_TESTS_INTEROP_REEVE_NODE_H
#define REEVE_TESTS_INTEROP_REEVE_NODE_H

#include "tests/interop/sha256.h"

#include <reeve/reeve.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODE_WORDS     12
#define NODE_PROTOCOLS 8
#define NODE_NAMES     8
#define NODE_REASON    48

/* ---- words in and out, reeve_node_words.c */

/* A line: it points into the line itself. */
struct node_command {
	char *word;
	char *arg[NODE_WORDS];
	unsigned nargs;
	char *key[NODE_WORDS], *value[NODE_WORDS];
	unsigned nkeys;
};

/* A line on standard output. */
__attribute__((format(printf, 1, 2))) void node_say(const char *format, ...);
/* A command that failed: blanks of the reason are written as _. */
void node_fail(const struct node_command *c, const char *reason);
/* Say why and leave with status 1: for the command line. */
void node_must(bool ok, const char *what, const char *more);
/* False: an empty line, or a comment. */
bool node_parse(struct node_command *c, char *line);
const char *node_arg(const struct node_command *c, unsigned i); /* "" when it is missing */
const char *node_key(const struct node_command *c, const char *key, const char *otherwise);
bool node_number(const char *text, uint64_t *out);
/* The bytes of hexadecimal text: allocated.  False: it is none. */
bool node_unhex(const char *text, uint8_t **out, size_t *n);
char *node_hex(const uint8_t *p, size_t n); /* allocated */
/* The word of a result, as the language has it for opens, for requests or for ends. */
enum node_what { NODE_OPEN, NODE_REQUEST, NODE_END };
const char *node_reason(char out[NODE_REASON], int rc, enum node_what what);
uint64_t node_us(void);

/* ---- threads that end with the node, reeve_node.c */

/* Runs fn(arg) on a thread of its own. */
void node_begin(void *(*fn)(void *arg), void *arg);

/* ---- content, reeve_node_content.c */

struct node_size {
	uint64_t least, most;
};
struct node_words {
	uint64_t x;
	uint8_t word[8];
};
struct node_tally {
	uint64_t count, bytes;
	struct sha256 sum;
};

#define NODE_HEAD 16 /* bytes; a shorter request is answered with itself */

bool node_size(const char *text, struct node_size *out);
uint64_t node_size_of(struct node_size s, uint64_t seed, uint64_t index);
/* A buffer with these bytes; NULL for 0. */
reeve_buf_t *node_message(reeve_rt_t *rt, uint64_t seed, uint64_t index, struct node_size size);
bool node_is_message(const reeve_buf_t *b, uint64_t seed, uint64_t index, struct node_size size);
reeve_buf_t *node_request(
    reeve_rt_t *rt, uint64_t seed, uint64_t index, uint64_t size, uint64_t answer);
bool node_is_request(const reeve_buf_t *b);
reeve_buf_t *node_response(reeve_rt_t *rt, reeve_buf_t *request);
/* Whether b answers node_request(seed, index, size, answer). */
bool node_is_response(
    const reeve_buf_t *b, uint64_t seed, uint64_t index, uint64_t size, uint64_t answer);
size_t node_len(const reeve_buf_t *b); /* 0 for NULL */
void node_tally_init(struct node_tally *t);
void node_tally_add(struct node_tally *t, const reeve_buf_t *b);
/* "count=... bytes=..." and the digest as text. */
void node_tally_digest(const struct node_tally *t, char out[65]);

/* ---- protocols */

/* The command line's, of either kind. */
struct node_proto {
	char *names[NODE_NAMES];
	uint32_t nnames;
	uint64_t max_size;
	reeve_rt_t *rt;
	/* notifications */
	uint8_t *handshake;
	size_t handshake_len;
	bool auto_accept;
	const char *validate;
	/* requests */
	uint64_t timeout_ms, inbound;
	const char *respond;
	bool lazy, quiet;
};

/* The name of a fallback, "-" for the main one. */
const char *node_fallback(const struct node_proto *p, unsigned index);

struct node_notify;
struct node_ask;

/* Installs it and begins to take what comes.  Ends when the node is closed. */
struct node_notify *node_notify_begin(reeve_node_t *n, const struct node_proto *p);
/* False: not one of its commands. */
bool node_notify_obey(struct node_notify *y, const struct node_command *c);
bool node_notify_has(const char *word);
void node_notify_free(struct node_notify *y);

struct node_ask *node_ask_begin(reeve_node_t *n, const struct node_proto *p);
bool node_ask_obey(struct node_ask *k, const struct node_command *c);
bool node_ask_has(const char *word);
void node_ask_free(struct node_ask *k);

#endif
