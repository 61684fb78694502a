/* test_api_handshake.c - connections that agree on security and on what carries their streams before they carry any. */
#include <config.h>

#include "lib/addr.h"
#include "tests/kit/base.h"
#include "tests/kit/flow.h"
#include "tests/kit/node.h"
#include "tests/kit/peer.h"
#include "tests/kit/raw.h"
#include "tests/kit/run.h"
#include "tests/kit/sock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint8_t key_a[32] = {1, 2, 3}, key_b[32] = {4, 5, 6};
static const char id_a[] = "12D3KooWA1bJVdQgJmK8iA5jJkDaYGxAvU6ESd7NCJYHJq3R9w2s";

static struct rvt_nodes n;

static reeve_upgrade_t
upgrade(const uint8_t *key, uint32_t first, uint32_t second)
{
	return (reeve_upgrade_t){.size = sizeof(reeve_upgrade_t),
	    .security = key != NULL ? REEVE_PLAINTEXT : REEVE_SECURITY_NONE,
	    .muxers = {first, second},
	    .key = key};
}

static void
marry(enum rvt_via via, reeve_upgrade_t *a, reeve_upgrade_t *b)
{
	struct rvt_wedding w = {.via = via, .chunk = 1, .seed = rvt_seed()};
	reeve_cfg_t cfg[2];

	for (int i = 0; i < 2; i++) {
		reeve_cfg_init(&cfg[i]);
		w.cfg[i] = &cfg[i];
	}
	cfg[0].upgrade = a;
	cfg[1].upgrade = b;
	rvt_marry(&n, &w);
}

static void
echo(uint32_t kind, uint64_t total)
{
	reeve_stream_t *s[2];
	struct rvt_flow f[3];

	for (int end = 0; end < 2; end++) {
		rvt_stream_pair(&n, end, s);
		memset(f, 0, sizeof(f));
		f[0] = (struct rvt_flow){
		    .kind = RVT_FLOW_WRITE, .s = s[0], .total = total, .key = kind};
		f[1] = (struct rvt_flow){
		    .kind = RVT_FLOW_ECHO, .s = s[1], .total = total, .key = kind};
		f[2] = (struct rvt_flow){
		    .kind = RVT_FLOW_READ, .s = s[0], .total = total, .key = kind};
		for (int i = 0; i < 3; i++)
			rvt_flow_start(&f[i]);
		for (int i = 0; i < 3; i++)
			rvt_flow_end(&f[i]);
		reeve_close(s[0]);
		reeve_close(s[1]);
	}
}

/* Every transport; security or none; what either end prefers. */
START_TEST(two_nodes_agree_and_carry_streams)
{
	static const uint32_t prefers[][3] = {
	    /* dialer's order, what is chosen */
	    {REEVE_YAMUX, REEVE_MPLEX, REEVE_YAMUX},
	    {REEVE_MPLEX, REEVE_YAMUX, REEVE_MPLEX},
	};
	enum rvt_via via = (enum rvt_via)(_i / 4);
	const uint32_t *p = prefers[_i % 2];
	bool secure = _i / 2 % 2;
	reeve_upgrade_t a = upgrade(secure ? key_a : NULL, p[0], p[1]),
			b = upgrade(secure ? key_b : NULL, REEVE_YAMUX, REEVE_MPLEX);
	char text[80];

	printf("%s\n", rvt_via_name[via]);
	fflush(stdout);
	marry(via, &a, via == RVT_PAIR ? &a : &b);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(reeve_ready(n.k[i], rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(reeve_proto(n.k[i]), (int)p[2]);
		ck_assert_int_eq(reeve_ready(n.k[i], 0), 0);
		if (secure)
			ck_assert_int_gt(reeve_peer_id(n.k[i], text, sizeof(text)), 50);
		else
			ck_assert_int_eq(reeve_peer_id(n.k[i], text, sizeof(text)), REEVE_ENOTSUP);
	}
	echo((uint32_t)_i, via >= RVT_RECHUNK ? 5000 : 300000);
	if (p[2] == REEVE_YAMUX)
		ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), 0);
	else
		ck_assert_int_eq(reeve_ping(n.k[0], rvt_slow(RVT_WAIT_MS), NULL), REEVE_ENOTSUP);
	rvt_divorce(&n);
}
END_TEST

