/* What the test suites of the Rust multistream-select and plaintext, of litep2p, go-multistream and go-libp2p assert and no
 * other test of ours does: see ../PORTED.md. */
#include <config.h>

#include "actors/listener.h"
#include "lib/addr.h"
#include "lib/upgrade/multistream.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/pipe.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER    "\x13/multistream/1.0.0\n"
#define PLAINTEXT "\x11/plaintext/2.0.0\n"
#define LAZY      (REEVE_DIALER | REEVE_LAZY)

static const char *const two[] = {"/a", "/b"};
static const uint8_t key[2][32] = {{1, 2, 3}, {4, 5, 6}};
static struct rvt_nodes n;

/* --- the machine */

START_TEST(rust_unexpected_eof)
{
	static const char all[] = HEADER "\x03/b\n";
	struct rv_ms m;

	/* in a length, behind it, in a message */
	for (size_t k = 0; k < sizeof(all) - 1; k++) {
		for (int mode = RV_MS_DIALER; mode <= RV_MS_LISTENER; mode++) {
			ck_assert_int_eq(rv_ms_init(&m, (enum rv_ms_mode)mode, two + 1, 1), 0);
			ck_assert_uint_eq(rv_ms_feed(&m, (const uint8_t *)all, k), k);
			ck_assert(!m.done);
			rv_ms_end(&m);
			ck_assert(m.done);
			ck_assert_int_eq(m.rc, mode == RV_MS_LAZY ? REEVE_ETRUNC : REEVE_ENOPROTO);
		}
	}
}
END_TEST

/* What m has to say goes to the other in pieces of random sizes. */
static bool
carry(struct rv_ms *m, struct rv_ms *to, uint32_t *seed)
{
	const uint8_t *p;
	size_t k = rv_ms_out(m, &p), max = rvt_random(seed) % 300 + 1;

	if (k == 0 || to->done)
		return false;
	rv_ms_sent(m, rv_ms_feed(to, p, k < max ? k : max));
	return true;
}

/* Random names in random pieces: all is read as it was written. */
START_TEST(rust_writing_reading)
{
	static char text[16][RV_MS_MESSAGE];
	const char *names[16];
	uint32_t seed = rvt_seed();
	struct rv_ms d, l;
	unsigned count, at, len;

	for (unsigned round = 0; round < 300 * rvt_scale(); round++) {
		count = rvt_random(&seed) % 7 + 1;
		for (unsigned i = 0; i < count; i++) {
			len = rvt_random(&seed) % (RV_MS_MESSAGE - 8) + 3;
			for (unsigned k = 0; k < len; k++) {
				text[i][k] = (char)rvt_random(&seed);
				if (text[i][k] == '\n' || text[i][k] == '\0')
					text[i][k] = 'n';
			}
			snprintf(text[i], 3, "/%u", i);
			text[i][2] = '/';
			text[i][len] = '\0';
			names[i] = text[i];
		}
		at = rvt_random(&seed) % count;
		ck_assert_int_eq(rv_ms_init(&d, RV_MS_DIALER, names, count), 0);
		ck_assert_int_eq(rv_ms_init(&l, RV_MS_LISTENER, names + at, 1), 0);
		while (carry(&d, &l, &seed) | carry(&l, &d, &seed))
			continue;
		ck_assert(d.done && l.done);
		ck_assert_int_eq(d.rc | l.rc, 0);
		ck_assert_uint_eq(d.at, at);
	}
}
END_TEST

/* --- connections */

static reeve_upgrade_t
upgrade(int who)
{
	return (reeve_upgrade_t){.size = sizeof(reeve_upgrade_t),
	    .security = REEVE_PLAINTEXT,
	    .key = key[who],
	    .timeout_ms = (uint32_t)rvt_slow(RVT_WAIT_MS)};
}

