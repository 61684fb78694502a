/* test_log.c - the log hook: levels, cutting, silence. */
#include <config.h>

#include "lib/log.h"

#include "tests/kit/run.h"

#include <errno.h>
#include <string.h>

struct seen {
	int n, level;
	char id[32], text[512];
};

static void
hook(void *ctx, int level, const char *id, const char *text)
{
	struct seen *s = ctx;

	s->n++;
	s->level = level;
	strcpy(s->id, id);
	strcpy(s->text, text);
	errno = EIO;
}

START_TEST(hook_gets_level_id_and_text)
{
	struct seen s = {0};
	struct rv_log l = {hook, &s, REEVE_LOG_WARN};

	errno = EBADF;
	rv_log(&l, REEVE_LOG_WARN, "REEVE-TEST-0001", "stream %u %s", 7u, "ended");
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(s.n, 1);
	ck_assert_int_eq(s.level, REEVE_LOG_WARN);
	ck_assert_str_eq(s.id, "REEVE-TEST-0001");
	ck_assert_str_eq(s.text, "stream 7 ended");
}
END_TEST

START_TEST(less_important_is_not_said)
{
	struct seen s = {0};
	struct rv_log l = {hook, &s, REEVE_LOG_WARN}, off = {NULL, &s, REEVE_LOG_TRACE};

	rv_log(&l, REEVE_LOG_INFO, "id", "x");
	rv_log(&off, REEVE_LOG_ERROR, "id", "x");
	ck_assert_int_eq(s.n, 0);
	ck_assert(rv_log_on(&l, REEVE_LOG_ERROR) && !rv_log_on(&l, REEVE_LOG_INFO));
	rv_log(&l, REEVE_LOG_ERROR, "id", "x");
	ck_assert_int_eq(s.n, 1);
}
END_TEST

START_TEST(long_text_is_cut)
{
	struct seen s = {0};
	struct rv_log l = {hook, &s, REEVE_LOG_WARN};

	rv_log(&l, REEVE_LOG_ERROR, "id", "%0300d", 0);
	ck_assert_uint_eq(strlen(s.text), RV_LOG_MAX - 1);
}
END_TEST

RVT_MAIN("log", &hook_gets_level_id_and_text, &less_important_is_not_said, &long_text_is_cut)