START_TEST(calls_made_during_the_handshake_wait_for_its_end)
{
	reeve_upgrade_t u = upgrade(key_a, 0, 0);
	struct rvt_call open[3], ping = {.kind = RVT_CALL_PING};
	reeve_op_t ready;
	reeve_cfg_t cfg;
	reeve_conn_t *c[2];
	char id[80];
	reeve_rt_t *rt;
	int v[2];

	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	rvt_unix_pair(v);
	ck_assert_int_eq(reeve_conn_open_fd(&c[0], rt, v[0], REEVE_DIALER, &cfg), 0);
	ck_assert_int_eq(reeve_proto(reeve_conn_ctl(c[0])), REEVE_EAGAIN);
	ck_assert_int_eq(reeve_ready(reeve_conn_ctl(c[0]), 0), REEVE_ETIMEDOUT);
	ck_assert_int_eq(reeve_peer_id(reeve_conn_ctl(c[0]), id, sizeof(id)), REEVE_EAGAIN);
	reeve_op_init(&ready, NULL, NULL);
	reeve_ready_async(reeve_conn_ctl(c[0]), &ready);
	for (int i = 0; i < 3; i++) {
		open[i] = (struct rvt_call){.kind = RVT_CALL_OPEN,
		    .k = reeve_conn_ctl(c[0]),
		    .timeout_ms = rvt_slow(RVT_WAIT_MS)};
		rvt_call_start(&open[i]);
	}
	ping.k = reeve_conn_ctl(c[0]);
	ping.timeout_ms = rvt_slow(RVT_WAIT_MS);
	rvt_call_start(&ping);
	rvt_call_asleep(&open[0]);
	rvt_call_asleep(&ping);
	ck_assert_int_eq(reeve_conn_open_fd(&c[1], rt, v[1], REEVE_LISTENER, &cfg), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(rvt_call_end(&open[i]), 0);
		reeve_close(open[i].s);
	}
	ck_assert_int_ge(rvt_call_end(&ping), 0);
	ck_assert_int_eq(reeve_op_wait(&ready), 0);
	reeve_op_init(&ready, NULL, NULL);
	reeve_ready_async(reeve_conn_ctl(c[0]), &ready);
	ck_assert_int_eq(reeve_op_wait(&ready), 0);
	reeve_conn_destroy(c[0]);
	reeve_conn_destroy(c[1]);
	reeve_rt_destroy(rt);
}
END_TEST

/* A listener of ours, and what a dial of it gives. */
static int
dial(reeve_upgrade_t *a, reeve_upgrade_t *b, reeve_reason_t *why)
{
	reeve_listener_t *l;
	reeve_conn_t *c = NULL;
	reeve_cfg_t cfg[2];
	struct rvt_base base = rvt_base();
	char addr[128];
	reeve_rt_t *rt;
	reeve_op_t accept;
	int rc;

	for (int i = 0; i < 2; i++)
		reeve_cfg_init(&cfg[i]);
	cfg[0].upgrade = a;
	cfg[1].upgrade = b;
	a->why = why;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_listen(&l, rt, "tcp://127.0.0.1:0", &cfg[1]), 0);
	ck_assert_int_gt(reeve_listener_addr(l, addr, sizeof(addr)), 0);
	reeve_op_init(&accept, NULL, NULL);
	reeve_listener_accept_async(l, &accept);
	rc = reeve_dial(&c, rt, addr, &cfg[0], rvt_slow(RVT_WAIT_MS));
	ck_assert_int_eq(c != NULL, rc == 0);
	if (rc == 0) {
		ck_assert_int_eq(reeve_op_wait(&accept), 0);
		reeve_conn_destroy(accept.conn);
		reeve_conn_destroy(c);
	} else {
		reeve_op_cancel(&accept);
		ck_assert_int_eq(reeve_op_wait(&accept), REEVE_ECANCELED);
	}
	reeve_listener_destroy(l);
	reeve_rt_destroy(rt);
	rvt_base_check(&base);
	return rc;
}

