/* A peer that falls silent, at every byte of what it says: while connecting, negotiating security and muxer, opening,
 * agreeing on the protocol, answering.  One failure, at the deadline, and the step says where.
 *
 * Between the nodes is a relay that lets only so many bytes of the responder through and then swallows the rest. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/run.h"
#include "tests/node/req_kit.h"

#define DEADLINE_MS 60
#define LATE_MS     100

struct relay {
	int listener, to, from; /* to: the responder; from: the requester */
	size_t budget;          /* bytes of the responder that pass */
	size_t passed;
	bool accepts; /* false: connections wait in the kernel */
	struct rvq_cell32 stop;
	pthread_t thread;
	char addr[64];
	struct sockaddr_in target;
};

static int
tcp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	ck_assert_int_ge(fd, 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* All of what can be read now goes to the other side, as far as it may.  False: an end. */
static bool
pass(struct relay *r, int in, int out, bool counted)
{
	char buf[4096];
	ssize_t n = recv(in, buf, sizeof(buf), MSG_DONTWAIT);
	size_t len;

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	len = (size_t)n;
	if (counted) {
		len = len < r->budget - r->passed ? len : r->budget - r->passed;
		r->passed += len;
	}
	for (size_t at = 0; at < len;) {
		n = send(out, buf + at, len - at, MSG_NOSIGNAL);
		if (n < 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static void *
relay_main(void *arg)
{
	struct relay *r = arg;
	bool up = false;

	while (rvq_cell32_get(&r->stop) == 0) {
		struct pollfd p[3] = {{r->accepts && !up ? r->listener : -1, POLLIN, 0},
		    {up ? r->to : -1, POLLIN, 0}, {up ? r->from : -1, POLLIN, 0}};

		if (poll(p, 3, 5) <= 0)
			continue;
		if (p[0].revents != 0) {
			r->from = accept(r->listener, NULL, NULL);
			up = r->from >= 0 &&
			    connect(r->to, (struct sockaddr *)&r->target, sizeof(r->target)) == 0;
		}
		if (p[1].revents != 0 && !pass(r, r->to, r->from, true))
			break;
		if (p[2].revents != 0 && !pass(r, r->from, r->to, false))
			break;
	}
	return NULL;
}

static void
relay_start(struct relay *r, const struct rq_node *to, size_t budget, bool accepts)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	unsigned port;

	memset(r, 0, sizeof(*r));
	r->budget = budget;
	r->accepts = accepts;
	r->from = -1;
	ck_assert_int_eq(sscanf(to->addr, "tcp://127.0.0.1:%u", &port), 1);
	r->target.sin_family = AF_INET;
	r->target.sin_port = htons((uint16_t)port);
	r->target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->listener = tcp();
	r->to = tcp();
	ck_assert_int_eq(bind(r->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(r->listener, 8), 0);
	ck_assert_int_eq(getsockname(r->listener, (struct sockaddr *)&at, &len), 0);
	snprintf(r->addr, sizeof(r->addr), "tcp://127.0.0.1:%u", ntohs(at.sin_port));
	pthread_create(&r->thread, NULL, relay_main, r);
}

static void
relay_stop(struct relay *r)
{
	rvq_cell32_put(&r->stop, 1);
	pthread_join(r->thread, NULL);
	close(r->listener);
	close(r->to);
	if (r->from >= 0)
		close(r->from);
}

static struct rq_node a, b;

/* One request through a relay; the step it came to.  *answered: 0, it was. */
static int
try(size_t budget, bool accepts, size_t *passed, int *rc)
{
	struct relay relay;
	struct rq_ask ask;
	uint64_t from;
	int step;

	relay_start(&relay, &b, budget, accepts);
	ck_assert_int_eq(reeve_node_add_address(a.n, b.id, relay.addr), 0);
	rq_ask_init(&ask, budget == SIZE_MAX ? RVT_WAIT_MS : DEADLINE_MS);
	from = rvt_ms();
	rq_ask_start(&ask, &a, b.id, rq_echo_body(a.rt, 10, 1));
	*rc = rq_ask_wait(&ask);
	step = ask.q.step;
	if (*rc == 0) {
		rq_want(ask.q.response, 10, 1);
	} else {
		ck_assert_str_eq(reeve_errname(*rc), "REEVE_ETIMEDOUT");
		ck_assert_uint_ge(ask.ms - from, DEADLINE_MS - 1);
		if (!RVT_SANITIZED)
			ck_assert_uint_le(ask.ms - from, DEADLINE_MS + LATE_MS);
	}
	relay_stop(&relay);
	*passed = relay.passed;
	rq_quiet(&a);
	ck_assert_uint_eq(rvq_cell32_get(&ask.calls), 1);
	return step;
}

/* A node for each try: nothing of the one before is there. */
static int
fresh_try(size_t budget, bool accepts, uint32_t flags, size_t *passed, int *rc)
{
	reeve_reqs_cfg_t cfg;
	int step;

	rq_cfg(&cfg);
	cfg.flags = flags;
	rq_start(&a, 1, &cfg);
	cfg.fn = rq_echo;
	cfg.arg = &b;
	rq_start(&b, 2, &cfg);
	step = try(budget, accepts, passed, rc);
	(void)reeve_node_close(a.n, 0);
	rq_stop(&a);
	rq_stop(&b);
	return step;
}

START_TEST(silence_at_any_byte_is_one_failure_at_the_deadline)
{
	const char *scale = getenv("REEVE_SCALE");
	size_t stride = scale != NULL && atoi(scale) > 1 ? 1 : 17, all, passed;
	uint32_t flags = _i == 0 ? 0 : REEVE_REQS_LAZY;
	unsigned steps = 0;
	int rc, step = 0, last = 0;

	ck_assert_int_eq(fresh_try(SIZE_MAX, true, flags, &all, &rc), REEVE_STEP_READ);
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_gt(all, 100);
	for (size_t n = 0; n < all; n += stride) {
		/* Held up by the machine, a try ends earlier than its bytes would have let it. */
		for (int tries = 0, again = 1; again && tries < 4; tries++) {
			step = fresh_try(n, true, flags, &passed, &rc);
			again = rc != 0 && step < last;
		}
		if (rc == 0)
			continue; /* what is missing is behind the response: credit, pongs */
		ck_assert_int_ge(step, last); /* the further it comes, the later the step */
		last = step;
		steps |= 1u << step;
	}
	ck_assert_uint_ne(steps & 1u << REEVE_STEP_DIAL, 0);
	ck_assert_uint_ne(steps & (1u << REEVE_STEP_NEGOTIATE | 1u << REEVE_STEP_READ), 0);
}
END_TEST

/* Nobody even accepts. */
START_TEST(silence_of_the_listener_is_a_dial_that_ends_at_the_deadline)
{
	size_t passed;
	int rc;

	ck_assert_int_eq(fresh_try(0, false, 0, &passed, &rc), REEVE_STEP_DIAL);
	ck_assert_int_eq(rc, REEVE_ETIMEDOUT);
}
END_TEST

RVT_MAIN_TABLE("req_silent", {&silence_at_any_byte_is_one_failure_at_the_deadline, 2},
    {&silence_of_the_listener_is_a_dial_that_ends_at_the_deadline, 0})