/* {what is agreed by name, identity, multiplexer} x {other end has something else, is silent} x {dialer, listener} */
START_TEST(litep2p_tcp_each_step_fails_or_times_out)
{
	static const char identity[] = "\x4e\x0a\x26\x00\x24\x08\x01\x12\x20"
				       "0123456789012345678901234567890b\x12\x24\x08\x01\x12\x20"
				       "0123456789012345678901234567890b";
	static const struct {
		const char *wrong; /* behind what the steps before said */
		size_t nwrong;
		int rc;
		const char *id;
	} step[] = {
	    {"\x13/multistream/9.9.9\n", 20, REEVE_EPROTO, "REEVE-UP-SECURITY"},
	    {"\x05\x0a\x01x\x12\x00", 6, REEVE_EPROTO, "REEVE-UP-IDENTITY"},
	    {HEADER "\x03na\n", 24, REEVE_ENOPROTO, "REEVE-UP-MUXER"},
	};
	int at = _i / 4, role = _i & 1 ? REEVE_LISTENER : REEVE_DIALER;
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_upgrade_t u = upgrade(0);
	uint8_t said[256];
	size_t len = 0;
	reeve_cfg_t cfg;
	reeve_conn_t *c;
	reeve_rt_t *rt;
	bool silent = _i & 2;
	int v[2];

	if (at > 0)
		len = strlen(HEADER PLAINTEXT);
	memcpy(said, HEADER PLAINTEXT, len);
	if (at == 2) {
		memcpy(said + len, identity, 79);
		len += 79;
	}
	if (!silent && at == 2 && role == REEVE_LISTENER) {
		memcpy(said + len, HEADER "\x07/other\n", 28);
		len += 28;
	} else if (!silent) {
		memcpy(said + len, step[at].wrong, step[at].nwrong);
		len += step[at].nwrong;
	}
	if (silent)
		u.timeout_ms = 40;
	u.muxers[0] = REEVE_YAMUX;
	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	rvt_tcp_pair(v);
	ck_assert_int_eq(write(v[1], said, len), (ssize_t)len);
	if (!silent && at == 2)
		ck_assert_int_eq(shutdown(v[1], SHUT_WR), 0); /* a dialer gives up by leaving */
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_conn_open_fd(&c, rt, v[0], role, &cfg), 0);
	ck_assert_int_eq(reeve_ready(reeve_conn_ctl(c), rvt_slow(RVT_WAIT_MS)),
	    silent ? REEVE_ETIMEDOUT : step[at].rc);
	ck_assert_int_eq(reeve_ctl_reason(reeve_conn_ctl(c), &why), 0);
	ck_assert_str_eq(why.id, step[at].id);
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	close(v[1]);
}
END_TEST

/* A message of any length behind the handshake, over a pipe of 100 bytes. */
START_TEST(rust_variable_msg_length)
{
	static struct rvt_pipe p;
	reeve_upgrade_t u[2] = {upgrade(0), upgrade(1)};
	const reeve_cfg_t *with[2];
	uint32_t seed = rvt_seed();
	struct rvt_flow f[2];
	reeve_stream_t *s[2];
	reeve_cfg_t cfg[2];
	char id[2][80];

	for (int i = 0; i < 2; i++) {
		reeve_cfg_init(&cfg[i]);
		u[i].muxers[0] = REEVE_MPLEX;
		cfg[i].upgrade = &u[i];
		with[i] = &cfg[i];
	}
	rvt_pipe_marry(&p, &n, 100, NULL, with);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_ready(n.k[i], rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_gt(reeve_peer_id(n.k[i], id[i], 80), 0);
	}
	ck_assert_str_ne(id[0], id[1]);
	for (unsigned round = 0; round < 20; round++) {
		rvt_stream_pair(&n, (int)(round & 1), s);
		f[0] = (struct rvt_flow){
		    .kind = RVT_FLOW_WRITE, .s = s[0], .total = rvt_random(&seed) % 5000};
		f[1] = (struct rvt_flow){.kind = RVT_FLOW_READ, .s = s[1], .total = f[0].total};
		for (int i = 0; i < 2; i++)
			rvt_flow_start(&f[i]);
		for (int i = 0; i < 2; i++)
			rvt_flow_end(&f[i]);
		reeve_close(s[0]);
		reeve_close(s[1]);
	}
	rvt_pipe_divorce(&p, &n);
}
END_TEST

