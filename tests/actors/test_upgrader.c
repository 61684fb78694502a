/* test_upgrader.c - the entry where connections begin: bytes that were read before are not lost. */
#include <config.h>

#include "actors/runtime.h"
#include "actors/upgrader.h"
#include "lib/buf/slice.h"
#include "tests/kit/mplex_peer.h"
#include "tests/kit/run.h"
#include "tests/kit/wire.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY 3000u

static reeve_rt_t *rt;
static int fd[2];

static struct rva_upgrade
begin(void)
{
	struct rva_upgrade up = {.role = REEVE_LISTENER};

	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	up.rt = rt;
	ck_assert_int_eq(rv_fd_transport(&up.transport, rt->arena, fd[0]), 0);
	return up;
}

/* n bytes as buffers of at most piece bytes. */
static void
put_chain(struct rv_chain *c, const uint8_t *p, size_t n, size_t piece)
{
	for (size_t at = 0, k; at < n; at += k) {
		k = n - at < piece ? n - at : piece;
		reeve_buf_t *b = rv_buf_alloc(rva_rt_pool(rt), k);

		ck_assert_ptr_nonnull(b);
		memcpy(b->slab->data + b->off, p + at, k);
		ck_assert_int_eq(rv_chain_push(c, b), 0);
	}
}

/* _i: how much of the opening frame had been read: nothing, part of its header, part of its body, all of it. */
START_TEST(bytes_read_ahead_come_first)
{
	static const size_t ahead[] = {0, 7, 1000, 12 + BODY};
	struct rva_upgrade up = begin();
	struct rvt_bytes wire = {0};
	struct rv_chain unread;
	reeve_stream_t *s;
	reeve_conn_t *c;

	rvt_put_data(&wire, RVT_SYN | RVT_FIN, 1, BODY, 0);
	rv_chain_init(&unread);
	put_chain(&unread, wire.p, ahead[_i], 5 + 300 * (size_t)_i);
	up.unread = &unread;
	ck_assert_int_eq(rva_upgrade(&c, &up), 0);
	ck_assert_uint_eq(unread.bytes, 0);
	ck_assert_int_eq(
	    write(fd[1], wire.p + ahead[_i], wire.n - ahead[_i]), (int)(wire.n - ahead[_i]));
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(c), &s, rvt_slow(5000)), 0);
	rvt_want_read(s, BODY, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	close(fd[1]);
	rvt_bytes_fini(&wire);
}
END_TEST

/* mplex stops parsing at a bound: inside what was read ahead too, and nothing overtakes it. */
START_TEST(bytes_read_ahead_wait_for_a_slow_reader)
{
	struct rva_upgrade up = begin();
	struct rvt_bytes wire = {0};
	struct rvt_mp_run run = {0, 8192, 0};
	struct rv_chain unread;
	reeve_stream_t *s;
	reeve_conn_t *c;
	reeve_cfg_t cfg;

	rvt_mpp_cfg(&cfg);
	cfg.max_window = 16384;
	cfg.slow_ms = REEVE_OFF;
	up.cfg = &cfg;
	rvt_mp_put(&wire, RVT_MP_OPEN, 0, 0);
	for (; run.from < 20 * 8192; run.from += 8192)
		rvt_mp_data_of(&wire, RVT_MP_DATA_I, 0, run);
	rvt_mp_put(&wire, RVT_MP_CLOSE_I, 0, 0);
	rv_chain_init(&unread);
	put_chain(&unread, wire.p, 100000, 10000);
	up.unread = &unread;
	ck_assert_int_eq(rva_upgrade(&c, &up), 0);
	ck_assert_int_eq(write(fd[1], wire.p + 100000, wire.n - 100000), (int)(wire.n - 100000));
	ck_assert_int_eq(reeve_accept(reeve_conn_ctl(c), &s, rvt_slow(5000)), 0);
	rvt_want_read(s, 20 * 8192, 0);
	rvt_want_rc(s, 0);
	reeve_close(s);
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	close(fd[1]);
	rvt_bytes_fini(&wire);
}
END_TEST

START_TEST(transport_and_filter_stay_the_callers_when_it_fails)
{
	struct rva_upgrade up = begin();
	struct rv_filter mine = {.ops = NULL};
	reeve_conn_t *c = NULL;

	up.filter = &mine;
	up.role = 0;
	ck_assert_int_eq(rva_upgrade(&c, &up), REEVE_EINVAL);
	ck_assert_ptr_null(c);
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	up.filter = NULL;
	up.role = REEVE_LISTENER;
	ck_assert_int_eq(rva_upgrade(&c, &up), 0);
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	close(fd[1]);
}
END_TEST

RVT_MAIN_TABLE("upgrader", {&bytes_read_ahead_come_first, 4},
    {&bytes_read_ahead_wait_for_a_slow_reader, 0},
    {&transport_and_filter_stay_the_callers_when_it_fails, 0})
