/* notes.h - nodes that notify each other: a net (net.h) whose nodes have one notification protocol each.
 *
 * Check assertions inside: main thread of a test. */
#ifndef REEVE_TESTS_KIT_NOTES_H
#define REEVE_TESTS_KIT_NOTES_H

#include "tests/kit/net.h"

struct rvt_notes {
	struct rvt_net net;
	reeve_notif_t *p[RVT_NET_MAX];
	bool called[RVT_NET_MAX]; /* has a callback: no reeve_notif_next */
};

/* Zeroed: names, defaults, events by reeve_notif_next; cfg[i] for node i, the last for the rest. */
struct rvt_notes_cfg {
	struct rvt_net_cfg net;
	const reeve_notif_cfg_t *cfg[2];
};
extern const char *const rvt_notes_names[]; /* "/notes/2", "/notes/1" */

/* Nodes, 0 knows where each of the others is. */
void rvt_notes_start(struct rvt_notes *t, const struct rvt_notes_cfg *cfg);
void rvt_notes_end(struct rvt_notes *t);
/* A configuration with the names. */
void rvt_notes_cfg(reeve_notif_cfg_t *cfg, const char *handshake);

/* Take and release what is there. */
void rvt_notes_forget(struct rvt_notes *t, unsigned i);
/* The next event of node i, of that type; to be released. */
void rvt_notes_next(struct rvt_notes *t, unsigned i, uint32_t type, reeve_notif_event_t *ev);
/* The same, of peer j, released. */
void rvt_notes_expect(struct rvt_notes *t, unsigned i, uint32_t type, unsigned j);
/* Nothing comes within so many ms. */
void rvt_notes_quiet(struct rvt_notes *t, unsigned i, int64_t ms);
/* Node i's stream with j opens, i asks and both agree (validated unless the configurations say otherwise).  The sinks. */
void rvt_notes_open(struct rvt_notes *t, unsigned i, unsigned j, reeve_sink_t *k[2]);
/* Accept the next question, or not. */
void rvt_notes_answer(struct rvt_notes *t, unsigned i, int accept);
/* A buffer of n bytes that say which message it is. */
reeve_buf_t *rvt_note(reeve_rt_t *rt, size_t n, uint32_t number);
/* ev is RECEIVED and the number-th message of n bytes. */
void rvt_note_check(const reeve_notif_event_t *ev, size_t n, uint32_t number);

/* A stranger (net.h) who knows the protocol's words: everything byte by byte, blocking, with a deadline.  Its substream
 * with our handshake and n bytes behind it, in one write; the node's, with its handshake (len: of which so many bytes). */
reeve_stream_t *rvt_wild_open(struct rvt_stranger *s, const char *bytes, size_t n);
reeve_stream_t *rvt_wild_accept(struct rvt_stranger *s, size_t len);
void rvt_wild_write(reeve_stream_t *s, const char *bytes, size_t n);
/* The next n bytes are these. */
void rvt_wild_read(reeve_stream_t *s, const char *bytes, size_t n);
/* It ends: 0, REEVE_ERESET, ... */
int rvt_wild_end(reeve_stream_t *s);
/* A stranger dials node 0, and both halves open (handshake of the node: so many bytes); out is its own. */
void rvt_wild_marry(
    struct rvt_notes *t, struct rvt_stranger *s, reeve_stream_t **out, reeve_stream_t **in);

#endif
