/* What the test suites of go-mplex and of the Rust mplex assert and no other test of ours does: see ../PORTED.md. */
#include <config.h>

#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/mplex_peer.h"
#include "tests/kit/node.h"
#include "tests/kit/run.h"

#include <sched.h>
#include <stdlib.h>

static struct rvt_nodes n;
static struct rvt_base base;

/* Loop tests: memory, unix, tcp. */
#define VIAS 3

static void
begin(int i, uint32_t split)
{
	struct rvt_wedding w = {.via = (enum rvt_via)(RVT_MEMORY + i)};
	reeve_cfg_t cfg;

	base = rvt_base();
	rvt_mpp_cfg(&cfg);
	cfg.split = split;
	cfg.slow_ms = 200;
	w.cfg[0] = w.cfg[1] = &cfg;
	rvt_marry(&n, &w);
}

static void
end(void)
{
	for (int i = 0; i < 2; i++)
		while (rvt_stats(n.k[i]).streams_open != 0)
			sched_yield();
	rvt_divorce(&n);
	rvt_base_check(&base);
}

/* A thousand small writes are all taken before the reader begins. */
START_TEST(go_slow_reader)
{
	reeve_stream_t *s[2];

	begin(_i, 0);
	rvt_stream_pair(&n, 0, s);
	for (unsigned i = 0; i < 1000; i++)
		rvt_want_write(s[0], 100, 100 * i);
	reeve_close(s[0]);
	for (unsigned i = 0; i < 1000; i++)
		rvt_want_read(s[1], 100, 100 * i);
	rvt_want_rc(s[1], 0);
	reeve_close(s[1]);
	end();
}
END_TEST

/* Two writes, then close: both come, then the end. */
START_TEST(go_write_after_close)
{
	reeve_stream_t *s[2], *again;
	uint8_t byte = 0;

	begin(_i, 0);
	rvt_stream_pair(&n, 0, s);
	again = reeve_stream_ref(s[0]);
	rvt_want_write(s[0], 50, 0);
	rvt_want_write(s[0], 50, 50);
	reeve_close(s[0]);
	ck_assert_int_eq(reeve_write(again, &byte, 1), REEVE_ECLOSED);
	rvt_want_rc(again, REEVE_ECLOSED);
	rvt_want_read(s[1], 100, 0);
	rvt_want_rc(s[1], 0);
	reeve_stream_unref(again);
	reeve_close(s[1]);
	end();
}
END_TEST

/* One end writes no more, the other reads no more: the way that is left carries 40 960 bytes. */
START_TEST(go_half_close)
{
	reeve_stream_t *s[2];
	uint8_t byte = 0;

	begin(_i, 0);
	rvt_stream_pair(&n, 0, s);
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	ck_assert_int_eq(reeve_write(s[0], &byte, 1), REEVE_ESHUT);
	ck_assert_int_eq(reeve_stop(s[1]), 0);
	rvt_want_write(s[1], 40960, 0);
	ck_assert_int_eq(reeve_shut(s[1]), 0);
	rvt_want_read(s[0], 40960, 0);
	rvt_want_rc(s[0], 0);
	reeve_close(s[0]);
	reeve_close(s[1]);
	end();
}
END_TEST

START_TEST(go_reset_after_eof)
{
	reeve_stream_t *s[2];
	uint8_t byte = 0;

	begin(_i, 0);
	rvt_stream_pair(&n, 0, s);
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	rvt_want_rc(s[1], 0);
	ck_assert_int_eq(reeve_reset(s[1], 0), 0);
	rvt_want_rc(s[0], REEVE_ERESET);
	ck_assert_int_eq(reeve_write(s[1], &byte, 1), REEVE_ECLOSED);
	reeve_close(s[0]);
	reeve_close(s[1]);
	end();
}
END_TEST

/* The pipe is full, the writer's deadline passes; who then stops reading is told so. */
START_TEST(go_cancel_read_after_write)
{
	static uint8_t big[65536];
	reeve_stream_t *s[2];

	begin(_i, 0);
	rvt_stream_pair(&n, 0, s);
	ck_assert_int_eq(reeve_deadline(s[0], REEVE_WR, 50), 0);
	while (reeve_write(s[0], big, sizeof(big)) > 0)
		continue;
	ck_assert_int_eq(reeve_stop(s[0]), 0);
	rvt_want_rc(s[0], REEVE_ECLOSED);
	ck_assert_int_eq(reeve_reset(s[0], 0), 0);
	reeve_close(s[0]);
	reeve_close(s[1]);
	end();
}
END_TEST

START_TEST(go_open_after_close)
{
	reeve_stream_t *s = NULL;

	begin(_i, 0);
	ck_assert_int_eq(reeve_conn_close(n.c[0], rvt_slow(RVT_WAIT_MS)), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_open(n.k[0], &s, 100), REEVE_ECLOSED);
	ck_assert_int_lt(reeve_open(n.k[1], &s, rvt_slow(RVT_WAIT_MS)), 0);
	rvt_divorce(&n);
	rvt_base_check(&base);
}
END_TEST

struct closer {
	pthread_t thread;
	reeve_stream_t *const *s;
	int how;
};

