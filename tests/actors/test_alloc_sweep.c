/* The n-th allocation fails, for n = 1, 2, 3 ..., in whole lives of runtimes, connections and streams: no call
 * crashes, leaks or waits for ever; each works, or answers REEVE_ENOMEM or what follows from it. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

#define MS 1000 /* for a call that fails because its peer is gone */

/* Everything a life may be refused with; anything else is a fault. */
static int
good(reeve_ssize rc)
{
	return rc >= 0 || rc == REEVE_ENOMEM || rc == REEVE_ECLOSED || rc == REEVE_EEND ||
	    rc == REEVE_ERESET || rc == REEVE_EREFUSED || rc == REEVE_ETIMEDOUT ||
	    rc == REEVE_ESYS_BASE - 32 /* EPIPE */ ||
	    rc == REEVE_ESYS_BASE - 104 /* ECONNRESET */ ||
	    rc == REEVE_ESYS_BASE - 111 /* ECONNREFUSED */ || rc == REEVE_ETRUNC;
}

#define OK(rc) ck_assert_msg(good(rc), "%s: %s", #rc, reeve_errname((int)(rc)))

struct life {
	struct rvt_duo d;
	reeve_msg_t msg;
	uint8_t bytes[40000];
	bool rest; /* all memory is gone */
};

static void
bytes_go_through(struct life *v)
{
	reeve_stream_t **s = v->d.s;
	reeve_buf_t *b;
	reeve_ssize rc;

	for (int i = 0; i < 2; i++)
		OK(reeve_deadline(s[i], REEVE_RD | REEVE_WR, MS));
	rc = reeve_write(s[0], v->bytes, sizeof(v->bytes));
	OK(rc);
	if (rc > 0) {
		rc = reeve_read(s[1], v->bytes, 100);
		OK(rc);
	}
	b = reeve_buf_alloc(v->d.rt, 5000);
	if (b != NULL)
		OK(reeve_write_buf(s[1], b));
	if (b != NULL && (rc = reeve_read_buf(s[0], &b)) > 0)
		reeve_buf_unref(b);
	b = reeve_buf_wrap(v->d.rt, v->bytes, 3000, NULL, NULL);
	if (b != NULL) {
		reeve_buf_t *part = reeve_buf_slice(b, 10, 10);

		reeve_buf_unref(b);
		if (part != NULL)
			OK(reeve_write_buf(s[0], part));
	}
}

static void
operations_go_through(struct life *v)
{
	struct rvt_done rd, wr, ping;
	reeve_buf_t *b = reeve_buf_alloc(v->d.rt, 3000);

	if (b == NULL)
		return;
	rvt_done_init(&rd, MS);
	rvt_done_init(&wr, MS);
	rvt_done_init(&ping, MS);
	reeve_read_async(v->d.s[0], &rd.op);
	reeve_write_async(v->d.s[1], b, &wr.op);
	reeve_ping_async(v->d.k[0], &ping.op);
	OK(rvt_done_wait(&wr));
	if (wr.op.res < 0)
		reeve_op_cancel(&rd.op); /* nothing will come */
	OK(rvt_done_wait(&ping));
	if (rvt_done_wait(&rd) > 0)
		reeve_buf_unref(rd.op.buf);
	ck_assert(good(rd.op.res) || rd.op.res == REEVE_EBUSY || rd.op.res == REEVE_ECANCELED);
}

static void
pair_life(struct life *v)
{
	int rc = reeve_conn_pair(v->d.c, v->d.rt, NULL);

	OK(rc);
	if (rc < 0) {
		v->d.c[0] = v->d.c[1] = NULL;
		return;
	}
	for (int i = 0; i < 2; i++)
		v->d.k[i] = reeve_conn_ctl(v->d.c[i]);
	rc = reeve_open(v->d.k[0], &v->d.s[0], MS);
	OK(rc);
	if (rc == 0) {
		rc = reeve_accept(v->d.k[1], &v->d.s[1], MS);
		OK(rc);
		if (rc == 0) {
			bytes_go_through(v);
			operations_go_through(v);
		}
	}
	rc = reeve_ping(v->d.k[0], MS, NULL);
	OK(rc);
	ck_assert(
	    v->rest || rc != REEVE_ETIMEDOUT); /* there is memory again: nothing may stand still */
	for (int i = 0; i < 2; i++) {
		reeve_close(v->d.s[i]);
		v->d.s[i] = NULL;
	}
	OK(reeve_conn_close(v->d.c[0], MS));
}

