/* siege.c - see siege.h. */
#include <config.h>

#include "tests/kit/siege.h"
#include "tests/kit/raw.h"
#include "tests/kit/sock.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define PIECE    65536u
#define PROBE    64
#define PAUSE_MS 1 /* between two probes: a light user's pace */

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
rvt_others_cpu_ns(void)
{
	uint64_t mine = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - mine;
}

/* --- the honest connection */

/* One round trip.  False: it did not come back as it was. */
static bool
probe(struct rvt_siege *s, uint64_t i)
{
	uint8_t to[PROBE], back[PROBE];
	reeve_ssize got;
	size_t n = 0;

	for (unsigned k = 0; k < PROBE; k++)
		to[k] = rvt_byte(7, i * PROBE + k);
	if (reeve_write(s->hs[0], to, PROBE) != PROBE)
		return false;
	for (; n < PROBE; n += (size_t)got) {
		got = reeve_read(s->hs[0], back + n, PROBE - n);
		if (got <= 0)
			return false;
	}
	return memcmp(to, back, PROBE) == 0;
}

static void *
prober_main(void *arg)
{
	struct rvt_siege *s = arg;
	bool stop = false, ok = true;
	uint64_t start, us;

	for (uint64_t i = 0; !stop && ok; i++) {
		start = clock_ns(CLOCK_MONOTONIC);
		ok = probe(s, i);
		us = (clock_ns(CLOCK_MONOTONIC) - start) / 1000;
		pthread_mutex_lock(&s->lock);
		s->lost = !ok;
		s->probes++;
		if (us > s->worst_us)
			s->worst_us = us;
		stop = s->stop;
		pthread_mutex_unlock(&s->lock);
		(void)poll(NULL, 0, PAUSE_MS);
	}
	(void)reeve_shut(s->hs[0]);
	return NULL;
}

uint64_t
rvt_siege_probes(struct rvt_siege *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->probes;
	pthread_mutex_unlock(&s->lock);
	return n;
}

uint64_t
rvt_siege_worst_us(struct rvt_siege *s)
{
	uint64_t us;

	pthread_mutex_lock(&s->lock);
	us = s->worst_us;
	pthread_mutex_unlock(&s->lock);
	return us;
}

static void
honest_begin(struct rvt_siege *s)
{
	int ms = rvt_slow(RVT_WAIT_MS), v[2];

	rvt_unix_pair(v);
	ck_assert_int_eq(reeve_conn_open_fd(&s->hc[0], s->far, v[0], REEVE_DIALER, NULL), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&s->hc[1], s->rt, v[1], REEVE_LISTENER, NULL), 0);
	ck_assert_int_eq(reeve_open(reeve_conn_ctl(s->hc[0]), &s->hs[0], ms), 0);
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(s->hc[1]), &s->hs[1], ms), 0);
	s->echo.kind = RVT_FLOW_ECHO;
	s->echo.s = s->hs[1];
	s->echo.key = 7;
	rvt_flow_start(&s->echo);
	pthread_mutex_init(&s->lock, NULL);
	ck_assert_int_eq(pthread_create(&s->prober, NULL, prober_main, s), 0);
	while (rvt_siege_probes(s) < 3)
		sched_yield();
	pthread_mutex_lock(&s->lock);
	s->probes = s->worst_us = 0;
	pthread_mutex_unlock(&s->lock);
}

/* --- the siege */

void
rvt_siege_join(
    struct rvt_siege *s, reeve_conn_t **c, struct rvt_peer *p, int role, const reeve_cfg_t *cfg)
{
	int v[2];

	rvt_unix_pair(v);
	rvt_peer_init(p, v[1]);
	ck_assert_int_eq(reeve_conn_open_fd(c, s->rt, v[0], role, cfg), 0);
}

void
rvt_siege_begin(struct rvt_siege *s, int role, const reeve_cfg_t *cfg, const reeve_rt_cfg_t *rt_cfg)
{
	reeve_rt_cfg_t rc;

	s->base = rvt_base();
	rvt_alloc_init(&s->alloc);
	reeve_rt_cfg_init(&rc);
	rc.workers = 1;
	ck_assert_int_eq(reeve_rt_create(&s->far, &rc), 0);
	if (rt_cfg != NULL)
		rc = *rt_cfg;
	rc.workers = 1;
	rc.alloc = s->alloc.a;
	ck_assert_int_eq(reeve_rt_create(&s->rt, &rc), 0);
	honest_begin(s);
	rvt_siege_join(s, &s->c, &s->p, role, cfg);
	s->k = reeve_conn_ctl(s->c);
	rvt_peer_barrier(&s->p);
	s->threads = rvt_base().threads;
	s->from = rvq_gauge_get(&s->alloc.bytes);
}

