/* cell.h - one cell of the matrix of callbacks and calls: two connections, a stream, and a call to make. */
#ifndef REEVE_TESTS_SCENARIOS_CELL_H
#define REEVE_TESTS_SCENARIOS_CELL_H

#include <stdbool.h>

#include "tests/kit/duo.h"

enum where {
	IN_DIALED,
	IN_LISTENED,
	IN_OPENED,
	IN_ACCEPTED,
	IN_DATA,
	IN_WRITTEN,
	IN_END,
	IN_RESET,
	IN_TIMEOUT,
	IN_CANCELED,
	IN_PONG,
	IN_CLOSED,
	IN_MESSAGE,
	IN_STOPPED,
	IN_READV,
	IN_WRITEV,
	IN_TCLOSE,
	IN_LOG,
	IN_BUF_DONE,
	WHERES
};

struct cell {
	struct rvt_duo d;
	reeve_listener_t *l;
	reeve_ctl_t *k; /* own references: of c[0], s[0] */
	reeve_stream_t *s;
	char addr[64];
	enum where in;
	unsigned call;
	int fd; /* of c[0]'s transport */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool armed, fired;
	reeve_ssize rc;
	struct rvt_done bystander; /* waits for c[0]'s end */
	struct rvt_done more;      /* operation that the call starts */
	bool started;
	reeve_msg_t msg;
	reeve_actor_t *a;
	reeve_op_t trigger;
	reeve_conn_t *extra[2];
};

/* What is true after a call. */
enum after { NOTHING, STREAM_CLOSED, STREAM_DROPPED, CONN_ENDS, NO_MORE_STREAMS, NO_LISTENER };
struct call {
	const char *name;
	reeve_ssize (*fn)(struct cell *c); /* on a worker, inside a callback */
	reeve_ssize rc;                    /* 0 also for those without a result */
	enum after after;
};
#define CALLS 19
extern const struct call call[CALLS];

#endif
