/* Nothing spins in a quiet state; everything may be destroyed in any order.  Scenarios 60 and 61. */
#include <config.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"
#include "tests/scenarios/pace.h"

static struct rvt_base base;

/* --- 60 */

#define SESSIONS 1000
#define WINDOW   (256u * 1024)

struct sess {
	reeve_conn_t *c;
	reeve_ctl_t *k;
	reeve_stream_t *s;
	reeve_op_t op;
	int fd; /* of the peer */
};
static struct sess sess[SESSIONS];
static reeve_rt_t *rt;
static reeve_buf_t *big; /* to be sent by all */

enum quiet {
	PEER_SILENT,      /* it has said nothing yet, and a stream was opened */
	PEER_HALF_CLOSED, /* the TCP connection, one way */
	PEER_RESET,
	PEER_STALLED,             /* it reads nothing of what there is to send */
	PEER_STALLED_HALF_CLOSED, /* and has closed its direction as well */
	APP_STALLED,              /* the peer has used up its credit, nobody reads */
	BUDGET_FULL,              /* the same on many streams: above the connection's limit */
	RUNTIME_GONE,             /* handles are held */
	QUIETS
};

static void
send_all(int fd, const struct rvt_bytes *b)
{
	for (size_t at = 0; at < b->n;) {
		ssize_t n = send(fd, b->p + at, b->n - at, MSG_NOSIGNAL);

		ck_assert_int_gt(n, 0);
		at += (size_t)n;
	}
}

/* The peer opens so many streams and uses up the credit of each. */
static void
flood(struct sess *x, unsigned streams)
{
	struct rvt_bytes b = {0};

	for (unsigned i = 0; i < streams; i++)
		rvt_put_data(&b, RVT_SYN, 1 + 2 * i, WINDOW, 0);
	send_all(x->fd, &b);
	rvt_bytes_fini(&b);
}