static void *
closer(void *arg)
{
	const struct closer *c = arg;

	for (unsigned i = 0; i < 100; i++) {
		reeve_stream_t *s = reeve_stream_ref(c->s[i]);

		if (c->how == 1)
			(void)reeve_shut(s);
		else if (c->how == 2)
			(void)reeve_stop(s);
		reeve_close(s);
	}
	return NULL;
}

/* A hundred streams, each closed by three threads at once at both ends. */
START_TEST(go_fuzz_close_stream)
{
	static reeve_stream_t *s[2][100];
	struct closer c[6];
	reeve_stream_t *pair[2];

	begin(_i, 0);
	for (unsigned i = 0; i < 100; i++) {
		rvt_stream_pair(&n, (int)i % 2, pair);
		s[0][i] = pair[0];
		s[1][i] = pair[1];
	}
	for (int i = 0; i < 6; i++) {
		c[i] = (struct closer){.s = s[i % 2], .how = i / 2};
		ck_assert_int_eq(pthread_create(&c[i].thread, NULL, closer, &c[i]), 0);
	}
	for (int i = 0; i < 6; i++)
		pthread_join(c[i].thread, NULL);
	for (unsigned i = 0; i < 100; i++) {
		reeve_close(s[0][i]);
		reeve_close(s[1][i]);
	}
	end();
}
END_TEST

/* Both ends close the connection at the same moment, again and again. */
START_TEST(go_fuzz_close_connection)
{
	for (unsigned run = 0; run < 10 * rvt_scale(); run++) {
		struct rvt_call c = {.kind = RVT_CALL_CLOSE, .timeout_ms = rvt_slow(RVT_WAIT_MS)};

		begin(_i, 0);
		c.c = n.c[1];
		rvt_call_start(&c);
		ck_assert_int_eq(reeve_conn_close(n.c[0], rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(rvt_call_end(&c), 0);
		rvt_divorce(&n);
	}
	rvt_base_check(&base);
}
END_TEST

/* Frames larger than the reader's piece. */
START_TEST(go_large_write)
{
	struct rvt_flow f[2] = {{.kind = RVT_FLOW_WRITE, .total = 65536, .key = 1, .max = 65536},
	    {.kind = RVT_FLOW_READ, .total = 65536, .key = 1, .max = 1000}};
	reeve_stream_t *s[2];

	begin(_i, 16384);
	rvt_stream_pair(&n, 0, s);
	for (int i = 0; i < 2; i++) {
		f[i].s = s[i];
		f[i].seed = 1;
		rvt_flow_start(&f[i]);
	}
	for (int i = 0; i < 2; i++)
		rvt_flow_end(&f[i]);
	reeve_close(s[0]);
	reeve_close(s[1]);
	end();
}
END_TEST

/* The opener reads first: its opening leaves all the same. */
START_TEST(rust_dialer_can_receive)
{
	struct rvt_call c = {.kind = RVT_CALL_READ, .n = 1};
	reeve_stream_t *s[2];
	uint8_t byte;

	begin(_i, 0);
	ck_assert_int_eq(reeve_open(n.k[0], &s[0], rvt_slow(RVT_WAIT_MS)), 0);
	c.s = s[0];
	c.p = &byte;
	rvt_call_start(&c);
	ck_assert_int_eq(reeve_accept(n.k[1], &s[1], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_write(s[1], "x", 1), 1);
	ck_assert_int_eq(rvt_call_end(&c), 1);
	ck_assert_int_eq(byte, 'x');
	reeve_close(s[0]);
	reeve_close(s[1]);
	end();
}
END_TEST

/* nim-libp2p's way to stand still for ever: both ends write until they are done before they read. */
START_TEST(ends_that_wait_for_each_other_part)
{
	struct rvt_flow f[2] = {{.kind = RVT_FLOW_WRITE, .total = 64u << 20, .key = 1, .seed = 1},
	    {.kind = RVT_FLOW_WRITE, .total = 64u << 20, .key = 2, .seed = 2}};
	reeve_stream_t *s[2], *t[2];

	begin(_i, 0);
	rvt_stream_pair(&n, 0, s);
	rvt_stream_pair(&n, 1, t);
	for (int i = 0; i < 2; i++) {
		f[i].s = i == 0 ? s[0] : t[1];
		rvt_flow_start(&f[i]);
	}
	for (int i = 0; i < 2; i++) {
		rvt_flow_join(&f[i]);
		ck_assert_int_lt(f[i].rc, 0);
	}
	for (int i = 0; i < 2; i++) {
		reeve_close(s[i]);
		reeve_close(t[i]);
	}
	rvt_stream_pair(&n, 0, s);
	rvt_want_write(s[0], 1000, 0);
	rvt_want_read(s[1], 1000, 0);
	reeve_close(s[0]);
	reeve_close(s[1]);
	end();
}
END_TEST

RVT_MAIN_TABLE("ported_mplex", {&go_slow_reader, VIAS}, {&go_write_after_close, VIAS},
    {&go_half_close, VIAS}, {&go_reset_after_eof, VIAS}, {&go_cancel_read_after_write, VIAS},
    {&go_open_after_close, VIAS}, {&go_fuzz_close_stream, VIAS}, {&go_fuzz_close_connection, VIAS},
    {&go_large_write, VIAS}, {&rust_dialer_can_receive, VIAS},
    {&ends_that_wait_for_each_other_part, VIAS})
