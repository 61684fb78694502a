/* One thread ends what another is using, work is handed to a thread that sleeps.  Scenarios 53, 54 and 59. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "queues/cell.h"
#include "tests/kit/alloc.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/scenarios/pace.h"

static struct rvt_base base;

/* --- 53 */

enum pull { READS, WRITES, ACCEPTS, OPENS, PINGS, PULLS };
static const char *const pull_name[PULLS] = {"read", "write", "accept", "open", "ping"};

struct puller {
	enum pull what;
	reeve_ctl_t *k;
	reeve_stream_t *s;
	reeve_ssize rc; /* of the last call */
	pthread_t thread;
};

static reeve_ssize
pull_once(struct puller *p)
{
	static const uint8_t some[20000];
	reeve_stream_t *t = NULL;
	uint8_t b[64];
	reeve_ssize rc;

	switch (p->what) {
	case READS:
		return reeve_read(p->s, b, sizeof(b));
	case WRITES:
		return reeve_write(p->s, some, sizeof(some));
	case ACCEPTS:
		rc = reeve_accept(p->k, &t, -1);
		break;
	case OPENS:
		rc = reeve_open(p->k, &t, -1);
		break;
	default:
		return reeve_ping(p->k, -1, NULL);
	}
	reeve_close(t);
	return rc;
}

static void *
pull(void *arg)
{
	struct puller *p = arg;

	do
		p->rc = pull_once(p);
	while (p->rc >= 0);
	return NULL;
}

static void
one_round(struct rvt_nodes *n, enum pull what, uint32_t *seed)
{
	struct puller p = {.what = what, .k = reeve_ctl_ref(n->k[0])};
	reeve_stream_t *s[2];
	uint64_t start;

	rvt_stream_pair(n, 0, s);
	p.s = s[0];
	ck_assert_int_eq(pthread_create(&p.thread, NULL, pull, &p), 0);
	rvt_pace_us(rvt_random(seed) % 2000);
	start = rvt_now_ms();
	if (what <= WRITES && rvt_random(seed) % 2 == 0)
		reeve_close(reeve_stream_ref(s[0]));
	else
		reeve_conn_destroy(n->c[0]), n->c[0] = NULL;
	pthread_join(p.thread, NULL);
	ck_assert_uint_lt(rvt_now_ms() - start, (uint64_t)rvt_slow(1000));
	ck_assert_msg(p.rc == REEVE_ECLOSED || (what == WRITES && p.rc == REEVE_ESHUT), "%s: %s",
	    pull_name[what], reeve_errname((int)p.rc));
	reeve_close(s[0]);
	reeve_close(s[1]);
	reeve_ctl_unref(p.k);
}

START_TEST(scenario_53_whoever_is_inside_a_call_gets_out)
{
	struct rvt_wedding how = {.via = (enum rvt_via)_i};
	unsigned rounds = 5 * rvt_scale();
	uint32_t seed = rvt_seed();
	struct rvt_nodes n;

	base = rvt_base();
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned what = 0; what < PULLS; what++) {
			rvt_marry(&n, &how);
			one_round(&n, (enum pull)what, &seed);
			rvt_divorce(&n);
		}
	rvt_base_check(&base);
}
END_TEST

struct door {
	reeve_listener_t *l;
	int rc;
};

static void *
accept_conns(void *arg)
{
	struct door *d = arg;
	reeve_conn_t *c;

	while ((d->rc = reeve_listener_accept(d->l, &c, -1)) == 0)
		reeve_conn_destroy(c);
	return NULL;
}

START_TEST(scenario_53_whoever_waits_for_a_connection_gets_out)
{
	static const enum rvt_via vias[] = {RVT_MEMORY, RVT_UNIX, RVT_TCP};
	unsigned rounds = 60 * rvt_scale();
	uint32_t seed = rvt_seed();
	reeve_rt_t *rt;
	reeve_conn_t *c;
	struct door d;
	pthread_t t;
	char addr[128];

	base = rvt_base();
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	for (unsigned i = 0; i < rounds; i++) {
		rvt_scratch(vias[_i], addr, sizeof(addr));
		ck_assert_int_eq(reeve_listen(&d.l, rt, addr, NULL), 0);
		ck_assert_int_gt(reeve_listener_addr(d.l, addr, sizeof(addr)), 0);
		ck_assert_int_eq(pthread_create(&t, NULL, accept_conns, &d), 0);
		c = NULL;
		if (i % 2 == 0)
			(void)!reeve_dial(&c, rt, addr, NULL, rvt_slow(1000));
		rvt_pace_us(rvt_random(&seed) % 1000);
		reeve_listener_stop(d.l);
		pthread_join(t, NULL);
		ck_assert_int_eq(d.rc, REEVE_ECLOSED);
		reeve_listener_destroy(d.l);
		reeve_conn_destroy(c);
	}
	reeve_rt_destroy(rt);
	rvt_scratch_end();
	rvt_base_check(&base);
}
END_TEST

