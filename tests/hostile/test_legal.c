/* test_legal.c - heavy users who break no rule: no bound of ours is for them. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing was refused, dropped or reset, and the connection lives. */
static void
unpunished(reeve_ctl_t *k)
{
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_stats_t st = rvt_stats(k);

	ck_assert_uint_eq(st.streams_refused, 0);
	ck_assert_uint_eq(st.pongs_dropped, 0);
	ck_assert_uint_eq(st.resets_in, 0);
	ck_assert_uint_eq(st.resets_out, 0);
	ck_assert_int_eq(reeve_ctl_reason(k, &why), 0);
	ck_assert_msg(why.rc == 0, "%s", why.id);
}

/* --- short streams beside */

struct briefs {
	pthread_t thread;
	reeve_ctl_t *k;
	unsigned n, done;
	bool serves;
	int rc;
};

/* Opens a stream, writes, reads the answer to its end, closes; the other side serves them. */
static void *
briefs_main(void *arg)
{
	struct briefs *b = arg;
	reeve_stream_t *s;
	reeve_ssize got;
	uint8_t p[200];

	for (; b->done < b->n && b->rc == 0; b->done++) {
		b->rc = b->serves ? reeve_accept(b->k, &s, rvt_slow(RVT_WAIT_MS))
				  : reeve_open(b->k, &s, rvt_slow(RVT_WAIT_MS));
		if (b->rc != 0)
			break;
		memset(p, 7, sizeof(p));
		if (!b->serves) {
			(void)reeve_write(s, p, sizeof(p));
			(void)reeve_shut(s);
		}
		while ((got = reeve_read(s, p, sizeof(p))) > 0)
			if (b->serves)
				(void)reeve_write(s, p, (size_t)got);
		if (got < 0)
			b->rc = (int)got;
		reeve_close(s);
	}
	return NULL;
}

struct pinger {
	pthread_t thread;
	reeve_ctl_t *k;
	bool stop;
	pthread_mutex_t lock;
	unsigned n;
	int rc;
};

static void *
pinger_main(void *arg)
{
	struct pinger *p = arg;
	bool stop = false;

	while (!stop && p->rc == 0) {
		p->rc = reeve_ping(p->k, rvt_slow(RVT_WAIT_MS), NULL);
		p->n++;
		(void)poll(NULL, 0, 10); /* a user's pace */
		pthread_mutex_lock(&p->lock);
		stop = p->stop;
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

#define BULKS 64

/* 64 streams both ways as fast as they can, thousands of short ones after each other, a ping every ten milliseconds. */
START_TEST(busy_pair_meets_no_limit)
{
	struct rvt_wedding w = {.via = RVT_TCP};
	struct rvt_flow f[4 * BULKS];
	struct briefs b[2] = {{0}};
	reeve_stream_t *s[BULKS][2];
	struct pinger p = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct rvt_nodes d;

	memset(f, 0, sizeof(f));
	rvt_marry(&d, &w);
	for (unsigned i = 0; i < BULKS; i++) {
		rvt_stream_pair(&d, (int)i % 2, s[i]);
		for (unsigned k = 0; k < 4; k++) {
			f[4 * i + k].kind = k % 2 == 0 ? RVT_FLOW_WRITE : RVT_FLOW_READ;
			f[4 * i + k].s = s[i][k / 2 ^ (k % 2)];
			f[4 * i + k].key = 2 * i + k / 2;
			f[4 * i + k].seed = i;
			f[4 * i + k].total = 300000 * rvt_scale();
		}
	}
	p.k = d.k[0];
	for (unsigned i = 0; i < 2; i++) {
		b[i].k = d.k[i];
		b[i].serves = i == 1;
		b[i].n = 200 * rvt_scale();
		ck_assert_int_eq(pthread_create(&b[i].thread, NULL, briefs_main, &b[i]), 0);
	}
	ck_assert_int_eq(pthread_create(&p.thread, NULL, pinger_main, &p), 0);
	for (unsigned i = 0; i < 4 * BULKS; i++)
		rvt_flow_start(&f[i]);
	for (unsigned i = 0; i < 4 * BULKS; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(b[i].thread, NULL);
		ck_assert_msg(b[i].rc == 0 && b[i].done == b[i].n, "%s after %u",
		    reeve_errname(b[i].rc), b[i].done);
	}
	pthread_mutex_lock(&p.lock);
	p.stop = true;
	pthread_mutex_unlock(&p.lock);
	pthread_join(p.thread, NULL);
	ck_assert_int_eq(p.rc, 0);
	unpunished(d.k[0]);
	unpunished(d.k[1]);
	printf("%u pings, %u short streams\n", p.n, b[0].n);
	for (unsigned i = 0; i < BULKS; i++) {
		reeve_close(s[i][0]);
		reeve_close(s[i][1]);
	}
	rvt_divorce(&d);
}
END_TEST

/* A peer that gives credit back frame by frame, some of it byte by byte, and pings as often. */
START_TEST(peer_that_talks_much_meets_no_limit)
{
	uint32_t out = 1000000 * (rvt_scale() < 30 ? rvt_scale() : 30), got = 0, pings = 0;
	struct rvt_call c = {.kind = RVT_CALL_WRITE, .n = out};
	reeve_stream_t *s;
	struct rvt_raw r;
	struct rvt_frame f;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	s = rvt_raw_inbound(&r, 1);
	c.s = s;
	c.p = rvt_pattern(1, out);
	rvt_call_start(&c);
	while (got < out) {
		ck_assert(rvt_peer_next(&r.p, &f));
		if (f.type != RVT_DATA)
			continue;
		got += f.len;
		for (int i = 0; i < 20; i++)
			rvt_put(&r.p.out, RVT_WU, 0, 1, i == 0 ? f.len - 19 : 1);
		rvt_put(&r.p.out, RVT_PING, RVT_SYN, 0, ++pings);
		rvt_peer_send(&r.p);
	}
	ck_assert_int_eq(rvt_call_end(&c), (reeve_ssize)out);
	rvt_peer_barrier(&r.p);
	unpunished(r.k);
	reeve_close(s);
	rvt_raw_fini(&r);
	free(c.p);
}
END_TEST

/* A peer that changes its mind about nine hundred streams at once, and about a few hundred a second after that. */
START_TEST(peer_that_changes_its_mind_meets_no_limit)
{
	reeve_reason_t why = {.size = sizeof(why)};
	struct rvt_raw r;

	rvt_raw_open(&r, REEVE_LISTENER, NULL);
	for (uint32_t i = 0; i < 900; i++) {
		rvt_put(&r.p.out, RVT_WU, RVT_SYN, 2 * i + 1, 0);
		rvt_put(&r.p.out, RVT_WU, RVT_RST, 2 * i + 1, 0);
	}
	rvt_peer_send(&r.p);
	rvt_peer_want_none(&r.p);
	ck_assert_int_eq(reeve_ctl_reason(r.k, &why), 0);
	ck_assert_int_eq(why.rc, 0);
	rvt_raw_fini(&r);
}
END_TEST

RVT_MAIN_TABLE("legal", {&busy_pair_meets_no_limit, 0}, {&peer_that_talks_much_meets_no_limit, 0},
    {&peer_that_changes_its_mind_meets_no_limit, 0})
