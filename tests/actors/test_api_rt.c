/* Runtime configuration, external mode as the header tells it, counters, the log hook. */
#include <config.h>

#include <string.h>

#include "tests/kit/duo.h"
#include "tests/kit/run.h"

START_TEST(runtime_configurations_are_checked)
{
	reeve_rt_t *rt = NULL;
	reeve_rt_cfg_t cfg;
	struct {
		reeve_rt_cfg_t cfg;
		uint64_t more[2];
	} newer;

	memset(&cfg, 0, sizeof(cfg));
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_EINVAL);
	memset(&cfg, 0xff, sizeof(cfg));
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_EINVAL);
	reeve_rt_cfg_init(&cfg);
	ck_assert_uint_eq(cfg.size, sizeof(cfg));
	cfg.seed = 1;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_ENOTSUP);
	reeve_rt_cfg_init(&cfg);
	cfg.flags = 0x10;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_EINVAL);
	reeve_rt_cfg_init(&cfg);
	cfg.alloc.free = (void (*)(void *, void *, size_t))(uintptr_t)1;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_EINVAL);
	reeve_rt_cfg_init(&cfg);
	cfg.workers = 100000;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_EINVAL);
	reeve_rt_cfg_init(&cfg);
	cfg.spin_us = 1001;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), REEVE_EINVAL);
	ck_assert_ptr_null(rt);
	reeve_rt_cfg_init_sized(&cfg, offsetof(reeve_rt_cfg_t, name)); /* an older caller */
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), 0);
	reeve_rt_destroy(rt);
	rt = NULL;
	reeve_rt_cfg_init_sized(&newer.cfg, sizeof(newer));
	newer.cfg.name = "a name that is far too long for a thread";
	ck_assert_int_eq(reeve_rt_create(&rt, &newer.cfg), 0);
	reeve_rt_destroy(rt);
	newer.more[1] = 1;
	ck_assert_int_eq(reeve_rt_create(&rt, &newer.cfg), REEVE_EINVAL);
}
END_TEST

/* However long a thread looks before it sleeps, everything arrives, by blocking calls and by the workers alone. */
START_TEST(looking_before_sleeping_changes_no_byte)
{
	static const uint32_t spins[] = {REEVE_OFF, 0, 1, 1000};
	struct rvt_duo d;
	reeve_rt_cfg_t cfg;

	reeve_rt_cfg_init(&cfg);
	cfg.spin_us = spins[_i];
	rvt_duo_rt_cfg(&d, &cfg);
	rvt_duo_conns(&d, NULL);
	rvt_duo_stream(&d);
	for (unsigned i = 0; i < 200; i++) {
		rvt_write_run(d.s[0], 1000, 1000 * i);
		rvt_read_run(d.s[1], 1000, 1000 * i);
		ck_assert_int_eq(reeve_ping(d.k[i % 2], RVT_WAIT_MS, NULL), 0);
	}
	rvt_duo_end(&d);
}
END_TEST

START_TEST(counters_count)
{
	struct rvt_duo d;
	reeve_stats_t st = {.size = sizeof(st)}, far = {.size = sizeof(far)};

	rvt_duo_start(&d);
	rvt_write_run(d.s[0], 100000, 0);
	rvt_read_run(d.s[1], 100000, 0);
	ck_assert_int_eq(reeve_ping(d.k[0], RVT_WAIT_MS, NULL), 0);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), 0);
	ck_assert_int_eq(reeve_ctl_stats(d.k[1], &far), 0);
	ck_assert_uint_eq(st.size, sizeof(st));
	ck_assert_uint_eq(st.streams_open, 1);
	ck_assert_uint_eq(st.streams_opened, 1);
	ck_assert_uint_eq(st.streams_accepted, 0);
	ck_assert_uint_eq(far.streams_accepted, 1);
	ck_assert_uint_eq(st.streams_refused, 0);
	ck_assert_uint_eq(st.bytes_out, 100000);
	ck_assert_uint_eq(st.bytes_in, 0);
	ck_assert_uint_eq(far.bytes_in, 100000);
	ck_assert_uint_eq(st.bytes_copied_out, 100000);
	ck_assert_uint_gt(st.frames_out, 2);
	ck_assert_uint_gt(st.frames_in, 1);
	ck_assert_uint_eq(st.resets_in + st.resets_out, 0);
	ck_assert_uint_gt(st.reads, 0);
	ck_assert_uint_gt(st.writes, 0);
	ck_assert_uint_ge(st.window_max, 256 * 1024);
	ck_assert_uint_gt(st.messages, 0);
	/* What was read is told now and then, at the latest when a reader goes to sleep. */
	ck_assert_int_eq(reeve_deadline(d.s[1], REEVE_RD, 1), 0);
	ck_assert_int_eq(reeve_read(d.s[1], &st, 1), REEVE_ETIMEDOUT);
	RVT_UNTIL(reeve_ctl_stats(d.k[1], &far) == 0 && far.unread == 0);
	ck_assert_int_eq(reeve_reset(d.s[0], 0), 0);
	RVT_UNTIL(reeve_ctl_stats(d.k[1], &far) == 0 && far.resets_in == 1);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), 0);
	ck_assert_uint_eq(st.resets_out, 1);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(counters_of_the_runtime_are_sums_past_and_present)
{
	struct rvt_duo d;
	reeve_stats_t st = {.size = sizeof(st)};

	rvt_duo_start(&d);
	rvt_write_run(d.s[0], 1000, 0);
	rvt_read_run(d.s[1], 1000, 0);
	ck_assert_int_eq(reeve_rt_stats(d.rt, &st), 0);
	ck_assert_uint_eq(st.connections, 2);
	ck_assert_uint_eq(st.bytes_out, 1000);
	ck_assert_uint_eq(st.bytes_in, 1000);
	ck_assert_uint_eq(st.streams_opened, 1);
	ck_assert_uint_gt(st.blocks_allocated, 0);
	for (int i = 0; i < 2; i++) {
		reeve_close(d.s[i]);
		reeve_conn_destroy(d.c[i]);
		d.s[i] = NULL;
		d.c[i] = NULL;
	}
	ck_assert_int_eq(reeve_rt_stats(d.rt, &st), 0);
	ck_assert_uint_eq(st.connections, 0);
	ck_assert_uint_eq(st.streams_open, 0);
	ck_assert_uint_eq(st.bytes_in, 1000);
	ck_assert_uint_eq(st.streams_opened, 1);
	ck_assert_uint_eq(st.held, 0);
	rvt_duo_end(&d);
}
END_TEST