START_TEST(each_failure_names_its_step)
{
	reeve_upgrade_t plain = upgrade(key_a, 0, 0), none = upgrade(NULL, 0, 0),
			yamux = upgrade(key_b, REEVE_YAMUX, 0),
			mplex = upgrade(key_a, REEVE_MPLEX, 0), other = upgrade(key_b, 0, 0);
	reeve_reason_t why = {0};

	ck_assert_int_eq(dial(&plain, &other, &why), 0);
	ck_assert_int_eq(dial(&plain, &none, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-SECURITY");
	ck_assert_int_eq(why.rc, REEVE_ENOPROTO);
	ck_assert_int_eq(dial(&none, &plain, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-MUXER");
	ck_assert_int_eq(dial(&mplex, &yamux, &why), REEVE_ENOPROTO);
	ck_assert_str_eq(why.id, "REEVE-UP-MUXER");
	plain.expect = id_a;
	ck_assert_int_eq(dial(&plain, &other, &why), REEVE_EIDENTITY);
	ck_assert_str_eq(why.id, "REEVE-UP-IDENTITY");
	ck_assert_uint_eq(why.by, REEVE_BY_PEER);
}
END_TEST

START_TEST(peers_know_each_other)
{
	reeve_upgrade_t a = upgrade(key_a, 0, 0), b = upgrade(key_b, 0, 0);
	char text[2][80];

	marry(RVT_TCP, &a, &b);
	for (int i = 0; i < 2; i++)
		ck_assert_int_gt(reeve_peer_id(n.k[i], text[i], 80), 0);
	ck_assert_int_eq(reeve_peer_id(n.k[0], text[0], 20), REEVE_EINVAL);
	ck_assert_str_ne(text[0], text[1]);
	rvt_divorce(&n);
	a.expect = text[0];
	b.expect = text[1];
	marry(RVT_UNIX, &a, &b);
	rvt_divorce(&n);
}
END_TEST

START_TEST(a_bad_upgrade_is_told_at_once)
{
	reeve_upgrade_t u[5] = {upgrade(key_a, 0, 0), upgrade(NULL, 7, 0), upgrade(key_a, 0, 0),
	    upgrade(NULL, 0, 0), upgrade(key_a, 0, 0)};
	reeve_conn_t *pair[2];
	reeve_cfg_t cfg;
	reeve_rt_t *rt;

	u[0].size = 3;
	u[2].key = NULL;
	u[3].expect = id_a;
	u[4].expect = "nobody";
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	for (int i = 0; i < 5; i++) {
		reeve_cfg_init(&cfg);
		cfg.upgrade = &u[i];
		ck_assert_int_eq(reeve_conn_pair(pair, rt, &cfg), REEVE_EINVAL);
	}
	reeve_rt_destroy(rt);
}
END_TEST

/* A socket that connects and is silent, at every step of a dialer's handshake. */
START_TEST(a_silent_peer_times_out_at_every_step)
{
	static const char hello[] = "\x13/multistream/1.0.0\n\x11/plaintext/2.0.0\n";
	static const struct {
		size_t said;
		const char *step;
	} row[] = {{0, "REEVE-UP-SECURITY"}, {20, "REEVE-UP-SECURITY"}, {37, "REEVE-UP-SECURITY"},
	    {38, "REEVE-UP-IDENTITY"}};
	reeve_upgrade_t u = upgrade(key_a, 0, 0);
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_cfg_t cfg;
	reeve_conn_t *c;
	reeve_rt_t *rt;
	int v[2];

	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	u.timeout_ms = 30;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint64_t start = rvt_now_ms();

		rvt_unix_pair(v);
		ck_assert_int_eq(write(v[1], hello, row[i].said), (ssize_t)row[i].said);
		ck_assert_int_eq(reeve_conn_open_fd(&c, rt, v[0], REEVE_DIALER, &cfg), 0);
		ck_assert_int_eq(
		    reeve_ready(reeve_conn_ctl(c), rvt_slow(RVT_WAIT_MS)), REEVE_ETIMEDOUT);
		ck_assert_uint_ge(rvt_now_ms() - start, 29);
		ck_assert_int_eq(reeve_ctl_reason(reeve_conn_ctl(c), &why), 0);
		ck_assert_str_eq(why.id, row[i].step);
		reeve_conn_destroy(c);
		close(v[1]);
	}
	reeve_rt_destroy(rt);
}
END_TEST

START_TEST(the_end_and_garbage_name_the_step_too)
{
	static const struct {
		const char *said;
		size_t n;
		int rc;
		const char *step;
	} row[] = {
	    {"", 0, REEVE_ENOPROTO, "REEVE-UP-SECURITY"},
	    {"\x13/multistream/1.0.0\n\x03na\n", 24, REEVE_ENOPROTO, "REEVE-UP-SECURITY"},
	    {"HTTP/1.1 400 Bad Request\r\n\r\n and so on until it is long enough to be a message "
	     "of 72 bytes",
		90, REEVE_EPROTO, "REEVE-UP-SECURITY"},
	    {"\x13/multistream/1.0.0\n\x11/plaintext/2.0.0\n\x03"
	     "abc",
		42, REEVE_EPROTO, "REEVE-UP-IDENTITY"},
	    {"\x13/multistream/1.0.0\n\x11/plaintext/2.0.0\n\x03"
	     "ab",
		41, REEVE_ETRUNC, "REEVE-UP-IDENTITY"},
	};
	reeve_upgrade_t u = upgrade(key_a, 0, 0);
	reeve_reason_t why = {.size = sizeof(why)};
	reeve_cfg_t cfg;
	reeve_conn_t *c;
	reeve_rt_t *rt;
	int v[2];

	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		rvt_unix_pair(v);
		ck_assert_int_eq(write(v[1], row[i].said, row[i].n), (ssize_t)row[i].n);
		ck_assert_int_eq(shutdown(v[1], SHUT_WR), 0);
		ck_assert_int_eq(reeve_conn_open_fd(&c, rt, v[0], REEVE_DIALER, &cfg), 0);
		ck_assert_msg(reeve_ready(reeve_conn_ctl(c), rvt_slow(RVT_WAIT_MS)) == row[i].rc,
		    "row %zu", i);
		ck_assert_int_eq(reeve_ctl_reason(reeve_conn_ctl(c), &why), 0);
		ck_assert_str_eq(why.id, row[i].step);
		ck_assert_int_eq(why.rc, row[i].rc);
		reeve_conn_destroy(c);
		close(v[1]);
	}
	reeve_rt_destroy(rt);
}
END_TEST

/* Sockets that connect and say nothing do not keep an honest dialer waiting, and are not given out. */
START_TEST(silent_guests_hold_up_nobody)
{
	reeve_upgrade_t u = upgrade(key_a, 0, 0);
	struct rvt_base base = rvt_base();
	reeve_listener_t *l;
	reeve_conn_t *c, *mine;
	reeve_cfg_t cfg;
	struct rv_addr a;
	char addr[128];
	reeve_rt_t *rt;
	reeve_op_t accept;
	int fd[20];

	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_listen(&l, rt, "tcp://127.0.0.1:0", &cfg), 0);
	ck_assert_int_gt(reeve_listener_addr(l, addr, sizeof(addr)), 0);
	ck_assert_int_eq(rv_addr_parse(&a, addr), 0);
	for (int i = 0; i < 20; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(fd[i], &a.u.sa, a.salen), 0);
	}
	for (int round = 0; round < 3; round++) {
		reeve_op_init(&accept, NULL, NULL);
		reeve_listener_accept_async(l, &accept);
		ck_assert_int_eq(reeve_dial(&mine, rt, addr, &cfg, rvt_slow(RVT_WAIT_MS)), 0);
		ck_assert_int_eq(reeve_op_wait(&accept), 0);
		c = accept.conn;
		ck_assert_int_eq(reeve_proto(reeve_conn_ctl(c)), REEVE_YAMUX);
		reeve_conn_destroy(c);
		reeve_conn_destroy(mine);
	}
	reeve_listener_destroy(l);
	for (int i = 0; i < 20; i++)
		close(fd[i]);
	reeve_rt_destroy(rt);
	rvt_base_check(&base);
}
END_TEST