/* --- 54: operations that start themselves again, on objects that go away from other threads */

struct again {
	reeve_op_t op;
	reeve_stream_t *s; /* held until the operation has ended */
	struct rvq_cell32 *alive;
	uint32_t left;
};

static void
read_again(reeve_op_t *op)
{
	struct again *a = op->arg;

	if (op->res > 0)
		reeve_buf_unref(op->buf);
	if (op->res > 0 && a->left-- > 0) {
		reeve_read_async(a->s, op);
		return;
	}
	reeve_stream_unref(a->s);
	(void)rvq_cell32_add(a->alive, UINT32_MAX);
	free(a);
}

static void
read_on(reeve_stream_t *s, struct rvq_cell32 *alive, uint32_t times)
{
	struct again *a = calloc(1, sizeof(*a));

	(void)rvq_cell32_add(alive, 1);
	reeve_op_init(&a->op, read_again, a);
	a->s = reeve_stream_ref(s);
	a->alive = alive;
	a->left = times;
	reeve_read_async(s, &a->op);
}

struct party {
	reeve_rt_t *rt;
	char addr[128];
	struct rvq_cell32 ops, stop;
	reeve_listener_t *l;
	uint32_t seed;
	unsigned served;
};

/* Whatever has come this far goes away at a random moment, in a random way. */
static void
leave(reeve_conn_t *c, reeve_stream_t *s, uint32_t dice)
{
	rvt_pace_us(dice % 700);
	if (dice & 0x1000)
		reeve_conn_destroy(c);
	if (dice & 0x2000)
		reeve_close(s);
	else
		reeve_stream_unref(s);
	if ((dice & 0x5000) == 0x4000)
		reeve_conn_release(c);
	else if (!(dice & 0x1000))
		reeve_conn_destroy(c);
}

static void *
serve_party(void *arg)
{
	struct party *p = arg;
	reeve_conn_t *c;
	reeve_stream_t *s;
	uint32_t seed = p->seed * 7;
	uint8_t b[4000];

	while (reeve_listener_accept(p->l, &c, -1) == 0) {
		s = NULL;
		if (reeve_accept(reeve_conn_ctl(c), &s, 20) == 0) {
			read_on(s, &p->ops, rvt_random(&seed) % 4);
			(void)reeve_write(s, b, sizeof(b));
			p->served++;
		}
		leave(c, s, rvt_random(&seed));
	}
	return NULL;
}

static void *
dial_party(void *arg)
{
	struct party *p = arg;
	reeve_conn_t *c;
	reeve_stream_t *s;
	uint32_t seed = p->seed * 13;
	uint8_t b[4000] = {0};

	while (!rvq_cell32_get(&p->stop)) {
		s = NULL;
		if (reeve_dial(&c, p->rt, p->addr, NULL, 100) < 0) {
			rvt_pace_us(100);
			continue;
		}
		if (reeve_open(reeve_conn_ctl(c), &s, 100) == 0) {
			read_on(s, &p->ops, rvt_random(&seed) % 4);
			(void)reeve_write(s, b, 1 + rvt_random(&seed) % sizeof(b));
		}
		leave(c, s, rvt_random(&seed));
	}
	return NULL;
}