/* Who listens may ask for somebody as well. */
START_TEST(go_peer_id_mismatch_inbound)
{
	reeve_upgrade_t u[2] = {upgrade(0), upgrade(1)};
	struct rvt_wedding w = {.via = RVT_SOCKETPAIR};
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_cfg_t cfg[2];

	for (int i = 0; i < 2; i++) {
		reeve_cfg_init(&cfg[i]);
		cfg[i].upgrade = &u[i];
		w.cfg[i] = &cfg[i];
	}
	u[1].expect = "12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq";
	rvt_marry(&n, &w);
	ck_assert_int_eq(reeve_ready(n.k[1], rvt_slow(RVT_WAIT_MS)), REEVE_EIDENTITY);
	ck_assert_int_lt(reeve_ready(n.k[0], rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_ctl_reason(n.k[1], &why), 0);
	ck_assert_str_eq(why.id, "REEVE-UP-IDENTITY");
	rvt_divorce(&n);
}
END_TEST

/* More than may negotiate at once wait outside, and come in when others have used up their time. */
START_TEST(rust_max_negotiating_inbound)
{
	reeve_upgrade_t u = upgrade(0);
	reeve_stats_t st = {.size = sizeof(st)};
	reeve_listener_t *l;
	reeve_conn_t *c, *mine;
	reeve_op_t accept;
	int fd[RVA_GUESTS + 12];
	struct rv_addr a;
	reeve_cfg_t cfg;
	char addr[128];
	reeve_rt_t *rt;

	u.timeout_ms = (uint32_t)rvt_slow(500);
	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	rvt_scratch(RVT_UNIX, addr, sizeof(addr));
	ck_assert_int_eq(reeve_listen(&l, rt, addr, &cfg), 0);
	ck_assert_int_eq(rv_addr_parse(&a, addr), 0);
	for (int i = 0; i < RVA_GUESTS + 12; i++) {
		fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(fd[i], &a.u.sa, a.salen), 0);
	}
	reeve_op_init(&accept, NULL, NULL);
	reeve_listener_accept_async(l, &accept);
	u.timeout_ms = (uint32_t)rvt_slow(RVT_WAIT_MS);
	ck_assert_int_eq(reeve_dial(&mine, rt, addr, &cfg, rvt_slow(RVT_WAIT_MS)), 0);
	ck_assert_int_eq(reeve_op_wait(&accept), 0);
	c = accept.conn;
	ck_assert_int_eq(reeve_rt_stats(rt, &st), 0);
	ck_assert_uint_le(st.connections, RVA_GUESTS + 2); /* and the two ends of the honest one */
	reeve_conn_destroy(c);
	reeve_conn_destroy(mine);
	reeve_listener_destroy(l);
	for (int i = 0; i < RVA_GUESTS + 12; i++)
		close(fd[i]);
	reeve_rt_destroy(rt);
	rvt_scratch_end();
}
END_TEST