START_TEST(an_older_or_newer_caller_gets_what_it_knows)
{
	struct rvt_duo d;
	struct {
		reeve_stats_t st;
		uint64_t more[3];
	} newer;
	reeve_stats_t st;

	rvt_duo_start(&d);
	memset(&st, 0xee, sizeof(st));
	st.size = offsetof(reeve_stats_t, streams_refused);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), 0);
	ck_assert_uint_eq(st.streams_opened, 1);
	ck_assert_uint_eq(st.streams_refused, UINT64_C(0xeeeeeeeeeeeeeeee));
	memset(&newer, 0xee, sizeof(newer));
	newer.st.size = sizeof(newer);
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &newer.st), 0);
	ck_assert_uint_eq(newer.st.streams_opened, 1);
	ck_assert_uint_eq(newer.more[2], 0);
	newer.st.size = sizeof(newer);
	ck_assert_int_eq(reeve_rt_stats(d.rt, &newer.st), 0);
	st.size = 0;
	ck_assert_int_eq(reeve_ctl_stats(d.k[0], &st), REEVE_EINVAL);
	st.size = 8;
	ck_assert_int_eq(reeve_rt_stats(d.rt, &st), REEVE_EINVAL);
	st.size = UINT64_MAX;
	ck_assert_int_eq(reeve_rt_stats(d.rt, &st), REEVE_EINVAL);
	rvt_duo_end(&d);
}
END_TEST

struct said {
	struct rvq_gauge lines, worst_warn;
};

static void
listen_to(void *ctx, int level, const char *id, const char *text)
{
	struct said *s = ctx;

	ck_assert_ptr_nonnull(strstr(id, "REEVE-"));
	ck_assert_ptr_null(strchr(text, '\n'));
	rvq_gauge_add(&s->lines, 1);
	if (level <= REEVE_LOG_WARN)
		rvq_gauge_add(&s->worst_warn, 1);
}

static struct said
log_of(int level, int abort_rc)
{
	static struct said s;
	reeve_rt_cfg_t cfg;
	reeve_rt_t *rt;
	reeve_conn_t *c[2];

	memset(&s, 0, sizeof(s));
	reeve_rt_cfg_init(&cfg);
	cfg.workers = 1;
	cfg.log = listen_to;
	cfg.log_ctx = &s;
	cfg.log_level = level;
	ck_assert_int_eq(reeve_rt_create(&rt, &cfg), 0);
	ck_assert_int_eq(reeve_conn_pair(c, rt, NULL), 0);
	ck_assert_int_eq(reeve_ping(reeve_conn_ctl(c[0]), RVT_WAIT_MS, NULL), 0);
	if (abort_rc != 0)
		ck_assert_int_eq(reeve_abort(reeve_conn_ctl(c[0]), abort_rc), 0);
	else
		ck_assert_int_eq(reeve_conn_close(c[0], RVT_WAIT_MS), 0);
	reeve_conn_destroy(c[0]);
	reeve_conn_destroy(c[1]);
	reeve_rt_destroy(rt);
	return s;
}

START_TEST(the_log_tells_what_ended_badly_and_is_silent_otherwise)
{
	struct said s = log_of(0, 0);

	ck_assert_uint_eq(rvq_gauge_get(&s.lines), 0);
	s = log_of(REEVE_LOG_TRACE, 0);
	ck_assert_uint_gt(rvq_gauge_get(&s.lines), 0);
	ck_assert_uint_eq(rvq_gauge_get(&s.worst_warn), 0);
	s = log_of(0, REEVE_EPROTO);
	ck_assert_uint_gt(rvq_gauge_get(&s.worst_warn), 0);
	s = log_of(REEVE_LOG_ERROR, REEVE_EPROTO);
	ck_assert_uint_eq(rvq_gauge_get(&s.lines), 0);
}
END_TEST

START_TEST(names_and_texts_of_codes)
{
	ck_assert_str_eq(reeve_errname(REEVE_ERESET), "REEVE_ERESET");
	ck_assert_ptr_nonnull(strstr(reeve_errname(REEVE_ESYS_BASE - 104), "REEVE_ESYS:"));
	for (int rc = 5; rc > -1200; rc--) {
		ck_assert_ptr_nonnull(reeve_strerror(rc));
		ck_assert_ptr_nonnull(reeve_errname(rc));
	}
	ck_assert_int_gt((int)strlen(reeve_version()), 0);
	ck_assert_str_eq(reeve_version(), REEVE_VERSION);
}
END_TEST

RVT_MAIN_TABLE("api_rt", {&runtime_configurations_are_checked, 0},
    {&looking_before_sleeping_changes_no_byte, 4}, {&counters_count, 0},
    {&counters_of_the_runtime_are_sums_past_and_present, 0},
    {&an_older_or_newer_caller_gets_what_it_knows, 0},
    {&the_log_tells_what_ended_badly_and_is_silent_otherwise, 0}, {&names_and_texts_of_codes, 0})
