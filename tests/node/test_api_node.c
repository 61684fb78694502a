/* test_api_node.c - the calls of reeve/node.h: arguments, what they answer, from where they may be called. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "tests/kit/duo.h"
#include "tests/kit/net.h"
#include "tests/kit/run.h"

static struct rvt_net t;
static const uint8_t key[32] = {7};

static struct {
	reeve_node_cfg_t node;
	reeve_cfg_t conn;
	reeve_upgrade_t up;
} cfg;

static void
defaults(void)
{
	reeve_node_cfg_init(&cfg.node);
	reeve_cfg_init(&cfg.conn);
	cfg.up = (reeve_upgrade_t){.size = sizeof(cfg.up), .security = REEVE_PLAINTEXT, .key = key};
	cfg.conn.upgrade = &cfg.up;
	cfg.node.conn = &cfg.conn;
}

static int
create(reeve_rt_t *rt)
{
	reeve_node_t *n = NULL;
	int rc = reeve_node_create(&n, rt, &cfg.node);

	ck_assert(rc == 0 || n == NULL);
	reeve_node_destroy(n);
	return rc;
}

START_TEST(create_checks_its_configuration)
{
	struct {
		reeve_node_cfg_t cfg;
		uint64_t more;
	} newer;
	reeve_node_t *n;
	reeve_rt_t *rt;

	ck_assert_int_eq(reeve_rt_create(&rt, NULL), 0);
	defaults();
	ck_assert_uint_eq(cfg.node.size, sizeof(cfg.node));
	ck_assert_int_eq(create(rt), 0);
	ck_assert_int_eq(reeve_node_create(NULL, rt, &cfg.node), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_create(&n, NULL, &cfg.node), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_create(&n, rt, NULL), REEVE_EINVAL);
	cfg.node.conn = NULL;
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	defaults();
	cfg.conn.upgrade = NULL;
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	defaults();
	cfg.up.security = REEVE_SECURITY_NONE;
	cfg.up.key = NULL;
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	defaults();
	cfg.up.expect = "12D3KooWGbR4ZWR5bBKD1yLjRY4pYGyxJfvBd7DSh8d4pFaqcKoe";
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	defaults();
	cfg.node.flags = 0x8000;
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	defaults();
	cfg.conn.split = 2u << 20;
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	defaults();
	cfg.node.size = 8;
	ck_assert_int_eq(create(rt), REEVE_EINVAL);
	/* A caller that is newer: what he does not use does not matter. */
	defaults();
	memset(&newer, 0, sizeof(newer));
	newer.cfg = cfg.node;
	newer.cfg.size = sizeof(newer);
	ck_assert_int_eq(reeve_node_create(&n, rt, &newer.cfg), 0);
	reeve_node_destroy(n);
	newer.more = 1;
	ck_assert_int_eq(reeve_node_create(&n, rt, &newer.cfg), REEVE_EINVAL);
	ck_assert_int_eq(reeve_rt_shutdown(rt, 0), 0);
	defaults();
	ck_assert_int_eq(create(rt), REEVE_ECLOSED);
	reeve_rt_destroy(rt);
}
END_TEST

