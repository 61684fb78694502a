/* run.h - the main function of a Check program. */
#ifndef REEVE_TESTS_KIT_RUN_H
#define REEVE_TESTS_KIT_RUN_H

#include <check.h>
#include <stdlib.h>

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

#endif