static void
echo(reeve_stream_t *s, void *arg)
{
	reeve_buf_t *b;

	(void)arg;
	while (reeve_read_buf(s, &b) > 0 && reeve_write_buf(s, b) > 0)
		;
}

struct serving {
	reeve_listener_t *l;
	int rc;
};

static void *
serve(void *arg)
{
	struct serving *v = arg;

	v->rc = reeve_serve(v->l, echo, NULL);
	return NULL;
}

static void
listen_life(struct life *v, const char *at)
{
	struct serving sv = {.rc = 1};
	char addr[64];
	pthread_t t;
	int rc = reeve_listen(&sv.l, v->d.rt, at, NULL);

	OK(rc);
	if (rc < 0)
		return;
	ck_assert_int_gt(reeve_listener_addr(sv.l, addr, sizeof(addr)), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, serve, &sv), 0);
	rc = reeve_dial(&v->d.c[0], v->d.rt, addr, NULL, MS);
	OK(rc);
	if (rc == 0) {
		v->d.k[0] = reeve_conn_ctl(v->d.c[0]);
		rc = reeve_open(v->d.k[0], &v->d.s[0], MS);
		OK(rc);
	}
	if (rc == 0) {
		OK(reeve_deadline(v->d.s[0], REEVE_RD | REEVE_WR, 500));
		rc = (int)reeve_write(v->d.s[0], v->bytes, 20000);
		OK(rc);
		OK(reeve_shut(v->d.s[0]));
		while ((rc = (int)reeve_read(v->d.s[0], v->bytes, sizeof(v->bytes))) > 0)
			;
		OK(rc);
	}
	reeve_close(v->d.s[0]);
	v->d.s[0] = NULL;
	reeve_listener_stop(sv.l);
	pthread_join(t, NULL);
	OK(sv.rc);
	reeve_listener_destroy(sv.l);
}

static void
actor(reeve_actor_t *self, reeve_msg_t *msg, void *arg)
{
	(void)self;
	(void)msg;
	(void)arg;
}

static void
actor_life(struct life *v)
{
	reeve_actor_t *a = NULL;
	int rc = reeve_actor_spawn(&a, v->d.rt, actor, NULL, NULL);

	OK(rc);
	if (rc == 0) {
		reeve_actor_post(a, &v->msg);
		reeve_actor_unref(a);
	}
}

static const char *const lives[] = {"pair", "tcp://127.0.0.1:0", "mem://sweep", "actor"};

/* One life in which allocation n fails (and, with rest, all behind it).  False: it was over before. */
static bool
live(struct life *v, int kind, uint64_t n, bool rest)
{
	reeve_rt_cfg_t cfg;
	bool failed;
	int rc;

	memset(v, 0, sizeof(*v));
	v->rest = rest;
	rvt_alloc_init(&v->d.alloc);
	reeve_rt_cfg_init(&cfg);
	cfg.workers = 1;
	cfg.alloc = v->d.alloc.a;
	rvt_alloc_fail(&v->d.alloc, n, rest);
	rc = reeve_rt_create(&v->d.rt, &cfg);
	ck_assert(rc == 0 || rc == REEVE_ENOMEM);
	if (rc == 0 && kind == 0)
		pair_life(v);
	else if (rc == 0 && kind == 3)
		actor_life(v);
	else if (rc == 0)
		listen_life(v, lives[kind]);
	if (rc < 0)
		v->d.rt = NULL;
	failed = rvt_alloc_failed(&v->d.alloc);
	rvt_duo_end(&v->d);
	return failed;
}

START_TEST(a_life_survives_any_single_failure)
{
	static struct life v;
	uint64_t n = 1;

	while (live(&v, _i, n, false))
		n++;
	ck_assert_uint_gt(n, 5);
}
END_TEST

START_TEST(a_life_survives_the_end_of_all_memory)
{
	static struct life v;
	uint64_t n = 1;

	while (live(&v, _i, n, true))
		n++;
	ck_assert_uint_gt(n, 5);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("alloc_sweep");
	TCase *tcase = tcase_create("alloc_sweep");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 4 * RVT_TIMEOUT_S);
	tcase_add_loop_test(tcase, a_life_survives_any_single_failure, 0, 4);
	tcase_add_loop_test(tcase, a_life_survives_the_end_of_all_memory, 0, 4);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
