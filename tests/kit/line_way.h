/* line_way.h - one direction of one connection of a line: a ring of bytes with the times at which they may leave.
 *
 * Owner: the line's thread.  All times are nanoseconds of the monotonic clock. */
#ifndef REEVE_TESTS_KIT_LINE_WAY_H
#define REEVE_TESTS_KIT_LINE_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the connections of a direction share: clock is when the last byte taken in has left the queue. */
struct rvt_pace {
	uint64_t clock, delay;
	uint64_t mbit;  /* 0: no rate */
	uint64_t queue; /* bytes that may wait for the rate */
	size_t piece;   /* bytes that leave together */
	size_t hold;    /* bytes a connection may have here */
};

/* Bytes before end leave at due. */
struct rvt_mark {
	uint64_t end, due;
};

enum rvt_way_end { RVT_WAY_OPEN, RVT_WAY_FIN, RVT_WAY_RST };

struct rvt_way {
	uint8_t *ring; /* pace's hold bytes */
	uint64_t in, out;
	uint64_t ready; /* bytes before it have waited long enough */
	struct rvt_mark *marks;
	size_t head, nmarks, room; /* marks is a ring of room */
	enum rvt_way_end end;
	uint64_t end_due;
	bool blocked; /* the receiver's socket is full */
};

/* False: no memory. */
bool rvt_way_init(struct rvt_way *w, const struct rvt_pace *p);
void rvt_way_free(struct rvt_way *w, const struct rvt_pace *p);
/* Bytes worth taking in now, and if none when there are (UINT64_MAX: after bytes have left). */
size_t rvt_way_room(
    const struct rvt_way *w, const struct rvt_pace *p, uint64_t now, uint64_t *when);
/* Takes in up to n bytes of the socket; an end or an error is noted as the way's end. */
void rvt_way_read(struct rvt_way *w, struct rvt_pace *p, int fd, size_t n, uint64_t now);
/* Hands on what is due, at most n bytes.  How many left; -1: the receiver is gone. */
long rvt_way_write(struct rvt_way *w, const struct rvt_pace *p, int fd, size_t n, uint64_t now);
/* Nobody takes it any more: what is held is forgotten. */
void rvt_way_drop(struct rvt_way *w);
/* The way ends by a reset now, behind what it holds. */
void rvt_way_break(struct rvt_way *w, const struct rvt_pace *p, uint64_t now);
/* Everything is handed on and the end is due. */
bool rvt_way_over(const struct rvt_way *w, uint64_t now);
/* When something becomes due; UINT64_MAX: nothing waits for time. */
uint64_t rvt_way_next(const struct rvt_way *w);
/* Bytes of the direction that wait for the rate. */
uint64_t rvt_pace_queued(const struct rvt_pace *p, uint64_t now);

#endif
