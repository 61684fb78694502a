/*
 * peer.h - a yamux peer of a few lines: it dials over a unix socket pair, opens two streams and sends data
 * frames exactly as told, within the windows that it was given.  One thread.
 */
#ifndef REEVE_PERF_PEER_H
#define REEVE_PERF_PEER_H

#include <stddef.h>
#include <stdint.h>

#define RVP_PEER_WINDOW 262144u
#define RVP_PEER_UNIT   65536u

struct rvp_peer {
	int fd;
	uint32_t credit[2];
	uint64_t sent[2]; /* bytes of bodies */
	uint8_t in[12];
	size_t have;
};

/* Sends the two openings; returns the other end's descriptor, which is the caller's. */
int rvp_peer_start(struct rvp_peer *p);
/* Takes what has come (credit, pings), waiting at most ms for the first of it. */
void rvp_peer_listen(struct rvp_peer *p, int ms);
/* For each unit of 64 KiB of bodies one frame of body bytes on the first stream and the rest in one frame on
 * the second, until the first has no more credit or got frames of them.  Returns the bytes of the first. */
uint64_t rvp_peer_interleave(struct rvp_peer *p, uint32_t body, unsigned frames);
void rvp_peer_stop(struct rvp_peer *p);

#endif
