/* test_rust.c - what the tests of the Rust crate (yamux) and of its users assert, where no other test of ours does.
 *
 * Property tests are rounds of seeded random numbers: the seed is printed, REEVE_SEED repeats it.  ../PORTED.md has the
 * whole list. */
#include <config.h>

#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/pipe.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include "lib/engine/yamux_frame.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WINDOW 262144u
#define KIB    1024u
#define MIB    1048576u

static struct rvt_nodes n;

static uint32_t
below(uint32_t *seed, uint32_t k)
{
	return rvt_random(seed) % k;
}

/* total bytes from s[0] to s[1] and back. */
static void
echo(reeve_stream_t *s[2], uint64_t total, uint32_t seed)
{
	struct rvt_flow f[3] = {
	    {.kind = RVT_FLOW_WRITE, .s = s[0]},
	    {.kind = RVT_FLOW_ECHO, .s = s[1]},
	    {.kind = RVT_FLOW_READ, .s = s[0]},
	};

	for (unsigned i = 0; i < 3; i++) {
		f[i].total = total;
		f[i].key = (uint32_t)reeve_stream_id(s[0]);
		f[i].seed = seed + i;
		rvt_flow_start(&f[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		rvt_flow_end(&f[i]);
}

/* --- headers */

/* Any header comes back as it was, and is byte for byte what the plain way makes of it.  The first few have nothing but
 * ones, nothing but zeroes, and every flag. */
START_TEST(rust_encode_decode_identity)
{
	uint32_t seed = rvt_seed();
	struct rvt_bytes b = {0};

	for (unsigned i = 0; i < 10000; i++) {
		uint32_t ones = i == 0 ? UINT32_MAX : 0;
		struct rv_yhdr h = {0}, back;
		struct rvt_frame f;
		uint8_t p[RV_YHDR];

		if (i != 1) {
			h.version = (uint8_t)(rvt_random(&seed) | ones);
			h.type = (uint8_t)(i == 0 ? RV_Y_GOAWAY : below(&seed, RV_Y_NTYPES));
			h.flags =
			    (uint16_t)(i >= 2 && i < 18 ? 1u << (i - 2) : rvt_random(&seed) | ones);
			h.id = rvt_random(&seed) << 16 | below(&seed, 65536) | ones;
			h.len = rvt_random(&seed) << 16 | below(&seed, 65536) | ones;
		}
		rv_yhdr_put(p, &h);
		rv_yhdr_get(&back, p);
		b.n = b.at = 0;
		rvt_put_raw(&b, (unsigned)h.version << 8 | h.type, h.flags, h.id,
		    h.type != RV_Y_DATA ? h.len : 0);
		ck_assert_int_eq(memcmp(b.p, p, h.type != RV_Y_DATA ? 12 : 8), 0);
		ck_assert(rvt_next(&b, &f));
		ck_assert(back.version == f.version && back.type == f.type);
		ck_assert(back.flags == f.flags && back.id == f.id && back.len == h.len);
	}
	rvt_bytes_fini(&b);
}
END_TEST

/* --- backlog */

#define OPENS 257

/* Each stream carries a byte to a server that accepts nothing at first. */
START_TEST(rust_honours_ack_backlog_of_256)
{
	struct rvt_wedding w = {.via = RVT_SOCKETPAIR};
	struct rvt_call next = {.kind = RVT_CALL_OPEN, .timeout_ms = -1};
	static reeve_stream_t *s[OPENS], *t[OPENS];

	rvt_marry(&n, &w);
	for (unsigned i = 0; i < OPENS - 1; i++) {
		ck_assert_int_eq(reeve_open(n.k[0], &s[i], 0), 0); /* none of them waits */
		rvt_want_write(s[i], 1, 0);
	}
	next.k = n.k[0];
	rvt_call_start(&next);
	rvt_call_asleep(&next);
	ck_assert_int_eq(reeve_ping(n.k[0], -1, NULL), 0); /* the server has seen all of them */
	ck_assert(!rvt_call_done(&next));
	ck_assert_uint_eq(rvt_stats(n.k[0]).streams_opened, OPENS - 1);
	for (unsigned i = 0; i < OPENS; i++) {
		ck_assert_int_eq(reeve_accept(n.k[1], &t[i], rvt_slow(RVT_WAIT_MS)), 0);
		if (i == 0) {
			ck_assert_int_eq(rvt_call_end(&next), 0);
			s[OPENS - 1] = next.s;
			rvt_want_write(next.s, 1, 0);
		}
		rvt_want_read(t[i], 1, 0);
		rvt_want_write(t[i], 1, 0);
	}
	for (unsigned i = 0; i < OPENS; i++) {
		ck_assert_uint_eq(reeve_stream_id(s[i]), reeve_stream_id(t[i]));
		rvt_want_read(s[i], 1, 0);
		reeve_close(s[i]);
		reeve_close(t[i]);
	}
	for (int i = 0; i < 2; i++)
		rvt_no_streams(n.k[i]);
	ck_assert_uint_eq(rvt_stats(n.k[0]).streams_opened, OPENS);
	ck_assert_uint_eq(rvt_stats(n.k[1]).streams_accepted, OPENS);
	ck_assert_uint_eq(rvt_stats(n.k[1]).streams_refused, 0);
	rvt_part(&n);
}
END_TEST

/* --- any configuration */

static void
any_config(reeve_cfg_t *cfg, uint32_t *seed)
{
	reeve_cfg_init(cfg);
	cfg->max_window = WINDOW + below(seed, 4) * below(seed, MIB);
	cfg->send_budget = KIB + below(seed, 2) * below(seed, MIB);
	cfg->split = below(seed, 3) ? 64 + below(seed, MIB - 64) : 0;
	cfg->max_unacked = 1 + below(seed, 256);
	cfg->accept_backlog = 256;
	cfg->grow = 1 + below(seed, 8 * MIB);
	cfg->max_recv = MIB + below(seed, 64 * MIB);
	cfg->flags = below(seed, 2) ? REEVE_CFG_LAZY_ACK : 0;
}

static void
marry_any(uint32_t *seed)
{
	static reeve_cfg_t cfg[2];
	struct rvt_wedding w = {.cfg = {&cfg[0], &cfg[1]}};
	static const enum rvt_via vias[] = {RVT_MEMORY, RVT_UNIX, RVT_TCP, RVT_SOCKETPAIR};

	w.via = vias[below(seed, 4)];
	for (int i = 0; i < 2; i++)
		any_config(&cfg[i], seed);
	rvt_marry(&n, &w);
}

/* A stream of its own for each message; what one side has processed the other has too. */
START_TEST(rust_prop_config_send_recv_multi)
{
	uint32_t seed = rvt_seed();

	for (unsigned run = 0; run < 3 * rvt_scale(); run++) {
		unsigned count = below(&seed, 10);
		reeve_stream_t *s[2];

		marry_any(&seed);
		for (unsigned i = 0; i < count; i++) {
			rvt_stream_pair(&n, (int)below(&seed, 2), s);
			echo(s, below(&seed, 2 * WINDOW), seed);
			rvt_close_both(s);
		}
		for (int i = 0; i < 2; i++) {
			rvt_no_streams(n.k[i]);
			ck_assert_uint_eq(rvt_stats(n.k[i]).bytes_in, rvt_stats(n.k[i]).bytes_out);
		}
		ck_assert_uint_eq(
		    rvt_stats(n.k[0]).streams_opened + rvt_stats(n.k[0]).streams_accepted, count);
		ck_assert_uint_eq(
		    rvt_stats(n.k[1]).streams_opened + rvt_stats(n.k[1]).streams_accepted, count);
		rvt_part(&n);
	}
}
END_TEST

/* Message after message on one stream, each back before the next: a whole window first. */
START_TEST(rust_prop_config_send_recv_single)
{
	uint32_t seed = rvt_seed();

	for (unsigned run = 0; run < 3 * rvt_scale(); run++) {
		unsigned count = 1 + below(&seed, 10);
		struct rvt_flow back = {.kind = RVT_FLOW_ECHO};
		uint64_t at = 0;
		reeve_stream_t *s[2];

		marry_any(&seed);
		rvt_stream_pair(&n, (int)below(&seed, 2), s);
		back.key = (uint32_t)reeve_stream_id(s[1]);
		back.s = s[1];
		back.seed = seed;
		rvt_flow_start(&back);
		for (unsigned i = 0; i < count; i++) {
			struct rvt_call wr = {.kind = RVT_CALL_WRITE, .s = s[0]};
			uint8_t *all;

			wr.n = i == 0 ? WINDOW : 1 + below(&seed, WINDOW);
			all = rvt_pattern(back.key, at + wr.n);
			wr.p = all + at;
			rvt_call_start(&wr);
			rvt_want_read(s[0], wr.n, at);
			ck_assert_int_eq(rvt_call_end(&wr), (reeve_ssize)wr.n);
			at += wr.n;
			free(all);
		}
		back.total = at;
		ck_assert_int_eq(reeve_shut(s[0]), 0);
		rvt_want_rc(s[0], 0);
		rvt_flow_end(&back);
		rvt_close_both(s);
		rvt_part(&n);
	}
}
END_TEST

/* --- many streams, small kernel buffers */

#define MOST 512

/* _i: 0 the system's buffers, 1 of 16 KiB to send and twice that to receive, 2 of 32 KiB and four times that. */
START_TEST(rust_concurrent_streams)
{
	unsigned count = 512 * rvt_scale() / 100;
	static struct rvt_flow f[3 * MOST];
	static reeve_stream_t *s[MOST][2];
	reeve_rt_t *rt[2];
	reeve_cfg_t cfg;
	int v[2], send = _i * 16384, receive = send * 2 * _i;

	count = count < 16 ? 16 : count > MOST ? MOST : count;
	memset(&n, 0, sizeof(n));
	n.base = rvt_base();
	reeve_cfg_init(&cfg);
	cfg.split = 128 * KIB;
	rvt_tcp_pair(v);
	for (int i = 0; i < 2; i++) {
		if (_i > 0) {
			ck_assert_int_eq(
			    setsockopt(v[i], SOL_SOCKET, SO_SNDBUF, &send, sizeof(send)), 0);
			ck_assert_int_eq(
			    setsockopt(v[i], SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive)), 0);
		}
		ck_assert_int_eq(reeve_rt_create(&rt[i], NULL), 0);
		ck_assert_int_eq(reeve_conn_open_fd(&n.c[i], rt[i], v[i],
				     i == 0 ? REEVE_DIALER : REEVE_LISTENER, &cfg),
		    0);
		n.rt[i] = rt[i];
		n.k[i] = reeve_conn_ctl(n.c[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		static const enum rvt_flow_kind kind[] = {
		    RVT_FLOW_WRITE, RVT_FLOW_ECHO, RVT_FLOW_READ};

		rvt_stream_pair(&n, 0, s[i]);
		for (unsigned k = 0; k < 3; k++) {
			f[3 * i + k] = (struct rvt_flow){.kind = kind[k],
			    .s = s[i][k % 2],
			    .total = 128 * KIB,
			    .key = i,
			    .seed = i};
			rvt_flow_start(&f[3 * i + k]);
		}
	}
	for (unsigned i = 0; i < 3 * count; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < count; i++)
		rvt_close_both(s[i]);
	rvt_part(&n);
}
END_TEST

/* --- limits */

START_TEST(rust_prop_max_streams)
{
	uint32_t seed = rvt_seed();

	for (unsigned run = 0; run < 5 * rvt_scale(); run++) {
		uint32_t most = 1 + below(&seed, 99); /* 0 is the default here */
		struct rvt_wedding w = {.via = RVT_PAIR};
		reeve_stream_t *s[100], *t = NULL;
		reeve_cfg_t cfg;

		reeve_cfg_init(&cfg);
		cfg.max_out = most;
		w.cfg[0] = w.cfg[1] = &cfg;
		rvt_marry(&n, &w);
		for (uint32_t i = 0; i < most; i++)
			ck_assert_int_eq(reeve_open(n.k[0], &s[i], -1), 0);
		ck_assert_int_eq(reeve_open(n.k[0], &t, -1), REEVE_ELIMIT);
		ck_assert_ptr_null(t);
		ck_assert_int_eq(reeve_ping(n.k[0], -1, NULL), 0); /* and nothing else is wrong */
		for (uint32_t i = 0; i < most; i++)
			reeve_close(s[i]);
		rvt_divorce(&n);
	}
}
END_TEST

/* --- a pipe that holds very little */

/* A MiB there and back on each of two streams, opened from both ends, through 1 KiB: everybody writes before they read. */
START_TEST(rust_write_deadlock)
{
	static const enum rvt_flow_kind kind[] = {RVT_FLOW_WRITE, RVT_FLOW_ECHO, RVT_FLOW_READ};
	uint64_t total = RVT_SANITIZED ? MIB / 4 : MIB;
	struct rvt_pipe p;
	struct rvt_flow f[6];
	reeve_stream_t *s[2][2];
	unsigned count = _i == 0 ? 1 : 2;

	rvt_pipe_marry(&p, &n, KIB, NULL, NULL);
	for (unsigned i = 0; i < count; i++) {
		rvt_stream_pair(&n, (int)i, s[i]);
		for (unsigned k = 0; k < 3; k++) {
			f[3 * i + k] = (struct rvt_flow){.kind = kind[k],
			    .s = s[i][(k + i) % 2],
			    .total = total,
			    .key = i,
			    .seed = i};
			rvt_flow_start(&f[3 * i + k]);
		}
	}
	for (unsigned i = 0; i < 3 * count; i++)
		rvt_flow_end(&f[i]);
	for (unsigned i = 0; i < count; i++)
		rvt_close_both(s[i]);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* A user's: a write says how much of itself was taken, whatever else is still on its way. */
START_TEST(rust_write_reports_its_own_bytes)
{
	struct rvt_pipe p;
	reeve_stream_t *s[2];

	rvt_pipe_marry(&p, &n, 64 * KIB, NULL, NULL);
	rvt_stream_pair(&n, 0, s);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t at = 524 * i;

		rvt_pipe_stop(&p, 0);
		rvt_want_write(s[0], 512, at); /* accepted and not sent */
		rvt_want_write(s[0], 12, at + 512);
		rvt_pipe_go(&p, 0);
		rvt_want_read(s[1], 524, at);
	}
	ck_assert_int_eq(reeve_shut(s[0]), 0);
	rvt_want_rc(s[1], 0);
	rvt_close_both(s);
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* A user's: the opener half-closes, the acceptor answers, the opener reads that to its end.  _i: who opens. */
START_TEST(rust_read_after_close)
{
	struct rvt_wedding w = {.via = RVT_TCP};
	reeve_stream_t *s[2];
	uint8_t byte = 0;
	int a = _i, b = 1 - _i;

	rvt_marry(&n, &w);
	rvt_stream_pair(&n, a, s);
	rvt_want_write(s[a], 4, 0);
	ck_assert_int_eq(reeve_shut(s[a]), 0);
	ck_assert_int_eq(reeve_write(s[a], &byte, 1), REEVE_ESHUT);
	rvt_want_read(s[b], 4, 0);
	rvt_want_rc(s[b], 0);
	rvt_want_write(s[b], 5, 4);
	reeve_close(s[b]);
	rvt_want_read(s[a], 5, 4);
	rvt_want_rc(s[a], 0);
	rvt_want_rc(s[a], 0);
	reeve_close(s[a]);
	rvt_part(&n);
}
END_TEST

RVT_MAIN_TABLE("ported: rust", {&rust_encode_decode_identity, 0},
    {&rust_honours_ack_backlog_of_256, 0}, {&rust_prop_config_send_recv_multi, 0},
    {&rust_prop_config_send_recv_single, 0}, {&rust_concurrent_streams, 3},
    {&rust_prop_max_streams, 0}, {&rust_write_deadlock, 2}, {&rust_write_reports_its_own_bytes, 0},
    {&rust_read_after_close, 2})