uint64_t
rvt_siege_memory(struct rvt_siege *s)
{
	uint64_t now = rvq_gauge_get(&s->alloc.bytes);

	now = now > s->from ? now - s->from : 0;
	if (now > s->peak)
		s->peak = now;
	return now;
}

void
rvt_siege_end(struct rvt_siege *s)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(RVT_WAIT_MS);

	while (rvt_siege_probes(s) < 2) /* however short the attack was */
		ck_assert_uint_lt(rvt_now_ms(), deadline);
	ck_assert_uint_eq(rvt_base().threads, s->threads);
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->prober, NULL);
	rvt_flow_join(&s->echo);
	ck_assert_msg(!s->lost, "the honest connection lost bytes after %llu round trips: %s",
	    (unsigned long long)s->probes, reeve_errname(s->echo.rc));
	ck_assert_msg(s->worst_us < 1000u * (unsigned)rvt_slow(RVT_ECHO_MS),
	    "a round trip of the honest connection took %llu us", (unsigned long long)s->worst_us);
	reeve_close(s->hs[0]);
	reeve_close(s->hs[1]);
	reeve_conn_destroy(s->c);
	reeve_conn_destroy(s->hc[0]);
	reeve_conn_destroy(s->hc[1]);
	reeve_rt_destroy(s->rt);
	reeve_rt_destroy(s->far);
	rvt_peer_fini(&s->p);
	pthread_mutex_destroy(&s->lock);
	rvt_alloc_check(&s->alloc);
	rvt_base_check(&s->base);
}

/* --- attackers */

/* Read what there is and forget whole frames. */
static void
skim(struct rvt_peer *p)
{
	struct rvt_frame f;
	ssize_t n;

	do {
		n = recv(p->fd, rvt_bytes_more(&p->in, PIECE), PIECE, 0);
		p->in.n -= PIECE - (n > 0 ? (size_t)n : 0);
		while (rvt_next(&p->in, &f))
			;
		rvt_bytes_pack(&p->in);
	} while (n > 0);
}

bool
rvt_hurl(struct rvt_peer *p, bool read)
{
	struct pollfd pfd = {p->fd, (short)(read ? POLLOUT | POLLIN : POLLOUT), 0};
	size_t at = 0;
	ssize_t n;

	while (at < p->out.n) {
		n = send(p->fd, p->out.p + at, p->out.n - at, MSG_NOSIGNAL);
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EAGAIN)
			break;
		if (read)
			skim(p);
		if (n < 0)
			ck_assert_int_eq(poll(&pfd, 1, rvt_slow(RVT_WAIT_MS)), 1);
	}
	n = at == p->out.n;
	p->out.n = p->out.at = 0;
	return n;
}

static int
reason_of(reeve_ctl_t *k, const char **id)
{
	reeve_reason_t why = {.size = sizeof(why)};

	ck_assert_int_eq(reeve_ctl_reason(k, &why), 0);
	*id = why.id != NULL ? why.id : "";
	return why.rc;
}

bool
rvt_frames_in(reeve_ctl_t *k, uint64_t n)
{
	uint64_t deadline = rvt_now_ms() + (uint64_t)rvt_slow(6 * RVT_WAIT_MS);
	const char *id;

	while (rvt_stats(k).frames_in < n && reason_of(k, &id) == 0) {
		ck_assert_msg(rvt_now_ms() < deadline, "%llu frames of %llu",
		    (unsigned long long)rvt_stats(k).frames_in, (unsigned long long)n);
		sched_yield();
	}
	return reason_of(k, &id) == 0;
}

void
rvt_ended_with(reeve_ctl_t *k, int rc, const char *id)
{
	const char *why;
	reeve_op_t op;

	reeve_op_init(&op, NULL, NULL);
	op.timeout_ms = rvt_slow(6 * RVT_WAIT_MS);
	reeve_closed_async(k, &op);
	(void)reeve_op_wait(&op);
	ck_assert_int_eq(reason_of(k, &why), rc);
	ck_assert_str_eq(why, id);
}
