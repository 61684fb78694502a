/* run.h - the main function of a Check program. */
#ifndef REEVE_TESTS_KIT_RUN_H
#define REEVE_TESTS_KIT_RUN_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define RVT_TIMEOUT_S 30

static inline int
rvt_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;
	size_t i;

	tcase_set_timeout(tcase, RVT_TIMEOUT_S);
	for (i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* REEVE_TEST_ONLY of the environment: part of the names of the tests to run. */
static inline int
rvt_wanted(const TTest *test)
{
	const char *only = getenv("REEVE_TEST_ONLY");

	return only == NULL || strstr(test->name, only) != NULL;
}

/* A test, or with n > 0 a loop test with _i from 0 to n - 1. */
struct rvt_test {
	const TTest *const *test;
	int n;
};

static inline int
rvt_run_table(const char *name, const struct rvt_test *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;
	size_t i;

	tcase_set_timeout(tcase, RVT_TIMEOUT_S);
	for (i = 0; i < n; i++) {
		if (!rvt_wanted(*tests[i].test))
			continue;
		if (tests[i].n > 0)
			tcase_add_loop_test(tcase, *tests[i].test, 0, tests[i].n);
		else
			tcase_add_test(tcase, *tests[i].test);
	}
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* RVT_MAIN("name", test, test, ...): names that START_TEST defined. */
#define RVT_MAIN(name, ...)                                                  \
	int main(void)                                                       \
	{                                                                    \
		static const TTest *const *const list[] = {__VA_ARGS__};     \
		const TTest *tests[sizeof(list) / sizeof(list[0])];          \
		size_t i;                                                    \
                                                                             \
		for (i = 0; i < sizeof(list) / sizeof(list[0]); i++)         \
			tests[i] = *list[i];                                 \
		return rvt_run(name, tests, sizeof(list) / sizeof(list[0])); \
	}

/* RVT_MAIN_TABLE("name", {&test, 0}, {&loop_test, 3}, ...). */
#define RVT_MAIN_TABLE(name, ...)                                                    \
	int main(void)                                                               \
	{                                                                            \
		static const struct rvt_test table[] = {__VA_ARGS__};                \
                                                                                     \
		return rvt_run_table(name, table, sizeof(table) / sizeof(table[0])); \
	}

#endif