START_TEST(scenario_54_nothing_completes_on_what_is_gone)
{
	static const enum rvt_via vias[] = {RVT_MEMORY, RVT_UNIX, RVT_TCP};
	struct rvt_alloc alloc;
	struct party p = {.seed = rvt_seed()};
	uint32_t seed = p.seed;
	unsigned rounds = 10 * rvt_scale();
	reeve_rt_cfg_t rc;
	pthread_t t[3];

	base = rvt_base();
	rvt_alloc_init(&alloc);
	reeve_rt_cfg_init(&rc);
	rc.workers = 2;
	rc.alloc = alloc.a;
	ck_assert_int_eq(reeve_rt_create(&p.rt, &rc), 0);
	for (unsigned i = 0; i < rounds; i++) {
		rvt_scratch(vias[_i], p.addr, sizeof(p.addr));
		ck_assert_int_eq(reeve_listen(&p.l, p.rt, p.addr, NULL), 0);
		ck_assert_int_gt(reeve_listener_addr(p.l, p.addr, sizeof(p.addr)), 0);
		ck_assert_int_eq(pthread_create(&t[0], NULL, serve_party, &p), 0);
		for (unsigned k = 1; k < 3; k++)
			ck_assert_int_eq(pthread_create(&t[k], NULL, dial_party, &p), 0);
		rvt_pace_us(5000 + rvt_random(&seed) % 20000);
		reeve_listener_stop(p.l); /* while it completes accepts */
		pthread_join(t[0], NULL);
		reeve_listener_destroy(p.l);
		rvq_cell32_put(&p.stop, 1);
		pthread_join(t[1], NULL);
		pthread_join(t[2], NULL);
		rvq_cell32_put(&p.stop, 0);
		p.seed = rvt_random(&seed);
	}
	reeve_rt_destroy(p.rt);
	ck_assert_uint_gt(p.served, 0);
	ck_assert_uint_eq(rvq_cell32_get(&p.ops), 0);
	rvt_alloc_check(&alloc);
	rvt_scratch_end();
	rvt_base_check(&base);
}
END_TEST

/* --- 59 */

static void
echo_one(reeve_op_t *op)
{
	reeve_stream_t *s = op->arg;
	static reeve_op_t back;

	if (op->res <= 0)
		return;
	reeve_op_init(&back, NULL, NULL);
	back.fn = NULL;
	reeve_write_async(s, op->buf, &back);
	reeve_read_async(s, op);
}

START_TEST(scenario_59_a_small_write_to_an_idle_connection_is_noticed)
{
	struct rvt_wedding how = {.via = (enum rvt_via)(_i / 2)};
	struct rvt_flow f = {.kind = RVT_FLOW_ECHO};
	unsigned rounds = 30 * rvt_scale(), slow = 0;
	uint32_t seed = rvt_seed();
	reeve_stream_t *s[2];
	struct rvt_nodes n;
	reeve_cfg_t cfg;
	reeve_op_t op;
	uint64_t start;

	base = rvt_base();
	reeve_cfg_init(&cfg);
	cfg.keepalive_ms = REEVE_OFF;
	how.cfg[0] = how.cfg[1] = &cfg;
	rvt_marry(&n, &how);
	rvt_stream_pair(&n, 0, s);
	reeve_op_init(&op, echo_one, s[1]);
	f.s = s[1];
	f.total = rounds;
	if (_i % 2)
		reeve_read_async(s[1], &op);
	else
		rvt_flow_start(&f);
	ck_assert_int_eq(reeve_deadline(s[0], REEVE_RD, -1), 0);
	for (unsigned i = 0; i < rounds; i++) {
		rvt_pace_us(rvt_random(&seed) % 3000);
		ck_assert_int_eq(reeve_deadline(s[0], REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
		start = rvt_now_ms();
		rvt_want_write(s[0], 1, i);
		rvt_want_read(s[0], 1, i);
		slow += rvt_now_ms() - start > (uint64_t)rvt_slow(300);
	}
	/* A busy machine may hold up some; a wake-up that was lost never comes. */
	ck_assert_uint_le(slow, 3 + rounds / 20);
	reeve_close(s[0]);
	if (_i % 2 == 0)
		rvt_flow_join(&f);
	reeve_close(s[1]);
	rvt_divorce(&n);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("scenarios: races", {&scenario_53_whoever_is_inside_a_call_gets_out, RVT_VIAS},
    {&scenario_53_whoever_waits_for_a_connection_gets_out, 3},
    {&scenario_54_nothing_completes_on_what_is_gone, 3},
    {&scenario_59_a_small_write_to_an_idle_connection_is_noticed, 2 * RVT_VIAS})
