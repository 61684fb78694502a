/* test_error.c - texts and names of error codes. */
#include <config.h>

#include <reeve/error.h>

#include "tests/kit/run.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

START_TEST(every_code_has_its_name_and_text)
{
#define X(name, num, text)                                             \
	ck_assert_int_eq(REEVE_##name, -(num));                        \
	ck_assert_str_eq(reeve_errname(REEVE_##name), "REEVE_" #name); \
	ck_assert_str_eq(reeve_strerror(REEVE_##name), text);
	REEVE_ERR_MAP(X)
#undef X
	ck_assert_str_eq(reeve_errname(REEVE_OK), "REEVE_OK");
	ck_assert_str_eq(reeve_strerror(17), "no error");
}
END_TEST

START_TEST(system_errors_are_named_and_described)
{
	static const struct {
		int e;
		const char *name;
	} row[] = {{ECONNRESET, "REEVE_ESYS:ECONNRESET"}, {EPIPE, "REEVE_ESYS:EPIPE"},
	    {ENOTRECOVERABLE, "REEVE_ESYS:ENOTRECOVERABLE"}, {EPERM, "REEVE_ESYS:EPERM"},
	    {100000, "REEVE_ESYS"}};
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		ck_assert_str_eq(reeve_errname(REEVE_ESYS_BASE - row[i].e), row[i].name);
#ifdef HAVE_STRERRORDESC_NP
	ck_assert_str_eq(reeve_strerror(REEVE_ESYS_BASE - EPIPE), "Broken pipe");
	ck_assert_str_eq(reeve_strerror(REEVE_ESYS_BASE - 100000), "REEVE_ESYS");
#endif
}
END_TEST

START_TEST(any_number_is_answered)
{
	static const int odd[] = {INT_MIN, INT_MAX, -999, -1000, -21, -500, 1};
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		ck_assert_uint_gt(strlen(reeve_strerror(odd[i])), 0);
		ck_assert_uint_gt(strlen(reeve_errname(odd[i])), 0);
	}
	ck_assert_str_eq(reeve_errname(-999), "REEVE_UNKNOWN");
	ck_assert_str_eq(reeve_strerror(-999), "unknown error");
}
END_TEST

RVT_MAIN("error", &every_code_has_its_name_and_text, &system_errors_are_named_and_described,
    &any_number_is_answered)
