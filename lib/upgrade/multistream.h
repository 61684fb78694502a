/* multistream.h - multistream-select 1.0: two ends agree on a protocol by its name.
 *
 * Pure: bytes in, bytes out, no I/O and no clock (the caller has one deadline for everything).  One owner.  Nothing of
 * the next protocol is swallowed: feeding stops behind the message that decided.
 *
 * Messages are a varint length and a text that ends in a newline.  The dialer proposes names in its order, the listener
 * echoes the first that it knows and answers "na" to the others; both begin with one header.  Lazy: a dialer with one
 * name goes on as if it had been echoed; header, name and its first bytes leave together, and the answer is looked at
 * when it comes.  That is wrong where the bytes that follow could be read as a proposal, as in another negotiation
 * (go-multistream issue 20): for streams of applications only.
 *
 * Source: the multistream-select specification; caps and the forgiveness of early bytes after "na" as rust-libp2p PR 1871. */
#ifndef REEVE_LIB_UPGRADE_MULTISTREAM_H
#define REEVE_LIB_UPGRADE_MULTISTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <reeve/error.h>

#define RV_MS_MESSAGE   1024u /* bytes of a message, its newline included */
#define RV_MS_PROPOSALS 64u   /* that a listener answers */
#define RV_MS_BYTES     8192u /* that one negotiation takes from the peer */
#define RV_MS_OUT       2560u

enum rv_ms_mode { RV_MS_DIALER = 1, RV_MS_LAZY, RV_MS_LISTENER };

struct rv_ms {
	const char *const *names; /* in order of preference; borrowed */
	unsigned nnames, at;      /* at: proposed, in the end agreed */
	uint8_t mode;
	bool header;    /* the peer's has come */
	bool done;      /* agreed and confirmed, or failed */
	bool refused;   /* the last thing said was "na" */
	bool listed;    /* "ls" was answered */
	int rc;         /* done: 0 or why not */
	const char *id; /* of the reason, "" */
	uint32_t seen, proposals;
	uint32_t have, need; /* bytes of the message at hand; need 0: its length is not known */
	uint32_t out_at, out_end;
	uint8_t in[RV_MS_MESSAGE + 2];
	uint8_t out[RV_MS_OUT];
};

/* n >= 1 names, each "/" and at most RV_MS_MESSAGE - 1 bytes without a newline.  Lazy: only the first counts.
 * REEVE_EINVAL. */
int rv_ms_init(struct rv_ms *m, enum rv_ms_mode mode, const char *const *names, unsigned n);
/* Received bytes: how many were used; all, unless m->done.  m->rc says how it went: 0 and m->at, REEVE_ENOPROTO (no name
 * in common), REEVE_EPROTO, REEVE_ELIMIT. */
size_t rv_ms_feed(struct rv_ms *m, const uint8_t *p, size_t n);
/* The peer sends no more: failed, unless done. */
void rv_ms_end(struct rv_ms *m);
/* What is to be sent, also after it failed (a last "na"): *p and its length, 0 for nothing; then how much was taken. */
size_t rv_ms_out(const struct rv_ms *m, const uint8_t **p);
void rv_ms_sent(struct rv_ms *m, size_t n);
/* May bytes of the agreed protocol be sent (behind rv_ms_out)? */
static inline bool
rv_ms_may_send(const struct rv_ms *m)
{
	return m->done ? m->rc == 0 : m->mode == RV_MS_LAZY;
}

#endif