/* One port of both families is two addresses; without IPv6 there is nothing to see. */
START_TEST(rust_tcp_v4_and_v6_are_separate)
{
	char addr[2][64], both[80];
	reeve_listener_t *l[2];
	reeve_conn_t *c[2];
	reeve_rt_t *rt;
	int rc;

	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_listen(&l[0], rt, "tcp://127.0.0.1:0", NULL), 0);
	ck_assert_int_gt(reeve_listener_addr(l[0], addr[0], sizeof(addr[0])), 0);
	snprintf(both, sizeof(both), "tcp://[::1]%s", strrchr(addr[0], ':'));
	rc = reeve_listen(&l[1], rt, both, NULL);
	if (rc == REEVE_ESYS_BASE - EAFNOSUPPORT || rc == REEVE_ESYS_BASE - EADDRNOTAVAIL) {
		reeve_listener_destroy(l[0]);
		reeve_rt_destroy(rt);
		return;
	}
	ck_assert_int_eq(rc, 0);
	for (int i = 0; i < 2; i++) {
		snprintf(both, sizeof(both), "tcp://%s%s", i ? "[::1]" : "127.0.0.1",
		    strrchr(addr[0], ':'));
		ck_assert_int_eq(reeve_dial(&c[0], rt, both, NULL, rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(reeve_listener_accept(l[i], &c[1], rvt_slow(RVT_WAIT_MS)), 0);
		reeve_conn_destroy(c[0]);
		reeve_conn_destroy(c[1]);
	}
	for (int i = 0; i < 2; i++)
		reeve_listener_destroy(l[i]);
	reeve_rt_destroy(rt);
}
END_TEST

/* --- streams */

static void
greeter(reeve_stream_t *s, void *arg)
{
	reeve_buf_t *b;

	(void)arg;
	if (reeve_negotiate(s, REEVE_LISTENER, two, 2, -1) == 1 && reeve_write(s, "hello", 5) == 5)
		while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
			;
}

static void *
serve(void *l)
{
	ck_assert_int_eq(reeve_serve(l, greeter, NULL), 0);
	return NULL;
}

#define STRESS 100

/* Many lazy streams at once, all of whose readers begin before, or all behind the writes. */
START_TEST(go_neg_lazy_stress)
{
	static reeve_stream_t *s[STRESS];
	struct rvt_base base = rvt_base();
	reeve_listener_t *l;
	reeve_conn_t *c;
	reeve_rt_t *rt;
	pthread_t t;
	char p[8];

	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_listen(&l, rt, "mem://stress", NULL), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, serve, l), 0);
	ck_assert_int_eq(reeve_dial(&c, rt, "mem://stress", NULL, rvt_slow(RVT_WAIT_MS)), 0);
	for (int i = 0; i < STRESS; i++) {
		ck_assert_int_eq(reeve_open(reeve_conn_ctl(c), &s[i], rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(reeve_deadline(s[i], REEVE_RD, rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(reeve_negotiate(s[i], LAZY, two + 1, 1, -1), 0);
		if (_i)
			ck_assert_int_eq(reeve_write(s[i], "ab", 2), 2);
	}
	for (int i = 0; i < STRESS; i++) {
		ck_assert_int_eq(reeve_read(s[i], p, 5), 5);
		ck_assert_mem_eq(p, "hello", 5);
		if (!_i)
			ck_assert_int_eq(reeve_write(s[i], "ab", 2), 2);
	}
	for (int i = 0; i < STRESS; i++) {
		ck_assert_int_eq(reeve_shut(s[i]), 0);
		ck_assert_int_eq(reeve_read(s[i], p, 2), 2);
		ck_assert_mem_eq(p, "ab", 2);
		ck_assert_int_eq(reeve_read(s[i], p, 1), 0);
		reeve_close(s[i]);
	}
	reeve_listener_stop(l);
	pthread_join(t, NULL);
	reeve_listener_destroy(l);
	reeve_conn_destroy(c);
	reeve_rt_destroy(rt);
	rvt_base_check(&base);
}
END_TEST

/* Both ends are lazy dialers of one name: each takes the other's proposal for its answer. */
START_TEST(go_lazy_conns)
{
	struct rvt_wedding w = {.via = RVT_MEMORY};
	reeve_stream_t *s[2];

	rvt_marry(&n, &w);
	rvt_stream_pair(&n, 0, s);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(reeve_negotiate(s[i], LAZY, two + 1, 1, -1), 0);
	for (int i = 0; i < 2; i++)
		rvt_want_write(s[i], 1000, 0);
	for (int i = 0; i < 2; i++) {
		rvt_want_read(s[i], 1000, 0);
		ck_assert_str_eq(reeve_stream_proto(s[i]), "/b");
		reeve_close(s[i]);
	}
	rvt_divorce(&n);
}
END_TEST

RVT_MAIN_TABLE("ported_multistream", {&rust_unexpected_eof, 0}, {&rust_writing_reading, 0},
    {&litep2p_tcp_each_step_fails_or_times_out, 12}, {&rust_variable_msg_length, 0},
    {&go_peer_id_mismatch_inbound, 0}, {&rust_max_negotiating_inbound, 0},
    {&rust_tcp_v4_and_v6_are_separate, 0}, {&go_neg_lazy_stress, 2}, {&go_lazy_conns, 0})