static void
stall(struct sess *x)
{
	struct rvt_bytes b = {0};

	rvt_put(&b, RVT_WU, RVT_SYN, 1, 64u << 20);
	send_all(x->fd, &b);
	rvt_bytes_fini(&b);
	ck_assert_int_eq(reeve_accept(x->k, &x->s, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_gt(reeve_write_buf(x->s, reeve_buf_ref(big)), 0);
}

static void
quieten(struct sess *x, enum quiet what)
{
	struct linger now = {1, 0};

	switch (what) {
	case PEER_HALF_CLOSED:
		shutdown(x->fd, SHUT_WR);
		break;
	case PEER_RESET:
		setsockopt(x->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(x->fd);
		x->fd = -1;
		break;
	case PEER_STALLED:
		stall(x);
		break;
	case PEER_STALLED_HALF_CLOSED:
		stall(x);
		shutdown(x->fd, SHUT_WR);
		break;
	case APP_STALLED:
		flood(x, 1);
		break;
	case BUDGET_FULL:
		flood(x, 5);
		break;
	default:
		ck_assert_int_eq(reeve_open(x->k, &x->s, rvt_slow(RVT_WAIT_MS)), 0);
		break;
	}
}

static void
connect_all(unsigned n, const reeve_cfg_t *cfg)
{
	const int small = 16384;

	for (unsigned i = 0; i < n; i++) {
		int v[2];

		memset(&sess[i], 0, sizeof(sess[i]));
		rvt_tcp_pair(v);
		for (int k = 0; k < 2; k++) {
			setsockopt(v[k], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
			setsockopt(v[k], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		}
		sess[i].fd = v[1];
		ck_assert_int_eq(reeve_conn_open_fd(&sess[i].c, rt, v[0], REEVE_LISTENER, cfg), 0);
		sess[i].k = reeve_ctl_ref(reeve_conn_ctl(sess[i].c));
		reeve_op_init(&sess[i].op, NULL, NULL);
		reeve_closed_async(sess[i].k, &sess[i].op); /* waits all the time */
	}
}

/* Below a hundredth of a processor over some time, soon. */
static void
want_quiet(const char *when)
{
	uint64_t used = 0, until = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS), from;

	do {
		from = rvt_cpu_ms();
		rvt_pace_us(200000);
		used = rvt_cpu_ms() - from;
	} while (used > 2 && rvt_now_ms() < until);
	ck_assert_msg(used <= 2, "%s: %u ms of 200", when, (unsigned)used);
}

START_TEST(scenario_60_quiet_states_use_no_processor)
{
	static const char *const name[QUIETS] = {"peer silent", "peer half closed", "peer reset",
	    "peer reads nothing", "peer reads nothing and has half closed", "nobody reads",
	    "receive budget full", "runtime gone"};
	/* Five floods are above a mebibyte each: the machine's memory is not what is tested. */
	unsigned n = 10 * rvt_scale(), most = _i == BUDGET_FULL ? 100 : SESSIONS;
	reeve_rt_cfg_t rc;
	reeve_cfg_t cfg;

	base = rvt_base();
	n = n < most ? n : most;
	reeve_rt_cfg_init(&rc);
	rc.workers = 2;
	ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
	reeve_cfg_init(&cfg);
	cfg.max_recv = 1u << 20;
	cfg.write_ms = REEVE_OFF;
	cfg.keepalive_ms = 3600000;
	big = reeve_buf_alloc(rt, 8u << 20);
	memset(reeve_buf_mut(big), 0, 8u << 20);
	connect_all(n, &cfg);
	for (unsigned i = 0; i < n; i++)
		quieten(&sess[i], (enum quiet)_i);
	reeve_buf_unref(big);
	if (_i == RUNTIME_GONE)
		reeve_rt_destroy(rt);
	want_quiet(name[_i]);
	for (unsigned i = 0; i < n; i++) {
		reeve_close(sess[i].s);
		reeve_conn_destroy(sess[i].c);
		reeve_ctl_unref(sess[i].k);
		(void)reeve_op_wait(&sess[i].op);
		if (sess[i].fd >= 0)
			close(sess[i].fd);
	}
	if (_i != RUNTIME_GONE)
		reeve_rt_destroy(rt);
	rvt_base_check(&base);
}
END_TEST

/* --- 61 */

enum { RTS = 2, LISTENERS = 2, DIALS = 3, THINGS = RTS + LISTENERS + 4 * DIALS };

/* Two runtimes; each has a listener; sessions are dialed from one to the other and within one. */
struct house {
	struct rvt_alloc alloc[RTS];
	reeve_rt_t *rt[RTS];
	reeve_listener_t *l[LISTENERS];
	reeve_conn_t *c[2 * DIALS];
	reeve_stream_t *s[2 * DIALS];
};

static void
build(struct house *h, uint32_t *seed)
{
	reeve_rt_cfg_t rc;
	char addr[LISTENERS][128];

	for (unsigned i = 0; i < RTS; i++) {
		rvt_alloc_init(&h->alloc[i]);
		reeve_rt_cfg_init(&rc);
		rc.workers = 1;
		rc.alloc = h->alloc[i].a;
		ck_assert_int_eq(reeve_rt_create(&h->rt[i], &rc), 0);
	}
	for (unsigned i = 0; i < LISTENERS; i++) {
		rvt_scratch(rvt_random(seed) % 2 ? RVT_TCP : RVT_MEMORY, addr[i], sizeof(addr[i]));
		ck_assert_int_eq(reeve_listen(&h->l[i], h->rt[i], addr[i], NULL), 0);
		ck_assert_int_gt(reeve_listener_addr(h->l[i], addr[i], sizeof(addr[i])), 0);
	}
	for (unsigned i = 0; i < DIALS; i++) {
		unsigned from = rvt_random(seed) % RTS, to = rvt_random(seed) % LISTENERS;
		reeve_conn_t **c = &h->c[2 * i];
		reeve_stream_t **s = &h->s[2 * i];
		int ms = rvt_slow(RVT_WAIT_MS);

		ck_assert_int_eq(reeve_dial(&c[0], h->rt[from], addr[to], NULL, ms), 0);
		ck_assert_int_eq(reeve_listener_accept(h->l[to], &c[1], ms), 0);
		ck_assert_int_eq(reeve_open(reeve_conn_ctl(c[0]), &s[0], ms), 0);
		ck_assert_int_eq(reeve_accept(reeve_conn_ctl(c[1]), &s[1], ms), 0);
		ck_assert_int_eq(reeve_write(s[0], "bytes", 5), 5);
	}
}

/* What is still held answers; what has lost its runtime answers an error. */
static void
ask(struct house *h, bool any_gone)
{
	reeve_stream_t *s;
	reeve_conn_t *c;
	int rc;

	for (unsigned i = 0; i < 2 * DIALS; i++) {
		if (h->c[i] != NULL && any_gone) {
			rc = reeve_accept(reeve_conn_ctl(h->c[i]), &s, 0);
			ck_assert_int_lt(rc, 0);
		}
		if (h->s[i] != NULL) {
			ck_assert_int_eq(reeve_deadline(h->s[i], REEVE_WR, 0) < 0, false);
			(void)reeve_write(h->s[i], "x", 1);
		}
	}
	for (unsigned i = 0; i < LISTENERS; i++)
		if (h->l[i] != NULL && h->rt[i] == NULL)
			ck_assert_int_eq(reeve_listener_accept(h->l[i], &c, -1), REEVE_ECLOSED);
}

static void
tear_down_one(struct house *h, unsigned what)
{
	if (what < RTS) {
		reeve_rt_destroy(h->rt[what]);
		h->rt[what] = NULL;
	} else if ((what -= RTS) < LISTENERS) {
		reeve_listener_destroy(h->l[what]);
		h->l[what] = NULL;
	} else if ((what -= LISTENERS) < 2 * DIALS) {
		reeve_conn_destroy(h->c[what]);
		h->c[what] = NULL;
	} else {
		what -= 2 * DIALS;
		reeve_close(h->s[what]);
		h->s[what] = NULL;
	}
}

START_TEST(scenario_61_everything_goes_in_any_order)
{
	unsigned orders = 20 * rvt_scale(), order[THINGS], other, tmp;
	uint32_t seed = rvt_seed();
	struct house h;

	base = rvt_base();
	for (unsigned n = 0; n < orders; n++) {
		memset(&h, 0, sizeof(h));
		build(&h, &seed);
		for (unsigned i = 0; i < THINGS; i++)
			order[i] = i;
		for (unsigned i = THINGS - 1; i > 0; i--) {
			other = rvt_random(&seed) % (i + 1);
			tmp = order[i];
			order[i] = order[other];
			order[other] = tmp;
		}
		if (n % 4 == 0) { /* the contexts first */
			for (unsigned i = 0; i < THINGS; i++)
				order[i] = i;
		}
		for (unsigned i = 0; i < THINGS; i++) {
			tear_down_one(&h, order[i]);
			ask(&h, h.rt[0] == NULL && h.rt[1] == NULL);
		}
		for (unsigned i = 0; i < RTS; i++)
			rvt_alloc_check(&h.alloc[i]);
	}
	rvt_scratch_end();
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: lifetime", {&scenario_60_quiet_states_use_no_processor, QUIETS},
    {&scenario_61_everything_goes_in_any_order, 0})