START_TEST(a_dial_is_given_up_at_its_deadline_and_when_cancelled)
{
	reeve_upgrade_t u = upgrade(key_a, 0, 0);
	struct rvt_base base = rvt_base();
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	reeve_conn_t *c;
	reeve_cfg_t cfg;
	char addr[64];
	reeve_rt_t *rt;
	reeve_op_t op;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(addr, sizeof(addr), "tcp://127.0.0.1:%d", ntohs(in.sin_port));
	reeve_cfg_init(&cfg);
	cfg.upgrade = &u;
	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	ck_assert_int_eq(reeve_dial(&c, rt, addr, &cfg, 30), REEVE_ETIMEDOUT);
	for (int i = 0; i < 30; i++) {
		reeve_op_init(&op, NULL, NULL);
		reeve_dial_async(rt, addr, &cfg, &op);
		rvt_yield(20 * (unsigned)i);
		reeve_op_cancel(&op);
		ck_assert_int_eq(reeve_op_wait(&op), REEVE_ECANCELED);
	}
	reeve_op_init(&op, NULL, NULL);
	reeve_dial_async(rt, addr, &cfg, &op);
	reeve_rt_destroy(rt); /* with a dial under way */
	ck_assert_int_eq(reeve_op_wait(&op), REEVE_ECLOSED);
	close(fd);
	rvt_base_check(&base);
}
END_TEST

RVT_MAIN_TABLE("api_handshake", {&two_nodes_agree_and_carry_streams, 4 * RVT_VIAS},
    {&calls_made_during_the_handshake_wait_for_its_end, 0}, {&each_failure_names_its_step, 0},
    {&peers_know_each_other, 0}, {&a_bad_upgrade_is_told_at_once, 0},
    {&a_silent_peer_times_out_at_every_step, 0}, {&the_end_and_garbage_name_the_step_too, 0},
    {&silent_guests_hold_up_nobody, 0}, {&a_dial_is_given_up_at_its_deadline_and_when_cancelled, 0})
