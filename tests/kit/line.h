/* line.h - a line with distance: a TCP relay that delays, paces and bounds what passes.
 *
 * Each direction of the line has one rate, which its connections share, then a delay; what waits for its turn waits in a
 * bounded queue, and while that is full nothing is read (so the sender's TCP stops).  The kernel's socket buffers at
 * the line are small, so that they add little to the queue.  Half-closes and resets pass with the bytes they follow.
 *
 * A line is one thread of its own.  Everything here may be called by any thread; nothing asserts, so that programs
 * without Check can use it. */
#ifndef REEVE_TESTS_KIT_LINE_H
#define REEVE_TESTS_KIT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVT_LINE_BIN_MS 10

/* Up: from who connects to the line to its target.  Down: back. */
enum rvt_dir { RVT_UP, RVT_DOWN };

/* Zeroed but for to: a plain relay. */
struct rvt_line_cfg {
	const char *to;     /* HOST:PORT, an IPv4 address */
	const char *listen; /* the same; NULL: a free port of 127.0.0.1 */
	uint64_t delay_us;  /* each way */
	uint64_t mbit;      /* Mbit/s each way, 0: as fast as it goes */
	size_t
	    queue; /* bytes; 0: two bandwidth-delay products, at least 64 KiB (without a rate 64 MiB in all) */
	size_t
	    buffer; /* bytes; not 0: the socket buffers, and all that a direction holds, are that small */
	bool cut,
	    cut_fin; /* end every connection after so many bytes of a direction: by reset, or by FINs */
	enum rvt_dir cut_dir;
	uint64_t cut_bytes;
};

struct rvt_line;

/* NULL and errno: no socket, no thread. */
struct rvt_line *rvt_line_start(const struct rvt_line_cfg *cfg);
/* Connections are cut, the thread is gone, the memory too.  NULL is ignored. */
void rvt_line_stop(struct rvt_line *l);
/* Where it listens: HOST:PORT. */
const char *rvt_line_addr(const struct rvt_line *l);

/* Bytes handed to the receivers' sockets since the start, of all connections. */
uint64_t rvt_line_total(struct rvt_line *l, enum rvt_dir dir);
/* The same by bins of RVT_LINE_BIN_MS since the start: at most max of them from the first one on; how many there are. */
size_t rvt_line_bins(struct rvt_line *l, enum rvt_dir dir, uint32_t *out, size_t max);
/* The bin that is being filled. */
size_t rvt_line_bin(const struct rvt_line *l);
/* Bytes that wait for their turn to be sent. */
uint64_t rvt_line_queued(struct rvt_line *l, enum rvt_dir dir);

#endif