START_TEST(calls_check_their_arguments)
{
	char text[REEVE_PEER_TEXT], peers[2][REEVE_PEER_TEXT];
	reeve_node_stats_t st = {.size = sizeof(st)};
	struct rvt_net_cfg two = {.nodes = 2};
	struct rvt_done d;
	reeve_node_t *n;

	rvt_net_start(&t, &two);
	n = t.node[0].n;
	ck_assert_int_eq(reeve_node_id(n, text, 10), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_id(n, NULL, 10), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_id(NULL, text, sizeof(text)), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_id(n, text, sizeof(text)), (int)strlen(t.node[0].id));
	ck_assert_int_eq(reeve_node_addr(n, 1, text, sizeof(text)), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_addr(n, 0, text, 3), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_addr(NULL, 0, text, 3), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_listen(NULL, "mem://x"), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_listen(n, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_listen(n, "nowhere"), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_listen(n, "mem://second-of-two"), 0);
	ck_assert_int_gt(reeve_node_addr(n, 1, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "mem://second-of-two");
	ck_assert_int_eq(reeve_node_add_address(NULL, t.node[1].id, text), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_add_address(n, NULL, text), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_add_address(n, t.node[1].id, NULL), REEVE_EINVAL);
	ck_assert_int_eq(
	    reeve_node_add_address(n, t.node[1].id, "tcp://localhost:1"), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_dial(NULL, t.node[1].id, text, NULL, 0), REEVE_EINVAL);
	rvt_done_init(&d, -1);
	reeve_node_dial_async(n, NULL, NULL, &d.op);
	ck_assert_int_eq(rvt_done_wait(&d), REEVE_EINVAL);
	rvt_done_init(&d, -1);
	reeve_node_dial_async(n, NULL, "tcp://localhost:1", &d.op);
	ck_assert_int_eq(rvt_done_wait(&d), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_disconnect(NULL, t.node[1].id), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_disconnect(n, NULL), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_disconnect(n, "nobody"), REEVE_EINVAL);
	ck_assert_uint_eq(reeve_node_peers(NULL, peers, 2), 0);
	ck_assert_uint_eq(reeve_node_peers(n, peers, 2), 0);
	ck_assert_ptr_null(reeve_node_ctl(NULL, t.node[1].id));
	ck_assert_ptr_null(reeve_node_ctl(n, NULL));
	ck_assert_ptr_null(reeve_node_ctl(n, t.node[1].id));
	ck_assert_int_eq(reeve_node_stats(NULL, &st), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_stats(n, NULL), REEVE_EINVAL);
	st.size = 0;
	ck_assert_int_eq(reeve_node_stats(n, &st), REEVE_EINVAL);
	ck_assert_int_eq(reeve_node_close(NULL, 0), REEVE_EINVAL);
	rvt_net_end(&t);
}
END_TEST

/* Host names are looked up by the blocking call. */
START_TEST(a_host_name_is_resolved_by_a_dial)
{
	struct rvt_net_cfg two = {.via = RVT_TCP};
	char addr[64], who[REEVE_PEER_TEXT];

	rvt_net_start(&t, &two);
	snprintf(addr, sizeof(addr), "tcp://localhost:%s", strrchr(t.node[1].addr, ':') + 1);
	ck_assert_int_eq(reeve_node_dial(t.node[0].n, NULL, addr, who, 5000), 0);
	ck_assert_str_eq(who, t.node[1].id);
	rvt_net_end(&t);
}
END_TEST

static void
on_worker(void *arg)
{
	reeve_node_t *n = arg;

	ck_assert_int_eq(reeve_node_close(n, 0), REEVE_EWORKER);
	ck_assert_int_eq(reeve_node_listen(n, "mem://worker"), REEVE_EWORKER);
	ck_assert_int_eq(reeve_node_dial(n, NULL, "mem://worker", NULL, 0), REEVE_EWORKER);
	reeve_node_destroy(n); /* does nothing */
	ck_assert_uint_eq(reeve_node_peers(n, NULL, 0), 0);
}

START_TEST(what_blocks_is_refused_on_a_worker_and_in_a_child)
{
	struct rvt_net_cfg two = {.nodes = 2};
	int status;
	pid_t pid;

	rvt_net_start(&t, &two);
	rvt_on_worker(t.node[0].rt, on_worker, t.node[0].n);
	pid = fork();
	if (pid == 0) {
		reeve_node_t *n = t.node[0].n;

		if (reeve_node_close(n, 0) != REEVE_EFORKED ||
		    reeve_node_listen(n, "mem://child") != REEVE_EFORKED ||
		    reeve_node_dial(n, NULL, "mem://child", NULL, 0) != REEVE_EFORKED)
			_exit(1);
		reeve_node_destroy(n);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	rvt_net_end(&t);
}
END_TEST

/* Without threads: who calls runs everything. */
START_TEST(a_node_on_an_external_runtime)
{
	struct rvt_done d;
	reeve_node_stats_t st = {.size = sizeof(st)};
	reeve_node_t *n[2];
	reeve_rt_cfg_t rc;
	reeve_rt_t *rt;
	uint8_t other[32] = {8};

	reeve_rt_cfg_init(&rc);
	rc.flags = REEVE_RT_EXTERNAL;
	ck_assert_int_eq(reeve_rt_create(&rt, &rc), 0);
	defaults();
	ck_assert_int_eq(reeve_node_create(&n[0], rt, &cfg.node), 0);
	cfg.up.key = other;
	ck_assert_int_eq(reeve_node_create(&n[1], rt, &cfg.node), 0);
	ck_assert_int_eq(reeve_node_listen(n[1], "mem://external"), 0);
	rvt_done_init(&d, 5000);
	reeve_node_dial_async(n[0], NULL, "mem://external", &d.op);
	while (!rvt_done_is(&d))
		ck_assert_int_ge(reeve_rt_run(rt, 100), 0);
	ck_assert_int_eq(d.op.res, 0);
	ck_assert_uint_eq(reeve_node_peers(n[0], NULL, 0), 1);
	ck_assert_int_eq(reeve_node_close(n[0], 1000), 0);
	ck_assert_int_eq(reeve_node_stats(n[0], &st), 0);
	ck_assert_uint_eq(st.conns, 0);
	reeve_node_destroy(n[0]);
	reeve_node_destroy(n[1]);
	reeve_rt_destroy(rt);
}
END_TEST

START_TEST(names_of_protocols_are_taken_once)
{
	static const char *const a[] = {"/a/1", "/a/2"}, *const b[] = {"/b/1", "/a/2"},
				 *const bad[] = {"a"}, *const twice[] = {"/c", "/c"};
	struct rvt_net_cfg two = {.nodes = 2};
	static struct rvt_fake f[2];
	reeve_node_t *n;

	rvt_net_start(&t, &two);
	n = t.node[0].n;
	for (unsigned i = 0; i < 2; i++) {
		pthread_mutex_init(&f[i].lock, NULL);
		f[i].p.ops = t.node[0].fake.p.ops;
	}
	ck_assert_int_eq(rvn_proto_install(n, &f[0].p, bad, 1), REEVE_EINVAL);
	ck_assert_int_eq(rvn_proto_install(n, &f[0].p, a, 0), REEVE_EINVAL);
	ck_assert_int_eq(rvn_proto_install(n, &f[0].p, NULL, 1), REEVE_EINVAL);
	ck_assert_int_eq(rvn_proto_install(n, &f[0].p, twice, 2), REEVE_EINVAL);
	ck_assert_int_eq(rvn_proto_install(n, &f[0].p, rvt_fake_names, 1), REEVE_EBUSY);
	ck_assert_int_eq(rvn_proto_install(n, &f[0].p, a, 2), 0);
	ck_assert_int_eq(rvn_proto_install(n, &f[1].p, b, 2), REEVE_EBUSY);
	ck_assert_int_eq(rvn_proto_install(n, &f[1].p, b, 1), 0);
	ck_assert_str_eq(f[0].p.names[1], "/a/2");
	ck_assert(rvn_hold(n));
	rvn_drop(n);
	rvt_net_end(&t);
	ck_assert(f[0].freed && f[1].freed && f[0].closed);
}
END_TEST

RVT_MAIN_TABLE("api_node", {&create_checks_its_configuration, 0}, {&calls_check_their_arguments, 0},
    {&a_host_name_is_resolved_by_a_dial, 0},
    {&what_blocks_is_refused_on_a_worker_and_in_a_child, 0}, {&a_node_on_an_external_runtime, 0},
    {&names_of_protocols_are_taken_once, 0})
