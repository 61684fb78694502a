/* test_engine_oom.c - the allocator fails at the n-th request, for every n: an answer each time,
 * never a crash or a leak. */
#include <config.h>

#include "tests/kit/mplex_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct rvt_rig r;

/* Bytes queued without help of rvt_send, which insists on memory.  Half of the buffers have
 * another holder, so that the engine needs a descriptor of its own. */
static void
send_some(struct rv_stream *st, uint32_t n, bool shared)
{
	reeve_buf_t *b = rv_buf_alloc(r.pool, n);
	struct rvt_seen *s = rvt_seen(&r, st->id);
	uint8_t *p;

	if (b == NULL)
		return;
	p = b->slab->data + b->off;
	for (uint32_t i = 0; i < n; i++)
		p[i] = rvt_byte(st->id, s->queued + i);
	if (shared)
		rvq_ref_get(&b->refs);
	s->queued += n;
	r.e->ops->send(r.e, st, b);
	if (shared)
		rv_buf_unref(b);
}

static void
feed_quietly(void)
{
	struct rv_slab *s;

	r.fail_at = r.fail_at == 0 ? 0
				   : r.fail_at + 1; /* the bench's own block is not under test */
	s = rv_slab_get(r.pool, 65536);
	if (s != NULL) {
		memcpy(s->data, r.in.p, r.in.n);
		(void)r.e->ops->feed(r.e, s, 0, (uint32_t)r.in.n, r.now);
		rv_slab_unref(s);
	}
	r.in.n = r.in.at = 0;
}

/* The peer opens its ith stream, with n bytes. */
static void
peer_opens(bool mplex, uint32_t i, uint32_t n)
{
	if (mplex) {
		rvt_mp_put(&r.in, RVT_MP_OPEN, i, 0);
		rvt_mp_data(&r.in, RVT_MP_DATA_I, i, n, 0);
	} else {
		rvt_put_data(&r.in, RVT_SYN, 2 * i + 2, n, 0);
	}
}

/* A life with everything in it. */
static void
life(bool mplex)
{
	struct rv_stream *st;
	const struct rv_engine_ops *o = r.e->ops;

	for (int i = 0; i < 20; i++) {
		int rc = o->open(r.e, &st, r.now);

		ck_assert(
		    rc == 0 || rc == REEVE_ENOMEM || rc == REEVE_ECLOSED || rc == REEVE_EGOAWAY);
		if (rc != 0)
			continue;
		rvt_see(&r, st);
		send_some(st, 100, false);
		send_some(st, 3000, true);
		if (i % 3 == 0)
			o->close(r.e, st, false, r.now);
		if (i % 3 == 1)
			o->drop(r.e, st);
	}
	rvt_drain(&r, 0);
	for (uint32_t i = 0; i < 40; i++)
		peer_opens(mplex, i, 50);
	feed_quietly();
	rvt_drain(&r, 0);
	(void)o->notify(r.e);
	o->closing(r.e);
	for (uint32_t i = 0; i < 40; i++)
		peer_opens(mplex, i + 500, 0);
	feed_quietly();
	rvt_drain(&r, 0);
	(void)o->notify(r.e);
}

static unsigned
run(bool mplex, unsigned fail_at, bool on)
{
	reeve_cfg_t cfg;
	unsigned asked;

	reeve_cfg_init(&cfg);
	cfg.proto = mplex ? REEVE_MPLEX : REEVE_YAMUX;
	rvt_rig_prepare(&r);
	r.allocs = 0;
	r.fail_at = fail_at;
	r.fail_on = on;
	if (rvt_rig_start(&r, REEVE_DIALER, &cfg, NULL) == 0)
		life(mplex);
	asked = r.allocs;
	r.fail_at = 0;
	rvt_rig_fini(&r);
	return asked;
}

START_TEST(every_single_failure_is_survived)
{
	unsigned n = run(_i, 0, false);

	ck_assert_uint_gt(n, 60);
	for (unsigned k = 1; k <= n; k++)
		(void)run(_i, k, false);
}
END_TEST

START_TEST(every_lasting_failure_is_survived)
{
	unsigned n = run(_i, 0, false);

	for (unsigned k = 1; k <= n; k++)
		(void)run(_i, k, true);
}
END_TEST

START_TEST(failed_open_changes_nothing)
{
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_DIALER, NULL, NULL);
	r.fail_at = r.allocs + 1;
	r.fail_on = true;
	ck_assert_int_eq(r.e->ops->open(r.e, &st, r.now), REEVE_ENOMEM);
	ck_assert_uint_eq(r.e->nstreams, 0);
	ck_assert_uint_eq(r.e->nunacked, 0);
	r.fail_at = 0;
	ck_assert_uint_eq(rvt_open(&r)->id, 1); /* no id was used up */
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(inbound_stream_without_memory_is_refused)
{
	struct rv_slab *s;

	rvt_rig_init(&r, REEVE_LISTENER, NULL, NULL);
	(void)rvt_inbound(&r, 1);
	rvt_put_data(&r.in, RVT_SYN, 3, 100, 0);
	rvt_put(&r.in, RVT_PING, RVT_SYN, 0, 8);
	s = rv_slab_get(r.pool, 65536);
	memcpy(s->data, r.in.p, r.in.n);
	r.fail_at = r.allocs + 1;
	r.fail_on = true;
	ck_assert_int_eq(r.e->ops->feed(r.e, s, 0, (uint32_t)r.in.n, r.now), (int)r.in.n);
	r.fail_at = 0;
	rv_slab_unref(s);
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_PING, RVT_ACK, 0, 8);
	rvt_want(&r, RVT_WU, RVT_RST, 3, 0);
	rvt_want_none(&r);
	rvt_rig_fini(&r);
}
END_TEST

START_TEST(bytes_lost_for_want_of_memory_reset_the_stream)
{
	struct rv_stream *st;

	rvt_rig_init(&r, REEVE_DIALER, NULL, NULL);
	st = rvt_outbound(&r);
	send_some(st, 100, false);
	r.fail_at = r.allocs + 2; /* the buffer, then its second descriptor */
	r.fail_on = true;
	send_some(st, 70000, true);
	r.fail_at = 0;
	rvt_drain(&r, 0);
	rvt_want(&r, RVT_WU, RVT_RST, 1, 2);
	rvt_want_none(&r);
	rvt_notify(&r);
	ck_assert_uint_eq(rvt_seen(&r, 1)->taken, 70100);
	rvt_rig_fini(&r);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("engine_oom");

	tcase_add_loop_test(t, every_single_failure_is_survived, 0, 2);
	tcase_add_loop_test(t, every_lasting_failure_is_survived, 0, 2);
	tcase_add_test(t, failed_open_changes_nothing);
	tcase_add_test(t, inbound_stream_without_memory_is_refused);
	tcase_add_test(t, bytes_lost_for_want_of_memory_reset_the_stream);
	return rvt_run_tcase("engine_oom", t);
}
